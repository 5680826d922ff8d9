/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Requests of the uncommon kinds: the last checks, a slot, and the device. */
#include "dapl/udapl/ep_post.h"

/* Where the payload may go with the work request itself. */
static bool is_inline(const struct dapl_ep *ep, unsigned op, uint64_t length)
{
	return is_message(op) && length <= EP_INLINE(ep);
}

DAT_RETURN request_not_taken(struct dapl_ep *ep, DAT_RETURN status)
{
	DAT_RETURN state = request_state(ep);

	return state == DAT_SUCCESS ? status : state;
}

static DAT_RETURN work_locked(struct dapl_ep *ep, const struct ep_work *work, uint64_t length)
{
	struct dto_ring *ring = &ep->request;
	uint32_t posted = atomic_load_explicit(&ring->posted, memory_order_relaxed);
	DAT_RETURN status = request_room_locked(ep, posted, 1);
	unsigned ib;

	if (status != DAT_SUCCESS)
		return status;
	ib = request_begin(ring, posted, work->op, work->operation, length, work->cookie,
			   work->flags);
	ring->slots[posted & ring->mask].special |= work->special;
	if (is_inline(ep, work->op, length))
		ib |= IB_POST_INLINE;
	status = request_end(ep, posted,
			     work->post(ep->qp, work->op | ib, ring->base | (posted & ring->mask),
					work));
	if (status != DAT_SUCCESS)
		return status;
	if (work->peer) {
		ep_count_locked(ep, DCNT_EP_POST_SEND_UD, 1);
		ep_count_locked(ep, DCNT_EP_POST_SEND_UD_DATA, length);
	} else {
		request_count_locked(ep, work->op, 1, length);
	}
	return DAT_SUCCESS;
}

DAT_RETURN ep_work_post(struct dapl_ep *ep, const struct ep_work *work, DAT_UINT32 segments)
{
	struct dto_segments list = dto_segments_measure(work->segments, work->count);
	struct ep_work packed = *work;
	DAT_LMR_TRIPLET kept[list.empty ? work->count : 1];
	DAT_RETURN status;

	if (list.length > ep->obj.ia->attr->max_message)
		return DAT_ERROR(DAT_INVALID_PARAMETER, segments);
	/* datagrams go without a connection */
	status = work->peer ? DAT_SUCCESS : request_state(ep);
	if (status != DAT_SUCCESS)
		return status;
	if (list.empty) {
		packed.count = dto_segments_pack(work->segments, work->count, kept);
		packed.segments = kept;
	}
	lock_acquire(&ep->post_lock);
	status = work_locked(ep, &packed, list.length);
	lock_release(&ep->post_lock);
	/* datagrams go whatever the state */
	return status == DAT_SUCCESS || work->peer ? status : request_not_taken(ep, status);
}

DAT_RETURN ep_work_post_word(struct ib_qp *qp, unsigned request, uint64_t wr_id,
			     const struct ep_work *work)
{
	return ib_post_word(qp, request, wr_id, work->segments, work->count, work->remote,
			    work->word);
}
