/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Datagrams of the InfiniBand extensions: sends one, and frees the objects of a peer. */
#include "dapl/udapl/post/post.h"
#include "dapl/udapl/ep/ud.h"
#include "dapl/udapl/ext/ext.h"
#include "util/cancel.h"

DAT_RETURN ext_send_ud(DAT_HANDLE handle, va_list args)
{
	struct ep_request request = { .work.op = IB_OP_SEND,
				      .slot.operation = DAT_IB_DTO_SEND_UD,
				      .slot.kind = DTO_EXTENDED };
	struct ib_send_work *work = &request.work;
	struct dapl_ep *ep = handle;
	const DAT_IB_ADDR_HANDLE *to;
	DAT_COMPLETION_FLAGS flags;
	DAT_RETURN status;

	work->count = va_arg(args, DAT_COUNT);
	work->segments = va_arg(args, DAT_LMR_TRIPLET *);
	to = va_arg(args, DAT_IB_ADDR_HANDLE *);
	request.slot.cookie = va_arg(args, DAT_DTO_COOKIE);
	flags = va_arg(args, DAT_COMPLETION_FLAGS);
	if (!ep->end.datagrams)
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
	status = list_check((unsigned)work->count, work->segments, EP_ATTR(ep, max_request_iov));
	if (status != DAT_SUCCESS)
		return status;
	request.peer = to ? ud_peer_from(to->ah) : NULL;
	if (!request.peer || request.peer->pz != ep->pz || !atomic_load(&request.peer->ah))
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG4);
	if (!flags_valid(flags, FLAGS_REQUEST, EP_ATTR(ep, request_completion_flags)))
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG6);
	if (dto_list_length(work->segments, (unsigned)work->count) > ep->obj.ia->attr->mtu)
		return DAT_ERROR(DAT_LENGTH_ERROR, 0);
	request.qp_num = to->qpn;
	request.slot.flags = (uint8_t)flags;
	return ep_request_post(ep, &request, DAT_INVALID_ARG3);
}

DAT_RETURN ext_ud_cm_free(DAT_HANDLE handle, va_list args)
{
	CANCEL_OFF_HERE;
	DAT_CONTEXT context = va_arg(args, DAT_CONTEXT);
	struct dapl_ep *ep = handle;

	if (!ep->end.datagrams)
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
	return ud_cm_free(ep, ud_peer_from(context.as_ptr));
}

DAT_RETURN ext_ud_ah_free(DAT_HANDLE handle, va_list args)
{
	CANCEL_OFF_HERE;
	const DAT_IB_ADDR_HANDLE *to = va_arg(args, DAT_IB_ADDR_HANDLE *);
	struct dapl_ep *ep = handle;

	if (!ep->end.datagrams)
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
	return ud_ah_free(ep, to ? ud_peer_from(to->ah) : NULL);
}
