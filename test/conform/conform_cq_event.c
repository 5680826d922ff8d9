/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Completion channels: when an armed queue raises an event, and what becomes of events. */
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include "test/conform/conform.h"

/* Returns true if the next event of the channel is of this queue; acknowledges it. */
static bool event_comes(struct side *side)
{
	struct ibv_cq *cq = NULL;
	void *context = NULL;
	bool right;

	if (!readable(side->channel->fd, PATIENCE) ||
	    ibv_get_cq_event(side->channel, &cq, &context))
		return false;
	right = cq == side->rcq && context == side;
	ibv_ack_cq_events(cq, 1);
	return right;
}

static bool no_event(struct side *side)
{
	return !readable(side->channel->fd, SILENCE);
}

/*
 * Sends one message from a to b; returns true when the send has completed. b's completion stays in
 * its queue.
 */
static bool message(struct pair *pair, int flags)
{
	return !post_recv(&pair->b, 1, 0, 8) &&
	       !post_send(&pair->a, 1, 0, 8, IBV_SEND_SIGNALED | flags) &&
	       completes(pair->a.scq, 1, IBV_WC_SUCCESS, NULL);
}

static bool received(struct pair *pair)
{
	return completes(pair->b.rcq, 1, IBV_WC_SUCCESS, NULL);
}

static void unarmed(void)
{
	struct pair pair;

	if (!pair_open(&pair, NULL))
		return;
	CU_ASSERT_TRUE(message(&pair, IBV_SEND_SOLICITED));
	CU_ASSERT_TRUE(no_event(&pair.b));
	pair_close(&pair);
}

static void one_shot(void)
{
	struct pair pair;

	if (!pair_open(&pair, NULL))
		return;
	CU_ASSERT_EQUAL(ibv_req_notify_cq(pair.b.rcq, 0), 0);
	CU_ASSERT_TRUE(no_event(&pair.b));
	CU_ASSERT_TRUE(message(&pair, 0));
	CU_ASSERT_TRUE(event_comes(&pair.b));
	CU_ASSERT_TRUE(message(&pair, 0));
	CU_ASSERT_TRUE(no_event(&pair.b));
	CU_ASSERT_EQUAL(ibv_req_notify_cq(pair.b.rcq, 0), 0);
	CU_ASSERT_TRUE(message(&pair, 0));
	CU_ASSERT_TRUE(event_comes(&pair.b));
	pair_close(&pair);
}

static void armed_behind_a_completion(void)
{
	struct pair pair;

	if (!pair_open(&pair, NULL))
		return;
	CU_ASSERT_EQUAL(ibv_req_notify_cq(pair.b.rcq, 0), 0);
	CU_ASSERT_TRUE(message(&pair, 0));
	CU_ASSERT_TRUE(event_comes(&pair.b));
	CU_ASSERT_EQUAL(ibv_req_notify_cq(pair.b.rcq, 0), 0);
	/*
	 * IBTA allows an event for a completion that is there already; the next completion must
	 * raise one in any case
	 */
	if (readable(pair.b.channel->fd, SILENCE))
		CU_ASSERT_TRUE(event_comes(&pair.b) && !ibv_req_notify_cq(pair.b.rcq, 0));
	CU_ASSERT_TRUE(message(&pair, 0));
	CU_ASSERT_TRUE(event_comes(&pair.b));
	CU_ASSERT_TRUE(received(&pair) && received(&pair));
	pair_close(&pair);
}

static void solicited_only(void)
{
	struct pair pair;

	if (!pair_open(&pair, NULL))
		return;
	CU_ASSERT_EQUAL(ibv_req_notify_cq(pair.b.rcq, 1), 0);
	CU_ASSERT_TRUE(message(&pair, 0));
	CU_ASSERT_TRUE(no_event(&pair.b));
	CU_ASSERT_TRUE(message(&pair, IBV_SEND_SOLICITED));
	CU_ASSERT_TRUE(event_comes(&pair.b));
	CU_ASSERT_TRUE(message(&pair, IBV_SEND_SOLICITED));
	CU_ASSERT_TRUE(no_event(&pair.b));
	pair_close(&pair);
}

static void solicited_write_with_immediate(void)
{
	struct pair pair;

	if (!pair_open(&pair, NULL))
		return;
	CU_ASSERT_EQUAL(ibv_req_notify_cq(pair.b.rcq, 1), 0);
	CU_ASSERT_EQUAL(post_recv(&pair.b, 1, 0, 0), 0);
	CU_ASSERT_EQUAL(post_rdma(&pair.a, IBV_WR_RDMA_WRITE_WITH_IMM, 1, 0, 8, &pair.b, 0,
				  IBV_SEND_SIGNALED | IBV_SEND_SOLICITED),
			0);
	CU_ASSERT_TRUE(event_comes(&pair.b));
	CU_ASSERT_TRUE(received(&pair));
	pair_close(&pair);
}

static void any_stays_any(void)
{
	struct pair pair;

	if (!pair_open(&pair, NULL))
		return;
	CU_ASSERT_EQUAL(ibv_req_notify_cq(pair.b.rcq, 0), 0);
	CU_ASSERT_EQUAL(ibv_req_notify_cq(pair.b.rcq, 1), 0);
	CU_ASSERT_TRUE(message(&pair, 0));
	CU_ASSERT_TRUE(event_comes(&pair.b));
	pair_close(&pair);
}

static void solicited_becomes_any(void)
{
	struct pair pair;

	if (!pair_open(&pair, NULL))
		return;
	CU_ASSERT_EQUAL(ibv_req_notify_cq(pair.b.rcq, 1), 0);
	CU_ASSERT_EQUAL(ibv_req_notify_cq(pair.b.rcq, 0), 0);
	CU_ASSERT_TRUE(message(&pair, 0));
	CU_ASSERT_TRUE(event_comes(&pair.b));
	pair_close(&pair);
}

static void errors_are_solicited(void)
{
	struct pair pair;

	if (!pair_open(&pair, NULL))
		return;
	CU_ASSERT_EQUAL(post_recv(&pair.b, 1, 0, 8), 0);
	CU_ASSERT_EQUAL(ibv_req_notify_cq(pair.b.rcq, 1), 0);
	CU_ASSERT_EQUAL(move_to(pair.b.qp, IBV_QPS_ERR), 0);
	if (rxe_since(6, 12))
		puts("skipped: kernel software RoCE does not count it");
	else
		CU_ASSERT_TRUE(event_comes(&pair.b));
	CU_ASSERT_TRUE(completes(pair.b.rcq, 1, IBV_WC_WR_FLUSH_ERR, NULL));
	pair_close(&pair);
}

static void two_rounds_two_events(void)
{
	struct ibv_cq *cq;
	struct pair pair;
	void *context;
	int i;

	if (!pair_open(&pair, NULL))
		return;
	for (i = 0; i < 2; i++) {
		CU_ASSERT_EQUAL(ibv_req_notify_cq(pair.b.rcq, 0), 0);
		CU_ASSERT_TRUE(message(&pair, 0));
		CU_ASSERT_TRUE(received(&pair));
	}
	for (i = 0; i < 2; i++) {
		CU_ASSERT_TRUE_FATAL(readable(pair.b.channel->fd, PATIENCE));
		CU_ASSERT_EQUAL(ibv_get_cq_event(pair.b.channel, &cq, &context), 0);
		CU_ASSERT_PTR_EQUAL(cq, pair.b.rcq);
	}
	CU_ASSERT_TRUE(no_event(&pair.b));
	ibv_ack_cq_events(pair.b.rcq, 2);
	pair_close(&pair);
}

static void channel_may_not_block(void)
{
	struct pair pair;
	struct ibv_cq *cq;
	void *context;

	if (!pair_open(&pair, NULL))
		return;
	CU_ASSERT_EQUAL(fcntl(pair.b.channel->fd, F_SETFL, O_NONBLOCK), 0);
	errno = 0;
	CU_ASSERT_EQUAL(ibv_get_cq_event(pair.b.channel, &cq, &context), -1);
	CU_ASSERT_EQUAL(errno, EAGAIN);
	pair_close(&pair);
}

static void channel_serves_two_queues(void)
{
	struct ibv_cq *cq, *second;
	struct pair pair;
	void *context;

	if (!pair_open(&pair, NULL))
		return;
	second = ibv_create_cq(device, 16, &second, pair.b.channel, 0);
	CU_ASSERT_PTR_NOT_NULL_FATAL(second);
	CU_ASSERT_EQUAL(ibv_req_notify_cq(second, 0), 0);
	CU_ASSERT_EQUAL(ibv_req_notify_cq(pair.b.rcq, 0), 0);
	CU_ASSERT_TRUE(message(&pair, 0));
	CU_ASSERT_TRUE(readable(pair.b.channel->fd, PATIENCE));
	CU_ASSERT_EQUAL(ibv_get_cq_event(pair.b.channel, &cq, &context), 0);
	CU_ASSERT_PTR_EQUAL(cq, pair.b.rcq);
	ibv_ack_cq_events(cq, 1);
	CU_ASSERT_TRUE(no_event(&pair.b));
	CU_ASSERT_EQUAL(ibv_destroy_cq(second), 0);
	pair_close(&pair);
}

struct destroyer {
	struct ibv_cq *cq;
	atomic_bool done;
	int result;
};

static void *destroy(void *arg)
{
	struct destroyer *destroyer = arg;

	destroyer->result = ibv_destroy_cq(destroyer->cq);
	atomic_store(&destroyer->done, true);
	return NULL;
}

static bool is_done(void *arg)
{
	return atomic_load(&((struct destroyer *)arg)->done);
}

static void destroy_waits_for_acknowledgement(void)
{
	struct destroyer destroyer = { 0 };
	pthread_t thread;
	struct pair pair;
	void *context;

	if (!pair_open(&pair, NULL))
		return;
	CU_ASSERT_EQUAL(ibv_req_notify_cq(pair.b.rcq, 0), 0);
	CU_ASSERT_TRUE(message(&pair, 0));
	CU_ASSERT_TRUE_FATAL(readable(pair.b.channel->fd, PATIENCE));
	CU_ASSERT_EQUAL(ibv_get_cq_event(pair.b.channel, &destroyer.cq, &context), 0);
	CU_ASSERT_EQUAL(ibv_destroy_qp(pair.b.qp), 0);
	pair.b.qp = NULL;
	pair.b.rcq = NULL;
	CU_ASSERT_EQUAL_FATAL(pthread_create(&thread, NULL, destroy, &destroyer), 0);
	CU_ASSERT_FALSE(unit_wait_for(is_done, &destroyer, SILENCE));
	ibv_ack_cq_events(destroyer.cq, 1);
	CU_ASSERT_TRUE(unit_wait_for(is_done, &destroyer, PATIENCE));
	CU_ASSERT_EQUAL(pthread_join(thread, NULL), 0);
	CU_ASSERT_EQUAL(destroyer.result, 0);
	pair_close(&pair);
}

static void events_of_a_destroyed_queue(void)
{
	struct pair pair;

	if (!pair_open(&pair, NULL))
		return;
	CU_ASSERT_EQUAL(ibv_req_notify_cq(pair.b.rcq, 0), 0);
	CU_ASSERT_TRUE(message(&pair, 0));
	CU_ASSERT_TRUE_FATAL(readable(pair.b.channel->fd, PATIENCE));
	CU_ASSERT_EQUAL(ibv_destroy_qp(pair.b.qp), 0);
	CU_ASSERT_EQUAL(ibv_destroy_cq(pair.b.rcq), 0);
	pair.b.qp = NULL;
	pair.b.rcq = NULL;
	CU_ASSERT_TRUE(no_event(&pair.b));
	pair_close(&pair);
}

static const struct unit_test tests[] = {
	{ "not armed: no event", unarmed },
	{ "armed once: one event", one_shot },
	{ "armed with completions present: the next one raises an event",
	  armed_behind_a_completion },
	{ "armed for solicited: others raise none", solicited_only },
	{ "a solicited WRITE_WITH_IMM raises an event", solicited_write_with_immediate },
	{ "armed for any, then for solicited: stays any", any_stays_any },
	{ "armed for solicited, then for any: becomes any", solicited_becomes_any },
	{ "a flushed receive counts as solicited", errors_are_solicited },
	{ "two rounds without reading the channel: two events", two_rounds_two_events },
	{ "an empty non-blocking channel: EAGAIN", channel_may_not_block },
	{ "an event names its queue of several", channel_serves_two_queues },
	{ "destroy_cq waits until its events are acknowledged", destroy_waits_for_acknowledgement },
	{ "unread events of a destroyed queue are gone", events_of_a_destroyed_queue },
};

CONFORM_MAIN("conform_cq_event", tests)
