/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* The post path of an endpoint: credits, slots, the device. The fast and the slow path share all of it. */
#ifndef DAPL_EP_POST_H
#define DAPL_EP_POST_H

#include "dapl/udapl/ep/ep.h"

#define FLAGS_REQUEST                                                                            \
	((unsigned)DAT_COMPLETION_SUPPRESS_FLAG | (unsigned)DAT_COMPLETION_SOLICITED_WAIT_FLAG | \
	 (unsigned)DAT_COMPLETION_BARRIER_FENCE_FLAG)

/* Inlined into each entry, so that the compiler folds the entry's constants. */
#define ALWAYS_INLINE static inline __attribute__((always_inline))
#define likely(x)     __builtin_expect(!!(x), 1)
#define unlikely(x)   __builtin_expect(!!(x), 0)

/* UNSIGNALLED is valid only if the EP's attributes have it for that side (`attr`). */
static inline bool flags_valid(DAT_COMPLETION_FLAGS flags, unsigned always,
			       DAT_COMPLETION_FLAGS attr)
{
	return !((unsigned)flags & ~(always | ((unsigned)attr & DAT_COMPLETION_UNSIGNALLED_FLAG)));
}

/*
 * Nearly every post has one segment and no flag (or only the one that suppresses a request's
 * completion), finds its lock free, and finds credits in a queue that may be posted to. The fast path
 * (post/post.c) checks just that, in any order, and has no effect if a check fails. The slow path
 * (post/post_slow.c) then makes all checks in the order that DAT defines, and handles every post.
 *
 * `fast_depth` of the ring summarises what does not change from post to post: the number of WRs that
 * the fast path may leave outstanding, or 0, as the EP's state and QP have it. A thread that changes
 * the state or the QP, or posts on the slow path, recomputes it with ep_send_credits_update_locked or
 * ep_recv_credits_update_locked.
 */
ALWAYS_INLINE bool post_is_fast(DAT_COUNT count, const DAT_LMR_TRIPLET *segments,
				DAT_COMPLETION_FLAGS flags)
{
	return !(((unsigned)count ^ 1u) | (unsigned)flags) && segments;
}

/* The other case of the fast path: a request with a suppressed completion. */
ALWAYS_INLINE bool post_is_fast_silent(DAT_COUNT count, const DAT_LMR_TRIPLET *segments,
				       DAT_COMPLETION_FLAGS flags)
{
	return post_is_fast(count, segments,
			    (DAT_COMPLETION_FLAGS)((unsigned)flags ^ DAT_COMPLETION_SUPPRESS_FLAG));
}

/* True if the fast path is out of credits. Reloads `retired` only when the cached credits are used up. */
ALWAYS_INLINE bool credits_exhausted(struct dto_ring *ring, uint32_t posted)
{
	uint32_t outstanding;

	if (likely((int32_t)(posted - ring->fast_until) < 0))
		return false;
	/* acquire: a slot seen retired may be written again */
	outstanding = posted - atomic_load_explicit(&ring->retired, memory_order_acquire);
	if (unlikely(outstanding >= ring->fast_depth))
		return true;
	ring->fast_until = posted + ring->fast_depth - outstanding;
	return false;
}

DAT_RETURN ep_post_send_slow(struct dapl_ep *ep, DAT_COUNT count, const DAT_LMR_TRIPLET *segments,
			     DAT_DTO_COOKIE cookie, DAT_COMPLETION_FLAGS flags);
DAT_RETURN ep_post_rdma_slow(struct dapl_ep *ep, unsigned op, DAT_COUNT count,
			     const DAT_LMR_TRIPLET *segments, DAT_DTO_COOKIE cookie,
			     const DAT_RMR_TRIPLET *remote, DAT_COMPLETION_FLAGS flags);
DAT_RETURN ep_post_recv_slow(struct dapl_ep *ep, DAT_COUNT count, const DAT_LMR_TRIPLET *segments,
			     DAT_DTO_COOKIE cookie, DAT_COMPLETION_FLAGS flags);

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
DAT_RETURN ep_request_undo_locked(struct dapl_ep *ep, int error);

/*
 * Posts a request for which there is a credit. `work` is complete but for its id, and signalled; the request may yet be
 * posted without a completion. A bind has its window in `bind`.
 */
ALWAYS_INLINE DAT_RETURN request_post_locked(struct dapl_ep *ep, uint32_t posted,
					     struct dto_slot slot, struct ib_send_work *work,
					     struct ib_bind *bind)
{
	struct dto_ring *ring = &ep->request;
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

DAT_RETURN ep_recv_undo_locked(struct dapl_ep *ep, const DAT_LMR_TRIPLET *segments, int count,
			       int error);

/* The same for a receive of `length` bytes. */
ALWAYS_INLINE DAT_RETURN recv_post_locked(struct dapl_ep *ep, uint32_t posted, struct dto_slot slot,
					  struct ib_recv_work *work, uint64_t length)
{
	int error;

	work->wr_id = slot_publish(&ep->recv, posted, slot);
	work->next = NULL;
	recv_count_locked(ep, 1, length);
	error = ib_post_recv_work(&ep->posts, work);
	if (likely(!error))
		return DAT_SUCCESS;
	return ep_recv_undo_locked(ep, work->segments, work->count, error);
}

/* ---- the slow path ---- */

/* The list of every post: its length is parameter 2, its address parameter 3. A negative count is a large one. */
static inline DAT_RETURN list_check(unsigned count, const DAT_LMR_TRIPLET *segments, DAT_COUNT most)
{
	if (count > (unsigned)most)
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
	if (count && !segments)
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
	return DAT_SUCCESS;
}

/* E(INVALID_STATE, ...) unless requests may be posted. */
static inline DAT_RETURN request_state(struct dapl_ep *ep)
{
	/* acquire: pairs with the store in ep_set_state_locked; the QP of that state is seen */
	DAT_EP_STATE state = atomic_load_explicit(&ep->state, memory_order_acquire);

	return ep_takes_requests(ep, state) ? DAT_SUCCESS : ep_state_error(state);
}

/*
 * The status of a post that the device refused: between the check of the state and the post, the EP
 * may have got a new QP that does not accept requests yet.
 */
static inline DAT_RETURN request_not_taken(struct dapl_ep *ep, DAT_RETURN status)
{
	DAT_RETURN state = request_state(ep);

	return state == DAT_SUCCESS ? status : state;
}

/* A request that has no fast path. */
struct ep_request {
	struct ib_send_work work;  /* without id and flags */
	struct dto_slot slot;	   /* without length */
	struct dapl_ud_peer *peer; /* of a datagram, to its QP `qp_num` */
	uint32_t qp_num;
};

/*
 * Checks length, state and credits of a request with otherwise checked arguments, and posts it. `subtype` names the
 * parameter that has the segments.
 */
DAT_RETURN ep_request_post(struct dapl_ep *ep, struct ep_request *request, DAT_UINT32 subtype);
/* Checks list, remote segment and flags of an RDMA request; `subtype` names the flags. Then as ep_request_post. */
DAT_RETURN ep_rdma_post(struct dapl_ep *ep, struct ep_request *request,
			const DAT_RMR_TRIPLET *remote, DAT_COMPLETION_FLAGS flags,
			DAT_UINT32 subtype);

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
/* The flags of the device for those of DAT (FLAGS_REQUEST). */
unsigned ep_request_flags(unsigned op, unsigned flags);

#endif
