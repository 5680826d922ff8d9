/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Conversion of completions into events: the fast path, inlined into its callers. The slow path is in evd/dto.c. */
#ifndef DAPL_DTO_COMPLETE_H
#define DAPL_DTO_COMPLETE_H

#include "dapl/udapl/evd/dto_event.h"

/* For a completion of another ring than the EVD's cached one, or of an SRQ. */
unsigned dto_complete_by_id(struct dapl_evd *evd, const struct ib_completion *completion,
			    DAT_EVENT *event);
/* For a failed, suppressed or extended one, or one with an invalidation. `ring` is NULL for a receive from an SRQ. */
unsigned dto_complete_slow(struct dapl_evd *evd, struct obj *ep, struct dto_ring *ring,
			   const struct dto_slot *slot, const struct ib_completion *completion,
			   DAT_EVENT *event);

/*
 * DTO_EVENT, with DTO_NOTIFY if a success notifies. `flags` are those of the post: only an UNSIGNALLED stream has posts
 * that do not notify. Completions do not say whether they are solicited, so on an EVD_SOLICITED EVD no event notifies:
 * the device's notification does.
 */
static inline unsigned dto_event_that_wakes(const struct dapl_evd *evd, unsigned flags)
{
	if (__builtin_expect(!(evd->arming & EVD_CLASS), 1))
		return DTO_EVENT | DTO_NOTIFY;
	if (!(evd->arming & EVD_SOLICITED) && !(flags & DAT_COMPLETION_UNSIGNALLED_FLAG))
		return DTO_EVENT | DTO_NOTIFY;
	return DTO_EVENT;
}

/* The WRs of one side complete in order: earlier ones without a completion were suppressed and are done. */
static inline void dto_retire(struct dto_ring *ring, uint32_t index)
{
	uint32_t retired = atomic_load_explicit(&ring->retired, memory_order_relaxed);

	/* release: the slot was read before the poster may write it again */
	atomic_store_explicit(&ring->retired, retired + ((index - retired) & ring->mask) + 1,
			      memory_order_release);
}

/* True for a success that makes an event without extension, invalidation or immediate data. */
static inline bool dto_is_fast(const struct dto_slot *slot, const struct ib_completion *completion)
{
	return __builtin_expect(!(completion->status | slot->kind |
				  (completion->flags & (IB_WITH_INVALIDATE | IB_WITH_IMMEDIATE))),
				1);
}

/* A completion of a send or write need not have a length (ibv_poll_cq(3)): the slot has it. */
static inline uint32_t dto_length_fast(const struct dto_slot *slot,
				       const struct ib_completion *completion)
{
	return slot->operation >= DAT_DTO_RDMA_READ ? completion->byte_len : slot->length;
}

/* `slot` is slot `index` of `ring`; `ring` is NULL for a slot of an SRQ. */
static inline __attribute__((always_inline)) unsigned dto_complete_slot(
	struct dapl_evd *evd, struct obj *ep, struct dto_ring *ring, const struct dto_slot *slot,
	uint32_t index, const struct ib_completion *completion, DAT_EVENT *event)
{
	uint32_t length;
	unsigned made;

	if (!dto_is_fast(slot, completion))
		return dto_complete_slow(evd, ep, ring, slot, completion, event);
	length = dto_length_fast(slot, completion);
	if (slot->operation == DAT_DTO_RECEIVE)
		dto_count_received(ep, DCNT_EP_RECV, 1, length);
	dto_fill(evd, ep, slot->cookie, DAT_DTO_SUCCESS, length, slot->operation, 0, event);
	made = dto_event_that_wakes(evd, slot->flags);
	if (ring)
		dto_retire(ring, index); /* from here on the poster owns the slot */
	return made;
}

/*
 * Converts a completion into an event, if it makes one, and retires its slot. Returns DTO_* bits. A
 * suppressed success makes no event, nor does a completion of a freed EP. A failure that breaks a
 * connection is reported to the EP (ep_dto_failed). The caller holds the EVD's lock.
 */
static inline __attribute__((always_inline)) unsigned dto_complete(
	struct dapl_evd *evd, const struct ib_completion *completion, DAT_EVENT *event)
{
	struct dto_ring *ring = evd->last_ring;
	uint64_t index = completion->wr_id ^ ring->base;

	if (__builtin_expect(index > ring->mask, 0))
		return dto_complete_by_id(evd, completion, event);
	/* acquire: pairs with the release of `posted` by the poster; the slot is as it was posted */
	atomic_load_explicit(&ring->posted, memory_order_acquire);
	return dto_complete_slot(evd, ring->ep, ring, &ring->slots[index], (uint32_t)index,
				 completion, event);
}

#endif
