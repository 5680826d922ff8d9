/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Checks that a process or a file belongs to the user of this process. */
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
#include "softverbs/base/identity.h"
#include "softverbs/base/kernel.h"
#include "softverbs/base/log_from.h"

#define OVERFLOW_UID 65534u	/* the kernel's default */
#define ALL_UIDS     UINT32_MAX /* number of uids: the last value is invalid */

static pthread_once_t overflow_once = PTHREAD_ONCE_INIT;
static unsigned overflow_uid = OVERFLOW_UID; /* constant after overflow_once */

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

/* True if the user namespace maps all users, as the initial one does. */
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

/* True if the number belongs to one user only. */
static bool uid_is_exact(uid_t uid)
{
	pthread_once(&overflow_once, overflow_uid_read);
	return uid != overflow_uid || all_uids_are_mapped();
}

/* False if CAP_KILL or different real and effective users could permit a signal: then the permission proves
 * nothing about identity. */
static bool signals_prove_identity(void)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct caps[_LINUX_CAPABILITY_U32S_3];

	return !getauxval(AT_SECURE) && getuid() == geteuid() &&
	       !syscall(SYS_capget, &header, caps) && !(caps[0].effective & 1u << CAP_KILL);
}

/* Signal 0 tests the permission to send a signal, for which the kernel compares users and not their numbers.
 * By pidfd, since the pid may have been reused. */
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

/* Changes the mode of the file to itself, which only its owner may do; CAP_FOWNER covers only mapped users. */
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
