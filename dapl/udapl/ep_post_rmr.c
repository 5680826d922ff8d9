/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Posts that have to do with RMRs: a send can invalidate the peer's. */
#include "dapl/udapl/ep_post.h"
#include "dapl/udapl/provider.h"

DAT_RETURN dapl_ep_post_send_with_invalidate(DAT_EP_HANDLE handle, DAT_COUNT count,
					     DAT_LMR_TRIPLET *segments, DAT_DTO_COOKIE cookie,
					     DAT_COMPLETION_FLAGS flags, DAT_BOOLEAN invalidate,
					     DAT_RMR_CONTEXT context)
{
	struct dapl_ep *ep = ep_from(handle);
	struct ep_work work = { .op = IB_OP_SEND_INV,
				.operation = DAT_DTO_SEND,
				.segments = segments,
				.count = (unsigned)count,
				.cookie = cookie,
				.flags = flags,
				.word = context,
				.post = ep_work_post_word };
	const struct ib_attr *attr;

	if (!ep || ep->datagrams)
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
	attr = ep->obj.ia->attr;
	if (!attr->mem_extensions && !attr->mw_type2)
		return DAT_ERROR(DAT_MODEL_NOT_SUPPORTED, 0);
	if (!invalidate)
		return dapl_ep_post_send(handle, count, segments, cookie, flags);
	/* A negative count is a large one. */
	if (work.count > (unsigned)EP_ATTR(ep, max_request_iov))
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
	if (count && !segments)
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
	if (!flags_valid(flags, FLAGS_REQUEST, EP_ATTR(ep, request_completion_flags)))
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG5);
	return ep_work_post(ep, &work, DAT_INVALID_ARG3);
}

/* A read's sink is named by a local key here; only iWARP has it otherwise (RFC 5040). */
DAT_RETURN dapl_ep_post_rdma_read_to_rmr(DAT_EP_HANDLE handle, const DAT_RMR_TRIPLET *local,
					 DAT_DTO_COOKIE cookie, const DAT_RMR_TRIPLET *remote,
					 DAT_COMPLETION_FLAGS flags)
{
	(void)local;
	(void)cookie;
	(void)remote;
	(void)flags;
	if (!ep_from(handle))
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
	return DAT_ERROR(DAT_MODEL_NOT_SUPPORTED, 0);
}
