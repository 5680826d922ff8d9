/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* A thread that makes a call over and over, until it is cancelled at some point of it. */
#ifndef VICTIM_H
#define VICTIM_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include "test/unit/process.h"
#include "test/unit/unit.h"
#include "util/clock.h"
#include "util/lock.h"

struct victim {
	void (*call)(void);
	bool asynchronous;
	pthread_t thread;
	atomic_bool running;
};

static inline void *victim_run(void *arg)
{
	struct victim *victim = arg;

	pthread_cleanup_push(unit_forget_stack, NULL);
	if (victim->asynchronous)
		CU_ASSERT_EQUAL(pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL), 0);
	atomic_store(&victim->running, true);
	for (;;) {
		victim->call();
		pthread_testcancel();
	}
	pthread_cleanup_pop(0);
	return NULL;
}

static inline bool victim_is_running(void *arg)
{
	return atomic_load(&((struct victim *)arg)->running);
}

/*
 * Starts a thread, cancels it after so many nanoseconds, and joins it. Never asynchronously under ThreadSanitizer: a thread
 * that is cancelled inside that one's functions leaves their locks held.
 */
static inline void victim_cancel(void (*call)(void), bool asynchronous, uint64_t delay)
{
	struct victim victim = { .call = call, .asynchronous = asynchronous && !PROCESS_TSAN };
	uint64_t until;

	CU_ASSERT_EQUAL_FATAL(pthread_create(&victim.thread, NULL, victim_run, &victim), 0);
	CU_ASSERT_TRUE(unit_wait_for(victim_is_running, &victim, UNIT_PATIENCE));
	until = clock_now() + delay;
	while (clock_now() < until)
		;
	CU_ASSERT_EQUAL(pthread_cancel(victim.thread), 0);
	CU_ASSERT_TRUE(unit_join(victim.thread));
}

static inline bool lock_is_free(void *lock)
{
	bool free = lock_try(lock);

	if (free)
		lock_release(lock);
	return free;
}

#endif
