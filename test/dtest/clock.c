/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * The time until a deadline, a watchdog for calls that never return, and the processor to run on.
 */

#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "tool.h"

/*
 * The time is rounded up, so that a caller that polls with it does not spend the last millisecond
 * polling.
 */
int clock_left_ms(uint64_t deadline)
{
	uint64_t now = clock_ns(), ms;

	if (now >= deadline)
		return 0;
	ms = (deadline - now + 999999) / 1000000;
	return ms > INT_MAX ? INT_MAX : (int)ms;
}

double clock_us_since(uint64_t start)
{
	return (double)(clock_ns() - start) / 1000.0;
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
 * The waits themselves keep their deadlines. The watchdog ends the program some seconds after the
 * deadline if a DAT call blocks that must not, or outlasts its own timeout. An alarm that is set to
 * about the right time is left alone, so that short waits make no system call.
 */
void watchdog_set(double seconds)
{
	static const uint64_t grace = 20000000000u;
	static const double longest = 1e7;
	static uint64_t alarm_at;
	uint64_t end = clock_after(seconds < longest ? seconds : longest) + grace;
	struct sigaction act;

	if (alarm_at + grace / 2 > end && alarm_at < end + grace / 2)
		return;
	memset(&act, 0, sizeof(act));
	act.sa_handler = watchdog_bark;
	sigaction(SIGALRM, &act, NULL);
	alarm((unsigned int)((end - clock_ns()) / 1000000000u));
	alarm_at = end;
}

void watchdog_stop(void)
{
	alarm(0);
}

bool cpu_pin(int cpu)
{
	cpu_set_t set;

	if (cpu < 0 || cpu >= CPU_SETSIZE)
		return false;
	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	return sched_setaffinity(0, sizeof(set), &set) == 0;
}
