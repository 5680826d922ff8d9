/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* A thread that reads links again and again: the engine leaves them to it in between. */
#include "test/unit/link_rig.h"

/* Waits for a moment, as a thread does that will soon wait again. */
static void wait_once(void)
{
	CU_ASSERT_TRUE(sv_link_reader_begin() >= 0);
	sv_link_reader_end(true);
}

static void test_stays(void)
{
	rig_open();
	no_check = true;
	wait_once();
	ask(SEND_CM);
	engine_catches_up();
	CU_ASSERT_EQUAL(atomic_load(&cm_by_engine), 0);
	begin();
	CU_ASSERT_TRUE(sv_link_reader_read());
	CU_ASSERT_EQUAL(atomic_load(&cm_by_reader), 1);
	end();
	ask(SEND_CM);
	CU_ASSERT_TRUE(unit_wait_for(is_one, &cm_by_engine, UNIT_PATIENCE));
	rig_close(true);
}

/* Returns how long it took until the engine had read. */
static uint64_t stay_away(void *unused)
{
	uint64_t begun, took;

	(void)unused;
	rig_open();
	begun = clock_now();
	wait_once();
	ask(SEND_CM);
	CU_ASSERT_TRUE(unit_wait_for(is_one, &cm_by_engine, UNIT_PATIENCE));
	took = clock_now() - begun;
	rig_close(true);
	return took;
}

/* The engine has the links again, though no thread told it, and before it would have looked for a reader that waits. */
static void test_stays_away(void)
{
	CU_ASSERT_TRUE(unit_is_soon(stay_away, NULL, 8 * NSEC_PER_MSEC));
}

/* Returns false if the machine was too busy for the wait to come soon after the doorbell. */
static bool is_soon_after_ring(void *unused)
{
	uint64_t rung;
	bool soon;

	(void)unused;
	rig_open();
	begin();
	ask(SEND_RING);
	rung = clock_now();
	CU_ASSERT_FALSE(sv_link_reader_read());
	end();
	no_check = true;
	wait_once();
	soon = clock_now() - rung < 100 * NSEC_PER_MSEC;
	if (soon) {
		ask(SEND_CM);
		CU_ASSERT_TRUE(unit_wait_for(is_one, &cm_by_engine, UNIT_PATIENCE));
	}
	rig_close(true);
	return soon;
}

static void test_stays_not_after_ring(void)
{
	CU_ASSERT_TRUE(unit_wait_for(is_soon_after_ring, NULL, UNIT_PATIENCE));
}

static const struct unit_test tests[] = {
	{ "the engine leaves the links to a reader that says that it returns", test_stays },
	{ "it reads when that reader does not come", test_stays_away },
	{ "it leaves them to no reader soon after a doorbell", test_stays_not_after_ring },
};

UNIT_MAIN("softverbs_reader_stays", tests)
