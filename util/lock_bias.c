/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Acquires locks that are not biased to the calling thread, and decides which thread a lock is biased to. */
#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include "util/clock.h"
#include "util/lock.h"

#define THREADS		255u	      /* that have numbers; no lock is biased to a further one */
#define IN_A_ROW	64u	      /* acquisitions by one thread before the first bias */
#define REVOCATIONS_MAX 8u	      /* that double this number */
#define REVOKED		1u	      /* a bias: its thread may still hold the lock */
#define NO_BARRIER	NSEC_PER_MSEC /* in which a store reaches the cache, without a barrier */
#define SLICE		(500 * NSEC_PER_USEC) /* a yield of that length was to a thread that does not yield */
#define SLEEPS		100u		      /* in place of yields after such a one */

static _Atomic(uintptr_t)
	threads[THREADS]; /* lock_thread_self by number - 1; they stay when the threads end */
static atomic_bool open;

void lock_bias_open(void)
{
	if (LOCK_BIASED && !atomic_load_explicit(&open, memory_order_relaxed) &&
	    !syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0))
		atomic_store_explicit(&open, true, memory_order_relaxed);
}

/* Every thread of this process orders its accesses. */
static void barrier(void)
{
	uint64_t until;

	if (!syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0))
		return;
	/* The program has installed a filter that forbids it: no further lock is biased. */
	atomic_store(&open, false);
	for (until = clock_now() + NO_BARRIER; clock_now() < until;)
		sched_yield();
}

/* The number of the calling thread; 0 if too many have one. */
static unsigned char thread_number(void)
{
	uintptr_t self = lock_thread_self();

	for (unsigned i = 0; i < THREADS; i++) {
		uintptr_t known = 0;

		if (atomic_compare_exchange_strong(&threads[i], &known, self) || known == self)
			return (unsigned char)(i + 1);
	}
	return 0;
}

/* The entry of `hold` of the calling thread; LOCK_BY_ALL if it cannot have one. */
static unsigned entry_find(struct lock *lock)
{
	unsigned char self = thread_number();

	for (unsigned i = 0; self && i < LOCK_BIASES; i++) {
		if (!lock->use.thread[i])
			lock->use.thread[i] = self;
		if (lock->use.thread[i] == self)
			return i + 1;
	}
	return LOCK_BY_ALL;
}

/* The caller holds the lock by the entry of all threads. From now on the lock is biased to it, and held so. */
static void lock_bias(struct lock *lock)
{
	unsigned at = entry_find(lock);

	if (at == LOCK_BY_ALL)
		return;
	atomic_store_explicit(&lock->hold[at], true, memory_order_relaxed);
	atomic_store_explicit(&lock->at, (unsigned char)at, memory_order_relaxed);
	atomic_store_explicit(&lock->bias, lock_thread_self(), memory_order_relaxed);
	/* release: a thread that takes this entry sees the bias */
	atomic_store_explicit(&lock->hold[LOCK_BY_ALL], false, memory_order_release);
}

/* The caller has acquired the lock often enough in a row. */
static __attribute__((noinline, cold)) void lock_consider(struct lock *lock)
{
	lock->use.left = (unsigned short)(IN_A_ROW << lock->use.revocations);
	if (atomic_load_explicit(&open, memory_order_relaxed) &&
	    !atomic_load_explicit(&lock->waiters, memory_order_relaxed))
		lock_bias(lock);
}

/* Counts an acquisition by the caller, which holds the lock by the entry of all threads. */
static inline void lock_count(struct lock *lock)
{
	unsigned char self = (unsigned char)(lock_thread_self() * 0x9e3779b97f4a7c15u >> 56 | 1);

	/* release: a thread that loads it in lock_enter sees that the bias has ended */
	atomic_store_explicit(&lock->at, LOCK_BY_ALL, memory_order_release);
	if (lock->use.last != self) {
		lock->use.last = self;
		lock->use.left = (unsigned short)(IN_A_ROW << lock->use.revocations);
	} else if (!--lock->use.left) {
		lock_consider(lock);
	}
}

/*
 * The caller has taken the entry of all threads. Ends a bias. False: a thread that the lock was biased to holds it, or is about
 * to find that its bias has ended.
 */
static bool lock_revoke(struct lock *lock)
{
	if (atomic_load_explicit(&lock->bias, memory_order_relaxed) != REVOKED) {
		atomic_store_explicit(&lock->bias, REVOKED, memory_order_relaxed);
		lock->use.revocations += lock->use.revocations < REVOCATIONS_MAX;
		barrier();
	}
	/* acquire: pairs with lock_release */
	for (unsigned i = 1; i <= LOCK_BIASES; i++)
		if (atomic_load_explicit(&lock->hold[i], memory_order_acquire))
			return false;
	atomic_store_explicit(&lock->bias, 0, memory_order_relaxed);
	return true;
}

/* ---- acquisition ---- */

/* Takes the entry of all threads. */
static bool lock_try_only(struct lock *lock)
{
	return !atomic_load_explicit(&lock->hold[LOCK_BY_ALL], memory_order_relaxed) &&
	       lock_try_by_all(lock);
}

/*
 * Gives the processor to the holder, which may have been preempted on it. A holder that polls soon gives it back, by lock_admit. One
 * that polls something else keeps it for its slice, which is milliseconds, also after the release: then this thread sleeps
 * instead, some 50 us, the next times. Not by nanosleep(3), which is a cancellation point: a waiter may hold other locks.
 */
static void lock_leave_processor(void)
{
	static const struct timespec least = { .tv_nsec = 1000 };
	static _Thread_local unsigned sleeps;
	uint64_t begin;

	if (sleeps) {
		sleeps--;
		syscall(SYS_nanosleep, &least, NULL);
		return;
	}
	begin = clock_now();
	sched_yield();
	if (clock_now() - begin > SLICE)
		sleeps = SLEEPS;
}

static __attribute__((noinline, cold)) void lock_wait(struct lock *lock,
						      bool (*tried)(struct lock *))
{
	unsigned polls = 0;

	/* relaxed: a hint for lock_admit */
	atomic_fetch_add_explicit(&lock->waiters, 1, memory_order_relaxed);
	while (!tried(lock)) {
		if (++polls < LOCK_POLLS)
			cpu_relax();
		else
			lock_leave_processor();
	}
	atomic_fetch_sub_explicit(&lock->waiters, 1, memory_order_relaxed);
}

static bool lock_is_biased(const struct lock *lock)
{
	return __builtin_expect(atomic_load_explicit(&lock->bias, memory_order_relaxed) != 0, 0);
}

void lock_acquire_slow(struct lock *lock)
{
	if (__builtin_expect(!lock_try_by_all(lock), 0))
		lock_wait(lock, lock_try_only);
	if (lock_is_biased(lock))
		lock_wait(lock, lock_revoke);
	lock_count(lock);
}

bool lock_try_slow(struct lock *lock)
{
	if (!lock_try_by_all(lock))
		return false;
	if (lock_is_biased(lock) && !lock_revoke(lock)) {
		/* release: the next holder sees that the bias has ended */
		atomic_store_explicit(&lock->hold[LOCK_BY_ALL], false, memory_order_release);
		return false;
	}
	lock_count(lock);
	return true;
}
