/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* The region table: publishes and withdraws keys. */
#include "softverbs/object/quiesce.h"
#include "softverbs/object/region.h"

/*
 * A region with none of these is accessed by its own process only, in calls that return when they
 * are done.
 */
#define BY_PEERS                                                                     \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | \
	 IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_MW_BIND)

uint32_t sv_region_reserve(void)
{
	struct area *area = sv_area_own();
	uint32_t id = sv_ids_alloc(&area->regions);
	struct region_entry *slot = &area->by_owner->region[id];

	if (!id)
		return 0;
	/* the last users of the number are gone */
	slot->generation = (slot->generation + 1) & 0xff;
	atomic_store_explicit(&slot->received, 0, memory_order_relaxed);
	return id << 16 | (uint32_t)slot->generation << 8;
}

void sv_region_release(uint32_t key)
{
	sv_ids_free(&sv_area_own()->regions, key >> 16);
}

void sv_region_publish(uint32_t key, const struct region_entry *entry)
{
	struct region_entry *slot = &sv_area_own()->by_owner->region[key >> 16];

	slot->type = entry->type;
	slot->access = entry->access;
	slot->pd = entry->pd;
	slot->qpn = entry->qpn;
	atomic_store_explicit(&slot->file, atomic_load_explicit(&entry->file, memory_order_relaxed),
			      memory_order_relaxed);
	atomic_store_explicit(&slot->at, atomic_load_explicit(&entry->at, memory_order_relaxed),
			      memory_order_relaxed);
	atomic_store_explicit(&sv_area_own()->use[key >> 16], 0, memory_order_relaxed);
	slot->addr = entry->addr;
	slot->length = entry->length;
	slot->iova = entry->iova;
	/* release: pairs with region_allows */
	atomic_store_explicit(&slot->key, key, memory_order_release);
}

void sv_region_retire(uint32_t key)
{
	struct region_entry *slot = &sv_area_own()->by_owner->region[key >> 16];

	atomic_store_explicit(&slot->leaving, key, memory_order_relaxed);
	/* release: a poll that does not find `key` finds `leaving`; pairs with region_accepts */
	atomic_store_explicit(&slot->key, 0, memory_order_release);
}

void sv_region_quiesce(uint32_t key)
{
	if (sv_area_own()->by_owner->region[key >> 16].access & BY_PEERS)
		sv_quiesce_all();
	/* Copies for peers checked the key before they began. They hold the lock for reading. */
	pthread_rwlock_wrlock(&sv_area_own()->serve_lock);
	pthread_rwlock_unlock(&sv_area_own()->serve_lock);
}

void sv_region_forget(uint32_t key)
{
	atomic_store_explicit(&sv_area_own()->by_owner->region[key >> 16].leaving, 0,
			      memory_order_relaxed);
	sv_quiesce_polls();
}

void sv_region_withdraw(uint32_t key)
{
	struct region_entry *slot = &sv_area_own()->by_owner->region[key >> 16];

	atomic_store_explicit(&slot->key, 0, memory_order_relaxed);
	atomic_store_explicit(&slot->leaving, 0, memory_order_relaxed);
	sv_region_quiesce(key);
}

int sv_region_ranges(const struct region_entry *table, const struct ibv_sge *sge, uint32_t max_sge,
		     uint32_t pd, uint64_t skip, uint64_t length, struct iovec *ranges,
		     uint32_t *keys)
{
	int count = 0;

	for (uint32_t i = 0; i < max_sge && length; i++) {
		uint64_t part = sge[i].length, va;

		if (skip >= part) {
			skip -= part;
			continue;
		}
		part = part - skip < length ? part - skip : length;
		if (!region_allows(table, sge[i].lkey, pd, sge[i].addr + skip, part,
				   IBV_ACCESS_LOCAL_WRITE, &va))
			return -1;
		if (keys)
			keys[count] = sge[i].lkey;
		ranges[count].iov_base = (void *)(uintptr_t)va;
		ranges[count++].iov_len = part;
		length -= part;
		skip = 0;
	}
	return length ? -1 : count;
}
