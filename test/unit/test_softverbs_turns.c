/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Polls that always find more than they return: each QP, queue and sender gets its turn. */
#include <infiniband/verbs.h>
#include "test/unit/datagram.h"
#include "test/unit/node.h"

#define FEW   6u
#define MANY  20u
#define DEPTH 256u
#define MOST  4

static void pairs_open(struct node *node, uint32_t qps)
{
	const struct node_options options = { .qps = qps, .depth = DEPTH, .cqe = 32768 };

	CU_ASSERT_TRUE_FATAL(node_open(node, &options));
	for (uint32_t i = 0; i < qps; i++)
		CU_ASSERT_TRUE_FATAL(
			node_qp_connect(node->qp[i], node->qp[i ^ 1]->qp_num, &node->options));
}

static void message_arrives(struct node *node, uint32_t qp)
{
	CU_ASSERT_EQUAL(node_recv(node, qp, qp, qp * 64, 64), 0);
	CU_ASSERT_EQUAL(node_send(node, qp ^ 1, 0, 0, 8, 0), 0);
}

/* Each QP has as many messages as a poll returns, and gets another for each that is polled. */
static void qps_take_turns(uint32_t qps, int count, uint32_t polls)
{
	uint32_t share = polls * (uint32_t)count / qps, polled[MANY] = { 0 };
	struct ibv_wc wc[MOST];
	struct node node;

	pairs_open(&node, qps);
	for (uint32_t i = 0; i < qps; i++)
		for (int k = 0; k < count; k++)
			message_arrives(&node, i);
	for (; polls; polls--) {
		CU_ASSERT_EQUAL_FATAL(ibv_poll_cq(node.cq, count, wc), count);
		for (int k = 0; k < count; k++) {
			CU_ASSERT_FATAL(!wc[k].status && wc[k].wr_id < qps);
			polled[wc[k].wr_id]++;
			message_arrives(&node, (uint32_t)wc[k].wr_id);
		}
	}
	for (uint32_t i = 0; i < qps; i++)
		CU_ASSERT(polled[i] >= share / 2);
	CU_ASSERT_EQUAL(node_close(&node), 0);
}

static void few_one_at_a_time(void)
{
	qps_take_turns(FEW, 1, 8 * FEW);
}

static void few_several_at_a_time(void)
{
	qps_take_turns(FEW, MOST, 8 * FEW);
}

/* A QP that is not hot waits for one round of those that are, and for the others that wait; then it is hot itself. */
static void many_one_at_a_time(void)
{
	qps_take_turns(MANY, 1, 2 * MANY * (CQ_HOT + 1));
}

static void many_several_at_a_time(void)
{
	qps_take_turns(MANY, MOST, 2 * MANY * (CQ_HOT + 1));
}

static void write_completes(struct node *node)
{
	struct ibv_sge sge = node_sge(node, 0, 8);
	struct ibv_send_wr wr = {
		.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.rdma = { (uintptr_t)node->memory + 4096, node->mr->rkey },
	}, *bad;

	CU_ASSERT_EQUAL(ibv_post_send(node->qp[0], &wr, &bad), 0);
}

/* The QP has a poll's worth of finished writes and of messages, and gets another for each that is polled. */
static void both_queues_take_turns(int count)
{
	uint32_t sends = 0, recvs = 0;
	struct ibv_wc wc[MOST];
	struct node node;

	pairs_open(&node, 2);
	for (int k = 0; k < count; k++) {
		write_completes(&node);
		message_arrives(&node, 0);
	}
	for (int polls = 0; polls < 16; polls++) {
		CU_ASSERT_EQUAL_FATAL(ibv_poll_cq(node.cq, count, wc), count);
		for (int k = 0; k < count; k++) {
			bool is_recv = wc[k].opcode == IBV_WC_RECV;

			CU_ASSERT_EQUAL_FATAL(wc[k].status, IBV_WC_SUCCESS);
			sends += !is_recv;
			recvs += is_recv;
			if (is_recv)
				message_arrives(&node, 0);
			else
				write_completes(&node);
		}
	}
	CU_ASSERT(sends >= 4u * (uint32_t)count && recvs >= 4u * (uint32_t)count);
	CU_ASSERT_EQUAL(node_close(&node), 0);
}

static void queues_one_at_a_time(void)
{
	both_queues_take_turns(1);
}

static void queues_several_at_a_time(void)
{
	both_queues_take_turns(MOST);
}

/* A message may be the answer to a send, which programs expect to be polled first. */
static void sends_come_before_answers(void)
{
	struct ibv_wc wc;
	struct node node;

	pairs_open(&node, 2);
	for (int n = 0; n < 32; n++) {
		write_completes(&node);
		write_completes(&node);
		/* a poll that sends fill, without and with a message that waits */
		if (n & 1)
			message_arrives(&node, 0);
		CU_ASSERT(ibv_poll_cq(node.cq, 1, &wc) == 1 && wc.opcode == IBV_WC_RDMA_WRITE);
		write_completes(&node);
		if (!(n & 1))
			message_arrives(&node, 0);
		CU_ASSERT(ibv_poll_cq(node.cq, 1, &wc) == 1 && wc.opcode == IBV_WC_RDMA_WRITE);
		if (n & 1) {
			/* this one completed after the message had come, and a poll had passed over it */
			CU_ASSERT(ibv_poll_cq(node.cq, 1, &wc) == 1 && wc.opcode == IBV_WC_RECV);
			CU_ASSERT(ibv_poll_cq(node.cq, 1, &wc) == 1 &&
				  wc.opcode == IBV_WC_RDMA_WRITE);
		} else {
			CU_ASSERT(ibv_poll_cq(node.cq, 1, &wc) == 1 &&
				  wc.opcode == IBV_WC_RDMA_WRITE);
			CU_ASSERT(ibv_poll_cq(node.cq, 1, &wc) == 1 && wc.opcode == IBV_WC_RECV);
		}
		CU_ASSERT_EQUAL(ibv_poll_cq(node.cq, 1, &wc), 0);
	}
	CU_ASSERT_EQUAL(node_close(&node), 0);
}

static bool polls(struct node *node, const char *opcodes)
{
	int count = (int)strlen(opcodes);
	struct ibv_wc wc[MOST + 1];
	bool same = ibv_poll_cq(node->cq, MOST, wc) == count;

	for (int k = 0; k < count && same; k++)
		same = !wc[k].status && opcodes[k] == (wc[k].opcode == IBV_WC_RECV ? 'R' : 'W');
	return same;
}

/* Two writes have completed, and a message came; the first write is polled, which passes over the message. */
static void message_is_passed_over(struct node *node)
{
	struct ibv_wc wc;

	write_completes(node);
	write_completes(node);
	message_arrives(node, 0);
	CU_ASSERT(ibv_poll_cq(node->cq, 1, &wc) == 1 && wc.opcode == IBV_WC_RDMA_WRITE);
}

static void all_is_polled_in_order(void)
{
	struct node node;

	pairs_open(&node, 2);
	for (int n = 0; n < 8; n++) {
		message_is_passed_over(&node);
		write_completes(&node);
		message_arrives(&node, 0);
		CU_ASSERT_TRUE(polls(&node, "WRWR"));
		write_completes(&node);
		message_arrives(&node, 0);
		CU_ASSERT_TRUE(polls(&node, "WR"));
		CU_ASSERT_TRUE(polls(&node, ""));
	}
	CU_ASSERT_EQUAL(node_close(&node), 0);
}

/* The receives of an SRQ are not checked as fast. */
static void srq_answers_come_later(void)
{
	const struct node_options options = { .qps = 2, .srq = DEPTH };
	struct ibv_wc wc;
	struct node node;

	CU_ASSERT_TRUE_FATAL(node_open(&node, &options));
	for (uint32_t i = 0; i < 2; i++)
		CU_ASSERT_TRUE_FATAL(
			node_qp_connect(node.qp[i], node.qp[i ^ 1]->qp_num, &node.options));
	for (int n = 0; n < 8; n++) {
		write_completes(&node);
		CU_ASSERT(ibv_poll_cq(node.cq, 1, &wc) == 1 && wc.opcode == IBV_WC_RDMA_WRITE);
		write_completes(&node);
		message_arrives(&node, 0);
		CU_ASSERT_TRUE(polls(&node, "WR"));
	}
	CU_ASSERT_EQUAL(node_close(&node), 0);
}

static void a_reset_forgets(void)
{
	struct node node;

	pairs_open(&node, 2);
	message_is_passed_over(&node);
	for (uint32_t i = 0; i < 2; i++)
		CU_ASSERT_EQUAL(qp_to(node.qp[i], IBV_QPS_RESET), 0);
	CU_ASSERT_TRUE(polls(&node, ""));
	for (uint32_t i = 0; i < 2; i++)
		CU_ASSERT_TRUE_FATAL(
			node_qp_connect(node.qp[i], node.qp[i ^ 1]->qp_num, &node.options));
	write_completes(&node);
	message_arrives(&node, 0);
	CU_ASSERT_TRUE(polls(&node, "WR"));
	CU_ASSERT_EQUAL(node_close(&node), 0);
}

/* ---- datagrams ---- */

#define SENDERS 3u
#define EACH	32u

/* Sends one datagram, then as many as the receiver takes of all senders in its polls. */
static int datagrams_child(int fd, void *arg)
{
	struct node node;
	struct ibv_qp *qp;
	struct ibv_ah *ah;
	uint64_t to;

	(void)arg;
	if (!node_open(&node, &(struct node_options){ 0 }) || !process_hear(fd, &to))
		return 1;
	qp = datagram_qp(&node, DEPTH);
	ah = ah_to_here(&node);
	for (uint32_t n = 0; n < 1 + SENDERS * EACH; n++) {
		if (datagram_send(&node, qp, ah, (uint32_t)to, 0))
			return 2;
		if (!n && (!process_say(fd, qp->qp_num) || !process_sync(fd)))
			return 3;
	}
	process_say(fd, 1);
	process_sync(fd);
	ibv_destroy_ah(ah);
	ibv_destroy_qp(qp);
	return node_close(&node);
}

/* When a sender's first datagram has come, its ring is read by polls only. */
static void first_datagrams_come(struct node *node, struct process child[], uint32_t children,
				 uint32_t to, uint64_t sender[])
{
	struct ibv_wc wc;

	for (uint32_t i = 0; i < children; i++) {
		process_say(child[i].fd, to);
		CU_ASSERT_TRUE_FATAL(process_hear(child[i].fd, &sender[i]));
		CU_ASSERT_TRUE_FATAL(node_poll(node, &wc));
		CU_ASSERT(!wc.status && wc.src_qp == sender[i]);
	}
}

static void senders_take_turns(int count)
{
	uint32_t polled[SENDERS] = { 0 };
	struct process child[SENDERS];
	uint64_t sender[SENDERS];
	struct ibv_wc wc[MOST];
	struct ibv_qp *qp;
	struct node node;

	for (uint32_t i = 0; i < SENDERS; i++)
		CU_ASSERT_TRUE_FATAL(process_start(&child[i], datagrams_child, NULL));
	CU_ASSERT_TRUE_FATAL(node_open(&node, &(struct node_options){ 0 }));
	qp = datagram_qp(&node, DEPTH);
	for (uint32_t n = 0; n < SENDERS * (EACH + 1); n++)
		CU_ASSERT_EQUAL(datagram_recv(&node, qp, n), 0);
	first_datagrams_come(&node, child, SENDERS, qp->qp_num, sender);
	for (uint32_t i = 0; i < SENDERS; i++) {
		process_say(child[i].fd, 0);
		CU_ASSERT_TRUE_FATAL(process_sync(child[i].fd));
	}
	for (uint32_t polls = SENDERS * EACH / (uint32_t)count; polls; polls--) {
		CU_ASSERT_EQUAL_FATAL(ibv_poll_cq(node.cq, count, wc), count);
		for (int k = 0; k < count; k++)
			for (uint32_t i = 0; i < SENDERS; i++)
				polled[i] += !wc[k].status && wc[k].src_qp == sender[i];
	}
	for (uint32_t i = 0; i < SENDERS; i++) {
		CU_ASSERT(polled[i] >= EACH / 2);
		process_say(child[i].fd, 0);
		CU_ASSERT_EQUAL(process_end(&child[i]), 0);
	}
	CU_ASSERT_EQUAL(ibv_destroy_qp(qp), 0);
	CU_ASSERT_EQUAL(node_close(&node), 0);
}

/* A datagram to a QP that there is not is dropped, and makes a completion. */
static void send_completes(struct node *node, struct ibv_qp *qp, struct ibv_ah *ah)
{
	CU_ASSERT_EQUAL(datagram_send(node, qp, ah, qp->qp_num ^ 1, IBV_SEND_SIGNALED), 0);
}

static void a_datagram_among_sends(void)
{
	struct process child[1];
	uint64_t sender[1];
	struct ibv_wc wc;
	struct ibv_qp *qp;
	struct ibv_ah *ah;
	struct node node;
	int polls = 0;

	CU_ASSERT_TRUE_FATAL(process_start(&child[0], datagrams_child, NULL));
	CU_ASSERT_TRUE_FATAL(node_open(&node, &(struct node_options){ 0 }));
	qp = datagram_qp(&node, DEPTH);
	ah = ah_to_here(&node);
	for (uint32_t n = 0; n < SENDERS * EACH + 1; n++)
		CU_ASSERT_EQUAL(datagram_recv(&node, qp, n), 0);
	first_datagrams_come(&node, child, 1, qp->qp_num, sender);
	process_say(child[0].fd, 0);
	CU_ASSERT_TRUE_FATAL(process_sync(child[0].fd));
	send_completes(&node, qp, ah);
	do {
		send_completes(&node, qp, ah);
		CU_ASSERT_EQUAL_FATAL(ibv_poll_cq(node.cq, 1, &wc), 1);
	} while (wc.opcode != IBV_WC_RECV && ++polls < 16);
	CU_ASSERT_EQUAL(wc.opcode, IBV_WC_RECV);
	process_say(child[0].fd, 0);
	CU_ASSERT_EQUAL(process_end(&child[0]), 0);
	CU_ASSERT_EQUAL(ibv_destroy_ah(ah), 0);
	CU_ASSERT_EQUAL(ibv_destroy_qp(qp), 0);
	CU_ASSERT_EQUAL(node_close(&node), 0);
}

static void senders_one_at_a_time(void)
{
	senders_take_turns(1);
}

static void senders_several_at_a_time(void)
{
	senders_take_turns(MOST);
}

static const struct unit_test tests[] = {
	{ "few busy QPs, polled one at a time: each has its share", few_one_at_a_time },
	{ "the same, several at a time", few_several_at_a_time },
	{ "many busy QPs, polled one at a time: each has its share", many_one_at_a_time },
	{ "the same with several at a time", many_several_at_a_time },
	{ "a busy QP's sends and receives, one at a time: neither waits long",
	  queues_one_at_a_time },
	{ "the same with several of either", queues_several_at_a_time },
	{ "no message is polled before a send that completed before it came",
	  sends_come_before_answers },
	{ "a poll with room returns what one without left, and all else", all_is_polled_in_order },
	{ "messages of an SRQ are polled after the sends before them", srq_answers_come_later },
	{ "a reset forgets which messages were passed over", a_reset_forgets },
	{ "datagrams of several processes, one at a time: each process has its share",
	  senders_one_at_a_time },
	{ "the same with several datagrams", senders_several_at_a_time },
	{ "a datagram of another process is polled among a stream of sends",
	  a_datagram_among_sends },
};

UNIT_MAIN("softverbs_turns", tests)
