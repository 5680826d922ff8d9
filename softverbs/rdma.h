/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* What one-sided operations have in common. */
#ifndef SV_RDMA_H
#define SV_RDMA_H

#include "softverbs/copy.h"
#include "softverbs/region.h"
#include "softverbs/tx.h"

/*
 * Inside a window: whether a key of the peer's gives `need` to the connection: a region or a window
 * of its QP's PD, or a window of type 2 that was bound through that QP and not taken back since.
 */
static inline bool rdma_allows(const struct sv_tx *tx, uint32_t key, uint64_t addr, uint64_t length,
			       unsigned need, uint64_t *va)
{
	const struct ro_region *table = tx->peer->ro->region, *region = &table[key >> 16];

	if (!region_allows(table, key, tx->pd, addr, length, need, va))
		return false;
	return region->type != REGION_MW2 ||
	       (region->qpn == ((uint32_t)tx->peer->slot << 12 | tx->qp_index) &&
		atomic_load_explicit(&tx->peer->rw->invalidated[key >> 16], memory_order_relaxed) !=
			key);
}

/*
 * An atomic operation on memory of this process, against all others made through the device; the
 * old value.
 */
uint64_t atomic_own(uint64_t va, bool add, const uint64_t args[2]);

/* Inside a window: what a copy's end means for the work request. */
int rdma_copied(struct sv_tx *tx, enum copy_result result);

#endif
