/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * Checks of a struct lock (util/lock.h), in builds with -DLOCK_CHECK: `make SAN=thread` and `make DEBUG=1`. A thread acquires
 * its locks in rising order of their ranks, and makes neither a system call that may block nor an upcall while it holds one.
 * A violation is written to standard error and ends the process. ThreadSanitizer sees the locks as mutexes, so that its
 * deadlock detector knows them. Each call is made if LOCK_CHECKED: other builds have nothing of the checks.
 */
#ifndef UTIL_LOCK_CHECK_H
#define UTIL_LOCK_CHECK_H

#include <stdbool.h>

struct lock;

#ifdef LOCK_CHECK
#define LOCK_CHECKED 1
#else
#define LOCK_CHECKED 0
#endif

/*
 * This bit of a rank says that a thread may hold several locks of it, which it acquires in an order
 * of their own.
 */
#define LOCK_RANK_SEVERAL 0x80u

/* Called before and after a wait for the lock. */
void lock_check_acquire(struct lock *lock, unsigned rank);
void lock_check_acquired(struct lock *lock, unsigned rank);
/*
 * Called before and after a try, which may come in any order: a thread that does not wait causes no
 * deadlock.
 */
void lock_check_try(struct lock *lock);
void lock_check_tried(struct lock *lock, unsigned rank, bool acquired);
void lock_check_release(struct lock *lock);
void lock_check_released(struct lock *lock);

/* Ends the process, with a message that names `call`, if the thread holds a lock. */
void lock_check_none(const char *call);

#endif
