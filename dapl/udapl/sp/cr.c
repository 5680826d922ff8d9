/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Connection requests that arrived at a service point, until they are accepted or rejected. */
#include <string.h>
#include "dapl/udapl/ep/ud.h"
#include "dapl/udapl/base/provider.h"
#include "dapl/udapl/sp/sp.h"
#include "util/clock.h"
#include "util/log.h"

/* On success the CR owns `conn`. */
struct dapl_cr *cr_create(struct dapl_ia *ia, struct ib_conn *conn,
			  const struct ib_request *request)
{
	struct dapl_cr *cr = obj_new(ia, OBJ_CR);
	uint32_t size = request->size < EP_PRIVATE_DATA_MAX ? request->size : EP_PRIVATE_DATA_MAX;

	if (!cr)
		return NULL;
	cr->conn = conn;
	cr->remote = request->remote;
	cr->datagrams = request->datagrams;
	cr->responder_resources = request->responder_resources;
	cr->initiator_depth = request->initiator_depth;
	if (size)
		memcpy(cr->private_data, request->data, size);
	cr->param = (DAT_CR_PARAM){
		.remote_ia_address_ptr = (DAT_IA_ADDRESS_PTR)&cr->remote,
		.remote_port_qual = ib_cm.port_qual(ib_cm.port_get(&cr->remote)),
		.private_data_size = (DAT_COUNT)size,
		.private_data = cr->private_data,
	};
	obj_publish(&cr->obj, OBJ_CR);
	return cr;
}

void cr_destroy(struct dapl_cr *cr)
{
	ib_conn_destroy(cr->conn);
	obj_free(&cr->obj, OBJ_CR);
}

DAT_RETURN dapl_cr_query(DAT_CR_HANDLE handle, DAT_CR_PARAM_MASK mask, DAT_CR_PARAM *param)
{
	struct dapl_cr *cr = cr_from(handle);

	if (!cr)
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_CR);
	if (!param)
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
	if (mask & ~(unsigned)DAT_CR_FIELD_ALL)
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
	*param = cr->param;
	return DAT_SUCCESS;
}

/* ---- accept ------------------------------------------------------------------------------ */

/*
 * Returns the EP of the call or of the request, or NULL if both or neither is given, or the EP is
 * not of the requested kind.
 */
static struct dapl_ep *accepting_ep(const struct dapl_cr *cr, DAT_EP_HANDLE given)
{
	struct dapl_ep *ep = ep_from(given ? given : cr->ep);

	return !given != !cr->ep && ep && ep->end.datagrams == cr->datagrams ? ep : NULL;
}

static DAT_RETURN accept_check_locked(const struct dapl_ep *ep, const struct dapl_cr *cr)
{
	DAT_EP_STATE state = atomic_load_explicit(&ep->state, memory_order_relaxed);
	bool fits = state == DAT_EP_STATE_UNCONNECTED;

	if (cr->ep)
		fits = ep->cr == cr && (state == DAT_EP_STATE_PASSIVE_CONNECTION_PENDING ||
					state == DAT_EP_STATE_TENTATIVE_CONNECTION_PENDING);
	if (!fits)
		return ep_state_error(state);
	if (!ep->pz || !evd_from(ep->end.connect_evd) || !ep_evds_live(ep))
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
	return DAT_SUCCESS;
}

/* The agreed RDMA read depth: neither side may use more than the other offers. */
static uint8_t lesser(uint8_t ours, uint8_t offered)
{
	return ours < offered ? ours : offered;
}

static void cr_enter_locked(struct dapl_ep *ep, const struct dapl_cr *cr)
{
	ep->conn = cr->conn;
	ep_peer_locked(ep, cr);
	ep->private_size = 0;
	ep_deadline_set_locked(ep, CLOCK_NEVER);
}

/*
 * On success the EP owns the connection. If the requester has given up, the call succeeds and the
 * EP's connect EVD gets a terminal event; the CR then still owns the connection and destroys it, as
 * after a failure. Sets *undo if the caller has to undo the accept on the EP.
 */
static DAT_RETURN accept_locked(struct dapl_ep *ep, struct dapl_cr *cr, const void *data,
				DAT_COUNT size, bool *undo)
{
	struct ib_conn_param param = ep_conn_param(ep, data, size);
	DAT_RETURN status;

	param.responder_resources = lesser(param.responder_resources, cr->responder_resources);
	param.initiator_depth = lesser(param.initiator_depth, cr->initiator_depth);
	if (ep->obj.ia->device != cr->obj.ia->device)
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
	status = ep->qp ? DAT_SUCCESS : ep_qp_create_locked(ep);
	if (status != DAT_SUCCESS)
		return status;
	ep_set_state_locked(ep, EP_ACCEPT);
	ep->cr = NULL;
	cr_enter_locked(ep, cr);
	ep_depths_agreed_locked(ep, param.responder_resources, param.initiator_depth);
	status = ib_conn_accept(cr->conn, ep->qp, &param, ep);
	if (status == DAT_SUCCESS) {
		cr->conn = NULL;
		ep_accepted_locked(ep);
		return DAT_SUCCESS;
	}
	if (DAT_GET_TYPE(status) == DAT_INVALID_STATE) {
		log_at(LOG_NOTE, "ep %p: the peer gave up before its request was accepted",
		       (void *)ep);
		ep_end_locked(ep, DAT_CONNECTION_EVENT_ACCEPT_COMPLETION_ERROR, NULL, 0);
		return DAT_SUCCESS;
	}
	ep->conn = NULL;
	*undo = true;
	return status;
}

DAT_RETURN dapl_cr_accept(DAT_CR_HANDLE handle, DAT_EP_HANDLE ep_handle, DAT_COUNT size,
			  const DAT_PVOID data)
{
	struct dapl_cr *cr = cr_from(handle);
	struct dapl_ep *ep;
	bool undo = false;
	DAT_RETURN status;

	if (!cr)
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_CR);
	ep = accepting_ep(cr, ep_handle);
	if (!ep)
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
	if (size > 0 && !data)
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG4);
	if (size < 0 || (uint32_t)size > (cr->datagrams ? cr->obj.ia->attr->max_private_resolved
							: cr->obj.ia->attr->max_private_accept))
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);

	if (!ep_lock(ep))
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
	status = accept_check_locked(ep, cr);
	/* a change of the EP is about to replace its QP */
	while (status == DAT_SUCCESS && ep->busy) {
		pthread_cond_wait(&ep->idle, &ep->lock);
		status = accept_check_locked(ep, cr);
	}
	/* another thread accepts or rejects the same CR */
	if (status == DAT_SUCCESS && !obj_retire(&cr->obj))
		status = DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_CR);
	if (status != DAT_SUCCESS) {
		ep_unlock(ep);
		return status;
	}
	status = ep->end.datagrams ? ud_accept_locked(ep, cr, data, (uint32_t)size)
				   : accept_locked(ep, cr, data, size, &undo);
	if (status == DAT_SUCCESS) {
		ia_count(ep->obj.ia, DCNT_IA_SP_CR_ACCEPTED);
		ia_count(ep->obj.ia, DCNT_IA_CM_REP_TX);
	}
	/* The accept failed before it changed anything, but the request is used up. */
	if (ep->cr == cr)
		ep_request_over_locked(ep, EP_REJECT);
	pthread_mutex_unlock(&ep->lock);
	cr_destroy(cr);
	if (undo)
		ep_accept_refused(ep);
	obj_release(&ep->obj);
	return status;
}

/* ---- reject ------------------------------------------------------------------------------ */

/*
 * A CM that does not distinguish a consumer's reject from its own gets a header before the consumer's bytes: the versions
 * DAT 2.0 and provider 2.0.
 */
static DAT_RETURN reject_send(struct ib_conn *conn, const void *data, uint32_t size)
{
	unsigned char bytes[4 + EP_PRIVATE_DATA_MAX] = { 2, 0, 2, 0 };

	if (size)
		memcpy(bytes + ib_cm.reject_header, data, size);
	return ib_conn_reject(conn, bytes, ib_cm.reject_header + size);
}

static uint32_t reject_max(const struct dapl_cr *cr)
{
	const struct ib_attr *attr = cr->obj.ia->attr;
	uint32_t carried = cr->datagrams ? attr->max_private_resolved : attr->max_private_reject;

	if (carried > ib_cm.reject_header + EP_PRIVATE_DATA_MAX)
		carried = ib_cm.reject_header + EP_PRIVATE_DATA_MAX;
	return carried > ib_cm.reject_header ? carried - ib_cm.reject_header : 0;
}

/* The EP of an RSP returns to the consumer, with its posted receives. An EP created for the request is destroyed. */
static void reject_ep(struct dapl_cr *cr)
{
	struct dapl_ep *ep = cr->ep ? ep_from(cr->ep) : NULL;
	bool gone = false;

	if (!ep || !ep_lock(ep))
		return;
	if (ep->cr == cr) {
		ep_request_over_locked(ep, EP_REJECT);
		gone = cr->tentative && obj_retire_in_use(&ep->obj);
	}
	ep_unlock(ep);
	if (!gone)
		return;
	obj_wait_unused(&ep->obj);
	ep_destroy(ep);
}

DAT_RETURN dapl_cr_reject(DAT_CR_HANDLE handle, DAT_COUNT size, const DAT_PVOID data)
{
	struct dapl_cr *cr = cr_from(handle);
	DAT_RETURN status;

	if (!cr)
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_CR);
	if (size < 0 || (uint32_t)size > reject_max(cr))
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
	if (size && !data)
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
	if (!obj_retire(&cr->obj))
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_CR);

	status = reject_send(cr->conn, data, (uint32_t)size);
	ia_count(cr->obj.ia, DCNT_IA_SP_CR_REJECTED);
	ia_count(cr->obj.ia, DCNT_IA_CM_USER_REJ_TX);
	reject_ep(cr);
	cr_destroy(cr);
	/*
	 * The CM drops a request whose sender gave up and refuses an answer to it; no requester is
	 * left to reject.
	 */
	if (DAT_GET_TYPE(status) == DAT_INVALID_STATE ||
	    DAT_GET_TYPE(status) == DAT_INVALID_PARAMETER)
		return DAT_SUCCESS;
	return status;
}

/* No transport can redirect a requester. The request stays open for accept or reject. */
DAT_RETURN dapl_cr_handoff(DAT_CR_HANDLE handle, DAT_CONN_QUAL qual)
{
	(void)qual;
	if (!cr_from(handle))
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_CR);
	return DAT_ERROR(DAT_MODEL_NOT_SUPPORTED, 0);
}
