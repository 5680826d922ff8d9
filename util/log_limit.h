/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Limits the log lines that others can cause: a few in each period, then the number of those that were left out. */
#ifndef UTIL_LOG_LIMIT_H
#define UTIL_LOG_LIMIT_H

#include <stdbool.h>
#include <stdint.h>
#include "util/clock.h"

#define LOG_LIMIT_LINES	 8u
#define LOG_LIMIT_PERIOD (10 * NSEC_PER_SEC)

/* Zero at first. The caller serialises its use. */
struct log_limit {
	uint64_t since;
	unsigned lines;
};

/* Counts a line. True if it may be written; *omitted lines were left out in the period before. */
static inline bool log_limit_admits(struct log_limit *limit, unsigned *omitted)
{
	uint64_t now = clock_now();

	*omitted = 0;
	if (now - limit->since >= LOG_LIMIT_PERIOD) {
		*omitted = limit->lines > LOG_LIMIT_LINES ? limit->lines - LOG_LIMIT_LINES : 0;
		*limit = (struct log_limit){ .since = now };
	}
	return ++limit->lines <= LOG_LIMIT_LINES;
}

#endif
