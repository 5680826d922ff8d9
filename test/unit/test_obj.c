/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Pools of objects: handles, their checks, and slots that stay readable after a free. */
#include <stdlib.h>
#include "dapl/udapl/mem/mem.h"
#include "dapl/udapl/base/provider.h"
#include "dapl/udapl/ia/rooms.h"
#include "test/unit/unit.h"

static const DAT_PROVIDER table;

static struct dapl_ia *ia_make(void)
{
	static bool open;
	struct dapl_ia *ia;
	int kind;

	if (!open)
		rooms_open();
	open = true;
	ia = obj_new(NULL, OBJ_IA);
	CU_ASSERT_PTR_NOT_NULL_FATAL(ia);
	ia->obj.provider = &table;
	pthread_mutex_init(&ia->lock, NULL);
	for (kind = 0; kind < OBJ_KINDS; kind++)
		TAILQ_INIT(&ia->objects[kind]);
	obj_publish(&ia->obj, OBJ_IA);
	return ia;
}

static void ia_drop(struct dapl_ia *ia)
{
	obj_hide(&ia->obj, OBJ_IA);
	pthread_mutex_destroy(&ia->lock);
	obj_free(&ia->obj, OBJ_IA);
}

static void test_handle_is_valid_between_publish_and_free(void)
{
	struct dapl_ia *ia = ia_make();
	struct dapl_pz *pz = obj_new(ia, OBJ_PZ);

	CU_ASSERT_PTR_NOT_NULL_FATAL(pz);
	CU_ASSERT_PTR_NULL(pz_from(pz));
	obj_publish(&pz->obj, OBJ_PZ);
	CU_ASSERT_PTR_EQUAL(pz_from(pz), pz);
	CU_ASSERT_PTR_EQUAL(TAILQ_FIRST(&ia->objects[OBJ_PZ]), &pz->obj);
	obj_free(&pz->obj, OBJ_PZ);
	CU_ASSERT_PTR_NULL(pz_from(pz));
	CU_ASSERT_TRUE(TAILQ_EMPTY(&ia->objects[OBJ_PZ]));
	ia_drop(ia);
}

static void test_other_kinds_and_wild_values_are_refused(void)
{
	struct dapl_ia *ia = ia_make();
	struct dapl_pz *pz = obj_new(ia, OBJ_PZ);

	obj_publish(&pz->obj, OBJ_PZ);
	CU_ASSERT_PTR_NULL(lmr_from(pz));
	CU_ASSERT_PTR_NULL(ia_from(pz));
	CU_ASSERT_PTR_NULL(pz_from(NULL));
	CU_ASSERT_PTR_NULL(pz_from(DAT_EVD_ASYNC_EXISTS));
	CU_ASSERT_PTR_NULL(pz_from(DAT_EVD_OUT_OF_SCOPE));
	CU_ASSERT_PTR_NULL(pz_from((void *)4095));
	CU_ASSERT_PTR_NULL(pz_from((char *)pz + 4));
	obj_free(&pz->obj, OBJ_PZ);
	ia_drop(ia);
}

static void test_freed_slot_leads_to_the_provider(void)
{
	struct dapl_ia *ia = ia_make();
	struct dapl_pz *pz = obj_new(ia, OBJ_PZ);

	obj_publish(&pz->obj, OBJ_PZ);
	obj_free(&pz->obj, OBJ_PZ);
	CU_ASSERT_PTR_EQUAL(*(const DAT_PROVIDER **)pz, &table);
	ia_drop(ia);
}

#define MANY 1000

static void test_index_finds_the_slot(void)
{
	static struct dapl_lmr *lmrs[MANY];
	struct dapl_ia *ia = ia_make();
	unsigned i;

	for (i = 0; i < MANY; i++) {
		lmrs[i] = obj_new(ia, OBJ_LMR);
		CU_ASSERT_PTR_NOT_NULL_FATAL(lmrs[i]);
		obj_publish(&lmrs[i]->obj, OBJ_LMR);
	}
	for (i = 0; i < MANY; i++) {
		CU_ASSERT_PTR_EQUAL(obj_at(OBJ_LMR, lmrs[i]->obj.index), lmrs[i]);
		obj_free(&lmrs[i]->obj, OBJ_LMR);
	}
	CU_ASSERT_PTR_NULL(obj_at(OBJ_LMR, 0xfffff));
	CU_ASSERT_PTR_NULL(obj_at(OBJ_RMR, 0));
	ia_drop(ia);
}

static void test_slots_come_again_the_longest_dead_first(void)
{
	struct dapl_ia *ia = ia_make();
	struct dapl_pz *pz, *first;
	uint32_t generation, lives = 0;

	first = pz = obj_new(ia, OBJ_PZ);
	generation = obj_generation(&first->obj);
	do {
		obj_free(&pz->obj, OBJ_PZ);
		pz = obj_new(ia, OBJ_PZ);
		CU_ASSERT_PTR_NOT_NULL_FATAL(pz);
		lives++;
	} while (pz != first && lives < 100000);
	CU_ASSERT_PTR_EQUAL_FATAL(pz, first);
	CU_ASSERT_TRUE(lives > 1000);
	CU_ASSERT_EQUAL(obj_generation(&pz->obj), generation + 1);
	CU_ASSERT_PTR_NULL(pz->pd);
	obj_free(&pz->obj, OBJ_PZ);
	ia_drop(ia);
}

static void test_retire_needs_no_user_and_forbids_new_ones(void)
{
	struct dapl_ia *ia = ia_make();
	struct dapl_pz *pz = obj_new(ia, OBJ_PZ);

	CU_ASSERT_TRUE(obj_hold(&pz->obj));
	CU_ASSERT_FALSE(obj_retire(&pz->obj));
	obj_release(&pz->obj);
	CU_ASSERT_TRUE(obj_retire(&pz->obj));
	CU_ASSERT_FALSE(obj_hold(&pz->obj));
	CU_ASSERT_FALSE(obj_retire(&pz->obj));
	obj_unretire(&pz->obj);
	CU_ASSERT_TRUE(obj_hold(&pz->obj));
	obj_release(&pz->obj);
	obj_free(&pz->obj, OBJ_PZ);
	ia_drop(ia);
}

static void test_context_and_type(void)
{
	struct dapl_ia *ia = ia_make();
	struct dapl_pz *pz = obj_new(ia, OBJ_PZ);
	DAT_HANDLE_TYPE type;
	DAT_CONTEXT context = { .as_64 = 1 };

	obj_publish(&pz->obj, OBJ_PZ);
	CU_ASSERT_EQUAL(dapl_get_consumer_context(pz, &context), DAT_SUCCESS);
	CU_ASSERT_EQUAL(context.as_64, 0);
	context.as_64 = 0x1122334455667788;
	CU_ASSERT_EQUAL(dapl_set_consumer_context(pz, context), DAT_SUCCESS);
	context.as_64 = 0;
	CU_ASSERT_EQUAL(dapl_get_consumer_context(pz, &context), DAT_SUCCESS);
	CU_ASSERT_EQUAL(context.as_64, 0x1122334455667788);
	CU_ASSERT_EQUAL(dapl_get_handle_type(pz, &type), DAT_SUCCESS);
	CU_ASSERT_EQUAL(type, DAT_HANDLE_TYPE_PZ);
	CU_ASSERT_EQUAL(dapl_get_handle_type(ia, &type), DAT_SUCCESS);
	CU_ASSERT_EQUAL(type, DAT_HANDLE_TYPE_IA);
	CU_ASSERT_EQUAL(dapl_get_handle_type(pz, NULL),
			DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2));
	CU_ASSERT_EQUAL(dapl_get_consumer_context(pz, NULL),
			DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2));
	obj_free(&pz->obj, OBJ_PZ);
	CU_ASSERT_EQUAL(dapl_get_handle_type(pz, &type),
			DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE1));
	CU_ASSERT_EQUAL(dapl_set_consumer_context(pz, context),
			DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE1));
	CU_ASSERT_EQUAL(dapl_get_consumer_context(NULL, &context),
			DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE1));
	ia_drop(ia);
}

static const struct unit_test tests[] = {
	{ "a handle is valid from publish to free", test_handle_is_valid_between_publish_and_free },
	{ "handles of other kinds, small and misaligned values are refused",
	  test_other_kinds_and_wild_values_are_refused },
	{ "a freed slot still leads to the provider", test_freed_slot_leads_to_the_provider },
	{ "an index finds its slot in a pool of many chunks", test_index_finds_the_slot },
	{ "the slot that was freed first is reused first, zeroed, with a new generation",
	  test_slots_come_again_the_longest_dead_first },
	{ "references: retiring", test_retire_needs_no_user_and_forbids_new_ones },
	{ "any handle has a context, at first zero, and a type", test_context_and_type },
};

UNIT_MAIN("obj", tests)
