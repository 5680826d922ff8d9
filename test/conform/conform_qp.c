/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Queue pairs as objects: creation, capabilities, query results, and the effects of leaving a state. */
#include "test/conform/conform.h"

static struct ibv_qp_init_attr plain(const struct side *side)
{
	return (struct ibv_qp_init_attr){
		.send_cq = side->scq,
		.recv_cq = side->rcq,
		.qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = 5, .max_recv_wr = 7, .max_send_sge = 2, .max_recv_sge = 3 },
	};
}

static bool refused(const struct side *side, struct ibv_qp_init_attr init)
{
	struct ibv_qp *qp;

	errno = 0;
	qp = ibv_create_qp(side->pd, &init);
	if (qp)
		ibv_destroy_qp(qp);
	return !qp && errno == EINVAL;
}

static void creation_is_checked(void)
{
	struct ibv_qp_init_attr init;
	struct side side;

	CU_ASSERT_TRUE_FATAL(side_open(&side, &(struct pair_options){ 0 }, false));
	init = plain(&side);
	init.cap.max_send_wr = (uint32_t)device_attr.max_qp_wr + 1;
	CU_ASSERT_TRUE(refused(&side, init));
	init = plain(&side);
	init.cap.max_recv_wr = (uint32_t)device_attr.max_qp_wr + 1;
	CU_ASSERT_TRUE(refused(&side, init));
	init = plain(&side);
	init.cap.max_send_sge = (uint32_t)device_attr.max_sge + 1;
	CU_ASSERT_TRUE(refused(&side, init));
	init = plain(&side);
	init.cap.max_recv_sge = (uint32_t)device_attr.max_sge + 1;
	CU_ASSERT_TRUE(refused(&side, init));
	init = plain(&side);
	init.cap.max_inline_data = 1u << 20;
	CU_ASSERT_TRUE(refused(&side, init));
	side_close(&side);
}

static void capabilities_are_granted(void)
{
	struct ibv_qp_init_attr init, queried;
	struct ibv_qp_attr attr;
	struct ibv_qp *qp;
	struct side side;

	CU_ASSERT_TRUE_FATAL(side_open(&side, &(struct pair_options){ 0 }, false));
	init = plain(&side);
	init.cap.max_inline_data = 40;
	qp = ibv_create_qp(side.pd, &init);
	CU_ASSERT_PTR_NOT_NULL_FATAL(qp);
	CU_ASSERT_TRUE(init.cap.max_send_wr >= 5 && init.cap.max_recv_wr >= 7);
	CU_ASSERT_TRUE(init.cap.max_send_sge >= 2 && init.cap.max_recv_sge >= 3);
	CU_ASSERT_TRUE(init.cap.max_inline_data >= 40);
	CU_ASSERT_TRUE(qp->qp_num > 1 && qp->qp_num < 1 << 24);
	CU_ASSERT_EQUAL(qp->state, IBV_QPS_RESET);
	CU_ASSERT_TRUE(qp->pd == side.pd && qp->send_cq == side.scq && qp->recv_cq == side.rcq);
	CU_ASSERT_TRUE(qp->qp_type == IBV_QPT_RC && !qp->srq && qp->context == device);
	CU_ASSERT_EQUAL(ibv_query_qp(qp, &attr, IBV_QP_CAP | IBV_QP_STATE, &queried), 0);
	CU_ASSERT_EQUAL(attr.qp_state, IBV_QPS_RESET);
	CU_ASSERT_TRUE(attr.cap.max_send_wr >= 5 && queried.cap.max_send_wr >= 5);
	CU_ASSERT_TRUE(attr.cap.max_recv_wr >= 7 && queried.cap.max_recv_wr >= 7);
	CU_ASSERT_TRUE(queried.cap.max_inline_data >= 40);
	CU_ASSERT_TRUE(queried.send_cq == side.scq && queried.recv_cq == side.rcq);
	CU_ASSERT_EQUAL(ibv_destroy_qp(qp), 0);
	side_close(&side);
}

static void numbers_are_not_reused_at_once(void)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp *one, *two;
	struct side side;

	CU_ASSERT_TRUE_FATAL(side_open(&side, &(struct pair_options){ 0 }, false));
	init = plain(&side);
	one = ibv_create_qp(side.pd, &init);
	two = ibv_create_qp(side.pd, &init);
	CU_ASSERT_TRUE_FATAL(one && two);
	CU_ASSERT_NOT_EQUAL(one->qp_num, two->qp_num);
	CU_ASSERT_NOT_EQUAL(one->qp_num, side.qp->qp_num);
	CU_ASSERT_EQUAL(ibv_destroy_qp(one), 0);
	CU_ASSERT_EQUAL(ibv_destroy_qp(two), 0);
	side_close(&side);
}

static void query_says_what_was_set(void)
{
	struct pair_options options = {
		.timeout = 11, .retry_cnt = 3, .rnr_retry = 5, .min_rnr_timer = 9
	};
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	struct pair pair;

	if (!pair_open(&pair, &options))
		return;
	CU_ASSERT_EQUAL(ibv_query_qp(pair.a.qp, &attr, (IBV_QP_DEST_QPN << 1) - 1, &init), 0);
	CU_ASSERT_EQUAL(attr.qp_state, IBV_QPS_RTS);
	CU_ASSERT_TRUE(attr.cur_qp_state == IBV_QPS_RTS || device_is_rxe); /* rxe leaves it out */
	CU_ASSERT_EQUAL(attr.timeout, 11);
	CU_ASSERT_EQUAL(attr.retry_cnt, 3);
	CU_ASSERT_EQUAL(attr.rnr_retry, 5);
	CU_ASSERT_EQUAL(attr.min_rnr_timer, 9);
	CU_ASSERT_EQUAL(attr.path_mtu, IBV_MTU_1024);
	CU_ASSERT_EQUAL(attr.dest_qp_num, pair.b.qp->qp_num);
	CU_ASSERT_EQUAL(attr.port_num, 1);
	CU_ASSERT_EQUAL(attr.max_rd_atomic, 1);
	CU_ASSERT_EQUAL(attr.max_dest_rd_atomic, 1);
	CU_ASSERT_TRUE(attr.qp_access_flags & IBV_ACCESS_REMOTE_READ);
	CU_ASSERT_TRUE(attr.qp_access_flags & IBV_ACCESS_REMOTE_WRITE);
	CU_ASSERT_EQUAL(memcmp(&attr.ah_attr.grh.dgid, &device_gid, sizeof(device_gid)), 0);
	CU_ASSERT_EQUAL(attr.ah_attr.grh.sgid_index, device_gid_index);
	CU_ASSERT_EQUAL(init.qp_type, IBV_QPT_RC);
	pair_close(&pair);
}

static void error_flushes_in_order(void)
{
	struct ibv_wc wc;
	struct pair pair;
	uint64_t i;

	if (!pair_open(&pair, NULL))
		return;
	for (i = 0; i < 5; i++)
		CU_ASSERT_EQUAL(post_recv(&pair.b, i, 0, 8), 0);
	CU_ASSERT_EQUAL(move_to(pair.b.qp, IBV_QPS_ERR), 0);
	for (i = 0; i < 5; i++) {
		CU_ASSERT_TRUE(completes(pair.b.rcq, i, IBV_WC_WR_FLUSH_ERR, &wc));
		CU_ASSERT_EQUAL(wc.qp_num, pair.b.qp->qp_num);
	}
	CU_ASSERT_TRUE(stays_empty(pair.b.rcq));
	pair_close(&pair);
}

static void filled_receives_survive_an_error(void)
{
	struct ibv_wc wc = { 0 };
	struct pair pair;

	if (!pair_open(&pair, NULL))
		return;
	strcpy(pair.a.buffer, "first");
	CU_ASSERT_EQUAL(post_recv(&pair.b, 1, 0, 64), 0);
	CU_ASSERT_EQUAL(post_recv(&pair.b, 2, 64, 64), 0);
	CU_ASSERT_EQUAL(post_send(&pair.a, 3, 0, 6, IBV_SEND_SIGNALED), 0);
	CU_ASSERT_TRUE(completes(pair.a.scq, 3, IBV_WC_SUCCESS, NULL));
	CU_ASSERT_EQUAL(move_to(pair.b.qp, IBV_QPS_ERR), 0);
	CU_ASSERT_TRUE(completes(pair.b.rcq, 1, IBV_WC_SUCCESS, &wc));
	CU_ASSERT_EQUAL(wc.byte_len, 6);
	CU_ASSERT_STRING_EQUAL(pair.b.buffer, "first");
	CU_ASSERT_TRUE(completes(pair.b.rcq, 2, IBV_WC_WR_FLUSH_ERR, NULL));
	pair_close(&pair);
}

/* Moves the QP through RESET to RTS; it has dropped all requests. */
static void reset_forgets(void)
{
	struct pair pair;
	int remote = IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE;

	if (!pair_open(&pair, NULL))
		return;
	CU_ASSERT_EQUAL(post_recv(&pair.b, 1, 0, 8), 0);
	CU_ASSERT_EQUAL(post_recv(&pair.b, 2, 0, 8), 0);
	CU_ASSERT_EQUAL(move_to(pair.b.qp, IBV_QPS_RESET), 0);
	CU_ASSERT_EQUAL(move_to(pair.a.qp, IBV_QPS_RESET), 0);
	CU_ASSERT_TRUE(stays_empty(pair.b.rcq));
	CU_ASSERT_TRUE(!make_init(pair.a.qp, remote) && !make_init(pair.b.qp, remote));
	CU_ASSERT_TRUE(!make_rtr(pair.a.qp, pair.b.qp->qp_num, NULL));
	CU_ASSERT_TRUE(!make_rtr(pair.b.qp, pair.a.qp->qp_num, NULL));
	CU_ASSERT_TRUE(!make_rts(pair.a.qp, NULL) && !make_rts(pair.b.qp, NULL));
	CU_ASSERT_EQUAL(post_recv(&pair.b, 3, 0, 8), 0);
	CU_ASSERT_EQUAL(post_send(&pair.a, 4, 0, 8, IBV_SEND_SIGNALED), 0);
	CU_ASSERT_TRUE(completes(pair.a.scq, 4, IBV_WC_SUCCESS, NULL));
	CU_ASSERT_TRUE(completes(pair.b.rcq, 3, IBV_WC_SUCCESS, NULL));
	pair_close(&pair);
}

static void reset_drops_completions(void)
{
	struct ibv_wc wc[8];
	struct pair pair;

	if (!pair_open(&pair, NULL))
		return;
	CU_ASSERT_EQUAL(post_recv(&pair.b, 1, 0, 8), 0);
	CU_ASSERT_EQUAL(move_to(pair.b.qp, IBV_QPS_ERR), 0);
	CU_ASSERT_EQUAL(move_to(pair.b.qp, IBV_QPS_RESET), 0);
	/* the kernel's software RoCE cannot remove a completion from the program's memory */
	CU_ASSERT_TRUE(ibv_poll_cq(pair.b.rcq, 8, wc) <= (device_is_rxe ? 1 : 0));
	pair_close(&pair);
}

static void drained_queue_says_so(void)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_SQD, .en_sqd_async_notify = 1 };
	struct pair pair;

	if (!pair_open(&pair, NULL))
		return;
	CU_ASSERT_EQUAL(ibv_modify_qp(pair.a.qp, &attr, IBV_QP_STATE | IBV_QP_EN_SQD_ASYNC_NOTIFY),
			0);
	CU_ASSERT_TRUE(async_is(IBV_EVENT_SQ_DRAINED, pair.a.qp));
	CU_ASSERT_EQUAL(move_to(pair.a.qp, IBV_QPS_RTS), 0);
	pair_close(&pair);
}

static void queue_pair_to_itself(void)
{
	struct side side;

	CU_ASSERT_TRUE_FATAL(side_open(&side, &(struct pair_options){ 0 }, false));
	CU_ASSERT_EQUAL(make_init(side.qp, IBV_ACCESS_REMOTE_WRITE), 0);
	CU_ASSERT_EQUAL(make_rtr(side.qp, side.qp->qp_num, NULL), 0);
	CU_ASSERT_EQUAL(make_rts(side.qp, NULL), 0);
	strcpy(side.buffer, "echo");
	CU_ASSERT_EQUAL(post_recv(&side, 1, 100, 8), 0);
	CU_ASSERT_EQUAL(post_send(&side, 2, 0, 5, IBV_SEND_SIGNALED), 0);
	CU_ASSERT_TRUE(completes(side.scq, 2, IBV_WC_SUCCESS, NULL));
	CU_ASSERT_TRUE(completes(side.rcq, 1, IBV_WC_SUCCESS, NULL));
	CU_ASSERT_STRING_EQUAL(side.buffer + 100, "echo");
	side_close(&side);
}

static const struct unit_test tests[] = {
	{ "create_qp beyond the limits: EINVAL", creation_is_checked },
	{ "at least the capabilities asked for, in the attribute and in a query",
	  capabilities_are_granted },
	{ "each QP has a number of its own", numbers_are_not_reused_at_once },
	{ "a query says what was set", query_says_what_was_set },
	{ "entering ERR flushes receives in order", error_flushes_in_order },
	{ "receives filled before the error stay successful", filled_receives_survive_an_error },
	{ "RESET forgets, and the QP can be connected again", reset_forgets },
	{ "RESET drops the completions of the QP", reset_drops_completions },
	{ "SQD with notification: SQ_DRAINED when idle", drained_queue_says_so },
	{ "a QP may be connected to itself", queue_pair_to_itself },
};

CONFORM_MAIN("conform_qp", tests)
