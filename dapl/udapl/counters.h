/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Counters of IAs, EPs and EVDs: they only grow; a reset moves where they start (`base`, readers' own). */
#ifndef DAPL_COUNTERS_H
#define DAPL_COUNTERS_H

#include <stdatomic.h>
#include <stdint.h>
#include <dat2/udat.h>
#include <dat2/dat_ib_extensions.h>

/* Of an IA: from any thread. */
struct ia_counters {
	_Atomic uint64_t value[DCNT_IA_ALL_COUNTERS];
	uint64_t base[DCNT_IA_ALL_COUNTERS];
};

/* Of the others: by whoever holds the lock of the place, readers included (ext_ib_counters.c). */
struct ep_counters {
	uint64_t value[DCNT_EP_ALL_COUNTERS], base[DCNT_EP_ALL_COUNTERS];
};

/*
 * What can be added up is not counted: there have been as many calls of dequeue as found something
 * and as did not, and the polls kept here are those that found nothing.
 */
struct evd_counters {
	uint64_t value[DCNT_EVD_ALL_COUNTERS], base[DCNT_EVD_ALL_COUNTERS];
};

static inline void counter_add(_Atomic uint64_t *value, uint64_t more)
{
	atomic_fetch_add_explicit(value, more, memory_order_relaxed);
}

#endif
