/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Write protection by userfaultfd(2), which needs no privilege: a thread that stores waits until the descriptor is closed. */
#include <errno.h>
#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "softverbs/object/pool_guard.h"
#include "softverbs/base/kernel.h"
#include "softverbs/base/os.h"

#define OWN_THREADS 2u /* the one that waits, and the engine */

/* A folder has a link for each folder in it, beside its own two. */
static bool has_other_threads(void)
{
	struct stat st;

	return stat("/proc/self/task", &st) || st.st_nlink > 2 + OWN_THREADS;
}

static int protect(int fd, uint64_t begin, uint64_t end, bool shared)
{
	struct uffdio_api api = {
		.api = UFFD_API,
		.features = UFFD_FEATURE_PAGEFAULT_FLAG_WP |
			    (shared ? UFFD_FEATURE_WP_HUGETLBFS_SHMEM : 0),
	};
	struct uffdio_register range = {
		.range = { .start = begin, .len = end - begin },
		.mode = UFFDIO_REGISTER_MODE_WP,
	};
	struct uffdio_writeprotect on = {
		.range = range.range,
		.mode = UFFDIO_WRITEPROTECT_MODE_WP,
	};
	int error;

	if (ioctl(fd, UFFDIO_API, &api))
		return errno;
	/* a page that is not present would not be protected */
	error = sv_os_populate(begin, end, true);
	if (error)
		return error;
	return ioctl(fd, UFFDIO_REGISTER, &range) || ioctl(fd, UFFDIO_WRITEPROTECT, &on) ? errno
											 : 0;
}

int sv_pool_guard_begin(struct pool_guard *guard, uint64_t begin, uint64_t end, bool shared)
{
	int error;

	guard->fd = -1;
	if (!has_other_threads())
		return 0;
	guard->fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK | UFFD_USER_MODE_ONLY);
	if (guard->fd < 0)
		return errno;
	error = protect(guard->fd, begin, end, shared);
	if (error)
		sv_pool_guard_end(guard);
	return error;
}

void sv_pool_guard_end(struct pool_guard *guard)
{
	if (guard->fd >= 0)
		close(guard->fd);
	guard->fd = -1;
}
