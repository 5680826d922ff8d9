/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * Diagnostics: one line each, to the places that the user asked for; a line that nobody wants costs
 * one test.
 */
#ifndef UTIL_LOG_H
#define UTIL_LOG_H

#include <stdatomic.h>
#include <stdbool.h>

/*
 * The first two bits mean the same everywhere; a library may give the others a meaning of its own.
 */
#define LOG_ERROR 0x1u
#define LOG_WARN  0x2u
#define LOG_NOTE  0x4u
#define LOG_TRACE 0x8u

enum log_dest { LOG_TO_STDOUT = 1, LOG_TO_SYSLOG = 2, LOG_TO_STDERR = 4 };

extern _Atomic(unsigned) log_mask;

/*
 * Names the library in front of each line and says which lines go where; the last call counts.
 * Before the first one, LOG_ERROR goes to stderr without a name. `name` is kept, not copied.
 */
void log_open(const char *name, unsigned mask, unsigned dest);

/* These lines too, wherever the others go. */
void log_more(unsigned bits);

/*
 * The variable as a bit mask, decimal, octal or hexadecimal; `fallback` if unset, or, with one
 * line, if not a number.
 */
unsigned log_env(const char *variable, unsigned fallback);

void log_write(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

static inline bool log_on(unsigned bit)
{
	return atomic_load_explicit(&log_mask, memory_order_relaxed) & bit;
}

/* One line, without "\n" in the format; written at once, any thread; errno survives. */
#define log_at(bit, ...)                        \
	do {                                    \
		if (log_on(bit))                \
			log_write(__VA_ARGS__); \
	} while (0)

#endif
