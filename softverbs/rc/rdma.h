/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* The steps that one-sided operations share. */
#ifndef SV_RC_RDMA_H
#define SV_RC_RDMA_H

#include "softverbs/rc/copy.h"
#include "softverbs/object/region.h"
#include "softverbs/rc/remote_rq.h"

/*
 * Between epoch_enter and epoch_leave: whether a key of the peer's allows the connection `need`.
 * The key is that of a region or window of its QP's PD, or of a type 2 window that was bound
 * through that QP and not invalidated since.
 */
static inline bool rdma_allows(const struct sv_remote_rq *remote, uint32_t key, uint64_t addr,
			       uint64_t length, unsigned need, uint64_t *va)
{
	const struct region_entry *table = remote->peer->by_owner->region,
				  *region = &table[key >> 16];

	if (!region_allows(table, key, remote->pd, addr, length, need, va))
		return false;
	return region->type != REGION_MW2 ||
	       (region->qpn == ((uint32_t)remote->peer->slot << 12 | remote->qp_index) &&
		atomic_load_explicit(&remote->peer->by_peers->invalidated[key >> 16],
				     memory_order_relaxed) != key);
}

/* Executes an atomic operation on this process's memory; returns the old value. */
uint64_t sv_atomic_local(uint64_t va, bool add, const uint64_t args[2]);

/*
 * Between epoch_enter and epoch_leave: the status of the work request after a copy ended with
 * `result`.
 */
int sv_rdma_copied(struct sv_remote_rq *remote, enum copy_result result);

#endif
