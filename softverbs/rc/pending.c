/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Sends that wait for a receive, an answer, or a link: how long they wait, and how they end. */
#include <string.h>
#include "softverbs/object/path.h"
#include "softverbs/rc/copy.h"
#include "softverbs/rc/mw.h"
#include "softverbs/rc/remote_rq.h"
#include "softverbs/rc/request.h"
#include "util/clock.h"

#define RNR_FOREVER 7
#define POKE_PAUSE  NSEC_PER_MSEC	 /* between polls of peers that cannot promise a doorbell */
#define POLL_PAUSE  (50 * NSEC_PER_USEC) /* then the engine, not a poll, continues a long copy */
#define POLL_HOPE   (200 * NSEC_PER_USEC) /* both sides are expected to poll, without engines */
#define ASK_PAUSE   NSEC_PER_SEC	  /* between tries whose number is not limited */

/* By the responder's RNR timer code: the time in units of 10 us. */
static const uint32_t rnr_ticks[32] = {
	65536, 1,    2,	   3,	 4,    6,     8,     12,    16,	   24,	  32,
	48,    64,   96,   128,	 192,  256,   384,   512,   768,   1024,  1536,
	2048,  3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768, 49152,
};

void sv_sq_hold_locked(struct sv_qp *qp, const struct ibv_send_wr *wr)
{
	struct sv_sq *sq = &qp->sq;
	uint32_t slot = sq->head++ & sq->mask;
	struct ibv_send_wr *held = &sq->held[slot];

	*held = *wr;
	held->next = NULL;
	if (wr->opcode == IBV_WR_BIND_MW)
		sv_mw_hold_bind(held);
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

void sv_sq_set_waiting(struct sv_qp *qp, bool waiting)
{
	_Atomic(uint64_t) *word = &sv_area_own()->waiting[qp->index / 64];
	uint64_t bit = 1ull << qp->index % 64;

	if (qp->sq.waiting == waiting)
		return;
	qp->sq.waiting = waiting;
	if (qp->path)
		return; /* only answers continue it: polls and doorbells would hold its lock in vain */
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
	sv_sq_run(container_of(sv_qp, sq.timer, timer));
}

static uint64_t sq_rnr_period(const struct sv_qp *qp)
{
	return rnr_ticks[atomic_load_explicit(&qp->remote_rq.by_owner->min_rnr,
					      memory_order_relaxed) &
			 31] *
	       10 * NSEC_PER_USEC;
}

/* A timeout of 0 means that tries have no end. */
static uint64_t ack_period(const struct sv_qp *qp)
{
	return qp->attr.timeout ? 4096ull << qp->attr.timeout : ASK_PAUSE;
}

static bool tries_are_over(struct sv_qp *qp, enum sq_wait why)
{
	return (why != SQ_SILENT || qp->attr.timeout) && !--qp->sq.tries;
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

/* The status when a wait runs out of tries. */
static enum ibv_wc_status wait_failure(enum sq_wait why)
{
	return why == SQ_RNR ? IBV_WC_RNR_RETRY_EXC_ERR : IBV_WC_RETRY_EXC_ERR;
}

static void wait_arm_timer(struct sv_qp *qp, enum sq_wait why, uint64_t now)
{
	struct sv_sq *sq = &qp->sq;
	uint64_t next = sq->deadline;

	if ((why == SQ_RNR || why == SQ_REMOTE) && !qp->remote_rq.expedited &&
	    next > now + POKE_PAUSE)
		next = now + POKE_PAUSE;
	if (next != CLOCK_NEVER && !(sq->timer_at > now && sq->timer_at <= next)) {
		sq->timer_at = next;
		sv_engine_timer_arm(&sq->timer, next, sq_timer_fire);
	}
}

int sv_sq_wait_locked(struct sv_qp *qp, enum sq_wait why)
{
	struct sv_sq *sq = &qp->sq;
	uint64_t now;

	if (why == SQ_SENT) {
		sq->wait = SQ_SENT;
		/* in SQD a request that was sent is answered, and no further one is sent */
		return qp->path && atomic_load_explicit(&qp->state, memory_order_relaxed) ==
					       IBV_QPS_RTS
			       ? qp->path->ops->push_locked(qp)
			       : EXEC_WAIT(SQ_SENT);
	}
	now = clock_now();
	/* A link that is tried again belongs to the wait for an answer, which goes on. */
	if (why == SQ_LINKING && sq->wait == SQ_SILENT)
		why = SQ_SILENT;
	if (sq->wait != why) {
		if (why == SQ_RNR && !qp->attr.rnr_retry)
			return IBV_WC_RNR_RETRY_EXC_ERR;
		wait_begin(qp, why, now);
	}
	if (why == SQ_SILENT && sq->gone && sq->tries > 1)
		sq->tries = 1; /* a dead process never answers: one period is enough */
	if (why == SQ_REMOTE && now >= sq->deadline) {
		sq->engines = true;
		sq->deadline = CLOCK_NEVER;
		return 0;
	}
	while (now >= sq->deadline) {
		if (tries_are_over(qp, why))
			return wait_failure(why);
		sq->deadline += sq->period;
	}
	/* Before it asks: the engine executes what waits as soon as the doorbell comes. */
	sv_sq_set_waiting(qp, true);
	if ((why != SQ_REMOTE || sq->engines) && !qp->path && sv_remote_rq_ask(qp, why))
		return 0;
	wait_arm_timer(qp, why, now);
	return EXEC_WAIT(why);
}

void sv_sq_retry_at_locked(struct sv_qp *qp, uint64_t at)
{
	qp->sq.timer_at = at;
	sv_engine_timer_arm(&qp->sq.timer, at, sq_timer_fire);
}

void sv_sq_pause_locked(struct sv_qp *qp)
{
	struct sv_sq *sq = &qp->sq;

	sq->wait = SQ_GOES;
	sq->timer_at = clock_now() + (sv_engine_is_self() ? 0 : POLL_PAUSE);
	sv_engine_timer_arm(&sq->timer, sq->timer_at, sq_timer_fire);
}

void sv_sq_unreachable(struct sv_qp *qp)
{
	struct sv_sq *sq = &qp->sq;

	lock_acquire(&sq->lock);
	if (sq->exec == sq->head || sq->executing || sq->wait != SQ_LINKING) {
		sq->again |= sq->executing;
		lock_release(&sq->lock);
		return;
	}
	if (sq->service !=
	    SERVICE_RC) { /* unreliable: the message is dropped, the request succeeds */
		sv_sq_complete_locked(qp, &sq->held[sq->exec & sq->mask], IBV_WC_SUCCESS);
		sv_sq_run_locked(qp, COPY_PIECE);
		if (!sq->executing)
			sv_sq_notify_locked(qp);
	} else {
		wait_begin(qp, SQ_SILENT, clock_now());
		wait_arm_timer(qp, SQ_SILENT, clock_now());
	}
	lock_release(&sq->lock);
}
