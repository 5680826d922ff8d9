/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Marks from the counted program to the counting one: a breakpoint instruction with two words in registers. */
#ifndef EXACT_MARK_H
#define EXACT_MARK_H

#include <stdint.h>

enum exact_call {
	EXACT_POST_RECV,
	EXACT_POST_SEND,
	EXACT_POST_WRITE,
	EXACT_POST_READ,
	EXACT_DEQUEUE_SENT,
	EXACT_DEQUEUE_RECEIVED,
	EXACT_DEQUEUE_EMPTY,
	EXACT_WAIT_SENT,
	EXACT_WAIT_RECEIVED,
	/* the numbers of the calls that every provider has; those of the event extension follow */
	EXACT_PLAIN,
	EXACT_QUEUED_SENT = EXACT_PLAIN,
	EXACT_QUEUED_RECEIVED, /* one dequeue of a batch of EXACT_BATCH */
	EXACT_BATCH_SENT,
	EXACT_BATCH_RECEIVED, /* all of them in one call */
	EXACT_ARM,
	EXACT_ARM_AGAIN,
	EXACT_CALLS
};

#define EXACT_BATCH 32

/*
 * The next call of the function at `what` is counted as `which`; the second mark says whether it
 * succeeded (1) or not (0).
 */
#define EXACT_RESULT 0x1000u
#define EXACT_DONE   0x1001u /* no call follows */

static inline void exact_mark(uint64_t which, uint64_t what)
{
	__asm__ volatile("int3" : : "a"(which), "b"(what) : "memory");
}

#endif
