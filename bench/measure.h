/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* What all measuring programs share: two pinned processes, a page between them, figures of short batches. */
#ifndef BENCH_MEASURE_H
#define BENCH_MEASURE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define LINE 64
#define BATCH_NS \
	200000u /* what a batch should take: shorter than the gaps that a busy host makes */

struct options {
	const char *test;
	size_t size; /* bytes of a message */
	unsigned batches;
	int cpu[2];
	size_t ring;	      /* -r: bytes of a ring */
	unsigned count;	      /* -n: connections, or whatever the test counts */
	unsigned outstanding; /* -o */
	bool marks;	      /* -m: see mark() */
	bool quick;	      /* -q: small batches, for who wants to see that it works */
};

extern struct options options;
/* 0: the process that was started, measures and prints; 1: its child */
extern int side;
extern pid_t other;  /* the other's process id */
extern void *shared; /* seen by both, zero at first, line-aligned */

/*
 * Reads the command line, makes `shared` of that many bytes, forks, pins each side to its processor. Either side's
 * failure or death ends both, as do two minutes.
 */
void measure_begin(int argc, char **argv, size_t shared_size);
/* Both sides come here. */
void meet(void);
/* Keeps the figure of a batch. */
void figure(double value);
/* Side 0 prints a line for each figure, without those of the warm-up, and waits for side 1. Does not return. */
_Noreturn void measure_end(void);
_Noreturn void fail(const char *what);

/* With -m: a call that does nothing and that a trace of system calls shows. */
void mark(const char *where);

uint64_t now_ns(void);
/* Touched memory of ordinary pages. */
void *buffer(size_t size);

static inline void must(bool holds, const char *what)
{
	if (__builtin_expect(!holds, 0))
		fail(what);
}

/* That many, or few with -q. */
unsigned batch_of(unsigned count);
/* How many round trips, or messages, make a batch. */
unsigned batch_round_trips(void);
unsigned batch_messages(void);

static inline double half_round_trip(uint64_t begin, unsigned round_trips)
{
	return (double)(now_ns() - begin) / round_trips / 2;
}

#endif
