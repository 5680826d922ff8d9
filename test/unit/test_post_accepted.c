/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * Requests that the passive side posts between dat_cr_accept and ESTABLISHED, over the fake device:
 * they reach the device once the queue pair is up, not before.
 */
#include <dat2/dat_ib_extensions.h>
#include "test/unit/rig.h"

static struct rig rig;
static DAT_EVD_HANDLE requests;
static DAT_PSP_HANDLE psp;
static DAT_LMR_HANDLE lmr;
static DAT_RMR_HANDLE rmr;
static char memory[64];
static DAT_LMR_TRIPLET eight = { .segment_length = 8 }, pieces[2];
static DAT_RMR_TRIPLET remote = { .virtual_address = 0x2000,
				  .segment_length = 8,
				  .rmr_context = 1 };

static void setup(void)
{
	DAT_REGION_DESCRIPTION region = { .for_va = memory };
	DAT_EP_ATTR attr = rig_attr();

	attr.max_request_dtos = FAKE_MAX_WR;
	rig_open(&rig, &attr);
	requests = rig_evd(&rig, RIG_QLEN, DAT_EVD_CR_FLAG);
	MUST(dat_lmr_create(rig.ia, DAT_MEM_TYPE_VIRTUAL, region, sizeof(memory), rig.pz,
			    DAT_MEM_PRIV_ALL_FLAG, DAT_VA_TYPE_VA, &lmr, &eight.lmr_context, NULL,
			    NULL, NULL));
	eight.virtual_address = (uintptr_t)memory;
	pieces[0] = pieces[1] = eight;
	MUST(dat_rmr_create(rig.pz, &rmr));
	MUST(dat_psp_create(rig.ia, 7001, requests, DAT_PSP_CONSUMER_FLAG, &psp));
	fake.posts = 0;
}

static void teardown(void)
{
	fake.accepting = NULL;
	MUST(dat_psp_free(psp));
	MUST(dat_rmr_free(rmr));
	MUST(dat_ep_free(rig.ep));
	rig.ep = DAT_HANDLE_NULL;
	MUST(dat_lmr_free(lmr));
	MUST(dat_evd_free(requests));
	rig_close(&rig);
}

static DAT_CR_HANDLE request_arrives(void)
{
	struct ib_request arrived = { .data = NULL };

	arrived.remote.ss_family = arrived.local.ss_family = AF_INET;
	fake.conn = fake_new(sizeof(struct ib_conn), &fake.conns);
	fake.upcalls.request(psp, fake.conn, &arrived);
	return rig_take(requests).event_data.cr_arrival_event_data.cr_handle;
}

static DAT_EP_STATE state_now(void)
{
	DAT_EP_STATE state = DAT_EP_STATE_ERROR;

	OK(dat_ep_get_status(rig.ep, &state, NULL, NULL));
	return state;
}

/* ---- every kind of request, on the fast path and on the slow path ---- */

static DAT_DTO_COOKIE cookie(uint64_t value)
{
	return (DAT_DTO_COOKIE){ .as_64 = value };
}

static DAT_RETURN post(unsigned kind)
{
	DAT_RMR_CONTEXT context;

	switch (kind) {
	case 0: return dat_ep_post_send(rig.ep, 1, &eight, cookie(kind), 0);
	case 1: return dat_ep_post_send(rig.ep, 2, pieces, cookie(kind), 0);
	case 2: return dat_ep_post_rdma_write(rig.ep, 1, &eight, cookie(kind), &remote, 0);
	case 3: return dat_ep_post_rdma_read(rig.ep, 1, &eight, cookie(kind), &remote, 0);
	case 4: return dat_ib_post_fetch_and_add(rig.ep, 1, &eight, cookie(kind), &remote, 0);
	case 5: return dat_ib_post_cmp_and_swap(rig.ep, 1, 2, &eight, cookie(kind), &remote, 0);
	case 6: return dat_ib_post_rdma_write_immed(rig.ep, 1, &eight, cookie(kind), &remote, 1, 0);
	case 7:
		return dat_ep_post_send_with_invalidate(rig.ep, 1, &eight, cookie(kind), 0,
							DAT_TRUE, 1);
	default:
		return dat_rmr_bind(rmr, lmr, &eight, DAT_MEM_PRIV_REMOTE_READ_FLAG, DAT_VA_TYPE_VA,
				    rig.ep, (DAT_RMR_COOKIE){ .as_64 = kind }, 0, &context);
	}
}

enum { KINDS = 9 };

static void post_each(DAT_RETURN expected)
{
	unsigned kind, before;

	for (kind = 0; kind < KINDS; kind++) {
		before = fake.posts;
		IS(post(kind), expected);
		CU_ASSERT_EQUAL(fake.posts - before, expected == DAT_SUCCESS);
	}
}

static void test_taken(void)
{
	DAT_EVENT event;
	unsigned i;

	setup();
	MUST(dat_cr_accept(request_arrives(), rig.ep, 0, NULL));
	CU_ASSERT_EQUAL(state_now(), DAT_EP_STATE_COMPLETION_PENDING);
	post_each(DAT_SUCCESS);
	CU_ASSERT_EQUAL(state_now(), DAT_EP_STATE_COMPLETION_PENDING);
	/* the device may complete them before the peer's answer arrives */
	for (i = 0; i < 3; i++)
		post(0);
	rig_complete(rig.request, fake.last.wr_id, DAT_DTO_SUCCESS, 0);
	event = rig_take(rig.request);
	CU_ASSERT_EQUAL(rig_cookie(&event), 0);
	rig_establish();
	CU_ASSERT_EQUAL(rig_take(rig.conn).event_number, DAT_CONNECTION_EVENT_ESTABLISHED);
	CU_ASSERT_EQUAL(state_now(), DAT_EP_STATE_CONNECTED);
	post_each(DAT_SUCCESS);
	teardown();
}

/* Posts as another thread may while dat_cr_accept brings the queue pair up. */
static void accepting(void)
{
	post_each(E(INVALID_STATE, INVALID_STATE_EP_COMPLPENDING));
}

static void test_not_before_the_queue_pair_is_up(void)
{
	setup();
	fake.accepting = accepting;
	MUST(dat_cr_accept(request_arrives(), rig.ep, 0, NULL));
	post_each(DAT_SUCCESS);
	teardown();
}

/* After a reset, requests are refused again until the second connection has its queue pair up. */
static void test_not_before_after_a_reset(void)
{
	setup();
	MUST(dat_cr_accept(request_arrives(), rig.ep, 0, NULL));
	post_each(DAT_SUCCESS);
	MUST(dat_ep_disconnect(rig.ep, DAT_CLOSE_ABRUPT_FLAG));
	CU_ASSERT_EQUAL(rig_take(rig.conn).event_number, DAT_CONNECTION_EVENT_DISCONNECTED);
	MUST(dat_ep_reset(rig.ep));
	post_each(E(INVALID_STATE, INVALID_STATE_EP_UNCONNECTED));
	fake.accepting = accepting;
	MUST(dat_cr_accept(request_arrives(), rig.ep, 0, NULL));
	post_each(DAT_SUCCESS);
	teardown();
}

static void test_refused_accept(void)
{
	setup();
	fake.refuse = E(INSUFFICIENT_RESOURCES, RESOURCE_TEP);
	IS(dat_cr_accept(request_arrives(), rig.ep, 0, NULL),
	   E(INSUFFICIENT_RESOURCES, RESOURCE_TEP));
	post_each(E(INVALID_STATE, INVALID_STATE_EP_UNCONNECTED));
	teardown();
}

/* The connection fails: the queue pair is in error and flushes the posted requests. */
static void test_failed_connection(void)
{
	setup();
	MUST(dat_cr_accept(request_arrives(), rig.ep, 0, NULL));
	MUST(post(0));
	fake.upcalls.conn(fake.conn->owner, fake.conn, IB_CONN_REJECTED, NULL, 0);
	CU_ASSERT_EQUAL(rig_take(rig.conn).event_number,
			DAT_CONNECTION_EVENT_ACCEPT_COMPLETION_ERROR);
	CU_ASSERT_TRUE(fake.qp->error);
	CU_ASSERT_EQUAL(state_now(), DAT_EP_STATE_DISCONNECTED);
	rig_complete(rig.request, fake.last.wr_id, DAT_DTO_ERR_FLUSHED, 0);
	CU_ASSERT_EQUAL(rig_take(rig.request).event_data.dto_completion_event_data.status,
			DAT_DTO_ERR_FLUSHED);
	teardown();
}

/* A failed request ends a connection that is not established yet, with one event. */
static void test_failed_request(void)
{
	DAT_EVENT event;

	setup();
	MUST(dat_cr_accept(request_arrives(), rig.ep, 0, NULL));
	MUST(post(2));
	rig_complete(rig.request, fake.last.wr_id, DAT_DTO_ERR_REMOTE_ACCESS, 0);
	CU_ASSERT_EQUAL(rig_take(rig.request).event_data.dto_completion_event_data.status,
			DAT_DTO_ERR_REMOTE_ACCESS);
	fake_run_timers();
	CU_ASSERT_EQUAL(rig_take(rig.conn).event_number, DAT_CONNECTION_EVENT_BROKEN);
	CU_ASSERT_EQUAL(state_now(), DAT_EP_STATE_DISCONNECTED);
	IS(dat_evd_dequeue(rig.conn, &event), DAT_QUEUE_EMPTY);
	teardown();
}

static const struct unit_test tests[] = {
	{ "C11: each kind of request is accepted between accept and ESTABLISHED", test_taken },
	{ "requests are refused until the queue pair is up", test_not_before_the_queue_pair_is_up },
	{ "after a reset requests are refused until the next queue pair is up",
	  test_not_before_after_a_reset },
	{ "after a failed accept requests are refused", test_refused_accept },
	{ "requests before ESTABLISHED are flushed when the connection fails",
	  test_failed_connection },
	{ "a request that fails before ESTABLISHED breaks the connection", test_failed_request },
};

UNIT_MAIN("post_accepted", tests)
