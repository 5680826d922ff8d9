/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* An engine that is late: a test keeps it busy while messages arrive and timers become due. */
#ifndef BUSY_ENGINE_H
#define BUSY_ENGINE_H

#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include "softverbs/link/engine.h"
#include "test/unit/unit.h"
#include "util/clock.h"

static struct {
	struct engine_fd first;	 /* readable once the engine is to be busy */
	struct engine_job begin; /* in the engine */
	struct engine_job pass;
	struct sv_timer due, end;
	uint64_t least; /* how long it is busy at least, in nanoseconds */
	atomic_bool busy, let_go, passed;
} busy_engine = { .first.fd = -1 };

static inline bool busy_flag_is(void *flag)
{
	return atomic_load((atomic_bool *)flag);
}

static inline void busy_run(void)
{
	uint64_t end = clock_now() + busy_engine.least;

	atomic_store(&busy_engine.busy, true);
	while (clock_now() < end || !atomic_load(&busy_engine.let_go))
		poll(NULL, 0, 1);
}

static inline void busy_in_job(struct engine_job *job)
{
	(void)job;
	busy_run();
}

static inline void busy_in_ready(struct engine_fd *handler, uint32_t events)
{
	uint64_t count;

	(void)events;
	CU_ASSERT_EQUAL(read(handler->fd, &count, sizeof(count)), (ssize_t)sizeof(count));
	busy_run();
}

static inline void busy_timer(struct sv_timer *timer)
{
	(void)timer;
}

/* A timer is due when the engine becomes busy, so it looks at its timers before it reads what has come since. */
static inline void busy_before_timers(struct engine_job *job)
{
	uint64_t one = 1;

	(void)job;
	CU_ASSERT_EQUAL(write(busy_engine.first.fd, &one, sizeof(one)), (ssize_t)sizeof(one));
	sv_engine_timer_arm(&busy_engine.due, clock_now(), busy_timer);
}

/*
 * Returns when the engine is busy, which it is for `least` nanoseconds and until `busy_let_go`. Afterwards it reads before
 * it looks at its timers, or, with `timers_first`, the other way round.
 */
static inline void busy_begin(uint64_t least, bool timers_first)
{
	busy_engine.least = least;
	atomic_store(&busy_engine.busy, false);
	atomic_store(&busy_engine.let_go, false);
	if (timers_first)
		CU_ASSERT_EQUAL_FATAL(sv_engine_fd_add(&busy_engine.first, eventfd(0, EFD_CLOEXEC),
						       EPOLLIN, busy_in_ready),
				      0);
	sv_engine_defer(&busy_engine.begin, timers_first ? busy_before_timers : busy_in_job);
	CU_ASSERT_TRUE_FATAL(unit_wait_for(busy_flag_is, &busy_engine.busy, UNIT_PATIENCE));
}

static inline void busy_let_go(void)
{
	atomic_store(&busy_engine.let_go, true);
}

static inline void busy_pass(struct engine_job *job)
{
	(void)job;
	atomic_store(&busy_engine.passed, true);
}

/* Jobs run after all that is read and fired at once. */
static inline void busy_pass_soon(struct sv_timer *timer)
{
	(void)timer;
	sv_engine_defer(&busy_engine.pass, busy_pass);
}

/* Returns when the engine has read what had come, and fired the timers that were due, in whatever order. */
static inline void busy_end(void)
{
	for (unsigned i = 0; i < 2; i++) {
		atomic_store(&busy_engine.passed, false);
		sv_engine_timer_arm(&busy_engine.end, clock_now(), busy_pass_soon);
		CU_ASSERT_TRUE(unit_wait_for(busy_flag_is, &busy_engine.passed, UNIT_PATIENCE));
	}
	sv_engine_fd_remove(&busy_engine.first);
}

#endif
