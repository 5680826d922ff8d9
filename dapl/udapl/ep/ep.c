/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Endpoints: the change of their state, reset and free. */
#include "dapl/udapl/ep/ud.h"
#include "dapl/udapl/base/names.h"
#include "dapl/udapl/base/provider.h"
#include "util/clock.h"
#include "util/log.h"

bool ep_set_state_locked(struct dapl_ep *ep, enum ep_event event)
{
	DAT_EP_STATE now = atomic_load_explicit(&ep->state, memory_order_relaxed), next;

	if (!ep_next(now, event, &next))
		return false;
	if (next == now)
		return true;
	log_at(LOG_TRACE, "ep %p: %s to %s", (void *)ep, ep_state_name(now), ep_state_name(next));
	/* Stored before the state, so that no completion of the new connection counts as announced. */
	if (event == EP_CONNECT || event == EP_ACCEPT)
		atomic_store_explicit(&ep->end.unannounced, true, memory_order_release);
	else if (next == DAT_EP_STATE_UNCONNECTED)
		atomic_store_explicit(&ep->end.unannounced, false, memory_order_release);
	if (event == EP_ACCEPT)
		atomic_store_explicit(&ep->accepted, false, memory_order_relaxed);
	/* release: pairs with request_state; a thread that sees the state sees the QP as it was set up for it */
	atomic_store_explicit(&ep->state, next, memory_order_release);
	lock_acquire(&ep->end.post_lock);
	ep_send_credits_update_locked(ep);
	lock_release(&ep->end.post_lock);
	return true;
}

void ep_accepted_locked(struct dapl_ep *ep)
{
	/* release: pairs with ep_accepts_requests */
	atomic_store_explicit(&ep->accepted, true, memory_order_release);
	lock_acquire(&ep->end.post_lock);
	ep_send_credits_update_locked(ep);
	lock_release(&ep->end.post_lock);
}

static void ep_detach(struct dapl_ep *ep)
{
	struct ep_config config = ep_config_of(ep);

	ep_streams_leave(ep, &config);
	if (ep->srq)
		srq_detach(ep->srq);
	if (ep->pz)
		obj_release(&ep->pz->obj);
}

/* The EP may be half-built. No task or upcall of it runs any more. */
void ep_dispose(struct dapl_ep *ep)
{
	ep_qp_destroy(ep);
	ep_detach(ep);
	pthread_cond_destroy(&ep->idle);
	pthread_mutex_destroy(&ep->lock);
	obj_free(&ep->obj, OBJ_EP);
}

void ep_busy_begin_locked(struct dapl_ep *ep)
{
	while (ep->busy || ep->leaving)
		pthread_cond_wait(&ep->idle, &ep->lock);
	ep->busy = true;
}

void ep_busy_end_locked(struct dapl_ep *ep)
{
	ep->busy = false;
	pthread_cond_broadcast(&ep->idle);
}

void ep_conn_destroy_locked(struct dapl_ep *ep, struct ib_conn *conn)
{
	if (!conn)
		return;
	ep->leaving++;
	pthread_mutex_unlock(&ep->lock);
	ib_conn_destroy(conn);
	pthread_mutex_lock(&ep->lock);
	ep->leaving--;
	pthread_cond_broadcast(&ep->idle);
}

void ep_forget_peer_locked(struct dapl_ep *ep)
{
	ep->remote = (struct sockaddr_storage){ .ss_family = AF_UNSPEC };
	ep->remote_port = ep->local_port = 0;
	ep->comm = (DAT_COMM){ 0 };
	ep->qual = 0;
	ep->cr = NULL;
}

static void forget_connection_locked(struct dapl_ep *ep)
{
	ep_forget_peer_locked(ep);
	if (ep->default_depths) {
		ep->attr.max_rdma_read_in = ep->read_in;
		ep->attr.max_rdma_read_out = ep->read_out;
	}
	ep->private_size = 0;
	ep->was_up = false;
	ep->notice_owed = false;
	ep->pending_terminal = false;
}

static struct ib_conn *conn_detach_locked(struct dapl_ep *ep)
{
	struct ib_conn *conn = ep->conn;

	ep->conn = NULL;
	return conn;
}

/* After return no upcall, task or list acts on the EP, only the caller, which has made it busy. */
static void ep_still(struct dapl_ep *ep, struct ib_conn *conn)
{
	ib_conn_destroy(conn);
	evd_ending_cancel(ep->end.connect_evd, &ep->room);
	ep_notice_cancel(ep);
	ep_silence(ep);
}

/*
 * Returns the EP to UNCONNECTED with a new QP, by the transition of `event`. A terminal event that
 * still waits for room is dropped. The caller has made the EP busy and detached its connection
 * `conn`; on return the EP is not busy.
 */
static DAT_RETURN ep_refresh(struct dapl_ep *ep, struct ib_conn *conn, enum ep_event event)
{
	struct ep_qp_parts parts = { .qp = NULL };
	DAT_RETURN status;

	ep_still(ep, conn);
	status = ep->pz ? ep_qp_renew(ep, &parts) : DAT_SUCCESS;
	/* again: the old QP may have reported an error while it was flushed */
	ep_silence(ep);

	pthread_mutex_lock(&ep->lock);
	if (status == DAT_SUCCESS) {
		forget_connection_locked(ep);
		task_reopen(&ep->task);
		ep_set_state_locked(ep, event);
		if (parts.qp)
			ep_qp_install_locked(ep, &parts);
	}
	ep_busy_end_locked(ep);
	pthread_mutex_unlock(&ep->lock);
	return status;
}

DAT_RETURN dapl_ep_reset(DAT_EP_HANDLE handle)
{
	struct dapl_ep *ep = ep_from(handle);
	struct ib_conn *conn;
	DAT_EP_STATE state;
	DAT_RETURN status;

	if (!ep || !ep_lock(ep))
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
	ep_busy_begin_locked(ep);
	state = atomic_load_explicit(&ep->state, memory_order_relaxed);
	if (state != DAT_EP_STATE_DISCONNECTED) {
		ep_busy_end_locked(ep);
		ep_unlock(ep);
		return state == DAT_EP_STATE_UNCONNECTED ? DAT_SUCCESS : ep_state_error(state);
	}
	conn = conn_detach_locked(ep);
	pthread_mutex_unlock(&ep->lock);
	status = ep_refresh(ep, conn, EP_RESET);
	obj_release(&ep->obj);
	return status;
}

/*
 * The QP may be partly connected, so it is replaced. If no new QP can be created the EP becomes
 * DISCONNECTED.
 */
void ep_accept_refused(struct dapl_ep *ep)
{
	pthread_mutex_lock(&ep->lock);
	ep_busy_begin_locked(ep);
	pthread_mutex_unlock(&ep->lock);
	if (ep_refresh(ep, NULL, EP_ACCEPT_REFUSED) == DAT_SUCCESS)
		return;
	pthread_mutex_lock(&ep->lock);
	ep_set_state_locked(ep, EP_ENDED);
	pthread_mutex_unlock(&ep->lock);
}

/*
 * A live connection is disconnected through the CM. For an attempt, ib_conn_destroy rejects or
 * abandons it.
 */
void ep_destroy(struct dapl_ep *ep)
{
	struct ib_conn *conn, *attempt;
	DAT_EP_STATE state;

	pthread_mutex_lock(&ep->lock);
	ep_busy_begin_locked(ep);
	state = atomic_load_explicit(&ep->state, memory_order_relaxed);
	if (ep->conn &&
	    (state == DAT_EP_STATE_CONNECTED || state == DAT_EP_STATE_DISCONNECT_PENDING))
		ib_conn_disconnect(ep->conn, true);
	ep->notice_owed = false;
	attempt = ep_end_locked(ep, DAT_CONNECTION_EVENT_DISCONNECTED, NULL, 0);
	conn = conn_detach_locked(ep);
	pthread_mutex_unlock(&ep->lock);

	ib_conn_destroy(attempt);
	ep_still(ep, conn);
	ud_peers_free(ep);
	obj_hide(&ep->obj, OBJ_EP);
	ep_qp_destroy(ep);
	ep_silence(ep);
	ep_dispose(ep);
}

DAT_RETURN dapl_ep_free(DAT_EP_HANDLE handle)
{
	struct dapl_ep *ep = ep_from(handle);
	DAT_EP_STATE state;
	bool retired;

	if (!ep || !ep_lock(ep))
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
	state = atomic_load_explicit(&ep->state, memory_order_relaxed);
	if (state == DAT_EP_STATE_RESERVED || state == DAT_EP_STATE_PASSIVE_CONNECTION_PENDING ||
	    state == DAT_EP_STATE_TENTATIVE_CONNECTION_PENDING) {
		ep_unlock(ep);
		return ep_state_error(state);
	}
	retired = obj_retire_in_use(&ep->obj);
	ep_unlock(ep);
	/* another thread is freeing it */
	if (!retired)
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
	obj_wait_unused(&ep->obj);
	ep_destroy(ep);
	return DAT_SUCCESS;
}
