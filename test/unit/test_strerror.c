/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* dat_strerror knows every code that dat_error.h defines. */
#include <netinet/in.h>
#include "test/unit/fake.h"
#include <dat2/dat_ib_extensions.h>

struct fake_control fake;

#define BAD_VALUE FAKE_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG1)

/* Skips comments and directives. */
static const char *skip_to(const char *at, const char *stops)
{
	for (;;) {
		at += strcspn(at, stops);
		if (*at == '#')
			at += strcspn(at, "\n");
		else if (*at == '/')
			at = strstr(at, "*/") + 2;
		else
			return at;
	}
}

/* Returns the next enumerator's name after *at; NULL at the closing brace. */
static const char *next_name(const char **at)
{
	static char name[64];
	size_t len;

	*at = skip_to(*at, "D}#/");
	if (**at != 'D')
		return NULL;
	len = strspn(*at, "ABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789");
	snprintf(name, sizeof(name), "%.*s", (int)len, *at);
	*at += len;
	return name;
}

/* Returns the text between the braces of an enum of dat_error.h. */
static const char *enum_body(const char *tag)
{
	static char text[32768];
	FILE *file = fopen("dat/include/dat2/dat_error.h", "r");
	const char *body;

	CU_ASSERT_PTR_NOT_NULL_FATAL(file);
	text[fread(text, 1, sizeof(text) - 1, file)] = '\0';
	fclose(file);
	body = strstr(text, tag);
	CU_ASSERT_PTR_NOT_NULL_FATAL(body);
	return strchr(body, '{');
}

static void every_type(void)
{
	const char *at = enum_body("enum dat_return_type {"), *name, *major, *minor;
	unsigned count = 0;
	DAT_UINT32 value;

	while ((name = next_name(&at))) {
		CU_ASSERT_EQUAL_FATAL(sscanf(at, " = %x", &value), 1);
		major = minor = NULL;
		CU_ASSERT_EQUAL(dat_strerror(value | DAT_CLASS_ERROR, &major, &minor), DAT_SUCCESS);
		CU_ASSERT_STRING_EQUAL(major, name);
		CU_ASSERT_STRING_EQUAL(minor, "");
		count++;
	}
	CU_ASSERT_EQUAL(count, 26);
}

static void every_subtype(void)
{
	const char *at = enum_body("enum dat_return_subtype {"), *name, *major, *minor;
	DAT_UINT32 value = 0;

	CU_ASSERT_STRING_EQUAL(next_name(&at), "DAT_NO_SUBTYPE");
	while ((name = next_name(&at))) {
		major = minor = NULL;
		value++;
		CU_ASSERT_EQUAL(dat_strerror(DAT_ABORT | value, &major, &minor), DAT_SUCCESS);
		CU_ASSERT_STRING_EQUAL(major, "DAT_ABORT");
		CU_ASSERT_STRING_EQUAL(minor, name);
	}
	CU_ASSERT_EQUAL(value, DAT_THREAD_SAFETY_NOT_FOUND);
	CU_ASSERT_EQUAL(value, 103);
}

static void class_is_ignored(void)
{
	static const DAT_UINT32 classes[] = { 0, DAT_CLASS_ERROR, DAT_CLASS_WARNING };
	const char *major, *minor;
	DAT_RETURN value;
	size_t i;

	for (i = 0; i < 3; i++) {
		value = classes[i] | DAT_INVALID_HANDLE | DAT_INVALID_HANDLE_EP;
		CU_ASSERT_EQUAL(dat_strerror(value, &major, &minor), DAT_SUCCESS);
		CU_ASSERT_STRING_EQUAL(major, "DAT_INVALID_HANDLE");
		CU_ASSERT_STRING_EQUAL(minor, "DAT_INVALID_HANDLE_EP");
	}
	CU_ASSERT_EQUAL(dat_strerror(DAT_SUCCESS, &major, &minor), DAT_SUCCESS);
	CU_ASSERT_STRING_EQUAL(major, "DAT_SUCCESS");
	CU_ASSERT_STRING_EQUAL(minor, "");
}

static void unknown_values(void)
{
	const char *major, *minor;

	CU_ASSERT_EQUAL(dat_strerror(0x00180000, &major, &minor), BAD_VALUE);
	CU_ASSERT_STRING_EQUAL(major, "unknown error");
	CU_ASSERT_STRING_EQUAL(minor, "");
	CU_ASSERT_EQUAL(dat_strerror(0x0fff0000, &major, NULL), BAD_VALUE);
	CU_ASSERT_EQUAL(dat_strerror(DAT_ABORT | 104, &major, &minor), BAD_VALUE);
	CU_ASSERT_STRING_EQUAL(major, "DAT_ABORT");
	CU_ASSERT_STRING_EQUAL(minor, "unknown minor error");
	CU_ASSERT_EQUAL(dat_strerror(UINT32_MAX, &major, &minor), BAD_VALUE);
	CU_ASSERT_STRING_EQUAL(major, "DAT_NOT_IMPLEMENTED");
	CU_ASSERT_STRING_EQUAL(minor, "unknown minor error");
}

static void null_arguments(void)
{
	const char *major, *minor = "as it was";

	CU_ASSERT_EQUAL(dat_strerror(DAT_ABORT, NULL, &minor),
			FAKE_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2));
	CU_ASSERT_STRING_EQUAL(minor, "as it was");
	CU_ASSERT_EQUAL(dat_strerror(DAT_ABORT, &major, NULL), DAT_SUCCESS);
	CU_ASSERT_STRING_EQUAL(major, "DAT_ABORT");
}

static void extension_types(void)
{
	const char *major, *minor;

	CU_ASSERT_EQUAL(dat_strerror(0x10010000, &major, &minor), DAT_SUCCESS);
	CU_ASSERT_STRING_EQUAL(major, "DAT_EV_BUSY");
	CU_ASSERT_EQUAL(dat_strerror(0x12340000, &major, &minor), DAT_SUCCESS);
	CU_ASSERT_STRING_EQUAL(major, "DAT_EXTENSION_BASE");
	CU_ASSERT_EQUAL(dat_strerror(DAT_IB_COLLECTIVE_ERR, &major, &minor), DAT_SUCCESS);
	CU_ASSERT_STRING_EQUAL(minor, "DAT_IB_COLLECTIVE_ERR");
}

static const struct unit_test tests[] = {
	{ "every type of dat_error.h has a text", every_type },
	{ "every subtype of dat_error.h has a text", every_subtype },
	{ "class bits are ignored, DAT_SUCCESS is valid", class_is_ignored },
	{ "unknown values: INVALID_ARG1, and strings to print", unknown_values },
	{ "major NULL: INVALID_ARG2; minor may be NULL", null_arguments },
	{ "extension types have a text", extension_types },
};

UNIT_MAIN("strerror", tests)
