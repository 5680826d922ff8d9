/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
#include "test/conform/unreliable.h"

void unreliable_no_receive_loses(const struct pair_options *options)
{
	uint32_t header = header_of(options);
	struct ibv_wc wc = { 0 };
	struct pair pair;

	if (!pair_open(&pair, options))
		return;
	CU_ASSERT_EQUAL(post_send(&pair.a, 1, 0, 11, IBV_SEND_SIGNALED), 0);
	CU_ASSERT_TRUE(completes(pair.a.scq, 1, IBV_WC_SUCCESS, NULL));
	CU_ASSERT_TRUE(stays_empty(pair.b.rcq));
	CU_ASSERT_EQUAL(post_recv(&pair.b, 2, 0, header + 64), 0);
	CU_ASSERT_EQUAL(post_send(&pair.a, 3, 0, 22, IBV_SEND_SIGNALED), 0);
	CU_ASSERT_TRUE(completes(pair.a.scq, 3, IBV_WC_SUCCESS, NULL));
	CU_ASSERT_TRUE(completes(pair.b.rcq, 2, IBV_WC_SUCCESS, &wc));
	CU_ASSERT_EQUAL(wc.byte_len, header + 22);
	CU_ASSERT_EQUAL(state_of(pair.a.qp), IBV_QPS_RTS);
	CU_ASSERT_EQUAL(state_of(pair.b.qp), IBV_QPS_RTS);
	pair_close(&pair);
}

void unreliable_local_error(const struct pair_options *options)
{
	uint32_t room = header_of(options) + 200;
	struct ibv_mr bad = { 0 }, *good;
	struct pair pair;

	if (device_is_rxe) {
		skip("fails as a whole");
		return;
	}
	if (!pair_open(&pair, options))
		return;
	good = pair.a.mr;
	pair.a.mr = &bad;
	CU_ASSERT_EQUAL(post_send(&pair.a, 1, 0, 100, IBV_SEND_SIGNALED), 0);
	pair.a.mr = good;
	CU_ASSERT_TRUE(completes(pair.a.scq, 1, IBV_WC_LOC_PROT_ERR, NULL));
	CU_ASSERT_TRUE(reaches(pair.a.qp, IBV_QPS_SQE));
	CU_ASSERT_EQUAL(post_send(&pair.a, 2, 0, 100, 0), 0);
	CU_ASSERT_TRUE(completes(pair.a.scq, 2, IBV_WC_WR_FLUSH_ERR, NULL));
	CU_ASSERT_EQUAL(post_recv(&pair.a, 3, 0, room), 0);
	CU_ASSERT_EQUAL(post_send(&pair.b, 4, 0, 8, IBV_SEND_SIGNALED), 0);
	CU_ASSERT_TRUE(completes(pair.a.rcq, 3, IBV_WC_SUCCESS, NULL));
	CU_ASSERT_EQUAL(move_to(pair.a.qp, IBV_QPS_RTS), 0);
	CU_ASSERT_EQUAL(post_recv(&pair.b, 5, 0, room), 0);
	CU_ASSERT_EQUAL(post_send(&pair.a, 6, 0, 100, IBV_SEND_SIGNALED), 0);
	CU_ASSERT_TRUE(completes(pair.a.scq, 6, IBV_WC_SUCCESS, NULL));
	CU_ASSERT_TRUE(completes(pair.b.rcq, 5, IBV_WC_SUCCESS, NULL));
	pair_close(&pair);
}
