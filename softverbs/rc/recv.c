/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* The receive side: posts receives, and turns arrived messages into completions. */
#include <errno.h>
#include <string.h>
#include "softverbs/rc/land.h"
#include "softverbs/rc/mw.h"
#include "softverbs/object/srq.h"
#include "softverbs/rc/remote_rq.h"
#include "softverbs/rc/request.h"
#include "util/log.h"

#define STREAM 4u /* messages in a row that make a stream */

bool sv_qp_wake_initiator(struct sv_qp *qp)
{
	struct sv_peer *peer;

	if (!atomic_load_explicit(&qp->by_peers->wait, memory_order_relaxed))
		return false;
	peer = atomic_load_explicit(&qp->peer, memory_order_acquire);
	if (!peer)
		return false; /* peer_ready rings then */
	/* acquire, release: the receive is posted before the flag is cleared */
	if (!atomic_exchange_explicit(&qp->by_peers->wait, 0, memory_order_acq_rel))
		return false;
	sv_peer_ring(peer);
	return true;
}

/* With an SRQ, the QP's own queue takes no receives. */
static int refuse_locked(const struct sv_qp *qp)
{
	return qp->srq || atomic_load_explicit(&qp->state, memory_order_relaxed) == IBV_QPS_RESET
		       ? EINVAL
		       : ENOMEM;
}

static inline __attribute__((always_inline)) int recv_post_one_locked(struct sv_qp *qp,
								      const struct ibv_recv_wr *wr)
{
	struct sv_wq *rq = &qp->rq;
	uint32_t n = rq->posted;

	/* acquire: a poll read the slot before it advanced `head` */
	if (unlikely(n - atomic_load_explicit(&qp->rx.head, memory_order_acquire) >= rq->limit ||
		     atomic_load_explicit(&qp->state, memory_order_relaxed) == IBV_QPS_RESET))
		return refuse_locked(qp);
	return wq_put_locked(rq, n, n & rq->mask, wr);
}

/* Notifies waiters after `count` receives were posted. The lock is not held. */
static inline void recv_notify_waiters(struct sv_qp *qp, uint32_t count)
{
	/*
	 * Pairs with sv_area_barrier in sv_remote_rq_ask, and with the full order of
	 * state_enter_error: they store, then check again.
	 */
	fence_light(qp->expedited);
	if (unlikely(atomic_load_explicit(&qp->by_peers->wait, memory_order_relaxed)))
		sv_qp_wake_initiator(qp);
	if (unlikely(atomic_load_explicit(&qp->state, memory_order_relaxed) == IBV_QPS_ERR) &&
	    count && atomic_load_explicit(&qp->rx.flush, memory_order_relaxed))
		sv_cq_notify_flush(qp->recv_cq, qp->index, count);
}

static __attribute__((noinline)) int post_list(struct sv_qp *qp, struct ibv_recv_wr *wr,
					       struct ibv_recv_wr **bad)
{
	uint32_t count = 0;
	int err = 0;

	lock_acquire(&qp->rq.lock);
	for (; wr; wr = wr->next) {
		err = recv_post_one_locked(qp, wr);
		if (err) {
			*bad = wr;
			break;
		}
		count++;
	}
	lock_release(&qp->rq.lock);
	recv_notify_waiters(qp, count);
	return err;
}

int sv_qp_post_recv(struct ibv_qp *ibv, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	struct sv_qp *qp = qp_of(ibv);
	int err;

	if (unlikely(!*qp->alive)) {
		*bad = wr;
		return ENODEV;
	}
	if (unlikely(!wr || wr->next))
		return post_list(qp, wr, bad);
	lock_acquire(&qp->rq.lock);
	err = recv_post_one_locked(qp, wr);
	lock_release(&qp->rq.lock);
	recv_notify_waiters(qp, !err);
	if (unlikely(err))
		*bad = wr;
	return err;
}

/* ---- arrived messages ---- */

/*
 * Copies payload into the posted buffer. False if the buffer is too small, which a sound sender
 * checks, or not registered any more.
 */
static bool land_scatter(const struct sv_wq *wq, uint32_t slot, const uint8_t *data,
			 uint32_t length, enum ibv_wc_status *status)
{
	const struct ibv_sge *sge = &wq->sge[(uint64_t)slot * wq->max_sge],
			     *end = sge + wq->max_sge;
	uint64_t va;

	for (; length && sge < end; sge++) {
		uint32_t part = sge->length < length ? sge->length : length;

		if (!part)
			continue;
		if (!region_accepts(wq->regions, sge->lkey, wq->pd, sge->addr, part, &va)) {
			*status = IBV_WC_LOC_PROT_ERR;
			return false;
		}
		memcpy((void *)(uintptr_t)va, data, part);
		data += part;
		length -= part;
	}
	if (length)
		*status = IBV_WC_LOC_QP_OP_ERR;
	return !length;
}

static uint64_t room_of(const struct sv_wq *wq, uint32_t slot)
{
	const struct ibv_sge *sge = &wq->sge[(uint64_t)slot * wq->max_sge],
			     *end = sge + wq->max_sge;
	uint64_t room = 0;

	for (; sge < end; sge++)
		room += sge->length;
	return room;
}

static enum ibv_wc_status land_payload(struct sv_qp *qp, const struct sv_wq *wq, uint32_t slot,
				       const struct rx_slot *rx_slot, uint32_t length,
				       uint32_t where)
{
	enum ibv_wc_status status = IBV_WC_SUCCESS;
	uint8_t whole[SV_INLINE];
	const uint8_t *data;
	uint32_t at;

	/* Copied by the sender, which may claim any length, or by sv_arrivals_land. */
	if (where == RX_DIRECT)
		return length <= room_of(wq, slot) ? IBV_WC_SUCCESS : IBV_WC_LOC_QP_OP_ERR;
	if (where == RX_INLINE && length <= SV_INLINE) {
		land_copy(wq, slot, whole, length);
		land_scatter(wq, slot, whole, length, &status);
		return status;
	}
	at = atomic_load_explicit(&rx_slot->eager, memory_order_relaxed);
	data = where == RX_EAGER ? land_eager(&qp->rx, at, length) : NULL;
	if (!data)
		return IBV_WC_LOC_QP_OP_ERR;
	land_scatter(wq, slot, data, length, &status);
	land_eager_done(qp, at, length);
	return status;
}

static enum ibv_wc_status land_extra(struct sv_qp *qp, uint32_t op, uint32_t imm,
				     enum ibv_wc_status status, struct ibv_wc *wc)
{
	if (op == RX_SEND_IMM) {
		wc->imm_data = imm;
		wc->wc_flags = IBV_WC_WITH_IMM;
		return status;
	}
	wc->invalidated_rkey = imm;
	wc->wc_flags = IBV_WC_WITH_INV;
	return op == RX_SEND_INV && sv_mw_invalidated(qp, imm) ? status : IBV_WC_LOC_QP_OP_ERR;
}

static enum ibv_wc_status land_error(uint32_t status)
{
	return status == IBV_WC_LOC_LEN_ERR || status == IBV_WC_LOC_PROT_ERR ||
			       status == IBV_WC_WR_FLUSH_ERR
		       ? (enum ibv_wc_status)status
		       : IBV_WC_LOC_QP_OP_ERR;
}

/* A malformed message fails the connection of its peer only. */
static void land_failed(struct sv_qp *qp, enum ibv_wc_status status)
{
	if (!sv_qp_fail(qp) || status != IBV_WC_LOC_QP_OP_ERR)
		return;
	log_at(LOG_ERROR, "softverbs: qp 0x%x: malformed message from its peer", qp->ibv.qp_num);
	sv_async_post_qp(&qp->ibv, IBV_EVENT_QP_FATAL);
}

/*
 * Returns the number of messages in a row that this QP has not answered. Unsignalled answers are
 * not counted as such, which costs their QP a little time.
 */
static inline uint32_t stream_length(struct sv_qp *qp)
{
	uint32_t sent = atomic_load_explicit(&qp->sq_ready, memory_order_relaxed);

	if (sent != qp->rx.sent) {
		qp->rx.sent = sent;
		qp->rx.in_a_row = 0;
	}
	return qp->rx.in_a_row;
}

/*
 * Writes to the lines that were read, so that only this processor's cache has them: the sender
 * then takes a line over two to four times as fast as when both caches have a copy. Only in a
 * stream, which is as fast as its sender; elsewhere it would delay the answer.
 */
static inline void land_own(const struct sv_wq *wq, uint32_t slot, uint32_t length)
{
	atomic_store_explicit(&wq->rx_slot[slot].what, 0, memory_order_relaxed);
	if (unlikely(length > SV_SLOT_INLINE && length <= SV_INLINE))
		rx_slot_ext(wq->rx_slot, wq->mask, slot)->data[0] = 0;
}

static inline void land_complete(const struct sv_qp *qp, const struct sv_wq *wq, uint32_t slot,
				 uint32_t length, struct ibv_wc *wc)
{
	wc->wr_id = wq->wr_id[slot];
	wc->status = IBV_WC_SUCCESS;
	wc->opcode = IBV_WC_RECV;
	wc->vendor_err = 0;
	wc->byte_len = length;
	wc->imm_data = 0;
	wc->qp_num = qp->ibv.qp_num;
	wc->src_qp = atomic_load_explicit(&qp->dest, memory_order_relaxed);
	wc->wc_flags = 0;
	wc->pkey_index = 0;
	wc->slid = 0;
	wc->sl = 0;
	wc->dlid_path_bits = 0;
}

/*
 * The fast path: a short message without immediate, into one buffer. False: it is another
 * message, or something is wrong, and nothing has been done. A peer may change `head` and `what`
 * of a receive slot at any time: here, as in rx_slot_copy_slow, each is loaded once.
 */
static inline __attribute__((always_inline)) bool rx_slot_copy_fast(const struct sv_qp *qp,
								    const struct sv_wq *wq,
								    uint32_t slot, uint64_t head,
								    struct ibv_wc *wc)
{
	const struct ibv_sge *sge = &wq->sge[(uint64_t)slot * wq->max_sge];
	uint32_t length = (uint32_t)(head >> 32);
	uint64_t va, what = atomic_load_explicit(&wq->rx_slot[slot].what, memory_order_relaxed);

	if (unlikely((what & 0xffff) != rx_slot_what(RX_SEND, RX_INLINE, 0) || !length ||
		     length > SV_INLINE || length > sge->length ||
		     !region_allows(wq->regions, sge->lkey, wq->pd, sge->addr, length,
				    IBV_ACCESS_LOCAL_WRITE, &va)))
		return false;
	land_copy(wq, slot, (void *)(uintptr_t)va, length);
	land_complete(qp, wq, slot, length, wc);
	return true;
}

/* The slow path: any message, with all checks. */
static __attribute__((noinline)) void rx_slot_copy_slow(struct sv_qp *qp, const struct sv_wq *wq,
							uint32_t slot, uint64_t head,
							struct ibv_wc *wc)
{
	const struct rx_slot *rx_slot = &wq->rx_slot[slot];
	uint64_t what = atomic_load_explicit(&rx_slot->what, memory_order_relaxed);
	uint32_t length = (uint32_t)(head >> 32), op = what & 0xff, where = what >> 8 & 0xff;
	enum ibv_wc_status status = IBV_WC_SUCCESS;

	land_complete(qp, wq, slot, length, wc);
	if (op == RX_SEND || op == RX_SEND_IMM || op == RX_SEND_INV) {
		status = land_payload(qp, wq, slot, rx_slot, length, where);
		if (op != RX_SEND)
			status = land_extra(qp, op, (uint32_t)(what >> 32), status, wc);
	} else if (op == RX_WRITE_IMM) {
		wc->opcode = IBV_WC_RECV_RDMA_WITH_IMM;
		wc->imm_data = (uint32_t)(what >> 32);
		wc->wc_flags = IBV_WC_WITH_IMM;
	} else {
		status = op == RX_ERROR ? land_error(length) : IBV_WC_LOC_QP_OP_ERR;
	}
	wc->status = status;
	if (status != IBV_WC_SUCCESS)
		land_failed(qp, status);
}

static inline __attribute__((always_inline)) void land(struct sv_qp *qp, const struct sv_wq *wq,
						       uint32_t slot, uint64_t head,
						       uint32_t in_a_row, struct ibv_wc *wc)
{
	if (unlikely(!rx_slot_copy_fast(qp, wq, slot, head, wc)))
		rx_slot_copy_slow(qp, wq, slot, head, wc);
	if (in_a_row > STREAM)
		land_own(wq, slot, (uint32_t)(head >> 32));
}

static void flush_one(struct sv_qp *qp, uint64_t wr_id, struct ibv_wc *wc)
{
	*wc = (struct ibv_wc){
		.wr_id = wr_id,
		.status = IBV_WC_WR_FLUSH_ERR,
		.opcode = IBV_WC_RECV,
		.qp_num = qp->ibv.qp_num,
	};
}

int sv_rx_flush_locked(struct sv_qp *qp, int count, struct ibv_wc *wc)
{
	struct sv_wq *rq = &qp->rq;
	uint32_t head = atomic_load_explicit(&qp->rx.head, memory_order_relaxed);
	int n;

	for (n = 0; n < count; n++, head++) {
		if (!wq_is_posted(rq, wq_entry(rq, head), head))
			break;
		flush_one(qp, rq->wr_id[head & rq->mask], &wc[n]);
		/* release: the entry was read before a post reuses its slot */
		atomic_store_explicit(&qp->rx.head, head + 1, memory_order_release);
	}
	return n;
}

static __attribute__((noinline)) int rx_poll_own(struct sv_qp *qp, int count, struct ibv_wc *wc)
{
	struct sv_rx *rx = &qp->rx;
	uint32_t head = atomic_load_explicit(&rx->head, memory_order_relaxed), slot,
		 in_a_row = stream_length(qp);
	bool tails = rx->tails;
	uint64_t first;
	int n = 0;

	for (; n < count; n++, head++) {
		slot = head & rx->mask;
		/* acquire: pairs with the sender's release; the message is complete */
		first = atomic_load_explicit(&rx->rx_slot[slot].head, memory_order_acquire);
		if ((uint32_t)first != head + 1) {
			if (tails) /* the next message probably uses its extension too: fetch both lines */
				__builtin_prefetch(rx_slot_ext(rx->rx_slot, rx->mask, slot));
			break;
		}
		tails = first >> 32 > SV_SLOT_INLINE;
		land(qp, &qp->rq, slot, first, ++in_a_row, &wc[n]);
	}
	rx->tails = tails;
	rx->in_a_row = in_a_row;
	/* release: the slots were read before a post reuses them */
	atomic_store_explicit(&rx->head, head, memory_order_release);
	return n;
}

static __attribute__((noinline)) int rx_poll_shared(struct sv_qp *qp, int count, struct ibv_wc *wc)
{
	struct sv_rx *rx = &qp->rx;
	uint32_t head = atomic_load_explicit(&rx->head, memory_order_relaxed), arrival, slot,
		 in_a_row = stream_length(qp);
	int n = 0;

	for (; n < count; n++) {
		/* acquire: as above; the receive slot was written before its arrival */
		arrival = atomic_load_explicit(&rx->arrival[head & rx->mask], memory_order_acquire);
		slot = arrival & 0xffff;
		if (arrival >> 16 != (ring_lap(head, rx->shift) & 0xffff))
			break;
		if (slot > rx->mask) {
			land_failed(qp, IBV_WC_LOC_QP_OP_ERR);
			break;
		}
		land(qp, &qp->srq->wq, slot,
		     atomic_load_explicit(&rx->rx_slot[slot].head, memory_order_relaxed),
		     ++in_a_row, &wc[n]);
		sv_srq_slot_release(qp->srq, slot);
		atomic_store_explicit(&rx->head, ++head, memory_order_relaxed);
	}
	rx->in_a_row = in_a_row;
	return n;
}

/* Whether the message `n` places after the next one has arrived. */
static bool rx_arrived(const struct sv_qp *qp, uint32_t n)
{
	const struct sv_rx *rx = &qp->rx;
	uint32_t head = atomic_load_explicit(&rx->head, memory_order_relaxed) + n;

	if (unlikely(qp->rx.datagrams))
		return qp->ops->has_arrived(qp, n);
	if (rx->arrival)
		return atomic_load_explicit(&rx->arrival[head & rx->mask], memory_order_acquire) >>
			       16 ==
		       (ring_lap(head, rx->shift) & 0xffff);
	return (uint32_t)atomic_load_explicit(&rx->rx_slot[head & rx->mask].head,
					      memory_order_acquire) == head + 1 ||
	       (atomic_load_explicit(&rx->flush, memory_order_acquire) &&
		wq_is_posted(&qp->rq, wq_entry(&qp->rq, head), head));
}

bool sv_rx_has_locked(const struct sv_qp *qp)
{
	return rx_arrived(qp, 0) || (unlikely(qp->rx.datagrams) && qp->ops->is_filled());
}

uint32_t sv_rx_count_locked(const struct sv_qp *qp, uint32_t most)
{
	uint32_t n = 0;

	while (n < most && n <= qp->rx.mask && rx_arrived(qp, n))
		n++;
	return n;
}

int sv_rx_poll_locked(struct sv_qp *qp, int count, struct ibv_wc *wc)
{
	/* Loaded first: no message follows if it is set. */
	bool flush = atomic_load_explicit(&qp->rx.flush, memory_order_acquire);
	int n;

	if (unlikely(qp->rx.datagrams))
		n = qp->ops->poll_locked(qp, count, wc);
	else if (qp->rx.arrival)
		n = rx_poll_shared(qp, count, wc);
	else
		n = rx_poll_own(qp, count, wc);

	if (unlikely(flush) && n < count && !qp->srq)
		n += sv_rx_flush_locked(qp, count - n, wc + n);
	return n;
}
