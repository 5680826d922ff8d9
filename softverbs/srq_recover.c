/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Slots of a shared receive queue that a dead sender had taken: found, and posted again. */
#include <stdlib.h>
#include <string.h>
#include "softverbs/srq.h"
#include "util/clock.h"
#include "util/log.h"

#define RECOVER_PAUSE (10 * NSEC_PER_MSEC)

/*
 * A slot goes round: posted, held by a sender, in an arrival ring, free. A look in this order sees
 * every slot that stays where it is, and one that moves at least in the next look. What two looks
 * do not see, and was not posted in between, is lost.
 */

static void look_posted(struct sv_srq *srq, bool *seen)
{
	struct sv_wq *wq = &srq->wq;
	uint32_t claim;

	lock_acquire(&wq->lock);
	for (claim = atomic_load_explicit(&srq->rw->claim, memory_order_acquire);
	     claim != wq->posted && wq->posted - claim <= wq->mask + 1; claim++)
		seen[post_slot(wq_entry(wq, claim)) & wq->mask] = true;
	lock_release(&wq->lock);
}

/* False: a living sender is just taking a slot; which one is not written down yet. */
static bool look_held(struct sv_srq *srq, bool *seen)
{
	struct sv_qp *qp;

	TAILQ_FOREACH(qp, &srq->qps, srq_entry) {
		const struct sv_peer *peer = atomic_load_explicit(&qp->peer, memory_order_acquire);
		uint32_t held;

		if (peer && atomic_load_explicit(&peer->dead, memory_order_relaxed))
			continue;
		/* acquire: written after the claim */
		held = atomic_load_explicit(&qp->rw->held, memory_order_acquire);
		if (held)
			seen[(held - 1) & srq->wq.mask] = true;
		else if (atomic_load_explicit(&qp->rw->intent, memory_order_acquire))
			return false;
	}
	return true;
}

static void look_arrived(struct sv_srq *srq, bool *seen)
{
	struct sv_qp *qp;

	TAILQ_FOREACH(qp, &srq->qps, srq_entry) {
		const struct sv_rx *rx = &qp->rx;
		uint32_t head, arrival;

		/* also waits for a poll that has taken a slot and not yet given it back */
		lock_acquire(&qp->recv_cq->lock);
		head = atomic_load_explicit(&rx->head, memory_order_relaxed);
		for (uint32_t i = 0; rx->arrival && i <= rx->mask; i++, head++) {
			/* acquire: as polls do */
			arrival = atomic_load_explicit(&rx->arrival[head & rx->mask],
						       memory_order_acquire);
			if (arrival >> 16 != (ring_lap(head, rx->shift) & 0xffff))
				break;
			seen[arrival & 0xffff & rx->mask] = true;
		}
		lock_release(&qp->recv_cq->lock);
	}
}

static void look_free(struct sv_srq *srq, bool *seen)
{
	lock_acquire(&srq->wq.lock);
	for (uint32_t i = 0, n = srq->free_head; i <= srq->wq.mask; i++, n++) {
		uint32_t entry =
			atomic_load_explicit(&srq->free[n & srq->wq.mask], memory_order_acquire);

		if (entry >> 16 == (ring_lap(n, srq->wq.shift) & 0xffff))
			seen[entry & 0xffff & srq->wq.mask] = true;
	}
	lock_release(&srq->wq.lock);
}

static void slot_post_again(struct sv_srq *srq, uint32_t slot)
{
	struct sv_wq *wq = &srq->wq;
	struct ibv_recv_wr wr = {
		.wr_id = wq->wr_id[slot],
		.num_sge = (int)wq->max_sge,
		.sg_list = &wq->sge[(uint64_t)slot * wq->max_sge],
	};

	lock_acquire(&wq->lock);
	atomic_fetch_add_explicit(&srq->round[slot], 1, memory_order_relaxed);
	wq_put_locked(wq, wq->posted, slot, &wr);
	atomic_store_explicit(&srq->ro->posted, wq->posted, memory_order_relaxed);
	lock_release(&wq->lock);
	log_at(LOG_NOTE,
	       "softverbs: srq %u: a receive that a dead process had taken is posted again",
	       srq->index);
}

/* The second of two looks decides. True: nothing is in doubt. */
static bool look_compare(struct sv_srq *srq, uint32_t *missing, const bool *seen)
{
	bool clear = true;

	for (uint32_t slot = 0; slot <= srq->wq.mask; slot++) {
		uint32_t round = atomic_load_explicit(&srq->round[slot], memory_order_relaxed);

		if (seen[slot] || !round) {
			missing[slot] = 0;
		} else if (missing[slot] == round) {
			slot_post_again(srq, slot);
			missing[slot] = 0;
		} else {
			missing[slot] = round;
			clear = false;
		}
	}
	return clear;
}

static bool srq_look_locked(struct sv_srq *srq)
{
	bool *seen = calloc(srq->wq.mask + 1, sizeof(*seen)), clear;

	if (!srq->missing)
		srq->missing = calloc(srq->wq.mask + 1, sizeof(*srq->missing));
	if (!seen || !srq->missing) {
		log_at(LOG_ERROR, "softverbs: srq %u: no memory to look for lost receives",
		       srq->index);
		free(seen);
		return true;
	}
	look_posted(srq, seen);
	clear = look_held(srq, seen);
	if (clear) {
		look_arrived(srq, seen);
		look_free(srq, seen);
		clear = look_compare(srq, srq->missing, seen);
	}
	free(seen);
	return clear;
}

static void recover_fire(struct sv_timer *timer)
{
	srq_recover(container(sv_srq, recover_timer, timer));
}

void srq_recover(struct sv_srq *srq)
{
	bool clear;

	pthread_mutex_lock(&srq->lock);
	clear = srq_look_locked(srq);
	pthread_mutex_unlock(&srq->lock);
	if (!clear)
		engine_timer_arm(&srq->recover_timer, clock_now() + RECOVER_PAUSE, recover_fire);
}
