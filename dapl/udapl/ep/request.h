/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * The path of a post on an endpoint: slot, count, device. Every post takes it: those of the consumer, on the fast and
 * on the slow path, and those of the endpoint itself.
 */
#ifndef DAPL_EP_REQUEST_H
#define DAPL_EP_REQUEST_H

#include "dapl/udapl/ep/ep.h"

/* Inlined into each entry, so that the compiler folds the entry's constants. */
#define ALWAYS_INLINE static inline __attribute__((always_inline))
#define likely(x)     __builtin_expect(!!(x), 1)
#define unlikely(x)   __builtin_expect(!!(x), 0)

/*
 * A post makes three steps, under the post lock of its side: it fills and publishes a slot, passes the work request to
 * the device, and withdraws the slot if the device refuses. The slot comes first, because another thread may convert
 * the completion before the device's function returns.
 */
ALWAYS_INLINE uint64_t slot_publish(struct dto_ring *ring, uint32_t posted, struct dto_slot slot)
{
	uint32_t index = posted & ring->mask;
	struct dto_slot *to = &ring->slots[index];

	/* Member by member: gcc would put the constant ones and the length together in a register first. */
	to->cookie = slot.cookie;
	to->operation = slot.operation;
	to->flags = slot.flags;
	to->kind = slot.kind;
	to->unused = 0;
	to->length = slot.length;
	/*
	 * release: pairs with dto_complete; the way through the peer that orders the two is not this
	 * process's own
	 */
	atomic_store_explicit(&ring->posted, posted + 1, memory_order_release);
	return ring->base | index;
}

static inline uint32_t slot_withdraw(struct dto_ring *ring)
{
	uint32_t posted = atomic_load_explicit(&ring->posted, memory_order_relaxed) - 1;

	atomic_store_explicit(&ring->posted, posted, memory_order_relaxed);
	return posted;
}

/*
 * A run of suppressed requests has a signalled one at each half of the queue's depth: its completion
 * retires the slots, although the consumer gets no event.
 */
ALWAYS_INLINE bool request_is_silent(const struct dto_ring *ring, uint32_t posted, unsigned flags)
{
	return flags & DAT_COMPLETION_SUPPRESS_FLAG &&
	       posted - ring->signalled < (ring->depth + 1) / 2;
}

/* Counts a request, or with `sign` -1 takes it back. Internal requests and binds are not counted. */
ALWAYS_INLINE void request_count_locked(struct dapl_ep *ep, struct dto_slot slot, uint64_t sign)
{
	DAT_EP_COUNTERS which;

	switch (slot.operation) {
	case DAT_DTO_SEND: which = DCNT_EP_POST_SEND; break;
	case DAT_DTO_RDMA_WRITE: which = DCNT_EP_POST_WRITE; break;
	case DAT_IB_DTO_RDMA_WRITE_IMMED: which = DCNT_EP_POST_WRITE_IMM; break;
	case DAT_DTO_RDMA_READ: which = DCNT_EP_POST_READ; break;
	case DAT_IB_DTO_SEND_UD: which = DCNT_EP_POST_SEND_UD; break;
	case DAT_IB_DTO_CMP_SWAP: ep_count_locked(ep, DCNT_EP_POST_CMP_SWAP, sign); return;
	case DAT_IB_DTO_FETCH_ADD: ep_count_locked(ep, DCNT_EP_POST_FETCH_ADD, sign); return;
	default: return;
	}
	ep_count_locked(ep, which, sign);
	ep_count_locked(ep, which + 1, sign * slot.length); /* the counter of the data follows */
}

/* The device refused the request that was published last. Returns the status of the post. */
__attribute__((cold)) DAT_RETURN ep_request_undo_locked(struct dapl_ep *ep, int error);

/*
 * Posts a request for which there is a credit. `work` is complete but for its id, and signalled; the request may yet be
 * posted without a completion. A bind has its window in `bind`.
 */
ALWAYS_INLINE DAT_RETURN request_post_locked(struct dapl_ep *ep, uint32_t posted,
					     struct dto_slot slot, struct ib_send_work *work,
					     struct ib_bind *bind)
{
	struct dto_ring *ring = &ep->end.request;
	int error;

	if (request_is_silent(ring, posted, slot.flags))
		work->flags &= ~IB_POST_SIGNALED;
	else
		ring->signalled = posted;
	work->wr_id = slot_publish(ring, posted, slot);
	work->next = NULL;
	request_count_locked(ep, slot, 1);
	error = bind ? ib_post_bind(ep->qp, work, bind) : ib_post_send_work(&ep->posts, work);
	return likely(!error) ? DAT_SUCCESS : ep_request_undo_locked(ep, error);
}

ALWAYS_INLINE void recv_count_locked(struct dapl_ep *ep, uint64_t sign, uint64_t length)
{
	ep_count_locked(ep, DCNT_EP_POST_RECV, sign);
	ep_count_locked(ep, DCNT_EP_POST_RECV_DATA, sign * length);
}

__attribute__((cold)) DAT_RETURN ep_recv_undo_locked(struct dapl_ep *ep,
						     const DAT_LMR_TRIPLET *segments, int count,
						     int error);

/* The same for a receive of `length` bytes. */
ALWAYS_INLINE DAT_RETURN recv_post_locked(struct dapl_ep *ep, uint32_t posted, struct dto_slot slot,
					  struct ib_recv_work *work, uint64_t length)
{
	int error;

	work->wr_id = slot_publish(&ep->end.recv, posted, slot);
	work->next = NULL;
	recv_count_locked(ep, 1, length);
	error = ib_post_recv_work(&ep->posts, work);
	if (likely(!error))
		return DAT_SUCCESS;
	return ep_recv_undo_locked(ep, work->segments, work->count, error);
}

/* A request that has no fast path. */
struct ep_request {
	struct ib_send_work work;  /* without id and flags */
	struct dto_slot slot;	   /* without length */
	struct dapl_ud_peer *peer; /* of a datagram, to its QP `qp_num` */
	uint32_t qp_num;
};

/*
 * Acquires the post lock, to post `wanted` requests. If fewer credits are left, and the oldest request was suppressed,
 * the consumer has no completion to reap for it: the CQ is drained first, which retires the slots of completed requests.
 */
void ep_request_lock(struct dapl_ep *ep, uint32_t wanted);
/* Checks that the EP has a QP and `wanted` credits. The caller holds the post lock. */
DAT_RETURN ep_request_room_locked(struct dapl_ep *ep, uint32_t wanted);
/* Checks for room, and posts. `request` is complete but for its id; `bind` is the window of a bind, else NULL. */
DAT_RETURN ep_request_post_locked(struct dapl_ep *ep, struct ep_request *request,
				  struct ib_bind *bind);

#endif
