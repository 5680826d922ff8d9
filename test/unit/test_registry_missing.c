/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* The registry's log when no record matches a request. */
#include "dat/common/handle.h"
#include "test/unit/fake.h"

struct fake_control fake;

#define NOT_FOUND(subtype) FAKE_ERROR(DAT_PROVIDER_NOT_FOUND, DAT_##subtype)

#define RECORD(name, version, safety) name " " version " " safety " default @ dapl.2.0 \"\" \"\"\n"
#define ENTRY(name)		      RECORD(name, "u2.0", "nonthreadsafe")

/* Returns the log of one failed open. */
static const char *said(const char *name, DAT_UINT32 major, DAT_UINT32 minor, DAT_BOOLEAN safe,
			DAT_RETURN status)
{
	struct fake_capture capture = fake_capture(STDERR_FILENO);
	DAT_IA_HANDLE ia;

	CU_ASSERT_EQUAL(fake_openv(name, major, minor, safe, &ia), status);
	return fake_captured(capture);
}

/* The log line for a name, with the path of this process's dat.conf before `rest`. */
static const char *line_of(const char *name, const char *before, const char *rest)
{
	static char text[2048];

	snprintf(text, sizeof(text), "libdat2: %s: %s%s%s\n", name, before, getenv("DAT_OVERRIDE"),
		 rest);
	return text;
}

static void child_unknown(void)
{
	CU_ASSERT_STRING_EQUAL(said("nope", 2, 0, DAT_FALSE, NOT_FOUND(NAME_NOT_REGISTERED)),
			       line_of("nope", "no such name; ", " has a, b, c"));
	/* each name that the program could open is listed once */
	CU_ASSERT_STRING_EQUAL(said("nope", 1, 2, DAT_FALSE, NOT_FOUND(NAME_NOT_REGISTERED)),
			       line_of("nope", "no such name; ", " has old"));
	CU_ASSERT_STRING_EQUAL(said("nope", 2, 0, DAT_TRUE, NOT_FOUND(NAME_NOT_REGISTERED)),
			       line_of("nope", "no such name; ", " has b"));
	CU_ASSERT_STRING_EQUAL(said("nope", 3, 0, DAT_FALSE, NOT_FOUND(NAME_NOT_REGISTERED)),
			       line_of("nope", "no such name; ", " has none for DAT 3.0"));
}

static void unknown(void)
{
	fake_in_child(ENTRY("a") RECORD("b", "u2.0", "threadsafe") ENTRY("c") ENTRY("b") ENTRY("a")
			      RECORD("old", "u1.2", "nonthreadsafe"),
		      child_unknown);
}

static void child_other_version(void)
{
	CU_ASSERT_STRING_EQUAL(said("old", 2, 0, DAT_FALSE, NOT_FOUND(MAJOR_NOT_FOUND)),
			       line_of("old", "", " has it for DAT 1.2, not for 2.0"));
	CU_ASSERT_STRING_EQUAL(said("a", 2, 1, DAT_FALSE, NOT_FOUND(MINOR_NOT_FOUND)),
			       line_of("a", "", " has it for DAT 2.0, not for 2.1"));
	CU_ASSERT_STRING_EQUAL(said("a", 2, 0, DAT_TRUE, NOT_FOUND(THREAD_SAFETY_NOT_FOUND)),
			       line_of("a", "", " has no threadsafe record of it"));
}

static void other_version(void)
{
	fake_in_child(ENTRY("a") RECORD("old", "u1.2", "nonthreadsafe"), child_other_version);
}

static DAT_RETURN refuse_open(const DAT_NAME_PTR name, DAT_COUNT qlen, DAT_EVD_HANDLE *evd,
			      DAT_IA_HANDLE *ia)
{
	(void)name, (void)qlen, (void)evd, (void)ia;
	return FAKE_ERROR(DAT_INVALID_ADDRESS, 0);
}

/* Names that the program registered are listed, too; a provider logs its own failures. */
static void child_registered(void)
{
	static const DAT_PROVIDER provider = { .device_name = "mine", .ia_open_func = refuse_open };
	DAT_PROVIDER_INFO info = { .ia_name = "mine",
				   .dapl_version_major = 2,
				   .is_thread_safe = DAT_FALSE };

	CU_ASSERT_EQUAL(dat_registry_add_provider(&provider, &info), DAT_SUCCESS);
	CU_ASSERT_STRING_EQUAL(said("nope", 2, 0, DAT_FALSE, NOT_FOUND(NAME_NOT_REGISTERED)),
			       line_of("nope", "no such name; ", " has a, mine"));
	CU_ASSERT_STRING_EQUAL(said("mine", 2, 0, DAT_FALSE, FAKE_ERROR(DAT_INVALID_ADDRESS, 0)),
			       "");
}

static void registered(void)
{
	fake_in_child(ENTRY("a"), child_registered);
}

/* A record matches, but its library fails to load: the log has the dlopen error only. */
static void child_library(void)
{
	const char *text = said("lib", 2, 0, DAT_FALSE, NOT_FOUND(NAME_NOT_REGISTERED));

	CU_ASSERT_PTR_NOT_NULL(strstr(text, "lib: dlopen: /absent.so: "));
	CU_ASSERT_PTR_NULL(strstr(text, "no such name"));
}

static void library(void)
{
	fake_in_child("lib u2.0 nonthreadsafe default /absent.so dapl.2.0 \"\" \"\"\n",
		      child_library);
}

static void child_no_file(void)
{
	const char *text;

	setenv("DAT_OVERRIDE", "/nonexistent/dat.conf", 1);
	text = said("nope", 2, 0, DAT_FALSE, NOT_FOUND(NAME_NOT_REGISTERED));
	CU_ASSERT_PTR_NOT_NULL(strstr(text, "/nonexistent/dat.conf\": No such file"));
	CU_ASSERT_PTR_NOT_NULL(
		strstr(text, "nope: no such name; the registry has none for DAT 2.0"));
}

static void no_file(void)
{
	fake_in_child(NULL, child_no_file);
}

/* The line of 1024 bytes lists as many names as fit, and the number of the others. */
static void child_many(void)
{
	const char *text, *more;
	char wanted[DAT_NAME_MAX_LENGTH];
	unsigned shown = 0, rest = 0;

	memset(wanted, 'w', sizeof(wanted));
	wanted[sizeof(wanted) - 1] = '\0';
	text = said(wanted, 2, 0, DAT_FALSE, NOT_FOUND(NAME_NOT_REGISTERED));
	CU_ASSERT(strlen(text) < 1024);
	more = strstr(text, ", and ");
	CU_ASSERT_PTR_NOT_NULL(more);
	if (!more)
		return;
	CU_ASSERT_EQUAL(sscanf(more, ", and %u more; datinfo(1) shows all\n", &rest), 1);
	CU_ASSERT_STRING_EQUAL(strrchr(text, ';'), "; datinfo(1) shows all\n");
	while ((text = strstr(text, "name")) && text < more) {
		shown += text[4] == '-';
		text += 4;
	}
	CU_ASSERT_EQUAL(shown + rest, 200);
	CU_ASSERT(shown > 20);
}

static void many(void)
{
	static char text[200 * 64];
	size_t len = 0;
	int i;

	for (i = 0; i < 200; i++)
		len += (size_t)snprintf(text + len, sizeof(text) - len,
					"name-%d u2.0 nonthreadsafe default @ dapl.2.0 \"\" \"\"\n",
					i);
	fake_in_child(text, child_many);
}

static void child_quiet(void)
{
	setenv("DAT_DBG_TYPE", "0", 1);
	CU_ASSERT_STRING_EQUAL(said("nope", 2, 0, DAT_FALSE, NOT_FOUND(NAME_NOT_REGISTERED)), "");
}

static void quiet(void)
{
	fake_in_child(ENTRY("a"), child_quiet);
}

static const struct unit_test tests[] = {
	{ "for an unknown name the log has the file and the names that would open", unknown },
	{ "for a name of another version or thread safety the log has the existing ones",
	  other_version },
	{ "names registered by the program are listed", registered },
	{ "a name whose library cannot be loaded does not count as unknown", library },
	{ "without a dat.conf the log says so", no_file },
	{ "the log counts the names that do not fit into a line", many },
	{ "DAT_DBG_TYPE=0 logs nothing", quiet },
};

UNIT_MAIN("registry_missing", tests)
