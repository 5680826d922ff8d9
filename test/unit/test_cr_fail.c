/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Requests that cannot be reported or accepted: the state of the request and of the endpoint. */
#include "test/unit/rig.h"

struct passive {
	struct rig rig;
	DAT_EVD_HANDLE cr;
	DAT_PSP_HANDLE sp;
};

static void open_passive(struct passive *p, DAT_COUNT qlen)
{
	DAT_EP_ATTR attr = rig_attr();

	rig_open(&p->rig, &attr);
	p->cr = rig_evd(&p->rig, qlen, DAT_EVD_CR_FLAG);
}

static void close_passive(struct passive *p)
{
	MUST(dat_evd_free(p->cr));
	rig_close(&p->rig);
}

static void request(struct passive *p)
{
	struct ib_request arrived = { .data = "", .responder_resources = 2, .initiator_depth = 3 };
	struct ib_conn *conn = fake_new(sizeof(*conn), &fake.conns);

	arrived.remote.ss_family = arrived.local.ss_family = AF_INET;
	fake.upcalls.request(p->sp, conn, &arrived);
}

static DAT_CR_HANDLE arrived_at(struct passive *p)
{
	DAT_EVENT event = rig_take(p->cr);

	CU_ASSERT_EQUAL_FATAL(event.event_number, DAT_CONNECTION_REQUEST_EVENT);
	return event.event_data.cr_arrival_event_data.cr_handle;
}

static DAT_EP_HANDLE ep_of(DAT_CR_HANDLE cr)
{
	DAT_CR_PARAM param;

	MUST(dat_cr_query(cr, DAT_CR_FIELD_ALL, &param));
	return param.local_ep_handle;
}

static void expect_no_event(DAT_EVD_HANDLE evd)
{
	DAT_EVENT event;

	IS(dat_evd_dequeue(evd, &event), DAT_QUEUE_EMPTY);
}

static void test_cm_failure(void)
{
	struct passive p;
	DAT_CR_HANDLE cr;
	struct ib_qp *qp;

	open_passive(&p, 4);
	MUST(dat_psp_create(p.rig.ia, 77, p.cr, DAT_PSP_CONSUMER_FLAG, &p.sp));
	request(&p);
	cr = arrived_at(&p);
	qp = fake.qp;
	fake.refuse = E0(INTERNAL_ERROR);
	IS(dat_cr_accept(cr, p.rig.ep, 0, NULL), E0(INTERNAL_ERROR));
	IS(dat_cr_reject(cr, 0, NULL), E(INVALID_HANDLE, INVALID_HANDLE_CR));
	CU_ASSERT_EQUAL(fake.conns, 0);
	CU_ASSERT_EQUAL(state_of(p.rig.ep), DAT_EP_STATE_UNCONNECTED);
	CU_ASSERT_PTR_NOT_EQUAL(fake.qp, qp); /* the old QP was already changed */
	CU_ASSERT_EQUAL(fake.qps, 1);
	expect_no_event(p.rig.conn);
	/* the EP can accept the next request */
	request(&p);
	MUST(dat_cr_accept(arrived_at(&p), p.rig.ep, 0, NULL));
	MUST(dat_ep_disconnect(p.rig.ep, DAT_CLOSE_ABRUPT_FLAG));
	MUST(dat_psp_free(p.sp));
	close_passive(&p);
}

static void test_requester_gone(void)
{
	struct passive p;

	open_passive(&p, 4);
	MUST(dat_psp_create(p.rig.ia, 77, p.cr, DAT_PSP_CONSUMER_FLAG, &p.sp));
	request(&p);
	fake.refuse = E0(INVALID_STATE);
	MUST(dat_cr_accept(arrived_at(&p), p.rig.ep, 0, NULL));
	CU_ASSERT_EQUAL(rig_take(p.rig.conn).event_number,
			DAT_CONNECTION_EVENT_ACCEPT_COMPLETION_ERROR);
	CU_ASSERT_EQUAL(state_of(p.rig.ep), DAT_EP_STATE_DISCONNECTED);
	CU_ASSERT_EQUAL(fake.conns, 0);
	expect_no_event(p.rig.conn);
	MUST(dat_psp_free(p.sp));
	close_passive(&p);
}

static void test_reserved(void)
{
	struct passive p;

	open_passive(&p, 4);
	MUST(dat_rsp_create(p.rig.ia, 77, p.rig.ep, p.cr, &p.sp));
	MUST(rig_recv(&p.rig, 1));
	request(&p);
	request(&p); /* rejected: the RSP had its request */
	CU_ASSERT_EQUAL(fake.conns, 1);
	fake.refuse = E0(INTERNAL_ERROR);
	IS(dat_cr_accept(arrived_at(&p), DAT_HANDLE_NULL, 0, NULL), E0(INTERNAL_ERROR));
	CU_ASSERT_EQUAL(state_of(p.rig.ep), DAT_EP_STATE_UNCONNECTED);
	CU_ASSERT_EQUAL(fake.conns, 0);
	MUST(dat_rsp_free(p.sp));
	CU_ASSERT_EQUAL(state_of(p.rig.ep), DAT_EP_STATE_UNCONNECTED);
	close_passive(&p);
}

/* An RSP whose request finds no room keeps waiting for one. */
static void test_reserved_no_room(void)
{
	struct passive p;
	DAT_PSP_HANDLE other;
	struct passive q;

	open_passive(&p, 1);
	MUST(dat_psp_create(p.rig.ia, 78, p.cr, DAT_PSP_CONSUMER_FLAG, &other));
	q = p;
	q.sp = other;
	request(&q);
	MUST(dat_rsp_create(p.rig.ia, 77, p.rig.ep, p.cr, &p.sp));
	request(&p);
	CU_ASSERT_EQUAL(fake.conns, 1);
	CU_ASSERT_EQUAL(state_of(p.rig.ep), DAT_EP_STATE_RESERVED);
	MUST(dat_cr_reject(arrived_at(&p), 0, NULL));
	request(&p);
	CU_ASSERT_EQUAL(state_of(p.rig.ep), DAT_EP_STATE_PASSIVE_CONNECTION_PENDING);
	CU_ASSERT_PTR_EQUAL(ep_of(rig_take(p.cr).event_data.cr_arrival_event_data.cr_handle),
			    p.rig.ep);
	/* the close frees the request and its EP */
	MUST(dat_ia_close(p.rig.ia, DAT_CLOSE_ABRUPT_FLAG));
	CU_ASSERT_EQUAL(fake.pds + fake.mrs + fake.cqs + fake.qps + fake.srqs + fake.conns, 0);
}

static void test_reserve_refused(void)
{
	struct passive p;

	open_passive(&p, 4);
	p.sp = p.cr;
	fake.refuse = E0(CONN_QUAL_IN_USE);
	IS(dat_rsp_create(p.rig.ia, 77, p.rig.ep, p.cr, &p.sp), E0(CONN_QUAL_IN_USE));
	CU_ASSERT_PTR_EQUAL(p.sp, p.cr);
	CU_ASSERT_EQUAL(state_of(p.rig.ep), DAT_EP_STATE_UNCONNECTED);
	fake.refuse = E(INSUFFICIENT_RESOURCES, RESOURCE_MEMORY);
	IS(dat_psp_create_any(p.rig.ia, &(DAT_CONN_QUAL){ 0 }, p.cr, 0, &p.sp),
	   E(INSUFFICIENT_RESOURCES, RESOURCE_MEMORY));
	/* a qualifier in use is skipped */
	fake.refuse = E0(CONN_QUAL_IN_USE);
	MUST(dat_psp_create_any(p.rig.ia, &(DAT_CONN_QUAL){ 0 }, p.cr, 0, &p.sp));
	MUST(dat_psp_free(p.sp));
	close_passive(&p);
}

/* After a failed accept the EP is still the program's and keeps its configuration. */
static void test_tentative(void)
{
	struct passive p;
	DAT_CR_HANDLE cr;
	DAT_EP_HANDLE ep;
	DAT_EP_PARAM param;

	open_passive(&p, 4);
	MUST(dat_psp_create(p.rig.ia, 77, p.cr, DAT_PSP_PROVIDER_FLAG, &p.sp));
	request(&p);
	cr = arrived_at(&p);
	ep = ep_of(cr);
	MUST(dat_ep_query(p.rig.ep, DAT_EP_FIELD_ALL, &param));
	MUST(dat_ep_modify(ep,
			   DAT_EP_FIELD_PZ_HANDLE | DAT_EP_FIELD_RECV_EVD_HANDLE |
				   DAT_EP_FIELD_REQUEST_EVD_HANDLE |
				   DAT_EP_FIELD_CONNECT_EVD_HANDLE |
				   DAT_EP_FIELD_EP_ATTR_MAX_RECV_DTOS |
				   DAT_EP_FIELD_EP_ATTR_MAX_RECV_IOV |
				   DAT_EP_FIELD_EP_ATTR_MAX_REQUEST_DTOS,
			   &param));
	fake.refuse = E0(INTERNAL_ERROR);
	IS(dat_cr_accept(cr, DAT_HANDLE_NULL, 0, NULL), E0(INTERNAL_ERROR));
	CU_ASSERT_EQUAL(state_of(ep), DAT_EP_STATE_UNCONNECTED);
	MUST(dat_ep_free(ep));
	MUST(dat_psp_free(p.sp));
	close_passive(&p);
}

/* An EP created with default depths takes those of the connection until it is reset. */
static void test_depths(void)
{
	struct passive p;
	DAT_EP_HANDLE ep;
	DAT_EP_PARAM param;

	open_passive(&p, 4);
	MUST(dat_psp_create(p.rig.ia, 77, p.cr, DAT_PSP_CONSUMER_FLAG, &p.sp));
	MUST(dat_ep_create(p.rig.ia, p.rig.pz, p.rig.recv, p.rig.request, p.rig.conn, NULL, &ep));
	request(&p);
	MUST(dat_cr_accept(arrived_at(&p), ep, 0, NULL));
	MUST(dat_ep_query(ep, DAT_EP_FIELD_ALL, &param));
	CU_ASSERT_EQUAL(param.ep_attr.max_rdma_read_in, 2);
	CU_ASSERT_EQUAL(param.ep_attr.max_rdma_read_out, 3);
	MUST(dat_ep_disconnect(ep, DAT_CLOSE_ABRUPT_FLAG));
	MUST(dat_ep_reset(ep));
	MUST(dat_ep_query(ep, DAT_EP_FIELD_ALL, &param));
	CU_ASSERT_EQUAL(param.ep_attr.max_rdma_read_in, 4);
	CU_ASSERT_EQUAL(param.ep_attr.max_rdma_read_out, 4);
	MUST(dat_ep_free(ep));
	/* depths that the program set stay */
	request(&p);
	MUST(dat_cr_accept(arrived_at(&p), p.rig.ep, 0, NULL));
	MUST(dat_ep_query(p.rig.ep, DAT_EP_FIELD_ALL, &param));
	CU_ASSERT_EQUAL(param.ep_attr.max_rdma_read_in, 4);
	MUST(dat_psp_free(p.sp));
	close_passive(&p);
}

static const struct unit_test tests[] = {
	{ "a CM failure uses the request up, not the EP", test_cm_failure },
	{ "the requester is gone: ACCEPT_COMPLETION_ERROR", test_requester_gone },
	{ "a CM failure with the EP of an RSP", test_reserved },
	{ "an RSP whose request has no room waits for the next one", test_reserved_no_room },
	{ "a service point that the CM refuses leaves nothing behind", test_reserve_refused },
	{ "a CM failure with an EP that came with the request", test_tentative },
	{ "read depths of a default EP", test_depths },
};

UNIT_MAIN("cr_fail", tests)
