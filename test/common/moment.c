/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Points in time, and the time until them. */

#include <poll.h>
#include <time.h>

#include "common.h"

uint64_t clock_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

uint64_t clock_after(double seconds)
{
	return clock_ns() + (uint64_t)(seconds * 1e9);
}

bool clock_passed(uint64_t deadline)
{
	return clock_ns() >= deadline;
}

/* Milliseconds are rounded up, so that the last one is not spent polling. */
void clock_pause_ms(int ms)
{
	uint64_t end = clock_after(ms / 1000.0), now;

	while ((now = clock_ns()) < end)
		poll(NULL, 0, (int)((end - now + 999999) / 1000000));
}

/* DAT counts in microseconds of 32 bits; all bits set means forever. */
DAT_TIMEOUT timeout_left(uint64_t deadline)
{
	uint64_t now = clock_ns(), us = now < deadline ? (deadline - now + 999) / 1000 : 0;

	return us < DAT_TIMEOUT_INFINITE ? (DAT_TIMEOUT)us : DAT_TIMEOUT_INFINITE - 1;
}
