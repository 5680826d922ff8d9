/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * Opening and listing as DAT 1.2: the usable records, the refused versions, and the refused
 * providers.
 */
#include "test/unit/fake.h"

struct fake_control fake;

#define ERROR(type, subtype) ((DAT_RETURN)(DAT_CLASS_ERROR | (type) | (subtype)))
#define MISSING(what)	     ERROR(DAT_PROVIDER_NOT_FOUND, DAT_##what)
#define BAD_ARG(n)	     ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG##n)
#define COUNT(array)	     (sizeof(array) / sizeof((array)[0]))

/* A dat.conf with records of the software device, of the fake provider ("@") and of one of DAT 1.2. */
static const char *conf(const char *text)
{
	static const char *const marks[] = { "SOFT", "OLD" };
	const char *const values[] = { getenv("DAPL_SOFT_LIB"), getenv("OLD_PROVIDER") };
	static char out[4096];
	size_t len = 0, i, mark;

	for (i = 0; text[i] && len < sizeof(out) - 512; i += mark) {
		for (mark = 0; mark < COUNT(marks); mark++)
			if (!strncmp(text + i, marks[mark], strlen(marks[mark])))
				break;
		if (mark == COUNT(marks)) {
			out[len++] = text[i];
			mark = 1;
			continue;
		}
		len += (size_t)snprintf(out + len, sizeof(out) - len, "%s", values[mark]);
		mark = strlen(marks[mark]);
	}
	out[len] = '\0';
	return out;
}

#define SOFT(name, version) \
	name " " version " nonthreadsafe default SOFT dapl.2.0 \"soft0 1\" \"\"\n"
#define FAKE(name, version) name " " version " nonthreadsafe default @ fake.1.0 \"\" \"\"\n"
#define OLD(name, version)  name " " version " nonthreadsafe default OLD old.1.2 \"\" \"\"\n"

#define TEST(name, text)                                 \
	static void child_##name(void);                  \
	static void name(void)                           \
	{                                                \
		fake_in_child(conf(text), child_##name); \
	}                                                \
	static void child_##name(void)

/* ---- Opening ---- */

/* Opens, checks that the IA is one of DAT 1.2 with its own handle everywhere, and closes. */
static void check_open(const char *name)
{
	DAT_PROVIDER_ATTR attr;
	DAT_PZ_PARAM param;
	DAT_PZ_HANDLE pz;
	DAT_IA_HANDLE ia;

	CU_ASSERT_EQUAL(fake_open(name, &ia), DAT_SUCCESS);
	CU_ASSERT_EQUAL(dat_ia_query(ia, NULL, 0, NULL, DAT_PROVIDER_FIELD_ALL, &attr),
			DAT_SUCCESS);
	CU_ASSERT_EQUAL(attr.dapl_version_major, 1);
	CU_ASSERT_EQUAL(attr.dapl_version_minor, 2);
	CU_ASSERT_EQUAL(dat_pz_create(ia, &pz), DAT_SUCCESS);
	CU_ASSERT_EQUAL(dat_pz_query(pz, DAT_PZ_FIELD_ALL, &param), DAT_SUCCESS);
	CU_ASSERT_PTR_EQUAL(param.ia_handle, ia);
	CU_ASSERT_EQUAL(dat_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG), DAT_SUCCESS);
}

TEST(open_either, SOFT("new", "u2.0") SOFT("old", "u1.2") SOFT("later", "u1.3"))
{
	struct fake_capture capture = fake_capture(STDERR_FILENO);

	check_open("new");
	check_open("old");
	check_open("later");
	/* No library was searched for without success. */
	CU_ASSERT_STRING_EQUAL(fake_captured(capture), "");
}

/*
 * Records for DAT 1.2 are tried first; one whose library is missing is passed over for one for DAT
 * 2.0.
 */
TEST(open_first,
     SOFT("a", "u2.0") FAKE("b", "u2.0")
	     SOFT("b",
		  "u1.2") "a u1.2 nonthreadsafe default /no/such/lib.so.1 dapl.1.2 \"\" \"\"\n")
{
	struct fake_capture capture = fake_capture(STDERR_FILENO);

	check_open("b");
	CU_ASSERT_EQUAL(fake.opens, 0);
	check_open("a");
	CU_ASSERT_PTR_NOT_NULL(strstr(fake_captured(capture), "/no/such/lib.so.1"));
}

TEST(open_misses, SOFT("new", "u2.0") SOFT("old", "u1.2") SOFT("ancient", "u1.1"))
{
	struct fake_capture capture = fake_capture(STDERR_FILENO);
	DAT_IA_HANDLE ia = &ia;

	CU_ASSERT_EQUAL(fake_openv("none", 1, 2, DAT_FALSE, &ia), MISSING(NAME_NOT_REGISTERED));
	CU_ASSERT_PTR_NULL(ia);
	CU_ASSERT_EQUAL(fake_openv("new", 1, 2, DAT_TRUE, &ia), MISSING(THREAD_SAFETY_NOT_FOUND));
	CU_ASSERT_EQUAL(fake_openv("old", 1, 2, DAT_TRUE, &ia), MISSING(THREAD_SAFETY_NOT_FOUND));
	CU_ASSERT_EQUAL(fake_openv("ancient", 1, 2, DAT_FALSE, &ia), MISSING(MINOR_NOT_FOUND));
	fake_captured(capture);
}

TEST(open_versions, SOFT("a", "u2.0") SOFT("a", "u1.2") SOFT("a", "u1.1") SOFT("a", "u1.0"))
{
	static const struct {
		DAT_UINT32 major, minor;
		DAT_RETURN ret;
	} versions[] = {
		{ 1, 0, MISSING(MINOR_NOT_FOUND) }, { 1, 1, MISSING(MINOR_NOT_FOUND) },
		{ 1, 3, MISSING(MINOR_NOT_FOUND) }, { 2, 0, MISSING(MAJOR_NOT_FOUND) },
		{ 0, 2, MISSING(MAJOR_NOT_FOUND) }, { 3, 0, MISSING(MAJOR_NOT_FOUND) },
	};
	struct fake_capture capture;
	DAT_IA_HANDLE ia;
	char text[64];
	size_t i;

	for (i = 0; i < COUNT(versions); i++) {
		ia = &ia;
		capture = fake_capture(STDERR_FILENO);
		CU_ASSERT_EQUAL(fake_openv("a", versions[i].major, versions[i].minor, DAT_FALSE,
					   &ia),
				versions[i].ret);
		CU_ASSERT_PTR_NULL(ia);
		snprintf(text, sizeof(text), "libdat: a: opened for DAT %u.%u, ", versions[i].major,
			 versions[i].minor);
		CU_ASSERT_PTR_NOT_NULL(strstr(fake_captured(capture), text));
	}
}

TEST(open_arguments, FAKE("a", "u2.0"))
{
	char name[DAT_NAME_MAX_LENGTH + 1];
	DAT_EVD_HANDLE evd = DAT_HANDLE_NULL;
	DAT_IA_HANDLE ia = &ia;

	memset(name, 'n', DAT_NAME_MAX_LENGTH);
	name[DAT_NAME_MAX_LENGTH] = '\0';
	CU_ASSERT_EQUAL(dat_ia_open(NULL, 8, &evd, &ia), BAD_ARG(1));
	CU_ASSERT_PTR_NULL(ia);
	CU_ASSERT_EQUAL(dat_ia_open(name, 8, &evd, &ia), BAD_ARG(1));
	CU_ASSERT_EQUAL(dat_ia_openv(NULL, 8, &evd, &ia, 2, 0, DAT_FALSE), BAD_ARG(1));
	CU_ASSERT_EQUAL(dat_ia_open((DAT_NAME_PTR) "a", 8, &evd, NULL),
			ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_IA));
	/* The provider's result is passed on, with its number in DAT 1.2. */
	fake.open_result = 0x80120061u;
	CU_ASSERT_EQUAL(fake_open("a", &ia),
			ERROR(DAT_INVALID_ADDRESS, DAT_INVALID_ADDRESS_UNSUPPORTED));
	CU_ASSERT_EQUAL(dat_ia_close((DAT_IA_HANDLE)77, DAT_CLOSE_ABRUPT_FLAG),
			ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_IA));
}

/* ---- Listing ---- */

#define MANY_RECORDS                                          \
	SOFT("a", "u2.0")                                     \
	SOFT("b", "u1.2")                                     \
	SOFT("a", "u1.2")                                     \
	SOFT("c", "u1.1")                                     \
	SOFT("d", "u1.0")                                     \
	SOFT("e", "u3.0")                                     \
	SOFT("f", "u1.3")                                     \
	"a u2.0 threadsafe default SOFT dapl.2.0 \"\" \"\"\n" \
	"g u2.0 nonthreadsafe nondefault SOFT dapl.2.0 \"\" \"\"\n"

TEST(list, MANY_RECORDS)
{
	static const char *const names[] = { "a", "b", "f", "a" };
	DAT_PROVIDER_INFO infos[8], *pointers[8];
	DAT_COUNT count = 0, i;

	for (i = 0; i < 8; i++)
		pointers[i] = &infos[i];
	CU_ASSERT_EQUAL(dat_registry_list_providers(8, &count, pointers), DAT_SUCCESS);
	CU_ASSERT_EQUAL_FATAL(count, (DAT_COUNT)COUNT(names));
	for (i = 0; i < count; i++) {
		CU_ASSERT_STRING_EQUAL(infos[i].ia_name, names[i]);
		CU_ASSERT_EQUAL(infos[i].dapl_version_major, 1);
		CU_ASSERT_EQUAL(infos[i].dapl_version_minor, 2);
		CU_ASSERT_EQUAL(infos[i].is_thread_safe, i == 3 ? DAT_TRUE : DAT_FALSE);
	}
	/* Everything that is listed can be opened. */
	for (i = 0; i < count; i++)
		if (!infos[i].is_thread_safe)
			check_open(infos[i].ia_name);
}

TEST(list_arguments, MANY_RECORDS)
{
	DAT_PROVIDER_INFO infos[2], *pointers[3] = { &infos[0], &infos[1], NULL };
	DAT_COUNT count = 0;

	CU_ASSERT_EQUAL(dat_registry_list_providers(0, &count, NULL), BAD_ARG(1));
	CU_ASSERT_EQUAL(count, 4);
	CU_ASSERT_EQUAL(dat_registry_list_providers(2, NULL, pointers), BAD_ARG(2));
	CU_ASSERT_EQUAL(dat_registry_list_providers(2, &count, NULL), BAD_ARG(3));
	CU_ASSERT_EQUAL(dat_registry_list_providers(3, &count, pointers), BAD_ARG(3));
	CU_ASSERT_EQUAL(dat_registry_list_providers(2, &count, pointers), DAT_SUCCESS);
	CU_ASSERT_EQUAL(count, 2);
	CU_ASSERT_STRING_EQUAL(infos[1].ia_name, "b");
}

TEST(list_of_nothing, "# no records\n")
{
	DAT_PROVIDER_INFO info, *pointer = &info;
	DAT_COUNT count = 7;

	CU_ASSERT_EQUAL(dat_registry_list_providers(0, &count, NULL), BAD_ARG(1));
	CU_ASSERT_EQUAL(count, 0);
	count = 7;
	CU_ASSERT_EQUAL(dat_registry_list_providers(1, &count, &pointer), DAT_SUCCESS);
	CU_ASSERT_EQUAL(count, 0);
}

/* ---- Providers ---- */

static DAT_PROVIDER table; /* of DAT 1.2; its slots are never read */

TEST(add_provider, "")
{
	DAT_PROVIDER_INFO info = { .ia_name = "mine",
				   .dapl_version_major = 1,
				   .dapl_version_minor = 2 };
	struct fake_capture capture = fake_capture(STDERR_FILENO);

	CU_ASSERT_EQUAL(dat_registry_add_provider(&table, &info),
			ERROR(DAT_MODEL_NOT_SUPPORTED, DAT_NO_SUBTYPE));
	CU_ASSERT_STRING_EQUAL(
		fake_captured(capture),
		"libdat: mine: a provider of DAT 1.2 is refused, providers are of DAT 2.0\n");
	CU_ASSERT_EQUAL(dat_registry_remove_provider(&table, &info), MISSING(NAME_NOT_REGISTERED));
	CU_ASSERT_EQUAL(dat_registry_add_provider(NULL, &info), BAD_ARG(1));
	CU_ASSERT_EQUAL(dat_registry_add_provider(&table, NULL), BAD_ARG(2));
	CU_ASSERT_EQUAL(dat_registry_remove_provider(NULL, &info), BAD_ARG(1));
	CU_ASSERT_EQUAL(dat_registry_remove_provider(&table, NULL), BAD_ARG(2));
}

/* A provider of DAT 1.2 is refused; a record for DAT 2.0 of the same name is used in its place. */
TEST(old_provider, OLD("a", "u1.2") OLD("b", "u1.2") SOFT("b", "u2.0"))
{
	struct fake_capture capture = fake_capture(STDERR_FILENO);
	const char *text;
	DAT_IA_HANDLE ia;

	CU_ASSERT_EQUAL(fake_open("a", &ia), MISSING(MAJOR_NOT_FOUND));
	check_open("b");
	text = fake_captured(capture);
	CU_ASSERT_PTR_NOT_NULL(strstr(text, "a: a provider of DAT 1.2 is refused"));
	CU_ASSERT_PTR_NOT_NULL(strstr(text, "did not register it"));
}

/*
 * A provider of DAT 2.0 that names no version of the registry's symbols binds to those of
 * libdat.so.1.
 */
TEST(new_provider, FAKE("a", "u2.0"))
{
	DAT_IA_HANDLE ia, object, again;

	CU_ASSERT_EQUAL(fake_open("a", &ia), DAT_SUCCESS);
	CU_ASSERT_EQUAL(fake.opens, 1);
	CU_ASSERT_EQUAL(dats_get_ia_handle((unsigned long)ia, &object), DAT_SUCCESS);
	CU_ASSERT_PTR_NOT_EQUAL(object, ia);
	CU_ASSERT_EQUAL(dats_get_ia_handle((unsigned long)object, &again), DAT_SUCCESS);
	CU_ASSERT_PTR_EQUAL(again, ia);
	CU_ASSERT_EQUAL(dats_get_ia_handle(4000, &object),
			ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_IA));
	CU_ASSERT_EQUAL(dat_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG), DAT_SUCCESS);
	CU_ASSERT_EQUAL(fake.removed, DAT_SUCCESS);
	CU_ASSERT_EQUAL(fake.finis, 1);
}

static const struct unit_test tests[] = {
	{ "records for DAT 1.2 and for 2.0 serve", open_either },
	{ "records for DAT 1.2 come first", open_first },
	{ "a name that no record has", open_misses },
	{ "other versions are refused", open_versions },
	{ "arguments of an open", open_arguments },
	{ "the list is what can be opened", list },
	{ "arguments of the list", list_arguments },
	{ "a list of nothing", list_of_nothing },
	{ "a program's provider of DAT 1.2 is refused", add_provider },
	{ "a library of DAT 1.2 is refused", old_provider },
	{ "a provider of DAT 2.0 without symbol versions", new_provider },
};

UNIT_MAIN("one registry", tests)
