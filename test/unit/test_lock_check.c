/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * The lock checks: each violation ends the process with a message that names it; correct use
 * passes.
 */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "test/unit/unit.h"
#include "util/lock.h"

static struct lock low = LOCK_INITIALIZER(1), high = LOCK_INITIALIZER(2);
static struct lock several[100], plain[2];

static void several_init(void)
{
	unsigned i;

	for (i = 0; i < 100; i++)
		lock_init(&several[i], 3 | LOCK_RANK_SEVERAL);
}

/*
 * Checks that a child returned from `run`, or was aborted with a message that contains `message`.
 */
static void child_ends(void (*run)(void), const char *message)
{
	char said[512];
	size_t length = 0;
	int fds[2], status;
	ssize_t n;
	pid_t pid;

	CU_ASSERT_FATAL(!pipe(fds));
	pid = fork();
	CU_ASSERT_FATAL(pid >= 0);
	if (!pid) {
		dup2(fds[1], STDERR_FILENO);
		run();
		_exit(0);
	}
	close(fds[1]);
	while (length < sizeof(said) - 1 &&
	       (n = read(fds[0], said + length, sizeof(said) - 1 - length)) > 0)
		length += (size_t)n;
	said[length] = '\0';
	close(fds[0]);
	CU_ASSERT_FATAL(waitpid(pid, &status, 0) == pid);
	if (message) {
		CU_ASSERT(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
		CU_ASSERT(strstr(said, message) != NULL);
	} else {
		CU_ASSERT(WIFEXITED(status) && !WEXITSTATUS(status));
		CU_ASSERT(!length);
	}
}

static void acquire_rising(void)
{
	lock_acquire(&low);
	lock_acquire(&high);
	lock_release(&low); /* in any order */
	lock_release(&high);
	lock_acquire(&low);
	lock_release(&low);
	lock_check_none("a call");
}

static void acquire_falling(void)
{
	lock_acquire(&high);
	lock_acquire(&low);
}

static void acquire_twice(void)
{
	lock_acquire(&low);
	lock_acquire(&low);
}

static void acquire_equal(void)
{
	struct lock other = LOCK_INITIALIZER(1);

	lock_acquire(&low);
	lock_acquire(&other);
}

static void acquire_several(unsigned count)
{
	unsigned i;

	several_init();
	lock_acquire(&high);
	for (i = 0; i < count; i++)
		lock_acquire(&several[i]);
	for (i = 0; i < count; i++)
		lock_release(&several[i]);
	lock_release(&high);
	lock_check_none("a call");
}

static void acquire_many(void)
{
	acquire_several(50);
}

static void acquire_too_many(void)
{
	acquire_several(100);
}

static void try_falling(void)
{
	lock_acquire(&high);
	if (!lock_try(&low) || lock_try(&high))
		_exit(1);
	lock_release(&low);
	lock_release(&high);
	lock_check_none("a call");
}

static void try_then_acquire(void)
{
	if (lock_try(&high))
		lock_acquire(&low);
}

static void release_unheld(void)
{
	lock_release(&low);
}

static void call_with_one_held(void)
{
	lock_acquire(&low);
	lock_check_none("a call");
}

static void acquire_unranked(void)
{
	lock_acquire(&high);
	lock_acquire(&plain[0]);
	lock_acquire(&plain[1]);
	lock_release(&plain[1]);
	lock_release(&plain[0]);
	lock_release(&high);
}

static void test_order(void)
{
	child_ends(acquire_rising, NULL);
	child_ends(acquire_falling, "a lock of rank 1 is acquired while one of rank 2 is held");
	child_ends(acquire_equal, "a lock of rank 1 is acquired while one of rank 1 is held");
	child_ends(acquire_twice, "acquired a second time");
	child_ends(acquire_unranked, NULL);
}

static void test_several(void)
{
	child_ends(acquire_many, NULL);
	child_ends(acquire_too_many, "holds more than");
}

static void test_try(void)
{
	child_ends(try_falling, NULL);
	child_ends(try_then_acquire, "a lock of rank 1 is acquired while one of rank 2 is held");
}

static void test_release(void)
{
	child_ends(release_unheld, "releases a lock that it does not hold");
}

static void test_calls(void)
{
	child_ends(call_with_one_held, "a call while a lock of rank 1 is held");
}

static const struct unit_test tests[] = {
	{ "locks are acquired in rising order of their ranks", test_order },
	{ "several locks of one rank may be held where the rank allows it, up to a limit",
	  test_several },
	{ "a trylock may come in any order, and its lock counts as held", test_try },
	{ "only its holder releases a lock", test_release },
	{ "no call that blocks is made while a lock is held", test_calls },
};

UNIT_MAIN("lock_check", tests)
