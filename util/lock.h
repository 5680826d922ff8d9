/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* A lock for short sections of the data path: one locked instruction to acquire it, a plain store to release it. */
#ifndef UTIL_LOCK_H
#define UTIL_LOCK_H

#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include "util/lock_check.h"

struct lock {
	atomic_bool held;
	_Atomic unsigned char rank;	/* the rank, in a checked build; 0 if it has none */
	_Atomic unsigned short waiters; /* number of threads in lock_wait */
};

static inline void cpu_relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("yield");
#endif
}

/* A waiter polls this often before it starts to yield the processor between polls. */
#define LOCK_LOOKS 100u

#define LOCK_INITIALIZER(rank_)                    \
	{                                          \
		.rank = LOCK_CHECKED ? (rank_) : 0 \
	}

/*
 * For a lock in zeroed memory, or a free one that had the same rank; the rank serves only checks.
 */
static inline void lock_init(struct lock *lock, unsigned rank)
{
	if (LOCK_CHECKED)
		atomic_store_explicit(&lock->rank, (unsigned char)rank, memory_order_relaxed);
}

static inline unsigned lock_rank(const struct lock *lock)
{
	return atomic_load_explicit(&lock->rank, memory_order_relaxed);
}

static inline bool lock_take(struct lock *lock)
{
	/* acquire: what the last holder wrote is seen */
	return !atomic_exchange_explicit(&lock->held, true, memory_order_acquire);
}

static inline bool lock_try(struct lock *lock)
{
	bool taken;

	if (LOCK_CHECKED)
		lock_check_try(lock);
	taken = lock_take(lock);
	if (LOCK_CHECKED)
		lock_check_tried(lock, lock_rank(lock), taken);
	return taken;
}

/* Not inlined, so that the fast path needs few registers. */
static __attribute__((noinline, cold, unused)) void lock_wait(struct lock *lock)
{
	unsigned looks = 0;

	/* relaxed: a hint for lock_admit */
	atomic_fetch_add_explicit(&lock->waiters, 1, memory_order_relaxed);
	do {
		while (atomic_load_explicit(&lock->held, memory_order_relaxed)) {
			if (++looks < LOCK_LOOKS)
				cpu_relax();
			else
				sched_yield();
		}
	} while (!lock_take(lock));
	atomic_fetch_sub_explicit(&lock->waiters, 1, memory_order_relaxed);
}

/*
 * The section must be short and must not block. Contention is rare, and the holder may be preempted: the waiter
 * polls LOCK_LOOKS times and then yields.
 */
static inline void lock_acquire(struct lock *lock)
{
	if (LOCK_CHECKED)
		lock_check_acquire(lock, lock_rank(lock));
	if (__builtin_expect(!lock_take(lock), 0))
		lock_wait(lock);
	if (LOCK_CHECKED)
		lock_check_acquired(lock, lock_rank(lock));
}

static inline void lock_release(struct lock *lock)
{
	if (LOCK_CHECKED)
		lock_check_release(lock);
	/* release: pairs with the acquire of the next holder */
	atomic_store_explicit(&lock->held, false, memory_order_release);
	if (LOCK_CHECKED)
		lock_check_released(lock);
}

#define LOCK_ADMITS (10 * LOCK_LOOKS)

static __attribute__((noinline, cold, unused)) void lock_admit_slow(struct lock *lock)
{
	for (unsigned looks = 0; looks < LOCK_ADMITS; looks++) {
		if (!atomic_load_explicit(&lock->waiters, memory_order_relaxed) ||
		    atomic_load_explicit(&lock->held, memory_order_relaxed))
			return;
		if (looks < LOCK_LOOKS)
			cpu_relax();
		else
			sched_yield();
	}
}

/*
 * For a thread that has released the lock and will acquire it again at once, for example to poll in
 * a loop, where waiters would hardly ever find the lock free. Returns when a waiter has acquired
 * it, or after a bounded time, because a waiter may not be running.
 */
static inline void lock_admit(struct lock *lock)
{
	if (__builtin_expect(atomic_load_explicit(&lock->waiters, memory_order_relaxed) != 0, 0))
		lock_admit_slow(lock);
}

/* If a thread waits for the lock: releases it, lets the waiter acquire it first, and acquires it again. */
static inline void lock_cede(struct lock *lock)
{
	/* relaxed: a waiter that is not seen now is seen at the next call */
	if (__builtin_expect(!atomic_load_explicit(&lock->waiters, memory_order_relaxed), 1))
		return;
	lock_release(lock);
	lock_admit(lock);
	lock_acquire(lock);
}

#endif
