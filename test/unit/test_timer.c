/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * Timers of a device's event thread: each is called once, in the order of the deadlines, unless it
 * is cancelled.
 */
#include "dapl/openib/ib.h"
#include "test/unit/ep_util.h"
#include "util/clock.h"

#define SOON (20 * NSEC_PER_MSEC)

static struct ib_device *device;
static struct ib_timer timers[8], starter;
static int called[COUNT(timers) + 1];
static atomic_int calls;

static void note(struct ib_timer *timer)
{
	int n = atomic_load(&calls);

	if (n < (int)COUNT(called))
		called[n] = (int)(timer - timers);
	atomic_store(&calls, n + 1);
}

/* Runs in the event thread, so that no timer is called before all are armed. */
static void arm_all(struct ib_timer *unused)
{
	static const struct {
		int timer;
		unsigned halves;
	} plan[] = {
		{ 0, 6 }, { 1, 2 }, { 2, 0 }, { 3, 4 }, { 4, 2 },
		{ 5, 0 }, { 6, 3 }, { 7, 8 }, { 6, 5 },
	};
	uint64_t base = clock_now() + SOON;
	unsigned i;

	(void)unused;
	for (i = 0; i < COUNT(plan); i++)
		ib_timer_arm(device, &timers[plan[i].timer],
			     plan[i].halves ? base + plan[i].halves * SOON / 2 : 0, note);
	ib_timer_disarm(device, &timers[3]);
	ib_timer_disarm(device, &timers[3]);
	ib_timer_cancel(device, &timers[7]);
}

static bool all_called(void *arg)
{
	return atomic_load(&calls) >= *(int *)arg;
}

static void test_order(void)
{
	static const int order[] = { 2, 5, 1, 4, 6, 0 };
	static const struct ib_upcalls upcalls = { 0 };
	int expected = COUNT(order), i;

	MUST(ib_device_open("soft0 1", &upcalls, &device));
	ib_timer_arm(device, &starter, 0, arm_all);
	CU_ASSERT_TRUE(unit_wait_for(all_called, &expected, UNIT_PATIENCE));
	for (i = 0; i < expected; i++)
		CU_ASSERT_EQUAL(called[i], order[i]);
	/* no timer is left armed */
	for (i = 0; i < (int)COUNT(timers); i++)
		CU_ASSERT_FALSE(deadline_is_set(&timers[i].due));
	ib_device_close(device);
	CU_ASSERT_EQUAL(atomic_load(&calls), expected);
}

/* Ten thousand armed timers do not delay others before or behind them. */
static void test_many(void)
{
	static const struct ib_upcalls upcalls = { 0 };
	static struct ib_timer waiting[10000];
	uint64_t far = clock_now() + 3600 * NSEC_PER_SEC;
	int one = 1;
	unsigned i;

	atomic_store(&calls, 0);
	MUST(ib_device_open("soft0 1", &upcalls, &device));
	for (i = 0; i < COUNT(waiting); i++)
		ib_timer_arm(device, &waiting[i], far + i, note);
	ib_timer_arm(device, &timers[0], 0, note);
	CU_ASSERT_TRUE(unit_wait_for(all_called, &one, UNIT_PATIENCE));
	CU_ASSERT_EQUAL(called[0], 0);
	for (i = 0; i < COUNT(waiting); i++)
		ib_timer_cancel(device, &waiting[i]);
	ib_device_close(device);
	CU_ASSERT_EQUAL(atomic_load(&calls), 1);
}

static const struct unit_test tests[] = {
	{ "timers are called in the order of their deadlines", test_order },
	{ "many armed timers delay no other", test_many },
};

UNIT_MAIN("timer", tests)
