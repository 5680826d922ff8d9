/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Completions become events: the common way, compiled into whatever takes completions; dto.c has the others. */
#ifndef DAPL_DTO_COMPLETE_H
#define DAPL_DTO_COMPLETE_H

#include "dapl/udapl/dto_event.h"

/* Of another ring than the EVD's last one, or of an SRQ. */
unsigned dto_complete_other(struct dapl_evd *evd, const struct ib_completion *completion,
			    DAT_EVENT *event);
/* Failed, suppressed, extended, or with an invalidation. `ring` is NULL for a receive from an SRQ. */
unsigned dto_complete_uncommon(struct dapl_evd *evd, struct dapl_ep *ep, struct dto_ring *ring,
			       const struct dto_slot *slot, const struct ib_completion *completion,
			       DAT_EVENT *event);

/*
 * Whether a success notifies. `flags` are those of the post: only an UNSIGNALLED stream takes posts that do not notify. A
 * solicited completion is not marked as such: for that class the device wakes, not the event.
 */
static inline unsigned dto_event_that_wakes(const struct dapl_evd *evd, unsigned flags)
{
	if (__builtin_expect(!(evd->arming & EVD_CLASS), 1))
		return DTO_EVENT | DTO_NOTIFY;
	if (!(evd->arming & EVD_SOLICITED) && !(flags & DAT_COMPLETION_UNSIGNALLED_FLAG))
		return DTO_EVENT | DTO_NOTIFY;
	return DTO_EVENT;
}

/* One side completes in order: those before it were suppressed and are done. */
static inline void dto_retire(struct dto_ring *ring, uint32_t index)
{
	uint32_t retired = atomic_load_explicit(&ring->retired, memory_order_relaxed);

	/* release: the slot was read before the poster may write it again */
	atomic_store_explicit(&ring->retired, retired + ((index - retired) & ring->mask) + 1,
			      memory_order_release);
}

/* A success that makes an event, and one of the common kind. */
static inline bool dto_is_plain(const struct dto_slot *slot, const struct ib_completion *completion)
{
	return __builtin_expect(!(completion->status | slot->special |
				  (completion->flags & (IB_WITH_INVALIDATE | IB_WITH_IMMEDIATE))),
				1);
}

/* Of a send or write the device need not say the length (ibv_poll_cq(3)). */
static inline uint32_t dto_plain_length(const struct dto_slot *slot,
					const struct ib_completion *completion)
{
	return slot->operation >= DAT_DTO_RDMA_READ ? completion->byte_len : slot->length;
}

/* `slot` is number `index` of the ring, which is NULL for one of an SRQ. */
static inline __attribute__((always_inline)) unsigned dto_complete_slot(
	struct dapl_evd *evd, struct dapl_ep *ep, struct dto_ring *ring,
	const struct dto_slot *slot, uint32_t index, const struct ib_completion *completion,
	DAT_EVENT *event)
{
	uint32_t length;
	unsigned made;

	if (!dto_is_plain(slot, completion))
		return dto_complete_uncommon(evd, ep, ring, slot, completion, event);
	length = dto_plain_length(slot, completion);
	if (slot->operation == DAT_DTO_RECEIVE)
		dto_count_received(ep, DCNT_EP_RECV, 1, length);
	dto_fill(evd, ep, slot->cookie, DAT_DTO_SUCCESS, length, slot->operation, 0, event);
	made = dto_event_that_wakes(evd, slot->flags);
	if (ring)
		dto_retire(ring, index); /* the slot is the poster's from here on */
	return made;
}

/*
 * Turns a completion into an event, when it makes one, and retires its slot; says which of these. A
 * suppressed success makes none, nor does what is left of an EP that is gone. A failure that breaks
 * a connection is reported to the EP (ep_dto_failed). Caller holds the EVD's lock.
 */
static inline __attribute__((always_inline)) unsigned dto_complete(
	struct dapl_evd *evd, const struct ib_completion *completion, DAT_EVENT *event)
{
	struct dto_ring *ring = evd->last_ring;
	uint64_t index = completion->wr_id ^ ring->base;

	if (__builtin_expect(index > ring->mask, 0))
		return dto_complete_other(evd, completion, event);
	/* acquire: the slot is as it was posted */
	atomic_load_explicit(&ring->posted, memory_order_acquire);
	return dto_complete_slot(evd, (struct dapl_ep *)ring->ep, ring, &ring->slots[index],
				 (uint32_t)index, completion, event);
}

#endif
