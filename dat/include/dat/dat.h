/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* DAT 1.2, the part common to user and kernel consumers; reached through udat.h. */
#ifndef _DAT_H_
#define _DAT_H_

#ifndef _UDAT_H_
#error "include <dat/udat.h>, which includes <dat/dat.h> where its types are ready"
#endif

#include <dat/dat_error.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * How to read the comments below.
 *
 * Results.  Each function lists how it can fail, as TYPE/SUBTYPE without what all names begin
 * with: INVALID_STATE/EVD_IN_USE is DAT_INVALID_STATE with DAT_INVALID_STATE_EVD_IN_USE.  ARGn is
 * DAT_INVALID_PARAMETER with DAT_INVALID_ARGn, the nth parameter counted from 1.  Programs test
 * the type, through DAT_GET_TYPE(); the subtype tells people more.
 *
 * What holds for every function, and no list repeats:
 * - a handle that is null where it may not be, stale, or of another kind: INVALID_HANDLE with the
 *   subtype of the kind that was wanted; a required pointer that is null: ARGn;
 * - arguments are checked first, in order, then the state; a failed call has changed nothing and
 *   written no output, unless the comment says otherwise;
 * - any function that creates can run out: INSUFFICIENT_RESOURCES/RESOURCE_MEMORY;
 * - a query fills in the whole structure whatever the mask, refuses mask bits that do not exist
 *   (ARG2), and returns IA handles as dat_ia_open() gave them;
 * - a create takes references on the objects it is given; an object with references cannot be
 *   freed, so the order of freeing is the reverse of the order of creation.
 *
 * QUEUE_EMPTY, TIMEOUT_EXPIRED and INTERRUPTED_CALL are outcomes rather than errors: they come
 * without the class bit and without a subtype.
 *
 * Threads.  Any function may be called by any number of threads at a time, on the same object
 * too, except that an object must not be freed or closed while another thread uses it.  None is
 * async-signal-safe.  After fork() the objects belong to the parent.
 *
 * The names in brackets say where a rule comes from: "DAT 1.2" is the user-level API
 * specification in its version 1.2, "compatibility" what shipped consumers have come to rely on.
 */

/* ---- Common types ---- */

typedef enum dat_boolean { DAT_FALSE, DAT_TRUE } DAT_BOOLEAN;

/* Room for a name, its NUL included. */
#define DAT_NAME_MAX_LENGTH 256

typedef char *DAT_NAME_PTR;

/* One attribute of a transport, vendor or provider; both strings belong to the IA. */
typedef struct dat_named_attr {
	const char *name;
	const char *value;
} DAT_NAMED_ATTR;

/* 64 bits of the consumer's, which the provider hands back unread. */
typedef union dat_context {
	DAT_PVOID as_ptr;
	DAT_UINT64 as_64;
	DAT_UVERYLONG as_index;
} DAT_CONTEXT;

typedef DAT_CONTEXT DAT_DTO_COOKIE;
typedef DAT_CONTEXT DAT_RMR_COOKIE;

typedef DAT_UINT32 DAT_TIMEOUT; /* microseconds; a wait of 0 polls */

#define DAT_TIMEOUT_INFINITE ((DAT_TIMEOUT)~0)

/* ---- Handles ---- */

/*
 * A DAT_IA_HANDLE is a small number that only the registry understands; it must not be
 * dereferenced.  Every other handle points to an object that begins with its DAT_PROVIDER *.
 */
typedef DAT_PVOID DAT_HANDLE;
typedef DAT_HANDLE DAT_CR_HANDLE;
typedef DAT_HANDLE DAT_EP_HANDLE;
typedef DAT_HANDLE DAT_EVD_HANDLE;
typedef DAT_HANDLE DAT_IA_HANDLE;
typedef DAT_HANDLE DAT_LMR_HANDLE;
typedef DAT_HANDLE DAT_PSP_HANDLE;
typedef DAT_HANDLE DAT_PZ_HANDLE;
typedef DAT_HANDLE DAT_RMR_HANDLE;
typedef DAT_HANDLE DAT_RSP_HANDLE;
typedef DAT_HANDLE DAT_SRQ_HANDLE;

#define DAT_HANDLE_NULL ((DAT_HANDLE)NULL)

/* A service point of any kind. */
typedef union dat_sp_handle {
	DAT_RSP_HANDLE rsp_handle;
	DAT_PSP_HANDLE psp_handle;
} DAT_SP_HANDLE;

/* ---- Addresses and connections ---- */

/* A sockaddr_in or sockaddr_in6, as sa_family says (0 is AF_INET); its port is not used. */
typedef DAT_SOCK_ADDR *DAT_IA_ADDRESS_PTR;

/* What a service point listens on, in host byte order; 0 is not valid. */
typedef DAT_UINT64 DAT_CONN_QUAL;

/* The transport's name of one end of a connection: a TCP-space port, in host byte order. */
typedef DAT_UINT64 DAT_PORT_QUAL;

/* Anything but DAT_QOS_BEST_EFFORT is refused. */
typedef enum dat_qos {
	DAT_QOS_BEST_EFFORT = 0,
	DAT_QOS_HIGH_THROUGHPUT = 1,
	DAT_QOS_LOW_LATENCY = 2,
	DAT_QOS_ECONOMY = 4,
	DAT_QOS_PREMIUM = 8
} DAT_QOS;

typedef enum dat_connect_flags {
	DAT_CONNECT_DEFAULT_FLAG = 0,
	DAT_CONNECT_MULTIPATH_FLAG = 1 /* asked for */
} DAT_CONNECT_FLAGS;

typedef enum dat_close_flags {
	DAT_CLOSE_ABRUPT_FLAG,	/* at once */
	DAT_CLOSE_GRACEFUL_FLAG /* an IA only if empty, an EP after its requests */
} DAT_CLOSE_FLAGS;

#define DAT_CLOSE_DEFAULT DAT_CLOSE_ABRUPT_FLAG

/* ---- Memory: LMR and RMR ---- */

typedef DAT_UINT32 DAT_LMR_CONTEXT; /* the key by which local posts name a region */
typedef DAT_UINT32 DAT_RMR_CONTEXT; /* the key that a peer has to present */
typedef DAT_UINT64 DAT_VLEN;	    /* bytes */
typedef DAT_UINT64 DAT_VADDR;	    /* an address */

/*
 * A piece of local memory.  Length 0 contributes nothing; the other members are not read then.  pad
 * is never read.  A segment is at most 4 GiB - 1.
 */
typedef struct dat_lmr_triplet {
	DAT_LMR_CONTEXT lmr_context;
	DAT_UINT32 pad;
	DAT_VADDR virtual_address;
	DAT_VLEN segment_length;
} DAT_LMR_TRIPLET;

/* A piece of the peer's memory. */
typedef struct dat_rmr_triplet {
	DAT_RMR_CONTEXT rmr_context;
	DAT_UINT32 pad;
	DAT_VADDR target_address;
	DAT_VLEN segment_length; /* not read by posts: the local total counts */
} DAT_RMR_TRIPLET;

/* The values are frozen: read bits in one half-byte, write bits in the next. */
typedef enum dat_mem_priv_flags {
	DAT_MEM_PRIV_NONE_FLAG = 0x0,
	DAT_MEM_PRIV_LOCAL_READ_FLAG = 0x1,
	DAT_MEM_PRIV_REMOTE_READ_FLAG = 0x2,
	DAT_MEM_PRIV_LOCAL_WRITE_FLAG = 0x10,
	DAT_MEM_PRIV_REMOTE_WRITE_FLAG = 0x20,
	DAT_MEM_PRIV_ALL_FLAG = 0x33 /* the four above */
} DAT_MEM_PRIV_FLAGS;

#define DAT_MEM_PRIV_READ_FLAG	(DAT_MEM_PRIV_LOCAL_READ_FLAG | DAT_MEM_PRIV_REMOTE_READ_FLAG)
#define DAT_MEM_PRIV_WRITE_FLAG (DAT_MEM_PRIV_LOCAL_WRITE_FLAG | DAT_MEM_PRIV_REMOTE_WRITE_FLAG)

typedef struct dat_lmr_param DAT_LMR_PARAM;
typedef enum dat_lmr_param_mask DAT_LMR_PARAM_MASK;

typedef struct dat_rmr_param {
	DAT_IA_HANDLE ia_handle;
	DAT_PZ_HANDLE pz_handle;
	DAT_LMR_TRIPLET lmr_triplet;
	DAT_MEM_PRIV_FLAGS mem_priv;
	DAT_RMR_CONTEXT rmr_context;
} DAT_RMR_PARAM;

typedef enum dat_rmr_param_mask {
	DAT_RMR_FIELD_IA_HANDLE = 0x1,
	DAT_RMR_FIELD_PZ_HANDLE = 0x2,
	DAT_RMR_FIELD_LMR_TRIPLET = 0x4, /* only of a bound RMR */
	DAT_RMR_FIELD_MEM_PRIV = 0x8,
	DAT_RMR_FIELD_RMR_CONTEXT = 0x10,
	DAT_RMR_FIELD_ALL = 0x1f
} DAT_RMR_PARAM_MASK;

/* ---- IA and provider attributes ---- */

typedef struct dat_ia_attr DAT_IA_ATTR;
typedef struct dat_provider_attr DAT_PROVIDER_ATTR;
typedef DAT_UINT64 DAT_IA_ATTR_MASK;

/* Earlier names of members; they rewrite every identifier of that spelling. */
#define max_rdma_read_per_ep max_rdma_read_per_ep_in
#define max_mtu_size	     max_message_size

/* The remaining bits, and DAT_IA_FIELD_ALL, are in udat.h. */
#define DAT_IA_FIELD_IA_ADAPTER_NAME			    UINT64_C(0x1)
#define DAT_IA_FIELD_IA_VENDOR_NAME			    UINT64_C(0x2)
#define DAT_IA_FIELD_IA_HARDWARE_MAJOR_VERSION		    UINT64_C(0x4)
#define DAT_IA_FIELD_IA_HARDWARE_MINOR_VERSION		    UINT64_C(0x8)
#define DAT_IA_FIELD_IA_FIRMWARE_MAJOR_VERSION		    UINT64_C(0x10)
#define DAT_IA_FIELD_IA_FIRMWARE_MINOR_VERSION		    UINT64_C(0x20)
#define DAT_IA_FIELD_IA_ADDRESS_PTR			    UINT64_C(0x40)
#define DAT_IA_FIELD_IA_MAX_EPS				    UINT64_C(0x80)
#define DAT_IA_FIELD_IA_MAX_DTO_PER_EP			    UINT64_C(0x100)
#define DAT_IA_FIELD_IA_MAX_RDMA_READ_PER_EP_IN		    UINT64_C(0x200)
#define DAT_IA_FIELD_IA_MAX_RDMA_READ_PER_EP_OUT	    UINT64_C(0x400)
#define DAT_IA_FIELD_IA_MAX_EVDS			    UINT64_C(0x800)
#define DAT_IA_FIELD_IA_MAX_EVD_QLEN			    UINT64_C(0x1000)
#define DAT_IA_FIELD_IA_MAX_IOV_SEGMENTS_PER_DTO	    UINT64_C(0x2000)
#define DAT_IA_FIELD_IA_MAX_LMRS			    UINT64_C(0x4000)
#define DAT_IA_FIELD_IA_MAX_LMR_BLOCK_SIZE		    UINT64_C(0x8000)
#define DAT_IA_FIELD_IA_MAX_LMR_VIRTUAL_ADDRESS		    UINT64_C(0x10000)
#define DAT_IA_FIELD_IA_MAX_PZS				    UINT64_C(0x20000)
#define DAT_IA_FIELD_IA_MAX_MESSAGE_SIZE		    UINT64_C(0x40000)
#define DAT_IA_FIELD_IA_MAX_RDMA_SIZE			    UINT64_C(0x80000)
#define DAT_IA_FIELD_IA_MAX_RMRS			    UINT64_C(0x100000)
#define DAT_IA_FIELD_IA_MAX_RMR_TARGET_ADDRESS		    UINT64_C(0x200000)
#define DAT_IA_FIELD_IA_MAX_SRQS			    UINT64_C(0x400000)
#define DAT_IA_FIELD_IA_MAX_EP_PER_SRQ			    UINT64_C(0x800000)
#define DAT_IA_FIELD_IA_MAX_RECV_PER_SRQ		    UINT64_C(0x1000000)
#define DAT_IA_FIELD_IA_MAX_IOV_SEGMENTS_PER_RDMA_READ	    UINT64_C(0x2000000)
#define DAT_IA_FIELD_IA_MAX_IOV_SEGMENTS_PER_RDMA_WRITE	    UINT64_C(0x4000000)
#define DAT_IA_FIELD_IA_MAX_RDMA_READ_IN		    UINT64_C(0x8000000)
#define DAT_IA_FIELD_IA_MAX_RDMA_READ_OUT		    UINT64_C(0x10000000)
#define DAT_IA_FIELD_IA_MAX_RDMA_READ_PER_EP_IN_GUARANTEED  UINT64_C(0x20000000)
#define DAT_IA_FIELD_IA_MAX_RDMA_READ_PER_EP_OUT_GUARANTEED UINT64_C(0x40000000)

#define DAT_IA_FIELD_NONE UINT64_C(0x0)
#define DAT_IA_ALL	  DAT_IA_FIELD_ALL

#define DAT_IA_FIELD_IA_MAX_MTU_SIZE   DAT_IA_FIELD_IA_MAX_MESSAGE_SIZE
#define DAT_IA_FIELD_IA_MAX_DTO_PER_OP DAT_IA_FIELD_IA_MAX_DTO_PER_EP

/* Which side owns the array of triplets when a post has returned. */
typedef enum dat_iov_ownership {
	DAT_IOV_CONSUMER,	/* the consumer, at once */
	DAT_IOV_PROVIDER_NOMOD, /* the provider until completion; not changed */
	DAT_IOV_PROVIDER_MOD	/* the provider until completion; may be changed */
} DAT_IOV_OWNERSHIP;

/* Whether a PSP makes the EPs for its requests. */
typedef enum dat_ep_creator_for_psp {
	DAT_PSP_CREATES_EP_NEVER,
	DAT_PSP_CREATES_EP_IFASKED,
	DAT_PSP_CREATES_EP_ALWAYS
} DAT_EP_CREATOR_FOR_PSP;

/* ---- Endpoint (EP): types ---- */

/*
 * A bit set.  For a post: SUPPRESS, no event unless it fails; SOLICITED_WAIT, mark the message so
 * that it wakes a peer which waits for solicited ones; UNSIGNALLED, queue the event but wake no thread,
 * only where the EP's attribute is UNSIGNALLED; BARRIER_FENCE, start when the RDMA reads posted
 * before are done.  As an EP attribute, exactly one of DEFAULT, UNSIGNALLED, EVD_THRESHOLD and,
 * for receives, SOLICITED_WAIT; DEFAULT acts as EVD_THRESHOLD.
 */
typedef enum dat_completion_flags {
	DAT_COMPLETION_DEFAULT_FLAG = 0x0,
	DAT_COMPLETION_SUPPRESS_FLAG = 0x1,
	DAT_COMPLETION_SOLICITED_WAIT_FLAG = 0x2,
	DAT_COMPLETION_UNSIGNALLED_FLAG = 0x4,
	DAT_COMPLETION_BARRIER_FENCE_FLAG = 0x8,
	DAT_COMPLETION_EVD_THRESHOLD_FLAG = 0x10
} DAT_COMPLETION_FLAGS;

typedef enum dat_service_type {
	DAT_SERVICE_TYPE_RC /* reliable connection */
} DAT_SERVICE_TYPE;

/*
 * An EP is UNCONNECTED until it is reserved for an RSP or its connecting begins, and comes back
 * there from DISCONNECTED by dat_ep_reset().  The UNCONFIGURED states are never reported.
 */
typedef enum dat_ep_state {
	DAT_EP_STATE_UNCONNECTED,
	DAT_EP_STATE_UNCONFIGURED_UNCONNECTED,
	DAT_EP_STATE_RESERVED, /* an RSP owns it */
	DAT_EP_STATE_UNCONFIGURED_RESERVED,
	DAT_EP_STATE_PASSIVE_CONNECTION_PENDING, /* the RSP has a request */
	DAT_EP_STATE_UNCONFIGURED_PASSIVE,
	DAT_EP_STATE_ACTIVE_CONNECTION_PENDING,	   /* dat_ep_connect() is under way */
	DAT_EP_STATE_TENTATIVE_CONNECTION_PENDING, /* made by a PSP for a request */
	DAT_EP_STATE_UNCONFIGURED_TENTATIVE,
	DAT_EP_STATE_CONNECTED,
	DAT_EP_STATE_DISCONNECT_PENDING, /* dat_ep_disconnect() is under way */
	DAT_EP_STATE_DISCONNECTED,	 /* posts are taken, and flushed */
	DAT_EP_STATE_COMPLETION_PENDING	 /* accepted, not yet established */
} DAT_EP_STATE;

#define DAT_EP_STATE_ERROR DAT_EP_STATE_DISCONNECTED

/*
 * The provider may grant more DTOs and segments than asked for; all else is exact.  The two
 * sizes are kept as given, and only the limits of the device enforced; 0 means those.  0 in
 * max_rdma_read_iov and max_rdma_write_iov means max_request_iov.
 */
typedef struct dat_ep_attr {
	DAT_SERVICE_TYPE service_type;
	DAT_VLEN max_message_size; /* bytes in one send; for information */
	DAT_VLEN max_rdma_size;	   /* bytes in one RDMA; for information */
	DAT_QOS qos;
	DAT_COMPLETION_FLAGS recv_completion_flags;
	DAT_COMPLETION_FLAGS request_completion_flags;
	DAT_COUNT max_recv_dtos;      /* receives posted at a time */
	DAT_COUNT max_request_dtos;   /* sends, RDMA and binds at a time */
	DAT_COUNT max_recv_iov;	      /* segments in a receive */
	DAT_COUNT max_request_iov;    /* segments in a send */
	DAT_COUNT max_rdma_read_in;   /* the peer's reads at a time; 0: none */
	DAT_COUNT max_rdma_read_out;  /* own reads at a time; 0: none */
	DAT_COUNT srq_soft_hw;	      /* with an SRQ: DAT_HW_DEFAULT or 0 */
	DAT_COUNT max_rdma_read_iov;  /* segments in an RDMA read */
	DAT_COUNT max_rdma_write_iov; /* segments in an RDMA write */
	DAT_COUNT ep_transport_specific_count;
	DAT_NAMED_ATTR *ep_transport_specific;
	DAT_COUNT ep_provider_specific_count;
	DAT_NAMED_ATTR *ep_provider_specific;
} DAT_EP_ATTR;

/* The addresses belong to the EP and are valid until its state changes. */
typedef struct dat_ep_param {
	DAT_IA_HANDLE ia_handle;
	DAT_EP_STATE ep_state;
	DAT_IA_ADDRESS_PTR local_ia_address_ptr;
	DAT_PORT_QUAL local_port_qual;
	DAT_IA_ADDRESS_PTR remote_ia_address_ptr;
	DAT_PORT_QUAL remote_port_qual;
	DAT_PZ_HANDLE pz_handle;
	DAT_EVD_HANDLE recv_evd_handle;
	DAT_EVD_HANDLE request_evd_handle;
	DAT_EVD_HANDLE connect_evd_handle;
	DAT_SRQ_HANDLE srq_handle; /* DAT_HANDLE_NULL without an SRQ */
	DAT_EP_ATTR ep_attr;
} DAT_EP_PARAM;

typedef DAT_UINT64 DAT_EP_PARAM_MASK;

#define DAT_EP_FIELD_IA_HANDLE			      UINT64_C(0x1)
#define DAT_EP_FIELD_EP_STATE			      UINT64_C(0x2)
#define DAT_EP_FIELD_LOCAL_IA_ADDRESS_PTR	      UINT64_C(0x4)
#define DAT_EP_FIELD_LOCAL_PORT_QUAL		      UINT64_C(0x8)
#define DAT_EP_FIELD_REMOTE_IA_ADDRESS_PTR	      UINT64_C(0x10)
#define DAT_EP_FIELD_REMOTE_PORT_QUAL		      UINT64_C(0x20)
#define DAT_EP_FIELD_PZ_HANDLE			      UINT64_C(0x40)
#define DAT_EP_FIELD_RECV_EVD_HANDLE		      UINT64_C(0x80)
#define DAT_EP_FIELD_REQUEST_EVD_HANDLE		      UINT64_C(0x100)
#define DAT_EP_FIELD_CONNECT_EVD_HANDLE		      UINT64_C(0x200)
#define DAT_EP_FIELD_SRQ_HANDLE			      UINT64_C(0x400)
#define DAT_EP_FIELD_EP_ATTR_SERVICE_TYPE	      UINT64_C(0x1000)
#define DAT_EP_FIELD_EP_ATTR_MAX_MESSAGE_SIZE	      UINT64_C(0x2000)
#define DAT_EP_FIELD_EP_ATTR_MAX_RDMA_SIZE	      UINT64_C(0x4000)
#define DAT_EP_FIELD_EP_ATTR_QOS		      UINT64_C(0x8000)
#define DAT_EP_FIELD_EP_ATTR_RECV_COMPLETION_FLAGS    UINT64_C(0x10000)
#define DAT_EP_FIELD_EP_ATTR_REQUEST_COMPLETION_FLAGS UINT64_C(0x20000)
#define DAT_EP_FIELD_EP_ATTR_MAX_RECV_DTOS	      UINT64_C(0x40000)
#define DAT_EP_FIELD_EP_ATTR_MAX_REQUEST_DTOS	      UINT64_C(0x80000)
#define DAT_EP_FIELD_EP_ATTR_MAX_RECV_IOV	      UINT64_C(0x100000)
#define DAT_EP_FIELD_EP_ATTR_MAX_REQUEST_IOV	      UINT64_C(0x200000)
#define DAT_EP_FIELD_EP_ATTR_MAX_RDMA_READ_IN	      UINT64_C(0x400000)
#define DAT_EP_FIELD_EP_ATTR_MAX_RDMA_READ_OUT	      UINT64_C(0x800000)
#define DAT_EP_FIELD_EP_ATTR_SRQ_SOFT_HW	      UINT64_C(0x1000000)
#define DAT_EP_FIELD_EP_ATTR_MAX_RDMA_READ_IOV	      UINT64_C(0x2000000)
#define DAT_EP_FIELD_EP_ATTR_MAX_RDMA_WRITE_IOV	      UINT64_C(0x4000000)
#define DAT_EP_FIELD_EP_ATTR_NUM_TRANSPORT_ATTR	      UINT64_C(0x8000000)
#define DAT_EP_FIELD_EP_ATTR_TRANSPORT_SPECIFIC_ATTR  UINT64_C(0x10000000)
#define DAT_EP_FIELD_EP_ATTR_NUM_PROVIDER_ATTR	      UINT64_C(0x20000000)
#define DAT_EP_FIELD_EP_ATTR_PROVIDER_SPECIFIC_ATTR   UINT64_C(0x40000000)
#define DAT_EP_FIELD_EP_ATTR_ALL		      UINT64_C(0x7ffff000)
#define DAT_EP_FIELD_ALL			      UINT64_C(0x7ffff7ff)

#define DAT_WATERMARK_INFINITE ((DAT_COUNT)-1)
#define DAT_HW_DEFAULT	       DAT_WATERMARK_INFINITE

/* A count that the device cannot tell. */
#define DAT_VALUE_UNKNOWN ((DAT_COUNT)-2)

/* ---- Shared receive queue (SRQ): types ---- */

typedef enum dat_srq_state { DAT_SRQ_STATE_OPERATIONAL, DAT_SRQ_STATE_ERROR } DAT_SRQ_STATE;

/* No low watermark. */
#define DAT_SRQ_LW_DEFAULT 0

typedef struct dat_srq_attr {
	DAT_COUNT max_recv_dtos; /* receives posted and not yet dequeued */
	DAT_COUNT max_recv_iov;	 /* segments in a receive */
	DAT_COUNT low_watermark; /* DAT_SRQ_LW_DEFAULT at creation */
} DAT_SRQ_ATTR;

typedef struct dat_srq_param {
	DAT_IA_HANDLE ia_handle;
	DAT_SRQ_STATE srq_state;
	DAT_PZ_HANDLE pz_handle;
	DAT_COUNT max_recv_dtos; /* as granted, at least what was asked for */
	DAT_COUNT max_recv_iov;
	DAT_COUNT low_watermark;
	DAT_COUNT available_dto_count;	 /* receives no EP has taken, as far as known */
	DAT_COUNT outstanding_dto_count; /* receives whose event was not dequeued */
} DAT_SRQ_PARAM;

typedef enum dat_srq_param_mask {
	DAT_SRQ_FIELD_IA_HANDLE = 0x1,
	DAT_SRQ_FIELD_SRQ_STATE = 0x2,
	DAT_SRQ_FIELD_PZ_HANDLE = 0x4,
	DAT_SRQ_FIELD_MAX_RECV_DTO = 0x8,
	DAT_SRQ_FIELD_MAX_RECV_IOV = 0x10,
	DAT_SRQ_FIELD_LOW_WATERMARK = 0x20,
	DAT_SRQ_FIELD_AVAILABLE_DTO_COUNT = 0x40,
	DAT_SRQ_FIELD_OUTSTANDING_DTO_COUNT = 0x80,
	DAT_SRQ_FIELD_ALL = 0xff
} DAT_SRQ_PARAM_MASK;

/* ---- Protection zone (PZ): types ---- */

typedef struct dat_pz_param {
	DAT_IA_HANDLE ia_handle;
} DAT_PZ_PARAM;

typedef enum dat_pz_param_mask {
	DAT_PZ_FIELD_IA_HANDLE = 1,
	DAT_PZ_FIELD_ALL = 1
} DAT_PZ_PARAM_MASK;

/* ---- Service points and connection requests: types ---- */

/* Which side makes the EP for a request that arrives on a PSP. */
typedef enum dat_psp_flags { DAT_PSP_CONSUMER_FLAG, DAT_PSP_PROVIDER_FLAG } DAT_PSP_FLAGS;

typedef struct dat_psp_param {
	DAT_IA_HANDLE ia_handle;
	DAT_CONN_QUAL conn_qual;
	DAT_EVD_HANDLE evd_handle;
	DAT_PSP_FLAGS psp_flags;
} DAT_PSP_PARAM;

typedef enum dat_psp_param_mask {
	DAT_PSP_FIELD_IA_HANDLE = 0x1,
	DAT_PSP_FIELD_CONN_QUAL = 0x2,
	DAT_PSP_FIELD_EVD_HANDLE = 0x4,
	DAT_PSP_FIELD_PSP_FLAGS = 0x8,
	DAT_PSP_FIELD_ALL = 0xf
} DAT_PSP_PARAM_MASK;

typedef struct dat_rsp_param {
	DAT_IA_HANDLE ia_handle;
	DAT_CONN_QUAL conn_qual;
	DAT_EVD_HANDLE evd_handle;
	DAT_EP_HANDLE ep_handle;
} DAT_RSP_PARAM;

typedef enum dat_rsp_param_mask {
	DAT_RSP_FIELD_IA_HANDLE = 0x1,
	DAT_RSP_FIELD_CONN_QUAL = 0x2,
	DAT_RSP_FIELD_EVD_HANDLE = 0x4,
	DAT_RSP_FIELD_EP_HANDLE = 0x8,
	DAT_RSP_FIELD_ALL = 0xf
} DAT_RSP_PARAM_MASK;

/* All of it belongs to the CR and is valid until that is accepted, rejected or handed off. */
typedef struct dat_cr_param {
	DAT_IA_ADDRESS_PTR remote_ia_address_ptr;
	DAT_PORT_QUAL remote_port_qual;
	DAT_COUNT private_data_size;   /* bytes; on some transports padded */
	DAT_PVOID private_data;	       /* may be written to and given to dat_cr_accept() */
	DAT_EP_HANDLE local_ep_handle; /* made by the PSP, or reserved for the RSP */
} DAT_CR_PARAM;

typedef enum dat_cr_param_mask {
	DAT_CR_FIELD_REMOTE_IA_ADDRESS_PTR = 0x1,
	DAT_CR_FIELD_REMOTE_PORT_QUAL = 0x2,
	DAT_CR_FIELD_PRIVATE_DATA_SIZE = 0x4,
	DAT_CR_FIELD_PRIVATE_DATA = 0x8,
	DAT_CR_FIELD_LOCAL_EP_HANDLE = 0x10,
	DAT_CR_FIELD_ALL = 0x1f
} DAT_CR_PARAM_MASK;

/* ---- Events ---- */

typedef struct dat_evd_param DAT_EVD_PARAM;

/* Which streams an EVD may be fed by.  The values are frozen. */
typedef enum dat_evd_flags {
	DAT_EVD_SOFTWARE_FLAG = 0x1,
	DAT_EVD_CR_FLAG = 0x10,
	DAT_EVD_DTO_FLAG = 0x20,
	DAT_EVD_CONNECTION_FLAG = 0x40,
	DAT_EVD_RMR_BIND_FLAG = 0x80,
	DAT_EVD_ASYNC_FLAG = 0x100,
	DAT_EVD_DEFAULT_FLAG = 0x1f0 /* all of them but SOFTWARE */
} DAT_EVD_FLAGS;

/* Anything but SUCCESS and ERR_FLUSHED breaks the connection. */
typedef enum dat_dto_completion_status {
	DAT_DTO_SUCCESS,
	DAT_DTO_ERR_FLUSHED,		/* the connection ended first */
	DAT_DTO_ERR_LOCAL_LENGTH,	/* the message is longer than the receive */
	DAT_DTO_ERR_LOCAL_EP,		/* the EP could not do it */
	DAT_DTO_ERR_LOCAL_PROTECTION,	/* a segment is not in an LMR that allows it */
	DAT_DTO_ERR_BAD_RESPONSE,	/* the peer answered nonsense */
	DAT_DTO_ERR_REMOTE_ACCESS,	/* the peer's memory does not allow it */
	DAT_DTO_ERR_REMOTE_RESPONDER,	/* the peer could not do it */
	DAT_DTO_ERR_TRANSPORT,		/* the peer does not answer */
	DAT_DTO_ERR_RECEIVER_NOT_READY, /* the peer never posted a receive */
	DAT_DTO_ERR_PARTIAL_PACKET,	/* not used */
	DAT_RMR_OPERATION_FAILED	/* the bind was refused */
} DAT_DTO_COMPLETION_STATUS;

/* Earlier names. */
#define DAT_DTO_LENGTH_ERROR DAT_DTO_ERR_LOCAL_LENGTH
#define DAT_DTO_FAILURE	     DAT_DTO_ERR_FLUSHED

#define DAT_RMR_BIND_COMPLETION_STATUS DAT_DTO_COMPLETION_STATUS
#define DAT_RMR_BIND_SUCCESS	       DAT_DTO_SUCCESS
#define DAT_RMR_BIND_FAILURE	       DAT_DTO_FAILURE

typedef struct dat_dto_completion_event_data {
	DAT_EP_HANDLE ep_handle; /* of an SRQ receive: the EP that took it */
	DAT_DTO_COOKIE user_cookie;
	DAT_DTO_COMPLETION_STATUS status;
	DAT_VLEN transfered_length; /* bytes; 0 unless successful */
} DAT_DTO_COMPLETION_EVENT_DATA;

typedef struct dat_rmr_bind_completion_event_data {
	DAT_RMR_HANDLE rmr_handle;
	DAT_RMR_COOKIE user_cookie;
	DAT_DTO_COMPLETION_STATUS status; /* SUCCESS, ERR_FLUSHED or OPERATION_FAILED */
} DAT_RMR_BIND_COMPLETION_EVENT_DATA;

typedef struct dat_cr_arrival_event_data {
	DAT_SP_HANDLE sp_handle;
	DAT_IA_ADDRESS_PTR local_ia_address_ptr; /* valid until the IA is closed */
	DAT_CONN_QUAL conn_qual;		 /* all 64 bits of the listener's */
	DAT_CR_HANDLE cr_handle;		 /* the consumer's, to accept or reject */
} DAT_CR_ARRIVAL_EVENT_DATA;

/*
 * Private data comes with ESTABLISHED on the connecting side and with PEER_REJECTED; otherwise
 * the size is 0 and the pointer null.  It belongs to the EP and is valid until the EP is
 * connected again, reset or freed.
 */
typedef struct dat_connection_event_data {
	DAT_EP_HANDLE ep_handle;
	DAT_COUNT private_data_size; /* bytes; on some transports padded */
	DAT_PVOID private_data;
} DAT_CONNECTION_EVENT_DATA;

/* The kind of dat_handle (dat_get_handle_type()) says in which of the enums below reason is. */
typedef struct dat_asynch_error_event_data {
	DAT_HANDLE dat_handle; /* the object concerned */
	DAT_COUNT reason;
} DAT_ASYNCH_ERROR_EVENT_DATA;

typedef enum ia_async_error_reason {
	DAT_IA_CATASTROPHIC_ERROR, /* only queries, dequeue, free and close work from now on */
	DAT_IA_OTHER_ERROR
} DAT_IA_ASYNC_ERROR_REASON;

typedef enum ep_async_error_reason {
	DAT_EP_TRANSFER_TO_ERROR, /* broken; an SRQ EP: has left the SRQ */
	DAT_EP_OTHER_ERROR,
	DAT_SRQ_SOFT_HIGH_WATERMARK_EVENT /* see dat_ep_set_watermark() */
} DAT_EP_ASYNC_ERROR_REASON;

typedef enum evd_async_error_reason {
	DAT_EVD_OVERFLOW_ERROR, /* an event found no room */
	DAT_EVD_OTHER_ERROR
} DAT_EVD_ASYNC_ERROR_REASON;

typedef enum srq_async_error_reason {
	DAT_SRQ_TRANSFER_TO_ERROR, /* the SRQ is in DAT_SRQ_STATE_ERROR */
	DAT_SRQ_OTHER_ERROR,
	DAT_SRQ_LOW_WATERMARK_EVENT /* see dat_srq_set_lw() */
} DAT_SRQ_ASYNC_ERROR_REASON;

typedef enum lmr_async_error_reason { DAT_LMR_OTHER_ERROR } DAT_LMR_ASYNC_ERROR_REASON;

typedef enum rmr_async_error_reason { DAT_RMR_OTHER_ERROR } DAT_RMR_ASYNC_ERROR_REASON;

typedef enum pz_async_error_reason { DAT_PZ_OTHER_ERROR } DAT_PZ_ASYNC_ERROR_REASON;

typedef struct dat_software_event_data {
	DAT_PVOID pointer; /* as given to dat_evd_post_se() */
} DAT_SOFTWARE_EVENT_DATA;

/*
 * The numbers are frozen.  Each attempt to connect and each connection ends with exactly one
 * connection event other than ESTABLISHED.
 */
typedef enum dat_event_number {
	/* With event_data.dto_completion_event_data: */
	DAT_DTO_COMPLETION_EVENT = 0x1,

	/* With event_data.rmr_completion_event_data: */
	DAT_RMR_BIND_COMPLETION_EVENT = 0x1001,

	/* With event_data.cr_arrival_event_data: */
	DAT_CONNECTION_REQUEST_EVENT = 0x2001,

	/* With event_data.connect_event_data: */
	DAT_CONNECTION_EVENT_ESTABLISHED = 0x4001,
	DAT_CONNECTION_EVENT_PEER_REJECTED = 0x4002,	       /* by the consumer there */
	DAT_CONNECTION_EVENT_NON_PEER_REJECTED = 0x4003,       /* no listener, or no room */
	DAT_CONNECTION_EVENT_ACCEPT_COMPLETION_ERROR = 0x4004, /* after dat_cr_accept() */
	DAT_CONNECTION_EVENT_DISCONNECTED = 0x4005,
	DAT_CONNECTION_EVENT_BROKEN = 0x4006,
	DAT_CONNECTION_EVENT_TIMED_OUT = 0x4007,
	DAT_CONNECTION_EVENT_UNREACHABLE = 0x4008,

	/* With event_data.asynch_error_event_data: */
	DAT_ASYNC_ERROR_EVD_OVERFLOW = 0x8001,
	DAT_ASYNC_ERROR_IA_CATASTROPHIC = 0x8002,
	DAT_ASYNC_ERROR_EP_BROKEN = 0x8003,
	DAT_ASYNC_ERROR_TIMED_OUT = 0x8004,		  /* not used */
	DAT_ASYNC_ERROR_PROVIDER_INTERNAL_ERROR = 0x8005, /* all else, see reason */

	/* With event_data.software_event_data: */
	DAT_SOFTWARE_EVENT = 0x10001
} DAT_EVENT_NUMBER;

typedef union dat_event_data {
	DAT_DTO_COMPLETION_EVENT_DATA dto_completion_event_data;
	DAT_RMR_BIND_COMPLETION_EVENT_DATA rmr_completion_event_data;
	DAT_CR_ARRIVAL_EVENT_DATA cr_arrival_event_data;
	DAT_CONNECTION_EVENT_DATA connect_event_data;
	DAT_ASYNCH_ERROR_EVENT_DATA asynch_error_event_data;
	DAT_SOFTWARE_EVENT_DATA software_event_data;
} DAT_EVENT_DATA;

typedef struct dat_event {
	DAT_EVENT_NUMBER event_number;
	DAT_EVD_HANDLE evd_handle; /* where it was delivered */
	DAT_EVENT_DATA event_data;
} DAT_EVENT;

/* ---- Registry ---- */

/* One entry of the registry: what dat_ia_openv() looks for. */
typedef struct dat_provider_info {
	char ia_name[DAT_NAME_MAX_LENGTH];
	DAT_UINT32 dapl_version_major;
	DAT_UINT32 dapl_version_minor;
	DAT_BOOLEAN is_thread_safe;
} DAT_PROVIDER_INFO;

/*
 * The registered IAs: those of dat.conf in its order, then those that providers added by
 * themselves.  dat_provider_list holds max_to_return pointers, each to a structure of the caller's
 * to be filled in; *entries_returned is how many were.  If there are more entries than room, the
 * call succeeds with as many as fit (compatibility).  Nothing is loaded.  [DAT 1.2, registry]
 * - ARG1: max_to_return is 0; *entries_returned is the number of entries all the same
 * - ARG3: a pointer that would be needed is null
 */
DAT_RETURN dat_registry_list_providers(DAT_COUNT max_to_return, DAT_COUNT *entries_returned,
				       DAT_PROVIDER_INFO *dat_provider_list[]);

/*
 * The names of a code's type and subtype as spelt in dat_error.h; class bits do not matter, and a
 * subtype of 0 is "".  The strings are static.  minor_message may be null.
 * [DAT 1.2, error handling]
 * - ARG1: there is no such code; the strings are set all the same, to something printable
 */
DAT_RETURN dat_strerror(DAT_RETURN return_code, const char **major_message,
			const char **minor_message);

/* ---- Interface adapter (IA) ---- */

/*
 * Finds the provider of ia_name, loads it if need be, and opens the adapter; each open is an
 * instance of its own.  The version must be 1.2; records of dat.conf for DAT 1.2 and for 2.0 serve it,
 * and a thread-safe one where none was asked for, too.  *asynch_evd_handle says where asynchronous
 * errors go: null makes an EVD of at least asynch_evd_min_qlen events, which lives and dies with
 * the IA; an EVD with DAT_EVD_ASYNC_FLAG is shared; DAT_EVD_ASYNC_EXISTS leaves them to another
 * open instance.  [DAT 1.2, IA open]
 * - PROVIDER_NOT_FOUND/NAME_NOT_REGISTERED, MAJOR_NOT_FOUND, MINOR_NOT_FOUND,
 *   THREAD_SAFETY_NOT_FOUND: what no entry has
 * - ARG1: the name is too long; ARG2: the queue length is not positive
 * - INVALID_HANDLE/EVD_ASYNC: the EVD cannot take them; INVALID_HANDLE/IA: ia_handle is null
 * - INVALID_ADDRESS: no RDMA device has the address that dat.conf gives
 * - INSUFFICIENT_RESOURCES/RESOURCE_TEVD: the queue is longer than max_evd_qlen
 */
DAT_RETURN dat_ia_openv(const DAT_NAME_PTR ia_name, DAT_COUNT asynch_evd_min_qlen,
			DAT_EVD_HANDLE *asynch_evd_handle, DAT_IA_HANDLE *ia_handle,
			DAT_UINT32 dat_major_version, DAT_UINT32 dat_minor_version,
			DAT_BOOLEAN thread_safety);

/* dat_ia_openv() for the version that these headers are of. */
#define dat_ia_open(name, qlen, async_evd, ia)                                        \
	dat_ia_openv(name, qlen, async_evd, ia, DAT_VERSION_MAJOR, DAT_VERSION_MINOR, \
		     DAT_THREADSAFE)

/*
 * The attributes of an open IA and of its provider.  Either structure may be null if its mask is 0,
 * async_evd_handle always.  *async_evd_handle becomes the EVD of asynchronous errors, or
 * DAT_EVD_OUT_OF_SCOPE if another instance has it.  Strings, arrays and the address belong to the
 * IA, never change, and are valid until it is closed.  [DAT 1.2, IA query]
 * - ARG3, ARG5: mask bits that do not exist
 * - ARG4, ARG6: null, with a mask
 */
DAT_RETURN dat_ia_query(DAT_IA_HANDLE ia_handle, DAT_EVD_HANDLE *async_evd_handle,
			DAT_IA_ATTR_MASK ia_attr_mask, DAT_IA_ATTR *ia_attr,
			DAT_PROVIDER_ATTR_MASK provider_attr_mask,
			DAT_PROVIDER_ATTR *provider_attr);

/*
 * Closes an instance; the provider is unloaded with its last one.  DAT_CLOSE_GRACEFUL_FLAG refuses
 * while the IA has any object but the EVD that dat_ia_open() made.  DAT_CLOSE_ABRUPT_FLAG, the
 * default, disconnects and frees whatever there is: EVD waiters get DAT_ABORT, CNO waiters a null
 * EVD, peers a disconnect; it blocks until those threads and running proxy agents have left.  No
 * other thread may use objects of the IA during the call.  [DAT 1.2, IA close]
 * - ARG2: another flag
 * - INVALID_STATE/IA_IN_USE: not empty, a thread waits, or called from a proxy agent of the IA
 */
DAT_RETURN dat_ia_close(DAT_IA_HANDLE ia_handle, DAT_CLOSE_FLAGS close_flags);

/* ---- Any handle ---- */

/*
 * Attaches 64 bits of the consumer's to an object of any type, IAs included; they are 0 at
 * creation.  [DAT 1.2, consumer context]
 * - INVALID_HANDLE/HANDLE1: no object of any type
 */
DAT_RETURN dat_set_consumer_context(DAT_HANDLE dat_handle, DAT_CONTEXT context);

/*
 * What dat_set_consumer_context() attached last.  [DAT 1.2, consumer context]
 * - INVALID_HANDLE/HANDLE1: no object of any type
 */
DAT_RETURN dat_get_consumer_context(DAT_HANDLE dat_handle, DAT_CONTEXT *context);

/*
 * What kind of object the handle names.  [DAT 1.2, handle type]
 * - INVALID_HANDLE/HANDLE1: no object of any type
 */
DAT_RETURN dat_get_handle_type(DAT_HANDLE dat_handle, DAT_HANDLE_TYPE *handle_type);

/* ---- Event dispatcher (EVD); creating, waiting and the like are in udat.h ---- */

/*
 * The IA, the actual queue length, the state bits, the CNO if any, and the flags of creation.
 * [DAT 1.2, EVD query]
 */
DAT_RETURN dat_evd_query(DAT_EVD_HANDLE evd_handle, DAT_EVD_PARAM_MASK evd_param_mask,
			 DAT_EVD_PARAM *evd_param);

/*
 * Makes room for at least evd_min_qlen events.  No event is lost, their order stays, and the
 * provider may keep a longer queue.  [DAT 1.2, EVD resize]
 * - ARG2: not positive, or above max_evd_qlen
 * - INVALID_STATE/EVD_WAITER: a thread waits on the EVD
 * - INVALID_STATE: more events than that are pending
 * - INSUFFICIENT_RESOURCES/RESOURCE_TEVD: the device cannot
 */
DAT_RETURN dat_evd_resize(DAT_EVD_HANDLE evd_handle, DAT_COUNT evd_min_qlen);

/*
 * Puts a DAT_SOFTWARE_EVENT on an EVD made with DAT_EVD_SOFTWARE_FLAG, and wakes its waiter or CNO.
 * The pointer is copied, evd_handle is filled in.  Does not block.
 * [DAT 1.2, EVD post software event]
 * - ARG1: the EVD does not have the flag; ARG2: another event number
 * - QUEUE_FULL: not queued; no overflow event is raised
 */
DAT_RETURN dat_evd_post_se(DAT_EVD_HANDLE evd_handle, const DAT_EVENT *event);

/*
 * Takes the oldest event, without blocking.  Sees every event there is, whatever completion flags,
 * enabled and waitable say.  Events of one stream come in order; if several threads take, each
 * event goes to one of them.  [DAT 1.2, EVD dequeue]
 * - QUEUE_EMPTY, without class bit: there is no event
 * - INVALID_STATE/EVD_WAITER: a thread waits on the EVD
 * - INVALID_STATE: the device's queue has overflowed, and what was left has been taken
 */
DAT_RETURN dat_evd_dequeue(DAT_EVD_HANDLE evd_handle, DAT_EVENT *event);

/*
 * Frees an EVD that nothing feeds any more; events still queued vanish, and a waiter gets
 * DAT_ABORT.  If it was the last EVD of a CNO, threads waiting there wake with a null EVD.
 * [DAT 1.2, EVD free]
 * - INVALID_STATE/EVD_IN_USE: an EP, service point or IA uses it
 */
DAT_RETURN dat_evd_free(DAT_EVD_HANDLE evd_handle);

/* ---- Endpoint (EP) ---- */

/*
 * Makes an EP in state UNCONNECTED.  Null attributes mean at least 16 DTOs and 4 segments each way
 * and 4 RDMA reads, or what the device can.  A null PZ or EVD can be set later by dat_ep_modify();
 * a side without EVD must have 0 DTOs and cannot be posted to.  With a PZ, receives can be posted
 * at once.  The connect EVD may be one of another IA of this provider.  [DAT 1.2, EP create]
 * - INVALID_HANDLE/EVD_RECV, EVD_REQUEST, EVD_CONN: of another IA, or without the flag it needs
 * - ARG6: attributes that the device cannot give, that do not go together, or whose completion
 *   flags clash with those of other EPs on the EVD
 * - MODEL_NOT_SUPPORTED: the service type; unknown named attributes
 * - INSUFFICIENT_RESOURCES/RESOURCE_TEP: the device has none left
 */
DAT_RETURN dat_ep_create(DAT_IA_HANDLE ia_handle, DAT_PZ_HANDLE pz_handle,
			 DAT_EVD_HANDLE recv_completion_evd_handle,
			 DAT_EVD_HANDLE request_completion_evd_handle,
			 DAT_EVD_HANDLE connect_evd_handle, const DAT_EP_ATTR *ep_attributes,
			 DAT_EP_HANDLE *ep_handle);

/*
 * The same with an SRQ, from which this EP will receive as long as it lives.  The attributes are
 * required; max_recv_dtos is only kept, max_recv_iov is the SRQ's.  Receive buffers are checked
 * against the PZ of the SRQ, everything else against that of the EP.  [DAT 1.2, EP create with SRQ]
 * - as dat_ep_create(), with ARG7 for the attributes
 * - ARG2: PZ and SRQ do not match, and the provider needs them to
 * - INVALID_STATE/SRQ_ERROR: the SRQ is being freed, or has failed
 */
DAT_RETURN dat_ep_create_with_srq(DAT_IA_HANDLE ia_handle, DAT_PZ_HANDLE pz_handle,
				  DAT_EVD_HANDLE recv_evd_handle, DAT_EVD_HANDLE request_evd_handle,
				  DAT_EVD_HANDLE connect_evd_handle, DAT_SRQ_HANDLE srq_handle,
				  const DAT_EP_ATTR *ep_attributes, DAT_EP_HANDLE *ep_handle);

/*
 * Parameters and attributes, with the values that were granted.  The attributes of an EP made by
 * default can be given to dat_ep_create().  Remote address and port mean something while there is a
 * peer.  [DAT 1.2, EP query]
 */
DAT_RETURN dat_ep_query(DAT_EP_HANDLE ep_handle, DAT_EP_PARAM_MASK ep_param_mask,
			DAT_EP_PARAM *ep_param);

/*
 * Sets the PZ, EVDs or attributes named in the mask, all of them or none.  UNCONNECTED allows any.
 * While the EP awaits or holds a request, transport and provider attributes cannot be set, and the
 * PZ only of an EP that a PSP made; no other state allows anything.  Where this needs a new queue
 * pair, receives already posted are flushed.  [DAT 1.2, EP modify]
 * - ARG2: a field that cannot be set: IA, state, addresses, ports, SRQ
 * - ARG3: a value, or values that do not go together
 * - INVALID_STATE/EP_*: the state of the EP
 * - INSUFFICIENT_RESOURCES/RESOURCE_TEP: the device has none left
 */
DAT_RETURN dat_ep_modify(DAT_EP_HANDLE ep_handle, DAT_EP_PARAM_MASK ep_param_mask,
			 const DAT_EP_PARAM *ep_param);

/*
 * The state, and for each side whether nothing is outstanding there.  Each pointer may be null.  An
 * EP with an SRQ is recv_idle if it holds no buffer as far as can be known.
 * [DAT 1.2, EP get status]
 */
DAT_RETURN dat_ep_get_status(DAT_EP_HANDLE ep_handle, DAT_EP_STATE *ep_state,
			     DAT_BOOLEAN *recv_idle, DAT_BOOLEAN *request_idle);

/*
 * Starts to connect an UNCONNECTED EP, and returns; private data is copied.  timeout is
 * microseconds from here to ESTABLISHED.  What came of it is an event on the connect EVD:
 * ESTABLISHED with the private data of the peer, or PEER_REJECTED, NON_PEER_REJECTED, TIMED_OUT,
 * UNREACHABLE or BROKEN, which leave the EP DISCONNECTED.  [DAT 1.2, EP connect]
 * - INVALID_HANDLE/EVD_CONN: the EP has no connect EVD
 * - ARG3: the qualifier is 0; ARG4: the timeout is 0; ARG5: more private data than can be carried
 * - INVALID_ADDRESS/UNSUPPORTED: the family; INVALID_ADDRESS/UNREACHABLE: not the IA's family
 * - MODEL_NOT_SUPPORTED: quality of service or flags other than default
 * - INVALID_STATE/EP_NOTREADY: no PZ; INVALID_STATE/EP_*: not UNCONNECTED
 */
DAT_RETURN dat_ep_connect(DAT_EP_HANDLE ep_handle, DAT_IA_ADDRESS_PTR remote_ia_address,
			  DAT_CONN_QUAL remote_conn_qual, DAT_TIMEOUT timeout,
			  DAT_COUNT private_data_size, const DAT_PVOID private_data,
			  DAT_QOS quality_of_service, DAT_CONNECT_FLAGS connect_flags);

/*
 * Connects ep_handle to where ep_dup_handle, which must be CONNECTED, is: the same address and the
 * qualifier it was connected with.  Events as for dat_ep_connect().  [DAT 1.2, EP dup connect]
 * - as dat_ep_connect(), with ARG3 for the timeout, ARG4 and ARG5 for private data
 * - INVALID_STATE/EP_*: the state of either EP
 */
DAT_RETURN dat_ep_dup_connect(DAT_EP_HANDLE ep_handle, DAT_EP_HANDLE ep_dup_handle,
			      DAT_TIMEOUT timeout, DAT_COUNT private_data_size,
			      const DAT_PVOID private_data, DAT_QOS quality_of_service);

/*
 * Ends a connection, or the attempt at one.  DAT_CLOSE_ABRUPT_FLAG flushes at once,
 * DAT_CLOSE_GRACEFUL_FLAG lets the requests already posted complete; receives are flushed either
 * way.  One DISCONNECTED event follows on the connect EVD of each side.  On an EP already
 * DISCONNECTED, or of datagrams, it is a success without event.  [DAT 1.2, EP disconnect]
 * - ARG2: another flag
 * - INVALID_STATE/EP_*: never connected, or its request not yet answered
 */
DAT_RETURN dat_ep_disconnect(DAT_EP_HANDLE ep_handle, DAT_CLOSE_FLAGS close_flags);

/*
 * Makes a DISCONNECTED EP UNCONNECTED, fit to be connected again, with its handle, attributes, PZ,
 * EVDs and SRQ.  When it returns, all flushed work is in the EVDs.  On an UNCONNECTED EP it does
 * nothing: receives stay posted.  [DAT 1.2, EP reset]
 * - INVALID_STATE/EP_*: any other state
 * - INSUFFICIENT_RESOURCES/RESOURCE_TEP: the device has none left; can be tried again
 */
DAT_RETURN dat_ep_reset(DAT_EP_HANDLE ep_handle);

/*
 * Frees an EP.  A connection is first ended abruptly; its DISCONNECTED event then carries a handle
 * good only for comparing.  Work posted that is no event yet vanishes.  Does not depend on anything
 * the consumer has still to do, and the LMRs of posted buffers may be gone.  [DAT 1.2, EP free]
 * - INVALID_STATE/EP_*: an RSP or a connection request holds it
 */
DAT_RETURN dat_ep_free(DAT_EP_HANDLE ep_handle);

/* ---- Posting on an EP ---- */

/*
 * What all posts have in common.  They neither block nor allocate.  The list of segments is the
 * consumer's again on return, the memory it names at completion; num_segments may be 0, and the
 * list then null.  Keys and privileges are checked by the device: a wrong one shows as the status
 * of the completion, and breaks the connection.
 *
 * One DAT_DTO_COMPLETION_EVENT follows with user_cookie, on the recv EVD for receives and on the
 * request EVD for all else, in the order of posting; none if DAT_COMPLETION_SUPPRESS_FLAG is given
 * and the work succeeds.  A suppressed request counts as outstanding until a later one has
 * completed.  [DAT 1.2, EP post]
 * - ARG2: more segments than the EP takes; ARG3: longer than the device's
 *   max_message_size, or a segment above 4 GiB - 1
 * - ARG5, for RDMA ARG6: completion flags that the EP or this kind of post does not allow
 * - INVALID_STATE/EP_*: requests want CONNECTED, COMPLETION_PENDING on the passive side once
 *   dat_cr_accept() has returned, or DISCONNECTED where they are flushed
 * - INSUFFICIENT_RESOURCES/RESOURCE_MEMORY: as many are outstanding as the attribute allows
 * - INVALID_HANDLE/EP: a request that an EP of datagrams does not have
 */

/*
 * Sends the segments as one message, into the next receive of the peer; if there is none, the
 * message waits for it.  [DAT 1.2, EP post send]
 */
DAT_RETURN dat_ep_post_send(DAT_EP_HANDLE ep_handle, DAT_COUNT num_segments,
			    DAT_LMR_TRIPLET *local_iov, DAT_DTO_COOKIE user_cookie,
			    DAT_COMPLETION_FLAGS completion_flags);

/*
 * Gives the EP a buffer for one message.  Buffers are used in the order of posting, segments in
 * that of the list; a longer message breaks the connection.  Legal in any state once the EP has a
 * PZ; in DISCONNECTED it is flushed.  [DAT 1.2, EP post recv]
 * - INVALID_STATE/SRQ_IN_USE: the EP receives from an SRQ
 * - INVALID_STATE/EP_NOTREADY: the EP has no PZ yet
 */
DAT_RETURN dat_ep_post_recv(DAT_EP_HANDLE ep_handle, DAT_COUNT num_segments,
			    DAT_LMR_TRIPLET *local_iov, DAT_DTO_COOKIE user_cookie,
			    DAT_COMPLETION_FLAGS completion_flags);

/*
 * Reads from the peer's memory, as many bytes as the local segments hold.  max_rdma_read_out of
 * them run at a time, the others wait.  Posts that follow may overtake it, unless they have
 * DAT_COMPLETION_BARRIER_FENCE_FLAG.  [DAT 1.2, EP post RDMA read]
 */
DAT_RETURN dat_ep_post_rdma_read(DAT_EP_HANDLE ep_handle, DAT_COUNT num_segments,
				 DAT_LMR_TRIPLET *local_iov, DAT_DTO_COOKIE user_cookie,
				 const DAT_RMR_TRIPLET *remote_iov,
				 DAT_COMPLETION_FLAGS completion_flags);

/*
 * Writes to the peer's memory; there is no event there.  Writes of one EP become visible in order,
 * and before the completion of a receive that a later send fills.  [DAT 1.2, EP post RDMA write]
 */
DAT_RETURN dat_ep_post_rdma_write(DAT_EP_HANDLE ep_handle, DAT_COUNT num_segments,
				  DAT_LMR_TRIPLET *local_iov, DAT_DTO_COOKIE user_cookie,
				  const DAT_RMR_TRIPLET *remote_iov,
				  DAT_COMPLETION_FLAGS completion_flags);

/*
 * How many receive buffers the EP has, and how many posts lie between the oldest and the newest of
 * them.  Either pointer may be null.  DAT_VALUE_UNKNOWN with an SRQ, since no device tells.
 * [DAT 1.2, EP recv query]
 */
DAT_RETURN dat_ep_recv_query(DAT_EP_HANDLE ep_handle, DAT_COUNT *nbufs_allocated,
			     DAT_COUNT *bufs_alloc_span);

/*
 * Limits the buffers of its SRQ that the EP may hold: an asynchronous event at the soft watermark,
 * a broken connection at the hard one.  The default is DAT_WATERMARK_INFINITE for both.
 * [DAT 1.2, EP set watermark]
 * - ARG2, ARG3: negative; MODEL_NOT_SUPPORTED: any value but the default, for no device counts them
 */
DAT_RETURN dat_ep_set_watermark(DAT_EP_HANDLE ep_handle, DAT_COUNT soft_high_watermark,
				DAT_COUNT hard_high_watermark);

/* ---- Local memory region (LMR); creating and querying are in udat.h ---- */

/*
 * Ends a registration.  Posts that still use the memory are not waited for, and fail or are
 * flushed.  [DAT 1.2, LMR free]
 * - INVALID_STATE/LMR_IN_USE: an RMR is bound to it
 */
DAT_RETURN dat_lmr_free(DAT_LMR_HANDLE lmr_handle);

/*
 * Makes what was written to local memory ready for RDMA reads of the peer; called before the peer
 * reads it, for instance after a message.  Here no more than a memory barrier: lmr_sync_req is false.  [DAT 1.2, LMR sync]
 * - ARG2: null, with num_segments
 */
DAT_RETURN dat_lmr_sync_rdma_read(DAT_IA_HANDLE ia_handle, const DAT_LMR_TRIPLET *local_segments,
				  DAT_VLEN num_segments);

/*
 * Makes what the peer wrote by RDMA ready to be read here; called after learning of it.  As
 * dat_lmr_sync_rdma_read().  [DAT 1.2, LMR sync]
 */
DAT_RETURN dat_lmr_sync_rdma_write(DAT_IA_HANDLE ia_handle, const DAT_LMR_TRIPLET *local_segments,
				   DAT_VLEN num_segments);

/* ---- Remote memory region (RMR) ---- */

/*
 * An RMR, bound to nothing yet, whose context the peers of all EPs of the PZ can use.
 * [DAT 1.2, RMR create]
 * - MODEL_NOT_SUPPORTED: the device has no such memory windows
 * - INSUFFICIENT_RESOURCES/RESOURCE_MEMORY_REGION: it has none left
 */
DAT_RETURN dat_rmr_create(DAT_PZ_HANDLE pz_handle, DAT_RMR_HANDLE *rmr_handle);

/*
 * The IA and PZ, and what the RMR is bound to.  [DAT 1.2, RMR query]
 * - ARG2: DAT_RMR_FIELD_LMR_TRIPLET while it is bound to nothing
 */
DAT_RETURN dat_rmr_query(DAT_RMR_HANDLE rmr_handle, DAT_RMR_PARAM_MASK rmr_param_mask,
			 DAT_RMR_PARAM *rmr_param);

/*
 * Opens the part of an LMR that the triplet names to peers, with remote privileges that the LMR has
 * locally, in place of what the RMR was bound to.  *context is the key for the peer; a later post of
 * the same EP may send it.  Length 0 unbinds; the context is then ignored.  A
 * request of the EP, so "Posting on an EP" holds; it completes with a
 * DAT_RMR_BIND_COMPLETION_EVENT.  [DAT 1.2, RMR bind]
 * - ARG2: not inside an LMR of that context; ARG3: privileges; ARG6: flags
 * - ARG4: EP, LMR and RMR are not of one PZ
 * - PRIVILEGES_VIOLATION/PRIVILEGES_RDMA_READ, PRIVILEGES_RDMA_WRITE: the LMR lacks the local one
 */
DAT_RETURN dat_rmr_bind(DAT_RMR_HANDLE rmr_handle, const DAT_LMR_TRIPLET *lmr_triplet,
			DAT_MEM_PRIV_FLAGS mem_priv, DAT_EP_HANDLE ep_handle,
			DAT_RMR_COOKIE user_cookie, DAT_COMPLETION_FLAGS completion_flags,
			DAT_RMR_CONTEXT *context);

/*
 * Frees an RMR, in whatever state the EP is, and with it what it was bound to.  [DAT 1.2, RMR free]
 */
DAT_RETURN dat_rmr_free(DAT_RMR_HANDLE rmr_handle);

/* ---- Public service point (PSP) ---- */

/*
 * Listens on conn_qual for any number of requests.  Each becomes a DAT_CONNECTION_REQUEST_EVENT on
 * the EVD, the first perhaps before the call returns.  With DAT_PSP_PROVIDER_FLAG each brings an
 * EP, to be configured by dat_ep_modify() and accepted by giving dat_cr_accept() a null EP.
 * Qualifiers above 65535 are mapped onto ports, where two may collide.  [DAT 1.2, PSP create]
 * - INVALID_HANDLE/EVD_CR: the EVD lacks DAT_EVD_CR_FLAG
 * - ARG2: the qualifier is 0; ARG4: another flag
 * - CONN_QUAL_IN_USE, without subtype: the qualifier is taken
 */
DAT_RETURN dat_psp_create(DAT_IA_HANDLE ia_handle, DAT_CONN_QUAL conn_qual,
			  DAT_EVD_HANDLE evd_handle, DAT_PSP_FLAGS psp_flags,
			  DAT_PSP_HANDLE *psp_handle);

/*
 * Listens on a free qualifier, from 1024 to 65535, and says which.  [DAT 1.2, PSP create any]
 * - as dat_psp_create(); CONN_QUAL_UNAVAILABLE: none is free
 */
DAT_RETURN dat_psp_create_any(DAT_IA_HANDLE ia_handle, DAT_CONN_QUAL *conn_qual,
			      DAT_EVD_HANDLE evd_handle, DAT_PSP_FLAGS psp_flags,
			      DAT_PSP_HANDLE *psp_handle);

/* The IA, qualifier, EVD and flags.  [DAT 1.2, PSP query] */
DAT_RETURN dat_psp_query(DAT_PSP_HANDLE psp_handle, DAT_PSP_PARAM_MASK psp_param_mask,
			 DAT_PSP_PARAM *psp_param);

/*
 * Stops listening; when the call returns the qualifier is free.  Requests not yet answered still
 * can be, and connections stay.  [DAT 1.2, PSP free]
 */
DAT_RETURN dat_psp_free(DAT_PSP_HANDLE psp_handle);

/* ---- Reserved service point (RSP) ---- */

/*
 * Listens on conn_qual for one request, to be accepted with ep_handle, which is UNCONNECTED and
 * becomes RESERVED; further ones are refused.  The RSP lives on, and its handle is in the event,
 * until dat_rsp_free() (compatibility).  [DAT 1.2, RSP create]
 * - INVALID_HANDLE/EVD_CR: the EVD lacks DAT_EVD_CR_FLAG
 * - INVALID_STATE/EP_*: the state of the EP
 * - CONN_QUAL_IN_USE, without subtype: the qualifier is taken
 */
DAT_RETURN dat_rsp_create(DAT_IA_HANDLE ia_handle, DAT_CONN_QUAL conn_qual, DAT_EP_HANDLE ep_handle,
			  DAT_EVD_HANDLE evd_handle, DAT_RSP_HANDLE *rsp_handle);

/* The IA, qualifier, EVD and EP.  [DAT 1.2, RSP query] */
DAT_RETURN dat_rsp_query(DAT_RSP_HANDLE rsp_handle, DAT_RSP_PARAM_MASK rsp_param_mask,
			 DAT_RSP_PARAM *rsp_param);

/*
 * Stops listening.  If no request came the EP is UNCONNECTED again; a request not yet answered
 * still can be, and a connection stays.  [DAT 1.2, RSP free]
 */
DAT_RETURN dat_rsp_free(DAT_RSP_HANDLE rsp_handle);

/* ---- Connection request (CR) ---- */

/*
 * The peer that asks, its private data, and the EP that came with the request, if any.  InfiniBand and
 * RoCE pad private data with zeros, so that consumers carry its length inside.  [DAT 1.2, CR query]
 */
DAT_RETURN dat_cr_query(DAT_CR_HANDLE cr_handle, DAT_CR_PARAM_MASK cr_param_mask,
			DAT_CR_PARAM *cr_param);

/*
 * Accepts a request with ep_handle, UNCONNECTED and configured, or if that is null with the EP that
 * came with the request.  Private data is copied and may be that of the CR.  ESTABLISHED or
 * ACCEPT_COMPLETION_ERROR follows on the EP's connect EVD.  [DAT 1.2, CR accept]
 * - INVALID_HANDLE/EP: no EP, one too many, of another device, or without PZ or connect EVD
 * - ARG3, ARG4: private data
 * - INVALID_STATE/EP_*: the EP is busy; after this and the above the CR can be answered again
 * - INSUFFICIENT_RESOURCES/RESOURCE_TEP, or a failure of the transport: the peer is refused, and
 *   the CR gone
 */
DAT_RETURN dat_cr_accept(DAT_CR_HANDLE cr_handle, DAT_EP_HANDLE ep_handle,
			 DAT_COUNT private_data_size, const DAT_PVOID private_data);

/*
 * Refuses a request: the peer gets PEER_REJECTED.  The CR is gone, even if the peer cannot be told.
 * The EP of an RSP is UNCONNECTED again, one made by a PSP is freed.  There is no event here.
 * [DAT 1.2, CR reject]
 */
DAT_RETURN dat_cr_reject(DAT_CR_HANDLE cr_handle);

/*
 * Passes a request on to another qualifier of this host.  [DAT 1.2, CR handoff]
 * - MODEL_NOT_SUPPORTED: always, as no transport here can redirect; the CR is still to be answered
 */
DAT_RETURN dat_cr_handoff(DAT_CR_HANDLE cr_handle, DAT_CONN_QUAL handoff);

/* ---- Protection zone (PZ) ---- */

/*
 * A PZ ties EPs to the memory they may use: through an EP, regions of other PZs are refused.
 * [DAT 1.2, PZ create]
 * - INSUFFICIENT_RESOURCES/RESOURCE_PROTECTION_DOMAIN: the device has none left
 */
DAT_RETURN dat_pz_create(DAT_IA_HANDLE ia_handle, DAT_PZ_HANDLE *pz_handle);

/* The IA.  [DAT 1.2, PZ query] */
DAT_RETURN dat_pz_query(DAT_PZ_HANDLE pz_handle, DAT_PZ_PARAM_MASK pz_param_mask,
			DAT_PZ_PARAM *pz_param);

/*
 * Frees a PZ.  [DAT 1.2, PZ free]
 * - INVALID_STATE/PZ_IN_USE: an EP, LMR, RMR or SRQ is in it
 */
DAT_RETURN dat_pz_free(DAT_PZ_HANDLE pz_handle);

/* ---- Shared receive queue (SRQ) ---- */

/*
 * A queue of receive buffers for any number of EPs.  More entries and segments than asked for may
 * be granted, as dat_srq_query() tells.  [DAT 1.2, SRQ create]
 * - ARG3: a count out of range, or a low_watermark other than DAT_SRQ_LW_DEFAULT
 * - MODEL_NOT_SUPPORTED: the device has no SRQs
 * - INSUFFICIENT_RESOURCES/RESOURCE_SRQ: it has none left
 */
DAT_RETURN dat_srq_create(DAT_IA_HANDLE ia_handle, DAT_PZ_HANDLE pz_handle, DAT_SRQ_ATTR *srq_attr,
			  DAT_SRQ_HANDLE *srq_handle);

/*
 * State, attributes as granted, and two counts: outstanding, the receives whose completion the
 * consumer has not dequeued, and available, those of them that no EP has taken as far as
 * completions show.  [DAT 1.2, SRQ query]
 */
DAT_RETURN dat_srq_query(DAT_SRQ_HANDLE srq_handle, DAT_SRQ_PARAM_MASK srq_param_mask,
			 DAT_SRQ_PARAM *srq_param);

/*
 * Gives the SRQ a buffer, in LMRs of the SRQ's PZ.  The EP that takes it reports the completion on
 * its recv EVD, with its own handle and this cookie.  Nothing is promised about the order in which
 * buffers are used.  Does not block; local_iov is the consumer's again on return.
 * [DAT 1.2, SRQ post recv]
 * - ARG2, ARG3: segments
 * - INVALID_STATE/SRQ_ERROR: the SRQ has failed
 * - INSUFFICIENT_RESOURCES/RESOURCE_MEMORY: max_recv_dtos are outstanding
 */
DAT_RETURN dat_srq_post_recv(DAT_SRQ_HANDLE srq_handle, DAT_COUNT num_segments,
			     DAT_LMR_TRIPLET *local_iov, DAT_DTO_COOKIE user_cookie);

/*
 * Makes room for at least srq_max_recv_dto receives; a smaller number may change nothing.  No
 * buffer is lost.  [DAT 1.2, SRQ resize]
 * - ARG2: not positive, or above max_recv_per_srq
 * - INVALID_STATE: fewer than are outstanding, or than the low watermark
 * - INSUFFICIENT_RESOURCES/RESOURCE_SRQ: the device cannot
 */
DAT_RETURN dat_srq_resize(DAT_SRQ_HANDLE srq_handle, DAT_COUNT srq_max_recv_dto);

/*
 * Asks for one event when fewer than low_watermark buffers are available, at once if that is so
 * already.  Each call asks anew, and 0 asks for none.  The event is
 * DAT_ASYNC_ERROR_PROVIDER_INTERNAL_ERROR, for DAT has no number of its own for it, with the SRQ
 * and DAT_SRQ_LOW_WATERMARK_EVENT.  [DAT 1.2, SRQ set low watermark]
 * - ARG2: negative, or above max_recv_dtos
 * - MODEL_NOT_SUPPORTED: the device cannot
 */
DAT_RETURN dat_srq_set_lw(DAT_SRQ_HANDLE srq_handle, DAT_COUNT low_watermark);

/*
 * Frees an SRQ.  Buffers still posted are dropped without events; their LMRs may be gone.
 * [DAT 1.2, SRQ free]
 * - INVALID_STATE/SRQ_IN_USE: an EP has it
 */
DAT_RETURN dat_srq_free(DAT_SRQ_HANDLE srq_handle);

#ifdef __cplusplus
}
#endif

#endif /* _DAT_H_ */
