/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Polls during stillness find nothing, and lose no wake-up. A thread of the test begins and ends it, as the engine does. */
#include <poll.h>
#include "softverbs/object/cq.h"
#include "softverbs/verbs/still.h"
#include "test/unit/node.h"

static const struct node_options options = { .channel = true };
static struct node node;

/* One completed receive, and a send that makes no completion. */
static void open_with_message(void)
{
	CU_ASSERT_FATAL(node_open(&node, &options));
	CU_ASSERT_FATAL(node_qp_connect(node.qp[0], node.qp[0]->qp_num, &node.options));
	CU_ASSERT_EQUAL_FATAL(node_recv(&node, 0, 1, 0, 8), 0);
	CU_ASSERT_EQUAL_FATAL(node_send(&node, 0, 2, 64, 8, 0), 0);
}

static bool still_begins(void *unused)
{
	(void)unused;
	return sv_still_begin(); /* within a millisecond, or not */
}

static pthread_t stiller;
static atomic_bool is_still, ends;

static bool flag_is(void *flag)
{
	return atomic_load((atomic_bool *)flag);
}

static void *be_still(void *unused)
{
	(void)unused;
	atomic_store(&is_still, unit_wait_for(still_begins, NULL, UNIT_PATIENCE));
	if (!atomic_load(&is_still))
		return NULL;
	unit_wait_for(flag_is, &ends, UNIT_PATIENCE);
	sv_still_end();
	return NULL;
}

static void still_begin(void)
{
	atomic_store(&is_still, false);
	atomic_store(&ends, false);
	CU_ASSERT_EQUAL_FATAL(pthread_create(&stiller, NULL, be_still, NULL), 0);
	CU_ASSERT_FATAL(unit_wait_for(flag_is, &is_still, UNIT_PATIENCE));
}

static void still_end(void)
{
	atomic_store(&ends, true);
	CU_ASSERT_EQUAL(pthread_join(stiller, NULL), 0);
}

static int wakes(int patience)
{
	struct pollfd poll_fd = { .fd = node.channel->fd, .events = POLLIN };

	return poll(&poll_fd, 1, patience);
}

static void expect_message(void)
{
	struct ibv_wc wc;

	CU_ASSERT_EQUAL(ibv_poll_cq(node.cq, 1, &wc), 1);
	CU_ASSERT(!wc.status && wc.opcode == IBV_WC_RECV && wc.wr_id == 1);
}

static void event_take(void)
{
	struct ibv_cq *cq;
	void *context;

	CU_ASSERT_EQUAL(wakes(UNIT_PATIENCE), 1);
	CU_ASSERT_EQUAL_FATAL(ibv_get_cq_event(node.channel, &cq, &context), 0);
	CU_ASSERT_PTR_EQUAL(cq, node.cq);
	ibv_ack_cq_events(cq, 1);
}

/* The message was there before the CQ was armed, so it has no event of its own. */
static void missed(int solicited_only)
{
	struct ibv_wc wc;

	open_with_message();
	still_begin();
	CU_ASSERT_EQUAL(ibv_req_notify_cq(node.cq, solicited_only), 0);
	CU_ASSERT_EQUAL(ibv_poll_cq(node.cq, 1, &wc), 0);
	CU_ASSERT_EQUAL(wakes(0), 0);
	still_end();
	event_take();
	expect_message();
	CU_ASSERT_EQUAL(wakes(0), 0); /* one event for one arming */
	CU_ASSERT_EQUAL(node_close(&node), 0);
}

static void missed_by_a_waiter(void)
{
	missed(0);
	missed(1);
}

/* Nothing is armed: the thread polls again. */
static void missed_by_a_poller(void)
{
	struct ibv_wc wc;

	open_with_message();
	still_begin();
	CU_ASSERT_EQUAL(ibv_poll_cq(node.cq, 1, &wc), 0);
	still_end();
	CU_ASSERT_EQUAL(wakes(0), 0);
	CU_ASSERT_EQUAL(cq_of(node.cq)->slow, 0);
	expect_message();
	CU_ASSERT_EQUAL(node_close(&node), 0);
}

/* Armed and polled in vain, with nothing there: the event is that of the next message. */
static void nothing_missed(void)
{
	struct ibv_wc wc;

	open_with_message();
	expect_message();
	still_begin();
	CU_ASSERT_EQUAL(ibv_req_notify_cq(node.cq, 0), 0);
	CU_ASSERT_EQUAL(ibv_poll_cq(node.cq, 1, &wc), 0);
	still_end();
	CU_ASSERT_EQUAL(wakes(0), 0);
	CU_ASSERT_EQUAL(node_recv(&node, 0, 1, 0, 8), 0);
	CU_ASSERT_EQUAL(node_send(&node, 0, 2, 64, 8, 0), 0);
	event_take();
	expect_message();
	CU_ASSERT_EQUAL(node_close(&node), 0);
}

/* A request that is posted meanwhile waits; its completion has its event. */
static void posted_meanwhile(void)
{
	struct ibv_wc wc;

	open_with_message();
	expect_message();
	CU_ASSERT_EQUAL(node_recv(&node, 0, 1, 0, 8), 0);
	still_begin();
	CU_ASSERT_EQUAL(ibv_req_notify_cq(node.cq, 0), 0);
	CU_ASSERT_EQUAL(node_send(&node, 0, 2, 64, 8, 0), 0);
	CU_ASSERT_EQUAL(ibv_poll_cq(node.cq, 1, &wc), 0);
	still_end();
	event_take();
	expect_message();
	CU_ASSERT_EQUAL(node_close(&node), 0);
}

static const struct unit_test tests[] = {
	{ "a completion that a waiter's last poll missed wakes it", missed_by_a_waiter },
	{ "one that a poller missed sends no event", missed_by_a_poller },
	{ "where nothing was missed there is no event", nothing_missed },
	{ "a request that is posted meanwhile is executed after it", posted_meanwhile },
};

UNIT_MAIN("softverbs_still", tests)
