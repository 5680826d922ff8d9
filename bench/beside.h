/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* One program over one device with this build's libraries, and with the packaged OFED ones beside it. */
#ifndef BESIDE_H
#define BESIDE_H

#include <stdbool.h>

enum variant { OURS, PACKAGED, PACKAGED_QUIET, VARIANTS };

extern const char *const beside_name[VARIANTS];

/*
 * Finds the build directory of this program, which is in BUILD/bench. On failure prints the reason
 * and returns false.
 */
bool beside_begin(void);
/*
 * Programs that are executed later use these libraries, and have an IA "exact" on the device of the
 * build.
 */
bool beside_set(enum variant variant);
/* Whether this program finds the packaged libraries. */
bool beside_has_packaged(const char *program);
void beside_end(void);

/* Binds this process, and programs that it executes later, to one processor. */
void beside_stay(void);

/* Returns the path BUILD/bench/NAME, valid until the next call. */
const char *beside_program(const char *name);
bool beside_is_of_build(const char *path);

#endif
