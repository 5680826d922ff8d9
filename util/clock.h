/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Time as nanoseconds of CLOCK_MONOTONIC; waits compute a deadline once and loop to it. */
#ifndef UTIL_CLOCK_H
#define UTIL_CLOCK_H

#include <stdint.h>
#include <time.h>

#define NSEC_PER_USEC 1000ull
#define NSEC_PER_MSEC 1000000ull
#define NSEC_PER_SEC  1000000000ull
#define CLOCK_NEVER   UINT64_MAX

static inline uint64_t clock_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * NSEC_PER_SEC + (uint64_t)ts.tv_nsec;
}

/*
 * Returns the time until the deadline, for ppoll; zero if it has passed. The deadline must not be
 * CLOCK_NEVER.
 */
static inline struct timespec clock_left(uint64_t deadline)
{
	uint64_t now = clock_now(), left = deadline > now ? deadline - now : 0;

	return (struct timespec){ .tv_sec = (time_t)(left / NSEC_PER_SEC),
				  .tv_nsec = (long)(left % NSEC_PER_SEC) };
}

#endif
