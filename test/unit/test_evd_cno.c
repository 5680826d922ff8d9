/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* An event dispatcher and its CNO: attaching, enabling, and which completions trigger. */
#include "test/unit/cno_rig.h"

static void on_trigger(DAT_PVOID data, DAT_EVD_HANDLE evd)
{
	(void)data;
	(void)evd;
}

static void test_checks(void)
{
	DAT_EVD_PARAM param;
	DAT_EVD_HANDLE evd;
	DAT_CNO_HANDLE cno;
	struct rig rig;

	rig_open(&rig, NULL);
	cno = rig_cno(&rig);
	IS(dat_evd_modify_cno(rig.pz, cno), E(INVALID_HANDLE, INVALID_HANDLE_EVD_REQUEST));
	IS(dat_evd_modify_cno(rig.recv, rig.pz), E(INVALID_HANDLE, INVALID_HANDLE_CNO));
	IS(dat_evd_enable(rig.pz), E(INVALID_HANDLE, INVALID_HANDLE_EVD_REQUEST));
	IS(dat_evd_disable(rig.pz), E(INVALID_HANDLE, INVALID_HANDLE_EVD_REQUEST));
	MUST(dat_cno_free(cno));
	MUST(dat_cno_create(rig.ia, (DAT_OS_WAIT_PROXY_AGENT){ NULL, on_trigger }, &cno));
	fake.refuse = E(INSUFFICIENT_RESOURCES, RESOURCE_MEMORY);
	IS(dat_evd_modify_cno(rig.recv, cno), E(INSUFFICIENT_RESOURCES, RESOURCE_MEMORY));
	MUST(dat_evd_modify_cno(rig.recv, cno));
	CU_ASSERT_TRUE(rig_cq(rig.recv)->watched);
	MUST(dat_evd_modify_cno(rig.recv, DAT_HANDLE_NULL));
	CU_ASSERT_FALSE(rig_cq(rig.recv)->watched);
	MUST(dat_cno_free(cno)); /* the failed attach left nothing behind */
	cno = rig_cno(&rig);
	evd = rig_evd_on(&rig, cno, DAT_EVD_DTO_FLAG);
	MUST(dat_evd_query(evd, DAT_EVD_FIELD_ALL, &param));
	CU_ASSERT_PTR_EQUAL(param.cno_handle, cno);
	MUST(dat_evd_disable(evd));
	MUST(dat_evd_disable(evd));
	MUST(dat_evd_query(evd, DAT_EVD_FIELD_ALL, &param));
	CU_ASSERT_EQUAL(param.evd_state & 0xf, DAT_EVD_STATE_DISABLED | DAT_EVD_STATE_WAITABLE);
	MUST(dat_evd_enable(evd));
	MUST(dat_evd_enable(evd));
	MUST(dat_evd_modify_cno(evd, cno));
	MUST(dat_evd_modify_cno(evd, DAT_HANDLE_NULL));
	MUST(dat_evd_query(evd, DAT_EVD_FIELD_ALL, &param));
	CU_ASSERT_PTR_NULL(param.cno_handle);
	MUST(dat_evd_free(evd));
	MUST(dat_cno_free(cno));
	rig_close(&rig);
}

static void test_attach_and_enable_tell_of_pending_events(void)
{
	DAT_CNO_HANDLE cno, second;
	DAT_EVD_HANDLE evd;
	struct rig rig;

	rig_open(&rig, NULL);
	cno = rig_cno(&rig);
	second = rig_cno(&rig);
	evd = rig_evd(&rig, RIG_QLEN, DAT_EVD_SOFTWARE_FLAG);
	MUST(rig_post_se(evd, 1));
	MUST(dat_evd_modify_cno(evd, cno));
	rig_named(cno, evd);
	MUST(dat_evd_modify_cno(evd, cno)); /* has no effect but a poll */
	MUST(dat_evd_modify_cno(evd, second));
	rig_named(cno, NULL);
	rig_named(second, evd);
	MUST(dat_evd_disable(evd));
	MUST(rig_post_se(evd, 2));
	rig_named(second, NULL);
	MUST(dat_evd_enable(evd));
	rig_named(second, evd);
	rig_take(evd);
	rig_take(evd);
	MUST(dat_evd_enable(evd));
	rig_named(second, NULL);
	MUST(dat_evd_free(evd));
	MUST(dat_cno_free(cno));
	MUST(dat_cno_free(second));
	rig_close(&rig);
}

static void open_on_cno(struct rig *rig, DAT_CNO_HANDLE *cno, DAT_COMPLETION_FLAGS recv)
{
	DAT_EP_ATTR attr = rig_attr();

	rig_open(rig, NULL);
	*cno = rig_cno(rig);
	MUST(dat_evd_free(rig->recv));
	rig->recv = rig_evd_on(rig, *cno, DAT_EVD_DTO_FLAG);
	attr.recv_completion_flags = recv;
	MUST(dat_ep_create(rig->ia, rig->pz, rig->recv, rig->request, rig->conn, &attr, &rig->ep));
}

static void close_on_cno(struct rig *rig, DAT_CNO_HANDLE cno)
{
	MUST(dat_evd_modify_cno(rig->recv, DAT_HANDLE_NULL));
	MUST(dat_cno_free(cno));
	rig_close(rig);
}

static void test_completions_trigger_and_rearm(void)
{
	DAT_CNO_HANDLE cno;
	struct rig rig;

	open_on_cno(&rig, &cno, DAT_COMPLETION_DEFAULT_FLAG);
	CU_ASSERT_TRUE(rig_cq(rig.recv)->armed);
	rig_receive(&rig, 1);
	CU_ASSERT_FALSE(rig_cq(rig.recv)->armed);
	rig_named(cno, rig.recv);
	CU_ASSERT_TRUE(rig_cq(rig.recv)->armed); /* re-armed before the trigger */
	/* a completion that was taken before the poll does not trigger */
	rig_take(rig.recv);
	rig_receive(&rig, 2);
	rig_take(rig.recv);
	rig_named(cno, NULL);
	CU_ASSERT_TRUE(rig_cq(rig.recv)->armed);
	/* disabled: no trigger and no further wake-up; enabled: both */
	rig_receive(&rig, 3);
	MUST(dat_evd_disable(rig.recv));
	rig_named(cno, NULL);
	CU_ASSERT_FALSE(rig_cq(rig.recv)->armed);
	MUST(dat_evd_enable(rig.recv));
	CU_ASSERT_TRUE(rig_cq(rig.recv)->armed);
	rig_named(cno, rig.recv);
	rig_take(rig.recv);
	close_on_cno(&rig, cno);
}

static void test_unsignalled_triggers_by_the_flag_of_the_post(void)
{
	DAT_COMPLETION_FLAGS flag = DAT_COMPLETION_UNSIGNALLED_FLAG;
	DAT_CNO_HANDLE cno;
	struct rig rig;

	open_on_cno(&rig, &cno, flag);
	MUST(dat_ep_post_recv(rig.ep, 0, NULL, (DAT_DTO_COOKIE){ .as_64 = 1 }, flag));
	rig_complete(rig.recv, fake.last.wr_id, DAT_DTO_SUCCESS, 0);
	rig_named(cno, NULL);
	CU_ASSERT_TRUE(rig_cq(rig.recv)->armed);
	rig_receive(&rig, 2);
	rig_named(cno, rig.recv);
	rig_take(rig.recv);
	rig_take(rig.recv);
	close_on_cno(&rig, cno);
}

static void test_solicited_triggers_by_the_flag_of_the_send(void)
{
	struct ib_completion plain = { .status = DAT_DTO_SUCCESS };
	DAT_CNO_HANDLE cno;
	struct rig rig;

	open_on_cno(&rig, &cno, DAT_COMPLETION_SOLICITED_WAIT_FLAG);
	CU_ASSERT_TRUE(rig_cq(rig.recv)->solicited_only);
	MUST(rig_recv(&rig, 1));
	plain.wr_id = fake.last.wr_id;
	fake_complete(rig_cq(rig.recv), &plain, false);
	CU_ASSERT_FALSE(rig_readable(rig_cq(rig.recv)->fd));
	MUST(rig_recv(&rig, 2));
	plain.wr_id = fake.last.wr_id;
	fake_complete(rig_cq(rig.recv), &plain, true);
	rig_named(cno, rig.recv);
	CU_ASSERT_TRUE(rig_cq(rig.recv)->solicited_only);
	rig_take(rig.recv);
	rig_take(rig.recv);
	close_on_cno(&rig, cno);
}

/* ---- a waiter takes the event: no trigger ---- */

struct evd_waiter {
	pthread_t thread;
	DAT_EVD_HANDLE evd;
	DAT_COUNT threshold, more;
	DAT_EVENT event;
	DAT_RETURN status;
};

static void *evd_wait_run(void *arg)
{
	struct evd_waiter *w = arg;

	w->status = dat_evd_wait(w->evd, DAT_TIMEOUT_INFINITE, w->threshold, &w->event, &w->more);
	return NULL;
}

static bool is_asleep(void *handle)
{
	struct dapl_evd *evd = handle;
	bool asleep;

	lock_acquire(&evd->lock);
	asleep = evd->state & EVD_WAITED && !(evd->notes & EVD_MAY_RETURN);
	lock_release(&evd->lock);
	return asleep;
}

static void evd_wait_start(struct evd_waiter *w, DAT_EVD_HANDLE evd, DAT_COUNT threshold)
{
	*w = (struct evd_waiter){ .evd = evd, .threshold = threshold };
	CU_ASSERT_EQUAL_FATAL(pthread_create(&w->thread, NULL, evd_wait_run, w), 0);
	CU_ASSERT_TRUE(unit_wait_for(is_asleep, evd, UNIT_PATIENCE));
}

static void test_waiter_is_the_delivery(void)
{
	DAT_CNO_HANDLE cno;
	struct evd_waiter w;
	struct rig rig;

	open_on_cno(&rig, &cno, DAT_COMPLETION_DEFAULT_FLAG);
	evd_wait_start(&w, rig.recv, 1);
	/* legal, and without effect on the waiter */
	MUST(dat_evd_modify_cno(rig.recv, DAT_HANDLE_NULL));
	MUST(dat_evd_modify_cno(rig.recv, cno));
	CU_ASSERT_TRUE(is_asleep(rig.recv));
	rig_receive(&rig, 7);
	fake_fire(rig_cq(rig.recv)); /* in any thread that reads the channel */
	CU_ASSERT_TRUE_FATAL(unit_join(w.thread));
	IS(w.status, DAT_SUCCESS);
	CU_ASSERT_EQUAL(rig_cookie(&w.event), 7);
	rig_named(cno, NULL);
	CU_ASSERT_TRUE(rig_cq(rig.recv)->armed); /* completions trigger the CNO again */
	rig_receive(&rig, 8);
	rig_named(cno, rig.recv);
	rig_take(rig.recv);
	close_on_cno(&rig, cno);
}

static void test_waiter_of_more_leaves_what_it_was_told_of(void)
{
	DAT_CNO_HANDLE cno;
	DAT_EVD_HANDLE evd;
	struct evd_waiter w;
	struct rig rig;

	rig_open(&rig, NULL);
	cno = rig_cno(&rig);
	evd = rig_evd_on(&rig, cno, DAT_EVD_DTO_FLAG | DAT_EVD_SOFTWARE_FLAG);
	evd_wait_start(&w, evd, 3);
	CU_ASSERT_TRUE(unit_wait_for(is_asleep, evd, UNIT_PATIENCE));
	MUST(rig_post_se(evd, 1));
	MUST(rig_post_se(evd, 2));
	MUST(rig_post_se(evd, 3));
	CU_ASSERT_TRUE_FATAL(unit_join(w.thread));
	IS(w.status, DAT_SUCCESS);
	CU_ASSERT_EQUAL(w.more, 2);
	rig_named(cno, NULL); /* the waiter's nmore has reported it */
	evd_wait_start(&w, evd, 4);
	MUST(dat_evd_set_unwaitable(evd)); /* the waiter takes none of the two events */
	CU_ASSERT_TRUE_FATAL(unit_join(w.thread));
	IS(w.status, E(INVALID_STATE, INVALID_STATE_EVD_UNWAITABLE));
	rig_named(cno, evd);
	rig_take(evd);
	rig_take(evd);
	MUST(dat_evd_free(evd));
	MUST(dat_cno_free(cno));
	rig_close(&rig);
}

static bool waits_for_three(void *arg)
{
	return ((struct ib_cq *)arg)->moderation == 3;
}

static void test_threshold_moderates_the_device(void)
{
	struct evd_waiter w;
	struct rig rig;
	DAT_EP_ATTR attr = rig_attr();

	rig_open(&rig, &attr);
	evd_wait_start(&w, rig.recv, 1);
	rig_receive(&rig, 1);
	CU_ASSERT_TRUE_FATAL(unit_join(w.thread));
	CU_ASSERT_EQUAL(rig_cq(rig.recv)->moderation, 1);
	evd_wait_start(&w, rig.recv, 3);
	CU_ASSERT_TRUE(unit_wait_for(waits_for_three, rig_cq(rig.recv), UNIT_PATIENCE));
	rig_receive(&rig, 1);
	rig_receive(&rig, 2);
	rig_receive(&rig, 3);
	CU_ASSERT_TRUE_FATAL(unit_join(w.thread));
	IS(w.status, DAT_SUCCESS);
	rig_take(rig.recv);
	rig_take(rig.recv);
	rig_close(&rig);
}

static const struct unit_test tests[] = {
	{ "checks, query, idempotence", test_checks },
	{ "attach and enable trigger for pending events; detach withdraws the trigger",
	  test_attach_and_enable_tell_of_pending_events },
	{ "event, re-arm, trigger", test_completions_trigger_and_rearm },
	{ "UNSIGNALLED requests trigger by the flag of the post",
	  test_unsignalled_triggers_by_the_flag_of_the_post },
	{ "SOLICITED_WAIT receives trigger by the sender's flag",
	  test_solicited_triggers_by_the_flag_of_the_send },
	{ "an event that a waiter takes does not trigger the CNO", test_waiter_is_the_delivery },
	{ "the end of a wait triggers for events that nmore did not count",
	  test_waiter_of_more_leaves_what_it_was_told_of },
	{ "a threshold is passed to the device", test_threshold_moderates_the_device },
};

UNIT_MAIN("evd_cno", tests)
