/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Sends that wait: for a receive, for an answer, for a link; how long, and what becomes of them. */
#include <string.h>
#include "softverbs/tx.h"
#include "util/clock.h"

#define RNR_FOREVER 7
#define POKE_PAUSE  NSEC_PER_MSEC /* between looks for peers that cannot promise a doorbell */
#define TAKE_PAUSE  (200 * NSEC_PER_USEC) /* between tries of the engine to take a lock */
#define POLL_HOPE   (200 * NSEC_PER_USEC) /* that both sides poll, and need no engine to go on */

/* The responder's timer codes, in units of 10 us. */
static const uint32_t rnr_ticks[32] = {
	65536, 1,    2,	   3,	 4,    6,     8,     12,    16,	   24,	  32,
	48,    64,   96,   128,	 192,  256,   384,   512,   768,   1024,  1536,
	2048,  3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768, 49152,
};

void sq_hold_locked(struct sv_qp *qp, const struct ibv_send_wr *wr)
{
	struct sv_sq *sq = &qp->sq;
	uint32_t slot = sq->head++ & sq->mask;
	struct ibv_send_wr *held = &sq->held[slot];

	*held = *wr;
	held->next = NULL;
	held->sg_list = &sq->held_sge[(uint64_t)slot * sq->max_sge];
	if (wr->send_flags & IBV_SEND_INLINE) {
		uint8_t *data = &sq->held_inline[(uint64_t)slot * sq->max_inline], *end = data;

		for (int i = 0; i < wr->num_sge; i++) {
			memcpy(end, (const void *)(uintptr_t)wr->sg_list[i].addr,
			       wr->sg_list[i].length);
			end += wr->sg_list[i].length;
		}
		held->sg_list[0] = (struct ibv_sge){ .addr = (uintptr_t)data,
						     .length = (uint32_t)(end - data) };
		held->num_sge = wr->num_sge ? 1 : 0;
	} else if (wr->num_sge) {
		memcpy(held->sg_list, wr->sg_list, (size_t)wr->num_sge * sizeof(*wr->sg_list));
	}
}

/* Who drives the queue from now on: polls of its CQ, and the engine. */
static void sq_set_waiting(struct sv_qp *qp, bool waiting)
{
	_Atomic(uint64_t) *word = &area_own()->waiting[qp->index / 64];
	uint64_t bit = 1ull << qp->index % 64;

	if (qp->sq.waiting == waiting)
		return;
	qp->sq.waiting = waiting;
	if (waiting) {
		atomic_fetch_or_explicit(word, bit, memory_order_relaxed);
		atomic_fetch_add_explicit(&qp->send_cq->waiting, 1, memory_order_relaxed);
	} else {
		atomic_fetch_and_explicit(word, ~bit, memory_order_relaxed);
		atomic_fetch_sub_explicit(&qp->send_cq->waiting, 1, memory_order_relaxed);
	}
}

static void sq_timer_fire(struct sv_timer *timer)
{
	sq_run(container(sv_qp, sq.timer, timer));
}

static uint64_t sq_rnr_period(const struct sv_qp *qp)
{
	return rnr_ticks[atomic_load_explicit(&qp->tx.ro->min_rnr, memory_order_relaxed) & 31] *
	       10 * NSEC_PER_USEC;
}

static uint64_t ack_period(const struct sv_qp *qp)
{
	return qp->attr.timeout ? 4096ull << qp->attr.timeout : 0;
}

static void wait_begin(struct sv_qp *qp, enum sq_wait why, uint64_t now)
{
	struct sv_sq *sq = &qp->sq;

	sq->wait = (uint8_t)why;
	sq->period = 0;
	if (why == SQ_RNR && qp->attr.rnr_retry != RNR_FOREVER) {
		sq->tries = qp->attr.rnr_retry;
		sq->period = sq_rnr_period(qp);
	} else if (why == SQ_SILENT) {
		sq->tries = (uint8_t)(qp->attr.retry_cnt + 1);
		sq->period = ack_period(qp);
	} else if (why == SQ_REMOTE && !sq->engines) {
		sq->period = POLL_HOPE;
	}
	sq->deadline = sq->period ? now + sq->period : CLOCK_NEVER;
}

/* The end of what the wait allows. */
static enum ibv_wc_status wait_failure(enum sq_wait why)
{
	return why == SQ_RNR ? IBV_WC_RNR_RETRY_EXC_ERR : IBV_WC_RETRY_EXC_ERR;
}

static void wait_arm_timer(struct sv_qp *qp, enum sq_wait why, uint64_t now)
{
	struct sv_sq *sq = &qp->sq;
	uint64_t next = sq->deadline;

	if ((why == SQ_RNR || why == SQ_REMOTE) && !qp->tx.expedited && next > now + POKE_PAUSE)
		next = now + POKE_PAUSE;
	if (next != CLOCK_NEVER && !(sq->timer_at > now && sq->timer_at <= next)) {
		sq->timer_at = next;
		engine_timer_arm(&sq->timer, next, sq_timer_fire);
	}
}

int sq_wait_locked(struct sv_qp *qp, enum sq_wait why)
{
	struct sv_sq *sq = &qp->sq;
	uint64_t now = clock_now();

	if (sq->wait != why) {
		if (why == SQ_RNR && !qp->attr.rnr_retry)
			return IBV_WC_RNR_RETRY_EXC_ERR;
		wait_begin(qp, why, now);
	}
	if (why == SQ_SILENT && sq->gone && sq->tries > 1)
		sq->tries = 1; /* a dead process never answers: one period is enough to be sure */
	if (why == SQ_REMOTE && now >= sq->deadline) {
		sq->engines = true;
		sq->deadline = CLOCK_NEVER;
		return 0;
	}
	while (now >= sq->deadline) {
		if (!--sq->tries)
			return wait_failure(why);
		sq->deadline += sq->period;
	}
	if ((why != SQ_REMOTE || sq->engines) && tx_ask(qp, why))
		return 0;
	wait_arm_timer(qp, why, now);
	return EXEC_WAIT(why);
}

void sq_flush_locked(struct sv_qp *qp)
{
	struct sv_sq *sq = &qp->sq;

	while (sq->exec != sq->head)
		sq_complete_locked(qp, &sq->held[sq->exec & sq->mask], IBV_WC_WR_FLUSH_ERR);
	sq_set_waiting(qp, false);
}

void sq_drop_locked(struct sv_qp *qp)
{
	qp->sq.exec = qp->sq.head;
	qp->bounce.active = qp->bounce.taken = false;
	sq_set_waiting(qp, false);
}

void sq_run_locked(struct sv_qp *qp)
{
	struct sv_sq *sq = &qp->sq;

	while (sq->exec != sq->head) {
		const struct ibv_send_wr *wr = &sq->held[sq->exec & sq->mask];
		int state = atomic_load_explicit(&qp->state, memory_order_relaxed), status;

		if (state == IBV_QPS_ERR || state == IBV_QPS_SQE) {
			sq_flush_locked(qp);
			return;
		}
		if (state != IBV_QPS_RTS)
			break;
		status = sq_execute_locked(qp, wr);
		if (status < 0) {
			status = sq_wait_locked(qp, (enum sq_wait) - status);
			if (status < 0)
				break;
			if (!status)
				continue;
		}
		if (status != IBV_WC_SUCCESS)
			sq_fail_locked(qp);
		sq_complete_locked(qp, wr, (enum ibv_wc_status)status);
	}
	sq_set_waiting(qp, sq->exec != sq->head);
}

static void take_fire(struct sv_timer *timer)
{
	sq_run(container(sv_qp, sq.take_timer, timer));
}

/* The engine waits for nobody: whoever holds the lock may be copying for long. */
static bool sq_take(struct sv_qp *qp)
{
	if (!engine_is_self()) {
		lock_acquire(&qp->sq.lock);
		return true;
	}
	if (lock_try(&qp->sq.lock))
		return true;
	engine_timer_arm(&qp->sq.take_timer, clock_now() + TAKE_PAUSE, take_fire);
	return false;
}

void sq_run(struct sv_qp *qp)
{
	if (!sq_take(qp))
		return;
	sq_run_locked(qp);
	sq_tell_locked(qp);
	lock_release(&qp->sq.lock);
}

void sq_unreachable(struct sv_qp *qp)
{
	struct sv_sq *sq = &qp->sq;

	lock_acquire(&sq->lock);
	if (sq->exec == sq->head || sq->wait != SQ_LINKING) {
		lock_release(&sq->lock);
		return;
	}
	if (sq->service != SERVICE_RC) { /* nobody waits for an answer: it is lost */
		sq_complete_locked(qp, &sq->held[sq->exec & sq->mask], IBV_WC_SUCCESS);
		sq_run_locked(qp);
		sq_tell_locked(qp);
	} else {
		wait_begin(qp, SQ_SILENT, clock_now());
		wait_arm_timer(qp, SQ_SILENT, clock_now());
	}
	lock_release(&sq->lock);
}
