/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* The event extension on notification objects: descriptor, arming, signal. */
#include <fcntl.h>
#include "test/unit/ev_rig.h"

static void test_checks(void)
{
	DAT_EV_POLLFDS list = { .nfds = -1 };
	struct cno_waiter waiter;
	DAT_EVD_HANDLE evds[2];
	DAT_COUNT n = 77;
	DAT_CNO_HANDLE cno;
	struct rig rig;
	DAT_FD fd;

	rig_open(&rig, NULL);
	cno = rig_cno(&rig);
	IS(DAT_CNO_GET_FD(rig.recv, &fd), BAD_CNO);
	IS(DAT_CNO_GET_FD(cno, NULL), ARG(3));
	IS(DAT_CNO_ARM(rig.recv, 0), BAD_CNO);
	IS(DAT_CNO_ARM(cno, 2), ARG(3));
	IS(DAT_CNO_SIGNAL(rig.recv), BAD_CNO);
	IS(DAT_CNO_POLL(rig.recv, 1, evds, &n), BAD_CNO);
	IS(DAT_CNO_POLL(cno, 0, evds, &n), ARG(3));
	IS(DAT_CNO_POLL(cno, 1, NULL, &n), ARG(4));
	IS(DAT_CNO_POLL(cno, 1, evds, NULL), ARG(5));
	IS(DAT_CNO_POLL(cno, 1, evds, &n), DAT_QUEUE_EMPTY);
	CU_ASSERT_EQUAL(n, 0);
	IS(DAT_CNO_GET_POLLFDS(rig.recv, &list), BAD_CNO);
	IS(DAT_CNO_GET_POLLFDS(cno, NULL), ARG(3));
	IS(DAT_CNO_GET_POLLFDS(cno, &list), ARG(3));
	list.nfds = 1;
	IS(DAT_CNO_GET_POLLFDS(cno, &list), ARG(3));
	cno_wait_start(&waiter, cno, DAT_TIMEOUT_INFINITE);
	IS(DAT_CNO_ARM(cno, 0), E(INVALID_STATE, INVALID_STATE_CNO_IN_USE));
	IS(dat_cno_free(cno), E(INVALID_STATE, INVALID_STATE_CNO_IN_USE));
	MUST(DAT_CNO_SIGNAL(cno));
	IS(cno_wait_end(&waiter), DAT_SUCCESS);
	CU_ASSERT_PTR_NULL(waiter.evd);
	MUST(dat_cno_free(cno));
	rig_close(&rig);
}

static void test_fd(void)
{
	DAT_CNO_HANDLE cno, born;
	struct rig rig;
	DAT_FD fd;

	rig_open(&rig, NULL);
	cno = rig_cno(&rig);
	fd = rig_cno_fd(cno);
	CU_ASSERT_EQUAL(fd, rig_cno_fd(cno));
	CU_ASSERT_TRUE(fcntl(fd, F_GETFD) & FD_CLOEXEC);
	CU_ASSERT_FALSE(rig_readable(fd));
	MUST(dat_evd_modify_cno(rig.recv, cno));
	MUST(rig_post_se(rig.recv, 1));
	CU_ASSERT_TRUE(rig_readable(fd));
	rig_named(cno, rig.recv);
	CU_ASSERT_FALSE(rig_readable(fd));
	MUST(dat_evd_modify_cno(rig.recv, DAT_HANDLE_NULL));
	MUST(dat_cno_free(cno));
	CU_ASSERT_EQUAL(fcntl(fd, F_GETFD), -1);
	MUST(dat_cno_fd_create(rig.ia, &fd, &born));
	CU_ASSERT_EQUAL(fd, rig_cno_fd(born));
	MUST(dat_cno_free(born));
	rig_empty(rig.recv, 1);
	rig_close(&rig);
}

static void open_on(struct rig *rig, DAT_CNO_HANDLE *cno)
{
	rig_open_ep(rig);
	rig_connect(rig);
	*cno = rig_cno(rig);
	MUST(dat_evd_modify_cno(rig->recv, *cno));
	MUST(dat_evd_modify_cno(rig->request, *cno));
}

static void close_on(struct rig *rig, DAT_CNO_HANDLE cno)
{
	MUST(dat_evd_modify_cno(rig->recv, DAT_HANDLE_NULL));
	MUST(dat_evd_modify_cno(rig->request, DAT_HANDLE_NULL));
	MUST(dat_cno_free(cno));
	rig_close(rig);
}

static void test_leftover(void)
{
	DAT_CNO_HANDLE cno;
	struct rig rig;
	DAT_FD fd;

	open_on(&rig, &cno);
	fd = rig_cno_fd(cno);
	MUST(rig_post_se(rig.recv, 1));
	MUST(rig_post_se(rig.recv, 2));
	rig_named(cno, rig.recv);
	rig_take(rig.recv);		   /* one stays */
	CU_ASSERT_FALSE(rig_readable(fd)); /* it was not armed for the leftover */
	IS(DAT_CNO_ARM(cno, 0), DAT_EV_BUSY);
	rig_named(cno, rig.recv); /* polling the CNO finds it */
	IS(DAT_CNO_ARM(cno, 0), DAT_EV_BUSY);
	rig_take(rig.recv);
	IS(DAT_CNO_ARM(cno, 0), DAT_SUCCESS);
	CU_ASSERT_FALSE(rig_readable(fd));
	close_on(&rig, cno);
}

static void test_arm_fires(void)
{
	DAT_CNO_HANDLE cno;
	struct rig rig;
	DAT_FD fd;

	open_on(&rig, &cno);
	fd = rig_cno_fd(cno);
	MUST(DAT_CNO_ARM(cno, 0));
	rig_receive(&rig, 1);
	CU_ASSERT_TRUE(rig_readable(fd));
	IS(DAT_CNO_ARM(cno, 0), DAT_EV_BUSY);
	rig_named(cno, rig.recv);
	rig_empty(rig.recv, 1);
	MUST(DAT_CNO_ARM(cno, 0));
	CU_ASSERT_FALSE(rig_readable(fd));
	MUST(rig_post_se(rig.recv, 1));
	CU_ASSERT_TRUE(rig_readable(fd));
	rig_empty(rig.recv, 1);
	MUST(DAT_CNO_ARM(cno, 0));
	CU_ASSERT_FALSE(rig_readable(fd));
	/* Overflow. */
	fake.upcalls.async(&fake.devices[0], IB_ASYNC_CQ_ERROR, rig.request);
	CU_ASSERT_TRUE(rig_readable(fd));
	IS(DAT_CNO_ARM(cno, 0), DAT_EV_BUSY);
	rig_named(cno, rig.request);
	rig_take(rig.async);
	close_on(&rig, cno);
}

static void test_scope(void)
{
	struct evd_sleeper sleeper;
	DAT_CNO_HANDLE cno;
	struct rig rig;
	DAT_FD fd;

	open_on(&rig, &cno);
	fd = rig_cno_fd(cno);
	MUST(dat_evd_disable(rig.recv));
	MUST(rig_post_se(rig.recv, 1));
	IS(DAT_CNO_ARM(cno, 0), DAT_SUCCESS);
	CU_ASSERT_FALSE(rig_readable(fd));
	MUST(dat_evd_enable(rig.recv)); /* takes effect from now on */
	CU_ASSERT_TRUE(rig_readable(fd));
	rig_empty(rig.recv, 1);
	/* An event that a waiter takes does not trigger the CNO. */
	evd_sleep_start(&sleeper, rig.recv);
	MUST(DAT_CNO_ARM(cno, 0));
	rig_receive(&rig, 1);
	IS(evd_sleep_end(&sleeper), DAT_SUCCESS);
	MUST(DAT_CNO_ARM(cno, 0));
	CU_ASSERT_FALSE(rig_readable(fd));
	/* The EVD is attached later. */
	MUST(dat_evd_modify_cno(rig.recv, DAT_HANDLE_NULL));
	MUST(rig_post_se(rig.recv, 1));
	MUST(DAT_CNO_ARM(cno, 0));
	MUST(dat_evd_modify_cno(rig.recv, cno));
	CU_ASSERT_TRUE(rig_readable(fd));
	rig_empty(rig.recv, 1);
	close_on(&rig, cno);
}

/*
 * An event triggers the CNO and fires an armed EVD; consuming one notification leaves the other, in
 * either order.
 */
static void test_both_descriptors(void)
{
	DAT_CNO_HANDLE cno;
	DAT_FD evd_fd, fd;
	struct rig rig;

	open_on(&rig, &cno);
	fd = rig_cno_fd(cno);
	evd_fd = rig_evd_fd(rig.recv);
	MUST(DAT_EVD_ARM(rig.recv, 0, 1));
	MUST(DAT_CNO_ARM(cno, 0));
	rig_receive(&rig, 1);
	CU_ASSERT_TRUE(rig_readable(fd));
	CU_ASSERT_TRUE(rig_readable(evd_fd));
	rig_named(cno, rig.recv); /* reads the channel */
	CU_ASSERT_TRUE(rig_readable(evd_fd));
	rig_empty(rig.recv, 1);
	MUST(DAT_CNO_ARM(cno, 0));
	MUST(DAT_EVD_ARM(rig.recv, 0, 1));
	CU_ASSERT_FALSE(rig_readable(fd));
	CU_ASSERT_FALSE(rig_readable(evd_fd));
	rig_receive(&rig, 2);
	IS(DAT_EVD_ARM(rig.recv, 0, 1), DAT_EV_BUSY);
	IS(DAT_EVD_ARM(rig.recv, 0, 2), DAT_SUCCESS); /* reads the channel */
	CU_ASSERT_TRUE(rig_readable(fd));
	rig_named(cno, rig.recv);
	rig_empty(rig.recv, 1);
	MUST(dat_evd_disable(rig.recv)); /* has no effect on the EVD's own descriptor */
	MUST(DAT_EVD_ARM(rig.recv, 0, 1));
	CU_ASSERT_FALSE(rig_readable(evd_fd));
	rig_receive(&rig, 3);
	CU_ASSERT_TRUE(rig_readable(evd_fd));
	rig_empty(rig.recv, 1);
	close_on(&rig, cno);
}

static void test_solicited(void)
{
	DAT_CNO_HANDLE cno;
	struct rig rig;

	open_on(&rig, &cno);
	MUST(DAT_CNO_ARM(cno, DAT_EV_ARM_SOLICITED));
	CU_ASSERT_TRUE(rig_cq(rig.recv)->solicited_only);
	rig_receive(&rig, 1);
	IS(DAT_CNO_ARM(cno, DAT_EV_ARM_SOLICITED), DAT_EV_BUSY);
	rig_empty(rig.recv, 1);
	MUST(DAT_CNO_ARM(cno, DAT_EV_ARM_SOLICITED));
	rig_named(cno, NULL); /* with a CNO attached all completions notify */
	CU_ASSERT_FALSE(rig_cq(rig.recv)->solicited_only);
	rig_receive(&rig, 2);
	rig_named(cno, rig.recv);
	rig_empty(rig.recv, 1);
	fake.refuse = E0(INTERNAL_ERROR);
	IS(DAT_CNO_ARM(cno, DAT_EV_ARM_SOLICITED), E0(INTERNAL_ERROR));
	close_on(&rig, cno);
}

/* ---- signals ---- */

static void test_signal(void)
{
	DAT_EVD_HANDLE evd = (DAT_EVD_HANDLE)(uintptr_t)8;
	struct cno_waiter w[2];
	DAT_CNO_HANDLE cno;
	struct rig rig;
	DAT_FD fd;

	open_on(&rig, &cno);
	fd = rig_cno_fd(cno);
	MUST(DAT_CNO_SIGNAL(cno));
	MUST(DAT_CNO_SIGNAL(cno));
	CU_ASSERT_TRUE(rig_readable(fd));
	MUST(rig_post_se(rig.recv, 1));
	rig_named(cno, rig.recv); /* EVDs that are ready are returned first */
	CU_ASSERT_TRUE(rig_readable(fd));
	IS(dat_cno_wait(cno, DAT_TIMEOUT_INFINITE, &evd), DAT_SUCCESS);
	CU_ASSERT_PTR_NULL(evd);
	rig_named(cno, NULL);
	CU_ASSERT_FALSE(rig_readable(fd));
	rig_empty(rig.recv, 1);
	MUST(DAT_CNO_SIGNAL(cno));
	IS(dat_cno_trigger(cno, &evd), DAT_SUCCESS);
	CU_ASSERT_PTR_NULL(evd);
	IS(dat_cno_trigger(cno, &evd), DAT_QUEUE_EMPTY);
	MUST(DAT_CNO_ARM(cno, 0));
	MUST(DAT_CNO_SIGNAL(cno));
	CU_ASSERT_TRUE(rig_readable(fd));
	IS(DAT_CNO_ARM(cno, 0), DAT_EV_BUSY);
	IS(DAT_CNO_ARM(cno, 0), DAT_SUCCESS);
	CU_ASSERT_FALSE(rig_readable(fd));
	/* a signal wakes one of two waiters */
	cno_wait_start(&w[0], cno, 2000000);
	cno_wait_start(&w[1], cno, 2000000);
	MUST(DAT_CNO_SIGNAL(cno));
	cno_wait_end(&w[0]);
	cno_wait_end(&w[1]);
	CU_ASSERT_EQUAL((w[0].status == DAT_SUCCESS) + (w[1].status == DAT_SUCCESS), 1);
	CU_ASSERT_EQUAL((w[0].status == DAT_QUEUE_EMPTY) + (w[1].status == DAT_QUEUE_EMPTY), 1);
	close_on(&rig, cno);
}

struct agent {
	unsigned calls;
	DAT_EVD_HANDLE evd;
};

static void on_trigger(DAT_PVOID data, DAT_EVD_HANDLE evd)
{
	struct agent *agent = data;

	agent->calls++;
	agent->evd = evd;
}

static void test_signal_calls_the_agent(void)
{
	struct agent agent = { 0, (DAT_EVD_HANDLE)(uintptr_t)8 };
	DAT_OS_WAIT_PROXY_AGENT self = { &agent, on_trigger };
	DAT_EVD_HANDLE evd = (DAT_EVD_HANDLE)(uintptr_t)8;
	DAT_CNO_HANDLE cno;
	struct rig rig;

	open_on(&rig, &cno);
	MUST(dat_cno_modify_agent(cno, self));
	CU_ASSERT_TRUE(rig_cq(rig.recv)->watched);
	fake_run_timers();
	CU_ASSERT_EQUAL(agent.calls, 0);
	MUST(DAT_CNO_SIGNAL(cno));
	CU_ASSERT_EQUAL(agent.calls, 0); /* the call of the agent is deferred */
	fake_run_timers();
	CU_ASSERT_EQUAL(agent.calls, 1);
	CU_ASSERT_PTR_NULL(agent.evd);
	IS(dat_cno_wait(cno, 0, &evd), DAT_SUCCESS); /* the signal is also left for a waiter */
	CU_ASSERT_PTR_NULL(evd);
	/* A signal without an agent is delivered to the next agent, unless a waiter took it. */
	MUST(DAT_CNO_SIGNAL(cno));
	fake_run_timers();
	MUST(dat_cno_modify_agent(cno, self));
	fake_run_timers();
	CU_ASSERT_EQUAL(agent.calls, 2);
	MUST(DAT_CNO_SIGNAL(cno));
	fake_run_timers();
	IS(dat_cno_wait(cno, 0, &evd), DAT_SUCCESS);
	MUST(dat_cno_modify_agent(cno, self));
	fake_run_timers();
	CU_ASSERT_EQUAL(agent.calls, 2);
	/* The event thread calls an agent for completions. */
	rig_receive(&rig, 1);
	CU_ASSERT_TRUE(fake_fire(rig_cq(rig.recv)));
	fake_run_timers();
	CU_ASSERT_EQUAL(agent.calls, 3);
	CU_ASSERT_PTR_EQUAL(agent.evd, rig.recv);
	rig_empty(rig.recv, 1);
	close_on(&rig, cno);
}

static void test_abrupt_close_of_what_is_armed(void)
{
	DAT_CNO_HANDLE cno;
	struct rig rig;
	DAT_FD fd;

	open_on(&rig, &cno);
	fd = rig_evd_fd(rig.recv);
	MUST(DAT_EVD_ARM(rig.recv, 0, 1));
	MUST(DAT_CNO_ARM(cno, 0));
	CU_ASSERT_FALSE(rig_readable(fd));
	MUST(dat_ia_close(rig.ia, DAT_CLOSE_ABRUPT_FLAG));
	CU_ASSERT_EQUAL(fcntl(fd, F_GETFD), -1);
	IS(dat_evd_enable(rig.recv), BAD_EVD);
	CU_ASSERT_EQUAL(fake.cqs, 0);
}

static const struct unit_test tests[] = {
	{ "every check", test_checks },
	{ "every CNO has a descriptor", test_fd },
	{ "an event that is left wakes no unarmed descriptor, and arming returns busy",
	  test_leftover },
	{ "an armed CNO fires for each kind of event", test_arm_fires },
	{ "a CNO fires correctly for disabled, waited for and later attached EVDs", test_scope },
	{ "neither of EVD and CNO takes the other's wake-up", test_both_descriptors },
	{ "with a CNO all completions notify; a refused arming is an error", test_solicited },
	{ "a signal is returned after all ready EVDs", test_signal },
	{ "a signal calls the agent, from the event thread", test_signal_calls_the_agent },
	{ "an IA with armed objects can be closed", test_abrupt_close_of_what_is_armed },
};

UNIT_MAIN("ev_cno", tests)
