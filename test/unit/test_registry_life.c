/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* The registry's lifecycle: its state in a forked child, and after the library's destructor. */
#include <pthread.h>
#include "dat/common/reg.h"
#include "test/unit/fake.h"

struct fake_control fake;

#define FAKE_CONF "fake u2.0 nonthreadsafe default @ fake.1.0 \"\" \"\"\n"
#define BAD_IA	  FAKE_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_IA)
#define BAD_STATE FAKE_ERROR(DAT_INVALID_STATE, 0)

static DAT_COUNT provider_count(void)
{
	DAT_COUNT count = -1;

	dat_registry_list_providers(0, &count, NULL);
	return count;
}

static DAT_IA_HANDLE inherited, inherited_object;

static void grandchild_of_fork(void)
{
	DAT_HANDLE_TYPE type;
	DAT_IA_HANDLE ia;

	CU_ASSERT_EQUAL(dat_ia_close(inherited, DAT_CLOSE_ABRUPT_FLAG), BAD_IA);
	CU_ASSERT_EQUAL(dat_get_handle_type(inherited, &type),
			FAKE_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE1));
	CU_ASSERT_EQUAL(provider_count(), 1);
	CU_ASSERT_EQUAL(fake_open("fake", &ia), DAT_SUCCESS);
	CU_ASSERT_EQUAL(fake.inits, 2);
	CU_ASSERT_EQUAL(dat_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG), DAT_SUCCESS);
	CU_ASSERT_EQUAL(fake.finis, 1);
}

static void child_forks(void)
{
	CU_ASSERT_EQUAL(fake_open("fake", &inherited), DAT_SUCCESS);
	/*
	 * The child cannot close this IA. Keeping the pointer prevents a leak report in the child.
	 */
	CU_ASSERT_EQUAL(dats_get_ia_handle(inherited, &inherited_object), DAT_SUCCESS);
	fake_in_child(NULL, grandchild_of_fork);
	CU_ASSERT_EQUAL(fake.inits, 1);
	CU_ASSERT_EQUAL(dat_ia_close(inherited, DAT_CLOSE_ABRUPT_FLAG), DAT_SUCCESS);
	CU_ASSERT_EQUAL(fake.finis, 1);
	CU_ASSERT_EQUAL(fake.unloads, 1);
}

static void forks(void)
{
	fake_in_child(FAKE_CONF, child_forks);
}

/*
 * A fork while another thread loads a library: the child has no such thread and must not wait for
 * it.
 */
static atomic_bool inside, go;

static bool is_set(void *flag)
{
	return atomic_load((atomic_bool *)flag);
}

static void stay_in_init(const DAT_PROVIDER_INFO *info, const char *params)
{
	(void)info;
	(void)params;
	inside = true;
	unit_wait_for(is_set, &go, UNIT_PATIENCE);
}

static DAT_RETURN thread_result;

static void *open_fake(void *ia)
{
	thread_result = fake_open("fake", ia);
	return NULL;
}

static void grandchild_of_busy_fork(void)
{
	DAT_IA_HANDLE ia;

	fake.in_init = NULL;
	CU_ASSERT_EQUAL(provider_count(), 1);
	CU_ASSERT_EQUAL(fake_open("fake", &ia), DAT_SUCCESS);
	CU_ASSERT_EQUAL(dat_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG), DAT_SUCCESS);
}

static void child_forks_while_loading(void)
{
	DAT_IA_HANDLE ia;
	pthread_t thread;

	fake.in_init = stay_in_init;
	pthread_create(&thread, NULL, open_fake, &ia);
	CU_ASSERT_TRUE(unit_wait_for(is_set, &inside, UNIT_PATIENCE));
	fake_in_child(NULL, grandchild_of_busy_fork);
	go = true;
	pthread_join(thread, NULL);
	CU_ASSERT_EQUAL(thread_result, DAT_SUCCESS);
	CU_ASSERT_EQUAL(dat_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG), DAT_SUCCESS);
}

static void forks_while_loading(void)
{
	fake_in_child(FAKE_CONF, child_forks_while_loading);
}

/*
 * A destructor of this program that runs after the registry's, only in children that set the
 * function. It ends the child with the number of the first failed check.
 */
static int (*after_the_end)(void);
static DAT_IA_HANDLE left_open;

__attribute__((destructor(101))) static void run_after_the_end(void)
{
	int wrong = after_the_end ? after_the_end() : 0;

	if (wrong)
		_exit(wrong);
}

static const DAT_PROVIDER provider;
static const DAT_PROVIDER_INFO info = { .ia_name = "late", .dapl_version_major = 2 };

static int nothing_works(void)
{
	DAT_PROVIDER_INFO *list[1];
	DAT_COUNT count = 77;
	char name[] = "fake";
	DAT_HA_RELATIONSHIP related;
	DAT_HANDLE out;
	DAT_IA_HANDLE ia;
	DAT_PZ_HANDLE pz;

	if (dat_registry_list_providers(0, &count, list) != BAD_STATE || count != 77)
		return 2;
	if (fake_open("fake", &ia) != BAD_STATE)
		return 3;
	if (dat_registry_add_provider(&provider, &info) != BAD_STATE)
		return 4;
	if (dat_registry_remove_provider(&provider, &info) != DAT_SUCCESS)
		return 5;
	if (dat_registry_providers_related(name, name, &related) != BAD_STATE)
		return 6;
	if (dat_extension_op(NULL, FAKE_OPEN_OP, name, &out) != BAD_STATE)
		return 7;
	if (left_open && dat_ia_close(left_open, DAT_CLOSE_ABRUPT_FLAG) != BAD_STATE)
		return 8;
	if (left_open && (dat_pz_create(left_open, &pz) || dat_pz_free(pz)))
		return 11;
	if (!left_open && dat_ia_close((DAT_IA_HANDLE)1, DAT_CLOSE_ABRUPT_FLAG) != BAD_IA)
		return 9;
	return fake.closes + fake.finis ? 10 : 0;
}

static void child_ends_idle(void)
{
	CU_ASSERT_EQUAL(provider_count(), 1);
	CU_ASSERT_EQUAL(dat_registry_add_provider(&provider, &info), DAT_SUCCESS);
	after_the_end = nothing_works;
}

static void ends_idle(void)
{
	fake_in_child(FAKE_CONF, child_ends_idle);
}

static void child_ends_open(void)
{
	int i;

	for (i = 0; i < 70; i++) /* more IAs than the table's first 64 slots */
		CU_ASSERT_EQUAL(fake_open("fake", &left_open), DAT_SUCCESS);
	after_the_end = nothing_works;
}

static void ends_open(void)
{
	fake_in_child(FAKE_CONF, child_ends_open);
}

/* The library's own destructor removes its registration, whichever destructor runs first. */
static void take_back(void)
{
	fake.removed = dat_registry_remove_provider(&provider, &info);
	if (fake.removed != DAT_SUCCESS)
		_exit(12);
}

static void child_provider_outlives(void)
{
	CU_ASSERT_EQUAL(fake_open("fake", &left_open), DAT_SUCCESS);
	fake.in_unload = take_back;
}

static void provider_outlives(void)
{
	fake_in_child(FAKE_CONF, child_provider_outlives);
}

static const struct unit_test tests[] = {
	{ "in a forked child old handles are refused, and new ones work", forks },
	{ "a child that was forked while another thread loads a provider can use the registry",
	  forks_while_loading },
	{ "after the destructor calls return INVALID_STATE, and a removal succeeds", ends_idle },
	{ "the destructor closes and unloads nothing", ends_open },
	{ "a provider's destructor may remove its name after the registry's", provider_outlives },
};

UNIT_MAIN("registry_life", tests)
