/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* One-sided operations: the initiator checks what the target's tables allow, and copies. */
#include "softverbs/bounce.h"
#include "softverbs/copy.h"
#include "softverbs/rdma.h"
#include "softverbs/tx.h"

struct rdma {
	const struct ibv_send_wr *wr;
	unsigned iov_count;
	struct iovec iov[SV_MAX_SGE];
};

static inline bool rdma_is_read(const struct ibv_send_wr *wr)
{
	return wr->opcode == IBV_WR_RDMA_READ;
}

/* Inside the window: what the target's QP, then its memory says. */
static enum ibv_wc_status rdma_check(struct sv_tx *tx, const struct ibv_send_wr *wr, uint64_t skip,
				     uint64_t length, uint64_t *va)
{
	unsigned need = rdma_is_read(wr) ? IBV_ACCESS_REMOTE_READ : IBV_ACCESS_REMOTE_WRITE;

	if (!(atomic_load_explicit(&tx->ro->access, memory_order_relaxed) & need) ||
	    (rdma_is_read(wr) &&
	     !atomic_load_explicit(&tx->ro->max_dest_rd, memory_order_relaxed))) {
		tx_report(tx, FAULT_REQUEST);
		return IBV_WC_REM_INV_REQ_ERR;
	}
	if (length &&
	    !rdma_allows(tx, wr->wr.rdma.rkey, wr->wr.rdma.remote_addr + skip, length, need, va)) {
		tx_report(tx, FAULT_ACCESS);
		return IBV_WC_REM_ACCESS_ERR;
	}
	return IBV_WC_SUCCESS;
}

int rdma_copied(struct sv_tx *tx, enum copy_result result)
{
	switch (result) {
	case COPY_DONE: return IBV_WC_SUCCESS;
	case COPY_HERE: return IBV_WC_LOC_PROT_ERR;
	case COPY_GONE: return EXEC_WAIT(SQ_SILENT);
	default: tx_report(tx, FAULT_FATAL); return IBV_WC_REM_OP_ERR;
	}
}

/*
 * Inside the window. The rest of the range is checked with each piece: nothing is begun that cannot
 * be finished.
 */
static int rdma_piece(struct sv_tx *tx, const struct rdma *rdma, uint32_t done, uint32_t length)
{
	uint32_t part = length - done < COPY_PIECE ? length - done : COPY_PIECE;
	struct iovec there;
	uint64_t va = 0;
	int status = rdma_check(tx, rdma->wr, done, length - done, &va);

	if (status != IBV_WC_SUCCESS || !part)
		return status;
	there.iov_base = (void *)(uintptr_t)va;
	there.iov_len = part;
	return rdma_copied(tx, rdma_is_read(rdma->wr)
				       ? copy_in(tx->peer, rdma->iov, rdma->iov_count, done, &there,
						 1, part)
				       : copy_out_polled(tx->peer, rdma->iov, rdma->iov_count, done,
							 there));
}

/* Inside the window: the peer copies. What has no bytes is checked here, for nothing is copied. */
static int rdma_bounce(struct sv_qp *qp, const struct rdma *rdma, uint32_t length)
{
	struct bounce_op op = {
		.kind = rdma_is_read(rdma->wr) ? BOUNCE_READ : BOUNCE_WRITE,
		.key = rdma->wr->wr.rdma.rkey,
		.addr = rdma->wr->wr.rdma.remote_addr,
		.length = length,
		.iov = rdma->iov,
		.iov_count = rdma->iov_count,
	};
	uint64_t va;

	return length ? bounce_move(qp, &op) : (int)rdma_check(&qp->tx, rdma->wr, 0, 0, &va);
}

/*
 * Between pieces the window closes for a moment, for whoever wants to withdraw what is used here.
 */
static int rdma_move_locked(struct sv_qp *qp, const struct rdma *rdma, uint32_t length)
{
	struct sv_tx *tx = &qp->tx;
	uint32_t done = 0, epoch = 0;
	int status;

	do {
		status = tx_enter_locked(qp);
		if (unlikely(status))
			return status;
		if (tx->copy == SV_COPY_BOUNCE) { /* known since the window was entered */
			status = rdma_bounce(qp, rdma, length);
			window_leave(tx);
			return status;
		}
		if (tx->epoch != epoch)
			done = 0; /* another QP than the last piece went to */
		epoch = tx->epoch;
		status = rdma_piece(tx, rdma, done, length);
		window_leave(tx);
		done += length - done < COPY_PIECE ? length - done : COPY_PIECE;
	} while (status == IBV_WC_SUCCESS && done < length);
	return status;
}

int rdma_execute_locked(struct sv_qp *qp, const struct ibv_send_wr *wr, uint32_t length)
{
	unsigned need = rdma_is_read(wr) ? IBV_ACCESS_LOCAL_WRITE : REGION_LOCAL;
	struct rdma rdma;
	int status;

	rdma.wr = wr;
	rdma.iov_count = (unsigned)wr->num_sge;
	if (!send_resolve(qp, wr, need, rdma.iov))
		return IBV_WC_LOC_PROT_ERR;
	if (rdma_is_read(wr) && !qp->attr.max_rd_atomic)
		return IBV_WC_LOC_QP_OP_ERR;
	if (!qp->sq.written) {
		status = rdma_move_locked(qp, &rdma, length);
		if (status != IBV_WC_SUCCESS || wr->opcode != IBV_WR_RDMA_WRITE_WITH_IMM)
			return status;
		qp->sq.written = true;
	}
	return send_immediate_locked(qp, wr, length);
}
