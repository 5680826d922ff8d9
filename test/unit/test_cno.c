/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Notification objects: their calls, the ready list, the descriptor, and their end. */
#include "test/unit/cno_rig.h"

static void no_agent(DAT_PVOID data, DAT_EVD_HANDLE evd)
{
	(void)data;
	(void)evd;
}

static void test_create_checks(void)
{
	DAT_CNO_HANDLE cno = DAT_HANDLE_NULL;
	DAT_FD fd = -7;
	struct rig rig;

	rig_open(&rig, NULL);
	IS(dat_cno_create(rig.pz, DAT_OS_WAIT_PROXY_AGENT_NULL, &cno),
	   E(INVALID_HANDLE, INVALID_HANDLE_IA));
	IS(dat_cno_create(rig.ia, DAT_OS_WAIT_PROXY_AGENT_NULL, NULL),
	   E(INVALID_PARAMETER, INVALID_ARG3));
	IS(dat_cno_fd_create(rig.pz, &fd, &cno), E(INVALID_HANDLE, INVALID_HANDLE_IA));
	IS(dat_cno_fd_create(rig.ia, NULL, &cno), E(INVALID_PARAMETER, INVALID_ARG2));
	IS(dat_cno_fd_create(rig.ia, &fd, NULL), E(INVALID_PARAMETER, INVALID_ARG3));
	CU_ASSERT_EQUAL(fd, -7);
	CU_ASSERT_PTR_NULL(cno);
	IS(dat_cno_free(rig.pz), E(INVALID_HANDLE, INVALID_HANDLE_CNO));
	IS(dat_evd_create(rig.ia, 4, rig.recv, DAT_EVD_DTO_FLAG, &cno),
	   E(INVALID_HANDLE, INVALID_HANDLE_CNO));
	rig_close(&rig);
}

static void test_query(void)
{
	DAT_OS_WAIT_PROXY_AGENT agent = { &agent, no_agent };
	DAT_CNO_HANDLE plain, armed, with_fd;
	DAT_HANDLE_TYPE type;
	DAT_CNO_PARAM param;
	unsigned mask;
	struct rig rig;
	DAT_FD fd;

	rig_open(&rig, NULL);
	plain = rig_cno(&rig);
	MUST(dat_cno_create(rig.ia, agent, &armed));
	MUST(dat_cno_fd_create(rig.ia, &fd, &with_fd));
	IS(dat_cno_query(rig.pz, DAT_CNO_FIELD_ALL, &param), E(INVALID_HANDLE, INVALID_HANDLE_CNO));
	IS(dat_cno_query(plain, 5, &param), E(INVALID_PARAMETER, INVALID_ARG2));
	IS(dat_cno_query(plain, 0, NULL), E(INVALID_PARAMETER, INVALID_ARG3));
	for (mask = 0; mask <= DAT_CNO_FIELD_ALL; mask++) {
		memset(&param, 0xab, sizeof(param));
		MUST(dat_cno_query(plain, mask, &param));
		CU_ASSERT_PTR_EQUAL(param.ia_handle, rig.ia);
		CU_ASSERT_EQUAL(param.proxy_type, DAT_PROXY_TYPE_NONE);
		CU_ASSERT_PTR_NULL(param.proxy.agent.proxy_agent_func);
	}
	MUST(dat_cno_query(armed, DAT_CNO_FIELD_ALL, &param));
	CU_ASSERT_EQUAL(param.proxy_type, DAT_PROXY_TYPE_AGENT);
	CU_ASSERT_PTR_EQUAL(param.proxy.agent.instance_data, &agent);
	MUST(dat_cno_query(with_fd, DAT_CNO_FIELD_ALL, &param));
	CU_ASSERT_EQUAL(param.proxy_type, DAT_PROXY_TYPE_FD);
	CU_ASSERT_EQUAL(param.proxy.fd, fd);
	IS(dat_cno_modify_agent(with_fd, agent), E(INVALID_STATE, INVALID_STATE_CNO_IN_USE));
	IS(dat_cno_modify_agent(rig.pz, agent), E(INVALID_HANDLE, INVALID_HANDLE_CNO));
	MUST(dat_get_handle_type(plain, &type));
	CU_ASSERT_EQUAL(type, DAT_HANDLE_TYPE_CNO);
	MUST(dat_cno_free(plain));
	MUST(dat_cno_free(armed));
	MUST(dat_cno_free(with_fd));
	IS(dat_cno_free(plain), E(INVALID_HANDLE, INVALID_HANDLE_CNO));
	rig_close(&rig);
}

static void test_take_checks(void)
{
	DAT_EVD_HANDLE evd = (DAT_EVD_HANDLE)(uintptr_t)8;
	DAT_CNO_HANDLE cno;
	struct rig rig;

	rig_open(&rig, NULL);
	cno = rig_cno(&rig);
	IS(dat_cno_wait(rig.pz, 0, &evd), E(INVALID_HANDLE, INVALID_HANDLE_CNO));
	IS(dat_cno_wait(cno, 0, NULL), E(INVALID_PARAMETER, INVALID_ARG3));
	IS(dat_cno_trigger(rig.pz, &evd), E(INVALID_HANDLE, INVALID_HANDLE_CNO));
	IS(dat_cno_trigger(cno, NULL), E(INVALID_PARAMETER, INVALID_ARG2));
	CU_ASSERT_PTR_EQUAL(evd, (DAT_EVD_HANDLE)(uintptr_t)8);
	IS(dat_cno_wait(cno, 0, &evd), 0x000d0000u);
	CU_ASSERT_PTR_NULL(evd);
	evd = (DAT_EVD_HANDLE)(uintptr_t)8;
	IS(dat_cno_trigger(cno, &evd), 0x000d0000u);
	CU_ASSERT_PTR_NULL(evd);
	MUST(dat_cno_free(cno));
	rig_close(&rig);
}

static void test_ready_list(void)
{
	DAT_EVD_HANDLE evds[3], evd;
	DAT_CNO_HANDLE cno;
	struct rig rig;
	int i;

	rig_open(&rig, NULL);
	cno = rig_cno(&rig);
	for (i = 0; i < 3; i++)
		evds[i] = rig_evd_on(&rig, cno, DAT_EVD_SOFTWARE_FLAG);
	for (i = 0; i < 6; i++)
		MUST(rig_post_se(evds[i % 3], 1));
	/* each is returned once, in the order of the triggers */
	for (i = 0; i < 3; i++)
		rig_named(cno, evds[i]);
	rig_named(cno, NULL); /* events are queued, but none is new */
	for (i = 0; i < 3; i++) {
		rig_take(evds[i]);
		rig_take(evds[i]);
		MUST(rig_post_se(evds[i], 2));
	}
	MUST(dat_cno_trigger(cno, &evd));
	CU_ASSERT_PTR_EQUAL(evd, evds[2]); /* the last one first */
	rig_take(evds[0]);		   /* an EVD that has been emptied is not returned */
	rig_named(cno, evds[1]);
	rig_named(cno, NULL);
	MUST(rig_post_se(evds[0], 3));
	MUST(dat_evd_free(evds[0])); /* nor is a freed one */
	rig_named(cno, NULL);
	IS(dat_cno_free(cno), E(INVALID_STATE, INVALID_STATE_CNO_IN_USE));
	MUST(dat_evd_free(evds[1]));
	MUST(dat_evd_free(evds[2]));
	rig_named(cno, NULL); /* no trigger is left although no thread waited */
	MUST(dat_cno_free(cno));
	rig_close(&rig);
}

static void test_descriptor(void)
{
	DAT_EVD_HANDLE evd, other, named;
	DAT_CNO_HANDLE cno;
	struct rig rig;
	DAT_FD fd = -1;

	rig_open(&rig, NULL);
	MUST(dat_cno_fd_create(rig.ia, &fd, &cno));
	evd = rig_evd_on(&rig, cno, DAT_EVD_SOFTWARE_FLAG);
	other = rig_evd_on(&rig, cno, DAT_EVD_SOFTWARE_FLAG);
	CU_ASSERT_FALSE(rig_readable(fd));
	MUST(rig_post_se(evd, 1));
	CU_ASSERT_TRUE(rig_readable(fd));
	MUST(rig_post_se(other, 1));
	MUST(dat_cno_trigger(cno, &named));
	CU_ASSERT_TRUE(rig_readable(fd));
	MUST(dat_cno_trigger(cno, &named));
	CU_ASSERT_FALSE(rig_readable(fd));
	MUST(rig_post_se(evd, 2));
	CU_ASSERT_TRUE(rig_readable(fd));
	rig_take(evd);
	CU_ASSERT_TRUE(rig_readable(fd));
	rig_take(evd); /* the EVD's last event */
	CU_ASSERT_FALSE(rig_readable(fd));
	MUST(rig_post_se(evd, 3));
	MUST(dat_evd_modify_cno(evd, DAT_HANDLE_NULL));
	CU_ASSERT_FALSE(rig_readable(fd));
	MUST(dat_evd_free(evd));
	MUST(dat_evd_free(other));
	MUST(dat_cno_free(cno));
	rig_close(&rig);
}

static void test_close(void)
{
	DAT_EVD_HANDLE async = DAT_HANDLE_NULL, evd;
	DAT_EVD_PARAM param;
	DAT_CNO_HANDLE cno;
	DAT_IA_HANDLE ia2;
	struct rig rig;

	rig_open(&rig, NULL);
	ia2 = rig_ia("fake", &async);
	cno = rig_cno(&rig);
	IS(dat_ia_close(rig.ia, DAT_CLOSE_GRACEFUL_FLAG),
	   E(INVALID_STATE, INVALID_STATE_IA_IN_USE));
	rig_evd_on(&rig, cno, DAT_EVD_DTO_FLAG);
	MUST(dat_evd_modify_cno(rig.async, cno));
	/* an EVD of another IA survives, without a CNO */
	MUST(dat_evd_create(ia2, 4, cno, DAT_EVD_DTO_FLAG | DAT_EVD_SOFTWARE_FLAG, &evd));
	MUST(dat_ia_close(rig.ia, DAT_CLOSE_ABRUPT_FLAG));
	MUST(dat_evd_query(evd, DAT_EVD_FIELD_ALL, &param));
	CU_ASSERT_PTR_NULL(param.cno_handle);
	IS(dat_cno_free(cno), E(INVALID_HANDLE, INVALID_HANDLE_CNO));
	MUST(rig_post_se(evd, 1));
	rig_take(evd);
	MUST(dat_evd_free(evd));
	MUST(dat_ia_close(ia2, DAT_CLOSE_GRACEFUL_FLAG));
	CU_ASSERT_EQUAL(fake.cqs + fake.pds, 0);
}

static void test_async_overflow_triggers(void)
{
	DAT_CNO_HANDLE cno;
	struct rig rig;
	int i;

	rig_open(&rig, NULL);
	cno = rig_cno(&rig);
	MUST(dat_evd_modify_cno(rig.async, cno));
	MUST(dat_evd_modify_cno(rig.request, cno));
	for (i = 0; i <= RIG_QLEN; i++)
		fake.upcalls.async(&fake.devices[0], IB_ASYNC_PORT_ERROR, NULL);
	rig_named(cno, rig.async);
	for (i = 0; i <= RIG_QLEN; i++)
		rig_take(rig.async);
	fake.upcalls.async(&fake.devices[0], IB_ASYNC_CQ_ERROR, rig.request);
	rig_named(cno, rig.request);
	fake_run_timers();
	rig_named(cno, rig.async);
	rig_take(rig.async);
	MUST(dat_evd_modify_cno(rig.async, DAT_HANDLE_NULL));
	MUST(dat_evd_modify_cno(rig.request, DAT_HANDLE_NULL));
	MUST(dat_cno_free(cno));
	rig_close(&rig);
}

static const struct unit_test tests[] = {
	{ "create, fd_create, free: checks", test_create_checks },
	{ "query and modify_agent check their arguments; each proxy type works", test_query },
	{ "wait and trigger check their arguments; QUEUE_EMPTY has no subtype", test_take_checks },
	{ "the ready list returns each EVD once; a CNO in use is not freed", test_ready_list },
	{ "the descriptor is readable exactly while triggered", test_descriptor },
	{ "a graceful close fails with a CNO; an abrupt one detaches its EVDs", test_close },
	{ "an overflow of an EVD triggers its CNO", test_async_overflow_triggers },
};

UNIT_MAIN("cno", tests)
