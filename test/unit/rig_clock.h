/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* For suites over the fake device that control the clock: it stands, and moves only by pass(). */
#ifndef RIG_CLOCK_H
#define RIG_CLOCK_H

#include "test/unit/rig.h"

static _Atomic long long passed = 1000000000; /* in nanoseconds */

int __real_clock_gettime(clockid_t id, struct timespec *now);
int __wrap_clock_gettime(clockid_t id, struct timespec *now);

int __wrap_clock_gettime(clockid_t id, struct timespec *now)
{
	if (id != CLOCK_MONOTONIC)
		return __real_clock_gettime(id, now);
	now->tv_sec = passed / 1000000000;
	now->tv_nsec = passed % 1000000000;
	return 0;
}

/* Advances the clock and runs the event thread's timers. */
static inline void pass(unsigned milliseconds)
{
	passed += milliseconds * 1000000ll;
	fake_run_timers();
}

static inline void expect_only(DAT_EVD_HANDLE evd, DAT_EVENT_NUMBER number)
{
	DAT_EVENT event;

	CU_ASSERT_EQUAL(rig_take(evd).event_number, number);
	IS(dat_evd_dequeue(evd, &event), DAT_QUEUE_EMPTY);
}

static inline void expect_nothing(DAT_EVD_HANDLE evd)
{
	DAT_EVENT event;

	IS(dat_evd_dequeue(evd, &event), DAT_QUEUE_EMPTY);
}

#endif
