/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * Deadlines, of which the earliest is found at once; of equal ones that which was set first. To set one takes constant time,
 * however many there are, and so does to clear one that never was the earliest. No lock: the caller has one.
 */
#ifndef UTIL_DEADLINES_H
#define UTIL_DEADLINES_H

#include <stdbool.h>
#include <stdint.h>

/* Zeroed: not set. A set one does not move in memory. */
struct deadline {
	uint64_t at;
	uint64_t number; /* rises from one that is set to the next */
	/* A tree, each node before its children (see deadlines.c). */
	struct deadline *children, *next;
	struct deadline **from; /* the pointer to this one; NULL: not set */
};

/* Zeroed: none is set. */
struct deadlines {
	struct deadline *first;
	uint64_t count; /* of those that were ever set */
};

/* Sets it anew if it is set. `at`: in any unit. */
void deadline_set(struct deadlines *all, struct deadline *one, uint64_t at);
/* Does nothing if it is not set. */
void deadline_clear(struct deadlines *all, struct deadline *one);

static inline bool deadline_is_set(const struct deadline *one)
{
	return one->from != NULL;
}

#endif
