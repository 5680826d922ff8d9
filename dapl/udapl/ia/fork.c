/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * fork(2): the child opens its own adapters, with their own event threads. The parent's open objects stay in the child's
 * memory, some with locks held by threads that the child does not have; the child neither uses nor frees them.
 */
#include <string.h>
#include "dapl/udapl/ep/ep.h"
#include "dapl/udapl/base/provider.h"
#include "util/log.h"

static void lock_renew(pthread_mutex_t *lock)
{
	*lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
}

/*
 * These locks are held for a moment only, and no other lock is acquired with one held, so the fork
 * waits for them.
 */
static void fork_prepare(void)
{
	names_fork_prepare();
	obj_fork_prepare();
}

static void fork_end(void)
{
	obj_fork_end();
	names_fork_end();
}

/*
 * The other locks may be held for long, even by the thread that forks. The child forgets the data
 * that they guard, or leaves it to the parent.
 */
static void fork_child(void)
{
	fork_end();
	lock_renew(&ia_all_lock);
	TAILQ_INIT(&ia_all);
	lock_renew(&ep_streams_lock);
	evd_cno_fork_child();
	evd_resize_fork_child();
	srq_limit_fork_child();
	rmr_fork_child();
	rmr_flights_fork_child();
	ext_counters_fork_child();
	ext_kernel_fork_child();
	ib_fork_child();
}

void fork_register(void)
{
	int error = pthread_atfork(fork_prepare, fork_end, fork_child);

	if (error)
		log_at(LOG_ERROR, "pthread_atfork: %s; a forked child must not open an IA",
		       strerror(error));
}
