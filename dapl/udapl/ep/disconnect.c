/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* dat_ep_disconnect: the call starts it, and the event thread completes it in bounded time. */
#include "dapl/udapl/ep/request.h"
#include "dapl/udapl/base/provider.h"
#include "util/clock.h"

#define PEER_WAIT     (250 * NSEC_PER_MSEC) /* for the peer's answer */
#define GRACEFUL_WAIT (5 * NSEC_PER_SEC)    /* for requests to complete */
#define GRACEFUL_LOOK (1 * NSEC_PER_MSEC)

/* Flushes, and sends a disconnect request. The connection ends with the peer's answer or at the deadline. */
void ep_cut_locked(struct dapl_ep *ep)
{
	ep->dreq_sent = true;
	if (ep->qp)
		ib_qp_error(ep->qp);
	ia_count(ep->obj.ia, DCNT_IA_CM_DREQ_TX);
	ib_conn_disconnect(ep->conn, true);
	ep_deadline_set_locked(ep, clock_now() + PEER_WAIT);
}

/*
 * The completion of a signalled request retires the slots of the suppressed ones before it, so an
 * internal signalled request is posted behind the last of them. It is a write of length 0, whose key
 * is not checked. If the queue is full the next poll tries again.
 */
static void mark_locked(struct dapl_ep *ep)
{
	struct ep_request marker = {
		.work = { .op = IB_OP_WRITE, .flags = IB_POST_SIGNALED },
		.slot = { .operation = DTO_MARKER, .kind = DTO_SILENT },
	};

	if (ep->marker_posted)
		return;
	lock_acquire(&ep->end.post_lock);
	ep->marker_posted = ep_request_post_locked(ep, &marker, NULL) == DAT_SUCCESS;
	lock_release(&ep->end.post_lock);
}

static bool requests_done_locked(struct dapl_ep *ep)
{
	if (!ep->request_evd)
		return true;
	evd_drain(ep->request_evd);
	if (!dto_ring_outstanding(&ep->end.request))
		return true;
	mark_locked(ep);
	return false;
}

struct ib_conn *ep_disconnect_step_locked(struct dapl_ep *ep)
{
	if (ep->dreq_sent)
		return ep_end_locked(ep, DAT_CONNECTION_EVENT_DISCONNECTED, NULL, 0);
	if (clock_now() >= ep->give_up || requests_done_locked(ep))
		ep_cut_locked(ep);
	else
		ep_deadline_set_locked(ep, clock_now() + GRACEFUL_LOOK);
	return NULL;
}

static void begin_locked(struct dapl_ep *ep, bool graceful)
{
	ep_set_state_locked(ep, EP_DISCONNECT);
	ep->dreq_sent = false;
	ep->marker_posted = false;
	ep->give_up = clock_now() + GRACEFUL_WAIT;
	if (graceful)
		ep_deadline_set_locked(ep, 0);
	else
		ep_cut_locked(ep);
}

/* The event thread posts the terminal event, as for every connection. */
static void hasten_locked(struct dapl_ep *ep)
{
	if (!ep->dreq_sent)
		ep_cut_locked(ep);
	ep_deadline_set_locked(ep, 0);
}

DAT_RETURN dapl_ep_disconnect(DAT_EP_HANDLE handle, DAT_CLOSE_FLAGS flags)
{
	struct dapl_ep *ep = ep_from(handle);
	struct ib_conn *conn = NULL;
	DAT_RETURN status = DAT_SUCCESS;
	DAT_EP_STATE state;

	if (!ep)
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
	if (flags != DAT_CLOSE_ABRUPT_FLAG && flags != DAT_CLOSE_GRACEFUL_FLAG)
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);

	if (!ep_lock(ep))
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
	ep_count_locked(ep, DCNT_EP_DISCONNECT, 1);
	state = atomic_load_explicit(&ep->state, memory_order_relaxed);
	if (ep->end.datagrams) /* nothing is connected */
		state = DAT_EP_STATE_DISCONNECTED;
	switch ((int)state) {
	case DAT_EP_STATE_DISCONNECTED: break;
	case DAT_EP_STATE_ACTIVE_CONNECTION_PENDING:
	case DAT_EP_STATE_COMPLETION_PENDING:
		conn = ep_end_locked(ep, DAT_CONNECTION_EVENT_DISCONNECTED, NULL, 0);
		break;
	case DAT_EP_STATE_CONNECTED: begin_locked(ep, flags == DAT_CLOSE_GRACEFUL_FLAG); break;
	case DAT_EP_STATE_DISCONNECT_PENDING:
		if (flags == DAT_CLOSE_ABRUPT_FLAG)
			hasten_locked(ep);
		break;
	default: status = ep_state_error(state);
	}
	ep_conn_destroy_locked(ep, conn);
	ep_unlock(ep);
	return status;
}
