/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Writes diagnostics to stderr and syslog. */
#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>
#include <unistd.h>
#include "util/log.h"

_Atomic(unsigned) log_mask = LOG_ERROR;
static _Atomic(unsigned) log_dest = LOG_TO_STDERR;
static _Atomic(const char *) log_name;

void log_open(const char *name, unsigned mask, unsigned dest)
{
	atomic_store(&log_name, name);
	atomic_store(&log_dest, dest);
	atomic_store(&log_mask, mask);
}

void log_more(unsigned bits)
{
	atomic_fetch_or(&log_mask, bits);
}

/* Ignores errors: there is no other place to report them. */
static void put_line(int fd, const char *line, size_t len)
{
	ssize_t n;

	do
		n = write(fd, line, len);
	while (n < 0 && errno == EINTR);
}

void log_write(const char *fmt, ...)
{
	const char *name = atomic_load(&log_name);
	unsigned dest = atomic_load(&log_dest);
	int saved = errno, len = 0;
	char line[1024];
	va_list args;

	if (name)
		len = snprintf(line, sizeof(line), "%.64s: ", name);
	va_start(args, fmt);
	errno = saved; /* for %m */
	len += vsnprintf(line + len, sizeof(line) - (size_t)len, fmt, args);
	va_end(args);
	if (len > (int)sizeof(line) - 2)
		len = (int)sizeof(line) - 2; /* cut, with room for the newline */
	line[len] = '\0';

	if (dest & LOG_TO_SYSLOG)
		syslog(LOG_USER | LOG_DEBUG, "%s", line);
	line[len++] = '\n';
	if (dest & LOG_TO_STDOUT)
		put_line(STDOUT_FILENO, line, (size_t)len);
	if (dest & LOG_TO_STDERR)
		put_line(STDERR_FILENO, line, (size_t)len);
	errno = saved;
}

unsigned log_env(const char *variable, unsigned fallback)
{
	const char *text = secure_getenv(variable);
	unsigned long value;
	int saved = errno;
	char *end;

	if (!text)
		return fallback;
	errno = 0;
	value = strtoul(text, &end, 0);
	/* a negative number is the mask of its 32-bit two's complement, -1 is everything */
	if (errno || end == text || *end || (value > UINT_MAX && value < (unsigned long)INT_MIN)) {
		log_at(LOG_ERROR, "%s=\"%s\" is not a number: ignored", variable, text);
		errno = saved;
		return fallback;
	}
	errno = saved;
	return (unsigned)value;
}
