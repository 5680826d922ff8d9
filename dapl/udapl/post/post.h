/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * Room `post`: the consumer's posts, and the binding of windows.
 *
 * post.c is the fast path: it checks what one number can answer. post_slow.c makes all checks in DAT's order. Both end in the
 * one path of ep/request.h, which publishes the slot before the device has the request, so that a completion finds it.
 * Locks: the short lock of the EP's side, or of the SRQ, for the length of the post.
 */
#ifndef DAPL_POST_H
#define DAPL_POST_H

#include "dapl/udapl/ep/request.h"

#define FLAGS_REQUEST                                                                            \
	((unsigned)DAT_COMPLETION_SUPPRESS_FLAG | (unsigned)DAT_COMPLETION_SOLICITED_WAIT_FLAG | \
	 (unsigned)DAT_COMPLETION_BARRIER_FENCE_FLAG)

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

/* ---- the slow path ---- */

/* E(INVALID_STATE, ...) unless requests may be posted. */
static inline DAT_RETURN request_state(struct dapl_ep *ep)
{
	/* acquire: pairs with the store in ep_set_state_locked; the QP of that state is seen */
	DAT_EP_STATE state = atomic_load_explicit(&ep->state, memory_order_acquire);

	return ep_accepts_requests(ep, state) ? DAT_SUCCESS : ep_state_error(state);
}

/*
 * The status of a post that the device refused: between the check of the state and the post, the EP
 * may have got a new QP that does not accept requests yet.
 */
static inline DAT_RETURN request_refused(struct dapl_ep *ep, DAT_RETURN status)
{
	DAT_RETURN state = request_state(ep);

	return state == DAT_SUCCESS ? status : state;
}

/*
 * Checks length, state and credits of a request with otherwise checked arguments, and posts it. `subtype` names the
 * parameter that has the segments.
 */
DAT_RETURN ep_request_post(struct dapl_ep *ep, struct ep_request *request, DAT_UINT32 subtype);
/* Checks list, remote segment and flags of an RDMA request; `subtype` names the flags. Then as ep_request_post. */
DAT_RETURN ep_rdma_post(struct dapl_ep *ep, struct ep_request *request,
			const DAT_RMR_TRIPLET *remote, DAT_COMPLETION_FLAGS flags,
			DAT_UINT32 subtype);

/* The flags of the device for those of DAT (FLAGS_REQUEST). */
unsigned ep_request_flags(unsigned op, unsigned flags);

#endif
