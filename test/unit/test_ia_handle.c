/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* IA handles: small, reused late, held during calls; and their translation for providers. */
#include <pthread.h>
#include "dat/common/handle.h"
#include "test/unit/fake.h"

struct fake_control fake;

#define FAKE_CONF "fake u2.0 nonthreadsafe default @ fake.1.0 \"\" \"\"\n"
#define BAD_IA	  FAKE_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_IA)

static struct fake_object objects[IA_INDEX_END];
static const DAT_PROVIDER no_provider;
static struct dr_entry entry = { .info.ia_name = "direct" };
static const struct reg_hold hold = { .dr = &entry };

/* Inserts `n` handles without a provider. */
static DAT_IA_HANDLE insert(unsigned n)
{
	DAT_IA_HANDLE ia = DAT_HANDLE_NULL;

	objects[n].provider = &no_provider;
	ia_insert(&objects[n], DAT_EXTENSION_NONE, &hold, &ia);
	return ia;
}

static void remove_ia(DAT_IA_HANDLE ia)
{
	struct ia_slot *slot = ia_retire(ia);

	CU_ASSERT_PTR_NOT_NULL(slot);
	if (slot)
		ia_remove(slot);
}

static void child_recycled_late(void)
{
	uintptr_t i;

	for (i = 0; i < 200; i++) {
		DAT_IA_HANDLE ia = insert(0);

		CU_ASSERT_EQUAL((uintptr_t)ia, i % 63 + 1);
		remove_ia(ia);
		CU_ASSERT_PTR_NULL(ia_acquire(ia));
	}
}

static void recycled_late(void)
{
	fake_in_child("", child_recycled_late);
}

static void child_grows(void)
{
	DAT_IA_HANDLE other;
	uintptr_t i;

	for (i = 1; i < 64; i++)
		CU_ASSERT_EQUAL((uintptr_t)insert(i), i);
	CU_ASSERT_EQUAL(dats_get_ia_handle((DAT_IA_HANDLE)64, &other), BAD_IA);
	for (i = 64; i < IA_INDEX_END; i++)
		CU_ASSERT_EQUAL((uintptr_t)insert(i), i);
	CU_ASSERT_PTR_NULL(insert(0));
	for (i = 1; i < IA_INDEX_END; i++) {
		CU_ASSERT_EQUAL(dats_get_ia_handle((DAT_IA_HANDLE)i, &other), DAT_SUCCESS);
		CU_ASSERT_PTR_EQUAL(other, &objects[i]);
	}
	remove_ia((DAT_IA_HANDLE)2000);
	CU_ASSERT_EQUAL((uintptr_t)insert(0), 2000);
	for (i = 1; i < IA_INDEX_END; i++)
		remove_ia((DAT_IA_HANDLE)i);
}

static void grows(void)
{
	fake_in_child("", child_grows);
}

static void child_full_table(void)
{
	DAT_IA_HANDLE ia;
	uintptr_t i;

	for (i = 1; i < IA_INDEX_END; i++)
		insert(i);
	CU_ASSERT_EQUAL(fake_open("fake", &ia),
			FAKE_ERROR(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_MEMORY));
	CU_ASSERT_PTR_NULL(ia);
	CU_ASSERT_EQUAL(fake.opens, 1);
	CU_ASSERT_EQUAL(fake.closes, 1);
	CU_ASSERT_EQUAL(fake.finis, 1);
	CU_ASSERT_EQUAL(fake.unloads, 1);
	for (i = 1; i < IA_INDEX_END; i++)
		remove_ia((DAT_IA_HANDLE)i);
}

static void full_table(void)
{
	fake_in_child(FAKE_CONF, child_full_table);
}

static void child_get_ia_handle(void)
{
	DAT_IA_HANDLE ia, second, object = DAT_HANDLE_NULL, back = DAT_HANDLE_NULL;

	CU_ASSERT_EQUAL(fake_open("fake", &ia), DAT_SUCCESS);
	CU_ASSERT_EQUAL(fake_open("fake", &second), DAT_SUCCESS);
	CU_ASSERT_TRUE((uintptr_t)ia < IA_INDEX_END);
	CU_ASSERT_EQUAL(dats_get_ia_handle(ia, &object), DAT_SUCCESS);
	CU_ASSERT_TRUE((uintptr_t)object >= IA_INDEX_END);
	CU_ASSERT_EQUAL(dats_get_ia_handle(object, &back), DAT_SUCCESS);
	CU_ASSERT_PTR_EQUAL(back, ia);
	CU_ASSERT_EQUAL(dats_get_ia_handle(second, &object), DAT_SUCCESS);
	CU_ASSERT_EQUAL(dats_get_ia_handle(object, &back), DAT_SUCCESS);
	CU_ASSERT_PTR_EQUAL(back, second);

	CU_ASSERT_EQUAL(dats_get_ia_handle(DAT_HANDLE_NULL, &back), BAD_IA);
	CU_ASSERT_EQUAL(dats_get_ia_handle((DAT_IA_HANDLE)63, &back), BAD_IA);
	CU_ASSERT_EQUAL(dats_get_ia_handle((DAT_IA_HANDLE)4000, &back), BAD_IA);
	CU_ASSERT_EQUAL(dats_get_ia_handle(&back, &back), BAD_IA);
	CU_ASSERT_EQUAL(dats_get_ia_handle(ia, NULL),
			FAKE_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2));
	CU_ASSERT_PTR_EQUAL(back, second);

	CU_ASSERT_EQUAL(dat_ia_close(second, DAT_CLOSE_ABRUPT_FLAG), DAT_SUCCESS);
	CU_ASSERT_EQUAL(dats_get_ia_handle(second, &back), BAD_IA);
	CU_ASSERT_EQUAL(dats_get_ia_handle(object, &back), BAD_IA);
	CU_ASSERT_EQUAL(dat_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG), DAT_SUCCESS);
}

static void get_ia_handle(void)
{
	fake_in_child(FAKE_CONF, child_get_ia_handle);
}

static void child_bad_handles(void)
{
	DAT_IA_HANDLE ia, object;
	DAT_IA_ATTR attr;
	DAT_PZ_HANDLE pz;

	CU_ASSERT_EQUAL(dat_ia_close(DAT_HANDLE_NULL, DAT_CLOSE_DEFAULT), BAD_IA);
	CU_ASSERT_EQUAL(dat_ia_close((DAT_IA_HANDLE)1, DAT_CLOSE_DEFAULT), BAD_IA);
	CU_ASSERT_EQUAL(fake_open("fake", &ia), DAT_SUCCESS);
	CU_ASSERT_EQUAL(dats_get_ia_handle(ia, &object), DAT_SUCCESS);
	CU_ASSERT_EQUAL(dat_ia_query(object, NULL, DAT_IA_ALL, &attr, 0, NULL), BAD_IA);
	CU_ASSERT_EQUAL(dat_pz_create(object, &pz), BAD_IA);
	CU_ASSERT_EQUAL(dat_ia_close(object, DAT_CLOSE_DEFAULT), BAD_IA);
	CU_ASSERT_EQUAL(dat_ia_query(ia, NULL, DAT_IA_ALL, &attr, 0, NULL), DAT_SUCCESS);
	CU_ASSERT_EQUAL(dat_ia_close(ia, DAT_CLOSE_DEFAULT), DAT_SUCCESS);
	CU_ASSERT_EQUAL(dat_ia_close(ia, DAT_CLOSE_DEFAULT), BAD_IA);
	CU_ASSERT_EQUAL(dat_ia_query(ia, NULL, DAT_IA_ALL, &attr, 0, NULL), BAD_IA);
	CU_ASSERT_EQUAL(dat_pz_create(ia, &pz), BAD_IA);
}

static void bad_handles(void)
{
	fake_in_child(FAKE_CONF, child_bad_handles);
}

static void child_failed_close(void)
{
	DAT_IA_HANDLE ia;
	DAT_IA_ATTR attr;

	CU_ASSERT_EQUAL(fake_open("fake", &ia), DAT_SUCCESS);
	fake.close_result = FAKE_ERROR(DAT_INVALID_STATE, DAT_INVALID_STATE_IA_IN_USE);
	CU_ASSERT_EQUAL(dat_ia_close(ia, DAT_CLOSE_GRACEFUL_FLAG), fake.close_result);
	CU_ASSERT_EQUAL(dat_ia_query(ia, NULL, DAT_IA_ALL, &attr, 0, NULL), DAT_SUCCESS);
	CU_ASSERT_EQUAL(fake.finis, 0);
	fake.close_result = DAT_SUCCESS;
	CU_ASSERT_EQUAL(dat_ia_close(ia, DAT_CLOSE_GRACEFUL_FLAG), DAT_SUCCESS);
	CU_ASSERT_EQUAL(fake.finis, 1);
}

static void failed_close(void)
{
	fake_in_child(FAKE_CONF, child_failed_close);
}

/*
 * A query that blocks in the provider until the test lets it continue. Its thread uses no
 * assertions, because CUnit supports one thread only.
 */
static struct {
	DAT_IA_HANDLE ia;
	atomic_bool inside, go, left, closed, closed_too_soon;
	DAT_RETURN query_result, close_result;
} slow;

static bool is_set(void *flag)
{
	return atomic_load((atomic_bool *)flag);
}

static void stay_inside(DAT_IA_HANDLE object)
{
	(void)object;
	slow.inside = true;
	slow.left = unit_wait_for(is_set, &slow.go, UNIT_PATIENCE);
}

static void *query_slowly(void *arg)
{
	DAT_IA_ATTR attr;

	slow.query_result = dat_ia_query(slow.ia, NULL, DAT_IA_ALL, &attr, 0, NULL);
	return arg;
}

static void *close_meanwhile(void *arg)
{
	slow.close_result = dat_ia_close(slow.ia, DAT_CLOSE_ABRUPT_FLAG);
	slow.closed = true;
	return arg;
}

static void note_order(DAT_IA_HANDLE object)
{
	(void)object;
	slow.closed_too_soon = !slow.left;
}

/* The handle is refused: another thread's close has begun. */
static bool is_retiring(void *ia)
{
	struct ia_slot *slot = ia_acquire(ia);

	if (slot)
		ia_release(slot);
	return !slot;
}

static void child_close_waits(void)
{
	pthread_t caller, closer;
	DAT_IA_HANDLE object, back;

	CU_ASSERT_EQUAL(fake_open("fake", &slow.ia), DAT_SUCCESS);
	CU_ASSERT_EQUAL(dats_get_ia_handle(slow.ia, &object), DAT_SUCCESS);
	fake.in_query = stay_inside;
	fake.in_close = note_order;
	CU_ASSERT_EQUAL(pthread_create(&caller, NULL, query_slowly, NULL), 0);
	CU_ASSERT_TRUE(unit_wait_for(is_set, &slow.inside, UNIT_PATIENCE));
	CU_ASSERT_EQUAL(pthread_create(&closer, NULL, close_meanwhile, NULL), 0);
	CU_ASSERT_TRUE(unit_wait_for(is_retiring, slow.ia, UNIT_PATIENCE));
	CU_ASSERT_FALSE(slow.closed);

	/* a second close fails; the provider can still name the IA in its events */
	CU_ASSERT_EQUAL(dat_ia_close(slow.ia, DAT_CLOSE_ABRUPT_FLAG), BAD_IA);
	CU_ASSERT_EQUAL(dats_get_ia_handle(object, &back), DAT_SUCCESS);
	CU_ASSERT_PTR_EQUAL(back, slow.ia);

	slow.go = true;
	pthread_join(caller, NULL);
	pthread_join(closer, NULL);
	CU_ASSERT_EQUAL(slow.query_result, DAT_SUCCESS);
	CU_ASSERT_EQUAL(slow.close_result, DAT_SUCCESS);
	CU_ASSERT_FALSE(slow.closed_too_soon);
	CU_ASSERT_EQUAL(fake.closes, 1);
	CU_ASSERT_EQUAL(fake.unloads, 1);
}

static void close_waits(void)
{
	fake_in_child(FAKE_CONF, child_close_waits);
}

static const struct unit_test tests[] = {
	{ "slots are handed out round robin", recycled_late },
	{ "the table grows by 64 up to 4,095 handles", grows },
	{ "with a full table the IA is closed again: RESOURCE_MEMORY", full_table },
	{ "dats_get_ia_handle translates in both directions", get_ia_handle },
	{ "stale handles and raw pointers: INVALID_HANDLE_IA", bad_handles },
	{ "after a failed close the handle stays valid", failed_close },
	{ "a close waits for calls in flight; a second close fails", close_waits },
};

UNIT_MAIN("ia_handle", tests)
