/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* The frame around one CUnit suite. */
#include <ftw.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <CUnit/Basic.h>
#include "test/unit/unit.h"
#include "util/clock.h"

static char tmpdir[256];
static pid_t tmpdir_owner;

static int remove_entry(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	return remove(path);
}

static void tmpdir_remove(void)
{
	if (tmpdir_owner == getpid())
		nftw(tmpdir, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
}

const char *unit_tmpdir(void)
{
	const char *base = getenv("TMPDIR");

	if (tmpdir_owner == getpid())
		return tmpdir;
	snprintf(tmpdir, sizeof(tmpdir), "%s/unit-XXXXXX", base ? base : "/tmp");
	if (!mkdtemp(tmpdir)) {
		perror("mkdtemp");
		exit(1);
	}
	if (!tmpdir_owner)
		atexit(tmpdir_remove);
	tmpdir_owner = getpid();
	return tmpdir;
}

bool unit_wait_for(bool (*done)(void *arg), void *arg, unsigned milliseconds)
{
	uint64_t deadline = clock_now() + milliseconds * NSEC_PER_MSEC;

	while (!done(arg)) {
		if (clock_now() >= deadline)
			return done(arg);
		sched_yield();
	}
	return true;
}

int unit_main(const char *suite, const struct unit_test *tests, size_t count, int argc, char **argv)
{
	const char *wanted = argc > 1 ? argv[1] : "";
	unsigned run, failed;
	CU_pSuite cu;
	size_t i;

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (CU_initialize_registry() != CUE_SUCCESS)
		return 1;
	cu = CU_add_suite(suite, NULL, NULL);
	for (i = 0; cu && i < count; i++) {
		if (strstr(tests[i].name, wanted) && !CU_add_test(cu, tests[i].name, tests[i].run)) {
			fprintf(stderr, "%s: cannot add '%s': %s\n", suite, tests[i].name,
				CU_get_error_msg());
			return 1;
		}
	}
	CU_basic_set_mode(getenv("V") ? CU_BRM_VERBOSE : CU_BRM_NORMAL);
	CU_basic_run_tests();
	run = CU_get_number_of_tests_run();
	failed = CU_get_number_of_tests_failed();
	CU_cleanup_registry();
	printf("%s: %u tests, %u failed\n", suite, run, failed);
	return run && !failed ? 0 : 1;
}
