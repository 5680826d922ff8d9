/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* The process runtime of the software device when processes fork, die or run out of descriptors. */
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include "softverbs/attend.h"
#include "softverbs/base/kernel.h"
#include "softverbs/link/name.h"
#include "test/unit/files.h"
#include "test/unit/linked.h"
#include "util/log.h"

/* ---- death ---- */

/* Returns how long this process took to notice. */
static uint64_t kill_peer(void *arg)
{
	struct process other;
	struct sv_peer *peer;
	uint64_t slot, begin, took;
	uint32_t magic;

	(void)arg;
	CU_ASSERT_FATAL(process_start(&other, reside, NULL));
	CU_ASSERT_FATAL(process_hear(other.fd, &slot));
	CU_ASSERT_EQUAL_FATAL(sv_runtime_hold(&sv_data_client), 0);
	peer = link_to(slot);
	CU_ASSERT_PTR_NOT_NULL_FATAL(peer);
	begin = clock_now();
	process_kill(&other);
	CU_ASSERT(unit_wait_for(is_dead, peer, UNIT_PATIENCE));
	took = clock_now() - begin;
	CU_ASSERT_EQUAL(sv_peer_send(peer, SV_MSG_DATA, &slot, sizeof(slot), -1), EPIPE);
	/* the mapping stays until the reference is released */
	memcpy(&magic, peer->by_owner, sizeof(magic));
	CU_ASSERT_NOT_EQUAL(magic, 0);
	sv_peer_put(peer);
	CU_ASSERT_PTR_NULL(sv_peer_get((uint16_t)slot));
	CU_ASSERT_EQUAL(errno, ECONNREFUSED);
	sv_runtime_release();
	return took;
}

static void killed_peer_is_noticed(void)
{
	CU_ASSERT(unit_is_soon(kill_peer, NULL, NSEC_PER_SEC));
}

/* A copy of the process, made without fork handlers, keeps every socket open. */
static int reside_with_a_shadow(int fd, void *arg)
{
	struct sv_peer *peer;
	uint64_t slot;
	pid_t shadow;

	(void)arg;
	if (sv_runtime_hold(&sv_data_client) || !process_hear(fd, &slot))
		return 1;
	peer = link_to(slot);
	if (!peer)
		return 2;
	shadow = (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0); /* arm64 has no fork(2) */
	if (!shadow) {
		prctl(PR_SET_PDEATHSIG, 0);
		process_sync(fd);
		_exit(0);
	}
	process_say(fd, sv_runtime_peer_id());
	for (;;)
		pause();
}

static void death_shows_in_spite_of_inherited_sockets(void)
{
	struct process other;
	struct sv_peer *peer;
	uint64_t slot;

	if (syscall(SYS_pidfd_open, getpid(), 0) < 0) {
		puts("without pidfd_open(2) only the socket shows the end of a process");
		return;
	}
	CU_ASSERT_FATAL(process_start(&other, reside_with_a_shadow, NULL));
	CU_ASSERT_EQUAL_FATAL(sv_runtime_hold(&sv_data_client), 0);
	process_say(other.fd, sv_runtime_peer_id());
	CU_ASSERT_FATAL(process_hear(other.fd, &slot));
	peer = link_to(slot);
	CU_ASSERT_PTR_NOT_NULL_FATAL(peer);
	kill(other.pid, SIGKILL);
	CU_ASSERT(unit_wait_for(is_dead, peer, UNIT_PATIENCE));
	sv_peer_put(peer);
	sv_runtime_release();
	process_kill(&other); /* the copy ends when its socket hangs up */
}

static void release_with_live_links(void)
{
	unsigned fds = unit_entries("/proc/self/fd");
	struct process other;
	struct sv_peer *peer;
	uint64_t slot;

	CU_ASSERT_FATAL(process_start(&other, reside, NULL));
	CU_ASSERT_FATAL(process_hear(other.fd, &slot));
	CU_ASSERT_EQUAL_FATAL(sv_runtime_hold(&sv_data_client), 0);
	peer = link_to(slot);
	CU_ASSERT_PTR_NOT_NULL_FATAL(peer);
	sv_peer_put(peer);
	sv_runtime_release();
	process_say(other.fd, 0);
	CU_ASSERT_EQUAL(process_end(&other), 0);
	CU_ASSERT_EQUAL(unit_entries("/proc/self/fd"), fds);
}

/* ---- fork ---- */

static int inherit(int fd, void *arg)
{
	uint64_t slot;
	struct sv_peer *peer;
	uint16_t parent = *(uint16_t *)arg;
	int status = 0;

	(void)fd;
	if (!sv_runtime_inherited())
		return 1;
	if (sv_runtime_hold(&sv_data_client))
		return 2;
	if (sv_runtime_inherited() || sv_runtime_peer_id() == parent)
		status = 3;
	slot = parent;
	peer = link_to(slot);
	if (!peer)
		return 4;
	if (peer->pid != getppid())
		status = 5;
	sv_peer_put(peer);
	sv_runtime_release();
	return status;
}

static void child_builds_its_own(void)
{
	struct process child, other;
	struct sv_peer *peer;
	uint64_t slot;
	uint16_t own;

	if (PROCESS_TSAN)
		return;
	CU_ASSERT_FATAL(process_start(&other, reside, NULL));
	CU_ASSERT_FATAL(process_hear(other.fd, &slot));
	CU_ASSERT_EQUAL_FATAL(sv_runtime_hold(&sv_data_client), 0);
	peer = link_to(slot);
	CU_ASSERT_PTR_NOT_NULL_FATAL(peer);
	own = sv_runtime_peer_id();
	CU_ASSERT_FALSE(sv_runtime_inherited());
	CU_ASSERT_FATAL(process_start(&child, inherit, &own));
	CU_ASSERT_EQUAL(process_end(&child), 0);
	CU_ASSERT_FALSE(is_dead(peer));
	CU_ASSERT_PTR_EQUAL(link_to(slot), peer);
	sv_peer_put(peer);
	sv_peer_put(peer);
	sv_runtime_release();
	process_say(other.fd, 0);
	CU_ASSERT_EQUAL(process_end(&other), 0);
}

/* The parent's name is free when the parent ends, although its child lives on. */
static int hold_and_fork(int fd, void *arg)
{
	struct process child;

	(void)arg;
	if (sv_runtime_hold(&sv_data_client) || !process_start(&child, reside, NULL))
		return 1;
	process_say(fd, sv_runtime_peer_id());
	process_sync(fd);
	process_kill(&child);
	return 0;
}

static bool name_is_free(void *arg)
{
	char name[16];
	int fd;

	snprintf(name, sizeof(name), "s%u", *(unsigned *)arg);
	fd = sv_name_claim(name);
	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

static int child_that_stays(int fd, void *arg)
{
	(void)arg;
	process_sync(fd);
	return 0;
}

static int die_before_a_child(int fd, void *arg)
{
	pid_t child;

	(void)arg;
	if (sv_runtime_hold(&sv_data_client))
		return 1;
	process_say(fd, sv_runtime_peer_id());
	child = fork();
	if (!child) {
		child_that_stays(fd, NULL);
		_exit(0);
	}
	_exit(0);
}

static void names_go_with_the_owner(void)
{
	struct process other;
	uint64_t slot;
	unsigned number;

	CU_ASSERT_FATAL(process_start(&other, die_before_a_child, NULL));
	CU_ASSERT_FATAL(process_hear(other.fd, &slot));
	waitpid(other.pid, NULL, 0);
	number = (unsigned)slot;
	CU_ASSERT(unit_wait_for(name_is_free, &number, UNIT_PATIENCE));
	process_say(other.fd, 0);
	close(other.fd);
	if (PROCESS_TSAN)
		return;
	CU_ASSERT_FATAL(process_start(&other, hold_and_fork, NULL));
	CU_ASSERT(process_hear(other.fd, &slot));
	process_say(other.fd, 0);
	CU_ASSERT_EQUAL(process_end(&other), 0);
}

/* ---- no descriptors ---- */

/* Counts without a descriptor of its own: a link that has not ended yet may hold the last. */
static unsigned open_fds(void)
{
	unsigned count = 0;

	for (int fd = 0; fd < FD_SETSIZE; fd++)
		count += fcntl(fd, F_GETFD) >= 0;
	return count;
}

static bool open_fds_are(void *arg)
{
	return open_fds() == *(unsigned *)arg;
}

/* First no descriptor for the socket, then too few for those of the hello, then enough. */
static int starve(int fd, void *arg)
{
	struct sv_peer *peer;
	uint64_t value;
	unsigned count;
	uint16_t slot;

	(void)arg;
	log_open(NULL, 0, LOG_TO_STDERR);
	if (sv_runtime_hold(&sv_data_client) || !process_hear(fd, &value))
		return 1;
	slot = (uint16_t)value;
	count = open_fds();
	limit_fds(0);
	if (sv_peer_get(slot) || errno != EMFILE)
		return 2;
	limit_fds(2);
	if (sv_peer_get(slot) || errno != EAGAIN)
		return 3;
	if (!unit_wait_for(open_fds_are, &count, UNIT_PATIENCE))
		return 4;
	limit_fds(-1);
	peer = link_to(slot);
	if (!peer)
		return 5;
	sv_peer_put(peer);
	sv_runtime_release();
	return 0;
}

/*
 * Without free descriptors the listener cannot accept a link; a process that connects is refused
 * and may try again later.
 */
static int starve_as_listener(int fd, void *arg)
{
	(void)arg;
	log_open(NULL, 0, LOG_TO_STDERR);
	if (sv_runtime_hold(&sv_data_client))
		return 1;
	limit_fds(0);
	process_say(fd, sv_runtime_peer_id());
	if (!process_sync(fd))
		return 2;
	limit_fds(-1);
	process_say(fd, 0);
	process_sync(fd);
	sv_runtime_release();
	return 0;
}

static void too_many_files_is_a_clean_error(void)
{
	struct process other, listener;
	struct sv_peer *peer;
	uint64_t slot;
	unsigned fds;

	if (!limit_is_real())
		return;
	CU_ASSERT_FATAL(process_start(&other, starve, NULL));
	CU_ASSERT_FATAL(process_start(&listener, starve_as_listener, NULL));
	CU_ASSERT_EQUAL_FATAL(sv_runtime_hold(&sv_data_client), 0);
	fds = unit_entries("/proc/self/fd") - 1; /* process_end closes one of them */
	CU_ASSERT(process_say(other.fd, sv_runtime_peer_id()));
	CU_ASSERT_EQUAL(process_end(&other), 0);
	CU_ASSERT_FATAL(process_hear(listener.fd, &slot));
	CU_ASSERT_PTR_NULL(sv_peer_get((uint16_t)slot));
	CU_ASSERT(unit_wait_for(fds_are, &fds, UNIT_PATIENCE));
	process_say(listener.fd, 0);
	CU_ASSERT(process_sync(listener.fd));
	peer = link_to(slot);
	CU_ASSERT_PTR_NOT_NULL(peer);
	if (peer)
		sv_peer_put(peer);
	process_say(listener.fd, 0);
	CU_ASSERT_EQUAL(process_end(&listener), 0);
	sv_runtime_release();
}

static const struct unit_test tests[] = {
	{ "a killed peer is noticed within a second", killed_peer_is_noticed },
	{ "death is noticed despite inherited sockets", death_shows_in_spite_of_inherited_sockets },
	{ "the runtime can be released with live links", release_with_live_links },
	{ "a forked child makes its own runtime", child_builds_its_own },
	{ "a name is free when its owner ends", names_go_with_the_owner },
	{ "without descriptors a link fails and leaves nothing behind",
	  too_many_files_is_a_clean_error },
};

UNIT_MAIN("softverbs_fork", tests)
