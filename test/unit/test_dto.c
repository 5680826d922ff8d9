/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * Completions: the event that each becomes, the slots that it frees, and what happens to
 * completions without a waiter.
 */
#include "test/unit/rig.h"

static const DAT_DTO_COMPLETION_EVENT_DATA *dto(const DAT_EVENT *event)
{
	CU_ASSERT_EQUAL(event->event_number, DAT_DTO_COMPLETION_EVENT);
	return &event->event_data.dto_completion_event_data;
}

static bool zeroed(const DAT_EVENT *event)
{
	size_t i;

	for (i = 0; i < COUNT(event->event_extension_data); i++)
		if (event->event_extension_data[i])
			return false;
	return true;
}

static void test_receive(void)
{
	DAT_EP_ATTR attr = rig_attr();
	DAT_EVENT event;
	struct rig rig;

	rig_open(&rig, &attr);
	MUST(rig_recv(&rig, 0x1122334455667788));
	rig_complete(rig.recv, fake.last.wr_id, DAT_DTO_SUCCESS, 1234);
	event = rig_take(rig.recv);
	CU_ASSERT_PTR_EQUAL(dto(&event)->ep_handle, rig.ep);
	CU_ASSERT_EQUAL(dto(&event)->user_cookie.as_64, 0x1122334455667788);
	CU_ASSERT_EQUAL(dto(&event)->status, DAT_DTO_SUCCESS);
	CU_ASSERT_EQUAL(dto(&event)->transfered_length, 1234);
	CU_ASSERT_EQUAL(dto(&event)->operation, DAT_DTO_RECEIVE);
	CU_ASSERT_EQUAL(dto(&event)->rmr_context, 0);
	CU_ASSERT_TRUE(zeroed(&event));
	rig_close(&rig);
}

static void test_receive_with_invalidate(void)
{
	DAT_EP_ATTR attr = rig_attr();
	DAT_EVENT event;
	struct rig rig;

	rig_open(&rig, &attr);
	MUST(rig_recv(&rig, 1));
	fake_complete(rig_cq(rig.recv),
		      &(struct ib_completion){ .wr_id = fake.last.wr_id,
					       .flags = IB_WITH_INVALIDATE,
					       .immediate = 0x777 },
		      false);
	event = rig_take(rig.recv);
	CU_ASSERT_EQUAL(dto(&event)->operation, DAT_DTO_RECEIVE_WITH_INVALIDATE);
	CU_ASSERT_EQUAL(dto(&event)->rmr_context, 0x777);
	rig_close(&rig);
}

static void test_requests(void)
{
	DAT_LMR_TRIPLET iov[2] = { { 0x1000, 100, 1 }, { 0x2000, 23, 1 } };
	DAT_RMR_TRIPLET remote = { 0x3000, 1, 2 };
	DAT_EP_ATTR attr = rig_attr();
	DAT_DTO_COOKIE cookie = { .as_64 = 5 };
	DAT_EVENT event;
	struct rig rig;

	rig_open(&rig, &attr);
	rig_connect(&rig);
	/* the device's length of a send or a write is ignored */
	MUST(dat_ep_post_send(rig.ep, 2, iov, cookie, 0));
	rig_complete(rig.request, fake.last.wr_id, DAT_DTO_SUCCESS, 9999);
	event = rig_take(rig.request);
	CU_ASSERT_EQUAL(dto(&event)->operation, DAT_DTO_SEND);
	CU_ASSERT_EQUAL(dto(&event)->transfered_length, 123);
	MUST(dat_ep_post_rdma_write(rig.ep, 2, iov, cookie, &remote, 0));
	rig_complete(rig.request, fake.last.wr_id, DAT_DTO_SUCCESS, 9999);
	event = rig_take(rig.request);
	CU_ASSERT_EQUAL(dto(&event)->operation, DAT_DTO_RDMA_WRITE);
	CU_ASSERT_EQUAL(dto(&event)->transfered_length, 123);
	MUST(dat_ep_post_rdma_read(rig.ep, 2, iov, cookie, &remote, 0));
	rig_complete(rig.request, fake.last.wr_id, DAT_DTO_SUCCESS, 77);
	event = rig_take(rig.request);
	CU_ASSERT_EQUAL(dto(&event)->operation, DAT_DTO_RDMA_READ);
	CU_ASSERT_EQUAL(dto(&event)->transfered_length, 77);
	CU_ASSERT_EQUAL(dto(&event)->user_cookie.as_64, 5);
	rig_close(&rig);
}

static void test_failures_keep_their_operation(void)
{
	static const DAT_DTO_COMPLETION_STATUS statuses[] = {
		DAT_DTO_ERR_FLUSHED,   DAT_DTO_ERR_LOCAL_LENGTH,       DAT_DTO_ERR_REMOTE_ACCESS,
		DAT_DTO_ERR_TRANSPORT, DAT_DTO_ERR_RECEIVER_NOT_READY,
	};
	DAT_RMR_TRIPLET remote = { 0x3000, 1, 2 };
	DAT_EP_ATTR attr = rig_attr();
	DAT_EVENT event;
	size_t i;
	struct rig rig;

	rig_open(&rig, &attr);
	rig_connect(&rig);
	for (i = 0; i < COUNT(statuses); i++) {
		MUST(dat_ep_post_rdma_read(rig.ep, 0, NULL, (DAT_DTO_COOKIE){ .as_64 = i }, &remote,
					   0));
		rig_complete(rig.request, fake.last.wr_id, statuses[i], 500);
		event = rig_take(rig.request);
		CU_ASSERT_EQUAL(dto(&event)->status, statuses[i]);
		CU_ASSERT_EQUAL(dto(&event)->operation, DAT_DTO_RDMA_READ);
		CU_ASSERT_EQUAL(dto(&event)->transfered_length, 0);
		CU_ASSERT_EQUAL(dto(&event)->user_cookie.as_64, i);
	}
	rig_close(&rig);
}

static void test_a_failure_breaks_the_connection_once(void)
{
	DAT_EP_ATTR attr = rig_attr();
	DAT_EVENT event;
	struct rig rig;

	rig_open(&rig, &attr);
	rig_connect(&rig);
	MUST(rig_send(&rig, 1, 0));
	rig_complete(rig.request, fake.last.wr_id, DAT_DTO_ERR_TRANSPORT, 0);
	MUST(rig_send(&rig, 2, 0));
	rig_complete(rig.request, fake.last.wr_id, DAT_DTO_ERR_TRANSPORT, 0);
	rig_take(rig.request);
	rig_take(rig.request);
	fake_run_timers();
	CU_ASSERT_EQUAL(rig_take(rig.conn).event_number, DAT_CONNECTION_EVENT_BROKEN);
	fake_run_timers();
	IS(dat_evd_dequeue(rig.conn, &event), DAT_QUEUE_EMPTY);
	rig_close(&rig);
}

static void test_flush_breaks_nothing(void)
{
	DAT_EP_ATTR attr = rig_attr();
	DAT_EVENT event;
	struct rig rig;

	rig_open(&rig, &attr);
	rig_connect(&rig);
	MUST(rig_recv(&rig, 1));
	rig_complete(rig.recv, fake.last.wr_id, DAT_DTO_ERR_FLUSHED, 0);
	rig_take(rig.recv);
	fake_run_timers();
	IS(dat_evd_dequeue(rig.conn, &event), DAT_QUEUE_EMPTY);
	rig_close(&rig);
}

static void test_suppressed(void)
{
	DAT_EP_ATTR attr = rig_attr();
	DAT_EVENT event;
	struct rig rig;

	rig_open(&rig, &attr);
	rig_connect(&rig);
	MUST(rig_send(&rig, 1, DAT_COMPLETION_SUPPRESS_FLAG));
	CU_ASSERT_FALSE(fake.last.flags & IB_POST_SIGNALED);
	rig_complete(rig.request, fake.last.wr_id, DAT_DTO_SUCCESS, 0);
	IS(dat_evd_dequeue(rig.request, &event), DAT_QUEUE_EMPTY);
	MUST(rig_send(&rig, 2, DAT_COMPLETION_SUPPRESS_FLAG));
	rig_complete(rig.request, fake.last.wr_id, DAT_DTO_ERR_FLUSHED, 0);
	event = rig_take(rig.request);
	CU_ASSERT_EQUAL(rig_cookie(&event), 2);
	/* where both are allowed, SUPPRESS has priority over UNSIGNALLED */
	IS(rig_send(&rig, 3, DAT_COMPLETION_SUPPRESS_FLAG | DAT_COMPLETION_UNSIGNALLED_FLAG),
	   E(INVALID_PARAMETER, INVALID_ARG5));
	rig_close(&rig);
}

static void test_suppressed_slots_come_back_with_a_later_completion(void)
{
	DAT_EP_ATTR attr = rig_attr();
	DAT_EVENT event;
	DAT_BOOLEAN idle;
	struct rig rig;
	uint64_t i;

	rig_open(&rig, &attr);
	rig_connect(&rig);
	for (i = 0; i < 7; i++)
		MUST(rig_send(&rig, i, DAT_COMPLETION_SUPPRESS_FLAG));
	MUST(rig_send(&rig, 7, 0));
	rig_complete(rig.request, fake.last.wr_id, DAT_DTO_SUCCESS, 0);
	event = rig_take(rig.request);
	CU_ASSERT_EQUAL(rig_cookie(&event), 7);
	MUST(dat_ep_get_status(rig.ep, NULL, NULL, &idle));
	CU_ASSERT_EQUAL(idle, DAT_TRUE);
	for (i = 0; i < 8; i++)
		MUST(rig_send(&rig, i, 0));
	IS(rig_send(&rig, 8, 0), E(INSUFFICIENT_RESOURCES, RESOURCE_MEMORY));
	rig_close(&rig);
}

static void test_suppressed_alone_can_go_on_for_ever(void)
{
	uint64_t signalled[64];
	unsigned first = 0, last = 0;
	DAT_EP_ATTR attr = rig_attr();
	DAT_EVENT event;
	struct rig rig;
	int i;

	attr.max_request_dtos = 7;
	rig_open(&rig, &attr);
	rig_connect(&rig);
	for (i = 0; i < 100; i++) {
		/* the device completes signalled requests one request late */
		if (first != last)
			rig_complete(rig.request, signalled[first++ % COUNT(signalled)],
				     DAT_DTO_SUCCESS, 0);
		MUST(rig_send(&rig, (uint64_t)i, DAT_COMPLETION_SUPPRESS_FLAG));
		if (fake.last.flags & IB_POST_SIGNALED)
			signalled[last++ % COUNT(signalled)] = fake.last.wr_id;
	}
	CU_ASSERT_TRUE(last >= 100 / 7);
	CU_ASSERT_TRUE(last <= 100 / 3);
	IS(dat_evd_dequeue(rig.request, &event), DAT_QUEUE_EMPTY);
	rig_close(&rig);
}

static void test_completion_outlives_its_endpoint(void)
{
	DAT_EP_ATTR attr = rig_attr();
	DAT_EP_HANDLE first;
	DAT_EVENT event;
	uint64_t stale;
	struct rig rig;
	int i;

	rig_open(&rig, &attr);
	MUST(rig_recv(&rig, 1));
	stale = fake.last.wr_id;
	first = rig.ep;
	MUST(dat_ep_free(rig.ep));
	/* until the slot is reused */
	for (i = 0; i < 100000; i++) {
		MUST(dat_ep_create(rig.ia, rig.pz, rig.recv, rig.request, rig.conn, &attr,
				   &rig.ep));
		if (rig.ep == first)
			break;
		MUST(dat_ep_free(rig.ep));
	}
	CU_ASSERT_PTR_EQUAL(rig.ep, first);
	MUST(rig_recv(&rig, 2));
	rig_complete(rig.recv, stale, DAT_DTO_SUCCESS, 0);
	IS(dat_evd_dequeue(rig.recv, &event), DAT_QUEUE_EMPTY);
	/* a slot number that was never used */
	rig_complete(rig.recv, ~0ull >> 2, DAT_DTO_SUCCESS, 0);
	IS(dat_evd_dequeue(rig.recv, &event), DAT_QUEUE_EMPTY);
	rig_complete(rig.recv, fake.last.wr_id, DAT_DTO_SUCCESS, 0);
	event = rig_take(rig.recv);
	CU_ASSERT_EQUAL(rig_cookie(&event), 2);
	rig_close(&rig);
}

static void test_events_stay_after_the_endpoint(void)
{
	DAT_EP_ATTR attr = rig_attr();
	DAT_EP_HANDLE gone;
	DAT_EVENT event;
	struct rig rig;

	rig_open(&rig, &attr);
	rig_receive(&rig, 1);
	MUST(rig_post_se(rig.recv, 2)); /* the completion is now in the EVD's queue */
	gone = rig.ep;
	MUST(dat_ep_free(rig.ep));
	rig.ep = DAT_HANDLE_NULL;
	event = rig_take(rig.recv);
	CU_ASSERT_PTR_EQUAL(dto(&event)->ep_handle, gone);
	CU_ASSERT_EQUAL(rig_cookie(&event), 1);
	MUST(dat_evd_dequeue(rig.recv, &event));
	rig_close(&rig);
}

/* ---- one EVD for everything ---- */

static void open_merged(struct rig *rig)
{
	DAT_EP_ATTR attr = rig_attr();

	rig_open(rig, NULL);
	MUST(dat_evd_free(rig->conn));
	MUST(dat_evd_free(rig->recv));
	rig->conn = rig->recv = rig_evd(rig, RIG_QLEN, DAT_EVD_DEFAULT_FLAG);
	MUST(dat_ep_create(rig->ia, rig->pz, rig->recv, rig->request, rig->conn, &attr, &rig->ep));
}

static void close_merged(struct rig *rig)
{
	MUST(dat_ep_free(rig->ep));
	rig->ep = DAT_HANDLE_NULL;
	rig->conn = rig_evd(rig, 1, DAT_EVD_CONNECTION_FLAG);
	rig_close(rig);
}

static void test_established_precedes_the_first_receive(void)
{
	DAT_EVENT event;
	DAT_COUNT more;
	struct rig rig;

	open_merged(&rig);
	MUST(rig_recv(&rig, 1));
	rig_start_connect(&rig);
	rig_complete(rig.recv, fake.last.wr_id, DAT_DTO_SUCCESS, 0);
	IS(dat_evd_dequeue(rig.recv, &event), DAT_QUEUE_EMPTY);
	IS(dat_evd_wait(rig.recv, 1000, 1, &event, &more), DAT_TIMEOUT_EXPIRED);
	rig_establish();
	MUST(dat_evd_wait(rig.recv, 0, 2, &event, &more));
	CU_ASSERT_EQUAL(event.event_number, DAT_CONNECTION_EVENT_ESTABLISHED);
	CU_ASSERT_EQUAL(more, 1);
	event = rig_take(rig.recv);
	CU_ASSERT_EQUAL(rig_cookie(&event), 1);
	close_merged(&rig);
}

static void test_held_completion_of_a_freed_endpoint(void)
{
	DAT_EVENT event;
	struct rig rig;

	open_merged(&rig);
	MUST(rig_recv(&rig, 1));
	rig_start_connect(&rig);
	rig_complete(rig.recv, fake.last.wr_id, DAT_DTO_SUCCESS, 0);
	IS(dat_evd_dequeue(rig.recv, &event), DAT_QUEUE_EMPTY);
	MUST(dat_ep_free(rig.ep));
	/* the end was reported, and no event of the freed endpoint follows it */
	CU_ASSERT_EQUAL(rig_take(rig.recv).event_number, DAT_CONNECTION_EVENT_DISCONNECTED);
	while (dat_evd_dequeue(rig.recv, &event) == DAT_SUCCESS)
		CU_ASSERT_PTR_EQUAL(dto(&event)->ep_handle, rig.ep);
	rig.ep = DAT_HANDLE_NULL;
	rig.conn = rig_evd(&rig, 1, DAT_EVD_CONNECTION_FLAG);
	rig_close(&rig);
}

static void test_success_precedes_the_end(void)
{
	DAT_EVENT event;
	struct rig rig;

	open_merged(&rig);
	MUST(rig_recv(&rig, 1));
	rig_start_connect(&rig);
	rig_establish();
	rig_complete(rig.recv, fake.last.wr_id, DAT_DTO_SUCCESS, 0);
	fake.upcalls.conn(rig.ep, fake.conn, IB_CONN_DISCONNECTED, NULL, 0);
	CU_ASSERT_EQUAL(rig_take(rig.recv).event_number, DAT_CONNECTION_EVENT_ESTABLISHED);
	event = rig_take(rig.recv);
	CU_ASSERT_EQUAL(rig_cookie(&event), 1);
	CU_ASSERT_EQUAL(rig_take(rig.recv).event_number, DAT_CONNECTION_EVENT_DISCONNECTED);
	close_merged(&rig);
}

static const struct unit_test tests[] = {
	{ "a receive", test_receive },
	{ "a receive with invalidate has the RMR context", test_receive_with_invalidate },
	{ "events of sends, writes and reads have length and cookie", test_requests },
	{ "failures keep number, cookie and operation", test_failures_keep_their_operation },
	{ "the first failure breaks the connection, once",
	  test_a_failure_breaks_the_connection_once },
	{ "a flush does not break the connection", test_flush_breaks_nothing },
	{ "a suppressed success makes no event, a failure does", test_suppressed },
	{ "C37: a later completion retires suppressed requests",
	  test_suppressed_slots_come_back_with_a_later_completion },
	{ "suppressed requests alone never fill the queue",
	  test_suppressed_alone_can_go_on_for_ever },
	{ "a completion that outlives its endpoint is dropped",
	  test_completion_outlives_its_endpoint },
	{ "queued events outlive the endpoint", test_events_stay_after_the_endpoint },
	{ "ESTABLISHED precedes the first receive on one EVD",
	  test_established_precedes_the_first_receive },
	{ "a completion that is held back is dropped with its endpoint",
	  test_held_completion_of_a_freed_endpoint },
	{ "successful completions come before the end", test_success_precedes_the_end },
};

UNIT_MAIN("dto", tests)
