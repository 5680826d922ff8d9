/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* The path of a post on an endpoint: credits, room, refusals. */
#include "dapl/udapl/ep/request.h"

/* ---- credits ---- */

static bool is_postable(struct dapl_ep *ep)
{
	/* acquire: the QP of that state is seen with it */
	DAT_EP_STATE state = atomic_load_explicit(&ep->state, memory_order_acquire);

	return ep->qp && EP_ATTR(ep, max_request_iov) > 0 && ep_accepts_requests(ep, state);
}

static void credits_update_locked(struct dto_ring *ring, bool postable)
{
	ring->fast_depth = postable ? ring->depth : 0;
	ring->fast_until = atomic_load_explicit(&ring->posted, memory_order_relaxed);
}

void ep_send_credits_update_locked(struct dapl_ep *ep)
{
	credits_update_locked(&ep->end.request, is_postable(ep) && !ep_may_lose(ep));
}

/* Receives may be posted in any state. With an SRQ the ring has depth 0. Datagrams take the slow path. */
void ep_recv_credits_update_locked(struct dapl_ep *ep)
{
	/* After the end of a connection each receive takes the slow path, which notifies the device. */
	bool ended =
		atomic_load_explicit(&ep->state, memory_order_relaxed) == DAT_EP_STATE_DISCONNECTED;

	credits_update_locked(&ep->end.recv, ep->qp && EP_ATTR(ep, max_recv_iov) > 0 && !ended &&
						     !ep->end.datagrams);
}

/* ---- a post that the device refused ---- */

DAT_RETURN ep_request_undo_locked(struct dapl_ep *ep, int error)
{
	uint32_t posted;

	if (ep_takes_refused(ep))
		return DAT_SUCCESS;
	posted = slot_withdraw(&ep->end.request);
	ep->end.request.signalled =
		posted - ep->end.request.depth; /* the next request is signalled */
	request_count_locked(ep, ep->end.request.slots[posted & ep->end.request.mask],
			     0 - (uint64_t)1);
	return ib_post_refused(error);
}

DAT_RETURN ep_recv_undo_locked(struct dapl_ep *ep, const DAT_LMR_TRIPLET *segments, int count,
			       int error)
{
	if (ep_takes_refused(ep))
		return DAT_SUCCESS;
	slot_withdraw(&ep->end.recv);
	recv_count_locked(ep, 0 - (uint64_t)1, dto_list_length(segments, (unsigned)count));
	return ib_post_refused(error);
}

/* ---- a request behind those that are posted ---- */

DAT_RETURN ep_request_room_locked(struct dapl_ep *ep, uint32_t wanted)
{
	if (!ep->qp)
		return DAT_ERROR(DAT_INVALID_STATE, DAT_INVALID_STATE_EP_NOTREADY);
	if (dto_ring_room(&ep->end.request) < wanted)
		return DAT_ERROR(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_MEMORY);
	return DAT_SUCCESS;
}

/* The EVD to drain for more room, or NULL. */
static struct dapl_evd *evd_with_room_locked(struct dapl_ep *ep, uint32_t wanted)
{
	struct dto_ring *ring = &ep->end.request;
	uint32_t oldest = atomic_load_explicit(&ring->retired, memory_order_relaxed);

	if (!ep->qp || !ring->depth || dto_ring_room(ring) >= wanted)
		return NULL;
	return ring->slots[oldest & ring->mask].kind & DTO_SILENT ? ep->request_evd : NULL;
}

/* A drain may trigger a CNO, so it comes under no short lock. */
void ep_request_lock(struct dapl_ep *ep, uint32_t wanted)
{
	struct dapl_evd *evd;

	lock_acquire(&ep->end.post_lock);
	evd = evd_with_room_locked(ep, wanted);
	if (!evd)
		return;
	lock_release(&ep->end.post_lock);
	evd_drain(evd);
	lock_acquire(&ep->end.post_lock);
}

DAT_RETURN ep_request_post_locked(struct dapl_ep *ep, struct ep_request *request,
				  struct ib_bind *bind)
{
	uint32_t posted = atomic_load_explicit(&ep->end.request.posted, memory_order_relaxed);
	DAT_RETURN status = ep_request_room_locked(ep, 1);

	if (status == DAT_SUCCESS)
		status = request_post_locked(ep, posted, request->slot, &request->work, bind);
	if (status == DAT_SUCCESS) {
		ep_send_credits_update_locked(ep);
		ep_flush_due(ep);
	}
	return status;
}
