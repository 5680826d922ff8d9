/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* DAT 1.2 for user-mode consumers: the one header to include.  Programs link with -ldat. */
#if defined(DAT_VERSION_MAJOR) && DAT_VERSION_MAJOR != 1
#error "<dat/udat.h> after the header of DAT 2.0: a source file speaks one version of DAT"
#endif

#ifndef _UDAT_H_
#define _UDAT_H_

#include <dat/udat_config.h>
#include <dat/dat_platform_specific.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- What dat.h needs and kernel mode defines otherwise ---- */

/* What an LMR is made of, and which member of DAT_REGION_DESCRIPTION says where it is. */
typedef enum dat_mem_type {
	DAT_MEM_TYPE_VIRTUAL,	    /* memory of the caller: for_va */
	DAT_MEM_TYPE_LMR,	    /* the memory of an LMR, once more: for_lmr_handle */
	DAT_MEM_TYPE_SHARED_VIRTUAL /* memory that processes share: for_shared_memory */
} DAT_MEM_TYPE;

typedef enum dat_handle_type {
	DAT_HANDLE_TYPE_CR,
	DAT_HANDLE_TYPE_EP,
	DAT_HANDLE_TYPE_EVD,
	DAT_HANDLE_TYPE_IA,
	DAT_HANDLE_TYPE_LMR,
	DAT_HANDLE_TYPE_PSP,
	DAT_HANDLE_TYPE_PZ,
	DAT_HANDLE_TYPE_RMR,
	DAT_HANDLE_TYPE_RSP,
	DAT_HANDLE_TYPE_CNO,
	DAT_HANDLE_TYPE_SRQ
} DAT_HANDLE_TYPE;

/*
 * One of each pair of bits, and a configuration to be compared after masking with 0x30, for
 * THRESHOLD is both of its bits; it comes from the completion flags of the EPs on the EVD.
 */
typedef enum dat_evd_state {
	DAT_EVD_STATE_ENABLED = 0x1, /* events trigger the CNO */
	DAT_EVD_STATE_DISABLED = 0x2,
	DAT_EVD_STATE_WAITABLE = 0x4, /* dat_evd_wait() is possible */
	DAT_EVD_STATE_UNWAITABLE = 0x8,
	DAT_EVD_STATE_CONFIG_NOTIFY = 0x10,    /* all queues are UNSIGNALLED */
	DAT_EVD_STATE_CONFIG_SOLICITED = 0x20, /* EPs with SOLICITED_WAIT */
	DAT_EVD_STATE_CONFIG_THRESHOLD = 0x30  /* others, or none */
} DAT_EVD_STATE;

typedef enum dat_evd_param_mask {
	DAT_EVD_FIELD_IA_HANDLE = 0x1,
	DAT_EVD_FIELD_EVD_QLEN = 0x2,
	DAT_EVD_FIELD_EVD_STATE = 0x4,
	DAT_EVD_FIELD_CNO = 0x8,
	DAT_EVD_FIELD_EVD_FLAGS = 0x10,
	DAT_EVD_FIELD_ALL = 0x1f
} DAT_EVD_PARAM_MASK;

/* dat.h makes DAT_LMR_PARAM_MASK of it. */
enum dat_lmr_param_mask {
	DAT_LMR_FIELD_IA_HANDLE = 0x1,
	DAT_LMR_FIELD_MEM_TYPE = 0x2,
	DAT_LMR_FIELD_REGION_DESC = 0x4,
	DAT_LMR_FIELD_LENGTH = 0x8,
	DAT_LMR_FIELD_PZ_HANDLE = 0x10,
	DAT_LMR_FIELD_MEM_PRIV = 0x20,
	DAT_LMR_FIELD_LMR_CONTEXT = 0x40,
	DAT_LMR_FIELD_RMR_CONTEXT = 0x80,
	DAT_LMR_FIELD_REGISTERED_SIZE = 0x100,
	DAT_LMR_FIELD_REGISTERED_ADDRESS = 0x200,
	DAT_LMR_FIELD_ALL = 0x3ff
};

typedef DAT_UINT64 DAT_PROVIDER_ATTR_MASK;

#ifdef __cplusplus
}
#endif

#include <dat/dat.h>
#include <dat/udat_vendor_specific.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- IA and provider attributes ---- */

/* In place of an EVD handle, at dat_ia_open() and from dat_ia_query(): another instance has it. */
#define DAT_EVD_ASYNC_EXISTS ((DAT_EVD_HANDLE)0x1)
#define DAT_EVD_OUT_OF_SCOPE ((DAT_EVD_HANDLE)0x2)

/* Pointers are valid until the IA is closed. */
struct dat_ia_attr {
	char adapter_name[DAT_NAME_MAX_LENGTH]; /* of the device */
	char vendor_name[DAT_NAME_MAX_LENGTH];
	DAT_UINT32 hardware_version_major;
	DAT_UINT32 hardware_version_minor;
	DAT_UINT32 firmware_version_major;
	DAT_UINT32 firmware_version_minor;
	DAT_IA_ADDRESS_PTR ia_address_ptr;
	DAT_COUNT max_eps;
	DAT_COUNT max_dto_per_ep;
	DAT_COUNT max_rdma_read_per_ep_in;  /* the peer's reads at a time */
	DAT_COUNT max_rdma_read_per_ep_out; /* own reads at a time */
	DAT_COUNT max_evds;
	DAT_COUNT max_evd_qlen; /* events */
	DAT_COUNT max_iov_segments_per_dto;
	DAT_COUNT max_lmrs;
	DAT_VLEN max_lmr_block_size; /* bytes */
	DAT_VADDR max_lmr_virtual_address;
	DAT_COUNT max_pzs;
	DAT_VLEN max_message_size; /* bytes */
	DAT_VLEN max_rdma_size;	   /* bytes */
	DAT_COUNT max_rmrs;
	DAT_VADDR max_rmr_target_address;
	DAT_COUNT max_srqs; /* 0: there are none */
	DAT_COUNT max_ep_per_srq;
	DAT_COUNT max_recv_per_srq;
	DAT_COUNT max_iov_segments_per_rdma_read;
	DAT_COUNT max_iov_segments_per_rdma_write;
	DAT_COUNT max_rdma_read_in;  /* over all EPs */
	DAT_COUNT max_rdma_read_out; /* over all EPs */
	DAT_BOOLEAN max_rdma_read_per_ep_in_guaranteed;
	DAT_BOOLEAN max_rdma_read_per_ep_out_guaranteed;
	DAT_COUNT num_transport_attr;
	DAT_NAMED_ATTR *transport_attr;
	DAT_COUNT num_vendor_attr;
	DAT_NAMED_ATTR *vendor_attr;
};

/* The rest of DAT_IA_ATTR_MASK. */
#define DAT_IA_FIELD_IA_NUM_TRANSPORT_ATTR UINT64_C(0x80000000)
#define DAT_IA_FIELD_IA_TRANSPORT_ATTR	   UINT64_C(0x100000000)
#define DAT_IA_FIELD_IA_NUM_VENDOR_ATTR	   UINT64_C(0x200000000)
#define DAT_IA_FIELD_IA_VENDOR_ATTR	   UINT64_C(0x400000000)
#define DAT_IA_FIELD_ALL		   UINT64_C(0x7ffffffff)

typedef enum dat_pz_support { DAT_PZ_UNIQUE, DAT_PZ_SHAREABLE } DAT_PZ_SUPPORT;

/*
 * evd_stream_merging_supported tells which streams may share an EVD; both indices are SOFTWARE 0,
 * CR 1, DTO 2, CONNECTION 3, RMR_BIND 4, ASYNC 5.  Its const is frozen: the structure cannot be
 * assigned as a whole, nor default-constructed in C++.
 */
struct dat_provider_attr {
	char provider_name[DAT_NAME_MAX_LENGTH]; /* the IA name */
	DAT_UINT32 provider_version_major;
	DAT_UINT32 provider_version_minor;
	DAT_UINT32 dapl_version_major; /* of the interface */
	DAT_UINT32 dapl_version_minor;
	DAT_MEM_TYPE lmr_mem_types_supported;
	DAT_IOV_OWNERSHIP iov_ownership_on_return;
	DAT_QOS dat_qos_supported;			 /* bit set */
	DAT_COMPLETION_FLAGS completion_flags_supported; /* bit set */
	DAT_BOOLEAN is_thread_safe;
	DAT_COUNT max_private_data_size; /* bytes, dat_ep_connect() */
	DAT_BOOLEAN supports_multipath;
	DAT_EP_CREATOR_FOR_PSP ep_creator;
	DAT_PZ_SUPPORT pz_support;
	DAT_UINT32 optimal_buffer_alignment; /* bytes */
	const DAT_BOOLEAN evd_stream_merging_supported[6][6];
	DAT_BOOLEAN srq_supported;
	DAT_COUNT srq_watermarks_supported; /* low and high ones */
	DAT_BOOLEAN srq_ep_pz_difference_supported;
	DAT_COUNT srq_info_supported;	  /* what dat_srq_query() tells */
	DAT_COUNT ep_recv_info_supported; /* what dat_ep_recv_query() tells */
	DAT_BOOLEAN lmr_sync_req;	  /* dat_lmr_sync_rdma_*() needed */
	DAT_BOOLEAN dto_async_return_guaranteed;
	DAT_BOOLEAN rdma_write_for_rdma_read_req; /* read targets need remote write */
	DAT_COUNT num_provider_specific_attr;
	DAT_NAMED_ATTR *provider_specific_attr;
};

#define DAT_PROVIDER_FIELD_PROVIDER_NAME		  UINT64_C(0x1)
#define DAT_PROVIDER_FIELD_PROVIDER_VERSION_MAJOR	  UINT64_C(0x2)
#define DAT_PROVIDER_FIELD_PROVIDER_VERSION_MINOR	  UINT64_C(0x4)
#define DAT_PROVIDER_FIELD_DAPL_VERSION_MAJOR		  UINT64_C(0x8)
#define DAT_PROVIDER_FIELD_DAPL_VERSION_MINOR		  UINT64_C(0x10)
#define DAT_PROVIDER_FIELD_LMR_MEM_TYPE_SUPPORTED	  UINT64_C(0x20)
#define DAT_PROVIDER_FIELD_IOV_OWNERSHIP		  UINT64_C(0x40)
#define DAT_PROVIDER_FIELD_DAT_QOS_SUPPORTED		  UINT64_C(0x80)
#define DAT_PROVIDER_FIELD_COMPLETION_FLAGS_SUPPORTED	  UINT64_C(0x100)
#define DAT_PROVIDER_FIELD_IS_THREAD_SAFE		  UINT64_C(0x200)
#define DAT_PROVIDER_FIELD_MAX_PRIVATE_DATA_SIZE	  UINT64_C(0x400)
#define DAT_PROVIDER_FIELD_SUPPORTS_MULTIPATH		  UINT64_C(0x800)
#define DAT_PROVIDER_FIELD_EP_CREATOR			  UINT64_C(0x1000)
#define DAT_PROVIDER_FIELD_PZ_SUPPORT			  UINT64_C(0x2000)
#define DAT_PROVIDER_FIELD_OPTIMAL_BUFFER_ALIGNMENT	  UINT64_C(0x4000)
#define DAT_PROVIDER_FIELD_EVD_STREAM_MERGING_SUPPORTED	  UINT64_C(0x8000)
#define DAT_PROVIDER_FIELD_SRQ_SUPPORTED		  UINT64_C(0x10000)
#define DAT_PROVIDER_FIELD_SRQ_WATERMARKS_SUPPORTED	  UINT64_C(0x20000)
#define DAT_PROVIDER_FIELD_SRQ_EP_PZ_DIFFERENCE_SUPPORTED UINT64_C(0x40000)
#define DAT_PROVIDER_FIELD_SRQ_INFO_SUPPORTED		  UINT64_C(0x80000)
#define DAT_PROVIDER_FIELD_EP_RECV_INFO_SUPPORTED	  UINT64_C(0x100000)
#define DAT_PROVIDER_FIELD_LMR_SYNC_REQ			  UINT64_C(0x200000)
#define DAT_PROVIDER_FIELD_DTO_ASYNC_RETURN_GUARANTEED	  UINT64_C(0x400000)
#define DAT_PROVIDER_FIELD_RDMA_WRITE_FOR_RDMA_READ_REQ	  UINT64_C(0x800000)
#define DAT_PROVIDER_FIELD_NUM_PROVIDER_SPECIFIC_ATTR	  UINT64_C(0x1000000)
#define DAT_PROVIDER_FIELD_PROVIDER_SPECIFIC_ATTR	  UINT64_C(0x2000000)
#define DAT_PROVIDER_FIELD_ALL				  UINT64_C(0x3ffffff)
#define DAT_PROVIDER_FIELD_NONE				  UINT64_C(0x0)

/* ---- Event dispatcher (EVD) ---- */

/*
 * A CNO is triggered when an event that notifies, see DAT_COMPLETION_FLAGS, arrives on one of its
 * EVDs that is enabled and has no waiter.  It holds no events and does not count: a thread that
 * learns of an EVD takes all its events before it waits for the next.
 */
typedef DAT_HANDLE DAT_CNO_HANDLE;

struct dat_evd_param {
	DAT_IA_HANDLE ia_handle;
	DAT_COUNT evd_qlen; /* actual length, events */
	DAT_EVD_STATE evd_state;
	DAT_CNO_HANDLE cno_handle; /* DAT_HANDLE_NULL without a CNO */
	DAT_EVD_FLAGS evd_flags;
};

/*
 * Makes an EVD with room for at least evd_min_qlen events, to be fed by the streams that evd_flags
 * allow; any combination will do, where evd_stream_merging_supported says so.  It is enabled and
 * waitable.  The CNO may be null.  An EVD should have room for all DTOs of its EPs, but need not.
 * [DAT 1.2, EVD create]
 * - ARG2: not positive; INSUFFICIENT_RESOURCES/RESOURCE_TEVD: above max_evd_qlen
 * - INVALID_HANDLE/CNO: not a CNO; ARG4: flags that do not exist, or none
 */
DAT_RETURN dat_evd_create(DAT_IA_HANDLE ia_handle, DAT_COUNT evd_min_qlen,
			  DAT_CNO_HANDLE cno_handle, DAT_EVD_FLAGS evd_flags,
			  DAT_EVD_HANDLE *evd_handle);

/*
 * Waits until threshold events are there, takes the oldest, and says in *n_more_events how many are
 * left.  It returns at once if they are there already.  While it sleeps it is woken only by an
 * event that notifies, see DAT_COMPLETION_FLAGS, and makes the threshold full; when the timeout, in
 * microseconds, has run out, all events count.  A timeout of 0 polls.  One thread may wait at a
 * time, and the EVD does not trigger its CNO during the wait.  [DAT 1.2, EVD wait]
 * - TIMEOUT_EXPIRED, INTERRUPTED_CALL, without class bit: nothing was taken, *n_more_events is set
 * - ARG3: the threshold is not positive, or above the queue length
 * - INVALID_STATE/EVD_UNWAITABLE: made unwaitable, before or during the wait
 * - INVALID_STATE/EVD_WAITER: another thread waits
 * - INVALID_STATE/EVD_CONFIG_NOTIFY, EVD_CONFIG_SOLICITED: a threshold above 1, and all queues on it are
 *   UNSIGNALLED or SOLICITED_WAIT
 * - INVALID_STATE: the device's queue has overflowed, and what was left has been taken
 * - ABORT: the EVD was freed, or the IA closed abruptly
 */
DAT_RETURN dat_evd_wait(DAT_EVD_HANDLE evd_handle, DAT_TIMEOUT timeout, DAT_COUNT threshold,
			DAT_EVENT *event, DAT_COUNT *n_more_events);

/*
 * Attaches another CNO, or with null none.  When it returns, the EVD does not trigger the old one
 * any more; if events are pending it triggers the new one once.  A waiter is not disturbed.
 * [DAT 1.2, EVD modify CNO]
 * - INVALID_HANDLE/CNO: not a CNO
 */
DAT_RETURN dat_evd_modify_cno(DAT_EVD_HANDLE evd_handle, DAT_CNO_HANDLE cno_handle);

/*
 * Lets events of the EVD trigger its CNO, as they do at creation, and triggers it if some are
 * pending.  [DAT 1.2, EVD enable]
 */
DAT_RETURN dat_evd_enable(DAT_EVD_HANDLE evd_handle);

/*
 * Keeps events of the EVD from triggering its CNO; they are queued, and waiting and dequeuing go on
 * as before.  [DAT 1.2, EVD disable]
 */
DAT_RETURN dat_evd_disable(DAT_EVD_HANDLE evd_handle);

/*
 * Makes dat_evd_wait() fail, and a thread that is in it return, with INVALID_STATE/EVD_UNWAITABLE.
 * Queueing, dequeuing and the CNO go on as before.  [DAT 1.2, EVD set unwaitable]
 */
DAT_RETURN dat_evd_set_unwaitable(DAT_EVD_HANDLE evd_handle);

/* Lets threads wait on the EVD again.  [DAT 1.2, EVD clear unwaitable] */
DAT_RETURN dat_evd_clear_unwaitable(DAT_EVD_HANDLE evd_handle);

/* ---- Consumer notification object (CNO) ---- */

/* Called with instance_data of its agent and the EVD, or null if the IA is closing. */
typedef void (*DAT_AGENT_FUNC)(DAT_PVOID instance_data, DAT_EVD_HANDLE evd_handle);

/*
 * A proxy agent is called for one trigger and then disarmed; it may arm itself anew with
 * dat_cno_modify_agent().  The thread is the provider's or one that posts an event.  No lock is
 * held, so it may call anything but the free of that CNO and the close of that IA; it must not
 * block.
 */
typedef struct dat_os_wait_proxy_agent {
	DAT_PVOID instance_data;
	DAT_AGENT_FUNC proxy_agent_func;
} DAT_OS_WAIT_PROXY_AGENT;

/* No agent.  Fit for an initialiser and for an argument. */
#define DAT_OS_WAIT_PROXY_AGENT_NULL \
	(DAT_OS_WAIT_PROXY_AGENT)    \
	{                            \
		NULL, NULL           \
	}

typedef struct dat_cno_param {
	DAT_IA_HANDLE ia_handle;
	DAT_OS_WAIT_PROXY_AGENT agent; /* that is armed; else DAT_OS_WAIT_PROXY_AGENT_NULL */
} DAT_CNO_PARAM;

typedef enum dat_cno_param_mask {
	DAT_CNO_FIELD_IA_HANDLE = 0x1,
	DAT_CNO_FIELD_AGENT = 0x2,
	DAT_CNO_FIELD_ALL = 0x3
} DAT_CNO_PARAM_MASK;

/*
 * Makes a CNO without EVDs; they are attached by dat_evd_create() or dat_evd_modify_cno().  agent
 * is armed unless it is DAT_OS_WAIT_PROXY_AGENT_NULL.  [DAT 1.2, CNO create]
 */
DAT_RETURN dat_cno_create(DAT_IA_HANDLE ia_handle, DAT_OS_WAIT_PROXY_AGENT agent,
			  DAT_CNO_HANDLE *cno_handle);

/*
 * Arms another agent, or none, in place of the present one.  If a trigger found no agent armed and
 * no thread has taken it since, the new one is called for it.  [DAT 1.2, CNO modify agent]
 */
DAT_RETURN dat_cno_modify_agent(DAT_CNO_HANDLE cno_handle, DAT_OS_WAIT_PROXY_AGENT agent);

/* The IA and the agent.  [DAT 1.2, CNO query] */
DAT_RETURN dat_cno_query(DAT_CNO_HANDLE cno_handle, DAT_CNO_PARAM_MASK cno_param_mask,
			 DAT_CNO_PARAM *cno_param);

/*
 * Waits until the CNO is triggered, takes the trigger, and names an EVD to look at; null if the
 * last EVD was freed or the IA closed.  Several threads may wait, and each trigger wakes one.
 * timeout is microseconds, and 0 polls.  [DAT 1.2, CNO wait]
 * - QUEUE_EMPTY, without class bit: the timeout has run out; *evd_handle is null
 * - INTERRUPTED_CALL, without class bit: a signal came
 * - INVALID_STATE/CNO_DEAD: the CNO is going away
 */
DAT_RETURN dat_cno_wait(DAT_CNO_HANDLE cno_handle, DAT_TIMEOUT timeout, DAT_EVD_HANDLE *evd_handle);

/*
 * Frees a CNO, triggered or not.  Waits for a running agent.
 * [DAT 1.2, CNO free]
 * - INVALID_STATE/CNO_IN_USE: it has EVDs or waiters, or is freed by its own agent
 */
DAT_RETURN dat_cno_free(DAT_CNO_HANDLE cno_handle);

/* ---- Local memory region (LMR) ---- */

#define DAT_LMR_COOKIE_SIZE 40

/* Bytes of the consumer's choice, all of which count. */
typedef char (*DAT_LMR_COOKIE)[DAT_LMR_COOKIE_SIZE];

typedef struct dat_shared_memory {
	DAT_PVOID virtual_address;	 /* where this process has it mapped */
	DAT_LMR_COOKIE shared_memory_id; /* what the sharing processes agreed on */
} DAT_SHARED_MEMORY;

typedef union dat_region_description {
	DAT_PVOID for_va;
	DAT_LMR_HANDLE for_lmr_handle;
	DAT_SHARED_MEMORY for_shared_memory;
} DAT_REGION_DESCRIPTION;

struct dat_lmr_param {
	DAT_IA_HANDLE ia_handle;
	DAT_MEM_TYPE mem_type;
	DAT_REGION_DESCRIPTION region_desc;
	DAT_VLEN length; /* bytes */
	DAT_PZ_HANDLE pz_handle;
	DAT_MEM_PRIV_FLAGS mem_priv;
	DAT_LMR_CONTEXT lmr_context; /* for local posts */
	DAT_RMR_CONTEXT rmr_context; /* for the peer; 0: no remote privileges */
	DAT_VLEN registered_size;    /* bytes */
	DAT_VADDR registered_address;
};

/*
 * Registers memory for RDMA.  length is bytes; DAT_MEM_TYPE_LMR ignores it and takes that of the
 * other LMR, which may be freed afterwards.  The region is at least what was asked for, as
 * registered_length and registered_address tell.  rmr_context is 0 unless a remote privilege is asked for.  Local reading is always
 * allowed.  The last four pointers may be null.  The memory stays the consumer's and must stay
 * mapped.  [DAT 1.2, LMR create]
 * - LENGTH_ERROR: 0, or more than the device can; ARG4: beyond the end of the address space
 * - ARG2: the type; ARG6: privileges that do not exist
 * - ARG3: memory that is not there; INVALID_HANDLE/LMR: not an LMR
 * - PRIVILEGES_VIOLATION: the memory cannot be written to
 * - INSUFFICIENT_RESOURCES/RESOURCE_MEMORY_REGION: it has none left, or memory cannot be locked
 */
DAT_RETURN dat_lmr_create(DAT_IA_HANDLE ia_handle, DAT_MEM_TYPE mem_type,
			  DAT_REGION_DESCRIPTION region_description, DAT_VLEN length,
			  DAT_PZ_HANDLE pz_handle, DAT_MEM_PRIV_FLAGS privileges,
			  DAT_LMR_HANDLE *lmr_handle, DAT_LMR_CONTEXT *lmr_context,
			  DAT_RMR_CONTEXT *rmr_context, DAT_VLEN *registered_length,
			  DAT_VADDR *registered_address);

/*
 * What dat_lmr_create() was given and returned.  A shared_memory_id points to the LMR's own copy.
 * [DAT 1.2, LMR query]
 */
DAT_RETURN dat_lmr_query(DAT_LMR_HANDLE lmr_handle, DAT_LMR_PARAM_MASK lmr_param_mask,
			 DAT_LMR_PARAM *lmr_param);

#ifdef __cplusplus
}
#endif

#endif /* _UDAT_H_ */
