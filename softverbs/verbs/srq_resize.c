/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Growth of a shared receive queue: all posted, claimed and arrived entries move to larger rings. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "softverbs/object/quiesce.h"
#include "softverbs/object/srq.h"
#include "softverbs/rc/rc.h"
#include "softverbs/verbs/qp.h"
#include "util/log.h"

/* Held by a thread that attaches a QP to an SRQ or detaches one, and by a resize, which therefore finds each
 * QP complete. Acquired before a QP's modify. */
static pthread_mutex_t shape = PTHREAD_MUTEX_INITIALIZER;

struct resize {
	struct sv_srq *srq;
	struct sv_wq wq; /* the new queue; after the exchange the old one */
	_Atomic(uint32_t) *free, *round;
	uint32_t qps, cqs;
	struct resize_qp {
		struct sv_qp *qp;
		bool published;
		_Atomic(uint32_t) *arrival;
		uint64_t arrival_offset;
	} * qp;
	struct sv_cq **cq; /* without duplicates */
};

void sv_srq_shape_lock(const struct sv_srq *srq)
{
	if (srq)
		pthread_mutex_lock(&shape);
}

void sv_srq_shape_unlock(const struct sv_srq *srq)
{
	if (srq)
		pthread_mutex_unlock(&shape);
}

void sv_srq_shape_fork_child(void)
{
	pthread_mutex_init(&shape, NULL);
}

/* ---- memory ---- */

static int qps_list(struct resize *r)
{
	struct sv_qp *qp;

	TAILQ_FOREACH(qp, &r->srq->qps, srq_entry)
		r->qps++;
	r->qp = calloc(r->qps + 1, sizeof(*r->qp));
	r->cq = calloc(r->qps + 1, sizeof(*r->cq));
	if (!r->qp || !r->cq)
		return ENOMEM;
	r->qps = 0;
	TAILQ_FOREACH(qp, &r->srq->qps, srq_entry) {
		uint32_t i = 0;

		r->qp[r->qps++].qp = qp;
		while (i < r->cqs && r->cq[i] != qp->recv_cq)
			i++;
		r->cq[i] = qp->recv_cq;
		r->cqs += i == r->cqs;
	}
	return 0;
}

static int rings_make(struct resize *r, uint32_t entries)
{
	const struct sv_wq *old = &r->srq->wq;
	int err = sv_wq_open(&r->wq, entries, old->max_sge, old->pd);
	uint64_t size = r->wq.mask + 1;

	r->free = sv_heap_alloc(HEAP_OWN, size * sizeof(*r->free), NULL);
	r->round = sv_heap_alloc_zero(HEAP_OWN, size * sizeof(*r->round), NULL);
	if (err || !r->free || !r->round)
		return ENOMEM;
	for (uint32_t i = 0; i < r->qps; i++) {
		if (r->qp[i].qp->ud)
			continue;
		r->qp[i].arrival = sv_heap_alloc(HEAP_BY_PEERS, size * sizeof(uint32_t),
						 &r->qp[i].arrival_offset);
		if (!r->qp[i].arrival)
			return ENOMEM;
	}
	return 0;
}

/* Frees the rings: those that were allocated so far, or after the exchange the old ones. */
static void ring_pair_free(struct resize *r)
{
	uint64_t size = r->wq.mask + 1;

	if (!r->wq.max_sge)
		return;
	for (uint32_t i = 0; i < r->qps; i++)
		if (!r->qp[i].qp->lost)
			sv_heap_free(HEAP_BY_PEERS, (void *)r->qp[i].arrival,
				     size * sizeof(uint32_t));
	sv_heap_free(HEAP_OWN, (void *)r->free, size * sizeof(*r->free));
	sv_heap_free(HEAP_OWN, (void *)r->round, size * sizeof(*r->round));
	sv_wq_close(&r->wq, r->srq->lost);
}

/* ---- move ---- */

/* In a new ring, a slot without an entry holds the lap before its next one, since zero, as in fresh memory,
 * is a valid lap. */
static void arrivals_move(const struct sv_rx *rx, struct resize_qp *to, const struct sv_wq *wq)
{
	uint32_t n = atomic_load_explicit(&rx->head, memory_order_relaxed), end = n + rx->mask + 1;

	if (!rx->arrival)
		return; /* datagrams are matched with receives when they are read */
	for (; n != end; n++) {
		uint32_t arrival =
			atomic_load_explicit(&rx->arrival[n & rx->mask], memory_order_acquire);

		if (arrival >> 16 != (ring_lap(n, rx->shift) & 0xffff))
			break;
		atomic_store_explicit(&to->arrival[n & wq->mask],
				      ring_lap(n, wq->shift) << 16 | (arrival & 0xffff),
				      memory_order_relaxed);
	}
	end = atomic_load_explicit(&rx->head, memory_order_relaxed) + wq->mask + 1;
	for (; n != end; n++)
		atomic_store_explicit(&to->arrival[n & wq->mask],
				      (ring_lap(n, wq->shift) - 1) << 16, memory_order_relaxed);
}

/* Receive slots keep their numbers, so senders' claims and arrived messages remain valid. */
static void posted_move(const struct sv_wq *from, struct sv_wq *to, uint32_t claim)
{
	uint64_t slots = from->mask + 1;
	uint32_t n = from->posted - claim <= slots ? claim : from->posted, first = n;

	for (; n != from->posted; n++) {
		uint64_t entry = wq_entry(from, n), kept = entry & UINT64_MAX >> 16;

		atomic_store_explicit(&to->post[n & to->post_mask],
				      post_pack(ring_lap(n, to->post_shift), 0, 0) | kept,
				      memory_order_relaxed);
	}
	for (uint32_t end = first + to->post_mask + 1; n != end; n++)
		atomic_store_explicit(&to->post[n & to->post_mask],
				      post_pack(ring_lap(n, to->post_shift) - 1, 0, 0),
				      memory_order_relaxed);
	wq_continue(to, from->posted);
	memcpy(to->sge, from->sge, slots * from->max_sge * sizeof(*to->sge));
	memcpy(to->wr_id, from->wr_id, slots * sizeof(*to->wr_id));
	memcpy(to->rx_slot, from->rx_slot, slots * sizeof(*to->rx_slot));
	memcpy(rx_slot_ext(to->rx_slot, to->mask, 0), rx_slot_ext(from->rx_slot, from->mask, 0),
	       slots * sizeof(struct rx_slot_ext));
}

static void free_move(const struct sv_srq *srq, struct resize *r)
{
	const struct sv_wq *old = &srq->wq, *new = &r->wq;
	uint32_t n = srq->free_head,
		 tail = atomic_load_explicit(&srq->free_tail, memory_order_relaxed), slot;

	for (; n != tail; n++) {
		slot = atomic_load_explicit(&srq->free[n & old->mask], memory_order_acquire);
		atomic_store_explicit(&r->free[n & new->mask],
				      ring_lap(n, new->shift) << 16 | (slot & 0xffff),
				      memory_order_relaxed);
	}
	for (slot = old->mask + 1; slot <= new->mask; slot++, n++)
		atomic_store_explicit(&r->free[n & new->mask], ring_lap(n, new->shift) << 16 | slot,
				      memory_order_relaxed);
	for (tail = n; n != srq->free_head + new->mask + 1; n++)
		atomic_store_explicit(&r->free[n & new->mask], (ring_lap(n, new->shift) - 1) << 16,
				      memory_order_relaxed);
	for (slot = 0; slot <= old->mask; slot++)
		atomic_store_explicit(&r->round[slot],
				      atomic_load_explicit(&srq->round[slot], memory_order_relaxed),
				      memory_order_relaxed);
}

#define EXCHANGE(a, b)                     \
	do {                               \
		__typeof__(a) kept_ = (a); \
		(a) = (b);                 \
		(b) = kept_;               \
	} while (0)

static void qp_exchange(struct resize *r, struct resize_qp *to)
{
	struct sv_qp *qp = to->qp;
	const struct sv_wq *wq = &r->srq->wq; /* the new one, after the exchange */

	sv_cq_demand_grew_locked(qp->recv_cq, wq->mask - qp->rx.mask);
	qp->rx.mask = wq->mask;
	qp->rx.shift = wq->shift;
	qp->rx.rx_slot = wq->rx_slot;
	EXCHANGE(qp->rx.arrival, to->arrival);
	EXCHANGE(qp->arrival_offset, to->arrival_offset);
}

/* The caller excludes senders; the locks below exclude posts, polls and recovery. */
static void rings_exchange(struct resize *r)
{
	struct sv_srq *srq = r->srq;
	uint32_t grown = r->wq.mask - srq->wq.mask, i;

	pthread_mutex_lock(&srq->lock);
	for (i = 0; i < r->cqs; i++)
		lock_acquire(&r->cq[i]->lock);
	lock_acquire(&sv_area_own()->ud_ring.lock);
	lock_acquire(&srq->wq.lock);
	posted_move(&srq->wq, &r->wq,
		    atomic_load_explicit(&srq->by_peers->claim, memory_order_relaxed));
	free_move(srq, r);
	for (i = 0; i < r->qps; i++)
		arrivals_move(&r->qp[i].qp->rx, &r->qp[i], &r->wq);
	sv_wq_exchange(&srq->wq, &r->wq);
	EXCHANGE(srq->free, r->free);
	EXCHANGE(srq->round, r->round);
	atomic_fetch_add_explicit(&srq->free_tail, grown, memory_order_relaxed);
	free(srq->missing);
	srq->missing = NULL;
	for (i = 0; i < r->qps; i++)
		qp_exchange(r, &r->qp[i]);
	lock_release(&srq->wq.lock);
	lock_release(&sv_area_own()->ud_ring.lock);
	for (i = 0; i < r->cqs; i++)
		lock_release(&r->cq[i]->lock);
	pthread_mutex_unlock(&srq->lock);
}

/* ---- senders ---- */

/* Withdraws the epochs of the QPs. `moving` makes senders wait without a time limit. */
static void senders_stop(struct resize *r)
{
	atomic_store_explicit(&r->srq->by_owner->moving, 1, memory_order_relaxed);
	for (uint32_t i = 0; i < r->qps; i++) {
		pthread_mutex_lock(&r->qp[i].qp->modify);
		if (r->qp[i].qp->ud)
			continue;
		/* release: a sender that sees no epoch sees `moving`, too */
		r->qp[i].published = atomic_exchange_explicit(&r->qp[i].qp->by_owner->epoch, 0,
							      memory_order_acq_rel);
	}
	sv_area_barrier();
	for (uint32_t i = 0; i < r->qps; i++) {
		if (!r->qp[i].published || sv_quiesce_one(r->qp[i].qp->index))
			continue;
		log_at(LOG_ERROR,
		       "softverbs: qp 0x%x: its peer stopped in the middle of a copy; its memory "
		       "is given up",
		       r->qp[i].qp->ibv.qp_num);
		r->qp[i].qp->lost = r->srq->lost = true;
		sv_qp_fail(r->qp[i].qp);
	}
}

static void senders_go(struct resize *r)
{
	for (uint32_t i = 0; i < r->qps; i++)
		if (r->qp[i].published)
			sv_qp_publish_again_locked(r->qp[i].qp);
	/* release: the epochs are stored before */
	atomic_store_explicit(&r->srq->by_owner->moving, 0, memory_order_release);
	fence_full(); /* a waiter sets its flag, then checks again */
	for (uint32_t i = 0; i < r->qps; i++) {
		sv_qp_wake_initiator(r->qp[i].qp);
		pthread_mutex_unlock(&r->qp[i].qp->modify);
	}
}

int sv_srq_grow(struct sv_srq *srq, uint32_t entries)
{
	struct resize r = { .srq = srq };
	int err = 0;

	sv_srq_shape_lock(srq);
	if (entries > srq->wq.limit) {
		err = qps_list(&r);
		if (!err)
			err = rings_make(&r, entries);
		if (!err) {
			senders_stop(&r);
			rings_exchange(&r);
			senders_go(&r);
		}
		ring_pair_free(&r);
		free(r.qp);
		free(r.cq);
	}
	sv_srq_shape_unlock(srq);
	return err;
}
