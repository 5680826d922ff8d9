/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Posting sends: a work request is executed here and now unless something stands against it. */
#include <errno.h>
#include "softverbs/mw.h"
#include "softverbs/send.h"
#include "softverbs/ud.h"

#define OP(op)	   (1u << (op))
#define OPS_SEND   (OP(IBV_WR_SEND) | OP(IBV_WR_SEND_WITH_IMM) | OP(IBV_WR_SEND_WITH_INV))
#define OPS_RDMA   (OP(IBV_WR_RDMA_WRITE) | OP(IBV_WR_RDMA_WRITE_WITH_IMM) | OP(IBV_WR_RDMA_READ))
#define OPS_ATOMIC (OP(IBV_WR_ATOMIC_CMP_AND_SWP) | OP(IBV_WR_ATOMIC_FETCH_AND_ADD))
#define OPS_WINDOW (OP(IBV_WR_LOCAL_INV) | OP(IBV_WR_BIND_MW))
#define OPS_KNOWN  (OPS_SEND | OPS_RDMA | OPS_ATOMIC | OPS_WINDOW)
#define OPS_INLINE (OPS_SEND | OP(IBV_WR_RDMA_WRITE) | OP(IBV_WR_RDMA_WRITE_WITH_IMM))

static const uint8_t wc_opcode[] = {
	[IBV_WR_RDMA_WRITE] = IBV_WC_RDMA_WRITE,
	[IBV_WR_RDMA_WRITE_WITH_IMM] = IBV_WC_RDMA_WRITE,
	[IBV_WR_SEND] = IBV_WC_SEND,
	[IBV_WR_SEND_WITH_IMM] = IBV_WC_SEND,
	[IBV_WR_RDMA_READ] = IBV_WC_RDMA_READ,
	[IBV_WR_ATOMIC_CMP_AND_SWP] = IBV_WC_COMP_SWAP,
	[IBV_WR_ATOMIC_FETCH_AND_ADD] = IBV_WC_FETCH_ADD,
	[IBV_WR_LOCAL_INV] = IBV_WC_LOCAL_INV,
	[IBV_WR_BIND_MW] = IBV_WC_BIND_MW,
	[IBV_WR_SEND_WITH_INV] = IBV_WC_SEND,
};

static inline uint64_t wr_length(const struct ibv_send_wr *wr)
{
	uint64_t length = 0;

	for (int i = 0; i < wr->num_sge; i++)
		length += wr->sg_list[i].length;
	return length;
}

/* The completion of sq.exec, which nothing held up. */
static inline void keep_locked(struct sv_qp *qp, const struct ibv_send_wr *wr,
			       enum ibv_wc_status status)
{
	struct sv_sq *sq = &qp->sq;
	struct sv_done *done = &sq->done[sq->exec++ & sq->mask];

	done->emit = status != IBV_WC_SUCCESS || sq->sig_all || wr->send_flags & IBV_SEND_SIGNALED;
	if (!done->emit)
		return;
	done->wr_id = wr->wr_id;
	done->opcode = wc_opcode[wr->opcode];
	done->status = (uint8_t)status;
	done->byte_len = (uint32_t)wr_length(wr);
	sq->fresh++;
	sq->failed |= status != IBV_WC_SUCCESS;
	/* release: pairs with the poll's acquire; the entries up to here are written */
	atomic_store_explicit(&qp->sq_ready, sq->exec, memory_order_release);
}

void sq_complete_locked(struct sv_qp *qp, const struct ibv_send_wr *wr, enum ibv_wc_status status)
{
	struct sv_sq *sq = &qp->sq;

	sq->wait = SQ_GOES;
	sq->written = false;
	sq->engines = qp->bounce.active = qp->bounce.taken = false;
	keep_locked(qp, wr, status);
}

uint32_t service_opcodes(enum sv_service service)
{
	static const uint32_t known[] = {
		[SERVICE_RC] = OPS_KNOWN,
		[SERVICE_UC] = OPS_KNOWN & ~(OPS_ATOMIC | OP(IBV_WR_RDMA_READ)),
		[SERVICE_UD] = OP(IBV_WR_SEND) | OP(IBV_WR_SEND_WITH_IMM),
	};

	return known[service];
}

int sq_execute_connected_locked(struct sv_qp *qp, const struct ibv_send_wr *wr, uint32_t length)
{
	if (OP(wr->opcode) & OPS_SEND)
		return send_execute_locked(qp, wr, length);
	if (likely(OP(wr->opcode) & OPS_RDMA))
		return rdma_execute_locked(qp, wr, length);
	if (OP(wr->opcode) & OPS_ATOMIC)
		return atomic_execute_locked(qp, wr, length);
	return wr->opcode == IBV_WR_BIND_MW ? mw_execute_bind(qp, wr)
					    : mw_execute_invalidate(qp, wr->invalidate_rkey);
}

int sq_execute_locked(struct sv_qp *qp, const struct ibv_send_wr *wr)
{
	uint64_t length = wr_length(wr);

	if (unlikely(length > SV_MAX_MSG))
		return IBV_WC_LOC_LEN_ERR;
	if (unlikely(!qp->sq.plain))
		return unreliable_execute_locked(qp, wr, (uint32_t)length);
	return sq_execute_connected_locked(qp, wr, (uint32_t)length);
}

/* In the code of who posts, where each instruction counts. */
static inline void tell_locked(struct sv_qp *qp)
{
	struct sv_sq *sq = &qp->sq;
	struct sv_cq *cq = qp->send_cq;
	bool watched = sq->fresh && cq->ibv.channel;

	if (watched || (sq->told && qp->tx.notify))
		fence_full(); /* completions are published; whether somebody armed for them is
				 loaded after */
	if (sq->told)
		tx_tell(&qp->tx, sq->told, sq->told_solicited);
	if (sq->fresh)
		cq_tell_sends(cq, qp->index, sq->fresh);
	if (watched)
		cq_fire(cq->rw, peer_self(), cq->index, sq->failed);
	sq->told = sq->fresh = 0;
	sq->told_solicited = sq->failed = false;
}

void sq_tell_locked(struct sv_qp *qp)
{
	tell_locked(qp);
}

/*
 * A work request that can never be right is refused; what is wrong about memory becomes a
 * completion.
 */
static inline int wr_check(const struct sv_qp *qp, const struct ibv_send_wr *wr)
{
	const struct sv_sq *sq = &qp->sq;

	if (unlikely((uint32_t)wr->num_sge > sq->max_sge || (unsigned)wr->opcode >= 32 ||
		     !(OP(wr->opcode) & sq->opcodes)))
		return EINVAL;
	if (unlikely(sq->service == SERVICE_UD) && !ud_is_addressed(qp, wr))
		return EINVAL;
	if (wr->send_flags & IBV_SEND_INLINE &&
	    (!(OP(wr->opcode) & OPS_INLINE) || wr_length(wr) > sq->max_inline))
		return EINVAL;
	return 0;
}

static int post_waiting_locked(struct sv_qp *qp, const struct ibv_send_wr *wr, int state)
{
	if (state == IBV_QPS_ERR || state == IBV_QPS_SQE) {
		sq_flush_locked(qp);
		qp->sq.head++;
		sq_complete_locked(qp, wr, IBV_WC_WR_FLUSH_ERR);
		return 0;
	}
	if (state != IBV_QPS_RTS && state != IBV_QPS_SQD)
		return EINVAL;
	sq_hold_locked(qp, wr);
	sq_run_locked(qp);
	return 0;
}

static int post_any_locked(struct sv_qp *qp, const struct ibv_send_wr *wr)
{
	struct sv_sq *sq = &qp->sq;
	int state = atomic_load_explicit(&qp->state, memory_order_relaxed), status,
	    err = wr_check(qp, wr);

	if (unlikely(err))
		return err;
	if (unlikely(sq->head - sq->polled_seen > sq->mask)) {
		/* acquire: its entries were read before they are written again */
		sq->polled_seen = atomic_load_explicit(&qp->sq_polled, memory_order_acquire);
		if (sq->head - sq->polled_seen > sq->mask)
			return state == IBV_QPS_RTS || state >= IBV_QPS_SQD ? ENOMEM : EINVAL;
	}
	if (unlikely(state != IBV_QPS_RTS || sq->exec != sq->head))
		return post_waiting_locked(qp, wr, state);
	status = sq_execute_locked(qp, wr);
	if (unlikely(status < 0)) {
		sq_hold_locked(qp, wr);
		sq_run_locked(qp);
		return 0;
	}
	sq->head++;
	if (unlikely(status != IBV_WC_SUCCESS))
		sq_fail_locked(qp);
	sq_complete_locked(qp, wr, (enum ibv_wc_status)status);
	return 0;
}

/* What nothing stands against, the commonest first: nothing has waited, so nothing of a wait is left to be cleared. */
static inline int post_one_locked(struct sv_qp *qp, const struct ibv_send_wr *wr)
{
	struct sv_sq *sq = &qp->sq;

	if (likely(sq->plain && send_is_short(qp, wr) && sq->exec == sq->head &&
		   sq->head - sq->polled_seen <= sq->mask &&
		   atomic_load_explicit(&qp->state, memory_order_relaxed) == IBV_QPS_RTS) &&
	    likely(send_short_locked(qp, wr))) {
		sq->head++;
		keep_locked(qp, wr, IBV_WC_SUCCESS);
		return 0;
	}
	return post_any_locked(qp, wr);
}

int qp_post_send(struct ibv_qp *ibv, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	struct sv_qp *qp = qp_of(ibv);
	int err = 0;

	if (unlikely(!*qp->alive)) {
		*bad = wr;
		return ENODEV;
	}
	lock_acquire(&qp->sq.lock);
	for (; wr; wr = wr->next) {
		err = post_one_locked(qp, wr);
		if (unlikely(err)) {
			*bad = wr;
			break;
		}
	}
	tell_locked(qp);
	lock_release(&qp->sq.lock);
	return err;
}

static int batch_check_locked(struct sv_qp *qp, const struct ibv_send_wr *wr, uint32_t count)
{
	struct sv_sq *sq = &qp->sq;
	int state = atomic_load_explicit(&qp->state, memory_order_relaxed);

	if (state < IBV_QPS_RTS)
		return EINVAL;
	/* acquire: as in post_one_locked */
	sq->polled_seen = atomic_load_explicit(&qp->sq_polled, memory_order_acquire);
	if (sq->head - sq->polled_seen + count > sq->mask + 1)
		return ENOMEM;
	for (uint32_t i = 0; i < count; i++)
		if (wr_check(qp, &wr[i]))
			return EINVAL;
	return 0;
}

int qp_post_batch(struct sv_qp *qp, const struct ibv_send_wr *wr, uint32_t count)
{
	int err;

	if (!*qp->alive)
		return ENODEV;
	lock_acquire(&qp->sq.lock);
	err = batch_check_locked(qp, wr, count);
	for (uint32_t i = 0; i < count && !err; i++)
		err = post_one_locked(qp, &wr[i]);
	sq_tell_locked(qp);
	lock_release(&qp->sq.lock);
	return err;
}
