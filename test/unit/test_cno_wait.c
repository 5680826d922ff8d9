/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Waits on a notification object, and everything that can end them. */
#include <signal.h>
#include "test/unit/cno_rig.h"

#define ROUNDS 3000

static void test_timeout(void)
{
	DAT_EVD_HANDLE evd = (DAT_EVD_HANDLE)(uintptr_t)8;
	uint64_t begin;
	DAT_CNO_HANDLE cno;
	struct rig rig;

	rig_open(&rig, NULL);
	cno = rig_cno(&rig);
	begin = clock_now();
	IS(dat_cno_wait(cno, 500, &evd), DAT_QUEUE_EMPTY);
	CU_ASSERT_TRUE(clock_now() - begin >= 500 * NSEC_PER_USEC);
	CU_ASSERT_PTR_NULL(evd);
	MUST(dat_cno_free(cno));
	rig_close(&rig);
}

static void test_a_trigger_releases_one(void)
{
	struct cno_waiter w[3];
	struct cno_crowd crowd;
	DAT_EVD_HANDLE evd;
	unsigned i, done = 0;
	struct rig rig;

	rig_open(&rig, NULL);
	crowd.cno = rig_cno(&rig);
	evd = rig_evd_on(&rig, crowd.cno, DAT_EVD_SOFTWARE_FLAG);
	for (i = 0; i < 3; i++)
		cno_wait_start(&w[i], crowd.cno, DAT_TIMEOUT_INFINITE);
	IS(dat_cno_free(crowd.cno), E(INVALID_STATE, INVALID_STATE_CNO_IN_USE));
	for (i = 3; i-- > 0;) {
		MUST(rig_post_se(evd, 1));
		crowd.waiters = i;
		CU_ASSERT_TRUE(unit_wait_for(cno_is_crowd, &crowd, UNIT_PATIENCE));
		rig_take(evd);
	}
	for (i = 0; i < 3; i++) {
		IS(cno_wait_end(&w[i]), DAT_SUCCESS);
		done += w[i].evd == evd;
	}
	CU_ASSERT_EQUAL(done, 3);
	MUST(dat_evd_free(evd));
	MUST(dat_cno_free(crowd.cno));
	rig_close(&rig);
}

static void test_each_waiter_its_evd(void)
{
	struct cno_waiter w[2];
	DAT_EVD_HANDLE one, two;
	DAT_CNO_HANDLE cno;
	struct rig rig;

	rig_open(&rig, NULL);
	cno = rig_cno(&rig);
	one = rig_evd_on(&rig, cno, DAT_EVD_SOFTWARE_FLAG);
	two = rig_evd_on(&rig, cno, DAT_EVD_SOFTWARE_FLAG);
	cno_wait_start(&w[0], cno, DAT_TIMEOUT_INFINITE);
	cno_wait_start(&w[1], cno, DAT_TIMEOUT_INFINITE);
	MUST(rig_post_se(one, 1));
	MUST(rig_post_se(two, 1));
	IS(cno_wait_end(&w[0]), DAT_SUCCESS);
	IS(cno_wait_end(&w[1]), DAT_SUCCESS);
	CU_ASSERT_TRUE(w[0].evd != w[1].evd);
	CU_ASSERT_TRUE((w[0].evd == one || w[0].evd == two) &&
		       (w[1].evd == one || w[1].evd == two));
	MUST(dat_evd_free(one));
	MUST(dat_evd_free(two));
	MUST(dat_cno_free(cno));
	rig_close(&rig);
}

static void test_last_evd_freed(void)
{
	struct cno_waiter w[2];
	DAT_EVD_HANDLE one, two;
	DAT_CNO_HANDLE cno;
	struct rig rig;

	rig_open(&rig, NULL);
	cno = rig_cno(&rig);
	one = rig_evd_on(&rig, cno, DAT_EVD_SOFTWARE_FLAG);
	two = rig_evd_on(&rig, cno, DAT_EVD_DTO_FLAG);
	cno_wait_start(&w[0], cno, DAT_TIMEOUT_INFINITE);
	cno_wait_start(&w[1], cno, DAT_TIMEOUT_INFINITE);
	MUST(dat_evd_free(one));
	CU_ASSERT_EQUAL(cno_waiters(cno), 2);
	fake.refuse = E0(INTERNAL_ERROR); /* the CQ is not destroyed */
	IS(dat_evd_free(two), E0(INTERNAL_ERROR));
	CU_ASSERT_EQUAL(cno_waiters(cno), 2);
	MUST(dat_evd_free(two));
	IS(cno_wait_end(&w[0]), DAT_SUCCESS);
	IS(cno_wait_end(&w[1]), DAT_SUCCESS);
	CU_ASSERT_PTR_NULL(w[0].evd);
	CU_ASSERT_PTR_NULL(w[1].evd);
	rig_named(cno, NULL);
	MUST(dat_cno_free(cno));
	rig_close(&rig);
}

static void test_abrupt_close(void)
{
	struct cno_waiter w[2];
	DAT_CNO_HANDLE cno;
	struct rig rig;

	rig_open(&rig, NULL);
	cno = rig_cno(&rig);
	cno_wait_start(&w[0], cno, DAT_TIMEOUT_INFINITE);
	cno_wait_start(&w[1], cno, DAT_TIMEOUT_INFINITE);
	MUST(dat_ia_close(rig.ia, DAT_CLOSE_ABRUPT_FLAG));
	IS(cno_wait_end(&w[0]), DAT_SUCCESS);
	IS(cno_wait_end(&w[1]), DAT_SUCCESS);
	CU_ASSERT_PTR_NULL(w[0].evd);
	CU_ASSERT_PTR_NULL(w[1].evd);
}

static void on_signal(int number)
{
	(void)number;
}

static void signal_test(int flags)
{
	struct sigaction action = { .sa_handler = on_signal, .sa_flags = flags }, old;
	struct cno_waiter w;
	DAT_CNO_HANDLE cno;
	struct rig rig;

	CU_ASSERT_EQUAL_FATAL(sigaction(SIGUSR1, &action, &old), 0);
	rig_open(&rig, NULL);
	cno = rig_cno(&rig);
	cno_wait_start(&w, cno, DAT_TIMEOUT_INFINITE);
	/* The thread may not block yet, so the signal is sent until the wait has ended. */
	while (cno_waiters(cno))
		CU_ASSERT_EQUAL(pthread_kill(w.thread, SIGUSR1), 0);
	IS(cno_wait_end(&w), 0x00130000u);
	CU_ASSERT_PTR_EQUAL(w.evd, (DAT_EVD_HANDLE)(uintptr_t)8);
	MUST(dat_cno_free(cno));
	rig_close(&rig);
	CU_ASSERT_EQUAL(sigaction(SIGUSR1, &old, NULL), 0);
}

static void test_signal(void)
{
	signal_test(0);
	signal_test(SA_RESTART);
}

/*
 * A thread cancelled inside ppoll does not return through ThreadSanitizer's wrapper, which then
 * misses the locks of the cleanup handlers.
 */
const char *__tsan_default_suppressions(void);
__attribute__((visibility("default"))) const char *__tsan_default_suppressions(void)
{
	return "race:leave_cancelled\nmutex:leave_cancelled\n";
}

static void test_cancel(void)
{
	struct cno_waiter w;
	DAT_EVD_HANDLE evd;
	DAT_CNO_HANDLE cno;
	struct rig rig;

	rig_open(&rig, NULL);
	cno = rig_cno(&rig);
	evd = rig_evd_on(&rig, cno, DAT_EVD_SOFTWARE_FLAG);
	cno_wait_start(&w, cno, DAT_TIMEOUT_INFINITE);
	CU_ASSERT_EQUAL(pthread_cancel(w.thread), 0);
	CU_ASSERT_TRUE_FATAL(unit_join(w.thread));
	CU_ASSERT_EQUAL(w.took, 0); /* the wait did not return */
	MUST(rig_post_se(evd, 1));
	rig_named(cno, evd);
	MUST(dat_evd_free(evd));
	MUST(dat_cno_free(cno));
	rig_close(&rig);
}

struct poster {
	DAT_EVD_HANDLE evd;
	atomic_uint round; /* the round in which to post */
	atomic_uint posted;
};

static void *post_each_round(void *arg)
{
	struct poster *p = arg;
	unsigned i;

	for (i = 1; i <= ROUNDS; i++) {
		while (atomic_load(&p->round) < i)
			sched_yield();
		CU_ASSERT_EQUAL(rig_post_se(p->evd, i), DAT_SUCCESS);
		atomic_store(&p->posted, i);
	}
	return NULL;
}

/*
 * The trigger races with the deadline of the wait; a wait that misses it leaves it to the next
 * wait.
 */
static void test_trigger_at_the_deadline(void)
{
	struct poster p = { .round = 0 };
	unsigned i, lost = 0;
	DAT_EVD_HANDLE named;
	DAT_CNO_HANDLE cno;
	pthread_t thread;
	struct rig rig;

	rig_open(&rig, NULL);
	cno = rig_cno(&rig);
	p.evd = rig_evd_on(&rig, cno, DAT_EVD_SOFTWARE_FLAG);
	CU_ASSERT_EQUAL_FATAL(pthread_create(&thread, NULL, post_each_round, &p), 0);
	for (i = 1; i <= ROUNDS; i++) {
		DAT_RETURN status;

		atomic_store(&p.round, i);
		status = dat_cno_wait(cno, i % 40, &named);
		while (atomic_load(&p.posted) < i)
			sched_yield();
		if (status != DAT_SUCCESS)
			status = dat_cno_wait(cno, 0, &named);
		lost += status != DAT_SUCCESS || named != p.evd;
		rig_take(p.evd);
	}
	CU_ASSERT_EQUAL(pthread_join(thread, NULL), 0);
	CU_ASSERT_EQUAL(lost, 0);
	MUST(dat_evd_free(p.evd));
	MUST(dat_cno_free(cno));
	rig_close(&rig);
}

static const struct unit_test tests[] = {
	{ "a timeout of 500 us lasts 500 us; QUEUE_EMPTY comes without an EVD", test_timeout },
	{ "a trigger wakes one waiter; a CNO with waiters is not freed",
	  test_a_trigger_releases_one },
	{ "waiters get different EVDs", test_each_waiter_its_evd },
	{ "freeing the last EVD ends waits, without an EVD", test_last_evd_freed },
	{ "an abrupt close ends waits, without an EVD", test_abrupt_close },
	{ "a signal interrupts, SA_RESTART or not", test_signal },
	{ "C19: a thread that is cancelled while it blocks leaves nothing behind", test_cancel },
	{ "a trigger at the deadline is not lost", test_trigger_at_the_deadline },
};

UNIT_MAIN("cno_wait", tests)
