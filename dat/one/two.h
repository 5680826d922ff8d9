/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * DAT 2.0 for libdat.so.1: the structures whose layout differs from DAT 1.2, and the functions of libdat2.so.2. A
 * source file cannot include both <dat/udat.h> and <dat2/udat.h>, which define the same names; so the names here
 * differ. test/headers/two_layout.c checks them against <dat2/udat.h>.
 */
#ifndef DAT_ONE_TWO_H
#define DAT_ONE_TWO_H

/* ---- Structures; members have the names of <dat2/udat.h> ---- */

struct two_lmr_triplet {
	DAT_VADDR virtual_address;
	DAT_UINT32 segment_length;
	DAT_LMR_CONTEXT lmr_context;
};

struct two_rmr_triplet {
	DAT_VADDR virtual_address;
	DAT_UINT32 segment_length;
	DAT_RMR_CONTEXT rmr_context;
};

struct two_rmr_param {
	DAT_IA_HANDLE ia_handle;
	DAT_PZ_HANDLE pz_handle;
	struct two_lmr_triplet lmr_triplet;
	DAT_MEM_PRIV_FLAGS mem_priv;
	DAT_RMR_CONTEXT rmr_context;
	int rmr_scope;
	int va_type;
};

struct two_lmr_param {
	DAT_IA_HANDLE ia_handle;
	DAT_MEM_TYPE mem_type;
	DAT_REGION_DESCRIPTION region_desc;
	DAT_VLEN length;
	DAT_PZ_HANDLE pz_handle;
	DAT_MEM_PRIV_FLAGS mem_priv;
	int va_type;
	DAT_LMR_CONTEXT lmr_context;
	DAT_RMR_CONTEXT rmr_context;
	DAT_VLEN registered_size;
	DAT_VADDR registered_address;
};

struct two_ia_attr {
	char adapter_name[DAT_NAME_MAX_LENGTH];
	char vendor_name[DAT_NAME_MAX_LENGTH];
	DAT_UINT32 hardware_version_major;
	DAT_UINT32 hardware_version_minor;
	DAT_UINT32 firmware_version_major;
	DAT_UINT32 firmware_version_minor;
	DAT_IA_ADDRESS_PTR ia_address_ptr;
	DAT_COUNT max_eps;
	DAT_COUNT max_dto_per_ep;
	DAT_COUNT max_rdma_read_per_ep_in;
	DAT_COUNT max_rdma_read_per_ep_out;
	DAT_COUNT max_evds;
	DAT_COUNT max_evd_qlen;
	DAT_COUNT max_iov_segments_per_dto;
	DAT_COUNT max_lmrs;
	DAT_UINT32 max_lmr_block_size;
	DAT_VADDR max_lmr_virtual_address;
	DAT_COUNT max_pzs;
	DAT_UINT32 max_message_size;
	DAT_UINT32 max_rdma_size;
	DAT_COUNT max_rmrs;
	DAT_VADDR max_rmr_target_address;
	DAT_COUNT max_srqs;
	DAT_COUNT max_ep_per_srq;
	DAT_COUNT max_recv_per_srq;
	DAT_COUNT max_iov_segments_per_rdma_read;
	DAT_COUNT max_iov_segments_per_rdma_write;
	DAT_COUNT max_rdma_read_in;
	DAT_COUNT max_rdma_read_out;
	DAT_BOOLEAN max_rdma_read_per_ep_in_guaranteed;
	DAT_BOOLEAN max_rdma_read_per_ep_out_guaranteed;
	DAT_BOOLEAN zb_supported;
	int extension_supported;
	DAT_COUNT extension_version;
	DAT_COUNT num_transport_attr;
	DAT_NAMED_ATTR *transport_attr;
	DAT_COUNT num_vendor_attr;
	DAT_NAMED_ATTR *vendor_attr;
};

struct two_provider_attr {
	char provider_name[DAT_NAME_MAX_LENGTH];
	DAT_UINT32 provider_version_major;
	DAT_UINT32 provider_version_minor;
	DAT_UINT32 dapl_version_major;
	DAT_UINT32 dapl_version_minor;
	DAT_MEM_TYPE lmr_mem_types_supported;
	DAT_IOV_OWNERSHIP iov_ownership_on_return;
	DAT_QOS dat_qos_supported;
	DAT_COMPLETION_FLAGS completion_flags_supported;
	DAT_BOOLEAN is_thread_safe;
	DAT_COUNT max_private_data_size;
	DAT_BOOLEAN supports_multipath;
	DAT_EP_CREATOR_FOR_PSP ep_creator;
	DAT_PZ_SUPPORT pz_support;
	DAT_UINT32 optimal_buffer_alignment;
	DAT_BOOLEAN evd_stream_merging_supported[6][6];
	DAT_BOOLEAN srq_supported;
	DAT_COUNT srq_watermarks_supported;
	DAT_BOOLEAN srq_ep_pz_difference_supported;
	DAT_COUNT srq_info_supported;
	DAT_COUNT ep_recv_info_supported;
	DAT_BOOLEAN lmr_sync_req;
	DAT_BOOLEAN dto_async_return_guaranteed;
	DAT_BOOLEAN rdma_write_for_rdma_read_req;
	DAT_BOOLEAN rdma_read_lmr_rmr_context_exposure;
	int rmr_scope_supported;
	DAT_BOOLEAN is_signal_safe;
	DAT_BOOLEAN ha_supported;
	DAT_UINT32 ha_loadbalancing;
	DAT_COUNT num_provider_specific_attr;
	DAT_NAMED_ATTR *provider_specific_attr;
};

struct two_ep_attr {
	DAT_SERVICE_TYPE service_type;
	DAT_UINT32 max_message_size;
	DAT_UINT32 max_rdma_size;
	DAT_QOS qos;
	DAT_COMPLETION_FLAGS recv_completion_flags;
	DAT_COMPLETION_FLAGS request_completion_flags;
	DAT_COUNT max_recv_dtos;
	DAT_COUNT max_request_dtos;
	DAT_COUNT max_recv_iov;
	DAT_COUNT max_request_iov;
	DAT_COUNT max_rdma_read_in;
	DAT_COUNT max_rdma_read_out;
	DAT_COUNT srq_soft_hw;
	DAT_COUNT max_rdma_read_iov;
	DAT_COUNT max_rdma_write_iov;
	DAT_COUNT ep_transport_specific_count;
	DAT_NAMED_ATTR *ep_transport_specific;
	DAT_COUNT ep_provider_specific_count;
	DAT_NAMED_ATTR *ep_provider_specific;
};

struct two_ep_param {
	DAT_IA_HANDLE ia_handle;
	DAT_EP_STATE ep_state;
	int comm[3];
	DAT_IA_ADDRESS_PTR local_ia_address_ptr;
	DAT_PORT_QUAL local_port_qual;
	DAT_IA_ADDRESS_PTR remote_ia_address_ptr;
	DAT_PORT_QUAL remote_port_qual;
	DAT_PZ_HANDLE pz_handle;
	DAT_EVD_HANDLE recv_evd_handle;
	DAT_EVD_HANDLE request_evd_handle;
	DAT_EVD_HANDLE connect_evd_handle;
	DAT_SRQ_HANDLE srq_handle;
	struct two_ep_attr ep_attr;
};

struct two_cno_param {
	DAT_IA_HANDLE ia_handle;
	int proxy_type;
	union {
		DAT_OS_WAIT_PROXY_AGENT agent;
		int fd;
	} proxy;
};

struct two_dto_data {
	DAT_EP_HANDLE ep_handle;
	DAT_DTO_COOKIE user_cookie;
	int status;
	DAT_UINT32 transfered_length;
	int operation;
	DAT_RMR_CONTEXT rmr_context;
};

/* Of all kinds of data but that of a DTO, the first 32 bytes are those of DAT 1.2. */
struct two_event {
	DAT_EVENT_NUMBER event_number;
	DAT_EVD_HANDLE evd_handle;
	union {
		struct two_dto_data dto;
		unsigned char bytes[40];
	} event_data;
	DAT_UINT64 event_extension_data[8];
};

/* ---- Values that DAT 1.2 lacks, or has as another number ---- */

#define TWO_PROXY_TYPE_FD	       2
#define TWO_CNO_FIELD_ALL	       4
#define TWO_DTO_ERR_LOCAL_MM_ERROR     12
#define TWO_SRQ_STATE_OPERATIONAL      1
#define TWO_VA_TYPE_VA		       0
#define TWO_NOT_IMPLEMENTED	       0x3fff0000u
#define TWO_RESERVED_LMR	       0x00150000u
#define TWO_PORT_IN_USE		       0x00160000u
#define TWO_COMM_NOT_SUPPORTED	       0x00170000u
#define TWO_INVALID_HANDLE_CSP	       0x1au
#define TWO_INVALID_STATE_SRQ_SHUTDOWN 0x58u

/* ---- Functions: those whose prototype DAT 1.2 has, too, and the others ---- */

struct two {
	DAT_RETURN(*ia_openv)
	(const DAT_NAME_PTR, DAT_COUNT, DAT_EVD_HANDLE *, DAT_IA_HANDLE *, DAT_UINT32, DAT_UINT32,
	 DAT_BOOLEAN);
	DAT_RETURN (*ia_close)(DAT_IA_HANDLE, DAT_CLOSE_FLAGS);
	DAT_RETURN(*ia_query)
	(DAT_IA_HANDLE, DAT_EVD_HANDLE *, DAT_UINT64, struct two_ia_attr *, DAT_UINT64,
	 struct two_provider_attr *);
	DAT_RETURN (*registry_list_providers)(DAT_COUNT, DAT_COUNT *, DAT_PROVIDER_INFO *[]);
	/* The first argument is a provider's table. */
	DAT_RETURN (*registry_add_provider)(const void *, const DAT_PROVIDER_INFO *);
	DAT_RETURN (*registry_remove_provider)(const void *, const DAT_PROVIDER_INFO *);
	DAT_RETURN (*get_ia_handle)(DAT_IA_HANDLE, DAT_IA_HANDLE *);
	DAT_RETURN (*strerror)(DAT_RETURN, const char **, const char **);

	DAT_RETURN (*set_consumer_context)(DAT_HANDLE, DAT_CONTEXT);
	DAT_RETURN (*get_consumer_context)(DAT_HANDLE, DAT_CONTEXT *);
	DAT_RETURN (*get_handle_type)(DAT_HANDLE, DAT_HANDLE_TYPE *);

	DAT_RETURN (*cno_create)(DAT_IA_HANDLE, DAT_OS_WAIT_PROXY_AGENT, DAT_CNO_HANDLE *);
	DAT_RETURN (*cno_modify_agent)(DAT_CNO_HANDLE, DAT_OS_WAIT_PROXY_AGENT);
	DAT_RETURN (*cno_query)(DAT_CNO_HANDLE, int, struct two_cno_param *);
	DAT_RETURN (*cno_free)(DAT_CNO_HANDLE);
	DAT_RETURN (*cno_wait)(DAT_CNO_HANDLE, DAT_TIMEOUT, DAT_EVD_HANDLE *);

	DAT_RETURN (*cr_query)(DAT_CR_HANDLE, DAT_CR_PARAM_MASK, DAT_CR_PARAM *);
	DAT_RETURN (*cr_accept)(DAT_CR_HANDLE, DAT_EP_HANDLE, DAT_COUNT, const DAT_PVOID);
	DAT_RETURN (*cr_reject)(DAT_CR_HANDLE, DAT_COUNT, const DAT_PVOID);
	DAT_RETURN (*cr_handoff)(DAT_CR_HANDLE, DAT_CONN_QUAL);

	DAT_RETURN(*evd_create)
	(DAT_IA_HANDLE, DAT_COUNT, DAT_CNO_HANDLE, DAT_EVD_FLAGS, DAT_EVD_HANDLE *);
	DAT_RETURN (*evd_query)(DAT_EVD_HANDLE, DAT_EVD_PARAM_MASK, DAT_EVD_PARAM *);
	DAT_RETURN (*evd_modify_cno)(DAT_EVD_HANDLE, DAT_CNO_HANDLE);
	DAT_RETURN (*evd_enable)(DAT_EVD_HANDLE);
	DAT_RETURN (*evd_disable)(DAT_EVD_HANDLE);
	DAT_RETURN (*evd_set_unwaitable)(DAT_EVD_HANDLE);
	DAT_RETURN (*evd_clear_unwaitable)(DAT_EVD_HANDLE);
	DAT_RETURN (*evd_resize)(DAT_EVD_HANDLE, DAT_COUNT);
	DAT_RETURN(*evd_wait)
	(DAT_EVD_HANDLE, DAT_TIMEOUT, DAT_COUNT, struct two_event *, DAT_COUNT *);
	DAT_RETURN (*evd_post_se)(DAT_EVD_HANDLE, const struct two_event *);
	DAT_RETURN (*evd_dequeue)(DAT_EVD_HANDLE, struct two_event *);
	DAT_RETURN (*evd_free)(DAT_EVD_HANDLE);

	DAT_RETURN(*ep_create)
	(DAT_IA_HANDLE, DAT_PZ_HANDLE, DAT_EVD_HANDLE, DAT_EVD_HANDLE, DAT_EVD_HANDLE,
	 const struct two_ep_attr *, DAT_EP_HANDLE *);
	DAT_RETURN(*ep_create_with_srq)
	(DAT_IA_HANDLE, DAT_PZ_HANDLE, DAT_EVD_HANDLE, DAT_EVD_HANDLE, DAT_EVD_HANDLE,
	 DAT_SRQ_HANDLE, const struct two_ep_attr *, DAT_EP_HANDLE *);
	DAT_RETURN (*ep_query)(DAT_EP_HANDLE, DAT_UINT64, struct two_ep_param *);
	DAT_RETURN (*ep_modify)(DAT_EP_HANDLE, DAT_UINT64, const struct two_ep_param *);
	DAT_RETURN(*ep_connect)
	(DAT_EP_HANDLE, DAT_IA_ADDRESS_PTR, DAT_CONN_QUAL, DAT_TIMEOUT, DAT_COUNT, const DAT_PVOID,
	 DAT_QOS, DAT_CONNECT_FLAGS);
	DAT_RETURN(*ep_dup_connect)
	(DAT_EP_HANDLE, DAT_EP_HANDLE, DAT_TIMEOUT, DAT_COUNT, const DAT_PVOID, DAT_QOS);
	DAT_RETURN (*ep_disconnect)(DAT_EP_HANDLE, DAT_CLOSE_FLAGS);
	DAT_RETURN (*ep_get_status)(DAT_EP_HANDLE, DAT_EP_STATE *, DAT_BOOLEAN *, DAT_BOOLEAN *);
	DAT_RETURN (*ep_recv_query)(DAT_EP_HANDLE, DAT_COUNT *, DAT_COUNT *);
	DAT_RETURN (*ep_set_watermark)(DAT_EP_HANDLE, DAT_COUNT, DAT_COUNT);
	DAT_RETURN (*ep_reset)(DAT_EP_HANDLE);
	DAT_RETURN (*ep_free)(DAT_EP_HANDLE);

	DAT_RETURN(*ep_post_send)
	(DAT_EP_HANDLE, DAT_COUNT, struct two_lmr_triplet *, DAT_DTO_COOKIE, DAT_COMPLETION_FLAGS);
	DAT_RETURN(*ep_post_recv)
	(DAT_EP_HANDLE, DAT_COUNT, struct two_lmr_triplet *, DAT_DTO_COOKIE, DAT_COMPLETION_FLAGS);
	DAT_RETURN(*ep_post_rdma_read)
	(DAT_EP_HANDLE, DAT_COUNT, struct two_lmr_triplet *, DAT_DTO_COOKIE,
	 const struct two_rmr_triplet *, DAT_COMPLETION_FLAGS);
	DAT_RETURN(*ep_post_rdma_write)
	(DAT_EP_HANDLE, DAT_COUNT, struct two_lmr_triplet *, DAT_DTO_COOKIE,
	 const struct two_rmr_triplet *, DAT_COMPLETION_FLAGS);

	DAT_RETURN(*lmr_create)
	(DAT_IA_HANDLE, DAT_MEM_TYPE, DAT_REGION_DESCRIPTION, DAT_VLEN, DAT_PZ_HANDLE,
	 DAT_MEM_PRIV_FLAGS, int, DAT_LMR_HANDLE *, DAT_LMR_CONTEXT *, DAT_RMR_CONTEXT *,
	 DAT_VLEN *, DAT_VADDR *);
	DAT_RETURN (*lmr_query)(DAT_LMR_HANDLE, int, struct two_lmr_param *);
	DAT_RETURN (*lmr_free)(DAT_LMR_HANDLE);
	DAT_RETURN (*lmr_sync_rdma_read)(DAT_IA_HANDLE, const struct two_lmr_triplet *, DAT_VLEN);
	DAT_RETURN (*lmr_sync_rdma_write)(DAT_IA_HANDLE, const struct two_lmr_triplet *, DAT_VLEN);

	DAT_RETURN (*rmr_create)(DAT_PZ_HANDLE, DAT_RMR_HANDLE *);
	DAT_RETURN (*rmr_query)(DAT_RMR_HANDLE, int, struct two_rmr_param *);
	DAT_RETURN(*rmr_bind)
	(DAT_RMR_HANDLE, DAT_LMR_HANDLE, const struct two_lmr_triplet *, DAT_MEM_PRIV_FLAGS, int,
	 DAT_EP_HANDLE, DAT_RMR_COOKIE, DAT_COMPLETION_FLAGS, DAT_RMR_CONTEXT *);
	DAT_RETURN (*rmr_free)(DAT_RMR_HANDLE);

	DAT_RETURN(*psp_create)
	(DAT_IA_HANDLE, DAT_CONN_QUAL, DAT_EVD_HANDLE, DAT_PSP_FLAGS, DAT_PSP_HANDLE *);
	DAT_RETURN(*psp_create_any)
	(DAT_IA_HANDLE, DAT_CONN_QUAL *, DAT_EVD_HANDLE, DAT_PSP_FLAGS, DAT_PSP_HANDLE *);
	DAT_RETURN (*psp_query)(DAT_PSP_HANDLE, DAT_PSP_PARAM_MASK, DAT_PSP_PARAM *);
	DAT_RETURN (*psp_free)(DAT_PSP_HANDLE);
	DAT_RETURN(*rsp_create)
	(DAT_IA_HANDLE, DAT_CONN_QUAL, DAT_EP_HANDLE, DAT_EVD_HANDLE, DAT_RSP_HANDLE *);
	DAT_RETURN (*rsp_query)(DAT_RSP_HANDLE, DAT_RSP_PARAM_MASK, DAT_RSP_PARAM *);
	DAT_RETURN (*rsp_free)(DAT_RSP_HANDLE);

	DAT_RETURN (*pz_create)(DAT_IA_HANDLE, DAT_PZ_HANDLE *);
	DAT_RETURN (*pz_query)(DAT_PZ_HANDLE, DAT_PZ_PARAM_MASK, DAT_PZ_PARAM *);
	DAT_RETURN (*pz_free)(DAT_PZ_HANDLE);

	DAT_RETURN (*srq_create)(DAT_IA_HANDLE, DAT_PZ_HANDLE, DAT_SRQ_ATTR *, DAT_SRQ_HANDLE *);
	DAT_RETURN (*srq_query)(DAT_SRQ_HANDLE, DAT_SRQ_PARAM_MASK, DAT_SRQ_PARAM *);
	DAT_RETURN(*srq_post_recv)
	(DAT_SRQ_HANDLE, DAT_COUNT, struct two_lmr_triplet *, DAT_DTO_COOKIE);
	DAT_RETURN (*srq_resize)(DAT_SRQ_HANDLE, DAT_COUNT);
	DAT_RETURN (*srq_set_lw)(DAT_SRQ_HANDLE, DAT_COUNT);
	DAT_RETURN (*srq_free)(DAT_SRQ_HANDLE);
};

#endif
