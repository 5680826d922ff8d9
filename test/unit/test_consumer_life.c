/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * Behaviour that existing consumers rely on beyond the specification: objects, their handles and
 * their end.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include "test/unit/two_ends.h"

static void test_null_results(void)
{
	DAT_REGION_DESCRIPTION region;
	DAT_LMR_CONTEXT lkey;
	DAT_LMR_HANDLE lmr;
	DAT_IA_ATTR attr;

	setup();
	region.for_va = env.memory;
	OK(dat_lmr_create(env.ia, DAT_MEM_TYPE_VIRTUAL, region, 100, env.pz, DAT_MEM_PRIV_ALL_FLAG,
			  DAT_VA_TYPE_VA, &lmr, &lkey, NULL, NULL, NULL));
	OK(dat_lmr_free(lmr));
	OK(dat_ia_query(env.ia, NULL, DAT_IA_FIELD_ALL, &attr, 0, NULL));
	OK(dat_ia_query(env.ia, NULL, 0, NULL, 0, NULL));
	teardown();
}

/* ---- EVDs and CNOs ---- */

struct traffic {
	atomic_bool failed;
	unsigned count;
};

static void *send_all(void *arg)
{
	struct traffic *t = arg;
	DAT_LMR_TRIPLET what = segment(&env, 0, 8);
	unsigned i;

	for (i = 0; i < t->count; i++) {
		DAT_EVENT event;

		if (dat_ep_post_send(a.ep, 1, &what, (DAT_DTO_COOKIE){ .as_64 = i }, 0) ||
		    !event_next(a.request, &event))
			break;
	}
	atomic_store(&t->failed, i != t->count);
	return NULL;
}

static void test_evd_lengths(void)
{
	static const DAT_COUNT lengths[] = { 1, 2, 7, 100, 1000, 5000 };
	struct traffic t = { .count = 500 };
	DAT_EVD_PARAM param;
	DAT_EVD_HANDLE evd;
	pthread_t thread;
	size_t i;

	setup();
	for (i = 0; i < COUNT(lengths); i++) {
		evd = evd_open(&env, lengths[i], DAT_EVD_DTO_FLAG);
		OK(dat_evd_query(evd, DAT_EVD_FIELD_EVD_QLEN, &param));
		CU_ASSERT_TRUE(param.evd_qlen >= lengths[i]);
		evd_close(evd);
	}
	connect_pair(&a, &b);
	post_recvs(&b, 8);
	CU_ASSERT_EQUAL_FATAL(pthread_create(&thread, NULL, send_all, &t), 0);
	for (i = 0; i < t.count; i++) {
		DAT_COUNT length = i % 2 ? 64 : 200;

		MUST(dat_evd_resize(b.recv, length));
		OK(dat_evd_query(b.recv, DAT_EVD_FIELD_EVD_QLEN, &param));
		CU_ASSERT_TRUE(param.evd_qlen >= length);
		expect_dto(b.recv, b.ep, i, DAT_DTO_SUCCESS);
		MUST(try_recv(&b, i + 8));
	}
	pthread_join(thread, NULL);
	CU_ASSERT_FALSE(atomic_load(&t.failed));
	teardown();
}

static DAT_RETURN post_se(DAT_EVD_HANDLE evd)
{
	DAT_EVENT event = { .event_number = DAT_SOFTWARE_EVENT };

	return dat_evd_post_se(evd, &event);
}

/* The CNO reports each EVD once, in any order. */
static void expect_both(DAT_CNO_HANDLE cno, const DAT_EVD_HANDLE evds[2])
{
	DAT_EVD_HANDLE first = DAT_HANDLE_NULL, second = DAT_HANDLE_NULL;
	DAT_EVENT event;

	OK(dat_cno_wait(cno, PATIENCE, &first));
	OK(dat_cno_wait(cno, PATIENCE, &second));
	CU_ASSERT_TRUE(first != second);
	CU_ASSERT_TRUE(first == evds[0] || first == evds[1]);
	CU_ASSERT_TRUE(second == evds[0] || second == evds[1]);
	OK(dat_evd_dequeue(evds[0], &event));
	OK(dat_evd_dequeue(evds[1], &event));
}

static void test_cno(void)
{
	DAT_EVD_HANDLE evds[2], none;
	DAT_CNO_HANDLE cno;
	DAT_EVENT event;
	unsigned i;

	env_open(&env);
	OK(dat_cno_create(env.ia, DAT_OS_WAIT_PROXY_AGENT_NULL, &cno));
	for (i = 0; i < 2; i++)
		OK(dat_evd_create(env.ia, 8, cno, DAT_EVD_SOFTWARE_FLAG, &evds[i]));
	OK(post_se(evds[0]));
	OK(post_se(evds[1]));
	expect_both(cno, evds);
	OK(post_se(evds[1]));
	OK(post_se(evds[0]));
	expect_both(cno, evds);
	for (i = 0; i < 2; i++)
		OK(dat_evd_modify_cno(evds[i], DAT_HANDLE_NULL));
	OK(post_se(evds[0]));
	IS(dat_cno_wait(cno, 1000, &none), DAT_QUEUE_EMPTY);
	OK(dat_evd_dequeue(evds[0], &event));
	for (i = 0; i < 2; i++)
		OK(dat_evd_modify_cno(evds[i], cno));
	OK(post_se(evds[0]));
	OK(post_se(evds[1]));
	expect_both(cno, evds);
	evd_close(evds[0]);
	evd_close(evds[1]);
	OK(dat_cno_free(cno));
	env_close(&env);
}

static void test_first_member(void)
{
	DAT_EVENT event;

	CU_ASSERT_EQUAL(offsetof(DAT_DTO_COMPLETION_EVENT_DATA, ep_handle), 0);
	CU_ASSERT_EQUAL(offsetof(DAT_CONNECTION_EVENT_DATA, ep_handle), 0);
	CU_ASSERT_EQUAL(offsetof(DAT_RMR_BIND_COMPLETION_EVENT_DATA, rmr_handle), 0);
	setup();
	start_connect(&a);
	MUST(dat_cr_accept(request_next(&env), b.ep, 0, NULL));
	/*
	 * a connection event is read as a completion and the reverse: the handle is at the same
	 * place
	 */
	if (event_next(a.conn, &event))
		CU_ASSERT_PTR_EQUAL(event.event_data.dto_completion_event_data.ep_handle, a.ep);
	expect(b.conn, DAT_CONNECTION_EVENT_ESTABLISHED, b.ep);
	MUST(try_write(&a, 1, env.rkey));
	if (event_next(a.request, &event))
		CU_ASSERT_PTR_EQUAL(event.event_data.connect_event_data.ep_handle, a.ep);
	teardown();
}

/* ---- the end of objects ---- */

static void test_refused_frees(void)
{
	setup();
	connect_pair(&a, &b);
	CU_ASSERT_EQUAL(DAT_GET_TYPE(dat_pz_free(env.pz)), DAT_INVALID_STATE);
	CU_ASSERT_EQUAL(DAT_GET_TYPE(dat_evd_free(a.request)), DAT_INVALID_STATE);
	CU_ASSERT_EQUAL(DAT_GET_TYPE(dat_evd_free(a.conn)), DAT_INVALID_STATE);
	CU_ASSERT_EQUAL(DAT_GET_TYPE(dat_evd_free(b.recv)), DAT_INVALID_STATE);
	CU_ASSERT_EQUAL(DAT_GET_TYPE(dat_evd_free(env.cr)), DAT_INVALID_STATE);
	CU_ASSERT_EQUAL(DAT_GET_TYPE(dat_ia_close(env.ia, DAT_CLOSE_GRACEFUL_FLAG)),
			DAT_INVALID_STATE);
	message_passes(&a, &b);
	disconnect_pair(&a, &b);
	teardown();
}

/* Closes with objects of every kind in use. */
static void test_abrupt_close(void)
{
	DAT_SRQ_ATTR srq_attr = { .max_recv_dtos = 4, .max_recv_iov = 1 };
	DAT_CONN_QUAL qual;
	DAT_PSP_HANDLE psp;
	DAT_RMR_HANDLE rmr;
	DAT_SRQ_HANDLE srq;
	DAT_CNO_HANDLE cno;
	struct end c, d;
	unsigned i;

	for (i = 0; i < 5; i++) {
		setup();
		end_open(&env, &c, NULL);
		end_open(&env, &d, NULL);
		connect_pair(&a, &b);
		post_recvs(&a, 4);
		OK(try_send(&b, 1, 0));
		MUST(dat_psp_create_any(env.ia, &qual, env.cr, DAT_PSP_CONSUMER_FLAG, &psp));
		MUST(dat_rmr_create(env.pz, &rmr));
		MUST(dat_srq_create(env.ia, env.pz, &srq_attr, &srq));
		MUST(dat_cno_create(env.ia, DAT_OS_WAIT_PROXY_AGENT_NULL, &cno));
		start_connect(&c); /* a request that is never answered */
		request_next(&env);
		start_connect(&d); /* and one that is never taken */
		OK(dat_ia_close(env.ia, DAT_CLOSE_ABRUPT_FLAG));
		free(env.memory);
	}
}

static void expect_bad(DAT_RETURN status)
{
	CU_ASSERT_EQUAL(DAT_GET_TYPE(status), DAT_INVALID_HANDLE);
}

/* Calls of every kind with a handle of a wrong kind. */
static void use_all(DAT_HANDLE bad, DAT_HANDLE bad_ia)
{
	DAT_EP_PARAM ep;
	DAT_EVD_PARAM evd;
	DAT_PSP_PARAM psp;
	DAT_LMR_PARAM lmr;
	DAT_CR_PARAM cr;
	DAT_SRQ_PARAM srq;
	DAT_IA_ATTR attr;
	DAT_EP_STATE state;
	DAT_PZ_HANDLE pz;
	DAT_EVENT event;
	DAT_COUNT more;

	expect_bad(dat_ia_query(bad_ia, NULL, DAT_IA_FIELD_ALL, &attr, 0, NULL));
	expect_bad(dat_ia_close(bad_ia, DAT_CLOSE_GRACEFUL_FLAG));
	expect_bad(dat_pz_create(bad_ia, &pz));
	expect_bad(dat_ep_query(bad, DAT_EP_FIELD_ALL, &ep));
	expect_bad(dat_ep_get_status(bad, &state, NULL, NULL));
	expect_bad(dat_ep_post_send(bad, 0, NULL, (DAT_DTO_COOKIE){ .as_64 = 0 }, 0));
	expect_bad(dat_ep_post_recv(bad, 0, NULL, (DAT_DTO_COOKIE){ .as_64 = 0 }, 0));
	expect_bad(dat_ep_disconnect(bad, DAT_CLOSE_ABRUPT_FLAG));
	expect_bad(dat_ep_reset(bad));
	expect_bad(dat_ep_free(bad));
	expect_bad(dat_evd_query(bad, DAT_EVD_FIELD_ALL, &evd));
	expect_bad(dat_evd_wait(bad, 0, 1, &event, &more));
	expect_bad(dat_evd_dequeue(bad, &event));
	expect_bad(dat_evd_free(bad));
	expect_bad(dat_psp_query(bad, DAT_PSP_FIELD_ALL, &psp));
	expect_bad(dat_psp_free(bad));
	expect_bad(dat_cr_query(bad, DAT_CR_FIELD_ALL, &cr));
	expect_bad(dat_cr_reject(bad, 0, NULL));
	expect_bad(dat_lmr_query(bad, DAT_LMR_FIELD_ALL, &lmr));
	expect_bad(dat_lmr_free(bad));
	expect_bad(dat_rmr_free(bad));
	expect_bad(dat_rsp_free(bad));
	expect_bad(dat_cno_free(bad));
	expect_bad(dat_srq_query(bad, DAT_SRQ_FIELD_ALL, &srq));
	expect_bad(dat_srq_free(bad));
}

static void test_bad_handles(void)
{
	DAT_IA_HANDLE ia;
	DAT_EP_HANDLE ep;
	DAT_EVD_HANDLE evd;
	DAT_PZ_HANDLE pz;

	setup();
	use_all(DAT_HANDLE_NULL, DAT_HANDLE_NULL);
	use_all(env.pz, env.pz); /* of another kind */
	OK(dat_pz_create(env.ia, &pz));
	OK(dat_pz_free(pz));
	use_all(pz, pz); /* freed */
	ep = a.ep;
	evd = a.recv;
	ia = env.ia;
	teardown();
	use_all(ep, ia); /* of a closed IA */
	use_all(evd, ia);
}

static void expect_words(DAT_RETURN code)
{
	const char *major = NULL, *minor = NULL;

	CU_ASSERT_EQUAL(dat_strerror(code, &major, &minor), DAT_SUCCESS);
	CU_ASSERT_TRUE(major && *major && minor);
}

/* Consumers also pass the status of a completion. */
static void test_strerror(void)
{
	static const DAT_RETURN failures[] = {
		E0(CONN_QUAL_IN_USE),
		E0(LENGTH_ERROR),
		E0(PRIVILEGES_VIOLATION),
		E(INSUFFICIENT_RESOURCES, RESOURCE_MEMORY),
		E(INVALID_HANDLE, INVALID_HANDLE_EP),
		E(INVALID_STATE, INVALID_STATE_EP_UNCONNECTED),
		E0(MODEL_NOT_SUPPORTED),
	};
	unsigned i;

	for (i = DAT_DTO_SUCCESS; i <= DAT_RMR_OPERATION_FAILED; i++)
		expect_words(i);
	expect_words(DAT_QUEUE_EMPTY);
	expect_words(DAT_TIMEOUT_EXPIRED);
	for (i = 0; i < COUNT(failures); i++)
		expect_words(failures[i]);
}

static const struct unit_test tests[] = {
	{ "C7: optional results may be NULL", test_null_results },
	{ "C24: an EVD has at least the requested length, and can be resized under load",
	  test_evd_lengths },
	{ "C25: an object in use is not freed, and continues to work", test_refused_frees },
	{ "C25: an abrupt close succeeds with everything alive", test_abrupt_close },
	{ "C26: handles of freed objects, closed IAs and other kinds are refused",
	  test_bad_handles },
	{ "C27: dat_strerror has text for every code and DTO status", test_strerror },
	{ "C29: a CNO needs no agent, returns EVDs in any order, can be detached and attached",
	  test_cno },
	{ "C30: the handle is the first member of each event's data", test_first_member },
};

UNIT_MAIN("consumer_life", tests)
