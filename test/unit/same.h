/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * Whether two answers of a query are the same. A copy of a struct need not carry the bytes between its members, so the
 * members are compared.
 */
#ifndef TEST_UNIT_SAME_H
#define TEST_UNIT_SAME_H

#include <stdbool.h>
#include <dat2/udat.h>

static inline bool ep_attr_is_same(const DAT_EP_ATTR *a, const DAT_EP_ATTR *b)
{
	return a->service_type == b->service_type && a->max_message_size == b->max_message_size &&
	       a->max_rdma_size == b->max_rdma_size && a->qos == b->qos &&
	       a->recv_completion_flags == b->recv_completion_flags &&
	       a->request_completion_flags == b->request_completion_flags &&
	       a->max_recv_dtos == b->max_recv_dtos && a->max_request_dtos == b->max_request_dtos &&
	       a->max_recv_iov == b->max_recv_iov && a->max_request_iov == b->max_request_iov &&
	       a->max_rdma_read_in == b->max_rdma_read_in &&
	       a->max_rdma_read_out == b->max_rdma_read_out && a->srq_soft_hw == b->srq_soft_hw &&
	       a->max_rdma_read_iov == b->max_rdma_read_iov &&
	       a->max_rdma_write_iov == b->max_rdma_write_iov &&
	       a->ep_transport_specific_count == b->ep_transport_specific_count &&
	       a->ep_transport_specific == b->ep_transport_specific &&
	       a->ep_provider_specific_count == b->ep_provider_specific_count &&
	       a->ep_provider_specific == b->ep_provider_specific;
}

static inline bool ep_param_is_same(const DAT_EP_PARAM *a, const DAT_EP_PARAM *b)
{
	return a->ia_handle == b->ia_handle && a->ep_state == b->ep_state &&
	       a->local_ia_address_ptr == b->local_ia_address_ptr &&
	       a->local_port_qual == b->local_port_qual &&
	       a->remote_ia_address_ptr == b->remote_ia_address_ptr &&
	       a->remote_port_qual == b->remote_port_qual && a->pz_handle == b->pz_handle &&
	       a->recv_evd_handle == b->recv_evd_handle &&
	       a->request_evd_handle == b->request_evd_handle &&
	       a->connect_evd_handle == b->connect_evd_handle && a->srq_handle == b->srq_handle &&
	       ep_attr_is_same(&a->ep_attr, &b->ep_attr);
}

static inline bool srq_param_is_same(const DAT_SRQ_PARAM *a, const DAT_SRQ_PARAM *b)
{
	return a->ia_handle == b->ia_handle && a->srq_state == b->srq_state &&
	       a->pz_handle == b->pz_handle && a->max_recv_dtos == b->max_recv_dtos &&
	       a->max_recv_iov == b->max_recv_iov && a->low_watermark == b->low_watermark &&
	       a->available_dto_count == b->available_dto_count &&
	       a->outstanding_dto_count == b->outstanding_dto_count;
}

#endif
