/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* The slow path of posts: all checks in DAT's order, then the post. */
#include "dapl/udapl/post/post.h"
#include "dapl/udapl/ep/ud.h"
#include "dapl/udapl/base/provider.h"

/* ---- requests ---- */

/* True for the operations that make a completion at the peer, and so may be solicited. */
static bool is_message(unsigned op)
{
	return op == IB_OP_SEND || op == IB_OP_SEND_INV || op == IB_OP_WRITE_IMM;
}

unsigned ep_request_flags(unsigned op, unsigned flags)
{
	return IB_POST_SIGNALED |
	       (flags & DAT_COMPLETION_SOLICITED_WAIT_FLAG && is_message(op) ? IB_POST_SOLICITED
									     : 0) |
	       (flags & DAT_COMPLETION_BARRIER_FENCE_FLAG ? IB_POST_FENCE : 0);
}

/* Where the payload may go with the work request itself. */
static bool is_inline(const struct dapl_ep *ep, unsigned op, uint64_t length)
{
	return (op == IB_OP_WRITE || is_message(op)) && length <= EP_INLINE(ep);
}

/* Under the post lock: the address stays until the request is with the device (ud_ah_free). */
static DAT_RETURN request_address_locked(struct ep_request *request)
{
	const struct ib_ah *ah = atomic_load(&request->peer->ah);

	if (!ah)
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG4);
	ib_work_address(&request->work, ah, request->qp_num);
	return DAT_SUCCESS;
}

DAT_RETURN ep_request_post(struct dapl_ep *ep, struct ep_request *request, DAT_UINT32 subtype)
{
	struct ib_send_work *work = &request->work;
	/* datagrams go without a connection */
	bool connected = !request->peer;
	struct dto_list list;
	DAT_RETURN status;

	dto_list_init(&list, work->segments, (unsigned)work->count);
	if (list.length > ep->obj.ia->attr->max_message)
		return DAT_ERROR(DAT_INVALID_PARAMETER, subtype);
	status = connected ? request_state(ep) : DAT_SUCCESS;
	if (status != DAT_SUCCESS)
		return status;
	work->segments = list.segments;
	work->count = (int)list.count;
	work->flags = ep_request_flags(work->op, request->slot.flags) |
		      (is_inline(ep, work->op, list.length) ? IB_POST_INLINE : 0);
	request->slot.length = (uint32_t)list.length;
	if (request->slot.flags & DAT_COMPLETION_SUPPRESS_FLAG)
		request->slot.kind |= DTO_SILENT;
	ep_request_lock(ep, 1);
	if (!connected)
		status = request_address_locked(request);
	if (status == DAT_SUCCESS)
		status = ep_request_post_locked(ep, request, NULL);
	lock_release(&ep->end.post_lock);
	return connected && status != DAT_SUCCESS ? request_refused(ep, status) : status;
}

static DAT_RETURN send_checked(struct dapl_ep *ep, struct ep_request *request,
			       DAT_COMPLETION_FLAGS flags)
{
	DAT_RETURN status;

	if (!obj_is(ep, OBJ_EP) || ep->end.datagrams)
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
	status = list_check((unsigned)request->work.count, request->work.segments,
			    EP_ATTR(ep, max_request_iov));
	if (status != DAT_SUCCESS)
		return status;
	if (!flags_valid(flags, FLAGS_REQUEST, EP_ATTR(ep, request_completion_flags)))
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG5);
	return ep_request_post(ep, request, DAT_INVALID_ARG3);
}

DAT_RETURN ep_post_send_slow(struct dapl_ep *ep, DAT_COUNT count, const DAT_LMR_TRIPLET *segments,
			     DAT_DTO_COOKIE cookie, DAT_COMPLETION_FLAGS flags)
{
	struct ep_request request = {
		.work = { .op = IB_OP_SEND, .segments = segments, .count = count },
		.slot = { .cookie = cookie, .operation = DAT_DTO_SEND, .flags = (uint8_t)flags },
	};

	return send_checked(ep, &request, flags);
}

DAT_RETURN dapl_ep_post_send_with_invalidate(DAT_EP_HANDLE handle, DAT_COUNT count,
					     DAT_LMR_TRIPLET *segments, DAT_DTO_COOKIE cookie,
					     DAT_COMPLETION_FLAGS flags, DAT_BOOLEAN invalidate,
					     DAT_RMR_CONTEXT context)
{
	struct dapl_ep *ep = ep_from(handle);
	struct ep_request request = {
		.work = { .op = IB_OP_SEND_INV,
			  .segments = segments,
			  .count = count,
			  .word = context },
		.slot = { .cookie = cookie, .operation = DAT_DTO_SEND, .flags = (uint8_t)flags },
	};
	const struct ib_attr *attr;

	if (!ep || ep->end.datagrams)
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
	attr = ep->obj.ia->attr;
	if (!attr->mem_extensions && !attr->mw_type2)
		return DAT_ERROR(DAT_MODEL_NOT_SUPPORTED, 0);
	if (!invalidate)
		return dapl_ep_post_send(handle, count, segments, cookie, flags);
	return send_checked(ep, &request, flags);
}

static DAT_COUNT rdma_iov_max(const struct dapl_ep *ep, unsigned op)
{
	DAT_COUNT most =
		op == IB_OP_READ ? EP_ATTR(ep, max_rdma_read_iov) : EP_ATTR(ep, max_rdma_write_iov);

	return most ? most : EP_ATTR(ep, max_request_iov);
}

DAT_RETURN ep_rdma_post(struct dapl_ep *ep, struct ep_request *request,
			const DAT_RMR_TRIPLET *remote, DAT_COMPLETION_FLAGS flags,
			DAT_UINT32 subtype)
{
	struct ib_send_work *work = &request->work;
	DAT_RETURN status =
		list_check((unsigned)work->count, work->segments, rdma_iov_max(ep, work->op));

	if (status != DAT_SUCCESS)
		return status;
	if (!remote)
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG5);
	if (!flags_valid(flags, FLAGS_REQUEST, EP_ATTR(ep, request_completion_flags)))
		return DAT_ERROR(DAT_INVALID_PARAMETER, subtype);
	work->remote_address = remote->virtual_address;
	work->remote_key = remote->rmr_context;
	request->slot.flags = (uint8_t)flags;
	return ep_request_post(ep, request, DAT_INVALID_ARG3);
}

DAT_RETURN ep_post_rdma_slow(struct dapl_ep *ep, unsigned op, DAT_COUNT count,
			     const DAT_LMR_TRIPLET *segments, DAT_DTO_COOKIE cookie,
			     const DAT_RMR_TRIPLET *remote, DAT_COMPLETION_FLAGS flags)
{
	struct ep_request request = {
		.work = { .op = op, .segments = segments, .count = count },
		.slot = { .cookie = cookie,
			  .operation = op == IB_OP_READ ? DAT_DTO_RDMA_READ : DAT_DTO_RDMA_WRITE },
	};

	if (!obj_is(ep, OBJ_EP) || ep->end.datagrams)
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
	return ep_rdma_post(ep, &request, remote, flags, DAT_INVALID_ARG6);
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

/* ---- receives: in any state ---- */

/* The caller holds the receive lock. */
static DAT_RETURN recv_slow_locked(struct dapl_ep *ep, struct dto_slot slot,
				   struct ib_recv_work *work, uint64_t length)
{
	uint32_t posted = atomic_load_explicit(&ep->end.recv.posted, memory_order_relaxed);
	DAT_RETURN status;

	if (!ep->qp)
		return DAT_ERROR(DAT_INVALID_STATE, DAT_INVALID_STATE_EP_NOTREADY);
	if (!dto_ring_room(&ep->end.recv))
		return DAT_ERROR(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_MEMORY);
	status = recv_post_locked(ep, posted, slot, work, length);
	if (status != DAT_SUCCESS)
		return status;
	ep_recv_credits_update_locked(ep);
	/* A device that reads posted receives from memory (rdma_rxe) reads them again on this transition. */
	if (atomic_load_explicit(&ep->state, memory_order_relaxed) == DAT_EP_STATE_DISCONNECTED)
		ib_qp_error(ep->qp);
	ep_flush_due(ep);
	return DAT_SUCCESS;
}

DAT_RETURN ep_post_recv_slow(struct dapl_ep *ep, DAT_COUNT count, const DAT_LMR_TRIPLET *segments,
			     DAT_DTO_COOKIE cookie, DAT_COMPLETION_FLAGS flags)
{
	struct dto_slot slot = { .cookie = cookie,
				 .operation = DAT_DTO_RECEIVE,
				 .flags = (uint8_t)flags };
	struct ib_recv_work work;
	struct dto_list list;
	DAT_RETURN status;

	if (!obj_is(ep, OBJ_EP))
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
	if (ep->srq)
		return DAT_ERROR(DAT_INVALID_STATE, DAT_INVALID_STATE_SRQ_IN_USE);
	status = list_check((unsigned)count, segments, EP_ATTR(ep, max_recv_iov));
	if (status != DAT_SUCCESS)
		return status;
	if (!flags_valid(flags, 0, EP_ATTR(ep, recv_completion_flags)))
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG5);
	dto_list_init(&list, segments, (unsigned)count);
	work.segments = list.segments;
	work.count = (int)list.count;
	slot.kind = ep->end.datagrams ? DTO_EXTENDED : 0;
	lock_acquire(&ep->end.recv_lock);
	status = recv_slow_locked(ep, slot, &work, list.length);
	lock_release(&ep->end.recv_lock);
	return status;
}
