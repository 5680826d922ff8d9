/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Unreliable datagrams within a process: address handles, the header before the payload, losses. */
#include "test/conform/unreliable.h"

static const struct pair_options ud = { .type = IBV_QPT_UD };

#define ROOM (GRH_SIZE + 4096)

static struct ibv_send_wr wr_to(struct side *side, struct ibv_sge *sge, uint32_t length)
{
	*sge = (struct ibv_sge){ (uintptr_t)side->buffer, length, side->mr->lkey };
	return (struct ibv_send_wr){
		.wr_id = 1,
		.sg_list = sge,
		.num_sge = 1,
		.opcode = IBV_WR_SEND,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.ud = { side->ah, side->peer, QKEY },
	};
}

static int post(struct side *side, struct ibv_send_wr *wr)
{
	struct ibv_send_wr *bad;

	return ibv_post_send(side->qp, wr, &bad);
}

static void sizes(void)
{
	static const uint32_t each[] = { 0, 1, 8, 24, 25, 63, 64, 65, 1000, 1024 };
	struct ibv_wc wc;
	struct pair pair;

	if (!pair_open(&pair, &ud))
		return;
	for (size_t i = 0; i < COUNT(each); i++) {
		memset(pair.a.buffer, (int)i + 'a', each[i]);
		memset(pair.b.buffer, 0, ROOM);
		CU_ASSERT_EQUAL(post_recv(&pair.b, i, 0, ROOM), 0);
		CU_ASSERT_EQUAL(post_send(&pair.a, i, 0, each[i], IBV_SEND_SIGNALED), 0);
		CU_ASSERT_TRUE(completes(pair.a.scq, i, IBV_WC_SUCCESS, &wc));
		CU_ASSERT_EQUAL(wc.opcode, IBV_WC_SEND);
		CU_ASSERT_TRUE(completes(pair.b.rcq, i, IBV_WC_SUCCESS, &wc));
		CU_ASSERT_EQUAL(wc.opcode, IBV_WC_RECV);
		CU_ASSERT_EQUAL(wc.byte_len, GRH_SIZE + each[i]);
		CU_ASSERT_EQUAL(wc.src_qp, pair.a.qp->qp_num);
		CU_ASSERT_TRUE(wc.wc_flags & IBV_WC_GRH);
		CU_ASSERT_FALSE(wc.wc_flags & IBV_WC_WITH_IMM);
		CU_ASSERT_EQUAL(memcmp(pair.b.buffer + GRH_SIZE, pair.a.buffer, each[i]), 0);
		CU_ASSERT_EQUAL(pair.b.buffer[GRH_SIZE + each[i]], 0);
	}
	pair_close(&pair);
}

static uint32_t mtu_bytes(void)
{
	struct ibv_port_attr port = { 0 };

	ibv_query_port(device, 1, &port);
	return 128u << port.active_mtu;
}

static void largest(void)
{
	uint32_t mtu = mtu_bytes();
	struct ibv_wc wc = { 0 };
	struct pair pair;

	if (!pair_open(&pair, &ud))
		return;
	memset(pair.a.buffer, 'x', mtu);
	CU_ASSERT_EQUAL(post_recv(&pair.b, 1, 0, GRH_SIZE + mtu), 0);
	CU_ASSERT_EQUAL(post_send(&pair.a, 2, 0, mtu, IBV_SEND_SIGNALED), 0);
	CU_ASSERT_TRUE(completes(pair.b.rcq, 1, IBV_WC_SUCCESS, &wc));
	CU_ASSERT_EQUAL(wc.byte_len, GRH_SIZE + mtu);
	CU_ASSERT_EQUAL(memcmp(pair.b.buffer + GRH_SIZE, pair.a.buffer, mtu), 0);
	CU_ASSERT_TRUE(completes(pair.a.scq, 2, IBV_WC_SUCCESS, NULL));
	pair_close(&pair);
}

/* IBTA C10-93.1.1: it is not sent, and there is no error. */
static void longer_than_mtu_is_lost(void)
{
	struct pair pair;

	if (!pair_open(&pair, &ud))
		return;
	CU_ASSERT_EQUAL(post_recv(&pair.b, 1, 0, 2 * ROOM), 0);
	CU_ASSERT_EQUAL(post_send(&pair.a, 2, 0, mtu_bytes() + 1, IBV_SEND_SIGNALED), 0);
	CU_ASSERT_TRUE(completes(pair.a.scq, 2, IBV_WC_SUCCESS, NULL));
	CU_ASSERT_TRUE(stays_empty(pair.b.rcq));
	CU_ASSERT_EQUAL(state_of(pair.a.qp), IBV_QPS_RTS);
	pair_close(&pair);
}

static void immediate_and_inline(void)
{
	struct pair_options options = { .type = IBV_QPT_UD, .inline_size = 32 };
	struct ibv_wc wc = { 0 };
	struct ibv_send_wr wr;
	struct ibv_sge sge;
	struct pair pair;

	if (!pair_open(&pair, &options))
		return;
	strcpy(pair.a.buffer, "inline");
	CU_ASSERT_EQUAL(post_recv(&pair.b, 5, 0, ROOM), 0);
	wr = wr_to(&pair.a, &sge, 7);
	sge.lkey = 0;
	wr.opcode = IBV_WR_SEND_WITH_IMM;
	wr.imm_data = 0x0a0b0c0d;
	wr.send_flags |= IBV_SEND_INLINE;
	CU_ASSERT_EQUAL(post(&pair.a, &wr), 0);
	memset(pair.a.buffer, 0, 7);
	CU_ASSERT_TRUE(completes(pair.b.rcq, 5, IBV_WC_SUCCESS, &wc));
	CU_ASSERT_EQUAL(wc.imm_data, 0x0a0b0c0d);
	CU_ASSERT_TRUE(wc.wc_flags & IBV_WC_WITH_IMM);
	CU_ASSERT_STRING_EQUAL(pair.b.buffer + GRH_SIZE, "inline");
	pair_close(&pair);
}

/* Replaces a's queue pair by one with ibv_wr_*. */
static struct ibv_qp_ex *extend(struct pair *pair, uint64_t operations)
{
	struct ibv_qp_init_attr_ex init = {
		.send_cq = pair->a.scq,
		.recv_cq = pair->a.rcq,
		.qp_type = IBV_QPT_UD,
		.cap = { .max_send_wr = 4, .max_send_sge = 1, .max_recv_wr = 1 },
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.pd = pair->a.pd,
		.send_ops_flags = operations,
	};
	struct ibv_qp *qp = ibv_create_qp_ex(device, &init);
	struct ibv_ah *ah = pair->a.ah;

	if (!qp)
		return NULL;
	CU_ASSERT_EQUAL(ibv_destroy_qp(pair->a.qp), 0);
	pair->a.qp = qp;
	CU_ASSERT_TRUE(side_connect(&pair->a, pair->b.qp->qp_num, &ud));
	CU_ASSERT_EQUAL(ibv_destroy_ah(ah), 0);
	return ibv_qp_to_qp_ex(qp);
}

static void extended(void)
{
	struct ibv_wc wc = { 0 };
	struct ibv_qp_ex *qp;
	struct pair pair;

	if (!pair_open(&pair, &ud))
		return;
	CU_ASSERT_PTR_NULL(extend(&pair, IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_RDMA_WRITE));
	qp = extend(&pair, IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM);
	if (qp) {
		CU_ASSERT_EQUAL(post_recv(&pair.b, 6, 0, ROOM), 0);
		ibv_wr_start(qp);
		qp->wr_id = 7;
		qp->wr_flags = IBV_SEND_SIGNALED;
		ibv_wr_send_imm(qp, 0x1234);
		ibv_wr_set_ud_addr(qp, pair.a.ah, pair.b.qp->qp_num, QKEY);
		ibv_wr_set_sge(qp, pair.a.mr->lkey, (uintptr_t)pair.a.buffer, 9);
		CU_ASSERT_EQUAL(ibv_wr_complete(qp), 0);
		CU_ASSERT_TRUE(completes(pair.a.scq, 7, IBV_WC_SUCCESS, NULL));
		CU_ASSERT_TRUE(completes(pair.b.rcq, 6, IBV_WC_SUCCESS, &wc));
		CU_ASSERT_TRUE(wc.imm_data == 0x1234 && wc.byte_len == GRH_SIZE + 9);
	} else {
		skip("no ibv_wr_*");
	}
	pair_close(&pair);
}

static void scattered_header(void)
{
	struct pair pair;
	struct ibv_sge to[3];
	struct ibv_recv_wr wr = { .wr_id = 4, .sg_list = to, .num_sge = 3 }, *bad;

	if (!pair_open(&pair, &ud))
		return;
	for (uint32_t i = 0; i < 3; i++)
		to[i] = (struct ibv_sge){ (uintptr_t)pair.b.buffer + i * 1000,
					  i == 0   ? 30
					  : i == 1 ? 20
						   : 500,
					  pair.b.mr->lkey };
	strcpy(pair.a.buffer, "0123456789abcdef");
	CU_ASSERT_EQUAL(ibv_post_recv(pair.b.qp, &wr, &bad), 0);
	CU_ASSERT_EQUAL(post_send(&pair.a, 1, 0, 17, 0), 0);
	CU_ASSERT_TRUE(completes(pair.b.rcq, 4, IBV_WC_SUCCESS, NULL));
	CU_ASSERT_EQUAL(memcmp(pair.b.buffer + 1010, "0123456789", 10), 0);
	CU_ASSERT_STRING_EQUAL(pair.b.buffer + 2000, "abcdef");
	pair_close(&pair);
}

/* ---- losses ---- */

static void no_receive_loses(void)
{
	unreliable_no_receive_loses(&ud);
}

/* Sends with this key to this number; returns whether the datagram arrives. */
static bool arrives(struct pair *pair, uint32_t qkey, uint32_t qpn)
{
	struct ibv_sge sge;
	struct ibv_send_wr wr = wr_to(&pair->a, &sge, 10);
	struct ibv_wc wc;

	wr.wr.ud.remote_qkey = qkey;
	wr.wr.ud.remote_qpn = qpn;
	CU_ASSERT_EQUAL(post(&pair->a, &wr), 0);
	CU_ASSERT_TRUE(completes(pair->a.scq, 1, IBV_WC_SUCCESS, NULL));
	if (stays_empty(pair->b.rcq))
		return false;
	return ibv_poll_cq(pair->b.rcq, 1, &wc) == 0;
}

static void wrong_qkey_loses(void)
{
	struct ibv_qp_attr attr = { .qkey = QKEY + 1 };
	struct ibv_wc wc = { 0 };
	struct pair pair;

	if (!pair_open(&pair, &ud))
		return;
	CU_ASSERT_EQUAL(post_recv(&pair.b, 9, 0, ROOM), 0);
	CU_ASSERT_FALSE(arrives(&pair, QKEY + 1, pair.b.qp->qp_num));
	CU_ASSERT_EQUAL(ibv_modify_qp(pair.b.qp, &attr, IBV_QP_QKEY), 0);
	CU_ASSERT_FALSE(arrives(&pair, QKEY, pair.b.qp->qp_num));
	attr.qkey = QKEY;
	CU_ASSERT_EQUAL(ibv_modify_qp(pair.b.qp, &attr, IBV_QP_QKEY), 0);
	CU_ASSERT_EQUAL(post_send(&pair.a, 2, 0, 10, 0), 0);
	CU_ASSERT_TRUE(completes(pair.b.rcq, 9, IBV_WC_SUCCESS, &wc));
	pair_close(&pair);
}

/* IBTA 10.2.5: a Q_Key with the top bit set stands for the sender's own. */
static void controlled_qkey_is_the_senders(void)
{
	struct ibv_sge sge;
	struct ibv_send_wr wr;
	struct pair pair;

	if (device_is_rxe) {
		skip("sends the key as it is");
		return;
	}
	if (!pair_open(&pair, &ud))
		return;
	CU_ASSERT_EQUAL(post_recv(&pair.b, 9, 0, ROOM), 0);
	wr = wr_to(&pair.a, &sge, 10);
	wr.wr.ud.remote_qkey = 0x80000000;
	CU_ASSERT_EQUAL(post(&pair.a, &wr), 0);
	CU_ASSERT_TRUE(completes(pair.b.rcq, 9, IBV_WC_SUCCESS, NULL));
	pair_close(&pair);
}

static void unused_number_loses(void)
{
	struct pair pair;

	if (!pair_open(&pair, &ud))
		return;
	CU_ASSERT_EQUAL(post_recv(&pair.b, 9, 0, ROOM), 0);
	CU_ASSERT_FALSE(arrives(&pair, QKEY, pair.b.qp->qp_num ^ 0x7f0));
	CU_ASSERT_FALSE(arrives(&pair, QKEY, pair.b.qp->qp_num ^ 0x7f0000));
	CU_ASSERT_EQUAL(move_to(pair.b.qp, IBV_QPS_RESET), 0);
	CU_ASSERT_FALSE(arrives(&pair, QKEY, pair.b.qp->qp_num));
	CU_ASSERT_EQUAL(state_of(pair.a.qp), IBV_QPS_RTS);
	pair_close(&pair);
}

/* ---- errors ---- */

/* The message is dropped, or the receiving QP fails; the sender gets no error. */
static void room_is_too_small(void)
{
	struct pair pair;

	if (!pair_open(&pair, &ud))
		return;
	CU_ASSERT_EQUAL(post_recv(&pair.b, 9, 0, GRH_SIZE + 9), 0);
	CU_ASSERT_EQUAL(post_recv(&pair.b, 10, 0, ROOM), 0);
	CU_ASSERT_EQUAL(post_send(&pair.a, 1, 0, 10, IBV_SEND_SIGNALED), 0);
	CU_ASSERT_TRUE(completes(pair.a.scq, 1, IBV_WC_SUCCESS, NULL));
	if (device_is_rxe) {
		skip("drops it and keeps the receive");
	} else {
		CU_ASSERT_TRUE(completes(pair.b.rcq, 9, IBV_WC_LOC_LEN_ERR, NULL));
		CU_ASSERT_TRUE(completes(pair.b.rcq, 10, IBV_WC_WR_FLUSH_ERR, NULL));
		CU_ASSERT_EQUAL(state_of(pair.b.qp), IBV_QPS_ERR);
	}
	CU_ASSERT_EQUAL(state_of(pair.a.qp), IBV_QPS_RTS);
	pair_close(&pair);
}

static void local_error_stops_the_send_queue(void)
{
	unreliable_local_error(&ud);
}

static void bad_work_requests(void)
{
	struct ibv_sge sge;
	struct ibv_send_wr wr;
	struct pair pair;

	if (device_is_rxe) {
		skip("accepts what it cannot do");
		return;
	}
	if (!pair_open(&pair, &ud))
		return;
	wr = wr_to(&pair.a, &sge, 10);
	wr.wr.ud.ah = pair.b.ah; /* of another PD */
	CU_ASSERT_EQUAL(post(&pair.a, &wr), EINVAL);
	wr = wr_to(&pair.a, &sge, 10);
	wr.wr.ud.remote_qpn = 1 << 24;
	CU_ASSERT_EQUAL(post(&pair.a, &wr), EINVAL);
	wr = wr_to(&pair.a, &sge, 10);
	wr.opcode = IBV_WR_RDMA_WRITE;
	CU_ASSERT_EQUAL(post(&pair.a, &wr), EINVAL);
	wr.opcode = IBV_WR_SEND_WITH_INV;
	CU_ASSERT_EQUAL(post(&pair.a, &wr), EINVAL);
	pair_close(&pair);
}

static void error_flushes(void)
{
	struct pair pair;

	if (!pair_open(&pair, &ud))
		return;
	for (uint64_t i = 0; i < 3; i++)
		CU_ASSERT_EQUAL(post_recv(&pair.b, i, 0, ROOM), 0);
	CU_ASSERT_EQUAL(post_send(&pair.a, 7, 0, 8, IBV_SEND_SIGNALED), 0);
	CU_ASSERT_TRUE(completes(pair.a.scq, 7, IBV_WC_SUCCESS, NULL));
	CU_ASSERT_TRUE(completes(pair.b.rcq, 0, IBV_WC_SUCCESS, NULL));
	CU_ASSERT_EQUAL(move_to(pair.b.qp, IBV_QPS_ERR), 0);
	CU_ASSERT_TRUE(completes(pair.b.rcq, 1, IBV_WC_WR_FLUSH_ERR, NULL));
	CU_ASSERT_TRUE(completes(pair.b.rcq, 2, IBV_WC_WR_FLUSH_ERR, NULL));
	/* rxe flushes a request that is posted later only at the next activity */
	if (!device_is_rxe) {
		CU_ASSERT_EQUAL(post_recv(&pair.b, 3, 0, ROOM), 0);
		CU_ASSERT_TRUE(completes(pair.b.rcq, 3, IBV_WC_WR_FLUSH_ERR, NULL));
	}
	CU_ASSERT_EQUAL(post_send(&pair.b, 4, 0, 8, 0), 0);
	CU_ASSERT_TRUE(completes(pair.b.scq, 4, IBV_WC_WR_FLUSH_ERR, NULL));
	pair_close(&pair);
}

static void masks(void)
{
	struct pair_options uc = { .type = IBV_QPT_UC };
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	struct side side;
	int mask;

	CU_ASSERT_TRUE_FATAL(side_open(&side, &ud, false));
	init_attr(&attr, &mask, &ud);
	CU_ASSERT_EQUAL(ibv_modify_qp(side.qp, &attr, mask & ~IBV_QP_QKEY), EINVAL);
	CU_ASSERT_EQUAL(ibv_modify_qp(side.qp, &attr, mask | IBV_QP_ACCESS_FLAGS), EINVAL);
	CU_ASSERT_EQUAL(ibv_modify_qp(side.qp, &attr, mask), 0);
	rtr_attr(&attr, &mask, 77, &uc);
	CU_ASSERT_EQUAL(ibv_modify_qp(side.qp, &attr, mask), EINVAL);
	CU_ASSERT_EQUAL(move_to(side.qp, IBV_QPS_RTR), 0);
	CU_ASSERT_EQUAL(move_to(side.qp, IBV_QPS_RTS), EINVAL);
	rts_attr(&attr, &mask, &ud);
	CU_ASSERT_EQUAL(ibv_modify_qp(side.qp, &attr, mask), 0);
	CU_ASSERT_EQUAL(ibv_query_qp(side.qp, &attr, IBV_QP_QKEY, &init), 0);
	CU_ASSERT_EQUAL(attr.qkey, QKEY);
	CU_ASSERT_EQUAL(init.qp_type, IBV_QPT_UD);
	side_close(&side);
}

static const struct unit_test tests[] = {
	{ "datagrams of many sizes, 40 bytes before each", sizes },
	{ "a datagram as long as the MTU", largest },
	{ "a longer one is lost without an error", longer_than_mtu_is_lost },
	{ "immediate and inline data", immediate_and_inline },
	{ "a batch through ibv_wr_*, with ibv_wr_set_ud_addr", extended },
	{ "header and payload are scattered", scattered_header },
	{ "without a receive it is lost", no_receive_loses },
	{ "with another Q_Key it is lost", wrong_qkey_loses },
	{ "a controlled Q_Key is the sender's own", controlled_qkey_is_the_senders },
	{ "to an unused QP number it is lost", unused_number_loses },
	{ "too little room: the sender goes on", room_is_too_small },
	{ "a local error stops the send queue alone", local_error_stops_the_send_queue },
	{ "what cannot be a datagram is refused when posted", bad_work_requests },
	{ "ERR flushes both queues", error_flushes },
	{ "the attribute masks of UD", masks },
};

CONFORM_MAIN("conform_ud", tests)
