/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* RMRs over the software device: what a peer can do with a context, and when its rights end. */
#include <string.h>
#include "test/unit/ep_util.h"

#define READ   DAT_MEM_PRIV_REMOTE_READ_FLAG
#define WRITE  DAT_MEM_PRIV_REMOTE_WRITE_FLAG
#define OFFSET 1000u
#define SIZE   100u

static struct env env;
static struct end a, b; /* b grants access, a uses it */
static DAT_RMR_HANDLE rmr;

static void connect_ends(void)
{
	end_open(&env, &a, NULL);
	end_open(&env, &b, NULL);
	connect_pair(&a, &b);
}

static void setup(DAT_RMR_SCOPE scope)
{
	env_open(&env);
	env_listen(&env);
	connect_ends();
	MUST(scope == DAT_RMR_SCOPE_EP ? dat_rmr_create_for_ep(env.pz, &rmr)
				       : dat_rmr_create(env.pz, &rmr));
}

static void teardown(void)
{
	end_close(&a);
	end_close(&b);
	MUST(dat_rmr_free(rmr));
	env_close(&env);
}

static void expect_bound(struct end *end)
{
	DAT_EVENT event;

	memset(&event, 0, sizeof(event));
	if (!event_next(end->request, &event))
		return;
	CU_ASSERT_EQUAL(event.event_number, DAT_RMR_BIND_COMPLETION_EVENT);
	CU_ASSERT_PTR_EQUAL(event.event_data.rmr_completion_event_data.rmr_handle, rmr);
	CU_ASSERT_EQUAL(event.event_data.rmr_completion_event_data.status, DAT_RMR_BIND_SUCCESS);
}

static DAT_RETURN try_bind(struct end *end, DAT_MEM_PRIV_FLAGS privileges, DAT_VA_TYPE va_type,
			   DAT_SEG_LENGTH length, DAT_RMR_CONTEXT *context)
{
	DAT_LMR_TRIPLET part = segment(&env, OFFSET, length);

	return dat_rmr_bind(rmr, env.lmr, &part, privileges, va_type, end->ep,
			    (DAT_RMR_COOKIE){ .as_64 = 3 }, 0, context);
}

static DAT_RMR_CONTEXT bound(struct end *end, DAT_MEM_PRIV_FLAGS privileges)
{
	DAT_RMR_CONTEXT context = 0;

	MUST(try_bind(end, privileges, DAT_VA_TYPE_VA, SIZE, &context));
	expect_bound(end);
	return context;
}

static void unbind(struct end *end)
{
	MUST(try_bind(end, READ, DAT_VA_TYPE_VA, 0, NULL));
	expect_bound(end);
}

/* Returns the status of an access by `end` to `length` bytes at `address`. */
static DAT_DTO_COMPLETION_STATUS reach(struct end *end, DAT_MEM_PRIV_FLAGS how, DAT_VADDR address,
				       DAT_SEG_LENGTH length, DAT_RMR_CONTEXT context)
{
	DAT_RMR_TRIPLET remote = { .virtual_address = address,
				   .segment_length = length,
				   .rmr_context = context };
	DAT_LMR_TRIPLET local = segment(&env, 0, length);
	DAT_DTO_COOKIE cookie = { .as_64 = 9 };
	DAT_EVENT event;

	memset(&event, 0, sizeof(event));
	MUST(how == READ ? dat_ep_post_rdma_read(end->ep, 1, &local, cookie, &remote, 0)
			 : dat_ep_post_rdma_write(end->ep, 1, &local, cookie, &remote, 0));
	CU_ASSERT_TRUE(event_next(end->request, &event));
	return event.event_data.dto_completion_event_data.status;
}

static DAT_VADDR target(void)
{
	return (uintptr_t)env.memory + OFFSET;
}

static void test_privileges(DAT_RMR_SCOPE scope, DAT_MEM_PRIV_FLAGS given)
{
	DAT_RMR_CONTEXT context;

	setup(scope);
	context = bound(&b, given);
	memset(env.memory, 0x33, SIZE);
	IS(reach(&a, given, target(), SIZE, context), DAT_DTO_SUCCESS);
	CU_ASSERT_EQUAL(env.memory[OFFSET], given == WRITE ? 0x33 : 0);
	CU_ASSERT_EQUAL(env.memory[0], given == WRITE ? 0x33 : 0);
	IS(reach(&a, given == READ ? WRITE : READ, target(), SIZE, context),
	   DAT_DTO_ERR_REMOTE_ACCESS);
	teardown();
}

static void test_read_only(void)
{
	test_privileges(DAT_RMR_SCOPE_PZ, READ);
	test_privileges(DAT_RMR_SCOPE_EP, READ);
}

static void test_write_only(void)
{
	test_privileges(DAT_RMR_SCOPE_PZ, WRITE);
	test_privileges(DAT_RMR_SCOPE_EP, WRITE);
}

static void test_bounds(void)
{
	DAT_RMR_CONTEXT context;

	setup(DAT_RMR_SCOPE_PZ);
	context = bound(&b, READ);
	IS(reach(&a, READ, target() + SIZE - 1, 1, context), DAT_DTO_SUCCESS);
	IS(reach(&a, READ, target() + 1, SIZE, context), DAT_DTO_ERR_REMOTE_ACCESS);
	teardown();
}

static void test_rebind(DAT_RMR_SCOPE scope)
{
	DAT_RMR_CONTEXT first, second;

	setup(scope);
	first = bound(&b, READ);
	second = bound(&b, WRITE);
	CU_ASSERT_NOT_EQUAL(first, second);
	IS(reach(&a, WRITE, target(), SIZE, second), DAT_DTO_SUCCESS);
	IS(reach(&a, READ, target(), SIZE, first), DAT_DTO_ERR_REMOTE_ACCESS);
	teardown();
}

static void test_the_old_context_is_refused(void)
{
	test_rebind(DAT_RMR_SCOPE_PZ);
	test_rebind(DAT_RMR_SCOPE_EP);
}

static void test_unbind(DAT_RMR_SCOPE scope, bool by_free)
{
	DAT_RMR_CONTEXT context;

	setup(scope);
	context = bound(&b, READ);
	IS(dat_lmr_free(env.lmr), E(INVALID_STATE, INVALID_STATE_LMR_IN_USE));
	IS(reach(&a, READ, target(), SIZE, context), DAT_DTO_SUCCESS);
	if (by_free) {
		MUST(dat_rmr_free(rmr));
	} else {
		unbind(&b);
	}
	IS(reach(&a, READ, target(), SIZE, context), DAT_DTO_ERR_REMOTE_ACCESS);
	if (by_free)
		MUST(dat_rmr_create(env.pz, &rmr));
	teardown();
}

static void test_unbound_is_refused(void)
{
	test_unbind(DAT_RMR_SCOPE_PZ, false);
	test_unbind(DAT_RMR_SCOPE_EP, false);
}

static void test_free_while_bound(void)
{
	test_unbind(DAT_RMR_SCOPE_PZ, true);
	test_unbind(DAT_RMR_SCOPE_EP, true);
}

/* The bind waits behind a send for which the peer has no receive; its RMR is freed while it waits. */
static void test_free_in_flight(DAT_RMR_SCOPE scope)
{
	DAT_REGION_DESCRIPTION region;
	DAT_LMR_TRIPLET part;
	DAT_RMR_CONTEXT context;
	DAT_LMR_HANDLE lmr;
	DAT_EVENT event;

	setup(scope);
	region.for_va = env.memory + OFFSET;
	memset(&part, 0, sizeof(part));
	MUST(dat_lmr_create(env.ia, DAT_MEM_TYPE_VIRTUAL, region, SIZE, env.pz,
			    DAT_MEM_PRIV_ALL_FLAG, DAT_VA_TYPE_VA, &lmr, &part.lmr_context, NULL,
			    NULL, &part.virtual_address));
	part.segment_length = SIZE;
	MUST(try_send(&b, 7, 0));
	MUST(dat_rmr_bind(rmr, lmr, &part, READ, DAT_VA_TYPE_VA, b.ep,
			  (DAT_RMR_COOKIE){ .as_64 = 3 }, 0, &context));
	MUST(dat_rmr_free(rmr));
	IS(dat_lmr_free(lmr), E(INVALID_STATE, INVALID_STATE_LMR_IN_USE));
	post_recvs(&a, 1);
	expect_dto(b.request, b.ep, 7, DAT_DTO_SUCCESS);
	expect_bound(&b);
	CU_ASSERT_TRUE(event_next(a.recv, &event));
	CU_ASSERT_EQUAL(state_of(b.ep), DAT_EP_STATE_CONNECTED);
	MUST(dat_lmr_free(lmr));
	IS(reach(&a, READ, target(), SIZE, context), DAT_DTO_ERR_REMOTE_ACCESS);
	MUST(scope == DAT_RMR_SCOPE_EP ? dat_rmr_create_for_ep(env.pz, &rmr)
				       : dat_rmr_create(env.pz, &rmr));
	teardown();
}

static void test_freed_in_flight(void)
{
	test_free_in_flight(DAT_RMR_SCOPE_PZ);
	test_free_in_flight(DAT_RMR_SCOPE_EP);
}

static void test_scope(DAT_RMR_SCOPE scope, DAT_DTO_COMPLETION_STATUS status)
{
	DAT_RMR_CONTEXT context, other;
	struct end c, d;

	setup(scope);
	end_open(&env, &c, NULL);
	end_open(&env, &d, NULL);
	connect_pair(&c, &d);
	context = bound(&b, READ);
	if (scope == DAT_RMR_SCOPE_EP)
		IS(try_bind(&d, READ, DAT_VA_TYPE_VA, SIZE, &other), E0(INVALID_STATE));
	IS(reach(&a, READ, target(), SIZE, context), DAT_DTO_SUCCESS);
	IS(reach(&c, READ, target(), SIZE, context), status);
	end_close(&c);
	end_close(&d);
	teardown();
}

static void test_scopes(void)
{
	test_scope(DAT_RMR_SCOPE_PZ, DAT_DTO_SUCCESS);
#ifndef TEST_ONE /* DAT 1.2 has only one scope, and only virtual addresses */
	test_scope(DAT_RMR_SCOPE_EP, DAT_DTO_ERR_REMOTE_ACCESS);
#endif
}

#ifndef TEST_ONE
static void test_zero_based(void)
{
	DAT_RMR_CONTEXT context;

	setup(DAT_RMR_SCOPE_EP);
	memset(env.memory, 0x44, SIZE);
	MUST(try_bind(&b, WRITE, DAT_VA_TYPE_ZB, SIZE, &context));
	expect_bound(&b);
	IS(reach(&a, WRITE, 10, SIZE - 10, context), DAT_DTO_SUCCESS);
	CU_ASSERT_EQUAL(env.memory[OFFSET + 9], 0);
	CU_ASSERT_EQUAL(env.memory[OFFSET + 10], 0x44);
	IS(reach(&a, WRITE, target(), 1, context), DAT_DTO_ERR_REMOTE_ACCESS);
	teardown();
}

/* The window of a freed EP can no longer be unbound, and does not block anything. */
static void test_after_the_connection(void)
{
	DAT_RMR_CONTEXT context = 0;
	DAT_RMR_PARAM param;
	DAT_EVENT event;

	setup(DAT_RMR_SCOPE_EP);
	bound(&b, READ);
	disconnect_pair(&a, &b);
	IS(dat_rmr_query(rmr, DAT_RMR_FIELD_ALL, &param), E(INVALID_PARAMETER, INVALID_ARG2));
	/* in state D: flushed */
	MUST(try_bind(&b, READ, DAT_VA_TYPE_VA, SIZE, &context));
	memset(&event, 0, sizeof(event));
	CU_ASSERT_TRUE(event_next(b.request, &event));
	CU_ASSERT_EQUAL(event.event_number, DAT_RMR_BIND_COMPLETION_EVENT);
	CU_ASSERT_EQUAL(event.event_data.rmr_completion_event_data.status, DAT_DTO_ERR_FLUSHED);
	end_close(&a);
	end_close(&b);
	connect_ends();
	context = bound(&b, READ);
	IS(reach(&a, READ, target(), SIZE, context), DAT_DTO_SUCCESS);
	teardown();
}

static void test_lmr_after_the_connection(void)
{
	DAT_REGION_DESCRIPTION region;
	DAT_LMR_TRIPLET part;
	DAT_RMR_CONTEXT context;
	DAT_LMR_HANDLE lmr;

	setup(DAT_RMR_SCOPE_EP);
	region.for_va = env.memory;
	memset(&part, 0, sizeof(part));
	MUST(dat_lmr_create(env.ia, DAT_MEM_TYPE_VIRTUAL, region, SIZE, env.pz,
			    DAT_MEM_PRIV_ALL_FLAG, DAT_VA_TYPE_VA, &lmr, &part.lmr_context, NULL,
			    NULL, &part.virtual_address));
	part.segment_length = SIZE;
	MUST(dat_rmr_bind(rmr, lmr, &part, READ, DAT_VA_TYPE_VA, b.ep,
			  (DAT_RMR_COOKIE){ .as_64 = 3 }, 0, &context));
	expect_bound(&b);
	disconnect_pair(&a, &b);
	MUST(dat_lmr_free(lmr));
	teardown();
}

/* ---- invalidation by the peer ---- */

static DAT_RETURN send_invalidate(DAT_BOOLEAN invalidate, DAT_RMR_CONTEXT context)
{
	DAT_LMR_TRIPLET local = segment(&env, 0, 10);

	return dat_ep_post_send_with_invalidate(a.ep, 1, &local, (DAT_DTO_COOKIE){ .as_64 = 5 }, 0,
						invalidate, context);
}

static void expect_received(DAT_DTOS operation, DAT_RMR_CONTEXT context)
{
	DAT_DTO_COMPLETION_EVENT_DATA *dto;
	DAT_EVENT event;

	memset(&event, 0, sizeof(event));
	if (!event_next(b.recv, &event))
		return;
	dto = &event.event_data.dto_completion_event_data;
	CU_ASSERT_EQUAL(event.event_number, DAT_DTO_COMPLETION_EVENT);
	CU_ASSERT_EQUAL(dto->status, DAT_DTO_SUCCESS);
	CU_ASSERT_EQUAL(dto->operation, operation);
	CU_ASSERT_EQUAL(dto->rmr_context, context);
	CU_ASSERT_EQUAL(dto->transfered_length, 10);
}

static void test_remote_invalidate(void)
{
	DAT_RMR_CONTEXT first, second;
	DAT_RMR_PARAM param;

	setup(DAT_RMR_SCOPE_EP);
	post_recvs(&b, 2);
	first = bound(&b, READ);
	MUST(send_invalidate(DAT_FALSE, first));
	expect_received(DAT_DTO_RECEIVE, 0);
	expect_dto(a.request, a.ep, 5, DAT_DTO_SUCCESS);
	IS(reach(&a, READ, target(), SIZE, first), DAT_DTO_SUCCESS);
	MUST(send_invalidate(DAT_TRUE, first));
	expect_dto(a.request, a.ep, 5, DAT_DTO_SUCCESS);
	expect_received(DAT_DTO_RECEIVE_WITH_INVALIDATE, first);
	IS(dat_rmr_query(rmr, DAT_RMR_FIELD_ALL, &param), E(INVALID_PARAMETER, INVALID_ARG2));
	/* the handle can still be used */
	second = bound(&b, READ);
	IS(reach(&a, READ, target(), SIZE, second), DAT_DTO_SUCCESS);
	IS(reach(&a, READ, target(), SIZE, first), DAT_DTO_ERR_REMOTE_ACCESS);
	teardown();
}

static void test_invalidate_what_is_not_bound(void)
{
	DAT_EVENT event;

	setup(DAT_RMR_SCOPE_EP);
	post_recvs(&b, 1);
	MUST(send_invalidate(DAT_TRUE, env.rkey));
	memset(&event, 0, sizeof(event));
	CU_ASSERT_TRUE(event_next(a.request, &event));
	CU_ASSERT_NOT_EQUAL(event.event_data.dto_completion_event_data.status, DAT_DTO_SUCCESS);
	expect(a.conn, DAT_CONNECTION_EVENT_BROKEN, a.ep);
	teardown();
}

#endif

static const struct unit_test tests[] = {
	{ "an RMR that is bound for reading refuses writes", test_read_only },
	{ "an RMR that is bound for writing refuses reads", test_write_only },
	{ "an RMR refuses access beyond its range", test_bounds },
	{ "after a new bind the old context is refused", test_the_old_context_is_refused },
	{ "unbound: refused", test_unbound_is_refused },
	{ "the context of a freed RMR is refused", test_free_while_bound },
	{ "an RMR that is freed while its bind waits is bound, then closed", test_freed_in_flight },
	{ "a context of PZ scope is valid on other EPs, one of EP scope only on its own",
	  test_scopes },
#ifndef TEST_ONE
	{ "zero-based", test_zero_based },
	{ "an RMR whose connection ended can be bound through another EP",
	  test_after_the_connection },
	{ "after the end of a connection the LMR can be freed", test_lmr_after_the_connection },
	{ "a peer can invalidate an RMR", test_remote_invalidate },
	{ "a peer that invalidates another key breaks the connection",
	  test_invalidate_what_is_not_bound },
#endif
};

UNIT_MAIN("rmr_bind", tests)
