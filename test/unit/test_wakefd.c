/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* The wake descriptor: readable exactly while raised, in any order of calls. */
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <unistd.h>
#include "test/unit/system_call.h"
#include "test/unit/unit.h"
#include "util/wakefd.h"

#define ROUNDS 20000

static atomic_uint calls; /* calls of syscall(2), each of which moves a token */

static long system_call(long number, const long *argument)
{
	atomic_fetch_add(&calls, 1);
	return system_call_made(number, argument);
}

static bool is_readable(int fd)
{
	struct pollfd one = { .fd = fd, .events = POLLIN };

	return poll(&one, 1, 0) == 1;
}

static void test_raised_first(void)
{
	struct wakefd wake = { 0 };
	int fd;

	wakefd_signal(&wake);
	wakefd_raise(&wake);
	CU_ASSERT_EQUAL(calls, 0);
	CU_ASSERT_TRUE(wakefd_is_raised(&wake));
	fd = wakefd_get(&wake);
	CU_ASSERT_EQUAL(wakefd_get(&wake), fd);
	CU_ASSERT_TRUE(is_readable(fd));
	wakefd_clear(&wake);
	CU_ASSERT_FALSE(is_readable(fd));
	CU_ASSERT_FALSE(wakefd_is_raised(&wake));
	CU_ASSERT_TRUE(wakefd_take_signal(&wake));
	CU_ASSERT_EQUAL(wakefd_flags(&wake), 0);
	/* One token was written and read; clearing again makes no system call. */
	wakefd_clear(&wake);
	CU_ASSERT_EQUAL(calls, 2);
	wakefd_raise(&wake);
	wakefd_raise(&wake);
	CU_ASSERT_EQUAL(calls, 3);
	CU_ASSERT_TRUE(is_readable(fd));
	wakefd_close(&wake);
	CU_ASSERT_EQUAL(wakefd_flags(&wake), 0);
}

static void test_cleared_first(void)
{
	struct wakefd wake = { 0 };

	wakefd_signal(&wake);
	wakefd_clear(&wake);
	CU_ASSERT_FALSE(wakefd_is_raised(&wake));
	CU_ASSERT_FALSE(is_readable(wakefd_get(&wake)));
	CU_ASSERT_TRUE(wakefd_is_signalled(&wake));
	wakefd_close(&wake);
	CU_ASSERT_TRUE(wakefd_take_signal(&wake));
}

/* ---- threads that raise it, one that clears it, and one that creates the descriptor ---- */

struct race {
	struct wakefd wake;
	pthread_barrier_t barrier;
};

static void *run_raise(void *arg)
{
	struct race *race = arg;

	for (int i = 0; i < ROUNDS; i++) {
		pthread_barrier_wait(&race->barrier);
		wakefd_raise(&race->wake);
		pthread_barrier_wait(&race->barrier);
	}
	return NULL;
}

static void *run_clear(void *arg)
{
	struct race *race = arg;

	for (int i = 0; i < ROUNDS; i++) {
		pthread_barrier_wait(&race->barrier);
		wakefd_clear(&race->wake);
		pthread_barrier_wait(&race->barrier);
	}
	return NULL;
}

/*
 * Two threads raise, one clears, and this one creates the descriptor; at the end the descriptor
 * agrees with the flag.
 */
static void test_race(void)
{
	struct race race = { .wake = { 0 } };
	int differs = 0, stuck = 0;
	pthread_t threads[3];

	pthread_barrier_init(&race.barrier, NULL, 4);
	for (int i = 0; i < 3; i++)
		CU_ASSERT_EQUAL_FATAL(pthread_create(&threads[i], NULL, i ? run_raise : run_clear,
						     &race),
				      0);
	for (int i = 0; i < ROUNDS; i++) {
		int fd;

		pthread_barrier_wait(&race.barrier);
		fd = wakefd_get(&race.wake);
		pthread_barrier_wait(&race.barrier);
		differs += is_readable(fd) != wakefd_is_raised(&race.wake);
		wakefd_clear(&race.wake);
		stuck += is_readable(fd) || wakefd_flags(&race.wake);
		wakefd_close(&race.wake);
	}
	for (int i = 0; i < 3; i++)
		CU_ASSERT_EQUAL(pthread_join(threads[i], NULL), 0);
	pthread_barrier_destroy(&race.barrier);
	CU_ASSERT_EQUAL(differs, 0);
	CU_ASSERT_EQUAL(stuck, 0);
}

/* ---- a thread that sleeps elsewhere ---- */

static void count_call(void *arg)
{
	atomic_fetch_add((atomic_uint *)arg, 1);
}

static void test_listener(void)
{
	atomic_uint heard = 0;
	const struct wakefd_listener listener = { count_call, &heard };
	struct wakefd wake = { 0 };
	int fd = wakefd_get(&wake);

	CU_ASSERT_TRUE(wakefd_listen(&wake, &listener));
	wakefd_raise(&wake);
	wakefd_raise(&wake); /* it is raised */
	CU_ASSERT_EQUAL(heard, 1);
	CU_ASSERT_TRUE(is_readable(fd));
	CU_ASSERT_FALSE(wakefd_listen(&wake, &listener));
	wakefd_clear(&wake);
	wakefd_signal(&wake); /* the second time it did not listen */
	CU_ASSERT_EQUAL(heard, 1);
	wakefd_clear(&wake);
	CU_ASSERT_TRUE(wakefd_listen(&wake, &listener));
	wakefd_signal(&wake);
	CU_ASSERT_EQUAL(heard, 2);
	wakefd_unlisten(&wake);
	wakefd_clear(&wake);
	wakefd_raise(&wake);
	CU_ASSERT_EQUAL(heard, 2);
	wakefd_close(&wake);
}

struct slow {
	struct wakefd wake;
	atomic_bool called, may_return, ends;
};

static void slow_call(void *arg)
{
	struct slow *slow = arg;

	atomic_store(&slow->called, true);
	while (!atomic_load(&slow->may_return))
		sched_yield();
}

static void *slow_raise(void *arg)
{
	wakefd_raise(&((struct slow *)arg)->wake);
	return NULL;
}

static void *slow_unlisten(void *arg)
{
	struct slow *slow = arg;

	wakefd_unlisten(&slow->wake);
	atomic_store(&slow->ends, true);
	return NULL;
}

/* What the listener uses may be gone after wakefd_unlisten. */
static void test_listener_is_called_late(void)
{
	struct slow slow = { .wake = { 0 } };
	const struct wakefd_listener listener = { slow_call, &slow };
	pthread_t raiser, sleeper;

	wakefd_get(&slow.wake);
	CU_ASSERT_TRUE(wakefd_listen(&slow.wake, &listener));
	CU_ASSERT_EQUAL_FATAL(pthread_create(&raiser, NULL, slow_raise, &slow), 0);
	while (!atomic_load(&slow.called))
		sched_yield();
	CU_ASSERT_EQUAL_FATAL(pthread_create(&sleeper, NULL, slow_unlisten, &slow), 0);
	while (atomic_load(&slow.wake.listener))
		sched_yield();
	for (int i = 0; i < 100; i++)
		sched_yield();
	CU_ASSERT_FALSE(atomic_load(&slow.ends));
	atomic_store(&slow.may_return, true);
	CU_ASSERT_TRUE(unit_join(raiser));
	CU_ASSERT_TRUE(unit_join(sleeper));
	CU_ASSERT_TRUE(atomic_load(&slow.ends));
	wakefd_close(&slow.wake);
}

/* A thread raises it while this one begins to listen: it is found raised, or the listener is called. */
static void test_listener_race(void)
{
	atomic_uint heard = 0;
	const struct wakefd_listener listener = { count_call, &heard };
	struct race race = { .wake = { 0 } };
	unsigned missed = 0;
	pthread_t thread;

	wakefd_get(&race.wake);
	pthread_barrier_init(&race.barrier, NULL, 2);
	CU_ASSERT_EQUAL_FATAL(pthread_create(&thread, NULL, run_raise, &race), 0);
	for (int i = 0; i < ROUNDS; i++) {
		bool listens;

		atomic_store(&heard, 0);
		pthread_barrier_wait(&race.barrier);
		listens = wakefd_listen(&race.wake, &listener);
		pthread_barrier_wait(&race.barrier);
		missed += listens && !heard;
		wakefd_unlisten(&race.wake);
		wakefd_clear(&race.wake);
	}
	CU_ASSERT_EQUAL(pthread_join(thread, NULL), 0);
	pthread_barrier_destroy(&race.barrier);
	wakefd_close(&race.wake);
	CU_ASSERT_EQUAL(missed, 0);
}

static const struct unit_test tests[] = {
	{ "a raise before the descriptor makes one token, and leaves none behind",
	  test_raised_first },
	{ "a clear before the descriptor keeps a signal", test_cleared_first },
	{ "with raise, clear and first use at once it is readable exactly while raised",
	  test_race },
	{ "a raise calls the listener, once", test_listener },
	{ "a thread that ceases to listen waits for a call under way",
	  test_listener_is_called_late },
	{ "a raise beside a thread that begins to listen is not missed", test_listener_race },
};

UNIT_MAIN("wakefd", tests)
