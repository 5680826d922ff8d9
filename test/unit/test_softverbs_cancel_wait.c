/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * A call that frees an object waits for what still uses it: for the acknowledgement of an event, or for a copy. A thread that is
 * cancelled returns from that wait with the object freed, and ends after the call.
 */
#include "test/unit/waiting_call.h"

/* ---- events ---- */

static int destroy_cq(void *cq)
{
	return ibv_destroy_cq(cq);
}

static int destroy_qp(void *qp)
{
	return ibv_destroy_qp(qp);
}

static int destroy_srq(void *srq)
{
	return ibv_destroy_srq(srq);
}

static void qps_destroy(struct node *node)
{
	for (int i = 0; i < 2; i++) {
		CU_ASSERT(!ibv_destroy_qp(node->qp[i]));
		node->qp[i] = NULL;
	}
}

static void test_cq_event(void)
{
	const struct node_options options = { .qps = 2, .channel = true };
	struct node node = node_connected(&options);
	struct waiting_call call = { .run = destroy_cq, .object = node.cq, .cancelled = true };
	struct ibv_cq *cq;
	struct ibv_wc wc;
	void *context;

	CU_ASSERT(!ibv_req_notify_cq(node.cq, 0));
	CU_ASSERT(!node_recv(&node, 1, 1, 0, 64));
	CU_ASSERT(!node_send(&node, 0, 2, 64, 64, IBV_SEND_SIGNALED));
	CU_ASSERT_FATAL(!ibv_get_cq_event(node.channel, &cq, &context));
	CU_ASSERT(node_poll(&node, &wc) && node_poll(&node, &wc));
	qps_destroy(&node);
	waiting_call_begin(&call);
	ibv_ack_cq_events(cq, 1);
	waiting_call_end(&call);
	node.cq = NULL;
	CU_ASSERT_EQUAL(node_close(&node), 0);
}

static void waits_for_the_ack(struct node *node, enum ibv_event_type type,
			      struct waiting_call *call)
{
	struct ibv_async_event event;

	CU_ASSERT_FATAL(!ibv_get_async_event(node->context, &event));
	CU_ASSERT_EQUAL(event.event_type, type);
	waiting_call_begin(call);
	ibv_ack_async_event(&event);
	waiting_call_end(call);
}

static void test_qp_event(void)
{
	const struct node_options options = { .qps = 2, .srq = 8 };
	struct node node = node_connected(&options);
	struct waiting_call call = { .run = destroy_qp, .object = node.qp[1], .cancelled = true };

	CU_ASSERT(!qp_to(node.qp[1], IBV_QPS_ERR));
	waits_for_the_ack(&node, IBV_EVENT_QP_LAST_WQE_REACHED, &call);
	node.qp[1] = NULL;
	CU_ASSERT_EQUAL(node_close(&node), 0);
}

static void test_srq_event(void)
{
	const struct node_options options = { .qps = 2, .srq = 8 };
	struct node node = node_connected(&options);
	struct waiting_call call = { .run = destroy_srq, .object = node.srq, .cancelled = true };
	struct ibv_srq_attr attr = { .srq_limit = 2 };
	struct ibv_wc wc;

	CU_ASSERT(!node_recv(&node, 1, 1, 0, 64) && !node_recv(&node, 1, 2, 0, 64));
	CU_ASSERT(!ibv_modify_srq(node.srq, &attr, IBV_SRQ_LIMIT));
	CU_ASSERT(!node_send(&node, 0, 3, 64, 64, IBV_SEND_SIGNALED));
	CU_ASSERT(node_poll(&node, &wc) && node_poll(&node, &wc));
	qps_destroy(&node);
	waits_for_the_ack(&node, IBV_EVENT_SRQ_LIMIT_REACHED, &call);
	node.srq = NULL;
	CU_ASSERT_EQUAL(node_close(&node), 0);
}

/* ---- copies ---- */

static int dereg(void *mr)
{
	return ibv_dereg_mr(mr);
}

static int rereg(void *mr)
{
	return ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, IBV_ACCESS_LOCAL_WRITE);
}

static void waits_for_the_copy(int (*run)(void *mr))
{
	const struct node_options options = { .qps = 2 };
	struct node node = node_connected(&options);
	struct waiting_call call = { .run = run, .object = node.mr, .cancelled = true };
	pthread_t reader = copy_hold(&node);
	struct ibv_wc wc;

	waiting_call_begin(&call);
	copy_release(reader);
	waiting_call_end(&call);
	CU_ASSERT(node_poll(&node, &wc) && wc.status == IBV_WC_SUCCESS);
	node.mr = run == dereg ? NULL : node.mr;
	CU_ASSERT_EQUAL(node_close(&node), 0);
}

static void test_dereg(void)
{
	waits_for_the_copy(dereg);
}

static void test_rereg(void)
{
	waits_for_the_copy(rereg);
}

static const struct unit_test tests[] = {
	{ "a cancelled thread waits until the event of its CQ is acknowledged", test_cq_event },
	{ "a cancelled thread waits until the event of its QP is acknowledged", test_qp_event },
	{ "a cancelled thread waits until the event of its SRQ is acknowledged", test_srq_event },
	{ "a cancelled thread withdraws memory after the copy that uses it", test_dereg },
	{ "a cancelled thread changes memory after the copy that uses it", test_rereg },
};

UNIT_MAIN("softverbs_cancel_wait", tests)
