/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* The longest time that a wait may take, and a watchdog for calls that do not return. */

#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "tool.h"

enum { GRACE_SECONDS = 20 };

static double limit = 60;
static bool watching;

void wait_limit_set(double seconds)
{
	limit = seconds;
}

double wait_limit(void)
{
	return limit;
}

static void watchdog_bark(int signal)
{
	static const char text[] = "watchdog: a call did not return in time\n";
	ssize_t written = write(STDERR_FILENO, text, sizeof(text) - 1);

	(void)signal;
	(void)written;
	_exit(1);
}

/*
 * Each wait keeps its own deadline. The watchdog ends a program in which nothing has happened for
 * that time and some seconds more, because then a DAT call hangs. It is set again only after a good
 * part of its time, so that short waits make no system call.
 */
void watchdog_feed(void)
{
	static atomic_uint_least64_t set_at;
	uint64_t now = clock_ns(), last = atomic_load_explicit(&set_at, memory_order_relaxed);
	struct sigaction act;

	if (!watching)
		return;
	if (last != 0 && now - last < GRACE_SECONDS * 500000000ull)
		return;
	atomic_store_explicit(&set_at, now, memory_order_relaxed);
	memset(&act, 0, sizeof(act));
	act.sa_handler = watchdog_bark;
	sigaction(SIGALRM, &act, NULL);
	alarm((unsigned int)limit + 2 * GRACE_SECONDS);
}

/* Called before there are threads, and not by a server, which may be idle without limit. */
void watchdog_start(void)
{
	watching = true;
	watchdog_feed();
}

void watchdog_stop(void)
{
	watching = false;
	alarm(0);
}
