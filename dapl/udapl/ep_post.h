/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* What all posts of an endpoint share: flags, room, the slot; and the way of the uncommon ones. */
#ifndef DAPL_EP_POST_H
#define DAPL_EP_POST_H

#include "dapl/udapl/ep.h"

#define FLAGS_REQUEST                                                                            \
	((unsigned)DAT_COMPLETION_SUPPRESS_FLAG | (unsigned)DAT_COMPLETION_SOLICITED_WAIT_FLAG | \
	 (unsigned)DAT_COMPLETION_BARRIER_FENCE_FLAG)

/* What the entries have in common is compiled into each of them, for its own constants. */
#define PART	    static inline __attribute__((always_inline))
#define likely(x)   __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)

/* UNSIGNALLED is for endpoints that announced it, for that side, at their creation. */
static inline bool flags_valid(DAT_COMPLETION_FLAGS flags, unsigned always,
			       DAT_COMPLETION_FLAGS attr)
{
	return !((unsigned)flags & ~(always | ((unsigned)attr & DAT_COMPLETION_UNSIGNALLED_FLAG)));
}

/*
 * Nearly every post has one segment and no flag, or at most the one that suppresses a request, finds its
 * lock free and room in a queue that may be posted to. It goes the plain way (ep_post.c), which looks at
 * just that, in whatever order, and does nothing when something else is the case. Then the post goes
 * the other way (ep_post_other.c): all checks one after the other, as DAT orders them, and whatever
 * they allow.
 *
 * What of it is constant between two events is put into one number, `plain_depth` of the ring: from
 * state and QP, how many the plain way may leave outstanding, or 0. Whoever changes one of them, or
 * posts by the other way, has ep_requests_bound_locked find it anew.
 */
PART bool is_plain(DAT_COUNT count, const DAT_LMR_TRIPLET *segments, DAT_COMPLETION_FLAGS flags)
{
	return !(((unsigned)count ^ 1u) | (unsigned)flags) && segments;
}

/* The other one: a request that makes no completion. */
PART bool is_plain_silent(DAT_COUNT count, const DAT_LMR_TRIPLET *segments,
			  DAT_COMPLETION_FLAGS flags)
{
	return is_plain(count, segments,
			(DAT_COMPLETION_FLAGS)((unsigned)flags ^ DAT_COMPLETION_SUPPRESS_FLAG));
}

/* No more the plain way. What the other side retired is looked at when the room seen last is used up. */
PART bool is_bound(struct dto_ring *ring, uint32_t posted)
{
	uint32_t outstanding;

	if (likely((int32_t)(posted - ring->plain_until) < 0))
		return false;
	/* acquire: a slot seen retired may be written again */
	outstanding = posted - atomic_load_explicit(&ring->retired, memory_order_acquire);
	if (unlikely(outstanding >= ring->plain_depth))
		return true;
	ring->plain_until = posted + ring->plain_depth - outstanding;
	return false;
}

DAT_RETURN ep_post_send_other(struct dapl_ep *ep, DAT_COUNT count, const DAT_LMR_TRIPLET *segments,
			      DAT_DTO_COOKIE cookie, DAT_COMPLETION_FLAGS flags);
DAT_RETURN ep_post_rdma_other(struct dapl_ep *ep, unsigned op, DAT_COUNT count,
			      const DAT_LMR_TRIPLET *segments, DAT_DTO_COOKIE cookie,
			      const DAT_RMR_TRIPLET *remote, DAT_COMPLETION_FLAGS flags);
DAT_RETURN ep_post_recv_other(struct dapl_ep *ep, DAT_COUNT count, const DAT_LMR_TRIPLET *segments,
			      DAT_DTO_COOKIE cookie, DAT_COMPLETION_FLAGS flags);

PART uint8_t operation_of(unsigned op)
{
	return op == IB_OP_SEND	   ? DAT_DTO_SEND
	       : op == IB_OP_WRITE ? DAT_DTO_RDMA_WRITE
				   : DAT_DTO_RDMA_READ;
}

PART uint32_t room_of(const struct dto_ring *ring, uint32_t posted)
{
	/* acquire: a slot seen retired may be written again */
	return ring->depth - (posted - atomic_load_explicit(&ring->retired, memory_order_acquire));
}

PART bool is_full(const struct dto_ring *ring, uint32_t posted)
{
	/* acquire: as in room_of */
	return posted - atomic_load_explicit(&ring->retired, memory_order_acquire) >= ring->depth;
}

/* The peer's program takes notice of these. */
PART bool is_message(unsigned op)
{
	return op == IB_OP_SEND || op == IB_OP_SEND_INV || op == IB_OP_WRITE_IMM;
}

/*
 * Every other half of a queue of suppressed requests ends in a signalled one, so that slots come
 * back though the consumer never sees a completion.
 */
PART bool request_is_silent(const struct dto_ring *ring, uint32_t posted,
			    DAT_COMPLETION_FLAGS flags)
{
	return flags & DAT_COMPLETION_SUPPRESS_FLAG &&
	       posted - ring->signalled < (ring->depth + 1) / 2;
}

PART unsigned request_flags(const struct dto_ring *ring, uint32_t posted, unsigned op,
			    DAT_COMPLETION_FLAGS flags)
{
	return (request_is_silent(ring, posted, flags) ? 0 : IB_POST_SIGNALED) |
	       (flags & DAT_COMPLETION_SOLICITED_WAIT_FLAG && is_message(op) ? IB_POST_SOLICITED
									     : 0) |
	       (flags & DAT_COMPLETION_BARRIER_FENCE_FLAG ? IB_POST_FENCE : 0);
}

/*
 * Fills the slot of the next request and says with which flags it goes to the device. Caller holds
 * the post lock and has seen room.
 */
PART unsigned request_begin(struct dto_ring *ring, uint32_t posted, unsigned op, uint8_t operation,
			    uint64_t length, DAT_DTO_COOKIE cookie, DAT_COMPLETION_FLAGS flags)
{
	struct dto_slot *slot = &ring->slots[posted & ring->mask];
	unsigned ib = IB_POST_SIGNALED;

	slot->cookie = cookie;
	slot->length = (uint32_t)length;
	slot->operation = operation;
	slot->flags = slot->unused = 0;
	slot->special = 0;
	if (unlikely(flags)) {
		slot->flags = (uint8_t)flags;
		slot->special = flags & DAT_COMPLETION_SUPPRESS_FLAG ? DTO_SILENT : 0;
		ib = request_flags(ring, posted, op, flags);
	}
	if (ib & IB_POST_SIGNALED)
		ring->signalled = posted;
	return ib;
}

/* What the device said of it. */
PART DAT_RETURN request_end(struct dapl_ep *ep, uint32_t posted, DAT_RETURN status)
{
	struct dto_ring *ring = &ep->request;

	if (unlikely(status != DAT_SUCCESS)) {
		ring->signalled = posted - ring->depth; /* the next one will be */
		return status;
	}
	/* release: whoever counts what is outstanding sees the slot */
	atomic_store_explicit(&ring->posted, posted + 1, memory_order_release);
	ep_requests_bound_locked(ep);
	return DAT_SUCCESS;
}

/* `requests` and their bytes. A send that invalidates is a send; binds are not counted. */
PART void request_count_locked(struct dapl_ep *ep, unsigned op, uint64_t requests, uint64_t length)
{
	switch (op) {
	case IB_OP_SEND:
	case IB_OP_SEND_INV:
		ep_count_locked(ep, DCNT_EP_POST_SEND, requests);
		ep_count_locked(ep, DCNT_EP_POST_SEND_DATA, length);
		break;
	case IB_OP_WRITE:
		ep_count_locked(ep, DCNT_EP_POST_WRITE, requests);
		ep_count_locked(ep, DCNT_EP_POST_WRITE_DATA, length);
		break;
	case IB_OP_WRITE_IMM:
		ep_count_locked(ep, DCNT_EP_POST_WRITE_IMM, requests);
		ep_count_locked(ep, DCNT_EP_POST_WRITE_IMM_DATA, length);
		break;
	case IB_OP_READ:
		ep_count_locked(ep, DCNT_EP_POST_READ, requests);
		ep_count_locked(ep, DCNT_EP_POST_READ_DATA, length);
		break;
	case IB_OP_SWAP: ep_count_locked(ep, DCNT_EP_POST_CMP_SWAP, requests); break;
	case IB_OP_ADD: ep_count_locked(ep, DCNT_EP_POST_FETCH_ADD, requests); break;
	}
}

/*
 * The queue has not that much room. When its oldest request was suppressed the consumer has no
 * completion to reap for it: completions that lie in the CQ are taken now, and with them the slots
 * come back. Caller holds the post lock.
 */
bool request_make_room_locked(struct dapl_ep *ep, uint32_t posted, uint32_t wanted);

/* A queue pair, and room for that many requests. Caller holds the post lock. */
PART DAT_RETURN request_room_locked(struct dapl_ep *ep, uint32_t posted, uint32_t wanted)
{
	if (!ep->qp)
		return DAT_ERROR(DAT_INVALID_STATE, DAT_INVALID_STATE_EP_NOTREADY);
	if (room_of(&ep->request, posted) < wanted && !request_make_room_locked(ep, posted, wanted))
		return DAT_ERROR(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_MEMORY);
	return DAT_SUCCESS;
}

/* E(INVALID_STATE, ...) unless requests may be posted. */
static inline DAT_RETURN request_state(struct dapl_ep *ep)
{
	/* acquire: the QP of that state is seen with it */
	DAT_EP_STATE state = atomic_load_explicit(&ep->state, memory_order_acquire);

	return ep_takes_requests(ep, state) ? DAT_SUCCESS : ep_state_error(state);
}

/*
 * What the consumer is told when the device does not take a request: between the check of the state
 * and the post the EP may have got a QP that takes none yet.
 */
DAT_RETURN request_not_taken(struct dapl_ep *ep, DAT_RETURN status);

/*
 * A request of one of the uncommon kinds, its arguments checked. `post` hands it to the device:
 * `request` is the operation with its flags.
 */
struct ep_work {
	unsigned op;	   /* IB_OP_* */
	uint8_t operation; /* of its event */
	uint8_t special;   /* DTO_EXTENDED, or nothing */
	const DAT_LMR_TRIPLET *segments;
	unsigned count;
	const DAT_RMR_TRIPLET *remote;
	DAT_DTO_COOKIE cookie;
	DAT_COMPLETION_FLAGS flags;
	uint64_t operand, swap;	   /* of an atomic */
	uint32_t word;		   /* immediate data, the key to invalidate, or a QP number */
	struct dapl_ud_peer *peer; /* of a datagram */
	DAT_RETURN(*post)
	(struct ib_qp *qp, unsigned request, uint64_t wr_id, const struct ep_work *work);
};

/* Length, state, room, and the request; `segments` is the subtype of a list that is too long. */
DAT_RETURN ep_work_post(struct dapl_ep *ep, const struct ep_work *work, DAT_UINT32 segments);
DAT_RETURN ep_work_post_word(struct ib_qp *qp, unsigned request, uint64_t wr_id,
			     const struct ep_work *work);

#endif
