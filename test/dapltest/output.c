/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* What dapltest prints. */

#include <stdarg.h>
#include <stdio.h>

#include "tool.h"

static int verbosity;

void output_verbose(int level)
{
	verbosity = level;
}

/*
 * A line is written in one call, so that threads, and programs on one terminal, do not mix their
 * lines.
 */
static void line_print(FILE *out, const char *fmt, va_list args)
{
	char line[1024];
	int length = vsnprintf(line, sizeof(line) - 1, fmt, args);

	if (length < 0)
		return;
	if ((size_t)length > sizeof(line) - 2)
		length = sizeof(line) - 2;
	line[length] = '\n';
	fwrite(line, 1, (size_t)length + 1, out);
	fflush(out);
}

void say(const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	line_print(stdout, fmt, args);
	va_end(args);
}

void detail(const char *fmt, ...)
{
	va_list args;

	if (verbosity == 0)
		return;
	va_start(args, fmt);
	line_print(stdout, fmt, args);
	va_end(args);
}

void complain(const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	line_print(stderr, fmt, args);
	va_end(args);
}
