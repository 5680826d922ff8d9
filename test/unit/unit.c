/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* The frame around one CUnit suite. */
#include <dirent.h>
#include <fcntl.h>
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

/*
 * Descriptor of the file that UNIT_NOTES names, -1 if it is unset. Opened at the first test and
 * inherited by children.
 */
static int notes = -1;

static void notes_open(void)
{
	const char *path = getenv("UNIT_NOTES");

	if (path)
		notes = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
	if (path && notes < 0)
		perror(path);
}

void unit_note(struct unit_site *site)
{
	if (notes < 0 || !(strstr(site->call, "dat_") || strstr(site->call, "DAT_")) ||
	    atomic_exchange_explicit(&site->noted, true, memory_order_relaxed))
		return;
	if (dprintf(notes, "%s:%u %s\n", site->file, site->line, site->call) < 0)
		perror("UNIT_NOTES");
}

bool unit_is_asleep(pid_t thread)
{
	char path[64], text[64] = "", *state;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", (int)thread);
	file = fopen(path, "r");
	if (!file)
		return true;
	state = fgets(text, sizeof(text), file) ? strchr(text, ')') : NULL;
	fclose(file);
	return state && state[2] == 'S';
}

#ifdef __SANITIZE_ADDRESS__
/* sanitizer/asan_interface.h */
void __asan_unpoison_memory_region(const volatile void *begin, size_t size);
#define FRAMES (64u << 10)

void unit_forget_stack(void *unused)
{
	(void)unused;
	__asan_unpoison_memory_region((char *)__builtin_frame_address(0) - FRAMES, FRAMES);
}

#define FORK_PATIENCE 100 /* in milliseconds; some tests fork beside threads that never sleep */

static bool others_sleep(void *unused)
{
	DIR *dir = opendir("/proc/self/task");
	bool sleep = dir;
	struct dirent *entry;
	pid_t thread;

	(void)unused;
	while (dir && sleep && (entry = readdir(dir))) {
		thread = atoi(entry->d_name);
		sleep = !thread || thread == gettid() || unit_is_asleep(thread);
	}
	if (dir)
		closedir(dir);
	return sleep;
}

/*
 * gcc's address sanitizer does not hold the locks of its allocator over a fork: a child that allocates would wait for one that
 * a thread of the parent held. A thread that sleeps holds none. This runs after the handlers of the libraries, which are
 * registered later.
 */
static void fork_awaits_sleep(void)
{
	unit_wait_for(others_sleep, NULL, FORK_PATIENCE);
}

static void forks_watch(void)
{
	pthread_atfork(fork_awaits_sleep, NULL, NULL);
}
#else
static void forks_watch(void)
{
}

void unit_forget_stack(void *unused)
{
	(void)unused;
}
#endif

unsigned unit_entries(const char *folder)
{
	DIR *dir = opendir(folder);
	unsigned count = 0;

	CU_ASSERT_PTR_NOT_NULL_FATAL(dir);
	while (readdir(dir))
		count++;
	closedir(dir);
	return count;
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

bool unit_join(pthread_t thread)
{
	struct timespec deadline;

	clock_gettime(CLOCK_REALTIME, &deadline);
	deadline.tv_sec += UNIT_PATIENCE / 1000;
	return !pthread_timedjoin_np(thread, NULL, &deadline);
}

bool unit_is_soon(uint64_t (*run)(void *arg), void *arg, uint64_t limit)
{
	unsigned failures = CU_get_number_of_failures();
	int tries = 5;

	while (run(arg) >= limit)
		if (!--tries || CU_get_number_of_failures() > failures)
			return false;
	return true;
}

/*
 * UNIT_SKIP names tests that this device cannot pass, separated by '|'; each skipped test is
 * printed.
 */
static bool is_skipped(const char *name)
{
	const char *list = getenv("UNIT_SKIP");
	char *copy = list ? strdup(list) : NULL, *rest = copy, *word;
	bool found = false;

	while (rest && !found && (word = strsep(&rest, "|")))
		found = *word && strstr(name, word);
	free(copy);
	if (found)
		printf("not on this device: %s\n", name);
	return found;
}

int unit_main(const char *suite, const struct unit_test *tests, size_t count, int argc, char **argv)
{
	const char *wanted = argc > 1 ? argv[1] : "";
	unsigned run, failed;
	CU_pSuite cu;
	size_t i;

	setvbuf(stdout, NULL, _IOLBF, 0);
	notes_open();
	forks_watch();
	if (CU_initialize_registry() != CUE_SUCCESS)
		return 1;
	cu = CU_add_suite(suite, NULL, NULL);
	for (i = 0; cu && i < count; i++) {
		if (strstr(tests[i].name, wanted) && !is_skipped(tests[i].name) &&
		    !CU_add_test(cu, tests[i].name, tests[i].run)) {
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
