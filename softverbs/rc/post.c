/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Posts sends. A work request is executed in the post unless something prevents it. */
#include <errno.h>
#include "softverbs/rc/request.h"
#include "util/cancel.h"
#include "softverbs/object/path.h"
#include "softverbs/rc/mw.h"
#include "softverbs/rc/send.h"

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

/* The request was left in the queue: the poster executes it after it has posted the others. */
#define POST_HELD (-1)

/*
 * Bytes that a post copies: its own payload, and as much of earlier requests, so that the queue
 * catches up.
 */
#define POST_SHARE (2 * COPY_PIECE)

static inline uint64_t length_of(const struct ibv_send_wr *wr)
{
	uint64_t length = 0;

	for (int i = 0; i < wr->num_sge; i++)
		length += wr->sg_list[i].length;
	return length;
}

uint64_t sv_wr_length(const struct ibv_send_wr *wr)
{
	return length_of(wr);
}

/* Stores the completion of sq.exec, which did not wait. */
static inline void request_keep_locked(struct sv_qp *qp, const struct ibv_send_wr *wr,
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
	done->byte_len = (uint32_t)length_of(wr);
	sq->fresh++;
	sq->failed |= status != IBV_WC_SUCCESS;
	/* release: pairs with the poll's acquire; the entries before are written */
	atomic_store_explicit(&qp->sq_ready, sq->exec, memory_order_release);
}

void sv_sq_complete_locked(struct sv_qp *qp, const struct ibv_send_wr *wr,
			   enum ibv_wc_status status)
{
	struct sv_sq *sq = &qp->sq;

	sq->wait = SQ_GOES;
	sq->written = false;
	sq->moved = 0;
	sq->engines = qp->bounce.active = qp->bounce.taken = false;
	request_keep_locked(qp, wr, status);
	if (unlikely(sq->draining) && !path_is_begun_locked(qp)) {
		sq->draining = false;
		if (atomic_load_explicit(&qp->state, memory_order_relaxed) == IBV_QPS_SQD)
			sv_async_post_qp(&qp->ibv, IBV_EVENT_SQ_DRAINED);
	}
}

uint32_t sv_service_opcodes(enum sv_service service)
{
	static const uint32_t known[] = {
		[SERVICE_RC] = OPS_KNOWN,
		[SERVICE_UC] = OPS_KNOWN & ~(OPS_ATOMIC | OP(IBV_WR_RDMA_READ)),
		[SERVICE_UD] = OP(IBV_WR_SEND) | OP(IBV_WR_SEND_WITH_IMM),
	};

	return known[service];
}

int sv_sq_execute_connected(struct sv_qp *qp, const struct ibv_send_wr *wr, uint32_t length)
{
	if (OP(wr->opcode) & OPS_SEND)
		return sv_send_execute_locked(qp, wr, length);
	if (likely(OP(wr->opcode) & OPS_RDMA))
		return sv_rdma_execute_locked(qp, wr, length);
	if (OP(wr->opcode) & OPS_ATOMIC)
		return sv_atomic_execute_locked(qp, wr, length);
	return wr->opcode == IBV_WR_BIND_MW ? sv_mw_execute_bind(qp, wr)
					    : sv_mw_execute_invalidate(qp, wr->invalidate_rkey);
}

static inline int execute(struct sv_qp *qp, const struct ibv_send_wr *wr, uint32_t length)
{
	return unlikely(!qp->sq.plain) ? qp->ops->execute(qp, wr, length)
				       : sv_sq_execute_connected(qp, wr, length);
}

int sv_sq_execute(struct sv_qp *qp, const struct ibv_send_wr *wr)
{
	uint64_t length = length_of(wr);

	return length > SV_MAX_MSG ? (int)IBV_WC_LOC_LEN_ERR : execute(qp, wr, (uint32_t)length);
}

/* Inlined into the post path. */
static inline void post_notify_locked(struct sv_qp *qp)
{
	struct sv_sq *sq = &qp->sq;
	struct sv_cq *cq = qp->send_cq;
	struct sv_remote_rq *remote = &qp->remote_rq;
	bool ours = sq->fresh && cq->ibv.channel && !cq_is_polled(cq->by_peers, true),
	     theirs = sq->notified && !cq_is_polled(remote->cq, remote->expedited);

	/* Completions are published before; whether a waiter has armed the CQ is loaded after. */
	if (ours || theirs)
		fence_full();
	if (sq->notified)
		remote_rq_notify(remote, theirs, sq->notified, sq->notified_solicited);
	if (sq->fresh)
		cq_notify_sends(cq, qp->index, sq->fresh);
	if (ours)
		cq_fire(cq->by_peers, sv_peer_self(), cq->index, sq->failed);
	sq->notified = sq->fresh = 0;
	sq->notified_solicited = sq->failed = false;
}

void sv_sq_notify_locked(struct sv_qp *qp)
{
	post_notify_locked(qp);
}

/* Refuses a malformed work request. Errors that concern memory become completions instead. */
static inline int wr_check(const struct sv_qp *qp, const struct ibv_send_wr *wr)
{
	const struct sv_sq *sq = &qp->sq;

	if (unlikely((uint32_t)wr->num_sge > sq->max_sge || (unsigned)wr->opcode >= 32 ||
		     !(OP(wr->opcode) & sq->opcodes)))
		return EINVAL;
	if (unlikely(sq->service == SERVICE_UD) && !qp->ops->is_addressed(qp, wr))
		return EINVAL;
	if (wr->send_flags & IBV_SEND_INLINE &&
	    (!(OP(wr->opcode) & OPS_INLINE) || length_of(wr) > sq->max_inline))
		return EINVAL;
	return 0;
}

static int post_waiting_locked(struct sv_qp *qp, const struct ibv_send_wr *wr, int state)
{
	bool flushed = state == IBV_QPS_ERR || state == IBV_QPS_SQE;

	if (flushed && !qp->sq.executing) {
		sv_sq_flush_locked(qp);
		qp->sq.head++;
		sv_sq_complete_locked(qp, wr, IBV_WC_WR_FLUSH_ERR);
		return 0;
	}
	if (!flushed && state != IBV_QPS_RTS && state != IBV_QPS_SQD)
		return EINVAL;
	sv_sq_hold_locked(qp, wr);
	return POST_HELD;
}

/*
 * Whether the request is executed from its copy in the queue: if its payload is copied in chunks,
 * without the lock, or if it names objects that the consumer may destroy.
 */
static inline bool wr_is_held(const struct ibv_send_wr *wr, uint64_t length)
{
	return length > SQ_SHORT || wr->opcode == IBV_WR_BIND_MW;
}

static int post_slow_locked(struct sv_qp *qp, const struct ibv_send_wr *wr)
{
	struct sv_sq *sq = &qp->sq;
	int state = atomic_load_explicit(&qp->state, memory_order_relaxed), status,
	    err = wr_check(qp, wr);
	uint64_t length;

	if (unlikely(err))
		return err;
	if (unlikely(sq->head - sq->polled_seen > sq->mask)) {
		/* acquire: polls have read the entries before they are overwritten */
		sq->polled_seen = atomic_load_explicit(&qp->sq_polled, memory_order_acquire);
		if (sq->head - sq->polled_seen > sq->mask)
			return state == IBV_QPS_RTS || state >= IBV_QPS_SQD ? ENOMEM : EINVAL;
	}
	if (unlikely(state != IBV_QPS_RTS || sq->exec != sq->head || sq->executing))
		return post_waiting_locked(qp, wr, state);
	length = length_of(wr);
	status = unlikely(wr_is_held(wr, length)) ? POST_HELD : execute(qp, wr, (uint32_t)length);
	if (unlikely(status < 0)) {
		sv_sq_hold_locked(qp, wr);
		return POST_HELD;
	}
	sq->head++;
	if (unlikely(status != IBV_WC_SUCCESS))
		sv_sq_fail_locked(qp);
	sv_sq_complete_locked(qp, wr, (enum ibv_wc_status)status);
	return 0;
}

/*
 * The fast path: a short send on an idle queue. No request has waited, so there is no state of a
 * wait to clear.
 */
static inline __attribute__((always_inline)) int post_one_locked(struct sv_qp *qp,
								 const struct ibv_send_wr *wr)
{
	struct sv_sq *sq = &qp->sq;

	if (likely(sq->plain && send_is_fast(qp, wr) && sq->exec == sq->head &&
		   sq->head - sq->polled_seen <= sq->mask &&
		   atomic_load_explicit(&qp->state, memory_order_relaxed) == IBV_QPS_RTS) &&
	    likely(send_fast_locked(qp, wr))) {
		sq->head++;
		request_keep_locked(qp, wr, IBV_WC_SUCCESS);
		return 0;
	}
	return post_slow_locked(qp, wr);
}

/* Not inlined, unlike the copy of the same code in sv_qp_post_send. */
static __attribute__((noinline)) int post_another_locked(struct sv_qp *qp,
							 const struct ibv_send_wr *wr)
{
	return post_one_locked(qp, wr);
}

/* Ends a post that left requests in the queue: executes them. Releases the lock. */
static void post_run_unlocks(struct sv_qp *qp)
{
	int cancel = cancel_off();

	sv_sq_run_locked(qp, POST_SHARE);
	if (!qp->sq.executing)
		sv_sq_notify_locked(qp);
	lock_release(&qp->sq.lock);
	cancel_restore(cancel);
}

/*
 * Posts the rest of a list after request `wr`, for which post_one_locked returned `err`. Releases
 * the lock.
 */
static __attribute__((noinline)) int post_rest_unlocks(struct sv_qp *qp, struct ibv_send_wr *wr,
						       int err, struct ibv_send_wr **bad)
{
	while (err <= 0 && (wr = wr->next))
		err = post_another_locked(qp, wr);
	if (err > 0)
		*bad = wr;
	post_run_unlocks(qp);
	return err > 0 ? err : 0;
}

int sv_qp_post_send(struct ibv_qp *ibv, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	struct sv_qp *qp = qp_of(ibv);
	int err;

	if (unlikely(!*qp->alive)) {
		*bad = wr;
		return ENODEV;
	}
	lock_acquire(&qp->sq.lock);
	for (; wr; wr = wr->next) {
		err = post_one_locked(qp, wr);
		if (unlikely(err))
			return post_rest_unlocks(qp, wr, err, bad);
	}
	post_notify_locked(qp);
	lock_release(&qp->sq.lock);
	return 0;
}

static int batch_check_locked(struct sv_qp *qp, const struct ibv_send_wr *wr, uint32_t count)
{
	struct sv_sq *sq = &qp->sq;
	int state = atomic_load_explicit(&qp->state, memory_order_relaxed);

	if (state < IBV_QPS_RTS)
		return EINVAL;
	/* acquire: as in post_slow_locked */
	sq->polled_seen = atomic_load_explicit(&qp->sq_polled, memory_order_acquire);
	if (sq->head - sq->polled_seen + count > sq->mask + 1)
		return ENOMEM;
	for (uint32_t i = 0; i < count; i++)
		if (wr_check(qp, &wr[i]))
			return EINVAL;
	return 0;
}

int sv_qp_post_batch(struct sv_qp *qp, const struct ibv_send_wr *wr, uint32_t count)
{
	int err;

	if (!*qp->alive)
		return ENODEV;
	lock_acquire(&qp->sq.lock);
	err = batch_check_locked(qp, wr, count);
	for (uint32_t i = 0; i < count && err <= 0; i++)
		err = post_another_locked(qp, &wr[i]);
	post_run_unlocks(qp);
	return err > 0 ? err : 0;
}
