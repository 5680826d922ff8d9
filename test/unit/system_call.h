/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* A test that stands between the program and syscall(2), which has as many arguments as the call that it makes. */
#ifndef TEST_UNIT_SYSTEM_CALL_H
#define TEST_UNIT_SYSTEM_CALL_H

#include <errno.h>
#include <stdarg.h>

enum { SYSTEM_CALL_ARGUMENTS = 6 };

/* The test's own: what a call returns. It makes the call itself with system_call_made, or sets errno. */
static long system_call(long number, const long *argument);

long __real_syscall(long number, ...);
long __wrap_syscall(long number, ...);
long __wrap_syscall(long number, ...)
{
	long argument[SYSTEM_CALL_ARGUMENTS];
	va_list list;

	va_start(list, number);
	for (int i = 0; i < SYSTEM_CALL_ARGUMENTS; i++)
		argument[i] = va_arg(list, long);
	va_end(list);
	return system_call(number, argument);
}

static inline long system_call_made(long number, const long *argument)
{
	return __real_syscall(number, argument[0], argument[1], argument[2], argument[3],
			      argument[4], argument[5]);
}

static inline long system_call_fails(int error)
{
	errno = error;
	return -1;
}

#endif
