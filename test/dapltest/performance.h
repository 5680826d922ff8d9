/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* A performance test: the client reads or writes the server's memory, and measures the time. */

#ifndef PERFORMANCE_H
#define PERFORMANCE_H

#include "control.h"

/* A series of times in ns. */
struct series {
	uint64_t count, sum, min, max;
};

struct perf_test {
	const struct place *place;
	const struct performance *p;
	uint32_t pipeline; /* transfers under way at a time */
	DAT_PZ_HANDLE pz;
	struct link link;
	struct region small, data;
	DAT_LMR_TRIPLET *iov;
	DAT_RMR_TRIPLET peer;

	uint64_t elapsed, cpu; /* of the first phase, ns */
	struct series posts, reaps, latency;
};

/* perf_measure.c */
bool perf_measure(struct perf_test *pt);

/* perf_report.c */
void perf_report(const struct perf_test *pt);

#endif
