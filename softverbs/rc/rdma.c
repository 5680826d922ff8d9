/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* One-sided operations: the initiator checks the target's tables and copies. */
#include "softverbs/rc/bounce.h"
#include "softverbs/rc/copy.h"
#include "softverbs/rc/direct.h"
#include "softverbs/rc/memory.h"
#include "softverbs/rc/rdma.h"
#include "softverbs/rc/remote_rq.h"
#include "softverbs/rc/request.h"

struct rdma {
	const struct ibv_send_wr *wr;
	unsigned iov_count;
	struct iovec iov[SV_MAX_SGE];
};

static inline bool rdma_is_read(const struct ibv_send_wr *wr)
{
	return wr->opcode == IBV_WR_RDMA_READ;
}

/*
 * Between epoch_enter and epoch_leave: checks the access rights of the target's QP, then of its
 * memory.
 */
static enum ibv_wc_status rdma_check(struct sv_remote_rq *remote, const struct ibv_send_wr *wr,
				     uint64_t skip, uint64_t length, uint64_t *va)
{
	unsigned need = rdma_is_read(wr) ? IBV_ACCESS_REMOTE_READ : IBV_ACCESS_REMOTE_WRITE;

	if (!(atomic_load_explicit(&remote->by_owner->access, memory_order_relaxed) & need) ||
	    (rdma_is_read(wr) &&
	     !atomic_load_explicit(&remote->by_owner->max_dest_rd, memory_order_relaxed))) {
		sv_remote_rq_report(remote, FAULT_REQUEST);
		return IBV_WC_REM_INV_REQ_ERR;
	}
	if (length && !rdma_allows(remote, wr->wr.rdma.rkey, wr->wr.rdma.remote_addr + skip, length,
				   need, va)) {
		sv_remote_rq_report(remote, FAULT_ACCESS);
		return IBV_WC_REM_ACCESS_ERR;
	}
	return IBV_WC_SUCCESS;
}

int sv_rdma_copied(struct sv_remote_rq *remote, enum copy_result result)
{
	switch (result) {
	case COPY_DONE: return IBV_WC_SUCCESS;
	case COPY_HERE: return IBV_WC_LOC_PROT_ERR;
	case COPY_GONE: return EXEC_WAIT(SQ_SILENT);
	default: sv_remote_rq_report(remote, FAULT_FATAL); return IBV_WC_REM_OP_ERR;
	}
}

/* The peer copies. */
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

	qp->sq.moved = 0; /* it copies all, also what went directly before */
	return sv_bounce_move(qp, &op);
}

/* Whether the way that the peer's copy class allows would not store the polled bytes at once; the peer itself does. */
static bool rdma_is_torn(const struct sv_remote_rq *remote, const struct rdma *rdma,
			 const struct iovec *there)
{
	return remote->copy == SV_COPY_MEMFD && !rdma_is_read(rdma->wr) &&
	       sv_copy_file_is_bytewise((uint8_t *)there->iov_base + there->iov_len -
					memory_polled(there));
}

/* This process copies, in a way that the peer's copy class allows. */
static enum copy_result rdma_copy(struct sv_remote_rq *remote, const struct rdma *rdma,
				  uint32_t done, struct iovec there)
{
	return rdma_is_read(rdma->wr)
		       ? sv_copy_in(remote->peer, rdma->iov, rdma->iov_count, done, &there, 1,
				    there.iov_len)
		       : sv_copy_out_polled(remote->peer, rdma->iov, rdma->iov_count, done, there);
}

/* The same where memory is mapped here, or open. COPY_THERE: the other ways are to be tried. */
static enum copy_result rdma_direct(struct sv_qp *qp, const struct rdma *rdma, uint32_t done,
				    const struct iovec *there)
{
	const struct sv_remote_rq *remote = &qp->remote_rq;
	bool read = rdma_is_read(rdma->wr);
	struct direct_place place;

	if (!direct_find(remote, rdma->wr->wr.rdma.rkey, (uintptr_t)there->iov_base, there->iov_len,
			 !read, &place) ||
	    (!place.at && there->iov_len > DIRECT_FILE_MAX && remote->copy != SV_COPY_BOUNCE))
		return COPY_THERE;
	return read ? sv_direct_in(&qp->mapped, rdma->iov, rdma->iov_count, done, &place,
				   there->iov_len)
		    : sv_direct_out(&qp->mapped, rdma->iov, rdma->iov_count, done, &place,
				    there->iov_len);
}

/*
 * Between epoch_enter and epoch_leave: copies the next chunk. Each chunk checks the whole rest of
 * the range, so that no chunk is copied of a request that cannot finish.
 */
static int rdma_chunk(struct sv_qp *qp, const struct rdma *rdma, uint32_t length)
{
	uint32_t done = sq_moved(qp),
		 part = length - done < COPY_PIECE ? length - done : COPY_PIECE;
	struct sv_remote_rq *remote = &qp->remote_rq;
	struct iovec there = { .iov_len = part };
	enum copy_result result;
	uint64_t va = 0;
	int status = rdma_check(remote, rdma->wr, done, length - done, &va);

	if (status != IBV_WC_SUCCESS || !part)
		return status;
	there.iov_base = (void *)(uintptr_t)va;
	result = rdma_direct(qp, rdma, done, &there);
	/* remote_rq_enter_locked has set `copy` */
	if (result == COPY_THERE && unlikely(remote->copy != SV_COPY_PVM) &&
	    (remote->copy == SV_COPY_BOUNCE || rdma_is_torn(remote, rdma, &there)))
		return rdma_bounce(qp, rdma, length);
	if (result == COPY_THERE)
		result = rdma_copy(remote, rdma, done, there);
	status = sv_rdma_copied(remote, result);
	return status == IBV_WC_SUCCESS ? sq_move(qp, part, length) : status;
}

/* Leaves the epoch between chunks, so that an owner can withdraw the memory. */
static int rdma_move(struct sv_qp *qp, const struct rdma *rdma, uint32_t length)
{
	int status = remote_rq_enter_locked(qp);

	if (unlikely(status))
		return status;
	status = unlikely(bounce_is_active(qp)) ? rdma_bounce(qp, rdma, length)
						: rdma_chunk(qp, rdma, length);
	epoch_leave(&qp->remote_rq);
	return status;
}

int sv_rdma_execute_locked(struct sv_qp *qp, const struct ibv_send_wr *wr, uint32_t length)
{
	unsigned need = rdma_is_read(wr) ? IBV_ACCESS_LOCAL_WRITE : REGION_LOCAL;
	struct rdma rdma;
	int status;

	rdma.wr = wr;
	rdma.iov_count = (unsigned)wr->num_sge;
	if (!sv_send_resolve(qp, wr, need, rdma.iov))
		return IBV_WC_LOC_PROT_ERR;
	if (rdma_is_read(wr) && !qp->attr.max_rd_atomic)
		return IBV_WC_LOC_QP_OP_ERR;
	if (!qp->sq.written) {
		status = rdma_move(qp, &rdma, length);
		if (status != IBV_WC_SUCCESS || wr->opcode != IBV_WR_RDMA_WRITE_WITH_IMM)
			return status;
		qp->sq.written = true;
	}
	return sv_send_immediate_locked(qp, wr, length);
}
