/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * The executor of a send queue: one thread at a time, which executes the requests in order. A
 * post executes its request if the queue is idle, and leaves it in the queue otherwise. Short
 * payload is copied under the lock. Longer payload is copied in chunks: the executor releases the
 * lock for each chunk, and stops when it has copied its share; polls of the CQ and the engine
 * continue. So no thread waits for more than a chunk of another thread's payload, and no post
 * copies more than its share.
 */
#include <sched.h>
#include <time.h>
#include "softverbs/rc/request.h"
#include "util/cancel.h"
#include "softverbs/object/path.h"
#include "softverbs/rc/copy.h"
#include "softverbs/rc/remote_rq.h"
#include "util/clock.h"

#define LOCK_PAUSE (200 * NSEC_PER_USEC) /* between the engine's tries to acquire a lock */

static bool sq_is_long(const struct sv_qp *qp, const struct ibv_send_wr *wr)
{
	/* datagrams are short, and nothing is copied into another host */
	return sv_wr_length(wr) > SQ_SHORT && !qp->ud && !qp->path;
}

static const struct ibv_send_wr *sq_oldest(const struct sv_sq *sq)
{
	return &sq->held[sq->exec & sq->mask];
}

/* Whether the oldest request is partly executed. There is no executor. */
static bool sq_is_begun(const struct sv_qp *qp)
{
	return qp->sq.moved || qp->bounce.active || path_is_begun_locked(qp);
}

/* In SQD, a request that is partly executed continues; the others stay in the queue. */
static bool sq_may_execute(const struct sv_qp *qp)
{
	int state = atomic_load_explicit(&qp->state, memory_order_relaxed);

	return state == IBV_QPS_RTS || (state == IBV_QPS_SQD && sq_is_begun(qp));
}

static bool sq_is_failed(const struct sv_qp *qp)
{
	int state = atomic_load_explicit(&qp->state, memory_order_relaxed);

	return state == IBV_QPS_ERR || state == IBV_QPS_SQE;
}

/* ---- executing ---- */

/*
 * Executes between two marks, for which sv_sq_quiesce waits: keys are looked up and used between
 * them.
 */
static int execute_marked(struct sv_qp *qp, const struct ibv_send_wr *wr)
{
	_Atomic(uint32_t) *mark = &sv_area_own()->executing[qp->index];
	uint32_t number = atomic_load_explicit(mark, memory_order_relaxed);
	int status;

	atomic_store_explicit(mark, number + 1, memory_order_relaxed);
	fence_light(qp->expedited); /* pairs with sv_area_barrier in sv_sq_quiesce */
	status = sv_sq_execute(qp, wr);
	/* release: memory accesses end before the mark; pairs with sv_sq_quiesce */
	atomic_store_explicit(mark, number + 2, memory_order_release);
	return status;
}

static void execution_end_locked(struct sv_qp *qp)
{
	struct sv_sq *sq = &qp->sq;

	sq->executing = false;
	if (sq->peer_is_gone)
		sv_remote_rq_unbind_locked(qp);
	sq->peer_is_gone = false;
}

/*
 * Releases the lock for the chunk and returns with it held. The caller has disabled cancellation.
 */
static int execute_chunk_locked(struct sv_qp *qp, const struct ibv_send_wr *wr)
{
	struct sv_sq *sq = &qp->sq;
	int status;

	sv_sq_notify_locked(qp);
	sq->again = false;
	sq->executing = true;
	lock_release(&sq->lock);
	status = execute_marked(qp, wr);
	lock_acquire(&sq->lock);
	execution_end_locked(qp);
	return status;
}

static int execute_oldest_locked(struct sv_qp *qp, const struct ibv_send_wr *wr, unsigned *room)
{
	bool is_long = sq_is_long(qp, wr);
	int status;

	status = is_long ? execute_chunk_locked(qp, wr) : execute_marked(qp, wr);
	if (is_long && (status >= 0 || status == EXEC_WAIT(SQ_COPYING))) {
		unsigned copied =
			sv_wr_length(wr) < COPY_PIECE ? (unsigned)sv_wr_length(wr) : COPY_PIECE;

		*room -= *room < copied ? *room : copied;
	}
	return status;
}

/* Executes the oldest request, and completes it or lets it wait. False if it waits. */
static bool sq_step_locked(struct sv_qp *qp, unsigned *room)
{
	const struct ibv_send_wr *wr = sq_oldest(&qp->sq);
	int status = execute_oldest_locked(qp, wr, room);

	if (status < 0 && (qp->sq.again || sq_is_failed(qp))) {
		qp->sq.again = false;
		return true;
	}
	if (status == EXEC_WAIT(SQ_COPYING))
		return true;
	if (status < 0) {
		status = sv_sq_wait_locked(qp, (enum sq_wait) - status);
		if (status <= 0)
			return !status;
	}
	if (status != IBV_WC_SUCCESS)
		sv_sq_fail_locked(qp);
	sv_sq_complete_locked(qp, wr, (enum ibv_wc_status)status);
	return true;
}

void sv_sq_run_locked(struct sv_qp *qp, unsigned room)
{
	struct sv_sq *sq = &qp->sq;
	bool copies = room;
	uint32_t first = sq->exec;

	if (sq->executing) {
		sq->again = true;
		return;
	}
	while (sq->exec != sq->head) {
		if (sq_is_failed(qp)) {
			sv_sq_flush_locked(qp);
			return;
		}
		if (!sq_may_execute(qp))
			break;
		if (!room && sq_is_long(qp, sq_oldest(sq))) {
			if (copies || sq->exec != first)
				sv_sq_pause_locked(qp);
			break;
		}
		if (!sq_step_locked(qp, &room))
			break;
	}
	sv_sq_set_waiting(qp, sq->exec != sq->head);
}

bool sv_sq_claim_locked(struct sv_qp *qp)
{
	struct sv_sq *sq = &qp->sq;

	if (sq->executing || sq->exec == sq->head || !sq_may_execute(qp) ||
	    !sq_is_long(qp, sq_oldest(sq)))
		return false;
	sq->executing = true;
	return true;
}

bool sv_sq_halt(struct sv_qp *qp)
{
	struct sv_sq *sq = &qp->sq;
	bool halted;

	if (!lock_try(&sq->lock))
		return false;
	halted = !sq->executing;
	sq->executing = true;
	lock_release(&sq->lock);
	return halted;
}

void sv_sq_run_claimed(struct sv_qp *qp)
{
	struct sv_sq *sq = &qp->sq;

	lock_acquire(&sq->lock);
	execution_end_locked(qp);
	sv_sq_run_locked(qp, COPY_PIECE);
	sv_sq_notify_locked(qp);
	lock_release(&sq->lock);
}

/* ---- entry points ---- */

static void lock_fire(struct sv_timer *timer)
{
	sv_sq_run(container_of(sv_qp, sq.lock_timer, timer));
}

/*
 * Acquires the lock. The engine does not wait, because the holder of the lock may be preempted:
 * it tries again by timer.
 */
static bool sq_lock_or_defer(struct sv_qp *qp)
{
	if (!sv_engine_is_self()) {
		lock_acquire(&qp->sq.lock);
		return true;
	}
	if (lock_try(&qp->sq.lock))
		return true;
	sv_engine_timer_arm(&qp->sq.lock_timer, clock_now() + LOCK_PAUSE, lock_fire);
	return false;
}

bool sv_sq_run(struct sv_qp *qp)
{
	int cancel = cancel_off();
	bool completed = false;
	uint32_t exec;

	if (sq_lock_or_defer(qp)) {
		exec = qp->sq.exec;
		sv_sq_run_locked(qp, COPY_PIECE);
		completed = qp->sq.exec != exec;
		if (!qp->sq.executing)
			sv_sq_notify_locked(qp);
		lock_release(&qp->sq.lock);
	}
	cancel_restore(cancel);
	return completed;
}

void sv_sq_peer_gone(struct sv_qp *qp)
{
	struct sv_sq *sq = &qp->sq;

	lock_acquire(&sq->lock);
	if (sq->executing) {
		sq->peer_is_gone = true;
	} else {
		sv_remote_rq_unbind_locked(qp); /* later requests find no peer */
	}
	sv_sq_run_locked(qp, COPY_PIECE);
	if (!sq->executing)
		sv_sq_notify_locked(qp);
	lock_release(&sq->lock);
}

void sv_sq_answered_locked(struct sv_qp *qp, enum ibv_wc_status status)
{
	if (status != IBV_WC_SUCCESS)
		sv_sq_fail_locked(qp);
	sv_sq_complete_locked(qp, sq_oldest(&qp->sq), status);
	sv_sq_run_locked(qp, 0);
	sv_sq_notify_locked(qp);
}

/* ---- ending ---- */

/* In the error state and RESET no thread executes, nor will. */
static void sq_stopped_locked(struct sv_qp *qp)
{
	/* release: accesses to the peer's areas have ended; pairs with initiator_has_stopped */
	atomic_store_explicit(&qp->by_owner->initiates, 0, memory_order_release);
}

void sv_sq_flush_locked(struct sv_qp *qp)
{
	struct sv_sq *sq = &qp->sq;

	if (atomic_load_explicit(&qp->state, memory_order_relaxed) == IBV_QPS_ERR)
		sq_stopped_locked(qp);
	while (sq->exec != sq->head)
		sv_sq_complete_locked(qp, sq_oldest(sq), IBV_WC_WR_FLUSH_ERR);
	sv_sq_set_waiting(qp, false);
}

void sv_sq_drop_locked(struct sv_qp *qp)
{
	struct sv_sq *sq = &qp->sq;

	sq_stopped_locked(qp);
	sq->exec = sq->head;
	sq->moved = 0;
	sq->draining = false;
	qp->bounce.active = qp->bounce.taken = false;
	sv_sq_set_waiting(qp, false);
}

bool sv_sq_drain(struct sv_qp *qp)
{
	struct sv_sq *sq = &qp->sq;
	bool draining;

	lock_acquire(&sq->lock);
	draining = sq->draining = sq->executing || sq_is_begun(qp);
	lock_release(&sq->lock);
	return draining;
}

/* Waits a moment for the executor, which may have a chunk to copy. Does not spin. */
static void executor_pause(unsigned polls)
{
	static const struct timespec pause = { .tv_nsec = 20000 };

	if (polls < 100)
		sched_yield();
	else
		nanosleep(&pause, NULL);
}

void sv_sq_lock_idle(struct sv_qp *qp)
{
	struct sv_sq *sq = &qp->sq;

	lock_acquire(&sq->lock);
	for (unsigned polls = 0; sq->executing; polls++) {
		lock_release(&sq->lock);
		executor_pause(polls);
		lock_acquire(&sq->lock);
	}
}

void sv_sq_quiesce(void)
{
	struct area *area = sv_area_own();
	uint32_t last;

	sv_area_barrier();
	pthread_mutex_lock(&area->qps.lock);
	last = area->qps.fresh - 1; /* identifiers begin with 1, indices with 0 */
	pthread_mutex_unlock(&area->qps.lock);
	for (uint32_t index = 0; index < last; index++) {
		const _Atomic(uint32_t) *mark = &area->executing[index];
		/* acquire: pairs with the second mark of execute_marked */
		uint32_t first = atomic_load_explicit(mark, memory_order_acquire);

		for (unsigned polls = 0;
		     first & 1 && atomic_load_explicit(mark, memory_order_acquire) == first;
		     polls++)
			executor_pause(polls);
	}
}
