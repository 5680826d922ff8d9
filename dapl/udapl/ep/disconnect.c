/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * dat_ep_disconnect: the call starts it, and the event thread completes it in bounded time. The peer's disconnect, while
 * requests are outstanding.
 */
#include "dapl/udapl/ep/request.h"
#include "dapl/udapl/base/provider.h"
#include "util/clock.h"

#define PEER_WAIT     (250 * NSEC_PER_MSEC) /* for the peer's answer */
#define GRACEFUL_WAIT (5 * NSEC_PER_SEC)    /* for requests to complete */
#define ANSWERS_WAIT  (20 * NSEC_PER_MSEC) /* for requests to complete after the peer's disconnect */
#define CHECK_EVERY   (1 * NSEC_PER_MSEC)

void ep_disconnect_reset_locked(struct dapl_ep *ep)
{
	ep->peer_disconnected = false;
	ep->dreq_sent = false;
	ep->marker_posted = false;
}

/*
 * Flushes, and sends a disconnect request, unless that of the peer was answered. The connection ends with the peer's
 * answer or at the deadline.
 */
void ep_abort_locked(struct dapl_ep *ep)
{
	ep->dreq_sent = true;
	if (ep->qp)
		ib_qp_error(ep->qp);
	if (!ep->peer_disconnected) {
		ia_count(ep->obj.ia, DCNT_IA_CM_DREQ_TX);
		ib_conn_disconnect(ep->conn, true);
	}
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

/* Polls for the EP, in case that the consumer does not. */
static bool answers_missing_locked(struct dapl_ep *ep)
{
	if (!ep->request_evd)
		return false;
	evd_drain(ep->request_evd);
	return dto_ring_outstanding(&ep->end.request);
}

static bool requests_done_locked(struct dapl_ep *ep)
{
	if (!answers_missing_locked(ep))
		return true;
	mark_locked(ep);
	return false;
}

/* A marker posted after the peer has left would not be answered. */
static bool is_over_locked(struct dapl_ep *ep)
{
	return clock_now() >= ep->give_up ||
	       (ep->peer_disconnected ? !answers_missing_locked(ep) : requests_done_locked(ep));
}

struct ib_conn *ep_disconnect_step_locked(struct dapl_ep *ep)
{
	bool over = ep->dreq_sent || is_over_locked(ep);

	if (over && (ep->dreq_sent || ep->peer_disconnected))
		return ep_end_locked(ep, DAT_CONNECTION_EVENT_DISCONNECTED, NULL, 0);
	if (over)
		ep_abort_locked(ep);
	else
		ep_deadline_set_locked(ep, clock_now() + CHECK_EVERY);
	return NULL;
}

/*
 * Verbs do not order the events of the CM with completions: a device may report the peer's disconnect before it has
 * handled an acknowledgement that arrived earlier (the kernel's soft-RoCE does). That request has succeeded, and must
 * not be flushed. Acknowledgements that are under way take less than 20 ms; others will not come, because the peer's QP
 * is in error. An EP that is connected remains so meanwhile: its posts are accepted, to be flushed.
 */
struct ib_conn *ep_peer_disconnected_locked(struct dapl_ep *ep)
{
	ep->peer_disconnected = true;
	ep->give_up = clock_now() + ANSWERS_WAIT;
	return ep_disconnect_step_locked(ep);
}

/* The event thread posts the terminal event, as for every connection. */
static void hasten_locked(struct dapl_ep *ep)
{
	if (!ep->dreq_sent)
		ep_abort_locked(ep);
	ep_deadline_set_locked(ep, 0);
}

static void begin_locked(struct dapl_ep *ep, bool graceful)
{
	ep_set_state_locked(ep, EP_DISCONNECT);
	ep->give_up = clock_now() + GRACEFUL_WAIT;
	if (ep->peer_disconnected)
		hasten_locked(ep);
	else if (graceful)
		ep_deadline_set_locked(ep, 0);
	else
		ep_abort_locked(ep);
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
