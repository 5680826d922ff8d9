/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * Opening the device under resource limits that are too low: errno names the cause, and nothing is
 * left behind.
 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <rdma/rdma_cma.h>
#include <infiniband/verbs.h>
#include "test/unit/linked.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#else
#define SANITIZED 0
#endif

struct limit {
	int which;
	rlim_t value;
	int expected; /* errno */
};

static int open_error(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *context = list ? ibv_open_device(list[0]) : NULL;
	int error = context ? 0 : errno;

	if (context)
		ibv_close_device(context);
	if (list)
		ibv_free_device_list(list);
	return error;
}

static int channel_error(void)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	int error = channel ? 0 : errno;

	if (channel)
		rdma_destroy_event_channel(channel);
	return error;
}

/* Fails each time in the same way, and succeeds once the limit is restored. */
static int open_under_limit(int fd, void *arg)
{
	const struct limit *limit = arg;
	struct rlimit before, low;
	unsigned fds;
	int i;

	(void)fd;
	/* limits on processes do not apply to the superuser */
	if (limit->which == RLIMIT_NPROC && !geteuid() && setuid(12345))
		return 1;
	if (open_error() || getrlimit(limit->which, &before))
		return 2;
	/* the limit also applies to a log file */
	if (limit->which == RLIMIT_FSIZE && dup2(open("/dev/null", O_WRONLY), 2) != 2)
		return 3;
	fds = unit_entries("/proc/self/fd");
	low = before;
	low.rlim_cur = limit->value;
	if (setrlimit(limit->which, &low))
		return 3;
	for (i = 0; i < 3; i++)
		if (open_error() != limit->expected || channel_error() != limit->expected)
			return 4;
	if (setrlimit(limit->which, &before) || unit_entries("/proc/self/fd") != fds)
		return 5;
	return open_error() || channel_error() ? 6 : 0;
}

static void assert_fails(int which, rlim_t value, int expected)
{
	struct limit limit = { which, value, expected };
	struct process process;

	CU_ASSERT_FATAL(process_start(&process, open_under_limit, &limit));
	CU_ASSERT_EQUAL(process_end(&process), 0);
}

static void no_room_for_files(void)
{
	assert_fails(RLIMIT_FSIZE, 0, EFBIG);
	assert_fails(RLIMIT_FSIZE, 1 << 20, EFBIG);
}

static void no_room_for_threads(void)
{
	if (!PROCESS_TSAN)
		assert_fails(RLIMIT_NPROC, 0, EAGAIN);
}

static uint64_t address_space(void)
{
	FILE *file = fopen("/proc/self/statm", "r");
	unsigned long pages = 0;

	if (file) {
		if (fscanf(file, "%lu", &pages) != 1)
			pages = 0;
		fclose(file);
	}
	return (uint64_t)pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

/* Address space for one area but not for all three, and for less than one. */
static void no_room_for_areas(void)
{
	uint64_t used = address_space();

	if (SANITIZED)
		return; /* the sanitizers reserve address space of their own */
	assert_fails(RLIMIT_AS, used + (40u << 20), ENOMEM);
	assert_fails(RLIMIT_AS, used + (20u << 20), ENOMEM);
}

static const struct unit_test tests[] = {
	{ "opening with a limit of file size: EFBIG and no signal", no_room_for_files },
	{ "opening with a limit of threads: EAGAIN", no_room_for_threads },
	{ "opening with a limit of address space: ENOMEM", no_room_for_areas },
};

UNIT_MAIN("test_softverbs_limits", tests)
