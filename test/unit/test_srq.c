/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Shared receive queues: checks, counters, and which endpoint a completion belongs to. */
#include "test/unit/rig.h"

#define DEPTH 12 /* the device rounds up to a multiple of 4 */

struct shared {
	struct rig rig;
	DAT_SRQ_HANDLE srq;
	DAT_EP_HANDLE ep[2];
	uint32_t qp_num[2];
};

static DAT_EP_ATTR ep_attr(void)
{
	DAT_EP_ATTR attr = rig_attr();

	attr.max_recv_dtos = 0;
	attr.max_recv_iov = 0;
	return attr;
}

static void open_shared(struct shared *s)
{
	DAT_SRQ_ATTR attr = { .max_recv_dtos = DEPTH, .max_recv_iov = 2 };
	DAT_EP_ATTR of_ep = ep_attr();
	int i;

	rig_open(&s->rig, NULL);
	MUST(dat_srq_create(s->rig.ia, s->rig.pz, &attr, &s->srq));
	for (i = 0; i < 2; i++) {
		s->ep[i] = DAT_HANDLE_NULL;
		MUST(dat_ep_create_with_srq(s->rig.ia, s->rig.pz, s->rig.recv, s->rig.request,
					    s->rig.conn, s->srq, &of_ep, &s->ep[i]));
		s->qp_num[i] = fake.qp->num;
	}
}

static void close_shared(struct shared *s)
{
	MUST(dat_ep_free(s->ep[0]));
	MUST(dat_ep_free(s->ep[1]));
	MUST(dat_srq_free(s->srq));
	rig_close(&s->rig);
}

static uint64_t post(DAT_SRQ_HANDLE srq, uint64_t cookie)
{
	MUST(dat_srq_post_recv(srq, 0, NULL, (DAT_DTO_COOKIE){ .as_64 = cookie }));
	return fake.last.wr_id;
}

static void complete(struct shared *s, int ep, uint64_t wr_id, uint32_t status)
{
	fake_complete(rig_cq(s->rig.recv),
		      &(struct ib_completion){ .wr_id = wr_id,
					       .status = status,
					       .byte_len = 5,
					       .qp_num = s->qp_num[ep] },
		      false);
}

static void counts(DAT_SRQ_HANDLE srq, DAT_COUNT available, DAT_COUNT outstanding)
{
	DAT_SRQ_PARAM param;

	MUST(dat_srq_query(srq, DAT_SRQ_FIELD_ALL, &param));
	CU_ASSERT_EQUAL(param.available_dto_count, available);
	CU_ASSERT_EQUAL(param.outstanding_dto_count, outstanding);
}

static DAT_RETURN create(const struct rig *rig, DAT_COUNT dtos, DAT_COUNT segments, DAT_COUNT low)
{
	DAT_SRQ_ATTR attr = { .max_recv_dtos = dtos,
			      .max_recv_iov = segments,
			      .low_watermark = low };
	DAT_SRQ_HANDLE srq;

	return dat_srq_create(rig->ia, rig->pz, &attr, &srq);
}

static void test_create_checks(void)
{
	DAT_SRQ_ATTR attr = { .max_recv_dtos = 4, .max_recv_iov = 1 };
	DAT_SRQ_HANDLE srq = DAT_HANDLE_NULL;
	struct rig rig;

	rig_open(&rig, NULL);
	IS(dat_srq_create(rig.pz, rig.pz, &attr, &srq), E(INVALID_HANDLE, INVALID_HANDLE_IA));
	IS(dat_srq_create(rig.ia, NULL, &attr, &srq), E(INVALID_HANDLE, INVALID_HANDLE_PZ));
	IS(dat_srq_create(rig.ia, rig.conn, &attr, &srq), E(INVALID_HANDLE, INVALID_HANDLE_PZ));
	IS(dat_srq_create(rig.ia, rig.pz, &attr, NULL), E(INVALID_PARAMETER, INVALID_ARG4));
	IS(dat_srq_create(rig.ia, rig.pz, NULL, &srq), E(INVALID_PARAMETER, INVALID_ARG3));
	IS(create(&rig, 0, 1, 0), E(INVALID_PARAMETER, INVALID_ARG3));
	IS(create(&rig, 4, 0, 0), E(INVALID_PARAMETER, INVALID_ARG3));
	IS(create(&rig, 4, 1, 1), E(INVALID_PARAMETER, INVALID_ARG3));
	IS(create(&rig, 33, 1, 0), E(INVALID_PARAMETER, INVALID_ARG3));
	IS(create(&rig, 4, 4, 0), E(INVALID_PARAMETER, INVALID_ARG3));
	fake.refuse = E(INSUFFICIENT_RESOURCES, RESOURCE_SRQ);
	IS(create(&rig, 4, 1, 0), E(INSUFFICIENT_RESOURCES, RESOURCE_SRQ));
	fake.devices[0].attr.max_srq = 0;
	IS(create(&rig, 4, 1, 0), E0(MODEL_NOT_SUPPORTED));
	CU_ASSERT_PTR_NULL(srq);
	rig_close(&rig);
}

static void test_query(void)
{
	DAT_SRQ_PARAM param;
	struct shared s;

	open_shared(&s);
	IS(dat_srq_query(s.rig.pz, DAT_SRQ_FIELD_ALL, &param),
	   E(INVALID_HANDLE, INVALID_HANDLE_SRQ));
	IS(dat_srq_query(s.srq, DAT_SRQ_FIELD_ALL, NULL), E(INVALID_PARAMETER, INVALID_ARG3));
	IS(dat_srq_query(s.srq, 0x100, &param), E(INVALID_PARAMETER, INVALID_ARG2));
	MUST(dat_srq_query(s.srq, DAT_SRQ_FIELD_SRQ_STATE, &param));
	CU_ASSERT_EQUAL(param.srq_state, DAT_SRQ_STATE_OPERATIONAL);
	CU_ASSERT_PTR_EQUAL(param.ia_handle, s.rig.ia);
	CU_ASSERT_PTR_EQUAL(param.pz_handle, s.rig.pz);
	CU_ASSERT_TRUE(param.max_recv_dtos >= DEPTH);
	CU_ASSERT_EQUAL(param.max_recv_iov, 3); /* as granted */
	CU_ASSERT_EQUAL(param.low_watermark, DAT_SRQ_LW_DEFAULT);
	close_shared(&s);
}

static void test_worked_example(void)
{
	DAT_EVENT event;
	struct shared s;
	uint64_t id;

	open_shared(&s);
	id = post(s.srq, 1);
	post(s.srq, 2);
	post(s.srq, 3);
	counts(s.srq, 3, 3);
	complete(&s, 0, id, DAT_DTO_SUCCESS);
	counts(s.srq, 2, 3);
	MUST(dat_evd_dequeue(s.rig.recv, &event));
	counts(s.srq, 2, 2);
	close_shared(&s);
}

static void test_completion_names_its_endpoint(void)
{
	DAT_EVENT event;
	struct shared s;
	uint64_t first, second;

	open_shared(&s);
	first = post(s.srq, 1);
	second = post(s.srq, 2);
	/* completed out of order, by the other endpoint */
	complete(&s, 1, second, DAT_DTO_SUCCESS);
	complete(&s, 0, first, DAT_DTO_ERR_FLUSHED);
	event = rig_take(s.rig.recv);
	CU_ASSERT_PTR_EQUAL(event.event_data.dto_completion_event_data.ep_handle, s.ep[1]);
	CU_ASSERT_EQUAL(rig_cookie(&event), 2);
	CU_ASSERT_EQUAL(event.event_data.dto_completion_event_data.transfered_length, 5);
	CU_ASSERT_EQUAL(event.event_data.dto_completion_event_data.operation, DAT_DTO_RECEIVE);
	event = rig_take(s.rig.recv);
	CU_ASSERT_PTR_EQUAL(event.event_data.dto_completion_event_data.ep_handle, s.ep[0]);
	CU_ASSERT_EQUAL(rig_cookie(&event), 1);
	CU_ASSERT_EQUAL(event.event_data.dto_completion_event_data.status, DAT_DTO_ERR_FLUSHED);
	close_shared(&s);
}

static void test_post_checks(void)
{
	DAT_LMR_TRIPLET iov[4] = { { 1, 1, 1 }, { 2, 0, 2 }, { 3, 3, 3 }, { 4, 4, 4 } };
	DAT_DTO_COOKIE cookie = { .as_64 = 1 };
	struct shared s;
	int i;

	open_shared(&s);
	IS(dat_srq_post_recv(s.rig.pz, 1, iov, cookie), E(INVALID_HANDLE, INVALID_HANDLE_SRQ));
	IS(dat_srq_post_recv(s.srq, -1, iov, cookie), E(INVALID_PARAMETER, INVALID_ARG2));
	IS(dat_srq_post_recv(s.srq, 4, iov, cookie), E(INVALID_PARAMETER, INVALID_ARG2));
	IS(dat_srq_post_recv(s.srq, 1, NULL, cookie), E(INVALID_PARAMETER, INVALID_ARG3));
	fake.refuse = E0(INTERNAL_ERROR);
	IS(dat_srq_post_recv(s.srq, 1, iov, cookie), E0(INTERNAL_ERROR));
	counts(s.srq, 0, 0);
	MUST(dat_srq_post_recv(s.srq, 1, iov, cookie));
	CU_ASSERT_PTR_EQUAL(fake.last.list, iov);
	MUST(dat_srq_post_recv(s.srq, 3, iov, cookie));
	CU_ASSERT_EQUAL(fake.last.count, 2);
	CU_ASSERT_EQUAL(fake.last.segments[1].virtual_address, 3);
	for (i = 2; i < DEPTH; i++)
		post(s.srq, 1);
	IS(dat_srq_post_recv(s.srq, 0, NULL, cookie), E(INSUFFICIENT_RESOURCES, RESOURCE_MEMORY));
	complete(&s, 0, fake.last.wr_id, DAT_DTO_SUCCESS);
	IS(dat_srq_post_recv(s.srq, 0, NULL, cookie), E(INSUFFICIENT_RESOURCES, RESOURCE_MEMORY));
	rig_take(s.rig.recv);
	post(s.srq, 1);
	close_shared(&s);
}

static void test_free_checks(void)
{
	struct shared s;

	open_shared(&s);
	IS(dat_srq_free(s.rig.pz), E(INVALID_HANDLE, INVALID_HANDLE_SRQ));
	IS(dat_srq_free(s.srq), E(INVALID_STATE, INVALID_STATE_SRQ_IN_USE));
	IS(dat_pz_free(s.rig.pz), E(INVALID_STATE, INVALID_STATE_PZ_IN_USE));
	MUST(dat_ep_free(s.ep[0]));
	IS(dat_srq_free(s.srq), E(INVALID_STATE, INVALID_STATE_SRQ_IN_USE));
	MUST(dat_ep_free(s.ep[1]));
	post(s.srq, 1);
	fake.refuse = E0(CONN_QUAL_IN_USE);
	IS(dat_srq_free(s.srq), E(INVALID_STATE, INVALID_STATE_SRQ_IN_USE));
	counts(s.srq, 1, 1);
	/* buffers that are still posted are dropped */
	MUST(dat_srq_free(s.srq));
	IS(dat_srq_free(s.srq), E(INVALID_HANDLE, INVALID_HANDLE_SRQ));
	rig_close(&s.rig);
}

static void test_receive_on_endpoint_is_refused(void)
{
	DAT_DTO_COOKIE cookie = { .as_64 = 1 };
	struct shared s;

	open_shared(&s);
	IS(dat_ep_post_recv(s.ep[0], 0, NULL, cookie, 0),
	   E(INVALID_STATE, INVALID_STATE_SRQ_IN_USE));
	IS(dat_ep_post_recv(s.ep[0], -1, NULL, cookie, 0x80),
	   E(INVALID_STATE, INVALID_STATE_SRQ_IN_USE));
	counts(s.srq, 0, 0);
	close_shared(&s);
}

static void test_endpoint_freed_with_buffers(void)
{
	DAT_EVENT event;
	struct shared s;
	uint64_t id, late;

	open_shared(&s);
	id = post(s.srq, 1);
	late = post(s.srq, 2);
	complete(&s, 0, id, DAT_DTO_SUCCESS);
	counts(s.srq, 1, 2); /* the first completion is an event now */
	MUST(dat_ep_free(s.ep[0]));
	complete(&s, 0, late, DAT_DTO_ERR_FLUSHED);
	counts(s.srq, 0, 1); /* the endpoint is freed: its slot is freed without an event */
	event = rig_take(s.rig.recv);
	CU_ASSERT_EQUAL(rig_cookie(&event), 1);
	counts(s.srq, 0, 0);
	IS(dat_evd_dequeue(s.rig.recv, &event), DAT_QUEUE_EMPTY);
	MUST(dat_ep_free(s.ep[1]));
	MUST(dat_srq_free(s.srq));
	rig_close(&s.rig);
}

static void test_events_outlive_the_srq(void)
{
	DAT_SRQ_ATTR attr = { .max_recv_dtos = 4, .max_recv_iov = 1 };
	DAT_SRQ_HANDLE later;
	DAT_EVENT event;
	struct shared s;

	open_shared(&s);
	complete(&s, 0, post(s.srq, 1), DAT_DTO_SUCCESS);
	counts(s.srq, 0, 1);
	MUST(dat_ep_free(s.ep[0]));
	MUST(dat_ep_free(s.ep[1]));
	MUST(dat_srq_free(s.srq));
	MUST(dat_srq_create(s.rig.ia, s.rig.pz, &attr, &later));
	event = rig_take(s.rig.recv);
	CU_ASSERT_EQUAL(rig_cookie(&event), 1);
	counts(later, 0, 0);
	MUST(dat_srq_free(later));
	rig_close(&s.rig);
}

static void test_evd_freed_with_events(void)
{
	DAT_EVD_HANDLE recv;
	struct shared s;

	open_shared(&s);
	complete(&s, 0, post(s.srq, 1), DAT_DTO_SUCCESS);
	counts(s.srq, 0, 1);
	complete(&s, 0, post(s.srq, 2), DAT_DTO_SUCCESS);
	MUST(dat_ep_free(s.ep[0]));
	MUST(dat_ep_free(s.ep[1]));
	recv = s.rig.recv;
	s.rig.recv = rig_evd(&s.rig, 4, DAT_EVD_DTO_FLAG);
	MUST(dat_evd_free(recv));
	counts(s.srq, 0, 0);
	MUST(dat_srq_free(s.srq));
	rig_close(&s.rig);
}

static void test_srq_in_error(void)
{
	DAT_EP_ATTR attr = ep_attr();
	DAT_EP_HANDLE ep = DAT_HANDLE_NULL;
	DAT_SRQ_PARAM param;
	DAT_EVENT event;
	struct shared s;

	open_shared(&s);
	MUST(dat_srq_set_lw(s.srq, 0));
	fake.upcalls.async(&fake.devices[0], IB_ASYNC_SRQ_LIMIT, s.srq);
	IS(dat_evd_dequeue(s.rig.async, &event), DAT_QUEUE_EMPTY); /* no event was asked for */
	fake.upcalls.async(&fake.devices[0], IB_ASYNC_SRQ_ERROR, s.srq);
	event = rig_take(s.rig.async);
	CU_ASSERT_EQUAL(event.event_number, DAT_ASYNC_ERROR_PROVIDER_INTERNAL_ERROR);
	CU_ASSERT_PTR_EQUAL(event.event_data.asynch_error_event_data.dat_handle, s.srq);
	CU_ASSERT_EQUAL(event.event_data.asynch_error_event_data.reason, DAT_SRQ_TRANSFER_TO_ERROR);
	MUST(dat_srq_query(s.srq, DAT_SRQ_FIELD_ALL, &param));
	CU_ASSERT_EQUAL(param.srq_state, DAT_SRQ_STATE_ERROR);
	IS(dat_srq_post_recv(s.srq, 0, NULL, (DAT_DTO_COOKIE){ .as_64 = 1 }),
	   E(INVALID_STATE, INVALID_STATE_SRQ_ERROR));
	IS(dat_ep_create_with_srq(s.rig.ia, s.rig.pz, s.rig.recv, s.rig.request, s.rig.conn, s.srq,
				  &attr, &ep),
	   E(INVALID_STATE, INVALID_STATE_SRQ_ERROR));
	close_shared(&s);
}

static void test_create_racing_free(void)
{
	struct shared s;

	open_shared(&s);
	MUST(dat_ep_free(s.ep[0]));
	MUST(dat_ep_free(s.ep[1]));
	/* a free has begun: the handle is valid, but the SRQ accepts no new endpoint */
	CU_ASSERT_TRUE(obj_retire(&((struct dapl_srq *)s.srq)->obj));
	IS(srq_attach(s.srq), E(INVALID_STATE, INVALID_STATE_SRQ_SHUTDOWN));
	IS(dat_srq_free(s.srq), E(INVALID_STATE, INVALID_STATE_SRQ_IN_USE));
	obj_unretire(&((struct dapl_srq *)s.srq)->obj);
	MUST(dat_srq_free(s.srq));
	rig_close(&s.rig);
}

/* ---- last-WQE notices ---- */

#define MANY 20

/* Simulates the end of a connection whose QP has returned its last buffer. */
static void end_with_notice(struct dapl_ep *ep)
{
	pthread_mutex_lock(&ep->lock);
	ep->notice_owed = true;
	ep_last_wqe(ep);
	ep_notice_queue_locked(ep);
	pthread_mutex_unlock(&ep->lock);
}

static void test_notices_wait_for_room_in_order(void)
{
	DAT_SRQ_ATTR srq_attr = { .max_recv_dtos = 4, .max_recv_iov = 1 };
	DAT_EP_ATTR attr = ep_attr();
	DAT_EP_HANDLE ep[MANY];
	DAT_SRQ_HANDLE srq;
	DAT_EVENT event;
	struct rig rig;
	int i;

	rig_open(&rig, NULL);
	MUST(dat_srq_create(rig.ia, rig.pz, &srq_attr, &srq));
	for (i = 0; i < MANY; i++) {
		ep[i] = DAT_HANDLE_NULL;
		MUST(dat_ep_create_with_srq(rig.ia, rig.pz, rig.recv, rig.request, rig.conn, srq,
					    &attr, &ep[i]));
		end_with_notice(ep[i]);
	}
	/* a free cancels only notices that are not queued yet */
	MUST(dat_ep_free(ep[MANY - 2]));
	for (i = 0; i < MANY; i++) {
		if (i == MANY - 2)
			continue;
		event = rig_take(rig.async);
		CU_ASSERT_EQUAL(event.event_number, DAT_ASYNC_ERROR_EP_BROKEN);
		CU_ASSERT_PTR_EQUAL(event.event_data.asynch_error_event_data.dat_handle, ep[i]);
		CU_ASSERT_EQUAL(event.event_data.asynch_error_event_data.reason, 0);
	}
	IS(dat_evd_dequeue(rig.async, &event), DAT_QUEUE_EMPTY);
	for (i = 0; i < MANY; i++)
		if (i != MANY - 2)
			MUST(dat_ep_free(ep[i]));
	MUST(dat_srq_free(srq));
	rig_close(&rig);
}

/*
 * A QP that fails by a device error also reaches its last WQE: the consumer gets one event for
 * both.
 */
static void one_notice(bool error_first)
{
	DAT_SRQ_ATTR srq_attr = { .max_recv_dtos = 4, .max_recv_iov = 1 };
	DAT_EP_ATTR attr = ep_attr();
	DAT_SRQ_HANDLE srq;
	DAT_EVENT event;
	struct rig rig;

	rig_open(&rig, NULL);
	MUST(dat_srq_create(rig.ia, rig.pz, &srq_attr, &srq));
	MUST(dat_ep_create_with_srq(rig.ia, rig.pz, rig.recv, rig.request, rig.conn, srq, &attr,
				    &rig.ep));
	rig_connect(&rig);
	fake.upcalls.async(&fake.devices[0], error_first ? IB_ASYNC_QP_ERROR : IB_ASYNC_QP_LAST_WQE,
			   rig.ep);
	fake.upcalls.async(&fake.devices[0], error_first ? IB_ASYNC_QP_LAST_WQE : IB_ASYNC_QP_ERROR,
			   rig.ep);
	CU_ASSERT_EQUAL(rig_take(rig.conn).event_number, DAT_CONNECTION_EVENT_BROKEN);
	event = rig_take(rig.async);
	CU_ASSERT_EQUAL(event.event_number, DAT_ASYNC_ERROR_EP_BROKEN);
	CU_ASSERT_PTR_EQUAL(event.event_data.asynch_error_event_data.dat_handle, rig.ep);
	fake_run_timers();
	IS(dat_evd_dequeue(rig.async, &event), DAT_QUEUE_EMPTY);
	/* so does an error that follows the notice */
	fake.upcalls.async(&fake.devices[0], IB_ASYNC_QP_ERROR, rig.ep);
	fake_run_timers();
	IS(dat_evd_dequeue(rig.async, &event), DAT_QUEUE_EMPTY);
	MUST(dat_ep_free(rig.ep));
	rig.ep = DAT_HANDLE_NULL;
	MUST(dat_srq_free(srq));
	rig_close(&rig);
}

static void test_one_notice_of_an_error(void)
{
	one_notice(true);
	one_notice(false);
}

static const struct unit_test tests[] = {
	{ "create: every check", test_create_checks },
	{ "query", test_query },
	{ "a query counts available and outstanding receives", test_worked_example },
	{ "R15: a completion names the endpoint that took the buffer",
	  test_completion_names_its_endpoint },
	{ "post_recv: every check", test_post_checks },
	{ "R6, srq 2.2: free", test_free_checks },
	{ "R7: a receive posted on the endpoint is refused in any case",
	  test_receive_on_endpoint_is_refused },
	{ "an endpoint that is freed with buffers returns their slots",
	  test_endpoint_freed_with_buffers },
	{ "events outlive the SRQ", test_events_outlive_the_srq },
	{ "an EVD that is freed with events returns their slots", test_evd_freed_with_events },
	{ "an SRQ in error refuses posts", test_srq_in_error },
	{ "an endpoint cannot be created on an SRQ that is being freed", test_create_racing_free },
	{ "one EP_BROKEN for an error and the last WQE", test_one_notice_of_an_error },
	{ "last-WQE notices wait for room, in order, none lost",
	  test_notices_wait_for_room_in_order },
};

UNIT_MAIN("srq", tests)
