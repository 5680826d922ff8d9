/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * The bias of a struct lock (util/lock.h) to a thread. On most endpoints and queues one thread does everything, and a locked
 * instruction would make it wait until its earlier stores have reached the cache, also those to lines of the peer's processor.
 *
 * A thread that acquires a lock which is biased to it stores that it holds it, and then tests that the lock is still biased to
 * it. A thread that revokes the bias ends it, makes the first thread's processor order its accesses by membarrier(2), and then
 * waits until the first thread does not hold the lock. So at least one of them sees the other's store. The first thread may be
 * interrupted between its two tests, and store that it holds the lock at any later time, to take it back at once. It stores
 * that in an entry of its own, so a lock can be biased to LOCK_BIASES threads in its life.
 *
 * A revocation takes some microseconds. Each one of a lock doubles the number of acquisitions before its next bias.
 *
 * The thread sanitizer does not know membarrier: there, and where the kernel does not have it, no lock is biased.
 */
#ifndef UTIL_LOCK_BIAS_H
#define UTIL_LOCK_BIAS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#if (defined(__x86_64__) || defined(__aarch64__)) && !defined(__SANITIZE_THREAD__)
#define LOCK_BIASED 1
#else
#define LOCK_BIASED 0
#endif

#define LOCK_BY_ALL 0u
#define LOCK_BIASES 2u /* one that sets up, and one that works */

struct lock;

/* The use of a lock, which decides on its bias. Guarded by the lock. */
struct lock_use {
	unsigned char thread
		[LOCK_BIASES];	   /* numbers of the threads that it has been biased to; 0: none */
	unsigned char last;	   /* bits of the thread that acquired it last */
	unsigned char revocations; /* of its bias */
	unsigned short left;	   /* acquisitions by that thread before the next decision */
};

/* Names the calling thread, among those that run; not 0. */
static inline uintptr_t lock_thread_self(void)
{
#if !LOCK_BIASED
	return 1;
#elif defined(__x86_64__) && __GNUC__ < 11 && !defined(__clang__) /* which has not the builtin */
	uintptr_t self;

	__asm__("mov %%fs:0, %0" : "=r"(self));
	return self;
#else
	return (uintptr_t)__builtin_thread_pointer();
#endif
}

/* From now on locks may be biased, if the kernel lets this process order the accesses of its threads. */
void lock_bias_open(void);

/* Acquire a lock that is not biased to this thread; lock_try_slow does not wait. */
void lock_acquire_slow(struct lock *lock);
bool lock_try_slow(struct lock *lock);

#endif
