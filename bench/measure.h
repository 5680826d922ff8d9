/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* What the measuring programs share: two pinned processes, memory between them, figures of short batches. */
#ifndef BENCH_MEASURE_H
#define BENCH_MEASURE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define LINE 64

struct options {
	const char *test;
	size_t size; /* bytes of a message */
	unsigned batches;
	int cpu[2];	     /* -c: of each side; -1: both use the first one */
	const char *net;     /* -N: the network namespace of side 1, a path */
	const char *address; /* -a: where side 1 listens; NULL: on this host's loopback or device */
	const char *way;     /* -w: of limit */
	unsigned count;	     /* -n: connections */
	unsigned burst;	     /* -o: connections under way at a time */
	bool marks;	     /* -m: see mark() */
	bool quick;	     /* -q: small batches, which show that the program works */
};

extern struct options options;
/* 0: the process that was started, which measures and prints; 1: its child. */
extern int side;
extern pid_t other;  /* process id of the other side */
extern void *shared; /* seen by both sides, zero at first, line-aligned */

/*
 * Reads the command line, makes `shared` of that many bytes, forks, pins each side to its processor. The failure or death
 * of either side ends both, as does a limit of a minute.
 */
void measure_begin(int argc, char **argv, size_t shared_size);
/* Returns when both sides have called it. */
void meet(void);
/* Keeps the figure of a batch. */
void figure(double value);
/* Side 0 prints a line for each figure but those of the warm-up, and waits for side 1. Does not return. */
_Noreturn void measure_end(void);
_Noreturn void fail(const char *what);

/* With -m: a call without effect which a trace of system calls shows. */
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
/* How many round trips, or messages, of options.size make a batch of some 0.2 ms. */
unsigned batch_round_trips(void);
unsigned batch_messages(void);

#endif
