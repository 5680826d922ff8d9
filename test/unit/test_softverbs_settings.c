/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* The settings of the software device: environment, file, default. The file is read once in a process, so each
 * test that has a file runs in a child. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "softverbs/base/settings.h"
#include "test/unit/unit.h"

static const char *path;

static void file_write(const char *text)
{
	static char name[512];
	FILE *file;

	snprintf(name, sizeof(name), "%s/softverbs.conf", unit_tmpdir());
	file = fopen(name, "w");
	CU_ASSERT_PTR_NOT_NULL_FATAL(file);
	fputs(text, file);
	fclose(file);
	path = name;
	setenv("SOFTVERBS_CONF", name, 1);
}

/* Runs `look` in a child with that file; what the child logs comes back in `log`. */
static bool holds_with(const char *text, bool (*look)(void), char *log, size_t size)
{
	ssize_t got = 0, part;
	int out[2], status;
	pid_t child;

	file_write(text);
	CU_ASSERT_EQUAL_FATAL(pipe(out), 0);
	child = fork();
	if (!child) {
		dup2(out[1], 2);
		close(out[0]);
		close(out[1]);
		_exit(!look());
	}
	close(out[1]);
	while ((part = read(out[0], log + got, size - 1 - (size_t)got)) > 0)
		got += part;
	log[got] = '\0';
	close(out[0]);
	CU_ASSERT_EQUAL_FATAL(waitpid(child, &status, 0), child);
	return WIFEXITED(status) && !WEXITSTATUS(status);
}

static bool file_counts(void)
{
	struct sv_setting_shown shown;

	unsetenv("SOFTVERBS_EAGER");
	sv_setting_show(SV_SET_EAGER, &shown);
	return sv_setting(SV_SET_EAGER) == 100 && sv_setting(SV_SET_COPY) == SV_WISH_BOUNCE &&
	       !strcmp(sv_setting_text(SV_SET_DIR), "/some where") && shown.file &&
	       !strcmp(shown.file, path) && shown.line == 3 && !shown.variable &&
	       !strcmp(shown.value, "100");
}

static bool environment_wins(void)
{
	struct sv_setting_shown shown;

	setenv("SOFTVERBS_EAGER", "200", 1);
	sv_setting_show(SV_SET_EAGER, &shown);
	return sv_setting(SV_SET_EAGER) == 200 && shown.variable && !shown.file;
}

static bool defaults_count(void)
{
	struct sv_setting_shown shown;

	unsetenv("SOFTVERBS_EAGER");
	sv_setting_show(SV_SET_EAGER, &shown);
	return sv_setting(SV_SET_EAGER) == 4096 && !shown.file && !shown.variable &&
	       !sv_setting_text(SV_SET_DIR);
}

static void file_is_read(void)
{
	static const char text[] = "# a comment\n\n\tSOFTVERBS_EAGER =\t100 # bytes\r\n"
				   "SOFTVERBS_COPY=bounce\nSOFTVERBS_DIR = /some where";
	char log[1024];

	CU_ASSERT_TRUE(holds_with(text, file_counts, log, sizeof(log)));
	CU_ASSERT_STRING_EQUAL(log, "");
	CU_ASSERT_TRUE(holds_with(text, environment_wins, log, sizeof(log)));
	CU_ASSERT_STRING_EQUAL(log, "");
}

static void faults_are_named(void)
{
	char log[1024], *line;

	CU_ASSERT_TRUE(holds_with("SOFTVERBS_EAGR = 5\nno equals sign\n", defaults_count, log,
				  sizeof(log)));
	CU_ASSERT_PTR_NOT_NULL(strstr(log, "softverbs.conf:1: SOFTVERBS_EAGR: no such setting"));
	CU_ASSERT_PTR_NOT_NULL(strstr(log, "softverbs.conf:2: not NAME = value"));
	CU_ASSERT_TRUE(holds_with("SOFTVERBS_EAGER = 70000\n", defaults_count, log, sizeof(log)));
	line = strstr(log, "softverbs.conf:1: SOFTVERBS_EAGER = 70000: no such value");
	CU_ASSERT_PTR_NOT_NULL_FATAL(line);
	/* once, though it is read twice */
	CU_ASSERT_PTR_NULL(strstr(strchr(line, '\n'), "no such value"));
}

static void absent_file(void)
{
	char log[1024];

	CU_ASSERT_TRUE(holds_with("", defaults_count, log, sizeof(log)));
	CU_ASSERT_STRING_EQUAL(log, "");
	unlink(path);
	setenv("SOFTVERBS_CONF", "", 1);
	CU_ASSERT_TRUE(defaults_count());
}

static const struct unit_test tests[] = {
	{ "the file counts, and the environment before it", file_is_read },
	{ "faults of the file are named with their line", faults_are_named },
	{ "without a file the defaults count", absent_file },
};

UNIT_MAIN("softverbs settings", tests)
