/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Unreliable connections: a message arrives whole and in order, or is lost without an error. */
#include "test/conform/remote.h"
#include "test/conform/unreliable.h"

static const struct pair_options uc = { .type = IBV_QPT_UC };

static const uint32_t sizes[] = { 0, 1, 8, 48, 49, 1000, 4096, 4097, 30000, BUFFER };

static void messages(void)
{
	struct ibv_wc wc;
	struct pair pair;
	size_t i;

	if (!pair_open(&pair, &uc))
		return;
	for (i = 0; i < COUNT(sizes); i++) {
		pattern_fill(pair.a.buffer, sizes[i], (unsigned)i);
		CU_ASSERT_EQUAL(post_recv(&pair.b, i, 0, BUFFER), 0);
		CU_ASSERT_EQUAL(post_send(&pair.a, i, 0, sizes[i], IBV_SEND_SIGNALED), 0);
		CU_ASSERT_TRUE(completes(pair.a.scq, i, IBV_WC_SUCCESS, &wc));
		CU_ASSERT_EQUAL(wc.opcode, IBV_WC_SEND);
		CU_ASSERT_TRUE(completes(pair.b.rcq, i, IBV_WC_SUCCESS, &wc));
		CU_ASSERT_EQUAL(wc.opcode, IBV_WC_RECV);
		CU_ASSERT_EQUAL(wc.byte_len, sizes[i]);
		if (!device_is_rxe) /* rxe sets the flag for every packet */
			CU_ASSERT_FALSE(wc.wc_flags & IBV_WC_GRH);
		CU_ASSERT_TRUE(pattern_holds(pair.b.buffer, sizes[i], (unsigned)i));
	}
	pair_close(&pair);
}

static int post_imm(struct side *side, enum ibv_wr_opcode opcode, uint64_t wr_id,
		    const struct side *peer, uint32_t rkey)
{
	struct ibv_sge sge = { (uintptr_t)side->buffer, 100, side->mr->lkey };
	struct ibv_send_wr wr = {
		.wr_id = wr_id,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = opcode,
		.send_flags = IBV_SEND_SIGNALED,
		.imm_data = 0x01020304,
		.wr.rdma = { (uintptr_t)peer->buffer + 500, rkey },
	}, *bad;

	return ibv_post_send(side->qp, &wr, &bad);
}

static void writes(void)
{
	struct ibv_wc wc = { 0 };
	struct pair pair;

	if (!pair_open(&pair, &uc))
		return;
	pattern_fill(pair.a.buffer, 30000, 5);
	CU_ASSERT_EQUAL(post_rdma(&pair.a, IBV_WR_RDMA_WRITE, 1, 0, 30000, &pair.b, 7,
				  IBV_SEND_SIGNALED),
			0);
	CU_ASSERT_TRUE(completes(pair.a.scq, 1, IBV_WC_SUCCESS, &wc));
	CU_ASSERT_EQUAL(wc.opcode, IBV_WC_RDMA_WRITE);
	CU_ASSERT_EQUAL(post_recv(&pair.b, 2, 0, 0), 0);
	CU_ASSERT_EQUAL(post_imm(&pair.a, IBV_WR_RDMA_WRITE_WITH_IMM, 3, &pair.b, pair.b.mr->rkey),
			0);
	CU_ASSERT_TRUE(completes(pair.a.scq, 3, IBV_WC_SUCCESS, NULL));
	CU_ASSERT_TRUE(completes(pair.b.rcq, 2, IBV_WC_SUCCESS, &wc));
	CU_ASSERT_EQUAL(wc.opcode, IBV_WC_RECV_RDMA_WITH_IMM);
	CU_ASSERT_EQUAL(wc.imm_data, 0x01020304);
	CU_ASSERT_TRUE(wc.wc_flags & IBV_WC_WITH_IMM);
	/* one path keeps the order, so the first write is there, too */
	CU_ASSERT_TRUE(pattern_holds(pair.b.buffer + 7, 493, 5));
	pair_close(&pair);
}

static void send_with_immediate(void)
{
	struct ibv_wc wc = { 0 };
	struct pair pair;

	if (!pair_open(&pair, &uc))
		return;
	CU_ASSERT_EQUAL(post_recv(&pair.b, 1, 0, 200), 0);
	CU_ASSERT_EQUAL(post_imm(&pair.a, IBV_WR_SEND_WITH_IMM, 2, &pair.b, 0), 0);
	CU_ASSERT_TRUE(completes(pair.b.rcq, 1, IBV_WC_SUCCESS, &wc));
	CU_ASSERT_EQUAL(wc.imm_data, 0x01020304);
	CU_ASSERT_EQUAL(wc.byte_len, 100);
	CU_ASSERT_TRUE(completes(pair.a.scq, 2, IBV_WC_SUCCESS, NULL));
	pair_close(&pair);
}

static void no_receive_loses(void)
{
	unreliable_no_receive_loses(&uc);
}

static void unused_number_loses(void)
{
	struct pair pair;

	if (!pair_open(&pair, &uc))
		return;
	CU_ASSERT_EQUAL(move_to(pair.b.qp, IBV_QPS_RESET), 0);
	CU_ASSERT_EQUAL(post_send(&pair.a, 1, 0, 11, IBV_SEND_SIGNALED), 0);
	CU_ASSERT_TRUE(completes(pair.a.scq, 1, IBV_WC_SUCCESS, NULL));
	CU_ASSERT_EQUAL(post_rdma(&pair.a, IBV_WR_RDMA_WRITE, 2, 0, 100, &pair.b, 0,
				  IBV_SEND_SIGNALED),
			0);
	CU_ASSERT_TRUE(completes(pair.a.scq, 2, IBV_WC_SUCCESS, NULL));
	CU_ASSERT_EQUAL(state_of(pair.a.qp), IBV_QPS_RTS);
	pair_close(&pair);
}

/* The responder drops the message and continues: neither side has an error. */
static void bad_key_loses(void)
{
	struct pair pair;

	if (!pair_open(&pair, &uc))
		return;
	CU_ASSERT_EQUAL(post_recv(&pair.b, 1, 0, 64), 0);
	CU_ASSERT_EQUAL(post_imm(&pair.a, IBV_WR_RDMA_WRITE, 2, &pair.b, pair.b.mr->rkey ^ 0x5500),
			0);
	CU_ASSERT_TRUE(completes(pair.a.scq, 2, IBV_WC_SUCCESS, NULL));
	CU_ASSERT_EQUAL(pair.b.buffer[500], 0);
	CU_ASSERT_EQUAL(post_send(&pair.a, 3, 0, 8, IBV_SEND_SIGNALED), 0);
	CU_ASSERT_TRUE(completes(pair.a.scq, 3, IBV_WC_SUCCESS, NULL));
	CU_ASSERT_TRUE(completes(pair.b.rcq, 1, IBV_WC_SUCCESS, NULL));
	CU_ASSERT_EQUAL(state_of(pair.b.qp), IBV_QPS_RTS);
	CU_ASSERT_TRUE(async_silent());
	pair_close(&pair);
}

/* The sender gets no error; the responder drops the message or fails. */
static void too_long_is_not_told(void)
{
	struct pair pair;

	if (!pair_open(&pair, &uc))
		return;
	CU_ASSERT_EQUAL(post_recv(&pair.b, 1, 0, 10), 0);
	CU_ASSERT_EQUAL(post_send(&pair.a, 2, 0, 100, IBV_SEND_SIGNALED), 0);
	CU_ASSERT_TRUE(completes(pair.a.scq, 2, IBV_WC_SUCCESS, NULL));
	CU_ASSERT_EQUAL(state_of(pair.a.qp), IBV_QPS_RTS);
	if (device_is_rxe)
		skip("drops it and keeps the receive");
	else
		CU_ASSERT_TRUE(completes(pair.b.rcq, 1, IBV_WC_LOC_LEN_ERR, NULL));
	pair_close(&pair);
}

static void local_error_stops_the_send_queue(void)
{
	unreliable_local_error(&uc);
}

static void no_reads_no_atomics(void)
{
	struct pair pair;

	if (device_is_rxe) {
		skip("accepts what it cannot do");
		return;
	}
	if (!pair_open(&pair, &uc))
		return;
	CU_ASSERT_EQUAL(post_rdma(&pair.a, IBV_WR_RDMA_READ, 1, 0, 8, &pair.b, 0, 0), EINVAL);
	CU_ASSERT_EQUAL(post_atomic(&pair.a, IBV_WR_ATOMIC_FETCH_AND_ADD, 2, 0, &pair.b, 0, 1, 0),
			EINVAL);
	pair_close(&pair);
}

static void masks(void)
{
	struct pair_options rc = { 0 };
	struct ibv_qp_attr attr;
	struct side side;
	int mask;

	CU_ASSERT_TRUE_FATAL(side_open(&side, &uc, false));
	init_attr(&attr, &mask, &uc);
	CU_ASSERT_EQUAL(ibv_modify_qp(side.qp, &attr, mask | IBV_QP_QKEY), EINVAL);
	CU_ASSERT_EQUAL(ibv_modify_qp(side.qp, &attr, mask), 0);
	rtr_attr(&attr, &mask, 77, &rc); /* more attributes than a UC may have */
	CU_ASSERT_EQUAL(ibv_modify_qp(side.qp, &attr, mask), EINVAL);
	rtr_attr(&attr, &mask, 77, &uc);
	CU_ASSERT_EQUAL(ibv_modify_qp(side.qp, &attr, mask & ~IBV_QP_AV), EINVAL);
	CU_ASSERT_EQUAL(ibv_modify_qp(side.qp, &attr, mask), 0);
	rts_attr(&attr, &mask, &rc);
	CU_ASSERT_EQUAL(ibv_modify_qp(side.qp, &attr, mask), EINVAL);
	rts_attr(&attr, &mask, &uc);
	CU_ASSERT_EQUAL(ibv_modify_qp(side.qp, &attr, mask), 0);
	CU_ASSERT_EQUAL(state_of(side.qp), IBV_QPS_RTS);
	side_close(&side);
}

/* ---- between processes ---- */

static void messages_to_another_process(void)
{
	struct remote peer;
	struct side here;

	if (!remote_open(&peer, &here, &uc))
		return;
	messages_there(&here, &peer, sizes + 1, COUNT(sizes) - 1);	   /* the first size is 0 */
	CU_ASSERT_EQUAL(post_send(&here, 99, 0, 8, IBV_SEND_SIGNALED), 0); /* this one is lost */
	CU_ASSERT_TRUE(completes(here.scq, 99, IBV_WC_SUCCESS, NULL));
	remote_close(&peer);
	side_close(&here);
}

static void death_loses(void)
{
	struct remote peer;
	struct side here;

	if (!remote_open(&peer, &here, &uc))
		return;
	CU_ASSERT_EQUAL(remote_post_recv(&peer, 1, 0, 64), 0);
	CU_ASSERT_EQUAL(post_send(&here, 1, 0, 8, IBV_SEND_SIGNALED), 0);
	CU_ASSERT_TRUE(completes(here.scq, 1, IBV_WC_SUCCESS, NULL));
	remote_kill(&peer);
	CU_ASSERT_EQUAL(post_send(&here, 2, 0, 8, IBV_SEND_SIGNALED), 0);
	CU_ASSERT_EQUAL(post_send(&here, 3, 0, 30000, IBV_SEND_SIGNALED), 0);
	CU_ASSERT_TRUE(completes(here.scq, 2, IBV_WC_SUCCESS, NULL));
	CU_ASSERT_TRUE(completes(here.scq, 3, IBV_WC_SUCCESS, NULL));
	CU_ASSERT_EQUAL(state_of(here.qp), IBV_QPS_RTS);
	side_close(&here);
}

static const struct unit_test tests[] = {
	{ "messages of every size", messages },
	{ "writes, plain and with immediate data", writes },
	{ "a send with immediate data", send_with_immediate },
	{ "reads and atomics are refused when posted", no_reads_no_atomics },
	{ "without a receive the message is lost, without RNR", no_receive_loses },
	{ "without a ready peer the message is lost", unused_number_loses },
	{ "a bad key loses the write, both sides go on", bad_key_loses },
	{ "the sender does not hear that its message is too long", too_long_is_not_told },
	{ "a local error stops the send queue alone", local_error_stops_the_send_queue },
	{ "the attribute masks of UC", masks },
	{ "messages to another process", messages_to_another_process },
	{ "messages to a process that died are lost", death_loses },
};

int main(int argc, char **argv)
{
	remote_main(argc, argv);
	return conform_open() ? unit_main("conform_uc", tests, COUNT(tests), argc, argv) : 77;
}
