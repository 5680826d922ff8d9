/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Endpoints that receive from an SRQ: rules R1 to R42, and the last-WQE notice. */
#include <dat2/dat_ib_extensions.h>
#include <string.h>
#include "test/unit/srq_rig.h"

static DAT_RETURN create(const DAT_EP_ATTR *attr)
{
	DAT_EP_HANDLE ep = env.pz;
	DAT_RETURN status =
		dat_ep_create_with_srq(env.ia, env.pz, b.recv, b.request, b.conn, srq, attr, &ep);

	if (status == DAT_SUCCESS) {
		OK(dat_ep_free(ep));
	} else {
		CU_ASSERT_PTR_EQUAL(ep, env.pz); /* the output is unchanged */
	}
	return status;
}

static void test_rows(void)
{
	DAT_SRQ_ATTR small = { .max_recv_dtos = 1, .max_recv_iov = 1 };
	DAT_EP_ATTR attr = srq_attr();
	DAT_SRQ_HANDLE gone;
	DAT_EP_HANDLE ep;

	setup();
	IS(dat_ep_create_with_srq(b.conn, b.conn, b.conn, b.conn, b.recv, 0, NULL, NULL),
	   E(INVALID_HANDLE, INVALID_HANDLE_IA));
	IS(dat_ep_create_with_srq(env.ia, b.conn, b.conn, b.conn, b.recv, 0, NULL, NULL),
	   E(INVALID_HANDLE, INVALID_HANDLE_PZ));
	IS(dat_ep_create_with_srq(env.ia, env.pz, b.conn, b.conn, b.recv, 0, NULL, NULL),
	   E(INVALID_HANDLE, INVALID_HANDLE_EVD_CONN));
	IS(dat_ep_create_with_srq(env.ia, env.pz, b.conn, b.conn, b.conn, 0, NULL, NULL),
	   E(INVALID_HANDLE, INVALID_HANDLE_EVD_RECV));
	IS(dat_ep_create_with_srq(env.ia, env.pz, b.recv, b.conn, b.conn, 0, NULL, NULL),
	   E(INVALID_HANDLE, INVALID_HANDLE_EVD_REQUEST));
	IS(dat_ep_create_with_srq(env.ia, env.pz, b.recv, b.request, b.conn, 0, NULL, NULL),
	   E(INVALID_HANDLE, INVALID_HANDLE_SRQ));
	OK(dat_srq_create(env.ia, env.pz, &small, &gone));
	OK(dat_srq_free(gone));
	IS(dat_ep_create_with_srq(env.ia, env.pz, b.recv, b.request, b.conn, gone, &attr, &ep),
	   E(INVALID_HANDLE, INVALID_HANDLE_SRQ));
	IS(dat_ep_create_with_srq(env.ia, env.pz, b.recv, b.request, b.conn, srq, NULL, NULL),
	   E(INVALID_PARAMETER, INVALID_ARG7));
	IS(dat_ep_create_with_srq(env.ia, env.pz, b.recv, b.request, b.conn, srq,
				  (DAT_EP_ATTR *)((char *)&attr + 1), &ep),
	   E(INVALID_PARAMETER, INVALID_ARG7));
	IS(dat_ep_create_with_srq(env.ia, env.pz, b.recv, b.request, b.conn, srq, &attr, NULL),
	   E(INVALID_PARAMETER, INVALID_ARG8));
	attr.max_request_dtos = -1;
	IS(create(&attr), E(INVALID_PARAMETER, INVALID_ARG7));
	teardown();
}

static void test_attributes(void)
{
	DAT_EP_ATTR attr = srq_attr(), bad;
	DAT_EP_PARAM param;
	DAT_EP_HANDLE ep;

	setup();
	attr.max_recv_dtos = 100000000; /* R24: the value is not used */
	attr.max_recv_iov = 100000000;	/* R29: ignored */
	attr.max_rdma_read_in = 1;
	attr.max_rdma_read_out = 2;
	attr.max_message_size = 12345;
	attr.max_rdma_size = 23456;
	MUST(dat_ep_create_with_srq(env.ia, env.pz, b.recv, b.request, b.conn, srq, &attr, &ep));
	OK(dat_ep_query(ep, DAT_EP_FIELD_ALL, &param));
	CU_ASSERT_EQUAL(param.ep_state, DAT_EP_STATE_UNCONNECTED);
	CU_ASSERT_PTR_EQUAL(param.srq_handle, srq);
	CU_ASSERT_TRUE(param.ep_attr.max_request_dtos >= 4);
	CU_ASSERT_TRUE(param.ep_attr.max_request_iov >= 1);
	CU_ASSERT_EQUAL(param.ep_attr.max_recv_dtos, 100000000);
	CU_ASSERT_TRUE(param.ep_attr.max_recv_iov >= 2 && param.ep_attr.max_recv_iov < 100000);
	CU_ASSERT_EQUAL(param.ep_attr.max_rdma_read_in, 1);
	CU_ASSERT_EQUAL(param.ep_attr.max_rdma_read_out, 2);
	CU_ASSERT_EQUAL(param.ep_attr.max_message_size, 12345);
	CU_ASSERT_EQUAL(param.ep_attr.max_rdma_size, 23456);
	param.ep_attr.srq_soft_hw = 1;
	IS(dat_ep_modify(ep, DAT_EP_FIELD_EP_ATTR_SRQ_SOFT_HW, &param),
	   E(INVALID_PARAMETER, INVALID_ARG3));
	OK(dat_ep_free(ep));

	bad = srq_attr();
	bad.max_recv_dtos = -1;
	IS(create(&bad), E(INVALID_PARAMETER, INVALID_ARG7));
	bad = srq_attr();
	bad.max_request_dtos = 100000000;
	IS(create(&bad), E(INVALID_PARAMETER, INVALID_ARG7));
	bad = srq_attr();
	bad.max_rdma_read_in = 100000;
	IS(create(&bad), E(INVALID_PARAMETER, INVALID_ARG7));
	bad = srq_attr();
	bad.recv_completion_flags = DAT_COMPLETION_SUPPRESS_FLAG;
	IS(create(&bad), E(INVALID_PARAMETER, INVALID_ARG7));
	teardown();
}

/* R32 to R37: the flags of streams that share an EVD. */
static void test_agreement(void)
{
	DAT_EP_ATTR attr = srq_attr();

	setup();
	attr.recv_completion_flags = DAT_COMPLETION_EVD_THRESHOLD_FLAG;
	CU_ASSERT_EQUAL(create(&attr), DAT_SUCCESS);
	attr.recv_completion_flags = DAT_COMPLETION_SOLICITED_WAIT_FLAG;
	IS(create(&attr), E(INVALID_PARAMETER, INVALID_ARG7));
	attr.recv_completion_flags = DAT_COMPLETION_UNSIGNALLED_FLAG;
	CU_ASSERT_EQUAL(create(&attr), DAT_SUCCESS);
	attr = srq_attr();
	attr.request_completion_flags = DAT_COMPLETION_UNSIGNALLED_FLAG;
	CU_ASSERT_EQUAL(create(&attr), DAT_SUCCESS);
	/* R37: refused endpoints leave nothing behind */
	attr.request_completion_flags = DAT_COMPLETION_DEFAULT_FLAG;
	CU_ASSERT_EQUAL(create(&attr), DAT_SUCCESS);
	teardown();
}

static void test_tie(void)
{
	DAT_EP_PARAM param;
	unsigned i;

	setup();
	for (i = 0; i < 10; i++) {
		IS(try_recv(&b, 1), E(INVALID_STATE, INVALID_STATE_SRQ_IN_USE));
		connect_pair(&a, &b);
		IS(try_recv(&b, 1), E(INVALID_STATE, INVALID_STATE_SRQ_IN_USE));
		disconnect_pair(&a, &b);
		IS(try_recv(&b, 1), E(INVALID_STATE, INVALID_STATE_SRQ_IN_USE));
		expect_notice(b.ep);
		OK(dat_ep_reset(a.ep));
		OK(dat_ep_reset(b.ep));
		OK(dat_ep_query(b.ep, DAT_EP_FIELD_SRQ_HANDLE, &param));
		CU_ASSERT_PTR_EQUAL(param.srq_handle, srq);
		IS(dat_srq_free(srq), E(INVALID_STATE, INVALID_STATE_SRQ_IN_USE));
	}
	teardown();
}

/*
 * R15 and R20: a completion has the EP that took the buffer and the buffer's cookie; unused buffers
 * stay.
 */
static void test_messages(void)
{
	DAT_EVENT event;
	unsigned i;

	setup();
	srq_post(8);
	connect_pair(&a, &b);
	for (i = 0; i < 5; i++)
		CU_ASSERT_EQUAL(try_send(&a, i, 0), DAT_SUCCESS);
	for (i = 0; i < 5; i++) {
		expect_dto(a.request, a.ep, i, DAT_DTO_SUCCESS);
		if (!event_next(b.recv, &event))
			continue;
		CU_ASSERT_PTR_EQUAL(event.event_data.dto_completion_event_data.ep_handle, b.ep);
		CU_ASSERT_EQUAL(event.event_data.dto_completion_event_data.status, DAT_DTO_SUCCESS);
		CU_ASSERT_TRUE(event.event_data.dto_completion_event_data.user_cookie.as_64 - 100 <
			       8);
	}
	CU_ASSERT_EQUAL(outstanding(), 3);
	disconnect_pair(&b, &a);
	expect_notice(b.ep);
	OK(dat_ep_reset(b.ep));
	OK(dat_ep_reset(a.ep));
	while (dat_evd_dequeue(b.recv, &event) == DAT_SUCCESS)
		;
	connect_pair(&a, &b);
	CU_ASSERT_EQUAL(try_send(&a, 9, 0), DAT_SUCCESS);
	expect_dto(a.request, a.ep, 9, DAT_DTO_SUCCESS);
	disconnect_pair(&a, &b);
	expect_notice(b.ep);
	teardown();
}

/* R9, R12, R13: the EP's own PZ applies to what it sends, the SRQ's to what it receives. */
static void test_two_zones(void)
{
	DAT_EP_ATTR attr = srq_attr();
	DAT_PZ_HANDLE zone;
	struct end c;

	setup();
	OK(dat_pz_create(env.ia, &zone));
	end_open(&env, &c, NULL);
	OK(dat_ep_free(c.ep));
	MUST(dat_ep_create_with_srq(env.ia, zone, c.recv, c.request, c.conn, srq, &attr, &c.ep));
	srq_post(2);
	connect_pair(&a, &c);
	CU_ASSERT_EQUAL(try_send(&a, 1, 0), DAT_SUCCESS);
	expect_dto(a.request, a.ep, 1, DAT_DTO_SUCCESS);
	disconnect_pair(&a, &c);
	expect_notice(c.ep);
	end_close(&c);
	OK(dat_pz_free(zone));
	teardown();
}

/*
 * More ends than the async EVD holds, disconnected one after the other: one notice each, in the
 * order of the DISCONNECTED events, which share one EVD here.
 */
static void test_notice_order(void)
{
	enum { ENDS = 20 };
	DAT_EP_ATTR attr = srq_attr();
	DAT_EP_HANDLE ended[ENDS];
	struct end peers[ENDS], ends[ENDS];
	DAT_EVD_HANDLE all;
	DAT_EVENT event;
	unsigned i;

	setup();
	all = evd_open(&env, 64, DAT_EVD_CONNECTION_FLAG);
	for (i = 0; i < ENDS; i++) {
		end_open(&env, &peers[i], NULL);
		end_open(&env, &ends[i], NULL);
		end_free_ep(&ends[i]);
		MUST(dat_ep_create_with_srq(env.ia, env.pz, ends[i].recv, ends[i].request, all, srq,
					    &attr, &ends[i].ep));
		start_connect(&peers[i]);
		OK(dat_cr_accept(request_next(&env), ends[i].ep, 0, NULL));
		expect(peers[i].conn, DAT_CONNECTION_EVENT_ESTABLISHED, peers[i].ep);
		expect(all, DAT_CONNECTION_EVENT_ESTABLISHED, ends[i].ep);
	}
	for (i = 0; i < ENDS; i++)
		OK(dat_ep_disconnect(i & 1 ? peers[i].ep : ends[i].ep, DAT_CLOSE_ABRUPT_FLAG));
	for (i = 0; i < ENDS; i++) {
		if (event_next(all, &event))
			CU_ASSERT_EQUAL(event.event_number, DAT_CONNECTION_EVENT_DISCONNECTED);
		ended[i] = event.event_data.connect_event_data.ep_handle;
	}
	for (i = 0; i < ENDS; i++)
		expect_notice(ended[i]);
	for (i = 0; i < ENDS; i++) {
		end_close(&ends[i]);
		end_close(&peers[i]);
	}
	expect_quiet(env.async);
	evd_close(all);
	teardown();
}

/*
 * Freeing an EP returns the SRQ slots that it held and those of completions that were never taken.
 */
static void test_free_connected(void)
{
	DAT_EVENT event;
	DAT_EP_HANDLE ep;
	DAT_COUNT room;
	unsigned i;

	setup();
	room = srq_room();
	srq_post((unsigned)room);
	CU_ASSERT_EQUAL(outstanding(), room);
	connect_pair(&a, &b);
	for (i = 0; i < 4; i++)
		CU_ASSERT_EQUAL(try_send(&a, i, 0), DAT_SUCCESS);
	for (i = 0; i < 4; i++)
		expect_dto(a.request, a.ep, i, DAT_DTO_SUCCESS);
	ep = b.ep;
	end_free_ep(&b);
	expect(b.conn, DAT_CONNECTION_EVENT_DISCONNECTED, ep);
	while (dat_evd_dequeue(b.recv, &event) == DAT_SUCCESS)
		;
	CU_ASSERT_EQUAL(outstanding(), room - 4);
	srq_post(4);
	IS(dat_srq_post_recv(srq, 0, NULL, (DAT_DTO_COOKIE){ .as_64 = 0 }),
	   E(INSUFFICIENT_RESOURCES, RESOURCE_MEMORY));
	/* no notice, because the EP is freed */
	expect(a.conn, DAT_CONNECTION_EVENT_DISCONNECTED, a.ep);
	expect_quiet(env.async);
	teardown();
}

/* An EP that was never connected makes no last-WQE notice. */
static void test_no_notice(void)
{
	struct end c;
	DAT_EVENT event;

	setup();
	srq_end_open(&c);
	start_connect(&c);
	OK(dat_cr_reject(request_next(&env), 0, NULL));
	if (event_next(c.conn, &event))
		CU_ASSERT_EQUAL(event.event_number, DAT_CONNECTION_EVENT_PEER_REJECTED);
	OK(dat_ep_reset(c.ep));
	end_close(&c);
	expect_quiet(env.async);
	teardown();
}

static const struct unit_test tests[] = {
	{ "arguments in their order", test_rows },
	{ "some attributes are at least as asked for, the others exact", test_attributes },
	{ "completion flags of streams that share an EVD must agree", test_agreement },
	{ "an EP keeps its SRQ over ten connections", test_tie },
	{ "receives of the SRQ stay posted after the end of a connection", test_messages },
	{ "a PZ other than the SRQ's", test_two_zones },
	{ "last-WQE notices come in the order of the ends, also through a short async EVD",
	  test_notice_order },
	{ "a freed EP returns its slots to the SRQ", test_free_connected },
	{ "an EP without a connection makes no last-WQE notice", test_no_notice },
};

UNIT_MAIN("ep_srq", tests)
