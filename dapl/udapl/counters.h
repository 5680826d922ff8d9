/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Counters of IAs, EPs and EVDs: they only grow; a reset moves where they start. */
#ifndef DAPL_COUNTERS_H
#define DAPL_COUNTERS_H

#include <stdatomic.h>
#include <stdint.h>
#include <dat2/udat.h>
#include <dat2/dat_ib_extensions.h>

#define COUNTERS(name, count) \
	struct name { _Atomic uint64_t value[count], base[count]; }

COUNTERS(ia_counters, DCNT_IA_ALL_COUNTERS);
COUNTERS(ep_counters, DCNT_EP_ALL_COUNTERS);
COUNTERS(evd_counters, DCNT_EVD_ALL_COUNTERS);

/* From any thread. */
static inline void counter_add(_Atomic uint64_t *value, uint64_t more)
{
	atomic_fetch_add_explicit(value, more, memory_order_relaxed);
}

/* By whoever holds the lock of the place: no locked instruction. */
static inline void counter_add_locked(_Atomic uint64_t *value, uint64_t more)
{
	atomic_store_explicit(value, atomic_load_explicit(value, memory_order_relaxed) + more,
			      memory_order_relaxed);
}

#endif
