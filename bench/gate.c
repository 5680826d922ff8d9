/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * Is the machine quiet now? Prints the share of time, in per cent, that either processor was taken away during 12 ms,
 * and the half round trip of a cache line in ns: two processors that share a core answer too fast.
 */
#include <stdio.h>
#include "bench/measure.h"

#define WATCH_NS 12000000u
#define GAP_NS	 2000u			/* between two looks at the clock: somebody else ran */
#define TRIPS	 500u

struct watch {
	_Alignas(LINE) _Atomic(uint64_t) lost;
	_Alignas(LINE) _Atomic(uint32_t) word;
};

static void watch(struct watch *own)
{
	uint64_t begin = now_ns(), last = begin, lost = 0, t;

	while (last - begin < WATCH_NS) {
		t = now_ns();
		if (t - last > GAP_NS)
			lost += t - last;
		last = t;
	}
	atomic_store(&own->lost, lost);
}

static double trips(struct watch *own, struct watch *theirs)
{
	double best = 1e9, half;
	uint32_t value = 0;

	for (unsigned batch = 0; batch < 8; batch++) {
		uint64_t begin = now_ns();

		for (unsigned i = 0; i < TRIPS; i++) {
			value++;
			if (!side)
				atomic_store_explicit(&own->word, value, memory_order_release);
			while (atomic_load_explicit(&theirs->word, memory_order_acquire) != value)
				;
			if (side)
				atomic_store_explicit(&own->word, value, memory_order_release);
		}
		half = half_round_trip(begin, TRIPS);
		best = half < best ? half : best;
	}
	return best;
}

int main(int argc, char **argv)
{
	struct watch *w;
	double half;

	measure_begin(argc, argv, 2 * sizeof(struct watch));
	w = shared;
	meet();
	watch(&w[side]);
	meet();
	half = trips(&w[side], &w[!side]);
	if (!side) {
		uint64_t lost = atomic_load(&w[0].lost), lost1 = atomic_load(&w[1].lost);

		printf("%.2f %.1f\n", 1e2 * (double)(lost > lost1 ? lost : lost1) / WATCH_NS, half);
	}
	measure_end();
}
