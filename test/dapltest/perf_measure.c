/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* The two phases of a performance test: with many transfers at a time, then with one at a time. */

#include <sys/resource.h>

#include "performance.h"

static void series_add(struct series *s, uint64_t ns)
{
	if (s->count++ == 0 || ns < s->min)
		s->min = ns;
	if (ns > s->max)
		s->max = ns;
	s->sum += ns;
}

static uint64_t cpu_ns(void)
{
	struct rusage use;

	getrusage(RUSAGE_SELF, &use);
	return (uint64_t)(use.ru_utime.tv_sec + use.ru_stime.tv_sec) * 1000000000u +
	       (uint64_t)(use.ru_utime.tv_usec + use.ru_stime.tv_usec) * 1000u;
}

static bool transfer_post(struct perf_test *pt)
{
	const struct op *op = &pt->p->op;
	DAT_DTO_COOKIE cookie = { .as_64 = 0 };
	DAT_COUNT segments = (DAT_COUNT)op->segments;

	if (op->transfer == TRANSFER_READ)
		return dat_ok(dat_ep_post_rdma_read(pt->link.ep, segments, pt->iov, cookie,
						    &pt->peer, DAT_COMPLETION_DEFAULT_FLAG),
			      "dat_ep_post_rdma_read");
	return dat_ok(dat_ep_post_rdma_write(pt->link.ep, segments, pt->iov, cookie, &pt->peer,
					     DAT_COMPLETION_DEFAULT_FLAG),
		      "dat_ep_post_rdma_write");
}

static bool transfer_reap(struct perf_test *pt, bool poll)
{
	struct dto want = {
		.ep = pt->link.ep,
		.length = pt->peer.segment_length,
		.what = pt->p->op.transfer == TRANSFER_READ ? "RDMA read" : "RDMA write",
	};

	return dto_await(pt->link.request_evd, poll, &want);
}

static bool timed_post(struct perf_test *pt)
{
	uint64_t begin = clock_ns();
	bool ok = transfer_post(pt);

	series_add(&pt->posts, clock_ns() - begin);
	return ok;
}

static bool timed_reap(struct perf_test *pt)
{
	uint64_t begin = clock_ns();
	bool ok = transfer_reap(pt, pt->p->poll);

	series_add(&pt->reaps, clock_ns() - begin);
	return ok;
}

static bool bandwidth_phase(struct perf_test *pt)
{
	uint32_t posted, reaped = 0;

	for (posted = 0; posted < pt->pipeline; posted++)
		if (!timed_post(pt))
			return false;
	while (reaped < pt->p->iterations) {
		if (!timed_reap(pt))
			return false;
		reaped++;
		if (posted < pt->p->iterations) {
			if (!timed_post(pt))
				return false;
			posted++;
		}
	}
	return true;
}

static bool latency_phase(struct perf_test *pt)
{
	for (uint32_t i = 0; i < pt->p->iterations; i++) {
		uint64_t begin = clock_ns();

		if (!transfer_post(pt) || !transfer_reap(pt, true))
			return false;
		series_add(&pt->latency, clock_ns() - begin);
	}
	return true;
}

bool perf_measure(struct perf_test *pt)
{
	uint64_t begin = clock_ns(), cpu = cpu_ns();

	if (!bandwidth_phase(pt))
		return false;
	pt->elapsed = clock_ns() - begin;
	pt->cpu = cpu_ns() - cpu;
	return latency_phase(pt);
}
