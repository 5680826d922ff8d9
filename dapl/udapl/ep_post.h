/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* What all posts of an endpoint share: flags, room, the slot; and the way of the uncommon ones. */
#ifndef DAPL_EP_POST_H
#define DAPL_EP_POST_H

#include "dapl/udapl/ep.h"

#define FLAGS_REQUEST \
	((unsigned)DAT_COMPLETION_SUPPRESS_FLAG | (unsigned)DAT_COMPLETION_SOLICITED_WAIT_FLAG | \
	 (unsigned)DAT_COMPLETION_BARRIER_FENCE_FLAG)

/* What the entries have in common is compiled into each of them, for its own constants. */
#define PART static inline __attribute__((always_inline))
#define unlikely(x) __builtin_expect(!!(x), 0)

/* UNSIGNALLED is for endpoints that announced it, for that side, at their creation. */
static inline bool flags_valid(DAT_COMPLETION_FLAGS flags, unsigned always,
			       DAT_COMPLETION_FLAGS attr)
{
	return !((unsigned)flags &
		 ~(always | ((unsigned)attr & DAT_COMPLETION_UNSIGNALLED_FLAG)));
}

PART uint32_t room_of(const struct dto_ring *ring, uint32_t posted)
{
	/* acquire: a slot seen retired may be written again */
	return ring->depth -
	       (posted - atomic_load_explicit(&ring->retired, memory_order_acquire));
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
PART unsigned request_flags(const struct dto_ring *ring, uint32_t posted, unsigned op,
			    DAT_COMPLETION_FLAGS flags)
{
	bool silent = flags & DAT_COMPLETION_SUPPRESS_FLAG &&
		      posted - ring->signalled < (ring->depth + 1) / 2;

	return (silent ? 0 : IB_POST_SIGNALED) |
	       (flags & DAT_COMPLETION_SOLICITED_WAIT_FLAG && is_message(op) ?
		IB_POST_SOLICITED : 0) |
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
PART DAT_RETURN request_end(struct dto_ring *ring, uint32_t posted, DAT_RETURN status)
{
	if (unlikely(status != DAT_SUCCESS)) {
		ring->signalled = posted - ring->depth;	/* the next one will be */
		return status;
	}
	/* release: whoever counts what is outstanding sees the slot */
	atomic_store_explicit(&ring->posted, posted + 1, memory_order_release);
	return DAT_SUCCESS;
}

/* The device took it. A send that invalidates is a send; binds are not counted. */
PART void request_count_locked(struct dapl_ep *ep, unsigned op, uint64_t length)
{
	switch (op) {
	case IB_OP_SEND:
	case IB_OP_SEND_INV:
		ep_count_locked(ep, DCNT_EP_POST_SEND, 1);
		ep_count_locked(ep, DCNT_EP_POST_SEND_DATA, length);
		break;
	case IB_OP_WRITE:
		ep_count_locked(ep, DCNT_EP_POST_WRITE, 1);
		ep_count_locked(ep, DCNT_EP_POST_WRITE_DATA, length);
		break;
	case IB_OP_WRITE_IMM:
		ep_count_locked(ep, DCNT_EP_POST_WRITE_IMM, 1);
		ep_count_locked(ep, DCNT_EP_POST_WRITE_IMM_DATA, length);
		break;
	case IB_OP_READ:
		ep_count_locked(ep, DCNT_EP_POST_READ, 1);
		ep_count_locked(ep, DCNT_EP_POST_READ_DATA, length);
		break;
	case IB_OP_SWAP:
		ep_count_locked(ep, DCNT_EP_POST_CMP_SWAP, 1);
		break;
	case IB_OP_ADD:
		ep_count_locked(ep, DCNT_EP_POST_FETCH_ADD, 1);
		break;
	}
}

/*
 * The queue has not that much room. When its oldest request was suppressed the consumer has no
 * completion to reap for it: completions that lie in the CQ are taken now, and with them the slots
 * come back. Caller holds the post lock.
 */
bool request_make_room_locked(struct dapl_ep *ep, uint32_t posted, uint32_t wanted);

/* E(INVALID_STATE, ...) unless connected, or disconnected, to be flushed. */
static inline DAT_RETURN request_state(struct dapl_ep *ep)
{
	/* acquire: the QP of that state is seen with it */
	DAT_EP_STATE state = atomic_load_explicit(&ep->state, memory_order_acquire);

	return unlikely(state != DAT_EP_STATE_CONNECTED) && state != DAT_EP_STATE_DISCONNECTED ?
	       ep_state_error(state) : DAT_SUCCESS;
}

/*
 * A request of one of the uncommon kinds, its arguments checked. `post` hands it to the device:
 * `request` is the operation with its flags.
 */
struct ep_work {
	unsigned op;			/* IB_OP_* */
	uint8_t operation;		/* of its event */
	uint8_t special;		/* DTO_EXTENDED, or nothing */
	const DAT_LMR_TRIPLET *segments;
	unsigned count;
	const DAT_RMR_TRIPLET *remote;
	DAT_DTO_COOKIE cookie;
	DAT_COMPLETION_FLAGS flags;
	uint64_t operand, swap;		/* of an atomic */
	uint32_t word;			/* immediate data, or the key to invalidate */
	DAT_RETURN (*post)(struct ib_qp *qp, unsigned request, uint64_t wr_id,
			   const struct ep_work *work);
};

/* Length, state, room, and the request; `segments` is the subtype of a list that is too long. */
DAT_RETURN ep_work_post(struct dapl_ep *ep, const struct ep_work *work, DAT_UINT32 segments);
DAT_RETURN ep_work_post_word(struct ib_qp *qp, unsigned request, uint64_t wr_id,
			     const struct ep_work *work);

#endif
