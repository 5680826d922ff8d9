/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* The receive side: posting receives, and turning what has landed into completions. */
#include <errno.h>
#include <string.h>
#include "softverbs/copy.h"
#include "softverbs/mw.h"
#include "softverbs/srq.h"
#include "softverbs/tx.h"
#include "softverbs/ud.h"
#include "util/log.h"

#define STREAM 4u /* messages in a row */

void qp_wake_initiator(struct sv_qp *qp)
{
	struct sv_peer *peer;

	if (!atomic_load_explicit(&qp->rw->wait, memory_order_relaxed))
		return;
	peer = atomic_load_explicit(&qp->peer, memory_order_acquire);
	if (!peer)
		return; /* data_peer_ready does it */
	/* acquire, release: what it waits for is there before the flag is taken */
	if (atomic_exchange_explicit(&qp->rw->wait, 0, memory_order_acq_rel))
		peer_ring(peer);
}

/* With an SRQ the own queue has no room. */
static int refuse_locked(const struct sv_qp *qp)
{
	return qp->srq || atomic_load_explicit(&qp->state, memory_order_relaxed) == IBV_QPS_RESET
		       ? EINVAL
		       : ENOMEM;
}

static inline __attribute__((always_inline)) int post_one_locked(struct sv_qp *qp,
								 const struct ibv_recv_wr *wr)
{
	struct sv_wq *rq = &qp->rq;
	uint32_t n = rq->posted;

	/* acquire: the slot was read before it was given back */
	if (unlikely(n - atomic_load_explicit(&qp->rx.head, memory_order_acquire) >= rq->limit ||
		     atomic_load_explicit(&qp->state, memory_order_relaxed) == IBV_QPS_RESET))
		return refuse_locked(qp);
	return wq_put_locked(rq, n, n & rq->mask, wr);
}

/* After so many were posted, without the lock: who is to be told. */
static inline void tell_of_receives(struct sv_qp *qp, uint32_t count)
{
	/*
	 * Who waits for a receive, and who fails the QP, has a barrier between its store and its
	 * second look.
	 */
	fence_light(qp->expedited);
	if (unlikely(atomic_load_explicit(&qp->rw->wait, memory_order_relaxed)))
		qp_wake_initiator(qp);
	if (unlikely(atomic_load_explicit(&qp->state, memory_order_relaxed) == IBV_QPS_ERR) &&
	    count && atomic_load_explicit(&qp->rx.flush, memory_order_relaxed))
		cq_tell_flush(qp->recv_cq, qp->index, count);
}

static __attribute__((noinline)) int post_list(struct sv_qp *qp, struct ibv_recv_wr *wr,
					       struct ibv_recv_wr **bad)
{
	uint32_t count = 0;
	int err = 0;

	lock_acquire(&qp->rq.lock);
	for (; wr; wr = wr->next) {
		err = post_one_locked(qp, wr);
		if (err) {
			*bad = wr;
			break;
		}
		count++;
	}
	lock_release(&qp->rq.lock);
	tell_of_receives(qp, count);
	return err;
}

int qp_post_recv(struct ibv_qp *ibv, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
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
	err = post_one_locked(qp, wr);
	lock_release(&qp->rq.lock);
	tell_of_receives(qp, !err);
	if (unlikely(err))
		*bad = wr;
	return err;
}

/* ---- what has landed ---- */

/*
 * Payload into the posted buffer. False: the buffer is too small, which senders check, or no longer
 * registered.
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
		if (!region_allows(wq->regions, sge->lkey, wq->pd, sge->addr, part,
				   IBV_ACCESS_LOCAL_WRITE, &va)) {
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

/* Where in the eager ring the message lies; NULL when that cannot be. */
static const uint8_t *land_eager(struct sv_rx *rx, uint32_t at, uint32_t length)
{
	uint32_t skipped = at - rx->eager_cons, offset = at & (rx->eager_size - 1);

	if (skipped >= rx->eager_size || length > rx->eager_size - skipped ||
	    length > rx->eager_size - offset)
		return NULL;
	return rx->eager + offset;
}

/* Out of a landing, and of its tail what did not fit there. */
static inline void land_take(const struct sv_wq *wq, uint32_t slot, void *to, uint32_t length)
{
	const uint8_t *from = wq->landing[slot].data;

	if (likely(length <= SV_LAND)) {
		copy_small(to, from, length);
		return;
	}
	memcpy(to, from, SV_LAND);
	memcpy((uint8_t *)to + SV_LAND, landing_tail(wq->landing, wq->mask, slot)->data,
	       length - SV_LAND);
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
				       const struct landing *landing, uint32_t length,
				       uint32_t where)
{
	enum ibv_wc_status status = IBV_WC_SUCCESS;
	uint8_t whole[SV_INLINE];
	const uint8_t *data;
	uint32_t at;

	if (where == LAND_DIRECT) /* copied by the sender, who may say any length */
		return length <= room_of(wq, slot) ? IBV_WC_SUCCESS : IBV_WC_LOC_QP_OP_ERR;
	if (where == LAND_INLINE && length <= SV_INLINE) {
		land_take(wq, slot, whole, length);
		land_scatter(wq, slot, whole, length, &status);
		return status;
	}
	at = atomic_load_explicit(&landing->eager, memory_order_relaxed);
	data = where == LAND_EAGER ? land_eager(&qp->rx, at, length) : NULL;
	if (!data)
		return IBV_WC_LOC_QP_OP_ERR;
	land_scatter(wq, slot, data, length, &status);
	qp->rx.eager_cons = at + ((length + SV_LINE - 1) & ~(SV_LINE - 1u));
	/* release: the bytes were read before the sender may use them again */
	atomic_store_explicit(&area_own()->ro->rx[qp->index].eager_cons, qp->rx.eager_cons,
			      memory_order_release);
	return status;
}

static enum ibv_wc_status land_extra(struct sv_qp *qp, uint32_t op, uint32_t imm,
				     enum ibv_wc_status status, struct ibv_wc *wc)
{
	if (op == LAND_SEND_IMM) {
		wc->imm_data = imm;
		wc->wc_flags = IBV_WC_WITH_IMM;
		return status;
	}
	wc->invalidated_rkey = imm;
	wc->wc_flags = IBV_WC_WITH_INV;
	return op == LAND_SEND_INV && mw_invalidated(qp, imm) ? status : IBV_WC_LOC_QP_OP_ERR;
}

static enum ibv_wc_status land_error(uint32_t status)
{
	return status == IBV_WC_LOC_LEN_ERR || status == IBV_WC_LOC_PROT_ERR
		       ? (enum ibv_wc_status)status
		       : IBV_WC_LOC_QP_OP_ERR;
}

/* A peer that writes nonsense costs its own connection. */
static void land_failed(struct sv_qp *qp, enum ibv_wc_status status)
{
	if (!qp_fail(qp) || status != IBV_WC_LOC_QP_OP_ERR)
		return;
	log_at(LOG_ERROR, "softverbs: qp 0x%x: a message of its peer makes no sense",
	       qp->ibv.qp_num);
	async_post_qp(&qp->ibv, IBV_EVENT_QP_FATAL);
}

/*
 * How many messages came in a row, to which this QP did not answer. Answers that make no completion are
 * not seen, which costs those a little time.
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
 * Lines that were read are written to, so that this processor alone has them: from there the sender
 * takes one two to four times as fast as when both have a copy. In a stream, which goes as fast as its
 * sender; elsewhere it would only delay the answer.
 */
static inline void land_own(const struct sv_wq *wq, uint32_t slot, uint32_t length)
{
	atomic_store_explicit(&wq->landing[slot].what, 0, memory_order_relaxed);
	if (unlikely(length > SV_LAND && length <= SV_INLINE))
		landing_tail(wq->landing, wq->mask, slot)->data[0] = 0;
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
 * The commonest, a few bytes into one buffer, with nothing to say of them. False: it is another, or
 * something is wrong, and nothing was done. A peer may change `head` and `what` of a landing any time:
 * here as in land_any each is loaded once, and all is decided by that.
 */
static inline __attribute__((always_inline)) bool land_short(const struct sv_qp *qp,
							     const struct sv_wq *wq, uint32_t slot,
							     uint64_t head, struct ibv_wc *wc)
{
	const struct ibv_sge *sge = &wq->sge[(uint64_t)slot * wq->max_sge];
	uint32_t length = (uint32_t)(head >> 32);
	uint64_t va, what = atomic_load_explicit(&wq->landing[slot].what, memory_order_relaxed);

	if (unlikely((what & 0xffff) != landing_what(LAND_SEND, LAND_INLINE, 0) || !length ||
		     length > SV_INLINE || length > sge->length ||
		     !region_allows(wq->regions, sge->lkey, wq->pd, sge->addr, length,
				    IBV_ACCESS_LOCAL_WRITE, &va)))
		return false;
	land_take(wq, slot, (void *)(uintptr_t)va, length);
	land_complete(qp, wq, slot, length, wc);
	return true;
}

/* Any message, and what can be wrong with one. */
static __attribute__((noinline)) void land_any(struct sv_qp *qp, const struct sv_wq *wq,
					       uint32_t slot, uint64_t head, struct ibv_wc *wc)
{
	const struct landing *landing = &wq->landing[slot];
	uint64_t what = atomic_load_explicit(&landing->what, memory_order_relaxed);
	uint32_t length = (uint32_t)(head >> 32), op = what & 0xff, where = what >> 8 & 0xff;
	enum ibv_wc_status status = IBV_WC_SUCCESS;

	land_complete(qp, wq, slot, length, wc);
	if (op == LAND_SEND || op == LAND_SEND_IMM || op == LAND_SEND_INV) {
		status = land_payload(qp, wq, slot, landing, length, where);
		if (op != LAND_SEND)
			status = land_extra(qp, op, (uint32_t)(what >> 32), status, wc);
	} else if (op == LAND_WRITE_IMM) {
		wc->opcode = IBV_WC_RECV_RDMA_WITH_IMM;
		wc->imm_data = (uint32_t)(what >> 32);
		wc->wc_flags = IBV_WC_WITH_IMM;
	} else {
		status = op == LAND_ERROR ? land_error(length) : IBV_WC_LOC_QP_OP_ERR;
	}
	wc->status = status;
	if (status != IBV_WC_SUCCESS)
		land_failed(qp, status);
}

static inline __attribute__((always_inline)) void land(struct sv_qp *qp, const struct sv_wq *wq,
						       uint32_t slot, uint64_t head,
						       uint32_t in_a_row, struct ibv_wc *wc)
{
	if (unlikely(!land_short(qp, wq, slot, head, wc)))
		land_any(qp, wq, slot, head, wc);
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

int rx_flush_locked(struct sv_qp *qp, int count, struct ibv_wc *wc)
{
	struct sv_wq *rq = &qp->rq;
	uint32_t head = atomic_load_explicit(&qp->rx.head, memory_order_relaxed);
	int n;

	for (n = 0; n < count; n++, head++) {
		if (!wq_is_posted(rq, wq_entry(rq, head), head))
			break;
		flush_one(qp, rq->wr_id[head & rq->mask], &wc[n]);
		/* release: read before it is posted into again */
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
		first = atomic_load_explicit(&rx->landing[slot].head, memory_order_acquire);
		if ((uint32_t)first != head + 1) {
			if (tails) /* the next one probably has one, too: both lines at once */
				__builtin_prefetch(landing_tail(rx->landing, rx->mask, slot));
			break;
		}
		tails = first >> 32 > SV_LAND;
		land(qp, &qp->rq, slot, first, ++in_a_row, &wc[n]);
	}
	rx->tails = tails;
	rx->in_a_row = in_a_row;
	/* release: the slots were read before they are posted into again */
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
		/* acquire: as above; the landing was written before its arrival */
		arrival = atomic_load_explicit(&rx->arrival[head & rx->mask], memory_order_acquire);
		slot = arrival & 0xffff;
		if (arrival >> 16 != (ring_lap(head, rx->shift) & 0xffff))
			break;
		if (slot > rx->mask) {
			land_failed(qp, IBV_WC_LOC_QP_OP_ERR);
			break;
		}
		land(qp, &qp->srq->wq, slot,
		     atomic_load_explicit(&rx->landing[slot].head, memory_order_relaxed),
		     ++in_a_row, &wc[n]);
		srq_give_slot(qp->srq, slot);
		atomic_store_explicit(&rx->head, ++head, memory_order_relaxed);
	}
	rx->in_a_row = in_a_row;
	return n;
}

/* The nth message from the next one on is there. */
static bool rx_arrived(const struct sv_qp *qp, uint32_t n)
{
	const struct sv_rx *rx = &qp->rx;
	uint32_t head = atomic_load_explicit(&rx->head, memory_order_relaxed) + n;

	if (unlikely(qp->rx.datagrams))
		return ud_arrived(qp, n);
	if (rx->arrival)
		return atomic_load_explicit(&rx->arrival[head & rx->mask], memory_order_acquire) >>
			       16 ==
		       (ring_lap(head, rx->shift) & 0xffff);
	return (uint32_t)atomic_load_explicit(&rx->landing[head & rx->mask].head,
					      memory_order_acquire) == head + 1 ||
	       (atomic_load_explicit(&rx->flush, memory_order_acquire) &&
		wq_is_posted(&qp->rq, wq_entry(&qp->rq, head), head));
}

bool rx_has_locked(const struct sv_qp *qp)
{
	return rx_arrived(qp, 0) || (unlikely(qp->rx.datagrams) && mail_is_there());
}

uint64_t rx_count_locked(const struct sv_qp *qp)
{
	uint32_t n = 0;

	while (n <= qp->rx.mask && rx_arrived(qp, n))
		n++;
	return n;
}

int rx_poll_locked(struct sv_qp *qp, int count, struct ibv_wc *wc)
{
	bool flush =
		atomic_load_explicit(&qp->rx.flush,
				     memory_order_acquire); /* first: then no message follows */
	int n;

	if (unlikely(qp->rx.datagrams))
		n = ud_poll_locked(qp, count, wc);
	else if (qp->rx.arrival)
		n = rx_poll_shared(qp, count, wc);
	else
		n = rx_poll_own(qp, count, wc);

	if (unlikely(flush) && n < count && !qp->srq)
		n += rx_flush_locked(qp, count - n, wc + n);
	return n;
}
