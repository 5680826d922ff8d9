/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Public service points. */
#include "test/unit/ep_util.h"

static struct env env;

static void setup(void)
{
	env_open(&env);
	env_listen(&env);
}

static void test_arguments(void)
{
	DAT_PSP_HANDLE psp;
	DAT_EVD_HANDLE conn;

	setup();
	psp = env.cr;
	conn = evd_open(&env, 1, DAT_EVD_CONNECTION_FLAG);
	IS(dat_psp_create(DAT_HANDLE_NULL, 1, env.cr, 0, &psp),
	   E(INVALID_HANDLE, INVALID_HANDLE_IA));
	IS(dat_psp_create(env.ia, 0, env.pz, 7, NULL), E(INVALID_HANDLE, INVALID_HANDLE_EVD_CR));
	IS(dat_psp_create(env.ia, 0, conn, 7, NULL), E(INVALID_HANDLE, INVALID_HANDLE_EVD_CR));
	IS(dat_psp_create(env.ia, 0, env.cr, 7, NULL), E(INVALID_PARAMETER, INVALID_ARG5));
	IS(dat_psp_create(env.ia, 0, env.cr, 7, &psp), E(INVALID_PARAMETER, INVALID_ARG4));
	IS(dat_psp_create(env.ia, 0, env.cr, 0, &psp), E(INVALID_PARAMETER, INVALID_ARG2));
	/* C6: without a subtype */
	IS(dat_psp_create(env.ia, env.qual, env.cr, 0, &psp), E0(CONN_QUAL_IN_USE));
	CU_ASSERT_PTR_EQUAL(psp, env.cr);
	evd_close(conn);
	env_close(&env);
}

static void test_query(void)
{
	DAT_PSP_PARAM param;
	DAT_EVD_PARAM evd;

	setup();
	IS(dat_psp_query(env.pz, DAT_PSP_FIELD_ALL, &param), E(INVALID_HANDLE, INVALID_HANDLE_PSP));
	IS(dat_psp_query(env.psp, DAT_PSP_FIELD_ALL, NULL), E(INVALID_PARAMETER, INVALID_ARG3));
	IS(dat_psp_query(env.psp, (DAT_PSP_PARAM_MASK)0x10, &param),
	   E(INVALID_PARAMETER, INVALID_ARG2));
	OK(dat_psp_query(env.psp, DAT_PSP_FIELD_ALL, &param));
	CU_ASSERT_PTR_EQUAL(param.ia_handle, env.ia);
	CU_ASSERT_EQUAL(param.conn_qual, env.qual);
	CU_ASSERT_PTR_EQUAL(param.evd_handle, env.cr);
	CU_ASSERT_EQUAL(param.psp_flags, DAT_PSP_CONSUMER_FLAG);
	OK(dat_evd_query(env.cr, DAT_EVD_FIELD_ALL, &evd));
	env_close(&env);
}

static void test_free(void)
{
	DAT_PSP_HANDLE psp;
	unsigned i;

	setup();
	IS(dat_evd_free(env.cr), E(INVALID_STATE, INVALID_STATE_EVD_IN_USE));
	for (i = 0; i < 100; i++) {
		psp = env.psp;
		OK(dat_psp_free(psp));
		IS(dat_psp_free(psp), E(INVALID_HANDLE, INVALID_HANDLE_PSP));
		OK(dat_psp_create(env.ia, env.qual, env.cr, 0, &env.psp));
	}
	env_close(&env);
}

/* A mixed EVD also accepts requests. */
static void test_mixed_evd(void)
{
	DAT_EVD_HANDLE mixed;
	struct end a, b;
	DAT_EVENT event;

	setup();
	OK(dat_psp_free(env.psp));
	mixed = evd_open(&env, 16,
			 DAT_EVD_CR_FLAG | DAT_EVD_DTO_FLAG | DAT_EVD_RMR_BIND_FLAG |
				 DAT_EVD_CONNECTION_FLAG);
	while (dat_psp_create(env.ia, env.qual, mixed, 0, &env.psp) == E0(CONN_QUAL_IN_USE))
		env.qual++;
	end_open(&env, &a, NULL);
	end_open(&env, &b, NULL);
	start_connect(&a);
	if (event_next(mixed, &event)) {
		CU_ASSERT_EQUAL(event.event_number, DAT_CONNECTION_REQUEST_EVENT);
		CU_ASSERT_PTR_EQUAL(event.event_data.cr_arrival_event_data.local_ia_address_ptr,
				    env.address);
		OK(dat_cr_accept(event.event_data.cr_arrival_event_data.cr_handle, b.ep, 0, NULL));
	}
	expect(a.conn, DAT_CONNECTION_EVENT_ESTABLISHED, a.ep);
	expect(b.conn, DAT_CONNECTION_EVENT_ESTABLISHED, b.ep);
	disconnect_pair(&a, &b);
	OK(dat_psp_free(env.psp));
	env.psp = DAT_HANDLE_NULL;
	end_close(&a);
	end_close(&b);
	evd_close(mixed);
	env_close(&env);
}

/*
 * The listener is closed and opened again while a dozen clients connect; each attempt ends in one
 * event.
 */
static void test_churn(void)
{
	struct end ends[12];
	DAT_EVENT event;
	unsigned i, round, answered = 0;

	setup();
	for (i = 0; i < COUNT(ends); i++)
		end_open(&env, &ends[i], NULL);
	for (round = 0; round < 10; round++) {
		for (i = 0; i < COUNT(ends); i++)
			start_connect(&ends[i]);
		OK(dat_psp_free(env.psp));
		OK(dat_psp_create(env.ia, env.qual, env.cr, 0, &env.psp));
		for (i = 0; i < COUNT(ends); i++) {
			while (dat_evd_wait(ends[i].conn, 1000, 1, &event, &(DAT_COUNT){ 0 }) !=
			       DAT_SUCCESS) {
				if (dat_evd_dequeue(env.cr, &event) == DAT_SUCCESS)
					OK(dat_cr_reject(
						event.event_data.cr_arrival_event_data.cr_handle, 0,
						NULL));
			}
			CU_ASSERT_TRUE(event.event_number == DAT_CONNECTION_EVENT_PEER_REJECTED ||
				       event.event_number ==
					       DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
			OK(dat_ep_reset(ends[i].ep));
			expect_quiet(ends[i].conn);
			answered++;
		}
	}
	CU_ASSERT_EQUAL(answered, 10 * COUNT(ends));
	for (i = 0; i < COUNT(ends); i++)
		end_close(&ends[i]);
	env_close(&env);
}

static const struct unit_test tests[] = {
	{ "arguments in their order", test_arguments },
	{ "query", test_query },
	{ "after a free the qualifier can be used at once", test_free },
	{ "requests can come to an EVD of several streams", test_mixed_evd },
	{ "a request that races with the close ends in one event", test_churn },
};

UNIT_MAIN("psp", tests)
