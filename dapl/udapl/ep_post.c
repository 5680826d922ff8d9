/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Posting: checks, a slot for the completion, the consumer's segment list handed on as it is. */
#include "dapl/udapl/ep_post.h"
#include "dapl/udapl/provider.h"

/*
 * A post whose arguments were checked, for the ways that are not the common one: the lock is taken,
 * a segment is empty, the queue is full. They live in functions of their own, since what a function
 * keeps over a call costs it registers even where the call is not made.
 */
struct post {
	struct dapl_ep *ep;
	unsigned op;
	const DAT_LMR_TRIPLET *segments;
	unsigned count;
	uint64_t length;
	const DAT_RMR_TRIPLET *remote;
	DAT_DTO_COOKIE cookie;
	DAT_COMPLETION_FLAGS flags;
};

/* ---- requests ---- */

PART uint8_t operation_of(unsigned op)
{
	return op == IB_OP_SEND ? DAT_DTO_SEND :
	       op == IB_OP_WRITE ? DAT_DTO_RDMA_WRITE : DAT_DTO_RDMA_READ;
}

/* Caller holds the post lock, has seen a QP and room. */
PART DAT_RETURN request_locked(struct dapl_ep *ep, uint32_t posted, unsigned op,
			       const DAT_LMR_TRIPLET *segments, unsigned count, uint64_t length,
			       const DAT_RMR_TRIPLET *remote, DAT_DTO_COOKIE cookie,
			       DAT_COMPLETION_FLAGS flags)
{
	struct dto_ring *ring = &ep->request;
	unsigned ib = request_begin(ring, posted, op, operation_of(op), length, cookie, flags);
	DAT_RETURN status;

	if (op != IB_OP_READ && length <= ep->caps.inline_data)
		ib |= IB_POST_INLINE;
	status = request_end(ring, posted,
			     ib_post_send(ep->qp, op | ib, ring->base | (posted & ring->mask),
					segments, count, remote));
	if (status == DAT_SUCCESS)
		request_count_locked(ep, op, length);
	return status;
}

bool request_make_room_locked(struct dapl_ep *ep, uint32_t posted, uint32_t wanted)
{
	struct dto_ring *ring = &ep->request;
	uint32_t oldest = atomic_load_explicit(&ring->retired, memory_order_relaxed);

	if (!ring->depth || !(ring->slots[oldest & ring->mask].special & DTO_SILENT))
		return false;
	evd_drain(ep->request_evd);
	return room_of(ring, posted) >= wanted;
}

static __attribute__((noinline, cold)) DAT_RETURN request_other(const struct post *post)
{
	struct dapl_ep *ep = post->ep;
	struct dto_ring *ring = &ep->request;
	DAT_LMR_TRIPLET kept[post->count + 1];
	unsigned count = dto_segments_pack(post->segments, post->count, kept);
	uint32_t posted;
	DAT_RETURN status;

	lock_take(&ep->post_lock);
	posted = atomic_load_explicit(&ring->posted, memory_order_relaxed);
	if (!ep->qp)
		status = DAT_ERROR(DAT_INVALID_STATE, DAT_INVALID_STATE_EP_NOTREADY);
	else if (is_full(ring, posted) && !request_make_room_locked(ep, posted, 1))
		status = DAT_ERROR(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_MEMORY);
	else
		status = request_locked(ep, posted, post->op, kept, count, post->length,
					post->remote, post->cookie, post->flags);
	lock_give(&ep->post_lock);
	return status;
}

/* The last checks, then the request. */
PART DAT_RETURN request(struct dapl_ep *ep, unsigned op, const DAT_LMR_TRIPLET *segments,
			unsigned count, const DAT_RMR_TRIPLET *remote, DAT_DTO_COOKIE cookie,
			DAT_COMPLETION_FLAGS flags)
{
	struct dto_segments list = dto_segments_measure(segments, count);
	DAT_RETURN status;
	uint32_t posted;

	if (unlikely(list.length > ep->obj.ia->attr->max_message))
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
	status = request_state(ep);
	if (unlikely(status != DAT_SUCCESS))
		return status;
	if (unlikely(list.empty || !lock_try(&ep->post_lock)))
		goto other;
	posted = atomic_load_explicit(&ep->request.posted, memory_order_relaxed);
	if (unlikely(!ep->qp || is_full(&ep->request, posted))) {
		lock_give(&ep->post_lock);
		goto other;
	}
	status = request_locked(ep, posted, op, segments, count, list.length, remote, cookie,
				flags);
	lock_give(&ep->post_lock);
	return status;

other:
	return request_other(&(struct post){ ep, op, segments, count, list.length, remote, cookie,
					     flags });
}

DAT_RETURN dapl_ep_post_send(DAT_EP_HANDLE handle, DAT_COUNT count, DAT_LMR_TRIPLET *segments,
			     DAT_DTO_COOKIE cookie, DAT_COMPLETION_FLAGS flags)
{
	struct dapl_ep *ep = handle;

	if (unlikely(!obj_is(handle, OBJ_EP)))
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
	/* A negative count is a large one. */
	if (unlikely((unsigned)count > (unsigned)ep->attr.max_request_iov))
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
	if (unlikely(!segments) && count)
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
	if (unlikely(flags) &&
	    !flags_valid(flags, FLAGS_REQUEST, ep->attr.request_completion_flags))
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG5);
	return request(ep, IB_OP_SEND, segments, (unsigned)count, NULL, cookie, flags);
}

PART DAT_RETURN post_rdma(DAT_EP_HANDLE handle, DAT_COUNT count, DAT_LMR_TRIPLET *segments,
			  DAT_DTO_COOKIE cookie, const DAT_RMR_TRIPLET *remote,
			  DAT_COMPLETION_FLAGS flags, unsigned op)
{
	struct dapl_ep *ep = handle;
	DAT_COUNT most;

	if (unlikely(!obj_is(handle, OBJ_EP)))
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
	most = op == IB_OP_READ ? ep->attr.max_rdma_read_iov : ep->attr.max_rdma_write_iov;
	if (unlikely(!most))
		most = ep->attr.max_request_iov;
	/* A negative count is a large one. */
	if (unlikely((unsigned)count > (unsigned)most))
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
	if (unlikely(!segments) && count)
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
	if (unlikely(!remote))
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG5);
	if (unlikely(flags) &&
	    !flags_valid(flags, FLAGS_REQUEST, ep->attr.request_completion_flags))
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG6);
	return request(ep, op, segments, (unsigned)count, remote, cookie, flags);
}

DAT_RETURN dapl_ep_post_rdma_read(DAT_EP_HANDLE ep, DAT_COUNT count, DAT_LMR_TRIPLET *segments,
				  DAT_DTO_COOKIE cookie, const DAT_RMR_TRIPLET *remote,
				  DAT_COMPLETION_FLAGS flags)
{
	return post_rdma(ep, count, segments, cookie, remote, flags, IB_OP_READ);
}

DAT_RETURN dapl_ep_post_rdma_write(DAT_EP_HANDLE ep, DAT_COUNT count, DAT_LMR_TRIPLET *segments,
				   DAT_DTO_COOKIE cookie, const DAT_RMR_TRIPLET *remote,
				   DAT_COMPLETION_FLAGS flags)
{
	return post_rdma(ep, count, segments, cookie, remote, flags, IB_OP_WRITE);
}

/* ---- receives: in any state ---- */

/* Caller holds the receive lock. */
PART DAT_RETURN recv_locked(struct dapl_ep *ep, const DAT_LMR_TRIPLET *segments, unsigned count,
			    uint64_t length, DAT_DTO_COOKIE cookie, DAT_COMPLETION_FLAGS flags)
{
	struct dto_ring *ring = &ep->recv;
	uint32_t posted = atomic_load_explicit(&ring->posted, memory_order_relaxed);
	uint32_t index = posted & ring->mask;
	struct dto_slot *slot = &ring->slots[index];
	DAT_RETURN status;

	if (unlikely(!ep->qp))
		return DAT_ERROR(DAT_INVALID_STATE, DAT_INVALID_STATE_EP_NOTREADY);
	if (unlikely(is_full(ring, posted)))
		return DAT_ERROR(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_MEMORY);
	slot->cookie = cookie;
	slot->operation = DAT_DTO_RECEIVE;
	slot->flags = slot->unused = 0;
	slot->special = 0;
	if (unlikely(flags))
		slot->flags = (uint8_t)flags;
	/* release: pairs with dto_complete; the way through the peer that orders the two is not this process's own */
	atomic_store_explicit(&ring->posted, posted + 1, memory_order_release);
	status = ib_post_recv(ep->qp, ring->base | index, segments, count);
	if (unlikely(status != DAT_SUCCESS)) {
		atomic_store_explicit(&ring->posted, posted, memory_order_relaxed);
		return status;
	}
	ep_count_locked(ep, DCNT_EP_POST_RECV, 1);
	ep_count_locked(ep, DCNT_EP_POST_RECV_DATA, length);
	return DAT_SUCCESS;
}

static __attribute__((noinline, cold)) DAT_RETURN recv_other(const struct post *post)
{
	DAT_LMR_TRIPLET kept[post->count + 1];
	unsigned count = dto_segments_pack(post->segments, post->count, kept);
	DAT_RETURN status;

	lock_take(&post->ep->recv_lock);
	status = recv_locked(post->ep, kept, count, post->length, post->cookie, post->flags);
	lock_give(&post->ep->recv_lock);
	return status;
}

DAT_RETURN dapl_ep_post_recv(DAT_EP_HANDLE handle, DAT_COUNT count, DAT_LMR_TRIPLET *segments,
			     DAT_DTO_COOKIE cookie, DAT_COMPLETION_FLAGS flags)
{
	struct dapl_ep *ep = handle;
	struct dto_segments list;
	DAT_RETURN status;

	if (unlikely(!obj_is(handle, OBJ_EP)))
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
	if (unlikely(ep->srq != NULL))
		return DAT_ERROR(DAT_INVALID_STATE, DAT_INVALID_STATE_SRQ_IN_USE);
	/* A negative count is a large one. */
	if (unlikely((unsigned)count > (unsigned)ep->attr.max_recv_iov))
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
	if (unlikely(!segments) && count)
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
	if (unlikely(flags) && !flags_valid(flags, 0, ep->attr.recv_completion_flags))
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG5);
	list = dto_segments_measure(segments, (unsigned)count);
	if (unlikely(list.empty || !lock_try(&ep->recv_lock)))
		return recv_other(&(struct post){ .ep = ep, .segments = segments,
						  .count = (unsigned)count, .length = list.length,
						  .cookie = cookie, .flags = flags });
	status = recv_locked(ep, segments, (unsigned)count, list.length, cookie, flags);
	lock_give(&ep->recv_lock);
	return status;
}
