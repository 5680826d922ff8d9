/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * The region table: which access a key allows, to work requests of the owner and of its peers
 * alike.
 */
#ifndef SV_OBJECT_REGION_H
#define SV_OBJECT_REGION_H

#include <sys/uio.h>
#include "softverbs/object/area.h"

/* Whether an entry, found by its key, allows `need` (IBV_ACCESS_*, REGION_LOCAL) on the range. */
static inline bool region_covers(const struct region_entry *r, uint32_t pd, uint64_t addr,
				 uint64_t length, unsigned need, uint64_t *va)
{
	if (r->pd != pd || (r->access & need) != need || addr < r->iova || length > r->length ||
	    addr - r->iova > r->length - length)
		return false;
	*va = r->addr + (addr - r->iova);
	return true;
}

/*
 * Whether `key` allows the PD `need` on [addr, addr + length). If so, stores the address of the
 * range in the owner's address space in `*va`. Called by the owner, or by a peer between
 * epoch_enter and epoch_leave, so that the entry does not change.
 */
static inline bool region_allows(const struct region_entry *table, uint32_t key, uint32_t pd,
				 uint64_t addr, uint64_t length, unsigned need, uint64_t *va)
{
	const struct region_entry *r = &table[key >> 16];

	/* acquire: the rest of the entry was written before its key */
	return atomic_load_explicit(&r->key, memory_order_acquire) == key &&
	       region_covers(r, pd, addr, length, need, va);
}

/*
 * The same for the payload of a message that has arrived. Called by the owner with the lock of
 * the receive CQ held. A retired key still counts, until sv_region_forget.
 */
static inline bool region_accepts(const struct region_entry *table, uint32_t key, uint32_t pd,
				  uint64_t addr, uint64_t length, uint64_t *va)
{
	const struct region_entry *r = &table[key >> 16];

	if (likely(region_allows(table, key, pd, addr, length, IBV_ACCESS_LOCAL_WRITE, va)))
		return true;
	return key && atomic_load_explicit(&r->leaving, memory_order_acquire) == key &&
	       region_covers(r, pd, addr, length, IBV_ACCESS_LOCAL_WRITE, va);
}

/*
 * Translates [skip, skip + length) of a posted receive's SGEs into ranges of the owner's address
 * space; `keys`, which may be NULL, gets the key of each. Returns their count, or -1 if a key does not allow it.
 */
int sv_region_ranges(const struct region_entry *table, const struct ibv_sge *sge, uint32_t max_sge,
		     uint32_t pd, uint64_t skip, uint64_t length, struct iovec *ranges,
		     uint32_t *keys);

uint32_t sv_region_reserve(void);     /* a key without an entry; 0 if the table is full */
void sv_region_release(uint32_t key); /* of an unpublished key */
/* `entry`: all fields except the key. */
void sv_region_publish(uint32_t key, const struct region_entry *entry);
/*
 * Withdraws the key of a region that no posted receive names. After return no process uses the
 * entry.
 */
void sv_region_withdraw(uint32_t key);
/*
 * The three steps of a withdrawal for a region that posted receives name. First: work requests
 * and peers do not find the key any more, but messages that have arrived do.
 */
void sv_region_retire(uint32_t key);
/* Second: waits for the peers that had found the key. Their messages have arrived then. */
void sv_region_quiesce(uint32_t key);
/*
 * Third, after the payload of those messages is copied: retired keys do not count any more; waits
 * for the polls that had found the key.
 */
void sv_region_forget(uint32_t key);

#endif
