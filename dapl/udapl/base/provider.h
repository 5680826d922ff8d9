/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * The provider's entries: one dapl_<noun>_<verb> for each dat_<noun>_<verb>, and the table that
 * lists them.
 */
#ifndef DAPL_PROVIDER_H
#define DAPL_PROVIDER_H

#include <dat2/udat.h>
#include <dat2/dat_registry.h>
#include "dapl/openib/ib.h"

/*
 * Returns the table of the IA name, or NULL if the registry never announced it. Valid until
 * dat_provider_fini of that name.
 */
const DAT_PROVIDER *provider_find(const char *name, const char **params, DAT_BOOLEAN *thread_safe);

bool provider_has_own_registry(void); /* true if libdat2 is this project's, not OFED's */

/* IA */
DAT_RETURN dapl_ia_open(const DAT_NAME_PTR name, DAT_COUNT async_qlen, DAT_EVD_HANDLE *async_evd,
			DAT_IA_HANDLE *ia);
DAT_RETURN dapl_ia_query(DAT_IA_HANDLE ia, DAT_EVD_HANDLE *async_evd, DAT_IA_ATTR_MASK ia_mask,
			 DAT_IA_ATTR *ia_attr, DAT_PROVIDER_ATTR_MASK provider_mask,
			 DAT_PROVIDER_ATTR *provider_attr);
DAT_RETURN dapl_ia_close(DAT_IA_HANDLE ia, DAT_CLOSE_FLAGS flags);

/* any object */
DAT_RETURN dapl_set_consumer_context(DAT_HANDLE handle, DAT_CONTEXT context);
DAT_RETURN dapl_get_consumer_context(DAT_HANDLE handle, DAT_CONTEXT *context);
DAT_RETURN dapl_get_handle_type(DAT_HANDLE handle, DAT_HANDLE_TYPE *type);

/* EVD */
DAT_RETURN dapl_evd_create(DAT_IA_HANDLE ia, DAT_COUNT min_qlen, DAT_CNO_HANDLE cno,
			   DAT_EVD_FLAGS flags, DAT_EVD_HANDLE *evd);
DAT_RETURN dapl_evd_query(DAT_EVD_HANDLE evd, DAT_EVD_PARAM_MASK mask, DAT_EVD_PARAM *param);
DAT_RETURN dapl_evd_wait(DAT_EVD_HANDLE evd, DAT_TIMEOUT timeout, DAT_COUNT threshold,
			 DAT_EVENT *event, DAT_COUNT *more);
DAT_RETURN dapl_evd_dequeue(DAT_EVD_HANDLE evd, DAT_EVENT *event);
DAT_RETURN dapl_evd_post_se(DAT_EVD_HANDLE evd, const DAT_EVENT *event);
DAT_RETURN dapl_evd_set_unwaitable(DAT_EVD_HANDLE evd);
DAT_RETURN dapl_evd_clear_unwaitable(DAT_EVD_HANDLE evd);
DAT_RETURN dapl_evd_modify_cno(DAT_EVD_HANDLE evd, DAT_CNO_HANDLE cno);
DAT_RETURN dapl_evd_enable(DAT_EVD_HANDLE evd);
DAT_RETURN dapl_evd_disable(DAT_EVD_HANDLE evd);
DAT_RETURN dapl_evd_resize(DAT_EVD_HANDLE evd, DAT_COUNT min_qlen);
DAT_RETURN dapl_evd_free(DAT_EVD_HANDLE evd);

/* CNO */
DAT_RETURN dapl_cno_create(DAT_IA_HANDLE ia, DAT_OS_WAIT_PROXY_AGENT agent, DAT_CNO_HANDLE *cno);
DAT_RETURN dapl_cno_fd_create(DAT_IA_HANDLE ia, DAT_FD *fd, DAT_CNO_HANDLE *cno);
DAT_RETURN dapl_cno_modify_agent(DAT_CNO_HANDLE cno, DAT_OS_WAIT_PROXY_AGENT agent);
DAT_RETURN dapl_cno_query(DAT_CNO_HANDLE cno, DAT_CNO_PARAM_MASK mask, DAT_CNO_PARAM *param);
DAT_RETURN dapl_cno_wait(DAT_CNO_HANDLE cno, DAT_TIMEOUT timeout, DAT_EVD_HANDLE *evd);
DAT_RETURN dapl_cno_trigger(DAT_CNO_HANDLE cno, DAT_EVD_HANDLE *evd);
DAT_RETURN dapl_cno_free(DAT_CNO_HANDLE cno);

/* EP */
DAT_RETURN dapl_ep_create(DAT_IA_HANDLE ia, DAT_PZ_HANDLE pz, DAT_EVD_HANDLE recv,
			  DAT_EVD_HANDLE request, DAT_EVD_HANDLE connect, const DAT_EP_ATTR *attr,
			  DAT_EP_HANDLE *ep);
DAT_RETURN dapl_ep_create_with_srq(DAT_IA_HANDLE ia, DAT_PZ_HANDLE pz, DAT_EVD_HANDLE recv,
				   DAT_EVD_HANDLE request, DAT_EVD_HANDLE connect,
				   DAT_SRQ_HANDLE srq, const DAT_EP_ATTR *attr, DAT_EP_HANDLE *ep);
DAT_RETURN dapl_ep_query(DAT_EP_HANDLE ep, DAT_EP_PARAM_MASK mask, DAT_EP_PARAM *param);
DAT_RETURN dapl_ep_modify(DAT_EP_HANDLE ep, DAT_EP_PARAM_MASK mask, const DAT_EP_PARAM *param);
DAT_RETURN dapl_ep_recv_query(DAT_EP_HANDLE ep, DAT_COUNT *buffers, DAT_COUNT *span);
DAT_RETURN dapl_ep_set_watermark(DAT_EP_HANDLE ep, DAT_COUNT soft, DAT_COUNT hard);
DAT_RETURN dapl_ep_get_status(DAT_EP_HANDLE ep, DAT_EP_STATE *state, DAT_BOOLEAN *recv_idle,
			      DAT_BOOLEAN *request_idle);
DAT_RETURN dapl_ep_connect(DAT_EP_HANDLE ep, DAT_IA_ADDRESS_PTR remote, DAT_CONN_QUAL qual,
			   DAT_TIMEOUT timeout, DAT_COUNT size, const DAT_PVOID data, DAT_QOS qos,
			   DAT_CONNECT_FLAGS flags);
DAT_RETURN dapl_ep_dup_connect(DAT_EP_HANDLE ep, DAT_EP_HANDLE dup, DAT_TIMEOUT timeout,
			       DAT_COUNT size, const DAT_PVOID data, DAT_QOS qos);
DAT_RETURN dapl_ep_common_connect(DAT_EP_HANDLE ep, DAT_IA_ADDRESS_PTR remote, DAT_TIMEOUT timeout,
				  DAT_COUNT size, const DAT_PVOID data);
DAT_RETURN dapl_ep_disconnect(DAT_EP_HANDLE ep, DAT_CLOSE_FLAGS flags);
DAT_RETURN dapl_ep_reset(DAT_EP_HANDLE ep);
DAT_RETURN dapl_ep_free(DAT_EP_HANDLE ep);
DAT_RETURN dapl_ep_post_send(DAT_EP_HANDLE ep, DAT_COUNT count, DAT_LMR_TRIPLET *segments,
			     DAT_DTO_COOKIE cookie, DAT_COMPLETION_FLAGS flags);
DAT_RETURN dapl_ep_post_recv(DAT_EP_HANDLE ep, DAT_COUNT count, DAT_LMR_TRIPLET *segments,
			     DAT_DTO_COOKIE cookie, DAT_COMPLETION_FLAGS flags);
DAT_RETURN dapl_ep_post_rdma_read(DAT_EP_HANDLE ep, DAT_COUNT count, DAT_LMR_TRIPLET *segments,
				  DAT_DTO_COOKIE cookie, const DAT_RMR_TRIPLET *remote,
				  DAT_COMPLETION_FLAGS flags);
DAT_RETURN dapl_ep_post_rdma_write(DAT_EP_HANDLE ep, DAT_COUNT count, DAT_LMR_TRIPLET *segments,
				   DAT_DTO_COOKIE cookie, const DAT_RMR_TRIPLET *remote,
				   DAT_COMPLETION_FLAGS flags);
DAT_RETURN dapl_ep_post_send_with_invalidate(DAT_EP_HANDLE ep, DAT_COUNT count,
					     DAT_LMR_TRIPLET *segments, DAT_DTO_COOKIE cookie,
					     DAT_COMPLETION_FLAGS flags, DAT_BOOLEAN invalidate,
					     DAT_RMR_CONTEXT context);
DAT_RETURN dapl_ep_post_rdma_read_to_rmr(DAT_EP_HANDLE ep, const DAT_RMR_TRIPLET *local,
					 DAT_DTO_COOKIE cookie, const DAT_RMR_TRIPLET *remote,
					 DAT_COMPLETION_FLAGS flags);

/* service points and connection requests */
DAT_RETURN dapl_psp_create(DAT_IA_HANDLE ia, DAT_CONN_QUAL qual, DAT_EVD_HANDLE evd,
			   DAT_PSP_FLAGS flags, DAT_PSP_HANDLE *psp);
DAT_RETURN dapl_psp_create_any(DAT_IA_HANDLE ia, DAT_CONN_QUAL *qual, DAT_EVD_HANDLE evd,
			       DAT_PSP_FLAGS flags, DAT_PSP_HANDLE *psp);
DAT_RETURN dapl_psp_query(DAT_PSP_HANDLE psp, DAT_PSP_PARAM_MASK mask, DAT_PSP_PARAM *param);
DAT_RETURN dapl_psp_free(DAT_PSP_HANDLE psp);
DAT_RETURN dapl_rsp_create(DAT_IA_HANDLE ia, DAT_CONN_QUAL qual, DAT_EP_HANDLE ep,
			   DAT_EVD_HANDLE evd, DAT_RSP_HANDLE *rsp);
DAT_RETURN dapl_rsp_query(DAT_RSP_HANDLE rsp, DAT_RSP_PARAM_MASK mask, DAT_RSP_PARAM *param);
DAT_RETURN dapl_rsp_free(DAT_RSP_HANDLE rsp);
DAT_RETURN dapl_csp_create(DAT_IA_HANDLE ia, DAT_COMM *comm, DAT_IA_ADDRESS_PTR address,
			   DAT_EVD_HANDLE evd, DAT_CSP_HANDLE *csp);
DAT_RETURN dapl_csp_query(DAT_CSP_HANDLE csp, DAT_CSP_PARAM_MASK mask, DAT_CSP_PARAM *param);
DAT_RETURN dapl_csp_free(DAT_CSP_HANDLE csp);
DAT_RETURN dapl_cr_query(DAT_CR_HANDLE cr, DAT_CR_PARAM_MASK mask, DAT_CR_PARAM *param);
DAT_RETURN dapl_cr_accept(DAT_CR_HANDLE cr, DAT_EP_HANDLE ep, DAT_COUNT size, const DAT_PVOID data);
DAT_RETURN dapl_cr_reject(DAT_CR_HANDLE cr, DAT_COUNT size, const DAT_PVOID data);
DAT_RETURN dapl_cr_handoff(DAT_CR_HANDLE cr, DAT_CONN_QUAL qual);

/* memory */
DAT_RETURN dapl_pz_create(DAT_IA_HANDLE ia, DAT_PZ_HANDLE *pz);
DAT_RETURN dapl_pz_query(DAT_PZ_HANDLE pz, DAT_PZ_PARAM_MASK mask, DAT_PZ_PARAM *param);
DAT_RETURN dapl_pz_free(DAT_PZ_HANDLE pz);
DAT_RETURN dapl_lmr_create(DAT_IA_HANDLE ia, DAT_MEM_TYPE type, DAT_REGION_DESCRIPTION region,
			   DAT_VLEN length, DAT_PZ_HANDLE pz, DAT_MEM_PRIV_FLAGS privileges,
			   DAT_VA_TYPE va_type, DAT_LMR_HANDLE *lmr, DAT_LMR_CONTEXT *lmr_context,
			   DAT_RMR_CONTEXT *rmr_context, DAT_VLEN *registered_size,
			   DAT_VADDR *registered_address);
DAT_RETURN dapl_lmr_query(DAT_LMR_HANDLE lmr, DAT_LMR_PARAM_MASK mask, DAT_LMR_PARAM *param);
DAT_RETURN dapl_lmr_free(DAT_LMR_HANDLE lmr);
DAT_RETURN dapl_lmr_sync_rdma_read(DAT_IA_HANDLE ia, const DAT_LMR_TRIPLET *segments,
				   DAT_VLEN count);
DAT_RETURN dapl_lmr_sync_rdma_write(DAT_IA_HANDLE ia, const DAT_LMR_TRIPLET *segments,
				    DAT_VLEN count);

DAT_RETURN dapl_rmr_create(DAT_PZ_HANDLE pz, DAT_RMR_HANDLE *rmr);
DAT_RETURN dapl_rmr_create_for_ep(DAT_PZ_HANDLE pz, DAT_RMR_HANDLE *rmr);
DAT_RETURN dapl_rmr_query(DAT_RMR_HANDLE rmr, DAT_RMR_PARAM_MASK mask, DAT_RMR_PARAM *param);
DAT_RETURN dapl_rmr_bind(DAT_RMR_HANDLE rmr, DAT_LMR_HANDLE lmr, const DAT_LMR_TRIPLET *triplet,
			 DAT_MEM_PRIV_FLAGS privileges, DAT_VA_TYPE va_type, DAT_EP_HANDLE ep,
			 DAT_RMR_COOKIE cookie, DAT_COMPLETION_FLAGS flags,
			 DAT_RMR_CONTEXT *context);
DAT_RETURN dapl_rmr_free(DAT_RMR_HANDLE rmr);

/* SRQ */
DAT_RETURN dapl_srq_create(DAT_IA_HANDLE ia, DAT_PZ_HANDLE pz, DAT_SRQ_ATTR *attr,
			   DAT_SRQ_HANDLE *srq);
DAT_RETURN dapl_srq_query(DAT_SRQ_HANDLE srq, DAT_SRQ_PARAM_MASK mask, DAT_SRQ_PARAM *param);
DAT_RETURN dapl_srq_post_recv(DAT_SRQ_HANDLE srq, DAT_COUNT count, DAT_LMR_TRIPLET *segments,
			      DAT_DTO_COOKIE cookie);
DAT_RETURN dapl_srq_resize(DAT_SRQ_HANDLE srq, DAT_COUNT max_recv_dtos);
DAT_RETURN dapl_srq_set_lw(DAT_SRQ_HANDLE srq, DAT_COUNT low_watermark);
DAT_RETURN dapl_srq_free(DAT_SRQ_HANDLE srq);

DAT_RETURN dapl_ia_ha_related(DAT_IA_HANDLE ia, const DAT_NAME_PTR name, DAT_BOOLEAN *answer);
DAT_RETURN dapl_not_implemented(void);

/* ia/fork.c, and the functions that it calls around a fork. */
void fork_register(void);
void names_fork_prepare(void);
void names_fork_end(void);
void obj_fork_prepare(void);
void obj_fork_end(void);
void evd_cno_fork_child(void);
void evd_resize_fork_child(void);
void srq_limit_fork_child(void);
void rmr_fork_child(void);
void rmr_flights_fork_child(void);
void ext_counters_fork_child(void);
void ext_kernel_fork_child(void);

/* the exports of the library */
void dat_provider_init(const DAT_PROVIDER_INFO *info, const char *params);
void dat_provider_fini(const DAT_PROVIDER_INFO *info);
DAT_RETURN dapl_extensions(DAT_HANDLE handle, DAT_EXTENDED_OP operation, va_list args);

#endif
