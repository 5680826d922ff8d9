/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * Names as sockets in a folder. A name is bound, and a stale one removed, under the lock: between its making
 * and its binding a socket looks as if its process were gone.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/queue.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include "softverbs/identity.h"
#include "softverbs/name_folder.h"
#include "softverbs/peer.h"
#include "util/clock.h"
#include "util/log.h"

#define LOCK_TIME NSEC_PER_SEC /* it is held for microseconds, unless its holder is stopped */

#define FILE_SIZE sizeof(((struct sockaddr_un *)0)->sun_path)

struct mine { /* a name of this process, to be removed at its end at the latest */
	LIST_ENTRY(mine) entry;
	int fd;
	char file[FILE_SIZE];
};

static int folder = -1; /* while the runtime is open */

static pthread_mutex_t mine_lock = PTHREAD_MUTEX_INITIALIZER; /* innermost */
static LIST_HEAD(, mine) mine = LIST_HEAD_INITIALIZER(mine);

bool folder_is_open(void)
{
	return folder >= 0;
}

/* ---- files ---- */

/* The layout keeps processes apart that would not understand each other. */
static int file_name(char file[static FILE_SIZE], const char *name)
{
	int length = snprintf(file, FILE_SIZE, "softverbs%d,%s", SV_LAYOUT, name);

	if (length >= (int)FILE_SIZE) {
		errno = ENAMETOOLONG;
		return -1;
	}
	for (char *slash = file; (slash = strchr(slash, '/'));)
		*slash = ',';
	return 0;
}

/* By the descriptor: short, however long the folder's own path is. */
static socklen_t file_address(struct sockaddr_un *address, const char *file)
{
	int length;

	memset(address, 0, sizeof(*address));
	address->sun_family = AF_UNIX;
	length = snprintf(address->sun_path, sizeof(address->sun_path), "/proc/self/fd/%d/%s",
			  folder, file);
	if (length >= (int)sizeof(address->sun_path)) {
		errno = ENAMETOOLONG;
		return 0;
	}
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)length);
}

socklen_t folder_address(struct sockaddr_un *address, const char *name)
{
	char file[FILE_SIZE];

	return file_name(file, name) ? 0 : file_address(address, file);
}

/*
 * A process holds the name, listening or not: then a socket of another type is told so (EPROTOTYPE), and asks
 * for no connection.
 */
static bool file_is_stale(const char *file)
{
	struct sockaddr_un address;
	socklen_t size = file_address(&address, file);
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct stat stat;
	bool stale;

	stale = fd >= 0 && size && connect(fd, (struct sockaddr *)&address, size) &&
		errno == ECONNREFUSED && !fstatat(folder, file, &stat, AT_SYMLINK_NOFOLLOW) &&
		S_ISSOCK(stat.st_mode);
	if (fd >= 0)
		close(fd);
	return stale;
}

/* ---- the lock ---- */

static void lock_name(char file[static 32])
{
	snprintf(file, 32, "softverbs%d.lock", SV_LAYOUT);
}

/* Who had the lock before may have removed the file that was opened here. */
static bool lock_is_current(int fd, const char *file)
{
	struct stat opened, named;

	return !fstat(fd, &opened) && !fstatat(folder, file, &named, AT_SYMLINK_NOFOLLOW) &&
	       opened.st_dev == named.st_dev && opened.st_ino == named.st_ino;
}

static int lock_take_folder(void)
{
	static const struct timespec nap = { .tv_nsec = 200000 };
	uint64_t deadline = clock_now() + LOCK_TIME;
	char file[32];
	int fd, error;

	lock_name(file);
	for (;;) {
		fd = openat(folder, file, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
		if (fd < 0)
			return -1;
		error = flock(fd, LOCK_EX | LOCK_NB) ? errno : 0;
		if (!error && lock_is_current(fd, file))
			return fd;
		close(fd);
		if (error && error != EWOULDBLOCK && error != EINTR) {
			errno = error;
			return -1;
		}
		if (clock_now() > deadline) {
			log_at(LOG_ERROR, "softverbs: SOFTVERBS_DIR: the lock is not given back");
			errno = EBUSY;
			return -1;
		}
		nanosleep(&nap, NULL);
	}
}

static void lock_give_folder(int fd)
{
	char file[32];
	int error = errno;

	lock_name(file);
	unlinkat(folder, file, 0);
	close(fd);
	errno = error;
}

/* ---- names ---- */

static void file_remove_stale(const char *file)
{
	int lock = lock_take_folder();

	if (lock < 0)
		return;
	if (file_is_stale(file)) {
		log_at(LOG_NOTE, "softverbs: %s: its process is gone", file);
		unlinkat(folder, file, 0);
	}
	lock_give_folder(lock);
}

static int file_bind(int fd, const char *file)
{
	struct sockaddr_un address;
	socklen_t size = file_address(&address, file);

	if (!size || bind(fd, (struct sockaddr *)&address, size))
		return -1;
	/* made with the process's umask; its owner alone may connect */
	if (!fchmodat(folder, file, 0600, 0))
		return 0;
	unlinkat(folder, file, 0);
	return -1;
}

static int file_claim_locked(int fd, const char *file)
{
	if (!file_bind(fd, file))
		return 0;
	if (errno != EADDRINUSE)
		return -1;
	if (!file_is_stale(file)) {
		errno = EADDRINUSE;
		return -1;
	}
	unlinkat(folder, file, 0);
	return file_bind(fd, file);
}

int folder_bind(int fd, const char *name)
{
	struct mine *entry = calloc(1, sizeof(*entry));
	int lock = -1;

	if (!entry || file_name(entry->file, name) || (lock = lock_take_folder()) < 0 ||
	    file_claim_locked(fd, entry->file)) {
		if (lock >= 0)
			lock_give_folder(lock);
		free(entry);
		return -1;
	}
	entry->fd = fd;
	pthread_mutex_lock(&mine_lock);
	LIST_INSERT_HEAD(&mine, entry, entry);
	pthread_mutex_unlock(&mine_lock);
	lock_give_folder(lock);
	return 0;
}

void folder_refused(const char *name)
{
	char file[FILE_SIZE];

	if (!file_name(file, name) && file_is_stale(file))
		file_remove_stale(file);
}

void folder_give(int fd)
{
	struct mine *entry;

	pthread_mutex_lock(&mine_lock);
	LIST_FOREACH(entry, &mine, entry)
		if (entry->fd == fd)
			break;
	if (entry) {
		LIST_REMOVE(entry, entry);
		unlinkat(folder, entry->file, 0);
		free(entry);
	}
	pthread_mutex_unlock(&mine_lock);
}

void folder_scan(const char *prefix, void (*visit)(void *arg, const char *rest), void *arg)
{
	int fd = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	char whole[FILE_SIZE];
	struct dirent *entry;
	size_t length;

	if (!dir || file_name(whole, prefix)) {
		log_at(LOG_WARN,
		       "softverbs: SOFTVERBS_DIR: %s; names of other processes are not seen",
		       strerror(errno));
		if (dir)
			closedir(dir);
		else if (fd >= 0)
			close(fd);
		return;
	}
	length = strlen(whole);
	while ((entry = readdir(dir))) {
		if (strncmp(entry->d_name, whole, length) || strlen(entry->d_name) >= FILE_SIZE)
			continue;
		if (file_is_stale(entry->d_name))
			file_remove_stale(entry->d_name);
		else if (visit)
			visit(arg, entry->d_name + length);
	}
	closedir(dir);
}

/* ---- the folder ---- */

/* Nobody else may put a name there, or take one away. */
static int folder_check(const char **why)
{
	struct stat stat;

	*why = NULL;
	if (fstat(folder, &stat))
		return errno;
	if (sv_identity_of_owner(folder))
		*why = "it belongs to another user";
	else if (stat.st_mode & (S_IWGRP | S_IWOTH))
		*why = "others may write there";
	return *why ? EPERM : 0;
}

int folder_open(const char *path)
{
	static atomic_bool told;
	const char *why = NULL;
	int error;

	folder = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	error = folder < 0 ? errno : folder_check(&why);
	if (error) {
		if (!atomic_exchange(&told, true))
			log_at(LOG_ERROR, "softverbs: SOFTVERBS_DIR=%s: %s", path,
			       why ? why : strerror(error));
		folder_close();
		return error;
	}
	folder_scan("", NULL, NULL);
	return 0;
}

void folder_close(void)
{
	if (folder >= 0)
		close(folder);
	folder = -1;
}

void folder_fork_child(void)
{
	struct mine *entry;

	while ((entry = LIST_FIRST(&mine))) {
		LIST_REMOVE(entry, entry);
		free(entry);
	}
	folder_close();
}

/* Programs may end with all of it open. */
static __attribute__((destructor)) void folder_leave(void)
{
	struct mine *entry;

	pthread_mutex_lock(&mine_lock);
	LIST_FOREACH(entry, &mine, entry)
		unlinkat(folder, entry->file, 0);
	pthread_mutex_unlock(&mine_lock);
}
