/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Helpers for suites of the event extension over the fake device. */
#ifndef EV_RIG_H
#define EV_RIG_H

#include <sys/resource.h>
#include <dat2/dat_event_extensions.h>
#include "test/unit/cno_rig.h"

#define BAD_EVD	    E(INVALID_HANDLE, INVALID_HANDLE_EVD_REQUEST)
#define BAD_CNO	    E(INVALID_HANDLE, INVALID_HANDLE_CNO)
#define BAD_HANDLE1 E(INVALID_HANDLE, INVALID_HANDLE1)
#define ARG(n)	    E(INVALID_PARAMETER, INVALID_ARG##n)

static inline DAT_FD rig_evd_fd(DAT_EVD_HANDLE evd)
{
	DAT_FD fd = -1;

	MUST(DAT_EVD_GET_FD(evd, &fd));
	return fd;
}

static inline DAT_FD rig_cno_fd(DAT_CNO_HANDLE cno)
{
	DAT_FD fd = -1;

	MUST(DAT_CNO_GET_FD(cno, &fd));
	return fd;
}

static inline void rig_open_ep(struct rig *rig)
{
	DAT_EP_ATTR attr = rig_attr();

	rig_open(rig, &attr);
}

/* Takes `count` events and checks that no more are queued. */
static inline void rig_empty(DAT_EVD_HANDLE evd, DAT_COUNT count)
{
	DAT_EVENT events[64];
	DAT_COUNT n = 77;

	if (count) {
		IS(DAT_EVD_DEQUEUE_N(evd, 64, events, &n), DAT_SUCCESS);
		CU_ASSERT_EQUAL(n, count);
	}
	IS(DAT_EVD_DEQUEUE_N(evd, 64, events, &n), DAT_QUEUE_EMPTY);
	CU_ASSERT_EQUAL(n, 0);
}

/* A thread that calls dat_evd_wait. */
struct evd_sleeper {
	pthread_t thread;
	DAT_EVD_HANDLE evd;
	DAT_COUNT threshold;
	DAT_EVENT event;
	DAT_COUNT more;
	DAT_RETURN status;
};

static inline void *evd_sleep_run(void *arg)
{
	struct evd_sleeper *s = arg;

	s->status = dat_evd_wait(s->evd, DAT_TIMEOUT_INFINITE, s->threshold, &s->event, &s->more);
	return NULL;
}

static inline bool evd_is_waited(void *handle)
{
	struct dapl_evd *evd = handle;
	bool waiter;

	lock_acquire(&evd->lock);
	waiter = evd->state & EVD_WAITED && !(evd->notes & EVD_MAY_RETURN);
	lock_release(&evd->lock);
	return waiter;
}

static inline void evd_sleep_start(struct evd_sleeper *s, DAT_EVD_HANDLE evd)
{
	*s = (struct evd_sleeper){ .evd = evd, .threshold = 1 };
	CU_ASSERT_EQUAL_FATAL(pthread_create(&s->thread, NULL, evd_sleep_run, s), 0);
	CU_ASSERT_TRUE(unit_wait_for(evd_is_waited, evd, UNIT_PATIENCE));
}

static inline DAT_RETURN evd_sleep_end(struct evd_sleeper *s)
{
	CU_ASSERT_TRUE_FATAL(unit_join(s->thread));
	return s->status;
}

/* Opens descriptors until the process has none left; rig_fds_back closes them. */
#define RIG_FDS 4096
static inline unsigned rig_fds_out(int *fds)
{
	struct rlimit limit = { 256, 0 };
	unsigned count = 0;

	getrlimit(RLIMIT_NOFILE, &limit);
	limit.rlim_cur = 256;
	setrlimit(RLIMIT_NOFILE, &limit);
	while (count < RIG_FDS && (fds[count] = dup(0)) >= 0)
		count++;
	return count;
}

static inline void rig_fds_back(const int *fds, unsigned count)
{
	while (count)
		close(fds[--count]);
}

#endif
