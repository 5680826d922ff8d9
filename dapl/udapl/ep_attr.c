/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Endpoint attributes: the defaults, and what a device can satisfy. */
#include <dat2/dat_ib_extensions.h>
#include "dapl/udapl/ep.h"

#define DEFAULT_DTOS  16
#define DEFAULT_IOV   4
#define DEFAULT_READS 4

static DAT_COUNT least(DAT_COUNT wanted, uint32_t limit)
{
	return (uint32_t)wanted < limit ? wanted : (DAT_COUNT)limit;
}

/*
 * Read depths of 4, where the specification recommends 0: consumers read over endpoints that they
 * made by default.
 */
void ep_attr_default(const struct dapl_ia *ia, const struct dapl_evd *recv,
		     const struct dapl_evd *request, DAT_EP_ATTR *attr)
{
	const struct ib_attr *device = ia->attr;
	DAT_SEG_LENGTH size =
		device->max_message < 1u << 31 ? (DAT_SEG_LENGTH)device->max_message : 1u << 31;

	*attr = (DAT_EP_ATTR){
		.service_type = DAT_SERVICE_TYPE_RC,
		.max_message_size = size,
		.max_rdma_size = size,
		.qos = DAT_QOS_BEST_EFFORT,
		.recv_completion_flags = DAT_COMPLETION_EVD_THRESHOLD_FLAG,
		.request_completion_flags = DAT_COMPLETION_EVD_THRESHOLD_FLAG,
		.max_recv_dtos = recv ? least(DEFAULT_DTOS, device->max_wr) : 0,
		.max_request_dtos = request ? least(DEFAULT_DTOS, device->max_wr) : 0,
		.max_recv_iov = recv ? least(DEFAULT_IOV, device->max_sge) : 0,
		.max_request_iov = request ? least(DEFAULT_IOV, device->max_sge) : 0,
		.max_rdma_read_in = least(DEFAULT_READS, device->max_read_in),
		.max_rdma_read_out = least(DEFAULT_READS, device->max_read_out),
		.srq_soft_hw = DAT_HW_DEFAULT,
	};
	ep_attr_complete(ia, false, attr);
}

void ep_attr_complete(const struct dapl_ia *ia, bool srq, DAT_EP_ATTR *attr)
{
	if (!srq)
		attr->srq_soft_hw = DAT_HW_DEFAULT;
	if (!attr->max_rdma_read_iov)
		attr->max_rdma_read_iov = least(attr->max_request_iov, ia->attr->max_sge_read);
	if (!attr->max_rdma_write_iov)
		attr->max_rdma_write_iov = attr->max_request_iov;
}

static bool within(DAT_COUNT value, uint32_t limit)
{
	return value >= 0 && (uint32_t)value <= limit;
}

static bool recv_flags_valid(DAT_COMPLETION_FLAGS flags)
{
	return flags == DAT_COMPLETION_DEFAULT_FLAG ||
	       flags == DAT_COMPLETION_SOLICITED_WAIT_FLAG ||
	       flags == DAT_COMPLETION_UNSIGNALLED_FLAG ||
	       flags == DAT_COMPLETION_EVD_THRESHOLD_FLAG;
}

DAT_COMPLETION_FLAGS ep_request_class(DAT_COMPLETION_FLAGS flags)
{
	return flags &
	       ~(unsigned)(DAT_COMPLETION_SUPPRESS_FLAG | DAT_COMPLETION_SOLICITED_WAIT_FLAG |
			   DAT_COMPLETION_BARRIER_FENCE_FLAG);
}

static bool request_flags_valid(DAT_COMPLETION_FLAGS flags)
{
	DAT_COMPLETION_FLAGS class = ep_request_class(flags);

	return class == DAT_COMPLETION_DEFAULT_FLAG || class == DAT_COMPLETION_UNSIGNALLED_FLAG ||
	       class == DAT_COMPLETION_EVD_THRESHOLD_FLAG;
}

/* A side without an EVD has no queue, one with an EVD has one. */
static bool recv_side_valid(const struct ib_attr *device, const DAT_EP_ATTR *attr, bool recv)
{
	return within(attr->max_recv_dtos, device->max_wr) && recv == (attr->max_recv_dtos > 0) &&
	       within(attr->max_recv_iov, device->max_sge) && (!recv || attr->max_recv_iov > 0);
}

static bool request_side_valid(const struct ib_attr *device, const DAT_EP_ATTR *attr, bool request)
{
	return within(attr->max_request_dtos, device->max_wr) &&
	       request == (attr->max_request_dtos > 0) &&
	       within(attr->max_request_iov, device->max_sge) &&
	       (request || !attr->max_request_iov);
}

static bool list_valid(DAT_COUNT count, const DAT_NAMED_ATTR *list)
{
	return count >= 0 && (!count || list);
}

/* A datagram is one packet, and reads nothing. */
static bool service_valid(const struct ib_attr *device, const DAT_EP_ATTR *attr)
{
	return !ep_attr_is_datagram(attr) || !device->datagrams ||
	       (attr->max_message_size <= device->mtu && !attr->max_rdma_read_in &&
		!attr->max_rdma_read_out);
}

/*
 * With an SRQ the receive counts size nothing: max_recv_dtos is only stored, max_recv_iov is
 * ignored. Without one srq_soft_hw is ignored, which shipped consumers leave uninitialised. The service type and named attributes that nobody knows are the caller's, which
 * answers them with a type of their own.
 */
bool ep_attr_valid(const struct dapl_ia *ia, const DAT_EP_ATTR *attr, bool recv, bool request,
		   bool srq)
{
	const struct ib_attr *device = ia->attr;

	return (srq ? attr->max_recv_dtos >= 0 : recv_side_valid(device, attr, recv)) &&
	       request_side_valid(device, attr, request) &&
	       recv_flags_valid(attr->recv_completion_flags) &&
	       request_flags_valid(attr->request_completion_flags) &&
	       attr->max_message_size <= device->max_message &&
	       attr->max_rdma_size <= device->max_message && attr->qos == DAT_QOS_BEST_EFFORT &&
	       service_valid(device, attr) && within(attr->max_rdma_read_in, device->max_read_in) &&
	       within(attr->max_rdma_read_out, device->max_read_out) &&
	       (!srq || attr->srq_soft_hw == DAT_HW_DEFAULT || !attr->srq_soft_hw) &&
	       within(attr->max_rdma_read_iov, device->max_sge_read) &&
	       within(attr->max_rdma_write_iov, device->max_sge) &&
	       list_valid(attr->ep_transport_specific_count, attr->ep_transport_specific) &&
	       list_valid(attr->ep_provider_specific_count, attr->ep_provider_specific);
}

/* UD is for devices that have it; no named attribute is known. */
bool ep_attr_supported(const struct dapl_ia *ia, const DAT_EP_ATTR *attr)
{
	return (!ep_attr_is_datagram(attr) || ia->attr->datagrams) &&
	       attr->ep_transport_specific_count <= 0 && attr->ep_provider_specific_count <= 0;
}

bool ep_attr_type_known(const DAT_EP_ATTR *attr)
{
	return attr->service_type == DAT_SERVICE_TYPE_RC || ep_attr_is_datagram(attr);
}

bool ep_attr_is_datagram(const DAT_EP_ATTR *attr)
{
	return (int)attr->service_type == (int)DAT_IB_SERVICE_TYPE_UD;
}
