/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* One CUnit suite as a program: a table of named tests in, an exit status out. */
#ifndef UNIT_H
#define UNIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <CUnit/CUnit.h>

struct unit_test {
	const char *name;	/* begins with the rule it proves */
	void (*run)(void);
};

/*
 * Runs every test, or those whose name contains argv[1]; prints failures and one closing line.
 * Returns the exit status: 0, or 1 when one failed or none ran.
 */
int unit_main(const char *suite, const struct unit_test *tests, size_t count, int argc, char **argv);
#define UNIT_MAIN(suite, tests) \
	int main(int argc, char **argv) \
	{ return unit_main(suite, tests, sizeof(tests) / sizeof((tests)[0]), argc, argv); }

/* A fresh empty directory of this process, removed at exit. */
const char *unit_tmpdir(void);

/* Calls `done` again and again until it is true or the time is over; yields in between. */
bool unit_wait_for(bool (*done)(void *arg), void *arg, unsigned milliseconds);

#endif
