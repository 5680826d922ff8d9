/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Checks of descriptors that another process passed. */
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <linux/magic.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>
#include "softverbs/base/foreign.h"
#include "softverbs/base/log_from.h"

#define NO_USER_ADDRESS ((off_t)0x7ffffffffffff000) /* no mapping is possible there */
/* limit of threads that block in close(2); further such descriptors stay open */
#define CLOSERS_MAX 16u

/* The size of a memfd with all these seals; -1 if it is none. */
static int64_t memfd_size(int fd, int need)
{
	int seals = fcntl(fd, F_GET_SEALS);
	struct statfs fs;
	struct stat st;

	/* only memory files have seals; huge pages may be unavailable at the first access */
	return seals >= 0 && (seals & need) == need && !fstatfs(fd, &fs) &&
			       fs.f_type == TMPFS_MAGIC && !fstat(fd, &st)
		       ? st.st_size
		       : -1;
}

bool sv_foreign_is_memfd(int fd, uint64_t size)
{
	int64_t found = memfd_size(fd, F_SEAL_SHRINK | F_SEAL_GROW);

	return found >= 0 && (uint64_t)found == size;
}

bool sv_foreign_is_file(int fd, uint64_t size)
{
	int64_t found = memfd_size(fd, 0);

	return found >= 0 && (uint64_t)found >= size;
}

bool sv_foreign_is_whole(int fd, uint64_t size)
{
	int64_t found = memfd_size(fd, F_SEAL_SHRINK);

	return found >= 0 && (uint64_t)found >= size;
}

/* True if the file is in /proc. The kernel returns the block size of the file system without a call into it,
 * and a user-space server cannot choose that of /proc. */
static bool is_in_proc(int fd)
{
	int own = open("/proc/self/mem", O_RDONLY | O_CLOEXEC), size = 0, own_size = 0;
	struct statfs fs;
	bool is;

	if (own < 0)
		return false;
	is = !ioctl(own, FIGETBSZ, &own_size) && !ioctl(fd, FIGETBSZ, &size) && own_size == size &&
	     !fstatfs(fd, &fs) && fs.f_type == PROC_SUPER_MAGIC;
	close(own);
	return is;
}

/* Without a mapping at the address, the memory of a living process returns EIO; that of an ended process, or
 * another file, returns 0. */
bool sv_foreign_is_memory(int fd)
{
	int flags = fcntl(fd, F_GETFL);
	char byte;

	return flags >= 0 && (flags & O_ACCMODE) == O_RDWR && is_in_proc(fd) &&
	       pread(fd, &byte, 1, NO_USER_ADDRESS) < 0 && errno == EIO;
}

/* An object of the kernel without a file system has a name that is no path. */
static bool has_name(int fd, const char *prefix)
{
	char path[32], target[16] = "";

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return readlink(path, target, sizeof(target) - 1) > 0 &&
	       !strncmp(target, prefix, strlen(prefix));
}

bool sv_foreign_is_pipe(int fd)
{
	return has_name(fd, "pipe:[");
}

/* ---- close ---- */

static bool closes_at_once(int fd)
{
	return fcntl(fd, F_GET_SEALS) >= 0 || has_name(fd, "pipe:[") || has_name(fd, "socket:[") ||
	       has_name(fd, "anon_inode:");
}

static atomic_uint closers;

static void *closer_run(void *arg)
{
	close((int)(intptr_t)arg);
	atomic_fetch_sub(&closers, 1);
	return NULL;
}

static void close_elsewhere(int fd)
{
	pthread_attr_t attr;
	pthread_t thread;
	int error = EAGAIN;

	if (atomic_fetch_add(&closers, 1) < CLOSERS_MAX) {
		pthread_attr_init(&attr);
		pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
		error = pthread_create(&thread, &attr, closer_run, (void *)(intptr_t)fd);
		pthread_attr_destroy(&attr);
	}
	if (!error)
		return;
	atomic_fetch_sub(&closers, 1);
	sv_log_from(sv_source_process(0), LOG_ERROR,
		    "softverbs: descriptor %d from a peer cannot be closed: %s", fd,
		    strerror(error));
}

void sv_foreign_close(int *fds, unsigned count)
{
	unsigned i;

	for (i = 0; i < count; i++) {
		if (fds[i] >= 0 && closes_at_once(fds[i]))
			close(fds[i]);
		else if (fds[i] >= 0)
			close_elsewhere(fds[i]);
		fds[i] = -1;
	}
}
