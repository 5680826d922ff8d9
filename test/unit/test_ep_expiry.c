/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* The timeouts of an endpoint; the test controls the clock. */
#include "test/unit/rig_clock.h"

static void test_no_answer(void)
{
	DAT_EP_ATTR attr = rig_attr();
	struct rig rig;

	rig_open(&rig, &attr);
	rig_connect(&rig);
	MUST(dat_ep_disconnect(rig.ep, DAT_CLOSE_ABRUPT_FLAG));
	CU_ASSERT_TRUE(fake.qp->error);
	pass(100);
	expect_nothing(rig.conn);
	CU_ASSERT_EQUAL(state_of(rig.ep), DAT_EP_STATE_DISCONNECT_PENDING);
	pass(150);
	expect_only(rig.conn, DAT_CONNECTION_EVENT_DISCONNECTED);
	CU_ASSERT_EQUAL(state_of(rig.ep), DAT_EP_STATE_DISCONNECTED);
	pass(1000);
	expect_nothing(rig.conn);
	rig_close(&rig);
}

static void test_graceful(void)
{
	DAT_EP_ATTR attr = rig_attr();
	struct rig rig;

	rig_open(&rig, &attr);
	rig_connect(&rig);
	MUST(rig_send(&rig, 1, 0));
	MUST(dat_ep_disconnect(rig.ep, DAT_CLOSE_GRACEFUL_FLAG));
	pass(4900);
	CU_ASSERT_FALSE(fake.qp->error);
	MUST(dat_ep_disconnect(rig.ep, DAT_CLOSE_GRACEFUL_FLAG)); /* no effect */
	pass(100);
	/* the request has timed out; now the peer is notified */
	CU_ASSERT_TRUE(fake.qp->error);
	expect_nothing(rig.conn);
	pass(250);
	expect_only(rig.conn, DAT_CONNECTION_EVENT_DISCONNECTED);
	rig_close(&rig);
}

static void test_hastened(void)
{
	DAT_EP_ATTR attr = rig_attr();
	struct rig rig;

	rig_open(&rig, &attr);
	rig_connect(&rig);
	MUST(rig_send(&rig, 1, 0));
	MUST(dat_ep_disconnect(rig.ep, DAT_CLOSE_GRACEFUL_FLAG));
	pass(1);
	MUST(dat_ep_disconnect(rig.ep, DAT_CLOSE_ABRUPT_FLAG));
	pass(0);
	expect_only(rig.conn, DAT_CONNECTION_EVENT_DISCONNECTED);
	rig_close(&rig);
}

static void test_connect_timeout(void)
{
	DAT_EP_ATTR attr = rig_attr();
	struct rig rig;
	DAT_IA_ATTR ia;

	rig_open(&rig, &attr);
	MUST(dat_ia_query(rig.ia, NULL, DAT_IA_FIELD_IA_ADDRESS_PTR, &ia, 0, NULL));
	MUST(dat_ep_connect(rig.ep, ia.ia_address_ptr, 4711, 3000000, 0, NULL, 0, 0));
	pass(2900);
	expect_nothing(rig.conn);
	pass(100);
	expect_only(rig.conn, DAT_CONNECTION_EVENT_TIMED_OUT);
	CU_ASSERT_EQUAL(fake.conns, 0); /* a late answer makes no connection */
	MUST(dat_ep_reset(rig.ep));
	rig_connect(&rig);
	pass(10000);
	/* the second attempt does not inherit the deadline of the first */
	expect_nothing(rig.conn);
	rig_close(&rig);
}

/* Fails the request on the device; the consumer does not poll. */
static void fail_request(struct rig *rig, uint64_t wr_id)
{
	rig_complete(rig->request, wr_id, DAT_DTO_ERR_TRANSPORT, 0);
}

static void test_unread_failure(void)
{
	DAT_EP_ATTR attr = rig_attr();
	struct rig rig;

	rig_open(&rig, &attr);
	rig_connect(&rig);
	MUST(rig_send(&rig, 1, 0));
	pass(4000);
	expect_nothing(rig.conn); /* the peer may take any time */
	fail_request(&rig, fake.last.wr_id);
	pass(2000);
	expect_only(rig.conn, DAT_CONNECTION_EVENT_BROKEN);
	CU_ASSERT_EQUAL(state_of(rig.ep), DAT_EP_STATE_DISCONNECTED);
	pass(10000);
	expect_nothing(rig.conn);
	/* the completion is still there, once */
	CU_ASSERT_EQUAL(rig_take(rig.request).event_data.dto_completion_event_data.status,
			DAT_DTO_ERR_TRANSPORT);
	expect_nothing(rig.request);
	rig_close(&rig);
}

/* The failed completion does not fit into the EVD, so the provider queries the QP. */
static void test_unread_failure_behind(void)
{
	DAT_EP_ATTR attr = rig_attr();
	struct rig rig;
	unsigned i, room;

	rig_open(&rig, &attr);
	rig_connect(&rig);
	room = ((struct dapl_evd *)rig.request)->completions_max;
	for (i = 0; i < room; i++) {
		MUST(rig_send(&rig, i, 0));
		rig_complete(rig.request, fake.last.wr_id, DAT_DTO_SUCCESS, 0);
		if (i % RIG_QLEN == RIG_QLEN - 1)
			pass(4000); /* drained into the EVD, so that the QP has room for the next ones */
	}
	pass(4000);
	MUST(rig_send(&rig, i, 0));
	fail_request(&rig, fake.last.wr_id);
	pass(4000);
	expect_nothing(rig.conn); /* as long as the device reports no error, the connection stays */
	fake.qp->error = true;
	pass(2000);
	expect_only(rig.conn, DAT_CONNECTION_EVENT_BROKEN);
	for (i = 0; i < room; i++)
		CU_ASSERT_EQUAL(rig_take(rig.request).event_data.dto_completion_event_data.status,
				DAT_DTO_SUCCESS);
	CU_ASSERT_EQUAL(rig_take(rig.request).event_data.dto_completion_event_data.status,
			DAT_DTO_ERR_TRANSPORT);
	rig_close(&rig);
}

/*
 * Completions that the consumer takes in time are left in the CQ: the provider does not drain them.
 */
static void test_read_in_time(void)
{
	DAT_EP_ATTR attr = rig_attr();
	struct rig rig;
	unsigned i;

	rig_open(&rig, &attr);
	rig_connect(&rig);
	for (i = 0; i < 4; i++) {
		MUST(rig_send(&rig, i, 0));
		rig_complete(rig.request, fake.last.wr_id, DAT_DTO_SUCCESS, 0);
		rig_take(rig.request);
		MUST(rig_send(&rig, i, 0));
		rig_complete(rig.request, fake.last.wr_id, DAT_DTO_SUCCESS, 0);
		pass(2000);
		CU_ASSERT_EQUAL(((struct dapl_evd *)rig.request)->tail,
				((struct dapl_evd *)rig.request)->head);
		rig_take(rig.request);
	}
	rig_close(&rig);
}

/* Last-WQE notices of an endpoint on an SRQ. */
struct noticed {
	struct rig rig;
	DAT_SRQ_HANDLE srq;
};

static void noticed_open(struct noticed *n)
{
	DAT_SRQ_ATTR attr = { .max_recv_dtos = 4, .max_recv_iov = 1 };

	rig_open(&n->rig, NULL);
	MUST(dat_srq_create(n->rig.ia, n->rig.pz, &attr, &n->srq));
}

static void noticed_end(struct noticed *n)
{
	DAT_EP_ATTR attr = { .max_request_dtos = 4, .max_request_iov = 1 };
	struct rig *rig = &n->rig;

	MUST(dat_ep_create_with_srq(rig->ia, rig->pz, rig->recv, rig->request, rig->conn, n->srq,
				    &attr, &rig->ep));
	rig_connect(rig);
	fake.upcalls.conn(fake.conn->owner, fake.conn, IB_CONN_DISCONNECTED, NULL, 0);
	expect_only(rig->conn, DAT_CONNECTION_EVENT_DISCONNECTED);
}

static void expect_notice(const struct rig *rig)
{
	DAT_EVENT event = rig_take(rig->async);

	CU_ASSERT_EQUAL(event.event_number, DAT_ASYNC_ERROR_EP_BROKEN);
	CU_ASSERT_PTR_EQUAL(event.event_data.asynch_error_event_data.dat_handle, rig->ep);
}

static void noticed_free_ep(struct noticed *n)
{
	MUST(dat_ep_free(n->rig.ep));
	n->rig.ep = DAT_HANDLE_NULL;
}

static void noticed_close(struct noticed *n)
{
	MUST(dat_srq_free(n->srq));
	rig_close(&n->rig);
}

/* If the device never reports the last WQE, the notice is made one second later. */
static void test_notice(void)
{
	struct noticed n;

	noticed_open(&n);
	noticed_end(&n);
	pass(900);
	expect_nothing(n.rig.async);
	pass(100);
	expect_notice(&n.rig);
	/* the device reports it too late */
	fake.upcalls.async(&fake.devices[0], IB_ASYNC_QP_LAST_WQE, n.rig.ep);
	pass(1000);
	expect_nothing(n.rig.async);
	noticed_free_ep(&n);
	noticed_close(&n);
}

/* After one timeout the next waits are shorter, until the device reports a last WQE again. */
static void test_silent(void)
{
	struct noticed n;

	noticed_open(&n);
	noticed_end(&n);
	pass(1000);
	expect_notice(&n.rig);
	noticed_free_ep(&n);
	noticed_end(&n);
	pass(90);
	expect_nothing(n.rig.async);
	pass(10);
	expect_notice(&n.rig);
	noticed_free_ep(&n);
	noticed_end(&n);
	fake.upcalls.async(&fake.devices[0], IB_ASYNC_QP_LAST_WQE, n.rig.ep);
	fake_run_timers();
	expect_notice(&n.rig);
	noticed_free_ep(&n);
	noticed_end(&n);
	pass(900);
	expect_nothing(n.rig.async);
	pass(100);
	expect_notice(&n.rig);
	noticed_free_ep(&n);
	noticed_close(&n);
}

static const struct unit_test tests[] = {
	{ "the peer has 250 ms to answer", test_no_answer },
	{ "requests have 5 s to complete", test_graceful },
	{ "an abrupt disconnect ends a graceful one", test_hastened },
	{ "an attempt ends at the consumer's timeout", test_connect_timeout },
	{ "a failed completion that is not read ends the connection", test_unread_failure },
	{ "so does a failed completion behind others that are not read",
	  test_unread_failure_behind },
	{ "completions that the consumer reads in time stay in the CQ", test_read_in_time },
	{ "a notice that the device does not report comes after a second", test_notice },
	{ "later notices come sooner, until the device reports one", test_silent },
};

UNIT_MAIN("ep_expiry", tests)
