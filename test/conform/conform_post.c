/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Posting: which state takes what, what is refused at once, how queues fill and drain. */
#include "test/conform/conform.h"

static struct side side;

static bool open_alone(void)
{
	bool good = side_open(&side, &(struct pair_options){ 0 }, false);

	CU_ASSERT_TRUE(good);
	return good;
}

static int recv_with_bad(struct ibv_recv_wr **bad, struct ibv_recv_wr *wr)
{
	*wr = (struct ibv_recv_wr){ .wr_id = 1 };
	*bad = NULL;
	return ibv_post_recv(side.qp, wr, bad);
}

static int send_with_bad(struct ibv_send_wr **bad, struct ibv_send_wr *wr)
{
	*wr = (struct ibv_send_wr){ .wr_id = 1,
				    .opcode = IBV_WR_SEND,
				    .send_flags = IBV_SEND_SIGNALED };
	*bad = NULL;
	return ibv_post_send(side.qp, wr, bad);
}

static void receive_in_each_state(void)
{
	struct ibv_recv_wr wr, *bad;

	if (!open_alone())
		return;
	CU_ASSERT_EQUAL(recv_with_bad(&bad, &wr), EINVAL);
	CU_ASSERT_TRUE(bad == &wr || device_is_rxe); /* rxe does not set it */
	CU_ASSERT_EQUAL(make_init(side.qp, 0), 0);
	CU_ASSERT_EQUAL(recv_with_bad(&bad, &wr), 0);
	CU_ASSERT_EQUAL(make_rtr(side.qp, side.qp->qp_num, NULL), 0);
	CU_ASSERT_EQUAL(recv_with_bad(&bad, &wr), 0);
	CU_ASSERT_EQUAL(make_rts(side.qp, NULL), 0);
	CU_ASSERT_EQUAL(recv_with_bad(&bad, &wr), 0);
	CU_ASSERT_EQUAL(move_to(side.qp, IBV_QPS_SQD), 0);
	CU_ASSERT_EQUAL(recv_with_bad(&bad, &wr), 0);
	side_close(&side);
}

static void send_in_each_state(void)
{
	struct ibv_send_wr wr, *bad;

	if (!open_alone())
		return;
	CU_ASSERT_EQUAL(send_with_bad(&bad, &wr), EINVAL);
	CU_ASSERT_TRUE(bad == &wr || device_is_rxe); /* rxe does not set it */
	CU_ASSERT_EQUAL(make_init(side.qp, 0), 0);
	CU_ASSERT_EQUAL(send_with_bad(&bad, &wr), EINVAL);
	CU_ASSERT_TRUE(bad == &wr || device_is_rxe);
	CU_ASSERT_EQUAL(make_rtr(side.qp, side.qp->qp_num, NULL), 0);
	CU_ASSERT_EQUAL(send_with_bad(&bad, &wr), EINVAL);
	CU_ASSERT_TRUE(bad == &wr || device_is_rxe);
	side_close(&side);
}

static void posted_in_error_is_flushed(void)
{
	struct pair pair;

	if (!pair_open(&pair, NULL))
		return;
	CU_ASSERT_EQUAL(move_to(pair.a.qp, IBV_QPS_ERR), 0);
	CU_ASSERT_EQUAL(post_send(&pair.a, 1, 0, 8, 0), 0);
	CU_ASSERT_EQUAL(post_recv(&pair.a, 2, 0, 8), 0);
	CU_ASSERT_TRUE(completes(pair.a.scq, 1, IBV_WC_WR_FLUSH_ERR, NULL));
	/* the kernel's software RoCE drops the request */
	CU_ASSERT_TRUE(device_is_rxe || completes(pair.a.rcq, 2, IBV_WC_WR_FLUSH_ERR, NULL));
	pair_close(&pair);
}

static void drained_queue_holds_sends(void)
{
	struct pair pair;

	if (device_is_rxe) {
		skip("kernel software RoCE does not go on after SQD");
		return;
	}
	if (!pair_open(&pair, NULL))
		return;
	CU_ASSERT_EQUAL(move_to(pair.a.qp, IBV_QPS_SQD), 0);
	pair.a.buffer[0] = 1;
	CU_ASSERT_EQUAL(post_rdma(&pair.a, IBV_WR_RDMA_WRITE, 1, 0, 8, &pair.b, 0,
				  IBV_SEND_SIGNALED),
			0);
	CU_ASSERT_TRUE(stays_empty(pair.a.scq));
	CU_ASSERT_EQUAL(pair.b.buffer[0], 0);
	CU_ASSERT_EQUAL(move_to(pair.a.qp, IBV_QPS_RTS), 0);
	CU_ASSERT_TRUE(completes(pair.a.scq, 1, IBV_WC_SUCCESS, NULL));
	CU_ASSERT_EQUAL(pair.b.buffer[0], 1);
	pair_close(&pair);
}

static void held_sends_are_flushed(void)
{
	struct pair pair;

	if (!pair_open(&pair, NULL))
		return;
	CU_ASSERT_EQUAL(move_to(pair.a.qp, IBV_QPS_SQD), 0);
	CU_ASSERT_EQUAL(post_send(&pair.a, 1, 0, 8, 0), 0);
	CU_ASSERT_EQUAL(post_send(&pair.a, 2, 0, 8, 0), 0);
	CU_ASSERT_EQUAL(move_to(pair.a.qp, IBV_QPS_ERR), 0);
	CU_ASSERT_TRUE(completes(pair.a.scq, 1, IBV_WC_WR_FLUSH_ERR, NULL));
	CU_ASSERT_TRUE(completes(pair.a.scq, 2, IBV_WC_WR_FLUSH_ERR, NULL));
	pair_close(&pair);
}

static uint32_t granted(struct ibv_qp *qp, bool receives)
{
	struct ibv_qp_init_attr init = { 0 };
	struct ibv_qp_attr attr;

	CU_ASSERT_EQUAL(ibv_query_qp(qp, &attr, IBV_QP_CAP, &init), 0);
	return receives ? init.cap.max_recv_wr : init.cap.max_send_wr;
}

static void receive_queue_fills(void)
{
	uint32_t room, i;
	struct pair pair;

	if (!pair_open(&pair, NULL))
		return;
	room = granted(pair.b.qp, true);
	for (i = 0; i < room; i++)
		CU_ASSERT_EQUAL(post_recv(&pair.b, i, 0, 8), 0);
	CU_ASSERT_EQUAL(post_recv(&pair.b, i, 0, 8), ENOMEM);
	/* each polled completion makes room for one request */
	for (i = 0; i < 3 * room; i++) {
		CU_ASSERT_EQUAL_FATAL(post_send(&pair.a, 9, 0, 8, IBV_SEND_SIGNALED), 0);
		CU_ASSERT_TRUE_FATAL(completes(pair.a.scq, 9, IBV_WC_SUCCESS, NULL));
		CU_ASSERT_TRUE_FATAL(completes(pair.b.rcq, i, IBV_WC_SUCCESS, NULL));
		CU_ASSERT_EQUAL_FATAL(post_recv(&pair.b, room + i, 0, 8), 0);
	}
	CU_ASSERT_EQUAL(post_recv(&pair.b, 0, 0, 8), ENOMEM);
	pair_close(&pair);
}

static int write_nothing(struct pair *pair, uint64_t wr_id, int flags)
{
	return post_rdma(&pair->a, IBV_WR_RDMA_WRITE, wr_id, 0, 0, &pair->b, 0, flags);
}

static void send_queue_is_freed_by_polling(void)
{
	uint32_t room, i;
	struct pair pair;

	if (!pair_open(&pair, NULL))
		return;
	room = granted(pair.a.qp, false);
	for (i = 0; i < room; i++)
		CU_ASSERT_EQUAL(write_nothing(&pair, i, i + 1 == room ? IBV_SEND_SIGNALED : 0), 0);
	/* the kernel's software RoCE frees a slot when it has executed the request */
	CU_ASSERT_TRUE(device_is_rxe || write_nothing(&pair, i, 0) == ENOMEM);
	CU_ASSERT_TRUE(completes(pair.a.scq, room - 1, IBV_WC_SUCCESS, NULL));
	for (i = 0; i < room; i++)
		CU_ASSERT_EQUAL(write_nothing(&pair, i, IBV_SEND_SIGNALED), 0);
	CU_ASSERT_TRUE(device_is_rxe || write_nothing(&pair, i, 0) == ENOMEM);
	CU_ASSERT_TRUE(completes(pair.a.scq, 0, IBV_WC_SUCCESS, NULL));
	CU_ASSERT_EQUAL(write_nothing(&pair, room, IBV_SEND_SIGNALED), 0);
	for (i = 1; i <= room; i++)
		CU_ASSERT_TRUE(completes(pair.a.scq, i, IBV_WC_SUCCESS, NULL));
	pair_close(&pair);
}

static void send_queue_fills_with_sends(void)
{
	uint32_t room, i;
	struct pair pair;

	if (!pair_open(&pair, NULL))
		return;
	room = granted(pair.a.qp, false);
	/* one message alone first, because the first of a connection may take another path */
	CU_ASSERT_EQUAL(post_recv(&pair.b, 0, 0, 8), 0);
	CU_ASSERT_EQUAL(post_send(&pair.a, 0, 0, 8, IBV_SEND_SIGNALED), 0);
	CU_ASSERT_TRUE(completes(pair.a.scq, 0, IBV_WC_SUCCESS, NULL));
	CU_ASSERT_TRUE(completes(pair.b.rcq, 0, IBV_WC_SUCCESS, NULL));
	for (i = 1; i <= room; i++) {
		CU_ASSERT_EQUAL(post_recv(&pair.b, i, 0, 8), 0);
		CU_ASSERT_EQUAL(post_send(&pair.a, i, 0, 8, IBV_SEND_SIGNALED), 0);
	}
	/* the first receive was used, so the send cannot fail for want of a receive */
	CU_ASSERT_TRUE(completes(pair.b.rcq, 1, IBV_WC_SUCCESS, NULL));
	CU_ASSERT_EQUAL(post_recv(&pair.b, i, 0, 8), 0);
	CU_ASSERT_TRUE(device_is_rxe || post_send(&pair.a, i, 0, 8, IBV_SEND_SIGNALED) == ENOMEM);
	for (i = 1; i <= room; i++)
		CU_ASSERT_TRUE(completes(pair.a.scq, i, IBV_WC_SUCCESS, NULL));
	pair_close(&pair);
}

static void too_many_elements(void)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	struct ibv_sge sges[64] = { 0 };
	struct ibv_send_wr swr = { .sg_list = sges, .opcode = IBV_WR_SEND }, *sbad;
	struct ibv_recv_wr rwr = { .sg_list = sges }, *rbad;
	struct pair pair;

	if (!pair_open(&pair, NULL))
		return;
	CU_ASSERT_EQUAL(ibv_query_qp(pair.a.qp, &attr, IBV_QP_CAP, &init), 0);
	CU_ASSERT_TRUE_FATAL(init.cap.max_send_sge < 64 && init.cap.max_recv_sge < 64);
	swr.num_sge = (int)init.cap.max_send_sge + 1;
	CU_ASSERT_EQUAL(ibv_post_send(pair.a.qp, &swr, &sbad), EINVAL);
	CU_ASSERT_PTR_EQUAL(sbad, &swr);
	rwr.num_sge = (int)init.cap.max_recv_sge + 1;
	CU_ASSERT_EQUAL(ibv_post_recv(pair.a.qp, &rwr, &rbad), EINVAL);
	CU_ASSERT_PTR_EQUAL(rbad, &rwr);
	pair_close(&pair);
}

static void inline_longer_than_granted(void)
{
	struct pair_options options = { .inline_size = 32 };
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	struct pair pair;

	if (!pair_open(&pair, &options))
		return;
	CU_ASSERT_EQUAL(ibv_query_qp(pair.a.qp, &attr, IBV_QP_CAP, &init), 0);
	CU_ASSERT_EQUAL(post_rdma(&pair.a, IBV_WR_RDMA_WRITE, 1, 0, init.cap.max_inline_data,
				  &pair.b, 0, IBV_SEND_SIGNALED | IBV_SEND_INLINE),
			0);
	CU_ASSERT_TRUE(completes(pair.a.scq, 1, IBV_WC_SUCCESS, NULL));
	CU_ASSERT_EQUAL(post_rdma(&pair.a, IBV_WR_RDMA_WRITE, 2, 0, init.cap.max_inline_data + 1,
				  &pair.b, 0, IBV_SEND_SIGNALED | IBV_SEND_INLINE),
			EINVAL);
	CU_ASSERT_EQUAL(state_of(pair.a.qp), IBV_QPS_RTS);
	pair_close(&pair);
}

static void unknown_opcode(void)
{
	struct ibv_send_wr wr = { .send_flags = IBV_SEND_SIGNALED }, *bad;
	struct pair pair;

	if (device_is_rxe) {
		skip("kernel software RoCE takes any opcode");
		return;
	}
	if (!pair_open(&pair, NULL))
		return;
	wr.opcode = (enum ibv_wr_opcode)99;
	CU_ASSERT_EQUAL(ibv_post_send(pair.a.qp, &wr, &bad), EINVAL);
	CU_ASSERT_PTR_EQUAL(bad, &wr);
	wr.opcode = IBV_WR_TSO; /* for datagrams only */
	CU_ASSERT_EQUAL(ibv_post_send(pair.a.qp, &wr, &bad), EINVAL);
	CU_ASSERT_EQUAL(state_of(pair.a.qp), IBV_QPS_RTS);
	pair_close(&pair);
}

static void list_with_an_error_inside(void)
{
	struct ibv_sge sges[64] = { 0 };
	struct ibv_recv_wr r3 = { .wr_id = 3 },
			   r2 = { .wr_id = 2, .next = &r3, .sg_list = sges, .num_sge = 64 },
			   r1 = { .wr_id = 1, .next = &r2 }, *rbad;
	struct ibv_send_wr s3 = { .wr_id = 13, .opcode = IBV_WR_SEND },
			   s2 = { .wr_id = 12, .next = &s3, .sg_list = sges, .num_sge = 64 },
			   s1 = { .wr_id = 11,
				  .next = &s2,
				  .opcode = IBV_WR_SEND,
				  .send_flags = IBV_SEND_SIGNALED },
			   *sbad;
	struct pair pair;

	if (!pair_open(&pair, NULL))
		return;
	CU_ASSERT_EQUAL(ibv_post_recv(pair.b.qp, &r1, &rbad), EINVAL);
	CU_ASSERT_PTR_EQUAL(rbad, &r2);
	CU_ASSERT_EQUAL(ibv_post_send(pair.a.qp, &s1, &sbad), EINVAL);
	CU_ASSERT_PTR_EQUAL(sbad, &s2);
	CU_ASSERT_TRUE(completes(pair.a.scq, 11, IBV_WC_SUCCESS, NULL));
	CU_ASSERT_TRUE(completes(pair.b.rcq, 1, IBV_WC_SUCCESS, NULL));
	CU_ASSERT_TRUE(stays_empty(pair.a.scq));
	pair_close(&pair);
}

static void list_is_posted_whole(void)
{
	struct ibv_send_wr wr[4], *bad;
	struct pair pair;
	uint64_t i;

	if (!pair_open(&pair, NULL))
		return;
	for (i = 0; i < COUNT(wr); i++) {
		wr[i] = (struct ibv_send_wr){
			.wr_id = i,
			.next = i + 1 < COUNT(wr) ? &wr[i + 1] : NULL,
			.opcode = IBV_WR_SEND,
			.send_flags = IBV_SEND_SIGNALED,
		};
		CU_ASSERT_EQUAL(post_recv(&pair.b, i, 0, 0), 0);
	}
	CU_ASSERT_EQUAL(ibv_post_send(pair.a.qp, wr, &bad), 0);
	for (i = 0; i < COUNT(wr); i++) {
		CU_ASSERT_TRUE(completes(pair.a.scq, i, IBV_WC_SUCCESS, NULL));
		CU_ASSERT_TRUE(completes(pair.b.rcq, i, IBV_WC_SUCCESS, NULL));
	}
	pair_close(&pair);
}

static void inline_buffer_is_free_at_once(void)
{
	static const enum ibv_wr_opcode opcodes[] = {
		IBV_WR_SEND,
		IBV_WR_SEND_WITH_IMM,
		IBV_WR_RDMA_WRITE,
		IBV_WR_RDMA_WRITE_WITH_IMM,
	};
	struct ibv_mr no_key = { .lkey = 0xdeadbeef };
	struct pair pair;
	struct side from;
	size_t i;

	if (!pair_open(&pair, &(struct pair_options){ .inline_size = 32 }))
		return;
	from = pair.a;
	from.mr = &no_key; /* the key of inline data is not checked */
	for (i = 0; i < COUNT(opcodes); i++) {
		memset(pair.b.buffer, 0, 32);
		memset(pair.a.buffer, 0x21 + (int)i, 32);
		CU_ASSERT_EQUAL(post_rdma(&from, opcodes[i], i, 0, 32, &pair.b, 0,
					  IBV_SEND_SIGNALED | IBV_SEND_INLINE),
				0);
		memset(pair.a.buffer, 0, 32);
		CU_ASSERT_EQUAL(post_recv(&pair.b, i, 0, 32), 0);
		CU_ASSERT_TRUE(completes(pair.a.scq, i, IBV_WC_SUCCESS, NULL));
		if (opcodes[i] != IBV_WR_RDMA_WRITE)
			CU_ASSERT_TRUE(
				completes(pair.b.rcq, i > 2 ? i - 1 : i, IBV_WC_SUCCESS, NULL));
		CU_ASSERT_EQUAL(pair.b.buffer[31], 0x21 + (int)i);
	}
	pair_close(&pair);
}

static void nothing_needs_no_memory(void)
{
	struct pair pair;

	if (!pair_open(&pair, NULL))
		return;
	pair.b.mr->rkey ^= 0xffff00;
	CU_ASSERT_EQUAL(post_rdma(&pair.a, IBV_WR_RDMA_WRITE, 1, 0, 0, &pair.b, 0,
				  IBV_SEND_SIGNALED),
			0);
	CU_ASSERT_TRUE(completes(pair.a.scq, 1, IBV_WC_SUCCESS, NULL));
	CU_ASSERT_EQUAL(post_rdma(&pair.a, IBV_WR_RDMA_READ, 2, 0, 0, &pair.b, 0,
				  IBV_SEND_SIGNALED),
			0);
	CU_ASSERT_TRUE(completes(pair.a.scq, 2, IBV_WC_SUCCESS, NULL));
	pair.b.mr->rkey ^= 0xffff00;
	CU_ASSERT_EQUAL(post_recv(&pair.b, 3, 0, 0), 0);
	CU_ASSERT_EQUAL(post_send(&pair.a, 4, 0, 0, IBV_SEND_SIGNALED), 0);
	CU_ASSERT_TRUE(completes(pair.a.scq, 4, IBV_WC_SUCCESS, NULL));
	CU_ASSERT_TRUE(completes(pair.b.rcq, 3, IBV_WC_SUCCESS, NULL));
	pair_close(&pair);
}

static const struct unit_test tests[] = {
	{ "post_recv: EINVAL in RESET, taken from INIT on", receive_in_each_state },
	{ "post_send: EINVAL in RESET, INIT, RTR", send_in_each_state },
	{ "posted in ERR: taken and flushed", posted_in_error_is_flushed },
	{ "sends posted in SQD are held until RTS", drained_queue_holds_sends },
	{ "sends held in SQD are flushed in ERR", held_sends_are_flushed },
	{ "receive queue full: ENOMEM; polling makes room", receive_queue_fills },
	{ "send queue full: ENOMEM; a slot is free when a completion at or after it was polled",
	  send_queue_is_freed_by_polling },
	{ "send queue full of sends: ENOMEM", send_queue_fills_with_sends },
	{ "too many SGEs: EINVAL", too_many_elements },
	{ "inline longer than granted: EINVAL", inline_longer_than_granted },
	{ "unknown opcode or one of another service: EINVAL", unknown_opcode },
	{ "error inside a list: those before it are posted, bad_wr names it",
	  list_with_an_error_inside },
	{ "a list is posted whole and in order", list_is_posted_whole },
	{ "inline data is taken before return, its key is not looked at",
	  inline_buffer_is_free_at_once },
	{ "length 0 needs no memory", nothing_needs_no_memory },
};

CONFORM_MAIN("conform_post", tests)
