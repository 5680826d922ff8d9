/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Messages: completions, immediate data, scatter and gather, order, sizes. */
#include <stdlib.h>
#include "test/conform/conform.h"

static void signaled_or_not(void)
{
	struct ibv_wc wc;
	struct pair pair;
	uint64_t i;

	if (!pair_open(&pair, NULL))
		return;
	for (i = 0; i < 4; i++)
		CU_ASSERT_EQUAL(post_recv(&pair.b, i, 0, 8), 0);
	for (i = 0; i < 4; i++)
		CU_ASSERT_EQUAL(post_send(&pair.a, i, 0, 8, i == 3 ? IBV_SEND_SIGNALED : 0), 0);
	CU_ASSERT_TRUE(completes(pair.a.scq, 3, IBV_WC_SUCCESS, &wc));
	CU_ASSERT_EQUAL(wc.opcode, IBV_WC_SEND);
	CU_ASSERT_EQUAL(wc.qp_num, pair.a.qp->qp_num);
	for (i = 0; i < 4; i++)
		CU_ASSERT_TRUE(completes(pair.b.rcq, i, IBV_WC_SUCCESS, NULL));
	CU_ASSERT_TRUE(stays_empty(pair.a.scq));
	pair_close(&pair);
}

static void all_signaled(void)
{
	struct pair pair;
	uint64_t i;

	if (!pair_open(&pair, &(struct pair_options){ .signal_all = true }))
		return;
	for (i = 0; i < 3; i++)
		CU_ASSERT_EQUAL(post_recv(&pair.b, i, 0, 8), 0);
	for (i = 0; i < 3; i++)
		CU_ASSERT_EQUAL(post_send(&pair.a, i, 0, 8, 0), 0);
	for (i = 0; i < 3; i++)
		CU_ASSERT_TRUE(completes(pair.a.scq, i, IBV_WC_SUCCESS, NULL));
	CU_ASSERT_TRUE(stays_empty(pair.a.scq));
	pair_close(&pair);
}

static void receive_tells_the_length(void)
{
	struct ibv_wc wc = { 0 };
	struct pair pair;

	if (!pair_open(&pair, NULL))
		return;
	strcpy(pair.a.buffer, "twelve bytes");
	CU_ASSERT_EQUAL(post_recv(&pair.b, 1, 100, 500), 0);
	CU_ASSERT_EQUAL(post_send(&pair.a, 2, 0, 13, IBV_SEND_SIGNALED), 0);
	CU_ASSERT_TRUE(completes(pair.b.rcq, 1, IBV_WC_SUCCESS, &wc));
	CU_ASSERT_EQUAL(wc.opcode, IBV_WC_RECV);
	CU_ASSERT_EQUAL(wc.byte_len, 13);
	CU_ASSERT_EQUAL(wc.qp_num, pair.b.qp->qp_num);
	CU_ASSERT_FALSE(wc.wc_flags & (IBV_WC_WITH_IMM | IBV_WC_WITH_INV));
	CU_ASSERT_STRING_EQUAL(pair.b.buffer + 100, "twelve bytes");
	CU_ASSERT_EQUAL(pair.b.buffer[113], 0);
	CU_ASSERT_TRUE(completes(pair.a.scq, 2, IBV_WC_SUCCESS, NULL));
	pair_close(&pair);
}

static void immediate_data(void)
{
	struct ibv_sge sge;
	struct ibv_send_wr wr = {
		.wr_id = 2,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_SEND_WITH_IMM,
		.send_flags = IBV_SEND_SIGNALED,
		.imm_data = 0x11223344,
	}, *bad;
	struct ibv_wc wc = { 0 };
	struct pair pair;

	if (!pair_open(&pair, NULL))
		return;
	sge = (struct ibv_sge){ (uintptr_t)pair.a.buffer, 4, pair.a.mr->lkey };
	CU_ASSERT_EQUAL(post_recv(&pair.b, 1, 0, 8), 0);
	CU_ASSERT_EQUAL(ibv_post_send(pair.a.qp, &wr, &bad), 0);
	CU_ASSERT_TRUE(completes(pair.b.rcq, 1, IBV_WC_SUCCESS, &wc));
	CU_ASSERT_EQUAL(wc.opcode, IBV_WC_RECV);
	CU_ASSERT_EQUAL(wc.byte_len, 4);
	CU_ASSERT_TRUE(wc.wc_flags & IBV_WC_WITH_IMM);
	CU_ASSERT_EQUAL(wc.imm_data, 0x11223344);
	CU_ASSERT_TRUE(completes(pair.a.scq, 2, IBV_WC_SUCCESS, &wc));
	CU_ASSERT_EQUAL(wc.opcode, IBV_WC_SEND);
	pair_close(&pair);
}

/*
 * The message is gathered from three pieces and scattered over three of other sizes, and one is
 * empty.
 */
static void gather_and_scatter(void)
{
	struct ibv_sge from[3], to[4];
	struct ibv_send_wr swr = {
		.sg_list = from,
		.num_sge = 3,
		.opcode = IBV_WR_SEND,
		.send_flags = IBV_SEND_SIGNALED,
	}, *sbad;
	struct ibv_recv_wr rwr = { .sg_list = to, .num_sge = 4 }, *rbad;
	struct ibv_wc wc = { 0 };
	struct pair pair;
	uintptr_t a, b;

	if (!pair_open(&pair, NULL))
		return;
	a = (uintptr_t)pair.a.buffer;
	b = (uintptr_t)pair.b.buffer;
	strcpy(pair.a.buffer, "abc");
	strcpy(pair.a.buffer + 100, "defgh");
	strcpy(pair.a.buffer + 200, "ij");
	from[0] = (struct ibv_sge){ a, 3, pair.a.mr->lkey };
	from[1] = (struct ibv_sge){ a + 100, 5, pair.a.mr->lkey };
	from[2] = (struct ibv_sge){ a + 200, 2, pair.a.mr->lkey };
	to[0] = (struct ibv_sge){ b, 1, pair.b.mr->lkey };
	to[1] = (struct ibv_sge){ b + 50, 6, pair.b.mr->lkey };
	to[2] = (struct ibv_sge){ b + 90, 1, pair.b.mr->lkey };
	to[3] = (struct ibv_sge){ b + 150, 50, pair.b.mr->lkey };
	CU_ASSERT_EQUAL(ibv_post_recv(pair.b.qp, &rwr, &rbad), 0);
	CU_ASSERT_EQUAL(ibv_post_send(pair.a.qp, &swr, &sbad), 0);
	CU_ASSERT_TRUE(completes(pair.b.rcq, 0, IBV_WC_SUCCESS, &wc));
	CU_ASSERT_EQUAL(wc.byte_len, 10);
	CU_ASSERT_EQUAL(memcmp(pair.b.buffer, "a\0", 2), 0);
	CU_ASSERT_EQUAL(memcmp(pair.b.buffer + 50, "bcdefg\0", 7), 0);
	CU_ASSERT_EQUAL(memcmp(pair.b.buffer + 90, "h\0", 2), 0);
	CU_ASSERT_EQUAL(memcmp(pair.b.buffer + 150, "ij\0", 3), 0);
	CU_ASSERT_TRUE(completes(pair.a.scq, 0, IBV_WC_SUCCESS, NULL));
	pair_close(&pair);
}

static void fill_pattern(char *buffer, uint32_t length, unsigned seed)
{
	uint32_t i;

	for (i = 0; i < length; i++)
		buffer[i] = (char)(seed + i * 7 + (i >> 8));
}

/* The message is too long for a slot, and the two sides cut it at different places. */
static void gather_and_scatter_more(void)
{
	struct ibv_sge from[2], to[3];
	struct ibv_send_wr swr = {
		.sg_list = from,
		.num_sge = 2,
		.opcode = IBV_WR_SEND,
		.send_flags = IBV_SEND_SIGNALED,
	}, *sbad;
	struct ibv_recv_wr rwr = { .sg_list = to, .num_sge = 3 }, *rbad;
	struct pair pair;
	uintptr_t a, b;

	if (!pair_open(&pair, NULL))
		return;
	a = (uintptr_t)pair.a.buffer;
	b = (uintptr_t)pair.b.buffer;
	for (uint32_t length = 60; length <= 130; length += 10) {
		uint32_t first = length - 50;

		fill_pattern(pair.a.buffer, length, length);
		memset(pair.b.buffer, 0, 200);
		from[0] = (struct ibv_sge){ a, first, pair.a.mr->lkey };
		from[1] = (struct ibv_sge){ a + first, 50, pair.a.mr->lkey };
		to[0] = (struct ibv_sge){ b, 45, pair.b.mr->lkey };
		to[1] = (struct ibv_sge){ b + 45, 4, pair.b.mr->lkey };
		to[2] = (struct ibv_sge){ b + 49, 151, pair.b.mr->lkey };
		CU_ASSERT_EQUAL(ibv_post_recv(pair.b.qp, &rwr, &rbad), 0);
		CU_ASSERT_EQUAL(ibv_post_send(pair.a.qp, &swr, &sbad), 0);
		CU_ASSERT_TRUE(completes(pair.b.rcq, 0, IBV_WC_SUCCESS, NULL));
		CU_ASSERT_TRUE(completes(pair.a.scq, 0, IBV_WC_SUCCESS, NULL));
		CU_ASSERT_EQUAL(memcmp(pair.a.buffer, pair.b.buffer, length), 0);
		CU_ASSERT_EQUAL(pair.b.buffer[length], 0);
	}
	pair_close(&pair);
}

static void each_size(void)
{
	static const uint32_t sizes[] = {
		1,    7,    8,	  39,	40,   41,    48,    49,	   63,	   64,
		65,   111,  112,  113,	255,  256,   1023,  1024,  1025,   4095,
		4096, 4097, 8191, 8192, 8193, 16384, 32767, 65535, BUFFER,
	};
	struct ibv_wc wc;
	struct pair pair;
	size_t i;

	if (!pair_open(&pair, NULL))
		return;
	for (i = 0; i < COUNT(sizes); i++) {
		memset(pair.b.buffer, 0, BUFFER);
		fill_pattern(pair.a.buffer, sizes[i], (unsigned)i);
		CU_ASSERT_EQUAL(post_recv(&pair.b, i, 0, BUFFER), 0);
		CU_ASSERT_EQUAL(post_send(&pair.a, i, 0, sizes[i], IBV_SEND_SIGNALED), 0);
		CU_ASSERT_TRUE_FATAL(completes(pair.a.scq, i, IBV_WC_SUCCESS, NULL));
		CU_ASSERT_TRUE_FATAL(completes(pair.b.rcq, i, IBV_WC_SUCCESS, &wc));
		CU_ASSERT_EQUAL(wc.byte_len, sizes[i]);
		CU_ASSERT_EQUAL(memcmp(pair.a.buffer, pair.b.buffer, sizes[i]), 0);
		CU_ASSERT_TRUE(sizes[i] == BUFFER || !pair.b.buffer[sizes[i]]);
	}
	pair_close(&pair);
}

#define LARGE (9u << 20)

/* The message is far larger than any window of a transport, and its addresses are not aligned. */
static void large_message(void)
{
	char *from = malloc(LARGE), *to = calloc(1, LARGE);
	struct ibv_mr *mr_from, *mr_to;
	struct ibv_sge sge;
	struct ibv_send_wr swr = { .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND }, *sbad;
	struct ibv_recv_wr rwr = { .sg_list = &sge, .num_sge = 1 }, *rbad;
	struct ibv_wc wc = { 0 };
	struct pair pair;

	CU_ASSERT_TRUE_FATAL(from && to);
	if (!pair_open(&pair, NULL))
		return;
	mr_from = ibv_reg_mr(pair.a.pd, from, LARGE, IBV_ACCESS_LOCAL_WRITE);
	mr_to = ibv_reg_mr(pair.b.pd, to, LARGE, IBV_ACCESS_LOCAL_WRITE);
	CU_ASSERT_TRUE_FATAL(mr_from && mr_to);
	fill_pattern(from, LARGE, 3);
	sge = (struct ibv_sge){ (uintptr_t)to + 1, LARGE - 1, mr_to->lkey };
	CU_ASSERT_EQUAL(ibv_post_recv(pair.b.qp, &rwr, &rbad), 0);
	sge = (struct ibv_sge){ (uintptr_t)from + 3, LARGE - 3, mr_from->lkey };
	swr.send_flags = IBV_SEND_SIGNALED;
	CU_ASSERT_EQUAL(ibv_post_send(pair.a.qp, &swr, &sbad), 0);
	CU_ASSERT_TRUE(completes(pair.a.scq, 0, IBV_WC_SUCCESS, NULL));
	CU_ASSERT_TRUE(completes(pair.b.rcq, 0, IBV_WC_SUCCESS, &wc));
	CU_ASSERT_EQUAL(wc.byte_len, LARGE - 3);
	CU_ASSERT_EQUAL(memcmp(from + 3, to + 1, LARGE - 3), 0);
	CU_ASSERT_EQUAL(ibv_dereg_mr(mr_from), 0);
	CU_ASSERT_EQUAL(ibv_dereg_mr(mr_to), 0);
	pair_close(&pair);
	free(from);
	free(to);
}

/* The receiver makes no call, because it is this same thread. */
static void sends_complete_without_the_receiver(void)
{
	struct pair pair;
	uint64_t i;

	if (!pair_open(&pair, &(struct pair_options){ .send_wr = 64, .recv_wr = 64 }))
		return;
	for (i = 0; i < 60; i++)
		CU_ASSERT_EQUAL(post_recv(&pair.b, i, (uint32_t)i * 1024, 1024), 0);
	for (i = 0; i < 60; i++) {
		memset(pair.a.buffer, (int)i, 1024);
		CU_ASSERT_EQUAL(post_send(&pair.a, i, 0, 1024, IBV_SEND_SIGNALED), 0);
		CU_ASSERT_TRUE_FATAL(completes(pair.a.scq, i, IBV_WC_SUCCESS, NULL));
	}
	for (i = 0; i < 60; i++) {
		CU_ASSERT_TRUE(completes(pair.b.rcq, i, IBV_WC_SUCCESS, NULL));
		CU_ASSERT_TRUE(pair.b.buffer[i * 1024] == (char)i &&
			       pair.b.buffer[i * 1024 + 1023] == (char)i);
	}
	pair_close(&pair);
}

/* Short, middle and long messages are mixed and fill every queue several times. */
static void order_is_kept(void)
{
	static const uint32_t sizes[] = { 4, 3000, 64, 20000, 8, 0, 9000, 33 };
	struct ibv_wc wc;
	struct pair pair;
	uint64_t i, k;

	if (!pair_open(&pair, NULL))
		return;
	for (i = 0; i < 200; i += 8) {
		for (k = i; k < i + 8; k++)
			CU_ASSERT_EQUAL(post_recv(&pair.b, k, (uint32_t)(k % 2) * 32768, 32768), 0);
		for (k = i; k < i + 8; k++)
			CU_ASSERT_EQUAL(post_send(&pair.a, k, 0, sizes[k % 8],
						  k % 4 == 3 ? IBV_SEND_SIGNALED : 0),
					0);
		CU_ASSERT_TRUE(completes(pair.a.scq, i + 3, IBV_WC_SUCCESS, NULL));
		CU_ASSERT_TRUE(completes(pair.a.scq, i + 7, IBV_WC_SUCCESS, NULL));
		for (k = i; k < i + 8; k++) {
			CU_ASSERT_TRUE_FATAL(completes(pair.b.rcq, k, IBV_WC_SUCCESS, &wc));
			CU_ASSERT_EQUAL(wc.byte_len, sizes[k % 8]);
		}
	}
	pair_close(&pair);
}

static void both_directions(void)
{
	struct pair pair;
	uint64_t i;

	if (!pair_open(&pair, NULL))
		return;
	for (i = 0; i < 8; i++) {
		CU_ASSERT_EQUAL(post_recv(&pair.a, i, 1024, 512), 0);
		CU_ASSERT_EQUAL(post_recv(&pair.b, i, 1024, 512), 0);
	}
	for (i = 0; i < 8; i++) {
		CU_ASSERT_EQUAL(post_send(&pair.a, i, 0, 512, IBV_SEND_SIGNALED), 0);
		CU_ASSERT_EQUAL(post_send(&pair.b, i, 0, 512, IBV_SEND_SIGNALED), 0);
	}
	for (i = 0; i < 8; i++) {
		CU_ASSERT_TRUE(completes(pair.a.rcq, i, IBV_WC_SUCCESS, NULL));
		CU_ASSERT_TRUE(completes(pair.b.rcq, i, IBV_WC_SUCCESS, NULL));
		CU_ASSERT_TRUE(completes(pair.a.scq, i, IBV_WC_SUCCESS, NULL));
		CU_ASSERT_TRUE(completes(pair.b.scq, i, IBV_WC_SUCCESS, NULL));
	}
	pair_close(&pair);
}

static const struct unit_test tests[] = {
	{ "unsignaled success: no completion", signaled_or_not },
	{ "sq_sig_all: each send completes once, in order", all_signaled },
	{ "the receive tells opcode, length and QP", receive_tells_the_length },
	{ "SEND_WITH_IMM carries its word", immediate_data },
	{ "gather and scatter", gather_and_scatter },
	{ "gather and scatter around the header", gather_and_scatter_more },
	{ "messages of each size arrive whole and touch nothing else", each_size },
	{ "a message of 9 MiB", large_message },
	{ "sends complete while the receiver does nothing", sends_complete_without_the_receiver },
	{ "messages of all sizes arrive in order", order_is_kept },
	{ "both directions at once", both_directions },
};

CONFORM_MAIN("conform_send", tests)
