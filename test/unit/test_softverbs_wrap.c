/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * Queues whose counters of 32 bits pass their end, as they do after some minutes of short messages. The tests set the
 * counters a few laps of the rings before it, so that no ring has memory that was never written.
 */
#include <infiniband/verbs.h>
#include "softverbs/object/srq.h"
#include "softverbs/ud/ud.h"
#include "test/unit/datagram.h"
#include "test/unit/node.h"

#define DEPTH	 64u
#define BEFORE	 (4u * DEPTH) /* counts before the end */
#define MESSAGES (3u * BEFORE)
#define BURST	 16u
#define SLOT	 4096u

static const uint32_t begin = 0u - BEFORE;

static void wq_set(struct sv_wq *wq)
{
	wq_continue(wq, begin);
}

static void qp_set(struct ibv_qp *ibv)
{
	struct sv_qp *qp = qp_of(ibv);

	qp->sq.head = qp->sq.exec = qp->sq.polled_seen = begin;
	atomic_store(&qp->sq_ready, begin);
	atomic_store(&qp->sq_polled, begin);
	atomic_store(&qp->rx.head, begin);
	qp->rx.landed = qp->rx.sent = begin;
	atomic_store(&qp->by_peers->seq, begin);
	if (!qp->srq)
		wq_set(&qp->rq);
	if (qp->ud)
		atomic_store(&qp->ud->taken, begin);
}

static void srq_set(struct ibv_srq *ibv)
{
	struct sv_srq *srq = srq_of(ibv);

	wq_set(&srq->wq);
	atomic_store(&srq->by_peers->claim, begin);
	atomic_store(&srq->by_owner->posted, begin);
	srq->free_head = begin;
	atomic_store(&srq->free_tail, begin);
	for (uint32_t slot = 0; slot <= srq->wq.mask; slot++)
		sv_srq_slot_release(srq, slot);
}

static void pair_open(struct node *node, uint32_t srq)
{
	const struct node_options options = { .qps = 2, .depth = DEPTH, .srq = srq };

	CU_ASSERT_TRUE_FATAL(node_open(node, &options));
	if (srq)
		srq_set(node->srq);
	for (uint32_t i = 0; i < 2; i++)
		qp_set(node->qp[i]);
	for (uint32_t i = 0; i < 2; i++)
		CU_ASSERT_TRUE_FATAL(
			node_qp_connect(node->qp[i], node->qp[i ^ 1]->qp_num, &node->options));
}

static void pair_close(struct node *node)
{
	CU_ASSERT_EQUAL((uint32_t)(qp_of(node->qp[0])->sq.head - begin), MESSAGES);
	CU_ASSERT(qp_of(node->qp[0])->sq.head < BEFORE * 3);
	CU_ASSERT_EQUAL(node_close(node), 0);
}

/* Inline, in the slot's extension, through the eager ring, and into the receive's buffer. */
static uint32_t length_of(uint32_t n)
{
	static const uint32_t length[] = { 8, 60, 1500, SLOT };

	return length[n % 4];
}

/* The place of message `n`, to be sent from and to be received at. */
static size_t source_of(uint32_t n)
{
	return n % BURST * SLOT;
}

static size_t target_of(uint32_t n)
{
	return (BURST + n % BURST) * SLOT;
}

static void message_send(struct node *node, uint32_t n)
{
	memset(node->memory + source_of(n), (int)n, SLOT);
	memcpy(node->memory + source_of(n), &n, sizeof(n));
	CU_ASSERT_EQUAL(node_send(node, 0, n, source_of(n), length_of(n), IBV_SEND_SIGNALED), 0);
}

static void message_check(struct node *node, const struct ibv_wc *wc, uint32_t n)
{
	const uint8_t *at = node->memory + target_of((uint32_t)wc->wr_id);
	uint32_t value;

	memcpy(&value, at, sizeof(value));
	CU_ASSERT(!wc->status && wc->byte_len == length_of(n) && value == n);
	CU_ASSERT_EQUAL(at[wc->byte_len - 1], (uint8_t)n);
}

/* Each burst is posted first, and waits for its receives. */
static void messages_pass(struct node *node)
{
	struct ibv_wc wc;

	for (uint32_t n = 0; n < MESSAGES; n += BURST) {
		uint32_t sent = n, received = n;

		for (uint32_t i = n; i < n + BURST; i++)
			message_send(node, i);
		for (uint32_t i = n; i < n + BURST; i++)
			CU_ASSERT_EQUAL(node_recv(node, 1, i, target_of(i), SLOT), 0);
		while (sent + received != 2 * (n + BURST) && node_poll(node, &wc)) {
			if (wc.opcode == IBV_WC_RECV)
				message_check(node, &wc, received++);
			else
				CU_ASSERT(!wc.status && wc.wr_id == sent++);
		}
		CU_ASSERT_TRUE_FATAL(sent == n + BURST && received == n + BURST);
		CU_ASSERT_EQUAL(ibv_poll_cq(node->cq, 1, &wc), 0);
	}
}

static void own_queue(void)
{
	struct node node;

	pair_open(&node, 0);
	messages_pass(&node);
	pair_close(&node);
}

static void shared_queue(void)
{
	struct node node;

	pair_open(&node, DEPTH);
	messages_pass(&node);
	CU_ASSERT_EQUAL(srq_of(node.srq)->wq.posted, begin + MESSAGES);
	pair_close(&node);
}

/* ---- RDMA ---- */

static void rdma_post(struct node *node, uint32_t n)
{
	static const enum ibv_wr_opcode opcodes[] = { IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ,
						      IBV_WR_ATOMIC_FETCH_AND_ADD };
	struct ibv_sge sge = node_sge(node, 0, 8);
	struct ibv_send_wr wr = {
		.wr_id = n, .sg_list = &sge, .num_sge = 1, .opcode = opcodes[n % 3],
		.send_flags = n % 4 ? 0 : IBV_SEND_SIGNALED,
		.wr.rdma = { (uintptr_t)node->memory + 64, node->mr->rkey },
	}, *bad;

	if (wr.opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		wr.wr.atomic.remote_addr = (uintptr_t)node->memory + 128;
		wr.wr.atomic.compare_add = 1;
		wr.wr.atomic.rkey = node->mr->rkey;
	}
	CU_ASSERT_EQUAL(ibv_post_send(node->qp[0], &wr, &bad), 0);
}

static void requests_pass(void)
{
	struct node node;
	struct ibv_wc wc;
	uint64_t sum;

	pair_open(&node, 0);
	for (uint32_t n = 0; n < MESSAGES; n++) {
		rdma_post(&node, n);
		if (n % 4)
			continue;
		CU_ASSERT_TRUE_FATAL(node_poll(&node, &wc));
		CU_ASSERT(!wc.status && wc.wr_id == n);
	}
	CU_ASSERT_EQUAL(ibv_poll_cq(node.cq, 1, &wc), 0);
	memcpy(&sum, node.memory + 128, sizeof(sum));
	CU_ASSERT_EQUAL(sum, MESSAGES / 3);
	pair_close(&node);
}

/* ---- datagrams ---- */

static void datagrams_pass(void)
{
	struct ibv_wc wc;
	struct ibv_qp *qp;
	struct ibv_ah *ah;
	struct node node;

	CU_ASSERT_TRUE_FATAL(node_open(&node, &(struct node_options){ 0 }));
	qp = datagram_qp_unready(&node, DEPTH);
	qp_set(qp);
	datagram_qp_ready(qp);
	ah = ah_to_here(&node);
	for (uint64_t n = 0; n < MESSAGES; n++) {
		CU_ASSERT_EQUAL(datagram_recv(&node, qp, n), 0);
		CU_ASSERT_EQUAL(datagram_send(&node, qp, ah, qp->qp_num,
					      n % 4 ? 0 : IBV_SEND_SIGNALED),
				0);
		if (!(n % 4))
			CU_ASSERT(node_poll(&node, &wc) && !wc.status && wc.opcode == IBV_WC_SEND);
		CU_ASSERT_TRUE_FATAL(node_poll(&node, &wc));
		CU_ASSERT(!wc.status && wc.opcode == IBV_WC_RECV && wc.wr_id == n);
	}
	CU_ASSERT_EQUAL(atomic_load(&qp_of(qp)->ud->taken), begin + MESSAGES);
	CU_ASSERT_EQUAL(ibv_destroy_ah(ah), 0);
	CU_ASSERT_EQUAL(ibv_destroy_qp(qp), 0);
	CU_ASSERT_EQUAL(node_close(&node), 0);
}

static const struct unit_test tests[] = {
	{ "messages of all lengths, which wait for their receives", own_queue },
	{ "the same with an SRQ", shared_queue },
	{ "writes, reads and atomics, signalled and not", requests_pass },
	{ "datagrams", datagrams_pass },
};

UNIT_MAIN("softverbs_wrap", tests)
