/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* One program over one device with this build's libraries, and with the packaged OFED ones beside it. */
#ifndef BESIDE_H
#define BESIDE_H

#include <stdbool.h>

enum variant { OURS, PACKAGED, PACKAGED_QUIET, VARIANTS };

extern const char *const beside_name[VARIANTS];

/* Finds the build that this program is of: it lies in BUILD/bench. false, with the reason told. */
bool beside_begin(void);
/* What is executed from now on gets these libraries, and an IA "exact" on the device of the build. */
bool beside_set(enum variant variant);
void beside_end(void);

/* On one processor from now on, with what is executed. */
void beside_stay(void);

/* BUILD/bench/NAME, until the next call. */
const char *beside_program(const char *name);
bool beside_is_of_build(const char *path);

#endif
