/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* The event extension on one EVD: taking several events at once, and counting them. */
#include "test/unit/ev_rig.h"

static void test_dequeue_n_checks(void)
{
	struct evd_sleeper sleeper;
	DAT_EVENT events[4];
	DAT_COUNT n = 77;
	struct rig rig;

	rig_open(&rig, NULL);
	IS(DAT_EVD_DEQUEUE_N(rig.pz, 4, events, &n), BAD_EVD);
	IS(DAT_EVD_DEQUEUE_N(rig.recv, 0, events, &n), ARG(3));
	IS(DAT_EVD_DEQUEUE_N(rig.recv, 4, NULL, &n), ARG(4));
	IS(DAT_EVD_DEQUEUE_N(rig.recv, 4, events, NULL), ARG(5));
	IS(DAT_EVD_PENDING(rig.pz, &n), BAD_EVD);
	IS(DAT_EVD_PENDING(rig.recv, NULL), ARG(3));
	evd_sleep_start(&sleeper, rig.recv);
	IS(DAT_EVD_DEQUEUE_N(rig.recv, 4, events, &n), E(INVALID_STATE, INVALID_STATE_EVD_WAITER));
	CU_ASSERT_EQUAL(n, 77);
	IS(DAT_EVD_PENDING(rig.recv, &n), DAT_SUCCESS);
	CU_ASSERT_EQUAL(n, 0);
	MUST(rig_post_se(rig.recv, 1));
	IS(evd_sleep_end(&sleeper), DAT_SUCCESS);
	IS(DAT_EVD_DEQUEUE_N(rig.recv, 4, events, &n), DAT_QUEUE_EMPTY);
	CU_ASSERT_EQUAL(n, 0);
	rig_close(&rig);
}

static void test_dequeue_n(void)
{
	DAT_EVENT events[RIG_QLEN];
	DAT_COUNT n = 77;
	struct rig rig;
	int i;

	rig_open_ep(&rig);
	rig_connect(&rig);
	rig_receive(&rig, 0);
	rig_receive(&rig, 1);
	MUST(rig_post_se(rig.recv, 2)); /* queued behind the completions */
	for (i = 3; i < 8; i++)
		rig_receive(&rig, (uint64_t)i);
	IS(DAT_EVD_PENDING(rig.recv, &n), DAT_SUCCESS);
	CU_ASSERT_EQUAL(n, 8);
	IS(DAT_EVD_PENDING(rig.recv, &n), DAT_SUCCESS);
	CU_ASSERT_EQUAL(n, 8);
	memset(events, 0xee, sizeof(events));
	IS(DAT_EVD_DEQUEUE_N(rig.recv, 5, events, &n), DAT_SUCCESS);
	CU_ASSERT_EQUAL(n, 5);
	for (i = 0; i < 5; i++) {
		CU_ASSERT_PTR_EQUAL(events[i].evd_handle, rig.recv);
		CU_ASSERT_TRUE(i == 2 ? events[i].event_number == DAT_SOFTWARE_EVENT
				      : rig_cookie(&events[i]) == (uint64_t)i);
	}
	IS(DAT_EVD_DEQUEUE_N(rig.recv, 5, events, &n), DAT_SUCCESS);
	CU_ASSERT_EQUAL(n, 3);
	CU_ASSERT_EQUAL(rig_cookie(&events[2]), 7);
	rig_empty(rig.recv, 0);
	/* suppressed ones do not count */
	MUST(rig_send(&rig, 1, DAT_COMPLETION_SUPPRESS_FLAG));
	rig_complete(rig.request, fake.last.wr_id, DAT_DTO_SUCCESS, 0);
	MUST(rig_send(&rig, 2, DAT_COMPLETION_DEFAULT_FLAG));
	rig_complete(rig.request, fake.last.wr_id, DAT_DTO_SUCCESS, 0);
	IS(DAT_EVD_DEQUEUE_N(rig.request, 5, events, &n), DAT_SUCCESS);
	CU_ASSERT_EQUAL(n, 1);
	CU_ASSERT_EQUAL(rig_cookie(&events[0]), 2);
	rig_close(&rig);
}

static void complete_send(struct rig *rig, uint64_t cookie, DAT_COMPLETION_FLAGS flags,
			  uint32_t status)
{
	MUST(rig_send(rig, cookie, flags));
	rig_complete(rig->recv, fake.last.wr_id, status, 0);
}

/* Both streams on one EVD: runs of either side and of both, in completion order. */
static void test_dequeue_n_of_runs(void)
{
	static const uint64_t order[] = { 0, 1, 2, 10, 11, 12, 4, 5, 13, 14, 15, 6 };
	DAT_EP_ATTR attr = rig_attr();
	DAT_EVENT events[32];
	struct dapl_ep *ep;
	DAT_COUNT n = 0, i;
	struct rig rig;

	rig_open(&rig, NULL);
	MUST(dat_ep_create(rig.ia, rig.pz, rig.recv, rig.recv, rig.conn, &attr, &rig.ep));
	rig_connect(&rig);
	for (i = 0; i < 3; i++)
		complete_send(&rig, (uint64_t)i, DAT_COMPLETION_DEFAULT_FLAG, DAT_DTO_SUCCESS);
	for (i = 10; i < 13; i++)
		rig_receive(&rig, (uint64_t)i);
	complete_send(&rig, 3, DAT_COMPLETION_SUPPRESS_FLAG, DAT_DTO_SUCCESS);
	complete_send(&rig, 4, DAT_COMPLETION_DEFAULT_FLAG, DAT_DTO_SUCCESS);
	complete_send(&rig, 5, DAT_COMPLETION_DEFAULT_FLAG, DAT_DTO_SUCCESS);
	for (i = 13; i < 16; i++)
		rig_receive(&rig, (uint64_t)i);
	complete_send(&rig, 6, DAT_COMPLETION_SUPPRESS_FLAG, DAT_DTO_ERR_FLUSHED);
	memset(events, 0xee, sizeof(events));
	IS(DAT_EVD_DEQUEUE_N(rig.recv, 32, events, &n), DAT_SUCCESS);
	CU_ASSERT_EQUAL_FATAL(n, sizeof(order) / sizeof(order[0]));
	for (i = 0; i < n; i++) {
		const DAT_DTO_COMPLETION_EVENT_DATA *data =
			&events[i].event_data.dto_completion_event_data;

		CU_ASSERT_EQUAL(data->user_cookie.as_64, order[i]);
		CU_ASSERT_PTR_EQUAL(data->ep_handle, rig.ep);
		CU_ASSERT_EQUAL(data->operation, order[i] < 10 ? DAT_DTO_SEND : DAT_DTO_RECEIVE);
		CU_ASSERT_EQUAL(data->transfered_length, order[i] < 10 ? 0 : 10);
		CU_ASSERT_EQUAL(data->status, i == n - 1 ? DAT_DTO_ERR_FLUSHED : DAT_DTO_SUCCESS);
		CU_ASSERT_EQUAL(data->rmr_context, 0);
	}
	ep = rig.ep;
	CU_ASSERT_EQUAL(dto_ring_outstanding(&ep->end.request), 0);
	CU_ASSERT_EQUAL(dto_ring_outstanding(&ep->end.recv), 0);
	CU_ASSERT_EQUAL(ep->end.counters.value[ep_counter_at(DCNT_EP_RECV)], 6);
	CU_ASSERT_EQUAL(ep->end.counters.value[ep_counter_at(DCNT_EP_RECV) + 1], 60);
	IS(DAT_EVD_DEQUEUE_N(rig.recv, 32, events, &n), DAT_QUEUE_EMPTY);
	rig_close(&rig);
}

static void test_dequeue_n_of_a_broken_queue(void)
{
	DAT_EVENT events[4];
	DAT_COUNT n;
	struct rig rig;

	rig_open_ep(&rig);
	rig_connect(&rig);
	rig_receive(&rig, 1);
	MUST(DAT_EVD_PENDING(rig.recv, &n));
	rig_cq(rig.recv)->failing = true;
	IS(DAT_EVD_DEQUEUE_N(rig.recv, 4, events, &n), DAT_SUCCESS);
	CU_ASSERT_EQUAL(n, 1);
	CU_ASSERT_TRUE(DAT_GET_TYPE(DAT_EVD_DEQUEUE_N(rig.recv, 4, events, &n)) != DAT_SUCCESS);
	IS(DAT_EVD_DEQUEUE_N(rig.recv, 4, events, &n), E0(INVALID_STATE));
	CU_ASSERT_EQUAL(rig_take(rig.async).event_number, DAT_ASYNC_ERROR_EVD_OVERFLOW);
	rig_close(&rig);
}

static void test_pending_of_a_full_queue(void)
{
	DAT_COUNT n, i;
	struct rig rig;

	rig_open_ep(&rig);
	rig_connect(&rig);
	for (i = 0; i < RIG_QLEN; i++)
		MUST(rig_post_se(rig.recv, 1));
	rig_receive(&rig, 1);
	MUST(DAT_EVD_PENDING(rig.recv, &n));
	CU_ASSERT_EQUAL(n, RIG_QLEN); /* or more */
	rig_empty(rig.recv, RIG_QLEN + 1);
	rig_close(&rig);
}

static const struct unit_test tests[] = {
	{ "every check of batch and count", test_dequeue_n_checks },
	{ "a batch returns the events of as many dequeues, in order", test_dequeue_n },
	{ "completions of both sides on one EVD keep their order", test_dequeue_n_of_runs },
	{ "a broken CQ returns its events first, then the error",
	  test_dequeue_n_of_a_broken_queue },
	{ "a count equal to the length of the queue means that or more",
	  test_pending_of_a_full_queue },
};

UNIT_MAIN("ev_batch", tests)
