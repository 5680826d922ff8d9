/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Work requests: those of ib.h are those of verbs, so that neither they nor segment lists are copied. */
#include <errno.h>
#include <stdlib.h>
#include "dapl/openib/openib.h"

/* DAT_LMR_TRIPLET has the layout of struct ibv_sge, so that a list needs no copy. */
_Static_assert(sizeof(DAT_LMR_TRIPLET) == sizeof(struct ibv_sge), "triplet and SGE differ in size");
_Static_assert(offsetof(DAT_LMR_TRIPLET, virtual_address) == offsetof(struct ibv_sge, addr),
	       "address");
_Static_assert(offsetof(DAT_LMR_TRIPLET, segment_length) == offsetof(struct ibv_sge, length),
	       "length");
_Static_assert(offsetof(DAT_LMR_TRIPLET, lmr_context) == offsetof(struct ibv_sge, lkey), "key");
_Static_assert(IB_OP_SEND == (int)IBV_WR_SEND && IB_OP_WRITE == (int)IBV_WR_RDMA_WRITE &&
		       IB_OP_READ == (int)IBV_WR_RDMA_READ &&
		       IB_OP_WRITE_IMM == (int)IBV_WR_RDMA_WRITE_WITH_IMM &&
		       IB_OP_SWAP == (int)IBV_WR_ATOMIC_CMP_AND_SWP &&
		       IB_OP_ADD == (int)IBV_WR_ATOMIC_FETCH_AND_ADD &&
		       IB_OP_INV == (int)IBV_WR_LOCAL_INV && IB_OP_BIND == (int)IBV_WR_BIND_MW &&
		       IB_OP_SEND_INV == (int)IBV_WR_SEND_WITH_INV,
	       "operations");
_Static_assert(offsetof(struct ibv_send_wr, imm_data) ==
		       offsetof(struct ibv_send_wr, invalidate_rkey),
	       "one word");
_Static_assert(IB_POST_SIGNALED == IBV_SEND_SIGNALED && IB_POST_SOLICITED == IBV_SEND_SOLICITED &&
		       IB_POST_FENCE == IBV_SEND_FENCE && IB_POST_INLINE == IBV_SEND_INLINE,
	       "flags");

#define SAME_PLACE(ours, theirs, member, verbs)                                           \
	_Static_assert(offsetof(struct ours, member) == offsetof(struct theirs, verbs) && \
			       sizeof(((struct ours *)NULL)->member) ==                   \
				       sizeof(((struct theirs *)NULL)->verbs),            \
		       #member)

/* The work requests of ib.h have the layout of those of verbs. */
SAME_PLACE(ib_send_work, ibv_send_wr, wr_id, wr_id);
SAME_PLACE(ib_send_work, ibv_send_wr, next, next);
SAME_PLACE(ib_send_work, ibv_send_wr, segments, sg_list);
SAME_PLACE(ib_send_work, ibv_send_wr, count, num_sge);
SAME_PLACE(ib_send_work, ibv_send_wr, op, opcode);
SAME_PLACE(ib_send_work, ibv_send_wr, flags, send_flags);
SAME_PLACE(ib_send_work, ibv_send_wr, word, imm_data);
SAME_PLACE(ib_send_work, ibv_send_wr, remote_address, wr.rdma.remote_addr);
SAME_PLACE(ib_send_work, ibv_send_wr, remote_key, wr.rdma.rkey);
SAME_PLACE(ib_send_work, ibv_send_wr, atomic.remote_address, wr.atomic.remote_addr);
SAME_PLACE(ib_send_work, ibv_send_wr, atomic.operand, wr.atomic.compare_add);
SAME_PLACE(ib_send_work, ibv_send_wr, atomic.swap, wr.atomic.swap);
SAME_PLACE(ib_send_work, ibv_send_wr, atomic.remote_key, wr.atomic.rkey);
_Static_assert(sizeof(struct ib_send_work) == sizeof(struct ibv_send_wr), "work requests");
SAME_PLACE(ib_recv_work, ibv_recv_wr, wr_id, wr_id);
SAME_PLACE(ib_recv_work, ibv_recv_wr, next, next);
SAME_PLACE(ib_recv_work, ibv_recv_wr, segments, sg_list);
SAME_PLACE(ib_recv_work, ibv_recv_wr, count, num_sge);
_Static_assert(sizeof(struct ib_recv_work) == sizeof(struct ibv_recv_wr), "receive requests");

__attribute__((cold)) DAT_RETURN ib_post_refused(int error)
{
	error = abs(error); /* some drivers return it negative */
	if (error == ENOMEM)
		return DAT_ERROR(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_MEMORY);
	return ib_error(error, "post", "QP") == DAT_ERROR(DAT_INVALID_PARAMETER, 0)
		       ? DAT_ERROR(DAT_INVALID_PARAMETER, 0)
		       : DAT_ERROR(DAT_INTERNAL_ERROR, 0);
}

DAT_RETURN ib_post_srq_recv(struct ib_srq *srq, uint64_t wr_id, const DAT_LMR_TRIPLET *segments,
			    unsigned count)
{
	struct ib_recv_work work = { .wr_id = wr_id, .segments = segments, .count = (int)count };
	struct ibv_recv_wr *bad;
	int error = ibv_post_srq_recv(srq->srq, (struct ibv_recv_wr *)&work, &bad);

	return __builtin_expect(!error, 1) ? DAT_SUCCESS : ib_post_refused(error);
}
