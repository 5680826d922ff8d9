/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Waits a short time for a write to a word of memory, with the processor idle if it supports that. */
#ifndef UTIL_WAIT_WORD_H
#define UTIL_WAIT_WORD_H

#include <stdbool.h>
#include <stdint.h>

/* The processor has instructions with which a program can wait for a write. */
bool wait_word_is_supported(void);
/*
 * Returns soon after a write to the word, at once if its bits in `mask` differ from `seen`, after `nanoseconds` at the
 * latest, and possibly without a reason. Without processor support it returns after a pause.
 */
void wait_word(const volatile uint64_t *word, uint64_t mask, uint64_t seen, uint64_t nanoseconds);

#endif
