/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* The view of a connected peer's receive side: found, checked once, given up when it changes. */
#include <errno.h>
#include "softverbs/tx.h"
#include "util/log.h"

struct sv_peer *slot_peer(uint32_t slot)
{
	return slot == runtime_slot() ? peer_self() : peer_get((uint16_t)slot);
}

void slot_peer_put(struct sv_peer *peer)
{
	if (peer && peer != peer_self())
		peer_put(peer);
}

struct sv_peer *qp_peer(struct sv_qp *qp)
{
	struct sv_peer *peer = atomic_load_explicit(&qp->peer, memory_order_acquire), *none = NULL;

	if (peer)
		return peer;
	peer = slot_peer(qp_slot_of(atomic_load_explicit(&qp->dest, memory_order_relaxed)));
	/* acquire, release: the engine and a poster may both have asked */
	if (peer &&
	    !atomic_compare_exchange_strong_explicit(&qp->peer, &none, peer, memory_order_acq_rel,
						     memory_order_acquire)) {
		slot_peer_put(peer);
		peer = none;
	}
	return peer;
}

void tx_unbind_locked(struct sv_qp *qp)
{
	qp->tx.epoch = 0;
}

/* An array of the peer's, or NULL when what it published does not lie inside its area. */
static void *within(const void *area, size_t area_size, uint64_t offset, uint64_t count,
		    uint64_t each)
{
	uint64_t size = count * each;

	if (offset % SV_LINE || offset > area_size || size > area_size - offset)
		return NULL;
	return (uint8_t *)(uintptr_t)area + offset;
}

/* Where memory cannot be reached, everything that fits. */
static uint32_t eager_limit(const struct sv_tx *tx)
{
	uint32_t wish = area_own()->eager;

	if (tx->copy == SV_COPY_BOUNCE)
		return tx->eager_size / 2;
	return tx->eager_size / 4 < wish ? tx->eager_size / 4 : wish;
}

/* Inside the window of an epoch: copies what the peer describes, checked. */
static bool tx_describe(struct sv_tx *tx, const struct sv_peer *peer)
{
	const struct ro_qp *ro = tx->ro;
	uint32_t size = ro->size, max_sge = ro->max_sge, srq = ro->srq, cq = ro->cq;

	if (!size || size > SV_MAX_WR || size & (size - 1) || !max_sge ||
	    max_sge > 2 * SV_MAX_SGE || srq > SV_SRQS || cq >= SV_CQS)
		return false;
	tx->mask = size - 1;
	tx->shift = (uint32_t)__builtin_ctz(size);
	tx->post_shift = post_shift(tx->shift);
	tx->post_mask = (1u << tx->post_shift) - 1;
	tx->max_sge = max_sge;
	tx->pd = ro->pd;
	tx->recv_pd = ro->recv_pd;
	tx->cq_index = cq;
	tx->cq = &peer->rw->cq[cq];
	tx->notify = atomic_load_explicit(&peer->ro->cq[cq].channel, memory_order_relaxed);
	tx->post = within(peer->ro, peer->ro_size, ro->post, tx->post_mask + 1, sizeof(uint64_t));
	tx->sge = within(peer->ro, peer->ro_size, ro->sge, (uint64_t)size * max_sge,
			 sizeof(struct ibv_sge));
	tx->landing = within(peer->rw, peer->rw_size, ro->landing, landings_size(size), 1);
	tx->arrival = NULL;
	if (srq) {
		tx->srq_index = srq - 1;
		tx->srq = &peer->rw->srq[srq - 1];
		tx->ro_srq = &peer->ro->srq[srq - 1];
		tx->arrival = within(peer->rw, peer->rw_size, ro->arrival, size, sizeof(uint32_t));
	}
	tx->eager_size = ro->eager_size;
	tx->eager_limit = eager_limit(tx);
	tx->eager = within(peer->rw, peer->rw_size, ro->eager, tx->eager_size, 1);
	return tx->post && tx->sge && tx->landing && (!srq || tx->arrival) && tx->eager &&
	       !(tx->eager_size & (tx->eager_size - 1)) && tx->eager_size <= 1u << 24;
}

static void tx_point(struct sv_qp *qp, struct sv_peer *peer)
{
	uint32_t index = qp_index_of(atomic_load_explicit(&qp->dest, memory_order_relaxed));
	struct sv_tx *tx = &qp->tx;

	tx->peer = peer;
	tx->unreliable = qp->sq.service != SERVICE_RC;
	tx->copy = (uint8_t)peer->copy;
	tx->qp_index = index;
	tx->ro = &peer->ro->qp[index];
	tx->rx = &peer->ro->rx[index];
	tx->rw = &peer->rw->qp[index];
	tx->expedited = area_own()->expedited && peer->ro->expedited;
	/*
	 * An initiator before this one may have stopped anywhere: go on from the next even number.
	 */
	tx->busy = (atomic_load_explicit(&tx->rw->busy, memory_order_relaxed) + 1) & ~1u;
}

/* Its SRQ is being resized. */
static bool tx_is_moving(const struct sv_peer *peer, const struct ro_qp *ro)
{
	uint32_t srq =
		__atomic_load_n(&ro->srq, __ATOMIC_RELAXED); /* its epoch is not published yet */

	return srq && srq <= SV_SRQS &&
	       atomic_load_explicit(&peer->ro->srq[srq - 1].moving, memory_order_acquire);
}

int tx_bind_locked(struct sv_qp *qp)
{
	struct sv_tx *tx = &qp->tx;
	struct sv_peer *peer = qp_peer(qp);
	const struct ro_qp *ro;
	bool sound;

	if (!peer)
		return errno == EAGAIN ? SQ_LINKING : SQ_SILENT;
	qp->sq.gone = atomic_load_explicit(&peer->dead, memory_order_relaxed);
	ro = &peer->ro->qp[qp_index_of(atomic_load_explicit(&qp->dest, memory_order_relaxed))];
	if (!qp->sq.gone && !atomic_load_explicit(&ro->epoch, memory_order_acquire) &&
	    tx_is_moving(peer, ro))
		return SQ_LINKING;
	if (qp->sq.gone || !atomic_load_explicit(&ro->epoch, memory_order_acquire) ||
	    atomic_load_explicit(&ro->peer, memory_order_relaxed) != qp->ibv.qp_num)
		return SQ_SILENT;

	tx_point(qp, peer);
	tx->epoch = atomic_load_explicit(&ro->epoch, memory_order_acquire);
	window_enter(tx);
	sound = tx->epoch && window_is_open(tx) &&
		atomic_load_explicit(&ro->peer, memory_order_relaxed) == qp->ibv.qp_num &&
		tx_describe(tx, peer);
	tx->seq = atomic_load_explicit(&tx->rw->seq, memory_order_relaxed);
	tx->eager_prod = atomic_load_explicit(&tx->rw->eager_prod, memory_order_relaxed);
	tx->eager_cons = tx->eager_prod - tx->eager_size; /* full, until looked at */
	window_leave(tx);
	if (!sound) {
		tx_unbind_locked(qp);
		return SQ_SILENT;
	}
	return SQ_GOES;
}

void tx_report(struct sv_tx *tx, enum qp_fault fault)
{
	uint32_t none = FAULT_NONE;

	if (tx->unreliable && (fault == FAULT_ACCESS || fault == FAULT_REQUEST))
		return; /* IBTA: dropped, the responder goes on */
	atomic_compare_exchange_strong_explicit(&tx->rw->fault, &none, fault, memory_order_relaxed,
						memory_order_relaxed);
	if (attention_set(tx->peer->rw->attention.qp, tx->qp_index))
		peer_ring(tx->peer);
}

bool tx_ask(struct sv_qp *qp, enum sq_wait why)
{
	struct sv_peer *peer = atomic_load_explicit(&qp->peer, memory_order_acquire);
	uint32_t index = qp_index_of(atomic_load_explicit(&qp->dest, memory_order_relaxed));
	uint32_t flag = why == SQ_RNR ? WAIT_RECV : why == SQ_REMOTE ? WAIT_COPY : WAIT_READY;

	if (!peer || (atomic_load_explicit(&peer->rw->qp[index].wait, memory_order_relaxed) & flag))
		return false;
	atomic_fetch_or_explicit(&peer->rw->qp[index].wait, flag, memory_order_relaxed);
	/* release: the owner takes this flag first */
	if (why == SQ_RNR && qp->tx.arrival)
		atomic_store_explicit(&qp->tx.srq->wait, 1, memory_order_release);
	area_barrier(); /* the owner stores what we miss, then loads `wait` */
	return true;
}

void tx_mark(const struct sv_peer *peer, uint32_t cq, uint32_t qp)
{
	uint64_t offset = atomic_load_explicit(&peer->ro->cq[cq].ready, memory_order_acquire);
	struct rw_ready *ready = within(peer->rw, peer->rw_size, offset, 1, sizeof(*ready));
	uint64_t bit = 1ull << qp % 64;

	if (!offset || !ready)
		return;
	if (atomic_load_explicit(&ready->word[qp / 64], memory_order_relaxed) & bit)
		return;
	/* release: the message was published before */
	atomic_fetch_or_explicit(&ready->word[qp / 64], bit, memory_order_release);
	atomic_fetch_or_explicit(&ready->summary, 1ull << qp / 64, memory_order_release);
}

/* That many more for a CQ that may be too small; true when it is. */
static bool tx_count(struct sv_tx *tx, uint32_t messages)
{
	const struct ro_cq *ro = &tx->peer->ro->cq[tx->cq_index];
	uint32_t arrived =
		atomic_fetch_add_explicit(&tx->cq->arrived, messages, memory_order_relaxed) +
		messages;
	int64_t held = (int32_t)(arrived - atomic_load_explicit(&ro->taken, memory_order_relaxed));

	held += (int32_t)atomic_load_explicit(&ro->sends, memory_order_relaxed);
	return held > (int64_t)atomic_load_explicit(&ro->cqe, memory_order_relaxed);
}

void tx_tell_slow(struct sv_tx *tx, uint32_t messages, uint32_t mode)
{
	if (mode & CQ_MANY) {
		if (!tx->notify)
			fence_full(); /* the poller clears the mark, then looks for the message */
		tx_mark(tx->peer, tx->cq_index, tx->qp_index);
	}
	if (mode & CQ_TIGHT && tx_count(tx, messages)) {
		atomic_store_explicit(&tx->cq->overflow, 1, memory_order_relaxed);
		attention_set(tx->peer->rw->attention.cq, tx->cq_index);
		peer_ring(tx->peer);
	}
}
