/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Connections of an endpoint: the upcalls of the CM, and the one terminal event of each connection. */
#include <string.h>
#include "dapl/udapl/base/provider.h"
#include "dapl/udapl/ep/cr.h"
#include "util/clock.h"
#include "dapl/udapl/base/names.h"
#include "util/log.h"

/*
 * Locking.
 *
 * The EP's lock guards its state and its connection. It is held while an attempt is started,
 * accepted or disconnected (none of these blocks), so that an upcall of the new connection finds
 * it in ep->conn. It is not held across:
 *  - ib_conn_destroy, which waits for a running upcall, which waits for the lock. A thread that
 *    detaches ep->conn under the lock owns the connection and destroys it after it has released
 *    the lock. An upcall that runs in between finds another connection in the EP, or none, and
 *    returns. Until that upcall has returned it may use the QP, so reset and free wait for it
 *    (`leaving`).
 *  - ib_timer_cancel, which waits for the timer's call. Only reset and free cancel timers; other
 *    paths disarm a timer that is not needed any more, or let it expire.
 *  - the wait for flushed work, and ib_qp_destroy, which waits for an upcall of the device. (Such
 *    an upcall acquires no EP lock anyway, see ep/task.c.) Reset and free release the lock for
 *    these; `busy` excludes other threads from the EP until they are done.
 *
 * An EP that leaves ACTIVE_CONNECTION_PENDING or COMPLETION_PENDING detaches its connection at once,
 * so that a late answer of the peer cannot establish it. One that leaves CONNECTED or
 * DISCONNECT_PENDING keeps it for the disconnect handshake of the CM, until reset or free.
 *
 * After CONNECTED only upcalls end a connection, one at a time: this keeps last-WQE notices in the
 * order of the terminal events.
 */

static void keep_private_data_locked(struct dapl_ep *ep, const void *data, uint32_t size)
{
	ep->private_size = size < EP_PRIVATE_DATA_MAX ? size : EP_PRIVATE_DATA_MAX;
	if (ep->private_size)
		memcpy(ep->private_data, data, ep->private_size);
}

static DAT_EVENT connection_event_locked(struct dapl_ep *ep, DAT_EVENT_NUMBER number)
{
	return (DAT_EVENT){
		.event_number = number,
		.event_data.connect_event_data = {
			.ep_handle = ep,
			.private_data_size = (DAT_COUNT)ep->private_size,
			.private_data = ep->private_size ? ep->private_data : NULL,
		},
	};
}

/* An EP of an RSP may have no connect EVD: then no event is posted. */
void ep_post_terminal_locked(struct dapl_ep *ep)
{
	DAT_EVENT event = connection_event_locked(ep, ep->terminal);

	ep->pending_terminal =
		ep->end.connect_evd && !evd_post_ending(ep->end.connect_evd, &event, &ep->room);
	if (!ep->pending_terminal)
		ep_notice_queue_locked(ep);
}

static bool is_attempt(DAT_EP_STATE state)
{
	return state == DAT_EP_STATE_ACTIVE_CONNECTION_PENDING ||
	       state == DAT_EP_STATE_COMPLETION_PENDING;
}

/*
 * Ends the fast path of receives, so that each later post rings the device and is flushed. Receives
 * posted between the error of the QP and the change of the state are flushed by the second
 * ib_qp_error.
 */
static void recvs_end(struct dapl_ep *ep)
{
	lock_acquire(&ep->end.recv_lock);
	ep_recv_credits_update_locked(ep);
	lock_release(&ep->end.recv_lock);
	if (ep->qp)
		ib_qp_error(ep->qp);
}

static void flush_expect_locked(struct dapl_ep *ep)
{
	if (!ep->recv_evd || ep->flush_expected)
		return;
	ep->flush_expected = true;
	evd_flush_expect(ep->recv_evd);
}

struct ib_conn *ep_end_locked(struct dapl_ep *ep, DAT_EVENT_NUMBER event, const void *data,
			      uint32_t size)
{
	DAT_EP_STATE was = atomic_load_explicit(&ep->state, memory_order_relaxed);
	struct ib_conn *conn = NULL;
	DAT_EP_STATE next;

	if (!ep_next(was, EP_ENDED, &next))
		return NULL;
	/* The QP is in error before the EP enters the state that accepts requests to flush them. */
	if (ep->qp) {
		flush_expect_locked(ep);
		ib_qp_error(ep->qp);
	}
	ep_set_state_locked(ep, EP_ENDED);
	recvs_end(ep);
	ep->was_up |= was != DAT_EP_STATE_ACTIVE_CONNECTION_PENDING;
	ep->error_since = clock_now();
	/* Completions from before the end precede the terminal event (DAT 2.0, event streams). */
	ep_drain(ep);
	rmr_ep_ended(&ep->end.rmrs);
	if (was == DAT_EP_STATE_CONNECTED && event == DAT_CONNECTION_EVENT_DISCONNECTED &&
	    task_mask(&ep->task) & EP_FACT_DTO_FAILED)
		event = DAT_CONNECTION_EVENT_BROKEN;
	keep_private_data_locked(ep, data, size);
	ep->terminal = event;
	log_at(LOG_TRACE, "ep %p: ends with %s", (void *)ep, connection_event_name(event));
	ep_post_terminal_locked(ep);
	ep_flush_begin_locked(ep);
	if (is_attempt(was)) {
		conn = ep->conn;
		ep->conn = NULL;
	}
	return conn;
}

/*
 * false: the connect EVD has no room for ESTABLISHED. The caller then disconnects, rather than leave a connection that
 * the consumer never learns of.
 */
static bool established_post_locked(struct dapl_ep *ep)
{
	DAT_EVENT event = connection_event_locked(ep, DAT_CONNECTION_EVENT_ESTABLISHED);

	return !ep->end.connect_evd || evd_post_or_overflow(ep->end.connect_evd, &event);
}

static void established_locked(struct dapl_ep *ep, const void *data, uint32_t size)
{
	bool active = atomic_load_explicit(&ep->state, memory_order_relaxed) ==
		      DAT_EP_STATE_ACTIVE_CONNECTION_PENDING;
	uint8_t in, out;

	if (!ep_set_state_locked(ep, EP_ESTABLISHED))
		return;
	ia_count(ep->obj.ia, active ? DCNT_IA_CM_REP_RX : DCNT_IA_CM_RTU_RX);
	ia_count(ep->obj.ia, active ? DCNT_IA_CM_ACTIVE_EST : DCNT_IA_CM_PASSIVE_EST);
	ep_poll_begin_locked(ep);
	ep_disconnect_reset_locked(ep);
	ep->was_up = true;
	ep->notice_owed = ep->srq && ep->recv_evd;
	ep->local_port = ib_cm.port_qual(ib_conn_local_port(ep->conn));
	ep->remote_port = ib_cm.port_qual(ib_conn_remote_port(ep->conn));
	ib_conn_depths(ep->conn, &in, &out);
	ep_depths_agreed_locked(ep, in, out);
	keep_private_data_locked(ep, data, active ? size : 0);
	if (!established_post_locked(ep)) {
		log_at(LOG_WARN, "ep %p: no room for its ESTABLISHED event; it is disconnected",
		       (void *)ep);
		ep_set_state_locked(ep, EP_DISCONNECT);
		ep_abort_locked(ep);
	}
}

bool ep_reject_is_consumers(const void *data, uint32_t size)
{
	const unsigned char *bytes = data;

	return !ib_cm.reject_header ||
	       (size >= ib_cm.reject_header && bytes[0] == DAT_VERSION_MAJOR);
}

static struct ib_conn *rejected_locked(struct dapl_ep *ep, const void *data, uint32_t size)
{
	const unsigned char *bytes = data;

	if (!ep_reject_is_consumers(data, size)) {
		ia_count(ep->obj.ia, DCNT_IA_CM_ERR_REJ_RX);
		return ep_end_locked(ep, DAT_CONNECTION_EVENT_NON_PEER_REJECTED, NULL, 0);
	}
	ia_count(ep->obj.ia, DCNT_IA_CM_USER_REJ_RX);
	return ep_end_locked(ep, DAT_CONNECTION_EVENT_PEER_REJECTED, bytes + ib_cm.reject_header,
			     size - ib_cm.reject_header);
}

static struct ib_conn *active_ending_locked(struct dapl_ep *ep, enum ib_conn_event event,
					    const void *data, uint32_t size)
{
	switch (event) {
	case IB_CONN_REJECTED_BY_PEER: return rejected_locked(ep, data, size);
	case IB_CONN_REJECTED:
		ia_count(ep->obj.ia, DCNT_IA_CM_ERR_REJ_RX);
		return ep_end_locked(ep, DAT_CONNECTION_EVENT_NON_PEER_REJECTED, NULL, 0);
	case IB_CONN_DISCONNECTED:
		return ep_end_locked(ep, DAT_CONNECTION_EVENT_DISCONNECTED, NULL, 0);
	case IB_CONN_ERROR:
	case IB_CONN_DEVICE_REMOVED: return ep_end_locked(ep, DAT_CONNECTION_EVENT_BROKEN, NULL, 0);
	default: return ep_end_locked(ep, DAT_CONNECTION_EVENT_UNREACHABLE, NULL, 0);
	}
}

static struct ib_conn *ending_locked(struct dapl_ep *ep, enum ib_conn_event event, const void *data,
				     uint32_t size)
{
	switch ((int)atomic_load_explicit(&ep->state, memory_order_relaxed)) {
	case DAT_EP_STATE_ACTIVE_CONNECTION_PENDING:
		return active_ending_locked(ep, event, data, size);
	case DAT_EP_STATE_COMPLETION_PENDING:
		return ep_end_locked(ep,
				     event == IB_CONN_DEVICE_REMOVED
					     ? DAT_CONNECTION_EVENT_BROKEN
					     : DAT_CONNECTION_EVENT_ACCEPT_COMPLETION_ERROR,
				     NULL, 0);
	case DAT_EP_STATE_CONNECTED:
		/* answers the peer's disconnect request */
		ib_conn_disconnect(ep->conn, false);
		if (event != IB_CONN_DISCONNECTED)
			return ep_end_locked(ep, DAT_CONNECTION_EVENT_BROKEN, NULL, 0);
		ia_count(ep->obj.ia, DCNT_IA_CM_DREQ_RX);
		return ep_peer_disconnected_locked(ep);
	default:
		ib_conn_disconnect(ep->conn, false);
		if (event == IB_CONN_DISCONNECTED)
			return ep_peer_disconnected_locked(ep);
		return ep_end_locked(ep, DAT_CONNECTION_EVENT_DISCONNECTED, NULL, 0);
	}
}

void ep_conn_upcall(void *owner, struct ib_conn *conn, enum ib_conn_event event, const void *data,
		    uint32_t size)
{
	struct dapl_ep *ep = owner;
	struct ib_conn *dead = NULL;

	/* The sender of a request gave up before it was accepted: dat_cr_accept will fail and report it. */
	if (!ep)
		return;
	pthread_mutex_lock(&ep->lock);
	/*
	 * Upcalls of an attempt that the EP detached, or of a connection whose terminal event was
	 * posted, are ignored.
	 */
	if (ep->conn == conn) {
		if (event == IB_CONN_ESTABLISHED)
			established_locked(ep, data, size);
		else if (atomic_load_explicit(&ep->state, memory_order_relaxed) !=
			 DAT_EP_STATE_DISCONNECTED)
			dead = ending_locked(ep, event, data, size);
	}
	pthread_mutex_unlock(&ep->lock);
	ib_conn_destroy(dead);
}

/* ---- the connection request that an EP is reserved or was created for ---- */

void ep_peer_locked(struct dapl_ep *ep, const struct dapl_cr *cr)
{
	ep->comm = cr->comm;
	ep->remote = cr->remote;
	ep->remote_port = cr->param.remote_port_qual;
	ep->local_port = ib_cm.port_qual(ib_conn_local_port(cr->conn));
	ep->qual = ep->remote_port;
}

bool ep_request_locked(struct dapl_ep *ep, struct dapl_cr *cr)
{
	if (!ep_set_state_locked(ep, cr->tentative ? EP_TENTATIVE : EP_REQUEST))
		return false;
	ep->cr = cr;
	cr->param.local_ep_handle = ep;
	ep_peer_locked(ep, cr);
	return true;
}

void ep_request_over_locked(struct dapl_ep *ep, enum ep_event event)
{
	ep->cr = NULL;
	if (ep_set_state_locked(ep, event))
		ep_forget_peer_locked(ep);
}
