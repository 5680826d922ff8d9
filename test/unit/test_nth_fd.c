/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Creation with too many open files: no descriptor is left, then one, then two. */
#include <fcntl.h>
#include <sys/resource.h>
#include "test/unit/nth_steps.h"

static struct rlimit usual;

static bool is_open(int fd)
{
	return fcntl(fd, F_GETFD) >= 0;
}

/* Sets a limit that leaves n - 1 free descriptors. */
static void arm(unsigned n)
{
	struct rlimit limit = usual;
	int fd;

	for (fd = 0; n > 1 || is_open(fd); fd++)
		n -= !is_open(fd);
	limit.rlim_cur = (rlim_t)fd;
	MUST(setrlimit(RLIMIT_NOFILE, &limit));
}

/* A call that succeeds may have used the last one. */
static bool disarm(DAT_RETURN status)
{
	MUST(setrlimit(RLIMIT_NOFILE, &usual));
	return status != DAT_SUCCESS;
}

static void test_all(void)
{
	MUST(getrlimit(RLIMIT_NOFILE, &usual));
	nth_warm = true;
	nth_run_all(arm, disarm, 20);
}

static const struct unit_test tests[] = {
	{ "a failure to open a descriptor is reported and leaves nothing behind", test_all },
};

UNIT_MAIN("nth_fd", tests)
