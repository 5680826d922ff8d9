/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* A CQ with more QPs than each poll checks: senders mark theirs, and the last ones that had a completion are hot. */
#include <infiniband/verbs.h>
#include "test/unit/datagram.h"
#include "test/unit/node.h"

#define MANY 40u
#define EACH 200u

/* ---- messages of another process ---- */

static const struct node_options with_queues = {
	.qps = MANY, .depth = 16, .cqe = 4096, .channel = true
};
static const struct node_options with_srq = {
	.qps = MANY, .depth = 16, .cqe = 4096, .channel = true, .srq = MANY
};

/* Chooses the QP that sends next: bursts on one QP, then jumps. */
static uint32_t many_next(uint32_t *state)
{
	*state = *state * 1664525u + 1013904223u;
	return (*state >> 8) % MANY;
}

static int many_child(int fd, void *arg)
{
	uint32_t sent[MANY] = { 0 }, total = 0, state = 1;
	struct node node;
	struct ibv_wc wc;

	(void)arg;
	if (!node_open(&node, &with_queues) || !node_connect(&node, 0, MANY, fd))
		return 1;
	while (total < MANY * EACH) {
		uint32_t i = many_next(&state), burst = 1 + (state >> 4) % 4;

		for (; burst && sent[i] < EACH; burst--, total++) {
			memcpy(node.memory, &sent[i], sizeof(sent[i]));
			sent[i]++;
			if (node_send(&node, i, i, 0, sizeof(sent[i]),
				      IBV_SEND_SIGNALED | IBV_SEND_INLINE))
				return 2;
			if (!node_poll(&node, &wc) || wc.status)
				return 3;
		}
	}
	process_sync(fd);
	return node_close(&node);
}

static uint32_t qp_of_completion(const struct node *node, const struct ibv_wc *wc)
{
	uint32_t i = 0;

	while (i < MANY && node->qp[i]->qp_num != wc->qp_num)
		i++;
	return i;
}

/* Receive k, of QP k or of the SRQ, is posted again as soon as it has its message. */
static void many_take(struct node *node)
{
	uint32_t got[MANY] = { 0 }, wrong = 0, total;
	struct ibv_wc wc;

	for (uint32_t k = 0; k < MANY; k++)
		CU_ASSERT_EQUAL(node_recv(node, k, k, k * 64, 64), 0);
	for (total = 0; total < MANY * EACH; total++) {
		uint32_t value, k, i;

		if (!node_event_poll(node, &wc) || wc.status)
			break;
		k = (uint32_t)wc.wr_id;
		i = qp_of_completion(node, &wc);
		CU_ASSERT_TRUE_FATAL(k < MANY && i < MANY);
		memcpy(&value, node->memory + k * 64, sizeof(value));
		wrong += value != got[i]++ || (!node->srq && k != i);
		if (node_recv(node, k, k, k * 64, 64))
			break;
	}
	CU_ASSERT_EQUAL(total, MANY * EACH);
	CU_ASSERT_EQUAL(wrong, 0);
}

static void many_messages(const struct node_options *options, void before(struct node *node))
{
	struct process child;
	struct node node;

	CU_ASSERT_TRUE_FATAL(process_start(&child, many_child, NULL));
	CU_ASSERT_TRUE_FATAL(node_open(&node, options));
	if (before)
		before(&node);
	CU_ASSERT_TRUE_FATAL(node_connect(&node, 0, MANY, child.fd));
	many_take(&node);
	process_say(child.fd, 0);
	CU_ASSERT_EQUAL(process_end(&child), 0);
	CU_ASSERT_EQUAL(node_close(&node), 0);
}

static void receives_are_discarded(struct node *node)
{
	for (uint32_t i = 0; i < MANY; i++) {
		CU_ASSERT_EQUAL(qp_to_init(node->qp[i]), 0);
		for (uint32_t k = 0; k < 16; k++)
			CU_ASSERT_EQUAL(node_recv(node, i, i, i * 64, 64), 0);
		CU_ASSERT_EQUAL(qp_to(node->qp[i], IBV_QPS_RESET), 0);
	}
}

static void queues(void)
{
	many_messages(&with_queues, receives_are_discarded);
}

static void shared_queue(void)
{
	many_messages(&with_srq, NULL);
}

/* ---- a hot QP that is idle ---- */

static void pairs_open(struct node *node, uint32_t depth)
{
	const struct node_options options = { .qps = MANY, .depth = depth };

	CU_ASSERT_TRUE_FATAL(node_open(node, &options));
	for (uint32_t i = 0; i < MANY; i++)
		CU_ASSERT_TRUE_FATAL(
			node_qp_connect(node->qp[i], node->qp[i ^ 1]->qp_num, &node->options));
}

static void receives_are_flushed(void)
{
	struct node node;
	struct ibv_wc wc = { 0 };

	pairs_open(&node, 4);
	for (uint32_t i = 0; i < MANY; i += 2) {
		CU_ASSERT_EQUAL(node_recv(&node, i, 1, 0, 64), 0);
		CU_ASSERT_EQUAL(node_recv(&node, i, 2, 64, 64), 0);
		CU_ASSERT_EQUAL(node_send(&node, i ^ 1, 0, 128, 8, 0), 0);
		/* it has a completion, and so it is hot */
		CU_ASSERT_TRUE(node_poll(&node, &wc) && !wc.status && wc.wr_id == 1);
		CU_ASSERT_EQUAL(ibv_poll_cq(node.cq, 1, &wc), 0);
		CU_ASSERT_EQUAL(qp_to(node.qp[i], IBV_QPS_ERR), 0);
		CU_ASSERT_TRUE(node_poll(&node, &wc));
		CU_ASSERT(wc.status == IBV_WC_WR_FLUSH_ERR && wc.wr_id == 2);
		CU_ASSERT_EQUAL(wc.qp_num, node.qp[i]->qp_num);
	}
	CU_ASSERT_EQUAL(node_close(&node), 0);
}

static void datagrams_arrive(void)
{
	struct ibv_wc wc = { 0 };
	struct ibv_qp *qp;
	struct ibv_ah *ah;
	struct node node;

	pairs_open(&node, 4);
	qp = datagram_qp(&node, 4);
	ah = ah_to_here(&node);
	CU_ASSERT_PTR_NOT_NULL_FATAL(ah);
	for (uint64_t n = 1; n <= 3; n++) {
		CU_ASSERT_EQUAL(datagram_recv(&node, qp, n), 0);
		CU_ASSERT_EQUAL(datagram_send(&node, qp, ah, qp->qp_num, 0), 0);
		/* from the second one on the QP is hot, and was idle */
		CU_ASSERT_TRUE(node_poll(&node, &wc));
		CU_ASSERT(!wc.status && wc.opcode == IBV_WC_RECV && wc.wr_id == n);
		CU_ASSERT_EQUAL(ibv_poll_cq(node.cq, 1, &wc), 0);
	}
	CU_ASSERT_EQUAL(ibv_destroy_ah(ah), 0);
	CU_ASSERT_EQUAL(ibv_destroy_qp(qp), 0);
	CU_ASSERT_EQUAL(node_close(&node), 0);
}

static const struct unit_test tests[] = {
	{ "forty QPs on one CQ: nothing is lost, each in order", queues },
	{ "the same with an SRQ", shared_queue },
	{ "one that had a message fails: its receives are flushed", receives_are_flushed },
	{ "one that had a datagram gets the next ones", datagrams_arrive },
};

UNIT_MAIN("softverbs_many", tests)
