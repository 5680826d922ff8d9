/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * dat_ep_modify: which field may change in which state, and what a new QP means for posted
 * requests.
 */
#include <dat2/dat_ib_extensions.h>
#include <string.h>
#include "test/unit/same.h"
#include "test/unit/two_ends.h"

#define ATTR(field) DAT_EP_FIELD_EP_ATTR_##field

static DAT_EP_PARAM param_of(DAT_EP_HANDLE ep)
{
	DAT_EP_PARAM param;

	MUST(dat_ep_query(ep, DAT_EP_FIELD_ALL, &param));
	return param;
}

static void test_arguments(void)
{
	static const DAT_EP_PARAM_MASK never[] = {
		DAT_EP_FIELD_IA_HANDLE,
		DAT_EP_FIELD_EP_STATE,
		DAT_EP_FIELD_COMM,
		DAT_EP_FIELD_LOCAL_IA_ADDRESS_PTR,
		DAT_EP_FIELD_LOCAL_PORT_QUAL,
		DAT_EP_FIELD_REMOTE_IA_ADDRESS_PTR,
		DAT_EP_FIELD_REMOTE_PORT_QUAL,
		DAT_EP_FIELD_SRQ_HANDLE,
		DAT_EP_FIELD_ALL + 1,
	};
	DAT_EP_PARAM param;
	size_t i;

	setup();
	param = param_of(a.ep);
	IS(dat_ep_modify(a.conn, ~0ull, NULL), E(INVALID_HANDLE, INVALID_HANDLE_EP));
	IS(dat_ep_modify(a.ep, ~0ull, NULL), E(INVALID_PARAMETER, INVALID_ARG3));
	for (i = 0; i < COUNT(never); i++)
		IS(dat_ep_modify(a.ep, never[i], &param), E(INVALID_PARAMETER, INVALID_ARG2));
	OK(dat_ep_modify(a.ep, 0, &param));
	/* the result of a query can be passed back, and changes nothing */
	post_recvs(&a, 2);
	OK(dat_ep_modify(a.ep,
			 DAT_EP_FIELD_PZ_HANDLE | DAT_EP_FIELD_RECV_EVD_HANDLE |
				 DAT_EP_FIELD_REQUEST_EVD_HANDLE | DAT_EP_FIELD_CONNECT_EVD_HANDLE |
				 ATTR(ALL),
			 &param));
	expect_quiet(a.recv);
	teardown();
}

/* One field refers to another IA or to a freed object, or lacks its flag. */
static void test_handles(void)
{
	DAT_EP_PARAM param = { .pz_handle = DAT_HANDLE_NULL };
	struct env other;

	setup();
	env_open(&other);
	param.pz_handle = other.pz;
	IS(dat_ep_modify(a.ep, DAT_EP_FIELD_PZ_HANDLE, &param), E(INVALID_PARAMETER, INVALID_ARG3));
	param.pz_handle = a.conn;
	IS(dat_ep_modify(a.ep, DAT_EP_FIELD_PZ_HANDLE, &param), E(INVALID_PARAMETER, INVALID_ARG3));
	param.recv_evd_handle = param.request_evd_handle = a.conn;
	param.connect_evd_handle = a.recv;
	IS(dat_ep_modify(a.ep, DAT_EP_FIELD_RECV_EVD_HANDLE, &param),
	   E(INVALID_PARAMETER, INVALID_ARG3));
	IS(dat_ep_modify(a.ep, DAT_EP_FIELD_REQUEST_EVD_HANDLE, &param),
	   E(INVALID_PARAMETER, INVALID_ARG3));
	IS(dat_ep_modify(a.ep, DAT_EP_FIELD_CONNECT_EVD_HANDLE, &param),
	   E(INVALID_PARAMETER, INVALID_ARG3));
	env_close(&other);
	teardown();
}

static DAT_RETURN set_attr(DAT_EP_HANDLE ep, DAT_EP_PARAM_MASK mask, DAT_EP_ATTR attr)
{
	return dat_ep_modify(ep, mask, &(DAT_EP_PARAM){ .ep_attr = attr });
}

/* One attribute at a time: an invalid value is refused and changes nothing. */
static void test_attributes(void)
{
	static const struct {
		DAT_EP_PARAM_MASK mask;
		DAT_EP_ATTR attr;
	} bad[] = {
		{ ATTR(SERVICE_TYPE), { .service_type = 77 } },
		{ ATTR(MAX_MESSAGE_SIZE), { .max_message_size = UINT32_MAX } },
		{ ATTR(MAX_RDMA_SIZE), { .max_rdma_size = UINT32_MAX } },
		{ ATTR(QOS), { .qos = DAT_QOS_PREMIUM } },
		{ ATTR(RECV_COMPLETION_FLAGS), { .recv_completion_flags = 1 } },
		{ ATTR(REQUEST_COMPLETION_FLAGS), { .request_completion_flags = 0x20 } },
		{ ATTR(MAX_RECV_DTOS), { .max_recv_dtos = 0 } },
		{ ATTR(MAX_RECV_DTOS), { .max_recv_dtos = 1 << 30 } },
		{ ATTR(MAX_REQUEST_DTOS), { .max_request_dtos = 0 } },
		{ ATTR(MAX_REQUEST_DTOS), { .max_request_dtos = -1 } },
		{ ATTR(MAX_RECV_IOV), { .max_recv_iov = 0 } },
		{ ATTR(MAX_REQUEST_IOV), { .max_request_iov = 1 << 20 } },
		{ ATTR(MAX_RDMA_READ_IN), { .max_rdma_read_in = 1 << 20 } },
		{ ATTR(MAX_RDMA_READ_OUT), { .max_rdma_read_out = -1 } },
		{ ATTR(MAX_RDMA_READ_IOV), { .max_rdma_read_iov = 1 << 20 } },
		{ ATTR(MAX_RDMA_WRITE_IOV), { .max_rdma_write_iov = 1 << 20 } },
		{ ATTR(NUM_TRANSPORT_ATTR), { .ep_transport_specific_count = 1 } },
		{ ATTR(NUM_PROVIDER_ATTR), { .ep_provider_specific_count = -1 } },
		{ DAT_EP_FIELD_RECV_EVD_HANDLE, { .max_recv_dtos = 0 } },
		{ DAT_EP_FIELD_REQUEST_EVD_HANDLE, { .max_request_dtos = 0 } },
	};
	DAT_EP_ATTR before, after, ud;
	size_t i;

	setup();
	before = param_of(a.ep).ep_attr;
	for (i = 0; i < COUNT(bad); i++)
		IS(set_attr(a.ep, bad[i].mask, bad[i].attr), E(INVALID_PARAMETER, INVALID_ARG3));
	ud = (DAT_EP_ATTR){ .service_type = (DAT_SERVICE_TYPE)DAT_IB_SERVICE_TYPE_UD };
	IS(set_attr(a.ep, ATTR(SERVICE_TYPE), ud), E0(MODEL_NOT_SUPPORTED));
	after = param_of(a.ep).ep_attr;
	CU_ASSERT_TRUE(ep_attr_is_same(&before, &after));
	OK(set_attr(a.ep,
		    ATTR(MAX_MESSAGE_SIZE) | ATTR(MAX_RDMA_SIZE) | ATTR(MAX_RDMA_READ_IN) |
			    ATTR(MAX_RDMA_READ_OUT) | ATTR(SRQ_SOFT_HW),
		    (DAT_EP_ATTR){ .max_message_size = 1000,
				   .max_rdma_size = 2000,
				   .max_rdma_read_in = 2,
				   .max_rdma_read_out = 1 }));
	after = param_of(a.ep).ep_attr;
	CU_ASSERT_EQUAL(after.max_message_size, 1000);
	CU_ASSERT_EQUAL(after.max_rdma_size, 2000);
	CU_ASSERT_EQUAL(after.max_rdma_read_in, 2);
	CU_ASSERT_EQUAL(after.max_rdma_read_out, 1);
	CU_ASSERT_EQUAL(after.max_recv_dtos, before.max_recv_dtos);
	teardown();
}

/*
 * After an increase of the queues, posted receives have been flushed when the call returns, and
 * more can be posted.
 */
static void test_rebuild(void)
{
	DAT_EP_ATTR attr;

	setup();
	post_recvs(&a, 3);
	attr = param_of(a.ep).ep_attr;
	OK(set_attr(a.ep, ATTR(MAX_RECV_DTOS) | ATTR(MAX_REQUEST_DTOS),
		    (DAT_EP_ATTR){ .max_recv_dtos = 40, .max_request_dtos = 50 }));
	for (unsigned i = 0; i < 3; i++)
		expect_dto(a.recv, a.ep, i, DAT_DTO_ERR_FLUSHED);
	expect_quiet(a.recv);
	CU_ASSERT_TRUE(param_of(a.ep).ep_attr.max_recv_dtos >= 40);
	CU_ASSERT_TRUE(param_of(a.ep).ep_attr.max_request_dtos >= 50);
	CU_ASSERT_EQUAL(param_of(a.ep).ep_attr.max_recv_iov, attr.max_recv_iov);
	post_recvs(&a, 40);
	connect_pair(&b, &a);
	OK(try_send(&b, 9, 0));
	expect_dto(a.recv, a.ep, 0, DAT_DTO_SUCCESS);
	disconnect_pair(&b, &a);
	teardown();
}

/*
 * Receives complete on the EVD for which they were posted; the EVD that was replaced can be freed.
 */
static void test_evds(void)
{
	DAT_EP_PARAM param = { .pz_handle = DAT_HANDLE_NULL };
	DAT_EVD_HANDLE recv, request, conn;

	setup();
	recv = a.recv;
	request = a.request;
	conn = a.conn;
	post_recvs(&a, 2);
	a.recv = param.recv_evd_handle = evd_open(&env, 8, DAT_EVD_DTO_FLAG);
	a.request = param.request_evd_handle = evd_open(&env, 8, DAT_EVD_DTO_FLAG);
	a.conn = param.connect_evd_handle = evd_open(&env, 8, DAT_EVD_CONNECTION_FLAG);
	OK(dat_ep_modify(a.ep,
			 DAT_EP_FIELD_RECV_EVD_HANDLE | DAT_EP_FIELD_REQUEST_EVD_HANDLE |
				 DAT_EP_FIELD_CONNECT_EVD_HANDLE,
			 &param));
	expect_dto(recv, a.ep, 0, DAT_DTO_ERR_FLUSHED);
	expect_dto(recv, a.ep, 1, DAT_DTO_ERR_FLUSHED);
	evd_close(recv);
	evd_close(request);
	evd_close(conn);
	IS(dat_evd_free(a.recv), E(INVALID_STATE, INVALID_STATE_EVD_IN_USE));
	post_recvs(&a, 1);
	connect_pair(&b, &a);
	OK(try_send(&b, 9, 0));
	expect_dto(a.recv, a.ep, 0, DAT_DTO_SUCCESS);
	OK(try_recv(&b, 5));
	OK(try_send(&a, 10, 0));
	expect_dto(a.request, a.ep, 10, DAT_DTO_SUCCESS);
	disconnect_pair(&b, &a);
	teardown();
}

/* An EP without a PZ has no QP; setting the first PZ creates it. */
static void test_pz(void)
{
	DAT_EP_PARAM param = { .pz_handle = DAT_HANDLE_NULL };
	DAT_PZ_HANDLE other;

	setup();
	MUST(dat_pz_create(env.ia, &other));
	post_recvs(&a, 1);
	OK(dat_ep_modify(a.ep, DAT_EP_FIELD_PZ_HANDLE, &param));
	expect_dto(a.recv, a.ep, 0, DAT_DTO_ERR_FLUSHED);
	CU_ASSERT_PTR_NULL(param_of(a.ep).pz_handle);
	IS(try_recv(&a, 1), E(INVALID_STATE, INVALID_STATE_EP_NOTREADY));
	IS(try_connect(&a, 1), E(INVALID_STATE, INVALID_STATE_EP_NOTREADY));
	param.pz_handle = other;
	OK(dat_ep_modify(a.ep, DAT_EP_FIELD_PZ_HANDLE, &param));
	IS(dat_pz_free(other), E(INVALID_STATE, INVALID_STATE_PZ_IN_USE));
	param.pz_handle = env.pz;
	OK(dat_ep_modify(a.ep, DAT_EP_FIELD_PZ_HANDLE, &param));
	OK(dat_pz_free(other));
	OK(try_recv(&a, 1));
	connect_pair(&a, &b);
	disconnect_pair(&a, &b);
	teardown();
}

static void test_flags(void)
{
	const DAT_EP_PARAM_MASK recv = ATTR(RECV_COMPLETION_FLAGS);
	DAT_EP_ATTR solicited = { .recv_completion_flags = DAT_COMPLETION_SOLICITED_WAIT_FLAG };
	DAT_EP_PARAM param = { .ep_attr = { .recv_completion_flags =
						    DAT_COMPLETION_DEFAULT_FLAG } };
	DAT_EP_HANDLE second;

	setup();
	/* the flags must match those of another EP's streams on the EVDs */
	MUST(dat_ep_create(env.ia, env.pz, a.recv, a.request, a.conn, NULL, &second));
	IS(set_attr(a.ep, recv, solicited), E(INVALID_PARAMETER, INVALID_ARG3));
	CU_ASSERT_EQUAL(param_of(a.ep).ep_attr.recv_completion_flags,
			DAT_COMPLETION_EVD_THRESHOLD_FLAG);
	OK(dat_ep_free(second));
	OK(set_attr(a.ep, recv, solicited));
	IS(dat_ep_create(env.ia, env.pz, a.recv, a.request, a.conn, NULL, &second),
	   E(INVALID_PARAMETER, INVALID_ARG6));
	/* both streams on one EVD: refused with these flags, accepted with others */
	param.request_evd_handle = a.recv;
	IS(dat_ep_modify(a.ep, DAT_EP_FIELD_REQUEST_EVD_HANDLE, &param),
	   E(INVALID_PARAMETER, INVALID_ARG3));
	OK(dat_ep_modify(a.ep, DAT_EP_FIELD_REQUEST_EVD_HANDLE | recv, &param));
	/* refused while a receive is posted, unless nothing changes */
	post_recvs(&a, 1);
	IS(set_attr(a.ep, recv, solicited), E(INVALID_STATE, INVALID_STATE_EP_UNCONNECTED));
	OK(set_attr(a.ep, recv, (DAT_EP_ATTR){ 0 }));
	teardown();
}

static void test_states(void)
{
	const DAT_EP_PARAM_MASK fields[] = {
		DAT_EP_FIELD_PZ_HANDLE, DAT_EP_FIELD_RECV_EVD_HANDLE, ATTR(MAX_RECV_DTOS),
		ATTR(MAX_RDMA_READ_IN), ATTR(NUM_PROVIDER_ATTR),
	};
	DAT_EP_PARAM param;
	DAT_RSP_HANDLE rsp;
	size_t i;

	setup();
	param = param_of(a.ep);
	start_connect(&a);
	for (i = 0; i < COUNT(fields); i++)
		IS(dat_ep_modify(a.ep, fields[i], &param),
		   E(INVALID_STATE, INVALID_STATE_EP_ACTCONNPENDING));
	OK(dat_cr_accept(request_next(&env), b.ep, 0, NULL));
	expect(a.conn, DAT_CONNECTION_EVENT_ESTABLISHED, a.ep);
	expect(b.conn, DAT_CONNECTION_EVENT_ESTABLISHED, b.ep);
	for (i = 0; i < COUNT(fields); i++)
		IS(dat_ep_modify(a.ep, fields[i], &param),
		   E(INVALID_STATE, INVALID_STATE_EP_CONNECTED));
	OK(dat_ep_modify(a.ep, 0, &param));
	disconnect_pair(&a, &b);
	for (i = 0; i < COUNT(fields); i++)
		IS(dat_ep_modify(a.ep, fields[i], &param),
		   E(INVALID_STATE, INVALID_STATE_EP_DISCONNECTED));
	OK(dat_ep_reset(b.ep));
	while (dat_rsp_create(env.ia, ++env.qual, b.ep, env.cr, &rsp) == E0(CONN_QUAL_IN_USE))
		;
	IS(dat_ep_modify(b.ep, DAT_EP_FIELD_PZ_HANDLE, &param),
	   E(INVALID_STATE, INVALID_STATE_EP_RESERVED));
	IS(dat_ep_modify(b.ep, ATTR(NUM_PROVIDER_ATTR), &param),
	   E(INVALID_STATE, INVALID_STATE_EP_RESERVED));
	param.ep_attr.max_recv_dtos = 33;
	OK(dat_ep_modify(b.ep, ATTR(MAX_RECV_DTOS) | ATTR(MAX_RDMA_READ_IN), &param));
	OK(dat_rsp_free(rsp));
	teardown();
}

static void test_recv_query(void)
{
	DAT_COUNT buffers = 7, span = 7;
	DAT_SRQ_ATTR srq_attr = { .max_recv_dtos = 4, .max_recv_iov = 1 };
	DAT_EP_ATTR attr = { .max_request_dtos = 4, .max_request_iov = 1 };
	DAT_SRQ_HANDLE srq;
	DAT_EP_HANDLE ep;

	setup();
	IS(dat_ep_recv_query(a.conn, &buffers, &span), E(INVALID_HANDLE, INVALID_HANDLE_EP));
	post_recvs(&a, 3);
	OK(dat_ep_recv_query(a.ep, &buffers, NULL));
	OK(dat_ep_recv_query(a.ep, NULL, &span));
	CU_ASSERT_EQUAL(buffers, 3);
	CU_ASSERT_EQUAL(span, 3);
	MUST(dat_srq_create(env.ia, env.pz, &srq_attr, &srq));
	MUST(dat_ep_create_with_srq(env.ia, env.pz, a.recv, a.request, a.conn, srq, &attr, &ep));
	OK(dat_ep_recv_query(ep, &buffers, &span));
	CU_ASSERT_EQUAL(buffers, DAT_VALUE_UNKNOWN);
	CU_ASSERT_EQUAL(span, DAT_VALUE_UNKNOWN);
	OK(dat_ep_free(ep));
	OK(dat_srq_free(srq));
	teardown();
}

static void test_set_watermark(void)
{
	const DAT_COUNT none = DAT_WATERMARK_INFINITE;

	setup();
	IS(dat_ep_set_watermark(a.conn, -2, -2), E(INVALID_HANDLE, INVALID_HANDLE_EP));
	IS(dat_ep_set_watermark(a.ep, -2, -2), E(INVALID_PARAMETER, INVALID_ARG2));
	IS(dat_ep_set_watermark(a.ep, 4, -2), E(INVALID_PARAMETER, INVALID_ARG3));
	OK(dat_ep_set_watermark(a.ep, none, none));
	IS(dat_ep_set_watermark(a.ep, 4, none), E0(MODEL_NOT_SUPPORTED));
	IS(dat_ep_set_watermark(a.ep, none, 0), E0(MODEL_NOT_SUPPORTED));
	teardown();
}

static const struct unit_test tests[] = {
	{ "argument checks", test_arguments },
	{ "handles of other IAs, freed objects and EVDs without the flag are refused",
	  test_handles },
	{ "each attribute can be changed alone; an invalid one changes nothing", test_attributes },
	{ "a new QP flushes the posted receives", test_rebuild },
	{ "other EVDs", test_evds },
	{ "the first PZ creates the QP; another one is allowed", test_pz },
	{ "changed completion flags must agree with the EVD's other streams", test_flags },
	{ "each state allows its fields only", test_states },
	{ "recv_query", test_recv_query },
	{ "set_watermark", test_set_watermark },
};

UNIT_MAIN("ep_modify", tests)
