/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * What libdat.so.1 repeats of DAT 2.0 under names of its own (dat/one/two.h) is what <dat2/udat.h> says: each structure
 * member by member, each value, each function.
 */
#include <stddef.h>
#include <netinet/in.h>
#include <dat2/udat.h>
#include <dat2/dat_registry.h>
#include "dat/one/two.h"

#define SIZE(ours, theirs) _Static_assert(sizeof(struct ours) == sizeof(theirs), #ours)
#define AT(ours, theirs, member)                                                          \
	_Static_assert(offsetof(struct ours, member) == offsetof(theirs, member) &&       \
		       sizeof(((struct ours *)0)->member) == sizeof(((theirs *)0)->member), \
		       #ours "." #member)
#define VALUE(ours, theirs) _Static_assert((ours) == (unsigned)(theirs), #ours)
#define SAME(member, function)                                                             \
	_Static_assert(__builtin_types_compatible_p(__typeof__(((struct two *)0)->member), \
						    __typeof__(function) *), #function)

SIZE(two_lmr_triplet, DAT_LMR_TRIPLET);
AT(two_lmr_triplet, DAT_LMR_TRIPLET, virtual_address);
AT(two_lmr_triplet, DAT_LMR_TRIPLET, segment_length);
AT(two_lmr_triplet, DAT_LMR_TRIPLET, lmr_context);

SIZE(two_rmr_triplet, DAT_RMR_TRIPLET);
AT(two_rmr_triplet, DAT_RMR_TRIPLET, virtual_address);
AT(two_rmr_triplet, DAT_RMR_TRIPLET, segment_length);
AT(two_rmr_triplet, DAT_RMR_TRIPLET, rmr_context);

SIZE(two_rmr_param, DAT_RMR_PARAM);
AT(two_rmr_param, DAT_RMR_PARAM, ia_handle);
AT(two_rmr_param, DAT_RMR_PARAM, pz_handle);
AT(two_rmr_param, DAT_RMR_PARAM, lmr_triplet);
AT(two_rmr_param, DAT_RMR_PARAM, mem_priv);
AT(two_rmr_param, DAT_RMR_PARAM, rmr_context);
AT(two_rmr_param, DAT_RMR_PARAM, rmr_scope);
AT(two_rmr_param, DAT_RMR_PARAM, va_type);

SIZE(two_lmr_param, DAT_LMR_PARAM);
AT(two_lmr_param, DAT_LMR_PARAM, ia_handle);
AT(two_lmr_param, DAT_LMR_PARAM, mem_type);
AT(two_lmr_param, DAT_LMR_PARAM, region_desc);
AT(two_lmr_param, DAT_LMR_PARAM, length);
AT(two_lmr_param, DAT_LMR_PARAM, pz_handle);
AT(two_lmr_param, DAT_LMR_PARAM, mem_priv);
AT(two_lmr_param, DAT_LMR_PARAM, va_type);
AT(two_lmr_param, DAT_LMR_PARAM, lmr_context);
AT(two_lmr_param, DAT_LMR_PARAM, rmr_context);
AT(two_lmr_param, DAT_LMR_PARAM, registered_size);
AT(two_lmr_param, DAT_LMR_PARAM, registered_address);

SIZE(two_ia_attr, DAT_IA_ATTR);
AT(two_ia_attr, DAT_IA_ATTR, adapter_name);
AT(two_ia_attr, DAT_IA_ATTR, vendor_name);
AT(two_ia_attr, DAT_IA_ATTR, hardware_version_major);
AT(two_ia_attr, DAT_IA_ATTR, hardware_version_minor);
AT(two_ia_attr, DAT_IA_ATTR, firmware_version_major);
AT(two_ia_attr, DAT_IA_ATTR, firmware_version_minor);
AT(two_ia_attr, DAT_IA_ATTR, ia_address_ptr);
AT(two_ia_attr, DAT_IA_ATTR, max_eps);
AT(two_ia_attr, DAT_IA_ATTR, max_dto_per_ep);
AT(two_ia_attr, DAT_IA_ATTR, max_rdma_read_per_ep_in);
AT(two_ia_attr, DAT_IA_ATTR, max_rdma_read_per_ep_out);
AT(two_ia_attr, DAT_IA_ATTR, max_evds);
AT(two_ia_attr, DAT_IA_ATTR, max_evd_qlen);
AT(two_ia_attr, DAT_IA_ATTR, max_iov_segments_per_dto);
AT(two_ia_attr, DAT_IA_ATTR, max_lmrs);
AT(two_ia_attr, DAT_IA_ATTR, max_lmr_block_size);
AT(two_ia_attr, DAT_IA_ATTR, max_lmr_virtual_address);
AT(two_ia_attr, DAT_IA_ATTR, max_pzs);
AT(two_ia_attr, DAT_IA_ATTR, max_message_size);
AT(two_ia_attr, DAT_IA_ATTR, max_rdma_size);
AT(two_ia_attr, DAT_IA_ATTR, max_rmrs);
AT(two_ia_attr, DAT_IA_ATTR, max_rmr_target_address);
AT(two_ia_attr, DAT_IA_ATTR, max_srqs);
AT(two_ia_attr, DAT_IA_ATTR, max_ep_per_srq);
AT(two_ia_attr, DAT_IA_ATTR, max_recv_per_srq);
AT(two_ia_attr, DAT_IA_ATTR, max_iov_segments_per_rdma_read);
AT(two_ia_attr, DAT_IA_ATTR, max_iov_segments_per_rdma_write);
AT(two_ia_attr, DAT_IA_ATTR, max_rdma_read_in);
AT(two_ia_attr, DAT_IA_ATTR, max_rdma_read_out);
AT(two_ia_attr, DAT_IA_ATTR, max_rdma_read_per_ep_in_guaranteed);
AT(two_ia_attr, DAT_IA_ATTR, max_rdma_read_per_ep_out_guaranteed);
AT(two_ia_attr, DAT_IA_ATTR, zb_supported);
AT(two_ia_attr, DAT_IA_ATTR, extension_supported);
AT(two_ia_attr, DAT_IA_ATTR, extension_version);
AT(two_ia_attr, DAT_IA_ATTR, num_transport_attr);
AT(two_ia_attr, DAT_IA_ATTR, transport_attr);
AT(two_ia_attr, DAT_IA_ATTR, num_vendor_attr);
AT(two_ia_attr, DAT_IA_ATTR, vendor_attr);

SIZE(two_provider_attr, DAT_PROVIDER_ATTR);
AT(two_provider_attr, DAT_PROVIDER_ATTR, provider_name);
AT(two_provider_attr, DAT_PROVIDER_ATTR, provider_version_major);
AT(two_provider_attr, DAT_PROVIDER_ATTR, provider_version_minor);
AT(two_provider_attr, DAT_PROVIDER_ATTR, dapl_version_major);
AT(two_provider_attr, DAT_PROVIDER_ATTR, dapl_version_minor);
AT(two_provider_attr, DAT_PROVIDER_ATTR, lmr_mem_types_supported);
AT(two_provider_attr, DAT_PROVIDER_ATTR, iov_ownership_on_return);
AT(two_provider_attr, DAT_PROVIDER_ATTR, dat_qos_supported);
AT(two_provider_attr, DAT_PROVIDER_ATTR, completion_flags_supported);
AT(two_provider_attr, DAT_PROVIDER_ATTR, is_thread_safe);
AT(two_provider_attr, DAT_PROVIDER_ATTR, max_private_data_size);
AT(two_provider_attr, DAT_PROVIDER_ATTR, supports_multipath);
AT(two_provider_attr, DAT_PROVIDER_ATTR, ep_creator);
AT(two_provider_attr, DAT_PROVIDER_ATTR, pz_support);
AT(two_provider_attr, DAT_PROVIDER_ATTR, optimal_buffer_alignment);
AT(two_provider_attr, DAT_PROVIDER_ATTR, evd_stream_merging_supported);
AT(two_provider_attr, DAT_PROVIDER_ATTR, srq_supported);
AT(two_provider_attr, DAT_PROVIDER_ATTR, srq_watermarks_supported);
AT(two_provider_attr, DAT_PROVIDER_ATTR, srq_ep_pz_difference_supported);
AT(two_provider_attr, DAT_PROVIDER_ATTR, srq_info_supported);
AT(two_provider_attr, DAT_PROVIDER_ATTR, ep_recv_info_supported);
AT(two_provider_attr, DAT_PROVIDER_ATTR, lmr_sync_req);
AT(two_provider_attr, DAT_PROVIDER_ATTR, dto_async_return_guaranteed);
AT(two_provider_attr, DAT_PROVIDER_ATTR, rdma_write_for_rdma_read_req);
AT(two_provider_attr, DAT_PROVIDER_ATTR, rdma_read_lmr_rmr_context_exposure);
AT(two_provider_attr, DAT_PROVIDER_ATTR, rmr_scope_supported);
AT(two_provider_attr, DAT_PROVIDER_ATTR, is_signal_safe);
AT(two_provider_attr, DAT_PROVIDER_ATTR, ha_supported);
AT(two_provider_attr, DAT_PROVIDER_ATTR, ha_loadbalancing);
AT(two_provider_attr, DAT_PROVIDER_ATTR, num_provider_specific_attr);
AT(two_provider_attr, DAT_PROVIDER_ATTR, provider_specific_attr);

SIZE(two_ep_attr, DAT_EP_ATTR);
AT(two_ep_attr, DAT_EP_ATTR, service_type);
AT(two_ep_attr, DAT_EP_ATTR, max_message_size);
AT(two_ep_attr, DAT_EP_ATTR, max_rdma_size);
AT(two_ep_attr, DAT_EP_ATTR, qos);
AT(two_ep_attr, DAT_EP_ATTR, recv_completion_flags);
AT(two_ep_attr, DAT_EP_ATTR, request_completion_flags);
AT(two_ep_attr, DAT_EP_ATTR, max_recv_dtos);
AT(two_ep_attr, DAT_EP_ATTR, max_request_dtos);
AT(two_ep_attr, DAT_EP_ATTR, max_recv_iov);
AT(two_ep_attr, DAT_EP_ATTR, max_request_iov);
AT(two_ep_attr, DAT_EP_ATTR, max_rdma_read_in);
AT(two_ep_attr, DAT_EP_ATTR, max_rdma_read_out);
AT(two_ep_attr, DAT_EP_ATTR, srq_soft_hw);
AT(two_ep_attr, DAT_EP_ATTR, max_rdma_read_iov);
AT(two_ep_attr, DAT_EP_ATTR, max_rdma_write_iov);
AT(two_ep_attr, DAT_EP_ATTR, ep_transport_specific_count);
AT(two_ep_attr, DAT_EP_ATTR, ep_transport_specific);
AT(two_ep_attr, DAT_EP_ATTR, ep_provider_specific_count);
AT(two_ep_attr, DAT_EP_ATTR, ep_provider_specific);

SIZE(two_ep_param, DAT_EP_PARAM);
AT(two_ep_param, DAT_EP_PARAM, ia_handle);
AT(two_ep_param, DAT_EP_PARAM, ep_state);
AT(two_ep_param, DAT_EP_PARAM, comm);
AT(two_ep_param, DAT_EP_PARAM, local_ia_address_ptr);
AT(two_ep_param, DAT_EP_PARAM, local_port_qual);
AT(two_ep_param, DAT_EP_PARAM, remote_ia_address_ptr);
AT(two_ep_param, DAT_EP_PARAM, remote_port_qual);
AT(two_ep_param, DAT_EP_PARAM, pz_handle);
AT(two_ep_param, DAT_EP_PARAM, recv_evd_handle);
AT(two_ep_param, DAT_EP_PARAM, request_evd_handle);
AT(two_ep_param, DAT_EP_PARAM, connect_evd_handle);
AT(two_ep_param, DAT_EP_PARAM, srq_handle);
AT(two_ep_param, DAT_EP_PARAM, ep_attr);

SIZE(two_cno_param, DAT_CNO_PARAM);
AT(two_cno_param, DAT_CNO_PARAM, ia_handle);
AT(two_cno_param, DAT_CNO_PARAM, proxy_type);
AT(two_cno_param, DAT_CNO_PARAM, proxy);

SIZE(two_dto_data, DAT_DTO_COMPLETION_EVENT_DATA);
AT(two_dto_data, DAT_DTO_COMPLETION_EVENT_DATA, ep_handle);
AT(two_dto_data, DAT_DTO_COMPLETION_EVENT_DATA, user_cookie);
AT(two_dto_data, DAT_DTO_COMPLETION_EVENT_DATA, status);
AT(two_dto_data, DAT_DTO_COMPLETION_EVENT_DATA, transfered_length);
AT(two_dto_data, DAT_DTO_COMPLETION_EVENT_DATA, operation);
AT(two_dto_data, DAT_DTO_COMPLETION_EVENT_DATA, rmr_context);

SIZE(two_event, DAT_EVENT);
AT(two_event, DAT_EVENT, event_number);
AT(two_event, DAT_EVENT, evd_handle);
AT(two_event, DAT_EVENT, event_data);
AT(two_event, DAT_EVENT, event_extension_data);

VALUE(TWO_PROXY_TYPE_FD, DAT_PROXY_TYPE_FD);
VALUE(TWO_CNO_FIELD_ALL, DAT_CNO_FIELD_ALL);
VALUE(TWO_DTO_ERR_LOCAL_MM_ERROR, DAT_DTO_ERR_LOCAL_MM_ERROR);
VALUE(TWO_SRQ_STATE_OPERATIONAL, DAT_SRQ_STATE_OPERATIONAL);
VALUE(TWO_VA_TYPE_VA, DAT_VA_TYPE_VA);
VALUE(TWO_NOT_IMPLEMENTED, DAT_NOT_IMPLEMENTED);
VALUE(TWO_RESERVED_LMR, DAT_RESERVED_LMR);
VALUE(TWO_PORT_IN_USE, DAT_PORT_IN_USE);
VALUE(TWO_COMM_NOT_SUPPORTED, DAT_COMM_NOT_SUPPORTED);
VALUE(TWO_INVALID_HANDLE_CSP, DAT_INVALID_HANDLE_CSP);
VALUE(TWO_INVALID_STATE_SRQ_SHUTDOWN, DAT_INVALID_STATE_SRQ_SHUTDOWN);

/* Of the others, structures or enumerations in the prototype have names of their own. */
SAME(ia_close, dat_ia_close);
SAME(registry_list_providers, dat_registry_list_providers);
SAME(get_ia_handle, dats_get_ia_handle);
SAME(strerror, dat_strerror);
SAME(set_consumer_context, dat_set_consumer_context);
SAME(get_consumer_context, dat_get_consumer_context);
SAME(get_handle_type, dat_get_handle_type);
SAME(cno_create, dat_cno_create);
SAME(cno_modify_agent, dat_cno_modify_agent);
SAME(cno_free, dat_cno_free);
SAME(cno_wait, dat_cno_wait);
SAME(cr_query, dat_cr_query);
SAME(cr_accept, dat_cr_accept);
SAME(cr_reject, dat_cr_reject);
SAME(cr_handoff, dat_cr_handoff);
SAME(evd_query, dat_evd_query);
SAME(evd_modify_cno, dat_evd_modify_cno);
SAME(evd_enable, dat_evd_enable);
SAME(evd_disable, dat_evd_disable);
SAME(evd_set_unwaitable, dat_evd_set_unwaitable);
SAME(evd_clear_unwaitable, dat_evd_clear_unwaitable);
SAME(evd_resize, dat_evd_resize);
SAME(evd_free, dat_evd_free);
SAME(ep_disconnect, dat_ep_disconnect);
SAME(ep_get_status, dat_ep_get_status);
SAME(ep_recv_query, dat_ep_recv_query);
SAME(ep_set_watermark, dat_ep_set_watermark);
SAME(ep_reset, dat_ep_reset);
SAME(ep_free, dat_ep_free);
SAME(lmr_free, dat_lmr_free);
SAME(rmr_create, dat_rmr_create);
SAME(rmr_free, dat_rmr_free);
SAME(psp_query, dat_psp_query);
SAME(psp_free, dat_psp_free);
SAME(rsp_query, dat_rsp_query);
SAME(rsp_free, dat_rsp_free);
SAME(pz_create, dat_pz_create);
SAME(pz_query, dat_pz_query);
SAME(pz_free, dat_pz_free);
SAME(srq_create, dat_srq_create);
SAME(srq_query, dat_srq_query);
SAME(srq_resize, dat_srq_resize);
SAME(srq_set_lw, dat_srq_set_lw);
SAME(srq_free, dat_srq_free);
