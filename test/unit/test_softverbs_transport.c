/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * A send queue whose requests go to a transport: one of this suite's own, which answers late, fails a request, never
 * answers, or has no link yet.
 */
#include "softverbs/attend.h"
#include "softverbs/fabric/transport.h"
#include "softverbs/object/path.h"
#include "softverbs/rc/rc.h"
#include "test/unit/node.h"

#define FAR_QPN 0xfffabc /* no process of this host has that peer id */
#define WINDOW	4u

/* What the transport of this suite has at its only QP. */
static struct own_path {
	struct sv_path path;
	int bind;	     /* what bind_locked returns */
	uint32_t sent, done; /* requests */
	unsigned closed;
} own;

static void own_close(struct sv_qp *qp)
{
	lock_acquire(&qp->sq.lock);
	qp->path = NULL;
	lock_release(&qp->sq.lock);
	own.closed++;
}

static uint32_t own_initiator(const struct sv_qp *qp)
{
	return qp->ibv.qp_num;
}

static int own_bind_locked(struct sv_qp *qp)
{
	(void)qp;
	return own.bind;
}

static bool own_is_begun_locked(const struct sv_qp *qp)
{
	(void)qp;
	return own.sent != own.done;
}

static int own_push_locked(struct sv_qp *qp)
{
	uint32_t waiting = qp->sq.head - qp->sq.exec;

	while (own.sent - own.done < waiting && own.sent - own.done < WINDOW)
		own.sent++;
	return EXEC_WAIT(SQ_SENT);
}

static const struct sv_path_ops own_ops = {
	.close = own_close,
	.initiator = own_initiator,
	.bind_locked = own_bind_locked,
	.is_begun_locked = own_is_begun_locked,
	.push_locked = own_push_locked,
};

static int own_open(struct sv_qp *qp)
{
	if (qp->attr.dest_qp_num != FAR_QPN)
		return 0;
	own = (struct own_path){ .path.ops = &own_ops, .bind = SQ_SENT };
	atomic_store(&qp->peer, sv_peer_self());
	lock_acquire(&qp->sq.lock);
	qp->path = &own.path;
	lock_release(&qp->sq.lock);
	return 0;
}

/* The answer to the oldest request. */
static void answer(struct ibv_qp *ibv, enum ibv_wc_status status)
{
	struct sv_qp *qp = qp_of(ibv);

	lock_acquire(&qp->sq.lock);
	CU_ASSERT_NOT_EQUAL(own.sent, own.done);
	own.done++;
	sv_sq_answered_locked(qp, status);
	lock_release(&qp->sq.lock);
}

static struct sv_transport transport;
static struct sv_link_client client;
static const struct node_options options = { .channel = true, .timeout = 8, .retry_cnt = 1 };
static struct node node;

static void rig_open(void)
{
	transport = sv_fabric_transport;
	transport.path_open = own_open;
	client = sv_data_client;
	client.transport = &transport;
	CU_ASSERT_EQUAL_FATAL(sv_runtime_hold(&client), 0);
	CU_ASSERT_TRUE_FATAL(node_open(&node, &options));
	CU_ASSERT_TRUE_FATAL(node_qp_connect(node.qp[0], FAR_QPN, &node.options));
	CU_ASSERT_PTR_EQUAL_FATAL(qp_of(node.qp[0])->path, &own.path);
}

static void rig_close(void)
{
	CU_ASSERT_EQUAL(node_close(&node), 0);
	CU_ASSERT_EQUAL(own.closed, 1);
	sv_runtime_release();
}

static void post(uint64_t first, uint64_t count)
{
	for (uint64_t i = first; i < first + count; i++)
		CU_ASSERT_EQUAL(node_send(&node, 0, i, 0, 8, IBV_SEND_SIGNALED), 0);
}

static bool is_quiet(void)
{
	struct ibv_wc wc;

	return !ibv_poll_cq(node.cq, 1, &wc);
}

static void expect(uint64_t wr_id, enum ibv_wc_status status)
{
	struct ibv_wc wc = { .status = IBV_WC_GENERAL_ERR };

	CU_ASSERT_TRUE_FATAL(node_poll(&node, &wc));
	CU_ASSERT_EQUAL(wc.wr_id, wr_id);
	CU_ASSERT_EQUAL(wc.status, status);
}

static void test_late(void)
{
	struct ibv_cq *cq;
	void *context;

	rig_open();
	post(0, 6);
	CU_ASSERT_EQUAL(own.sent, WINDOW);
	CU_ASSERT_TRUE(is_quiet());
	CU_ASSERT_EQUAL(ibv_req_notify_cq(node.cq, 0), 0);
	answer(node.qp[0], IBV_WC_SUCCESS);
	CU_ASSERT_EQUAL(own.sent, WINDOW + 1);
	CU_ASSERT_EQUAL_FATAL(ibv_get_cq_event(node.channel, &cq, &context), 0);
	ibv_ack_cq_events(cq, 1);
	expect(0, IBV_WC_SUCCESS);
	CU_ASSERT_TRUE(is_quiet());
	for (uint64_t i = 1; i < 6; i++) {
		answer(node.qp[0], IBV_WC_SUCCESS);
		expect(i, IBV_WC_SUCCESS);
	}
	CU_ASSERT_EQUAL(own.sent, own.done);
	rig_close();
}

static void test_fails(void)
{
	rig_open();
	post(0, 5);
	answer(node.qp[0], IBV_WC_SUCCESS);
	answer(node.qp[0], IBV_WC_SUCCESS);
	answer(node.qp[0], IBV_WC_REM_ACCESS_ERR);
	expect(0, IBV_WC_SUCCESS);
	expect(1, IBV_WC_SUCCESS);
	expect(2, IBV_WC_REM_ACCESS_ERR);
	expect(3, IBV_WC_WR_FLUSH_ERR);
	expect(4, IBV_WC_WR_FLUSH_ERR);
	CU_ASSERT_TRUE(is_quiet());
	rig_close();
}

static void test_never_ended(void)
{
	rig_open();
	post(0, 3);
	CU_ASSERT_EQUAL(qp_to(node.qp[0], IBV_QPS_ERR), 0);
	for (uint64_t i = 0; i < 3; i++)
		expect(i, IBV_WC_WR_FLUSH_ERR);
	CU_ASSERT_TRUE(is_quiet());
	rig_close();
}

/* Neither hangs, and the path is closed once. */
static void test_never_destroyed(void)
{
	rig_open();
	post(0, 3);
	rig_close();
}

static void test_never_reset(void)
{
	rig_open();
	post(0, 3);
	CU_ASSERT_EQUAL(qp_to(node.qp[0], IBV_QPS_RESET), 0);
	CU_ASSERT_EQUAL(own.closed, 1);
	CU_ASSERT_PTR_NULL(qp_of(node.qp[0])->path);
	CU_ASSERT_TRUE(is_quiet());
	rig_close();
}

/* SQD: what was sent is answered first, and what was not stays in the queue. */
static void test_drained(void)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_SQD, .en_sqd_async_notify = 1 };
	struct ibv_async_event event;

	rig_open();
	post(0, 2);
	CU_ASSERT_EQUAL(ibv_modify_qp(node.qp[0], &attr, IBV_QP_STATE | IBV_QP_EN_SQD_ASYNC_NOTIFY),
			0);
	post(2, 1);
	answer(node.qp[0], IBV_WC_SUCCESS);
	answer(node.qp[0], IBV_WC_SUCCESS);
	CU_ASSERT_EQUAL_FATAL(ibv_get_async_event(node.context, &event), 0);
	CU_ASSERT_EQUAL(event.event_type, IBV_EVENT_SQ_DRAINED);
	ibv_ack_async_event(&event);
	expect(0, IBV_WC_SUCCESS);
	expect(1, IBV_WC_SUCCESS);
	CU_ASSERT_TRUE(is_quiet());
	rig_close();
}

static void test_link_later(void)
{
	rig_open();
	own.bind = SQ_LINKING;
	post(0, 2);
	CU_ASSERT_EQUAL(own.sent, 0);
	CU_ASSERT_TRUE(is_quiet());
	own.bind = SQ_SENT;
	sv_sq_run(qp_of(node.qp[0])); /* as the transport does when it has the link */
	CU_ASSERT_EQUAL(own.sent, 2);
	answer(node.qp[0], IBV_WC_SUCCESS);
	expect(0, IBV_WC_SUCCESS);
	rig_close();
}

static void test_no_link(void)
{
	rig_open();
	own.bind = SQ_LINKING;
	post(0, 2);
	own.bind = SQ_SILENT;
	sv_sq_unreachable(qp_of(node.qp[0]));
	expect(0, IBV_WC_RETRY_EXC_ERR);
	expect(1, IBV_WC_WR_FLUSH_ERR);
	CU_ASSERT_EQUAL(own.sent, 0);
	rig_close();
}

static const struct unit_test tests[] = {
	{ "answers come late, each completes one request in order", test_late },
	{ "a request fails, those after it are flushed", test_fails },
	{ "no answer comes, the error state flushes", test_never_ended },
	{ "no answer comes, the QP is destroyed", test_never_destroyed },
	{ "no answer comes, the QP is reset", test_never_reset },
	{ "SQD waits for the answers to what was sent", test_drained },
	{ "the link comes after the post", test_link_later },
	{ "no link comes, the retries of the QP end the request", test_no_link },
};

UNIT_MAIN("softverbs_transport", tests)
