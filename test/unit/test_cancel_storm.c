/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * C19: threads that are cancelled at any point of a call, with either cancel type, leave no lock
 * held, no waiter counted and no reference behind.
 */
#include <stdlib.h>
#include <string.h>
#include <dat2/dat_event_extensions.h>
#include <dat2/dat_registry.h>
#include "dapl/udapl/cno/cno.h"
#include "dapl/udapl/evd/evd.h"
#include "test/unit/ep_util.h"
#include "test/unit/storm.h"
#include "test/unit/victim.h"

#define DELAY_NS 60000u

/*
 * ThreadSanitizer does not see what a thread does after it is cancelled inside an intercepted
 * function.
 */
const char *__tsan_default_suppressions(void);
__attribute__((visibility("default"))) const char *__tsan_default_suppressions(void)
{
	return "race:leave\nmutex:leave\n";
}

struct storm {
	struct env env;
	DAT_EVD_HANDLE evd, waited; /* `waited` is attached to the CNO */
	DAT_CNO_HANDLE cno;
	DAT_UINT64 word;
	char last[96]; /* name of the call that was cancelled last */
};

static struct storm storm;

/* Runs at exit, because a fatal assertion ends the test. */
static void name_last(void)
{
	if (CU_get_number_of_failures())
		fprintf(stderr, "the last: %s\n", storm.last);
}

static void poll_evd(void)
{
	DAT_EVENT event;
	DAT_COUNT more;

	dat_evd_wait(storm.evd, 0, 1, &event, &more);
}

static void wait_evd(void)
{
	DAT_EVENT event;
	DAT_COUNT more;

	dat_evd_wait(storm.evd, DAT_TIMEOUT_INFINITE, 1, &event, &more);
}

static void wait_shortly(void)
{
	DAT_EVENT event;
	DAT_COUNT more;

	dat_evd_wait(storm.evd, 20, 2, &event, &more);
}

static void wait_cno(void)
{
	DAT_EVD_HANDLE evd;

	dat_cno_wait(storm.cno, DAT_TIMEOUT_INFINITE, &evd);
}

static void wait_word_of_evd(void)
{
	DAT_WAIT_MEM(storm.evd, &storm.word, ~(DAT_UINT64)0, 0, DAT_TIMEOUT_INFINITE);
}

static void wait_word_of_ia(void)
{
	DAT_WAIT_MEM(storm.env.ia, &storm.word, ~(DAT_UINT64)0, 0, DAT_TIMEOUT_INFINITE);
}

static void make_evd(void)
{
	DAT_EVD_HANDLE evd;

	if (dat_evd_create(storm.env.ia, 4, DAT_HANDLE_NULL, DAT_EVD_SOFTWARE_FLAG, &evd) ==
	    DAT_SUCCESS)
		dat_evd_free(evd);
}

static void make_pz(void)
{
	DAT_PZ_HANDLE pz;

	if (dat_pz_create(storm.env.ia, &pz) == DAT_SUCCESS)
		dat_pz_free(pz);
}

static void change_evd(void)
{
	DAT_EVD_PARAM param;

	dat_evd_query(storm.evd, DAT_EVD_FIELD_ALL, &param);
	dat_evd_disable(storm.waited);
	dat_evd_resize(storm.evd, 8);
	dat_evd_enable(storm.waited);
}

static void arm_cno(void)
{
	DAT_CNO_ARM(storm.cno, 0);
}

static void list_providers(void)
{
	DAT_PROVIDER_INFO info, *list[] = { &info };
	DAT_COUNT count;

	dat_registry_list_providers(1, &count, list);
}

static const struct {
	const char *name;
	void (*call)(void);
} calls[] = {
	{ "dat_evd_wait, timeout 0", poll_evd },
	{ "dat_evd_wait", wait_evd },
	{ "dat_evd_wait, short", wait_shortly },
	{ "dat_cno_wait", wait_cno },
	{ "DAT_WAIT_MEM, EVD", wait_word_of_evd },
	{ "DAT_WAIT_MEM, IA", wait_word_of_ia },
	{ "dat_evd_create and free", make_evd },
	{ "dat_pz_create and free", make_pz },
	{ "changes of an EVD", change_evd },
	{ "DAT_CNO_ARM", arm_cno },
	{ "dat_registry_list_providers", list_providers },
};

static bool mutex_is_free(void *mutex)
{
	bool free = !pthread_mutex_trylock(mutex);

	if (free)
		pthread_mutex_unlock(mutex);
	return free;
}

/*
 * Checks for what a cancelled thread could have left behind: a held lock, a counted waiter, a
 * reference.
 */
static void check(void)
{
	struct dapl_evd *evd = storm.evd, *waited = storm.waited;
	struct dapl_cno *cno = storm.cno;
	DAT_EVENT event;
	DAT_COUNT more;

	CU_ASSERT_TRUE_FATAL(unit_wait_for(lock_is_free, &evd->lock, UNIT_PATIENCE));
	CU_ASSERT_TRUE_FATAL(unit_wait_for(lock_is_free, &waited->lock, UNIT_PATIENCE));
	CU_ASSERT_TRUE_FATAL(unit_wait_for(mutex_is_free, &cno->lock, UNIT_PATIENCE));
	CU_ASSERT_EQUAL(cno->waiters, 0);
	CU_ASSERT_EQUAL(atomic_load(&evd->obj.users), 0);
	CU_ASSERT_EQUAL(atomic_load(&cno->obj.users), 1); /* the EVD holds it */
	IS(dat_evd_wait(storm.evd, 0, 1, &event, &more), DAT_TIMEOUT_EXPIRED);
}

static void cancel_one(unsigned which, bool asynchronous, uint64_t delay)
{
	victim_cancel(calls[which].call, asynchronous, delay);
	snprintf(storm.last, sizeof(storm.last), "%s, %s, after %lu ns", calls[which].name,
		 asynchronous ? "asynchronous" : "deferred", (unsigned long)delay);
	check();
}

/* Each run has an EVD of one kind: without a CQ, with one, or for connections. */
static void run(const char *what, DAT_EVD_FLAGS flags)
{
	unsigned seed = storm_seed(what), count = 0;
	/* with LONG_SECONDS (60) more than a hundred thousand threads in all runs */
	uint64_t end = clock_now() + 2 * storm_number("LONG_SECONDS", 1) * NSEC_PER_SEC;
	static bool announced;

	if (!announced)
		CU_ASSERT_EQUAL(atexit(name_last), 0);
	announced = true;
	memset(&storm, 0, sizeof(storm));
	env_open(&storm.env);
	MUST(dat_cno_create(storm.env.ia, DAT_OS_WAIT_PROXY_AGENT_NULL, &storm.cno));
	MUST(dat_evd_create(storm.env.ia, 8, DAT_HANDLE_NULL, flags, &storm.evd));
	MUST(dat_evd_create(storm.env.ia, 8, storm.cno, DAT_EVD_DTO_FLAG, &storm.waited));
	while (clock_now() < end && !CU_get_number_of_failures()) {
		MUST(DAT_EVD_WAIT_POLICY(storm.evd, storm_next(&seed) % 3, storm_next(&seed) % 50));
		cancel_one(storm_next(&seed) % COUNT(calls), storm_next(&seed) % 4,
			   storm_next(&seed) % DELAY_NS);
		count++;
	}
	MUST(dat_evd_free(storm.evd));
	MUST(dat_evd_free(storm.waited));
	MUST(dat_cno_free(storm.cno));
	/* The abrupt close frees objects that cancelled threads had created. */
	MUST(dat_ia_close(storm.env.ia, DAT_CLOSE_ABRUPT_FLAG));
	free(storm.env.memory);
	printf("%s: %u threads cancelled\n", what, count);
}

static void test_without_cq(void)
{
	run("cancelled, without a CQ", DAT_EVD_SOFTWARE_FLAG);
}

static void test_with_cq(void)
{
	run("cancelled, with a CQ", DAT_EVD_DTO_FLAG | DAT_EVD_SOFTWARE_FLAG);
}

static void test_connections(void)
{
	run("cancelled, an EVD of connections", DAT_EVD_CONNECTION_FLAG);
}

static const struct unit_test tests[] = {
	{ "C19: nothing is left behind by a cancelled thread, EVD without a CQ", test_without_cq },
	{ "C19: nothing is left behind by a cancelled thread, EVD with a CQ", test_with_cq },
	{ "C19: nothing is left behind by a cancelled thread, connections", test_connections },
};

UNIT_MAIN("cancel_storm", tests)
