/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* dat_ep_dup_connect: connects to the peer of another endpoint. */
#include <string.h>
#include "test/unit/ep_util.h"

static struct env env;
static struct end a, b, c, d; /* a and b are connected; c duplicates a, and d accepts c */

static void setup(void)
{
	env_open(&env);
	env_listen(&env);
	end_open(&env, &a, NULL);
	end_open(&env, &b, NULL);
	end_open(&env, &c, NULL);
	end_open(&env, &d, NULL);
	connect_pair(&a, &b);
}

static void teardown(void)
{
	disconnect_pair(&a, &b);
	end_close(&a);
	end_close(&b);
	end_close(&c);
	end_close(&d);
	env_close(&env);
}

static DAT_RETURN dup(DAT_EP_HANDLE ep, DAT_EP_HANDLE like)
{
	return dat_ep_dup_connect(ep, like, DAT_TIMEOUT_INFINITE, 0, NULL, DAT_QOS_BEST_EFFORT);
}

static void test_arguments(void)
{
	DAT_EP_HANDLE deaf, bare;
	char data[64] = "";

	setup();
	MUST(dat_ep_create(env.ia, env.pz, c.recv, c.request, DAT_HANDLE_NULL, NULL, &deaf));
	MUST(dat_ep_create(env.ia, DAT_HANDLE_NULL, c.recv, c.request, c.conn, NULL, &bare));
	IS(dat_ep_dup_connect(c.ep, c.conn, 0, -1, NULL, 7), E(INVALID_HANDLE, INVALID_HANDLE_EP));
	IS(dat_ep_dup_connect(c.conn, a.ep, 0, -1, NULL, 7), E(INVALID_HANDLE, INVALID_HANDLE_EP));
	IS(dat_ep_dup_connect(deaf, c.ep, 0, -1, NULL, 7), E(INVALID_PARAMETER, INVALID_ARG3));
	IS(dat_ep_dup_connect(deaf, c.ep, 1, -1, NULL, 7),
	   E(INVALID_STATE, INVALID_STATE_EP_UNCONNECTED));
	IS(dat_ep_dup_connect(deaf, a.ep, 1, -1, NULL, 7),
	   E(INVALID_HANDLE, INVALID_HANDLE_EVD_CONN));
	IS(dat_ep_dup_connect(bare, a.ep, 1, -1, NULL, 7), E(INVALID_PARAMETER, INVALID_ARG4));
	IS(dat_ep_dup_connect(bare, a.ep, 1, 57, data, 7), E(INVALID_PARAMETER, INVALID_ARG4));
	IS(dat_ep_dup_connect(bare, a.ep, 1, 1, NULL, 7), E(INVALID_PARAMETER, INVALID_ARG5));
	IS(dat_ep_dup_connect(bare, a.ep, 1, 1, data, DAT_QOS_PREMIUM), E0(MODEL_NOT_SUPPORTED));
	IS(dup(bare, a.ep), E(INVALID_STATE, INVALID_STATE_EP_NOTREADY));
	IS(dup(b.ep, a.ep), E(INVALID_STATE, INVALID_STATE_EP_CONNECTED));
	CU_ASSERT_EQUAL(state_of(bare), DAT_EP_STATE_UNCONNECTED);
	OK(dat_ep_free(deaf));
	OK(dat_ep_free(bare));
	teardown();
}

static void test_follows(void)
{
	DAT_EP_PARAM first, second;
	DAT_CR_PARAM request;
	DAT_CR_HANDLE cr;

	setup();
	OK(dat_ep_dup_connect(c.ep, a.ep, DAT_TIMEOUT_INFINITE, 4, (DAT_PVOID)(uintptr_t) "too!",
			      DAT_QOS_BEST_EFFORT));
	cr = request_next(&env);
	OK(dat_cr_query(cr, DAT_CR_FIELD_ALL, &request));
	CU_ASSERT_EQUAL(memcmp(request.private_data, "too!", 4), 0);
	OK(dat_cr_accept(cr, d.ep, 0, NULL));
	expect(c.conn, DAT_CONNECTION_EVENT_ESTABLISHED, c.ep);
	expect(d.conn, DAT_CONNECTION_EVENT_ESTABLISHED, d.ep);
	OK(dat_ep_query(a.ep, DAT_EP_FIELD_ALL, &first));
	OK(dat_ep_query(c.ep, DAT_EP_FIELD_ALL, &second));
	CU_ASSERT_EQUAL(first.remote_port_qual, second.remote_port_qual);
	disconnect_pair(&c, &d);
	teardown();
}

/* The duplicate uses all 64 bits of the qualifier, not the port that the EP reports. */
static void test_large_qualifier(void)
{
	DAT_CONN_QUAL small = env.qual, large = 0x0affab1e00000000ull;
	DAT_PSP_HANDLE psp;
	DAT_EVENT event;

	setup();
	small = env.qual;
	while (dat_psp_create(env.ia, ++large, env.cr, 0, &psp) == E0(CONN_QUAL_IN_USE))
		;
	OK(dat_ep_connect(c.ep, env.address, large, DAT_TIMEOUT_INFINITE, 0, NULL, 0, 0));
	CU_ASSERT_TRUE_FATAL(event_next(env.cr, &event));
	CU_ASSERT_EQUAL(event.event_data.cr_arrival_event_data.conn_qual, large);
	OK(dat_cr_accept(event.event_data.cr_arrival_event_data.cr_handle, d.ep, 0, NULL));
	expect(c.conn, DAT_CONNECTION_EVENT_ESTABLISHED, c.ep);
	expect(d.conn, DAT_CONNECTION_EVENT_ESTABLISHED, d.ep);
	disconnect_pair(&a, &b);
	OK(dat_ep_reset(a.ep));
	OK(dat_ep_reset(b.ep));
	OK(dup(a.ep, c.ep));
	CU_ASSERT_TRUE_FATAL(event_next(env.cr, &event));
	CU_ASSERT_EQUAL(event.event_data.cr_arrival_event_data.conn_qual, large);
	OK(dat_cr_accept(event.event_data.cr_arrival_event_data.cr_handle, b.ep, 0, NULL));
	expect(a.conn, DAT_CONNECTION_EVENT_ESTABLISHED, a.ep);
	expect(b.conn, DAT_CONNECTION_EVENT_ESTABLISHED, b.ep);
	disconnect_pair(&c, &d);
	OK(dat_psp_free(psp));
	env.qual = small;
	teardown();
}

/* A passive side knows only the requester's port, and no listener uses that port. */
static void test_passive_template(void)
{
	setup();
	OK(dup(c.ep, b.ep));
	expect(c.conn, DAT_CONNECTION_EVENT_NON_PEER_REJECTED, c.ep);
	teardown();
}

static const struct unit_test tests[] = {
	{ "arguments in their order", test_arguments },
	{ "the duplicate connects to the other EP's peer", test_follows },
	{ "the duplicate uses the whole qualifier, not its port", test_large_qualifier },
	{ "a duplicate of a passive side: NON_PEER_REJECTED", test_passive_template },
};

UNIT_MAIN("dup_connect", tests)
