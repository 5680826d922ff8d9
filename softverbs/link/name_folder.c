/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Names as sockets in a folder. A hard link is the claim, since only one process can make it; names of killed
 * processes are removed under a lock. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include "softverbs/link/folder_lock.h"
#include "softverbs/base/identity.h"
#include "softverbs/link/name_folder.h"
#include "softverbs/link/peer.h"
#include "util/clock.h"
#include "util/log.h"

#define TEMPORARY      "softverbs%d+"
#define TEMPORARY_TIME 10 /* seconds after which a temporary file counts as left behind */

#define FILE_SIZE sizeof(((struct sockaddr_un *)0)->sun_path)

struct mine { /* a name of this process, removed at its exit at the latest */
	LIST_ENTRY(mine) entry;
	int fd;
	char file[FILE_SIZE];
};

static int folder = -1; /* open while the runtime is */

static pthread_mutex_t mine_lock = PTHREAD_MUTEX_INITIALIZER; /* innermost */
static LIST_HEAD(, mine) mine = LIST_HEAD_INITIALIZER(mine);

bool sv_folder_is_open(void)
{
	return folder >= 0;
}

/* ---- files ---- */

/* The layout version separates processes that cannot communicate. */
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

/* A temporary name; no other process looks for a name there. */
static void file_temporary(char file[static FILE_SIZE])
{
	uint64_t random = clock_now();

	if (getrandom(&random, sizeof(random), GRND_NONBLOCK) < 0)
		random ^= (uint64_t)getpid() << 32;
	snprintf(file, FILE_SIZE, TEMPORARY "%016llx", SV_LAYOUT, (unsigned long long)random);
}

/* A path through the descriptor is short, however long the path of the folder is. */
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

socklen_t sv_folder_address(struct sockaddr_un *address, const char *name)
{
	char file[FILE_SIZE];

	return file_name(file, name) ? 0 : file_address(address, file);
}

/* True if no process holds the name. If a process holds it, listening or not, connect from a socket of
 * another type fails with EPROTOTYPE and makes no connection. */
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

/* ---- names ---- */

/* Renames the file, then checks it again: if this process was stopped after the first check, the name may
 * belong to another process by now, and is restored. */
static void stale_remove_locked(const char *file)
{
	char away[FILE_SIZE];

	if (!file_is_stale(file))
		return;
	file_temporary(away);
	if (renameat(folder, file, folder, away))
		return;
	if (file_is_stale(away))
		log_at(LOG_NOTE, "softverbs: %s: its process is gone", file);
	else if (linkat(folder, away, folder, file, 0))
		log_at(LOG_ERROR, "softverbs: %s: linkat: %m", file);
	unlinkat(folder, away, 0);
}

static void file_remove_stale(const char *file)
{
	int lock = sv_folder_lock(folder);

	if (lock < 0)
		return;
	stale_remove_locked(file);
	sv_folder_unlock(folder, lock);
}

/* Between socket creation and bind, the file looks like one of a killed process. So the socket is bound under
 * a temporary name; the link to the final name is atomic and fails if that name is in use. */
static int file_bind(int fd, const char *file)
{
	struct sockaddr_un address;
	char temporary[FILE_SIZE];
	socklen_t size;
	int error = 0;

	file_temporary(temporary);
	size = file_address(&address, temporary);
	if (!size || bind(fd, (struct sockaddr *)&address, size))
		return errno;
	/* bind applies the process's umask; only the owner may connect */
	if (fchmodat(folder, temporary, 0600, 0) || linkat(folder, temporary, folder, file, 0))
		error = errno;
	unlinkat(folder, temporary, 0);
	return error;
}

/* A socket can be bound only once. So the name of a killed process is removed first, and the name is checked
 * again since another process may have claimed it. */
static int file_claim(int fd, const char *file)
{
	struct stat stat;

	if (file_is_stale(file))
		file_remove_stale(file);
	if (!fstatat(folder, file, &stat, AT_SYMLINK_NOFOLLOW))
		return EADDRINUSE;
	return file_bind(fd, file);
}

int sv_folder_bind(int fd, const char *name)
{
	struct mine *entry = calloc(1, sizeof(*entry));
	int error = 0;

	if (!entry)
		error = ENOMEM;
	else if (file_name(entry->file, name))
		error = errno;
	else
		error = file_claim(fd, entry->file);
	if (error) {
		free(entry);
		errno = error == EEXIST ? EADDRINUSE : error;
		return -1;
	}
	entry->fd = fd;
	pthread_mutex_lock(&mine_lock);
	LIST_INSERT_HEAD(&mine, entry, entry);
	pthread_mutex_unlock(&mine_lock);
	return 0;
}

void sv_folder_refused(const char *name)
{
	char file[FILE_SIZE];

	if (!file_name(file, name) && file_is_stale(file))
		file_remove_stale(file);
}

void sv_folder_release(int fd)
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

/* Calls `each` for each file of the folder whose name begins with `beginning`. */
static void files_each(const char *beginning, void (*each)(void *arg, const char *file), void *arg)
{
	int fd = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	size_t length = strlen(beginning);
	struct dirent *entry;

	if (!dir) {
		log_at(LOG_WARN,
		       "softverbs: SOFTVERBS_DIR: %s; names of other processes are not seen",
		       strerror(errno));
		if (fd >= 0)
			close(fd);
		return;
	}
	while ((entry = readdir(dir)))
		if (!strncmp(entry->d_name, beginning, length) && strlen(entry->d_name) < FILE_SIZE)
			each(arg, entry->d_name);
	closedir(dir);
}

struct scan {
	size_t length; /* of the common prefix */
	void (*visit)(void *arg, const char *rest);
	void *arg;
};

static void file_visit(void *arg, const char *file)
{
	const struct scan *scan = arg;

	if (file_is_stale(file))
		file_remove_stale(file);
	else if (scan->visit)
		scan->visit(scan->arg, file + scan->length);
}

void sv_folder_scan(const char *prefix, void (*visit)(void *arg, const char *rest), void *arg)
{
	struct scan scan = { .visit = visit, .arg = arg };
	char whole[FILE_SIZE];

	if (file_name(whole, prefix))
		return;
	scan.length = strlen(whole);
	files_each(whole, file_visit, &scan);
}

static void temporary_remove(void *arg, const char *file)
{
	struct stat stat;

	(void)arg;
	if (!fstatat(folder, file, &stat, AT_SYMLINK_NOFOLLOW) && S_ISSOCK(stat.st_mode) &&
	    time(NULL) - stat.st_mtime > TEMPORARY_TIME)
		unlinkat(folder, file, 0);
}

static void folder_clean(void)
{
	char temporary[FILE_SIZE];

	sv_folder_scan("", NULL, NULL);
	snprintf(temporary, sizeof(temporary), TEMPORARY, SV_LAYOUT);
	files_each(temporary, temporary_remove, NULL);
	sv_folder_lock_clean(folder);
}

/* ---- the folder ---- */

/* Only this user may be able to add and remove names. */
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

int sv_folder_open(const char *path)
{
	static atomic_bool notified;
	const char *why = NULL;
	int error;

	folder = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	error = folder < 0 ? errno : folder_check(&why);
	if (error) {
		if (!atomic_exchange(&notified, true))
			log_at(LOG_ERROR, "softverbs: SOFTVERBS_DIR=%s: %s", path,
			       why ? why : strerror(error));
		sv_folder_close();
		return error;
	}
	folder_clean();
	return 0;
}

void sv_folder_close(void)
{
	if (folder >= 0)
		close(folder);
	folder = -1;
}

void sv_folder_fork_child(void)
{
	struct mine *entry;

	while ((entry = LIST_FIRST(&mine))) {
		LIST_REMOVE(entry, entry);
		free(entry);
	}
	sv_folder_close();
}

/* Programs may exit without closing anything. */
static __attribute__((destructor)) void folder_leave(void)
{
	struct mine *entry;

	pthread_mutex_lock(&mine_lock);
	LIST_FOREACH(entry, &mine, entry)
		unlinkat(folder, entry->file, 0);
	pthread_mutex_unlock(&mine_lock);
}
