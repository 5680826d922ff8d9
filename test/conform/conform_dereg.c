/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* ibv_dereg_mr while work requests that name the region are posted: nobody touches its memory any more. */
#include "test/conform/remote.h"

#define FIRST 0x55 /* what the memory holds when it is given up */

/* In a landing, with its tail, through a ring, straight into the buffer. */
static const uint32_t lengths[] = { 1, 8, 48, 49, 112, 113, 1000, 4096, 4097, 30000 };

static char memory[BUFFER];

static struct ibv_mr *region(struct side *side)
{
	struct ibv_mr *mr = ibv_reg_mr(side->pd, memory, sizeof(memory), IBV_ACCESS_LOCAL_WRITE);

	CU_ASSERT_PTR_NOT_NULL_FATAL(mr);
	memset(memory, FIRST, sizeof(memory));
	return mr;
}

static bool is_untouched(void)
{
	return memory[0] == FIRST && !memcmp(memory, memory + 1, sizeof(memory) - 1);
}

/* A receive of two pieces: the first in the side's own buffer, the second in the region. */
static int post_into(struct side *side, uint64_t wr_id, uint32_t before, const struct ibv_mr *mr)
{
	struct ibv_sge sge[2] = { { (uintptr_t)side->buffer, before, side->mr->lkey },
				  { (uintptr_t)mr->addr, (uint32_t)mr->length, mr->lkey } };
	struct ibv_recv_wr wr = { .wr_id = wr_id,
				  .sg_list = before ? sge : sge + 1,
				  .num_sge = before ? 2 : 1 },
			   *bad;

	return side->srq ? ibv_post_srq_recv(side->srq, &wr, &bad)
			 : ibv_post_recv(side->qp, &wr, &bad);
}

static int post_own(struct side *side, uint64_t wr_id)
{
	return side->srq ? post_srq(side, wr_id, 0, BUFFER) : post_recv(side, wr_id, 0, BUFFER);
}

/* The receive before counts as ever, the one with the region fails, and with it what stands behind. */
static void meets_receives(const struct pair_options *options, uint32_t before)
{
	for (size_t i = 0; i < COUNT(lengths); i++) {
		bool reliable = options->type != IBV_QPT_UC;
		struct pair pair;
		struct ibv_mr *mr;

		if (lengths[i] <= before)
			continue;
		if (!pair_open(&pair, options))
			return;
		mr = region(&pair.b);
		CU_ASSERT_EQUAL(post_own(&pair.b, 1), 0);
		CU_ASSERT_EQUAL(post_into(&pair.b, 2, before, mr), 0);
		CU_ASSERT_EQUAL(post_own(&pair.b, 3), 0);
		CU_ASSERT_EQUAL(ibv_dereg_mr(mr), 0);
		CU_ASSERT_EQUAL(post_send(&pair.a, 1, 0, lengths[i], IBV_SEND_SIGNALED), 0);
		CU_ASSERT_TRUE(completes(pair.a.scq, 1, IBV_WC_SUCCESS, NULL));
		CU_ASSERT_TRUE(completes(pair.b.rcq, 1, IBV_WC_SUCCESS, NULL));
		CU_ASSERT_EQUAL(post_send(&pair.a, 2, 0, lengths[i], IBV_SEND_SIGNALED), 0);
		CU_ASSERT_TRUE(completes(pair.a.scq, 2,
					 reliable ? IBV_WC_REM_OP_ERR : IBV_WC_SUCCESS, NULL));
		CU_ASSERT_TRUE(
			completes_or_rxe(pair.b.rcq, 2, IBV_WC_LOC_PROT_ERR, IBV_WC_LOC_QP_OP_ERR));
		if (!options->srq_wr)
			CU_ASSERT_TRUE(completes(pair.b.rcq, 3, IBV_WC_WR_FLUSH_ERR, NULL));
		CU_ASSERT_TRUE(reaches(pair.b.qp, IBV_QPS_ERR));
		CU_ASSERT_EQUAL(state_of(pair.a.qp), reliable ? IBV_QPS_ERR : IBV_QPS_RTS);
		CU_ASSERT_TRUE(is_untouched());
		if (options->srq_wr)
			CU_ASSERT_TRUE(device_is_rxe ||
				       async_is(IBV_EVENT_QP_LAST_WQE_REACHED, pair.b.qp));
		pair_close(&pair);
	}
}

static void receives(void)
{
	meets_receives(&(struct pair_options){ 0 }, 0);
}

static void second_piece_of_receives(void)
{
	meets_receives(&(struct pair_options){ 0 }, 48);
	meets_receives(&(struct pair_options){ 0 }, 4000);
}

/* Only what a message touches has to be there. */
static void pieces_that_nothing_reaches(void)
{
	struct ibv_wc wc = { 0 };
	struct pair pair;
	struct ibv_mr *mr;

	if (!pair_open(&pair, NULL))
		return;
	mr = region(&pair.b);
	CU_ASSERT_EQUAL(post_into(&pair.b, 1, 0, mr), 0);
	for (uint64_t i = 2; i <= 4; i++)
		CU_ASSERT_EQUAL(post_into(&pair.b, i, 5000, mr), 0);
	CU_ASSERT_EQUAL(ibv_dereg_mr(mr), 0);
	CU_ASSERT_EQUAL(post_send(&pair.a, 1, 0, 0, IBV_SEND_SIGNALED), 0);
	CU_ASSERT_EQUAL(post_send(&pair.a, 2, 0, 8, IBV_SEND_SIGNALED), 0);
	CU_ASSERT_EQUAL(post_send(&pair.a, 3, 0, 5000, IBV_SEND_SIGNALED), 0);
	for (uint64_t i = 1; i <= 3; i++) {
		CU_ASSERT_TRUE(completes(pair.a.scq, i, IBV_WC_SUCCESS, NULL));
		CU_ASSERT_TRUE(completes(pair.b.rcq, i, IBV_WC_SUCCESS, &wc));
	}
	CU_ASSERT_EQUAL(wc.byte_len, 5000);
	CU_ASSERT_EQUAL(post_send(&pair.a, 4, 0, 5001, IBV_SEND_SIGNALED), 0);
	CU_ASSERT_TRUE(completes(pair.a.scq, 4, IBV_WC_REM_OP_ERR, NULL));
	CU_ASSERT_TRUE(completes_or_rxe(pair.b.rcq, 4, IBV_WC_LOC_PROT_ERR, IBV_WC_LOC_QP_OP_ERR));
	CU_ASSERT_TRUE(is_untouched());
	pair_close(&pair);
}

static void shared_receives(void)
{
	meets_receives(&(struct pair_options){ .srq_wr = 8 }, 0);
}

static void unreliable_receives(void)
{
	meets_receives(&(struct pair_options){ .type = IBV_QPT_UC }, 0);
}

static void datagrams(void)
{
	static const uint32_t payloads[] = { 0, 1, 100, 1000 };

	for (size_t i = 0; i < COUNT(payloads); i++) {
		struct pair pair;
		struct ibv_mr *mr;

		if (!pair_open(&pair, &(struct pair_options){ .type = IBV_QPT_UD }))
			return;
		mr = region(&pair.b);
		CU_ASSERT_EQUAL(post_into(&pair.b, 1, 0, mr), 0);
		CU_ASSERT_EQUAL(ibv_dereg_mr(mr), 0);
		CU_ASSERT_EQUAL(post_send(&pair.a, 1, 0, payloads[i], IBV_SEND_SIGNALED), 0);
		CU_ASSERT_TRUE(completes(pair.a.scq, 1, IBV_WC_SUCCESS, NULL));
		CU_ASSERT_TRUE(
			completes_or_rxe(pair.b.rcq, 1, IBV_WC_LOC_PROT_ERR, IBV_WC_LOC_QP_OP_ERR));
		CU_ASSERT_TRUE(is_untouched());
		CU_ASSERT_EQUAL(state_of(pair.a.qp), IBV_QPS_RTS);
		pair_close(&pair);
	}
}

/* The new region has the same memory, perhaps the same number, and another key. */
static void registered_again(void)
{
	for (size_t i = 0; i < COUNT(lengths); i++) {
		struct pair pair;
		struct ibv_mr *mr;

		if (!pair_open(&pair, NULL))
			return;
		mr = region(&pair.b);
		CU_ASSERT_EQUAL(post_into(&pair.b, 1, 0, mr), 0);
		CU_ASSERT_EQUAL(ibv_dereg_mr(mr), 0);
		mr = region(&pair.b);
		CU_ASSERT_EQUAL(post_send(&pair.a, 1, 0, lengths[i], IBV_SEND_SIGNALED), 0);
		CU_ASSERT_TRUE(completes(pair.a.scq, 1, IBV_WC_REM_OP_ERR, NULL));
		CU_ASSERT_TRUE(
			completes_or_rxe(pair.b.rcq, 1, IBV_WC_LOC_PROT_ERR, IBV_WC_LOC_QP_OP_ERR));
		CU_ASSERT_TRUE(is_untouched());
		CU_ASSERT_EQUAL(ibv_dereg_mr(mr), 0);
		pair_close(&pair);
	}
}

/* A send that waits for a receive when its source goes; the receiver never hears of it. */
static void waiting_sends(void)
{
	for (size_t i = 0; i < COUNT(lengths); i++) {
		struct ibv_sge sge;
		struct ibv_send_wr wr = { .wr_id = 1,
					  .sg_list = &sge,
					  .num_sge = 1,
					  .opcode = IBV_WR_SEND },
				   *bad;
		struct pair pair;
		struct ibv_mr *mr;

		if (!pair_open(&pair, NULL))
			return;
		mr = region(&pair.a);
		sge = (struct ibv_sge){ (uintptr_t)memory, lengths[i], mr->lkey };
		CU_ASSERT_EQUAL(ibv_post_send(pair.a.qp, &wr, &bad), 0);
		CU_ASSERT_TRUE(stays_empty(pair.a.scq));
		CU_ASSERT_EQUAL(ibv_dereg_mr(mr), 0);
		CU_ASSERT_EQUAL(post_recv(&pair.b, 1, 0, BUFFER), 0);
		CU_ASSERT_TRUE(
			completes_or_rxe(pair.a.scq, 1, IBV_WC_LOC_PROT_ERR, IBV_WC_LOC_QP_OP_ERR));
		CU_ASSERT_EQUAL(state_of(pair.b.qp), IBV_QPS_RTS);
		CU_ASSERT_TRUE(stays_empty(pair.b.rcq));
		pair_close(&pair);
	}
}

static const struct unit_test tests[] = {
	{ "B.9 dereg: a posted receive completes with LOC_PROT_ERR, its sender with REM_OP_ERR",
	  receives },
	{ "B.9 dereg: also of a later piece of the receive", second_piece_of_receives },
	{ "B.9 dereg: not of a piece that the message does not reach",
	  pieces_that_nothing_reaches },
	{ "B.9 dereg: receives in a shared queue", shared_receives },
	{ "B.9 dereg: receives of an unreliable connection", unreliable_receives },
	{ "B.9 dereg: receives of datagrams", datagrams },
	{ "B.9 dereg: registering the memory again does not bring receives back",
	  registered_again },
	{ "B.9 dereg: a send that waits completes with LOC_PROT_ERR, the peer unaffected",
	  waiting_sends },
};

CONFORM_MAIN("conform_dereg", tests)
