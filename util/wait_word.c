/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* User-mode monitor and wait: WAITPKG of x86-64 (umonitor, umwait), else a pause. */
#include <pthread.h>
#include <stdatomic.h>
#include "util/clock.h"
#include "util/lock.h"
#include "util/wait_word.h"

#if defined(__x86_64__) && \
	(__GNUC__ >= 9 || defined(__clang__)) /* older compilers do not know WAITPKG */
#include <cpuid.h>
#include <immintrin.h>

#define CPUID_7_ECX_WAITPKG	(1u << 5)
#define CPUID_INVARIANT_TSC	0x80000007u
#define CPUID_INVARIANT_TSC_EDX (1u << 8)
#define C01			1u /* C0.1, which wakes faster than C0.2 */
#define CALIBRATION		(200 * NSEC_PER_USEC)

static bool supported;
static uint64_t ticks_per_ms; /* of the time stamp counter */

static uint64_t ticks_now(void)
{
	return __builtin_ia32_rdtsc();
}

/* A coarse value suffices: callers check the time themselves. */
static void calibrate(void)
{
	uint64_t begin = clock_now(), ticks = ticks_now(), now;

	do
		now = clock_now();
	while (now - begin < CALIBRATION);
	ticks_per_ms = (ticks_now() - ticks) * NSEC_PER_MSEC / (now - begin);
}

static void find_out(void)
{
	unsigned a, b, c, d;

	if (!__get_cpuid_count(7, 0, &a, &b, &c, &d) || !(c & CPUID_7_ECX_WAITPKG))
		return;
	if (!__get_cpuid(CPUID_INVARIANT_TSC, &a, &b, &c, &d) || !(d & CPUID_INVARIANT_TSC_EDX))
		return;
	calibrate();
	supported = ticks_per_ms > 0;
}

bool wait_word_is_supported(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, find_out);
	return supported;
}

__attribute__((target("waitpkg"))) static void monitor_and_wait(const volatile uint64_t *word,
								uint64_t mask, uint64_t seen,
								uint64_t nanoseconds)
{
	uint64_t end = ticks_now() + nanoseconds * ticks_per_ms / NSEC_PER_MSEC;

	_umonitor((void *)(uintptr_t)word);
	/* A write before the monitor is seen here, one after it ends the wait. */
	if (((__atomic_load_n(word, __ATOMIC_ACQUIRE) ^ seen) & mask) == 0)
		_umwait(C01, end);
}

void wait_word(const volatile uint64_t *word, uint64_t mask, uint64_t seen, uint64_t nanoseconds)
{
	if (wait_word_is_supported())
		monitor_and_wait(word, mask, seen, nanoseconds);
	else
		cpu_relax();
}

#else

bool wait_word_is_supported(void)
{
	return false;
}

void wait_word(const volatile uint64_t *word, uint64_t mask, uint64_t seen, uint64_t nanoseconds)
{
	(void)word;
	(void)mask;
	(void)seen;
	(void)nanoseconds;
	cpu_relax();
}

#endif
