/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* One CUnit suite as a program: a table of named tests in, an exit status out. */
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
	const char *name; /* begins with the rule it proves */
	void (*run)(void);
};

/*
 * Runs every test, or those whose name contains argv[1], but for those that contain a part of UNIT_SKIP (with bars in
 * between); prints failures and one closing line.
 * Returns the exit status: 0, or 1 when one failed or none ran.
 */
int unit_main(const char *suite, const struct unit_test *tests, size_t count, int argc,
	      char **argv);
#define UNIT_MAIN(suite, tests)                                                                 \
	int main(int argc, char **argv)                                                         \
	{                                                                                       \
		return unit_main(suite, tests, sizeof(tests) / sizeof((tests)[0]), argc, argv); \
	}

/* A fresh empty directory of this process, removed at exit. */
const char *unit_tmpdir(void);

/*
 * Milliseconds for what must happen: so many that a slow and busy machine needs no more. They cost
 * nothing when it does happen.
 */
#define UNIT_PATIENCE 30000u

/* Calls `done` again and again until it is true or the time is over; yields in between. */
bool unit_wait_for(bool (*done)(void *arg), void *arg, unsigned milliseconds);

/* The thread ends, within UNIT_PATIENCE: for one that something wakes. */
bool unit_join(pthread_t thread);

/* A thread of this process sleeps, or has even ended. */
bool unit_is_asleep(pid_t thread);

/*
 * For what a rule bounds from above, while a busy machine may stop anybody for longer: true if one
 * of five runs, each of which returns the nanoseconds that it took, is below the limit.
 */
bool unit_is_soon(uint64_t (*run)(void *arg), void *arg, uint64_t limit);

/*
 * The clean-up handler of a thread that is to be cancelled: the address sanitizer does not see the frames go, and would
 * take what the thread does at its end for a write into them.
 */
void unit_forget_stack(void *unused);

/*
 * An assertion that compares what a call returned notes, once a process, where it stands and what
 * it calls: test/table counts them, function by function.
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
