/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* A second thread that waits for events of an EVD of the fake device. */
#ifndef EVD_WAITER_H
#define EVD_WAITER_H

#include "test/unit/rig.h"

struct waiter {
	pthread_t thread;
	DAT_EVD_HANDLE evd;
	DAT_TIMEOUT timeout;
	DAT_COUNT threshold, more;
	DAT_EVENT event;
	DAT_RETURN status;
	uint64_t took;
	atomic_bool over;
};

static inline void *wait_run(void *arg)
{
	struct waiter *w = arg;
	uint64_t begin = clock_now();

	w->status = dat_evd_wait(w->evd, w->timeout, w->threshold, &w->event, &w->more);
	w->took = clock_now() - begin;
	atomic_store(&w->over, true);
	return NULL;
}

static inline bool is_asleep(void *evd_handle)
{
	struct dapl_evd *evd = evd_handle;
	bool asleep;

	lock_acquire(&evd->lock);
	asleep = evd->state & EVD_WAITED && !(evd->notes & EVD_MAY_RETURN);
	lock_release(&evd->lock);
	return asleep;
}

static inline bool is_asleep_or_over(void *arg)
{
	struct waiter *w = arg;

	return atomic_load(&w->over) || is_asleep(w->evd);
}

static inline void wait_start(struct waiter *w, DAT_EVD_HANDLE evd, DAT_TIMEOUT timeout,
			      DAT_COUNT threshold)
{
	*w = (struct waiter){ .evd = evd, .timeout = timeout, .threshold = threshold };
	CU_ASSERT_EQUAL_FATAL(pthread_create(&w->thread, NULL, wait_run, w), 0);
	CU_ASSERT_TRUE(unit_wait_for(is_asleep_or_over, w, UNIT_PATIENCE));
}

static inline DAT_RETURN wait_end(struct waiter *w)
{
	CU_ASSERT_TRUE_FATAL(unit_join(w->thread));
	return w->status;
}

/*
 * A thread cancelled inside ppoll does not return through ThreadSanitizer's wrapper, which then
 * misses the atomics of the cleanup handlers.
 */
const char *__tsan_default_suppressions(void);
__attribute__((visibility("default"))) const char *__tsan_default_suppressions(void)
{
	return "race:leave_cancelled\n";
}

static inline void *wait_cancelled(void *arg)
{
	struct waiter *w = arg;

	pthread_cleanup_push(unit_forget_stack, NULL);
	CU_ASSERT_EQUAL(pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL), 0);
	wait_run(w);
	pthread_cleanup_pop(0);
	return NULL;
}

#endif
