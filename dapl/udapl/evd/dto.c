/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* The slots of posted work requests, and the events that their completions become. */
#include <stdlib.h>
#include <string.h>
#include "dapl/udapl/base/upward.h"
#include "dapl/udapl/evd/dto_complete.h"

struct dto_ring dto_no_ring = { .base = UINT64_MAX };

DAT_RETURN dto_ring_init(struct dto_ring *ring, uint32_t depth)
{
	uint32_t size = 1;

	*ring = (struct dto_ring){ .depth = depth, .signalled = DTO_NONE_SIGNALLED };
	if (!depth)
		return DAT_SUCCESS;
	while (size < depth)
		size <<= 1;
	ring->slots = calloc(size, sizeof(*ring->slots));
	if (!ring->slots) {
		ring->depth = 0;
		return DAT_ERROR(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_MEMORY);
	}
	ring->mask = size - 1;
	return DAT_SUCCESS;
}

void dto_ring_free(struct dto_ring *ring, struct dapl_evd *evd)
{
	struct dto_slot *slots;

	if (evd)
		lock_acquire(&evd->lock);
	slots = ring->slots;
	ring->slots = NULL;
	ring->depth = 0;
	if (evd) {
		evd->last_ring = &dto_no_ring;
		lock_release(&evd->lock);
	}
	free(slots);
}

void dto_forget(struct dapl_evd *evd)
{
	if (!evd)
		return;
	lock_acquire(&evd->lock);
	evd->last_ring = &dto_no_ring;
	lock_release(&evd->lock);
}

uint64_t dto_list_length(const DAT_LMR_TRIPLET *segments, unsigned count)
{
	uint64_t length = 0;
	unsigned i;

	for (i = 0; i < count; i++)
		length += segments[i].segment_length;
	return length;
}

void dto_list_pack(struct dto_list *list, const DAT_LMR_TRIPLET *segments, unsigned count)
{
	unsigned i, n = 0;

	list->length = dto_list_length(segments, count);
	for (i = 0; i < count && segments[i].segment_length; i++)
		;
	if (i == count)
		return;
	for (i = 0; i < count; i++)
		if (segments[i].segment_length)
			list->packed[n++] = segments[i];
	list->segments = list->packed;
	list->count = n;
}

/*
 * Returns the EP that posted the request, or NULL if it is freed, whatever object its slot holds
 * now.
 */
static struct obj *poster(uint64_t id)
{
	struct obj *ep = obj_at(OBJ_EP, dto_id_index(id));

	/* acquire: pairs with the release in obj_publish */
	if (!ep || atomic_load_explicit(&ep->kind, memory_order_acquire) != OBJ_EP ||
	    dto_generation(ep) != dto_id_generation(id))
		return NULL;
	return ep;
}

static void uncommon_event(struct dapl_evd *evd, struct obj *ep, const struct dto_slot *slot,
			   const struct ib_completion *completion, DAT_EVENT *event)
{
	if (slot->operation == DAT_DTO_BIND_MW)
		dto_fill_bind(evd, slot, completion, event);
	else if (slot->kind & DTO_EXTENDED || completion->flags & IB_WITH_IMMEDIATE ||
		 dto_end_of(ep)->datagrams)
		dto_fill_extended(evd, ep, slot, completion, event);
	else if (completion->status != DAT_DTO_SUCCESS)
		dto_fill(evd, ep, slot->cookie, completion->status, 0, slot->operation, 0, event);
	else {
		dto_count_received(ep, DCNT_EP_RECV, 1, completion->byte_len);
		dto_fill(evd, ep, slot->cookie, DAT_DTO_SUCCESS, completion->byte_len,
			 DAT_DTO_RECEIVE_WITH_INVALIDATE, completion->immediate, event);
	}
}

/* A device may return late what was flushed from the ring already (evd_flush). */
static bool is_outstanding(struct dto_ring *ring, const struct dto_slot *slot)
{
	uint32_t retired = atomic_load_explicit(&ring->retired, memory_order_relaxed),
		 posted = atomic_load_explicit(&ring->posted, memory_order_acquire);

	return (((uint32_t)(slot - ring->slots) - retired) & ring->mask) < posted - retired;
}

unsigned dto_complete_slow(struct dapl_evd *evd, struct obj *ep, struct dto_ring *ring,
			   const struct dto_slot *slot, const struct ib_completion *completion,
			   DAT_EVENT *event)
{
	bool failed = completion->status != DAT_DTO_SUCCESS;
	bool bind = slot->operation == DAT_DTO_BIND_MW || slot->operation == DTO_UNBIND;
	unsigned made = DTO_EVENT | DTO_NOTIFY; /* a failure wakes whatever its flags */
	struct ib_completion translated = *completion;

	if (failed && ring && !is_outstanding(ring, slot))
		return 0;
	if (failed)
		ib_completion_translate(&translated, slot->operation == DAT_DTO_RDMA_READ);
	if (translated.flags & IB_WITH_INVALIDATE)
		rmr_invalidated(&dto_end_of(ep)->rmrs, translated.immediate);
	if (slot->kind & DTO_SILENT && (!failed || slot->operation >= DTO_UNBIND)) {
		made = 0;
	} else {
		uncommon_event(evd, ep, slot, &translated, event);
		if (!failed)
			made = dto_event_that_wakes(evd, slot->flags);
	}
	if (translated.status == DAT_DTO_ERR_FLUSHED)
		upward.ep_dto_flushed(ep);
	else if (failed && slot->operation != DTO_MARKER)
		upward.ep_dto_failed(ep);
	if (ring)
		dto_retire(ring, (uint32_t)(slot - ring->slots));
	if (bind)
		rmr_flight_landed(&dto_end_of(ep)->flights);
	return made;
}

static unsigned complete_srq(struct dapl_evd *evd, const struct ib_completion *completion,
			     DAT_EVENT *event)
{
	struct dto_pool *pool = dto_pool_from_id(completion->wr_id);
	struct obj *ep = qp_table_find(evd->obj.ia, completion->qp_num);
	uint32_t index = dto_id_slot(completion->wr_id);

	if (!pool || !ep)
		return DTO_SLOT;
	if (dto_end_of(ep)->datagrams)
		return DTO_SLOT |
		       dto_complete_slow(evd, ep, NULL, &pool->slots[index], completion, event);
	return DTO_SLOT |
	       dto_complete_slot(evd, ep, NULL, &pool->slots[index], index, completion, event);
}

/* Begins to load what the consumer's next posts on this EP read, which is in no near cache if there are many EPs. */
static inline void end_fetch(const struct obj *ep)
{
	const struct dto_end *end = dto_end_of(ep);

	__builtin_prefetch((const char *)end - OBJ_LINE);
	__builtin_prefetch(&end->post_lock, 1);
	__builtin_prefetch(&end->counters, 1);
}

unsigned dto_complete_by_id(struct dapl_evd *evd, const struct ib_completion *completion,
			    DAT_EVENT *event)
{
	struct dto_ring *ring;
	struct obj *ep;
	uint64_t index;

	if (dto_id_side(completion->wr_id) == DTO_SRQ)
		return complete_srq(evd, completion, event);
	ep = poster(completion->wr_id);
	if (!ep)
		return 0;
	end_fetch(ep);
	ring = dto_id_side(completion->wr_id) == DTO_REQUEST ? &dto_end_of(ep)->request
							     : &dto_end_of(ep)->recv;
	index = completion->wr_id ^ ring->base;
	if (!ring->slots || index > ring->mask)
		return 0;
	evd->last_ring = ring;
	/* acquire: the slot is as it was posted */
	atomic_load_explicit(&ring->posted, memory_order_acquire);
	return dto_complete_slot(evd, ep, ring, &ring->slots[index], (uint32_t)index, completion,
				 event);
}

bool dto_is_early(const struct dapl_evd *evd, const struct ib_completion *completion)
{
	struct obj *ep;

	if (completion->status != DAT_DTO_SUCCESS)
		return false;
	ep = dto_id_side(completion->wr_id) == DTO_SRQ
		     ? qp_table_find(evd->obj.ia, completion->qp_num)
		     : poster(completion->wr_id);
	/* acquire: everything before the announcement is seen */
	return ep && dto_end_of(ep)->connect_evd == evd &&
	       atomic_load_explicit(&dto_end_of(ep)->unannounced, memory_order_acquire);
}
