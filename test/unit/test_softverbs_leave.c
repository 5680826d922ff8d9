/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * QPs that leave a connection. The owner of a receive queue waits until the peer is out of it, by a barrier that interrupts the
 * other processors; it needs none if the peer's send queue has stopped before. The engine does not wake up for a QP that its
 * owner puts into the error state.
 */
#include "softverbs/link/peer.h"
#include "test/unit/waiting_call.h"

void __wrap_sv_peer_ring(struct sv_peer *peer);
void __real_sv_peer_ring(struct sv_peer *peer);
void __wrap_sv_area_barrier(void);
void __real_sv_area_barrier(void);

static atomic_uint rings, barriers;

void __wrap_sv_peer_ring(struct sv_peer *peer)
{
	atomic_fetch_add(&rings, 1);
	__real_sv_peer_ring(peer);
}

void __wrap_sv_area_barrier(void)
{
	atomic_fetch_add(&barriers, 1);
	__real_sv_area_barrier();
}

/* Barriers of a change of state. */
static unsigned barriers_of(struct ibv_qp *qp, enum ibv_qp_state state)
{
	unsigned before = atomic_load(&barriers);

	CU_ASSERT(!qp_to(qp, state));
	return atomic_load(&barriers) - before;
}

static const struct node_options two = { .qps = 2 };

static void test_engine(void)
{
	struct node node = node_connected(&two);
	unsigned before = atomic_load(&rings);
	struct ibv_wc wc;

	CU_ASSERT(!node_recv(&node, 0, 7, 0, 64));
	CU_ASSERT(!qp_to(node.qp[0], IBV_QPS_ERR));
	CU_ASSERT_EQUAL(atomic_load(&rings), before);
	CU_ASSERT_EQUAL(ibv_poll_cq(node.cq, 1, &wc), 1);
	CU_ASSERT(wc.wr_id == 7 && wc.status == IBV_WC_WR_FLUSH_ERR);
	CU_ASSERT_EQUAL(node_close(&node), 0);
}

static void test_second(void)
{
	struct node node = node_connected(&two);

	for (int again = 0; again < 3; again++) {
		CU_ASSERT(barriers_of(node.qp[0], again == 2 ? IBV_QPS_RESET : IBV_QPS_ERR) > 0);
		CU_ASSERT_EQUAL(barriers_of(node.qp[1], again == 1 ? IBV_QPS_RESET : IBV_QPS_ERR),
				0);
		for (int i = 0; i < 2; i++)
			CU_ASSERT(!qp_to(node.qp[i], IBV_QPS_RESET));
		for (int i = 0; i < 2; i++)
			CU_ASSERT(node_qp_connect(node.qp[i], node.qp[!i]->qp_num, &two));
	}
	CU_ASSERT_EQUAL(node_close(&node), 0);
}

/* A QP that has the number of the one that left, and sends to another. */
static void test_number(void)
{
	const struct node_options three = { .qps = 3 };
	struct node node;

	CU_ASSERT_FATAL(node_open(&node, &three));
	for (int i = 0; i < 2; i++)
		CU_ASSERT_FATAL(node_qp_connect(node.qp[i], node.qp[!i]->qp_num, &three));
	CU_ASSERT(!qp_to(node.qp[0], IBV_QPS_RESET));
	CU_ASSERT(node_qp_connect(node.qp[0], node.qp[2]->qp_num, &three));
	CU_ASSERT_EQUAL(barriers_of(node.qp[1], IBV_QPS_ERR), 0);
	CU_ASSERT(node_qp_connect(node.qp[2], node.qp[0]->qp_num, &three));
	CU_ASSERT(barriers_of(node.qp[2], IBV_QPS_ERR) > 0);
	CU_ASSERT_EQUAL(node_close(&node), 0);
}

static int to_error(void *qp)
{
	return qp_to(qp, IBV_QPS_ERR);
}

/* The sender's QP is in the error state already, and its copy is not done yet. */
static void test_copy(void)
{
	struct node node = node_connected(&two);
	struct waiting_call sender = { .run = to_error, .object = node.qp[0] },
			    owner = { .run = to_error, .object = node.qp[1] };
	pthread_t reader = copy_hold(&node);
	struct ibv_wc wc;

	waiting_call_begin(&sender);
	waiting_call_begin(&owner);
	copy_release(reader);
	waiting_call_end(&owner);
	waiting_call_end(&sender);
	CU_ASSERT(node_poll(&node, &wc));
	CU_ASSERT_EQUAL(node_close(&node), 0);
}

static const struct unit_test tests[] = {
	{ "the engine does not wake up for a QP that its owner puts into the error state",
	  test_engine },
	{ "the second of two QPs that leave needs no barrier", test_second },
	{ "a QP that sends to another QP now is no sender to the earlier one", test_number },
	{ "an owner waits for the copy of a sender in the error state", test_copy },
};

UNIT_MAIN("softverbs_leave", tests)
