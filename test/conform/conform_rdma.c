/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* One-sided operations: writes, reads, atomics, and what is visible when. */
#include "test/conform/conform.h"

static void write_lands(void)
{
	struct ibv_wc wc = { 0 };
	struct pair pair;

	if (!pair_open(&pair, NULL))
		return;
	strcpy(pair.a.buffer, "written");
	CU_ASSERT_EQUAL(post_rdma(&pair.a, IBV_WR_RDMA_WRITE, 1, 0, 8, &pair.b, 1000,
				  IBV_SEND_SIGNALED),
			0);
	CU_ASSERT_TRUE(completes(pair.a.scq, 1, IBV_WC_SUCCESS, &wc));
	CU_ASSERT_EQUAL(wc.opcode, IBV_WC_RDMA_WRITE);
	CU_ASSERT_STRING_EQUAL(pair.b.buffer + 1000, "written");
	CU_ASSERT_EQUAL(pair.b.buffer[999], 0);
	CU_ASSERT_EQUAL(pair.b.buffer[1008], 0);
	CU_ASSERT_TRUE(stays_empty(pair.b.rcq));
	pair_close(&pair);
}

static void read_fetches(void)
{
	struct ibv_wc wc = { 0 };
	struct pair pair;

	if (!pair_open(&pair, NULL))
		return;
	strcpy(pair.b.buffer + 500, "remote");
	CU_ASSERT_EQUAL(post_rdma(&pair.a, IBV_WR_RDMA_READ, 1, 64, 7, &pair.b, 500,
				  IBV_SEND_SIGNALED),
			0);
	CU_ASSERT_TRUE(completes(pair.a.scq, 1, IBV_WC_SUCCESS, &wc));
	CU_ASSERT_EQUAL(wc.opcode, IBV_WC_RDMA_READ);
	CU_ASSERT_EQUAL(wc.byte_len, 7);
	CU_ASSERT_STRING_EQUAL(pair.a.buffer + 64, "remote");
	CU_ASSERT_EQUAL(pair.a.buffer[71], 0);
	pair_close(&pair);
}

static void write_with_immediate(void)
{
	struct ibv_sge sge;
	struct ibv_send_wr wr = {
		.wr_id = 2,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_RDMA_WRITE_WITH_IMM,
		.send_flags = IBV_SEND_SIGNALED,
		.imm_data = 0xcafe0123,
	}, *bad;
	struct ibv_wc wc = { 0 };
	struct pair pair;

	if (!pair_open(&pair, NULL))
		return;
	sge = (struct ibv_sge){ (uintptr_t)pair.a.buffer, 3000, pair.a.mr->lkey };
	memset(pair.a.buffer, 0x77, 3000);
	wr.wr.rdma.remote_addr = (uintptr_t)pair.b.buffer + 4096;
	wr.wr.rdma.rkey = pair.b.mr->rkey;
	CU_ASSERT_EQUAL(post_recv(&pair.b, 1, 0, 16), 0);
	CU_ASSERT_EQUAL(ibv_post_send(pair.a.qp, &wr, &bad), 0);
	CU_ASSERT_TRUE(completes(pair.b.rcq, 1, IBV_WC_SUCCESS, &wc));
	CU_ASSERT_EQUAL(wc.opcode, IBV_WC_RECV_RDMA_WITH_IMM);
	CU_ASSERT_TRUE(wc.wc_flags & IBV_WC_WITH_IMM);
	CU_ASSERT_EQUAL(wc.imm_data, 0xcafe0123);
	CU_ASSERT_EQUAL(wc.byte_len, 3000);
	CU_ASSERT_EQUAL(pair.b.buffer[4096 + 2999], 0x77);
	CU_ASSERT_EQUAL(pair.b.buffer[0], 0);
	CU_ASSERT_TRUE(completes(pair.a.scq, 2, IBV_WC_SUCCESS, &wc));
	CU_ASSERT_EQUAL(wc.opcode, IBV_WC_RDMA_WRITE);
	pair_close(&pair);
}

static void write_then_send(void)
{
	struct pair pair;
	uint64_t i;

	if (!pair_open(&pair, NULL))
		return;
	for (i = 1; i <= 50; i++) {
		memset(pair.a.buffer, (int)i, 30000);
		CU_ASSERT_EQUAL(post_recv(&pair.b, i, 60000, 8), 0);
		CU_ASSERT_EQUAL(post_rdma(&pair.a, IBV_WR_RDMA_WRITE, i, 0, 30000, &pair.b, 0, 0),
				0);
		CU_ASSERT_EQUAL(post_send(&pair.a, i, 0, 8, IBV_SEND_SIGNALED), 0);
		CU_ASSERT_TRUE_FATAL(completes(pair.b.rcq, i, IBV_WC_SUCCESS, NULL));
		CU_ASSERT_EQUAL(memcmp(pair.a.buffer, pair.b.buffer, 30000), 0);
		CU_ASSERT_TRUE(completes(pair.a.scq, i, IBV_WC_SUCCESS, NULL));
	}
	pair_close(&pair);
}

static void read_after_write(void)
{
	struct pair pair;
	uint64_t i;

	if (!pair_open(&pair, NULL))
		return;
	for (i = 1; i <= 50; i++) {
		memset(pair.a.buffer, (int)i, 5000);
		CU_ASSERT_EQUAL(post_rdma(&pair.a, IBV_WR_RDMA_WRITE, i, 0, 5000, &pair.b, 0, 0),
				0);
		CU_ASSERT_EQUAL(post_rdma(&pair.a, IBV_WR_RDMA_READ, i, 10000, 5000, &pair.b, 0,
					  IBV_SEND_SIGNALED | IBV_SEND_FENCE),
				0);
		CU_ASSERT_TRUE_FATAL(completes(pair.a.scq, i, IBV_WC_SUCCESS, NULL));
		CU_ASSERT_EQUAL(memcmp(pair.a.buffer, pair.a.buffer + 10000, 5000), 0);
	}
	pair_close(&pair);
}

/* A program may poll the last byte of a write. */
static bool last_byte_is(void *arg)
{
	return __atomic_load_n((char *)arg, __ATOMIC_ACQUIRE);
}

static void last_byte_comes_last(void)
{
	static const uint32_t sizes[] = { 2, 8, 100, 4096, 20000 };
	struct pair pair;
	size_t i;

	if (!pair_open(&pair, NULL))
		return;
	memset(pair.a.buffer, 0x31, BUFFER);
	for (i = 0; i < COUNT(sizes); i++) {
		memset(pair.b.buffer, 0, BUFFER);
		CU_ASSERT_EQUAL(post_rdma(&pair.a, IBV_WR_RDMA_WRITE, i, 0, sizes[i], &pair.b, 0,
					  IBV_SEND_SIGNALED),
				0);
		CU_ASSERT_TRUE(unit_wait_for(last_byte_is, pair.b.buffer + sizes[i] - 1, PATIENCE));
		CU_ASSERT_EQUAL(memcmp(pair.a.buffer, pair.b.buffer, sizes[i]), 0);
		CU_ASSERT_TRUE(completes(pair.a.scq, i, IBV_WC_SUCCESS, NULL));
	}
	pair_close(&pair);
}

static void scatter_and_gather(void)
{
	struct ibv_sge sges[3];
	struct ibv_send_wr wr = { .sg_list = sges, .num_sge = 3, .send_flags = IBV_SEND_SIGNALED },
			   *bad;
	struct pair pair;
	uint32_t i;

	if (!pair_open(&pair, NULL))
		return;
	for (i = 0; i < 3; i++)
		sges[i] = (struct ibv_sge){ (uintptr_t)pair.a.buffer + i * 100, 10 + i,
					    pair.a.mr->lkey };
	for (i = 0; i < 300; i++)
		pair.a.buffer[i] = (char)i;
	wr.opcode = IBV_WR_RDMA_WRITE;
	wr.wr.rdma.remote_addr = (uintptr_t)pair.b.buffer + 7;
	wr.wr.rdma.rkey = pair.b.mr->rkey;
	CU_ASSERT_EQUAL(ibv_post_send(pair.a.qp, &wr, &bad), 0);
	CU_ASSERT_TRUE(completes(pair.a.scq, 0, IBV_WC_SUCCESS, NULL));
	CU_ASSERT_EQUAL(memcmp(pair.b.buffer + 7, pair.a.buffer, 10), 0);
	CU_ASSERT_EQUAL(memcmp(pair.b.buffer + 17, pair.a.buffer + 100, 11), 0);
	CU_ASSERT_EQUAL(memcmp(pair.b.buffer + 28, pair.a.buffer + 200, 12), 0);
	CU_ASSERT_EQUAL(pair.b.buffer[40], 0);
	memset(pair.a.buffer, 0, 400);
	wr.opcode = IBV_WR_RDMA_READ;
	CU_ASSERT_EQUAL(ibv_post_send(pair.a.qp, &wr, &bad), 0);
	CU_ASSERT_TRUE(completes(pair.a.scq, 0, IBV_WC_SUCCESS, NULL));
	CU_ASSERT_TRUE(pair.a.buffer[9] == 9 && pair.a.buffer[10] == 0);
	CU_ASSERT_TRUE(pair.a.buffer[110] == 110 && pair.a.buffer[111] == 0);
	CU_ASSERT_TRUE(pair.a.buffer[211] == (char)211 && pair.a.buffer[212] == 0);
	pair_close(&pair);
}

static uint64_t *word(struct side *side, uint32_t offset)
{
	return (uint64_t *)(void *)(side->buffer + offset);
}

static bool have_atomics(void)
{
	if (device_attr.atomic_cap == IBV_ATOMIC_NONE)
		skip("no atomics");
	return device_attr.atomic_cap != IBV_ATOMIC_NONE;
}

static void fetch_and_add(void)
{
	struct ibv_wc wc = { 0 };
	struct pair pair;

	if (!have_atomics() || !pair_open(&pair, NULL))
		return;
	*word(&pair.b, 64) = 40;
	CU_ASSERT_EQUAL(post_atomic(&pair.a, IBV_WR_ATOMIC_FETCH_AND_ADD, 1, 0, &pair.b, 64, 2, 0),
			0);
	CU_ASSERT_TRUE(completes(pair.a.scq, 1, IBV_WC_SUCCESS, &wc));
	CU_ASSERT_EQUAL(wc.opcode, IBV_WC_FETCH_ADD);
	CU_ASSERT_EQUAL(wc.byte_len, 8);
	CU_ASSERT_EQUAL(*word(&pair.a, 0), 40);
	CU_ASSERT_EQUAL(*word(&pair.b, 64), 42);
	CU_ASSERT_EQUAL(post_atomic(&pair.a, IBV_WR_ATOMIC_FETCH_AND_ADD, 2, 0, &pair.b, 64,
				    (uint64_t)-43, 0),
			0);
	CU_ASSERT_TRUE(completes(pair.a.scq, 2, IBV_WC_SUCCESS, NULL));
	CU_ASSERT_EQUAL(*word(&pair.b, 64), UINT64_MAX);
	pair_close(&pair);
}

static void compare_and_swap(void)
{
	struct ibv_wc wc = { 0 };
	struct pair pair;

	if (!have_atomics() || !pair_open(&pair, NULL))
		return;
	*word(&pair.b, 0) = 7;
	CU_ASSERT_EQUAL(post_atomic(&pair.a, IBV_WR_ATOMIC_CMP_AND_SWP, 1, 8, &pair.b, 0, 8, 99),
			0);
	CU_ASSERT_TRUE(completes(pair.a.scq, 1, IBV_WC_SUCCESS, &wc));
	CU_ASSERT_EQUAL(wc.opcode, IBV_WC_COMP_SWAP);
	CU_ASSERT_EQUAL(*word(&pair.a, 8), 7);
	CU_ASSERT_EQUAL(*word(&pair.b, 0), 7);
	CU_ASSERT_EQUAL(post_atomic(&pair.a, IBV_WR_ATOMIC_CMP_AND_SWP, 2, 8, &pair.b, 0, 7, 99),
			0);
	CU_ASSERT_TRUE(completes(pair.a.scq, 2, IBV_WC_SUCCESS, NULL));
	CU_ASSERT_EQUAL(*word(&pair.a, 8), 7);
	CU_ASSERT_EQUAL(*word(&pair.b, 0), 99);
	pair_close(&pair);
}

/* A fenced send carries the data of the read before it. */
static void fence_waits_for_reads(void)
{
	struct pair pair;
	uint64_t i;

	if (!pair_open(&pair, NULL))
		return;
	for (i = 0; i < 20; i++) {
		memset(pair.b.buffer, (int)i + 1, 4096);
		memset(pair.a.buffer, 0, 4096);
		CU_ASSERT_EQUAL(post_recv(&pair.b, i, 8192, 4096), 0);
		CU_ASSERT_EQUAL(post_rdma(&pair.a, IBV_WR_RDMA_READ, i, 0, 4096, &pair.b, 0, 0), 0);
		CU_ASSERT_EQUAL(post_send(&pair.a, i, 0, 4096, IBV_SEND_SIGNALED | IBV_SEND_FENCE),
				0);
		CU_ASSERT_TRUE(completes(pair.a.scq, i, IBV_WC_SUCCESS, NULL));
		CU_ASSERT_TRUE(completes(pair.b.rcq, i, IBV_WC_SUCCESS, NULL));
		CU_ASSERT_TRUE(pair.b.buffer[8192] == (char)(i + 1) &&
			       pair.b.buffer[8192 + 4095] == (char)(i + 1));
	}
	pair_close(&pair);
}

static const struct unit_test tests[] = {
	{ "a write lands where it should and nowhere else", write_lands },
	{ "a read fetches; byte_len is the total", read_fetches },
	{ "WRITE_WITH_IMM: byte_len of the receive is what was written", write_with_immediate },
	{ "a write is visible when the receive of a later send is polled", write_then_send },
	{ "a read sees the writes before it; its data precede its completion", read_after_write },
	{ "the last byte of a write appears last", last_byte_comes_last },
	{ "gathered writes, scattered reads", scatter_and_gather },
	{ "fetch and add returns the old value", fetch_and_add },
	{ "compare and swap swaps only an equal value", compare_and_swap },
	{ "fence: what reads brought is there before the fenced request", fence_waits_for_reads },
};

CONFORM_MAIN("conform_rdma", tests)
