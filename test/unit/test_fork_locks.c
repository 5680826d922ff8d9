/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * A fork while another thread holds a lock: the child does not have that thread, which would release it. So each mutex of
 * the program that is no object's is either held over the fork or made anew in the child. Here a thread stops once with each
 * such mutex held, whichever thread that is, and the program forks.
 */
#include <semaphore.h>
#include "dapl/udapl/mem/mem.h"
#include "softverbs/base/log_from.h"
#include "test/unit/nth_steps.h"
#include "test/unit/process.h"

#define MUTEXES 64 /* limit of those that are no object's */

#pragma GCC visibility push(default)
int __real_pthread_mutex_lock(pthread_mutex_t *mutex);
int __wrap_pthread_mutex_lock(pthread_mutex_t *mutex);
#pragma GCC visibility pop

extern char __executable_start, __data_start, _end;

static struct {
	atomic_bool armed;   /* the next thread that acquires a mutex not seen before stops */
	atomic_bool goes_on; /* the stopped thread was told to */
	sem_t stops, told;   /* a thread has stopped, or all calls are made; it may go on */
	atomic_bool stopped;
	pthread_mutex_t *seen[MUTEXES];
	unsigned count;
	const char *place; /* of the call that acquired the last */
} holder;

static _Thread_local bool forks; /* this thread never stops, and waits for no stopped one */

static bool is_no_objects(const pthread_mutex_t *mutex)
{
	return (const char *)mutex >= &__data_start && (const char *)mutex < &_end;
}

static bool is_new(pthread_mutex_t *mutex)
{
	for (unsigned i = 0; i < holder.count; i++)
		if (holder.seen[i] == mutex)
			return false;
	if (holder.count == MUTEXES)
		return false;
	holder.seen[holder.count++] = mutex;
	return true;
}

static void go_on(void)
{
	if (!atomic_exchange(&holder.goes_on, true))
		sem_post(&holder.told);
}

/* If the stopped thread has this mutex or another that its holder waits for, the fork waits for it: it goes on. */
static int lock_beside_holder(pthread_mutex_t *mutex)
{
	struct timespec deadline;

	clock_gettime(CLOCK_MONOTONIC, &deadline);
	deadline.tv_sec++;
	if (mutex == holder.seen[holder.count - 1])
		go_on();
	else if (!pthread_mutex_clocklock(mutex, CLOCK_MONOTONIC, &deadline))
		return 0;
	go_on();
	return __real_pthread_mutex_lock(mutex);
}

int __wrap_pthread_mutex_lock(pthread_mutex_t *mutex)
{
	int error;

	if (forks)
		return lock_beside_holder(mutex);
	error = __real_pthread_mutex_lock(mutex);
	if (error || !is_no_objects(mutex) || !atomic_exchange(&holder.armed, false))
		return error;
	if (!is_new(mutex)) {
		atomic_store(&holder.armed, true);
		return 0;
	}
	holder.place = __builtin_return_address(0);
	atomic_store(&holder.stopped, true);
	sem_post(&holder.stops);
	while (sem_wait(&holder.told))
		;
	return 0;
}

/* A child holds a qualifier that its parent has just given back until it has closed its copy of the socket. */
static DAT_RETURN attempt(const struct nth_step *step, struct nth_scene *scene)
{
	DAT_RETURN status;

	do
		status = step->attempt(scene);
	while (DAT_GET_TYPE(status) == DAT_CONN_QUAL_IN_USE && ++scene->qual < 65536);
	return status;
}

/* Acquires every lock that is no object's. */
static void make_calls(void)
{
	DAT_UINT64 counters[DCNT_IA_ALL_COUNTERS];
	struct nth_scene scene;

	nth_scene_open(&scene);
	for (size_t i = 0; i < COUNT(nth_steps); i++) {
		OK(attempt(&nth_steps[i], &scene));
		nth_steps[i].undo(&scene);
	}
	nth_connect_once(&scene);
	nth_srq_open(&scene, NTH_SMALL);
	OK(nth_srq_larger.attempt(&scene));
	nth_srq_close(&scene);
	OK(dat_ib_query_counters(scene.ia, DCNT_IA_ALL_COUNTERS, counters, 0));
	OK(dat_ib_start_counter(scene.ia, DCNT_IA_LNK));
	OK(dat_ib_stop_counter(scene.ia, DCNT_IA_LNK));
	nth_scene_close(&scene);
	sv_log_admits(sv_source_process(getpid()));
}

static void *caller_run(void *arg)
{
	make_calls();
	atomic_store(&holder.armed, false);
	sem_post(&holder.stops);
	return arg;
}

static int child_run(int fd, void *arg)
{
	unsigned failures = CU_get_number_of_failures();

	(void)fd;
	(void)arg;
	forks = false;
	make_calls();
	return CU_get_number_of_failures() > failures ? 1 : 0;
}

/* Returns false after the last mutex. */
static bool fork_at_next_mutex(void)
{
	struct process child;
	pthread_t caller;
	bool stopped;
	int status;

	sem_init(&holder.stops, 0, 0);
	sem_init(&holder.told, 0, 0);
	atomic_store(&holder.stopped, false);
	atomic_store(&holder.goes_on, false);
	atomic_store(&holder.armed, true);
	CU_ASSERT_EQUAL_FATAL(pthread_create(&caller, NULL, caller_run, NULL), 0);
	while (sem_wait(&holder.stops))
		;
	stopped = atomic_load(&holder.stopped);
	if (stopped) {
		CU_ASSERT_FATAL(process_start(&child, child_run, NULL));
		status = process_end(&child);
		if (status)
			printf("child %d: a mutex was held since address %#tx of the program\n",
			       status, holder.place - &__executable_start);
		CU_ASSERT_EQUAL(status, 0);
		go_on();
	}
	CU_ASSERT(unit_join(caller));
	return stopped;
}

static void test_each_mutex(void)
{
	nth_announce();
	forks = true;
	while (fork_at_next_mutex())
		;
	printf("%u mutexes\n", holder.count);
	CU_ASSERT(holder.count >= 10 && holder.count < MUTEXES);
}

/* The one short lock that is no object's. */
static void *hold_short_lock(void *arg)
{
	lock_acquire(&rmr_lock);
	sem_post(&holder.stops);
	while (sem_wait(&holder.told))
		;
	lock_release(&rmr_lock);
	return arg;
}

static void test_short_lock(void)
{
	struct process child;
	pthread_t thread;

	nth_announce();
	sem_init(&holder.stops, 0, 0);
	sem_init(&holder.told, 0, 0);
	CU_ASSERT_EQUAL_FATAL(pthread_create(&thread, NULL, hold_short_lock, NULL), 0);
	while (sem_wait(&holder.stops))
		;
	CU_ASSERT_FATAL(process_start(&child, child_run, NULL));
	CU_ASSERT_EQUAL(process_end(&child), 0);
	sem_post(&holder.told);
	CU_ASSERT(unit_join(thread));
}

static const struct unit_test tests[] = {
	{ "a child that was forked while a thread held any mutex can do everything",
	  test_each_mutex },
	{ "so can one that was forked with the lock of all RMRs held", test_short_lock },
};

UNIT_MAIN_UNLESS(PROCESS_TSAN, "a child of several threads cannot start threads", "fork_locks",
		 tests)
