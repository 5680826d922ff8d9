/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* The process runtime of the software device when processes fork, die or run out of descriptors. */
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include "softverbs/name.h"
#include "test/unit/files.h"
#include "test/unit/linked.h"
#include "util/log.h"

/* ---- death ---- */

/* Returns how long it takes to be noticed. */
static uint64_t kill_peer(void *arg)
{
	struct process other;
	struct sv_peer *peer;
	uint64_t slot, begin, took;
	uint32_t magic;

	(void)arg;
	CU_ASSERT_FATAL(process_start(&other, reside, NULL));
	CU_ASSERT_FATAL(process_hear(other.fd, &slot));
	CU_ASSERT_EQUAL_FATAL(runtime_hold(), 0);
	peer = link_to(slot);
	CU_ASSERT_PTR_NOT_NULL_FATAL(peer);
	begin = clock_now();
	process_kill(&other);
	CU_ASSERT(unit_wait_for(is_dead, peer, UNIT_PATIENCE));
	took = clock_now() - begin;
	CU_ASSERT_EQUAL(peer_send(peer, SV_MSG_DATA, &slot, sizeof(slot), -1), EPIPE);
	/* the mapping stays until the reference goes */
	memcpy(&magic, peer->ro, sizeof(magic));
	CU_ASSERT_NOT_EQUAL(magic, 0);
	peer_put(peer);
	CU_ASSERT_PTR_NULL(peer_get((uint16_t)slot));
	CU_ASSERT_EQUAL(errno, ECONNREFUSED);
	runtime_release();
	return took;
}

static void killed_peer_is_noticed(void)
{
	CU_ASSERT(unit_is_soon(kill_peer, NULL, NSEC_PER_SEC));
}

/* A copy of the process that fork handlers know nothing of keeps every socket open. */
static int reside_with_a_shadow(int fd, void *arg)
{
	struct sv_peer *peer;
	uint64_t slot;
	pid_t shadow;

	(void)arg;
	if (runtime_hold() || !process_hear(fd, &slot))
		return 1;
	peer = link_to(slot);
	if (!peer)
		return 2;
	shadow = (pid_t)syscall(SYS_fork);
	if (!shadow) {
		prctl(PR_SET_PDEATHSIG, 0);
		process_sync(fd);
		_exit(0);
	}
	process_say(fd, runtime_slot());
	for (;;)
		pause();
}

static void death_shows_in_spite_of_inherited_sockets(void)
{
	struct process other;
	struct sv_peer *peer;
	uint64_t slot;

	CU_ASSERT_FATAL(process_start(&other, reside_with_a_shadow, NULL));
	CU_ASSERT_EQUAL_FATAL(runtime_hold(), 0);
	process_say(other.fd, runtime_slot());
	CU_ASSERT_FATAL(process_hear(other.fd, &slot));
	peer = link_to(slot);
	CU_ASSERT_PTR_NOT_NULL_FATAL(peer);
	kill(other.pid, SIGKILL);
	CU_ASSERT(unit_wait_for(is_dead, peer, UNIT_PATIENCE));
	peer_put(peer);
	runtime_release();
	process_kill(&other); /* hangs up: the shadow ends */
}

static void release_with_live_links(void)
{
	unsigned fds = entries("/proc/self/fd");
	struct process other;
	struct sv_peer *peer;
	uint64_t slot;

	CU_ASSERT_FATAL(process_start(&other, reside, NULL));
	CU_ASSERT_FATAL(process_hear(other.fd, &slot));
	CU_ASSERT_EQUAL_FATAL(runtime_hold(), 0);
	peer = link_to(slot);
	CU_ASSERT_PTR_NOT_NULL_FATAL(peer);
	peer_put(peer);
	runtime_release();
	process_say(other.fd, 0);
	CU_ASSERT_EQUAL(process_end(&other), 0);
	CU_ASSERT_EQUAL(entries("/proc/self/fd"), fds);
}

/* ---- fork ---- */

static int inherit(int fd, void *arg)
{
	uint64_t slot;
	struct sv_peer *peer;
	uint16_t parent = *(uint16_t *)arg;
	int status = 0;

	(void)fd;
	if (!runtime_inherited())
		return 1;
	if (runtime_hold())
		return 2;
	if (runtime_inherited() || runtime_slot() == parent)
		status = 3;
	slot = parent;
	peer = link_to(slot);
	if (!peer)
		return 4;
	if (peer->pid != getppid())
		status = 5;
	peer_put(peer);
	runtime_release();
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
	CU_ASSERT_EQUAL_FATAL(runtime_hold(), 0);
	peer = link_to(slot);
	CU_ASSERT_PTR_NOT_NULL_FATAL(peer);
	own = runtime_slot();
	CU_ASSERT_FALSE(runtime_inherited());
	CU_ASSERT_FATAL(process_start(&child, inherit, &own));
	CU_ASSERT_EQUAL(process_end(&child), 0);
	CU_ASSERT_FALSE(is_dead(peer));
	CU_ASSERT_PTR_EQUAL(link_to(slot), peer);
	peer_put(peer);
	peer_put(peer);
	runtime_release();
	process_say(other.fd, 0);
	CU_ASSERT_EQUAL(process_end(&other), 0);
}

/* The parent's name is free as soon as the parent is gone, although a child of it lives on. */
static int hold_and_fork(int fd, void *arg)
{
	struct process child;

	(void)arg;
	if (runtime_hold() || !process_start(&child, reside, NULL))
		return 1;
	process_say(fd, runtime_slot());
	process_sync(fd);
	process_kill(&child);
	return 0;
}

static bool name_is_free(void *arg)
{
	char name[16];
	int fd;

	snprintf(name, sizeof(name), "s%u", *(unsigned *)arg);
	fd = name_claim(name);
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
	if (runtime_hold())
		return 1;
	process_say(fd, runtime_slot());
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

/* No number for the socket; then too few for what the hello brings; then enough. */
static int starve(int fd, void *arg)
{
	struct sv_peer *peer;
	uint64_t value;
	unsigned count;
	uint16_t slot;

	(void)arg;
	log_open(NULL, 0, LOG_TO_STDERR);
	if (runtime_hold() || !process_hear(fd, &value))
		return 1;
	slot = (uint16_t)value;
	count = entries("/proc/self/fd");
	limit_fds(0);
	if (peer_get(slot) || errno != EMFILE)
		return 2;
	limit_fds(2);
	if (peer_get(slot) || errno != EAGAIN)
		return 3;
	if (!unit_wait_for(fds_are, &count, UNIT_PATIENCE))
		return 4;
	limit_fds(-1);
	peer = link_to(slot);
	if (!peer)
		return 5;
	peer_put(peer);
	runtime_release();
	return 0;
}

/* Nobody can be accepted; who tries is told so, and can try again later. */
static int starve_as_listener(int fd, void *arg)
{
	(void)arg;
	log_open(NULL, 0, LOG_TO_STDERR);
	if (runtime_hold())
		return 1;
	limit_fds(0);
	process_say(fd, runtime_slot());
	if (!process_sync(fd))
		return 2;
	limit_fds(-1);
	process_say(fd, 0);
	process_sync(fd);
	runtime_release();
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
	CU_ASSERT_EQUAL_FATAL(runtime_hold(), 0);
	fds = entries("/proc/self/fd") - 1; /* process_end closes one */
	CU_ASSERT(process_say(other.fd, runtime_slot()));
	CU_ASSERT_EQUAL(process_end(&other), 0);
	CU_ASSERT_FATAL(process_hear(listener.fd, &slot));
	CU_ASSERT_PTR_NULL(peer_get((uint16_t)slot));
	CU_ASSERT(unit_wait_for(fds_are, &fds, UNIT_PATIENCE));
	process_say(listener.fd, 0);
	CU_ASSERT(process_sync(listener.fd));
	peer = link_to(slot);
	CU_ASSERT_PTR_NOT_NULL(peer);
	if (peer)
		peer_put(peer);
	process_say(listener.fd, 0);
	CU_ASSERT_EQUAL(process_end(&listener), 0);
	runtime_release();
}

static const struct unit_test tests[] = {
	{ "B.14 a killed peer is noticed within a second", killed_peer_is_noticed },
	{ "B.14 death shows in spite of inherited sockets",
	  death_shows_in_spite_of_inherited_sockets },
	{ "C.2 release with live links", release_with_live_links },
	{ "B.13 a forked child builds its own runtime", child_builds_its_own },
	{ "B.14 names go with their owner", names_go_with_the_owner },
	{ "C.10 too many open files is a clean error", too_many_files_is_a_clean_error },
};

UNIT_MAIN("softverbs_fork", tests)
