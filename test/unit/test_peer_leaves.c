/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* The peer disconnects while requests are outstanding; the test controls the clock. */
#include "test/unit/rig_clock.h"

static void connected_with_request(struct rig *rig)
{
	DAT_EP_ATTR attr = rig_attr();

	rig_open(rig, &attr);
	rig_connect(rig);
	MUST(rig_send(rig, 1, 0));
}

static void peer_disconnects(void)
{
	fake.upcalls.conn(fake.conn->owner, fake.conn, IB_CONN_DISCONNECTED, NULL, 0);
}

/*
 * A device may report the peer's disconnect before it has handled an acknowledgement that arrived earlier. The request
 * has succeeded, and must not be flushed.
 */
static void test_overtaken(void)
{
	DAT_EVENT event;
	struct rig rig;

	connected_with_request(&rig);
	peer_disconnects();
	pass(5);
	CU_ASSERT_FALSE(fake.qp->error);
	expect_nothing(rig.conn);
	CU_ASSERT_EQUAL(state_of(rig.ep), DAT_EP_STATE_CONNECTED);
	rig_complete(rig.request, fake.last.wr_id, DAT_DTO_SUCCESS, 0);
	pass(1);
	expect_only(rig.conn, DAT_CONNECTION_EVENT_DISCONNECTED);
	CU_ASSERT_TRUE(fake.qp->error);
	event = rig_take(rig.request);
	CU_ASSERT_EQUAL(rig_cookie(&event), 1);
	CU_ASSERT_EQUAL(event.event_data.dto_completion_event_data.status, DAT_DTO_SUCCESS);
	rig_close(&rig);
}

/* Posts are accepted meanwhile; their completions do not come either. */
static void test_unanswered(void)
{
	struct rig rig;

	connected_with_request(&rig);
	peer_disconnects();
	pass(15);
	MUST(rig_send(&rig, 2, 0));
	MUST(rig_recv(&rig, 3));
	CU_ASSERT_FALSE(fake.qp->error);
	pass(4);
	expect_nothing(rig.conn);
	pass(1);
	CU_ASSERT_TRUE(fake.qp->error);
	expect_only(rig.conn, DAT_CONNECTION_EVENT_DISCONNECTED);
	pass(1000);
	expect_nothing(rig.conn);
	rig_close(&rig);
}

static void test_impatient(DAT_CLOSE_FLAGS flags)
{
	struct rig rig;

	connected_with_request(&rig);
	peer_disconnects();
	MUST(dat_ep_disconnect(rig.ep, flags));
	CU_ASSERT_TRUE(fake.qp->error);
	pass(0);
	expect_only(rig.conn, DAT_CONNECTION_EVENT_DISCONNECTED);
	rig_close(&rig);
}

/* The peer cannot answer any more, so a graceful disconnect has nothing to wait for. */
static void test_both_disconnect(void)
{
	test_impatient(DAT_CLOSE_ABRUPT_FLAG);
	test_impatient(DAT_CLOSE_GRACEFUL_FLAG);
}

/* Both disconnect, this side gracefully: its request has 20 ms, no more 5 s, and no answer of the peer is awaited. */
static void test_graceful(void)
{
	DAT_EVENT event;
	struct rig rig;

	connected_with_request(&rig);
	MUST(dat_ep_disconnect(rig.ep, DAT_CLOSE_GRACEFUL_FLAG));
	peer_disconnects();
	pass(5);
	CU_ASSERT_FALSE(fake.qp->error);
	expect_nothing(rig.conn);
	rig_complete(rig.request, fake.last.wr_id, DAT_DTO_SUCCESS, 0);
	event = rig_take(rig.request);
	CU_ASSERT_EQUAL(event.event_data.dto_completion_event_data.status, DAT_DTO_SUCCESS);
	pass(15);
	expect_only(rig.conn, DAT_CONNECTION_EVENT_DISCONNECTED);
	rig_close(&rig);
}

static void test_overtaken_failure(void)
{
	struct rig rig;

	connected_with_request(&rig);
	peer_disconnects();
	rig_complete(rig.request, fake.last.wr_id, DAT_DTO_ERR_REMOTE_ACCESS, 0);
	pass(1);
	expect_only(rig.conn, DAT_CONNECTION_EVENT_BROKEN);
	rig_close(&rig);
}

/* The next connection of the endpoint starts anew. */
static void test_freed_or_reset(void)
{
	struct rig rig;

	connected_with_request(&rig);
	peer_disconnects();
	pass(20);
	expect_only(rig.conn, DAT_CONNECTION_EVENT_DISCONNECTED);
	rig_complete(rig.request, fake.last.wr_id, DAT_DTO_ERR_FLUSHED, 0);
	MUST(dat_ep_reset(rig.ep));
	CU_ASSERT_EQUAL(rig_take(rig.request).event_number, DAT_DTO_COMPLETION_EVENT);
	rig_connect(&rig);
	MUST(rig_send(&rig, 2, 0));
	pass(1000);
	expect_nothing(rig.conn);
	MUST(dat_ep_disconnect(rig.ep, DAT_CLOSE_ABRUPT_FLAG));
	pass(0);
	expect_nothing(rig.conn); /* the peer's answer is awaited again */
	pass(250);
	expect_only(rig.conn, DAT_CONNECTION_EVENT_DISCONNECTED);
	rig_complete(rig.request, fake.last.wr_id, DAT_DTO_ERR_FLUSHED, 0);
	MUST(dat_ep_reset(rig.ep));
	CU_ASSERT_EQUAL(rig_take(rig.request).event_number, DAT_DTO_COMPLETION_EVENT);
	rig_connect(&rig);
	MUST(rig_send(&rig, 3, 0));
	peer_disconnects();
	MUST(dat_ep_free(rig.ep));
	rig.ep = DAT_HANDLE_NULL;
	pass(20);
	expect_only(rig.conn, DAT_CONNECTION_EVENT_DISCONNECTED);
	rig_close(&rig);
}

static const struct unit_test tests[] = {
	{ "a request whose answer the peer's disconnect overtook succeeds", test_overtaken },
	{ "requests have 20 ms after the peer's disconnect", test_unanswered },
	{ "the consumer's disconnect ends that time", test_both_disconnect },
	{ "a request of a graceful disconnect has that time", test_graceful },
	{ "a failure that the peer's disconnect overtook breaks the connection",
	  test_overtaken_failure },
	{ "a reset or free after it leaves nothing", test_freed_or_reset },
};

UNIT_MAIN("peer_leaves", tests)
