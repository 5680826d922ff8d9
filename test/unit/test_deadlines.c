/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Deadlines against a list that is searched each time. */
#include <string.h>
#include "test/unit/unit.h"
#include "util/deadlines.h"

#define COUNT  300u
#define STEPS  200000u
#define MOMENT 64u /* fewer points in time than deadlines, so that many are equal */

static struct deadlines all;
static struct deadline some[COUNT];
static uint64_t turn[COUNT]; /* when it was set; 0: it is not */
static uint64_t turns;

static void setup(void)
{
	memset(&all, 0, sizeof(all));
	memset(some, 0, sizeof(some));
	memset(turn, 0, sizeof(turn));
	turns = 0;
}

static void set(unsigned i, uint64_t at)
{
	deadline_set(&all, &some[i], at);
	turn[i] = ++turns;
}

static void clear(unsigned i)
{
	deadline_clear(&all, &some[i]);
	turn[i] = 0;
}

static struct deadline *first_by_search(void)
{
	struct deadline *first = NULL;

	for (unsigned i = 0; i < COUNT; i++)
		if (turn[i] && (!first || some[i].at < first->at ||
				(some[i].at == first->at && turn[i] < turn[first - some])))
			first = &some[i];
	return first;
}

static bool agree(void)
{
	for (unsigned i = 0; i < COUNT; i++)
		if (deadline_is_set(&some[i]) != (turn[i] > 0))
			return false;
	return all.first == first_by_search();
}

static unsigned random_below(unsigned limit)
{
	static uint64_t state = 88172645463325252u;

	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (unsigned)(state >> 32) % limit;
}

static void test_order(void)
{
	unsigned bad = 0;

	setup();
	for (unsigned step = 0; step < STEPS && !bad; step++) {
		unsigned i = random_below(COUNT);

		/* first most are set, then most are cleared, and again */
		if (random_below(100) < (step / 5000 % 2 ? 30 : 70))
			set(i, random_below(MOMENT));
		else if (random_below(2) && all.first)
			clear((unsigned)(all.first - some));
		else
			clear(i);
		bad += !agree();
	}
	CU_ASSERT_EQUAL(bad, 0);
	while (all.first && agree())
		clear((unsigned)(all.first - some));
	CU_ASSERT(agree());
	CU_ASSERT_PTR_NULL(all.first);
}

static void test_equal(void)
{
	setup();
	for (unsigned i = 0; i < COUNT; i++)
		set(i, 7);
	for (unsigned i = 0; i < COUNT; i++) {
		CU_ASSERT_PTR_EQUAL(all.first, &some[i]);
		set(i, 7); /* behind the others */
		CU_ASSERT_PTR_EQUAL(all.first, &some[(i + 1) % COUNT]);
	}
}

/* Returns how many trees a call would have to join. */
static unsigned joins_to_clear(const struct deadline *one)
{
	unsigned count = 0;

	for (const struct deadline *child = one->children; child; child = child->next)
		count++;
	return count;
}

/* As connections do: each is set late, set again, and cleared, beside many others. */
static void test_short_lived(void)
{
	unsigned most = 0;

	setup();
	set(0, 1);
	for (unsigned i = 1; i < COUNT; i++)
		set(i, 1000 + i);
	for (unsigned i = 1; i < COUNT; i++) {
		unsigned joins = joins_to_clear(&some[i]);

		most = joins > most ? joins : most;
		set(i, 500);
		set(i, 2000 + i);
	}
	CU_ASSERT_EQUAL(most, 0);
	CU_ASSERT(agree());
}

static const struct unit_test tests[] = {
	{ "the first is the earliest, whatever is set and cleared", test_order },
	{ "equal ones come in the order in which they were set", test_equal },
	{ "one that never was the first leaves without work for the others", test_short_lived },
};

UNIT_MAIN("deadlines", tests)
