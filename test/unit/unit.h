/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* One CUnit suite as a program: runs a table of named tests and returns an exit status. */
#ifndef UNIT_H
#define UNIT_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <CUnit/CUnit.h>

struct unit_test {
	const char *name; /* describes the behaviour; may start with a rule ("C12: ") */
	void (*run)(void);
};

/*
 * Runs every test, or those whose names contain argv[1]. Leaves out tests whose names contain one
 * of the words of UNIT_SKIP, which are separated by '|'. Prints failures and one summary line.
 * Returns the exit status: 0, or 1 if a test failed or none ran.
 */
int unit_main(const char *suite, const struct unit_test *tests, size_t count, int argc,
	      char **argv);
#define UNIT_MAIN(suite, tests)                                                                 \
	int main(int argc, char **argv)                                                         \
	{                                                                                       \
		return unit_main(suite, tests, sizeof(tests) / sizeof((tests)[0]), argc, argv); \
	}

/* The same, of a suite that is skipped where `skips` is true: it prints the reason and exits with 77. */
#define UNIT_MAIN_UNLESS(skips, reason, suite, tests)                                           \
	int main(int argc, char **argv)                                                         \
	{                                                                                       \
		if (skips) {                                                                    \
			puts(suite ": skipped: " reason);                                       \
			return 77;                                                              \
		}                                                                               \
		return unit_main(suite, tests, sizeof(tests) / sizeof((tests)[0]), argc, argv); \
	}

/* Returns the path of an empty directory that belongs to this process; it is removed at exit. */
const char *unit_tmpdir(void);

/*
 * Number of entries of a folder, with those for itself and its parent; in /proc/self/fd one is the
 * descriptor by which it is read.
 */
unsigned unit_entries(const char *folder);

/*
 * Deadline in milliseconds for events that must happen: long enough for a slow and busy machine. A
 * test that passes does not wait for it.
 */
#define UNIT_PATIENCE 30000u

/*
 * Calls `done` until it returns true or the time is over, and yields between calls. Returns the
 * last result.
 */
bool unit_wait_for(bool (*done)(void *arg), void *arg, unsigned milliseconds);

/*
 * Joins the thread; returns false if it has not ended within UNIT_PATIENCE. For threads that
 * something wakes.
 */
bool unit_join(pthread_t thread);

/* True if the thread of this process sleeps or has ended. */
bool unit_is_asleep(pid_t thread);

/*
 * For upper bounds on time, which a busy machine may exceed by chance: calls `run` up to five times
 * and returns true if one call reports less than `limit`. `run` returns the nanoseconds that it
 * took.
 */
bool unit_is_soon(uint64_t (*run)(void *arg), void *arg, uint64_t limit);

/*
 * Cleanup handler for a thread that is to be cancelled. The address sanitizer does not see
 * cancellation unwind the stack, and would report writes at the thread's end as writes into dead
 * frames.
 */
void unit_forget_stack(void *unused);

/*
 * Each assertion that compares the result of a call records its file, line and call once in a
 * process. test/table counts these records for each function.
 */
struct unit_site {
	const char *call, *file;
	unsigned line;
	atomic_bool noted;
};

void unit_note(struct unit_site *site);

#define UNIT_EQUAL(name, actual_text, equal, expected_text, fatal)                                \
	do {                                                                                      \
		static struct unit_site unit_site = { .call = actual_text,                        \
						      .file = __FILE__,                           \
						      .line = __LINE__ };                         \
		unit_note(&unit_site);                                                            \
		CU_assertImplementation(equal, __LINE__,                                          \
					name "(" actual_text "," expected_text ")", __FILE__, "", \
					fatal);                                                   \
	} while (0)

#undef CU_ASSERT_EQUAL
#undef CU_ASSERT_EQUAL_FATAL
#define CU_ASSERT_EQUAL(actual, expected) \
	UNIT_EQUAL("CU_ASSERT_EQUAL", #actual, (actual) == (expected), #expected, CU_FALSE)
#define CU_ASSERT_EQUAL_FATAL(actual, expected) \
	UNIT_EQUAL("CU_ASSERT_EQUAL_FATAL", #actual, (actual) == (expected), #expected, CU_TRUE)

#endif
