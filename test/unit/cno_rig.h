/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Helpers for suites of notification objects over the fake device. */
#ifndef CNO_RIG_H
#define CNO_RIG_H

#include <poll.h>
#include "dapl/udapl/cno/cno.h"
#include "test/unit/rig.h"

static inline DAT_CNO_HANDLE rig_cno(const struct rig *rig)
{
	DAT_CNO_HANDLE cno = DAT_HANDLE_NULL;

	MUST(dat_cno_create(rig->ia, DAT_OS_WAIT_PROXY_AGENT_NULL, &cno));
	return cno;
}

static inline DAT_EVD_HANDLE rig_evd_on(const struct rig *rig, DAT_CNO_HANDLE cno,
					DAT_EVD_FLAGS flags)
{
	DAT_EVD_HANDLE evd = DAT_HANDLE_NULL;

	MUST(dat_evd_create(rig->ia, RIG_QLEN, cno, flags, &evd));
	return evd;
}

/* Takes one trigger without waiting and checks that it names this EVD; NULL: no trigger is left. */
static inline void rig_named(DAT_CNO_HANDLE cno, DAT_EVD_HANDLE expected)
{
	DAT_EVD_HANDLE evd = (DAT_EVD_HANDLE)(uintptr_t)8;

	IS(dat_cno_wait(cno, 0, &evd), expected ? DAT_SUCCESS : DAT_QUEUE_EMPTY);
	CU_ASSERT_PTR_EQUAL(evd, expected);
}

static inline bool rig_readable(int fd)
{
	struct pollfd poller = { .fd = fd, .events = POLLIN };

	return poll(&poller, 1, 0) == 1;
}

/* A thread that calls dat_cno_wait. */
struct cno_waiter {
	pthread_t thread;
	DAT_CNO_HANDLE cno;
	DAT_TIMEOUT timeout;
	DAT_EVD_HANDLE evd;
	DAT_RETURN status;
	uint64_t took;
};

static inline void *cno_wait_run(void *arg)
{
	struct cno_waiter *w = arg;
	uint64_t begin = clock_now();

	pthread_cleanup_push(unit_forget_stack, NULL);
	w->status = dat_cno_wait(w->cno, w->timeout, &w->evd);
	w->took = clock_now() - begin;
	pthread_cleanup_pop(0);
	return NULL;
}

static inline unsigned cno_waiters(DAT_CNO_HANDLE handle)
{
	struct dapl_cno *cno = handle;
	unsigned waiters;

	pthread_mutex_lock(&cno->lock);
	waiters = cno->waiters;
	pthread_mutex_unlock(&cno->lock);
	return waiters;
}

struct cno_crowd {
	DAT_CNO_HANDLE cno;
	unsigned waiters;
};

static inline bool cno_is_crowd(void *arg)
{
	const struct cno_crowd *crowd = arg;

	return cno_waiters(crowd->cno) == crowd->waiters;
}

static inline void cno_wait_start(struct cno_waiter *w, DAT_CNO_HANDLE cno, DAT_TIMEOUT timeout)
{
	struct cno_crowd crowd = { cno, cno_waiters(cno) + 1 };

	*w = (struct cno_waiter){ .cno = cno,
				  .timeout = timeout,
				  .evd = (DAT_EVD_HANDLE)(uintptr_t)8 };
	CU_ASSERT_EQUAL_FATAL(pthread_create(&w->thread, NULL, cno_wait_run, w), 0);
	CU_ASSERT_TRUE(unit_wait_for(cno_is_crowd, &crowd, UNIT_PATIENCE));
}

static inline DAT_RETURN cno_wait_end(struct cno_waiter *w)
{
	CU_ASSERT_TRUE_FATAL(unit_join(w->thread));
	return w->status;
}

#endif
