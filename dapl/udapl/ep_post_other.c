/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Posts that do not go the plain way: every check in its order, then a slot and the device. */
#include "dapl/udapl/ep_post.h"
#include "dapl/udapl/provider.h"

/* ---- requests ---- */

/* Caller holds the post lock. */
static DAT_RETURN request_locked(struct dapl_ep *ep, unsigned op, const DAT_LMR_TRIPLET *segments,
				 unsigned count, uint64_t length, const DAT_RMR_TRIPLET *remote,
				 DAT_DTO_COOKIE cookie, DAT_COMPLETION_FLAGS flags)
{
	struct dto_ring *ring = &ep->request;
	uint32_t posted = atomic_load_explicit(&ring->posted, memory_order_relaxed);
	DAT_RETURN status = request_room_locked(ep, posted, 1);
	unsigned ib;

	if (status != DAT_SUCCESS)
		return status;
	ib = request_begin(ring, posted, op, operation_of(op), length, cookie, flags);
	if (op != IB_OP_READ && length <= EP_INLINE(ep))
		ib |= IB_POST_INLINE;
	status = request_end(ep, posted,
			     ib_post_send(ep->qp, op | ib, ring->base | (posted & ring->mask),
					  segments, count, remote));
	if (status == DAT_SUCCESS)
		request_count_locked(ep, op, 1, length);
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

/* The last checks, then the request. */
static DAT_RETURN request(struct dapl_ep *ep, unsigned op, const DAT_LMR_TRIPLET *segments,
			  unsigned count, const DAT_RMR_TRIPLET *remote, DAT_DTO_COOKIE cookie,
			  DAT_COMPLETION_FLAGS flags)
{
	struct dto_segments list = dto_segments_measure(segments, count);
	DAT_LMR_TRIPLET kept[list.empty ? count : 1];
	DAT_RETURN status;

	if (list.length > ep->obj.ia->attr->max_message)
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
	status = request_state(ep);
	if (status != DAT_SUCCESS)
		return status;
	if (list.empty) {
		count = dto_segments_pack(segments, count, kept);
		segments = kept;
	}
	lock_acquire(&ep->post_lock);
	status = request_locked(ep, op, segments, count, list.length, remote, cookie, flags);
	lock_release(&ep->post_lock);
	return status == DAT_SUCCESS ? status : request_not_taken(ep, status);
}

DAT_RETURN ep_post_send_other(struct dapl_ep *ep, DAT_COUNT count, const DAT_LMR_TRIPLET *segments,
			      DAT_DTO_COOKIE cookie, DAT_COMPLETION_FLAGS flags)
{
	if (!obj_is(ep, OBJ_EP) || ep->datagrams)
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
	/* A negative count is a large one. */
	if ((unsigned)count > (unsigned)EP_ATTR(ep, max_request_iov))
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
	if (count && !segments)
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
	if (!flags_valid(flags, FLAGS_REQUEST, EP_ATTR(ep, request_completion_flags)))
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG5);
	return request(ep, IB_OP_SEND, segments, (unsigned)count, NULL, cookie, flags);
}

DAT_RETURN ep_post_rdma_other(struct dapl_ep *ep, unsigned op, DAT_COUNT count,
			      const DAT_LMR_TRIPLET *segments, DAT_DTO_COOKIE cookie,
			      const DAT_RMR_TRIPLET *remote, DAT_COMPLETION_FLAGS flags)
{
	DAT_COUNT most;

	if (!obj_is(ep, OBJ_EP) || ep->datagrams)
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
	most = op == IB_OP_READ ? EP_ATTR(ep, max_rdma_read_iov) : EP_ATTR(ep, max_rdma_write_iov);
	if (!most)
		most = EP_ATTR(ep, max_request_iov);
	/* A negative count is a large one. */
	if ((unsigned)count > (unsigned)most)
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
	if (count && !segments)
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
	if (!remote)
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG5);
	if (!flags_valid(flags, FLAGS_REQUEST, EP_ATTR(ep, request_completion_flags)))
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG6);
	return request(ep, op, segments, (unsigned)count, remote, cookie, flags);
}

/* ---- receives: in any state ---- */

/* Caller holds the receive lock. */
static DAT_RETURN recv_locked(struct dapl_ep *ep, const DAT_LMR_TRIPLET *segments, unsigned count,
			      uint64_t length, DAT_DTO_COOKIE cookie, DAT_COMPLETION_FLAGS flags)
{
	struct dto_ring *ring = &ep->recv;
	uint32_t posted = atomic_load_explicit(&ring->posted, memory_order_relaxed);
	uint32_t index = posted & ring->mask;
	DAT_RETURN status;

	if (!ep->qp)
		return DAT_ERROR(DAT_INVALID_STATE, DAT_INVALID_STATE_EP_NOTREADY);
	if (is_full(ring, posted))
		return DAT_ERROR(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_MEMORY);
	ring->slots[index] = (struct dto_slot){ .cookie = cookie,
						.operation = DAT_DTO_RECEIVE,
						.flags = (uint8_t)flags,
						.special = ep->datagrams ? DTO_EXTENDED : 0 };
	/*
	 * release: pairs with dto_complete; the way through the peer that orders the two is not this
	 * process's own
	 */
	atomic_store_explicit(&ring->posted, posted + 1, memory_order_release);
	status = ib_post_recv(ep->qp, ring->base | index, segments, count);
	if (status != DAT_SUCCESS) {
		atomic_store_explicit(&ring->posted, posted, memory_order_relaxed);
		return status;
	}
	ep_recvs_bound_locked(ep);
	ep_count_locked(ep, DCNT_EP_POST_RECV, 1);
	ep_count_locked(ep, DCNT_EP_POST_RECV_DATA, length);
	/* A device that reads posted receives from memory (rdma_rxe) looks there once more when it is told. */
	if (atomic_load_explicit(&ep->state, memory_order_relaxed) == DAT_EP_STATE_DISCONNECTED)
		ib_qp_error(ep->qp);
	return DAT_SUCCESS;
}

DAT_RETURN ep_post_recv_other(struct dapl_ep *ep, DAT_COUNT count, const DAT_LMR_TRIPLET *segments,
			      DAT_DTO_COOKIE cookie, DAT_COMPLETION_FLAGS flags)
{
	struct dto_segments list;
	DAT_RETURN status;

	if (!obj_is(ep, OBJ_EP))
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
	if (ep->srq)
		return DAT_ERROR(DAT_INVALID_STATE, DAT_INVALID_STATE_SRQ_IN_USE);
	/* A negative count is a large one. */
	if ((unsigned)count > (unsigned)EP_ATTR(ep, max_recv_iov))
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
	if (count && !segments)
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
	if (!flags_valid(flags, 0, EP_ATTR(ep, recv_completion_flags)))
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG5);
	list = dto_segments_measure(segments, (unsigned)count);
	DAT_LMR_TRIPLET kept[list.empty ? count : 1];

	if (list.empty) {
		count = (DAT_COUNT)dto_segments_pack(segments, (unsigned)count, kept);
		segments = kept;
	}
	lock_acquire(&ep->recv_lock);
	status = recv_locked(ep, segments, (unsigned)count, list.length, cookie, flags);
	lock_release(&ep->recv_lock);
	return status;
}
