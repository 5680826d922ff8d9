/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Posting work requests: the consumer's segment list goes to the device as it is. */
#include <errno.h>
#include "dapl/openib/openib.h"

/* The claim that lets a list pass: same size, same members, same places. */
_Static_assert(sizeof(DAT_LMR_TRIPLET) == sizeof(struct ibv_sge), "triplet and SGE differ in size");
_Static_assert(offsetof(DAT_LMR_TRIPLET, virtual_address) == offsetof(struct ibv_sge, addr),
	       "address");
_Static_assert(offsetof(DAT_LMR_TRIPLET, segment_length) == offsetof(struct ibv_sge, length),
	       "length");
_Static_assert(offsetof(DAT_LMR_TRIPLET, lmr_context) == offsetof(struct ibv_sge, lkey), "key");
_Static_assert(IB_OP_SEND >> IB_OP_SHIFT == (int)IBV_WR_SEND &&
		       IB_OP_WRITE >> IB_OP_SHIFT == (int)IBV_WR_RDMA_WRITE &&
		       IB_OP_READ >> IB_OP_SHIFT == (int)IBV_WR_RDMA_READ &&
		       IB_OP_WRITE_IMM >> IB_OP_SHIFT == (int)IBV_WR_RDMA_WRITE_WITH_IMM &&
		       IB_OP_SWAP >> IB_OP_SHIFT == (int)IBV_WR_ATOMIC_CMP_AND_SWP &&
		       IB_OP_ADD >> IB_OP_SHIFT == (int)IBV_WR_ATOMIC_FETCH_AND_ADD &&
		       IB_OP_INV >> IB_OP_SHIFT == (int)IBV_WR_LOCAL_INV &&
		       IB_OP_BIND >> IB_OP_SHIFT == (int)IBV_WR_BIND_MW &&
		       IB_OP_SEND_INV >> IB_OP_SHIFT == (int)IBV_WR_SEND_WITH_INV,
	       "operations");
_Static_assert(offsetof(struct ibv_send_wr, imm_data) ==
		       offsetof(struct ibv_send_wr, invalidate_rkey),
	       "one word");
_Static_assert(IB_POST_SIGNALED == IBV_SEND_SIGNALED && IB_POST_SOLICITED == IBV_SEND_SOLICITED &&
		       IB_POST_FENCE == IBV_SEND_FENCE && IB_POST_INLINE == IBV_SEND_INLINE,
	       "flags");

static struct ibv_sge *sge_list(const DAT_LMR_TRIPLET *segments)
{
	return (struct ibv_sge *)(uintptr_t)segments;
}

#define SAME_PLACE(ours, theirs, member, verbs)                                           \
	_Static_assert(offsetof(struct ours, member) == offsetof(struct theirs, verbs) && \
			       sizeof(((struct ours *)NULL)->member) ==                   \
				       sizeof(((struct theirs *)NULL)->verbs),            \
		       #member)

/* The claim that lets a work request pass that was built elsewhere. */
SAME_PLACE(ib_send_work, ibv_send_wr, wr_id, wr_id);
SAME_PLACE(ib_send_work, ibv_send_wr, next, next);
SAME_PLACE(ib_send_work, ibv_send_wr, segments, sg_list);
SAME_PLACE(ib_send_work, ibv_send_wr, count, num_sge);
SAME_PLACE(ib_send_work, ibv_send_wr, opcode, opcode);
SAME_PLACE(ib_send_work, ibv_send_wr, flags, send_flags);
SAME_PLACE(ib_send_work, ibv_send_wr, word, imm_data);
SAME_PLACE(ib_send_work, ibv_send_wr, remote_address, wr.rdma.remote_addr);
SAME_PLACE(ib_send_work, ibv_send_wr, remote_key, wr.rdma.rkey);
_Static_assert(sizeof(struct ib_send_work) == sizeof(struct ibv_send_wr), "work requests");
SAME_PLACE(ib_recv_work, ibv_recv_wr, wr_id, wr_id);
SAME_PLACE(ib_recv_work, ibv_recv_wr, next, next);
SAME_PLACE(ib_recv_work, ibv_recv_wr, segments, sg_list);
SAME_PLACE(ib_recv_work, ibv_recv_wr, count, num_sge);
_Static_assert(sizeof(struct ib_recv_work) == sizeof(struct ibv_recv_wr), "receive requests");

__attribute__((cold)) DAT_RETURN ib_post_refused(int error)
{
	if (error == ENOMEM)
		return DAT_ERROR(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_MEMORY);
	return ib_error(error, "post", "QP") == DAT_ERROR(DAT_INVALID_PARAMETER, 0)
		       ? DAT_ERROR(DAT_INVALID_PARAMETER, 0)
		       : DAT_ERROR(DAT_INTERNAL_ERROR, 0);
}

static inline DAT_RETURN posted(int error)
{
	return __builtin_expect(!error, 1) ? DAT_SUCCESS : ib_post_refused(error);
}

DAT_RETURN post_result(int error)
{
	return posted(error);
}

/* Member by member: the whole struct is 128 bytes, of which a send needs these. */
static inline void begin(struct ibv_send_wr *wr, unsigned request, uint64_t wr_id,
			 const DAT_LMR_TRIPLET *segments, unsigned count)
{
	wr->wr_id = wr_id;
	wr->next = NULL;
	wr->sg_list = sge_list(segments);
	wr->num_sge = (int)count;
	wr->opcode = (enum ibv_wr_opcode)(request >> IB_OP_SHIFT);
	wr->send_flags = request & ((1u << IB_OP_SHIFT) - 1);
}

DAT_RETURN ib_post_send(struct ib_qp *qp, unsigned request, uint64_t wr_id,
			const DAT_LMR_TRIPLET *segments, unsigned count,
			const DAT_RMR_TRIPLET *remote)
{
	struct ibv_send_wr wr, *bad;

	begin(&wr, request, wr_id, segments, count);
	if (remote) {
		wr.wr.rdma.remote_addr = remote->virtual_address;
		wr.wr.rdma.rkey = remote->rmr_context;
	}
	return posted(ibv_post_send(qp->qp, &wr, &bad));
}

DAT_RETURN ib_post_word(struct ib_qp *qp, unsigned request, uint64_t wr_id,
			const DAT_LMR_TRIPLET *segments, unsigned count,
			const DAT_RMR_TRIPLET *remote, uint32_t word)
{
	struct ibv_send_wr wr, *bad;

	begin(&wr, request, wr_id, segments, count);
	wr.invalidate_rkey = word;
	if (remote) {
		wr.wr.rdma.remote_addr = remote->virtual_address;
		wr.wr.rdma.rkey = remote->rmr_context;
	}
	return posted(ibv_post_send(qp->qp, &wr, &bad));
}

DAT_RETURN ib_post_atomic(struct ib_qp *qp, unsigned request, uint64_t wr_id,
			  const DAT_LMR_TRIPLET *segment, const DAT_RMR_TRIPLET *remote,
			  uint64_t operand, uint64_t swap)
{
	struct ibv_send_wr wr, *bad;

	begin(&wr, request, wr_id, segment, 1);
	wr.wr.atomic.remote_addr = remote->virtual_address;
	wr.wr.atomic.rkey = remote->rmr_context;
	wr.wr.atomic.compare_add = operand;
	wr.wr.atomic.swap = swap;
	return posted(ibv_post_send(qp->qp, &wr, &bad));
}

DAT_RETURN ib_post_recv(struct ib_qp *qp, uint64_t wr_id, const DAT_LMR_TRIPLET *segments,
			unsigned count)
{
	struct ibv_recv_wr wr = { .wr_id = wr_id,
				  .sg_list = sge_list(segments),
				  .num_sge = (int)count };
	struct ibv_recv_wr *bad;

	return posted(ibv_post_recv(qp->qp, &wr, &bad));
}

DAT_RETURN ib_post_srq_recv(struct ib_srq *srq, uint64_t wr_id, const DAT_LMR_TRIPLET *segments,
			    unsigned count)
{
	struct ibv_recv_wr wr = { .wr_id = wr_id,
				  .sg_list = sge_list(segments),
				  .num_sge = (int)count };
	struct ibv_recv_wr *bad;

	return posted(ibv_post_srq_recv(srq->srq, &wr, &bad));
}
