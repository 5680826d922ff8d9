/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Queues of posted receives: allocates their memory, posts entries. */
#include <errno.h>
#include <string.h>
#include "softverbs/base/lock_rank.h"
#include "softverbs/object/wq.h"

static uint64_t sge_size(const struct sv_wq *wq)
{
	return (uint64_t)(wq->mask + 1) * wq->max_sge * sizeof(struct ibv_sge);
}

static uint64_t post_size(const struct sv_wq *wq)
{
	return (wq->post_mask + 1) * sizeof(uint64_t);
}

int sv_wq_open(struct sv_wq *wq, uint32_t entries, uint32_t max_sge, uint32_t pd)
{
	uint32_t size = round_up_pow2(entries);

	lock_init(&wq->lock, SV_RANK_WQ);
	wq->mask = size - 1;
	wq->shift = (uint32_t)__builtin_ctz(size);
	wq->post_shift = post_shift(wq->shift);
	wq->post_mask = (1u << wq->post_shift) - 1;
	wq->limit = entries ? size : 0;
	wq->max_sge = max_sge ? max_sge : 1;
	wq->pd = pd;
	wq->regions = sv_area_own()->by_owner->region;
	wq->post = sv_heap_alloc_zero(HEAP_BY_OWNER, post_size(wq), &wq->post_offset);
	wq->sge = sv_heap_alloc(HEAP_BY_OWNER, sge_size(wq), &wq->sge_offset);
	wq->wr_id = sv_heap_alloc(HEAP_OWN, size * sizeof(uint64_t), NULL);
	wq->rx_slot = sv_heap_alloc_zero(HEAP_BY_PEERS, rx_slots_size(size), &wq->rx_slot_offset);
	return wq->post && wq->sge && wq->wr_id && wq->rx_slot ? 0 : ENOMEM;
}

void sv_wq_close(struct sv_wq *wq, bool lost)
{
	uint64_t size = wq->mask + 1;

	sv_heap_free(HEAP_OWN, wq->wr_id, size * sizeof(uint64_t));
	if (lost)
		return;
	sv_heap_free(HEAP_BY_OWNER, (void *)wq->post, post_size(wq));
	sv_heap_free(HEAP_BY_OWNER, wq->sge, sge_size(wq));
	sv_heap_free(HEAP_BY_PEERS, wq->rx_slot, rx_slots_size(size));
}

void sv_wq_reset(struct sv_wq *wq)
{
	for (uint32_t i = 0; i <= wq->post_mask; i++)
		atomic_store_explicit(&wq->post[i], 0, memory_order_relaxed);
	for (uint32_t i = 0; i <= wq->mask; i++)
		atomic_store_explicit(&wq->rx_slot[i].head, 0, memory_order_relaxed);
	wq_continue(wq, 0);
}

void sv_wq_exchange(struct sv_wq *wq, struct sv_wq *other)
{
	const size_t from = offsetof(struct sv_wq, mask), size = sizeof(*wq) - from;
	uint8_t kept[sizeof(*wq)];

	memcpy(kept, (char *)wq + from, size);
	memcpy((char *)wq + from, (char *)other + from, size);
	memcpy((char *)other + from, kept, size);
}

static bool may_receive(const struct sv_wq *wq, const struct ibv_sge *sge)
{
	uint64_t va;

	return !sge->length || region_allows(wq->regions, sge->lkey, wq->pd, sge->addr, sge->length,
					     IBV_ACCESS_LOCAL_WRITE, &va);
}

/*
 * Notes that receives name the region, so that its withdrawal searches for them. Most regions
 * have none.
 */
static void note_receive(const struct sv_wq *wq, uint32_t lkey)
{
	struct region_entry *region = &wq->regions[lkey >> 16];

	if (!atomic_load_explicit(&region->received, memory_order_relaxed))
		atomic_store_explicit(&region->received, 1, memory_order_relaxed);
}

int sv_wq_put_slow_locked(struct sv_wq *wq, uint32_t n, uint32_t slot, const struct ibv_recv_wr *wr)
{
	struct ibv_sge *to = &wq->sge[(uint64_t)slot * wq->max_sge];
	uint32_t count = (uint32_t)wr->num_sge, bad = 0, i;
	uint64_t length = 0;

	if (count > wq->max_sge)
		return EINVAL;
	for (i = 0; i < count; i++) {
		const struct ibv_sge *from = &wr->sg_list[i];

		if (!may_receive(wq, from))
			bad = POST_BAD;
		note_receive(wq, from->lkey);
		length += from->length;
		to[i] = *from;
	}
	for (; i < wq->max_sge; i++)
		to[i].length = 0;
	wq->wr_id[slot] = wr->wr_id;
	wq_publish_locked(wq, n, slot | bad, length > UINT32_MAX ? UINT32_MAX : (uint32_t)length);
	return 0;
}

static bool will_receive(const struct sv_wq *wq, const struct wq_change *change,
			 const struct ibv_sge *sge)
{
	uint64_t va;

	if (!change->ahead || sge->lkey != change->lkey)
		return may_receive(wq, sge);
	return !sge->length ||
	       (change->next && region_covers(change->next, wq->pd, sge->addr, sge->length,
					      IBV_ACCESS_LOCAL_WRITE, &va));
}

/*
 * The entry with the bad mark that is right after the change; unchanged if the receive does not
 * name the key.
 */
static uint64_t entry_again(const struct sv_wq *wq, uint64_t entry, const struct wq_change *change)
{
	const struct ibv_sge *sge = &wq->sge[(uint64_t)post_slot(entry) * wq->max_sge],
			     *end = sge + wq->max_sge;
	bool bad = change->ahead && post_is_bad(entry), has_key = false;

	for (; sge < end; sge++) {
		bad |= !will_receive(wq, change, sge);
		has_key |= sge->length && sge->lkey == change->lkey;
	}
	if (!has_key)
		return entry;
	return (entry & ~((uint64_t)POST_BAD << 32)) | (bad ? (uint64_t)POST_BAD << 32 : 0);
}

void sv_wq_recheck(struct sv_wq *wq, const struct wq_change *change)
{
	lock_acquire(&wq->lock);
	for (uint32_t i = 1; i <= wq->mask + 1; i++) {
		uint64_t entry = wq_entry(wq, wq->posted - i), now;

		if (!wq_is_posted(wq, entry, wq->posted - i))
			break;
		now = entry_again(wq, entry, change);
		/* release: as in wq_publish_locked */
		if (now != entry)
			atomic_store_explicit(&wq->post[(wq->posted - i) & wq->post_mask], now,
					      memory_order_release);
	}
	lock_release(&wq->lock);
}

uint32_t sv_wq_count(struct sv_wq *wq, uint32_t head)
{
	uint32_t count;

	lock_acquire(&wq->lock);
	count = wq->posted - head;
	lock_release(&wq->lock);
	return count;
}
