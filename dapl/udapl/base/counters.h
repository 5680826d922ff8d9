/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Counters of IAs, EPs and EVDs. They only grow; a reset stores the present value in `base`, which only readers use. */
#ifndef DAPL_COUNTERS_H
#define DAPL_COUNTERS_H

#include <stdatomic.h>
#include <stdint.h>
#include <dat2/udat.h>
#include <dat2/dat_ib_extensions.h>

/* Of an IA: any thread adds to them, without a lock. */
struct ia_counters {
	_Atomic uint64_t value[DCNT_IA_ALL_COUNTERS];
	uint64_t base[DCNT_IA_ALL_COUNTERS];
};

/* Of EPs and EVDs: written and read under the lock that guards the counted action (ext/counters.c). */
struct ep_counters {
	uint64_t value[DCNT_EP_ALL_COUNTERS], base[DCNT_EP_ALL_COUNTERS];
};

/*
 * A counter that is the sum of others is not kept. The number of dequeue calls is the sum of those
 * that found an event and those that did not; the number of polls kept here is of those that found
 * nothing.
 */
struct evd_counters {
	uint64_t value[DCNT_EVD_ALL_COUNTERS], base[DCNT_EVD_ALL_COUNTERS];
};

static inline void counter_add(_Atomic uint64_t *value, uint64_t more)
{
	atomic_fetch_add_explicit(value, more, memory_order_relaxed);
}

#endif
