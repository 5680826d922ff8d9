/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * Each dat_* call reaches its provider function with its arguments in order, or rejects the handle.
 */
#include "dat/common/handle.h"
#include "test/unit/fake.h"

struct fake_control fake;

/*
 * One function for every slot: the ABI passes integers, pointers and unions of them as consecutive
 * 64-bit words. W(i) is word i of a test's arguments.
 */
#define WORDS  13
#define ANSWER 0x4321u
#define W(i)   (0x7000 + (i))
#define P(i)   ((void *)(uintptr_t)W(i))
#define C(i)   ((DAT_CONTEXT){ .as_64 = W(i) })

static uintptr_t seen[WORDS];
static unsigned calls, strays;

static DAT_RETURN record(uintptr_t a, uintptr_t b, uintptr_t c, uintptr_t d, uintptr_t e,
			 uintptr_t f, uintptr_t g, uintptr_t h, uintptr_t i, uintptr_t j,
			 uintptr_t k, uintptr_t l, uintptr_t m)
{
	const uintptr_t words[WORDS] = { a, b, c, d, e, f, g, h, i, j, k, l, m };

	memcpy(seen, words, sizeof(seen));
	calls++;
	return ANSWER;
}

static DAT_RETURN stray(void)
{
	strays++;
	return 0;
}

/* A provider in which only the slot under test is set. */
static union {
	DAT_PROVIDER provider;
	void (*slots[sizeof(DAT_PROVIDER) / sizeof(void (*)(void))])(void);
} table;

static struct fake_object object = { .provider = &table.provider };
static struct dr_entry entry = { .info.ia_name = "direct" };
static DAT_IA_HANDLE live;
static DAT_HANDLE h;

static void aim(size_t offset)
{
	size_t i;

	for (i = 2; i < sizeof(table.slots) / sizeof(table.slots[0]); i++)
		table.slots[i] = (void (*)(void))stray;
	table.slots[offset / sizeof(table.slots[0])] = (void (*)(void))record;
	calls = strays = 0;
}

static void check(const char *name, DAT_RETURN ret, unsigned words)
{
	bool right = ret == ANSWER && calls == 1 && !strays && seen[0] == (uintptr_t)&object;
	unsigned i;

	for (i = 1; i < words; i++)
		right = right && (uint32_t)seen[i] == W(i);
	if (!right)
		fprintf(stderr, "%s: wrong slot or arguments\n", name);
	CU_ASSERT_TRUE(right);
}

/* Invalid handles: none, live and closed IA handles, the last small number, an odd address. */
static DAT_HANDLE not_object(unsigned i)
{
	const DAT_HANDLE bad[] = { DAT_HANDLE_NULL, live, (DAT_HANDLE)4000, (DAT_HANDLE)4095,
				   (char *)&object + 2 };

	return bad[i];
}

static DAT_HANDLE not_ia(unsigned i)
{
	const DAT_HANDLE bad[] = { DAT_HANDLE_NULL, (DAT_HANDLE)4000, &object,
				   (DAT_HANDLE)((uintptr_t)live + 1), (DAT_HANDLE)UINTPTR_MAX };

	return bad[i];
}

static DAT_HANDLE not_any(unsigned i)
{
	const DAT_HANDLE bad[] = { DAT_HANDLE_NULL, (DAT_HANDLE)4000, (DAT_HANDLE)4095,
				   (DAT_HANDLE)((uintptr_t)live + 1), (char *)&object + 1 };

	return bad[i];
}

/* Evaluates `call` with each bad handle in `h`, then with a good one. */
#define CHECK(bad, good, kind, slot, call, words)                              \
	do {                                                                   \
		unsigned n;                                                    \
		aim(offsetof(DAT_PROVIDER, slot##_func));                      \
		for (n = 0; n < 5; n++) {                                      \
			h = bad(n);                                            \
			CU_ASSERT_EQUAL(call, bad_handle(DAT_INVALID_##kind)); \
		}                                                              \
		CU_ASSERT_EQUAL(calls + strays, 0);                            \
		h = good;                                                      \
		check(#slot, call, words);                                     \
	} while (0)
#define OBJECT(kind, slot, call, words) CHECK(not_object, &object, kind, slot, call, words)
#define ANY(good, slot, call, words)	CHECK(not_any, good, HANDLE1, slot, call, words)
#define IA(slot, call, words)		CHECK(not_ia, live, HANDLE_IA, slot, call, words)

#define DISPATCH(name)                           \
	static void child_##name(void);          \
	static void name(void)                   \
	{                                        \
		fake_in_child("", child_##name); \
	}                                        \
	static void child_##name(void)

static void open_ia(void)
{
	const struct reg_hold hold = { .dr = &entry };

	CU_ASSERT_TRUE(ia_insert(&object, DAT_EXTENSION_NONE, &hold, &live));
}

DISPATCH(any_handle)
{
	open_ia();
	ANY(live, set_consumer_context, dat_set_consumer_context(h, C(1)), 2);
	ANY(&object, set_consumer_context, dat_set_consumer_context(h, C(1)), 2);
	ANY(live, get_consumer_context, dat_get_consumer_context(h, P(1)), 2);
	ANY(&object, get_consumer_context, dat_get_consumer_context(h, P(1)), 2);
	ANY(live, get_handle_type, dat_get_handle_type(h, P(1)), 2);
	ANY(&object, get_handle_type, dat_get_handle_type(h, P(1)), 2);
	IA(ia_query, dat_ia_query(h, P(1), W(2), P(3), W(4), P(5)), 6);
}

DISPATCH(evd)
{
	open_ia();
	IA(evd_create, dat_evd_create(h, W(1), P(2), W(3), P(4)), 5);
	OBJECT(HANDLE_EVD_REQUEST, evd_query, dat_evd_query(h, W(1), P(2)), 3);
	OBJECT(HANDLE_EVD_REQUEST, evd_modify_cno, dat_evd_modify_cno(h, P(1)), 2);
	OBJECT(HANDLE_EVD_REQUEST, evd_resize, dat_evd_resize(h, W(1)), 2);
	OBJECT(HANDLE_EVD_REQUEST, evd_enable, dat_evd_enable(h), 1);
	OBJECT(HANDLE_EVD_REQUEST, evd_disable, dat_evd_disable(h), 1);
	OBJECT(HANDLE_EVD_REQUEST, evd_set_unwaitable, dat_evd_set_unwaitable(h), 1);
	OBJECT(HANDLE_EVD_REQUEST, evd_clear_unwaitable, dat_evd_clear_unwaitable(h), 1);
	OBJECT(HANDLE_EVD_REQUEST, evd_wait, dat_evd_wait(h, W(1), W(2), P(3), P(4)), 5);
	OBJECT(HANDLE_EVD_REQUEST, evd_dequeue, dat_evd_dequeue(h, P(1)), 2);
	OBJECT(HANDLE_EVD_REQUEST, evd_post_se, dat_evd_post_se(h, P(1)), 2);
	OBJECT(HANDLE_EVD_REQUEST, evd_free, dat_evd_free(h), 1);
}

DISPATCH(cno)
{
	DAT_OS_WAIT_PROXY_AGENT agent;
	const uintptr_t words[2] = { W(1), W(2) };

	_Static_assert(sizeof(agent) == sizeof(words), "an agent is passed as two words");
	memcpy(&agent, words, sizeof(agent));
	open_ia();
	IA(cno_create, dat_cno_create(h, agent, P(3)), 4);
	IA(cno_fd_create, dat_cno_fd_create(h, P(1), P(2)), 3);
	OBJECT(HANDLE_CNO, cno_modify_agent, dat_cno_modify_agent(h, agent), 3);
	OBJECT(HANDLE_CNO, cno_query, dat_cno_query(h, W(1), P(2)), 3);
	OBJECT(HANDLE_CNO, cno_wait, dat_cno_wait(h, W(1), P(2)), 3);
	OBJECT(HANDLE_CNO, cno_trigger, dat_cno_trigger(h, P(1)), 2);
	OBJECT(HANDLE_CNO, cno_free, dat_cno_free(h), 1);
}

DISPATCH(ep)
{
	open_ia();
	IA(ep_create, dat_ep_create(h, P(1), P(2), P(3), P(4), P(5), P(6)), 7);
	IA(ep_create_with_srq, dat_ep_create_with_srq(h, P(1), P(2), P(3), P(4), P(5), P(6), P(7)),
	   8);
	OBJECT(HANDLE_EP, ep_query, dat_ep_query(h, W(1), P(2)), 3);
	OBJECT(HANDLE_EP, ep_modify, dat_ep_modify(h, W(1), P(2)), 3);
	OBJECT(HANDLE_EP, ep_get_status, dat_ep_get_status(h, P(1), P(2), P(3)), 4);
	OBJECT(HANDLE_EP, ep_recv_query, dat_ep_recv_query(h, P(1), P(2)), 3);
	OBJECT(HANDLE_EP, ep_set_watermark, dat_ep_set_watermark(h, W(1), W(2)), 3);
	OBJECT(HANDLE_EP, ep_connect, dat_ep_connect(h, P(1), W(2), W(3), W(4), P(5), W(6), W(7)),
	       8);
	OBJECT(HANDLE_EP, ep_dup_connect, dat_ep_dup_connect(h, P(1), W(2), W(3), P(4), W(5)), 6);
	OBJECT(HANDLE_EP, ep_common_connect, dat_ep_common_connect(h, P(1), W(2), W(3), P(4)), 5);
	OBJECT(HANDLE_EP, ep_disconnect, dat_ep_disconnect(h, W(1)), 2);
	OBJECT(HANDLE_EP, ep_reset, dat_ep_reset(h), 1);
	OBJECT(HANDLE_EP, ep_free, dat_ep_free(h), 1);
}

DISPATCH(post)
{
	open_ia();
	OBJECT(HANDLE_EP, ep_post_send, dat_ep_post_send(h, W(1), P(2), C(3), W(4)), 5);
	OBJECT(HANDLE_EP, ep_post_send_with_invalidate,
	       dat_ep_post_send_with_invalidate(h, W(1), P(2), C(3), W(4), W(5), W(6)), 7);
	OBJECT(HANDLE_EP, ep_post_recv, dat_ep_post_recv(h, W(1), P(2), C(3), W(4)), 5);
	OBJECT(HANDLE_EP, ep_post_rdma_read, dat_ep_post_rdma_read(h, W(1), P(2), C(3), P(4), W(5)),
	       6);
	OBJECT(HANDLE_EP, ep_post_rdma_read_to_rmr,
	       dat_ep_post_rdma_read_to_rmr(h, P(1), C(2), P(3), W(4)), 5);
	OBJECT(HANDLE_EP, ep_post_rdma_write,
	       dat_ep_post_rdma_write(h, W(1), P(2), C(3), P(4), W(5)), 6);
}

DISPATCH(memory)
{
	DAT_REGION_DESCRIPTION region;
	const uintptr_t words[2] = { W(2), W(3) };

	_Static_assert(sizeof(region) == sizeof(words), "a region is passed as two words");
	memcpy(&region, words, sizeof(region));
	open_ia();
	IA(lmr_create,
	   dat_lmr_create(h, W(1), region, W(4), P(5), W(6), W(7), P(8), P(9), P(10), P(11), P(12)),
	   13);
	OBJECT(HANDLE_LMR, lmr_query, dat_lmr_query(h, W(1), P(2)), 3);
	OBJECT(HANDLE_LMR, lmr_free, dat_lmr_free(h), 1);
	IA(lmr_sync_rdma_read, dat_lmr_sync_rdma_read(h, P(1), W(2)), 3);
	IA(lmr_sync_rdma_write, dat_lmr_sync_rdma_write(h, P(1), W(2)), 3);
	OBJECT(HANDLE_PZ, rmr_create, dat_rmr_create(h, P(1)), 2);
	OBJECT(HANDLE_PZ, rmr_create_for_ep, dat_rmr_create_for_ep(h, P(1)), 2);
	OBJECT(HANDLE_RMR, rmr_query, dat_rmr_query(h, W(1), P(2)), 3);
	OBJECT(HANDLE_RMR, rmr_bind,
	       dat_rmr_bind(h, P(1), P(2), W(3), W(4), P(5), C(6), W(7), P(8)), 9);
	OBJECT(HANDLE_RMR, rmr_free, dat_rmr_free(h), 1);
	IA(pz_create, dat_pz_create(h, P(1)), 2);
	OBJECT(HANDLE_PZ, pz_query, dat_pz_query(h, W(1), P(2)), 3);
	OBJECT(HANDLE_PZ, pz_free, dat_pz_free(h), 1);
}

DISPATCH(service_points)
{
	open_ia();
	IA(psp_create, dat_psp_create(h, W(1), P(2), W(3), P(4)), 5);
	IA(psp_create_any, dat_psp_create_any(h, P(1), P(2), W(3), P(4)), 5);
	OBJECT(HANDLE_PSP, psp_query, dat_psp_query(h, W(1), P(2)), 3);
	OBJECT(HANDLE_PSP, psp_free, dat_psp_free(h), 1);
	IA(rsp_create, dat_rsp_create(h, W(1), P(2), P(3), P(4)), 5);
	OBJECT(HANDLE_RSP, rsp_query, dat_rsp_query(h, W(1), P(2)), 3);
	OBJECT(HANDLE_RSP, rsp_free, dat_rsp_free(h), 1);
	IA(csp_create, dat_csp_create(h, P(1), P(2), P(3), P(4)), 5);
	OBJECT(HANDLE_CSP, csp_query, dat_csp_query(h, W(1), P(2)), 3);
	OBJECT(HANDLE_CSP, csp_free, dat_csp_free(h), 1);
	OBJECT(HANDLE_CR, cr_query, dat_cr_query(h, W(1), P(2)), 3);
	OBJECT(HANDLE_CR, cr_accept, dat_cr_accept(h, P(1), W(2), P(3)), 4);
	OBJECT(HANDLE_CR, cr_reject, dat_cr_reject(h, W(1), P(2)), 3);
	OBJECT(HANDLE_CR, cr_handoff, dat_cr_handoff(h, W(1)), 2);
}

DISPATCH(srq)
{
	open_ia();
	IA(srq_create, dat_srq_create(h, P(1), P(2), P(3)), 4);
	OBJECT(HANDLE_SRQ, srq_query, dat_srq_query(h, W(1), P(2)), 3);
	OBJECT(HANDLE_SRQ, srq_post_recv, dat_srq_post_recv(h, W(1), P(2), C(3)), 4);
	OBJECT(HANDLE_SRQ, srq_resize, dat_srq_resize(h, W(1)), 2);
	OBJECT(HANDLE_SRQ, srq_set_lw, dat_srq_set_lw(h, W(1)), 2);
	OBJECT(HANDLE_SRQ, srq_free, dat_srq_free(h), 1);
}

/* An older provider may leave slots empty that its registry had no function for. */
DISPATCH(empty_slots)
{
	const DAT_RETURN none = FAKE_ERROR(DAT_NOT_IMPLEMENTED, 0);
	DAT_HANDLE o = &object;

	open_ia();
	memset(table.slots, 0, sizeof(table.slots));
	CU_ASSERT_EQUAL(dat_cno_fd_create(live, P(1), P(2)), none);
	CU_ASSERT_EQUAL(dat_cno_trigger(o, P(1)), none);
	CU_ASSERT_EQUAL(dat_csp_create(live, P(1), P(2), P(3), P(4)), none);
	CU_ASSERT_EQUAL(dat_csp_query(o, W(1), P(2)), none);
	CU_ASSERT_EQUAL(dat_csp_free(o), none);
	CU_ASSERT_EQUAL(dat_ep_common_connect(o, P(1), W(2), W(3), P(4)), none);
	CU_ASSERT_EQUAL(dat_ep_post_send_with_invalidate(o, W(1), P(2), C(3), W(4), W(5), W(6)),
			none);
	CU_ASSERT_EQUAL(dat_ep_post_rdma_read_to_rmr(o, P(1), C(2), P(3), W(4)), none);
	CU_ASSERT_EQUAL(dat_rmr_create_for_ep(o, P(1)), none);
	CU_ASSERT_EQUAL(dat_extension_op(live, 1), none);
}

static DAT_RETURN refuse(void)
{
	return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
}

static DAT_RETURN type_ep(DAT_HANDLE handle, DAT_HANDLE_TYPE *type)
{
	(void)handle;
	*type = DAT_HANDLE_TYPE_EP;
	return DAT_SUCCESS;
}

/* With its bit in the log mask set, a refused call is logged with function, object and argument. */
static void refusals(void)
{
	struct fake_capture capture;
	char object_text[40];
	const char *said;
	unsigned mask = atomic_load(&log_mask);

	aim(offsetof(DAT_PROVIDER, ep_connect_func));
	table.provider.ep_connect_func = (void *)refuse;
	table.provider.get_handle_type_func = type_ep;
	capture = fake_capture(STDERR_FILENO);
	dat_ep_connect(&object, NULL, 1, 2, 3, NULL, 4, 5);
	dat_ep_connect(NULL, NULL, 1, 2, 3, NULL, 4, 5);
	CU_ASSERT_STRING_EQUAL(fake_captured(capture), "");

	log_more(REG_LOG_CONSUMER);
	capture = fake_capture(STDERR_FILENO);
	CU_ASSERT_EQUAL(dat_ep_connect(&object, NULL, 1, 2, 3, NULL, 4, 5), refuse());
	CU_ASSERT_EQUAL(dat_ep_disconnect(NULL, 0), bad_handle(DAT_INVALID_HANDLE_EP));
	said = fake_captured(capture);
	snprintf(object_text, sizeof(object_text), "dat_ep_connect of EP %p: ", (void *)&object);
	CU_ASSERT_PTR_NOT_NULL(strstr(said, object_text));
	CU_ASSERT_PTR_NOT_NULL(
		strstr(said, "DAT_INVALID_PARAMETER DAT_INVALID_ARG3 (conn_qual)\n"));
	CU_ASSERT_PTR_NOT_NULL(strstr(said, "dat_ep_disconnect of what is no object: "
					    "DAT_INVALID_HANDLE DAT_INVALID_HANDLE_EP\n"));
	atomic_store(&log_mask, mask);
}

static const struct unit_test tests[] = {
	{ "context and type of any handle; dat_ia_query", any_handle },
	{ "dat_evd_*", evd },
	{ "dat_cno_*", cno },
	{ "dat_ep_*", ep },
	{ "dat_ep_post_*", post },
	{ "dat_lmr_*, dat_rmr_*, dat_pz_*", memory },
	{ "dat_psp_*, dat_rsp_*, dat_csp_*, dat_cr_*", service_points },
	{ "dat_srq_*", srq },
	{ "functions without a slot in the provider: NOT_IMPLEMENTED", empty_slots },
	{ "a refused call is logged with its object and argument", refusals },
};

UNIT_MAIN("dispatch", tests)
