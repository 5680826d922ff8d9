/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* What the engine tells the data path: processes come and go, doorbells ring. */
#include <stdlib.h>
#include "softverbs/bounce.h"
#include "softverbs/channel.h"
#include "softverbs/srq.h"
#include "softverbs/stripe.h"
#include "softverbs/tx.h"
#include "softverbs/ud.h"
#include "util/log.h"

/* Calls `look` with each QP of this process, pinned. */
static void qps_each(void (*look)(struct sv_qp *qp, void *arg), void *arg)
{
	struct area *area = area_own();
	uint32_t last;

	pthread_mutex_lock(&area->qps.lock);
	last = area->qps.fresh - 1; /* of identifiers, which begin with 1 */
	pthread_mutex_unlock(&area->qps.lock);
	for (uint32_t index = 0; index < last; index++) {
		struct sv_qp *qp = qp_pin(index);

		if (!qp)
			continue;
		look(qp, arg);
		qp_unpin(qp);
	}
}

/* Calls `look` with each index whose bit is set; takes the bits first if `take`. */
static void bits_each(_Atomic(uint64_t) *words, unsigned count, bool take,
		      void (*look)(uint32_t index))
{
	for (unsigned w = 0; w < count; w++) {
		/* acquire: pairs with attention_set */
		uint64_t bits = atomic_load_explicit(&words[w], memory_order_acquire);

		if (bits && take)
			bits = atomic_exchange_explicit(&words[w], 0, memory_order_acquire);
		for (; bits; bits &= bits - 1)
			look(w * 64 + (unsigned)__builtin_ctzll(bits));
	}
}

/* ---- doorbell ---- */

static void fault_raise(struct sv_qp *qp, uint32_t fault)
{
	static const enum ibv_event_type events[] = {
		[FAULT_ACCESS] = IBV_EVENT_QP_ACCESS_ERR,
		[FAULT_REQUEST] = IBV_EVENT_QP_REQ_ERR,
		[FAULT_FATAL] = IBV_EVENT_QP_FATAL,
	};

	if (fault == FAULT_NONE || fault > FAULT_REFUSED)
		return;
	if (fault != FAULT_REFUSED)
		async_post_qp(&qp->ibv, events[fault]);
	qp_fail(qp);
}

static void qp_attend(uint32_t index)
{
	struct sv_qp *qp = qp_pin(index);

	if (!qp)
		return;
	/* acquire: pairs with tx_report */
	fault_raise(qp, atomic_exchange_explicit(&qp->rw->fault, FAULT_NONE, memory_order_acquire));
	if (atomic_load_explicit(&qp->unsettled, memory_order_relaxed))
		qp_settle(qp);
	qp_unpin(qp);
}

static void qp_run(uint32_t index)
{
	struct sv_qp *qp = qp_pin(index);

	if (!qp)
		return;
	sq_run(qp);
	qp_unpin(qp);
}

static void qp_serve(uint32_t index)
{
	struct sv_qp *qp = qp_pin(index);

	if (!qp)
		return;
	serve_attend(qp);
	qp_unpin(qp);
}

static void cq_look(uint32_t index, void (*look)(struct sv_cq *cq))
{
	struct area *area = area_own();
	struct sv_cq *cq;

	pthread_mutex_lock(&area->table_lock);
	cq = area->cq[index];
	if (cq)
		cq->pins++;
	pthread_mutex_unlock(&area->table_lock);
	if (!cq)
		return;
	look(cq);
	area_unpin(&cq->pins);
}

static void cq_ring(uint32_t index)
{
	cq_look(index, cq_attend);
}

static void srq_ring(uint32_t index)
{
	struct area *area = area_own();
	struct sv_srq *srq;

	pthread_mutex_lock(&area->table_lock);
	srq = area->srq[index];
	if (srq)
		srq->pins++;
	pthread_mutex_unlock(&area->table_lock);
	if (!srq)
		return;
	srq_attend(srq);
	area_unpin(&srq->pins);
}

void data_doorbell(void)
{
	struct area *area = area_own();

	mail_attend();
	bits_each(area->rw->attention.qp, SV_WORDS(SV_QPS), true, qp_attend);
	bits_each(area->rw->attention.cq, SV_WORDS(SV_CQS), true, cq_ring);
	bits_each(area->rw->attention.srq, SV_WORDS(SV_SRQS), true, srq_ring);
	bits_each(area->rw->attention.bounce, SV_WORDS(SV_QPS), true, qp_serve);
	bits_each(area->waiting, SV_WORDS(SV_QPS), false, qp_run);
}

/* ---- processes ---- */

/* Its QPs may wait for us, and ours for it. */
static void qp_peer_ready(struct sv_qp *qp, void *arg)
{
	const struct sv_peer *peer = arg;
	uint32_t dest = atomic_load_explicit(&qp->dest, memory_order_relaxed);

	if (qp->ud) {
		sq_run(qp);
		return;
	}
	if (!dest || qp_slot_of(dest) != peer->slot || !qp_peer(qp))
		return;
	qp_wake_initiator(qp);
	sq_run(qp);
}

void data_peer_ready(struct sv_peer *peer)
{
	mail_peer_ready(peer);
	qps_each(qp_peer_ready, peer);
}

static void qp_unreachable(struct sv_qp *qp, void *arg)
{
	uint32_t dest = atomic_load_explicit(&qp->dest, memory_order_relaxed);

	if (qp->ud ? ud_waits_for(qp, *(const uint16_t *)arg)
		   : dest && qp_slot_of(dest) == *(const uint16_t *)arg)
		sq_unreachable(qp);
}

void data_slot_unreachable(uint16_t slot)
{
	qps_each(qp_unreachable, &slot);
}

static void qp_peer_gone(struct sv_qp *qp, void *arg)
{
	if (qp->ud) {
		ud_peer_gone(qp, arg);
		return;
	}
	if (atomic_load_explicit(&qp->peer, memory_order_acquire) != arg)
		return;
	lock_acquire(&qp->sq.lock);
	tx_unbind_locked(qp); /* from now on nobody answers */
	sq_run_locked(qp);
	sq_tell_locked(qp);
	lock_release(&qp->sq.lock);
	if (qp->srq)
		srq_recover(qp->srq);
	cq_look(qp->recv_cq->index, cq_peer_gone);
}

void data_peer_gone(struct sv_peer *peer)
{
	stripes_forget(peer->slot);
	mail_peer_gone(peer);
	qps_each(qp_peer_gone, peer);
	data_doorbell(); /* it may have asked for attention and not come to ring */
}

void data_peer_free(struct sv_peer *peer)
{
	mail_peer_free(peer);
	channel_forget_peer(peer);
}

void data_message(struct sv_peer *peer, const void *payload, size_t size, int fd)
{
	channel_message(peer, payload, size, fd);
}
