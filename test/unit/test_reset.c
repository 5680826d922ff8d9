/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* dat_ep_reset and dat_ep_free: no flushed completion is lost, and nothing is left behind. */
#include "test/unit/two_ends.h"

static void test_unconnected(void)
{
	unsigned i;

	setup();
	IS(dat_ep_reset(b.conn), E(INVALID_HANDLE, INVALID_HANDLE_EP));
	post_recvs(&b, 2);
	OK(dat_ep_reset(b.ep));
	expect_quiet(b.recv);
	connect_pair(&a, &b);
	for (i = 0; i < 2; i++) {
		CU_ASSERT_EQUAL(try_send(&a, i, 0), DAT_SUCCESS);
		expect_dto(b.recv, b.ep, i, DAT_DTO_SUCCESS);
	}
	disconnect_pair(&a, &b);
	teardown();
}

static void test_rejected(void)
{
	DAT_EVENT event;
	unsigned i, n;

	setup();
	for (i = 0; i < 100; i++) {
		post_recvs(&a, 5);
		start_connect(&a);
		OK(dat_cr_reject(request_next(&env), 0, NULL));
		if (event_next(a.conn, &event))
			CU_ASSERT_EQUAL(event.event_number, DAT_CONNECTION_EVENT_PEER_REJECTED);
		OK(dat_ep_reset(a.ep));
		CU_ASSERT_EQUAL(state_of(a.ep), DAT_EP_STATE_UNCONNECTED);
		/* Dequeued without waiting: the flushes are queued when reset returns. */
		for (n = 0; dat_evd_dequeue(a.recv, &event) == DAT_SUCCESS; n++)
			CU_ASSERT_EQUAL(event.event_data.dto_completion_event_data.status,
					DAT_DTO_ERR_FLUSHED);
		CU_ASSERT_EQUAL(n, 5);
		expect_quiet(a.conn);
	}
	connect_pair(&a, &b);
	disconnect_pair(&a, &b);
	teardown();
}

static void test_reconnect(void)
{
	DAT_EP_PARAM param;
	DAT_EVENT event;
	unsigned i, n;

	setup();
	for (i = 0; i < 50; i++) {
		post_recvs(&b, 16);
		connect_pair(&a, &b);
		for (n = 0; n < 4; n++)
			CU_ASSERT_EQUAL(try_send(&a, n, 0), DAT_SUCCESS);
		for (n = 0; n < 4; n++) {
			expect_dto(a.request, a.ep, n, DAT_DTO_SUCCESS);
			expect_dto(b.recv, b.ep, n, DAT_DTO_SUCCESS);
		}
		if (i & 1)
			disconnect_pair(&a, &b);
		else
			disconnect_pair(&b, &a);
		OK(dat_ep_reset(a.ep));
		OK(dat_ep_reset(b.ep));
		for (n = 4; dat_evd_dequeue(b.recv, &event) == DAT_SUCCESS; n++)
			CU_ASSERT_EQUAL(
				event.event_data.dto_completion_event_data.user_cookie.as_64, n);
		CU_ASSERT_EQUAL(n, 16);
		expect_quiet(a.conn);
		expect_quiet(b.conn);
	}
	OK(dat_ep_query(a.ep, DAT_EP_FIELD_ALL, &param));
	CU_ASSERT_EQUAL(param.remote_port_qual, 0);
	CU_ASSERT_PTR_EQUAL(param.pz_handle, env.pz);
	CU_ASSERT_PTR_EQUAL(param.connect_evd_handle, a.conn);
	CU_ASSERT_TRUE(param.ep_attr.max_recv_dtos >= 16);
	teardown();
}

/* The whole depth can be posted after each reset, so no slot is lost. */
static void test_depth(void)
{
	DAT_EP_PARAM param;
	DAT_EVENT event;
	DAT_COUNT i, n;
	unsigned round;

	setup();
	OK(dat_psp_free(env.psp));
	env.psp = DAT_HANDLE_NULL;
	OK(dat_ep_query(a.ep, DAT_EP_FIELD_ALL, &param));
	for (round = 0; round < 5; round++) {
		for (i = 0; i < param.ep_attr.max_recv_dtos; i++)
			CU_ASSERT_EQUAL(try_recv(&a, (uint64_t)i), DAT_SUCCESS);
		IS(try_recv(&a, 0), E(INSUFFICIENT_RESOURCES, RESOURCE_MEMORY));
		start_connect(&a);
		expect(a.conn, DAT_CONNECTION_EVENT_NON_PEER_REJECTED, a.ep);
		OK(dat_ep_reset(a.ep));
		for (n = 0; dat_evd_dequeue(a.recv, &event) == DAT_SUCCESS; n++)
			;
		CU_ASSERT_EQUAL(n, param.ep_attr.max_recv_dtos);
	}
	teardown();
}

/* C25: freed with posted work whose memory is already deregistered. */
static void test_free_states(void)
{
	DAT_EP_HANDLE ep;

	setup();
	post_recvs(&a, 4);
	connect_pair(&a, &b);
	post_recvs(&b, 4);
	ep = a.ep;
	end_free_ep(&a);
	expect(a.conn, DAT_CONNECTION_EVENT_DISCONNECTED, ep);
	expect_quiet(a.conn);
	expect(b.conn, DAT_CONNECTION_EVENT_DISCONNECTED, b.ep);
	end_free_ep(&b);
	expect_quiet(b.conn);
	IS(dat_ep_free(ep), E(INVALID_HANDLE, INVALID_HANDLE_EP));
	IS(dat_ep_query(ep, 0, NULL), E(INVALID_HANDLE, INVALID_HANDLE_EP));
	teardown();
}

static void test_free_attempts(void)
{
	DAT_CR_HANDLE cr;
	DAT_EP_HANDLE ep;
	struct end c;

	setup();
	post_recvs(&a, 4);
	start_connect(&a);
	cr = request_next(&env);
	ep = a.ep;
	end_free_ep(&a);
	expect(a.conn, DAT_CONNECTION_EVENT_DISCONNECTED, ep);
	OK(dat_cr_reject(cr, 0, NULL));

	end_open(&env, &c, NULL);
	start_connect(&c);
	cr = request_next(&env);
	OK(dat_cr_accept(cr, b.ep, 0, NULL));
	end_free_ep(&b); /* the state may be CP or C */
	end_close(&c);
	teardown();
}

/* Freeing an EP drops its receives, and not those of other EPs on the EVD. */
static void test_free_shared(void)
{
	struct end c;
	unsigned i;

	setup();
	for (i = 0; i < 20; i++) {
		c = (struct end){
			.env = &env, .recv = b.recv, .request = b.request, .conn = b.conn
		};
		MUST(dat_ep_create(env.ia, env.pz, c.recv, c.request, c.conn, NULL, &c.ep));
		post_recvs(&c, 8);
		OK(dat_ep_free(c.ep));
	}
	expect_quiet(b.recv);
	post_recvs(&b, 1);
	connect_pair(&a, &b);
	CU_ASSERT_EQUAL(try_send(&a, 1, 0), DAT_SUCCESS);
	expect_dto(b.recv, b.ep, 0, DAT_DTO_SUCCESS);
	disconnect_pair(&a, &b);
	teardown();
}

static const struct unit_test tests[] = {
	{ "a reset in state U does nothing, and receives stay", test_unconnected },
	{ "after a reject and reset, 100 times, all flushes can be dequeued at once",
	  test_rejected },
	{ "after a connection and reset, 50 times, the EP can be used again", test_reconnect },
	{ "after each reset the whole depth can be posted", test_depth },
	{ "an EP with receives can be freed in states C and D", test_free_states },
	{ "an EP can be freed in states AP and CP", test_free_attempts },
	{ "a free drops the EP's receives, and no others", test_free_shared },
};

UNIT_MAIN("reset", tests)
