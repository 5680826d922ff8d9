/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Asynchronous errors: from what the device reports to events on the async EVDs. */
#include "dapl/udapl/ep.h"
#include "util/log.h"

/*
 * The number of all SRQ events: DAT has none of their own, consumers go by the handle and the
 * reason.
 */
#define SRQ_EVENT DAT_ASYNC_ERROR_PROVIDER_INTERNAL_ERROR

/* Last-WQE notices that found their async EVD full, oldest first; ia_all_lock. */
static TAILQ_HEAD(, dapl_ep) waiting = TAILQ_HEAD_INITIALIZER(waiting);

/*
 * The EVD for an IA's errors: its own, or for an IA opened with DAT_EVD_ASYNC_EXISTS that of the
 * oldest other instance of the device. NULL: there is none.
 */
static struct dapl_evd *route_locked(const struct dapl_ia *ia)
{
	const struct dapl_ia *other;

	if (ia->async_evd)
		return ia->async_evd;
	TAILQ_FOREACH(other, &ia_all, all)
		if (other->device == ia->device && other->async_evd)
			return other->async_evd;
	return NULL;
}

static DAT_EVENT async_event(DAT_EVENT_NUMBER number, DAT_HANDLE handle, DAT_COUNT reason)
{
	DAT_EVENT event = { .event_number = number };

	event.event_data.asynch_error_event_data.dat_handle = handle;
	event.event_data.asynch_error_event_data.reason = reason;
	return event;
}

static void post_locked(const struct dapl_ia *ia, DAT_EVENT_NUMBER number, DAT_HANDLE handle,
			DAT_COUNT reason)
{
	struct dapl_evd *evd = route_locked(ia);
	DAT_EVENT event = async_event(number, handle, reason);

	log_at(LOG_WARN, "ia %s: async event 0x%x for %p, reason %d", ia->name, (unsigned)number,
	       handle, reason);
	if (!evd || !evd_post_or_overflow(evd, &event))
		log_at(LOG_WARN, "ia %s: that event is lost: %s", ia->name,
		       evd ? "the async EVD is full" : "no async EVD");
}

static void post(const struct dapl_ia *ia, DAT_EVENT_NUMBER number, DAT_HANDLE handle,
		 DAT_COUNT reason)
{
	pthread_mutex_lock(&ia_all_lock);
	post_locked(ia, number, handle, reason);
	pthread_mutex_unlock(&ia_all_lock);
}

void async_post_ep_broken(struct dapl_ep *ep)
{
	post(ep->obj.ia, DAT_ASYNC_ERROR_EP_BROKEN, ep, DAT_EP_TRANSFER_TO_ERROR);
}

void async_post_evd_overflow(struct dapl_evd *evd)
{
	post(evd->obj.ia, DAT_ASYNC_ERROR_EVD_OVERFLOW, evd, DAT_EVD_OVERFLOW_ERROR);
}

void async_post_srq_low(struct dapl_srq *srq)
{
	post(srq->obj.ia, SRQ_EVENT, srq, DAT_SRQ_LOW_WATERMARK_EVENT);
}

/* ---- last-WQE notices: never lost, whatever the length of the async EVD ---- */

static bool post_notice_locked(struct dapl_ep *ep)
{
	struct dapl_evd *evd = route_locked(ep->obj.ia);
	DAT_EVENT event = async_event(DAT_ASYNC_ERROR_EP_BROKEN, ep, DAT_EP_TRANSFER_TO_ERROR);

	return !evd || evd_post(evd, &event);
}

void async_post_last_wqe(struct dapl_ep *ep)
{
	pthread_mutex_lock(&ia_all_lock);
	/* Behind those that wait already: consumers go by the order. */
	if (!ep->notice_waits && (!TAILQ_EMPTY(&waiting) || !post_notice_locked(ep))) {
		TAILQ_INSERT_TAIL(&waiting, ep, waiting_notice);
		ep->notice_waits = true;
	}
	pthread_mutex_unlock(&ia_all_lock);
}

void async_cancel_last_wqe(struct dapl_ep *ep)
{
	pthread_mutex_lock(&ia_all_lock);
	if (ep->notice_waits)
		TAILQ_REMOVE(&waiting, ep, waiting_notice);
	ep->notice_waits = false;
	pthread_mutex_unlock(&ia_all_lock);
}

void async_room(struct dapl_evd *evd)
{
	struct dapl_ep *ep, *next;

	pthread_mutex_lock(&ia_all_lock);
	for (ep = TAILQ_FIRST(&waiting); ep; ep = next) {
		next = TAILQ_NEXT(ep, waiting_notice);
		if (route_locked(ep->obj.ia) != evd)
			continue;
		if (!post_notice_locked(ep))
			break;
		TAILQ_REMOVE(&waiting, ep, waiting_notice);
		ep->notice_waits = false;
	}
	pthread_mutex_unlock(&ia_all_lock);
}

/* ---- from the device ---- */

/* Nothing that completes in a CQ that overflowed is ever seen: what its endpoints do is over. */
static void cq_failed(struct dapl_evd *evd)
{
	struct dapl_ia *ia = evd->obj.ia;
	struct obj *obj;

	evd_broken(evd);
	pthread_mutex_lock(&ia->lock);
	TAILQ_FOREACH(obj, &ia->objects[OBJ_EP], link) {
		struct dapl_ep *ep = (struct dapl_ep *)obj;

		if (ep->recv_evd == evd || ep->request_evd == evd)
			ep_qp_failed(ep);
	}
	pthread_mutex_unlock(&ia->lock);
}

/* An IA hears of its device once, those that share an async EVD once together. */
static bool heard_locked(const struct dapl_ia *ia)
{
	const struct dapl_ia *before;

	TAILQ_FOREACH(before, &ia_all, all) {
		if (before == ia)
			return false;
		if (before->device == ia->device && route_locked(before) == route_locked(ia))
			return true;
	}
	return false;
}

static void device_event(const struct ib_device *device, DAT_EVENT_NUMBER number, DAT_COUNT reason)
{
	struct dapl_ia *ia;

	pthread_mutex_lock(&ia_all_lock);
	TAILQ_FOREACH(ia, &ia_all, all)
		if (ia->device == device && !heard_locked(ia))
			post_locked(ia, number, ia_handle(ia), reason);
	pthread_mutex_unlock(&ia_all_lock);
}

void async_upcall(struct ib_device *device, enum ib_async_kind kind, void *owner)
{
	struct dapl_srq *srq = owner;

	if (owner && (kind == IB_ASYNC_CQ_ERROR || kind == IB_ASYNC_QP_ERROR)) {
		struct dapl_ia *ia = ((struct obj *)owner)->ia;

		ia_count(ia, DCNT_IA_ASYNC_ERROR);
		ia_count(ia, kind == IB_ASYNC_CQ_ERROR ? DCNT_IA_ASYNC_CQ_ERROR
						       : DCNT_IA_ASYNC_QP_ERROR);
	}
	switch (kind) {
	case IB_ASYNC_CQ_ERROR:
		if (owner) /* NULL: the CQ that nobody reads, ia_no_cq */
			cq_failed(owner);
		break;
	case IB_ASYNC_QP_ERROR:
		async_post_ep_broken(owner);
		ep_qp_failed(owner);
		break;
	case IB_ASYNC_QP_LAST_WQE: ep_last_wqe(owner); break;
	case IB_ASYNC_SRQ_ERROR:
		srq_failed(srq);
		post(srq->obj.ia, SRQ_EVENT, srq, DAT_SRQ_TRANSFER_TO_ERROR);
		break;
	case IB_ASYNC_SRQ_LIMIT: srq_limit_reached(srq); break;
	case IB_ASYNC_DEVICE_FATAL:
		device_event(device, DAT_ASYNC_ERROR_IA_CATASTROPHIC, DAT_IA_CATASTROPHIC_ERROR);
		break;
	case IB_ASYNC_PORT_ERROR:
		device_event(device, DAT_ASYNC_ERROR_PROVIDER_INTERNAL_ERROR, DAT_IA_OTHER_ERROR);
		break;
	}
}
