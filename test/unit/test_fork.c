/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* A forked child opens the adapter that its parent has open. */
#include <string.h>
#include "test/unit/process.h"
#include "test/unit/two_ends.h"

/* Connects, sends a message and disconnects, with objects of this process. */
static void work(void)
{
	connect_pair(&a, &b);
	disconnect_pair(&a, &b);
	MUST(dat_ep_reset(a.ep));
	MUST(dat_ep_reset(b.ep));
}

static void work_anew(void)
{
	setup();
	work();
	teardown();
}

static int child_run(int fd, void *arg)
{
	unsigned failures_of_parent = CU_get_number_of_failures();

	(void)fd;
	(void)arg;
	if (PROCESS_TSAN)
		return 0;
	work_anew();
	work_anew(); /* again after the last close */
	return CU_get_number_of_failures() > failures_of_parent ? 1 : 0;
}

/* While the parent's threads allocate. */
static int busy_child_run(int fd, void *arg)
{
	return PROCESS_ASAN ? 0 : child_run(fd, arg);
}

/* The parent's objects are unchanged, whatever the child does. */
static void test_child_of_a_parent_with_an_adapter(void)
{
	struct process child;

	setup();
	work();
	CU_ASSERT_FATAL(process_start(&child, child_run, NULL));
	work();
	CU_ASSERT_EQUAL(process_end(&child), 0);
	work();
	teardown();
}

static void test_child_of_a_parent_that_closed_it(void)
{
	struct process child;

	work_anew();
	CU_ASSERT_FATAL(process_start(&child, child_run, NULL));
	CU_ASSERT_EQUAL(process_end(&child), 0);
}

/* A fork while other threads of the parent open and close adapters. */
static atomic_bool stop;

static void *open_and_close(void *arg)
{
	struct env other;

	(void)arg;
	while (!atomic_load(&stop)) {
		env_open(&other);
		env_close(&other);
	}
	return NULL;
}

static void test_fork_beside_opens(void)
{
	struct process child;
	pthread_t thread;
	unsigned i;

	atomic_store(&stop, false);
	CU_ASSERT_EQUAL_FATAL(pthread_create(&thread, NULL, open_and_close, NULL), 0);
	for (i = 0; i < 10; i++) {
		CU_ASSERT_FATAL(process_start(&child, busy_child_run, NULL));
		CU_ASSERT_EQUAL(process_end(&child), 0);
	}
	atomic_store(&stop, true);
	CU_ASSERT_EQUAL(pthread_join(thread, NULL), 0);
}

static const struct unit_test tests[] = {
	{ "the child of a parent that has the adapter open can open it",
	  test_child_of_a_parent_with_an_adapter },
	{ "the child of a parent that closed the adapter can open it",
	  test_child_of_a_parent_that_closed_it },
	{ "a child that was forked while other threads open and close adapters can open one",
	  test_fork_beside_opens },
};

UNIT_MAIN("fork", tests)
