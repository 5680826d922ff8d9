/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Between pauses of the engine, where something waited for it: the test is the clock and the engine. */
#include "softverbs/fabric/pause.h"
#include "test/unit/unit.h"
#include "util/clock.h"

static uint64_t now;
static struct sv_timer *armed; /* for `due` */
static uint64_t due;
static void (*fire)(struct sv_timer *timer);
static bool waits; /* there is something to read */
static struct engine_fd watch;

int __wrap_clock_gettime(clockid_t id, struct timespec *time);
int __wrap_clock_gettime(clockid_t id, struct timespec *time)
{
	(void)id;
	*time = (struct timespec){ .tv_sec = (time_t)(now / NSEC_PER_SEC),
				   .tv_nsec = (long)(now % NSEC_PER_SEC) };
	return 0;
}

void __wrap_sv_engine_timer_arm(struct sv_timer *timer, uint64_t deadline,
				void (*function)(struct sv_timer *timer));
void __wrap_sv_engine_timer_arm(struct sv_timer *timer, uint64_t deadline,
				void (*function)(struct sv_timer *timer))
{
	armed = timer;
	due = deadline;
	fire = function;
}

void __wrap_sv_engine_timer_cancel(struct sv_timer *timer);
void __wrap_sv_engine_timer_cancel(struct sv_timer *timer)
{
	(void)timer;
	armed = NULL;
}

void __wrap_sv_engine_fd_modify(struct engine_fd *fd, uint32_t events);
void __wrap_sv_engine_fd_modify(struct engine_fd *fd, uint32_t events)
{
	(void)fd;
	(void)events;
}

static bool engine_reads(void)
{
	return waits;
}

static void rig_open(void)
{
	now = NSEC_PER_SEC;
	armed = NULL;
	waits = false;
	sv_fabric_pause_open(&watch, engine_reads);
}

/* Whether the engine leaves to a thread, which has just polled, what has come. */
static bool pauses(void)
{
	now += NSEC_PER_USEC;
	sv_fabric_pause_polled();
	return sv_fabric_pause_begin();
}

/* The engine's timer is due; with `polls` a thread has polled just before. */
static void time_passes(bool polls)
{
	struct sv_timer *timer = armed;

	CU_ASSERT_PTR_NOT_NULL_FATAL(timer);
	armed = NULL;
	now = due;
	if (polls)
		sv_fabric_pause_polled();
	fire(timer);
}

/* A pause that something waits for. */
static void bad_pause(void)
{
	CU_ASSERT_TRUE(pauses());
	waits = true;
	time_passes(false);
	waits = false;
	CU_ASSERT_PTR_NULL(armed);
}

/* How long there is no pause from now on, in milliseconds. */
static unsigned gap(void)
{
	unsigned ms = 0;

	while (!pauses() && ms < 10000) {
		now += NSEC_PER_MSEC;
		ms++;
	}
	time_passes(false);
	return ms;
}

static void nothing_waits(void)
{
	rig_open();
	CU_ASSERT_TRUE(pauses());
	time_passes(true);
	time_passes(true);
	time_passes(false);
	CU_ASSERT_EQUAL(gap(), 0);
	sv_fabric_pause_close();
}

static void something_waits(void)
{
	unsigned first, second, last = 0;

	rig_open();
	bad_pause();
	first = gap();
	CU_ASSERT_TRUE(first >= 5 && first <= 20);
	bad_pause();
	second = gap();
	CU_ASSERT_TRUE(second > first);
	for (unsigned i = 0; i < 20; i++) {
		bad_pause();
		last = gap();
	}
	CU_ASSERT_TRUE(last >= 500 && last <= 2000);

	CU_ASSERT_TRUE(pauses());
	time_passes(true); /* what a pause is for */
	time_passes(false);
	bad_pause();
	CU_ASSERT_EQUAL(gap(), first);
	sv_fabric_pause_close();
}

/* A thread that arms a CQ after its polls ends the pause: what has come then has not waited for the engine. */
static void armed_cq(void)
{
	rig_open();
	CU_ASSERT_TRUE(pauses());
	sv_fabric_pause_end();
	waits = true;
	time_passes(false);
	waits = false;
	now += 2 * NSEC_PER_MSEC;
	CU_ASSERT_EQUAL(gap(), 0);
	sv_fabric_pause_close();
}

static const struct unit_test tests[] = {
	{ "a pause that nothing waited for is followed by the next", nothing_waits },
	{ "after one that something waited for there is none for a while", something_waits },
	{ "a CQ that is armed is no reason", armed_cq },
};

UNIT_MAIN("softverbs_pause_gap", tests)
