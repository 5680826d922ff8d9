/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * A pairing heap (Fredman, Sedgewick, Sleator, Tarjan 1986). Most deadlines are set later than those before them and are
 * cleared before they are due: such a one becomes a child of the first and leaves again, without children of its own.
 */
#include <stddef.h>
#include "util/deadlines.h"

static bool is_before(const struct deadline *a, const struct deadline *b)
{
	return a->at != b->at ? a->at < b->at : a->number < b->number;
}

/* The later of two trees becomes a child of the other. */
static struct deadline *two_join(struct deadline *a, struct deadline *b)
{
	struct deadline *first = is_before(a, b) ? a : b, *later = first == a ? b : a;

	later->next = first->children;
	if (later->next)
		later->next->from = &later->next;
	first->children = later;
	later->from = &first->children;
	return first;
}

/* Joins siblings by pairs, and then these, so that the next such call has few to join. */
static struct deadline *all_join(struct deadline *siblings)
{
	struct deadline *pairs = NULL, *joined = NULL, *one, *other;

	while ((one = siblings)) {
		other = one->next;
		siblings = other ? other->next : NULL;
		if (other)
			one = two_join(one, other);
		one->next = pairs;
		pairs = one;
	}
	while ((one = pairs)) {
		pairs = one->next;
		joined = joined ? two_join(joined, one) : one;
	}
	return joined;
}

static void first_set(struct deadlines *all, struct deadline *first)
{
	all->first = first;
	if (first) {
		first->next = NULL;
		first->from = &all->first;
	}
}

void deadline_set(struct deadlines *all, struct deadline *one, uint64_t at)
{
	deadline_clear(all, one);
	one->at = at;
	one->number = all->count++;
	first_set(all, all->first ? two_join(all->first, one) : one);
}

void deadline_clear(struct deadlines *all, struct deadline *one)
{
	struct deadline *children;

	if (!one->from)
		return;
	*one->from = one->next;
	if (one->next)
		one->next->from = one->from;
	children = all_join(one->children);
	one->children = one->next = NULL;
	one->from = NULL;
	if (children)
		first_set(all, all->first ? two_join(all->first, children) : children);
}
