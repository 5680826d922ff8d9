/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * Which dat.conf is read, when, and which diagnostics it causes; the variables that select
 * diagnostics.
 */
#include <sys/stat.h>
#include "dat/common/reg.h"
#include "test/unit/fake.h"

struct fake_control fake;

static char names[200];

static void keep(void *arg, const struct conf_record *record)
{
	(void)arg;
	strcat(names, record->info.ia_name);
	strcat(names, "|");
	strcat(names, record->lib_path);
	strcat(names, "|");
	strcat(names, record->ia_params);
	strcat(names, "\n");
}

/* A path in the directory of this process. */
static const char *path_of(const char *name)
{
	static char paths[4][300];
	static unsigned next;
	char *path = paths[next++ % 4];

	snprintf(path, sizeof(paths[0]), "%s/%s", unit_tmpdir(), name);
	return path;
}

static const char *file_of(const char *name, const char *ia)
{
	const char *path = path_of(name);
	FILE *file = fopen(path, "w");

	CU_ASSERT_PTR_NOT_NULL_FATAL(file);
	fprintf(file, "%s u2.0 nonthreadsafe default lib dapl.2.0 x \"\"\n", ia);
	fclose(file);
	return path;
}

/* Returns the text that conf_load finds, and its diagnostics in *said. */
static const char *load(const char *only, const char *first, const char *second, const char **said)
{
	const char *const places[] = { first, second, NULL };
	const struct conf_sink sink = { .keep = keep };
	struct fake_capture capture = fake_capture(STDERR_FILENO);

	names[0] = '\0';
	conf_load(only, places, &sink);
	*said = fake_captured(capture);
	return names;
}

static void override_wins(void)
{
	const char *one = file_of("one", "a"), *two = file_of("two", "b"), *said;

	CU_ASSERT_STRING_EQUAL(load(one, two, two, &said), "a|lib|x\n");
	CU_ASSERT_STRING_EQUAL(said, "");
}

static void override_has_no_fallback(void)
{
	const char *two = file_of("two", "b"), *said;

	CU_ASSERT_STRING_EQUAL(load(path_of("absent"), two, two, &said), "");
	CU_ASSERT_PTR_NOT_NULL(strstr(said, "absent\": No such file"));
	CU_ASSERT_STRING_EQUAL(load("", two, two, &said), "");
	CU_ASSERT_PTR_NOT_NULL(strstr(said, "DAT_OVERRIDE=\"\": No such file"));
	CU_ASSERT_STRING_EQUAL(load(unit_tmpdir(), two, two, &said), "");
	CU_ASSERT_PTR_NOT_NULL(strstr(said, "Is a directory"));
}

static void places_in_order(void)
{
	const char *one = file_of("one", "a"), *two = file_of("two", "b"), *said;

	CU_ASSERT_STRING_EQUAL(load(NULL, one, two, &said), "a|lib|x\n");
	CU_ASSERT_STRING_EQUAL(said, "");
	CU_ASSERT_STRING_EQUAL(load(NULL, path_of("absent"), two, &said), "b|lib|x\n");
	CU_ASSERT_STRING_EQUAL(said, "");
	CU_ASSERT_STRING_EQUAL(load(NULL, path_of("one/below"), two, &said), "b|lib|x\n");
	CU_ASSERT_STRING_EQUAL(said, "");
}

static void unreadable_is_said(void)
{
	const char *loop = path_of("loop"), *two = file_of("two", "b"), *said;

	CU_ASSERT_EQUAL(symlink(loop, loop), 0);
	CU_ASSERT_STRING_EQUAL(load(NULL, loop, two, &said), "b|lib|x\n");
	CU_ASSERT_PTR_NOT_NULL(strstr(said, "loop: "));
	CU_ASSERT_STRING_EQUAL(load(NULL, unit_tmpdir(), two, &said), "b|lib|x\n");
	CU_ASSERT_PTR_NOT_NULL(strstr(said, "Is a directory"));
	CU_ASSERT_STRING_EQUAL(load(NULL, loop, path_of("absent"), &said), "");
	CU_ASSERT_STRING_EQUAL(load(NULL, "/dev/zero", two, &said), "b|lib|x\n");
	CU_ASSERT_PTR_NOT_NULL(strstr(said, "/dev/zero: File too large"));
}

/* Opening a FIFO blocks until there is a writer. */
static void fifo_is_refused(void)
{
	const char *fifo = path_of("fifo"), *two = file_of("two", "b"), *said;

	CU_ASSERT_EQUAL(mkfifo(fifo, 0600), 0);
	CU_ASSERT_STRING_EQUAL(load(fifo, two, two, &said), "");
	CU_ASSERT_PTR_NOT_NULL(strstr(said, "fifo\": Operation not supported"));
	CU_ASSERT_STRING_EQUAL(load(NULL, fifo, two, &said), "b|lib|x\n");
	CU_ASSERT_PTR_NOT_NULL(strstr(said, "fifo: Operation not supported"));
}

static void byte_order_mark(void)
{
	const char *one = file_of("one", "\xef\xbb\xbf"
					 "a"),
		   *said;

	CU_ASSERT_STRING_EQUAL(load(one, one, one, &said), "a|lib|x\n");
	CU_ASSERT_STRING_EQUAL(said, "");
}

static void built_in(void)
{
	const char *said;

	load(NULL, path_of("absent"), path_of("absent too"), &said);
	CU_ASSERT_STRING_EQUAL(said, "");
	CU_ASSERT_STRING_EQUAL(names, "ofa-v2-soft|libdaplsoft.so.2|soft0 1\n"
				      "ofa-v2-ib0|libdaplofa.so.2|ib0 0\n");
}

static void large_file(void)
{
	const char *path = path_of("large"), *said;
	FILE *file = fopen(path, "w");
	unsigned i;

	CU_ASSERT_PTR_NOT_NULL_FATAL(file);
	for (i = 0; i < 3000; i++)
		fprintf(file, "# %u: nothing of interest\n", i);
	fprintf(file, "last u2.0 nonthreadsafe default lib dapl.2.0 \"\"");
	fclose(file);
	CU_ASSERT_STRING_EQUAL(load(path, path, path, &said), "last|lib|\n");
	CU_ASSERT_STRING_EQUAL(said, "");
}

static DAT_COUNT provider_count(void)
{
	DAT_COUNT count = -1;

	CU_ASSERT_EQUAL(dat_registry_list_providers(0, &count, NULL),
			FAKE_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG1));
	return count;
}

#define TWO_RECORDS                                             \
	"a u2.0 nonthreadsafe default lib dapl.2.0 \"\" \"\"\n" \
	"broken\n"                                              \
	"b u2.0 nonthreadsafe default lib dapl.2.0 \"\" \"\"\n"

static void child_read_once(void)
{
	struct fake_capture capture = fake_capture(STDERR_FILENO);

	CU_ASSERT_EQUAL(provider_count(), 2);
	CU_ASSERT_PTR_NOT_NULL(strstr(fake_captured(capture), "dat.conf:2: field 2: missing"));
	capture = fake_capture(STDERR_FILENO);
	fake_conf("");
	CU_ASSERT_EQUAL(provider_count(), 2);
	unsetenv("DAT_OVERRIDE");
	CU_ASSERT_EQUAL(provider_count(), 2);
	CU_ASSERT_STRING_EQUAL(fake_captured(capture), "");
}

static void read_once(void)
{
	fake_in_child(TWO_RECORDS, child_read_once);
}

static void child_empty_override(void)
{
	setenv("DAT_OVERRIDE", "", 1);
	CU_ASSERT_EQUAL(provider_count(), 0);
}

static void empty_override(void)
{
	struct fake_capture capture = fake_capture(STDERR_FILENO);

	fake_in_child("", child_empty_override);
	CU_ASSERT_PTR_NOT_NULL(strstr(fake_captured(capture), "libdat2: DAT_OVERRIDE=\"\""));
}

static void child_silent(void)
{
	const char *major;

	CU_ASSERT_EQUAL(dat_strerror(DAT_SUCCESS, &major, NULL), DAT_SUCCESS);
	CU_ASSERT_EQUAL(dat_ia_close(DAT_HANDLE_NULL, 0),
			FAKE_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_IA));
}

static void silent_until_used(void)
{
	struct fake_capture capture = fake_capture(STDERR_FILENO);

	fake_in_child(TWO_RECORDS, child_silent);
	CU_ASSERT_STRING_EQUAL(fake_captured(capture), "");
}

static void child_list(void)
{
	provider_count();
}

/* Returns what a use of the registry writes to the descriptor under these settings. */
static const char *written(int fd, const char *type, const char *dest)
{
	struct fake_capture capture = fake_capture(fd);

	type ? setenv("DAT_DBG_TYPE", type, 1) : unsetenv("DAT_DBG_TYPE");
	dest ? setenv("DAT_DBG_DEST", dest, 1) : unsetenv("DAT_DBG_DEST");
	fake_in_child(TWO_RECORDS, child_list);
	return fake_captured(capture);
}

static void debug_type(void)
{
	const char *said = written(STDERR_FILENO, "0x4", NULL);

	CU_ASSERT_PTR_NULL(strstr(said, "field"));
	CU_ASSERT_PTR_NOT_NULL(strstr(said, "libdat2: a 2.0 nonthreadsafe: lib \"\"\n"));
	CU_ASSERT_STRING_EQUAL(written(STDERR_FILENO, "0", NULL), "");
	CU_ASSERT_STRING_EQUAL(written(STDERR_FILENO, "2", NULL), "libdat2: registry of DAT 2.0\n");
	CU_ASSERT_PTR_NOT_NULL(strstr(written(STDERR_FILENO, "-1", NULL), "field 2"));
	CU_ASSERT_PTR_NOT_NULL(strstr(written(STDERR_FILENO, "0377", NULL), "field 2"));
	said = written(STDERR_FILENO, "1z", NULL);
	CU_ASSERT_PTR_NOT_NULL(strstr(said, "libdat2: DAT_DBG_TYPE=\"1z\" is not a number"));
	CU_ASSERT_PTR_NOT_NULL(strstr(said, "field 2"));
	said = written(STDERR_FILENO, "0x100000000", NULL);
	CU_ASSERT_PTR_NOT_NULL(strstr(said, "is not a number"));
}

static void debug_dest(void)
{
	CU_ASSERT_PTR_NOT_NULL(strstr(written(STDERR_FILENO, NULL, NULL), "field 2"));
	CU_ASSERT_STRING_EQUAL(written(STDOUT_FILENO, NULL, NULL), "");
	CU_ASSERT_PTR_NOT_NULL(strstr(written(STDOUT_FILENO, NULL, "0x1"), "field 2"));
	CU_ASSERT_STRING_EQUAL(written(STDERR_FILENO, NULL, "1"), "");
	CU_ASSERT_PTR_NOT_NULL(strstr(written(STDOUT_FILENO, NULL, "0x5"), "field 2"));
	CU_ASSERT_PTR_NOT_NULL(strstr(written(STDERR_FILENO, NULL, "0x5"), "field 2"));
	CU_ASSERT_PTR_NOT_NULL(strstr(written(STDERR_FILENO, NULL, ""), "DAT_DBG_DEST=\"\" is"));
}

static void debug_syslog(void)
{
	CU_ASSERT_STRING_EQUAL(written(STDERR_FILENO, NULL, "2"), "");
	CU_ASSERT_STRING_EQUAL(written(STDOUT_FILENO, NULL, "2"), "");
	CU_ASSERT_PTR_NOT_NULL(strstr(written(STDOUT_FILENO, NULL, "3"), "field 2"));
}

static void long_line(void)
{
	char path[2000];
	const char *said;

	memset(path, 'x', sizeof(path));
	path[sizeof(path) - 1] = '\0';
	load(path, NULL, NULL, &said);
	CU_ASSERT_EQUAL(strlen(said), 1023);
	CU_ASSERT_EQUAL(said[1022], '\n');
}

static const struct unit_test tests[] = {
	{ "DAT_OVERRIDE names the only file that is read", override_wins },
	{ "no other file is read if that of DAT_OVERRIDE is missing", override_has_no_fallback },
	{ "sysconfdir, then /etc", places_in_order },
	{ "a directory or unreadable file is reported", unreadable_is_said },
	{ "without a dat.conf the built-in entries are used", built_in },
	{ "a file may have any length up to the limit", large_file },
	{ "a FIFO is refused without waiting for a writer", fifo_is_refused },
	{ "a byte order mark is no part of a name", byte_order_mark },
	{ "dat.conf is read once in a process", read_once },
	{ "with an empty DAT_OVERRIDE there is no static registry", empty_override },
	{ "nothing is read or logged before the first use", silent_until_used },
	{ "DAT_DBG_TYPE", debug_type },
	{ "DAT_DBG_DEST", debug_dest },
	{ "DAT_DBG_DEST bit 0x2: syslog", debug_syslog },
	{ "an overlong diagnostic is cut, and still a line", long_line },
};

UNIT_MAIN("conf_file", tests)
