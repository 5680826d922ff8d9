/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Service points whose requests come with an endpoint, and service points on any qualifier. */
#include <stdlib.h>
#include "test/unit/ep_util.h"

static struct env env;
static struct end a, b; /* the provider's EPs use b's EVDs */

static void setup(void)
{
	DAT_RETURN status;

	env_open(&env);
	env_listen(&env);
	OK(dat_psp_free(env.psp));
	end_open(&env, &a, NULL);
	end_open(&env, &b, NULL);
	end_free_ep(&b);
	while ((status = dat_psp_create(env.ia, env.qual, env.cr, DAT_PSP_PROVIDER_FLAG,
					&env.psp)) == E0(CONN_QUAL_IN_USE))
		env.qual++;
	CU_ASSERT_EQUAL_FATAL(status, DAT_SUCCESS);
}

static void teardown(void)
{
	end_close(&a);
	end_close(&b);
	env_close(&env);
}

static DAT_CR_HANDLE tentative_request(void)
{
	DAT_CR_HANDLE cr = request_next(&env);
	DAT_CR_PARAM param = { .local_ep_handle = DAT_HANDLE_NULL };

	MUST(dat_cr_query(cr, DAT_CR_FIELD_ALL, &param));
	b.ep = param.local_ep_handle;
	CU_ASSERT_PTR_NOT_NULL_FATAL(b.ep);
	CU_ASSERT_EQUAL(state_of(b.ep), DAT_EP_STATE_TENTATIVE_CONNECTION_PENDING);
	return cr;
}

static DAT_RETURN configure(DAT_EP_PARAM_MASK but)
{
	DAT_EP_PARAM param = { .pz_handle = env.pz,
			       .recv_evd_handle = b.recv,
			       .request_evd_handle = b.request,
			       .connect_evd_handle = b.conn,
			       .ep_attr = { .max_recv_dtos = 4,
					    .max_recv_iov = 1,
					    .max_request_dtos = 4,
					    .max_request_iov = 1 } };

	return dat_ep_modify(b.ep,
			     ~but & (DAT_EP_FIELD_PZ_HANDLE | DAT_EP_FIELD_RECV_EVD_HANDLE |
				     DAT_EP_FIELD_REQUEST_EVD_HANDLE |
				     DAT_EP_FIELD_CONNECT_EVD_HANDLE |
				     DAT_EP_FIELD_EP_ATTR_MAX_RECV_DTOS |
				     DAT_EP_FIELD_EP_ATTR_MAX_RECV_IOV |
				     DAT_EP_FIELD_EP_ATTR_MAX_REQUEST_DTOS |
				     DAT_EP_FIELD_EP_ATTR_MAX_REQUEST_IOV),
			     &param);
}

static void expect_rejected(struct end *end)
{
	DAT_EVENT event;

	if (event_next(end->conn, &event))
		CU_ASSERT_EQUAL(event.event_number, DAT_CONNECTION_EVENT_PEER_REJECTED);
}

static void test_accept(void)
{
	DAT_EP_PARAM param;
	DAT_CR_HANDLE cr;

	setup();
	start_connect(&a);
	cr = tentative_request();
	OK(dat_ep_query(b.ep, DAT_EP_FIELD_ALL, &param));
	CU_ASSERT_PTR_NULL(param.pz_handle);
	CU_ASSERT_PTR_NULL(param.connect_evd_handle);
	CU_ASSERT_EQUAL(param.local_port_qual, env.qual);
	CU_ASSERT_NOT_EQUAL(param.remote_port_qual, 0);
	/* cannot be accepted in this state */
	IS(dat_cr_accept(cr, DAT_HANDLE_NULL, 0, NULL), E(INVALID_HANDLE, INVALID_HANDLE_EP));
	IS(dat_cr_accept(cr, a.ep, 0, NULL), E(INVALID_HANDLE, INVALID_HANDLE_EP));
	IS(dat_ep_post_recv(b.ep, 0, NULL, (DAT_DTO_COOKIE){ .as_64 = 1 }, 0),
	   E(INVALID_STATE, INVALID_STATE_EP_NOTREADY));
	OK(configure(DAT_EP_FIELD_CONNECT_EVD_HANDLE));
	IS(dat_cr_accept(cr, DAT_HANDLE_NULL, 0, NULL), E(INVALID_HANDLE, INVALID_HANDLE_EP));
	OK(configure(0));
	OK(try_recv(&b, 1));
	IS(dat_ep_free(b.ep), E(INVALID_STATE, INVALID_STATE_EP_TENTCONNPENDING));
	IS(try_connect(&b, 1), E(INVALID_STATE, INVALID_STATE_EP_TENTCONNPENDING));
	IS(dat_ep_reset(b.ep), E(INVALID_STATE, INVALID_STATE_EP_TENTCONNPENDING));
	IS(dat_ep_disconnect(b.ep, DAT_CLOSE_ABRUPT_FLAG),
	   E(INVALID_STATE, INVALID_STATE_EP_TENTCONNPENDING));
	OK(dat_cr_accept(cr, DAT_HANDLE_NULL, 0, NULL));
	expect(a.conn, DAT_CONNECTION_EVENT_ESTABLISHED, a.ep);
	expect(b.conn, DAT_CONNECTION_EVENT_ESTABLISHED, b.ep);
	OK(try_send(&a, 3, 0));
	expect_dto(b.recv, b.ep, 1, DAT_DTO_SUCCESS);
	disconnect_pair(&a, &b);
	/* from now on it is an ordinary EP */
	OK(dat_ep_reset(b.ep));
	end_free_ep(&b);
	teardown();
}

static void test_reject(void)
{
	DAT_EP_HANDLE made;
	DAT_CR_HANDLE cr;

	setup();
	start_connect(&a);
	cr = tentative_request();
	OK(configure(0));
	OK(try_recv(&b, 1));
	made = b.ep;
	OK(dat_cr_reject(cr, 0, NULL));
	IS(dat_ep_query(made, DAT_EP_FIELD_ALL, &(DAT_EP_PARAM){ 0 }),
	   E(INVALID_HANDLE, INVALID_HANDLE_EP));
	b.ep = DAT_HANDLE_NULL;
	expect_rejected(&a);
	expect_quiet(b.conn);
	teardown();
}

/* Each request has its own EP, and the PSP keeps listening. */
static void test_several(void)
{
	struct end more[3];
	DAT_CR_HANDLE cr[3];
	DAT_EP_HANDLE ep[3];
	unsigned i;

	setup();
	for (i = 0; i < 3; i++) {
		end_open(&env, &more[i], NULL);
		start_connect(&more[i]);
		cr[i] = tentative_request();
		ep[i] = b.ep;
	}
	CU_ASSERT_PTR_NOT_EQUAL(ep[0], ep[1]);
	CU_ASSERT_PTR_NOT_EQUAL(ep[1], ep[2]);
	/* EPs of unanswered requests make a graceful close fail */
	IS(dat_ia_close(env.ia, DAT_CLOSE_GRACEFUL_FLAG),
	   E(INVALID_STATE, INVALID_STATE_IA_IN_USE));
	for (i = 0; i < 3; i++) {
		OK(dat_cr_reject(cr[i], 0, NULL));
		expect_rejected(&more[i]);
		end_close(&more[i]);
	}
	b.ep = DAT_HANDLE_NULL;
	teardown();
}

/* A request without room in the EVD leaves no EP behind. */
static void test_no_room(void)
{
	DAT_EVD_HANDLE small;
	struct end c;
	DAT_EVENT event;

	setup();
	end_open(&env, &c, NULL);
	OK(dat_psp_free(env.psp));
	small = evd_open(&env, 1, DAT_EVD_CR_FLAG);
	while (dat_psp_create(env.ia, env.qual, small, DAT_PSP_PROVIDER_FLAG, &env.psp) ==
	       E0(CONN_QUAL_IN_USE))
		env.qual++;
	start_connect(&a);
	start_connect(&c);
	expect(c.conn, DAT_CONNECTION_EVENT_NON_PEER_REJECTED, c.ep);
	if (event_next(env.async, &event))
		CU_ASSERT_EQUAL(event.event_number, DAT_ASYNC_ERROR_EVD_OVERFLOW);
	if (event_next(small, &event))
		OK(dat_cr_reject(event.event_data.cr_arrival_event_data.cr_handle, 0, NULL));
	expect_rejected(&a);
	OK(dat_psp_free(env.psp));
	env.psp = DAT_HANDLE_NULL;
	evd_close(small);
	end_close(&c);
	teardown();
}

static void test_abrupt_close(void)
{
	struct env other;
	DAT_CR_PARAM param;
	DAT_CR_HANDLE cr;

	setup();
	env_open(&other);
	while (dat_psp_create(other.ia, ++env.qual, other.cr, DAT_PSP_PROVIDER_FLAG, &other.psp) ==
	       E0(CONN_QUAL_IN_USE))
		;
	other.qual = env.qual;
	start_connect(&a);
	cr = request_next(&other);
	OK(dat_cr_query(cr, DAT_CR_FIELD_ALL, &param));
	OK(dat_ia_close(other.ia, DAT_CLOSE_ABRUPT_FLAG));
	IS(dat_ep_free(param.local_ep_handle), E(INVALID_HANDLE, INVALID_HANDLE_EP));
	expect(a.conn, DAT_CONNECTION_EVENT_NON_PEER_REJECTED, a.ep);
	free(other.memory);
	teardown();
}

/* ---- dat_psp_create_any ---- */

static void test_any_arguments(void)
{
	DAT_CONN_QUAL qual = 77;
	DAT_PSP_HANDLE psp;
	DAT_EVD_HANDLE conn;

	setup();
	conn = b.conn;
	psp = env.cr;
	IS(dat_psp_create_any(conn, NULL, conn, 7, NULL), E(INVALID_HANDLE, INVALID_HANDLE_IA));
	IS(dat_psp_create_any(env.ia, NULL, conn, 7, NULL),
	   E(INVALID_HANDLE, INVALID_HANDLE_EVD_CR));
	IS(dat_psp_create_any(env.ia, NULL, env.cr, 7, NULL), E(INVALID_PARAMETER, INVALID_ARG5));
	IS(dat_psp_create_any(env.ia, &qual, env.cr, 7, &psp), E(INVALID_PARAMETER, INVALID_ARG4));
	IS(dat_psp_create_any(env.ia, NULL, env.cr, 0, &psp), E(INVALID_PARAMETER, INVALID_ARG2));
	CU_ASSERT_EQUAL(qual, 77);
	CU_ASSERT_PTR_EQUAL(psp, env.cr);
	teardown();
}

static void test_any(void)
{
	DAT_CONN_QUAL quals[20];
	DAT_PSP_HANDLE psps[20];
	DAT_PSP_PARAM param;
	unsigned i, j;

	setup();
	for (i = 0; i < COUNT(quals); i++) {
		MUST(dat_psp_create_any(env.ia, &quals[i], env.cr, DAT_PSP_CONSUMER_FLAG,
					&psps[i]));
		CU_ASSERT_TRUE(quals[i] >= 1024 && quals[i] <= 65535);
		for (j = 0; j < i; j++)
			CU_ASSERT_NOT_EQUAL(quals[i], quals[j]);
	}
	OK(dat_psp_query(psps[3], DAT_PSP_FIELD_ALL, &param));
	CU_ASSERT_EQUAL(param.conn_qual, quals[3]);
	OK(dat_psp_free(env.psp));
	env.psp = psps[3];
	env.qual = quals[3];
	start_connect(&a);
	OK(dat_cr_reject(request_next(&env), 0, NULL));
	expect_rejected(&a);
	for (i = 0; i < COUNT(quals); i++)
		OK(dat_psp_free(psps[i]));
	env.psp = DAT_HANDLE_NULL;
	teardown();
}

static const struct unit_test tests[] = {
	{ "a request comes with an EP that accepts it", test_accept },
	{ "a reject frees the request's EP", test_reject },
	{ "each request has its own EP", test_several },
	{ "a request without room in the EVD leaves no EP", test_no_room },
	{ "an abrupt close frees a request with its EP", test_abrupt_close },
	{ "create_any, arguments in their order", test_any_arguments },
	{ "create_any finds free qualifiers", test_any },
};

UNIT_MAIN("psp_provider", tests)
