/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Reserved service points: they take one request, for an endpoint that is reserved. */
#include "dapl/udapl/base/provider.h"
#include "dapl/udapl/sp/sp.h"

/* Returns the error for an EP that is not UNCONNECTED. */
static DAT_RETURN reserve(struct dapl_ep *ep)
{
	DAT_RETURN status = DAT_SUCCESS;

	if (!ep_lock(ep))
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
	/* A free that has checked the state before waits for this call. */
	if (obj_is_retired(&ep->obj))
		status = DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
	else if (!ep_set_state_locked(ep, EP_RESERVE))
		status = ep_state_error(atomic_load_explicit(&ep->state, memory_order_relaxed));
	ep_unlock(ep);
	return status;
}

static void unreserve(struct dapl_ep *ep)
{
	pthread_mutex_lock(&ep->lock);
	ep_set_state_locked(ep, EP_UNRESERVE);
	pthread_mutex_unlock(&ep->lock);
}

/*
 * The EP is reserved before the listener starts, because a request may come at once. By the written
 * specification the RSP ends with its request; consumers free it themselves.
 */
DAT_RETURN dapl_rsp_create(DAT_IA_HANDLE ia_given, DAT_CONN_QUAL qual, DAT_EP_HANDLE ep_given,
			   DAT_EVD_HANDLE evd_given, DAT_RSP_HANDLE *handle)
{
	struct dapl_ia *ia = ia_from(ia_given);
	struct dapl_ep *ep = ep_from(ep_given);
	struct dapl_evd *evd = evd_from(evd_given);
	struct dapl_sp *rsp;
	DAT_RETURN status;

	if (!ia)
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_IA);
	if (!ep || ep->obj.ia != ia)
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
	if (!evd || !(evd->flags & DAT_EVD_CR_FLAG))
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EVD_CR);
	if (!handle)
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG5);
	if (!qual)
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
	status = reserve(ep);
	if (status != DAT_SUCCESS)
		return status;

	rsp = sp_new(ia, OBJ_RSP, evd, &status);
	if (rsp) {
		rsp->ep = ep;
		rsp->qual = qual;
		status = sp_listen_qual(rsp, handle);
		if (status == DAT_SUCCESS)
			return status;
		sp_destroy(rsp);
	}
	unreserve(ep);
	return status;
}

DAT_RETURN dapl_rsp_query(DAT_RSP_HANDLE handle, DAT_RSP_PARAM_MASK mask, DAT_RSP_PARAM *param)
{
	struct dapl_sp *rsp = rsp_from(handle);

	if (!rsp)
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_RSP);
	if (!param)
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
	if (mask & ~(unsigned)DAT_RSP_FIELD_ALL)
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
	*param = (DAT_RSP_PARAM){
		.ia_handle = ia_handle(rsp->obj.ia),
		.conn_qual = rsp->qual,
		.evd_handle = rsp->evd,
		.ep_handle = rsp->ep,
	};
	return DAT_SUCCESS;
}

/* After the request has come, the EP belongs to it, or to the consumer again. */
DAT_RETURN dapl_rsp_free(DAT_RSP_HANDLE handle)
{
	struct dapl_sp *rsp = rsp_from(handle);

	if (!rsp || !obj_retire(&rsp->obj))
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_RSP);
	sp_deafen(rsp);
	if (!rsp->taken)
		unreserve(rsp->ep);
	sp_destroy(rsp);
	return DAT_SUCCESS;
}
