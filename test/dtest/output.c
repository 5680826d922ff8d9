/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* The output of the test programs: progress and failures. */

#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#include "tool.h"

/* A line is written in one call, so that two programs on one terminal do not mix their lines. */
static void line_print(FILE *out, const char *frame, const char *fmt, va_list args)
{
	char text[512], line[600];

	vsnprintf(text, sizeof(text), fmt, args);
	snprintf(line, sizeof(line), frame, (int)getpid(), text);
	fputs(line, out);
	fflush(out);
}

void say(const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	line_print(stdout, "%d %s\n", fmt, args);
	va_end(args);
}

/* Scripts recognise results by the colon after the process id. */
void say_result(const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	line_print(stdout, "%d: %s\n", fmt, args);
	va_end(args);
}

void say_heading(const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	line_print(stdout, "\n %d %s\n\n", fmt, args);
	va_end(args);
}

/* The lines of the shorter programs begin with a space. */
void note(const char *fmt, ...)
{
	char text[512];
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	printf(" %s\n", text);
	fflush(stdout);
}

void complain(const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	line_print(stderr, "%d: %s\n", fmt, args);
	va_end(args);
}
