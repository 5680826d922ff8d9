/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * Finds slots of an SRQ that a sender took and will not fill, because it is dead or its QP
 * failed. Completes them with a flush, as hardware does, or posts them again if nothing was
 * written there yet.
 */
#include <stdlib.h>
#include <string.h>
#include "softverbs/rc/arrival.h"
#include "softverbs/object/srq.h"
#include "util/clock.h"
#include "util/log.h"

#define RECOVER_PAUSE (10 * NSEC_PER_MSEC)

/*
 * A slot is in turn posted, held by a sender, in an arrival ring, free. A search in this order
 * finds each slot that does not move, and finds a slot that moves at the latest the next time. A
 * slot that two searches did not find, and that was not posted between them, is lost.
 */

static void search_posted(struct sv_srq *srq, bool *seen)
{
	struct sv_wq *wq = &srq->wq;
	uint32_t claim;

	lock_acquire(&wq->lock);
	for (claim = atomic_load_explicit(&srq->by_peers->claim, memory_order_acquire);
	     claim != wq->posted && wq->posted - claim <= wq->mask + 1; claim++)
		seen[post_slot(wq_entry(wq, claim)) & wq->mask] = true;
	lock_release(&wq->lock);
}

/*
 * Whether the sender will not fill a slot that it has taken. A sender that stopped in the middle
 * of a copy still may.
 */
static bool is_shut_out(const struct sv_qp *qp)
{
	const struct sv_peer *peer = atomic_load_explicit(&qp->peer, memory_order_acquire);

	return (peer && atomic_load_explicit(&peer->dead, memory_order_relaxed)) ||
	       (atomic_load_explicit(&qp->rx.flush, memory_order_acquire) && !qp->lost);
}

/* Slots that live senders hold, or are about to claim. */
static void search_held(struct sv_srq *srq, bool *seen)
{
	struct sv_qp *qp;

	TAILQ_FOREACH(qp, &srq->qps, srq_entry) {
		uint32_t intent;

		if (is_shut_out(qp))
			continue;
		/* acquire: the arrival of an earlier message is seen afterwards */
		intent = atomic_load_explicit(&qp->by_peers->intent, memory_order_acquire);
		if (intent)
			seen[(intent - 1) & srq->wq.mask] = true;
	}
}

static void search_arrived(struct sv_srq *srq, bool *seen)
{
	struct sv_qp *qp;

	TAILQ_FOREACH(qp, &srq->qps, srq_entry) {
		const struct sv_rx *rx = &qp->rx;
		uint32_t head, arrival;

		/* The lock also waits for a poll that has read a slot and not released it yet. */
		lock_acquire(&qp->recv_cq->lock);
		head = atomic_load_explicit(&rx->head, memory_order_relaxed);
		for (uint32_t i = 0; rx->arrival && i <= rx->mask; i++, head++) {
			/* acquire: pairs with message_publish */
			arrival = atomic_load_explicit(&rx->arrival[head & rx->mask],
						       memory_order_acquire);
			if (arrival >> 16 != (ring_lap(head, rx->shift) & 0xffff))
				break;
			seen[arrival & 0xffff & rx->mask] = true;
		}
		lock_release(&qp->recv_cq->lock);
	}
}

static void search_free(struct sv_srq *srq, bool *seen)
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
	/* release: as in ibv_post_srq_recv */
	atomic_store_explicit(&srq->by_owner->posted, wq->posted, memory_order_release);
	lock_release(&wq->lock);
	log_at(LOG_NOTE,
	       "softverbs: srq %u: a receive that a dead process had taken is posted again",
	       srq->index);
}

/*
 * The QP whose sender had begun to fill the slot; NULL if none had. A sender that died after its
 * message was accepted may have left the slot's number in `held`, with `intent` cleared.
 */
static struct sv_qp *slot_taker(struct sv_srq *srq, uint32_t slot)
{
	struct sv_qp *qp, *taker = NULL;

	TAILQ_FOREACH(qp, &srq->qps, srq_entry)
		if (is_shut_out(qp) &&
		    atomic_load_explicit(&qp->by_peers->held, memory_order_acquire) == slot + 1 &&
		    (!taker || atomic_load_explicit(&qp->by_peers->intent, memory_order_relaxed)))
			taker = qp;
	return taker;
}

/* Appends a last message to the QP, which completes the slot with a flush. */
static void slot_flush(struct sv_srq *srq, struct sv_qp *qp, uint32_t slot)
{
	struct rx_slot *rx_slot = &srq->wq.rx_slot[slot];
	uint32_t n;

	lock_acquire(&qp->recv_cq->lock);
	n = sv_arrivals_end_locked(qp);
	atomic_store_explicit(&rx_slot->what, rx_slot_what(RX_ERROR, RX_DIRECT, 0),
			      memory_order_relaxed);
	atomic_store_explicit(&rx_slot->head, (uint64_t)IBV_WC_WR_FLUSH_ERR << 32 | (n + 1),
			      memory_order_relaxed);
	atomic_store_explicit(&qp->by_peers->seq, n + 1, memory_order_relaxed);
	/* release: the receive slot before its arrival */
	atomic_store_explicit(&qp->rx.arrival[n & qp->rx.mask],
			      ring_lap(n, qp->rx.shift) << 16 | slot, memory_order_release);
	atomic_store_explicit(&qp->by_peers->intent, 0, memory_order_relaxed);
	atomic_store_explicit(&qp->by_peers->held, 0, memory_order_relaxed);
	lock_release(&qp->recv_cq->lock);
	sv_cq_notify_recv(qp->recv_cq, qp->index);
	fence_full(); /* the message is published before; `arm` is loaded after */
	cq_fire(qp->recv_cq->by_peers, sv_peer_self(), qp->recv_cq->index, true);
	log_at(LOG_NOTE, "softverbs: qp 0x%x: a receive that its peer had begun to fill is flushed",
	       qp->ibv.qp_num);
	sv_qp_fail(qp);
}

static void slot_recover(struct sv_srq *srq, uint32_t slot)
{
	struct sv_qp *taker = slot_taker(srq, slot);

	if (taker)
		slot_flush(srq, taker, slot);
	else
		slot_post_again(srq, slot);
}

/*
 * Compares this search with the last one, and recovers slots that both missed. True if no slot is
 * in doubt.
 */
static bool search_compare(struct sv_srq *srq, uint32_t *missing, const bool *seen)
{
	bool clear = true;

	for (uint32_t slot = 0; slot <= srq->wq.mask; slot++) {
		uint32_t round = atomic_load_explicit(&srq->round[slot], memory_order_relaxed);

		if (seen[slot] || !round) {
			missing[slot] = 0;
		} else if (missing[slot] == round) {
			slot_recover(srq, slot);
			missing[slot] = 0;
		} else {
			missing[slot] = round;
			clear = false;
		}
	}
	return clear;
}

static bool srq_search_locked(struct sv_srq *srq)
{
	bool *seen = calloc(srq->wq.mask + 1, sizeof(*seen)), clear;

	if (!srq->missing)
		srq->missing = calloc(srq->wq.mask + 1, sizeof(*srq->missing));
	if (!seen || !srq->missing) {
		log_at(LOG_ERROR, "softverbs: srq %u: no memory for the search for lost receives",
		       srq->index);
		free(seen);
		return true;
	}
	search_posted(srq, seen);
	search_held(srq, seen);
	search_arrived(srq, seen);
	search_free(srq, seen);
	clear = search_compare(srq, srq->missing, seen);
	free(seen);
	return clear;
}

static void recover_fire(struct sv_timer *timer)
{
	sv_srq_recover(container_of(sv_srq, recover_timer, timer));
}

static void srq_search(struct sv_srq *srq, unsigned searches)
{
	bool clear = false;

	pthread_mutex_lock(&srq->lock);
	for (; searches && !clear; searches--)
		clear = srq_search_locked(srq);
	pthread_mutex_unlock(&srq->lock);
	if (!clear)
		sv_engine_timer_arm(&srq->recover_timer, clock_now() + RECOVER_PAUSE, recover_fire);
}

void sv_srq_recover(struct sv_srq *srq)
{
	srq_search(srq, 1);
}

void sv_srq_recover_now(struct sv_srq *srq)
{
	srq_search(srq, 2);
}
