/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Where QPs lie: side by side, whatever else a program allocates between them; each place is used again. */
#include <errno.h>
#include "test/unit/node.h"

static struct ibv_qp *qp_make(struct node *node)
{
	struct ibv_qp_init_attr attr = {
		.send_cq = node->cq,
		.recv_cq = node->cq,
		.qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = 1, .max_recv_wr = 1 },
	};

	return ibv_create_qp(node->pd, &attr);
}

static void side_by_side(void)
{
	void *between[3];
	struct ibv_qp *qp[3];
	struct node node;

	CU_ASSERT_TRUE_FATAL(node_open(&node, &(struct node_options){ 0 }));
	for (unsigned i = 0; i < 3; i++) {
		between[i] = malloc(2000);
		qp[i] = qp_make(&node);
		CU_ASSERT_PTR_NOT_NULL_FATAL(qp[i]);
	}
	CU_ASSERT_PTR_EQUAL(qp[1], (char *)qp[0] + sizeof(struct sv_qp));
	CU_ASSERT_PTR_EQUAL(qp[2], (char *)qp[1] + sizeof(struct sv_qp));
	for (unsigned i = 0; i < 3; i++) {
		CU_ASSERT_EQUAL(ibv_destroy_qp(qp[i]), 0);
		free(between[i]);
	}
	CU_ASSERT_EQUAL(node_close(&node), 0);
}

/* The next QP is as new. */
static void place_is_used_again(void)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp *qp, *next;
	struct ibv_qp_attr attr;
	struct node node;

	CU_ASSERT_TRUE_FATAL(node_open(&node, &(struct node_options){ .qps = 2 }));
	qp = node.qp[0];
	CU_ASSERT_TRUE(node_qp_connect(qp, node.qp[1]->qp_num, &node.options));
	CU_ASSERT_EQUAL(ibv_destroy_qp(qp), 0);
	next = node.qp[0] = qp_make(&node);
	CU_ASSERT_PTR_EQUAL_FATAL(next, qp);
	memset(&attr, 1, sizeof(attr));
	CU_ASSERT_EQUAL(ibv_query_qp(next, &attr, IBV_QP_STATE | IBV_QP_DEST_QPN, &init), 0);
	CU_ASSERT_EQUAL(attr.qp_state, IBV_QPS_RESET);
	CU_ASSERT_EQUAL(attr.dest_qp_num, 0);
	CU_ASSERT_EQUAL(node_close(&node), 0);
}

static void as_many_as_the_device_has(void)
{
	static struct ibv_qp *qp[SV_QPS];
	unsigned count = 0, first = 0;
	struct node node;

	CU_ASSERT_TRUE_FATAL(node_open(&node, &(struct node_options){ .cqe = 1 << 16 }));
	while (count < SV_QPS - 1 && (qp[count] = qp_make(&node)))
		count++;
	CU_ASSERT_EQUAL(count, SV_QPS - 1); /* one is the node's */
	errno = 0;
	CU_ASSERT_PTR_NULL(qp_make(&node));
	CU_ASSERT_EQUAL(errno, ENOMEM);
	while (first < count && first < 100)
		CU_ASSERT_EQUAL(ibv_destroy_qp(qp[first++]), 0);
	for (unsigned i = 0; i < first; i++)
		CU_ASSERT_PTR_NOT_NULL(qp[i] = qp_make(&node));
	CU_ASSERT_PTR_NULL(qp_make(&node));
	for (unsigned i = 0; i < count; i++)
		CU_ASSERT_EQUAL(ibv_destroy_qp(qp[i]), 0);
	CU_ASSERT_EQUAL(node_close(&node), 0);
}

static const struct unit_test tests[] = {
	{ "QPs lie side by side", side_by_side },
	{ "the place of a destroyed QP is that of the next one", place_is_used_again },
	{ "as many QPs as the device has", as_many_as_the_device_has },
};

UNIT_MAIN("softverbs_qp_memory", tests)
