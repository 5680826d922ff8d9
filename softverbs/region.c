/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* The region table: publishing and withdrawing what a key allows. */
#include "softverbs/quiesce.h"
#include "softverbs/region.h"

/*
 * Who can reach a region with none of these is its own process only, in calls that return when
 * done.
 */
#define BY_PEERS                                                                     \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | \
	 IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_MW_BIND)

uint32_t region_reserve(void)
{
	struct area *area = area_own();
	uint32_t id = ids_take(&area->regions);
	struct ro_region *slot = &area->ro->region[id];

	if (!id)
		return 0;
	slot->generation =
		(slot->generation + 1) & 0xff; /* the number's last users are long done */
	atomic_store_explicit(&slot->received, 0, memory_order_relaxed);
	return id << 16 | slot->generation << 8;
}

void region_release(uint32_t key)
{
	ids_give(&area_own()->regions, key >> 16);
}

void region_publish(uint32_t key, const struct ro_region *entry)
{
	struct ro_region *slot = &area_own()->ro->region[key >> 16];

	slot->type = entry->type;
	slot->access = entry->access;
	slot->pd = entry->pd;
	slot->qpn = entry->qpn;
	slot->addr = entry->addr;
	slot->length = entry->length;
	slot->iova = entry->iova;
	/* release: pairs with region_allows */
	atomic_store_explicit(&slot->key, key, memory_order_release);
}

void region_withdraw(uint32_t key)
{
	struct ro_region *slot = &area_own()->ro->region[key >> 16];

	atomic_store_explicit(&slot->key, 0, memory_order_relaxed);
	if (slot->access & BY_PEERS)
		quiesce_all();
	/* copies made on behalf of peers checked the key before they began */
	pthread_rwlock_wrlock(&area_own()->serve_lock);
	pthread_rwlock_unlock(&area_own()->serve_lock);
}

int region_ranges(const struct ro_region *table, const struct ibv_sge *sge, uint32_t max_sge,
		  uint32_t pd, uint64_t skip, uint64_t length, struct iovec *ranges)
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
		ranges[count].iov_base = (void *)(uintptr_t)va;
		ranges[count++].iov_len = part;
		length -= part;
		skip = 0;
	}
	return length ? -1 : count;
}
