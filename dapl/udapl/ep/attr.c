/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Endpoint attributes: the defaults, the limits of a device, and the answers to queries. */
#include <dat2/dat_ib_extensions.h>
#include "dapl/udapl/ep/ep.h"
#include "dapl/udapl/base/provider.h"

#define DEFAULT_DTOS  16
#define DEFAULT_IOV   4
#define DEFAULT_READS 4

static DAT_COUNT least(DAT_COUNT wanted, uint32_t limit)
{
	return (uint32_t)wanted < limit ? wanted : (DAT_COUNT)limit;
}

/*
 * Read depths of 4, where the specification recommends 0: consumers read over endpoints with
 * default attributes.
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

/* A side has a queue exactly if it has an EVD. */
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
 * ignored. Without one, srq_soft_hw is ignored, because shipped consumers leave it uninitialised. The
 * caller checks the service type and unknown named attributes, whose errors have another type.
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

/* UD needs a device that has it; no named attribute is known. */
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

/* ---- queries ---- */

DAT_RETURN dapl_ep_query(DAT_EP_HANDLE handle, DAT_EP_PARAM_MASK mask, DAT_EP_PARAM *param)
{
	struct dapl_ep *ep = ep_from(handle);

	if (!ep)
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
	if (!param)
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
	if (mask & ~DAT_EP_FIELD_ALL)
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
	if (!mask)
		return DAT_SUCCESS;

	if (!ep_lock(ep))
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
	*param = (DAT_EP_PARAM){
		.ia_handle = ia_handle(ep->obj.ia),
		.ep_state = atomic_load_explicit(&ep->state, memory_order_relaxed),
		.comm = ep->comm,
		.local_ia_address_ptr = (DAT_IA_ADDRESS_PTR)&ep->local,
		.local_port_qual = ep->local_port,
		.remote_ia_address_ptr = (DAT_IA_ADDRESS_PTR)&ep->remote,
		.remote_port_qual = ep->remote_port,
		.pz_handle = ep->pz,
		.recv_evd_handle = ep->recv_evd,
		.request_evd_handle = ep->request_evd,
		.connect_evd_handle = ep->end.connect_evd,
		.srq_handle = ep->srq,
		.ep_attr = ep->attr,
	};
	ep_unlock(ep);
	return DAT_SUCCESS;
}

/*
 * Idle as the specification defines it: nothing of that side is outstanding, except buffers of an
 * SRQ.
 */
DAT_RETURN dapl_ep_get_status(DAT_EP_HANDLE handle, DAT_EP_STATE *state, DAT_BOOLEAN *recv_idle,
			      DAT_BOOLEAN *request_idle)
{
	struct dapl_ep *ep = ep_from(handle);

	if (!ep)
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
	if (!ep_lock(ep))
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
	ep_drain(ep);
	if (state)
		*state = atomic_load_explicit(&ep->state, memory_order_relaxed);
	if (recv_idle)
		*recv_idle = dto_ring_outstanding(&ep->end.recv) ? DAT_FALSE : DAT_TRUE;
	if (request_idle)
		*request_idle = dto_ring_outstanding(&ep->end.request) ? DAT_FALSE : DAT_TRUE;
	ep_unlock(ep);
	return DAT_SUCCESS;
}

/* No device reports how many buffers of an SRQ an EP holds. */
DAT_RETURN dapl_ep_recv_query(DAT_EP_HANDLE handle, DAT_COUNT *buffers, DAT_COUNT *span)
{
	struct dapl_ep *ep = ep_from(handle);
	DAT_COUNT posted = DAT_VALUE_UNKNOWN;

	if (!ep)
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
	if (!ep_lock(ep))
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
	if (!ep->srq) {
		ep_drain(ep);
		posted = (DAT_COUNT)dto_ring_outstanding(&ep->end.recv);
	}
	ep_unlock(ep);
	if (buffers)
		*buffers = posted;
	if (span)
		*span = posted;
	return DAT_SUCCESS;
}

static bool is_watermark(DAT_COUNT value)
{
	return value >= 0 || value == DAT_WATERMARK_INFINITE;
}

/* No device counts per QP, so only the infinite watermark is valid. */
DAT_RETURN dapl_ep_set_watermark(DAT_EP_HANDLE handle, DAT_COUNT soft, DAT_COUNT hard)
{
	if (!ep_from(handle))
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
	if (!is_watermark(soft))
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
	if (!is_watermark(hard))
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
	if (soft != DAT_WATERMARK_INFINITE || hard != DAT_WATERMARK_INFINITE)
		return DAT_ERROR(DAT_MODEL_NOT_SUPPORTED, 0);
	return DAT_SUCCESS;
}
