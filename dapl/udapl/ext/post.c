/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Requests of the InfiniBand extensions: atomics, and RDMA writes with immediate data. */
#include "dapl/udapl/post/post.h"
#include "dapl/udapl/ext/ext.h"

#define ATOMIC_SIZE 8u /* bytes, and alignment (InfiniBand, atomic operations) */

/*
 * ARGn counts the parameters of the macro: `first` is the number of the local segment, after which
 * come cookie, remote segment and flags.
 */
static DAT_RETURN atomic_post(struct dapl_ep *ep, struct ep_request *request, va_list args,
			      unsigned first)
{
	const DAT_LMR_TRIPLET *local = va_arg(args, DAT_LMR_TRIPLET *);
	DAT_DTO_COOKIE cookie = va_arg(args, DAT_DTO_COOKIE);
	const DAT_RMR_TRIPLET *remote = va_arg(args, DAT_RMR_TRIPLET *);
	DAT_COMPLETION_FLAGS flags = va_arg(args, DAT_COMPLETION_FLAGS);
	DAT_LMR_TRIPLET exact;

	if (ep->end.datagrams)
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
	if (!ep->obj.ia->attr->atomics)
		return DAT_ERROR(DAT_MODEL_NOT_SUPPORTED, 0);
	if (!local || local->segment_length < ATOMIC_SIZE)
		return DAT_ERROR(DAT_INVALID_PARAMETER, first);
	if (!remote || remote->virtual_address % ATOMIC_SIZE)
		return DAT_ERROR(DAT_INVALID_PARAMETER, first + 2);
	if (!flags_valid(flags, FLAGS_REQUEST, EP_ATTR(ep, request_completion_flags)))
		return DAT_ERROR(DAT_INVALID_PARAMETER, first + 3);
	exact = *local;
	exact.segment_length = ATOMIC_SIZE;
	request->work.segments = &exact;
	request->work.count = 1;
	request->work.atomic.remote_address = remote->virtual_address;
	request->work.atomic.remote_key = remote->rmr_context;
	request->slot.cookie = cookie;
	request->slot.flags = (uint8_t)flags;
	request->slot.kind = DTO_EXTENDED;
	return ep_request_post(ep, request, first);
}

DAT_RETURN ext_fetch_and_add(DAT_HANDLE ep, va_list args)
{
	struct ep_request request = { .work.op = IB_OP_ADD,
				      .slot.operation = DAT_IB_DTO_FETCH_ADD };

	request.work.atomic.operand = va_arg(args, DAT_UINT64);
	return atomic_post(ep, &request, args, DAT_INVALID_ARG3);
}

DAT_RETURN ext_cmp_and_swap(DAT_HANDLE ep, va_list args)
{
	struct ep_request request = { .work.op = IB_OP_SWAP,
				      .slot.operation = DAT_IB_DTO_CMP_SWAP };

	request.work.atomic.operand = va_arg(args, DAT_UINT64);
	request.work.atomic.swap = va_arg(args, DAT_UINT64);
	return atomic_post(ep, &request, args, DAT_INVALID_ARG4);
}

DAT_RETURN ext_rdma_write_immed(DAT_HANDLE handle, va_list args)
{
	struct ep_request request = { .work.op = IB_OP_WRITE_IMM,
				      .slot.operation = DAT_IB_DTO_RDMA_WRITE_IMMED,
				      .slot.kind = DTO_EXTENDED };
	struct ib_send_work *work = &request.work;
	struct dapl_ep *ep = handle;
	const DAT_RMR_TRIPLET *remote;
	DAT_COMPLETION_FLAGS flags;

	work->count = va_arg(args, DAT_COUNT);
	work->segments = va_arg(args, DAT_LMR_TRIPLET *);
	request.slot.cookie = va_arg(args, DAT_DTO_COOKIE);
	remote = va_arg(args, DAT_RMR_TRIPLET *);
	work->word = va_arg(args, DAT_UINT32);
	flags = va_arg(args, DAT_COMPLETION_FLAGS);
	if (ep->end.datagrams)
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
	if (ep->obj.ia->attr->iwarp)
		return DAT_ERROR(DAT_MODEL_NOT_SUPPORTED, 0);
	return ep_rdma_post(ep, &request, remote, flags, DAT_INVALID_ARG7);
}
