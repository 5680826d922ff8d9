/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * Threads that wait without blocking: signals and cancellation still end the wait, and other
 * threads get the lock.
 */
#include <errno.h>
#include <signal.h>
#include "test/unit/ev_rig.h"

#define POSTS	 200
#define SPIN_MAX 1000000u /* in microseconds */

/* Waits that do not block, or not within a second. */
static const struct policy {
	DAT_EV_WAIT_POLICY policy;
	DAT_UINT32 spin_us;
} policies[] = {
	{ DAT_EV_WAIT_SPIN, 0 },
	{ DAT_EV_WAIT_YIELD, 0 },
	{ DAT_EV_WAIT_BLOCK, SPIN_MAX },
};

/* See test_evd_wait.c. */
const char *__tsan_default_suppressions(void);
__attribute__((visibility("default"))) const char *__tsan_default_suppressions(void)
{
	return "race:leave_cancelled\nmutex:leave_cancelled\n";
}

struct spinner {
	pthread_t thread;
	DAT_EVD_HANDLE evd;
	DAT_CNO_HANDLE cno; /* or DAT_HANDLE_NULL */
	DAT_COUNT threshold, more;
	DAT_RETURN status;
	sigset_t mask; /* set after the wait */
	atomic_bool over;
};

static void *spin_run(void *arg)
{
	struct spinner *s = arg;
	DAT_EVD_HANDLE evd;
	DAT_EVENT event;

	pthread_cleanup_push(unit_forget_stack, NULL);
	s->status =
		s->cno ? dat_cno_wait(s->cno, DAT_TIMEOUT_INFINITE, &evd)
		       : dat_evd_wait(s->evd, DAT_TIMEOUT_INFINITE, s->threshold, &event, &s->more);
	pthread_sigmask(SIG_SETMASK, NULL, &s->mask);
	atomic_store(&s->over, true);
	pthread_cleanup_pop(0);
	return NULL;
}

static bool evd_has_waiter(void *handle)
{
	struct dapl_evd *evd = handle;
	bool waiter;

	lock_acquire(&evd->lock);
	waiter = evd->state & EVD_WAITED;
	lock_release(&evd->lock);
	return waiter;
}

static bool cno_has_waiter(void *handle)
{
	return cno_waiters(handle);
}

static void spin_start(struct spinner *s)
{
	CU_ASSERT_EQUAL_FATAL(pthread_create(&s->thread, NULL, spin_run, s), 0);
	CU_ASSERT_TRUE_FATAL(s->cno ? unit_wait_for(cno_has_waiter, s->cno, UNIT_PATIENCE)
				    : unit_wait_for(evd_has_waiter, s->evd, UNIT_PATIENCE));
}

static atomic_uint handled;

static void on_signal(int number)
{
	(void)number;
	atomic_fetch_add(&handled, 1);
}

/* A signal that arrives before the wait polls first has no effect on it. */
static bool is_interrupted(void *arg)
{
	struct spinner *s = arg;

	if (atomic_load(&s->over))
		return true;
	pthread_kill(s->thread, SIGUSR1);
	return false;
}

static void interrupt(struct spinner *s, int flags)
{
	struct sigaction action = { .sa_handler = on_signal, .sa_flags = flags }, old;

	CU_ASSERT_EQUAL_FATAL(sigaction(SIGUSR1, &action, &old), 0);
	atomic_store(&handled, 0);
	atomic_store(&s->over, false);
	spin_start(s);
	CU_ASSERT_TRUE_FATAL(unit_wait_for(is_interrupted, s, UNIT_PATIENCE));
	CU_ASSERT_TRUE_FATAL(unit_join(s->thread));
	IS(s->status, DAT_INTERRUPTED_CALL);
	CU_ASSERT_TRUE(atomic_load(&handled) > 0);
	CU_ASSERT_EQUAL(sigismember(&s->mask, SIGUSR1), 0);
	CU_ASSERT_EQUAL(sigismember(&s->mask, SIGTERM), 0);
	CU_ASSERT_EQUAL(sigaction(SIGUSR1, &old, NULL), 0);
}

static void test_evd_signal(void)
{
	struct spinner s = { .threshold = 2 };
	DAT_EVENT event;
	struct rig rig;
	unsigned i;

	rig_open(&rig, NULL);
	s.evd = rig.recv;
	MUST(rig_post_se(rig.recv, 1));
	for (i = 0; i < COUNT(policies); i++) {
		MUST(DAT_EVD_WAIT_POLICY(rig.recv, policies[i].policy, policies[i].spin_us));
		interrupt(&s, 0);
		CU_ASSERT_EQUAL(s.more, 1);
		interrupt(&s, SA_RESTART);
	}
	MUST(dat_evd_dequeue(rig.recv, &event));
	rig_close(&rig);
}

static void cno_policy(DAT_CNO_HANDLE handle, const struct policy *policy)
{
	struct dapl_cno *cno = handle;

	cno->policy = policy->policy;
	cno->spin = policy->spin_us * NSEC_PER_USEC;
}

static void test_cno_signal(void)
{
	struct spinner s = { .cno = DAT_HANDLE_NULL };
	struct rig rig;
	unsigned i;

	rig_open(&rig, NULL);
	s.cno = rig_cno(&rig);
	for (i = 0; i < COUNT(policies); i++) {
		cno_policy(s.cno, &policies[i]);
		interrupt(&s, 0);
	}
	MUST(dat_cno_free(s.cno));
	rig_close(&rig);
}

static void test_cancelled(void)
{
	struct spinner s = { .threshold = 1 };
	DAT_CNO_HANDLE cno;
	DAT_EVENT event;
	DAT_COUNT more;
	struct rig rig;
	unsigned i;

	rig_open(&rig, NULL);
	cno = rig_cno(&rig);
	s.evd = rig.recv;
	for (i = 0; i < COUNT(policies); i++) {
		MUST(DAT_EVD_WAIT_POLICY(rig.recv, policies[i].policy, policies[i].spin_us));
		cno_policy(cno, &policies[i]);
		s.cno = DAT_HANDLE_NULL;
		spin_start(&s);
		CU_ASSERT_EQUAL(pthread_cancel(s.thread), 0);
		CU_ASSERT_TRUE_FATAL(unit_join(s.thread));
		IS(dat_evd_wait(rig.recv, 0, 1, &event, &more), DAT_TIMEOUT_EXPIRED);
		s.cno = cno;
		spin_start(&s);
		CU_ASSERT_EQUAL(pthread_cancel(s.thread), 0);
		CU_ASSERT_TRUE_FATAL(unit_join(s.thread));
		CU_ASSERT_EQUAL(cno_waiters(cno), 0);
	}
	CU_ASSERT_FALSE(atomic_load(&s.over));
	MUST(dat_cno_free(cno));
	rig_close(&rig);
}

/* ---- fairness ---- */

struct holder {
	struct lock lock;
	atomic_bool ended;
	atomic_uint rounds;
	unsigned passed; /* acquisitions of the lock while the same thread waited for it */
	unsigned worst;
};

static void *hold_again_and_again(void *arg)
{
	struct holder *h = arg;

	lock_acquire(&h->lock);
	while (!atomic_load(&h->ended)) {
		atomic_fetch_add(&h->rounds, 1);
		h->passed += atomic_load(&h->lock.waiters) != 0;
		if (h->passed > h->worst)
			h->worst = h->passed;
		lock_cede(&h->lock);
	}
	lock_release(&h->lock);
	return NULL;
}

static bool has_held(void *arg)
{
	return atomic_load(&((struct holder *)arg)->rounds) > 100;
}

/*
 * Counts acquisitions, because times on a busy machine prove nothing. Without ceding, a holder that
 * releases and acquires the lock again does so millions of times before a waiter gets it.
 */
static void test_lock_is_ceded(void)
{
	struct holder h = { .worst = 0 };
	pthread_t thread;
	unsigned i;

	CU_ASSERT_EQUAL_FATAL(pthread_create(&thread, NULL, hold_again_and_again, &h), 0);
	for (i = 0; i < POSTS; i++) {
		CU_ASSERT_TRUE_FATAL(unit_wait_for(has_held, &h, UNIT_PATIENCE));
		lock_acquire(&h.lock);
		atomic_store(&h.rounds, 0);
		h.passed = 0;
		lock_release(&h.lock);
	}
	atomic_store(&h.ended, true);
	CU_ASSERT_TRUE(unit_join(thread));
	CU_ASSERT_TRUE(h.worst < 10000);
	CU_ASSERT_EQUAL(atomic_load(&h.lock.waiters), 0);
}

/* Returns the longest time of a post to an EVD that another thread polls without pause. */
static uint64_t slowest_post(void *arg)
{
	struct spinner *s = arg;
	uint64_t begin, took, worst = 0;
	DAT_EVENT event;
	int i;

	spin_start(s);
	for (i = 0; i < RIG_QLEN; i++) {
		begin = clock_now();
		MUST(rig_post_se(s->evd, 1));
		took = clock_now() - begin;
		if (took > worst)
			worst = took;
	}
	CU_ASSERT_TRUE_FATAL(unit_join(s->thread));
	while (dat_evd_dequeue(s->evd, &event) == DAT_SUCCESS)
		;
	return worst;
}

static void test_posts_are_soon(void)
{
	struct spinner s = { .threshold = RIG_QLEN };
	struct rig rig;
	unsigned i;

	rig_open(&rig, NULL);
	s.evd = rig.recv;
	for (i = 0; i < COUNT(policies); i++) {
		MUST(DAT_EVD_WAIT_POLICY(rig.recv, policies[i].policy, policies[i].spin_us));
		CU_ASSERT_TRUE(unit_is_soon(slowest_post, &s, 50 * NSEC_PER_MSEC));
	}
	rig_close(&rig);
}

/* ---- soon ---- */

#define LATE_POLLS 5u

static struct late {
	struct dapl_evd *evd;
	unsigned polls;
	bool waited; /* the thread was the EVD's waiter */
} late;

/* Finds nothing at first. */
static int late_poll(struct ibv_cq *cq, int count, struct ibv_wc *wc)
{
	late.waited |= late.evd->state & EVD_WAITED;
	return ++late.polls < LATE_POLLS ? 0 : fake_poll(cq, count, wc);
}

/* What comes at one of the first polls is taken as by a dequeue: by a thread that is not the waiter, and counts the rest. */
static void test_soon(void)
{
	DAT_EVENT event;
	struct rig rig;
	DAT_COUNT more;
	unsigned i;

	rig_open_ep(&rig);
	late.evd = rig.recv;
	rig_cq(rig.recv)->store.poll = late_poll;
	for (i = 0; i < COUNT(policies); i++) {
		MUST(DAT_EVD_WAIT_POLICY(rig.recv, policies[i].policy, policies[i].spin_us));
		rig_receive(&rig, 2 * i);
		rig_receive(&rig, 2 * i + 1);
		late.polls = 0;
		late.waited = false;
		more = 77;
		IS(dat_evd_wait(rig.recv, PATIENCE, 1, &event, &more), DAT_SUCCESS);
		CU_ASSERT_EQUAL(rig_cookie(&event), 2 * i);
		CU_ASSERT_EQUAL(more, 1);
		CU_ASSERT_TRUE(late.polls >= LATE_POLLS && !late.waited);
		IS(dat_evd_dequeue(rig.recv, &event), DAT_SUCCESS);
		CU_ASSERT_EQUAL(rig_cookie(&event), 2 * i + 1);
	}
	rig_close(&rig);
}

static const struct unit_test tests[] = {
	{ "a signal interrupts a thread that polls an EVD", test_evd_signal },
	{ "a signal interrupts a thread that polls a CNO", test_cno_signal },
	{ "a thread that polls can be cancelled", test_cancelled },
	{ "a lock is ceded to its waiters", test_lock_is_ceded },
	{ "a waiter that polls does not delay posts", test_posts_are_soon },
	{ "an event that comes soon is taken as by a dequeue", test_soon },
};

UNIT_MAIN("spin_wait", tests)
