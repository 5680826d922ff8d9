/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* The lock of a folder of names: a file that exists only while a process holds the lock. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include "softverbs/link/folder_lock.h"
#include "softverbs/link/peer.h"
#include "util/clock.h"
#include "util/log.h"

/* the lock is held for microseconds, unless its owner is stopped */
#define LOCK_TIME NSEC_PER_SEC

static void lock_name(char file[static 32])
{
	snprintf(file, 32, "softverbs%d.lock", SV_LAYOUT);
}

/* True if the name still refers to the open file. */
static bool lock_is_current(int folder, int fd, const char *file)
{
	struct stat opened, named;

	return !fstat(fd, &opened) && !fstatat(folder, file, &named, AT_SYMLINK_NOFOLLOW) &&
	       opened.st_dev == named.st_dev && opened.st_ino == named.st_ino;
}

/* Returns 0 if locked, EAGAIN if another process has the lock, else errno. */
static int lock_attempt(int folder, const char *file, int *lock)
{
	int error;

	*lock = openat(folder, file, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (*lock < 0)
		return errno;
	error = flock(*lock, LOCK_EX | LOCK_NB) ? errno : 0;
	if (!error && !lock_is_current(folder, *lock, file))
		error = EAGAIN; /* the last owner removed the file */
	return error == EINTR ? EAGAIN : error;
}

static void lock_break(int folder, int lock, const char *file)
{
	if (!lock_is_current(folder, lock, file))
		return;
	log_at(LOG_WARN, "softverbs: SOFTVERBS_DIR: the owner of %s is stopped; it is replaced",
	       file);
	unlinkat(folder, file, 0);
}

int sv_folder_lock(int folder)
{
	static const struct timespec pause = { .tv_nsec = 200000 };
	uint64_t deadline = clock_now() + LOCK_TIME;
	int lock, error;
	char file[32];

	lock_name(file);
	while ((error = lock_attempt(folder, file, &lock))) {
		if (error == EAGAIN && clock_now() > deadline) {
			lock_break(folder, lock, file);
			deadline = clock_now() + LOCK_TIME;
		}
		if (lock >= 0)
			close(lock);
		if (error != EAGAIN) {
			errno = error;
			return -1;
		}
		nanosleep(&pause, NULL);
	}
	return lock;
}

void sv_folder_unlock(int folder, int lock)
{
	int error = errno;
	char file[32];

	lock_name(file);
	if (lock_is_current(folder, lock, file))
		unlinkat(folder, file, 0);
	close(lock);
	errno = error;
}

void sv_folder_lock_clean(int folder)
{
	struct stat stat;
	char file[32];
	int lock;

	lock_name(file);
	if (fstatat(folder, file, &stat, AT_SYMLINK_NOFOLLOW))
		return;
	if (!lock_attempt(folder, file, &lock))
		sv_folder_unlock(folder, lock);
	else if (lock >= 0)
		close(lock);
}
