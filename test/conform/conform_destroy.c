/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* ibv_destroy_qp while completions wait in the CQ: those of messages and requests that succeeded stay there. */
#include "test/conform/conform.h"

/*
 * These lengths travel in a receive slot, in its extension, through a ring, and straight into the
 * buffer.
 */
static const uint32_t lengths[] = { 0, 1, 48, 49, 112, 113, 1000, 4096, 4097, 30000 };

static void destroy(struct side *side)
{
	CU_ASSERT_EQUAL(ibv_destroy_qp(side->qp), 0);
	side->qp = NULL;
}

static int post(struct side *side, uint64_t wr_id, uint32_t length)
{
	return side->srq ? post_srq(side, wr_id, 0, length) : post_recv(side, wr_id, 0, length);
}

/* ---- receives ---- */

/* A message of each length whose send has completed; then the receiver's QP is destroyed, and the CQ polled. */
static void arrived(const struct pair_options *options)
{
	struct pair pair;
	struct ibv_wc wc;
	unsigned i, at;

	for (i = 0; i < COUNT(lengths); i++) {
		if (!pair_open(&pair, options))
			return;
		CU_ASSERT_EQUAL_FATAL(post(&pair.b, 7, BUFFER), 0);
		for (at = 0; at < lengths[i]; at++)
			pair.a.buffer[at] = (char)(at * 31 + 1);
		CU_ASSERT_EQUAL(post_send(&pair.a, 8, 0, lengths[i], IBV_SEND_SIGNALED), 0);
		CU_ASSERT_TRUE(completes(pair.a.scq, 8, IBV_WC_SUCCESS, NULL));
		destroy(&pair.b);
		CU_ASSERT_TRUE(completes(pair.b.rcq, 7, IBV_WC_SUCCESS, &wc));
		CU_ASSERT_EQUAL(wc.byte_len, lengths[i]);
		CU_ASSERT_EQUAL(memcmp(pair.a.buffer, pair.b.buffer, lengths[i]), 0);
		CU_ASSERT_TRUE(stays_empty(pair.b.rcq));
		pair_close(&pair);
	}
}

static void test_receives(void)
{
	arrived(&(struct pair_options){ 0 });
}

static void test_unreliable_receives(void)
{
	if (device_is_rxe) {
		skip("an unreliable send completes before the message arrives");
		return;
	}
	arrived(&(struct pair_options){ .type = IBV_QPT_UC });
}

static void test_shared_receives(void)
{
	arrived(&(struct pair_options){ .srq_wr = 4 });
}

/* The receive of a message that the destroyed QP left can be posted again, as often as the queue is long. */
static void test_shared_queue_is_whole(void)
{
	const struct pair_options options = { .srq_wr = 4 };
	struct pair pair;
	struct ibv_wc wc;
	unsigned i, room = 0;

	if (!pair_open(&pair, &options))
		return;
	for (i = 0; i < 3; i++)
		CU_ASSERT_EQUAL(post(&pair.b, i, 64), 0);
	for (i = 0; i < 3; i++) {
		CU_ASSERT_EQUAL(post_send(&pair.a, i, 0, 8, IBV_SEND_SIGNALED), 0);
		CU_ASSERT_TRUE(completes(pair.a.scq, i, IBV_WC_SUCCESS, NULL));
	}
	destroy(&pair.b);
	for (i = 0; i < 3; i++)
		CU_ASSERT_TRUE(completes(pair.b.rcq, i, IBV_WC_SUCCESS, &wc));
	while (room < 1000 && !post(&pair.b, room, 64))
		room++;
	CU_ASSERT(room >= options.srq_wr);
	pair_close(&pair);
}

/* The side once more, with a QP of its own on the same CQs. */
static struct side sibling(const struct side *side)
{
	struct ibv_qp_init_attr init = { .send_cq = side->scq,
					 .recv_cq = side->rcq,
					 .qp_type = IBV_QPT_RC,
					 .cap = { 16, 16, 1, 1, 0 } };
	struct side other = *side;

	other.qp = ibv_create_qp(side->pd, &init);
	CU_ASSERT_PTR_NOT_NULL_FATAL(other.qp);
	return other;
}

static void deliver(struct side *from, struct side *to, uint64_t first)
{
	for (uint64_t i = first; i < first + 4; i++) {
		CU_ASSERT_EQUAL(post_recv(to, i, 0, 64), 0);
		CU_ASSERT_EQUAL(post_send(from, i, 0, 8, IBV_SEND_SIGNALED), 0);
		CU_ASSERT_TRUE(completes(from->scq, i, IBV_WC_SUCCESS, NULL));
	}
}

/* Two QPs on one CQ: the completions of the destroyed one come first, those of the other one follow. */
static void test_before_others(void)
{
	static const struct pair_options options;
	struct side a, b;
	struct pair pair;
	unsigned i;

	if (!pair_open(&pair, &options))
		return;
	a = sibling(&pair.a);
	b = sibling(&pair.b);
	CU_ASSERT_TRUE(side_connect(&a, b.qp->qp_num, &options));
	CU_ASSERT_TRUE(side_connect(&b, a.qp->qp_num, &options));
	deliver(&pair.a, &pair.b, 0);
	destroy(&pair.b);
	deliver(&a, &b, 4);
	destroy(&b);
	for (i = 0; i < 8; i++)
		CU_ASSERT_TRUE(completes(b.rcq, i, IBV_WC_SUCCESS, NULL));
	CU_ASSERT_TRUE(stays_empty(b.rcq));
	destroy(&a);
	pair_close(&pair);
}

/* ---- what is not kept ---- */

static void test_flushed(void)
{
	struct pair pair;

	if (device_is_rxe) {
		skip("rdma_rxe leaves flushed receives in the CQ");
		return;
	}
	if (!pair_open(&pair, &(struct pair_options){ 0 }))
		return;
	CU_ASSERT_EQUAL(post_recv(&pair.b, 1, 0, 64), 0);
	CU_ASSERT_EQUAL(post_recv(&pair.b, 2, 0, 64), 0);
	CU_ASSERT_EQUAL(post_send(&pair.a, 3, 0, 8, IBV_SEND_SIGNALED), 0);
	CU_ASSERT_TRUE(completes(pair.a.scq, 3, IBV_WC_SUCCESS, NULL));
	CU_ASSERT_EQUAL(move_to(pair.b.qp, IBV_QPS_ERR), 0);
	destroy(&pair.b);
	CU_ASSERT_TRUE(completes(pair.b.rcq, 1, IBV_WC_SUCCESS, NULL));
	CU_ASSERT_TRUE(stays_empty(pair.b.rcq));
	pair_close(&pair);
}

/* ---- requests ---- */

static void test_requests(void)
{
	struct pair pair;
	struct ibv_wc wc;

	if (device_is_rxe) {
		skip("an acknowledgement may come after the message was received");
		return;
	}
	if (!pair_open(&pair, &(struct pair_options){ 0 }))
		return;
	CU_ASSERT_EQUAL(post_recv(&pair.b, 1, 0, 64), 0);
	CU_ASSERT_EQUAL(post_send(&pair.a, 2, 0, 8, IBV_SEND_SIGNALED), 0);
	CU_ASSERT_TRUE(completes(pair.b.rcq, 1, IBV_WC_SUCCESS, &wc));
	destroy(&pair.a);
	CU_ASSERT_TRUE(completes(pair.a.scq, 2, IBV_WC_SUCCESS, NULL));
	CU_ASSERT_TRUE(stays_empty(pair.a.scq));
	pair_close(&pair);
}

/* A CQ that is destroyed, or shrunk, with completions of a destroyed QP in it. */
static void test_cq_goes_too(void)
{
	struct pair pair;

	if (!pair_open(&pair, &(struct pair_options){ 0 }))
		return;
	deliver(&pair.a, &pair.b, 0);
	destroy(&pair.b);
	if (!device_is_rxe)
		CU_ASSERT_EQUAL(ibv_resize_cq(pair.b.rcq, 3), EINVAL);
	pair_close(&pair);
}

static const struct unit_test tests[] = {
	{ "destroy: a message that has arrived completes, and is in the memory", test_receives },
	{ "destroy: also by an unreliable connection", test_unreliable_receives },
	{ "destroy: also in a shared queue", test_shared_receives },
	{ "destroy: the shared queue has lost no place", test_shared_queue_is_whole },
	{ "destroy: completions of other queue pairs follow", test_before_others },
	{ "destroy: flushed receives are not kept", test_flushed },
	{ "destroy: a request that has completed completes", test_requests },
	{ "destroy: the CQ is destroyed with what it keeps", test_cq_goes_too },
};

CONFORM_MAIN("conform_destroy", tests)
