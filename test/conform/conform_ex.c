/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* The extended calls: polling through ibv_start_poll, posting through ibv_wr_*. */
#include "test/conform/conform.h"

#define OPS                                                                               \
	(IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM | IBV_QP_EX_WITH_RDMA_WRITE | \
	 IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM | IBV_QP_EX_WITH_RDMA_READ |                  \
	 IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP | IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD)

/* ---- completion queues ---- */

/* Replaces b's receive CQ by an extended one with `wc_flags`, which the device must support. */
static bool open_polled(struct pair *pair, struct ibv_cq_ex **cq, uint64_t wc_flags)
{
	struct ibv_cq_init_attr_ex attr = { .cqe = 64, .cq_context = cq, .wc_flags = wc_flags };
	struct ibv_qp_init_attr init;

	*cq = ibv_create_cq_ex(device, &attr);
	if (!*cq) {
		CU_ASSERT_EQUAL(errno, EOPNOTSUPP);
		skip("no extended completion queues of this kind");
		return false;
	}
	if (!pair_open(pair, NULL))
		return false;
	init = (struct ibv_qp_init_attr){
		.send_cq = pair->b.scq,
		.recv_cq = ibv_cq_ex_to_cq(*cq),
		.qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = 8,
			 .max_recv_wr = 16,
			 .max_send_sge = 1,
			 .max_recv_sge = 1 },
	};
	CU_ASSERT_EQUAL(ibv_destroy_qp(pair->b.qp), 0);
	pair->b.qp = ibv_create_qp(pair->b.pd, &init);
	CU_ASSERT_PTR_NOT_NULL_FATAL(pair->b.qp);
	CU_ASSERT_EQUAL(move_to(pair->a.qp, IBV_QPS_RESET), 0);
	CU_ASSERT_TRUE(!make_init(pair->a.qp, 0) &&
		       !make_init(pair->b.qp, IBV_ACCESS_REMOTE_WRITE));
	CU_ASSERT_EQUAL(make_rtr(pair->a.qp, pair->b.qp->qp_num, NULL), 0);
	CU_ASSERT_EQUAL(make_rtr(pair->b.qp, pair->a.qp->qp_num, NULL), 0);
	CU_ASSERT_TRUE(!make_rts(pair->a.qp, NULL) && !make_rts(pair->b.qp, NULL));
	return true;
}

static void close_polled(struct pair *pair, struct ibv_cq_ex *cq)
{
	CU_ASSERT_EQUAL(ibv_destroy_qp(pair->b.qp), 0);
	pair->b.qp = NULL;
	CU_ASSERT_EQUAL(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)), 0);
	pair_close(pair);
}

static void extended_queue_is_a_queue(void)
{
	struct ibv_cq_ex *cq;
	struct ibv_wc wc = { 0 };
	struct pair pair;

	if (!open_polled(&pair, &cq, 0))
		return;
	CU_ASSERT_EQUAL(post_recv(&pair.b, 1, 0, 64), 0);
	CU_ASSERT_EQUAL(post_send(&pair.a, 2, 0, 8, IBV_SEND_SIGNALED), 0);
	CU_ASSERT_TRUE(completes(pair.a.scq, 2, IBV_WC_SUCCESS, NULL));
	CU_ASSERT_TRUE(completes(ibv_cq_ex_to_cq(cq), 1, IBV_WC_SUCCESS, &wc));
	CU_ASSERT_EQUAL(wc.byte_len, 8);
	close_polled(&pair, cq);
}

static bool poll_starts(void *arg)
{
	struct ibv_poll_cq_attr attr = { 0 };

	return ibv_start_poll(arg, &attr) != ENOENT;
}

static void poll_walks_through_completions(void)
{
	uint64_t flags = IBV_WC_EX_WITH_BYTE_LEN | IBV_WC_EX_WITH_IMM | IBV_WC_EX_WITH_QP_NUM;
	struct ibv_poll_cq_attr attr = { 0 };
	struct ibv_cq_ex *cq;
	struct pair pair;
	uint64_t i;

	if (!open_polled(&pair, &cq, flags))
		return;
	CU_ASSERT_EQUAL(ibv_start_poll(cq, &attr), ENOENT);
	for (i = 0; i < 3; i++)
		CU_ASSERT_EQUAL(post_recv(&pair.b, i, 0, 64), 0);
	for (i = 0; i < 3; i++) {
		CU_ASSERT_EQUAL(post_send(&pair.a, i, 0, 8 + (uint32_t)i, IBV_SEND_SIGNALED), 0);
		CU_ASSERT_TRUE(completes(pair.a.scq, i, IBV_WC_SUCCESS, NULL));
	}
	CU_ASSERT_TRUE(unit_wait_for(poll_starts, cq, PATIENCE));
	for (i = 0; i < 3; i++) {
		CU_ASSERT_TRUE(cq->wr_id == i && cq->status == IBV_WC_SUCCESS);
		CU_ASSERT_EQUAL(ibv_wc_read_opcode(cq), IBV_WC_RECV);
		CU_ASSERT_EQUAL(ibv_wc_read_byte_len(cq), 8 + i);
		CU_ASSERT_EQUAL(ibv_wc_read_qp_num(cq), pair.b.qp->qp_num);
		CU_ASSERT_FALSE(ibv_wc_read_wc_flags(cq) & IBV_WC_WITH_IMM);
		CU_ASSERT_EQUAL(ibv_next_poll(cq), i < 2 ? 0 : ENOENT);
	}
	ibv_end_poll(cq);
	/* rdma-core's provider for rxe returns the last completion again */
	CU_ASSERT_TRUE(device_is_rxe || ibv_start_poll(cq, &attr) == ENOENT);
	close_polled(&pair, cq);
}

/* ---- work requests ---- */

/* Replaces a's QP by one that has ibv_wr_*. */
static struct ibv_qp_ex *open_posted(struct pair *pair)
{
	struct ibv_qp_init_attr_ex init;
	struct ibv_qp *qp;

	if (!pair_open(pair, NULL))
		return NULL;
	init = (struct ibv_qp_init_attr_ex){
		.send_cq = pair->a.scq,
		.recv_cq = pair->a.rcq,
		.qp_type = IBV_QPT_RC,
		.pd = pair->a.pd,
		.cap = { .max_send_wr = 16,
			 .max_recv_wr = 16,
			 .max_send_sge = 3,
			 .max_recv_sge = 1,
			 .max_inline_data = 40 },
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.send_ops_flags = OPS,
	};
	CU_ASSERT_PTR_NULL(ibv_qp_to_qp_ex(pair->a.qp));
	qp = ibv_create_qp_ex(device, &init);
	if (!qp) {
		CU_ASSERT_EQUAL(errno, EOPNOTSUPP);
		skip("no ibv_wr_*");
		pair_close(pair);
		return NULL;
	}
	CU_ASSERT_EQUAL(ibv_destroy_qp(pair->a.qp), 0);
	pair->a.qp = qp;
	CU_ASSERT_EQUAL(move_to(pair->b.qp, IBV_QPS_RESET), 0);
	CU_ASSERT_TRUE(!make_init(qp, 0) &&
		       !make_init(pair->b.qp, IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
						      IBV_ACCESS_REMOTE_ATOMIC));
	CU_ASSERT_EQUAL(make_rtr(qp, pair->b.qp->qp_num, NULL), 0);
	CU_ASSERT_EQUAL(make_rtr(pair->b.qp, qp->qp_num, NULL), 0);
	CU_ASSERT_TRUE(!make_rts(qp, NULL) && !make_rts(pair->b.qp, NULL));
	CU_ASSERT_PTR_NOT_NULL_FATAL(ibv_qp_to_qp_ex(qp));
	return ibv_qp_to_qp_ex(qp);
}

static void next(struct ibv_qp_ex *qp, uint64_t wr_id)
{
	qp->wr_id = wr_id;
	qp->wr_flags = IBV_SEND_SIGNALED;
}

static void batch_is_executed(void)
{
	struct ibv_qp_ex *qp;
	struct ibv_wc wc = { 0 };
	uint64_t local, remote;
	struct pair pair;

	qp = open_posted(&pair);
	if (!qp)
		return;
	local = (uintptr_t)pair.a.buffer;
	remote = (uintptr_t)pair.b.buffer;
	strcpy(pair.a.buffer, "batch");
	CU_ASSERT_EQUAL(post_recv(&pair.b, 8, 1000, 64), 0);
	ibv_wr_start(qp);
	next(qp, 1);
	ibv_wr_rdma_write(qp, pair.b.mr->rkey, remote + 100);
	ibv_wr_set_sge(qp, pair.a.mr->lkey, local, 6);
	next(qp, 2);
	ibv_wr_rdma_read(qp, pair.b.mr->rkey, remote + 100);
	ibv_wr_set_sge(qp, pair.a.mr->lkey, local + 200, 6);
	next(qp, 3);
	ibv_wr_send_imm(qp, 0x1234);
	ibv_wr_set_sge(qp, pair.a.mr->lkey, local, 6);
	CU_ASSERT_EQUAL(ibv_wr_complete(qp), 0);
	CU_ASSERT_TRUE(completes(pair.a.scq, 1, IBV_WC_SUCCESS, NULL));
	CU_ASSERT_TRUE(completes(pair.a.scq, 2, IBV_WC_SUCCESS, &wc));
	CU_ASSERT_EQUAL(wc.opcode, IBV_WC_RDMA_READ);
	CU_ASSERT_TRUE(completes(pair.a.scq, 3, IBV_WC_SUCCESS, NULL));
	CU_ASSERT_TRUE(completes(pair.b.rcq, 8, IBV_WC_SUCCESS, &wc));
	CU_ASSERT_TRUE(wc.imm_data == 0x1234 && wc.byte_len == 6);
	CU_ASSERT_STRING_EQUAL(pair.a.buffer + 200, "batch");
	CU_ASSERT_STRING_EQUAL(pair.b.buffer + 1000, "batch");
	pair_close(&pair);
}

static void data_from_lists_and_inline(void)
{
	struct ibv_data_buf pieces[2];
	struct ibv_sge sges[2];
	struct ibv_qp_ex *qp;
	uint64_t remote;
	struct pair pair;
	char text[] = "inline";

	if (device_is_rxe) {
		skip("rdma-core's rxe does not tell the kernel that data are inline");
		return;
	}
	qp = open_posted(&pair);
	if (!qp)
		return;
	remote = (uintptr_t)pair.b.buffer;
	strcpy(pair.a.buffer, "onetwo");
	sges[0] = (struct ibv_sge){ (uintptr_t)pair.a.buffer + 3, 3, pair.a.mr->lkey };
	sges[1] = (struct ibv_sge){ (uintptr_t)pair.a.buffer, 3, pair.a.mr->lkey };
	pieces[0] = (struct ibv_data_buf){ text + 2, 4 };
	pieces[1] = (struct ibv_data_buf){ text, 2 };
	ibv_wr_start(qp);
	next(qp, 1);
	ibv_wr_rdma_write(qp, pair.b.mr->rkey, remote);
	ibv_wr_set_sge_list(qp, 2, sges);
	next(qp, 2);
	ibv_wr_rdma_write(qp, pair.b.mr->rkey, remote + 100);
	ibv_wr_set_inline_data(qp, text, sizeof(text));
	next(qp, 3);
	ibv_wr_rdma_write(qp, pair.b.mr->rkey, remote + 200);
	ibv_wr_set_inline_data_list(qp, 2, pieces);
	memset(text, 0, sizeof(text));
	CU_ASSERT_EQUAL(ibv_wr_complete(qp), 0);
	CU_ASSERT_TRUE(completes(pair.a.scq, 1, IBV_WC_SUCCESS, NULL));
	CU_ASSERT_TRUE(completes(pair.a.scq, 2, IBV_WC_SUCCESS, NULL));
	CU_ASSERT_TRUE(completes(pair.a.scq, 3, IBV_WC_SUCCESS, NULL));
	CU_ASSERT_STRING_EQUAL(pair.b.buffer, "twoone");
	CU_ASSERT_STRING_EQUAL(pair.b.buffer + 100, "inline");
	CU_ASSERT_STRING_EQUAL(pair.b.buffer + 200, "linein");
	pair_close(&pair);
}

static void atomics(void)
{
	struct ibv_qp_ex *qp;
	struct pair pair;

	qp = open_posted(&pair);
	if (!qp)
		return;
	*(uint64_t *)(void *)pair.b.buffer = 5;
	ibv_wr_start(qp);
	next(qp, 1);
	ibv_wr_atomic_fetch_add(qp, pair.b.mr->rkey, (uintptr_t)pair.b.buffer, 2);
	ibv_wr_set_sge(qp, pair.a.mr->lkey, (uintptr_t)pair.a.buffer, 8);
	next(qp, 2);
	ibv_wr_atomic_cmp_swp(qp, pair.b.mr->rkey, (uintptr_t)pair.b.buffer, 7, 70);
	ibv_wr_set_sge(qp, pair.a.mr->lkey, (uintptr_t)pair.a.buffer + 8, 8);
	CU_ASSERT_EQUAL(ibv_wr_complete(qp), 0);
	CU_ASSERT_TRUE(completes(pair.a.scq, 1, IBV_WC_SUCCESS, NULL));
	CU_ASSERT_TRUE(completes(pair.a.scq, 2, IBV_WC_SUCCESS, NULL));
	CU_ASSERT_EQUAL(((uint64_t *)(void *)pair.a.buffer)[0], 5);
	CU_ASSERT_EQUAL(((uint64_t *)(void *)pair.a.buffer)[1], 7);
	CU_ASSERT_EQUAL(*(uint64_t *)(void *)pair.b.buffer, 70);
	pair_close(&pair);
}

static void write_one(struct ibv_qp_ex *qp, struct pair *pair, uint64_t wr_id)
{
	next(qp, wr_id);
	ibv_wr_rdma_write(qp, pair->b.mr->rkey, (uintptr_t)pair->b.buffer);
	ibv_wr_set_sge(qp, pair->a.mr->lkey, (uintptr_t)pair->a.buffer, 8);
}

static void aborted_batch(void)
{
	struct ibv_qp_ex *qp;
	struct pair pair;

	qp = open_posted(&pair);
	if (!qp)
		return;
	pair.a.buffer[0] = 1;
	ibv_wr_start(qp);
	write_one(qp, &pair, 1);
	ibv_wr_abort(qp);
	CU_ASSERT_TRUE(stays_empty(pair.a.scq));
	CU_ASSERT_EQUAL(pair.b.buffer[0], 0);
	ibv_wr_start(qp);
	write_one(qp, &pair, 2);
	CU_ASSERT_EQUAL(ibv_wr_complete(qp), 0);
	CU_ASSERT_TRUE(completes(pair.a.scq, 2, IBV_WC_SUCCESS, NULL));
	CU_ASSERT_EQUAL(pair.b.buffer[0], 1);
	pair_close(&pair);
}

static void failed_batch(void)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	struct ibv_qp_ex *qp;
	struct pair pair;
	uint32_t i;
	int error;

	qp = open_posted(&pair);
	if (!qp)
		return;
	pair.a.buffer[0] = 1;
	CU_ASSERT_EQUAL(ibv_query_qp(pair.a.qp, &attr, IBV_QP_CAP, &init), 0);
	ibv_wr_start(qp);
	for (i = 0; i <= 4 * init.cap.max_send_wr; i++) /* a device may grant more */
		write_one(qp, &pair, i);
	error = ibv_wr_complete(qp);
	CU_ASSERT_TRUE(error == ENOMEM || (device_is_rxe && error == ENOSPC));
	CU_ASSERT_TRUE(stays_empty(pair.a.scq));
	CU_ASSERT_EQUAL(pair.b.buffer[0], 0);
	ibv_wr_start(qp);
	write_one(qp, &pair, 7);
	CU_ASSERT_EQUAL(ibv_wr_complete(qp), 0);
	CU_ASSERT_TRUE(completes(pair.a.scq, 7, IBV_WC_SUCCESS, NULL));
	pair_close(&pair);
}

static const struct unit_test tests[] = {
	{ "an extended CQ is polled as any other", extended_queue_is_a_queue },
	{ "start_poll, next_poll, end_poll walk through completions",
	  poll_walks_through_completions },
	{ "ibv_wr_*: a batch is executed in order", batch_is_executed },
	{ "ibv_wr_*: SGE lists, inline data, inline lists", data_from_lists_and_inline },
	{ "ibv_wr_*: atomics", atomics },
	{ "ibv_wr_abort: nothing of the batch is executed", aborted_batch },
	{ "ibv_wr_complete with more than the queue holds: ENOMEM, nothing is executed",
	  failed_batch },
};

CONFORM_MAIN("conform_ex", tests)
