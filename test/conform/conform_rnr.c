/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Retries: a receiver that is not ready, a peer that does not answer. */
#include "test/conform/conform.h"
#include "util/clock.h"

#define TIMER_5MS     18 /* 5.12 ms */
#define TIMEOUT_16MS  12 /* 16.8 ms */
#define TIMEOUT_537MS 17

static uint64_t started;

static uint64_t milliseconds(void)
{
	return (clock_now() - started) / NSEC_PER_MSEC;
}

static void first_rnr_fails(void)
{
	struct pair pair;

	if (!pair_open(&pair, &(struct pair_options){ .rnr_retry_none = true,
						      .min_rnr_timer = TIMER_5MS }))
		return;
	CU_ASSERT_EQUAL(post_send(&pair.a, 1, 0, 8, 0), 0);
	CU_ASSERT_EQUAL(post_send(&pair.a, 2, 0, 8, 0), 0);
	CU_ASSERT_TRUE(completes(pair.a.scq, 1, IBV_WC_RNR_RETRY_EXC_ERR, NULL));
	CU_ASSERT_TRUE(completes(pair.a.scq, 2, IBV_WC_WR_FLUSH_ERR, NULL));
	CU_ASSERT_TRUE(reaches(pair.a.qp, IBV_QPS_ERR));
	CU_ASSERT_EQUAL(state_of(pair.b.qp), IBV_QPS_RTS);
	CU_ASSERT_TRUE(async_silent());
	/* the responder stays in RTS, and its receives are not flushed */
	CU_ASSERT_EQUAL(post_recv(&pair.b, 3, 0, 8), 0);
	CU_ASSERT_TRUE(stays_empty(pair.b.rcq));
	pair_close(&pair);
}

static void rnr_budget(void)
{
	struct pair pair;

	if (!pair_open(&pair, &(struct pair_options){ .rnr_retry = 4, .min_rnr_timer = TIMER_5MS }))
		return;
	started = clock_now();
	CU_ASSERT_EQUAL(post_send(&pair.a, 1, 0, 8, 0), 0);
	CU_ASSERT_TRUE(completes(pair.a.scq, 1, IBV_WC_RNR_RETRY_EXC_ERR, NULL));
	CU_ASSERT_TRUE(milliseconds() >= 4 * 5);
	CU_ASSERT_EQUAL(state_of(pair.b.qp), IBV_QPS_RTS);
	pair_close(&pair);
}

static void rnr_for_ever(void)
{
	struct pair pair;

	if (!pair_open(&pair, &(struct pair_options){ .rnr_retry = 7, .min_rnr_timer = 1 }))
		return;
	CU_ASSERT_EQUAL(post_send(&pair.a, 1, 0, 8, IBV_SEND_SIGNALED), 0);
	CU_ASSERT_TRUE(stays_empty(pair.a.scq)); /* some thousand times the RNR timer */
	CU_ASSERT_EQUAL(post_recv(&pair.b, 2, 0, 8), 0);
	CU_ASSERT_TRUE(completes(pair.a.scq, 1, IBV_WC_SUCCESS, NULL));
	CU_ASSERT_TRUE(completes(pair.b.rcq, 2, IBV_WC_SUCCESS, NULL));
	pair_close(&pair);
}

static void rnr_keeps_order(void)
{
	struct ibv_wc wc;
	struct pair pair;
	uint64_t i;

	if (!pair_open(&pair, NULL))
		return;
	for (i = 0; i < 6; i++) {
		pair.a.buffer[i * 8] = (char)(i + 1);
		CU_ASSERT_EQUAL(post_send(&pair.a, i, (uint32_t)i * 8, 8, IBV_SEND_SIGNALED), 0);
	}
	/* a write behind them, which needs no receive */
	CU_ASSERT_EQUAL(post_rdma(&pair.a, IBV_WR_RDMA_WRITE, 6, 0, 8, &pair.b, 60000,
				  IBV_SEND_SIGNALED),
			0);
	CU_ASSERT_TRUE(stays_empty(pair.a.scq));
	CU_ASSERT_EQUAL(pair.b.buffer[60000], 0);
	for (i = 0; i < 6; i++) {
		CU_ASSERT_EQUAL(post_recv(&pair.b, i, 1000 + (uint32_t)i * 8, 8), 0);
		CU_ASSERT_TRUE(completes(pair.a.scq, i, IBV_WC_SUCCESS, NULL));
		CU_ASSERT_TRUE(completes(pair.b.rcq, i, IBV_WC_SUCCESS, &wc));
		CU_ASSERT_EQUAL(pair.b.buffer[1000 + i * 8], (char)(i + 1));
	}
	CU_ASSERT_TRUE(completes(pair.a.scq, 6, IBV_WC_SUCCESS, NULL));
	CU_ASSERT_EQUAL(pair.b.buffer[60000], 1);
	pair_close(&pair);
}

static void rnr_of_a_write_with_immediate(void)
{
	struct pair pair;

	if (!pair_open(&pair, &(struct pair_options){ .rnr_retry_none = true,
						      .min_rnr_timer = TIMER_5MS }))
		return;
	CU_ASSERT_EQUAL(post_rdma(&pair.a, IBV_WR_RDMA_WRITE_WITH_IMM, 1, 0, 8, &pair.b, 0, 0), 0);
	CU_ASSERT_TRUE(completes(pair.a.scq, 1, IBV_WC_RNR_RETRY_EXC_ERR, NULL));
	pair_close(&pair);
}

/*
 * With the timer of connections made by rdma_cm, a receive that comes a little late must not fail
 * the send.
 */
static void late_receive(void)
{
	struct pair pair;
	uint64_t i;

	if (!pair_open(&pair, &(struct pair_options){ .rnr_retry = 6, .min_rnr_timer_none = true }))
		return;
	for (i = 0; i < 3; i++) {
		CU_ASSERT_EQUAL(post_send(&pair.a, i, 0, 8, IBV_SEND_SIGNALED), 0);
		CU_ASSERT_TRUE(stays_empty(pair.a.scq));
		CU_ASSERT_EQUAL(post_recv(&pair.b, i, 0, 8), 0);
		CU_ASSERT_TRUE(completes(pair.a.scq, i, IBV_WC_SUCCESS, NULL));
		CU_ASSERT_TRUE(completes(pair.b.rcq, i, IBV_WC_SUCCESS, NULL));
	}
	pair_close(&pair);
}

/* Opens one side connected to a given QP number. */
static bool open_towards(struct side *side, uint32_t peer, const struct pair_options *options)
{
	bool good = side_open(side, options, false) && !make_init(side->qp, 0) &&
		    !make_rtr(side->qp, peer, options) && !make_rts(side->qp, options);

	CU_ASSERT_TRUE(good);
	if (!good)
		side_close(side);
	return good;
}

/* Returns false if the side failed before its retries were used up. */
static bool no_answer_at(uint32_t number)
{
	struct pair_options options = { .timeout = TIMEOUT_16MS, .retry_cnt = 2 };
	struct side side;
	bool patient;

	if (!open_towards(&side, number, &options))
		return true;
	started = clock_now();
	CU_ASSERT_EQUAL(post_send(&side, 1, 0, 8, 0), 0);
	CU_ASSERT_EQUAL(post_send(&side, 2, 0, 8, 0), 0);
	CU_ASSERT_TRUE(completes(side.scq, 1, IBV_WC_RETRY_EXC_ERR, NULL));
	patient = milliseconds() >= (device_is_rxe ? 2 : 3) * 16;
	CU_ASSERT_TRUE(completes(side.scq, 2, IBV_WC_WR_FLUSH_ERR, NULL));
	CU_ASSERT_TRUE(reaches(side.qp, IBV_QPS_ERR));
	side_close(&side);
	return patient;
}

/*
 * A number may have belonged to a process that has just ended, which is reported sooner: not all
 * three of them.
 */
static void no_answer(void)
{
	CU_ASSERT_TRUE(no_answer_at(0xfffffd) || no_answer_at(0xffeffd) || no_answer_at(0xffdffd));
}

static void no_timeout_waits_for_ever(void)
{
	struct pair_options options = { 0 };
	struct ibv_qp_attr attr;
	struct side side;
	int mask;

	CU_ASSERT_TRUE_FATAL(side_open(&side, &options, false));
	CU_ASSERT_EQUAL(make_init(side.qp, 0), 0);
	CU_ASSERT_EQUAL(make_rtr(side.qp, 0xfffffd, &options), 0);
	rts_attr(&attr, &mask, &options);
	attr.timeout = 0;
	attr.retry_cnt = 0;
	CU_ASSERT_EQUAL(ibv_modify_qp(side.qp, &attr, mask), 0);
	CU_ASSERT_EQUAL(post_send(&side, 1, 0, 8, 0), 0);
	CU_ASSERT_TRUE(stays_empty(side.scq));
	CU_ASSERT_EQUAL(state_of(side.qp), IBV_QPS_RTS);
	CU_ASSERT_EQUAL(move_to(side.qp, IBV_QPS_ERR), 0);
	CU_ASSERT_TRUE(completes(side.scq, 1, IBV_WC_WR_FLUSH_ERR, NULL));
	side_close(&side);
}

static void remote_does_not_answer(void (*change)(struct pair *pair))
{
	struct pair pair;

	if (!pair_open(&pair, &(struct pair_options){ .timeout = TIMEOUT_16MS, .retry_cnt = 1 }))
		return;
	change(&pair);
	started = clock_now();
	CU_ASSERT_EQUAL(post_rdma(&pair.a, IBV_WR_RDMA_WRITE, 1, 0, 8, &pair.b, 0, 0), 0);
	CU_ASSERT_TRUE(completes(pair.a.scq, 1, IBV_WC_RETRY_EXC_ERR, NULL));
	CU_ASSERT_TRUE(milliseconds() >= 16);
	CU_ASSERT_EQUAL(pair.b.buffer[0], 0);
	pair_close(&pair);
}

static void destroy_b(struct pair *pair)
{
	CU_ASSERT_EQUAL(ibv_destroy_qp(pair->b.qp), 0);
	pair->b.qp = NULL;
	pair->a.buffer[0] = 1;
}

static void reset_b(struct pair *pair)
{
	CU_ASSERT_EQUAL(move_to(pair->b.qp, IBV_QPS_RESET), 0);
	pair->a.buffer[0] = 1;
}

static void error_b(struct pair *pair)
{
	CU_ASSERT_EQUAL(move_to(pair->b.qp, IBV_QPS_ERR), 0);
	pair->a.buffer[0] = 1;
}

static void remote_is_destroyed(void)
{
	remote_does_not_answer(destroy_b);
}

static void remote_is_reset(void)
{
	remote_does_not_answer(reset_b);
}

static void remote_is_in_error(void)
{
	remote_does_not_answer(error_b);
}

/* A new queue pair may even have the number of a destroyed one. */
static void new_qp_is_not_the_old_one(void)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp *qp;
	struct pair pair;

	if (!pair_open(&pair, &(struct pair_options){ .timeout = TIMEOUT_16MS, .retry_cnt = 1 }))
		return;
	destroy_b(&pair);
	init = (struct ibv_qp_init_attr){
		.send_cq = pair.b.scq,
		.recv_cq = pair.b.rcq,
		.qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1 },
	};
	qp = ibv_create_qp(pair.b.pd, &init);
	CU_ASSERT_PTR_NOT_NULL_FATAL(qp);
	CU_ASSERT_EQUAL(make_init(qp, IBV_ACCESS_REMOTE_WRITE), 0);
	CU_ASSERT_EQUAL(make_rtr(qp, qp->qp_num, NULL), 0);
	CU_ASSERT_EQUAL(post_rdma(&pair.a, IBV_WR_RDMA_WRITE, 1, 0, 8, &pair.b, 0, 0), 0);
	CU_ASSERT_TRUE(completes(pair.a.scq, 1, IBV_WC_RETRY_EXC_ERR, NULL));
	CU_ASSERT_EQUAL(pair.b.buffer[0], 0);
	CU_ASSERT_EQUAL(ibv_destroy_qp(qp), 0);
	pair_close(&pair);
}

static void remote_becomes_ready(void)
{
	struct pair_options options = { .timeout = TIMEOUT_537MS, .retry_cnt = 7 };
	struct side a, b;

	CU_ASSERT_TRUE_FATAL(side_open(&b, &options, false));
	CU_ASSERT_EQUAL(make_init(b.qp, IBV_ACCESS_REMOTE_WRITE), 0);
	CU_ASSERT_EQUAL(post_recv(&b, 1, 0, 8), 0);
	if (!open_towards(&a, b.qp->qp_num, &options)) {
		side_close(&b);
		return;
	}
	strcpy(a.buffer, "patient");
	CU_ASSERT_EQUAL(post_send(&a, 2, 0, 8, IBV_SEND_SIGNALED), 0);
	CU_ASSERT_TRUE(stays_empty(a.scq));
	CU_ASSERT_EQUAL(make_rtr(b.qp, a.qp->qp_num, &options), 0);
	CU_ASSERT_TRUE(completes(a.scq, 2, IBV_WC_SUCCESS, NULL));
	CU_ASSERT_TRUE(completes(b.rcq, 1, IBV_WC_SUCCESS, NULL));
	CU_ASSERT_STRING_EQUAL(b.buffer, "patient");
	side_close(&a);
	side_close(&b);
}

static const struct unit_test tests[] = {
	{ "rnr_retry 0: the first RNR fails, only the initiator goes to ERR", first_rnr_fails },
	{ "rnr_retry 4: no failure before four times the timer", rnr_budget },
	{ "rnr_retry 7: for ever", rnr_for_ever },
	{ "requests behind one that waits for a receive stay behind it", rnr_keeps_order },
	{ "WRITE_WITH_IMM without a receive: RNR", rnr_of_a_write_with_immediate },
	{ "a receive a little late does not fail the send", late_receive },
	{ "unknown QP: RETRY_EXC_ERR after all retries, not before", no_answer },
	{ "for ever", no_timeout_waits_for_ever },
	{ "peer destroyed: RETRY_EXC_ERR", remote_is_destroyed },
	{ "peer in RESET: RETRY_EXC_ERR", remote_is_reset },
	{ "peer in ERR: RETRY_EXC_ERR", remote_is_in_error },
	{ "a new QP does not answer for an old one", new_qp_is_not_the_old_one },
	{ "peer in INIT: held until it is ready", remote_becomes_ready },
};

CONFORM_MAIN("conform_rnr", tests)
