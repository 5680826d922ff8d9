/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* The binary interface of DAT 1.2 on LP64: each size and every member's place. A build that breaks one does not compile. */
#include <stddef.h>
#include <netinet/in.h>
#include <dat/udat.h>
#include <dat/dat_registry.h>

#define SIZE(type, size) _Static_assert(sizeof(type) == (size), #type)
#define AT(type, member, offset, size)                   \
	_Static_assert(offsetof(type, member) == (offset) && \
		       sizeof(((type *)0)->member) == (size), #type "." #member)


SIZE(DAT_NAMED_ATTR, 16);
AT(DAT_NAMED_ATTR, name, 0, 8);
AT(DAT_NAMED_ATTR, value, 8, 8);

SIZE(DAT_CONTEXT, 8);
AT(DAT_CONTEXT, as_ptr, 0, 8);
AT(DAT_CONTEXT, as_64, 0, 8);
AT(DAT_CONTEXT, as_index, 0, 8);

SIZE(DAT_PROVIDER_ATTR, 504);
AT(DAT_PROVIDER_ATTR, provider_name, 0, 256);
AT(DAT_PROVIDER_ATTR, provider_version_major, 256, 4);
AT(DAT_PROVIDER_ATTR, provider_version_minor, 260, 4);
AT(DAT_PROVIDER_ATTR, dapl_version_major, 264, 4);
AT(DAT_PROVIDER_ATTR, dapl_version_minor, 268, 4);
AT(DAT_PROVIDER_ATTR, lmr_mem_types_supported, 272, 4);
AT(DAT_PROVIDER_ATTR, iov_ownership_on_return, 276, 4);
AT(DAT_PROVIDER_ATTR, dat_qos_supported, 280, 4);
AT(DAT_PROVIDER_ATTR, completion_flags_supported, 284, 4);
AT(DAT_PROVIDER_ATTR, is_thread_safe, 288, 4);
AT(DAT_PROVIDER_ATTR, max_private_data_size, 292, 4);
AT(DAT_PROVIDER_ATTR, supports_multipath, 296, 4);
AT(DAT_PROVIDER_ATTR, ep_creator, 300, 4);
AT(DAT_PROVIDER_ATTR, pz_support, 304, 4);
AT(DAT_PROVIDER_ATTR, optimal_buffer_alignment, 308, 4);
AT(DAT_PROVIDER_ATTR, evd_stream_merging_supported, 312, 144);
AT(DAT_PROVIDER_ATTR, srq_supported, 456, 4);
AT(DAT_PROVIDER_ATTR, srq_watermarks_supported, 460, 4);
AT(DAT_PROVIDER_ATTR, srq_ep_pz_difference_supported, 464, 4);
AT(DAT_PROVIDER_ATTR, srq_info_supported, 468, 4);
AT(DAT_PROVIDER_ATTR, ep_recv_info_supported, 472, 4);
AT(DAT_PROVIDER_ATTR, lmr_sync_req, 476, 4);
AT(DAT_PROVIDER_ATTR, dto_async_return_guaranteed, 480, 4);
AT(DAT_PROVIDER_ATTR, rdma_write_for_rdma_read_req, 484, 4);
AT(DAT_PROVIDER_ATTR, num_provider_specific_attr, 488, 4);
AT(DAT_PROVIDER_ATTR, provider_specific_attr, 496, 8);

SIZE(DAT_EVD_PARAM, 32);
AT(DAT_EVD_PARAM, ia_handle, 0, 8);
AT(DAT_EVD_PARAM, evd_qlen, 8, 4);
AT(DAT_EVD_PARAM, evd_state, 12, 4);
AT(DAT_EVD_PARAM, cno_handle, 16, 8);
AT(DAT_EVD_PARAM, evd_flags, 24, 4);

SIZE(DAT_LMR_PARAM, 80);
AT(DAT_LMR_PARAM, ia_handle, 0, 8);
AT(DAT_LMR_PARAM, mem_type, 8, 4);
AT(DAT_LMR_PARAM, region_desc, 16, 16);
AT(DAT_LMR_PARAM, length, 32, 8);
AT(DAT_LMR_PARAM, pz_handle, 40, 8);
AT(DAT_LMR_PARAM, mem_priv, 48, 4);
AT(DAT_LMR_PARAM, lmr_context, 52, 4);
AT(DAT_LMR_PARAM, rmr_context, 56, 4);
AT(DAT_LMR_PARAM, registered_size, 64, 8);
AT(DAT_LMR_PARAM, registered_address, 72, 8);

SIZE(DAT_LMR_TRIPLET, 24);
AT(DAT_LMR_TRIPLET, lmr_context, 0, 4);
AT(DAT_LMR_TRIPLET, pad, 4, 4);
AT(DAT_LMR_TRIPLET, virtual_address, 8, 8);
AT(DAT_LMR_TRIPLET, segment_length, 16, 8);

SIZE(DAT_RMR_TRIPLET, 24);
AT(DAT_RMR_TRIPLET, rmr_context, 0, 4);
AT(DAT_RMR_TRIPLET, pad, 4, 4);
AT(DAT_RMR_TRIPLET, target_address, 8, 8);
AT(DAT_RMR_TRIPLET, segment_length, 16, 8);

SIZE(DAT_RMR_PARAM, 48);
AT(DAT_RMR_PARAM, ia_handle, 0, 8);
AT(DAT_RMR_PARAM, pz_handle, 8, 8);
AT(DAT_RMR_PARAM, lmr_triplet, 16, 24);
AT(DAT_RMR_PARAM, mem_priv, 40, 4);
AT(DAT_RMR_PARAM, rmr_context, 44, 4);

SIZE(DAT_IA_ATTR, 688);
AT(DAT_IA_ATTR, adapter_name, 0, 256);
AT(DAT_IA_ATTR, vendor_name, 256, 256);
AT(DAT_IA_ATTR, hardware_version_major, 512, 4);
AT(DAT_IA_ATTR, hardware_version_minor, 516, 4);
AT(DAT_IA_ATTR, firmware_version_major, 520, 4);
AT(DAT_IA_ATTR, firmware_version_minor, 524, 4);
AT(DAT_IA_ATTR, ia_address_ptr, 528, 8);
AT(DAT_IA_ATTR, max_eps, 536, 4);
AT(DAT_IA_ATTR, max_dto_per_ep, 540, 4);
AT(DAT_IA_ATTR, max_rdma_read_per_ep_in, 544, 4);
AT(DAT_IA_ATTR, max_rdma_read_per_ep_out, 548, 4);
AT(DAT_IA_ATTR, max_evds, 552, 4);
AT(DAT_IA_ATTR, max_evd_qlen, 556, 4);
AT(DAT_IA_ATTR, max_iov_segments_per_dto, 560, 4);
AT(DAT_IA_ATTR, max_lmrs, 564, 4);
AT(DAT_IA_ATTR, max_lmr_block_size, 568, 8);
AT(DAT_IA_ATTR, max_lmr_virtual_address, 576, 8);
AT(DAT_IA_ATTR, max_pzs, 584, 4);
AT(DAT_IA_ATTR, max_message_size, 592, 8);
AT(DAT_IA_ATTR, max_rdma_size, 600, 8);
AT(DAT_IA_ATTR, max_rmrs, 608, 4);
AT(DAT_IA_ATTR, max_rmr_target_address, 616, 8);
AT(DAT_IA_ATTR, max_srqs, 624, 4);
AT(DAT_IA_ATTR, max_ep_per_srq, 628, 4);
AT(DAT_IA_ATTR, max_recv_per_srq, 632, 4);
AT(DAT_IA_ATTR, max_iov_segments_per_rdma_read, 636, 4);
AT(DAT_IA_ATTR, max_iov_segments_per_rdma_write, 640, 4);
AT(DAT_IA_ATTR, max_rdma_read_in, 644, 4);
AT(DAT_IA_ATTR, max_rdma_read_out, 648, 4);
AT(DAT_IA_ATTR, max_rdma_read_per_ep_in_guaranteed, 652, 4);
AT(DAT_IA_ATTR, max_rdma_read_per_ep_out_guaranteed, 656, 4);
AT(DAT_IA_ATTR, num_transport_attr, 660, 4);
AT(DAT_IA_ATTR, transport_attr, 664, 8);
AT(DAT_IA_ATTR, num_vendor_attr, 672, 4);
AT(DAT_IA_ATTR, vendor_attr, 680, 8);

SIZE(DAT_EP_ATTR, 104);
AT(DAT_EP_ATTR, service_type, 0, 4);
AT(DAT_EP_ATTR, max_message_size, 8, 8);
AT(DAT_EP_ATTR, max_rdma_size, 16, 8);
AT(DAT_EP_ATTR, qos, 24, 4);
AT(DAT_EP_ATTR, recv_completion_flags, 28, 4);
AT(DAT_EP_ATTR, request_completion_flags, 32, 4);
AT(DAT_EP_ATTR, max_recv_dtos, 36, 4);
AT(DAT_EP_ATTR, max_request_dtos, 40, 4);
AT(DAT_EP_ATTR, max_recv_iov, 44, 4);
AT(DAT_EP_ATTR, max_request_iov, 48, 4);
AT(DAT_EP_ATTR, max_rdma_read_in, 52, 4);
AT(DAT_EP_ATTR, max_rdma_read_out, 56, 4);
AT(DAT_EP_ATTR, srq_soft_hw, 60, 4);
AT(DAT_EP_ATTR, max_rdma_read_iov, 64, 4);
AT(DAT_EP_ATTR, max_rdma_write_iov, 68, 4);
AT(DAT_EP_ATTR, ep_transport_specific_count, 72, 4);
AT(DAT_EP_ATTR, ep_transport_specific, 80, 8);
AT(DAT_EP_ATTR, ep_provider_specific_count, 88, 4);
AT(DAT_EP_ATTR, ep_provider_specific, 96, 8);

SIZE(DAT_EP_PARAM, 192);
AT(DAT_EP_PARAM, ia_handle, 0, 8);
AT(DAT_EP_PARAM, ep_state, 8, 4);
AT(DAT_EP_PARAM, local_ia_address_ptr, 16, 8);
AT(DAT_EP_PARAM, local_port_qual, 24, 8);
AT(DAT_EP_PARAM, remote_ia_address_ptr, 32, 8);
AT(DAT_EP_PARAM, remote_port_qual, 40, 8);
AT(DAT_EP_PARAM, pz_handle, 48, 8);
AT(DAT_EP_PARAM, recv_evd_handle, 56, 8);
AT(DAT_EP_PARAM, request_evd_handle, 64, 8);
AT(DAT_EP_PARAM, connect_evd_handle, 72, 8);
AT(DAT_EP_PARAM, srq_handle, 80, 8);
AT(DAT_EP_PARAM, ep_attr, 88, 104);

SIZE(DAT_SRQ_ATTR, 12);
AT(DAT_SRQ_ATTR, max_recv_dtos, 0, 4);
AT(DAT_SRQ_ATTR, max_recv_iov, 4, 4);
AT(DAT_SRQ_ATTR, low_watermark, 8, 4);

SIZE(DAT_SRQ_PARAM, 48);
AT(DAT_SRQ_PARAM, ia_handle, 0, 8);
AT(DAT_SRQ_PARAM, srq_state, 8, 4);
AT(DAT_SRQ_PARAM, pz_handle, 16, 8);
AT(DAT_SRQ_PARAM, max_recv_dtos, 24, 4);
AT(DAT_SRQ_PARAM, max_recv_iov, 28, 4);
AT(DAT_SRQ_PARAM, low_watermark, 32, 4);
AT(DAT_SRQ_PARAM, available_dto_count, 36, 4);
AT(DAT_SRQ_PARAM, outstanding_dto_count, 40, 4);

SIZE(DAT_PZ_PARAM, 8);
AT(DAT_PZ_PARAM, ia_handle, 0, 8);

SIZE(DAT_PSP_PARAM, 32);
AT(DAT_PSP_PARAM, ia_handle, 0, 8);
AT(DAT_PSP_PARAM, conn_qual, 8, 8);
AT(DAT_PSP_PARAM, evd_handle, 16, 8);
AT(DAT_PSP_PARAM, psp_flags, 24, 4);

SIZE(DAT_RSP_PARAM, 32);
AT(DAT_RSP_PARAM, ia_handle, 0, 8);
AT(DAT_RSP_PARAM, conn_qual, 8, 8);
AT(DAT_RSP_PARAM, evd_handle, 16, 8);
AT(DAT_RSP_PARAM, ep_handle, 24, 8);

SIZE(DAT_CR_PARAM, 40);
AT(DAT_CR_PARAM, remote_ia_address_ptr, 0, 8);
AT(DAT_CR_PARAM, remote_port_qual, 8, 8);
AT(DAT_CR_PARAM, private_data_size, 16, 4);
AT(DAT_CR_PARAM, private_data, 24, 8);
AT(DAT_CR_PARAM, local_ep_handle, 32, 8);

SIZE(DAT_DTO_COMPLETION_EVENT_DATA, 32);
AT(DAT_DTO_COMPLETION_EVENT_DATA, ep_handle, 0, 8);
AT(DAT_DTO_COMPLETION_EVENT_DATA, user_cookie, 8, 8);
AT(DAT_DTO_COMPLETION_EVENT_DATA, status, 16, 4);
AT(DAT_DTO_COMPLETION_EVENT_DATA, transfered_length, 24, 8);

SIZE(DAT_RMR_BIND_COMPLETION_EVENT_DATA, 24);
AT(DAT_RMR_BIND_COMPLETION_EVENT_DATA, rmr_handle, 0, 8);
AT(DAT_RMR_BIND_COMPLETION_EVENT_DATA, user_cookie, 8, 8);
AT(DAT_RMR_BIND_COMPLETION_EVENT_DATA, status, 16, 4);

SIZE(DAT_SP_HANDLE, 8);
AT(DAT_SP_HANDLE, rsp_handle, 0, 8);
AT(DAT_SP_HANDLE, psp_handle, 0, 8);

SIZE(DAT_CR_ARRIVAL_EVENT_DATA, 32);
AT(DAT_CR_ARRIVAL_EVENT_DATA, sp_handle, 0, 8);
AT(DAT_CR_ARRIVAL_EVENT_DATA, local_ia_address_ptr, 8, 8);
AT(DAT_CR_ARRIVAL_EVENT_DATA, conn_qual, 16, 8);
AT(DAT_CR_ARRIVAL_EVENT_DATA, cr_handle, 24, 8);

SIZE(DAT_CONNECTION_EVENT_DATA, 24);
AT(DAT_CONNECTION_EVENT_DATA, ep_handle, 0, 8);
AT(DAT_CONNECTION_EVENT_DATA, private_data_size, 8, 4);
AT(DAT_CONNECTION_EVENT_DATA, private_data, 16, 8);

SIZE(DAT_ASYNCH_ERROR_EVENT_DATA, 16);
AT(DAT_ASYNCH_ERROR_EVENT_DATA, dat_handle, 0, 8);
AT(DAT_ASYNCH_ERROR_EVENT_DATA, reason, 8, 4);

SIZE(DAT_SOFTWARE_EVENT_DATA, 8);
AT(DAT_SOFTWARE_EVENT_DATA, pointer, 0, 8);

SIZE(DAT_EVENT_DATA, 32);
AT(DAT_EVENT_DATA, dto_completion_event_data, 0, 32);
AT(DAT_EVENT_DATA, rmr_completion_event_data, 0, 24);
AT(DAT_EVENT_DATA, cr_arrival_event_data, 0, 32);
AT(DAT_EVENT_DATA, connect_event_data, 0, 24);
AT(DAT_EVENT_DATA, asynch_error_event_data, 0, 16);
AT(DAT_EVENT_DATA, software_event_data, 0, 8);

SIZE(DAT_EVENT, 48);
AT(DAT_EVENT, event_number, 0, 4);
AT(DAT_EVENT, evd_handle, 8, 8);
AT(DAT_EVENT, event_data, 16, 32);

SIZE(DAT_PROVIDER_INFO, 268);
AT(DAT_PROVIDER_INFO, ia_name, 0, 256);
AT(DAT_PROVIDER_INFO, dapl_version_major, 256, 4);
AT(DAT_PROVIDER_INFO, dapl_version_minor, 260, 4);
AT(DAT_PROVIDER_INFO, is_thread_safe, 264, 4);

SIZE(DAT_OS_WAIT_PROXY_AGENT, 16);
AT(DAT_OS_WAIT_PROXY_AGENT, instance_data, 0, 8);
AT(DAT_OS_WAIT_PROXY_AGENT, proxy_agent_func, 8, 8);

SIZE(DAT_SHARED_MEMORY, 16);
AT(DAT_SHARED_MEMORY, virtual_address, 0, 8);
AT(DAT_SHARED_MEMORY, shared_memory_id, 8, 8);

SIZE(DAT_REGION_DESCRIPTION, 16);
AT(DAT_REGION_DESCRIPTION, for_va, 0, 8);
AT(DAT_REGION_DESCRIPTION, for_lmr_handle, 0, 8);
AT(DAT_REGION_DESCRIPTION, for_shared_memory, 0, 16);

SIZE(DAT_CNO_PARAM, 24);
AT(DAT_CNO_PARAM, ia_handle, 0, 8);
AT(DAT_CNO_PARAM, agent, 8, 16);

SIZE(DAT_PROVIDER, 560);
AT(DAT_PROVIDER, device_name, 0, 8);
AT(DAT_PROVIDER, extension, 8, 8);
AT(DAT_PROVIDER, ia_open_func, 16, 8);
AT(DAT_PROVIDER, ia_query_func, 24, 8);
AT(DAT_PROVIDER, ia_close_func, 32, 8);
AT(DAT_PROVIDER, set_consumer_context_func, 40, 8);
AT(DAT_PROVIDER, get_consumer_context_func, 48, 8);
AT(DAT_PROVIDER, get_handle_type_func, 56, 8);
AT(DAT_PROVIDER, cno_create_func, 64, 8);
AT(DAT_PROVIDER, cno_modify_agent_func, 72, 8);
AT(DAT_PROVIDER, cno_query_func, 80, 8);
AT(DAT_PROVIDER, cno_free_func, 88, 8);
AT(DAT_PROVIDER, cno_wait_func, 96, 8);
AT(DAT_PROVIDER, cr_query_func, 104, 8);
AT(DAT_PROVIDER, cr_accept_func, 112, 8);
AT(DAT_PROVIDER, cr_reject_func, 120, 8);
AT(DAT_PROVIDER, cr_handoff_func, 128, 8);
AT(DAT_PROVIDER, evd_create_func, 136, 8);
AT(DAT_PROVIDER, evd_query_func, 144, 8);
AT(DAT_PROVIDER, evd_modify_cno_func, 152, 8);
AT(DAT_PROVIDER, evd_enable_func, 160, 8);
AT(DAT_PROVIDER, evd_disable_func, 168, 8);
AT(DAT_PROVIDER, evd_wait_func, 176, 8);
AT(DAT_PROVIDER, evd_resize_func, 184, 8);
AT(DAT_PROVIDER, evd_post_se_func, 192, 8);
AT(DAT_PROVIDER, evd_dequeue_func, 200, 8);
AT(DAT_PROVIDER, evd_free_func, 208, 8);
AT(DAT_PROVIDER, ep_create_func, 216, 8);
AT(DAT_PROVIDER, ep_query_func, 224, 8);
AT(DAT_PROVIDER, ep_modify_func, 232, 8);
AT(DAT_PROVIDER, ep_connect_func, 240, 8);
AT(DAT_PROVIDER, ep_dup_connect_func, 248, 8);
AT(DAT_PROVIDER, ep_disconnect_func, 256, 8);
AT(DAT_PROVIDER, ep_post_send_func, 264, 8);
AT(DAT_PROVIDER, ep_post_recv_func, 272, 8);
AT(DAT_PROVIDER, ep_post_rdma_read_func, 280, 8);
AT(DAT_PROVIDER, ep_post_rdma_write_func, 288, 8);
AT(DAT_PROVIDER, ep_get_status_func, 296, 8);
AT(DAT_PROVIDER, ep_free_func, 304, 8);
AT(DAT_PROVIDER, lmr_create_func, 312, 8);
AT(DAT_PROVIDER, lmr_query_func, 320, 8);
AT(DAT_PROVIDER, lmr_free_func, 328, 8);
AT(DAT_PROVIDER, rmr_create_func, 336, 8);
AT(DAT_PROVIDER, rmr_query_func, 344, 8);
AT(DAT_PROVIDER, rmr_bind_func, 352, 8);
AT(DAT_PROVIDER, rmr_free_func, 360, 8);
AT(DAT_PROVIDER, psp_create_func, 368, 8);
AT(DAT_PROVIDER, psp_query_func, 376, 8);
AT(DAT_PROVIDER, psp_free_func, 384, 8);
AT(DAT_PROVIDER, rsp_create_func, 392, 8);
AT(DAT_PROVIDER, rsp_query_func, 400, 8);
AT(DAT_PROVIDER, rsp_free_func, 408, 8);
AT(DAT_PROVIDER, pz_create_func, 416, 8);
AT(DAT_PROVIDER, pz_query_func, 424, 8);
AT(DAT_PROVIDER, pz_free_func, 432, 8);
AT(DAT_PROVIDER, psp_create_any_func, 440, 8);
AT(DAT_PROVIDER, ep_reset_func, 448, 8);
AT(DAT_PROVIDER, evd_set_unwaitable_func, 456, 8);
AT(DAT_PROVIDER, evd_clear_unwaitable_func, 464, 8);
AT(DAT_PROVIDER, lmr_sync_rdma_read_func, 472, 8);
AT(DAT_PROVIDER, lmr_sync_rdma_write_func, 480, 8);
AT(DAT_PROVIDER, ep_create_with_srq_func, 488, 8);
AT(DAT_PROVIDER, ep_recv_query_func, 496, 8);
AT(DAT_PROVIDER, ep_set_watermark_func, 504, 8);
AT(DAT_PROVIDER, srq_create_func, 512, 8);
AT(DAT_PROVIDER, srq_free_func, 520, 8);
AT(DAT_PROVIDER, srq_post_recv_func, 528, 8);
AT(DAT_PROVIDER, srq_query_func, 536, 8);
AT(DAT_PROVIDER, srq_resize_func, 544, 8);
AT(DAT_PROVIDER, srq_set_lw_func, 552, 8);

SIZE(DAT_UINT32, 4);
SIZE(DAT_UINT64, 8);
SIZE(DAT_UVERYLONG, 8);
SIZE(DAT_PVOID, 8);
SIZE(DAT_COUNT, 4);
SIZE(DAT_PADDR, 8);
SIZE(DAT_MEM_TYPE, 4);
SIZE(DAT_HANDLE_TYPE, 4);
SIZE(DAT_EVD_STATE, 4);
SIZE(DAT_EVD_PARAM_MASK, 4);
SIZE(DAT_PROVIDER_ATTR_MASK, 8);
SIZE(DAT_RETURN_TYPE, 4);
SIZE(DAT_RETURN, 4);
SIZE(DAT_RETURN_SUBTYPE, 4);
SIZE(DAT_NAME_PTR, 8);
SIZE(DAT_BOOLEAN, 4);
SIZE(DAT_DTO_COOKIE, 8);
SIZE(DAT_RMR_COOKIE, 8);
SIZE(DAT_COMPLETION_FLAGS, 4);
SIZE(DAT_TIMEOUT, 4);
SIZE(DAT_HANDLE, 8);
SIZE(DAT_CR_HANDLE, 8);
SIZE(DAT_EP_HANDLE, 8);
SIZE(DAT_EVD_HANDLE, 8);
SIZE(DAT_IA_HANDLE, 8);
SIZE(DAT_LMR_HANDLE, 8);
SIZE(DAT_PSP_HANDLE, 8);
SIZE(DAT_PZ_HANDLE, 8);
SIZE(DAT_RMR_HANDLE, 8);
SIZE(DAT_RSP_HANDLE, 8);
SIZE(DAT_SRQ_HANDLE, 8);
SIZE(DAT_IA_ADDRESS_PTR, 8);
SIZE(DAT_CONN_QUAL, 8);
SIZE(DAT_PORT_QUAL, 8);
SIZE(DAT_QOS, 4);
SIZE(DAT_CONNECT_FLAGS, 4);
SIZE(DAT_CLOSE_FLAGS, 4);
SIZE(DAT_EVD_FLAGS, 4);
SIZE(DAT_PSP_FLAGS, 4);
SIZE(DAT_LMR_CONTEXT, 4);
SIZE(DAT_RMR_CONTEXT, 4);
SIZE(DAT_VLEN, 8);
SIZE(DAT_VADDR, 8);
SIZE(DAT_MEM_PRIV_FLAGS, 4);
SIZE(DAT_LMR_PARAM_MASK, 4);
SIZE(DAT_RMR_PARAM_MASK, 4);
SIZE(DAT_IOV_OWNERSHIP, 4);
SIZE(DAT_EP_CREATOR_FOR_PSP, 4);
SIZE(DAT_IA_ATTR_MASK, 8);
SIZE(DAT_SERVICE_TYPE, 4);
SIZE(DAT_EP_STATE, 4);
SIZE(DAT_EP_PARAM_MASK, 8);
SIZE(DAT_SRQ_STATE, 4);
SIZE(DAT_SRQ_PARAM_MASK, 4);
SIZE(DAT_PZ_PARAM_MASK, 4);
SIZE(DAT_PSP_PARAM_MASK, 4);
SIZE(DAT_RSP_PARAM_MASK, 4);
SIZE(DAT_CR_PARAM_MASK, 4);
SIZE(DAT_DTO_COMPLETION_STATUS, 4);
SIZE(DAT_IA_ASYNC_ERROR_REASON, 4);
SIZE(DAT_EP_ASYNC_ERROR_REASON, 4);
SIZE(DAT_EVD_ASYNC_ERROR_REASON, 4);
SIZE(DAT_SRQ_ASYNC_ERROR_REASON, 4);
SIZE(DAT_LMR_ASYNC_ERROR_REASON, 4);
SIZE(DAT_RMR_ASYNC_ERROR_REASON, 4);
SIZE(DAT_PZ_ASYNC_ERROR_REASON, 4);
SIZE(DAT_EVENT_NUMBER, 4);
SIZE(DAT_CNO_HANDLE, 8);
SIZE(DAT_LMR_COOKIE, 8);
SIZE(DAT_CNO_PARAM_MASK, 4);
SIZE(DAT_PZ_SUPPORT, 4);
