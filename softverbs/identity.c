/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Whether a process or a file belongs to the user of this process. */
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "softverbs/identity.h"
#include "softverbs/log_from.h"

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77 /* Linux 6.5 */
#endif

#define OVERFLOW_UID 65534u	/* of every kernel whose administrator did not change it */
#define ALL_UIDS     UINT32_MAX /* how many there are: the last number is none */

static pthread_once_t overflow_once = PTHREAD_ONCE_INIT;
static unsigned overflow_uid = OVERFLOW_UID; /* constant after the once */

static void overflow_uid_read(void)
{
	FILE *file = fopen("/proc/sys/kernel/overflowuid", "re");
	unsigned uid;

	if (!file)
		return;
	if (fscanf(file, "%u", &uid) == 1)
		overflow_uid = uid;
	fclose(file);
}

/* Whether the namespace has a number for each user, as that of the host has. */
static bool all_uids_are_mapped(void)
{
	FILE *file = fopen("/proc/self/uid_map", "re");
	unsigned long inside, outside, count, sum = 0;

	if (!file)
		return false;
	while (fscanf(file, "%lu %lu %lu", &inside, &outside, &count) == 3)
		sum += count;
	fclose(file);
	return sum == ALL_UIDS;
}

/* Whether the number stands for one user only. */
static bool uid_is_exact(uid_t uid)
{
	pthread_once(&overflow_once, overflow_uid_read);
	return uid != overflow_uid || all_uids_are_mapped();
}

/* What CAP_KILL, or a set-uid program's two users, would allow proves nothing about identity. */
static bool signals_prove_identity(void)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct caps[_LINUX_CAPABILITY_U32S_3];

	return !getauxval(AT_SECURE) && getuid() == geteuid() &&
	       !syscall(SYS_capget, &header, caps) && !(caps[0].effective & 1u << CAP_KILL);
}

/*
 * The kernel compares users, and not their numbers, when a process may be sent a signal; signal 0
 * is none. By descriptor, since the number of a process may be another's by now.
 */
static bool peer_may_be_signalled(int fd)
{
	socklen_t size = sizeof(int);
	int pidfd;
	bool may;

	if (!signals_prove_identity() || getsockopt(fd, SOL_SOCKET, SO_PEERPIDFD, &pidfd, &size))
		return false;
	may = !syscall(SYS_pidfd_send_signal, pidfd, 0, NULL, 0);
	close(pidfd);
	return may;
}

int sv_identity_of_peer(int fd, struct ucred *peer)
{
	socklen_t size = sizeof(*peer);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, peer, &size))
		return errno;
	if (peer->uid != geteuid())
		return EACCES;
	if (uid_is_exact(peer->uid) || peer_may_be_signalled(fd))
		return 0;
	sv_log_from(sv_source_user(peer->uid), LOG_WARN,
		    "softverbs: process %d is refused: user %u stands for every user that this user"
		    " namespace does not map, and nothing proves that it is the same",
		    (int)peer->pid, (unsigned)peer->uid);
	return EACCES;
}

/* Only its owner may set a file's mode; CAP_FOWNER counts for users that are mapped. */
int sv_identity_of_owner(int fd)
{
	struct stat stat;
	char path[32];

	if (fstat(fd, &stat))
		return errno;
	if (stat.st_uid != geteuid())
		return EACCES;
	if (uid_is_exact(stat.st_uid))
		return 0;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return chmod(path, stat.st_mode & 07777) ? EACCES : 0;
}
