/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * Common parts of the measuring programs: two pinned processes, memory between them, figures of
 * short batches.
 */
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
	unsigned burst;	     /* -o: connections in progress at a time */
	bool marks;	     /* -m: see mark() */
	bool quick;	     /* -q: small batches, which only show that the program works */
};

extern struct options options;

/* Completions of traffic.h. */
struct found {
	unsigned sends, recvs;
};

/* 0 in the process that was started, which measures and prints; 1 in its child. */
extern int side;
extern pid_t other;  /* process id of the other side */
extern void *shared; /* memory of both sides, zero at first, line-aligned */

/*
 * Reads the command line, makes `shared` of that many bytes, forks, and pins each side to its
 * processor. If either side fails or dies, or after a minute, both end.
 */
void measure_begin(int argc, char **argv, size_t shared_size);
/* Returns when both sides have called it. */
void meet(void);
/* Whether the other side waits in meet() already. */
bool is_awaited(void);
/* Keeps the figure of a batch. */
void figure(double value);
/*
 * Side 0 prints a line for each figure but those of the warm-up, and waits for side 1. Does not
 * return.
 */
_Noreturn void measure_end(void);
_Noreturn void fail(const char *what);

/* With -m: makes a system call without effect that a trace shows. */
void mark(const char *where);

uint64_t now_ns(void);
/* Returns memory of ordinary pages that has been touched: options.size bytes in buffer_bytes(), which are whole pages. */
void *buffer(void);
size_t buffer_bytes(void);

static inline void must(bool holds, const char *what)
{
	if (__builtin_expect(!holds, 0))
		fail(what);
}

/* Returns the count, or few with -q. */
unsigned batch_of(unsigned count);
/* Returns how many round trips or messages of options.size make a batch of some 0.2 ms. */
unsigned batch_round_trips(void);
unsigned batch_messages(void);

#endif
