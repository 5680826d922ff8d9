/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* The locks that each thread holds, for the checks of their order. Only in checked builds. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include "util/lock_check.h"

#ifdef __SANITIZE_THREAD__
#include <sanitizer/tsan_interface.h>
#define TSAN(call) call
#else
#define TSAN(call) ((void)0)
#endif

/* The resize of an SRQ holds a lock for each of its CQs. ThreadSanitizer allows 64 mutexes of all kinds. */
#define HELD_MAX 60

struct held {
	unsigned count;
	unsigned ranks[HELD_MAX]; /* 0 if it has none */
	struct lock *locks[HELD_MAX];
};

/*
 * Mapped for each thread and not thread-local: a library with a thread-local variable of the
 * initial-exec model can be loaded by dlopen only if all its thread-local variables have few bytes.
 * By mmap64: tests make allocations and mmap fail.
 */
static pthread_key_t held_key;
static pthread_once_t held_once = PTHREAD_ONCE_INIT;

static void held_unmap(void *held)
{
	munmap(held, sizeof(struct held));
}

static void held_key_create(void)
{
	if (pthread_key_create(&held_key, held_unmap)) {
		fprintf(stderr, "lock check: no key for thread-specific data is left\n");
		abort();
	}
}

static struct held *held_get(void)
{
	struct held *held;

	pthread_once(&held_once, held_key_create);
	held = pthread_getspecific(held_key);
	if (held)
		return held;
	held = mmap64(NULL, sizeof(*held), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		      0);
	if (held == MAP_FAILED || pthread_setspecific(held_key, held)) {
		fprintf(stderr, "lock check: no memory for the locks of a thread\n");
		abort();
	}
	return held;
}

static unsigned rank_number(unsigned rank)
{
	return rank & ~LOCK_RANK_SEVERAL;
}

static void lock_check_fail(const char *what, unsigned rank, unsigned held)
{
	fprintf(stderr, "lock check: a lock of rank %u is %s while one of rank %u is held\n",
		rank_number(rank), what, rank_number(held));
	abort();
}

void lock_check_acquire(struct lock *lock, unsigned rank)
{
	const struct held *held = held_get();
	unsigned i;

	for (i = 0; i < held->count; i++) {
		if (held->locks[i] == lock)
			lock_check_fail("acquired a second time", rank, held->ranks[i]);
		if (!rank || !held->ranks[i])
			continue;
		if (rank_number(held->ranks[i]) > rank_number(rank) ||
		    (held->ranks[i] == rank && !(rank & LOCK_RANK_SEVERAL)))
			lock_check_fail("acquired", rank, held->ranks[i]);
	}
	TSAN(__tsan_mutex_pre_lock(lock, 0));
}

static void held_add(struct lock *lock, unsigned rank)
{
	struct held *held = held_get();

	if (held->count == HELD_MAX) {
		fprintf(stderr,
			"lock check: a thread holds more than %d locks; see HELD_MAX in %s\n",
			HELD_MAX, __FILE__);
		abort();
	}
	held->ranks[held->count] = rank;
	held->locks[held->count++] = lock;
}

void lock_check_acquired(struct lock *lock, unsigned rank)
{
	TSAN(__tsan_mutex_post_lock(lock, 0, 0));
	held_add(lock, rank);
}

void lock_check_try(struct lock *lock)
{
	(void)lock;
	TSAN(__tsan_mutex_pre_lock(lock, __tsan_mutex_try_lock));
}

void lock_check_tried(struct lock *lock, unsigned rank, bool acquired)
{
	TSAN(__tsan_mutex_post_lock(
		lock, __tsan_mutex_try_lock | (acquired ? 0 : __tsan_mutex_try_lock_failed), 0));
	if (acquired)
		held_add(lock, rank);
}

void lock_check_release(struct lock *lock)
{
	struct held *held = held_get();
	unsigned i = held->count;

	while (i && held->locks[i - 1] != lock)
		i--;
	if (!i) {
		fprintf(stderr, "lock check: a thread releases a lock that it does not hold\n");
		abort();
	}
	for (; i < held->count; i++) {
		held->ranks[i - 1] = held->ranks[i];
		held->locks[i - 1] = held->locks[i];
	}
	held->count--;
	TSAN(__tsan_mutex_pre_unlock(lock, 0));
}

void lock_check_released(struct lock *lock)
{
	(void)lock;
	TSAN(__tsan_mutex_post_unlock(lock, 0));
}

void lock_check_none(const char *call)
{
	const struct held *held = held_get();

	if (!held->count)
		return;
	fprintf(stderr, "lock check: %s while a lock of rank %u is held\n", call,
		rank_number(held->ranks[0]));
	abort();
}
