/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Requests of the InfiniBand extensions: atomics, and RDMA writes with immediate data. */
#include "dapl/udapl/ep_post.h"
#include "dapl/udapl/ext.h"

#define ATOMIC_SIZE 8u /* bytes, and alignment (InfiniBand, atomic operations) */

static DAT_RETURN post_atomic(struct ib_qp *qp, unsigned request, uint64_t wr_id,
			      const struct ep_work *work)
{
	return ib_post_atomic(qp, request, wr_id, work->segments, work->remote, work->operand,
			      work->swap);
}

/*
 * ARGn counts the parameters of the macro: `first` is the number of the local segment, after which
 * come cookie, remote segment and flags.
 */
static DAT_RETURN atomic_post(struct dapl_ep *ep, struct ep_work *work, unsigned first)
{
	const DAT_LMR_TRIPLET *local = work->segments;
	DAT_LMR_TRIPLET exact;

	if (ep->datagrams)
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
	if (!ep->obj.ia->attr->atomics)
		return DAT_ERROR(DAT_MODEL_NOT_SUPPORTED, 0);
	if (!local || local->segment_length < ATOMIC_SIZE)
		return DAT_ERROR(DAT_INVALID_PARAMETER, first);
	if (!work->remote || work->remote->virtual_address % ATOMIC_SIZE)
		return DAT_ERROR(DAT_INVALID_PARAMETER, first + 2);
	if (!flags_valid(work->flags, FLAGS_REQUEST, EP_ATTR(ep, request_completion_flags)))
		return DAT_ERROR(DAT_INVALID_PARAMETER, first + 3);
	exact = *local;
	exact.segment_length = ATOMIC_SIZE;
	work->segments = &exact;
	work->count = 1;
	work->special = DTO_EXTENDED;
	work->post = post_atomic;
	return ep_work_post(ep, work, first);
}

DAT_RETURN ext_fetch_and_add(DAT_HANDLE ep, va_list args)
{
	struct ep_work work = { .op = IB_OP_ADD, .operation = DAT_IB_DTO_FETCH_ADD };

	work.operand = va_arg(args, DAT_UINT64);
	work.segments = va_arg(args, DAT_LMR_TRIPLET *);
	work.cookie = va_arg(args, DAT_DTO_COOKIE);
	work.remote = va_arg(args, DAT_RMR_TRIPLET *);
	work.flags = va_arg(args, DAT_COMPLETION_FLAGS);
	return atomic_post(ep, &work, DAT_INVALID_ARG3);
}

DAT_RETURN ext_cmp_and_swap(DAT_HANDLE ep, va_list args)
{
	struct ep_work work = { .op = IB_OP_SWAP, .operation = DAT_IB_DTO_CMP_SWAP };

	work.operand = va_arg(args, DAT_UINT64);
	work.swap = va_arg(args, DAT_UINT64);
	work.segments = va_arg(args, DAT_LMR_TRIPLET *);
	work.cookie = va_arg(args, DAT_DTO_COOKIE);
	work.remote = va_arg(args, DAT_RMR_TRIPLET *);
	work.flags = va_arg(args, DAT_COMPLETION_FLAGS);
	return atomic_post(ep, &work, DAT_INVALID_ARG4);
}

DAT_RETURN ext_rdma_write_immed(DAT_HANDLE handle, va_list args)
{
	struct ep_work work = { .op = IB_OP_WRITE_IMM,
				.operation = DAT_IB_DTO_RDMA_WRITE_IMMED,
				.special = DTO_EXTENDED,
				.post = ep_work_post_word };
	const struct dapl_ep *ep = handle;
	DAT_COUNT most = EP_ATTR(ep, max_rdma_write_iov);

	work.count = (unsigned)va_arg(args, DAT_COUNT);
	work.segments = va_arg(args, DAT_LMR_TRIPLET *);
	work.cookie = va_arg(args, DAT_DTO_COOKIE);
	work.remote = va_arg(args, DAT_RMR_TRIPLET *);
	work.word = va_arg(args, DAT_UINT32);
	work.flags = va_arg(args, DAT_COMPLETION_FLAGS);
	if (ep->datagrams)
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
	if (ep->obj.ia->attr->iwarp)
		return DAT_ERROR(DAT_MODEL_NOT_SUPPORTED, 0);
	/* A negative count is a large one. */
	if (work.count > (unsigned)(most ? most : EP_ATTR(ep, max_request_iov)))
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
	if (work.count && !work.segments)
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
	if (!work.remote)
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG5);
	if (!flags_valid(work.flags, FLAGS_REQUEST, EP_ATTR(ep, request_completion_flags)))
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG7);
	return ep_work_post(handle, &work, DAT_INVALID_ARG3);
}
