/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * Each call of DAT 1.2 that passes its arguments on unchanged reaches its slot in a provider of DAT
 * 2.0 with each of them at its place, and its result has the number of DAT 1.2. With a null handle
 * it returns what the original library returns, or where that crashes, the result for its kind of
 * handle.
 */
#include "test/one/fake.h"

/* INVALID_STATE/SRQ_IN_USE: the last number that differs by one. */
#define TWO_ANSWER 0x80070057u
#define ONE_ANSWER ERROR(DAT_INVALID_STATE, DAT_INVALID_STATE_SRQ_IN_USE)

/* Word i of a call's arguments. */
#define W(i)	 (0x7000 + (i))
#define P(i)	 ((void *)(uintptr_t)W(i))
#define C(i)	 ((DAT_CONTEXT){ .as_64 = W(i) })
#define AGENT(i) ((DAT_OS_WAIT_PROXY_AGENT){ P(i), (DAT_AGENT_FUNC)(uintptr_t)W((i) + 1) })

static DAT_HANDLE h;

static void check(const char *name, DAT_RETURN ret, unsigned words)
{
	bool right =
		ret == ONE_ANSWER && fake.calls == 1 && fake.seen[0] == (uintptr_t)&fake_object;
	unsigned i;

	for (i = 1; i < words; i++)
		right = right && (uint32_t)fake.seen[i] == W(i);
	if (!right)
		fprintf(stderr, "%s: wrong slot, arguments or result\n", name);
	CU_ASSERT_TRUE(right);
}

/* Evaluates `call` with a null handle in h, and then with a valid one. */
#define CHECK(good, slot, null, call, words)             \
	do {                                             \
		fake_aim(FAKE_SLOT(slot), TWO_ANSWER);   \
		h = DAT_HANDLE_NULL;                     \
		CU_ASSERT_EQUAL(call, (DAT_RETURN)null); \
		CU_ASSERT_EQUAL(fake.calls, 0);          \
		h = good;                                \
		check(#slot, call, words);               \
	} while (0)
#define IA(slot, call, words)		CHECK(fake_ia, slot, 0x8005000b, call, words)
#define OBJECT(slot, null, call, words) CHECK(&fake_object, slot, null, call, words)

static void test_ia(void)
{
	fake_open();
	IA(ia_close, dat_ia_close(h, W(1)), 2);
	IA(evd_create, dat_evd_create(h, W(1), P(2), W(3), P(4)), 5);
	IA(cno_create, dat_cno_create(h, AGENT(1), P(3)), 4);
	IA(psp_create, dat_psp_create(h, W(1), P(2), W(3), P(4)), 5);
	IA(psp_create_any, dat_psp_create_any(h, P(1), P(2), W(3), P(4)), 5);
	IA(rsp_create, dat_rsp_create(h, W(1), P(2), P(3), P(4)), 5);
	IA(pz_create, dat_pz_create(h, P(1)), 2);
	IA(srq_create, dat_srq_create(h, P(1), P(2), P(3)), 4);
	/* An IA is identified by its number, an object by its pointer. */
	CHECK(fake_ia, set_consumer_context, 0x8005001a, dat_set_consumer_context(h, C(1)), 2);
	CHECK(fake_ia, get_consumer_context, 0x8005001a, dat_get_consumer_context(h, P(1)), 2);
	CHECK(fake_ia, get_handle_type, 0x8005001a, dat_get_handle_type(h, P(1)), 2);
	fake_close();
}

static void test_any_object(void)
{
	fake_open();
	OBJECT(set_consumer_context, 0x8005001a, dat_set_consumer_context(h, C(1)), 2);
	OBJECT(get_consumer_context, 0x8005001a, dat_get_consumer_context(h, P(1)), 2);
	OBJECT(get_handle_type, 0x8005001a, dat_get_handle_type(h, P(1)), 2);
	fake_close();
}

static void test_evd_cno(void)
{
	fake_open();
	OBJECT(evd_query, 0x80050015, dat_evd_query(h, W(1), P(2)), 3);
	OBJECT(evd_modify_cno, 0x80050015, dat_evd_modify_cno(h, P(1)), 2);
	OBJECT(evd_enable, 0x80050015, dat_evd_enable(h), 1);
	OBJECT(evd_disable, 0x80050015, dat_evd_disable(h), 1);
	OBJECT(evd_set_unwaitable, 0x80050015, dat_evd_set_unwaitable(h), 1);
	OBJECT(evd_clear_unwaitable, 0x80050015, dat_evd_clear_unwaitable(h), 1);
	OBJECT(evd_resize, 0x80050015, dat_evd_resize(h, W(1)), 2);
	OBJECT(evd_free, 0x80050015, dat_evd_free(h), 1);
	OBJECT(cno_modify_agent, 0x80050013, dat_cno_modify_agent(h, AGENT(1)), 3);
	OBJECT(cno_wait, 0x80050013, dat_cno_wait(h, W(1), P(2)), 3);
	OBJECT(cno_free, 0x80050013, dat_cno_free(h), 1);
	fake_close();
}

static void test_ep(void)
{
	fake_open();
	OBJECT(ep_connect, 0x8005000c, dat_ep_connect(h, P(1), W(2), W(3), W(4), P(5), W(6), W(7)),
	       8);
	OBJECT(ep_dup_connect, 0x8005000c, dat_ep_dup_connect(h, P(1), W(2), W(3), P(4), W(5)), 6);
	OBJECT(ep_disconnect, 0x8005000c, dat_ep_disconnect(h, W(1)), 2);
	OBJECT(ep_get_status, 0x8005000c, dat_ep_get_status(h, P(1), P(2), P(3)), 4);
	OBJECT(ep_recv_query, 0x8005000c, dat_ep_recv_query(h, P(1), P(2)), 3);
	OBJECT(ep_set_watermark, 0x8005000c, dat_ep_set_watermark(h, W(1), W(2)), 3);
	OBJECT(ep_reset, 0x8005000c, dat_ep_reset(h), 1);
	OBJECT(ep_free, 0x8005000c, dat_ep_free(h), 1);
	fake_close();
}

static void test_service_points(void)
{
	fake_open();
	OBJECT(psp_query, 0x80050010, dat_psp_query(h, W(1), P(2)), 3);
	OBJECT(psp_free, 0x80050010, dat_psp_free(h), 1);
	OBJECT(rsp_query, 0x80050011, dat_rsp_query(h, W(1), P(2)), 3);
	OBJECT(rsp_free, 0x80050011, dat_rsp_free(h), 1);
	OBJECT(cr_query, 0x80050012, dat_cr_query(h, W(1), P(2)), 3);
	OBJECT(cr_accept, 0x80050012, dat_cr_accept(h, P(1), W(2), P(3)), 4);
	OBJECT(cr_handoff, 0x80050012, dat_cr_handoff(h, W(1)), 2);
	OBJECT(cr_reject, 0x80050012, dat_cr_reject(h), 1);
	CU_ASSERT_EQUAL(fake.seen[1], 0);
	CU_ASSERT_EQUAL(fake.seen[2], 0);
	fake_close();
}

static void test_memory(void)
{
	fake_open();
	OBJECT(pz_query, 0x8005000f, dat_pz_query(h, W(1), P(2)), 3);
	OBJECT(pz_free, 0x8005000f, dat_pz_free(h), 1);
	OBJECT(rmr_create, 0x8005000f, dat_rmr_create(h, P(1)), 2);
	OBJECT(rmr_free, 0x8005000e, dat_rmr_free(h), 1);
	OBJECT(lmr_free, 0x8005000d, dat_lmr_free(h), 1);
	OBJECT(srq_resize, 0x80050019, dat_srq_resize(h, W(1)), 2);
	OBJECT(srq_set_lw, 0x80050019, dat_srq_set_lw(h, W(1)), 2);
	OBJECT(srq_free, 0x80050019, dat_srq_free(h), 1);
	fake_close();
}

/* ---- Null handles of the calls that convert an argument ---- */

static void test_null_handles(void)
{
	DAT_LMR_TRIPLET iov = { .segment_length = 1 };
	DAT_RMR_TRIPLET remote = { .segment_length = 1 };
	DAT_REGION_DESCRIPTION region = { .for_va = P(1) };
	DAT_EVENT event = { .event_number = DAT_SOFTWARE_EVENT };
	DAT_PROVIDER_ATTR provider_attr;
	DAT_EP_ATTR attr = { .qos = 0 };
	DAT_EP_PARAM ep_param = { .ep_attr = attr };
	DAT_LMR_PARAM lmr_param;
	DAT_RMR_PARAM rmr_param;
	DAT_CNO_PARAM cno_param;
	DAT_SRQ_PARAM srq_param;
	DAT_RMR_CONTEXT key;
	DAT_IA_ATTR ia_attr;
	DAT_COUNT more;
	const DAT_RETURN status[] = {
		dat_ia_query(NULL, NULL, DAT_IA_ALL, &ia_attr, DAT_PROVIDER_FIELD_ALL,
			     &provider_attr),
		dat_ep_create(NULL, NULL, NULL, NULL, NULL, &attr, &h),
		dat_ep_create_with_srq(NULL, NULL, NULL, NULL, NULL, NULL, &attr, &h),
		dat_lmr_create(NULL, 0, region, 1, NULL, 0, &h, NULL, NULL, NULL, NULL),
		dat_lmr_sync_rdma_read(NULL, &iov, 1),
		dat_lmr_sync_rdma_write(NULL, &iov, 1),
		dat_ep_query(NULL, DAT_EP_FIELD_ALL, &ep_param),
		dat_ep_modify(NULL, 0, &ep_param),
		dat_ep_post_send(NULL, 1, &iov, C(1), 0),
		dat_ep_post_recv(NULL, 1, &iov, C(1), 0),
		dat_ep_post_rdma_read(NULL, 1, &iov, C(1), &remote, 0),
		dat_ep_post_rdma_write(NULL, 1, &iov, C(1), &remote, 0),
		dat_evd_post_se(NULL, &event),
		dat_evd_dequeue(NULL, &event),
		dat_evd_wait(NULL, 0, 1, &event, &more),
		dat_lmr_query(NULL, DAT_LMR_FIELD_ALL, &lmr_param),
		dat_rmr_query(NULL, DAT_RMR_FIELD_ALL, &rmr_param),
		dat_rmr_bind(NULL, &iov, 0, NULL, C(1), 0, &key),
		dat_srq_query(NULL, DAT_SRQ_FIELD_ALL, &srq_param),
		dat_srq_post_recv(NULL, 1, &iov, C(1)),
		dat_cno_query(NULL, DAT_CNO_FIELD_ALL, &cno_param),
	};
	const DAT_RETURN expected[] = {
		0x8005000b, 0x8005000b, 0x8005000b, 0x8005000b, 0x8005000b, 0x8005000b, 0x8005000c,
		0x8005000c, 0x8005000c, 0x8005000c, 0x8005000c, 0x8005000c, 0x80050015, 0x80050015,
		0x80050015, 0x8005000d, 0x8005000e, 0x8005000e, 0x80050019, 0x80050019, 0x80050013,
	};
	size_t i;

	for (i = 0; i < COUNT(status); i++)
		CU_ASSERT_EQUAL(status[i], expected[i]);
	CU_ASSERT_EQUAL(dats_get_ia_handle(0, &h), 0x8005000b);
}

static const struct unit_test tests[] = {
	{ "calls of an IA pass everything on", test_ia },
	{ "calls of any object pass everything on", test_any_object },
	{ "calls of EVDs and CNOs pass everything on", test_evd_cno },
	{ "calls of endpoints pass everything on", test_ep },
	{ "calls of service points pass everything on", test_service_points },
	{ "calls of PZs, memory and SRQs pass everything on", test_memory },
	{ "null handles of all other calls", test_null_handles },
};

UNIT_MAIN("one calls", tests)
