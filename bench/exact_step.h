/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Runs a program and counts what its marked calls execute, by single steps (x86-64). */
#ifndef EXACT_STEP_H
#define EXACT_STEP_H

#include <stdbool.h>
#include "bench/exact_mark.h"

#define EXACT_CALLS_KEPT 32 /* counted calls of each kind; fewer give no figure; whole batches */

/*
 * The cost of one call, from the entry of the function to its return, without that of the verbs
 * driver.
 */
struct exact_count {
	unsigned instructions, locked, system_calls;
};

struct exact_run {
	unsigned counted[EXACT_CALLS];
	struct exact_count calls[EXACT_CALLS][EXACT_CALLS_KEPT];
	char registry[256], provider[256], driver[256]; /* the files that were mapped */
};

/*
 * Runs `program IA` with the environment of this process. On failure prints the reason and returns
 * false; *run is then not valid.
 */
bool exact_run(const char *program, const char *ia, struct exact_run *run);

#endif
