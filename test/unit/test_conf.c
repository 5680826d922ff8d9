/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* dat.conf: the grammar, the checks of the fields, and the diagnostics. */
#include "dat/common/reg.h"
#include "test/unit/fake.h"

struct fake_control fake;

#define KEPT_MAX 8

static struct {
	unsigned count;
	struct {
		DAT_PROVIDER_INFO info;
		char lib_path[64], ia_params[5000];
	} records[KEPT_MAX];
} kept;

static void keep(void *arg, const struct conf_record *record)
{
	CU_ASSERT_PTR_EQUAL(arg, &kept);
	if (kept.count == KEPT_MAX)
		abort();
	kept.records[kept.count].info = record->info;
	snprintf(kept.records[kept.count].lib_path, 64, "%s", record->lib_path);
	snprintf(kept.records[kept.count].ia_params, 5000, "%s", record->ia_params);
	kept.count++;
}

/* Parses text of this length; returns the diagnostics. */
static const char *parse_bytes(const char *bytes, size_t len)
{
	struct fake_capture capture = fake_capture(STDERR_FILENO);
	const struct conf_sink sink = { .keep = keep, .arg = &kept };
	char *text = malloc(len + 1);

	memcpy(text, bytes, len);
	text[len] = 'X'; /* the parser must not need a NUL at the end */
	kept.count = 0;
	conf_parse(text, len, "dat.conf", &sink);
	free(text);
	return fake_captured(capture);
}

static const char *parse(const char *text)
{
	return parse_bytes(text, strlen(text));
}

static void expect_kept(const char *text, unsigned count)
{
	const char *said = parse(text);

	CU_ASSERT_EQUAL(kept.count, count);
	CU_ASSERT_STRING_EQUAL(said, "");
}

/* The text's only record is dropped, with one diagnostic that contains `what`. */
static void expect_dropped(const char *text, const char *what)
{
	const char *said = parse(text), *end = strchr(said, '\n');

	CU_ASSERT_EQUAL(kept.count, 0);
	if (!strstr(said, what) || !end || end[1])
		fprintf(stderr, "'%s' gave '%s', not '%s'\n", text, said, what);
	CU_ASSERT_PTR_NOT_NULL(strstr(said, what));
	CU_ASSERT_TRUE(end && !end[1]);
}

#define GOOD " u2.0 nonthreadsafe default lib.so dapl.2.0 p0 x"

static void good_record(void)
{
	expect_kept("\tn\tu2.0\tnonthreadsafe\tdefault\tlib.so\tdapl.2.0\t\"eth0 7\"\t\"\"\t\n", 1);
	CU_ASSERT_STRING_EQUAL(kept.records[0].info.ia_name, "n");
	CU_ASSERT_EQUAL(kept.records[0].info.dapl_version_major, 2);
	CU_ASSERT_EQUAL(kept.records[0].info.dapl_version_minor, 0);
	CU_ASSERT_EQUAL(kept.records[0].info.is_thread_safe, DAT_FALSE);
	CU_ASSERT_STRING_EQUAL(kept.records[0].lib_path, "lib.so");
	CU_ASSERT_STRING_EQUAL(kept.records[0].ia_params, "eth0 7");
	expect_kept("n u2.0 threadsafe default lib.so dapl.2.0 \"\" \"\"", 1);
	CU_ASSERT_EQUAL(kept.records[0].info.is_thread_safe, DAT_TRUE);
	CU_ASSERT_STRING_EQUAL(kept.records[0].ia_params, "");
}

static void field_count(void)
{
	expect_kept("n u2.0 nonthreadsafe default lib.so dapl.2.0 p0\n", 1);
	CU_ASSERT_STRING_EQUAL(kept.records[0].ia_params, "p0");
	expect_dropped("n u2.0 nonthreadsafe default lib.so dapl.2.0\n",
		       "dat.conf:1: field 7: missing");
	expect_dropped("n\n", "dat.conf:1: field 2: missing");
	expect_dropped("n" GOOD " ninth\n", "dat.conf:1: field 9: more than eight");
	expect_dropped("n" GOOD " \"\"\n", "dat.conf:1: field 9: more than eight");
	expect_dropped("n" GOOD " 9 10 11 12\n", "dat.conf:1: field 9: more than eight");
}

static void dropped_silently(void)
{
	expect_kept("n u2.0 nonthreadsafe nondefault lib.so dapl.2.0 p0 x\n", 0);
	expect_kept("n k2.0 nonthreadsafe default lib.so dapl.2.0 p0 x\n", 0);
	expect_dropped("n k2.0 nonthreadsafe nondefault lib.so dapl.2 p0 x\n", "field 6");
}

static void api_version(void)
{
	static const char *const bad[] = {
		"u2",
		"u2.",
		"u.",
		"u.0",
		"2.0",
		"x2.0",
		"u2.0.0",
		"u2.0x",
		"U2.0",
		"u-2.0",
		"u2,0",
		"u99999999999.0",
		"u4294967296.0",
		"u0.00000000001",
		"\"\"",
	};
	char line[200];
	size_t i;

	expect_kept("n u1.2 nonthreadsafe default lib.so dapl.2.0 p0 x\n", 1);
	CU_ASSERT_EQUAL(kept.records[0].info.dapl_version_major, 1);
	CU_ASSERT_EQUAL(kept.records[0].info.dapl_version_minor, 2);
	expect_kept("n u4294967295.0000000007 nonthreadsafe default lib.so dapl.2.0 p0 x\n", 1);
	CU_ASSERT_EQUAL(kept.records[0].info.dapl_version_major, UINT32_MAX);
	CU_ASSERT_EQUAL(kept.records[0].info.dapl_version_minor, 7);
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		snprintf(line, sizeof(line), "n %s threadsafe default lib dapl.2.0 p0\n", bad[i]);
		expect_dropped(line, "dat.conf:1: field 2: ");
	}
}

static void provider_version(void)
{
	static const char *const bad[] = {
		"dapl2.0", "dapl.2",	"dapl.2.",
		"dapl..0", ".2.0",	"2.0",
		"a.b.2.0", "dapl.2.0x", "dapl.99999999999.0",
		"\"\"",
	};
	char line[200];
	size_t i;

	expect_kept("n u2.0 nonthreadsafe default lib.so any-id.12.34 p0 x\n", 1);
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		snprintf(line, sizeof(line), "n u2.0 nonthreadsafe default lib.so %s p0\n", bad[i]);
		expect_dropped(line, "dat.conf:1: field 6: ");
	}
}

static void keywords(void)
{
	expect_dropped("n u2.0 threadsafeXYZ default lib.so dapl.2.0 p0 x\n", "field 3: ");
	expect_dropped("n u2.0 Threadsafe default lib.so dapl.2.0 p0 x\n", "field 3: ");
	expect_dropped("n u2.0 thread default lib.so dapl.2.0 p0 x\n", "field 3: ");
	expect_dropped("n u2.0 threadsafe defaultX lib.so dapl.2.0 p0 x\n", "field 4: ");
	expect_dropped("n u2.0 threadsafe non lib.so dapl.2.0 p0 x\n", "field 4: ");
	expect_dropped("n u2.0 threadsafe \"\" lib.so dapl.2.0 p0 x\n", "field 4: ");
	expect_dropped("n u2.0 threadsafe default \"\" dapl.2.0 p0 x\n", "field 5: ");
}

static void quoted_fields(void)
{
	expect_kept("\"n n\" u2.0 nonthreadsafe default \"lib x.so\" dapl.2.0 p0 x\n", 1);
	CU_ASSERT_STRING_EQUAL(kept.records[0].info.ia_name, "n n");
	CU_ASSERT_STRING_EQUAL(kept.records[0].lib_path, "lib x.so");
	expect_kept("n u2.0 nonthreadsafe default lib.so dapl.2.0 \"p \\\"q\\\" \\\\ 0\" x\n", 1);
	CU_ASSERT_STRING_EQUAL(kept.records[0].ia_params, "p \"q\" \\ 0");
	expect_kept("n u2.0 nonthreadsafe default lib.so dapl.2.0 \"\\a#\\ \" x\n", 1);
	CU_ASSERT_STRING_EQUAL(kept.records[0].ia_params, "a# ");
	expect_kept("\"n\"u2.0 nonthreadsafe \"default\"\"lib.so\"dapl.2.0 \"p\"\"x\"\n", 1);
	CU_ASSERT_STRING_EQUAL(kept.records[0].ia_params, "p");
}

static void bad_quotes(void)
{
	expect_dropped("n u2.0 nonthreadsafe default lib.so dapl.2.0 p0 \"", "field 8: quote is");
	expect_dropped("n u2.0 nonthreadsafe default lib.so dapl.2.0 p0 \"\n", "field 8: quote is");
	expect_dropped("\"", "dat.conf:1: field 1: quote is not closed");
	expect_dropped("n" GOOD "\"\n", "dat.conf:1: field 8: quote inside");
	expect_dropped("a\"b\"" GOOD "\n", "dat.conf:1: field 1: quote inside");
	expect_dropped("n u2.0 nonthreadsafe default lib.so dapl.2.0 \"p0\n", "field 7: quote");
	expect_dropped("n u2.0 nonthreadsafe default lib.so dapl.2.0 p0 \"x\\\"\n", "field 8");
	expect_dropped("n u2.0 nonthreadsafe default lib.so dapl.2.0 p0 \"x\\", "field 8");
}

static void quote_and_line_end(void)
{
	const char *said = parse("a u2.0 nonthreadsafe default lib.so dapl.2.0 \"p\nb" GOOD "\n");

	CU_ASSERT_EQUAL(kept.count, 1);
	CU_ASSERT_STRING_EQUAL(kept.records[0].info.ia_name, "b");
	CU_ASSERT_PTR_NOT_NULL(strstr(said, "dat.conf:1: field 7"));
}

static void comments(void)
{
	expect_kept("# all of it\n\n \t \n#\nn" GOOD "#y # rest \"\n", 1);
	expect_kept("o#p" GOOD " #\n", 1);
	CU_ASSERT_STRING_EQUAL(kept.records[0].info.ia_name, "o#p");
	expect_kept("n u2.0 nonthreadsafe default lib.so dapl.2.0 \"a # b\" \"\"#x\n", 1);
	CU_ASSERT_STRING_EQUAL(kept.records[0].ia_params, "a # b");
	CU_ASSERT_STRING_EQUAL(parse_bytes("# \0\nn" GOOD, 4 + strlen("n" GOOD)), "");
	CU_ASSERT_EQUAL(kept.count, 1);
}

static void line_ends(void)
{
	expect_kept("a" GOOD "\r\nb" GOOD "\r\n\r\n#c\r\nd" GOOD "\r", 3);
	CU_ASSERT_STRING_EQUAL(kept.records[2].info.ia_name, "d");
	expect_kept("n u2.0 nonthreadsafe default lib.so dapl.2.0 p0\r\n", 1);
	CU_ASSERT_STRING_EQUAL(kept.records[0].ia_params, "p0");
	expect_kept("n u2.0 nonthreadsafe default lib.so dapl.2.0 p0\r\r\n", 1);
	CU_ASSERT_STRING_EQUAL(kept.records[0].ia_params, "p0\r");
	expect_kept("a" GOOD "\nb" GOOD, 2);
	expect_kept("", 0);
	expect_kept("\n", 0);
}

static void no_continuation(void)
{
	const char *said = parse("a" GOOD " \\\nb" GOOD "\nc u2.0 \\\nnonthreadsafe\n");

	CU_ASSERT_EQUAL(kept.count, 1);
	CU_ASSERT_STRING_EQUAL(kept.records[0].info.ia_name, "b");
	CU_ASSERT_PTR_NOT_NULL(strstr(said, "dat.conf:1: field 9"));
	CU_ASSERT_PTR_NOT_NULL(strstr(said, "dat.conf:3: field 4: missing"));
	CU_ASSERT_PTR_NOT_NULL(strstr(said, "dat.conf:4: field 2: missing"));
}

static char *long_field(const char *before, size_t len, const char *after)
{
	static char line[6000];

	snprintf(line, sizeof(line), "%s%*s%s", before, (int)len, "", after);
	memset(line + strlen(before), 'y', len);
	return line;
}

static void lengths(void)
{
	const char *rest = GOOD "\n", *head = "n u2.0 nonthreadsafe default lib.so dapl.2.0 \"";

	expect_kept(long_field("", 255, rest), 1);
	CU_ASSERT_EQUAL(strlen(kept.records[0].info.ia_name), 255);
	expect_dropped(long_field("", 256, rest), "dat.conf:1: field 1: IA name longer");
	expect_dropped(long_field("\"\"", 0, rest), "dat.conf:1: field 1: empty");
	expect_kept(long_field(head, 4096, "\" x\n"), 1);
	CU_ASSERT_EQUAL(strlen(kept.records[0].ia_params), 4096);
	expect_dropped(long_field(head, 4097, "\" x\n"), "dat.conf:1: field 7: longer than 4096");
	expect_kept(long_field("n u2.0 nonthreadsafe default lib.so dapl.2.0 p ", 4096, "\n"), 1);
	expect_dropped(long_field("n u2.0 nonthreadsafe default lib.so dapl.2.0 p ", 4097, "\n"),
		       "dat.conf:1: field 8: longer than 4096");
}

static void nul_bytes(void)
{
	static const char bare[] = "a\0b" GOOD, quoted[] = "\"a\0b\"" GOOD;
	static const char escaped[] = "\"a\\\0b\"" GOOD;

	CU_ASSERT_PTR_NOT_NULL(strstr(parse_bytes(bare, sizeof(bare) - 1), "field 1: NUL"));
	CU_ASSERT_EQUAL(kept.count, 0);
	CU_ASSERT_PTR_NOT_NULL(strstr(parse_bytes(quoted, sizeof(quoted) - 1), "field 1: NUL"));
	CU_ASSERT_EQUAL(kept.count, 0);
	CU_ASSERT_PTR_NOT_NULL(strstr(parse_bytes(escaped, sizeof(escaped) - 1), "field 1: NUL"));
	CU_ASSERT_EQUAL(kept.count, 0);
}

static void one_diagnostic_each(void)
{
	const char *said = parse("a" GOOD "\n\nbad\n# x\nworse u2 x x \"\nb" GOOD "\n");
	unsigned lines = 0;

	CU_ASSERT_EQUAL(kept.count, 2);
	CU_ASSERT_PTR_NOT_NULL(strstr(said, "dat.conf:3: field 2: "));
	CU_ASSERT_PTR_NOT_NULL(strstr(said, "dat.conf:5: field 5: "));
	for (; *said; said++)
		lines += *said == '\n';
	CU_ASSERT_EQUAL(lines, 2);
}

static const struct unit_test tests[] = {
	{ "a record of eight valid fields is kept; tabs separate fields, too", good_record },
	{ "a record without field 8 is kept; with fewer or nine fields it is dropped",
	  field_count },
	{ "a record with nondefault or k2.0 is checked, and dropped without a message",
	  dropped_silently },
	{ "a record of u1.2 is kept; malformed versions are dropped", api_version },
	{ "a provider version with one dot is dropped", provider_version },
	{ "keywords match exactly", keywords },
	{ "quoted fields may have blanks and escapes", quoted_fields },
	{ "a record with an open quote is dropped", bad_quotes },
	{ "a line end in quotes drops that record only", quote_and_line_end },
	{ "comments begin where a field could", comments },
	{ "lines may end in CRLF, and the last line without a line end", line_ends },
	{ "a backslash does not continue a line", no_continuation },
	{ "names of 256 bytes and fields over 4 KiB are dropped", lengths },
	{ "NUL byte: dropped", nul_bytes },
	{ "each dropped record has one diagnostic", one_diagnostic_each },
};

UNIT_MAIN("conf", tests)
