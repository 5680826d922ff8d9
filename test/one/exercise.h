/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
#ifndef ONE_EXERCISE_H
#define ONE_EXERCISE_H

/* Opens an IA, or uses the given one, and returns the number of failures, which it has printed. */
__attribute__((visibility("default"))) int exercise(void *given);

#endif
