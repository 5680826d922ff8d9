/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* The bias of locks: to which threads, its end, and that never two threads hold a lock. */
#include <linux/membarrier.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include "test/unit/system_call.h"
#include "test/unit/unit.h"
#include "util/clock.h"
#include "util/lock.h"

#define OFTEN	 100000u /* acquisitions, with any number of revocations before enough for a bias */
#define STRESSED 4	 /* threads */
#define DEADLINE (20 * NSEC_PER_SEC)

static struct lock lock;
static unsigned count;	   /* guarded by `lock` */
static atomic_bool denied; /* membarrier fails */
static atomic_uint fenced; /* calls of it */

static atomic_uint yields, sleeps; /* of waiters */
static _Atomic uint64_t yield_takes;

static long system_call(long number, const long *argument)
{
	if (number == SYS_nanosleep)
		sleeps++;
	if (number == SYS_membarrier && (int)argument[0] == MEMBARRIER_CMD_PRIVATE_EXPEDITED)
		fenced++;
	if (number == SYS_membarrier && denied)
		return system_call_fails(EPERM);
	return system_call_made(number, argument);
}

int __real_sched_yield(void);
int __wrap_sched_yield(void);
int __wrap_sched_yield(void)
{
	uint64_t end = clock_now() + yield_takes;

	yields++;
	while (yield_takes && clock_now() < end)
		;
	return __real_sched_yield();
}

static void fresh(void)
{
	lock = (struct lock)LOCK_INITIALIZER(1);
	count = 0;
	fenced = 0;
	denied = false;
	lock_bias_open();
}

static bool is_biased(void)
{
	return atomic_load(&lock.bias) == lock_thread_self();
}

static void *work(void *times)
{
	for (unsigned i = 0; i < *(unsigned *)times; i++) {
		lock_acquire(&lock);
		count++;
		lock_release(&lock);
	}
	return NULL;
}

static void work_elsewhere(unsigned times)
{
	pthread_t thread;

	CU_ASSERT_FATAL(!pthread_create(&thread, NULL, work, &times));
	pthread_join(thread, NULL);
}

static void work_here(unsigned times)
{
	work(&times);
}

static void to_the_only_thread(void)
{
	fresh();
	work_here(10);
	CU_ASSERT(!is_biased());
	work_here(OFTEN);
	CU_ASSERT(is_biased());
	CU_ASSERT(count == OFTEN + 10);
	CU_ASSERT(lock_try(&lock));
	lock_release(&lock);
	CU_ASSERT(!fenced);
}

static void ends_with_another_thread(void)
{
	fresh();
	work_here(OFTEN);
	work_elsewhere(1);
	CU_ASSERT(!is_biased());
	CU_ASSERT(fenced == 1);
	work_here(1);
	CU_ASSERT(count == OFTEN + 2);
	work_here(OFTEN);
	CU_ASSERT(is_biased());
}

/* Revocations cost, so each of them makes the next bias later. */
static void later_each_time(void)
{
	unsigned before = 0, times;

	fresh();
	for (unsigned round = 0; round < 4; round++) {
		for (times = 0; !is_biased() && times < OFTEN; times++)
			work_here(1);
		CU_ASSERT(is_biased() && times > before);
		before = times;
		work_elsewhere(1);
	}
	CU_ASSERT(fenced == 4);
}

static void *two_threads_more(void *unused)
{
	work_here(OFTEN);
	CU_ASSERT(is_biased());
	work_elsewhere(OFTEN);
	CU_ASSERT(!is_biased());
	return unused;
}

/* This thread, which sets up; one that works; then a third, while the second one still runs. */
static void to_two_threads_at_most(void)
{
	pthread_t thread;

	fresh();
	work_here(OFTEN);
	CU_ASSERT_FATAL(!pthread_create(&thread, NULL, two_threads_more, NULL));
	pthread_join(thread, NULL);
	CU_ASSERT(count == 3 * OFTEN);
	CU_ASSERT(!atomic_load(&lock.bias));
	work_here(OFTEN);
	CU_ASSERT(is_biased());
}

/* ---- while its thread holds it ---- */

static bool tried;

static void *try_once(void *unused)
{
	tried = lock_try(&lock);
	if (tried)
		lock_release(&lock);
	return unused;
}

static void try_elsewhere(void)
{
	pthread_t thread;

	CU_ASSERT_FATAL(!pthread_create(&thread, NULL, try_once, NULL));
	pthread_join(thread, NULL);
}

static void tries_fail_while_it_is_held(void)
{
	fresh();
	work_here(OFTEN);
	lock_acquire(&lock);
	CU_ASSERT(is_biased());
	try_elsewhere();
	CU_ASSERT(!tried);
	try_elsewhere();
	CU_ASSERT(!tried);
	lock_release(&lock);
	try_elsewhere();
	CU_ASSERT(tried);
	CU_ASSERT(fenced == 1);
}

/* `after_try`: a try has ended the bias before. */
static void others_wait(bool after_try)
{
	uint64_t deadline = clock_now() + DEADLINE;
	unsigned once = 1;
	pthread_t thread;

	fresh();
	work_here(OFTEN);
	lock_acquire(&lock);
	if (after_try)
		try_elsewhere();
	CU_ASSERT_FATAL(!pthread_create(&thread, NULL, work, &once));
	while (!atomic_load(&lock.waiters) && clock_now() < deadline)
		sched_yield();
	CU_ASSERT(atomic_load(&lock.waiters) == 1);
	CU_ASSERT(count == OFTEN);
	while (count == OFTEN && clock_now() < deadline)
		lock_cede(&lock); /* the waiter acquires it in between */
	CU_ASSERT(count == OFTEN + 1);
	lock_release(&lock);
	pthread_join(thread, NULL);
	CU_ASSERT(count == OFTEN + 1);
}

static void acquisitions_wait_while_it_is_held(void)
{
	others_wait(false);
}

static void acquisitions_wait_after_a_try(void)
{
	others_wait(true);
}

/* Cancels the waiter, and releases the lock, when the waiter has left the processor often enough. */
static void waiter_release(bool (*often_enough)(void))
{
	uint64_t deadline = clock_now() + DEADLINE;
	unsigned once = 1;
	pthread_t thread;

	lock_acquire(&lock);
	yields = sleeps = 0;
	CU_ASSERT_FATAL(!pthread_create(&thread, NULL, work, &once));
	while (!often_enough() && clock_now() < deadline)
		__real_sched_yield();
	pthread_cancel(thread);
	lock_release(&lock);
	pthread_join(thread, NULL);
}

static bool five_yields(void)
{
	return yields >= 5;
}

static bool five_sleeps(void)
{
	return sleeps >= 5;
}

/* A thread that gets the processor and does not yield it runs for milliseconds, whether it holds the lock or not. */
static void waiters_sleep_after_a_long_yield(void)
{
	fresh();
	yield_takes = 0;
	waiter_release(five_yields);
	CU_ASSERT(yields >= 5);
	yield_takes = 2 * NSEC_PER_MSEC;
	waiter_release(five_sleeps);
	CU_ASSERT(sleeps >= 5 && yields <= 1 + sleeps / 100);
	yield_takes = 0;
	CU_ASSERT(count == 2);
}

/* ---- without membarrier ---- */

static void goes_on_when_barriers_are_forbidden(void)
{
	fresh();
	work_here(OFTEN);
	denied = true;
	lock_acquire(&lock);
	try_elsewhere();
	CU_ASSERT(!tried);
	lock_release(&lock);
	work_elsewhere(OFTEN);
	work_here(OFTEN);
	CU_ASSERT(!is_biased());
	CU_ASSERT(count == 3 * OFTEN);
	lock_bias_open();
	work_here(OFTEN);
	CU_ASSERT(!is_biased());
}

/* ---- many threads ---- */

static unsigned left, right; /* guarded by `lock`; equal */
static atomic_bool over, broken;

static void *stress(void *seed)
{
	unsigned n = (unsigned)(uintptr_t)seed, done = 0;

	while (!atomic_load_explicit(&over, memory_order_relaxed)) {
		n = n * 1103515245 + 12345;
		for (unsigned run = n >> 16 & 1023; run; run--) {
			if (n & 0x8000 && !lock_try(&lock))
				continue;
			if (!(n & 0x8000))
				lock_acquire(&lock);
			if (left != right)
				broken = true;
			left++;
			done++;
			__asm__ volatile("" ::: "memory");
			right++;
			lock_release(&lock);
		}
	}
	return (void *)(uintptr_t)done;
}

static void one_thread_at_a_time(void)
{
	uint64_t end = clock_now() + 2 * NSEC_PER_SEC;
	unsigned done = 0, biased = 0, runs = 0;
	pthread_t threads[STRESSED];
	void *each;

	fresh();
	left = right = 0;
	for (; clock_now() < end; runs++) {
		uint64_t until = clock_now() + 100 * NSEC_PER_MSEC;
		unsigned many = 1 + runs % STRESSED;

		lock = (struct lock)LOCK_INITIALIZER(1);
		for (unsigned i = 0; i < many; i++)
			CU_ASSERT_FATAL(!pthread_create(&threads[i], NULL, stress,
							(void *)(uintptr_t)(runs * 31 + i + 1)));
		while (clock_now() < until) {
			biased += atomic_load(&lock.bias) > 1;
			sched_yield();
		}
		over = true;
		for (unsigned i = 0; i < many; i++) {
			pthread_join(threads[i], &each);
			done += (unsigned)(uintptr_t)each;
		}
		CU_ASSERT_FATAL(!broken && left == right && done == left);
		over = false;
	}
	CU_ASSERT(biased > 0);
}

static const struct unit_test tests[] = {
	{ "a lock is biased to the only thread that acquires it", to_the_only_thread },
	{ "another thread ends the bias", ends_with_another_thread },
	{ "each end of a bias makes the next one later", later_each_time },
	{ "a lock is biased to two threads at most", to_two_threads_at_most },
	{ "tries of others fail while its thread holds it", tries_fail_while_it_is_held },
	{ "others wait while its thread holds it", acquisitions_wait_while_it_is_held },
	{ "others wait after a try that has ended the bias", acquisitions_wait_after_a_try },
	{ "a waiter sleeps after a yield that took long", waiters_sleep_after_a_long_yield },
	{ "locks stay correct when membarrier is forbidden later",
	  goes_on_when_barriers_are_forbidden },
	{ "one thread at a time holds a lock", one_thread_at_a_time },
};

static bool has_no_bias(void)
{
	long commands = __real_syscall(SYS_membarrier, MEMBARRIER_CMD_QUERY, 0, 0);

	return !LOCK_BIASED || commands < 0 || !(commands & MEMBARRIER_CMD_PRIVATE_EXPEDITED);
}

UNIT_MAIN_UNLESS(has_no_bias(), "no lock is biased here", "lock_bias", tests)
