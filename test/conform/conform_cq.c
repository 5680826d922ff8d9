/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Completion queues: creation, polling, resizing, overflow. */
#include <limits.h>
#include "test/conform/conform.h"

static bool refused(int cqe, int vector)
{
	struct ibv_cq *cq;

	errno = 0;
	cq = ibv_create_cq(device, cqe, NULL, NULL, vector);
	if (cq)
		ibv_destroy_cq(cq);
	return !cq && errno == EINVAL;
}

static void creation_is_checked(void)
{
	CU_ASSERT_TRUE(refused(0, 0));
	CU_ASSERT_TRUE(refused(-1, 0));
	CU_ASSERT_TRUE(device_attr.max_cqe == INT_MAX || refused(device_attr.max_cqe + 1, 0));
	CU_ASSERT_TRUE(refused(16, device->num_comp_vectors));
	CU_ASSERT_TRUE(refused(16, -1));
}

static void size_is_granted(void)
{
	struct ibv_cq *cq = ibv_create_cq(device, 33, &cq, NULL, 0);
	struct ibv_wc wc;

	CU_ASSERT_PTR_NOT_NULL_FATAL(cq);
	CU_ASSERT_TRUE(cq->cqe >= 33);
	CU_ASSERT_PTR_EQUAL(cq->cq_context, &cq);
	CU_ASSERT_PTR_EQUAL(cq->context, device);
	CU_ASSERT_PTR_NULL(cq->channel);
	CU_ASSERT_EQUAL(ibv_poll_cq(cq, 1, &wc), 0);
	CU_ASSERT_EQUAL(ibv_destroy_cq(cq), 0);
}

static void used_cq_stays(void)
{
	struct pair_options options = { 0 };
	struct side side;

	CU_ASSERT_TRUE_FATAL(side_open(&side, &options, false));
	CU_ASSERT_EQUAL(ibv_destroy_cq(side.scq), EBUSY);
	CU_ASSERT_EQUAL(ibv_destroy_cq(side.rcq), EBUSY);
	CU_ASSERT_EQUAL(ibv_destroy_comp_channel(side.channel), EBUSY);
	side_close(&side);
}

/* Fills a's send CQ with `count` completions of zero-length writes. */
static bool fill(struct pair *pair, int count)
{
	int i;

	for (i = 0; i < count; i++)
		if (post_rdma(&pair->a, IBV_WR_RDMA_WRITE, (uint64_t)i, 0, 0, &pair->b, 0,
			      IBV_SEND_SIGNALED))
			return false;
	return true;
}

static bool drains_in_order(struct ibv_cq *cq, int count)
{
	int i;

	for (i = 0; i < count; i++)
		if (!completes(cq, (uint64_t)i, IBV_WC_SUCCESS, NULL))
			return false;
	return true;
}

static void poll_gives_at_most_what_is_asked(void)
{
	struct ibv_wc wc[8];
	struct pair pair;
	int got = 0, n, i;

	if (!pair_open(&pair, NULL))
		return;
	CU_ASSERT_TRUE(fill(&pair, 10));
	CU_ASSERT_EQUAL(ibv_poll_cq(pair.a.scq, 0, wc), 0);
	while (got < 10) {
		memset(wc, 0xff, sizeof(wc));
		n = ibv_poll_cq(pair.a.scq, 3, wc);
		CU_ASSERT_TRUE_FATAL(n >= 0 && n <= 3);
		for (i = 0; i < n; i++)
			CU_ASSERT_TRUE(wc[i].wr_id == (uint64_t)(got + i) &&
				       wc[i].status == IBV_WC_SUCCESS);
		CU_ASSERT_EQUAL(wc[3].wr_id, UINT64_MAX);
		got += n;
	}
	CU_ASSERT_EQUAL(ibv_poll_cq(pair.a.scq, 8, wc), 0);
	pair_close(&pair);
}

static void resize_keeps_the_contents(void)
{
	struct pair pair;
	int error;

	if (!pair_open(&pair, &(struct pair_options){ .cqe = 16, .send_wr = 64 }))
		return;
	CU_ASSERT_TRUE(fill(&pair, 12));
	error = ibv_resize_cq(pair.a.scq, 128);
	if (error) {
		CU_ASSERT_TRUE(error == EOPNOTSUPP || error == ENOSYS);
		skip("no resizing of completion queues");
	} else {
		CU_ASSERT_TRUE(pair.a.scq->cqe >= 128);
	}
	CU_ASSERT_TRUE(drains_in_order(pair.a.scq, 12));
	pair_close(&pair);
}

/* Returns true when b's queue has one more receive completion. */
static bool receive_and_leave(struct pair *pair, uint64_t wr_id)
{
	struct ibv_cq *cq;
	void *context;

	if (ibv_req_notify_cq(pair->b.rcq, 0) || post_recv(&pair->b, wr_id, 0, 8) ||
	    post_send(&pair->a, wr_id, 0, 8, IBV_SEND_SIGNALED) ||
	    !readable(pair->b.channel->fd, PATIENCE) ||
	    ibv_get_cq_event(pair->b.channel, &cq, &context))
		return false;
	ibv_ack_cq_events(cq, 1);
	return completes(pair->a.scq, wr_id, IBV_WC_SUCCESS, NULL);
}

static void resize_below_the_contents(void)
{
	struct pair pair;
	uint64_t i;
	int error;

	if (!pair_open(&pair, &(struct pair_options){ .cqe = 64 }))
		return;
	for (i = 0; i < 12; i++)
		CU_ASSERT_TRUE_FATAL(receive_and_leave(&pair, i));
	error = ibv_resize_cq(pair.b.rcq, 4);
	CU_ASSERT_TRUE(error == EINVAL || error == EOPNOTSUPP || error == ENOSYS);
	CU_ASSERT_NOT_EQUAL(ibv_resize_cq(pair.b.rcq, 0), 0);
	CU_ASSERT_TRUE(drains_in_order(pair.b.rcq, 12));
	pair_close(&pair);
}

/* CQ_ERR comes once for the queue and QP_FATAL once for the QP, in any order. */
static bool overflow_is_reported(struct ibv_cq *cq, struct ibv_qp *qp)
{
	struct ibv_async_event event;
	int cq_err = 0, fatal = 0;

	while ((!cq_err || !(fatal || device_is_rxe)) && readable(device->async_fd, PATIENCE)) {
		if (ibv_get_async_event(device, &event))
			return false;
		cq_err += event.event_type == IBV_EVENT_CQ_ERR && event.element.cq == cq;
		fatal += event.event_type == IBV_EVENT_QP_FATAL && event.element.qp == qp;
		ibv_ack_async_event(&event);
	}
	return cq_err == 1 && (device_is_rxe || (fatal == 1 && async_silent()));
}

static void send_side_overflow(void)
{
	struct ibv_wc wc[256];
	struct pair pair;
	int size, n;

	if (!pair_open(&pair, &(struct pair_options){ .cqe = 8, .send_wr = 128 }))
		return;
	size = pair.a.scq->cqe;
	CU_ASSERT_TRUE_FATAL(size < 100);
	fill(&pair, size + 1);
	CU_ASSERT_TRUE(overflow_is_reported(pair.a.scq, pair.a.qp));
	/* the kernel's software RoCE loses completions and continues */
	CU_ASSERT_TRUE(device_is_rxe || reaches(pair.a.qp, IBV_QPS_ERR));
	n = ibv_poll_cq(pair.a.scq, (int)COUNT(wc), wc);
	CU_ASSERT_TRUE(n <= size);
	CU_ASSERT_TRUE(n < 1 || (wc[0].wr_id == 0 && wc[0].status == IBV_WC_SUCCESS));
	CU_ASSERT_TRUE(ibv_poll_cq(pair.a.scq, (int)COUNT(wc), wc) <= 0);
	while (device_is_rxe && !async_silent())
		;
	pair_close(&pair);
}

/* Messages that were accepted but not yet polled count as well. */
static void receive_side_overflow(void)
{
	struct ibv_wc wc[256];
	struct pair pair;
	int size, i;

	if (!pair_open(&pair, &(struct pair_options){ .cqe = 8, .send_wr = 128, .recv_wr = 128 }))
		return;
	size = pair.b.rcq->cqe;
	CU_ASSERT_TRUE_FATAL(size < 100);
	for (i = 0; i <= size; i++)
		CU_ASSERT_EQUAL(post_recv(&pair.b, (uint64_t)i, 0, 8), 0);
	for (i = 0; i <= size; i++)
		if (post_send(&pair.a, (uint64_t)i, 0, 8, i % 4 == 3 ? IBV_SEND_SIGNALED : 0))
			break;
	CU_ASSERT_TRUE(overflow_is_reported(pair.b.rcq, pair.b.qp));
	CU_ASSERT_TRUE(device_is_rxe || reaches(pair.b.qp, IBV_QPS_ERR));
	CU_ASSERT_TRUE(ibv_poll_cq(pair.b.rcq, (int)COUNT(wc), wc) <= size);
	CU_ASSERT_TRUE(ibv_poll_cq(pair.b.rcq, (int)COUNT(wc), wc) <= 0);
	while (device_is_rxe && !async_silent())
		;
	pair_close(&pair);
}

static void full_is_not_overflow(void)
{
	struct pair pair;

	if (!pair_open(&pair, &(struct pair_options){ .cqe = 8, .send_wr = 128 }))
		return;
	CU_ASSERT_TRUE(fill(&pair, pair.a.scq->cqe));
	CU_ASSERT_TRUE(drains_in_order(pair.a.scq, pair.a.scq->cqe));
	CU_ASSERT_TRUE(async_silent());
	CU_ASSERT_EQUAL(state_of(pair.a.qp), IBV_QPS_RTS);
	pair_close(&pair);
}

static void completions_of_a_destroyed_qp(void)
{
	struct ibv_wc wc[16];
	struct pair pair;

	if (!pair_open(&pair, NULL))
		return;
	CU_ASSERT_TRUE(fill(&pair, 5));
	CU_ASSERT_EQUAL(ibv_destroy_qp(pair.a.qp), 0);
	pair.a.qp = NULL;
	/* the kernel keeps them and hardware drops them; neither returns more than there were */
	CU_ASSERT_TRUE(ibv_poll_cq(pair.a.scq, 16, wc) <= 5);
	CU_ASSERT_EQUAL(ibv_poll_cq(pair.a.scq, 16, wc), 0);
	pair_close(&pair);
}

static const struct unit_test tests[] = {
	{ "create_cq with no, too many or negative entries, or a bad vector: EINVAL",
	  creation_is_checked },
	{ "at least the entries asked for; fields are set", size_is_granted },
	{ "CQ or channel in use: EBUSY", used_cq_stays },
	{ "poll gives at most what is asked, in order", poll_gives_at_most_what_is_asked },
	{ "resize keeps the contents", resize_keeps_the_contents },
	{ "resize below the contents: EINVAL", resize_below_the_contents },
	{ "a full queue is not an overflow", full_is_not_overflow },
	{ "overflow by sends: CQ_ERR once, QP_FATAL, QP to ERR, no more than it holds",
	  send_side_overflow },
	{ "overflow by receives that were not polled", receive_side_overflow },
	{ "completions of a destroyed QP: all or none", completions_of_a_destroyed_qp },
};

CONFORM_MAIN("conform_cq", tests)
