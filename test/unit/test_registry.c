/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* The registry's lists: registration, removal, listing, matching and ia_related. */
#include "dat/common/handle.h"
#include "test/unit/fake.h"

struct fake_control fake;

#define NOT_FOUND(subtype) FAKE_ERROR(DAT_PROVIDER_NOT_FOUND, DAT_##subtype)
#define BAD_PARAMETER(n)   FAKE_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG##n)

#define TEST(name)                               \
	static void child_##name(void);          \
	static void name(void)                   \
	{                                        \
		fake_in_child("", child_##name); \
	}                                        \
	static void child_##name(void)

static char opened_as[DAT_NAME_MAX_LENGTH];

static DAT_RETURN refuse_open(const DAT_NAME_PTR name, DAT_COUNT qlen, DAT_EVD_HANDLE *evd,
			      DAT_IA_HANDLE *ia)
{
	(void)qlen;
	(void)evd;
	(void)ia;
	strcpy(opened_as, name);
	return 0x12345;
}

static const DAT_PROVIDER provider = { .device_name = "direct", .ia_open_func = refuse_open };

static DAT_PROVIDER_INFO info_of(const char *name, DAT_UINT32 major, DAT_UINT32 minor,
				 DAT_BOOLEAN safe)
{
	DAT_PROVIDER_INFO info = {
		.dapl_version_major = major,
		.dapl_version_minor = minor,
		.is_thread_safe = safe,
	};

	snprintf(info.ia_name, sizeof(info.ia_name), "%s", name);
	return info;
}

static void add(const char *name, DAT_UINT32 major, DAT_UINT32 minor, DAT_BOOLEAN safe)
{
	DAT_PROVIDER_INFO info = info_of(name, major, minor, safe);

	CU_ASSERT_EQUAL(dat_registry_add_provider(&provider, &info), DAT_SUCCESS);
}

/*
 * Returns the minor version and thread safety that a request gets, as minor * 10 + safe, or the
 * error.
 */
static DAT_RETURN match(const char *name, DAT_UINT32 major, DAT_UINT32 minor, DAT_BOOLEAN safe)
{
	const DAT_PROVIDER_INFO wanted = info_of(name, major, minor, safe);
	struct match found = { .wanted = &wanted };
	DAT_RETURN ret = reg_enter();

	CU_ASSERT_EQUAL(ret, DAT_SUCCESS);
	reg_match_locked(&found);
	ret = match_status(&found);
	if (ret == DAT_SUCCESS)
		ret = found.best->dapl_version_minor * 10 + !!found.best->is_thread_safe;
	reg_unlock();
	return ret;
}

TEST(match_versions)
{
	add("a", 2, 1, DAT_FALSE);
	add("a", 2, 5, DAT_FALSE);
	add("a", 2, 3, DAT_FALSE);
	add("a", 4, 2, DAT_FALSE);
	CU_ASSERT_EQUAL(match("a", 2, 5, DAT_FALSE), 50);
	CU_ASSERT_EQUAL(match("a", 2, 3, DAT_FALSE), 30);
	CU_ASSERT_EQUAL(match("a", 2, 2, DAT_FALSE), 30);
	CU_ASSERT_EQUAL(match("a", 2, 0, DAT_FALSE), 10);
	CU_ASSERT_EQUAL(match("a", 4, 0, DAT_FALSE), 20);
	CU_ASSERT_EQUAL(match("a", 2, 6, DAT_FALSE), NOT_FOUND(MINOR_NOT_FOUND));
	CU_ASSERT_EQUAL(match("a", 3, 0, DAT_FALSE), NOT_FOUND(MAJOR_NOT_FOUND));
	CU_ASSERT_EQUAL(match("b", 2, 0, DAT_FALSE), NOT_FOUND(NAME_NOT_REGISTERED));
	CU_ASSERT_EQUAL(match("", 2, 0, DAT_FALSE), NOT_FOUND(NAME_NOT_REGISTERED));
	CU_ASSERT_EQUAL(match("a", 2, 0, DAT_TRUE), NOT_FOUND(THREAD_SAFETY_NOT_FOUND));
	CU_ASSERT_EQUAL(match("a", 2, 6, DAT_TRUE), NOT_FOUND(MINOR_NOT_FOUND));
	CU_ASSERT_EQUAL(match("a", 3, 0, DAT_TRUE), NOT_FOUND(MAJOR_NOT_FOUND));
}

TEST(match_thread_safety)
{
	add("a", 2, 0, DAT_TRUE);
	add("a", 2, 4, DAT_FALSE);
	CU_ASSERT_EQUAL(match("a", 2, 0, DAT_FALSE), 40);
	CU_ASSERT_EQUAL(match("a", 2, 0, DAT_TRUE), 1);
	CU_ASSERT_EQUAL(match("a", 2, 1, DAT_TRUE), NOT_FOUND(THREAD_SAFETY_NOT_FOUND));
	add("a", 2, 7, DAT_TRUE);
	CU_ASSERT_EQUAL(match("a", 2, 5, DAT_FALSE), 71);
	CU_ASSERT_EQUAL(match("a", 2, 7, 5), 71);
	add("b", 2, 0, DAT_TRUE);
	CU_ASSERT_EQUAL(match("b", 2, 0, DAT_FALSE), 1);
}

TEST(open_reports_the_kind_of_miss)
{
	DAT_IA_HANDLE ia = &ia;

	add("a", 2, 1, DAT_FALSE);
	CU_ASSERT_EQUAL(fake_openv("b", 2, 0, DAT_FALSE, &ia), NOT_FOUND(NAME_NOT_REGISTERED));
	CU_ASSERT_PTR_NULL(ia);
	CU_ASSERT_EQUAL(fake_openv("a", 3, 0, DAT_FALSE, &ia), NOT_FOUND(MAJOR_NOT_FOUND));
	CU_ASSERT_EQUAL(fake_openv("a", 2, 2, DAT_FALSE, &ia), NOT_FOUND(MINOR_NOT_FOUND));
	CU_ASSERT_EQUAL(fake_openv("a", 2, 0, DAT_TRUE, &ia), NOT_FOUND(THREAD_SAFETY_NOT_FOUND));
	CU_ASSERT_EQUAL(fake_open("a", &ia), 0x12345);
	CU_ASSERT_STRING_EQUAL(opened_as, "a");
	CU_ASSERT_PTR_NULL(ia);
}

/*
 * A DAT 1.2 library, whose table ends at the end of mapped memory, and a program that claims to be
 * one.
 */
static void child_add_of_dat_1(void)
{
	DAT_PROVIDER_INFO info = info_of("mine", 1, 2, DAT_FALSE);
	struct fake_capture capture = fake_capture(STDERR_FILENO);
	const char *text;
	DAT_IA_HANDLE ia;

	CU_ASSERT_EQUAL(fake_openv("old", 1, 2, DAT_FALSE, &ia), NOT_FOUND(NAME_NOT_REGISTERED));
	CU_ASSERT_EQUAL(dat_registry_add_provider(&provider, &info),
			FAKE_ERROR(DAT_MODEL_NOT_SUPPORTED, DAT_NO_SUBTYPE));
	text = fake_captured(capture);
	CU_ASSERT_PTR_NOT_NULL(strstr(
		text,
		"libdat2: old: a provider of DAT 1.2 is refused, providers are of DAT 2.0\n"));
	CU_ASSERT_PTR_NOT_NULL(strstr(text, "did not register it\n"));
	CU_ASSERT_PTR_NOT_NULL(strstr(text, "libdat2: mine: a provider of DAT 1.2 is refused"));
}

static void add_of_dat_1(void)
{
	char conf[512];

	snprintf(conf, sizeof(conf), "old u1.2 nonthreadsafe default %s old.1.2 \"\" \"\"\n",
		 getenv("OLD_PROVIDER"));
	fake_in_child(conf, child_add_of_dat_1);
}

TEST(add_checks)
{
	DAT_PROVIDER_INFO info = info_of("a", 2, 0, DAT_FALSE);

	CU_ASSERT_EQUAL(dat_registry_add_provider(NULL, NULL), BAD_PARAMETER(1));
	CU_ASSERT_EQUAL(dat_registry_add_provider(&provider, NULL), BAD_PARAMETER(2));
	CU_ASSERT_EQUAL(dat_registry_add_provider(&provider, &info), DAT_SUCCESS);
	CU_ASSERT_EQUAL(dat_registry_add_provider(&provider, &info),
			FAKE_ERROR(DAT_PROVIDER_ALREADY_REGISTERED, 0));
	info.dapl_version_minor = 1;
	CU_ASSERT_EQUAL(dat_registry_add_provider(&provider, &info), DAT_SUCCESS);
	info.ia_name[0] = '\0';
	CU_ASSERT_EQUAL(dat_registry_add_provider(&provider, &info), BAD_PARAMETER(2));
	memset(info.ia_name, 'n', sizeof(info.ia_name));
	CU_ASSERT_EQUAL(dat_registry_add_provider(&provider, &info), BAD_PARAMETER(2));
	info.ia_name[255] = '\0';
	CU_ASSERT_EQUAL(dat_registry_add_provider(&provider, &info), DAT_SUCCESS);
}

TEST(remove_checks)
{
	DAT_PROVIDER_INFO info = info_of("a", 2, 0, DAT_FALSE);

	CU_ASSERT_EQUAL(dat_registry_remove_provider(NULL, &info), BAD_PARAMETER(1));
	CU_ASSERT_EQUAL(dat_registry_remove_provider(&provider, NULL), BAD_PARAMETER(2));
	CU_ASSERT_EQUAL(dat_registry_remove_provider(&provider, &info),
			NOT_FOUND(NAME_NOT_REGISTERED));
	add("a", 2, 0, DAT_FALSE);
	CU_ASSERT_EQUAL(dat_registry_remove_provider(&provider, &info), DAT_SUCCESS);
	CU_ASSERT_EQUAL(dat_registry_remove_provider(&provider, &info),
			NOT_FOUND(NAME_NOT_REGISTERED));
	memset(info.ia_name, 'n', sizeof(info.ia_name));
	CU_ASSERT_EQUAL(dat_registry_remove_provider(&provider, &info),
			NOT_FOUND(NAME_NOT_REGISTERED));
}

static void child_list_checks(void)
{
	DAT_PROVIDER_INFO infos[3], *list[3] = { &infos[0], &infos[1], NULL };
	DAT_COUNT count = -1;

	CU_ASSERT_EQUAL(dat_registry_list_providers(1, NULL, list), BAD_PARAMETER(2));
	CU_ASSERT_EQUAL(dat_registry_list_providers(0, NULL, NULL), BAD_PARAMETER(2));
	CU_ASSERT_EQUAL(dat_registry_list_providers(1, &count, NULL), BAD_PARAMETER(3));
	CU_ASSERT_EQUAL(count, -1);
	CU_ASSERT_EQUAL(dat_registry_list_providers(0, &count, NULL), 0x80060025);
	CU_ASSERT_EQUAL(count, 3);
	count = 0;
	CU_ASSERT_EQUAL(dat_registry_list_providers(-1, &count, list), BAD_PARAMETER(1));
	CU_ASSERT_EQUAL(count, 3);
	count = 0;
	memset(infos, 0, sizeof(infos));
	CU_ASSERT_EQUAL(dat_registry_list_providers(3, &count, list), BAD_PARAMETER(3));
	CU_ASSERT_EQUAL(count, 3);
	CU_ASSERT_EQUAL(infos[0].ia_name[0], '\0');
}

static void child_list_order(void)
{
	DAT_PROVIDER_INFO infos[5], *list[5];
	DAT_COUNT count = 0, i;

	for (i = 0; i < 5; i++)
		list[i] = &infos[i];
	add("direct", 2, 0, DAT_TRUE);
	add("b", 2, 0, DAT_FALSE);
	CU_ASSERT_EQUAL(dat_registry_list_providers(5, &count, list), DAT_SUCCESS);
	CU_ASSERT_EQUAL(count, 4);
	CU_ASSERT_STRING_EQUAL(infos[0].ia_name, "a");
	CU_ASSERT_STRING_EQUAL(infos[1].ia_name, "b");
	CU_ASSERT_STRING_EQUAL(infos[2].ia_name, "a");
	CU_ASSERT_EQUAL(infos[2].dapl_version_major, 1);
	CU_ASSERT_EQUAL(infos[2].dapl_version_minor, 2);
	CU_ASSERT_STRING_EQUAL(infos[3].ia_name, "direct");
	CU_ASSERT_EQUAL(infos[3].is_thread_safe, DAT_TRUE);
	CU_ASSERT_EQUAL(fake.inits, 0);
}

static void child_list_short(void)
{
	DAT_PROVIDER_INFO infos[2], *list[3] = { &infos[0], &infos[1], (DAT_PROVIDER_INFO *)1 };
	DAT_COUNT count = 0;

	CU_ASSERT_EQUAL(dat_registry_list_providers(2, &count, list), DAT_SUCCESS);
	CU_ASSERT_EQUAL(count, 2);
	CU_ASSERT_STRING_EQUAL(infos[1].ia_name, "b");
}

#define THREE_KEYS                                                \
	"a u2.0 nonthreadsafe default @ fake.1.0 \"\" \"\"\n"     \
	"b u2.0 nonthreadsafe default @ fake.1.0 \"\" \"\"\n"     \
	"a u2.0 nonthreadsafe default other fake.1.0 \"\" \"\"\n" \
	"a u1.2 nonthreadsafe default @ fake.1.0 \"\" \"\"\n"

static void list_checks(void)
{
	fake_in_child(THREE_KEYS, child_list_checks);
}

static void list_order(void)
{
	fake_in_child(THREE_KEYS, child_list_order);
}

static void list_short(void)
{
	fake_in_child(THREE_KEYS, child_list_short);
}

static void child_list_leaves_the_rest(void)
{
	DAT_PROVIDER_INFO info, *list[1] = { &info };
	DAT_COUNT count = 0;

	/* one provider: dat_registry_list_providers must not touch memory behind the one pointer */
	CU_ASSERT_EQUAL(dat_registry_list_providers(64, &count, list), DAT_SUCCESS);
	CU_ASSERT_EQUAL(count, 1);
	CU_ASSERT_STRING_EQUAL(info.ia_name, "only");
}

static void list_leaves_the_rest(void)
{
	fake_in_child("only u2.0 nonthreadsafe default @ fake.1.0 \"\" \"\"\n",
		      child_list_leaves_the_rest);
}

static DAT_HA_RELATIONSHIP opinions[2]; /* answers for "a" and "b" */

static DAT_RETURN give_opinion(DAT_IA_HANDLE ia, const DAT_NAME_PTR other, DAT_BOOLEAN *related)
{
	DAT_HA_RELATIONSHIP opinion = opinions[*other == 'a'];

	(void)ia;
	*related = opinion == DAT_HA_TRUE;
	return opinion == DAT_HA_UNKNOWN ? FAKE_ERROR(DAT_NOT_IMPLEMENTED, 0) : DAT_SUCCESS;
}

static const DAT_PROVIDER opinionated = { .ia_ha_related_func = give_opinion };
static const struct fake_object ia_objects[2] = { { .provider = &opinionated },
						  { .provider = &opinionated } };

static DAT_RETURN ask(const char *a, const char *b, DAT_HA_RELATIONSHIP *answer)
{
	return dat_registry_providers_related((DAT_NAME_PTR)a, (DAT_NAME_PTR)b, answer);
}

static DAT_HA_RELATIONSHIP related(void)
{
	DAT_HA_RELATIONSHIP answer = 99;

	CU_ASSERT_EQUAL(ask("a", "b", &answer), DAT_SUCCESS);
	return answer;
}

static void open_object(const char *name, const struct fake_object *object, DAT_IA_HANDLE *ia)
{
	struct reg_hold hold;

	CU_ASSERT_EQUAL(reg_acquire(name, 2, 0, DAT_FALSE, &hold), DAT_SUCCESS);
	CU_ASSERT_TRUE(ia_insert((DAT_IA_HANDLE)object, DAT_EXTENSION_NONE, &hold, ia));
}

TEST(related_checks)
{
	char name[DAT_NAME_MAX_LENGTH + 1];
	DAT_HA_RELATIONSHIP answer = 99;

	memset(name, 'n', sizeof(name));
	name[DAT_NAME_MAX_LENGTH] = '\0';
	add("a", 2, 0, DAT_FALSE);
	CU_ASSERT_EQUAL(ask(NULL, NULL, NULL), BAD_PARAMETER(1));
	CU_ASSERT_EQUAL(ask(name, "a", &answer), BAD_PARAMETER(1));
	CU_ASSERT_EQUAL(ask("a", NULL, NULL), BAD_PARAMETER(2));
	CU_ASSERT_EQUAL(ask("a", name, &answer), BAD_PARAMETER(2));
	CU_ASSERT_EQUAL(ask("a", "a", NULL), BAD_PARAMETER(3));
	CU_ASSERT_EQUAL(ask("a", "z", &answer), NOT_FOUND(NAME_NOT_REGISTERED));
	CU_ASSERT_EQUAL(ask("z", "a", &answer), NOT_FOUND(NAME_NOT_REGISTERED));
	CU_ASSERT_EQUAL(answer, 99);
	CU_ASSERT_EQUAL(ask("a", "a", &answer), DAT_SUCCESS);
	CU_ASSERT_EQUAL(answer, DAT_HA_UNKNOWN);
}

TEST(related_answers)
{
	static const DAT_HA_RELATIONSHIP F = DAT_HA_FALSE, T = DAT_HA_TRUE, U = DAT_HA_UNKNOWN;
	const DAT_HA_RELATIONSHIP rows[][3] = {
		{ T, T, T },
		{ F, F, F },
		{ U, U, U },
		{ T, U, T },
		{ U, T, T },
		{ F, U, F },
		{ U, F, F },
		{ T, F, DAT_HA_CONFLICTING },
		{ F, T, DAT_HA_CONFLICTING },
	};
	DAT_IA_HANDLE a, b;
	size_t i;

	add("a", 2, 0, DAT_FALSE);
	add("b", 2, 0, DAT_FALSE);
	CU_ASSERT_EQUAL(related(), DAT_HA_UNKNOWN);
	open_object("a", &ia_objects[0], &a);
	opinions[0] = DAT_HA_FALSE;
	CU_ASSERT_EQUAL(related(), DAT_HA_FALSE);
	open_object("b", &ia_objects[1], &b);
	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		opinions[0] = rows[i][0];
		opinions[1] = rows[i][1];
		CU_ASSERT_EQUAL(related(), rows[i][2]);
	}
}

static const struct unit_test tests[] = {
	{ "a match is exact or the next minor version; each kind of failure has its error",
	  match_versions },
	{ "thread-safe entries match any request", match_thread_safety },
	{ "dat_ia_openv passes the subtype on", open_reports_the_kind_of_miss },
	{ "list: checks", list_checks },
	{ "the list has the file's order, then dynamic entries", list_order },
	{ "a list with more entries than room succeeds", list_short },
	{ "the list writes no element beyond the last entry", list_leaves_the_rest },
	{ "add_provider: checks", add_checks },
	{ "providers of DAT 1 are refused", add_of_dat_1 },
	{ "remove_provider: checks", remove_checks },
	{ "providers_related: checks", related_checks },
	{ "providers_related asks open IAs", related_answers },
};

UNIT_MAIN("registry", tests)
