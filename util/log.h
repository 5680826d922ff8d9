/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * Diagnostics: one line each, to the destinations that the user has selected. A disabled line costs one test.
 */
#ifndef UTIL_LOG_H
#define UTIL_LOG_H

#include <stdatomic.h>
#include <stdbool.h>

/* The first two bits mean the same everywhere; a library may define the others. */
#define LOG_ERROR 0x1u
#define LOG_WARN  0x2u
#define LOG_NOTE  0x4u
#define LOG_TRACE 0x8u

enum log_dest { LOG_TO_STDOUT = 1, LOG_TO_SYSLOG = 2, LOG_TO_STDERR = 4 };

extern _Atomic(unsigned) log_mask;

/*
 * Sets the prefix of each line, the enabled lines and their destinations; replaces earlier settings. Before the first
 * call LOG_ERROR goes to stderr without a prefix. `name` is not copied.
 */
void log_open(const char *name, unsigned mask, unsigned dest);

/* Enables more lines, with the same destinations. */
void log_more(unsigned bits);

/*
 * Returns the variable as a bit mask, decimal, octal or hexadecimal, or `fallback` if it is unset
 * or, after one line, not a number.
 */
unsigned log_env(const char *variable, unsigned fallback);

void log_write(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

static inline bool log_on(unsigned bit)
{
	return atomic_load_explicit(&log_mask, memory_order_relaxed) & bit;
}

/*
 * Writes one line at once; the format has no "
 * ". For any thread; preserves errno.
 */
#define log_at(bit, ...)                        \
	do {                                    \
		if (log_on(bit))                \
			log_write(__VA_ARGS__); \
	} while (0)

#endif
