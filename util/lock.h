/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * A lock for short sections of the data path. If one thread acquires it many times in a row, the lock is biased to that thread
 * (util/lock_bias.h), which then acquires it by a plain store, until another thread wants it. Otherwise it takes one locked
 * instruction. The release is a plain store.
 */
#ifndef UTIL_LOCK_H
#define UTIL_LOCK_H

#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include "util/lock_bias.h"
#include "util/lock_check.h"

struct lock {
	/* Whether it is held: [LOCK_BY_ALL] by any thread, each other entry the one thread that it may be biased to. */
	atomic_bool hold[1 + LOCK_BIASES];
	/* The entry of `hold` of its holder; of a free lock that is biased, that of the thread. */
	_Atomic unsigned char at;
	_Atomic unsigned char rank;	/* the rank, in a checked build; 0 if it has none */
	_Atomic unsigned short waiters; /* number of threads that wait for it */
	struct lock_use use;
	/* lock_thread_self of the thread that it is biased to; 0: none. See lock_revoke for another value. */
	_Atomic(uintptr_t) bias;
};

static inline void cpu_relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("yield");
#endif
}

/* A waiter polls this often before it starts to leave the processor between polls. */
#define LOCK_POLLS 100u

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

static inline bool lock_try_by_all(struct lock *lock)
{
	/* acquire: what the last holder wrote is seen */
	return !atomic_exchange_explicit(&lock->hold[LOCK_BY_ALL], true, memory_order_acquire);
}

/* Acquires a lock that is biased to this thread; false if it is not. */
static inline bool lock_enter(struct lock *lock)
{
	/* acquire: if the lock is biased to this thread, it is this thread's entry; pairs with lock_count */
	size_t at = atomic_load_explicit(&lock->at, memory_order_acquire);
	uintptr_t self = lock_thread_self();

	if (!LOCK_BIASED || atomic_load_explicit(&lock->bias, memory_order_relaxed) != self)
		return false;
	atomic_store_explicit(&lock->hold[at], true, memory_order_relaxed);
	atomic_signal_fence(memory_order_seq_cst); /* pairs with the barrier in lock_revoke */
	if (__builtin_expect(atomic_load_explicit(&lock->bias, memory_order_relaxed) == self, 1))
		return true;
	atomic_store_explicit(&lock->hold[at], false, memory_order_relaxed);
	return false;
}

/* As lock_try, but only a lock that is biased to this thread. */
static inline bool lock_try_biased(struct lock *lock)
{
	if (!lock_enter(lock))
		return false;
	if (LOCK_CHECKED) {
		lock_check_try(lock);
		lock_check_tried(lock, lock_rank(lock), true);
	}
	return true;
}

static inline bool lock_try_unbiased(struct lock *lock)
{
	bool taken;

	if (LOCK_CHECKED)
		lock_check_try(lock);
	taken = lock_try_slow(lock);
	if (LOCK_CHECKED)
		lock_check_tried(lock, lock_rank(lock), taken);
	return taken;
}

static inline bool lock_try(struct lock *lock)
{
	return lock_try_biased(lock) || lock_try_unbiased(lock);
}

/*
 * The section must be short and must not block. Contention is rare, and the holder may be preempted: the waiter
 * polls LOCK_POLLS times and then leaves the processor between polls.
 */
static inline void lock_acquire(struct lock *lock)
{
	if (LOCK_CHECKED)
		lock_check_acquire(lock, lock_rank(lock));
	if (!lock_enter(lock))
		lock_acquire_slow(lock);
	if (LOCK_CHECKED)
		lock_check_acquired(lock, lock_rank(lock));
}

static inline void lock_release(struct lock *lock)
{
	if (LOCK_CHECKED)
		lock_check_release(lock);
	/* release: pairs with the acquire of the next holder */
	atomic_store_explicit(&lock->hold[atomic_load_explicit(&lock->at, memory_order_relaxed)],
			      false, memory_order_release);
	if (LOCK_CHECKED)
		lock_check_released(lock);
}

#define LOCK_ADMITS (10 * LOCK_POLLS)

static __attribute__((noinline, cold, unused)) void lock_admit_slow(struct lock *lock)
{
	for (unsigned polls = 0; polls < LOCK_ADMITS; polls++) {
		if (!atomic_load_explicit(&lock->waiters, memory_order_relaxed) ||
		    atomic_load_explicit(&lock->hold[LOCK_BY_ALL], memory_order_relaxed))
			return;
		if (polls < LOCK_POLLS)
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
