/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * Receives datagrams: matches each with a posted receive, copies its payload, keeps its
 * completion until it is polled.
 */
#include <string.h>
#include "softverbs/base/settings.h"
#include "softverbs/object/srq.h"
#include "softverbs/ud/ud.h"

/* ---- a posted receive ---- */

/*
 * Takes a receive of the SRQ as sv_srq_claim does, but in the owner, so there is no recovery
 * after a sender's death.
 */
static bool srq_claim(struct sv_srq *srq, uint64_t *entry)
{
	struct sv_wq *wq = &srq->wq;
	uint32_t claim = atomic_load_explicit(&srq->by_peers->claim, memory_order_relaxed), limit,
		 round;

	do {
		*entry = wq_entry(wq, claim);
		if (!wq_is_posted(wq, *entry, claim)) {
			uint32_t now =
				atomic_load_explicit(&srq->by_peers->claim, memory_order_relaxed);

			if (now == claim)
				return false;
			claim = now;
			continue;
		}
		/* acquire: no other thread has the slot */
		if (atomic_compare_exchange_weak_explicit(&srq->by_peers->claim, &claim, claim + 1,
							  memory_order_acq_rel,
							  memory_order_relaxed))
			break;
	} while (true);
	limit = atomic_load_explicit(&srq->by_owner->limit, memory_order_relaxed);
	round = atomic_load_explicit(&srq->by_owner->limit_round, memory_order_relaxed);
	if (unlikely(limit) &&
	    atomic_load_explicit(&srq->by_owner->posted, memory_order_relaxed) - (claim + 1) <
		    limit) {
		atomic_store_explicit(&srq->by_peers->limit_round, round, memory_order_relaxed);
		sv_attention_set(sv_area_own()->by_peers->attention.srq, srq->index);
		sv_peer_ring(sv_peer_self());
	}
	return true;
}

/* Takes a receive of the QP's own queue, or of its SRQ. False if there is none. */
static bool ud_recv_claim(struct sv_qp *qp, uint32_t taken, uint64_t *entry, uint32_t *slot)
{
	if (qp->srq) {
		/* `done` must have room, however many receives other QPs take from the SRQ */
		if (taken - atomic_load_explicit(&qp->rx.head, memory_order_acquire) >
			    qp->ud->mask ||
		    !srq_claim(qp->srq, entry))
			return false;
		*slot = post_slot(*entry) & qp->srq->wq.mask;
		return true;
	}
	*entry = wq_entry(&qp->rq, taken);
	*slot = taken & qp->rq.mask;
	return wq_is_posted(&qp->rq, *entry, taken);
}

/* ---- its memory ---- */

struct scatter {
	const struct sv_wq *wq;
	const struct ibv_sge *sge, *end;
	uint8_t *at;
	uint32_t left;
};

static bool scatter_next(struct scatter *to)
{
	uint64_t va;

	while (to->sge < to->end && !to->sge->length)
		to->sge++;
	if (to->sge == to->end ||
	    !region_allows(to->wq->regions, to->sge->lkey, to->wq->pd, to->sge->addr,
			   to->sge->length, IBV_ACCESS_LOCAL_WRITE, &va))
		return false;
	to->at = (uint8_t *)(uintptr_t)va;
	to->left = to->sge++->length;
	return true;
}

static bool scatter_put(struct scatter *to, const uint8_t *data, size_t length)
{
	while (length) {
		size_t part;

		if (!to->left && !scatter_next(to))
			return false;
		part = to->left < length ? to->left : length;
		memcpy(to->at, data, part);
		to->at += part;
		to->left -= (uint32_t)part;
		data += part;
		length -= part;
	}
	return true;
}

static enum ibv_wc_status datagram_copy(const struct sv_wq *wq, uint64_t entry, uint32_t slot,
					const struct ud_ring_record *head, const struct iovec *iov,
					unsigned count, uint8_t *l3)
{
	const struct ibv_sge *sge = &wq->sge[(uint64_t)slot * wq->max_sge];
	struct scatter to = { .wq = wq, .sge = sge, .end = sge + wq->max_sge };
	uint8_t grh[GRH_SIZE];
	bool good;

	if (post_is_bad(entry))
		return IBV_WC_LOC_PROT_ERR;
	if (GRH_SIZE + head->length > (uint32_t)entry)
		return IBV_WC_LOC_LEN_ERR;
	*l3 = (uint8_t)sv_grh_write(grh, head);
	good = scatter_put(&to, grh, sizeof(grh));
	for (unsigned i = 0; i < count && good; i++)
		good = scatter_put(&to, iov[i].iov_base, iov[i].iov_len);
	return good ? IBV_WC_SUCCESS : IBV_WC_LOC_PROT_ERR;
}

/* ---- a datagram ---- */

static bool accepts_datagrams(const struct sv_qp *qp)
{
	int state = atomic_load_explicit(&qp->state, memory_order_acquire);

	return state >= IBV_QPS_RTR && state != IBV_QPS_ERR;
}

static struct sv_qp *addressee(const struct ud_ring_record *head)
{
	struct sv_qp *qp = sv_area_own()->ud_ring.qp[qp_index_of(head->dest)];

	return qp && qp->ibv.qp_num == head->dest && accepts_datagrams(qp) &&
			       atomic_load_explicit(&qp->ud->qkey, memory_order_relaxed) ==
				       head->qkey
		       ? qp
		       : NULL;
}

struct sv_qp *sv_ud_deliver_locked(const struct ud_ring_record *head, const struct iovec *iov,
				   unsigned count, bool notify, bool solicited)
{
	struct sv_qp *qp = addressee(head);
	struct ud_done *done;
	uint32_t taken, slot;
	struct sv_wq *wq;
	uint64_t entry;

	if (!qp)
		return NULL;
	taken = atomic_load_explicit(&qp->ud->taken, memory_order_relaxed);
	if (!ud_recv_claim(qp, taken, &entry, &slot))
		return NULL;
	wq = qp->srq ? &qp->srq->wq : &qp->rq;
	done = &qp->ud->done[taken & qp->ud->mask];
	*done = (struct ud_done){
		.wr_id = wq->wr_id[slot],
		.byte_len = GRH_SIZE + head->length,
		.source = head->source,
		.imm = head->imm,
		.has_imm = head->flags & DATAGRAM_IMM,
	};
	done->status = (uint8_t)datagram_copy(wq, entry, slot, head, iov, count, &done->l3);
	if (qp->srq)
		sv_srq_slot_release(qp->srq, slot);
	/* release: the entry was written before; pairs with done_count */
	atomic_store_explicit(&qp->ud->taken, taken + 1, memory_order_release);
	sv_cq_notify_recv(qp->recv_cq, qp->index);
	if (done->status != IBV_WC_SUCCESS)
		sv_qp_fail(qp);
	if (!notify && done->status == IBV_WC_SUCCESS)
		return qp;
	/* The completion is published before; whether a waiter has armed the CQ is loaded after. */
	fence_full();
	cq_fire(qp->recv_cq->by_peers, sv_peer_self(), qp->recv_cq->index,
		solicited || done->status != IBV_WC_SUCCESS);
	return qp;
}

/* ---- polls ---- */

static void done_report(const struct sv_qp *qp, const struct ud_done *done, struct ibv_wc *wc)
{
	*wc = (struct ibv_wc){
		.wr_id = done->wr_id,
		.status = done->status,
		.opcode = IBV_WC_RECV,
		.byte_len = done->byte_len,
		.imm_data = done->imm,
		.qp_num = qp->ibv.qp_num,
		.src_qp = done->source,
		.slid = qp->ud->lid,
		.sl = done->l3,
		.wc_flags = IBV_WC_GRH | (done->has_imm ? IBV_WC_WITH_IMM : 0),
	};
}

/* The number of receives completed and not polled; 0 if a flush has advanced `head` past them. */
static uint32_t done_count(const struct sv_qp *qp)
{
	/* acquire: pairs with sv_ud_deliver_locked */
	uint32_t taken = atomic_load_explicit(&qp->ud->taken, memory_order_acquire),
		 head = atomic_load_explicit(&qp->rx.head, memory_order_relaxed);

	return (int32_t)(taken - head) > 0 ? taken - head : 0;
}

static int done_poll(struct sv_qp *qp, int count, struct ibv_wc *wc)
{
	uint32_t head = atomic_load_explicit(&qp->rx.head, memory_order_relaxed),
		 left = done_count(qp);
	int n = 0;

	for (; n < count && left; left--)
		done_report(qp, &qp->ud->done[head++ & qp->ud->mask], &wc[n++]);
	/* release: the entry was read before it is overwritten, or its receive reused */
	atomic_store_explicit(&qp->rx.head, head, memory_order_release);
	return n;
}

int sv_ud_poll_locked(struct sv_qp *qp, int count, struct ibv_wc *wc)
{
	struct ud_ring *ud_ring = &sv_area_own()->ud_ring;
	int n;

	if (sv_ud_ring_is_filled())
		sv_ud_ring_read(qp, (uint32_t)count);
	n = done_poll(qp, count, wc);
	if (likely(!atomic_load_explicit(&qp->rx.flush, memory_order_acquire)) || n == count)
		return n;
	/* No delivery is under way after this: see accepts_datagrams. */
	lock_acquire(&ud_ring->lock);
	lock_release(&ud_ring->lock);
	return n + done_poll(qp, count - n, wc + n);
}

bool sv_ud_arrived(const struct sv_qp *qp, uint32_t n)
{
	uint32_t head = atomic_load_explicit(&qp->rx.head, memory_order_relaxed);

	return n < done_count(qp) ||
	       (!qp->srq && atomic_load_explicit(&qp->rx.flush, memory_order_acquire) &&
		wq_is_posted(&qp->rq, wq_entry(&qp->rq, head + n), head + n));
}
