/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * Opening an IA with too few threads or too little address space: the error names the limit of the
 * process.
 */
#include <sys/mman.h>
#include "test/unit/nth_steps.h"

static atomic_bool threads, mappings; /* which calls may fail */

int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*run)(void *),
			  void *arg);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*run)(void *),
			  void *arg);
void *__real_mmap(void *address, size_t length, int protection, int flags, int fd, off_t offset);
void *__wrap_mmap(void *address, size_t length, int protection, int flags, int fd, off_t offset);

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*run)(void *),
			  void *arg)
{
	if (atomic_load(&threads) && nth_fails())
		return EAGAIN; /* as for RLIMIT_NPROC and pids.max */
	return __real_pthread_create(thread, attr, run, arg);
}

void *__wrap_mmap(void *address, size_t length, int protection, int flags, int fd, off_t offset)
{
	if (atomic_load(&mappings) && nth_fails()) {
		errno = ENOMEM; /* as for RLIMIT_AS and max_map_count */
		return MAP_FAILED;
	}
	return __real_mmap(address, length, protection, flags, fd, offset);
}

static void arm(unsigned n)
{
	atomic_store(&nth_fired, 0);
	atomic_store(&nth_left, n);
}

static bool disarm(DAT_RETURN status)
{
	(void)status;
	atomic_store(&nth_left, -1);
	return atomic_load(&nth_fired);
}

/* Makes each counted call fail alone; at least `least` calls must be counted. */
static void open_each(atomic_bool *counted, unsigned least)
{
	struct nth_scene scene = { .ia = DAT_HANDLE_NULL };
	size_t i;

	nth_announce();
	atomic_store(counted, true);
	for (i = 0; i < COUNT(nth_open_steps); i++)
		CU_ASSERT_TRUE(nth_run(&nth_open_steps[i], &scene, arm, disarm) >= least);
	atomic_store(counted, false);
}

/* The threads are the device's event thread and the software device's engine. */
static void test_threads(void)
{
	open_each(&threads, 2);
}

static void test_address_space(void)
{
	open_each(&mappings, 1);
}

static const struct unit_test tests[] = {
	{ "a thread that cannot be created is reported as that limit", test_threads },
	{ "a mapping that cannot be made is reported as that limit", test_address_space },
};

UNIT_MAIN("nth_limit", tests)
