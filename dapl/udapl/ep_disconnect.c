/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* dat_ep_disconnect: asked by the consumer, done by the event thread, in bounded time. */
#include "dapl/udapl/ep.h"
#include "dapl/udapl/provider.h"
#include "util/clock.h"

#define PEER_WAIT     (250 * NSEC_PER_MSEC) /* for the peer's answer */
#define GRACEFUL_WAIT (5 * NSEC_PER_SEC)    /* for requests to complete */
#define GRACEFUL_LOOK (1 * NSEC_PER_MSEC)

/* Flushes, and tells the peer; the end comes with its answer or without it. */
void ep_cut_locked(struct dapl_ep *ep)
{
	ep->cut = true;
	if (ep->qp)
		ib_qp_error(ep->qp);
	ia_count(ep->obj.ia, DCNT_IA_CM_DREQ_TX);
	ib_conn_disconnect(ep->conn, true);
	ep_timer_arm_locked(ep, clock_now() + PEER_WAIT);
}

/*
 * Suppressed requests give their slots back with the next signalled one; behind the last of them
 * goes an internal one. It writes nothing, so no key is looked at. With the queue full the next
 * look tries again.
 */
static void mark_locked(struct dapl_ep *ep)
{
	static const DAT_RMR_TRIPLET nowhere;
	struct dto_ring *ring = &ep->request;
	uint32_t posted, index;

	if (ep->marked)
		return;
	lock_acquire(&ep->post_lock);
	posted = atomic_load_explicit(&ring->posted, memory_order_relaxed);
	index = posted & ring->mask;
	if (dto_ring_outstanding(ring) < ring->depth) {
		ring->slots[index] =
			(struct dto_slot){ .operation = DTO_MARKER, .special = DTO_SILENT };
		if (ib_post_send(ep->qp, IB_OP_WRITE | IB_POST_SIGNALED,
				 dto_id(DTO_REQUEST, &ep->obj, index), NULL, 0,
				 &nowhere) == DAT_SUCCESS) {
			ring->signalled = posted;
			/* release: whoever counts what is outstanding sees the slot */
			atomic_store_explicit(&ring->posted, posted + 1, memory_order_release);
			ep->marked = true;
			ep_requests_bound_locked(ep);
		}
	}
	lock_release(&ep->post_lock);
}

static bool requests_done_locked(struct dapl_ep *ep)
{
	if (!ep->request_evd)
		return true;
	evd_drain(ep->request_evd);
	if (!dto_ring_outstanding(&ep->request))
		return true;
	mark_locked(ep);
	return false;
}

struct ib_conn *ep_disconnect_step_locked(struct dapl_ep *ep)
{
	if (ep->cut)
		return ep_end_locked(ep, DAT_CONNECTION_EVENT_DISCONNECTED, NULL, 0);
	if (clock_now() >= ep->give_up || requests_done_locked(ep))
		ep_cut_locked(ep);
	else
		ep_timer_arm_locked(ep, clock_now() + GRACEFUL_LOOK);
	return NULL;
}

static void begin_locked(struct dapl_ep *ep, bool graceful)
{
	ep_set_state_locked(ep, EP_DISCONNECT);
	ep->cut = false;
	ep->marked = false;
	ep->give_up = clock_now() + GRACEFUL_WAIT;
	if (graceful)
		ep_timer_arm_locked(ep, 0);
	else
		ep_cut_locked(ep);
}

/* The end is told by the event thread, like every end of a connection. */
static void hasten_locked(struct dapl_ep *ep)
{
	if (!ep->cut)
		ep_cut_locked(ep);
	ep_timer_arm_locked(ep, 0);
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
	if (ep->datagrams) /* nothing is connected */
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
