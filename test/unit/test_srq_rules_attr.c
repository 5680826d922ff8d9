/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Endpoints on an SRQ over the software device, rule by rule: attributes and completion flags. */
#include <string.h>
#include "test/unit/same.h"
#include "test/unit/srq_rig.h"

static DAT_RETURN create(DAT_EVD_HANDLE recv, DAT_EVD_HANDLE request, const DAT_EP_ATTR *attr,
			 DAT_EP_HANDLE *ep)
{
	return dat_ep_create_with_srq(env.ia, env.pz, recv, request, b.conn, srq, attr, ep);
}

/* Creates an EP with these attributes; returns the attributes of the query. */
static DAT_EP_ATTR made(const DAT_EP_ATTR *attr)
{
	DAT_EP_PARAM param;
	DAT_EP_HANDLE ep;

	memset(&param, 0, sizeof(param));
	if (create(b.recv, b.request, attr, &ep) != DAT_SUCCESS) {
		CU_FAIL("no endpoint");
		return param.ep_attr;
	}
	OK(dat_ep_query(ep, DAT_EP_FIELD_ALL, &param));
	OK(dat_ep_free(ep));
	return param.ep_attr;
}

static void refused(const DAT_EP_ATTR *attr)
{
	DAT_EP_HANDLE ep = env.pz;

	IS(create(b.recv, b.request, attr, &ep), E(INVALID_PARAMETER, INVALID_ARG7));
	CU_ASSERT_PTR_EQUAL(ep, env.pz);
}

static void test_r18(void)
{
	unsigned i;

	setup();
	srq_post(4);
	connect_pair(&a, &b);
	for (i = 0; i < 4; i++) { /* whatever flag the sender sets */
		OK(try_send(&a, i,
			    i % 2 ? DAT_COMPLETION_SUPPRESS_FLAG
				  : DAT_COMPLETION_SOLICITED_WAIT_FLAG));
		expect_dto(b.recv, b.ep, SRQ_COOKIE + i, DAT_DTO_SUCCESS);
	}
	teardown();
}

static void test_r21(void)
{
	DAT_EP_ATTR least = { .max_request_dtos = 1 };
	DAT_EP_HANDLE ep = DAT_HANDLE_NULL;
	DAT_EP_ATTR got;

	setup();
	IS(create(b.recv, b.request, NULL, &ep), E(INVALID_PARAMETER, INVALID_ARG7));
	CU_ASSERT_PTR_EQUAL(ep, DAT_HANDLE_NULL);
	got = made(&least);
	CU_ASSERT_EQUAL(got.service_type, DAT_SERVICE_TYPE_RC);
	CU_ASSERT_EQUAL(got.qos, DAT_QOS_BEST_EFFORT);
	teardown();
}

static void test_r22(void)
{
	static const DAT_COUNT counts[] = { 1, 3, 17, 1000 };
	DAT_EP_ATTR attr;
	size_t i;

	setup();
	for (i = 0; i < COUNT(counts); i++) {
		attr = srq_attr();
		attr.max_request_dtos = counts[i];
		CU_ASSERT_TRUE(made(&attr).max_request_dtos >= counts[i]);
	}
	teardown();
}

static void test_r23(void)
{
	DAT_EP_ATTR attr;
	DAT_COUNT i;

	setup();
	for (i = 1; i < 8; i++) {
		attr = srq_attr();
		attr.max_request_iov = i;
		CU_ASSERT_TRUE(made(&attr).max_request_iov >= i);
	}
	teardown();
}

static void test_r24(void)
{
	static const DAT_COUNT counts[] = { 0, 1, 33, 100000000 };
	DAT_EP_ATTR attr;
	size_t i;

	setup();
	for (i = 0; i < COUNT(counts); i++) {
		attr = srq_attr();
		attr.max_recv_dtos = counts[i];
		CU_ASSERT_EQUAL(made(&attr).max_recv_dtos, counts[i]);
	}
	attr.max_recv_dtos = -1;
	refused(&attr);
	teardown();
}

static void test_r25(void)
{
	DAT_EP_ATTR attr = srq_attr();

	setup();
	attr.max_message_size = 12345;
	CU_ASSERT_EQUAL(made(&attr).max_message_size, 12345);
	attr.max_message_size = 1;
	CU_ASSERT_EQUAL(made(&attr).max_message_size, 1);
	teardown();
}

static void test_r26(void)
{
	DAT_EP_ATTR attr = srq_attr();

	setup();
	attr.max_rdma_size = 54321;
	CU_ASSERT_EQUAL(made(&attr).max_rdma_size, 54321);
	attr.max_rdma_size = 1;
	CU_ASSERT_EQUAL(made(&attr).max_rdma_size, 1);
	teardown();
}

static void test_r27(void)
{
	DAT_EP_ATTR attr = srq_attr();

	setup();
	for (attr.max_rdma_read_in = 0; attr.max_rdma_read_in < 5; attr.max_rdma_read_in++)
		CU_ASSERT_EQUAL(made(&attr).max_rdma_read_in, attr.max_rdma_read_in);
	teardown();
}

static void test_r28(void)
{
	DAT_EP_ATTR attr = srq_attr();

	setup();
	for (attr.max_rdma_read_out = 0; attr.max_rdma_read_out < 5; attr.max_rdma_read_out++)
		CU_ASSERT_EQUAL(made(&attr).max_rdma_read_out, attr.max_rdma_read_out);
	teardown();
}

static void test_r29(void)
{
	DAT_EP_ATTR attr = srq_attr();
	DAT_SRQ_PARAM param;

	setup();
	OK(dat_srq_query(srq, DAT_SRQ_FIELD_ALL, &param));
	for (attr.max_recv_iov = 0; attr.max_recv_iov < 100000; attr.max_recv_iov += 33333)
		CU_ASSERT_EQUAL(made(&attr).max_recv_iov, param.max_recv_iov);
	teardown();
}

static void test_r30(void)
{
	DAT_EP_ATTR attr = srq_attr(), got;

	setup();
	attr.max_rdma_read_out = 1;
	attr.recv_completion_flags = DAT_COMPLETION_EVD_THRESHOLD_FLAG;
	attr.request_completion_flags = DAT_COMPLETION_EVD_THRESHOLD_FLAG;
	attr.srq_soft_hw = DAT_HW_DEFAULT;
	got = made(&attr);
	CU_ASSERT_EQUAL(got.service_type, DAT_SERVICE_TYPE_RC);
	CU_ASSERT_EQUAL(got.qos, DAT_QOS_BEST_EFFORT);
	CU_ASSERT_EQUAL(got.recv_completion_flags, DAT_COMPLETION_EVD_THRESHOLD_FLAG);
	CU_ASSERT_EQUAL(got.request_completion_flags, DAT_COMPLETION_EVD_THRESHOLD_FLAG);
	CU_ASSERT_EQUAL(got.srq_soft_hw, DAT_HW_DEFAULT);
	teardown();
}

/* Each attribute too large in turn: the create fails; no value is reduced silently. */
static void test_r31(void)
{
	DAT_EP_ATTR bad[6];
	size_t i;

	setup();
	for (i = 0; i < COUNT(bad); i++)
		bad[i] = srq_attr();
	bad[0].max_request_dtos = 100000000;
	bad[1].max_request_iov = 100000;
	bad[2].max_rdma_read_in = 100000;
	bad[3].max_rdma_read_out = 100000;
	bad[4].qos = DAT_QOS_PREMIUM;
	bad[5].srq_soft_hw = 5;
	for (i = 0; i < COUNT(bad); i++)
		refused(&bad[i]);
	teardown();
}

/* ---- completion flags ---- */

static DAT_EP_ATTR flags(unsigned recv, unsigned request)
{
	DAT_EP_ATTR attr = srq_attr();

	attr.recv_completion_flags = (DAT_COMPLETION_FLAGS)recv;
	attr.request_completion_flags = (DAT_COMPLETION_FLAGS)request;
	return attr;
}

/*
 * An EP with one set of flags on new EVDs; then a second EP with the other flags is accepted or
 * refused.
 */
static void second_after_first(const DAT_EP_ATTR *first, const DAT_EP_ATTR *second, bool same_evd,
			       bool agrees)
{
	DAT_EVD_HANDLE recv = evd_open(&env, 8, DAT_EVD_DTO_FLAG);
	DAT_EVD_HANDLE request = same_evd ? recv : evd_open(&env, 8, DAT_EVD_DTO_FLAG);
	DAT_EP_HANDLE ep1, ep2 = DAT_HANDLE_NULL;

	MUST(create(recv, request, first, &ep1));
	if (agrees) {
		OK(create(recv, request, second, &ep2));
		OK(dat_ep_free(ep2));
	} else {
		IS(create(recv, request, second, &ep2), E(INVALID_PARAMETER, INVALID_ARG7));
		CU_ASSERT_PTR_EQUAL(ep2, DAT_HANDLE_NULL);
	}
	OK(dat_ep_free(ep1));
	if (!same_evd)
		evd_close(request);
	evd_close(recv);
}

#define PLAIN	    DAT_COMPLETION_DEFAULT_FLAG
#define UNSIGNALLED DAT_COMPLETION_UNSIGNALLED_FLAG
#define SOLICITED   DAT_COMPLETION_SOLICITED_WAIT_FLAG
#define THRESHOLD   DAT_COMPLETION_EVD_THRESHOLD_FLAG

static void test_r32(void)
{
	DAT_EP_ATTR plain = flags(PLAIN, PLAIN), request = flags(PLAIN, UNSIGNALLED),
		    recv = flags(SOLICITED, PLAIN);

	setup();
	second_after_first(&plain, &plain, false, true);
	second_after_first(&plain, &request, false, true);
	second_after_first(&request, &plain, false, true);
	second_after_first(&plain, &recv, false, false);
	second_after_first(&recv, &plain, false, false);
	second_after_first(&request, &request, false, true);
	teardown();
}

static void test_r33(void)
{
	DAT_EP_ATTR both = flags(UNSIGNALLED, UNSIGNALLED), one = flags(PLAIN, UNSIGNALLED),
		    threshold = flags(THRESHOLD, PLAIN);
	DAT_EVD_HANDLE evd;
	DAT_EP_HANDLE ep;

	setup();
	second_after_first(&both, &both, true, true);
	second_after_first(&both, &one, true, true);
	second_after_first(&both, &threshold, true, false);
	second_after_first(&threshold, &both, true, false);
	evd = evd_open(&env, 8, DAT_EVD_DTO_FLAG);
	MUST(create(evd, evd, &one, &ep));
	OK(dat_ep_free(ep));
	evd_close(evd);
	teardown();
}

static void test_r34(void)
{
	DAT_EP_ATTR attr = flags(UNSIGNALLED, PLAIN);
	struct end c;

	setup();
	end_open(&env, &c, NULL);
	MUST(dat_ep_free(c.ep));
	MUST(dat_ep_create_with_srq(env.ia, env.pz, c.recv, c.request, c.conn, srq, &attr, &c.ep));
	srq_post(1);
	connect_pair(&a, &c);
	OK(try_send(&a, 1, 0));
	expect_dto(a.request, a.ep, 1, DAT_DTO_SUCCESS);
	expect_dto(c.recv, c.ep, SRQ_COOKIE, DAT_DTO_SUCCESS);
	end_close(&c);
	teardown();
}

static void test_r35(void)
{
	DAT_EP_ATTR solicited = flags(SOLICITED, PLAIN), plain = flags(PLAIN, PLAIN);
	DAT_EVD_HANDLE evd;
	DAT_EP_HANDLE ep;

	setup();
	second_after_first(&solicited, &solicited, false, true);
	second_after_first(&solicited, &plain, false, false);
	/* without streams of another kind */
	evd = evd_open(&env, 8, DAT_EVD_DTO_FLAG);
	IS(create(evd, evd, &solicited, &ep), E(INVALID_PARAMETER, INVALID_ARG7));
	evd_close(evd);
	evd = evd_open(&env, 8, DAT_EVD_DTO_FLAG | DAT_EVD_CONNECTION_FLAG);
	IS(dat_ep_create_with_srq(env.ia, env.pz, evd, b.request, evd, srq, &solicited, &ep),
	   E(INVALID_PARAMETER, INVALID_ARG7));
	evd_close(evd);
	teardown();
}

static void test_r36(void)
{
	DAT_EP_ATTR both = flags(THRESHOLD, THRESHOLD), recv = flags(THRESHOLD, UNSIGNALLED);
	DAT_EVD_HANDLE evd;
	DAT_EP_HANDLE ep;

	setup();
	second_after_first(&both, &both, true, true);
	evd = evd_open(&env, 8, DAT_EVD_DTO_FLAG);
	IS(create(evd, evd, &recv, &ep), E(INVALID_PARAMETER, INVALID_ARG7));
	evd_close(evd);
	/* connection events may share it */
	evd = evd_open(&env, 8, DAT_EVD_DTO_FLAG | DAT_EVD_CONNECTION_FLAG);
	MUST(dat_ep_create_with_srq(env.ia, env.pz, evd, evd, evd, srq, &both, &ep));
	OK(dat_ep_free(ep));
	evd_close(evd);
	teardown();
}

static void test_r37(void)
{
	DAT_EP_ATTR bad = flags(SOLICITED, PLAIN), good = flags(PLAIN, PLAIN);
	DAT_EP_HANDLE ep = env.pz;
	DAT_EVD_HANDLE evd;

	setup();
	evd = evd_open(&env, 8, DAT_EVD_DTO_FLAG);
	ep = env.pz;
	IS(create(evd, evd, &bad, &ep), E(INVALID_PARAMETER, INVALID_ARG7));
	CU_ASSERT_PTR_EQUAL(ep, env.pz);
	MUST(create(evd, evd, &good, &ep)); /* the refused EP left nothing behind */
	OK(dat_ep_free(ep));
	MUST(create(evd, b.request, &bad, &ep));
	OK(dat_ep_free(ep));
	evd_close(evd);
	teardown();
}

/* ---- after connecting ---- */

static void test_r39(void)
{
	DAT_EP_ATTR attr = srq_attr();
	DAT_EP_PARAM before, after;
	struct end c;

	setup();
	attr.max_rdma_read_in = 3;
	attr.max_rdma_read_out = 2;
	attr.max_message_size = 4321;
	end_open(&env, &c, NULL);
	MUST(dat_ep_free(c.ep));
	MUST(dat_ep_create_with_srq(env.ia, env.pz, c.recv, c.request, c.conn, srq, &attr, &c.ep));
	MUST(dat_ep_query(c.ep, DAT_EP_FIELD_ALL, &before));
	connect_pair(&a, &c);
	MUST(dat_ep_query(c.ep, DAT_EP_FIELD_ALL, &after));
	CU_ASSERT_TRUE(ep_attr_is_same(&before.ep_attr, &after.ep_attr));
	CU_ASSERT_EQUAL(after.ep_attr.max_rdma_read_in, 3);
	CU_ASSERT_EQUAL(after.ep_attr.max_rdma_read_out, 2);
	end_close(&c);
	teardown();
}

static void test_r40(void)
{
	DAT_LMR_TRIPLET where;
	DAT_RMR_TRIPLET remote;
	DAT_EP_PARAM param;

	setup(); /* b has a read depth of 0 in both directions */
	connect_pair(&a, &b);
	MUST(dat_ep_query(b.ep, DAT_EP_FIELD_ALL, &param));
	CU_ASSERT_EQUAL(param.ep_attr.max_rdma_read_in, 0);
	CU_ASSERT_EQUAL(param.ep_attr.max_rdma_read_out, 0);
	where = segment(&env, 0, 64);
	remote = (DAT_RMR_TRIPLET){ .virtual_address = (uintptr_t)env.memory + 4096,
				    .segment_length = 64,
				    .rmr_context = env.rkey };
	OK(dat_ep_post_rdma_read(b.ep, 1, &where, (DAT_DTO_COOKIE){ .as_64 = 1 }, &remote, 0));
	expect_dto(b.request, b.ep, 1, DAT_DTO_ERR_LOCAL_EP); /* b cannot read */
	teardown();
}

static void test_r42(void)
{
	DAT_SRQ_ATTR small = { .max_recv_dtos = 1, .max_recv_iov = 1 };
	DAT_EP_ATTR attr = srq_attr(), bad = srq_attr();
	DAT_SRQ_HANDLE gone;
	DAT_EP_HANDLE ep;

	setup();
	bad.service_type = (DAT_SERVICE_TYPE)77;
	MUST(dat_srq_create(env.ia, env.pz, &small, &gone));
	OK(dat_srq_free(gone));
	IS(dat_ep_create_with_srq(env.ia, env.pz, b.recv, b.request, b.conn, gone, &attr, &ep),
	   E(INVALID_HANDLE, INVALID_HANDLE_SRQ));
	IS(dat_ep_create_with_srq(env.ia, env.pz, b.recv, b.request, b.conn, DAT_HANDLE_NULL, &attr,
				  &ep),
	   E(INVALID_HANDLE, INVALID_HANDLE_SRQ));
	IS(create(b.recv, b.request, &attr, NULL), E(INVALID_PARAMETER, INVALID_ARG8));
	CU_ASSERT_EQUAL(DAT_GET_TYPE(create(b.recv, b.request, &bad, &ep)), DAT_INVALID_PARAMETER);
	OK(create(b.recv, b.request, &attr, &ep));
	OK(dat_ep_free(ep));
	teardown();
}

static const struct unit_test tests[] = {
	{ "R18: a receive of an SRQ is always signalled", test_r18 },
	{ "R21: attributes are required, their members may be default", test_r21 },
	{ "R22: max_request_dtos is at least as asked for", test_r22 },
	{ "R23: max_request_iov is at least as asked for", test_r23 },
	{ "R24: max_recv_dtos is returned as given", test_r24 },
	{ "R25: max_message_size: exact", test_r25 },
	{ "R26: max_rdma_size: exact", test_r26 },
	{ "R27: max_rdma_read_in: exact", test_r27 },
	{ "R28: max_rdma_read_out: exact", test_r28 },
	{ "R29: max_recv_iov: the SRQ's", test_r29 },
	{ "R30: every other attribute is exact", test_r30 },
	{ "R31: no attribute is reduced silently", test_r31 },
	{ "R32: flags agree with the other streams of the EVD", test_r32 },
	{ "R33: UNSIGNALLED agrees with all but an SRQ's EVD_THRESHOLD", test_r33 },
	{ "R34: UNSIGNALLED does not suppress notification of an SRQ's receive", test_r34 },
	{ "R35: a SOLICITED_WAIT stream is alone on its EVD", test_r35 },
	{ "R36: all streams have EVD_THRESHOLD; connection events may share the EVD", test_r36 },
	{ "R37: a refused EP leaves nothing behind", test_r37 },
	{ "R39: given attributes stay as they are", test_r39 },
	{ "R40: a read depth of 0 is 0", test_r40 },
	{ "R42: each failed creation has its code", test_r42 },
};

UNIT_MAIN("srq_rules_attr", tests)
