/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* RMRs over the fake device: the checks, the requests to the device, and the end of a binding. */
#include <dat2/dat_ib_extensions.h>
#include "test/unit/rig_clock.h"

#define READ  DAT_MEM_PRIV_REMOTE_READ_FLAG
#define WRITE DAT_MEM_PRIV_REMOTE_WRITE_FLAG
#define VA    DAT_VA_TYPE_VA

static struct rig rig;
static DAT_LMR_HANDLE lmr;
static DAT_RMR_HANDLE rmr; /* an RMR of PZ scope */
static DAT_RMR_HANDLE for_ep;
static char memory[256];
static DAT_LMR_TRIPLET part;
static DAT_LMR_TRIPLET nothing;
static const DAT_RMR_COOKIE cookie = { .as_64 = 0x1122334455667788 };

static DAT_LMR_HANDLE lmr_open(DAT_PZ_HANDLE pz, DAT_MEM_PRIV_FLAGS privileges)
{
	DAT_REGION_DESCRIPTION region = { .for_va = memory };
	DAT_LMR_HANDLE new = DAT_HANDLE_NULL;

	MUST(dat_lmr_create(rig.ia, DAT_MEM_TYPE_VIRTUAL, region, sizeof(memory), pz, privileges,
			    VA, &new, NULL, NULL, NULL, NULL));
	return new;
}

static void setup(void)
{
	DAT_EP_ATTR attr = rig_attr();

	rig_open(&rig, &attr);
	rig_connect(&rig);
	lmr = lmr_open(rig.pz, DAT_MEM_PRIV_ALL_FLAG);
	MUST(dat_rmr_create(rig.pz, &rmr));
	MUST(dat_rmr_create_for_ep(rig.pz, &for_ep));
	part = (DAT_LMR_TRIPLET){ (uintptr_t)memory + 16, 32, FAKE_LKEY };
	fake.posts = 0;
}

static void teardown(void)
{
	/* frees the endpoint; binds in flight end with it */
	if (rig.ep)
		MUST(dat_ep_free(rig.ep));
	rig.ep = DAT_HANDLE_NULL;
	MUST(dat_rmr_free(rmr));
	MUST(dat_rmr_free(for_ep));
	MUST(dat_lmr_free(lmr));
	rig_close(&rig);
}

static DAT_RETURN rmr_bind(DAT_RMR_HANDLE which, const DAT_LMR_TRIPLET *triplet,
			   DAT_RMR_CONTEXT *context)
{
	return dat_rmr_bind(which, lmr, triplet, READ, VA, rig.ep, cookie, 0, context);
}

static void expect_bound(DAT_RMR_HANDLE handle, DAT_DTO_COMPLETION_STATUS status)
{
	DAT_EVENT event = rig_take(rig.request);
	const DAT_RMR_BIND_COMPLETION_EVENT_DATA *data =
		&event.event_data.rmr_completion_event_data;

	CU_ASSERT_EQUAL(event.event_number, DAT_RMR_BIND_COMPLETION_EVENT);
	CU_ASSERT_PTR_EQUAL(data->rmr_handle, handle);
	CU_ASSERT_EQUAL(data->user_cookie.as_64, cookie.as_64);
	CU_ASSERT_EQUAL(data->status, status);
}

static void complete(DAT_DTO_COMPLETION_STATUS status)
{
	rig_complete(rig.request, fake.last.wr_id, status, 0);
}

static bool is_bound(DAT_RMR_HANDLE handle)
{
	DAT_RMR_PARAM param;

	return dat_rmr_query(handle, DAT_RMR_FIELD_ALL, &param) == DAT_SUCCESS;
}

static void test_create(void)
{
	DAT_RMR_HANDLE new = DAT_HANDLE_NULL;

	setup();
	IS(dat_rmr_create(rig.ep, &new), E(INVALID_HANDLE, INVALID_HANDLE_PZ));
	IS(dat_rmr_create_for_ep(lmr, &new), E(INVALID_HANDLE, INVALID_HANDLE_PZ));
	IS(dat_rmr_create(rig.pz, NULL), E(INVALID_PARAMETER, INVALID_ARG2));
	IS(dat_rmr_create_for_ep(rig.pz, NULL), E(INVALID_PARAMETER, INVALID_ARG2));
	fake.refuse = E(INSUFFICIENT_RESOURCES, RESOURCE_MEMORY_REGION);
	IS(dat_rmr_create(rig.pz, &new), E(INSUFFICIENT_RESOURCES, RESOURCE_MEMORY_REGION));
	fake.devices[0].attr.mw_type1 = false;
	IS(dat_rmr_create(rig.pz, &new), E0(MODEL_NOT_SUPPORTED));
	MUST(dat_rmr_create_for_ep(rig.pz, &new));
	MUST(dat_rmr_free(new));
	fake.devices[0].attr.mw_type2 = false;
	new = DAT_HANDLE_NULL;
	IS(dat_rmr_create_for_ep(rig.pz, &new), E0(MODEL_NOT_SUPPORTED));
	CU_ASSERT_PTR_EQUAL(new, DAT_HANDLE_NULL);
	IS(dat_pz_free(rig.pz), E(INVALID_STATE, INVALID_STATE_PZ_IN_USE));
	teardown();
}

static void test_query(void)
{
	DAT_RMR_CONTEXT context;
	DAT_RMR_PARAM param;

	setup();
	IS(dat_rmr_query(lmr, 0, &param), E(INVALID_HANDLE, INVALID_HANDLE_RMR));
	IS(dat_rmr_query(rmr, 0, NULL), E(INVALID_PARAMETER, INVALID_ARG3));
	IS(dat_rmr_query(rmr, 0x80, &param), E(INVALID_PARAMETER, INVALID_ARG2));
	IS(dat_rmr_query(rmr, DAT_RMR_FIELD_ALL, &param), E(INVALID_PARAMETER, INVALID_ARG2));
	MUST(dat_rmr_query(rmr, DAT_RMR_FIELD_ALL & ~DAT_RMR_FIELD_LMR_TRIPLET, &param));
	CU_ASSERT_PTR_EQUAL(param.ia_handle, rig.ia);
	CU_ASSERT_PTR_EQUAL(param.pz_handle, rig.pz);
	CU_ASSERT_EQUAL(param.rmr_scope, DAT_RMR_SCOPE_PZ);
	CU_ASSERT_EQUAL(param.rmr_context, 0);
	MUST(dat_rmr_bind(for_ep, lmr, &part, WRITE, DAT_VA_TYPE_ZB, rig.ep, cookie, 0, &context));
	MUST(dat_rmr_query(for_ep, DAT_RMR_FIELD_ALL, &param));
	CU_ASSERT_EQUAL(param.rmr_scope, DAT_RMR_SCOPE_EP);
	CU_ASSERT_EQUAL(param.rmr_context, context);
	CU_ASSERT_EQUAL(param.lmr_triplet.virtual_address, part.virtual_address);
	CU_ASSERT_EQUAL(param.lmr_triplet.segment_length, 32);
	CU_ASSERT_EQUAL(param.mem_priv, WRITE);
	CU_ASSERT_EQUAL(param.va_type, DAT_VA_TYPE_ZB);
	teardown();
}

static void test_bind_arguments(void)
{
	DAT_RMR_CONTEXT context = 0x55;
	DAT_LMR_TRIPLET other = part;

	setup();
	other = part;
	IS(rmr_bind(lmr, &part, &context), E(INVALID_HANDLE, INVALID_HANDLE_RMR));
	IS(dat_rmr_bind(rmr, lmr, &part, READ, VA, rig.pz, cookie, 0, &context),
	   E(INVALID_HANDLE, INVALID_HANDLE_EP));
	IS(rmr_bind(rmr, NULL, &context), E(INVALID_PARAMETER, INVALID_ARG3));
	IS(dat_rmr_bind(rmr, lmr, &part, READ, VA, rig.ep, cookie, 0x80, &context),
	   E(INVALID_PARAMETER, INVALID_ARG8));
	IS(dat_rmr_bind(rmr, lmr, &part, READ, VA, rig.ep, cookie, DAT_COMPLETION_UNSIGNALLED_FLAG,
			&context),
	   E(INVALID_PARAMETER, INVALID_ARG8));
	IS(rmr_bind(rmr, &part, NULL), E(INVALID_PARAMETER, INVALID_ARG9));
	IS(dat_rmr_bind(rmr, rig.pz, &part, READ, VA, rig.ep, cookie, 0, &context),
	   E(INVALID_HANDLE, INVALID_HANDLE_LMR));
	other.lmr_context++;
	IS(rmr_bind(rmr, &other, &context), E(INVALID_PARAMETER, INVALID_ARG3));
	other = part;
	other.segment_length = sizeof(memory) - 15;
	IS(rmr_bind(rmr, &other, &context), E(INVALID_PARAMETER, INVALID_ARG3));
	other.virtual_address = (uintptr_t)memory - 1;
	other.segment_length = 1;
	IS(rmr_bind(rmr, &other, &context), E(INVALID_PARAMETER, INVALID_ARG3));
	IS(dat_rmr_bind(rmr, lmr, &part, 0x400, VA, rig.ep, cookie, 0, &context),
	   E(INVALID_PARAMETER, INVALID_ARG4));
	IS(dat_rmr_bind(rmr, lmr, &part, READ, 2, rig.ep, cookie, 0, &context),
	   E(INVALID_PARAMETER, INVALID_ARG5));
	IS(dat_rmr_bind(rmr, lmr, &part, READ, DAT_VA_TYPE_ZB, rig.ep, cookie, 0, &context),
	   E0(MODEL_NOT_SUPPORTED));
	CU_ASSERT_EQUAL(context, 0x55);
	CU_ASSERT_EQUAL(fake.posts, 0);
	teardown();
}

static void test_bind_zones_and_privileges(void)
{
	DAT_RMR_CONTEXT context;
	DAT_LMR_HANDLE elsewhere, readable;
	DAT_RMR_HANDLE stranger;
	DAT_PZ_HANDLE pz;

	setup();
	MUST(dat_pz_create(rig.ia, &pz));
	elsewhere = lmr_open(pz, DAT_MEM_PRIV_ALL_FLAG);
	readable = lmr_open(rig.pz, DAT_MEM_PRIV_LOCAL_READ_FLAG);
	MUST(dat_rmr_create(pz, &stranger));
	IS(dat_rmr_bind(rmr, elsewhere, &part, READ, VA, rig.ep, cookie, 0, &context),
	   E(INVALID_PARAMETER, INVALID_ARG6));
	IS(rmr_bind(stranger, &part, &context), E(INVALID_PARAMETER, INVALID_ARG6));
	IS(rmr_bind(stranger, &nothing, &context), E(INVALID_PARAMETER, INVALID_ARG6));
	IS(dat_rmr_bind(rmr, readable, &part, WRITE, VA, rig.ep, cookie, 0, &context),
	   E(PRIVILEGES_VIOLATION, PRIVILEGES_RDMA_WRITE));
	IS(dat_rmr_bind(rmr, readable, &part, 0x40, VA, rig.ep, cookie, 0, &context),
	   E(PRIVILEGES_VIOLATION, PRIVILEGES_RDMA_WRITE));
	MUST(dat_rmr_bind(rmr, readable, &part, READ, VA, rig.ep, cookie, 0, &context));
	complete(DAT_DTO_SUCCESS);
	expect_bound(rmr, DAT_DTO_SUCCESS);
	MUST(dat_rmr_free(stranger));
	MUST(dat_lmr_free(elsewhere));
	MUST(dat_pz_free(pz));
	MUST(dat_rmr_free(rmr));
	MUST(dat_lmr_free(readable));
	MUST(dat_rmr_create(rig.pz, &rmr));
	teardown();
}

static void test_states_and_room(void)
{
	DAT_EP_ATTR attr = rig_attr();
	DAT_RMR_CONTEXT context;
	DAT_EP_HANDLE idle;
	int i;

	setup();
	MUST(dat_ep_create(rig.ia, rig.pz, rig.recv, rig.request, rig.conn, &attr, &idle));
	IS(dat_rmr_bind(rmr, lmr, &part, READ, VA, idle, cookie, 0, &context),
	   E(INVALID_STATE, INVALID_STATE_EP_UNCONNECTED));
	MUST(dat_ep_free(idle));
	fake.qp = NULL;
	for (i = 0; i < 8; i++)
		MUST(rmr_bind(rmr, &part, &context));
	IS(rmr_bind(rmr, &part, &context), E(INSUFFICIENT_RESOURCES, RESOURCE_MEMORY));
	IS(rmr_bind(rmr, &nothing, &context), E(INSUFFICIENT_RESOURCES, RESOURCE_MEMORY));
	complete(DAT_DTO_SUCCESS);
	expect_bound(rmr, DAT_DTO_SUCCESS);
	fake.refuse = E0(INTERNAL_ERROR);
	IS(rmr_bind(for_ep, &part, &context), E0(INTERNAL_ERROR));
	CU_ASSERT_FALSE(is_bound(for_ep));
	teardown();
}

static void test_at_the_device(void)
{
	DAT_RMR_CONTEXT first, second;

	setup();
	MUST(dat_rmr_bind(rmr, lmr, &part, READ | WRITE | DAT_MEM_PRIV_LOCAL_READ_FLAG, VA, rig.ep,
			  cookie, DAT_COMPLETION_BARRIER_FENCE_FLAG, &first));
	CU_ASSERT_EQUAL(fake.last.op, IB_OP_BIND);
	CU_ASSERT_EQUAL(fake.last.flags, IB_POST_SIGNALED | IB_POST_FENCE);
	CU_ASSERT_EQUAL(fake.last.bind.address, part.virtual_address);
	CU_ASSERT_EQUAL(fake.last.bind.length, 32);
	CU_ASSERT_FALSE(fake.last.bind.zero_based);
	complete(DAT_DTO_SUCCESS);
	expect_bound(rmr, DAT_DTO_SUCCESS);
	MUST(rmr_bind(rmr, &part, &second));
	CU_ASSERT_NOT_EQUAL(first, second);
	CU_ASSERT_EQUAL(fake.posts, 2);
	MUST(rmr_bind(rmr, &nothing, &second));
	CU_ASSERT_EQUAL(second, 0);
	CU_ASSERT_EQUAL(fake.last.bind.length, 0);
	CU_ASSERT_FALSE(is_bound(rmr));
	teardown();
}

static void test_scope_of_an_ep_at_the_device(void)
{
	DAT_RMR_CONTEXT first, second;
	DAT_EVENT event;

	setup();
	/* already unbound: the request still completes */
	MUST(rmr_bind(for_ep, &nothing, NULL));
	CU_ASSERT_EQUAL(fake.last.op, IB_OP_WRITE);
	complete(DAT_DTO_SUCCESS);
	expect_bound(for_ep, DAT_DTO_SUCCESS);
	MUST(rmr_bind(for_ep, &part, &first));
	complete(DAT_DTO_SUCCESS);
	expect_bound(for_ep, DAT_DTO_SUCCESS);
	/* bound again: two requests to the device, one event for the consumer */
	fake.posts = 0;
	MUST(rmr_bind(for_ep, &part, &second));
	CU_ASSERT_EQUAL(fake.posts, 2);
	CU_ASSERT_EQUAL(fake.last.op, IB_OP_BIND);
	rig_complete(rig.request, fake.last.wr_id - 1, DAT_DTO_SUCCESS, 0);
	IS(dat_evd_dequeue(rig.request, &event), DAT_QUEUE_EMPTY);
	complete(DAT_DTO_SUCCESS);
	expect_bound(for_ep, DAT_DTO_SUCCESS);
	MUST(rmr_bind(for_ep, &nothing, &first));
	CU_ASSERT_EQUAL(fake.last.op, IB_OP_INV);
	CU_ASSERT_EQUAL(fake.last.word, second);
	complete(DAT_DTO_SUCCESS);
	expect_bound(for_ep, DAT_DTO_SUCCESS);
	CU_ASSERT_FALSE(is_bound(for_ep));
	teardown();
}

static void test_lmr_in_use(void)
{
	DAT_RMR_CONTEXT context;

	setup();
	MUST(rmr_bind(rmr, &part, &context));
	IS(dat_lmr_free(lmr), E(INVALID_STATE, INVALID_STATE_LMR_IN_USE));
	complete(DAT_DTO_SUCCESS);
	expect_bound(rmr, DAT_DTO_SUCCESS);
	MUST(rmr_bind(rmr, &part, &context));
	complete(DAT_DTO_SUCCESS);
	expect_bound(rmr, DAT_DTO_SUCCESS);
	IS(dat_lmr_free(lmr), E(INVALID_STATE, INVALID_STATE_LMR_IN_USE));
	MUST(rmr_bind(rmr, &nothing, &context));
	complete(DAT_DTO_SUCCESS);
	expect_bound(rmr, DAT_DTO_SUCCESS);
	MUST(dat_lmr_free(lmr));
	lmr = lmr_open(rig.pz, DAT_MEM_PRIV_ALL_FLAG);
	MUST(rmr_bind(rmr, &part, &context));
	MUST(dat_rmr_free(rmr)); /* freed while the bind is in flight */
	IS(dat_rmr_free(rmr), E(INVALID_HANDLE, INVALID_HANDLE_RMR));
	complete(DAT_DTO_ERR_FLUSHED);
	expect_bound(rmr, DAT_DTO_ERR_FLUSHED);
	MUST(dat_lmr_free(lmr));
	lmr = lmr_open(rig.pz, DAT_MEM_PRIV_ALL_FLAG);
	MUST(dat_rmr_create(rig.pz, &rmr));
	teardown();
}

static void test_failures(void)
{
	DAT_RMR_CONTEXT context;
	uint64_t first;

	setup();
	MUST(rmr_bind(rmr, &part, &context));
	first = fake.last.wr_id;
	MUST(rmr_bind(rmr, &part, &context));
	/* the failure of a binding that was replaced does not change the RMR */
	rig_complete(rig.request, first, DAT_DTO_ERR_LOCAL_PROTECTION, 0);
	expect_bound(rmr, DAT_RMR_OPERATION_FAILED);
	CU_ASSERT_TRUE(is_bound(rmr));
	complete(DAT_DTO_ERR_FLUSHED);
	expect_bound(rmr, DAT_DTO_ERR_FLUSHED);
	CU_ASSERT_FALSE(is_bound(rmr));
	MUST(dat_lmr_free(lmr));
	lmr = lmr_open(rig.pz, DAT_MEM_PRIV_ALL_FLAG);
	fake_run_timers();
	CU_ASSERT_EQUAL(rig_take(rig.conn).event_number, DAT_CONNECTION_EVENT_BROKEN);
	teardown();
}

static void fail_the_bind(void)
{
	complete(DAT_DTO_ERR_LOCAL_PROTECTION);
	expect_bound(for_ep, DAT_RMR_OPERATION_FAILED);
}

/* The completion is taken before the device's function has returned to dat_rmr_bind. */
static void test_fails_while_posted(void)
{
	DAT_RMR_CONTEXT context;

	setup();
	MUST(rmr_bind(for_ep, &part, &context));
	complete(DAT_DTO_SUCCESS);
	expect_bound(for_ep, DAT_DTO_SUCCESS);
	fake.binding = fail_the_bind;
	OK(rmr_bind(for_ep, &part, &context));
	fake.binding = NULL;
	CU_ASSERT_FALSE(is_bound(for_ep));
	teardown();
}

static void test_end_of_the_connection(void)
{
	DAT_RMR_CONTEXT context;

	setup();
	MUST(rmr_bind(rmr, &part, &context));
	MUST(rmr_bind(for_ep, &part, &context));
	fake.upcalls.conn(rig.ep, fake.conn, IB_CONN_DISCONNECTED, NULL, 0);
	pass(20); /* binds are outstanding */
	CU_ASSERT_TRUE(is_bound(rmr));
	CU_ASSERT_FALSE(is_bound(for_ep));
	rig_take(rig.conn);
	/* flushed, which unbinds the RMR */
	MUST(rmr_bind(for_ep, &part, &context));
	complete(DAT_DTO_ERR_FLUSHED);
	expect_bound(for_ep, DAT_DTO_ERR_FLUSHED);
	CU_ASSERT_FALSE(is_bound(for_ep));
	MUST(rmr_bind(for_ep, &part, &context));
	MUST(dat_ep_free(rig.ep));
	rig.ep = DAT_HANDLE_NULL;
	CU_ASSERT_FALSE(is_bound(for_ep));
	teardown();
}

/* ---- binds in flight ---- */

/*
 * The RMR is freed while the bind waits in the send queue: window and region exist until the device
 * has executed the bind.
 */
static void test_freed_in_flight(DAT_COMPLETION_FLAGS flags)
{
	DAT_RMR_CONTEXT context;
	DAT_EVENT event;
	unsigned windows;

	setup();
	windows = fake.mws;
	MUST(dat_rmr_bind(rmr, lmr, &part, READ, VA, rig.ep, cookie, flags, &context));
	CU_ASSERT_TRUE(fake.last.flags & IB_POST_SIGNALED);
	MUST(dat_rmr_free(rmr));
	CU_ASSERT_EQUAL(fake.mws, windows);
	IS(dat_lmr_free(lmr), E(INVALID_STATE, INVALID_STATE_LMR_IN_USE));
	complete(DAT_DTO_SUCCESS);
	if (flags)
		IS(dat_evd_dequeue(rig.request, &event), DAT_QUEUE_EMPTY);
	else
		expect_bound(rmr, DAT_DTO_SUCCESS);
	/* the event thread closes the window */
	fake_run_timers();
	CU_ASSERT_EQUAL(fake.mws, windows - 1);
	MUST(dat_lmr_free(lmr));
	lmr = lmr_open(rig.pz, DAT_MEM_PRIV_ALL_FLAG);
	MUST(dat_rmr_create(rig.pz, &rmr));
	teardown();
}

static void test_rmr_freed_in_flight(void)
{
	test_freed_in_flight(DAT_COMPLETION_DEFAULT_FLAG);
	test_freed_in_flight(DAT_COMPLETION_SUPPRESS_FLAG);
}

static void test_ep_freed_in_flight(void)
{
	DAT_RMR_CONTEXT context;
	unsigned windows;

	setup();
	windows = fake.mws;
	MUST(rmr_bind(rmr, &part, &context));
	MUST(dat_rmr_free(rmr));
	IS(dat_lmr_free(lmr), E(INVALID_STATE, INVALID_STATE_LMR_IN_USE));
	MUST(dat_ep_free(rig.ep));
	rig.ep = DAT_HANDLE_NULL;
	CU_ASSERT_EQUAL(fake.mws, windows - 1);
	MUST(dat_lmr_free(lmr));
	lmr = lmr_open(rig.pz, DAT_MEM_PRIV_ALL_FLAG);
	MUST(dat_rmr_create(rig.pz, &rmr));
	teardown();
}

/*
 * The RMR is bound to another LMR while the first bind is in flight: both LMRs are in use until
 * that bind completes.
 */
static void test_superseded_in_flight(void)
{
	DAT_LMR_HANDLE other;
	DAT_RMR_CONTEXT context;
	uint64_t first;

	setup();
	other = lmr_open(rig.pz, DAT_MEM_PRIV_ALL_FLAG);
	MUST(rmr_bind(rmr, &part, &context));
	first = fake.last.wr_id;
	MUST(dat_rmr_bind(rmr, other, &part, READ, VA, rig.ep, cookie, 0, &context));
	IS(dat_lmr_free(lmr), E(INVALID_STATE, INVALID_STATE_LMR_IN_USE));
	rig_complete(rig.request, first, DAT_DTO_SUCCESS, 0);
	expect_bound(rmr, DAT_DTO_SUCCESS);
	MUST(dat_lmr_free(lmr));
	lmr = lmr_open(rig.pz, DAT_MEM_PRIV_ALL_FLAG);
	complete(DAT_DTO_SUCCESS);
	expect_bound(rmr, DAT_DTO_SUCCESS);
	IS(dat_lmr_free(other), E(INVALID_STATE, INVALID_STATE_LMR_IN_USE));
	MUST(dat_rmr_free(rmr));
	MUST(dat_lmr_free(other));
	MUST(dat_rmr_create(rig.pz, &rmr));
	teardown();
}

/*
 * The window is replaced while the old one's bind waits: the old window exists until that bind
 * completes.
 */
static void test_renewed_in_flight(void)
{
	DAT_RMR_CONTEXT context;
	unsigned windows;
	uint64_t first;

	setup();
	windows = fake.mws;
	MUST(rmr_bind(for_ep, &part, &context));
	first = fake.last.wr_id;
	fake.upcalls.conn(rig.ep, fake.conn, IB_CONN_DISCONNECTED, NULL, 0);
	pass(20); /* binds are outstanding */
	rig_take(rig.conn);
	MUST(rmr_bind(for_ep, &part, &context));
	CU_ASSERT_EQUAL(fake.mws, windows + 1);
	rig_complete(rig.request, first, DAT_DTO_ERR_FLUSHED, 0);
	expect_bound(for_ep, DAT_DTO_ERR_FLUSHED);
	IS(dat_lmr_free(lmr), E(INVALID_STATE, INVALID_STATE_LMR_IN_USE));
	CU_ASSERT_EQUAL(fake.mws, windows);
	complete(DAT_DTO_ERR_FLUSHED);
	expect_bound(for_ep, DAT_DTO_ERR_FLUSHED);
	MUST(dat_lmr_free(lmr));
	lmr = lmr_open(rig.pz, DAT_MEM_PRIV_ALL_FLAG);
	teardown();
}

/* More binds than the list of binds in flight can hold. */
static void test_many_binds(void)
{
	DAT_RMR_CONTEXT context;
	unsigned windows, i;

	setup();
	windows = fake.mws;
	for (i = 0; i < 1000; i++) {
		MUST(rmr_bind(i % 2 ? for_ep : rmr, &part, &context));
		complete(DAT_DTO_SUCCESS);
		expect_bound(i % 2 ? for_ep : rmr, DAT_DTO_SUCCESS);
	}
	CU_ASSERT_EQUAL(fake.mws, windows);
	teardown();
}

static const struct unit_test tests[] = {
	{ "create", test_create },
	{ "query", test_query },
	{ "arguments", test_bind_arguments },
	{ "a bind checks zones and privileges", test_bind_zones_and_privileges },
	{ "a bind checks the EP's state and its queue", test_states_and_room },
	{ "binds reach the device", test_at_the_device },
	{ "a new bind of an RMR of EP scope makes two requests and one event",
	  test_scope_of_an_ep_at_the_device },
	{ "an LMR is in use while an RMR is bound to it", test_lmr_in_use },
	{ "failures", test_failures },
	{ "a bind that fails while it is posted", test_fails_while_posted },
	{ "the end of the connection", test_end_of_the_connection },
	{ "in flight: the RMR is freed", test_rmr_freed_in_flight },
	{ "in flight: the EP is freed", test_ep_freed_in_flight },
	{ "in flight: bound to another LMR", test_superseded_in_flight },
	{ "in flight: the window is made anew", test_renewed_in_flight },
	{ "in flight: one after the other, many", test_many_binds },
};

UNIT_MAIN("rmr", tests)
