/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * Which processes belong to this user, across user namespaces. In a namespace that maps only some
 * users, all others show under one overflow id, which one of the mapped users may have, too.
 */
#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/un.h>
#include "softverbs/attend.h"
#include "softverbs/base/identity.h"
#include "softverbs/base/kernel.h"
#include "softverbs/link/name.h"
#include "softverbs/link/runtime.h"
#include "test/unit/linked.h"

#define OVERFLOW 65534	/* inside the namespace: a mapped user, and the id of all unmapped ones */
#define OUTSIDE	 300000 /* user 0 of the namespace, as seen outside */

static bool overflow_is_default(void)
{
	FILE *file = fopen("/proc/sys/kernel/overflowuid", "r");
	unsigned uid = 0;

	if (file) {
		if (fscanf(file, "%u", &uid) != 1)
			uid = 0;
		fclose(file);
	}
	return uid == OVERFLOW;
}

/* Only a privileged process can map several users into a namespace. */
static bool namespaces_work(void)
{
	pid_t child = geteuid() || !overflow_is_default() ? -1 : fork();
	int status = 1;

	if (!child)
		_exit(unshare(CLONE_NEWUSER) != 0);
	if (child > 0)
		waitpid(child, &status, 0);
	if (status)
		fprintf(stderr, "skipped: no user namespaces with users of their own here\n");
	return !status;
}

static bool map_write(pid_t pid, const char *which)
{
	char path[64], text[64];
	int fd, length;
	bool done;

	snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, which);
	length = snprintf(text, sizeof(text), "0 %d %d\n", OUTSIDE, OVERFLOW + 1);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	done = fd >= 0 && write(fd, text, (size_t)length) == length;
	if (fd >= 0)
		close(fd);
	return done;
}

static bool become(uid_t uid)
{
	return !setgroups(0, NULL) && !setresgid(uid, uid, uid) && !setresuid(uid, uid, uid);
}

/* ---- in the namespace ---- */

/*
 * Becomes user 0 of the namespace first, because only that user drops its capabilities by changing
 * its id.
 */
static bool enter(int fd)
{
	return !unshare(CLONE_NEWUSER) && process_say(fd, 1) && process_sync(fd) && become(0) &&
	       become(OVERFLOW);
}

/* Reports what is known of the next process that connects to the socket. */
static bool judge_next(int listener, int fd)
{
	struct pollfd ready = { .fd = listener, .events = POLLIN };
	struct ucred cred;
	uint64_t verdict;
	int accepted;

	if (poll(&ready, 1, UNIT_PATIENCE) != 1)
		return false;
	accepted = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	verdict = (uint64_t)sv_identity_of_peer(accepted, &cred);
	close(accepted);
	return process_say(fd, verdict) && process_say(fd, cred.uid);
}

static int connect_once(int fd, void *arg)
{
	struct ucred cred;
	int connected = sv_name_connect(arg, &cred);

	(void)fd;
	return connected >= 0 ? 0 : errno;
}

/* Links with the process in the slot that it is told, which links back. */
static int link_back(int fd, void *arg)
{
	struct sv_peer *peer;
	uint64_t slot;
	int error;

	(void)arg;
	if (!process_hear(fd, &slot))
		return EPIPE;
	error = sv_runtime_hold(&sv_data_client);
	if (error)
		return error;
	peer = link_to(slot);
	if (!peer)
		return errno;
	sv_peer_put(peer);
	sv_runtime_release();
	return 0;
}

/*
 * A listener in the namespace: a stranger connects, then a process of its own user; then two of its
 * processes link.
 */
static int live_inside(int fd, void *arg)
{
	struct process friend;
	int listener;

	(void)arg;
	if (!enter(fd))
		return 1;
	listener = sv_name_claim("identity");
	if (listener < 0 || listen(listener, 8) || !process_say(fd, 2))
		return 2;
	if (!judge_next(listener, fd))
		return 3;
	if (!process_start(&friend, connect_once, (void *)(uintptr_t) "identity") ||
	    !judge_next(listener, fd) || !process_say(fd, (uint64_t)process_end(&friend)))
		return 4;
	close(listener);
	/* Before there is a second thread: the address sanitizer's locks are not made anew in a child. */
	if (!process_start(&friend, link_back, NULL) || sv_runtime_hold(&sv_data_client))
		return 5;
	if (!process_say(friend.fd, sv_runtime_peer_id()) ||
	    !process_say(fd, (uint64_t)process_end(&friend)))
		return 6;
	sv_runtime_release();
	return 0;
}

/* ---- outside ---- */

/*
 * User 65534 of the host, which the namespace does not map. Does not use sv_name_connect, which
 * would refuse the other side.
 */
static int live_outside(int fd, void *arg)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int length = snprintf(address.sun_path + 1, sizeof(address.sun_path) - 1,
			      "softverbs/%d/%d/identity", SV_LAYOUT, OVERFLOW);
	int connected = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	char byte;

	(void)arg;
	if (!become(OVERFLOW))
		return 1;
	if (connect(connected, (struct sockaddr *)&address,
		    (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1) + (socklen_t)length))
		return 2;
	if (read(connected, &byte, 1) != 0) /* the listener has judged and closes the socket */
		return 3;
	return process_say(fd, 1) ? 0 : 4;
}

static bool says(const struct process *process, uint64_t expected)
{
	uint64_t value;

	if (!process_hear(process->fd, &value))
		return false;
	if (value != expected)
		fprintf(stderr, "said: %llu\n", (unsigned long long)value);
	return value == expected;
}

/*
 * Before Linux 6.5 the kernel cannot prove that two such processes have one user; then they are
 * refused.
 */
static bool kernel_has_peer_pidfd(void)
{
	socklen_t size = sizeof(int);
	int pair[2], pidfd = -1;

	CU_ASSERT_EQUAL_FATAL(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
	if (getsockopt(pair[0], SOL_SOCKET, SO_PEERPIDFD, &pidfd, &size))
		pidfd = -1;
	close(pair[0]);
	close(pair[1]);
	if (pidfd >= 0)
		close(pidfd);
	return pidfd >= 0;
}

static void stranger_is_refused(void)
{
	bool provable = kernel_has_peer_pidfd();
	struct process inside, outside;

	if (!namespaces_work())
		return;
	CU_ASSERT_FATAL(process_start(&inside, live_inside, NULL));
	CU_ASSERT(says(&inside, 1));
	CU_ASSERT(map_write(inside.pid, "uid_map") && map_write(inside.pid, "gid_map"));
	CU_ASSERT(process_say(inside.fd, 1));
	CU_ASSERT(says(&inside, 2));
	CU_ASSERT_FATAL(process_start(&outside, live_outside, NULL));
	CU_ASSERT(says(&inside, EACCES)); /* the stranger */
	CU_ASSERT(says(&inside, OVERFLOW));
	CU_ASSERT(says(&outside, 1));
	CU_ASSERT_EQUAL(process_end(&outside), 0);
	CU_ASSERT(says(&inside, provable ? 0 : EACCES)); /* its own user */
	CU_ASSERT(says(&inside, OVERFLOW));
	CU_ASSERT(says(&inside, provable ? 0 : ECONNREFUSED));
	if (!PROCESS_TSAN)
		CU_ASSERT(says(&inside, provable ? 0 : ECONNREFUSED)); /* they link */
	CU_ASSERT_EQUAL(process_end(&inside), 0);
}

/* ---- folders ---- */

struct folders {
	const char *own, *strange;
};

static int judge_folders(int fd, void *arg)
{
	const struct folders *folders = arg;
	int own, strange;

	if (!enter(fd))
		return 1;
	own = open(folders->own, O_PATH | O_DIRECTORY | O_CLOEXEC);
	strange = open(folders->strange, O_PATH | O_DIRECTORY | O_CLOEXEC);
	return own < 0 || strange < 0 || !process_say(fd, (uint64_t)sv_identity_of_owner(own)) ||
	       !process_say(fd, (uint64_t)sv_identity_of_owner(strange));
}

static void strange_folder_is_refused(void)
{
	char own[128], strange[128];
	struct folders folders = { own, strange };
	struct process inside;

	if (!namespaces_work())
		return;
	snprintf(own, sizeof(own), "%s/own", unit_tmpdir());
	snprintf(strange, sizeof(strange), "%s/strange", unit_tmpdir());
	CU_ASSERT_EQUAL_FATAL(chmod(unit_tmpdir(), 0755), 0);
	CU_ASSERT_FATAL(!mkdir(own, 0755) && !mkdir(strange, 0755));
	CU_ASSERT_EQUAL(chown(own, OUTSIDE + OVERFLOW, OUTSIDE + OVERFLOW), 0);
	CU_ASSERT_EQUAL(chown(strange, OVERFLOW, OVERFLOW), 0);
	CU_ASSERT_FATAL(process_start(&inside, judge_folders, &folders));
	CU_ASSERT(says(&inside, 1));
	CU_ASSERT(map_write(inside.pid, "uid_map") && map_write(inside.pid, "gid_map"));
	CU_ASSERT(process_say(inside.fd, 1));
	CU_ASSERT(says(&inside, 0));
	CU_ASSERT(says(&inside, EACCES));
	CU_ASSERT_EQUAL(process_end(&inside), 0);
}

/* ---- without a namespace ---- */

static int owner_of(const char *path)
{
	int fd = open(path, O_PATH | O_CLOEXEC), error;

	if (fd < 0)
		return errno;
	error = sv_identity_of_owner(fd);
	close(fd);
	return error;
}

static void owner_is_compared(void)
{
	char other[128];

	CU_ASSERT_EQUAL(owner_of(unit_tmpdir()), 0);
	CU_ASSERT_EQUAL(sv_identity_of_owner(-1), EBADF);
	if (geteuid())
		return;
	snprintf(other, sizeof(other), "%s/other", unit_tmpdir());
	CU_ASSERT_EQUAL(mkdir(other, 0755), 0);
	CU_ASSERT_EQUAL(chown(other, 1, 1), 0);
	CU_ASSERT_EQUAL(owner_of(other), EACCES);
}

static void peer_is_compared(void)
{
	struct ucred cred;
	int pair[2];

	CU_ASSERT_EQUAL_FATAL(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
	CU_ASSERT_EQUAL(sv_identity_of_peer(pair[0], &cred), 0);
	CU_ASSERT_EQUAL(cred.pid, getpid());
	close(pair[0]);
	CU_ASSERT_EQUAL(sv_identity_of_peer(pair[0], &cred), EBADF);
	close(pair[1]);
}

static const struct unit_test tests[] = {
	{ "a process of another user that has this user's number is refused", stranger_is_refused },
	{ "a folder of another user that has this user's number is refused",
	  strange_folder_is_refused },
	{ "the owner of a folder is compared", owner_is_compared },
	{ "the user of a peer is compared", peer_is_compared },
};

UNIT_MAIN("test_softverbs_identity", tests)
