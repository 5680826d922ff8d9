/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* A shared receive queue gets longer: everything posted, taken and arrived moves to larger rings. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "softverbs/quiesce.h"
#include "softverbs/srq.h"
#include "util/log.h"

/*
 * Held by who changes which QPs an SRQ has, and by a resize, which therefore finds each of them
 * whole. Taken before a QP's modify.
 */
static pthread_mutex_t shape = PTHREAD_MUTEX_INITIALIZER;

struct resize {
	struct sv_srq *srq;
	struct sv_wq wq; /* the new queue; afterwards the old one */
	_Atomic(uint32_t) *free, *round;
	uint32_t qps, cqs;
	struct resize_qp {
		struct sv_qp *qp;
		bool published;
		_Atomic(uint32_t) *arrival;
		uint64_t arrival_offset;
	} * qp;
	struct sv_cq **cq; /* each once */
};

void srq_shape_lock(const struct sv_srq *srq)
{
	if (srq)
		pthread_mutex_lock(&shape);
}

void srq_shape_unlock(const struct sv_srq *srq)
{
	if (srq)
		pthread_mutex_unlock(&shape);
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
	int err = wq_open(&r->wq, entries, old->max_sge, old->pd);
	uint64_t size = r->wq.mask + 1;

	r->free = heap_take(HEAP_OWN, size * sizeof(*r->free), NULL);
	r->round = heap_take_zero(HEAP_OWN, size * sizeof(*r->round), NULL);
	if (err || !r->free || !r->round)
		return ENOMEM;
	for (uint32_t i = 0; i < r->qps; i++) {
		if (r->qp[i].qp->ud)
			continue;
		r->qp[i].arrival =
			heap_take(HEAP_RW, size * sizeof(uint32_t), &r->qp[i].arrival_offset);
		if (!r->qp[i].arrival)
			return ENOMEM;
	}
	return 0;
}

/* Accepts what is half made; after the exchange it gives the old rings back. */
static void rings_give(struct resize *r)
{
	uint64_t size = r->wq.mask + 1;

	if (!r->wq.max_sge)
		return;
	for (uint32_t i = 0; i < r->qps; i++)
		if (!r->qp[i].qp->lost)
			heap_give(HEAP_RW, (void *)r->qp[i].arrival, size * sizeof(uint32_t));
	heap_give(HEAP_OWN, (void *)r->free, size * sizeof(*r->free));
	heap_give(HEAP_OWN, (void *)r->round, size * sizeof(*r->round));
	wq_close(&r->wq, r->srq->lost);
}

/* ---- moving ---- */

/*
 * In each new ring a place that has no entry yet holds the lap before its next one: zero, as in
 * fresh memory, is some lap, too.
 */
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

/* Slots keep their numbers, and with them what senders hold and what has arrived. */
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
	memcpy(to->landing, from->landing, slots * sizeof(*to->landing));
	memcpy(landing_tail(to->landing, to->mask, 0), landing_tail(from->landing, from->mask, 0),
	       slots * sizeof(struct landing_tail));
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
	const struct sv_wq *wq = &r->srq->wq; /* the new one by now */

	cq_demand_grew_locked(qp->recv_cq, wq->mask - qp->rx.mask);
	qp->rx.mask = wq->mask;
	qp->rx.shift = wq->shift;
	qp->rx.landing = wq->landing;
	EXCHANGE(qp->rx.arrival, to->arrival);
	EXCHANGE(qp->arrival_offset, to->arrival_offset);
}

/* No sender is inside, and with these locks nobody posts, polls or recovers. */
static void rings_exchange(struct resize *r)
{
	struct sv_srq *srq = r->srq;
	uint32_t grown = r->wq.mask - srq->wq.mask, i;

	pthread_mutex_lock(&srq->lock);
	for (i = 0; i < r->cqs; i++)
		lock_acquire(&r->cq[i]->lock);
	lock_acquire(&area_own()->mail.lock);
	lock_acquire(&srq->wq.lock);
	posted_move(&srq->wq, &r->wq, atomic_load_explicit(&srq->rw->claim, memory_order_relaxed));
	free_move(srq, r);
	for (i = 0; i < r->qps; i++)
		arrivals_move(&r->qp[i].qp->rx, &r->qp[i], &r->wq);
	wq_exchange(&srq->wq, &r->wq);
	EXCHANGE(srq->free, r->free);
	EXCHANGE(srq->round, r->round);
	atomic_fetch_add_explicit(&srq->free_tail, grown, memory_order_relaxed);
	free(srq->missing);
	srq->missing = NULL;
	for (i = 0; i < r->qps; i++)
		qp_exchange(r, &r->qp[i]);
	lock_release(&srq->wq.lock);
	lock_release(&area_own()->mail.lock);
	for (i = 0; i < r->cqs; i++)
		lock_release(&r->cq[i]->lock);
	pthread_mutex_unlock(&srq->lock);
}

/* ---- senders ---- */

/* They find no QP for a moment, and that they have to wait for as long as it takes. */
static void senders_stop(struct resize *r)
{
	atomic_store_explicit(&r->srq->ro->moving, 1, memory_order_relaxed);
	for (uint32_t i = 0; i < r->qps; i++) {
		pthread_mutex_lock(&r->qp[i].qp->modify);
		if (r->qp[i].qp->ud)
			continue;
		/* release: that they move is seen by who sees that there is no epoch */
		r->qp[i].published =
			atomic_exchange_explicit(&r->qp[i].qp->ro->epoch, 0, memory_order_acq_rel);
	}
	area_barrier();
	for (uint32_t i = 0; i < r->qps; i++) {
		if (!r->qp[i].published || quiesce_one(r->qp[i].qp->index))
			continue;
		log_at(LOG_ERROR,
		       "softverbs: qp 0x%x: its peer stopped in the middle of a copy; its memory "
		       "is given up",
		       r->qp[i].qp->ibv.qp_num);
		r->qp[i].qp->lost = r->srq->lost = true;
		qp_fail(r->qp[i].qp);
	}
}

static void senders_go(struct resize *r)
{
	for (uint32_t i = 0; i < r->qps; i++)
		if (r->qp[i].published)
			qp_publish_again_locked(r->qp[i].qp);
	/* release: the epochs before it */
	atomic_store_explicit(&r->srq->ro->moving, 0, memory_order_release);
	fence_full(); /* who waits says so, then looks again */
	for (uint32_t i = 0; i < r->qps; i++) {
		qp_wake_initiator(r->qp[i].qp);
		pthread_mutex_unlock(&r->qp[i].qp->modify);
	}
}

int srq_grow(struct sv_srq *srq, uint32_t entries)
{
	struct resize r = { .srq = srq };
	int err = 0;

	srq_shape_lock(srq);
	if (entries > srq->wq.limit) {
		err = qps_list(&r);
		if (!err)
			err = rings_make(&r, entries);
		if (!err) {
			senders_stop(&r);
			rings_exchange(&r);
			senders_go(&r);
		}
		rings_give(&r);
		free(r.qp);
		free(r.cq);
	}
	srq_shape_unlock(srq);
	return err;
}
