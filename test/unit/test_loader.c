/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * Loading and unloading: fallbacks, references, and providers that call the registry from init or
 * fini.
 */
#include <pthread.h>
#include "test/unit/fake.h"

struct fake_control fake;

#define FAKE(name, params) name " u2.0 nonthreadsafe default @ fake.1.0 \"" params "\" \"\"\n"
#define NOT_FOUND	   FAKE_ERROR(DAT_PROVIDER_NOT_FOUND, DAT_NAME_NOT_REGISTERED)

static void expect(int inits, int finis, int unloads)
{
	CU_ASSERT_EQUAL(fake.inits, inits);
	CU_ASSERT_EQUAL(fake.finis, finis);
	CU_ASSERT_EQUAL(fake.unloads, unloads);
}

static DAT_COUNT provider_count(void)
{
	DAT_COUNT count = -1;

	dat_registry_list_providers(0, &count, NULL);
	return count;
}

static void child_open_checks(void)
{
	char name[DAT_NAME_MAX_LENGTH + 1];
	DAT_IA_HANDLE ia = &ia;
	DAT_EVD_HANDLE evd;

	memset(name, 'n', sizeof(name));
	name[DAT_NAME_MAX_LENGTH] = '\0';
	CU_ASSERT_EQUAL(fake_open(NULL, NULL), FAKE_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG1));
	CU_ASSERT_EQUAL(fake_open(name, &ia), FAKE_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG1));
	CU_ASSERT_PTR_NULL(ia);
	CU_ASSERT_EQUAL(fake_open("a", NULL),
			FAKE_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_IA));
	name[DAT_NAME_MAX_LENGTH - 1] = '\0';
	CU_ASSERT_EQUAL(fake_open(name, &ia), NOT_FOUND);
	expect(0, 0, 0);

	strcpy(name, "a");
	CU_ASSERT_EQUAL(dat_ia_open(name, 8, NULL, &ia),
			FAKE_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3));
	CU_ASSERT_PTR_NULL(ia);
	expect(1, 1, 1);
	CU_ASSERT_EQUAL(dat_ia_open(name, 8, &evd, &ia), DAT_SUCCESS);
	CU_ASSERT_EQUAL(dat_ia_close(ia, DAT_CLOSE_DEFAULT), DAT_SUCCESS);
	expect(2, 2, 2);
}

static void open_checks(void)
{
	fake_in_child(FAKE("a", ""), child_open_checks);
}

static void child_references(void)
{
	DAT_IA_HANDLE first, second, third;

	CU_ASSERT_EQUAL(fake_open("a", &first), DAT_SUCCESS);
	CU_ASSERT_EQUAL(fake_open("a", &second), DAT_SUCCESS);
	CU_ASSERT_PTR_NOT_EQUAL(first, second);
	expect(1, 0, 0);
	CU_ASSERT_EQUAL(dat_ia_close(first, DAT_CLOSE_DEFAULT), DAT_SUCCESS);
	CU_ASSERT_EQUAL(fake_open("a", &third), DAT_SUCCESS);
	CU_ASSERT_EQUAL(dat_ia_close(second, DAT_CLOSE_DEFAULT), DAT_SUCCESS);
	expect(1, 0, 0);
	CU_ASSERT_EQUAL(dat_ia_close(third, DAT_CLOSE_DEFAULT), DAT_SUCCESS);
	expect(1, 1, 1);
	CU_ASSERT_EQUAL(fake.removed, DAT_SUCCESS);
	CU_ASSERT_EQUAL(provider_count(), 1);

	CU_ASSERT_EQUAL(fake_open("a", &first), DAT_SUCCESS);
	expect(2, 1, 1);
	CU_ASSERT_EQUAL(dat_ia_close(first, DAT_CLOSE_DEFAULT), DAT_SUCCESS);
	expect(2, 2, 2);
}

static void references(void)
{
	fake_in_child(FAKE("a", ""), child_references);
}

static void child_failed_open(void)
{
	DAT_IA_HANDLE ia;

	fake.open_result = FAKE_ERROR(DAT_INVALID_ADDRESS, DAT_INVALID_ADDRESS_UNREACHABLE);
	CU_ASSERT_EQUAL(fake_open("a", &ia), fake.open_result);
	CU_ASSERT_PTR_NULL(ia);
	expect(1, 1, 1);
	fake.open_result = DAT_SUCCESS;
	CU_ASSERT_EQUAL(fake_open("a", &ia), DAT_SUCCESS);
	fake.open_result = FAKE_ERROR(DAT_INVALID_ADDRESS, 0);
	CU_ASSERT_EQUAL(fake_open("a", &ia), fake.open_result);
	expect(2, 1, 1);
	CU_ASSERT_EQUAL(dat_ia_close((DAT_IA_HANDLE)1, DAT_CLOSE_DEFAULT), DAT_SUCCESS);
	expect(2, 2, 2);
}

static void failed_open(void)
{
	fake_in_child(FAKE("a", ""), child_failed_open);
}

static void child_no_object(void)
{
	DAT_IA_HANDLE ia;

	fake.open_as = (DAT_IA_HANDLE)7;
	CU_ASSERT_EQUAL(fake_open("a", &ia), FAKE_ERROR(DAT_INTERNAL_ERROR, 0));
	CU_ASSERT_PTR_NULL(ia);
	expect(1, 1, 1);
}

static void no_object(void)
{
	struct fake_capture capture = fake_capture(STDERR_FILENO);

	fake_in_child(FAKE("a", ""), child_no_object);
	CU_ASSERT_PTR_NOT_NULL(
		strstr(fake_captured(capture), "returned 0x7 as the IA, which is no object"));
}

static void child_no_extensions(void)
{
	struct fake_capture capture = fake_capture(STDERR_FILENO);
	DAT_IA_HANDLE ia;

	setenv("DAT_DBG_TYPE", "0x10", 1);
	CU_ASSERT_EQUAL(fake_open("a", &ia), DAT_SUCCESS);
	CU_ASSERT_PTR_NOT_NULL(strstr(fake_captured(capture), " has no dapl_extensions\n"));
	CU_ASSERT_EQUAL(dat_ia_close(ia, DAT_CLOSE_DEFAULT), DAT_SUCCESS);
}

static void no_extensions(void)
{
	fake_in_child(FAKE("a", ""), child_no_extensions);
}

static char init_params[100];

static void note_params(const DAT_PROVIDER_INFO *info, const char *params)
{
	CU_ASSERT_STRING_EQUAL(info->ia_name, "a");
	CU_ASSERT_EQUAL(info->dapl_version_major, 2);
	strcat(init_params, params);
	strcat(init_params, "|");
}

static void child_chain(void)
{
	struct fake_capture capture = fake_capture(STDERR_FILENO);
	DAT_IA_HANDLE ia, second;
	const char *said;

	fake.in_init = note_params;
	CU_ASSERT_EQUAL(fake_open("a", &ia), DAT_SUCCESS);
	CU_ASSERT_EQUAL(fake_open("a", &second), DAT_SUCCESS);
	said = fake_captured(capture);
	CU_ASSERT_PTR_NOT_NULL(strstr(said, "libdat2: a: dlopen: libabsent.so.7: cannot open"));
	CU_ASSERT_PTR_NOT_NULL(strstr(said, "did not register it"));
	CU_ASSERT_STRING_EQUAL(init_params, "silent|third|");
	expect(2, 1, 1);
	CU_ASSERT_EQUAL(dat_ia_close(ia, DAT_CLOSE_DEFAULT), DAT_SUCCESS);
	CU_ASSERT_EQUAL(dat_ia_close(second, DAT_CLOSE_DEFAULT), DAT_SUCCESS);
	expect(2, 2, 2);
	CU_ASSERT_EQUAL(provider_count(), 1);
}

/* libc has no init function: it is loaded and skipped */
static void chain(void)
{
	fake_in_child("a u2.0 nonthreadsafe default libabsent.so.7 fake.1.0 first \"\"\n"
		      "a u2.0 nonthreadsafe default libc.so.6 fake.1.0 none \"\"\n" FAKE("a",
											 "silent")
			      FAKE("a", "third") FAKE("a", "fourth"),
		      child_chain);
}

static void child_chain_exhausted(void)
{
	DAT_IA_HANDLE ia;

	CU_ASSERT_EQUAL(fake_open("a", &ia), NOT_FOUND);
	CU_ASSERT_PTR_NULL(ia);
	expect(1, 1, 1);
	CU_ASSERT_EQUAL(fake_open("a", &ia), NOT_FOUND);
	expect(2, 2, 2);
}

static void chain_exhausted(void)
{
	struct fake_capture capture = fake_capture(STDERR_FILENO);

	fake_in_child("a u2.0 nonthreadsafe default libabsent.so.7 fake.1.0 first \"\"\n" FAKE(
			      "a", "silent"),
		      child_chain_exhausted);
	CU_ASSERT_PTR_NOT_NULL(strstr(fake_captured(capture), "did not register it"));
}

static DAT_RETURN nested;
static DAT_IA_HANDLE inner;
static int direct_opens;

static DAT_RETURN direct_open(const DAT_NAME_PTR name, DAT_COUNT qlen, DAT_EVD_HANDLE *evd,
			      DAT_IA_HANDLE *ia)
{
	(void)name;
	(void)qlen;
	(void)evd;
	(void)ia;
	direct_opens++;
	return FAKE_ERROR(DAT_INTERNAL_ERROR, 0);
}

static const DAT_PROVIDER direct = { .ia_open_func = direct_open };
static const DAT_PROVIDER_INFO direct_info = { .ia_name = "a", .dapl_version_major = 2 };

static void child_direct_wins(void)
{
	DAT_IA_HANDLE ia;

	CU_ASSERT_EQUAL(dat_registry_add_provider(&direct, &direct_info), DAT_SUCCESS);
	CU_ASSERT_EQUAL(provider_count(), 1);
	CU_ASSERT_EQUAL(fake_open("a", &ia), FAKE_ERROR(DAT_INTERNAL_ERROR, 0));
	CU_ASSERT_EQUAL(direct_opens, 1);
	expect(0, 0, 0);
	CU_ASSERT_EQUAL(dat_registry_remove_provider(&direct, &direct_info), DAT_SUCCESS);
	CU_ASSERT_EQUAL(fake_open("a", &ia), DAT_SUCCESS);
	expect(1, 0, 0);
	CU_ASSERT_EQUAL(dat_registry_remove_provider(&direct, &direct_info),
			FAKE_ERROR(DAT_PROVIDER_IN_USE, 0));
	CU_ASSERT_EQUAL(dat_ia_close(ia, DAT_CLOSE_DEFAULT), DAT_SUCCESS);
	expect(1, 1, 1);
}

static void direct_wins(void)
{
	fake_in_child(FAKE("a", ""), child_direct_wins);
}

static void leave_registered(const DAT_PROVIDER_INFO *info)
{
	(void)info;
}

static void *add_direct(void *arg)
{
	dat_registry_add_provider(&direct, &direct_info);
	return arg;
}

static void let_others_add(const DAT_PROVIDER_INFO *info, const char *params)
{
	pthread_t thread;

	(void)info;
	(void)params;
	pthread_create(&thread, NULL, add_direct, NULL);
	pthread_join(thread, NULL);
}

static void child_added_meanwhile(void)
{
	DAT_IA_HANDLE ia;

	fake.in_init = let_others_add;
	fake.in_fini = leave_registered;
	CU_ASSERT_EQUAL(fake_open("a", &ia), FAKE_ERROR(DAT_INTERNAL_ERROR, 0));
	CU_ASSERT_EQUAL(direct_opens, 1);
	expect(1, 1, 1);
	CU_ASSERT_EQUAL(fake_open("a", &ia), FAKE_ERROR(DAT_INTERNAL_ERROR, 0));
	expect(1, 1, 1);
}

static void added_meanwhile(void)
{
	struct fake_capture capture = fake_capture(STDERR_FILENO);

	fake_in_child(FAKE("a", "silent"), child_added_meanwhile);
	CU_ASSERT_PTR_NOT_NULL(strstr(fake_captured(capture), "did not register it"));
}

static void child_forgotten_entry(void)
{
	DAT_IA_HANDLE ia;

	fake.in_fini = leave_registered;
	CU_ASSERT_EQUAL(fake_open("a", &ia), DAT_SUCCESS);
	CU_ASSERT_EQUAL(provider_count(), 1);
	CU_ASSERT_EQUAL(dat_ia_close(ia, DAT_CLOSE_DEFAULT), DAT_SUCCESS);
	expect(1, 1, 1);
	CU_ASSERT_EQUAL(fake_open("a", &ia), DAT_SUCCESS);
	CU_ASSERT_EQUAL(dat_ia_close(ia, DAT_CLOSE_DEFAULT), DAT_SUCCESS);
	expect(2, 2, 2);
}

static void forgotten_entry(void)
{
	fake_in_child(FAKE("a", ""), child_forgotten_entry);
}

static void child_second_name(void)
{
	DAT_IA_HANDLE a, b;

	CU_ASSERT_EQUAL(fake_open("a", &a), DAT_SUCCESS);
	CU_ASSERT_EQUAL(provider_count(), 2);
	CU_ASSERT_EQUAL(fake_open("b", &b), DAT_SUCCESS);
	expect(1, 0, 0);
	CU_ASSERT_EQUAL(dat_ia_close(a, DAT_CLOSE_DEFAULT), DAT_SUCCESS);
	expect(1, 0, 0);
	CU_ASSERT_EQUAL(dat_ia_close(b, DAT_CLOSE_DEFAULT), DAT_SUCCESS);
	expect(1, 1, 1);
	CU_ASSERT_EQUAL(fake_open("b", &b), NOT_FOUND);
}

static void second_name(void)
{
	fake_in_child(FAKE("a", "also b"), child_second_name);
}

/* Removes the registration of "a" while "b" keeps the library loaded. */
static DAT_IA_HANDLE open_b_alone(void)
{
	DAT_IA_HANDLE a, b;

	CU_ASSERT_EQUAL(fake_open("a", &a), DAT_SUCCESS);
	CU_ASSERT_EQUAL(fake_open("b", &b), DAT_SUCCESS);
	CU_ASSERT_EQUAL(dat_ia_close(a, DAT_CLOSE_DEFAULT), DAT_SUCCESS);
	CU_ASSERT_EQUAL(dat_registry_remove_provider(&direct, &direct_info), DAT_SUCCESS);
	expect(1, 0, 0);
	return b;
}

static void child_self_removal(void)
{
	DAT_IA_HANDLE a, b = open_b_alone();

	CU_ASSERT_EQUAL(fake_open("a", &a), DAT_SUCCESS);
	expect(2, 0, 0);
	CU_ASSERT_EQUAL(dat_ia_close(b, DAT_CLOSE_DEFAULT), DAT_SUCCESS);
	expect(2, 0, 0);
	CU_ASSERT_EQUAL(dat_ia_close(a, DAT_CLOSE_DEFAULT), DAT_SUCCESS);
	expect(2, 1, 1);
}

static void self_removal(void)
{
	fake_in_child(FAKE("a", "also b"), child_self_removal);
}

static void close_inner(const DAT_PROVIDER_INFO *info, const char *params)
{
	(void)info;
	(void)params;
	nested = dat_ia_close(inner, DAT_CLOSE_DEFAULT);
}

static void child_closes_in_init(void)
{
	DAT_IA_HANDLE a;

	inner = open_b_alone();
	fake.in_init = close_inner;
	CU_ASSERT_EQUAL(fake_open("a", &a), DAT_SUCCESS);
	CU_ASSERT_EQUAL(nested, DAT_SUCCESS);
	expect(2, 0, 0);
	CU_ASSERT_EQUAL(dat_ia_close(a, DAT_CLOSE_DEFAULT), DAT_SUCCESS);
	expect(2, 1, 1);
}

static void closes_in_init(void)
{
	fake_in_child(FAKE("a", "also b"), child_closes_in_init);
}

static void child_names_of_one_library(void)
{
	DAT_IA_HANDLE a, b;

	CU_ASSERT_EQUAL(fake_open("a", &a), DAT_SUCCESS);
	CU_ASSERT_EQUAL(fake_open("b", &b), DAT_SUCCESS);
	expect(2, 0, 0);
	CU_ASSERT_EQUAL(dat_ia_close(a, DAT_CLOSE_DEFAULT), DAT_SUCCESS);
	expect(2, 1, 0);
	CU_ASSERT_EQUAL(dat_ia_close(b, DAT_CLOSE_DEFAULT), DAT_SUCCESS);
	expect(2, 2, 1);
}

static void names_of_one_library(void)
{
	fake_in_child(FAKE("a", "") FAKE("b", ""), child_names_of_one_library);
}

static void list_from_inside(const DAT_PROVIDER_INFO *info, const char *params)
{
	(void)info;
	(void)params;
	CU_ASSERT_EQUAL(provider_count(), 2);
}

static void list_from_fini(const DAT_PROVIDER_INFO *info)
{
	list_from_inside(info, NULL);
}

static void child_list_from_init(void)
{
	DAT_IA_HANDLE ia;

	fake.in_init = list_from_inside;
	fake.in_fini = list_from_fini;
	CU_ASSERT_EQUAL(fake_open("a", &ia), DAT_SUCCESS);
	CU_ASSERT_EQUAL(dat_ia_close(ia, DAT_CLOSE_DEFAULT), DAT_SUCCESS);
	expect(1, 1, 1);
}

static void list_from_init(void)
{
	fake_in_child(FAKE("a", "") FAKE("b", ""), child_list_from_init);
}

static void open_from_init(const DAT_PROVIDER_INFO *info, const char *params)
{
	(void)params;
	if (!strcmp(info->ia_name, "a"))
		nested = fake_open("b", &inner);
}

static void child_stacked(void)
{
	DAT_IA_HANDLE ia;

	fake.in_init = open_from_init;
	CU_ASSERT_EQUAL(fake_open("a", &ia), DAT_SUCCESS);
	CU_ASSERT_EQUAL(nested, DAT_SUCCESS);
	expect(2, 0, 0);
	CU_ASSERT_EQUAL(dat_ia_close(inner, DAT_CLOSE_DEFAULT), DAT_SUCCESS);
	CU_ASSERT_EQUAL(dat_ia_close(ia, DAT_CLOSE_DEFAULT), DAT_SUCCESS);
	expect(2, 2, 1);
}

static void stacked(void)
{
	fake_in_child(FAKE("a", "") FAKE("b", ""), child_stacked);
}

static void open_self(const DAT_PROVIDER_INFO *info, const char *params)
{
	DAT_IA_HANDLE ia;

	(void)params;
	nested = fake_open(info->ia_name, &ia);
}

static void open_self_again(const DAT_PROVIDER_INFO *info)
{
	open_self(info, NULL);
}

static void child_opens_itself(void)
{
	DAT_IA_HANDLE ia;

	fake.in_init = open_self;
	fake.in_fini = open_self_again;
	CU_ASSERT_EQUAL(fake_open("a", &ia), DAT_SUCCESS);
	CU_ASSERT_EQUAL(nested, NOT_FOUND);
	nested = 0;
	CU_ASSERT_EQUAL(dat_ia_close(ia, DAT_CLOSE_DEFAULT), DAT_SUCCESS);
	CU_ASSERT_EQUAL(nested, NOT_FOUND);
	expect(1, 1, 1);
}

static void opens_itself(void)
{
	fake_in_child(FAKE("a", ""), child_opens_itself);
}

static const struct unit_test tests[] = {
	{ "an open checks its arguments, and returns the provider's ARG3", open_checks },
	{ "a library has one init and one fini, is unloaded with the last close, and can be loaded "
	  "again",
	  references },
	{ "a failed open leaves nothing loaded", failed_open },
	{ "a provider that returns no object as an IA: INTERNAL_ERROR", no_object },
	{ "a provider without dapl_extensions causes a debug line", no_extensions },
	{ "records that cannot be used are skipped until one can", chain },
	{ "without a usable record: NAME_NOT_REGISTERED", chain_exhausted },
	{ "a directly registered entry takes precedence, and cannot be removed while in use",
	  direct_wins },
	{ "an entry that another thread adds does not belong to the library", added_meanwhile },
	{ "an entry that fini does not remove is removed", forgotten_entry },
	{ "a library that registered a second name stays loaded for it", second_name },
	{ "a provider that removed itself is initialised again", self_removal },
	{ "the last close from within that init unloads nothing", closes_in_init },
	{ "two names of one library have init and fini each", names_of_one_library },
	{ "a provider lists providers from init and fini", list_from_init },
	{ "a provider opens another name from init", stacked },
	{ "a provider that opens itself from init or fini does not find itself", opens_itself },
};

UNIT_MAIN("loader", tests)
