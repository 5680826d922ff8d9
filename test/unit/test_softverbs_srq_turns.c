/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Senders that wait for receives of one SRQ, which are posted one by one: each gets its share. */
#include <infiniband/verbs.h>
#include <pthread.h>
#include "softverbs/link/engine.h"
#include "softverbs/object/srq.h"
#include "softverbs/rc/rc.h"
#include "test/unit/node.h"

#define SENDERS	 3u
#define RECEIVES 48u
#define DEPTH	 64u

/* Notes which of the QPs that receive is woken first. */
static atomic_uint first_woken;

bool __real_sv_qp_wake_initiator(struct sv_qp *qp);
bool __wrap_sv_qp_wake_initiator(struct sv_qp *qp);

bool __wrap_sv_qp_wake_initiator(struct sv_qp *qp)
{
	unsigned none = 0;
	bool woken = __real_sv_qp_wake_initiator(qp);

	if (woken)
		atomic_compare_exchange_strong(&first_woken, &none, qp->ibv.qp_num);
	return woken;
}

struct crowd {
	struct node node; /* its QPs receive */
	struct ibv_cq *cq;
	struct ibv_qp *sender[SENDERS];
};

static struct ibv_qp *sender_open(struct crowd *crowd)
{
	struct ibv_qp_init_attr init = { .send_cq = crowd->cq,
					 .recv_cq = crowd->cq,
					 .qp_type = IBV_QPT_RC,
					 .cap = { DEPTH, 1, 1, 1, 8 } };

	return ibv_create_qp(crowd->node.pd, &init);
}

static void sender_sends(struct crowd *crowd, uint32_t i)
{
	struct ibv_sge sge = node_sge(&crowd->node, 0, 8);
	struct ibv_send_wr wr = { .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND }, *bad;

	CU_ASSERT_EQUAL(ibv_post_send(crowd->sender[i], &wr, &bad), 0);
}

/* Each sender has as many messages as there are receives. If `polled`, polls of the node's CQ send them, too. */
static void crowd_open(struct crowd *crowd, bool polled)
{
	const struct node_options options = { .qps = SENDERS, .srq = DEPTH };

	CU_ASSERT_TRUE_FATAL(node_open(&crowd->node, &options));
	crowd->cq = polled ? crowd->node.cq
			   : ibv_create_cq(crowd->node.context, 2 * DEPTH * SENDERS, NULL, NULL, 0);
	CU_ASSERT_PTR_NOT_NULL_FATAL(crowd->cq);
	for (uint32_t i = 0; i < SENDERS; i++) {
		crowd->sender[i] = sender_open(crowd);
		CU_ASSERT_PTR_NOT_NULL_FATAL(crowd->sender[i]);
		CU_ASSERT_TRUE_FATAL(
			node_qp_connect(crowd->node.qp[i], crowd->sender[i]->qp_num, &options) &&
			node_qp_connect(crowd->sender[i], crowd->node.qp[i]->qp_num,
					&crowd->node.options));
		for (uint32_t n = 0; n < RECEIVES; n++)
			sender_sends(crowd, i);
	}
}

static void crowd_close(struct crowd *crowd)
{
	for (uint32_t i = 0; i < SENDERS; i++)
		CU_ASSERT_EQUAL(ibv_destroy_qp(crowd->sender[i]), 0);
	if (crowd->cq != crowd->node.cq)
		CU_ASSERT_EQUAL(ibv_destroy_cq(crowd->cq), 0);
	CU_ASSERT_EQUAL(node_close(&crowd->node), 0);
}

static uint32_t receiver_of(const struct crowd *crowd, uint32_t qp_num)
{
	uint32_t i = 0;

	while (i < SENDERS && crowd->node.qp[i]->qp_num != qp_num)
		i++;
	return i;
}

static bool all_wait(void *arg)
{
	const struct crowd *crowd = arg;

	for (uint32_t i = 0; i < SENDERS; i++)
		if (!atomic_load(&qp_of(crowd->node.qp[i])->by_peers->wait))
			return false;
	return atomic_load(&srq_of(crowd->node.srq)->by_peers->wait);
}

static atomic_bool turn_ended;

static void note_turn(struct sv_timer *timer)
{
	(void)timer;
	atomic_store(&turn_ended, true);
}

static bool has_ended(void *arg)
{
	(void)arg;
	return atomic_load(&turn_ended);
}

/* All senders wait, and the engine is not about to try one of them. */
static bool crowd_rests(struct crowd *crowd)
{
	struct sv_timer timer = { 0 };
	bool rests = unit_wait_for(all_wait, crowd, UNIT_PATIENCE);

	atomic_store(&turn_ended, false);
	sv_engine_timer_arm(&timer, clock_now(), note_turn);
	rests &= unit_wait_for(has_ended, NULL, UNIT_PATIENCE);
	sv_engine_timer_cancel(&timer);
	return rests;
}

static void receives_are_shared(bool polled)
{
	uint32_t received[SENDERS + 1] = { 0 };
	struct crowd crowd;
	struct ibv_wc wc;

	crowd_open(&crowd, polled);
	for (uint32_t n = 0; n < RECEIVES; n++) {
		CU_ASSERT_TRUE_FATAL(crowd_rests(&crowd));
		CU_ASSERT_EQUAL(node_recv(&crowd.node, 0, n, 64, 64), 0);
		CU_ASSERT_TRUE_FATAL(node_poll(&crowd.node, &wc));
		CU_ASSERT(!wc.status && wc.wr_id == n);
		received[receiver_of(&crowd, wc.qp_num)]++;
	}
	for (uint32_t i = 0; i < SENDERS; i++)
		CU_ASSERT(received[i] >= RECEIVES / SENDERS / 4);
	crowd_close(&crowd);
}

static void the_engine_is_fair(void)
{
	receives_are_shared(false);
}

static void polls_are_fair(void)
{
	receives_are_shared(true);
}

/* In other processes the first one that is woken takes the receive. */
static void wakes_are_fair(void)
{
	struct crowd crowd;
	struct ibv_wc wc;

	crowd_open(&crowd, false);
	for (uint32_t n = 0; n < 3 * SENDERS; n++) {
		CU_ASSERT_TRUE_FATAL(crowd_rests(&crowd));
		atomic_store(&first_woken, 0);
		CU_ASSERT_EQUAL(node_recv(&crowd.node, 0, n, 64, 64), 0);
		CU_ASSERT_EQUAL(receiver_of(&crowd, atomic_load(&first_woken)), n % SENDERS);
		CU_ASSERT_TRUE_FATAL(node_poll(&crowd.node, &wc));
	}
	crowd_close(&crowd);
}

static void a_woken_one_ends(void)
{
	struct crowd crowd;
	struct ibv_wc wc;

	crowd_open(&crowd, false);
	CU_ASSERT_TRUE_FATAL(crowd_rests(&crowd));
	CU_ASSERT_EQUAL(node_recv(&crowd.node, 0, 0, 64, 64), 0);
	CU_ASSERT_TRUE_FATAL(node_poll(&crowd.node, &wc));
	CU_ASSERT_PTR_EQUAL(srq_of(crowd.node.srq)->woken, qp_of(crowd.node.qp[0]));
	CU_ASSERT_EQUAL(ibv_destroy_qp(crowd.node.qp[0]), 0);
	crowd.node.qp[0] = NULL;
	CU_ASSERT_PTR_NULL(srq_of(crowd.node.srq)->woken);
	for (uint32_t n = 0; n < SENDERS; n++) {
		CU_ASSERT_EQUAL(node_recv(&crowd.node, 0, n, 64, 64), 0);
		CU_ASSERT_TRUE_FATAL(node_poll(&crowd.node, &wc));
	}
	crowd_close(&crowd);
}

static void *srq_grows(void *arg)
{
	struct crowd *crowd = arg;

	for (uint32_t entries = 2 * DEPTH; entries <= 4096; entries *= 2) {
		struct ibv_srq_attr attr = { .max_wr = entries };

		CU_ASSERT_EQUAL(ibv_modify_srq(crowd->node.srq, &attr, IBV_SRQ_MAX_WR), 0);
	}
	return NULL;
}

static void a_resize_beside_wakes(void)
{
	struct crowd crowd;
	pthread_t thread;
	struct ibv_wc wc;

	crowd_open(&crowd, false);
	CU_ASSERT_EQUAL_FATAL(pthread_create(&thread, NULL, srq_grows, &crowd), 0);
	for (uint32_t n = 0; n < SENDERS * RECEIVES; n++) {
		CU_ASSERT_EQUAL(node_recv(&crowd.node, 0, n, 64, 64), 0);
		CU_ASSERT_TRUE_FATAL(node_poll(&crowd.node, &wc));
		CU_ASSERT(!wc.status && wc.wr_id == n);
	}
	pthread_join(thread, NULL);
	crowd_close(&crowd);
}

static const struct unit_test tests[] = {
	{ "the engine sends for each in turn", the_engine_is_fair },
	{ "polls send for each in turn", polls_are_fair },
	{ "a post wakes each first in turn", wakes_are_fair },
	{ "the QP whose sender was woken first is destroyed", a_woken_one_ends },
	{ "the queue grows beside posts that wake senders", a_resize_beside_wakes },
};

UNIT_MAIN("softverbs_srq_turns", tests)
