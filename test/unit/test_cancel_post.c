/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * C19 with DAPL_ASYNC_CANCEL=1: asynchronous threads that are cancelled at any point of a post, a dequeue or a poll leave
 * no lock held, and the endpoint works on.
 */
#include <stdlib.h>
#include <dat2/dat_event_extensions.h>
#include "dapl/udapl/ep/ep.h"
#include "dapl/udapl/evd/evd.h"
#include "test/unit/ep_util.h"
#include "test/unit/storm.h"
#include "test/unit/victim.h"

#define DELAY_NS  20000u
#define OUR_WRITE 0xC19
#define BATCH	  4

static struct env env;
static struct end active, passive;
static DAT_RMR_HANDLE rmr;
static int evd_users, ep_users; /* those of objects */
static const char *last_call = "none";

/* The provider reads its settings when it is loaded. */
__attribute__((constructor)) static void ask_for_it(void)
{
	setenv("DAPL_ASYNC_CANCEL", "1", 1);
}

/* Posts by victims; a full queue refuses them, until the test has drained it. */
static void post_write(void)
{
	try_write(&active, 0, env.rkey);
}

static void post_recv(void)
{
	try_recv(&active, 0);
}

static void bind_window(void)
{
	DAT_LMR_TRIPLET triplet = segment(&env, 0, 64);
	DAT_RMR_COOKIE cookie = { .as_64 = 0 };
	DAT_RMR_CONTEXT context;

	dat_rmr_bind(rmr, env.lmr, &triplet, DAT_MEM_PRIV_REMOTE_READ_FLAG, DAT_VA_TYPE_VA,
		     active.ep, cookie, DAT_COMPLETION_DEFAULT_FLAG, &context);
}

static void dequeue(void)
{
	DAT_EVENT event;

	dat_evd_dequeue(active.request, &event);
}

static void dequeue_batch(void)
{
	DAT_EVENT events[BATCH];
	DAT_COUNT count;

	DAT_EVD_DEQUEUE_N(active.request, BATCH, events, &count);
}

static void arm(void)
{
	DAT_EVD_ARM(active.request, 0, 1);
}

static const struct {
	const char *name;
	void (*call)(void);
} calls[] = {
	{ "dat_ep_post_rdma_write", post_write }, { "dat_ep_post_recv", post_recv },
	{ "dat_rmr_bind", bind_window },	  { "dat_evd_dequeue", dequeue },
	{ "DAT_EVD_DEQUEUE_N", dequeue_batch },	  { "DAT_EVD_ARM", arm },
};

/* Takes what victims have posted from the EVD; returns true when the test's own write is among it. */
static bool our_write_is_complete(void *unused)
{
	DAT_EVENT event;

	(void)unused;
	while (dat_evd_dequeue(active.request, &event) == DAT_SUCCESS)
		if (event.event_number == DAT_DTO_COMPLETION_EVENT &&
		    event.event_data.dto_completion_event_data.user_cookie.as_64 == OUR_WRITE)
			return true;
	return false;
}

static bool our_write_is_posted(void *unused)
{
	our_write_is_complete(unused);
	return try_write(&active, OUR_WRITE, env.rkey) == DAT_SUCCESS;
}

static void check(void)
{
	struct dapl_evd *evd = active.request;
	struct dapl_ep *ep = active.ep;

	CU_ASSERT_TRUE_FATAL(unit_wait_for(lock_is_free, &evd->lock, UNIT_PATIENCE));
	CU_ASSERT_EQUAL(atomic_load(&evd->obj.users), evd_users);
	CU_ASSERT_EQUAL(atomic_load(&ep->obj.users), ep_users);
	CU_ASSERT_TRUE_FATAL(unit_wait_for(our_write_is_posted, NULL, UNIT_PATIENCE));
	CU_ASSERT_TRUE_FATAL(unit_wait_for(our_write_is_complete, NULL, UNIT_PATIENCE));
}

static void cancel_one(unsigned which, uint64_t delay)
{
	last_call = calls[which].name;
	victim_cancel(calls[which].call, true, delay);
	check();
}

/* Runs at exit, because a fatal assertion ends the test. */
static void name_last(void)
{
	if (CU_get_number_of_failures())
		fprintf(stderr, "the last: %s\n", last_call);
}

static void test_posts(void)
{
	unsigned seed = storm_seed("posts cancelled"), count = 0;
	uint64_t end = clock_now() + storm_seconds() * NSEC_PER_SEC;

	CU_ASSERT_EQUAL(atexit(name_last), 0);
	env_open(&env);
	env_listen(&env);
	end_open(&env, &active, NULL);
	end_open(&env, &passive, NULL);
	connect_pair(&active, &passive);
	MUST(dat_rmr_create(env.pz, &rmr));
	evd_users = atomic_load(&((struct dapl_evd *)active.request)->obj.users);
	ep_users = atomic_load(&((struct dapl_ep *)active.ep)->obj.users);
	while (clock_now() < end && !CU_get_number_of_failures()) {
		cancel_one(storm_next(&seed) % COUNT(calls), storm_next(&seed) % DELAY_NS);
		count++;
	}
	/* The abrupt close frees what is still posted. */
	MUST(dat_ia_close(env.ia, DAT_CLOSE_ABRUPT_FLAG));
	free(env.memory);
	printf("%u threads cancelled\n", count);
}

static const struct unit_test tests[] = {
	{ "C19: no lock is held after a post, dequeue or poll that was cancelled", test_posts },
};

UNIT_MAIN("cancel_post", tests)
