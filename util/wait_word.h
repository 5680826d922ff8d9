/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Waiting for a short time until a word of memory is written, the processor at rest if it can be. */
#ifndef UTIL_WAIT_WORD_H
#define UTIL_WAIT_WORD_H

#include <stdbool.h>
#include <stdint.h>

/* The processor has instructions with which a program can wait for a write. */
bool wait_word_is_supported(void);
/*
 * Returns soon after a write to the word, at once if it is not `seen` (in the bits of the mask), after
 * `nanoseconds` at the latest, and at any time for nothing. Without the instructions: after a pause.
 */
void wait_word(const volatile uint64_t *word, uint64_t mask, uint64_t seen, uint64_t nanoseconds);

#endif
