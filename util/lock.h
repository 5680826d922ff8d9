/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* A lock for short sections of the data path: one locked instruction to acquire it, a plain store to release it. */
#ifndef UTIL_LOCK_H
#define UTIL_LOCK_H

#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>

struct lock {
	atomic_bool held;
};

static inline void cpu_relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("yield");
#endif
}

static inline bool lock_try(struct lock *lock)
{
	/* acquire: what the last holder wrote is seen */
	return !atomic_exchange_explicit(&lock->held, true, memory_order_acquire);
}

/* Out of line, so that the way without contention needs few registers. */
static __attribute__((noinline, cold, unused)) void lock_wait(struct lock *lock)
{
	unsigned looks = 0;

	do {
		while (atomic_load_explicit(&lock->held, memory_order_relaxed)) {
			if (++looks < 100)
				cpu_relax();
			else
				sched_yield();
		}
	} while (!lock_try(lock));
}

/*
 * The section must be short and must not sleep. Contention is rare, and the holder may have lost its processor:
 * a hundred looks, then yield.
 */
static inline void lock_acquire(struct lock *lock)
{
	if (__builtin_expect(!lock_try(lock), 0))
		lock_wait(lock);
}

static inline void lock_release(struct lock *lock)
{
	/* release: pairs with the acquire of the next holder */
	atomic_store_explicit(&lock->held, false, memory_order_release);
}

#endif
