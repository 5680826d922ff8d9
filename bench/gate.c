/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * What is the machine like now? Prints the share of time, in per cent, that either processor was taken away during 12 ms;
 * how many times as long work takes while both processors do it: 1 on two cores, much more on two threads of one;
 * the microseconds it takes then on the slower one, more than at other times where somebody else's thread shares a core;
 * and the nanoseconds in which a cache line gets from one to the other: the host may move a processor away from its cache.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include "bench/measure.h"

#define WATCH_NS 12000000u
#define GAP_NS	 2000u /* between two looks at the clock: somebody else ran */
#define PIECES	 15u
#define STEPS	 20000u /* of a piece, some 50 us */
#define LINES	 100u	/* to and fro, of a piece */

struct watch {
	_Alignas(LINE) _Atomic(uint64_t) lost;
	double both; /* ns of a piece */
	_Alignas(LINE) _Atomic(uint32_t) line;
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

/* Independent steps, so that one thread alone keeps all adders of a core busy. */
static uint64_t piece(void)
{
	uint64_t begin = now_ns(), a = begin, b = 2, c = 3, d = 4, e = 5, f = 6;
	volatile uint64_t sink;

	for (unsigned i = 0; i < STEPS; i++) {
		a += b ^ i, c += d ^ i, e += f ^ i;
		b += i, d += i, f += i;
		__asm__ volatile("" : "+r"(a), "+r"(b), "+r"(c), "+r"(d), "+r"(e), "+r"(f));
	}
	sink = a + c + e;
	(void)sink;
	return now_ns() - begin;
}

static int by_value(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static double pieces(uint64_t (*one)(void))
{
	uint64_t took[PIECES];

	for (unsigned i = 0; i < PIECES; i++)
		took[i] = one();
	qsort(took, PIECES, sizeof(*took), by_value);
	return (double)took[PIECES / 2];
}

/* A line to and fro: each side writes its own and looks at the other's. */
static uint64_t lines(void)
{
	struct watch *w = shared;
	uint32_t at = atomic_load(&w[side].line);
	uint64_t begin = now_ns();

	for (unsigned i = 1; i <= LINES; i++) {
		if (!side)
			atomic_store_explicit(&w->line, at + i, memory_order_release);
		while (atomic_load_explicit(&w[!side].line, memory_order_acquire) != at + i)
			;
		if (side)
			atomic_store_explicit(&w[1].line, at + i, memory_order_release);
	}
	return now_ns() - begin;
}

int main(int argc, char **argv)
{
	struct timespec aside = { .tv_nsec = 4000000 };
	struct watch *w, *slower;
	double alone = 1, line;

	measure_begin(argc, argv, 2 * sizeof(struct watch));
	w = shared;
	meet();
	watch(&w[side]);
	if (side)
		nanosleep(&aside, NULL);
	else
		alone = pieces(piece);
	meet();
	w[side].both = pieces(piece);
	meet();
	line = pieces(lines) / LINES / 2;
	if (!side) {
		uint64_t lost = atomic_load(&w[0].lost), lost1 = atomic_load(&w[1].lost);

		slower = &w[w[0].both < w[1].both];
		printf("%.2f %.2f %.2f %.1f\n",
		       1e2 * (double)(lost > lost1 ? lost : lost1) / WATCH_NS, w->both / alone,
		       slower->both / 1e3, line);
	}
	measure_end();
}
