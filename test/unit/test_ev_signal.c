/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* The event extension on one EVD: signals and the wait policy. */
#include <errno.h>
#include <signal.h>
#include <sys/time.h>
#include "test/unit/ev_rig.h"

static void test_signal_before_wait(void)
{
	struct evd_sleeper sleeper;
	DAT_EVENT event;
	DAT_COUNT more = 77;
	struct rig rig;

	rig_open(&rig, NULL);
	IS(DAT_EVD_SIGNAL(rig.pz), BAD_EVD);
	MUST(DAT_EVD_SIGNAL(rig.request));
	MUST(DAT_EVD_SIGNAL(rig.request)); /* two signals count as one */
	IS(dat_evd_wait(rig.request, 0, 1, &event, &more), DAT_TIMEOUT_EXPIRED);
	IS(dat_evd_dequeue(rig.request, &event), DAT_QUEUE_EMPTY);
	more = 77;
	IS(dat_evd_wait(rig.request, DAT_TIMEOUT_INFINITE, 1, &event, &more), DAT_INTERRUPTED_CALL);
	CU_ASSERT_EQUAL(more, 0);
	evd_sleep_start(&sleeper, rig.request); /* sleeps */
	MUST(DAT_EVD_SIGNAL(rig.request));
	IS(evd_sleep_end(&sleeper), DAT_INTERRUPTED_CALL);
	IS(dat_evd_wait(rig.request, 1000, 1, &event, &more), DAT_TIMEOUT_EXPIRED);
	/* a wait that finds enough events leaves the signal */
	MUST(rig_post_se(rig.recv, 1));
	MUST(DAT_EVD_SIGNAL(rig.recv));
	IS(dat_evd_wait(rig.recv, DAT_TIMEOUT_INFINITE, 1, &event, &more), DAT_SUCCESS);
	IS(DAT_EVD_ARM(rig.recv, 0, 1), DAT_EV_BUSY);
	IS(DAT_EVD_ARM(rig.recv, 0, 1), DAT_SUCCESS);
	rig_close(&rig);
}

/*
 * Signalled before the EVD has a descriptor: after the signal is taken, arming makes no system
 * call.
 */
static void test_signal_before_descriptor(void)
{
	struct dapl_evd *evd;
	struct rig rig;

	rig_open(&rig, NULL);
	evd = rig.recv;
	MUST(DAT_EVD_SIGNAL(rig.recv));
	CU_ASSERT_TRUE(rig_readable(rig_evd_fd(rig.recv)));
	IS(DAT_EVD_ARM(rig.recv, 0, 1), DAT_EV_BUSY);
	CU_ASSERT_FALSE(wakefd_is_raised(&evd->wake));
	IS(DAT_EVD_ARM(rig.recv, 0, 1), DAT_SUCCESS);
	CU_ASSERT_FALSE(rig_readable(rig_evd_fd(rig.recv)));
	MUST(DAT_EVD_SIGNAL(rig.recv));
	CU_ASSERT_TRUE(rig_readable(rig_evd_fd(rig.recv)));
	rig_close(&rig);
}

static DAT_EVD_HANDLE storm_evd;
static DAT_CNO_HANDLE storm_cno;
static atomic_uint storms, storm_errnos;

static void on_timer(int number)
{
	int saved = errno;

	(void)number;
	errno = 4711;
	if (DAT_EVD_SIGNAL(storm_evd) != DAT_SUCCESS || DAT_CNO_SIGNAL(storm_cno) != DAT_SUCCESS ||
	    errno != 4711)
		atomic_fetch_add(&storm_errnos, 1);
	errno = saved;
	atomic_fetch_add(&storms, 1);
}

#define STORMS 2000u

static void test_signal_storm(void)
{
	struct itimerval often = { { 0, 100 }, { 0, 100 } }, never = { { 0, 0 }, { 0, 0 } };
	struct sigaction action = { .sa_handler = on_timer, .sa_flags = SA_RESTART }, old;
	unsigned interrupted = 0, busy = 0, named = 0, rounds = 0;
	DAT_EVENT event;
	DAT_COUNT more;
	DAT_EVD_HANDLE evd;
	struct rig rig;

	rig_open(&rig, NULL);
	storm_evd = rig.recv;
	storm_cno = rig_cno(&rig);
	rig_evd_fd(rig.recv);
	MUST(dat_evd_modify_cno(rig.recv, storm_cno));
	sigaction(SIGALRM, &action, &old);
	setitimer(ITIMER_REAL, &often, NULL);
	while (atomic_load(&storms) < STORMS) {
		MUST(rig_post_se(rig.recv, 1));
		busy += DAT_EVD_ARM(rig.recv, 0, 1) == DAT_EV_BUSY;
		rig_empty(rig.recv, 1);
		busy += DAT_EVD_ARM(rig.recv, 0, 1) == DAT_EV_BUSY;
		interrupted +=
			dat_evd_wait(rig.recv, 1000, 1, &event, &more) == DAT_INTERRUPTED_CALL;
		if (rounds++ % 2)
			busy += DAT_CNO_ARM(storm_cno, 0) == DAT_EV_BUSY;
		else
			named += dat_cno_wait(storm_cno, 1000, &evd) == DAT_SUCCESS;
	}
	setitimer(ITIMER_REAL, &never, NULL);
	sigaction(SIGALRM, &old, NULL);
	CU_ASSERT_EQUAL(storm_errnos, 0);
	CU_ASSERT_TRUE(interrupted > 0);
	CU_ASSERT_TRUE(busy > 0);
	CU_ASSERT_TRUE(named > 0);
	/* one wake-up each, however many signals there were */
	MUST(DAT_EVD_SIGNAL(rig.recv));
	IS(DAT_EVD_ARM(rig.recv, 0, 1), DAT_EV_BUSY);
	IS(DAT_EVD_ARM(rig.recv, 0, 1), DAT_SUCCESS);
	MUST(dat_evd_modify_cno(rig.recv, DAT_HANDLE_NULL));
	MUST(dat_cno_free(storm_cno));
	rig_close(&rig);
}

/* ---- the wait policy ---- */

static bool has_waiter(void *handle)
{
	struct dapl_evd *evd = handle;
	bool waiter;

	lock_acquire(&evd->lock);
	waiter = evd->state & EVD_WAITED;
	lock_release(&evd->lock);
	return waiter;
}

static void looker_start(struct evd_sleeper *s, DAT_EVD_HANDLE evd, DAT_COUNT threshold)
{
	*s = (struct evd_sleeper){ .evd = evd, .threshold = threshold };
	CU_ASSERT_EQUAL_FATAL(pthread_create(&s->thread, NULL, evd_sleep_run, s), 0);
	CU_ASSERT_TRUE(unit_wait_for(has_waiter, evd, UNIT_PATIENCE));
}

static void test_policy(void)
{
	static const DAT_EV_WAIT_POLICY awake[] = { DAT_EV_WAIT_SPIN, DAT_EV_WAIT_YIELD };
	struct evd_sleeper s;
	DAT_EVENT event;
	DAT_COUNT more;
	struct rig rig;
	unsigned i;

	rig_open(&rig, NULL);
	IS(DAT_EVD_WAIT_POLICY(rig.pz, DAT_EV_WAIT_SPIN, 0), BAD_EVD);
	IS(DAT_EVD_WAIT_POLICY(rig.recv, 3, 0), ARG(3));
	IS(DAT_EVD_WAIT_POLICY(rig.recv, DAT_EV_WAIT_BLOCK, 1000001), ARG(4));
	for (i = 0; i < COUNT(awake); i++) {
		MUST(DAT_EVD_WAIT_POLICY(rig.recv, awake[i], 0));
		IS(dat_evd_wait(rig.recv, 5000, 1, &event, &more), DAT_TIMEOUT_EXPIRED);
		looker_start(&s, rig.recv, 1);
		MUST(rig_post_se(rig.recv, 1));
		IS(evd_sleep_end(&s), DAT_SUCCESS);
		MUST(DAT_EVD_SIGNAL(rig.recv));
		IS(dat_evd_wait(rig.recv, DAT_TIMEOUT_INFINITE, 1, &event, &more),
		   DAT_INTERRUPTED_CALL);
	}
	CU_ASSERT_EQUAL(rig_cq(rig.recv)->arms, 0); /* no thread blocked */
	MUST(DAT_EVD_WAIT_POLICY(rig.recv, DAT_EV_WAIT_BLOCK, 100));
	/* longer than a busy machine withholds the processor while the thread polls */
	IS(dat_evd_wait(rig.recv, 500000, 1, &event, &more), DAT_TIMEOUT_EXPIRED);
	CU_ASSERT_EQUAL(rig_cq(rig.recv)->arms, 1);
	rig_close(&rig);
}

static void test_looking_finds_completions(void)
{
	const DAT_COUNT sizes[] = { 1, 3, RIG_QLEN };
	uint64_t ids[RIG_QLEN];
	struct evd_sleeper s;
	DAT_EVENT event;
	DAT_COUNT more, j;
	struct rig rig;
	unsigned i;

	rig_open_ep(&rig);
	MUST(DAT_EVD_WAIT_POLICY(rig.recv, DAT_EV_WAIT_SPIN, 0));
	for (i = 0; i < COUNT(sizes); i++) {
		for (j = 0; j < sizes[i]; j++) {
			MUST(rig_recv(&rig, (uint64_t)j));
			ids[j] = fake.last.wr_id;
		}
		looker_start(&s, rig.recv, 1);
		IS(dat_evd_dequeue(rig.recv, &event), E(INVALID_STATE, INVALID_STATE_EVD_WAITER));
		IS(dat_evd_wait(rig.recv, 0, 1, &event, &more),
		   E(INVALID_STATE, INVALID_STATE_EVD_WAITER));
		lock_acquire(&((struct dapl_evd *)rig.recv)->lock); /* found by one poll */
		for (j = 0; j < sizes[i]; j++)
			rig_complete(rig.recv, ids[j], DAT_DTO_SUCCESS, 1);
		lock_release(&((struct dapl_evd *)rig.recv)->lock);
		IS(evd_sleep_end(&s), DAT_SUCCESS);
		CU_ASSERT_EQUAL(rig_cookie(&s.event), 0);
		CU_ASSERT_EQUAL(s.more, sizes[i] - 1);
		for (j = 1; j < sizes[i]; j++) {
			MUST(dat_evd_dequeue(rig.recv, &event));
			CU_ASSERT_EQUAL(rig_cookie(&event), (uint64_t)j);
		}
		IS(dat_evd_dequeue(rig.recv, &event), DAT_QUEUE_EMPTY);
	}
	CU_ASSERT_EQUAL(rig_cq(rig.recv)->arms, 0);
	rig_close(&rig);
}

static bool has_one(void *handle)
{
	struct dapl_evd *evd = handle;
	bool one;

	lock_acquire(&evd->lock);
	one = evd_count_locked(evd) == 1;
	lock_release(&evd->lock);
	return one;
}

static void test_looking_for_several(void)
{
	struct evd_sleeper s;
	uint64_t ids[2];
	DAT_EVENT event;
	struct rig rig;
	unsigned i;

	rig_open_ep(&rig);
	MUST(DAT_EVD_WAIT_POLICY(rig.recv, DAT_EV_WAIT_SPIN, 0));
	for (i = 0; i < COUNT(ids); i++) {
		MUST(rig_recv(&rig, i));
		ids[i] = fake.last.wr_id;
	}
	looker_start(&s, rig.recv, 2);
	rig_complete(rig.recv, ids[0], DAT_DTO_SUCCESS, 1);
	CU_ASSERT_TRUE(unit_wait_for(has_one, rig.recv, UNIT_PATIENCE));
	rig_complete(rig.recv, ids[1], DAT_DTO_SUCCESS, 1);
	IS(evd_sleep_end(&s), DAT_SUCCESS);
	CU_ASSERT_EQUAL(rig_cookie(&s.event), 0);
	CU_ASSERT_EQUAL(s.more, 1);
	MUST(dat_evd_dequeue(rig.recv, &event));
	rig_close(&rig);
}

static void test_looking_ends(void)
{
	struct evd_sleeper s;
	DAT_EVD_HANDLE spare;
	struct rig rig;

	rig_open(&rig, NULL);
	spare = rig_evd(&rig, 4, DAT_EVD_DTO_FLAG);
	MUST(DAT_EVD_WAIT_POLICY(spare, DAT_EV_WAIT_SPIN, 0));
	looker_start(&s, spare, 1);
	MUST(DAT_EVD_SIGNAL(spare));
	IS(evd_sleep_end(&s), DAT_INTERRUPTED_CALL);
	looker_start(&s, spare, 1);
	MUST(dat_evd_set_unwaitable(spare));
	IS(evd_sleep_end(&s), E(INVALID_STATE, INVALID_STATE_EVD_UNWAITABLE));
	MUST(dat_evd_clear_unwaitable(spare));
	MUST(DAT_EVD_WAIT_POLICY(rig.conn, DAT_EV_WAIT_SPIN, 0)); /* without a CQ */
	looker_start(&s, rig.conn, 1);
	MUST(DAT_EVD_SIGNAL(rig.conn));
	IS(evd_sleep_end(&s), DAT_INTERRUPTED_CALL);
	looker_start(&s, spare, 1);
	MUST(dat_evd_free(spare));
	IS(evd_sleep_end(&s), E0(ABORT));
	MUST(DAT_EVD_WAIT_POLICY(rig.recv, DAT_EV_WAIT_SPIN, 0));
	looker_start(&s, rig.recv, 1);
	fake.upcalls.async(&fake.devices[0], IB_ASYNC_CQ_ERROR, rig.recv);
	IS(evd_sleep_end(&s), E0(INVALID_STATE));
	rig_take(rig.async);
	rig_close(&rig);
}

static const struct unit_test tests[] = {
	{ "after a signal before the descriptor, arming makes no system call",
	  test_signal_before_descriptor },
	{ "a signal before the wait interrupts it once", test_signal_before_wait },
	{ "many signals from a handler interrupt wait, arm and dequeue correctly",
	  test_signal_storm },
	{ "each wait policy polls or blocks as it says", test_policy },
	{ "a wait that polls takes a completion and counts the others",
	  test_looking_finds_completions },
	{ "a wait that polls for several events polls until all are there",
	  test_looking_for_several },
	{ "a wait that polls ends for every reason that ends a sleep", test_looking_ends },
};

UNIT_MAIN("ev_signal", tests)
