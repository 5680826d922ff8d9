/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * Attributes and parameters of all objects, in both directions: each member and mask arrives at its
 * place, and members that DAT 1.2 does not have are never written.
 */
#include "test/one/pack.h"

/* ---- Endpoints ---- */

static void check_ep_attr(const DAT_EP_ATTR *one, const struct two_ep_attr *two)
{
	M(*one, *two, service_type);
	M(*one, *two, max_message_size);
	M(*one, *two, max_rdma_size);
	M(*one, *two, qos);
	M(*one, *two, recv_completion_flags);
	M(*one, *two, request_completion_flags);
	M(*one, *two, max_recv_dtos);
	M(*one, *two, max_request_dtos);
	M(*one, *two, max_recv_iov);
	M(*one, *two, max_request_iov);
	M(*one, *two, max_rdma_read_in);
	M(*one, *two, max_rdma_read_out);
	M(*one, *two, srq_soft_hw);
	M(*one, *two, max_rdma_read_iov);
	M(*one, *two, max_rdma_write_iov);
	M(*one, *two, ep_transport_specific_count);
	M(*one, *two, ep_transport_specific);
	M(*one, *two, ep_provider_specific_count);
	M(*one, *two, ep_provider_specific);
}

static void check_words(const char *name, unsigned first, unsigned last)
{
	unsigned i;

	for (i = first; i <= last; i++)
		if ((uint32_t)fake.seen[i] != W(i)) {
			fprintf(stderr, "%s: argument %u\n", name, i + 1);
			CU_FAIL("an argument is in a wrong place");
		}
}

static void test_ep_create(void)
{
	struct two_ep_attr two;
	DAT_EP_ATTR attr;

	fake_open();
	fill(&attr, sizeof(attr));
	attr.max_message_size = 0xffffffff;
	attr.max_rdma_size = 0x1234;
	fake_aim(FAKE_SLOT(ep_create), DAT_SUCCESS);
	copy_in(5, sizeof(two));
	CU_ASSERT_EQUAL(dat_ep_create(fake_ia, P(1), P(2), P(3), P(4), &attr, P(6)), DAT_SUCCESS);
	CU_ASSERT_EQUAL(fake.seen[0], (uintptr_t)&fake_object);
	check_words("ep_create", 1, 4);
	check_words("ep_create", 6, 6);
	memcpy(&two, fake.in, sizeof(two));
	check_ep_attr(&attr, &two);

	attr.max_message_size = UINT64_C(0x100000000);
	attr.max_rdma_size = UINT64_MAX;
	fake_aim(FAKE_SLOT(ep_create_with_srq), DAT_SUCCESS);
	copy_in(6, sizeof(two));
	CU_ASSERT_EQUAL(dat_ep_create_with_srq(fake_ia, P(1), P(2), P(3), P(4), P(5), &attr, P(7)),
			DAT_SUCCESS);
	check_words("ep_create_with_srq", 1, 5);
	check_words("ep_create_with_srq", 7, 7);
	memcpy(&two, fake.in, sizeof(two));
	CU_ASSERT_EQUAL(two.max_message_size, 0xffffffff);
	CU_ASSERT_EQUAL(two.max_rdma_size, 0xffffffff);
	attr.max_message_size = attr.max_rdma_size = 0xffffffff;
	check_ep_attr(&attr, &two);

	/* Null attributes are passed on as null. */
	CU_ASSERT_EQUAL(dat_ep_create_with_srq(fake_ia, P(1), P(2), P(3), P(4), P(5), NULL, P(7)),
			DAT_SUCCESS);
	CU_ASSERT_EQUAL(fake.seen[6], 0);
	fake_aim(FAKE_SLOT(ep_create), DAT_SUCCESS);
	CU_ASSERT_EQUAL(dat_ep_create(fake_ia, P(1), P(2), P(3), P(4), NULL, P(6)), DAT_SUCCESS);
	CU_ASSERT_EQUAL(fake.seen[5], 0);
	fake_close();
}

static void check_ep_param(const DAT_EP_PARAM *one, const struct two_ep_param *two)
{
	M(*one, *two, ia_handle);
	M(*one, *two, ep_state);
	M(*one, *two, local_ia_address_ptr);
	M(*one, *two, local_port_qual);
	M(*one, *two, remote_ia_address_ptr);
	M(*one, *two, remote_port_qual);
	M(*one, *two, pz_handle);
	M(*one, *two, recv_evd_handle);
	M(*one, *two, request_evd_handle);
	M(*one, *two, connect_evd_handle);
	M(*one, *two, srq_handle);
	check_ep_attr(&one->ep_attr, &two->ep_attr);
}

static void test_ep_param(void)
{
	GUARDED(DAT_EP_PARAM) out, again;
	struct two_ep_param two, in;

	fake_open();
	fill(&two, sizeof(two));
	memset(&out, 0xee, sizeof(out));
	memset(&again, 0x11, sizeof(again));
	fake_aim(FAKE_SLOT(ep_query), DAT_SUCCESS);
	answer_with(2, &two, sizeof(two));
	CU_ASSERT_EQUAL(dat_ep_query(&fake_object, DAT_EP_FIELD_ALL, &out.is), DAT_SUCCESS);
	CU_ASSERT_EQUAL(fake.seen[1], 0x7ffffffb);
	check_ep_param(&out.is, &two);
	GUARDS_HOLD(out);
	/* Programs compare the results of two queries byte by byte. */
	CU_ASSERT_EQUAL(dat_ep_query(&fake_object, DAT_EP_FIELD_ALL, &again.is), DAT_SUCCESS);
	CU_ASSERT_EQUAL(memcmp(&out.is, &again.is, sizeof(out.is)), 0);

	fake_aim(FAKE_SLOT(ep_modify), DAT_SUCCESS);
	copy_in(2, sizeof(in));
	CU_ASSERT_EQUAL(dat_ep_modify(&fake_object, DAT_EP_FIELD_PZ_HANDLE, &out.is), DAT_SUCCESS);
	CU_ASSERT_EQUAL(fake.seen[1], 0x80);
	memcpy(&in, fake.in, sizeof(in));
	check_ep_param(&out.is, &in);
	fake_close();
}

/* ---- CNO, SRQ ---- */

static void test_cno_param(void)
{
	DAT_OS_WAIT_PROXY_AGENT agent = { P(1), (DAT_AGENT_FUNC)(uintptr_t)W(2) };
	struct two_cno_param two = { .ia_handle = P(3), .proxy_type = 1, .proxy.agent = agent };
	GUARDED(DAT_CNO_PARAM) out;

	fake_open();
	memset(&out, 0xee, sizeof(out));
	fake_aim(FAKE_SLOT(cno_query), DAT_SUCCESS);
	answer_with(2, &two, sizeof(two));
	CU_ASSERT_EQUAL(dat_cno_query(&fake_object, DAT_CNO_FIELD_AGENT, &out.is), DAT_SUCCESS);
	CU_ASSERT_EQUAL(fake.seen[1], TWO_CNO_FIELD_ALL);
	CU_ASSERT_PTR_EQUAL(out.is.ia_handle, P(3));
	CU_ASSERT_PTR_EQUAL(out.is.agent.instance_data, P(1));
	CU_ASSERT_TRUE(out.is.agent.proxy_agent_func == agent.proxy_agent_func);
	GUARDS_HOLD(out);

	two.proxy_type = TWO_PROXY_TYPE_FD;
	CU_ASSERT_EQUAL(dat_cno_query(&fake_object, DAT_CNO_FIELD_ALL, &out.is), DAT_SUCCESS);
	CU_ASSERT_PTR_NULL(out.is.agent.instance_data);
	CU_ASSERT_TRUE(!out.is.agent.proxy_agent_func);
	fake_close();
}

static void test_srq_param(void)
{
	static const DAT_SRQ_STATE states[] = { DAT_SRQ_STATE_ERROR, DAT_SRQ_STATE_OPERATIONAL,
						DAT_SRQ_STATE_ERROR };
	GUARDED(DAT_SRQ_PARAM) out;
	DAT_SRQ_PARAM two;
	int i;

	fake_open();
	for (i = 0; i < 3; i++) {
		fill(&two, sizeof(two));
		memcpy(&two.srq_state, &i, sizeof(i));
		memset(&out, 0xee, sizeof(out));
		fake_aim(FAKE_SLOT(srq_query), DAT_SUCCESS);
		answer_with(2, &two, sizeof(two));
		CU_ASSERT_EQUAL(dat_srq_query(&fake_object, 0xff, &out.is), DAT_SUCCESS);
		CU_ASSERT_EQUAL(fake.seen[1], 0xff);
		CU_ASSERT_EQUAL(out.is.srq_state, states[i]);
		out.is.srq_state = two.srq_state;
		CU_ASSERT_EQUAL(memcmp(&out.is, &two, sizeof(two)), 0);
		GUARDS_HOLD(out);
	}
	fake_close();
}

/* ---- Memory ---- */

static void test_lmr_param(void)
{
	struct two_lmr_param two;
	GUARDED(DAT_LMR_PARAM) out;

	fake_open();
	fill(&two, sizeof(two));
	memset(&out, 0xee, sizeof(out));
	fake_aim(FAKE_SLOT(lmr_query), DAT_SUCCESS);
	answer_with(2, &two, sizeof(two));
	CU_ASSERT_EQUAL(dat_lmr_query(&fake_object, DAT_LMR_FIELD_ALL, &out.is), DAT_SUCCESS);
	CU_ASSERT_EQUAL((uint32_t)fake.seen[1], 0x7bf);
	M(out.is, two, ia_handle);
	M(out.is, two, mem_type);
	CU_ASSERT_EQUAL(memcmp(&out.is.region_desc, &two.region_desc, sizeof(two.region_desc)), 0);
	M(out.is, two, length);
	M(out.is, two, pz_handle);
	M(out.is, two, mem_priv);
	M(out.is, two, lmr_context);
	M(out.is, two, rmr_context);
	M(out.is, two, registered_size);
	M(out.is, two, registered_address);
	GUARDS_HOLD(out);
	fake_close();
}

static void test_rmr_param(void)
{
	struct two_rmr_param two;
	GUARDED(DAT_RMR_PARAM) out;

	fake_open();
	fill(&two, sizeof(two));
	memset(&out, 0xee, sizeof(out));
	fake_aim(FAKE_SLOT(rmr_query), DAT_SUCCESS);
	answer_with(2, &two, sizeof(two));
	CU_ASSERT_EQUAL(dat_rmr_query(&fake_object, DAT_RMR_FIELD_ALL, &out.is), DAT_SUCCESS);
	CU_ASSERT_EQUAL((uint32_t)fake.seen[1], 0x1f);
	M(out.is, two, ia_handle);
	M(out.is, two, pz_handle);
	M(out.is, two, lmr_triplet.lmr_context);
	M(out.is, two, lmr_triplet.virtual_address);
	M(out.is, two, lmr_triplet.segment_length);
	M(out.is, two, mem_priv);
	M(out.is, two, rmr_context);
	GUARDS_HOLD(out);
	fake_close();
}

/* ---- Queries that fail, or have null arguments ---- */

static void test_failed_queries(void)
{
	unsigned char bytes[sizeof(DAT_IA_ATTR)];

	fake_open();
	memset(bytes, 0xdd, sizeof(bytes));
#define FAILS(slot, call)                                                              \
	do {                                                                           \
		fake_aim(FAKE_SLOT(slot), 0x80060026u);                                \
		CU_ASSERT_EQUAL(call, ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2)); \
		CU_ASSERT_TRUE(is_all(bytes, sizeof(bytes), 0xdd));                    \
		CU_ASSERT_EQUAL(fake.calls, 1);                                        \
	} while (0)
	FAILS(ia_query, dat_ia_query(fake_ia, NULL, 0, (void *)bytes, 0, NULL));
	FAILS(ia_query, dat_ia_query(fake_ia, NULL, 0, NULL, 0, (void *)bytes));
	FAILS(ep_query, dat_ep_query(&fake_object, 0, (void *)bytes));
	FAILS(lmr_query, dat_lmr_query(&fake_object, 0, (void *)bytes));
	FAILS(rmr_query, dat_rmr_query(&fake_object, 0, (void *)bytes));
	FAILS(cno_query, dat_cno_query(&fake_object, 0, (void *)bytes));
	FAILS(srq_query, dat_srq_query(&fake_object, 0, (void *)bytes));
	/* A null pointer is passed on as null. */
	FAILS(ep_query, dat_ep_query(&fake_object, 0, NULL));
	CU_ASSERT_EQUAL(fake.seen[2], 0);
	FAILS(ep_modify, dat_ep_modify(&fake_object, 0, NULL));
	CU_ASSERT_EQUAL(fake.seen[2], 0);
	FAILS(lmr_query, dat_lmr_query(&fake_object, 0, NULL));
	CU_ASSERT_EQUAL(fake.seen[2], 0);
	FAILS(rmr_query, dat_rmr_query(&fake_object, 0, NULL));
	CU_ASSERT_EQUAL(fake.seen[2], 0);
	FAILS(cno_query, dat_cno_query(&fake_object, 0, NULL));
	CU_ASSERT_EQUAL(fake.seen[2], 0);
	FAILS(srq_query, dat_srq_query(&fake_object, 0, NULL));
	CU_ASSERT_EQUAL(fake.seen[2], 0);
	fake_close();
}

static const struct unit_test tests[] = {
	{ "attributes of an endpoint go in", test_ep_create },
	{ "parameters of an endpoint go in and come out", test_ep_param },
	{ "parameters of a CNO", test_cno_param },
	{ "parameters of an SRQ: the states have other numbers", test_srq_param },
	{ "parameters of an LMR", test_lmr_param },
	{ "parameters of an RMR", test_rmr_param },
	{ "a failed query writes nothing", test_failed_queries },
};

UNIT_MAIN("one pack object", tests)
