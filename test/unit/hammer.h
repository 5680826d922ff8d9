/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * Two threads at one object: one makes and frees it again and again, the other uses whatever handle
 * there is, which may be dead or die in the middle of the call. A call then says so; it never does
 * anything else. The sanitizers watch.
 */
#ifndef HAMMER_H
#define HAMMER_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <dat2/udat.h>
#include <dat2/dat_ib_extensions.h>
#include "test/unit/ep_util.h"
#include "util/clock.h"

#define HAMMER_ROUNDS 300
#define HAMMER_TIME   (8 * NSEC_PER_SEC) /* enough, however few rounds that are */

struct hammer {
	void (*make)(struct hammer *h); /* makes it, shows it, frees it */
	void (*use)(struct hammer *h);	/* whatever can be called with it */
	struct env env;
	_Atomic(DAT_HANDLE) handle, other; /* the one that is being hammered */
	void *more;			   /* what else a suite needs */
	atomic_bool over;
	atomic_uint rounds, uses, hits; /* calls that found the object alive */
	atomic_uint strange;		/* the status of a call that had no right to it */
};

/* A call on an object that may be gone: it worked, or says why it cannot. */
static inline bool hammer_call(struct hammer *h, DAT_RETURN status)
{
	switch ((unsigned)DAT_GET_TYPE(status)) {
	case DAT_SUCCESS: atomic_fetch_add_explicit(&h->hits, 1, memory_order_relaxed); return true;
	case DAT_INVALID_HANDLE:
	case DAT_INVALID_STATE:
	case DAT_INSUFFICIENT_RESOURCES:
	case DAT_QUEUE_EMPTY:
	case DAT_QUEUE_FULL:
	case DAT_TIMEOUT_EXPIRED:
	case DAT_CONN_QUAL_IN_USE:
	case DAT_ABORT: return false;
	default: atomic_store(&h->strange, status); return false;
	}
}

static void *hammer_maker(void *arg)
{
	struct hammer *h = arg;
	uint64_t deadline = clock_now() + HAMMER_TIME;

	while (atomic_load(&h->rounds) < HAMMER_ROUNDS && clock_now() < deadline) {
		h->make(h);
		atomic_fetch_add(&h->rounds, 1);
	}
	atomic_store(&h->over, true);
	return NULL;
}

static void *hammer_user(void *arg)
{
	struct hammer *h = arg;

	while (!atomic_load(&h->over)) {
		h->use(h);
		atomic_fetch_add(&h->uses, 1);
	}
	return NULL;
}

/* Gives the other thread a chance to meet the object alive. */
static inline void hammer_show(struct hammer *h, DAT_HANDLE handle)
{
	unsigned seen = atomic_load(&h->uses), patience = 1000;

	atomic_store(&h->handle, handle);
	while (atomic_load(&h->uses) == seen && --patience)
		sched_yield();
}

static inline void hammer_threads(struct hammer *h)
{
	pthread_t maker, user;

	CU_ASSERT_EQUAL_FATAL(pthread_create(&maker, NULL, hammer_maker, h), 0);
	CU_ASSERT_EQUAL_FATAL(pthread_create(&user, NULL, hammer_user, h), 0);
	CU_ASSERT_EQUAL(pthread_join(maker, NULL), 0);
	CU_ASSERT_EQUAL(pthread_join(user, NULL), 0);
	CU_ASSERT_TRUE(atomic_load(&h->rounds) > 0);
	CU_ASSERT_TRUE(atomic_load(&h->hits) > 0);
	CU_ASSERT_EQUAL(atomic_load(&h->strange), 0);
	if (atomic_load(&h->strange))
		printf("strange: 0x%x\n", atomic_load(&h->strange));
}

/* Afterwards everything closes gracefully: nothing was lost between the threads. */
static inline void hammer_run(void (*make)(struct hammer *h), void (*use)(struct hammer *h))
{
	struct hammer *h = calloc(1, sizeof(*h));

	CU_ASSERT_PTR_NOT_NULL_FATAL(h);
	h->make = make;
	h->use = use;
	env_open(&h->env);
	hammer_threads(h);
	env_close(&h->env);
	free(h);
}

#endif
