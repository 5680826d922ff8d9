/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* The common part of service points: a listener, and the delivery of its requests to the EVD. */
#include "dapl/udapl/ep/ud.h"
#include "dapl/udapl/sp/sp.h"
#include "util/log.h"

struct dapl_sp *sp_new(struct dapl_ia *ia, enum obj_kind kind, struct dapl_evd *evd,
		       DAT_RETURN *status)
{
	struct dapl_sp *sp;
	bool joined;

	pthread_mutex_lock(&ep_streams_lock);
	joined = evd_attach(evd, EVD_STREAM_OTHER, DAT_COMPLETION_DEFAULT_FLAG);
	pthread_mutex_unlock(&ep_streams_lock);
	/* Only an EVD of class SOLICITED refuses: it takes only receive completions. */
	if (!joined) {
		*status = DAT_ERROR(DAT_INVALID_STATE, DAT_INVALID_STATE_EVD_CONFIG_SOLICITED);
		return NULL;
	}
	sp = obj_new(ia, kind);
	if (!sp) {
		evd_detach(evd, EVD_STREAM_OTHER, DAT_COMPLETION_DEFAULT_FLAG);
		*status = DAT_ERROR(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_MEMORY);
		return NULL;
	}
	sp->kind = kind;
	sp->evd = evd;
	return sp;
}

DAT_RETURN sp_listen(struct dapl_sp *sp, uint16_t port, DAT_HANDLE *handle)
{
	DAT_HANDLE before = *handle;
	DAT_RETURN status;

	obj_publish(&sp->obj, sp->kind);
	*handle = sp;
	status = ib_listen(sp->obj.ia->device, port, sp, &sp->listener);
	if (status != DAT_SUCCESS) {
		obj_hide(&sp->obj, sp->kind);
		*handle = before;
		return status;
	}
	ia_count(sp->obj.ia, DCNT_IA_CM_LISTEN);
	if (sp->kind != OBJ_CSP)
		ia_count(sp->obj.ia, sp->kind == OBJ_PSP ? DCNT_IA_PSP_CREATE : DCNT_IA_RSP_CREATE);
	return DAT_SUCCESS;
}

DAT_RETURN sp_listen_qual(struct dapl_sp *sp, DAT_HANDLE *handle)
{
	uint16_t port = ib_cm.qual_port(sp->qual);

	return port ? sp_listen(sp, port, handle)
		    : DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
}

void sp_deafen(struct dapl_sp *sp)
{
	if (!sp->listener)
		return;
	ib_listener_destroy(sp->listener);
	sp->listener = NULL;
	if (sp->kind != OBJ_CSP)
		ia_count(sp->obj.ia, sp->kind == OBJ_PSP ? DCNT_IA_PSP_FREE : DCNT_IA_RSP_FREE);
}

void sp_destroy(struct dapl_sp *sp)
{
	sp_deafen(sp);
	evd_detach(sp->evd, EVD_STREAM_OTHER, DAT_COMPLETION_DEFAULT_FLAG);
	obj_free(&sp->obj, sp->kind);
}

DAT_RETURN sp_free(struct dapl_sp *sp, DAT_UINT32 subtype)
{
	if (!sp || !obj_retire(&sp->obj))
		return DAT_ERROR(DAT_INVALID_HANDLE, subtype);
	sp_destroy(sp);
	return DAT_SUCCESS;
}

/* ---- requests, in the event thread ---- */

static DAT_EVENT arrival(const struct dapl_sp *sp, const struct dapl_cr *cr,
			 const struct ib_request *request)
{
	return (DAT_EVENT){
		.event_number = request->datagrams ?
				(DAT_EVENT_NUMBER)DAT_IB_UD_CONNECTION_REQUEST_EVENT :
				DAT_CONNECTION_REQUEST_EVENT,
		.event_data.cr_arrival_event_data = {
			.sp_handle.psp_handle = (DAT_PSP_HANDLE)(uintptr_t)sp,
			.local_ia_address_ptr = (DAT_IA_ADDRESS_PTR)&sp->obj.ia->address,
			.conn_qual = sp->kind == OBJ_CSP ? ib_cm.port_qual(ib_cm.port_get(&request->local)) : sp->qual,
			.cr_handle = (DAT_CR_HANDLE)(uintptr_t)cr,
			.truncate_flag = request->size > EP_PRIVATE_DATA_MAX ? DAT_TRUE : DAT_FALSE,
		},
	};
}

static bool comes_with_ep(const struct dapl_sp *sp)
{
	return sp->kind == OBJ_RSP || sp->flags == DAT_PSP_PROVIDER_FLAG;
}

/*
 * Sets *ep to the EP that comes with the request, if one does. Returns false if none can be
 * created.
 */
static bool ep_choose(struct dapl_sp *sp, struct dapl_cr *cr)
{
	cr->comm = sp->comm;
	if (sp->kind == OBJ_RSP) {
		cr->ep = sp->ep;
	} else if (sp->flags == DAT_PSP_PROVIDER_FLAG) {
		cr->tentative = ep_create_tentative(sp->obj.ia, &cr->ep) == DAT_SUCCESS;
		return cr->tentative;
	}
	return true;
}

/*
 * The EP is in its new state before the event can be taken, and in the old one if it cannot be
 * posted.
 */
static bool request_deliver(struct dapl_sp *sp, struct dapl_cr *cr, const DAT_EVENT *event)
{
	struct dapl_ep *ep = cr->ep;
	bool posted = false;

	if (!ep)
		return evd_post_or_overflow(sp->evd, event);
	pthread_mutex_lock(&ep->lock);
	if (ep_request_locked(ep, cr)) {
		posted = evd_post_or_overflow(sp->evd, event);
		if (!posted)
			ep_request_over_locked(ep, EP_REQUEST_LOST);
	}
	pthread_mutex_unlock(&ep->lock);
	return posted;
}

/* Rejects a request whose event found no room, and frees its CR and the EP created for it. */
static void service_point_drop(struct dapl_cr *cr)
{
	struct dapl_ep *made = cr->tentative ? cr->ep : NULL;

	cr_destroy(cr);
	if (made)
		ep_destroy(made);
}

/* Requesters may send as many as they like. */
static void refusal_log(struct dapl_sp *sp)
{
	unsigned omitted;
	bool admits = log_limit_admits(&sp->refusals, &omitted);

	if (omitted)
		log_at(LOG_WARN, "service point %p: %u more lines like the next were left out",
		       (void *)sp, omitted);
	if (admits)
		log_at(LOG_WARN,
		       "service point %p: no room for a request in evd %p, or no endpoint for "
		       "it; it is refused",
		       (void *)sp, (void *)sp->evd);
}

void sp_request_upcall(void *listener_owner, struct ib_conn *conn, const struct ib_request *request)
{
	struct dapl_sp *sp = listener_owner;
	bool refused = sp->taken || (request->datagrams && comes_with_ep(sp));
	struct dapl_cr *cr = refused ? NULL : cr_create(sp->obj.ia, conn, request);
	DAT_EVENT event;

	if (!cr) {
		log_at(LOG_NOTE, "service point %p: a request is refused: %s", (void *)sp,
		       sp->taken ? "it has had its request"
		       : refused ? "its endpoints are not for datagrams"
				 : "no memory");
		ib_conn_destroy(conn);
		return;
	}
	ia_count(sp->obj.ia, DCNT_IA_SP_CR);
	ia_count(sp->obj.ia, DCNT_IA_CM_REQ_RX);
	event = arrival(sp, cr, request);
	if (request->datagrams)
		ud_event_extend(&event, DAT_IB_UD_CONNECT_REQUEST, NULL);
	if (ep_choose(sp, cr) && request_deliver(sp, cr, &event)) {
		sp->taken = sp->kind == OBJ_RSP;
		return;
	}
	refusal_log(sp);
	service_point_drop(cr);
}
