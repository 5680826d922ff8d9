/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * A range of this process's memory that was mapped a moment ago. An access of a page that is not there raises a signal, and
 * asking the kernel takes half as long as a copy of 64 KiB, so its answer counts for a short time.
 */
#ifndef SV_BASE_MAPPED_H
#define SV_BASE_MAPPED_H

#include "softverbs/base/os.h"
#include "util/clock.h"

#define MAPPED_TIME \
	(100 * NSEC_PER_USEC) /* at most; by a processor's own counter, down to a fifth of it */

/* Counts at least once a nanosecond. Asking for the time takes as long as to copy 2 KiB. */
static inline uint64_t mapped_clock(void)
{
#if defined(__x86_64__)
	return __builtin_ia32_rdtsc();
#else
	return clock_now();
#endif
}

/* Zeroed: nothing is known. One thread uses it at a time. */
struct mapped {
	uintptr_t begin, end;
	uint64_t until;
};

/*
 * Whether [begin, end) is mapped. If that is not known, asks about [begin, ahead), what comes next included: false then also
 * if only the part behind `end` is not.
 */
static inline bool mapped_covers(struct mapped *self, uintptr_t begin, uintptr_t end,
				 uintptr_t ahead)
{
	uint64_t now = mapped_clock();

	if (begin >= self->begin && end <= self->end && now < self->until)
		return true;
	if (!sv_os_is_mapped(begin, ahead))
		return false;
	*self = (struct mapped){ begin, ahead, now + MAPPED_TIME };
	return true;
}

#endif
