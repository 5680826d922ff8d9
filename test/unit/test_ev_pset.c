/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Poll sets. */
#include "test/unit/ev_rig.h"

static DAT_HANDLE set_of(const struct rig *rig)
{
	DAT_HANDLE set = DAT_HANDLE_NULL;

	MUST(DAT_PSET_CREATE(rig->ia, &set));
	return set;
}

static void test_checks(void)
{
	DAT_CONTEXT context = { .as_64 = 0x1234 }, back = { .as_64 = 0 };
	DAT_HANDLE_TYPE type;
	DAT_EVD_HANDLE found[2];
	DAT_HANDLE set;
	DAT_COUNT n = 77;
	struct rig rig;

	rig_open(&rig, NULL);
	IS(DAT_PSET_CREATE(rig.recv, &set), BAD_HANDLE1);
	IS(DAT_PSET_CREATE(rig.ia, NULL), ARG(3));
	set = set_of(&rig);
	MUST(dat_get_handle_type(set, &type));
	CU_ASSERT_EQUAL(type, DAT_HANDLE_TYPE_PSET);
	MUST(dat_set_consumer_context(set, context));
	MUST(dat_get_consumer_context(set, &back));
	CU_ASSERT_EQUAL(back.as_64, 0x1234);
	IS(DAT_PSET_ADD(rig.recv, rig.recv), BAD_HANDLE1);
	IS(DAT_PSET_ADD(set, rig.pz), BAD_EVD);
	IS(DAT_PSET_ADD(set, DAT_HANDLE_NULL), BAD_EVD);
	IS(DAT_PSET_ADD(set, (DAT_EVD_HANDLE)(uintptr_t)1), BAD_EVD);
	IS(DAT_PSET_DEL(rig.recv, rig.recv), BAD_HANDLE1);
	IS(DAT_PSET_DEL(set, rig.recv), ARG(3));
	IS(DAT_PSET_POLL(rig.recv, 1, found, &n), BAD_HANDLE1);
	IS(DAT_PSET_POLL(set, 0, found, &n), ARG(3));
	IS(DAT_PSET_POLL(set, 1, NULL, &n), ARG(4));
	IS(DAT_PSET_POLL(set, 1, found, NULL), ARG(5));
	IS(DAT_PSET_POLL(set, 1, found, &n), DAT_QUEUE_EMPTY);
	CU_ASSERT_EQUAL(n, 0);
	IS(DAT_PSET_FREE(rig.recv), BAD_HANDLE1);
	IS(dat_ia_close(rig.ia, DAT_CLOSE_GRACEFUL_FLAG),
	   E(INVALID_STATE, INVALID_STATE_IA_IN_USE));
	MUST(DAT_PSET_FREE(set));
	IS(DAT_PSET_FREE(set), BAD_HANDLE1);
	rig_close(&rig);
}

static void test_in_use(void)
{
	DAT_HANDLE set, other;
	struct rig rig;

	rig_open(&rig, NULL);
	set = set_of(&rig);
	other = set_of(&rig);
	MUST(DAT_PSET_ADD(set, rig.recv));
	IS(DAT_PSET_ADD(set, rig.recv), E(INVALID_STATE, INVALID_STATE_EVD_IN_USE));
	MUST(DAT_PSET_ADD(other, rig.recv));
	IS(dat_evd_free(rig.recv), E(INVALID_STATE, INVALID_STATE_EVD_IN_USE));
	IS(DAT_PSET_FREE(set), E(INVALID_STATE, INVALID_STATE_EVD_IN_USE));
	MUST(DAT_PSET_DEL(set, rig.recv));
	IS(DAT_PSET_DEL(set, rig.recv), ARG(3));
	IS(dat_evd_free(rig.recv), E(INVALID_STATE, INVALID_STATE_EVD_IN_USE));
	MUST(DAT_PSET_DEL(other, rig.recv));
	MUST(DAT_PSET_FREE(set));
	MUST(DAT_PSET_FREE(other));
	rig_close(&rig);
}

#define EVDS  64
#define ASKED 4

static void test_fair(void)
{
	DAT_EVD_HANDLE evds[EVDS], found[ASKED];
	unsigned seen[EVDS] = { 0 }, round, i, k;
	DAT_HANDLE set;
	struct rig rig;
	DAT_COUNT n;

	rig_open(&rig, NULL);
	set = set_of(&rig);
	for (i = 0; i < EVDS; i++) {
		evds[i] = rig_evd(&rig, 4, DAT_EVD_SOFTWARE_FLAG);
		MUST(DAT_PSET_ADD(set, evds[i]));
		MUST(rig_post_se(evds[i], i));
	}
	for (round = 0; round < 10 * EVDS / ASKED; round++) {
		MUST(DAT_PSET_POLL(set, ASKED, found, &n));
		CU_ASSERT_EQUAL_FATAL(n, ASKED);
		for (k = 0; k < ASKED; k++)
			for (i = 0; i < EVDS; i++)
				seen[i] += found[k] == evds[i];
		if (round % (EVDS / ASKED) == EVDS / ASKED - 1)
			for (i = 0; i < EVDS; i++)
				CU_ASSERT_EQUAL(seen[i], round / (EVDS / ASKED) + 1);
	}
	/* Removing an EVD does not skip the turn of another. */
	MUST(DAT_PSET_DEL(set, evds[0]));
	MUST(DAT_PSET_POLL(set, ASKED, found, &n));
	CU_ASSERT_PTR_EQUAL(found[0], evds[1]);
	for (i = 1; i < EVDS; i++)
		rig_empty(evds[i], 1);
	IS(DAT_PSET_POLL(set, ASKED, found, &n), DAT_QUEUE_EMPTY);
	for (i = 0; i < EVDS; i++) {
		if (i)
			MUST(DAT_PSET_DEL(set, evds[i]));
		MUST(dat_evd_free(evds[i]));
	}
	MUST(DAT_PSET_FREE(set));
	rig_close(&rig);
}

static void test_finds(void)
{
	DAT_EVD_HANDLE found[4];
	DAT_HANDLE set;
	struct rig rig;
	DAT_COUNT n;

	rig_open_ep(&rig);
	rig_connect(&rig);
	set = set_of(&rig);
	MUST(DAT_PSET_ADD(set, rig.recv));
	MUST(DAT_PSET_ADD(set, rig.request));
	rig_receive(&rig, 1);
	MUST(DAT_PSET_POLL(set, 4, found, &n));
	CU_ASSERT_EQUAL(n, 1);
	CU_ASSERT_PTR_EQUAL(found[0], rig.recv);
	rig_cq(rig.request)->failing = true; /* the poll itself finds the failure */
	MUST(DAT_PSET_POLL(set, 4, found, &n));
	CU_ASSERT_EQUAL(n, 2);
	rig_empty(rig.recv, 1);
	CU_ASSERT_TRUE(dat_evd_dequeue(rig.request, &(DAT_EVENT){ 0 }) != DAT_SUCCESS);
	CU_ASSERT_EQUAL(rig_take(rig.async).event_number, DAT_ASYNC_ERROR_EVD_OVERFLOW);
	MUST(DAT_PSET_DEL(set, rig.recv));
	MUST(DAT_PSET_DEL(set, rig.request));
	MUST(DAT_PSET_FREE(set));
	rig_close(&rig);
}

static void test_abrupt_close(void)
{
	DAT_EVD_HANDLE async = DAT_HANDLE_NULL, other, found[4];
	DAT_HANDLE set, set2;
	DAT_IA_HANDLE ia2;
	struct rig rig;
	DAT_COUNT n;

	rig_open(&rig, NULL);
	ia2 = rig_ia("fake", &async);
	MUST(dat_evd_create(ia2, 4, DAT_HANDLE_NULL, DAT_EVD_SOFTWARE_FLAG, &other));
	set = set_of(&rig);
	MUST(DAT_PSET_CREATE(ia2, &set2));
	MUST(DAT_PSET_ADD(set, other));
	MUST(DAT_PSET_ADD(set2, rig.recv));
	MUST(rig_post_se(rig.recv, 1));
	MUST(dat_ia_close(rig.ia, DAT_CLOSE_ABRUPT_FLAG));
	IS(DAT_PSET_FREE(set), BAD_HANDLE1);
	/*
	 * `other`, which was in the closed IA's set, can be freed; set2 still holds rig.recv, which
	 * was freed with its IA and has no events.
	 */
	IS(DAT_PSET_POLL(set2, 4, found, &n), DAT_QUEUE_EMPTY);
	MUST(DAT_PSET_DEL(set2, rig.recv));
	MUST(DAT_PSET_FREE(set2));
	MUST(dat_evd_free(other));
	MUST(dat_ia_close(ia2, DAT_CLOSE_GRACEFUL_FLAG));
	CU_ASSERT_EQUAL(fake.cqs + fake.pds, 0);
}

struct changer {
	DAT_HANDLE set;
	DAT_EVD_HANDLE evd;
	atomic_bool stop;
};

static void *change(void *arg)
{
	struct changer *changer = arg;

	while (!atomic_load(&changer->stop)) {
		IS(DAT_PSET_ADD(changer->set, changer->evd), DAT_SUCCESS);
		IS(DAT_PSET_DEL(changer->set, changer->evd), DAT_SUCCESS);
	}
	return NULL;
}

static void test_change_while_polled(void)
{
	struct changer changer = { .stop = false };
	DAT_EVD_HANDLE found[4];
	pthread_t thread;
	struct rig rig;
	unsigned i;
	DAT_COUNT n;

	rig_open(&rig, NULL);
	changer.set = set_of(&rig);
	changer.evd = rig.recv;
	MUST(DAT_PSET_ADD(changer.set, rig.conn));
	MUST(rig_post_se(rig.recv, 1));
	CU_ASSERT_EQUAL_FATAL(pthread_create(&thread, NULL, change, &changer), 0);
	for (i = 0; i < 20000; i++) {
		DAT_RETURN status = DAT_PSET_POLL(changer.set, 4, found, &n);

		if (status != DAT_QUEUE_EMPTY && (status != DAT_SUCCESS || found[0] != rig.recv))
			break;
	}
	CU_ASSERT_EQUAL(i, 20000);
	atomic_store(&changer.stop, true);
	CU_ASSERT_EQUAL(pthread_join(thread, NULL), 0);
	MUST(DAT_PSET_DEL(changer.set, rig.conn));
	MUST(DAT_PSET_FREE(changer.set));
	rig_empty(rig.recv, 1);
	rig_close(&rig);
}

static const struct unit_test tests[] = {
	{ "poll sets: each check, type, context, graceful close", test_checks },
	{ "freeing an EVD in a set, and a set with EVDs: EVD_IN_USE", test_in_use },
	{ "64 EVDs, 4 at a time: each within 16 calls", test_fair },
	{ "a poll set returns completions and failures", test_finds },
	{ "an abrupt close frees poll sets", test_abrupt_close },
	{ "EVDs can be added and removed while a set is polled", test_change_while_polled },
};

UNIT_MAIN("ev_pset", tests)
