/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* What an endpoint tells about itself. */
#include "dapl/udapl/ep.h"
#include "dapl/udapl/provider.h"

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
		.connect_evd_handle = ep->connect_evd,
		.srq_handle = ep->srq,
		.ep_attr = ep->attr,
	};
	ep_unlock(ep);
	return DAT_SUCCESS;
}

/*
 * Idle as the specification has it: nothing of that side is outstanding. How much of an SRQ the
 * EP holds nobody knows.
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
		*recv_idle = dto_ring_outstanding(&ep->recv) ? DAT_FALSE : DAT_TRUE;
	if (request_idle)
		*request_idle = dto_ring_outstanding(&ep->request) ? DAT_FALSE : DAT_TRUE;
	ep_unlock(ep);
	return DAT_SUCCESS;
}

/* How many buffers of an SRQ an EP holds no device tells. */
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
		posted = (DAT_COUNT)dto_ring_outstanding(&ep->recv);
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

/* No device counts per QP, so there is no watermark but the infinite one. */
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
