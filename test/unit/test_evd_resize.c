/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Longer and shorter queues: no event is lost, their order stays, and a failure changes nothing. */
#include "test/unit/rig.h"

static DAT_COUNT qlen_of(DAT_EVD_HANDLE evd)
{
	DAT_EVD_PARAM param;

	MUST(dat_evd_query(evd, DAT_EVD_FIELD_ALL, &param));
	return param.evd_qlen;
}

static void test_checks(void)
{
	struct rig rig;

	rig_open(&rig, NULL);
	IS(dat_evd_resize(rig.pz, 4), E(INVALID_HANDLE, INVALID_HANDLE_EVD_REQUEST));
	IS(dat_evd_resize(rig.recv, 0), E(INVALID_PARAMETER, INVALID_ARG2));
	IS(dat_evd_resize(rig.recv, -1), E(INVALID_PARAMETER, INVALID_ARG2));
	IS(dat_evd_resize(rig.recv, FAKE_MAX_CQE + 1), E(INVALID_PARAMETER, INVALID_ARG2));
	MUST(dat_evd_resize(rig.recv, FAKE_MAX_CQE));
	MUST(dat_evd_resize(rig.recv, RIG_QLEN));
	CU_ASSERT_TRUE(qlen_of(rig.recv) >= RIG_QLEN);
	rig_close(&rig);
}

static void test_order_stays(void)
{
	DAT_EP_ATTR attr = rig_attr();
	DAT_EVENT event;
	struct rig rig;
	uint64_t i;

	rig_open(&rig, &attr);
	/* the head is not at the start of the ring, and the latest completion is still in the CQ */
	MUST(rig_post_se(rig.recv, 90));
	MUST(rig_post_se(rig.recv, 91));
	rig_take(rig.recv);
	rig_receive(&rig, 1);
	MUST(rig_post_se(rig.recv, 92));
	rig_receive(&rig, 2);
	rig_receive(&rig, 3);
	IS(dat_evd_resize(rig.recv, 4), E0(INVALID_STATE)); /* five are pending */
	CU_ASSERT_EQUAL(qlen_of(rig.recv), RIG_QLEN);
	MUST(dat_evd_resize(rig.recv, 5));
	MUST(dat_evd_resize(rig.recv, 500));
	CU_ASSERT_TRUE(qlen_of(rig.recv) >= 500);
	CU_ASSERT_TRUE(ib_cq_entries(rig_cq(rig.recv)) >= 500);
	rig_receive(&rig, 4);
	event = rig_take(rig.recv);
	CU_ASSERT_EQUAL((uintptr_t)event.event_data.software_event_data.pointer, 91);
	event = rig_take(rig.recv);
	CU_ASSERT_EQUAL(rig_cookie(&event), 1);
	event = rig_take(rig.recv);
	CU_ASSERT_EQUAL((uintptr_t)event.event_data.software_event_data.pointer, 92);
	for (i = 2; i <= 4; i++) {
		event = rig_take(rig.recv);
		CU_ASSERT_EQUAL(rig_cookie(&event), i);
	}
	IS(dat_evd_dequeue(rig.recv, &event), DAT_QUEUE_EMPTY);
	rig_close(&rig);
}

static void test_length_is_what_fits(void)
{
	DAT_EVD_HANDLE evd;
	struct rig rig;
	DAT_COUNT i;

	rig_open(&rig, NULL);
	evd = rig_evd(&rig, 2, DAT_EVD_SOFTWARE_FLAG);
	MUST(rig_post_se(evd, 1));
	MUST(rig_post_se(evd, 2));
	IS(rig_post_se(evd, 3), E0(QUEUE_FULL));
	MUST(dat_evd_resize(evd, 100));
	for (i = 2; i < 100; i++)
		MUST(rig_post_se(evd, (uintptr_t)i + 1));
	IS(rig_post_se(evd, 3), E0(QUEUE_FULL));
	for (i = 0; i < 100; i++) {
		DAT_EVENT event = rig_take(evd);

		CU_ASSERT_EQUAL((uintptr_t)event.event_data.software_event_data.pointer,
				(uintptr_t)i + 1);
	}
	MUST(dat_evd_free(evd));
	rig_close(&rig);
}

static void test_device_that_refuses(void)
{
	struct rig rig;
	int entries;

	rig_open(&rig, NULL);
	entries = ib_cq_entries(rig_cq(rig.request));
	fake.refuse = E0(INTERNAL_ERROR);
	IS(dat_evd_resize(rig.request, entries + 1), E(INSUFFICIENT_RESOURCES, RESOURCE_TEVD));
	CU_ASSERT_EQUAL(qlen_of(rig.request), RIG_QLEN);
	/* the queue is long enough, so the device is not called */
	fake.refuse = E0(INTERNAL_ERROR);
	MUST(dat_evd_resize(rig.request, entries));
	fake.refuse = DAT_SUCCESS;
	rig_close(&rig);
}

static void *wait_run(void *evd)
{
	DAT_EVENT event;
	DAT_COUNT more;

	CU_ASSERT_EQUAL(dat_evd_wait(evd, DAT_TIMEOUT_INFINITE, 1, &event, &more), DAT_SUCCESS);
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

static void test_states(void)
{
	pthread_t thread;
	struct rig rig;

	rig_open(&rig, NULL);
	CU_ASSERT_EQUAL_FATAL(pthread_create(&thread, NULL, wait_run, rig.recv), 0);
	CU_ASSERT_TRUE(unit_wait_for(is_asleep, rig.recv, UNIT_PATIENCE));
	IS(dat_evd_resize(rig.recv, 20), E(INVALID_STATE, INVALID_STATE_EVD_WAITER));
	MUST(rig_post_se(rig.recv, 1));
	CU_ASSERT_EQUAL(pthread_join(thread, NULL), 0);
	fake.upcalls.async(&fake.devices[0], IB_ASYNC_CQ_ERROR, rig.recv);
	IS(dat_evd_resize(rig.recv, 20), E0(INVALID_STATE));
	rig_take(rig.async);
	MUST(dat_evd_resize(rig.async, 20));
	rig_close(&rig);
}

static const struct unit_test tests[] = {
	{ "checks of handle and length", test_checks },
	{ "a resize loses no event, keeps the order, and counts the CQ's completions",
	  test_order_stays },
	{ "the queue holds exactly as many events as its length", test_length_is_what_fits },
	{ "a device that refuses changes nothing; one that need not resize is not called",
	  test_device_that_refuses },
	{ "waiter, ERROR, async EVD", test_states },
};

UNIT_MAIN("evd_resize", tests)
