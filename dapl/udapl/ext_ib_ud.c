/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Datagrams of the InfiniBand extensions: sending one, and freeing what a peer left behind. */
#include "dapl/udapl/ep_post.h"
#include "dapl/udapl/ep_ud.h"
#include "dapl/udapl/ext.h"

/* Under the post lock: the address stays until the request is with the device (ud_ah_free). */
static DAT_RETURN post_datagram(struct ib_qp *qp, unsigned request, uint64_t wr_id,
				const struct ep_work *work)
{
	const struct ib_ah *ah = atomic_load(&work->peer->ah);

	if (!ah)
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG4);
	return ib_post_datagram(qp, request, wr_id, work->segments, work->count, ah, work->word);
}

DAT_RETURN ext_send_ud(DAT_HANDLE handle, va_list args)
{
	struct ep_work work = { .op = IB_OP_SEND,
				.operation = DAT_IB_DTO_SEND_UD,
				.special = DTO_EXTENDED,
				.post = post_datagram };
	struct dapl_ep *ep = handle;
	const DAT_IB_ADDR_HANDLE *to;

	work.count = (unsigned)va_arg(args, DAT_COUNT);
	work.segments = va_arg(args, DAT_LMR_TRIPLET *);
	to = va_arg(args, DAT_IB_ADDR_HANDLE *);
	work.cookie = va_arg(args, DAT_DTO_COOKIE);
	work.flags = va_arg(args, DAT_COMPLETION_FLAGS);
	if (!ep->datagrams)
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
	/* A negative count is a large one. */
	if (work.count > (unsigned)ep->attr.max_request_iov)
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
	if (work.count && !work.segments)
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
	work.peer = to ? ud_peer_from(to->ah) : NULL;
	if (!work.peer || work.peer->pz != ep->pz || !atomic_load(&work.peer->ah))
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG4);
	if (!flags_valid(work.flags, FLAGS_REQUEST, ep->attr.request_completion_flags))
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG6);
	if (dto_segments_measure(work.segments, work.count).length > ep->obj.ia->attr->mtu)
		return DAT_ERROR(DAT_LENGTH_ERROR, 0);
	work.word = to->qpn;
	return ep_work_post(ep, &work, DAT_INVALID_ARG3);
}

DAT_RETURN ext_ud_cm_free(DAT_HANDLE handle, va_list args)
{
	DAT_CONTEXT context = va_arg(args, DAT_CONTEXT);
	struct dapl_ep *ep = handle;

	if (!ep->datagrams)
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
	return ud_cm_free(ep, ud_peer_from(context.as_ptr));
}

DAT_RETURN ext_ud_ah_free(DAT_HANDLE handle, va_list args)
{
	const DAT_IB_ADDR_HANDLE *to = va_arg(args, DAT_IB_ADDR_HANDLE *);
	struct dapl_ep *ep = handle;

	if (!ep->datagrams)
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
	return ud_ah_free(ep, to ? ud_peer_from(to->ah) : NULL);
}
