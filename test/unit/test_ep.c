/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Endpoints: the checks of creation, limits, completion flags, references, query and status. */
#include <dat2/dat_ib_extensions.h>
#include <string.h>
#include "test/unit/ep_util.h"
#include "test/unit/same.h"

static struct env env;
static struct end a;
static DAT_IA_ATTR limits;

static void setup(void)
{
	env_open(&env);
	end_open(&env, &a, NULL);
	OK(dat_ia_query(env.ia, NULL, DAT_IA_FIELD_ALL, &limits, 0, NULL));
}

static void teardown(void)
{
	end_close(&a);
	env_close(&env);
}

/* The attributes as dtest and similar programs set them: zeros and the four queue sizes. */
static DAT_EP_ATTR plain_attr(void)
{
	return (DAT_EP_ATTR){
		.max_recv_dtos = 4, .max_request_dtos = 4, .max_recv_iov = 1, .max_request_iov = 1
	};
}

static DAT_RETURN create(const DAT_EP_ATTR *attr)
{
	DAT_EP_HANDLE ep = env.pz;
	DAT_RETURN status = dat_ep_create(env.ia, env.pz, a.recv, a.request, a.conn, attr, &ep);

	if (status == DAT_SUCCESS) {
		OK(dat_ep_free(ep));
	} else {
		CU_ASSERT_PTR_EQUAL(ep, env.pz); /* the output is unchanged */
	}
	return status;
}

static void test_handles(void)
{
	DAT_EP_HANDLE ep = DAT_HANDLE_NULL;
	DAT_PZ_HANDLE gone;

	setup();
	OK(dat_pz_create(env.ia, &gone));
	OK(dat_pz_free(gone));
	IS(dat_ep_create(a.conn, gone, 0, 0, 0, NULL, NULL), E(INVALID_HANDLE, INVALID_HANDLE_IA));
	IS(dat_ep_create(env.ia, gone, a.conn, a.conn, a.recv, NULL, NULL),
	   E(INVALID_HANDLE, INVALID_HANDLE_PZ));
	IS(dat_ep_create(env.ia, a.recv, a.conn, a.conn, a.recv, NULL, NULL),
	   E(INVALID_HANDLE, INVALID_HANDLE_PZ));
	IS(dat_ep_create(env.ia, env.pz, a.conn, a.conn, a.recv, NULL, NULL),
	   E(INVALID_HANDLE, INVALID_HANDLE_EVD_CONN));
	IS(dat_ep_create(env.ia, env.pz, a.conn, a.conn, env.pz, NULL, NULL),
	   E(INVALID_HANDLE, INVALID_HANDLE_EVD_CONN));
	IS(dat_ep_create(env.ia, env.pz, a.conn, a.conn, a.conn, NULL, NULL),
	   E(INVALID_HANDLE, INVALID_HANDLE_EVD_RECV));
	IS(dat_ep_create(env.ia, env.pz, a.recv, a.conn, a.conn, NULL, NULL),
	   E(INVALID_HANDLE, INVALID_HANDLE_EVD_REQUEST));
	IS(dat_ep_create(env.ia, env.pz, a.recv, a.request, a.conn, NULL, NULL),
	   E(INVALID_PARAMETER, INVALID_ARG7));
	IS(dat_ep_create(env.ia, env.pz, a.recv, a.request, a.conn,
			 (DAT_EP_ATTR *)((char *)&limits + 1), &ep),
	   E(INVALID_PARAMETER, INVALID_ARG6));
	teardown();
}

/* The PZ and the DTO EVDs must be of the EP's IA; the connect EVD may be of another. */
static void test_other_ia(void)
{
	DAT_EP_HANDLE ep;
	struct env other;
	struct end c;

	setup();
	env_open(&other);
	end_open(&other, &c, NULL);
	IS(dat_ep_create(env.ia, other.pz, a.recv, a.request, a.conn, NULL, &ep),
	   E(INVALID_HANDLE, INVALID_HANDLE_PZ));
	IS(dat_ep_create(env.ia, env.pz, c.recv, a.request, a.conn, NULL, &ep),
	   E(INVALID_HANDLE, INVALID_HANDLE_EVD_RECV));
	IS(dat_ep_create(env.ia, env.pz, a.recv, c.request, a.conn, NULL, &ep),
	   E(INVALID_HANDLE, INVALID_HANDLE_EVD_REQUEST));
	MUST(dat_ep_create(env.ia, env.pz, a.recv, a.request, c.conn, NULL, &ep));
	OK(dat_ep_free(ep));
	end_close(&c);
	env_close(&other);
	teardown();
}

static void test_service_type(void)
{
	DAT_EP_ATTR attr = plain_attr();
	DAT_NAMED_ATTR named = { "no such", "attribute" };

	setup();
	attr.service_type = 77;
	IS(create(&attr), E(INVALID_PARAMETER, INVALID_ARG6));
	attr = plain_attr();
	attr.ep_provider_specific_count = 1;
	attr.ep_provider_specific = &named;
	IS(create(&attr), E0(MODEL_NOT_SUPPORTED));
	attr = plain_attr();
	attr.ep_transport_specific_count = -1;
	IS(create(&attr), E(INVALID_PARAMETER, INVALID_ARG6));
	teardown();
}

static void test_null_evds(void)
{
	static const struct {
		bool recv, request;
		DAT_COUNT recv_dtos, request_dtos, recv_iov, request_iov;
		bool valid;
	} rows[] = {
		{ true, true, 4, 4, 1, 1, true },   { true, true, 0, 4, 1, 1, false },
		{ true, true, 4, 0, 1, 1, false },  { true, true, 4, 4, 0, 1, false },
		{ true, true, 4, 4, 1, 0, true },   { false, true, 0, 4, 0, 1, true },
		{ false, true, 0, 4, 1, 1, true },  { false, true, 4, 4, 1, 1, false },
		{ true, false, 4, 0, 1, 0, true },  { true, false, 4, 0, 1, 1, false },
		{ true, false, 4, 4, 1, 0, false }, { false, false, 0, 0, 0, 0, true },
	};
	DAT_EP_HANDLE ep;
	DAT_EP_ATTR attr;
	DAT_RETURN status;
	size_t i;

	setup();
	for (i = 0; i < COUNT(rows); i++) {
		attr = (DAT_EP_ATTR){ .max_recv_dtos = rows[i].recv_dtos,
				      .max_request_dtos = rows[i].request_dtos,
				      .max_recv_iov = rows[i].recv_iov,
				      .max_request_iov = rows[i].request_iov };
		status = dat_ep_create(env.ia, env.pz, rows[i].recv ? a.recv : DAT_HANDLE_NULL,
				       rows[i].request ? a.request : DAT_HANDLE_NULL, a.conn, &attr,
				       &ep);
		CU_ASSERT_EQUAL(status, rows[i].valid ? (DAT_RETURN)DAT_SUCCESS
						      : E(INVALID_PARAMETER, INVALID_ARG6));
		if (status == DAT_SUCCESS)
			OK(dat_ep_free(ep));
	}
	/* An EP without an EVD for a side refuses posts there. */
	MUST(dat_ep_create(env.ia, env.pz, 0, 0, 0, NULL, &ep));
	IS(dat_ep_post_recv(ep, 0, NULL, (DAT_DTO_COOKIE){ .as_64 = 0 }, 0),
	   E(INSUFFICIENT_RESOURCES, RESOURCE_MEMORY));
	OK(dat_ep_free(ep));
	teardown();
}

static void one_limit(size_t offset, DAT_COUNT limit)
{
	DAT_EP_ATTR attr = plain_attr();
	DAT_COUNT *field = (DAT_COUNT *)((char *)&attr + offset);

	*field = limit;
	CU_ASSERT_EQUAL(create(&attr), DAT_SUCCESS);
	*field = limit + 1;
	IS(create(&attr), E(INVALID_PARAMETER, INVALID_ARG6));
	*field = -1;
	IS(create(&attr), E(INVALID_PARAMETER, INVALID_ARG6));
}

static void test_limits(void)
{
	DAT_EP_ATTR attr;

	setup();
	one_limit(offsetof(DAT_EP_ATTR, max_recv_dtos), limits.max_dto_per_ep);
	one_limit(offsetof(DAT_EP_ATTR, max_request_dtos), limits.max_dto_per_ep);
	one_limit(offsetof(DAT_EP_ATTR, max_recv_iov), limits.max_iov_segments_per_dto);
	one_limit(offsetof(DAT_EP_ATTR, max_request_iov), limits.max_iov_segments_per_dto);
	one_limit(offsetof(DAT_EP_ATTR, max_rdma_read_in), limits.max_rdma_read_per_ep_in);
	one_limit(offsetof(DAT_EP_ATTR, max_rdma_read_out), limits.max_rdma_read_per_ep_out);
	one_limit(offsetof(DAT_EP_ATTR, max_rdma_read_iov), limits.max_iov_segments_per_rdma_read);
	one_limit(offsetof(DAT_EP_ATTR, max_rdma_write_iov),
		  limits.max_iov_segments_per_rdma_write);
	attr = plain_attr();
	attr.max_message_size = limits.max_message_size;
	attr.max_rdma_size = limits.max_rdma_size;
	CU_ASSERT_EQUAL(create(&attr), DAT_SUCCESS);
	attr.max_message_size = UINT32_MAX;
	IS(create(&attr), E(INVALID_PARAMETER, INVALID_ARG6));
	attr.max_message_size = 0;
	attr.max_rdma_size = UINT32_MAX;
	IS(create(&attr), E(INVALID_PARAMETER, INVALID_ARG6));
	attr = plain_attr();
	attr.qos = DAT_QOS_LOW_LATENCY;
	IS(create(&attr), E(INVALID_PARAMETER, INVALID_ARG6));
	teardown();
}

/* Without an SRQ the member is ignored, because existing consumers do not initialise it. */
static void test_soft_watermark(void)
{
	static const DAT_COUNT values[] = { DAT_HW_DEFAULT,	  0, 1, -2, 0x7fffffff,
					    (DAT_COUNT)0xdeadbeef };
	DAT_EP_PARAM param;
	DAT_EP_ATTR attr;
	DAT_EP_HANDLE ep;
	size_t i;

	setup();
	for (i = 0; i < COUNT(values); i++) {
		attr = plain_attr();
		attr.srq_soft_hw = values[i];
		MUST(dat_ep_create(env.ia, env.pz, a.recv, a.request, a.conn, &attr, &ep));
		OK(dat_ep_query(ep, DAT_EP_FIELD_ALL, &param));
		CU_ASSERT_EQUAL(param.ep_attr.srq_soft_hw, DAT_HW_DEFAULT);
		param.ep_attr.srq_soft_hw = values[i];
		OK(dat_ep_modify(ep, DAT_EP_FIELD_EP_ATTR_SRQ_SOFT_HW, &param));
		OK(dat_ep_free(ep));
	}
	teardown();
}

static void test_flags(void)
{
	DAT_EP_ATTR attr;
	unsigned flags;
	bool valid;

	setup();
	/* That EP would add its own flags to the EVDs. */
	end_free_ep(&a);
	for (flags = 0; flags < 0x80; flags++) {
		attr = plain_attr();
		attr.recv_completion_flags = (DAT_COMPLETION_FLAGS)flags;
		valid = !flags || flags == 2 || flags == 4 || flags == 0x10;
		CU_ASSERT_EQUAL(create(&attr), valid ? (DAT_RETURN)DAT_SUCCESS
						     : E(INVALID_PARAMETER, INVALID_ARG6));
		attr = plain_attr();
		attr.request_completion_flags = (DAT_COMPLETION_FLAGS)flags;
		valid = !(flags & ~0xbu) || (flags & ~0xbu) == 4 || (flags & ~0xbu) == 0x10;
		CU_ASSERT_EQUAL(create(&attr), valid ? (DAT_RETURN)DAT_SUCCESS
						     : E(INVALID_PARAMETER, INVALID_ARG6));
	}
	teardown();
}

/*
 * Creates an EP with these completion flags on the given EVDs; NULL if the flags conflict with
 * other streams of the EVDs.
 */
static DAT_EP_HANDLE flagged(DAT_EVD_HANDLE recv, DAT_EVD_HANDLE request, unsigned recv_flags,
			     unsigned request_flags)
{
	DAT_EP_HANDLE ep = DAT_HANDLE_NULL;
	DAT_EP_ATTR attr = plain_attr();
	DAT_RETURN status;

	attr.recv_completion_flags = (DAT_COMPLETION_FLAGS)recv_flags;
	attr.request_completion_flags = (DAT_COMPLETION_FLAGS)request_flags;
	status = dat_ep_create(env.ia, env.pz, recv, request, a.conn, &attr, &ep);
	CU_ASSERT_TRUE(status == DAT_SUCCESS || status == E(INVALID_PARAMETER, INVALID_ARG6));
	CU_ASSERT_EQUAL(!ep, status != DAT_SUCCESS);
	return ep;
}

static void agrees(unsigned first_recv, unsigned first_request, unsigned recv, unsigned request,
		   bool same, bool wanted)
{
	DAT_EVD_HANDLE r = evd_open(&env, 8, DAT_EVD_DTO_FLAG);
	DAT_EVD_HANDLE q = same ? r : evd_open(&env, 8, DAT_EVD_DTO_FLAG);
	DAT_EP_HANDLE first = flagged(r, q, first_recv, first_request), second;

	CU_ASSERT_PTR_NOT_NULL_FATAL(first);
	second = flagged(r, q, recv, request);
	CU_ASSERT_EQUAL(second != DAT_HANDLE_NULL, wanted);
	if (second)
		OK(dat_ep_free(second));
	/* The restriction ends with the last stream that has it. */
	OK(dat_ep_free(first));
	second = flagged(r, q, recv, request);
	CU_ASSERT_PTR_NOT_NULL_FATAL(second);
	OK(dat_ep_free(second));
	evd_close(r);
	if (!same)
		evd_close(q);
}

static void test_agreement(void)
{
	DAT_EVD_HANDLE both;

	setup();
	agrees(0, 0, 0x10, 0x10, true, true); /* F4 */
	agrees(0x10, 0, 0, 0x10, true, true);
	agrees(4, 4, 4, 4, true, true); /* F1 */
	agrees(4, 4, 0, 0, true, true);
	agrees(0, 0, 4, 4, true, true);
	agrees(4, 0, 0, 0, false, true);
	agrees(0, 4, 0, 0, false, true);
	agrees(2, 0, 2, 0, false, true); /* F2 */
	agrees(2, 0, 0, 0, false, false);
	agrees(0, 0, 2, 0, false, false);
	both = evd_open(&env, 8, DAT_EVD_DTO_FLAG);
	CU_ASSERT_PTR_NULL(flagged(both, both, 2, 0));
	evd_close(both);
	teardown();
}

static void test_references(void)
{
	setup();
	IS(dat_pz_free(env.pz), E(INVALID_STATE, INVALID_STATE_PZ_IN_USE));
	IS(dat_evd_free(a.conn), E(INVALID_STATE, INVALID_STATE_EVD_IN_USE));
	IS(dat_evd_free(a.recv), E(INVALID_STATE, INVALID_STATE_EVD_IN_USE));
	IS(dat_evd_free(a.request), E(INVALID_STATE, INVALID_STATE_EVD_IN_USE));
	IS(dat_ia_close(env.ia, DAT_CLOSE_GRACEFUL_FLAG),
	   E(INVALID_STATE, INVALID_STATE_IA_IN_USE));
	teardown();
}

static void test_query(void)
{
	DAT_EP_PARAM param, untouched;

	setup();
	IS(dat_ep_query(a.recv, DAT_EP_FIELD_ALL, NULL), E(INVALID_HANDLE, INVALID_HANDLE_EP));
	IS(dat_ep_query(a.ep, ~0ull, NULL), E(INVALID_PARAMETER, INVALID_ARG3));
	IS(dat_ep_query(a.ep, DAT_EP_FIELD_ALL + 1, &param), E(INVALID_PARAMETER, INVALID_ARG2));
	memset(&param, 0x5a, sizeof(param));
	memset(&untouched, 0x5a, sizeof(untouched));
	OK(dat_ep_query(a.ep, 0, &param));
	CU_ASSERT_EQUAL(memcmp(&param, &untouched, sizeof(param)), 0);
	OK(dat_ep_query(a.ep, DAT_EP_FIELD_ALL, &param));
	CU_ASSERT_PTR_EQUAL(param.ia_handle, env.ia);
	CU_ASSERT_EQUAL(param.ep_state, DAT_EP_STATE_UNCONNECTED);
	CU_ASSERT_PTR_EQUAL(param.pz_handle, env.pz);
	CU_ASSERT_PTR_EQUAL(param.recv_evd_handle, a.recv);
	CU_ASSERT_PTR_EQUAL(param.request_evd_handle, a.request);
	CU_ASSERT_PTR_EQUAL(param.connect_evd_handle, a.conn);
	CU_ASSERT_PTR_NULL(param.srq_handle);
	CU_ASSERT_EQUAL(param.local_ia_address_ptr->sa_family, env.address->sa_family);
	CU_ASSERT_PTR_NOT_NULL(param.remote_ia_address_ptr);
	/* C22: the queues of a default EP are usable */
	CU_ASSERT_TRUE(param.ep_attr.max_recv_dtos >= 16);
	CU_ASSERT_TRUE(param.ep_attr.max_request_dtos >= 16);
	CU_ASSERT_TRUE(param.ep_attr.max_rdma_read_in > 0);
	CU_ASSERT_TRUE(param.ep_attr.max_rdma_read_out > 0);
	CU_ASSERT_EQUAL(param.ep_attr.recv_completion_flags, DAT_COMPLETION_EVD_THRESHOLD_FLAG);
	teardown();
}

static void test_round_trip(void)
{
	DAT_EP_PARAM first, second;
	DAT_EP_ATTR attr;
	DAT_EP_HANDLE ep;

	setup();
	OK(dat_ep_query(a.ep, DAT_EP_FIELD_ALL, &first));
	MUST(dat_ep_create(env.ia, env.pz, a.recv, a.request, a.conn, &first.ep_attr, &ep));
	OK(dat_ep_query(ep, DAT_EP_FIELD_ALL, &second));
	CU_ASSERT_TRUE(ep_attr_is_same(&first.ep_attr, &second.ep_attr));
	OK(dat_ep_free(ep));

	/*
	 * Attributes are exact where the specification says so, and at least the requested value
	 * elsewhere.
	 */
	attr = plain_attr();
	attr.max_rdma_read_in = 1;
	attr.max_rdma_size = 0x10000;
	MUST(dat_ep_create(env.ia, env.pz, a.recv, a.request, a.conn, &attr, &ep));
	OK(dat_ep_query(ep, DAT_EP_FIELD_ALL, &second));
	CU_ASSERT_TRUE(second.ep_attr.max_recv_dtos >= 4);
	CU_ASSERT_TRUE(second.ep_attr.max_request_dtos >= 4);
	CU_ASSERT_TRUE(second.ep_attr.max_recv_iov >= 1);
	CU_ASSERT_EQUAL(second.ep_attr.max_rdma_read_in, 1);
	CU_ASSERT_EQUAL(second.ep_attr.max_rdma_read_out, 0);
	CU_ASSERT_EQUAL(second.ep_attr.max_rdma_size, 0x10000);
	CU_ASSERT_EQUAL(second.ep_attr.max_message_size, 0);
	CU_ASSERT_EQUAL(second.ep_attr.recv_completion_flags, 0);
	OK(dat_ep_free(ep));
	teardown();
}

static void test_status(void)
{
	DAT_BOOLEAN recv_idle = 77, request_idle = 77;
	DAT_EP_STATE state;
	DAT_EVENT event;

	setup();
	IS(dat_ep_get_status(a.recv, NULL, NULL, NULL), E(INVALID_HANDLE, INVALID_HANDLE_EP));
	OK(dat_ep_get_status(a.ep, NULL, NULL, NULL));
	OK(dat_ep_get_status(a.ep, &state, &recv_idle, &request_idle));
	CU_ASSERT_EQUAL(state, DAT_EP_STATE_UNCONNECTED);
	CU_ASSERT_EQUAL(recv_idle, DAT_TRUE);
	CU_ASSERT_EQUAL(request_idle, DAT_TRUE);
	CU_ASSERT_EQUAL(try_recv(&a, 1), DAT_SUCCESS);
	OK(dat_ep_get_status(a.ep, &state, &recv_idle, &request_idle));
	CU_ASSERT_EQUAL(recv_idle, DAT_FALSE);
	CU_ASSERT_EQUAL(request_idle, DAT_TRUE);
	IS(dat_evd_dequeue(a.recv, &event), DAT_QUEUE_EMPTY);
	teardown();
}

static void test_unconnected(void)
{
	DAT_RMR_TRIPLET remote = { 0 };
	DAT_EP_HANDLE bare;

	setup();
	IS(try_send(&a, 1, 0), E(INVALID_STATE, INVALID_STATE_EP_UNCONNECTED));
	IS(try_write(&a, 1, env.rkey), E(INVALID_STATE, INVALID_STATE_EP_UNCONNECTED));
	IS(dat_ep_post_rdma_read(a.ep, 0, NULL, (DAT_DTO_COOKIE){ .as_64 = 0 }, &remote, 0),
	   E(INVALID_STATE, INVALID_STATE_EP_UNCONNECTED));
	OK(dat_ep_create(env.ia, DAT_HANDLE_NULL, a.recv, a.request, a.conn, NULL, &bare));
	IS(dat_ep_post_recv(bare, 0, NULL, (DAT_DTO_COOKIE){ .as_64 = 0 }, 0),
	   E(INVALID_STATE, INVALID_STATE_EP_NOTREADY));
	OK(dat_ep_free(bare));
	post_recvs(&a, 4);
	teardown();
}

static void test_many(void)
{
	static DAT_EP_HANDLE eps[300];
	size_t i;

	setup();
	for (i = 0; i < COUNT(eps); i++)
		MUST(dat_ep_create(env.ia, env.pz, a.recv, a.request, a.conn, NULL, &eps[i]));
	for (i = 0; i < COUNT(eps); i++)
		OK(dat_ep_free(eps[i]));
	IS(dat_ep_free(eps[0]), E(INVALID_HANDLE, INVALID_HANDLE_EP));
	IS(dat_ep_free(DAT_HANDLE_NULL), E(INVALID_HANDLE, INVALID_HANDLE_EP));
	teardown();
}

static const struct unit_test tests[] = {
	{ "handles and pointers are checked in their order", test_handles },
	{ "objects of another IA are refused, except a connect EVD", test_other_ia },
	{ "other service types and unknown named attributes are refused", test_service_type },
	{ "a side without an EVD has no queue", test_null_evds },
	{ "each limit is accepted, and a larger or negative value is refused", test_limits },
	{ "srq_soft_hw is ignored without an SRQ", test_soft_watermark },
	{ "each combination of completion flags", test_flags },
	{ "completion flags of streams that share an EVD must agree", test_agreement },
	{ "objects that an EP refers to cannot be freed", test_references },
	{ "query", test_query },
	{ "a queried EP can be created again; exact and at least", test_round_trip },
	{ "get_status: a side is idle until a transfer is posted there", test_status },
	{ "U: receives can be posted to an EP with a PZ, requests cannot", test_unconnected },
	{ "300 endpoints at the same time", test_many },
};

UNIT_MAIN("ep", tests)
