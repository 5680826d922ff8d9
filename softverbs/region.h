/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* The region table: what a key allows, for the owner's own work requests and for a peer's alike. */
#ifndef SV_REGION_H
#define SV_REGION_H

#include <sys/uio.h>
#include "softverbs/area.h"

/*
 * Whether `key` gives `need` on [addr, addr + length) to the PD; `va`: where that is in the owner's
 * address space. Used by the owner or between window_enter and window_leave, so that the entry
 * stays what it is.
 */
static inline bool region_allows(const struct ro_region *table, uint32_t key, uint32_t pd,
				 uint64_t addr, uint64_t length, unsigned need, uint64_t *va)
{
	const struct ro_region *r = &table[key >> 16];

	/* acquire: the rest of the entry was written before its key */
	if (atomic_load_explicit(&r->key, memory_order_acquire) != key || r->pd != pd ||
	    (r->access & need) != need || addr < r->iova || length > r->length ||
	    addr - r->iova > r->length - length)
		return false;
	*va = r->addr + (addr - r->iova);
	return true;
}

/*
 * The part [skip, skip + length) of what a posted receive's SGEs name, as ranges of the owner's
 * address space. Returns their count, or -1 when a key does not allow it.
 */
int region_ranges(const struct ro_region *table, const struct ibv_sge *sge, uint32_t max_sge,
		  uint32_t pd, uint64_t skip, uint64_t length, struct iovec *ranges);

uint32_t region_reserve(void);	   /* a key that means nothing yet; 0 when the table is full */
void region_release(uint32_t key); /* unpublished */
/* `entry`: everything but the key. */
void region_publish(uint32_t key, const struct ro_region *entry);
/* After return nobody uses the entry, in whatever process. */
void region_withdraw(uint32_t key);

#endif
