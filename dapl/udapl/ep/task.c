/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* The task of an endpoint: the event thread handles its failures, room in its EVD, and its deadlines. */
#include <stddef.h>
#include "dapl/udapl/ep/ep.h"
#include "util/clock.h"

#define FAILURES (EP_FACT_DTO_FAILED | EP_FACT_QP_FAILED | EP_FACT_DEVICE)

/* ---- failures ---- */

/*
 * A failed DTO breaks a connection that is established or pending; in DISCONNECT_PENDING the end is
 * already decided.
 */
static bool breaks_locked(const struct dapl_ep *ep)
{
	switch ((int)atomic_load_explicit(&ep->state, memory_order_relaxed)) {
	case DAT_EP_STATE_ACTIVE_CONNECTION_PENDING:
	case DAT_EP_STATE_PASSIVE_CONNECTION_PENDING:
	case DAT_EP_STATE_COMPLETION_PENDING:
	case DAT_EP_STATE_CONNECTED: return true;
	default: return false;
	}
}

/* Returns the connection to destroy, or NULL. */
static struct ib_conn *break_locked(struct dapl_ep *ep)
{
	if (!breaks_locked(ep))
		return NULL;
	if (ep->conn)
		ib_conn_disconnect(ep->conn, false); /* the peer is probably unreachable */
	return ep_end_locked(ep, DAT_CONNECTION_EVENT_BROKEN, NULL, 0);
}

/* The last-WQE notice of an SRQ EP is the same event, which is posted once. */
static void device_error_post(struct dapl_ep *ep)
{
	if (!ep->notice_owed)
		async_post_ep_broken(&ep->obj);
}

/* After the first failure the fact is set, and each later completion costs only this check. */
static void fact_set(struct dapl_ep *ep, unsigned fact, unsigned due)
{
	if (!(task_mask(&ep->task) & fact))
		task_post(&ep->task, fact | due);
}

void ep_dto_failed(struct obj *ep)
{
	fact_set((struct dapl_ep *)ep, EP_FACT_DTO_FAILED, EP_DUE_FACTS);
}

void ep_dto_flushed(struct obj *ep)
{
	fact_set((struct dapl_ep *)ep, EP_FACT_FLUSHED, 0);
}

void ep_qp_failed(struct dapl_ep *ep)
{
	fact_set(ep, EP_FACT_QP_FAILED, EP_DUE_FACTS);
}

void ep_device_error(struct dapl_ep *ep)
{
	fact_set(ep, EP_FACT_DEVICE, EP_DUE_DEVICE);
}

/* Only the notice depends on this fact, and the IA's task posts it. */
void ep_last_wqe(struct dapl_ep *ep)
{
	fact_set(ep, EP_FACT_LAST_WQE, 0);
	task_post(&ep->obj.ia->task, IA_DUE_NOTICES);
}

/* ---- completions that the consumer does not take ---- */

/*
 * Verbs report a failed request only by its completion, so a consumer that waits for connection
 * events only would wait for ever. The event thread polls periodically, at the same times for all
 * endpoints, so that one wake-up serves all of them.
 */
#define POLL_EVERY (2 * NSEC_PER_SEC)

/* Changes with each completion that is taken. */
static uint32_t retired(struct dapl_ep *ep)
{
	return atomic_load_explicit(&ep->end.request.retired, memory_order_relaxed) +
	       atomic_load_explicit(&ep->end.recv.retired, memory_order_relaxed);
}

void ep_poll_begin_locked(struct dapl_ep *ep)
{
	ep->retired_seen = retired(ep);
	ep->flushed_seen = task_mask(&ep->task) & EP_FACT_FLUSHED;
	ep_deadline_set_locked(ep, (clock_now() / POLL_EVERY + 1) * POLL_EVERY);
}

/*
 * A consumer that takes completions finds the failed one itself. If the EVD has no room for all completions, the state
 * of the QP is queried, which may be a system call; and after a flush, if the end of the connection has not come until the next
 * poll: soft-RoCE of Linux 6.12 flushes the failed request, too, and names no failure.
 */
static void ep_poll_step_locked(struct dapl_ep *ep)
{
	bool suspect = ep->flushed_seen || (ep->retired_seen == retired(ep) && !ep_drain(ep));

	if (suspect && ib_qp_is_broken(ep->qp))
		ep_qp_failed(ep);
	ep_poll_begin_locked(ep);
}

/* ---- work requests that the device does not return (ep/flush.c) ---- */

#define QUIET (100 * NSEC_PER_MSEC) /* after the last post, in which the device may return it */

static uint32_t posted(struct dapl_ep *ep)
{
	return atomic_load_explicit(&ep->end.request.posted, memory_order_relaxed) +
	       atomic_load_explicit(&ep->end.recv.posted, memory_order_relaxed);
}

void ep_flush_begin_locked(struct dapl_ep *ep)
{
	uint64_t device = ep->error_since + EP_FLUSH_WAIT, quiet = clock_now() + QUIET;

	if (!ep_may_lose(ep))
		return;
	ep->posted_seen = posted(ep);
	ep_deadline_set_locked(ep, device > quiet ? device : quiet);
}

static void flush_again_locked(struct dapl_ep *ep)
{
	if (ep->task.deadline == CLOCK_NEVER)
		ep_flush_begin_locked(ep);
}

/* Another post came, or an EVD has no room: once more. The deadline may be that of an earlier state. */
static void flush_step_locked(struct dapl_ep *ep)
{
	bool is_quiet =
		posted(ep) == ep->posted_seen && clock_now() >= ep->error_since + EP_FLUSH_WAIT;

	if (!ep->qp || !ep_may_lose(ep))
		return;
	if (!is_quiet || !ep_flush(ep, ib_qp_num(ep->qp)))
		ep_flush_begin_locked(ep);
}

/* ---- deadlines: each state has at most one ---- */

void ep_deadline_set_locked(struct dapl_ep *ep, uint64_t deadline)
{
	if (ep->busy)
		ep->task.deadline = deadline;
	else
		task_at_locked(&ep->task, deadline);
}

/* Returns the connection to destroy, or NULL. */
static struct ib_conn *step_locked(struct dapl_ep *ep)
{
	switch ((int)atomic_load_explicit(&ep->state, memory_order_relaxed)) {
	case DAT_EP_STATE_ACTIVE_CONNECTION_PENDING:
		ia_count(ep->obj.ia, DCNT_IA_CM_ERR_TIMEOUT);
		return ep_end_locked(ep, DAT_CONNECTION_EVENT_TIMED_OUT, NULL, 0);
	case DAT_EP_STATE_CONNECTED:
		if (ep->peer_disconnected)
			return ep_disconnect_step_locked(ep);
		ep_poll_step_locked(ep);
		return NULL;
	case DAT_EP_STATE_DISCONNECT_PENDING: return ep_disconnect_step_locked(ep);
	case DAT_EP_STATE_DISCONNECTED: flush_step_locked(ep); return NULL;
	default: return NULL;
	}
}

/* ---- the task ---- */

/* Returns the connection to destroy, or NULL. Only the first cause ends the connection. */
static struct ib_conn *ep_task_run_locked(struct dapl_ep *ep, unsigned mask)
{
	struct ib_conn *conn = NULL;

	if (mask & EP_DUE_DEVICE)
		device_error_post(ep);
	if (mask & FAILURES)
		conn = break_locked(ep);
	if (mask & EP_DUE_FLUSH)
		flush_again_locked(ep);
	if (ep->busy)
		return conn;
	if (mask & EP_DUE_ROOM && ep->pending_terminal)
		ep_post_terminal_locked(ep);
	if (!conn && task_deadline_passed_locked(&ep->task))
		conn = step_locked(ep);
	else
		task_resume_locked(&ep->task);
	return conn;
}

void ep_task_run(struct task *task, unsigned mask)
{
	struct dapl_ep *ep = (struct dapl_ep *)((char *)task - offsetof(struct dapl_ep, task));
	struct ib_conn *conn;

	if (mask & EP_DUE_FLIGHTS)
		rmr_flights_land(&ep->end.flights);
	pthread_mutex_lock(&ep->lock);
	conn = ep_task_run_locked(ep, mask);
	pthread_mutex_unlock(&ep->lock);
	ib_conn_destroy(conn);
}

/*
 * The data path posts the task under the lock of the completion's EVD, so after each lock was acquired once here, no
 * thread is between its check of the mask and the timer. The device's reports have ended with its QP.
 */
void ep_silence(struct dapl_ep *ep)
{
	struct dapl_evd *evds[] = { ep->recv_evd, ep->request_evd, ep->end.connect_evd };
	size_t i;

	task_close(&ep->task);
	for (i = 0; i < sizeof(evds) / sizeof(evds[0]); i++) {
		if (evds[i]) {
			lock_acquire(&evds[i]->lock);
			lock_release(&evds[i]->lock);
		}
	}
	if (task_end(&ep->task) & EP_DUE_DEVICE)
		device_error_post(ep);
}
