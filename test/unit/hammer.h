/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * Two threads use one object: one creates and frees it repeatedly, the other calls every function
 * on the current handle, which may be freed before or during the call. Each call either works or
 * returns the error of a freed handle. The sanitizers check the rest.
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
#define HAMMER_TIME   (8 * NSEC_PER_SEC) /* limit for slow machines, whatever the rounds */

struct hammer {
	void (*make)(struct hammer *h); /* creates, publishes and frees the object */
	void (*use)(struct hammer *h);	/* calls the functions under test */
	struct env env;
	_Atomic(DAT_HANDLE) handle, other; /* `handle`: the object under test */
	void *more;			   /* data of the suite */
	atomic_bool over;
	atomic_uint rounds, uses, hits; /* hits: calls that found the object alive */
	atomic_uint strange;		/* a status that no call may return here */
};

/*
 * Records a call on an object that may be freed: it succeeded, or returned an error that a freed
 * handle allows.
 */
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

/* Publishes the handle and lets the other thread use it while the object is alive. */
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

/* Runs both threads, then closes everything gracefully, which fails if they left an object open. */
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
