/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* The process runtime of the software device: slots, links, hellos, the engine. */
#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include "softverbs/attend.h"
#include "softverbs/link/engine.h"
#include "softverbs/link/name.h"
#include "softverbs/link/peer.h"
#include "softverbs/link/runtime.h"
#include "test/unit/denied.h"
#include "test/unit/linked.h"
#include "util/log.h"

/* ---- one process ---- */

static void leaves_nothing(void)
{
	unsigned fds, threads, round;

	/* descriptors that libc and the sanitizers open once are open after this */
	CU_ASSERT_EQUAL_FATAL(sv_runtime_hold(&sv_data_client), 0);
	sv_runtime_release();
	fds = unit_entries("/proc/self/fd");
	threads = unit_entries("/proc/self/task");
	for (round = 0; round < 3; round++) {
		CU_ASSERT_EQUAL_FATAL(sv_runtime_hold(&sv_data_client), 0);
		CU_ASSERT_EQUAL(sv_runtime_hold(&sv_data_client), 0);
		CU_ASSERT(sv_runtime_peer_id() < SV_PEERS);
		CU_ASSERT(unit_entries("/proc/self/fd") > fds);
		CU_ASSERT(unit_entries("/proc/self/task") > threads);
		sv_runtime_release();
		sv_runtime_release();
		CU_ASSERT_EQUAL(unit_entries("/proc/self/fd"), fds);
		CU_ASSERT_EQUAL(unit_entries("/proc/self/task"), threads);
	}
}

static void self_is_a_peer(void)
{
	struct sv_peer *peer;

	CU_ASSERT_EQUAL_FATAL(sv_runtime_hold(&sv_data_client), 0);
	peer = sv_peer_get(sv_runtime_peer_id());
	CU_ASSERT_PTR_EQUAL(peer, sv_peer_self());
	CU_ASSERT_EQUAL(peer->copy, SV_COPY_SELF);
	CU_ASSERT_EQUAL(peer->pid, getpid());
	CU_ASSERT_PTR_NULL(peer->link);
	sv_peer_put(peer);
	sv_runtime_release();
}

static bool slot_is_refused(uint16_t slot)
{
	struct sv_peer *peer;

	errno = 0;
	peer = sv_peer_get(slot);
	if (peer)
		sv_peer_put(peer);
	return !peer && errno == ECONNREFUSED;
}

/* Each slot may be that of a process which has nothing to do with this test. */
static void empty_slot_is_refused(void)
{
	bool refused = false;

	CU_ASSERT_EQUAL_FATAL(sv_runtime_hold(&sv_data_client), 0);
	for (unsigned n = 1; n < 8 && !refused; n++)
		refused = slot_is_refused(
			(uint16_t)((sv_runtime_peer_id() + n * SV_PEERS / 8) % SV_PEERS));
	CU_ASSERT_TRUE(refused);
	CU_ASSERT_TRUE(slot_is_refused(SV_PEERS));
	sv_runtime_release();
}

/* ---- timers ---- */

#define TIMERS 5

static struct sv_timer timers[TIMERS];
static atomic_uint fired, fired_order[TIMERS];

static void note_fire(struct sv_timer *timer)
{
	unsigned turn = atomic_fetch_add(&fired, 1);

	CU_ASSERT(sv_engine_is_self());
	CU_ASSERT(clock_now() >= timer->due.at);
	atomic_store(&fired_order[turn], (unsigned)(timer - timers));
}

static bool all_fired(void *arg)
{
	return atomic_load(&fired) == *(unsigned *)arg;
}

static atomic_bool slow_begun, slow_go, slow_done;

static void fire_slowly(struct sv_timer *timer)
{
	(void)timer;
	atomic_store(&slow_begun, true);
	while (!atomic_load(&slow_go))
		sched_yield();
	atomic_store(&slow_done, true);
}

static bool has_begun(void *arg)
{
	return atomic_load((atomic_bool *)arg);
}

/* Blocks the engine until slow_go is set. */
static void occupy_engine(struct sv_timer *timer)
{
	atomic_store(&slow_begun, false);
	atomic_store(&slow_go, false);
	atomic_store(&slow_done, false);
	sv_engine_timer_arm(timer, clock_now(), fire_slowly);
	CU_ASSERT_FATAL(unit_wait_for(has_begun, &slow_begun, UNIT_PATIENCE));
}

static void timers_fire_in_order(void)
{
	/* in milliseconds; 2 and 4 are cancelled */
	static const unsigned delay[TIMERS] = { 30, 10, 50, 20, 40 };
	static struct sv_timer slow;
	unsigned want = 3, i;
	uint64_t now;

	atomic_store(&fired, 0);
	CU_ASSERT_EQUAL_FATAL(sv_runtime_hold(&sv_data_client), 0);
	CU_ASSERT_FALSE(sv_engine_is_self());
	/* no timer fires before all are armed or cancelled, however long that takes */
	occupy_engine(&slow);
	now = clock_now();
	for (i = 0; i < TIMERS; i++)
		sv_engine_timer_arm(&timers[i], now + delay[i] * NSEC_PER_MSEC, note_fire);
	sv_engine_timer_cancel(&timers[2]);
	sv_engine_timer_cancel(&timers[4]);
	CU_ASSERT_FALSE(deadline_is_set(&timers[2].due));
	atomic_store(&slow_go, true);
	CU_ASSERT(unit_wait_for(all_fired, &want, UNIT_PATIENCE));
	CU_ASSERT_EQUAL(atomic_load(&fired_order[0]), 1);
	CU_ASSERT_EQUAL(atomic_load(&fired_order[1]), 3);
	CU_ASSERT_EQUAL(atomic_load(&fired_order[2]), 0);
	for (i = 0; i < TIMERS; i++)
		sv_engine_timer_cancel(&timers[i]);
	sv_runtime_release();
	CU_ASSERT_EQUAL(atomic_load(&fired), want);
}

static void *release_slowly(void *unused)
{
	unsigned i;

	(void)unused;
	for (i = 0; i < 1000; i++)
		sched_yield();
	atomic_store(&slow_go, true);
	return NULL;
}

static void cancel_waits_for_a_running_fire(void)
{
	static struct sv_timer timer;
	pthread_t thread;

	CU_ASSERT_EQUAL_FATAL(sv_runtime_hold(&sv_data_client), 0);
	occupy_engine(&timer);
	CU_ASSERT_EQUAL_FATAL(pthread_create(&thread, NULL, release_slowly, NULL), 0);
	sv_engine_timer_cancel(&timer);
	CU_ASSERT(atomic_load(&slow_done));
	pthread_join(thread, NULL);
	sv_runtime_release();
}

/* ---- two processes ---- */

static void linked_with(const char *theirs, const char *ours, int copy)
{
	struct process other;
	struct sv_peer *peer;
	uint64_t slot = 0;
	unsigned fds;

	CU_ASSERT_FATAL(process_start(&other, reside, (void *)(uintptr_t)theirs));
	CU_ASSERT_FATAL(process_hear(other.fd, &slot));
	setenv("SOFTVERBS_COPY", ours, 1);
	CU_ASSERT_EQUAL_FATAL(sv_runtime_hold(&sv_data_client), 0);
	CU_ASSERT_NOT_EQUAL(slot, sv_runtime_peer_id());
	fds = unit_entries("/proc/self/fd");
	peer = copy < 0 ? sv_peer_get((uint16_t)slot) : link_to(slot);
	if (copy < 0) {
		CU_ASSERT_PTR_NULL(peer);
		CU_ASSERT(unit_wait_for(fds_are, &fds, UNIT_PATIENCE));
	} else {
		CU_ASSERT_PTR_NOT_NULL_FATAL(peer);
		CU_ASSERT_EQUAL(peer->slot, slot);
		CU_ASSERT_EQUAL(peer->pid, other.pid);
		CU_ASSERT_EQUAL((int)peer->copy, copy);
		CU_ASSERT_PTR_NOT_NULL(peer->by_owner);
		CU_ASSERT_FALSE(is_dead(peer));
		sv_peer_put(peer);
	}
	sv_runtime_release();
	unsetenv("SOFTVERBS_COPY");
	process_say(other.fd, 0);
	CU_ASSERT_EQUAL(process_end(&other), 0);
}

static void links_and_chooses_the_copy_class(void)
{
	linked_with("auto", "auto", SV_COPY_PVM);
	linked_with("auto", "bounce", SV_COPY_BOUNCE);
	linked_with("bounce", "auto", SV_COPY_BOUNCE);
	linked_with("pvm", "pvm", SV_COPY_PVM);
	linked_with("memfd", "memfd", SV_COPY_MEMFD);
	linked_with("memfd", "auto", SV_COPY_MEMFD);
	linked_with("auto", "memfd", SV_COPY_BOUNCE); /* memfd was not offered */
	linked_with("memfd", "bounce", SV_COPY_BOUNCE);
	linked_with("nonsense", "auto", SV_COPY_PVM);
	log_open(NULL, 0, LOG_TO_STDERR); /* the refusal is expected */
	linked_with("bounce", "pvm", -1);
	log_open(NULL, LOG_ERROR, LOG_TO_STDERR);
}

/* The exit status tells the copy class of the link. */
static int denied(int fd, void *arg)
{
	struct sv_peer *peer;
	uint64_t slot = 0;
	int status = 100;

	setenv("SOFTVERBS_COPY", arg, 1);
	if (!deny_process_vm())
		return 77;
	if (sv_runtime_hold(&sv_data_client) || !process_hear(fd, &slot))
		return 101;
	peer = link_to(slot);
	if (peer) {
		status = (int)peer->copy;
		sv_peer_put(peer);
	}
	sv_runtime_release();
	return status;
}

static int falls_back(const char *theirs, const char *wish)
{
	struct process other, one;
	uint64_t slot = 0;
	int status;

	CU_ASSERT_FATAL(process_start(&other, reside, (void *)(uintptr_t)theirs));
	CU_ASSERT_FATAL(process_hear(other.fd, &slot));
	CU_ASSERT_FATAL(process_start(&one, denied, (void *)(uintptr_t)wish));
	process_say(one.fd, slot);
	status = process_end(&one);
	process_say(other.fd, 0);
	CU_ASSERT_EQUAL(process_end(&other), 0);
	return status;
}

static void falls_back_where_access_is_denied(void)
{
	int status = falls_back("auto", "auto");

	if (status == 77) {
		fprintf(stderr, "no filters for system calls here\n");
		return;
	}
	CU_ASSERT_EQUAL(status, SV_COPY_BOUNCE);
	CU_ASSERT_EQUAL(falls_back("memfd", "auto"), SV_COPY_MEMFD);
}

/* Both processes begin at once; each sends the round's number when it is linked. */
static int meet(int fd, void *arg)
{
	struct sv_peer *peer;
	uint64_t theirs;
	int status = 2;

	(void)arg;
	if (sv_runtime_hold(&sv_data_client))
		return 1;
	process_say(fd, sv_runtime_peer_id());
	if (!process_hear(fd, &theirs))
		return 3;
	peer = link_to(theirs);
	if (peer)
		status = peer->slot == theirs && !is_dead(peer) ? 0 : 4;
	process_say(fd, (uint64_t)status);
	if (!process_sync(fd)) /* until the other process has seen it, too */
		status = 5;
	if (peer && is_dead(peer))
		status = 6;
	process_say(fd, 0);
	process_sync(fd);
	if (peer)
		sv_peer_put(peer);
	sv_runtime_release();
	return status;
}

static void crossing_connects_make_one_link(void)
{
	struct process one, two;
	uint64_t a, b;
	unsigned round;

	for (round = 0; round < 60; round++) {
		CU_ASSERT_FATAL(process_start(&one, meet, NULL));
		CU_ASSERT_FATAL(process_start(&two, meet, NULL));
		CU_ASSERT_FATAL(process_hear(one.fd, &a) && process_hear(two.fd, &b));
		process_say(one.fd, b);
		process_say(two.fd, a);
		CU_ASSERT(process_hear(one.fd, &a) && !a);
		CU_ASSERT(process_hear(two.fd, &b) && !b);
		process_say(one.fd, 0);
		process_say(two.fd, 0);
		CU_ASSERT(process_sync(one.fd));
		CU_ASSERT(process_sync(two.fd));
		process_say(one.fd, 0);
		process_say(two.fd, 0);
		CU_ASSERT_EQUAL(process_end(&one), 0);
		CU_ASSERT_EQUAL(process_end(&two), 0);
	}
}

/* ---- strangers ---- */

static int knock(void)
{
	struct ucred cred;
	char name[16];

	snprintf(name, sizeof(name), "s%u", sv_runtime_peer_id());
	return sv_name_connect(name, &cred);
}

static bool hung_up(void *arg)
{
	struct pollfd poll_fd = { .fd = *(int *)arg };

	return poll(&poll_fd, 1, 0) == 1 && poll_fd.revents & POLLHUP;
}

static void refused(const void *bytes, size_t size, const int *fds, unsigned count)
{
	struct iovec iov = { (void *)(uintptr_t)bytes, size };
	union {
		struct cmsghdr header;
		char room[CMSG_SPACE(8 * sizeof(int))];
	} control = { .room = { 0 } };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	int fd = knock();

	CU_ASSERT_FATAL(fd >= 0);
	if (count) {
		msg.msg_control = &control;
		msg.msg_controllen = CMSG_SPACE(count * sizeof(int));
		control.header.cmsg_level = SOL_SOCKET;
		control.header.cmsg_type = SCM_RIGHTS;
		control.header.cmsg_len = CMSG_LEN(count * sizeof(int));
		memcpy(CMSG_DATA(&control.header), fds, count * sizeof(int));
	}
	CU_ASSERT_EQUAL(sendmsg(fd, &msg, MSG_NOSIGNAL), (ssize_t)size);
	CU_ASSERT(unit_wait_for(hung_up, &fd, UNIT_PATIENCE));
	close(fd);
}

struct letter {
	uint32_t type, size;
	struct handshake handshake;
};

static void hostile_hellos_are_refused(void)
{
	struct letter letter = { .type = SV_MSG_HANDSHAKE, .size = sizeof(struct handshake) };
	int many[8], count, null = open("/dev/null", O_RDWR | O_CLOEXEC);
	int memfd[3] = { null, null, eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC) };
	char noise[700];
	unsigned fds;

	CU_ASSERT_EQUAL_FATAL(sv_runtime_hold(&sv_data_client), 0);
	log_open(NULL, 0, LOG_TO_STDERR);
	fds = unit_entries("/proc/self/fd");
	memset(noise, 0x5a, sizeof(noise));
	refused(noise, 1, NULL, 0);
	refused(noise, 8, NULL, 0);
	refused(noise, sizeof(noise), NULL, 0);
	refused(&letter, sizeof(letter), NULL, 0); /* no magic */
	letter.handshake = (struct handshake){ .magic = 0x73766831u,
					       .layout = SV_LAYOUT + 1,
					       .modes = 10,
					       .slot = (sv_runtime_peer_id() + 1u) % SV_PEERS };
	refused(&letter, sizeof(letter), memfd, 3); /* another layout */
	letter.handshake.layout = SV_LAYOUT;
	refused(&letter, sizeof(letter), NULL, 0); /* no descriptors */
	refused(&letter, sizeof(letter), memfd, 2);
	letter.handshake.offer = (struct sv_area_offer){ 4096, 4096 };
	refused(&letter, sizeof(letter), memfd, 3); /* no areas */
	refused(&letter, sizeof(letter) - 1, memfd, 3);
	letter.handshake.slot = sv_runtime_peer_id();
	refused(&letter, sizeof(letter), memfd, 3); /* this process's own areas */
	letter.handshake.slot = SV_PEERS;
	refused(&letter, sizeof(letter), memfd, 3);
	letter.handshake.slot = 1u + (sv_runtime_peer_id() == 1);
	for (count = 0; count < 8; count++)
		many[count] = null;
	/* more descriptors than fit: MSG_CTRUNC */
	refused(&letter, sizeof(letter), many, 8);
	letter.type = SV_MSG_CM;
	refused(&letter, sizeof(letter), memfd, 3); /* not a hello */
	letter.type = SV_MSG_DATA;
	refused(&letter, sizeof(letter), memfd, 1);
	letter.type = 77;
	refused(&letter, sizeof(letter), NULL, 0);
	CU_ASSERT(unit_wait_for(fds_are, &fds, UNIT_PATIENCE));
	log_open(NULL, LOG_ERROR, LOG_TO_STDERR);
	close(null);
	close(memfd[2]);
	sv_runtime_release();
}

#define STRANGER 65534u

/*
 * Makes the address under which the given user's process claims a slot, whatever user calls this.
 */
static socklen_t name_of(struct sockaddr_un *address, unsigned user, uint64_t slot)
{
	*address = (struct sockaddr_un){ .sun_family = AF_UNIX };
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 +
			   (size_t)snprintf(address->sun_path + 1, sizeof(address->sun_path) - 1,
					    "softverbs/%d/%u/s%u", SV_LAYOUT, user,
					    (unsigned)slot));
}

/* Claims one of the slots after `slot` that no process has, and returns it; SV_PEERS: it could not. */
static uint64_t squat(int fd, unsigned owner, uint64_t slot)
{
	struct sockaddr_un address;

	for (uint64_t n = 1; n < 8; n++) {
		uint64_t next = (slot + n) % SV_PEERS;

		if (!bind(fd, (struct sockaddr *)&address, name_of(&address, owner, next)))
			return listen(fd, 5) ? SV_PEERS : next;
	}
	return SV_PEERS;
}

/* Another user's process: connects to the slot that it receives, then claims another one and sends its number. */
static int stranger(int fd, void *arg)
{
	unsigned owner = geteuid();
	struct sockaddr_un address;
	socklen_t size;
	uint64_t slot;
	char byte;
	int knocking = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0),
	    squatting = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	(void)arg;
	if (setresgid(STRANGER, STRANGER, STRANGER) || setresuid(STRANGER, STRANGER, STRANGER))
		return 77;
	if (!process_hear(fd, &slot))
		return 1;
	size = name_of(&address, owner, slot);
	if (connect(knocking, (struct sockaddr *)&address, size))
		return 2;
	/* the connection ends without a byte or a descriptor */
	if (recv(knocking, &byte, 1, 0) > 0)
		return 3;
	slot = squat(squatting, owner, slot);
	if (slot == SV_PEERS)
		return 4;
	process_say(fd, slot);
	process_sync(fd);
	return 0;
}

static void other_users_are_strangers(void)
{
	uint64_t squatted;
	struct process other;
	struct ucred cred;
	char name[16];
	int status;

	if (geteuid()) {
		fprintf(stderr, "only root can be another user, too\n");
		return;
	}
	CU_ASSERT_FATAL(process_start(&other, stranger, NULL));
	CU_ASSERT_EQUAL_FATAL(sv_runtime_hold(&sv_data_client), 0);
	process_say(other.fd, sv_runtime_peer_id());
	CU_ASSERT_FATAL(process_hear(other.fd, &squatted));
	snprintf(name, sizeof(name), "s%u", (unsigned)squatted);
	errno = 0;
	CU_ASSERT_EQUAL(sv_name_connect(name, &cred), -1);
	CU_ASSERT_EQUAL(errno, ECONNREFUSED);
	errno = 0;
	CU_ASSERT_PTR_NULL(sv_peer_get((uint16_t)squatted));
	CU_ASSERT_EQUAL(errno, ECONNREFUSED);
	process_say(other.fd, 0);
	status = process_end(&other);
	CU_ASSERT(status == 0 || status == 77);
	sv_runtime_release();
}

static void silent_connection_is_dropped(void)
{
	struct process other;
	struct sv_peer *peer;
	uint64_t slot;
	int fd;

	CU_ASSERT_FATAL(process_start(&other, reside, NULL));
	CU_ASSERT_FATAL(process_hear(other.fd, &slot));
	CU_ASSERT_EQUAL_FATAL(sv_runtime_hold(&sv_data_client), 0);
	fd = knock();
	CU_ASSERT_FATAL(fd >= 0);
	peer = link_to(slot);
	CU_ASSERT_PTR_NOT_NULL_FATAL(peer);
	sv_peer_put(peer);
	CU_ASSERT(unit_wait_for(hung_up, &fd, UNIT_PATIENCE));
	close(fd);
	sv_runtime_release();
	process_say(other.fd, 0);
	CU_ASSERT_EQUAL(process_end(&other), 0);
}

static const struct unit_test tests[] = {
	{ "nothing is left after the last release", leaves_nothing },
	{ "a process is its own peer", self_is_a_peer },
	{ "an empty slot is refused at once", empty_slot_is_refused },
	{ "timers fire in order, and not after a cancel", timers_fire_in_order },
	{ "a cancel waits for a running timer", cancel_waits_for_a_running_fire },
	{ "a link chooses the copy class of each direction", links_and_chooses_the_copy_class },
	{ "a link chooses another way to copy where access is denied",
	  falls_back_where_access_is_denied },
	{ "two processes that connect at once have one link", crossing_connects_make_one_link },
	{ "hostile hellos are refused", hostile_hellos_are_refused },
	{ "other users' processes are strangers", other_users_are_strangers },
	{ "a silent connection is dropped", silent_connection_is_dropped },
};

UNIT_MAIN("softverbs_link", tests)
