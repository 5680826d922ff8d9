/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Connections of an endpoint: the CM's news of them, and the one event that ends each. */
#include <string.h>
#include "dapl/udapl/provider.h"
#include "dapl/udapl/sp.h"
#include "util/clock.h"
#include "util/log.h"

/*
 * Locking.
 *
 * The EP's lock guards its state and its connection. It is held while an attempt is started,
 * accepted or disconnected (none of these waits), so that an upcall of the new connection finds
 * it entered. It is not held across:
 *  - ib_conn_destroy, which waits for a running upcall, which waits for the lock. Who takes
 *    ep->conn out under the lock owns it and destroys it after giving the lock back; the upcall
 *    that comes meanwhile finds another connection in the EP, or none, and drops what it came
 *    with. Until it is over it may use the QP, so reset and free wait for that (`leaving`).
 *  - ib_timer_cancel, which waits for the timer's call. Only reset and free cancel timers; where
 *    nothing is left to wait for they are disarmed, or run out.
 *  - the wait for flushed work, nor ib_qp_destroy, which waits for an upcall of the device. Such
 *    an upcall takes no lock of an EP all the same (ep_report.c). Reset and free give the lock
 *    back in their middle; `busy` keeps the EP theirs.
 *
 * An EP that leaves AP or CP gives up its connection at once, so that a late answer of the peer
 * cannot establish it. One that leaves C or DP keeps it for the CM's own farewell, until reset or
 * free.
 *
 * Endings after CONNECTED are told by upcalls alone, which come one at a time: this is what keeps
 * last-WQE notices in the order of the terminal events.
 */

static void keep_private_data_locked(struct dapl_ep *ep, const void *data, uint32_t size)
{
	ep->private_size = size < EP_PRIVATE_DATA_MAX ? size : EP_PRIVATE_DATA_MAX;
	if (ep->private_size)
		memcpy(ep->private_data, data, ep->private_size);
}

static bool post_locked(struct dapl_ep *ep, DAT_EVENT_NUMBER number)
{
	DAT_EVENT event = {
		.event_number = number,
		.event_data.connect_event_data = {
			.ep_handle = ep,
			.private_data_size = (DAT_COUNT)ep->private_size,
			.private_data = ep->private_size ? ep->private_data : NULL,
		},
	};

	/* An EP of an RSP may be without; there is nobody to tell. */
	return !ep->connect_evd || evd_post_or_overflow(ep->connect_evd, &event);
}

void ep_post_terminal_locked(struct dapl_ep *ep)
{
	bool posted = post_locked(ep, ep->terminal);

	if (!posted) {
		/* Once more when it is listed: room that was made in between told nobody. */
		ep_pending_add_locked(ep);
		posted = post_locked(ep, ep->terminal);
	}
	ep->pending_terminal = !posted;
	if (posted) {
		ep_pending_remove(ep);
		ep_notice_queue_locked(ep);
	}
}

static bool is_attempt(DAT_EP_STATE state)
{
	return state == DAT_EP_STATE_ACTIVE_CONNECTION_PENDING ||
	       state == DAT_EP_STATE_COMPLETION_PENDING;
}

/*
 * From here on the device is told of each receive that is posted. Of those that came between the
 * error of the QP and the state it is told once more.
 */
static void recvs_end(struct dapl_ep *ep)
{
	lock_acquire(&ep->recv_lock);
	ep_recvs_bound_locked(ep);
	lock_release(&ep->recv_lock);
	if (ep->qp)
		ib_qp_error(ep->qp);
}

struct ib_conn *ep_end_locked(struct dapl_ep *ep, DAT_EVENT_NUMBER event, const void *data,
			      uint32_t size)
{
	DAT_EP_STATE was = atomic_load_explicit(&ep->state, memory_order_relaxed);
	struct ib_conn *conn = NULL;
	DAT_EP_STATE next;

	if (!ep_next(was, EP_ENDED, &next))
		return NULL;
	/* Before the state in which requests are taken to be flushed. */
	if (ep->qp)
		ib_qp_error(ep->qp);
	ep_set_state_locked(ep, EP_ENDED);
	recvs_end(ep);
	ep->was_up |= was != DAT_EP_STATE_ACTIVE_CONNECTION_PENDING;
	ep->error_since = clock_now();
	/* What finished before the end precedes its event (DAT 2.0, event streams). */
	ep_drain(ep);
	rmr_ep_ended(ep);
	if (was == DAT_EP_STATE_CONNECTED && event == DAT_CONNECTION_EVENT_DISCONNECTED &&
	    atomic_load_explicit(&ep->reports, memory_order_relaxed) & EP_REPORT_DTO_FAILED)
		event = DAT_CONNECTION_EVENT_BROKEN;
	keep_private_data_locked(ep, data, size);
	ep->terminal = event;
	log_at(LOG_TRACE, "ep %p: ends with event 0x%x", (void *)ep, (unsigned)event);
	ep_post_terminal_locked(ep);
	if (is_attempt(was)) {
		conn = ep->conn;
		ep->conn = NULL;
	}
	return conn;
}

/* A peer that announces itself on an EVD without room is better told goodbye than half known. */
static void established_locked(struct dapl_ep *ep, const void *data, uint32_t size)
{
	bool active = atomic_load_explicit(&ep->state, memory_order_relaxed) ==
		      DAT_EP_STATE_ACTIVE_CONNECTION_PENDING;
	uint8_t in, out;

	if (!ep_set_state_locked(ep, EP_ESTABLISHED))
		return;
	ia_count(ep->obj.ia, active ? DCNT_IA_CM_REP_RX : DCNT_IA_CM_RTU_RX);
	ia_count(ep->obj.ia, active ? DCNT_IA_CM_ACTIVE_EST : DCNT_IA_CM_PASSIVE_EST);
	ep_watch_begin_locked(ep);
	ep->was_up = true;
	ep->last_wqe_due = ep->srq && ep->recv_evd;
	ep->local_port = ib_conn_local_port(ep->conn);
	ep->remote_port = ib_conn_remote_port(ep->conn);
	ib_conn_depths(ep->conn, &in, &out);
	ep_depths_agreed_locked(ep, in, out);
	keep_private_data_locked(ep, data, active ? size : 0);
	if (!post_locked(ep, DAT_CONNECTION_EVENT_ESTABLISHED)) {
		log_at(LOG_WARN, "ep %p: no room for its ESTABLISHED event; it is disconnected",
		       (void *)ep);
		ep_set_state_locked(ep, EP_DISCONNECT);
		ep_cut_locked(ep);
	}
}

/*
 * A consumer's refusal begins with the version of DAT, two bytes; the CM's own refusals carry
 * zeros or nothing.
 */
static struct ib_conn *rejected_locked(struct dapl_ep *ep, const void *data, uint32_t size)
{
	const unsigned char *bytes = data;

	if (size < CR_REJECT_HEADER || bytes[0] != DAT_VERSION_MAJOR) {
		ia_count(ep->obj.ia, DCNT_IA_CM_ERR_REJ_RX);
		return ep_end_locked(ep, DAT_CONNECTION_EVENT_NON_PEER_REJECTED, NULL, 0);
	}
	ia_count(ep->obj.ia, DCNT_IA_CM_USER_REJ_RX);
	return ep_end_locked(ep, DAT_CONNECTION_EVENT_PEER_REJECTED, bytes + CR_REJECT_HEADER,
			     size - CR_REJECT_HEADER);
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
		if (event == IB_CONN_DISCONNECTED)
			ia_count(ep->obj.ia, DCNT_IA_CM_DREQ_RX);
		/* the answer to the peer's farewell */
		ib_conn_disconnect(ep->conn, false);
		return ep_end_locked(ep,
				     event == IB_CONN_DISCONNECTED
					     ? DAT_CONNECTION_EVENT_DISCONNECTED
					     : DAT_CONNECTION_EVENT_BROKEN,
				     NULL, 0);
	default:
		ib_conn_disconnect(ep->conn, false);
		return ep_end_locked(ep, DAT_CONNECTION_EVENT_DISCONNECTED, NULL, 0);
	}
}

void ep_conn_upcall(void *owner, struct ib_conn *conn, enum ib_conn_event event, const void *data,
		    uint32_t size)
{
	struct dapl_ep *ep = owner;
	struct ib_conn *dead = NULL;
	struct dapl_ia *ia;

	/* A request whose sender gave up before it was accepted: dat_cr_accept will find out. */
	if (!ep)
		return;
	ia = ep->obj.ia;
	pthread_mutex_lock(&ep->lock);
	/*
	 * An attempt that the EP gave up, or a connection whose end was told, has nothing more to
	 * say.
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
	ep_notice_run(ia);
}
