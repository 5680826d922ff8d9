/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* The free slots of a shared receive queue. */
#include "softverbs/object/srq.h"

void sv_srq_slot_release(struct sv_srq *srq, uint32_t slot)
{
	uint32_t n = atomic_fetch_add_explicit(&srq->free_tail, 1, memory_order_relaxed);

	/* release: the slot was read before it is posted again */
	atomic_store_explicit(&srq->free[n & srq->wq.mask], ring_lap(n, srq->wq.shift) << 16 | slot,
			      memory_order_release);
}
