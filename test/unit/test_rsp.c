/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Reserved service points: the EP's states, the single request, and the lifetime of both. */
#include <stdlib.h>
#include "test/unit/ep_util.h"

static struct env env;
static struct end a, b; /* b is reserved */
static DAT_RSP_HANDLE rsp;

static void reserve(void)
{
	DAT_RETURN status;

	/* other programs may listen on the qualifier */
	while ((status = dat_rsp_create(env.ia, env.qual, b.ep, env.cr, &rsp)) ==
	       E0(CONN_QUAL_IN_USE))
		env.qual++;
	CU_ASSERT_EQUAL_FATAL(status, DAT_SUCCESS);
}

static void setup(void)
{
	env_open(&env);
	env_listen(&env);
	OK(dat_psp_free(env.psp));
	env.psp = DAT_HANDLE_NULL;
	end_open(&env, &a, NULL);
	end_open(&env, &b, NULL);
	reserve();
}

static void teardown(void)
{
	if (rsp)
		OK(dat_rsp_free(rsp));
	rsp = DAT_HANDLE_NULL;
	end_close(&a);
	end_close(&b);
	env_close(&env);
}

/* The event names the RSP, and the CR names the EP. */
static DAT_CR_HANDLE reserved_request(void)
{
	DAT_CR_PARAM param = { .local_ep_handle = DAT_HANDLE_NULL };
	DAT_CR_ARRIVAL_EVENT_DATA *data;
	DAT_EVENT event;

	CU_ASSERT_TRUE_FATAL(event_next(env.cr, &event));
	CU_ASSERT_EQUAL_FATAL(event.event_number, DAT_CONNECTION_REQUEST_EVENT);
	data = &event.event_data.cr_arrival_event_data;
	CU_ASSERT_PTR_EQUAL(data->sp_handle.rsp_handle, rsp);
	CU_ASSERT_EQUAL(data->conn_qual, env.qual);
	CU_ASSERT_EQUAL(state_of(b.ep), DAT_EP_STATE_PASSIVE_CONNECTION_PENDING);
	OK(dat_cr_query(data->cr_handle, DAT_CR_FIELD_ALL, &param));
	CU_ASSERT_PTR_EQUAL(param.local_ep_handle, b.ep);
	return data->cr_handle;
}

static void test_arguments(void)
{
	DAT_RSP_HANDLE none = env.cr;
	DAT_EVD_HANDLE conn;
	struct env other;
	struct end c;

	setup();
	conn = evd_open(&env, 1, DAT_EVD_CONNECTION_FLAG);
	env_open(&other);
	end_open(&other, &c, NULL);
	none = env.cr;
	IS(dat_rsp_create(b.conn, 0, b.conn, b.conn, NULL), E(INVALID_HANDLE, INVALID_HANDLE_IA));
	IS(dat_rsp_create(env.ia, 0, conn, conn, NULL), E(INVALID_HANDLE, INVALID_HANDLE_EP));
	IS(dat_rsp_create(env.ia, 1, c.ep, env.cr, &none), E(INVALID_HANDLE, INVALID_HANDLE_EP));
	IS(dat_rsp_create(env.ia, 0, b.ep, conn, NULL), E(INVALID_HANDLE, INVALID_HANDLE_EVD_CR));
	IS(dat_rsp_create(env.ia, 0, b.ep, env.cr, NULL), E(INVALID_PARAMETER, INVALID_ARG5));
	IS(dat_rsp_create(env.ia, 0, b.ep, env.cr, &none), E(INVALID_PARAMETER, INVALID_ARG2));
	IS(dat_rsp_create(env.ia, env.qual, b.ep, env.cr, &none),
	   E(INVALID_STATE, INVALID_STATE_EP_RESERVED));
	IS(dat_rsp_create(env.ia, env.qual, a.ep, env.cr, &none), E0(CONN_QUAL_IN_USE));
	/* the refused EP is unchanged */
	CU_ASSERT_EQUAL(state_of(a.ep), DAT_EP_STATE_UNCONNECTED);
	CU_ASSERT_PTR_EQUAL(none, env.cr);
	IS(dat_psp_create(env.ia, env.qual, env.cr, 0, &none), E0(CONN_QUAL_IN_USE));
	end_close(&c);
	env_close(&other);
	evd_close(conn);
	teardown();
}

static void test_query(void)
{
	DAT_RSP_PARAM param;

	setup();
	IS(dat_rsp_query(b.ep, DAT_RSP_FIELD_ALL, &param), E(INVALID_HANDLE, INVALID_HANDLE_RSP));
	IS(dat_rsp_query(rsp, DAT_RSP_FIELD_ALL, NULL), E(INVALID_PARAMETER, INVALID_ARG3));
	IS(dat_rsp_query(rsp, (DAT_RSP_PARAM_MASK)0x10, &param),
	   E(INVALID_PARAMETER, INVALID_ARG2));
	OK(dat_rsp_query(rsp, DAT_RSP_FIELD_ALL, &param));
	CU_ASSERT_PTR_EQUAL(param.ia_handle, env.ia);
	CU_ASSERT_EQUAL(param.conn_qual, env.qual);
	CU_ASSERT_PTR_EQUAL(param.evd_handle, env.cr);
	CU_ASSERT_PTR_EQUAL(param.ep_handle, b.ep);
	teardown();
}

/* Which calls a reserved EP allows; rsp_free makes it an ordinary EP again. */
static void test_reserved(void)
{
	DAT_RSP_HANDLE gone;

	setup();
	CU_ASSERT_EQUAL(state_of(b.ep), DAT_EP_STATE_RESERVED);
	OK(try_recv(&b, 1));
	IS(try_connect(&b, 1), E(INVALID_STATE, INVALID_STATE_EP_RESERVED));
	IS(try_send(&b, 1, 0), E(INVALID_STATE, INVALID_STATE_EP_RESERVED));
	IS(dat_ep_disconnect(b.ep, DAT_CLOSE_ABRUPT_FLAG),
	   E(INVALID_STATE, INVALID_STATE_EP_RESERVED));
	IS(dat_ep_reset(b.ep), E(INVALID_STATE, INVALID_STATE_EP_RESERVED));
	IS(dat_ep_free(b.ep), E(INVALID_STATE, INVALID_STATE_EP_RESERVED));
	gone = rsp;
	OK(dat_rsp_free(rsp));
	IS(dat_rsp_free(gone), E(INVALID_HANDLE, INVALID_HANDLE_RSP));
	CU_ASSERT_EQUAL(state_of(b.ep), DAT_EP_STATE_UNCONNECTED);
	/* the qualifier is free at once, and the receive is still posted */
	OK(dat_rsp_create(env.ia, env.qual, b.ep, env.cr, &rsp));
	start_connect(&a);
	OK(dat_cr_accept(reserved_request(), DAT_HANDLE_NULL, 0, NULL));
	expect(a.conn, DAT_CONNECTION_EVENT_ESTABLISHED, a.ep);
	expect(b.conn, DAT_CONNECTION_EVENT_ESTABLISHED, b.ep);
	OK(try_send(&a, 7, 0));
	expect_dto(b.recv, b.ep, 1, DAT_DTO_SUCCESS);
	expect_dto(a.request, a.ep, 7, DAT_DTO_SUCCESS);
	/* the connection outlives its RSP */
	OK(dat_rsp_free(rsp));
	rsp = DAT_HANDLE_NULL;
	OK(try_recv(&b, 2));
	OK(try_send(&a, 8, 0));
	expect_dto(b.recv, b.ep, 2, DAT_DTO_SUCCESS);
	disconnect_pair(&a, &b);
	teardown();
}

static void test_accept_arguments(void)
{
	DAT_EP_PARAM param;
	DAT_CR_HANDLE cr;

	setup();
	start_connect(&a);
	cr = reserved_request();
	OK(dat_ep_query(b.ep, DAT_EP_FIELD_ALL, &param));
	CU_ASSERT_EQUAL(param.remote_ia_address_ptr->sa_family, AF_INET);
	CU_ASSERT_NOT_EQUAL(param.remote_port_qual, 0);
	CU_ASSERT_EQUAL(param.local_port_qual, env.qual);
	IS(dat_cr_accept(cr, b.ep, 0, NULL), E(INVALID_HANDLE, INVALID_HANDLE_EP));
	IS(dat_cr_accept(cr, a.ep, 0, NULL), E(INVALID_HANDLE, INVALID_HANDLE_EP));
	IS(try_connect(&b, 1), E(INVALID_STATE, INVALID_STATE_EP_PASSCONNPENDING));
	IS(dat_ep_free(b.ep), E(INVALID_STATE, INVALID_STATE_EP_PASSCONNPENDING));
	IS(dat_ep_disconnect(b.ep, DAT_CLOSE_ABRUPT_FLAG),
	   E(INVALID_STATE, INVALID_STATE_EP_PASSCONNPENDING));
	IS(dat_cr_handoff(b.ep, 1), E(INVALID_HANDLE, INVALID_HANDLE_CR));
	IS(dat_cr_handoff(cr, env.qual), E0(MODEL_NOT_SUPPORTED));
	/* none of these calls used the request up */
	OK(dat_cr_accept(cr, DAT_HANDLE_NULL, 0, NULL));
	expect(a.conn, DAT_CONNECTION_EVENT_ESTABLISHED, a.ep);
	expect(b.conn, DAT_CONNECTION_EVENT_ESTABLISHED, b.ep);
	disconnect_pair(&a, &b);
	teardown();
}

/* T8: after a reject the RSP has had its request. */
static void test_reject(void)
{
	DAT_EVENT event;
	struct end c;

	setup();
	end_open(&env, &c, NULL);
	OK(try_recv(&b, 1));
	start_connect(&a);
	OK(dat_cr_reject(reserved_request(), 0, NULL));
	if (event_next(a.conn, &event))
		CU_ASSERT_EQUAL(event.event_number, DAT_CONNECTION_EVENT_PEER_REJECTED);
	CU_ASSERT_EQUAL(state_of(b.ep), DAT_EP_STATE_UNCONNECTED);
	expect_quiet(b.conn);
	expect_quiet(b.recv);
	start_connect(&c);
	expect(c.conn, DAT_CONNECTION_EVENT_NON_PEER_REJECTED, c.ep);
	/* the consumer owns the EP and may free it before the RSP */
	end_free_ep(&b);
	end_close(&c);
	teardown();
}

static void test_second_request(void)
{
	struct end c;

	setup();
	end_open(&env, &c, NULL);
	start_connect(&a);
	start_connect(&c);
	/* in either order */
	OK(dat_cr_accept(reserved_request(), DAT_HANDLE_NULL, 0, NULL));
	expect(b.conn, DAT_CONNECTION_EVENT_ESTABLISHED, b.ep);
	if (state_of(a.ep) != DAT_EP_STATE_CONNECTED) {
		struct end first = a;

		a = c;
		c = first;
	}
	expect(a.conn, DAT_CONNECTION_EVENT_ESTABLISHED, a.ep);
	expect(c.conn, DAT_CONNECTION_EVENT_NON_PEER_REJECTED, c.ep);
	disconnect_pair(&a, &b);
	end_close(&c);
	teardown();
}

/* The RSP is freed first; its request can still be answered. */
static void test_free_with_request(void)
{
	DAT_CR_HANDLE cr;

	setup();
	start_connect(&a);
	cr = reserved_request();
	OK(dat_rsp_free(rsp));
	rsp = DAT_HANDLE_NULL;
	CU_ASSERT_EQUAL(state_of(b.ep), DAT_EP_STATE_PASSIVE_CONNECTION_PENDING);
	OK(dat_cr_accept(cr, DAT_HANDLE_NULL, 0, NULL));
	expect(a.conn, DAT_CONNECTION_EVENT_ESTABLISHED, a.ep);
	expect(b.conn, DAT_CONNECTION_EVENT_ESTABLISHED, b.ep);
	disconnect_pair(&a, &b);
	teardown();
}

/* An EP without PZ and connect EVD can be reserved, but only accepted with after it has them. */
static void test_unready(void)
{
	DAT_EP_HANDLE bare, kept;
	DAT_CR_HANDLE cr;
	DAT_EVENT event;

	setup();
	OK(dat_rsp_free(rsp));
	MUST(dat_ep_create(env.ia, DAT_HANDLE_NULL, b.recv, b.request, b.conn, NULL, &bare));
	MUST(dat_rsp_create(env.ia, env.qual, bare, env.cr, &rsp));
	kept = b.ep;
	b.ep = bare;
	start_connect(&a);
	cr = reserved_request();
	IS(dat_cr_accept(cr, DAT_HANDLE_NULL, 0, NULL), E(INVALID_HANDLE, INVALID_HANDLE_EP));
	CU_ASSERT_EQUAL(state_of(bare), DAT_EP_STATE_PASSIVE_CONNECTION_PENDING);
	OK(dat_cr_reject(cr, 0, NULL));
	if (event_next(a.conn, &event))
		CU_ASSERT_EQUAL(event.event_number, DAT_CONNECTION_EVENT_PEER_REJECTED);
	OK(dat_ep_free(bare));
	b.ep = kept;
	teardown();
}

/* An abrupt close with a live RSP, EP and request. */
static void test_abrupt_close(void)
{
	struct env other;
	struct end c, d;
	DAT_RSP_HANDLE first, second;
	DAT_QOS qos = DAT_QOS_BEST_EFFORT;

	setup();
	env_open(&other);
	other.qual = env.qual + 1;
	end_open(&other, &c, NULL);
	end_open(&other, &d, NULL);
	while (dat_rsp_create(other.ia, other.qual, c.ep, other.cr, &first) == E0(CONN_QUAL_IN_USE))
		other.qual++;
	OK(dat_ep_connect(a.ep, env.address, other.qual, DAT_TIMEOUT_INFINITE, 0, NULL, qos, 0));
	CU_ASSERT_TRUE(event_next(other.cr, &(DAT_EVENT){ 0 }));
	while (dat_rsp_create(other.ia, ++other.qual, d.ep, other.cr, &second) ==
	       E0(CONN_QUAL_IN_USE))
		;
	OK(dat_ia_close(other.ia, DAT_CLOSE_ABRUPT_FLAG));
	free(other.memory);
	expect(a.conn, DAT_CONNECTION_EVENT_NON_PEER_REJECTED, a.ep);
	teardown();
}

static const struct unit_test tests[] = {
	{ "arguments in their order", test_arguments },
	{ "query", test_query },
	{ "an EP can be reserved, released, reserved again and connected", test_reserved },
	{ "a request is accepted with its own EP and no other", test_accept_arguments },
	{ "after a reject the EP keeps its receives, and the RSP does not listen any more",
	  test_reject },
	{ "an RSP takes one request and refuses the others", test_second_request },
	{ "a request outlives its RSP", test_free_with_request },
	{ "an EP without a PZ or a connect EVD can be reserved, but not accepted with",
	  test_unready },
	{ "an abrupt close frees an RSP with and without its request", test_abrupt_close },
};

UNIT_MAIN("rsp", tests)
