/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * A sender that begins to wait for a receive, and the receive that is posted then: the doorbell comes between the last test
 * of the sender and the end of its post. No thread polls, so that nothing but the engine executes the send.
 */
#include <infiniband/verbs.h>
#include <poll.h>
#include <pthread.h>
#include "softverbs/rc/rc.h"
#include "softverbs/rc/remote_rq.h"
#include "test/unit/busy_engine.h"
#include "test/unit/node.h"

static struct node node; /* QP 0 sends to QP 1 */
static atomic_bool gap, in_gap, is_rung;

bool __real_sv_remote_rq_ask(struct sv_qp *qp, enum sq_wait why);
bool __wrap_sv_remote_rq_ask(struct sv_qp *qp, enum sq_wait why);

/* After false, the sender waits. */
bool __wrap_sv_remote_rq_ask(struct sv_qp *qp, enum sq_wait why)
{
	bool is_new = __real_sv_remote_rq_ask(qp, why);

	if (!is_new && why == SQ_RNR && atomic_exchange(&gap, false)) {
		atomic_store(&in_gap, true);
		CU_ASSERT_TRUE(unit_wait_for(busy_flag_is, &is_rung, UNIT_PATIENCE));
	}
	return is_new;
}

/* Posts the receive in the gap, and waits until the engine has handled the doorbell. */
static void *receiver_run(void *unused)
{
	(void)unused;
	CU_ASSERT_TRUE(unit_wait_for(busy_flag_is, &in_gap, UNIT_PATIENCE));
	busy_begin(0, false);
	CU_ASSERT_EQUAL(node_recv(&node, 1, 1, 64, 64), 0);
	busy_let_go();
	busy_end();
	atomic_store(&is_rung, true);
	return NULL;
}

static void receive_comes(const struct node_options *options)
{
	struct pollfd poll_fd = { .events = POLLIN };
	pthread_t receiver;
	struct ibv_wc wc;

	CU_ASSERT_TRUE_FATAL(node_open(&node, options));
	CU_ASSERT_TRUE_FATAL(node_qp_connect(node.qp[0], node.qp[1]->qp_num, &node.options));
	CU_ASSERT_TRUE_FATAL(node_qp_connect(node.qp[1], node.qp[0]->qp_num, &node.options));
	CU_ASSERT_EQUAL(ibv_req_notify_cq(node.cq, 0), 0);
	atomic_store(&in_gap, false);
	atomic_store(&is_rung, false);
	atomic_store(&gap, true);
	CU_ASSERT_EQUAL_FATAL(pthread_create(&receiver, NULL, receiver_run, NULL), 0);
	CU_ASSERT_EQUAL(node_send(&node, 0, 0, 0, 8, IBV_SEND_SIGNALED), 0);
	CU_ASSERT_FALSE(atomic_load(&gap));
	poll_fd.fd = node.channel->fd;
	CU_ASSERT_EQUAL(poll(&poll_fd, 1, UNIT_PATIENCE), 1);
	CU_ASSERT_TRUE(unit_join(receiver));
	for (unsigned i = 0; i < 2; i++)
		CU_ASSERT_TRUE(node_poll(&node, &wc) && !wc.status);
	CU_ASSERT_EQUAL(node_close(&node), 0);
}

static void own_receive(void)
{
	const struct node_options options = { .qps = 2, .channel = true };

	receive_comes(&options);
}

static void shared_receive(void)
{
	const struct node_options options = { .qps = 2, .channel = true, .srq = 8 };

	receive_comes(&options);
}

static const struct unit_test tests[] = {
	{ "a receive comes while its sender begins to wait", own_receive },
	{ "the same with an SRQ", shared_receive },
};

UNIT_MAIN("softverbs_rnr_wake", tests)
