/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Connection requests: query, accept, reject, and which failures leave the request alive. */
#include <stdlib.h>
#include <string.h>
#include "test/unit/two_ends.h"

static void give_up(DAT_CR_HANDLE cr)
{
	OK(dat_cr_reject(cr, 0, NULL));
}

/* Private data of the peer consumer's rejection, padded with zeros to the CM's length. */
static void expect_peer_rejected(struct end *end, const void *data, DAT_COUNT size)
{
	DAT_CONNECTION_EVENT_DATA *got;
	DAT_EVENT event;

	if (!event_next(end->conn, &event))
		return;
	got = &event.event_data.connect_event_data;
	CU_ASSERT_EQUAL(event.event_number, DAT_CONNECTION_EVENT_PEER_REJECTED);
	CU_ASSERT_PTR_EQUAL(got->ep_handle, end->ep);
	CU_ASSERT_TRUE_FATAL(got->private_data_size >= size);
	CU_ASSERT_TRUE(got->private_data_size <= 251);
	if (size)
		CU_ASSERT_EQUAL(memcmp(got->private_data, data, (size_t)size), 0);
	CU_ASSERT_EQUAL(state_of(end->ep), DAT_EP_STATE_DISCONNECTED);
}

static void test_query(void)
{
	DAT_CR_PARAM param;
	DAT_CR_HANDLE cr;

	setup();
	OK(dat_ep_connect(a.ep, env.address, env.qual, DAT_TIMEOUT_INFINITE, 5,
			  (DAT_PVOID)(uintptr_t) "hello", 0, 0));
	cr = request_next(&env);
	IS(dat_cr_query(b.ep, DAT_CR_FIELD_ALL, &param), E(INVALID_HANDLE, INVALID_HANDLE_CR));
	IS(dat_cr_query(cr, DAT_CR_FIELD_ALL, NULL), E(INVALID_PARAMETER, INVALID_ARG3));
	IS(dat_cr_query(cr, (DAT_CR_PARAM_MASK)0x20, &param), E(INVALID_PARAMETER, INVALID_ARG2));
	/* consumers pass this mask, too */
	OK(dat_cr_query(cr, (DAT_CR_PARAM_MASK)DAT_CSP_FIELD_ALL, &param));
	OK(dat_cr_query(cr, DAT_CR_FIELD_ALL, &param));
	CU_ASSERT_PTR_NULL(param.local_ep_handle);
	CU_ASSERT_EQUAL(param.remote_ia_address_ptr->sa_family, AF_INET);
	CU_ASSERT_NOT_EQUAL(param.remote_port_qual, 0);
	CU_ASSERT_TRUE_FATAL(param.private_data_size >= 5);
	CU_ASSERT_EQUAL(memcmp(param.private_data, "hello", 5), 0);
	give_up(cr);
	IS(dat_cr_query(cr, DAT_CR_FIELD_ALL, &param), E(INVALID_HANDLE, INVALID_HANDLE_CR));
	expect_peer_rejected(&a, NULL, 0);
	teardown();
}

/* C13: private data of a request may be changed in place and passed back. */
static void test_data_given_back(void)
{
	DAT_CR_PARAM param;
	DAT_CR_HANDLE cr;
	DAT_EVENT event;

	setup();
	OK(dat_ep_connect(a.ep, env.address, env.qual, DAT_TIMEOUT_INFINITE, 4,
			  (DAT_PVOID)(uintptr_t) "HAL!", 0, 0));
	cr = request_next(&env);
	OK(dat_cr_query(cr, DAT_CR_FIELD_ALL, &param));
	((char *)param.private_data)[0]++;
	OK(dat_cr_accept(cr, b.ep, 4, param.private_data));
	if (event_next(a.conn, &event))
		CU_ASSERT_EQUAL(memcmp(event.event_data.connect_event_data.private_data, "IAL!", 4),
				0);
	expect(b.conn, DAT_CONNECTION_EVENT_ESTABLISHED, b.ep);
	disconnect_pair(&a, &b);
	teardown();
}

static void test_accept_arguments(void)
{
	DAT_EP_HANDLE bare, deaf;
	char data[197] = "";
	DAT_CR_HANDLE cr;

	setup();
	OK(dat_ep_create(env.ia, DAT_HANDLE_NULL, b.recv, b.request, b.conn, NULL, &bare));
	OK(dat_ep_create(env.ia, env.pz, b.recv, b.request, DAT_HANDLE_NULL, NULL, &deaf));
	start_connect(&a);
	cr = request_next(&env);
	IS(dat_cr_accept(b.ep, b.ep, 0, NULL), E(INVALID_HANDLE, INVALID_HANDLE_CR));
	IS(dat_cr_accept(cr, cr, 0, NULL), E(INVALID_HANDLE, INVALID_HANDLE_EP));
	IS(dat_cr_accept(cr, DAT_HANDLE_NULL, 0, NULL), E(INVALID_HANDLE, INVALID_HANDLE_EP));
	IS(dat_cr_accept(cr, b.ep, 1, NULL), E(INVALID_PARAMETER, INVALID_ARG4));
	IS(dat_cr_accept(cr, b.ep, -1, data), E(INVALID_PARAMETER, INVALID_ARG3));
	IS(dat_cr_accept(cr, b.ep, 197, data), E(INVALID_PARAMETER, INVALID_ARG3));
	IS(dat_cr_accept(cr, a.ep, 0, NULL), E(INVALID_STATE, INVALID_STATE_EP_ACTCONNPENDING));
	IS(dat_cr_accept(cr, bare, 0, NULL), E(INVALID_HANDLE, INVALID_HANDLE_EP));
	IS(dat_cr_accept(cr, deaf, 0, NULL), E(INVALID_HANDLE, INVALID_HANDLE_EP));
	/* None of these calls used the request up. */
	OK(dat_cr_accept(cr, b.ep, 196, data));
	IS(dat_cr_accept(cr, b.ep, 0, NULL), E(INVALID_HANDLE, INVALID_HANDLE_CR));
	expect(a.conn, DAT_CONNECTION_EVENT_ESTABLISHED, a.ep);
	expect(b.conn, DAT_CONNECTION_EVENT_ESTABLISHED, b.ep);
	disconnect_pair(&a, &b);
	OK(dat_ep_free(bare));
	OK(dat_ep_free(deaf));
	teardown();
}

/* C18: a busy EP cannot accept the request, which can still be rejected afterwards. */
static void test_accept_busy(void)
{
	struct end c;
	DAT_CR_HANDLE cr;

	setup();
	end_open(&env, &c, NULL);
	connect_pair(&a, &b);
	start_connect(&c);
	cr = request_next(&env);
	IS(dat_cr_accept(cr, b.ep, 0, NULL), E(INVALID_STATE, INVALID_STATE_EP_CONNECTED));
	give_up(cr);
	expect_peer_rejected(&c, NULL, 0);
	disconnect_pair(&a, &b);
	end_close(&c);
	teardown();
}

static void test_accept_disconnected(void)
{
	struct end c;
	DAT_CR_HANDLE cr;

	setup();
	end_open(&env, &c, NULL);
	connect_pair(&a, &b);
	disconnect_pair(&a, &b);
	start_connect(&c);
	cr = request_next(&env);
	IS(dat_cr_accept(cr, b.ep, 0, NULL), E(INVALID_STATE, INVALID_STATE_EP_DISCONNECTED));
	OK(dat_ep_reset(b.ep));
	OK(dat_cr_accept(cr, b.ep, 0, NULL));
	expect(c.conn, DAT_CONNECTION_EVENT_ESTABLISHED, c.ep);
	expect(b.conn, DAT_CONNECTION_EVENT_ESTABLISHED, b.ep);
	disconnect_pair(&c, &b);
	end_close(&c);
	teardown();
}

static void test_reject(void)
{
	char data[145];
	DAT_COUNT size = 0;
	DAT_CR_HANDLE cr;

	setup();
	memset(data, 'n', sizeof(data));
	post_recvs(&a, 2);
	start_connect(&a);
	cr = request_next(&env);
	IS(dat_cr_reject(a.ep, 0, NULL), E(INVALID_HANDLE, INVALID_HANDLE_CR));
#ifndef TEST_ONE /* dat_cr_reject of DAT 1.2 has no private data */
	IS(dat_cr_reject(cr, -1, data), E(INVALID_PARAMETER, INVALID_ARG2));
	IS(dat_cr_reject(cr, 145, data), E(INVALID_PARAMETER, INVALID_ARG2));
	IS(dat_cr_reject(cr, 1, NULL), E(INVALID_PARAMETER, INVALID_ARG3));
	size = 144;
#endif
	OK(dat_cr_reject(cr, size, data));
	IS(dat_cr_reject(cr, 0, NULL), E(INVALID_HANDLE, INVALID_HANDLE_CR));
	expect_peer_rejected(&a, data, size);
	expect_dto(a.recv, a.ep, 0, DAT_DTO_ERR_FLUSHED);
	expect_dto(a.recv, a.ep, 1, DAT_DTO_ERR_FLUSHED);
	end_free_ep(&a);
	expect_quiet(a.conn);
	teardown();
}

/*
 * A rejection by the provider differs from a consumer's without data: the requester gets
 * NON_PEER_REJECTED.
 */
static void test_abnormal(void)
{
	DAT_EVD_HANDLE small;
	struct end c;
	DAT_EVENT event;

	setup();
	end_open(&env, &c, NULL);
	OK(dat_psp_free(env.psp));
	small = evd_open(&env, 1, DAT_EVD_CR_FLAG);
	while (dat_psp_create(env.ia, env.qual, small, DAT_PSP_CONSUMER_FLAG, &env.psp) ==
	       E0(CONN_QUAL_IN_USE))
		env.qual++;
	/* The first request fills the EVD; the second is rejected on arrival. */
	start_connect(&a);
	start_connect(&c);
	expect(c.conn, DAT_CONNECTION_EVENT_NON_PEER_REJECTED, c.ep);
	if (event_next(env.async, &event)) {
		CU_ASSERT_EQUAL(event.event_number, DAT_ASYNC_ERROR_EVD_OVERFLOW);
		CU_ASSERT_PTR_EQUAL(event.event_data.asynch_error_event_data.dat_handle, small);
	}
	if (event_next(small, &event))
		give_up(event.event_data.cr_arrival_event_data.cr_handle);
	expect_peer_rejected(&a, NULL, 0);
	OK(dat_psp_free(env.psp));
	env.psp = DAT_HANDLE_NULL;
	evd_close(small);
	end_close(&c);
	teardown();
}

/* Requests outlive their service point. */
static void test_after_psp(void)
{
	DAT_CR_HANDLE cr;

	setup();
	start_connect(&a);
	cr = request_next(&env);
	OK(dat_psp_free(env.psp));
	env.psp = DAT_HANDLE_NULL;
	OK(dat_cr_accept(cr, b.ep, 0, NULL));
	expect(a.conn, DAT_CONNECTION_EVENT_ESTABLISHED, a.ep);
	expect(b.conn, DAT_CONNECTION_EVENT_ESTABLISHED, b.ep);
	disconnect_pair(&a, &b);
	teardown();
}

/* C25: an abrupt close rejects pending requests and disconnects connections. */
static void test_abrupt_close(void)
{
	struct env other;
	struct end c, d;
	DAT_EVENT event;

	setup();
	env_open(&other);
	env_listen(&other);
	end_open(&other, &c, NULL);
	end_open(&other, &d, NULL);
	other.address = env.address;
	a.env = b.env = &other;
	connect_pair(&a, &c);
	start_connect(&b);
	CU_ASSERT_TRUE(event_next(other.cr, &event));
	OK(dat_ia_close(other.ia, DAT_CLOSE_ABRUPT_FLAG));
	free(other.memory);
	if (event_next(a.conn, &event))
		CU_ASSERT_EQUAL(event.event_number, DAT_CONNECTION_EVENT_DISCONNECTED);
	expect(b.conn, DAT_CONNECTION_EVENT_NON_PEER_REJECTED, b.ep);
	a.env = b.env = &env;
	teardown();
}

static const struct unit_test tests[] = {
	{ "query", test_query },
	{ "private data can be changed in place and passed back", test_data_given_back },
	{ "the request stays usable", test_accept_arguments },
	{ "a connected EP cannot accept; the request can be rejected", test_accept_busy },
	{ "a disconnected EP can accept after its reset", test_accept_disconnected },
	{ "peer consumer rejects: PEER_REJECTED with data", test_reject },
	{ "a request without room in the EVD: NON_PEER_REJECTED, and the overflow is reported",
	  test_abnormal },
	{ "a request outlives its PSP", test_after_psp },
	{ "an abrupt close rejects requests and ends connections", test_abrupt_close },
};

UNIT_MAIN("cr", tests)
