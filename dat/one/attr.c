/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Translates attributes and parameters, and the masks that select their members. */
#include <stddef.h>
#include "dat/one/one.h"

/* ---- Masks ---- */

/* Shifts the bits from `first` upwards by `places`; lower bits are unchanged. */
static DAT_UINT64 mask_move(DAT_UINT64 mask, DAT_UINT64 all, DAT_UINT64 first, unsigned places)
{
	if (mask & ~all)
		return ONE_MASK_UNKNOWN;
	return (mask & (first - 1)) | (mask & ~(first - 1)) << places;
}

DAT_UINT64 one_ia_mask(DAT_IA_ATTR_MASK mask)
{
	return mask_move(mask, DAT_IA_FIELD_ALL, DAT_IA_FIELD_IA_NUM_TRANSPORT_ATTR, 3);
}

DAT_UINT64 one_provider_mask(DAT_PROVIDER_ATTR_MASK mask)
{
	return mask_move(mask, DAT_PROVIDER_FIELD_ALL,
			 DAT_PROVIDER_FIELD_NUM_PROVIDER_SPECIFIC_ATTR, 5);
}

/* DAT 2.0 inserts the communicator at bit 2, which moves the following bits up to bit 11, free in DAT 1.2. */
DAT_UINT64 one_ep_mask(DAT_EP_PARAM_MASK mask)
{
	DAT_UINT64 attr = mask & DAT_EP_FIELD_EP_ATTR_ALL;
	DAT_UINT64 param = mask & ~DAT_EP_FIELD_EP_ATTR_ALL;

	if (mask & ~DAT_EP_FIELD_ALL)
		return ONE_MASK_UNKNOWN;
	return attr | mask_move(param, DAT_EP_FIELD_ALL, DAT_EP_FIELD_LOCAL_IA_ADDRESS_PTR, 1);
}

int one_lmr_mask(DAT_LMR_PARAM_MASK mask)
{
	DAT_UINT64 moved =
		mask_move((DAT_UINT32)mask, DAT_LMR_FIELD_ALL, DAT_LMR_FIELD_LMR_CONTEXT, 1);

	return moved == ONE_MASK_UNKNOWN ? ONE_ENUM_UNKNOWN : (int)moved;
}

int one_rmr_mask(DAT_RMR_PARAM_MASK mask)
{
	return (DAT_UINT32)mask & ~(DAT_UINT32)DAT_RMR_FIELD_ALL ? ONE_ENUM_UNKNOWN : (int)mask;
}

/* ---- Attributes of an IA and its provider ---- */

/* Limits the number of segments to that of the posts of this library. */
static DAT_COUNT segments(DAT_COUNT device)
{
	return device < ONE_IOV_MAX ? device : ONE_IOV_MAX;
}

void one_ia_attr(DAT_IA_ATTR *attr, const struct two_ia_attr *two_attr)
{
	/* Up to here both have one layout. */
	memcpy(attr, two_attr, offsetof(DAT_IA_ATTR, max_lmr_block_size));
	attr->max_iov_segments_per_dto = segments(two_attr->max_iov_segments_per_dto);

	attr->max_lmr_block_size = two_attr->max_lmr_block_size;
	attr->max_lmr_virtual_address = two_attr->max_lmr_virtual_address;
	attr->max_pzs = two_attr->max_pzs;
	attr->max_message_size = two_attr->max_message_size;
	attr->max_rdma_size = two_attr->max_rdma_size;
	attr->max_rmrs = two_attr->max_rmrs;
	attr->max_rmr_target_address = two_attr->max_rmr_target_address;
	attr->max_srqs = two_attr->max_srqs;
	attr->max_ep_per_srq = two_attr->max_ep_per_srq;
	attr->max_recv_per_srq = two_attr->max_recv_per_srq;
	attr->max_iov_segments_per_rdma_read = segments(two_attr->max_iov_segments_per_rdma_read);
	attr->max_iov_segments_per_rdma_write = segments(two_attr->max_iov_segments_per_rdma_write);
	attr->max_rdma_read_in = two_attr->max_rdma_read_in;
	attr->max_rdma_read_out = two_attr->max_rdma_read_out;
	attr->max_rdma_read_per_ep_in_guaranteed = two_attr->max_rdma_read_per_ep_in_guaranteed;
	attr->max_rdma_read_per_ep_out_guaranteed = two_attr->max_rdma_read_per_ep_out_guaranteed;
	attr->num_transport_attr = two_attr->num_transport_attr;
	attr->transport_attr = two_attr->transport_attr;
	attr->num_vendor_attr = two_attr->num_vendor_attr;
	attr->vendor_attr = two_attr->vendor_attr;
}

/* evd_stream_merging_supported is const, so no assignment can fill in the structure. */
void one_provider_attr(DAT_PROVIDER_ATTR *attr, const struct two_provider_attr *two_attr)
{
	/* Up to here both have one layout. */
	memcpy(attr, two_attr, offsetof(DAT_PROVIDER_ATTR, num_provider_specific_attr));
	attr->dapl_version_major = DAT_VERSION_MAJOR;
	attr->dapl_version_minor = DAT_VERSION_MINOR;
	attr->completion_flags_supported &= (DAT_COMPLETION_EVD_THRESHOLD_FLAG << 1) - 1;
	attr->num_provider_specific_attr = two_attr->num_provider_specific_attr;
	attr->provider_specific_attr = two_attr->provider_specific_attr;
}

/* ---- Endpoints ---- */

/* Limits a size to the range of DAT 2.0; the provider then checks it against its own limits. */
static DAT_UINT32 saturate(DAT_VLEN size)
{
	return size < ONE_LENGTH_MAX ? (DAT_UINT32)size : ONE_LENGTH_MAX;
}

void one_ep_attr_to_two(struct two_ep_attr *two_attr, const DAT_EP_ATTR *attr)
{
	*two_attr = (struct two_ep_attr){
		.service_type = attr->service_type,
		.max_message_size = saturate(attr->max_message_size),
		.max_rdma_size = saturate(attr->max_rdma_size),
		.qos = attr->qos,
		.recv_completion_flags = attr->recv_completion_flags,
		.request_completion_flags = attr->request_completion_flags,
		.max_recv_dtos = attr->max_recv_dtos,
		.max_request_dtos = attr->max_request_dtos,
		.max_recv_iov = attr->max_recv_iov,
		.max_request_iov = attr->max_request_iov,
		.max_rdma_read_in = attr->max_rdma_read_in,
		.max_rdma_read_out = attr->max_rdma_read_out,
		.srq_soft_hw = attr->srq_soft_hw,
		.max_rdma_read_iov = attr->max_rdma_read_iov,
		.max_rdma_write_iov = attr->max_rdma_write_iov,
		.ep_transport_specific_count = attr->ep_transport_specific_count,
		.ep_transport_specific = attr->ep_transport_specific,
		.ep_provider_specific_count = attr->ep_provider_specific_count,
		.ep_provider_specific = attr->ep_provider_specific,
	};
}

static void ep_attr_to_one(DAT_EP_ATTR *attr, const struct two_ep_attr *two_attr)
{
	attr->service_type = two_attr->service_type;
	attr->max_message_size = two_attr->max_message_size;
	attr->max_rdma_size = two_attr->max_rdma_size;
	attr->qos = two_attr->qos;
	attr->recv_completion_flags = two_attr->recv_completion_flags;
	attr->request_completion_flags = two_attr->request_completion_flags;
	attr->max_recv_dtos = two_attr->max_recv_dtos;
	attr->max_request_dtos = two_attr->max_request_dtos;
	attr->max_recv_iov = two_attr->max_recv_iov;
	attr->max_request_iov = two_attr->max_request_iov;
	attr->max_rdma_read_in = two_attr->max_rdma_read_in;
	attr->max_rdma_read_out = two_attr->max_rdma_read_out;
	attr->srq_soft_hw = two_attr->srq_soft_hw;
	attr->max_rdma_read_iov = two_attr->max_rdma_read_iov;
	attr->max_rdma_write_iov = two_attr->max_rdma_write_iov;
	attr->ep_transport_specific_count = two_attr->ep_transport_specific_count;
	attr->ep_transport_specific = two_attr->ep_transport_specific;
	attr->ep_provider_specific_count = two_attr->ep_provider_specific_count;
	attr->ep_provider_specific = two_attr->ep_provider_specific;
}

/* The gaps between members become 0, too: programs compare attributes as bytes. */
void one_ep_param(DAT_EP_PARAM *param, const struct two_ep_param *two_param)
{
	memset(param, 0, sizeof(*param));
	param->ia_handle = two_param->ia_handle;
	param->ep_state = two_param->ep_state;
	param->local_ia_address_ptr = two_param->local_ia_address_ptr;
	param->local_port_qual = two_param->local_port_qual;
	param->remote_ia_address_ptr = two_param->remote_ia_address_ptr;
	param->remote_port_qual = two_param->remote_port_qual;
	param->pz_handle = two_param->pz_handle;
	param->recv_evd_handle = two_param->recv_evd_handle;
	param->request_evd_handle = two_param->request_evd_handle;
	param->connect_evd_handle = two_param->connect_evd_handle;
	param->srq_handle = two_param->srq_handle;
	ep_attr_to_one(&param->ep_attr, &two_param->ep_attr);
}

void one_ep_param_to_two(struct two_ep_param *two_param, const DAT_EP_PARAM *param)
{
	*two_param = (struct two_ep_param){
		.ia_handle = param->ia_handle,
		.ep_state = param->ep_state,
		.local_ia_address_ptr = param->local_ia_address_ptr,
		.local_port_qual = param->local_port_qual,
		.remote_ia_address_ptr = param->remote_ia_address_ptr,
		.remote_port_qual = param->remote_port_qual,
		.pz_handle = param->pz_handle,
		.recv_evd_handle = param->recv_evd_handle,
		.request_evd_handle = param->request_evd_handle,
		.connect_evd_handle = param->connect_evd_handle,
		.srq_handle = param->srq_handle,
	};
	one_ep_attr_to_two(&two_param->ep_attr, &param->ep_attr);
}
