/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * The view of a connected peer's receive queue: binds and checks it, and unbinds it when it
 * changes.
 */
#include <errno.h>
#include "softverbs/object/path.h"
#include "softverbs/rc/remote_rq.h"
#include "util/clock.h"
#include "util/log.h"

struct sv_peer *sv_peer_by_id(uint32_t slot)
{
	return slot == sv_runtime_peer_id() ? sv_peer_self() : sv_peer_get((uint16_t)slot);
}

void sv_peer_by_id_put(struct sv_peer *peer)
{
	if (peer && peer != sv_peer_self())
		sv_peer_put(peer);
}

struct sv_peer *sv_qp_peer(struct sv_qp *qp)
{
	struct sv_peer *peer = atomic_load_explicit(&qp->peer, memory_order_acquire), *none = NULL;

	if (peer)
		return peer;
	peer = sv_peer_by_id(qp_peer_id_of(atomic_load_explicit(&qp->dest, memory_order_relaxed)));
	/* acquire, release: the engine and a poster may both have looked it up */
	if (peer &&
	    !atomic_compare_exchange_strong_explicit(&qp->peer, &none, peer, memory_order_acq_rel,
						     memory_order_acquire)) {
		sv_peer_by_id_put(peer);
		peer = none;
	}
	return peer;
}

void sv_remote_rq_unbind_locked(struct sv_qp *qp)
{
	qp->remote_rq.epoch = 0;
}

/*
 * The longest message that goes through the eager ring, in bytes. If the peer's memory is not
 * accessible, any that fits.
 */
static uint32_t eager_limit(const struct sv_remote_rq *remote)
{
	uint32_t wish = sv_area_own()->eager;

	if (remote->copy == SV_COPY_BOUNCE)
		return remote->eager_size / 2;
	return remote->eager_size / 4 < wish ? remote->eager_size / 4 : wish;
}

/* Between epoch_enter and epoch_leave: copies and checks the peer's description of its queue. */
static bool remote_rq_describe(struct sv_remote_rq *remote, struct sv_peer *peer)
{
	const struct qp_by_owner *by_owner = remote->by_owner;
	uint32_t size = by_owner->size, max_sge = by_owner->max_sge, srq = by_owner->srq,
		 cq = by_owner->cq;

	if (!size || size > SV_MAX_WR || size & (size - 1) || !max_sge ||
	    max_sge > 2 * SV_MAX_SGE || srq > SV_SRQS || cq >= SV_CQS)
		return false;
	remote->mask = size - 1;
	remote->shift = (uint32_t)__builtin_ctz(size);
	remote->post_shift = post_shift(remote->shift);
	remote->post_mask = (1u << remote->post_shift) - 1;
	remote->max_sge = max_sge;
	remote->pd = by_owner->pd;
	remote->recv_pd = by_owner->recv_pd;
	remote->cq_index = cq;
	remote->cq = &peer->by_peers->cq[cq];
	remote->post = sv_area_at(peer, HEAP_BY_OWNER, by_owner->post,
				  (remote->post_mask + 1) * sizeof(uint64_t));
	remote->sge = sv_area_at(peer, HEAP_BY_OWNER, by_owner->sge,
				 (uint64_t)size * max_sge * sizeof(struct ibv_sge));
	remote->rx_slot = sv_area_at(peer, HEAP_BY_PEERS, by_owner->rx_slot, rx_slots_size(size));
	remote->arrival = NULL;
	if (srq) {
		remote->srq_index = srq - 1;
		remote->srq = &peer->by_peers->srq[srq - 1];
		remote->srq_by_owner = &peer->by_owner->srq[srq - 1];
		remote->arrival =
			sv_area_at(peer, HEAP_BY_PEERS, by_owner->arrival, size * sizeof(uint32_t));
	}
	remote->eager_size = by_owner->eager_size;
	remote->eager_limit = eager_limit(remote);
	remote->eager = sv_area_at(peer, HEAP_BY_PEERS, by_owner->eager, remote->eager_size);
	return remote->post && remote->sge && remote->rx_slot && (!srq || remote->arrival) &&
	       remote->eager && !(remote->eager_size & (remote->eager_size - 1)) &&
	       remote->eager_size <= 1u << 24;
}

static void remote_rq_point(struct sv_qp *qp, struct sv_peer *peer)
{
	uint32_t index = qp_index_of(atomic_load_explicit(&qp->dest, memory_order_relaxed));
	struct sv_remote_rq *remote = &qp->remote_rq;

	remote->peer = peer;
	remote->unreliable = qp->sq.service != SERVICE_RC;
	remote->copy = (uint8_t)peer->copy;
	remote->qp_index = index;
	remote->by_owner = &peer->by_owner->qp[index];
	remote->rx = &peer->by_owner->rx[index];
	remote->by_peers = &peer->by_peers->qp[index];
	remote->expedited = sv_area_own()->expedited && peer->by_owner->expedited;
	/* An earlier initiator may have stopped anywhere: continue with the next even number. */
	remote->busy =
		(atomic_load_explicit(&remote->by_peers->busy, memory_order_relaxed) + 1) & ~1u;
}

/* Whether the QP will be published again: the peer resizes its SRQ, or all its QPs are still. */
static bool remote_rq_is_moving(const struct sv_peer *peer, const struct qp_by_owner *by_owner)
{
	uint32_t srq = __atomic_load_n(&by_owner->srq,
				       __ATOMIC_RELAXED); /* the epoch does not protect it yet */

	if (atomic_load_explicit(&peer->by_owner->still, memory_order_acquire))
		return true;
	return srq && srq <= SV_SRQS &&
	       atomic_load_explicit(&peer->by_owner->srq[srq - 1].moving, memory_order_acquire);
}

/* A process that did not answer is looked up once in each try, however often the send queue is polled. */
static bool remote_rq_may_look_up(const struct sv_qp *qp)
{
	return qp->sq.wait != SQ_SILENT || clock_now() >= qp->sq.deadline;
}

int sv_remote_rq_bind_locked(struct sv_qp *qp)
{
	struct sv_remote_rq *remote = &qp->remote_rq;
	const struct qp_by_owner *by_owner;
	struct sv_peer *peer;
	bool sound;

	if (qp->path)
		return qp->path->ops->bind_locked(qp);
	peer = atomic_load_explicit(&qp->peer, memory_order_acquire);
	if (!peer && !remote_rq_may_look_up(qp))
		return SQ_SILENT;
	if (!peer)
		peer = sv_qp_peer(qp);
	if (!peer)
		return errno == EAGAIN ? SQ_LINKING : SQ_SILENT;
	qp->sq.gone = atomic_load_explicit(&peer->dead, memory_order_relaxed);
	by_owner =
		&peer->by_owner
			 ->qp[qp_index_of(atomic_load_explicit(&qp->dest, memory_order_relaxed))];
	if (!qp->sq.gone && !atomic_load_explicit(&by_owner->epoch, memory_order_acquire) &&
	    remote_rq_is_moving(peer, by_owner))
		return SQ_LINKING;
	if (qp->sq.gone || !atomic_load_explicit(&by_owner->epoch, memory_order_acquire) ||
	    atomic_load_explicit(&by_owner->peer, memory_order_relaxed) != qp->ibv.qp_num)
		return SQ_SILENT;

	remote_rq_point(qp, peer);
	remote->epoch = atomic_load_explicit(&by_owner->epoch, memory_order_acquire);
	epoch_enter(remote);
	sound = remote->epoch && epoch_is_current(remote) &&
		atomic_load_explicit(&by_owner->peer, memory_order_relaxed) == qp->ibv.qp_num &&
		remote_rq_describe(remote, peer);
	remote->seq = atomic_load_explicit(&remote->by_peers->seq, memory_order_relaxed);
	remote->eager_prod =
		atomic_load_explicit(&remote->by_peers->eager_prod, memory_order_relaxed);
	remote->eager_cons =
		remote->eager_prod - remote->eager_size; /* full, until eager_cons is loaded */
	epoch_leave(remote);
	if (!sound) {
		sv_remote_rq_unbind_locked(qp);
		return SQ_SILENT;
	}
	return SQ_GOES;
}

void sv_remote_rq_report(struct sv_remote_rq *remote, enum qp_fault fault)
{
	uint32_t none = FAULT_NONE;

	if (remote->unreliable && (fault == FAULT_ACCESS || fault == FAULT_REQUEST))
		return; /* IBTA: the responder drops it and continues */
	atomic_compare_exchange_strong_explicit(&remote->by_peers->fault, &none, fault,
						memory_order_relaxed, memory_order_relaxed);
	if (sv_attention_set(remote->peer->by_peers->attention.qp, remote->qp_index))
		sv_peer_ring(remote->peer);
}

bool sv_remote_rq_ask(struct sv_qp *qp, enum sq_wait why)
{
	struct sv_peer *peer = atomic_load_explicit(&qp->peer, memory_order_acquire);
	uint32_t index = qp_index_of(atomic_load_explicit(&qp->dest, memory_order_relaxed));
	uint32_t flag = why == SQ_RNR ? WAIT_RECV : why == SQ_REMOTE ? WAIT_COPY : WAIT_READY;

	if (!peer ||
	    (atomic_load_explicit(&peer->by_peers->qp[index].wait, memory_order_relaxed) & flag))
		return false;
	/* release: this process's engine finds the QP among those that wait */
	atomic_fetch_or_explicit(&peer->by_peers->qp[index].wait, flag, memory_order_release);
	/* release: the owner clears this flag before the QPs' `wait` */
	if (why == SQ_RNR && qp->remote_rq.arrival)
		atomic_store_explicit(&qp->remote_rq.srq->wait, 1, memory_order_release);
	sv_area_barrier(); /* the owner stores the missing state, then loads `wait` */
	return true;
}

void sv_remote_rq_mark(struct sv_peer *peer, uint32_t cq, uint32_t qp)
{
	uint64_t offset = atomic_load_explicit(&peer->by_owner->cq[cq].ready, memory_order_acquire);
	struct cq_ready_by_peers *ready = sv_area_at(peer, HEAP_BY_PEERS, offset, sizeof(*ready));
	uint64_t bit = 1ull << qp % 64;

	if (!offset || !ready)
		return;
	if (atomic_load_explicit(&ready->word[qp / 64], memory_order_relaxed) & bit)
		return;
	/* release: the message was published before the mark */
	atomic_fetch_or_explicit(&ready->word[qp / 64], bit, memory_order_release);
	atomic_fetch_or_explicit(&ready->summary, 1ull << qp / 64, memory_order_release);
}

/* Counts messages for a CQ in mode CQ_TIGHT. True if the CQ overruns. */
static bool remote_rq_count(struct sv_remote_rq *remote, uint32_t messages)
{
	const struct cq_by_owner *by_owner = &remote->peer->by_owner->cq[remote->cq_index];
	uint32_t arrived =
		atomic_fetch_add_explicit(&remote->cq->arrived, messages, memory_order_relaxed) +
		messages;
	int64_t held =
		(int32_t)(arrived - atomic_load_explicit(&by_owner->taken, memory_order_relaxed));

	held += (int32_t)atomic_load_explicit(&by_owner->sends, memory_order_relaxed);
	return held > (int64_t)atomic_load_explicit(&by_owner->cqe, memory_order_relaxed);
}

void sv_remote_rq_notify_slow(struct sv_remote_rq *remote, bool fenced, uint32_t messages,
			      uint32_t mode)
{
	if (mode & CQ_MANY) {
		if (!fenced)
			fence_full(); /* a poll clears the mark, then loads the message */
		sv_remote_rq_mark(remote->peer, remote->cq_index, remote->qp_index);
	}
	if (mode & CQ_TIGHT && remote_rq_count(remote, messages)) {
		atomic_store_explicit(&remote->cq->overflow, 1, memory_order_relaxed);
		sv_attention_set(remote->peer->by_peers->attention.cq, remote->cq_index);
		sv_peer_ring(remote->peer);
	}
}
