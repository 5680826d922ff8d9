/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * Peers that pass descriptors of a wrong kind, or misuse those passed to them: the other process
 * neither ends nor blocks, and gets its events. This process is the hostile one; its child behaves
 * correctly.
 */
#include <fcntl.h>
#include <linux/memfd.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include "softverbs/attend.h"
#include "softverbs/object/channel.h"
#include "softverbs/link/runtime.h"
#include "test/unit/linked.h"
#include "test/unit/node.h"
#include "test/unit/silent_fs.h"
#include "util/clock.h"

/* ---- hostile behaviour of this process ---- */

static int channel_fd = -1; /* passed in place of a channel's descriptor */
static int hello_fd[SV_HANDSHAKE_FDS] = { -1, -1, -1 }; /* passed in a hello, by index */
static atomic_int kept_fd = -1; /* the channel's descriptor that the other process passed */

int __wrap_sv_peer_send(struct sv_peer *peer, enum sv_msg type, const void *payload, size_t size,
			int fd);
int __real_sv_peer_send(struct sv_peer *peer, enum sv_msg type, const void *payload, size_t size,
			int fd);
int __wrap_sv_link_send_locked(struct sv_link *link, enum sv_msg type, const void *payload,
			       size_t size, const int *fds, unsigned fd_count);
int __real_sv_link_send_locked(struct sv_link *link, enum sv_msg type, const void *payload,
			       size_t size, const int *fds, unsigned fd_count);
void __wrap_sv_channel_message(struct sv_peer *peer, const void *payload, size_t size, int fd);
void __real_sv_channel_message(struct sv_peer *peer, const void *payload, size_t size, int fd);

int __wrap_sv_peer_send(struct sv_peer *peer, enum sv_msg type, const void *payload, size_t size,
			int fd)
{
	return __real_sv_peer_send(peer, type, payload, size,
				   fd >= 0 && channel_fd >= 0 ? channel_fd : fd);
}

int __wrap_sv_link_send_locked(struct sv_link *link, enum sv_msg type, const void *payload,
			       size_t size, const int *fds, unsigned fd_count)
{
	int passed[SV_HANDSHAKE_FDS];

	for (unsigned i = 0; i < fd_count; i++)
		passed[i] = type == SV_MSG_HANDSHAKE && hello_fd[i] >= 0 ? hello_fd[i] : fds[i];
	return __real_sv_link_send_locked(link, type, payload, size, passed, fd_count);
}

void __wrap_sv_channel_message(struct sv_peer *peer, const void *payload, size_t size, int fd)
{
	if (fd >= 0)
		atomic_store(&kept_fd, fcntl(fd, F_DUPFD_CLOEXEC, 0));
	__real_sv_channel_message(peer, payload, size, fd);
}

static atomic_uint unreachable; /* number of links that did not become ready */

void __wrap_sv_cm_peer_unreachable(uint16_t id, int error);
void __real_sv_cm_peer_unreachable(uint16_t id, int error);

void __wrap_sv_cm_peer_unreachable(uint16_t id, int error)
{
	atomic_fetch_add(&unreachable, 1);
	__real_sv_cm_peer_unreachable(id, error);
}

/* ---- descriptors ---- */

static int broken_pipe(void)
{
	int fds[2];

	if (pipe2(fds, O_CLOEXEC))
		return -1;
	close(fds[0]);
	return fds[1];
}

static int full_pipe(void)
{
	static const char page[4096];
	int fds[2];

	if (pipe2(fds, O_CLOEXEC | O_NONBLOCK))
		return -1;
	while (write(fds[1], page, sizeof(page)) > 0)
		;
	fcntl(fds[1], F_SETFL, 0); /* writes block from now on; the reader stays open */
	return fds[1];
}

static int full_eventfd(void)
{
	int fd = eventfd(0, EFD_CLOEXEC | EFD_SEMAPHORE);

	eventfd_write(fd, UINT64_MAX - 1);
	return fd;
}

static int broken_socket(void)
{
	int fds[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds))
		return -1;
	close(fds[0]);
	return fds[1];
}

static int plain_file(void)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/file", unit_tmpdir());
	return open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
}

static int fifo(void)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/fifo", unit_tmpdir());
	return mkfifo(path, 0600) && errno != EEXIST ? -1 : open(path, O_RDWR | O_CLOEXEC);
}

static int area_like(unsigned flags, int seals)
{
	int fd = memfd_create("hostile", MFD_CLOEXEC | MFD_ALLOW_SEALING | flags);

	if (fd < 0 || ftruncate(fd, 32 << 20) || fcntl(fd, F_ADD_SEALS, seals)) {
		if (fd >= 0)
			close(fd);
		return -1;
	}
	return fd;
}

static int huge_memfd(void)
{
	return area_like(MFD_HUGETLB, F_SEAL_SHRINK | F_SEAL_GROW);
}

static int unsealed_memfd(void)
{
	return area_like(0, 0);
}

static int half_sealed_memfd(void)
{
	return area_like(0, F_SEAL_GROW);
}

static int read_only_memory(void)
{
	return open("/proc/self/mem", O_RDONLY | O_CLOEXEC);
}

static int proc_file(void)
{
	return open("/proc/self/comm", O_RDWR | O_CLOEXEC);
}

struct kind {
	const char *name;
	int (*make)(void); /* -1: not available on this system */
	bool swallows;	   /* the owner's tokens go to this descriptor and are lost */
};

/* ---- a channel's descriptor from the owner ---- */

static const struct node_options with_channel = { .channel = true };

/* Sends on request. */
static int sender_child(int fd, void *arg)
{
	struct node node;
	struct ibv_wc wc;
	uint64_t go;

	(void)arg;
	if (!node_open(&node, &with_channel) || !node_connect(&node, 0, 1, fd))
		return 1;
	while (process_hear(fd, &go) && go)
		if (node_send(&node, 0, 0, 0, 8, IBV_SEND_SIGNALED) || !node_poll(&node, &wc) ||
		    wc.status || !process_say(fd, 1))
			return 2;
	return node_close(&node);
}

static bool event_comes(struct node *node)
{
	struct pollfd ready = { .fd = node->channel->fd, .events = POLLIN };
	struct ibv_cq *cq;
	void *context;

	if (poll(&ready, 1, UNIT_PATIENCE) != 1 || ready.revents != POLLIN ||
	    ibv_get_cq_event(node->channel, &cq, &context))
		return false;
	ibv_ack_cq_events(cq, 1);
	return true;
}

/* The send completes, and the event arrives. */
static bool message_with_event(struct node *node, struct process *sender, bool swallowed)
{
	struct ibv_wc wc;

	return !node_recv(node, 0, 0, 0, 8) && !ibv_req_notify_cq(node->cq, 0) &&
	       process_say(sender->fd, 1) && process_sync(sender->fd) &&
	       (swallowed || event_comes(node)) && node_poll(node, &wc);
}

static void channel_of_kind(const struct kind *kind)
{
	struct process sender;
	struct node node;
	bool came = true;
	unsigned i;

	/* forked first, so that it does not inherit the descriptors below */
	CU_ASSERT_FATAL(process_start(&sender, sender_child, NULL));
	channel_fd = kind->make();
	if (channel_fd < 0) {
		fprintf(stderr, "skipped: %s\n", kind->name);
		process_kill(&sender);
		return;
	}
	CU_ASSERT_FATAL(node_open(&node, &with_channel));
	CU_ASSERT_FATAL(node_connect(&node, 0, 1, sender.fd));
	/* the first message requests the descriptor, later ones would use it */
	for (i = 0; i < 8 && came; i++)
		came = message_with_event(&node, &sender, kind->swallows);
	if (!came)
		fprintf(stderr, "%s: message %u\n", kind->name, i);
	CU_ASSERT_TRUE(came);
	silent_end();
	process_say(sender.fd, 0);
	CU_ASSERT_EQUAL(process_end(&sender), 0);
	CU_ASSERT_EQUAL(node_close(&node), 0);
	close(channel_fd);
	channel_fd = -1;
}

static void owner_passes_any_channel(void)
{
	static const struct kind kinds[] = {
		{ .name = "a pipe without a reader", .make = broken_pipe, .swallows = true },
		{ .name = "a full pipe", .make = full_pipe },
		{ .name = "an eventfd at its limit", .make = full_eventfd },
		{ .name = "a socket without a peer", .make = broken_socket },
		{ .name = "a file", .make = plain_file },
		{ .name = "a FIFO", .make = fifo },
		{ .name = "a memfd", .make = unsealed_memfd },
		{ .name = "a file whose server is silent", .make = silent_file },
	};

	if (PROCESS_TSAN)
		return;
	for (unsigned i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		channel_of_kind(&kinds[i]);
}

/* ---- a channel's descriptor in the hands of a sender ---- */

/* Takes an event; true if the channel has none, which one that does not block says at once. */
static bool is_empty(struct node *node)
{
	struct ibv_cq *cq;
	void *context;

	if (ibv_get_cq_event(node->channel, &cq, &context))
		return errno == EAGAIN;
	ibv_ack_cq_events(cq, 1);
	return false;
}

/*
 * The owner. Each number that it receives is a number of messages to expect, with one event each.
 */
static int owner_child(int fd, void *arg)
{
	struct node node;
	struct ibv_wc wc;
	uint64_t count;

	(void)arg;
	if (!node_open(&node, &with_channel) || !node_connect(&node, 0, 1, fd) ||
	    fcntl(node.channel->fd, F_SETFL, O_NONBLOCK))
		return 1;
	while (process_hear(fd, &count) && count) {
		for (; count; count--) {
			while (!is_empty(&node)) /* spurious tokens of the other process */
				;
			if (node_recv(&node, 0, 0, 0, 8) || ibv_req_notify_cq(node.cq, 0) ||
			    !process_say(fd, 1))
				return 2;
			if (!event_comes(&node) || !node_poll(&node, &wc) || !process_sync(fd))
				return 3;
		}
		if (!(fcntl(node.channel->fd, F_GETFL) & O_NONBLOCK))
			return 4;
	}
	return node_close(&node);
}

static bool messages_arrive(struct node *node, struct process *owner, uint64_t count)
{
	struct ibv_wc wc;

	if (!process_say(owner->fd, count))
		return false;
	for (; count; count--)
		if (!process_sync(owner->fd) || node_send(node, 0, 0, 0, 8, IBV_SEND_SIGNALED) ||
		    !node_poll(node, &wc) || wc.status || !process_say(owner->fd, 1))
			return false;
	return true;
}

/* The engine keeps it when the owner's answer comes, which may be after the first messages. */
static int channel_fd_await(void)
{
	uint64_t deadline = clock_now() + UNIT_PATIENCE * NSEC_PER_MSEC;

	while (atomic_load(&kept_fd) < 0 && clock_now() < deadline)
		sched_yield();
	return atomic_load(&kept_fd);
}

static void fill(int fd)
{
	static const uint64_t token[512] = { UINT64_MAX - 1 };

	fcntl(fd, F_SETFL, O_NONBLOCK);
	while (write(fd, token, sizeof(token)) > 0)
		;
	fcntl(fd, F_SETFL, 0);
}

static void sender_spoils_the_channel(void)
{
	struct process owner;
	struct node node;
	int fd;

	if (PROCESS_TSAN)
		return;
	CU_ASSERT_FATAL(process_start(&owner, owner_child, NULL));
	CU_ASSERT_FATAL(node_open(&node, &with_channel));
	CU_ASSERT_FATAL(node_connect(&node, 0, 1, owner.fd));
	CU_ASSERT(messages_arrive(&node, &owner, 4));
	fd = channel_fd_await();
	CU_ASSERT_FATAL(fd >= 0);
	/* flags of the passed descriptor, not of the channel */
	CU_ASSERT_EQUAL(fcntl(fd, F_SETFL, 0), 0);
	CU_ASSERT(messages_arrive(&node, &owner, 4));
	fill(fd);
	CU_ASSERT(messages_arrive(&node, &owner, 1));
	fill(fd); /* blocks every process that writes through the shared flags */
	CU_ASSERT(messages_arrive(&node, &owner, 4));
	process_say(owner.fd, 0);
	CU_ASSERT_EQUAL(process_end(&owner), 0);
	CU_ASSERT_EQUAL(node_close(&node), 0);
	close(fd);
	atomic_store(&kept_fd, -1);
}

/* ---- a hello's descriptors ---- */

static int quiet_child(int fd, void *arg)
{
	(void)arg;
	if (sv_runtime_hold(&sv_data_client) || !process_say(fd, sv_runtime_peer_id()) ||
	    !process_sync(fd))
		return 1;
	sv_runtime_release();
	return 0;
}

/* A process that behaves correctly can still link with it: its engine continues. */
static int honest_child(int fd, void *arg)
{
	struct sv_peer *peer;
	uint64_t slot;

	(void)arg;
	if (!process_hear(fd, &slot) || sv_runtime_hold(&sv_data_client))
		return 1;
	peer = link_to(slot);
	if (!peer)
		return 2;
	sv_peer_put(peer);
	sv_runtime_release();
	return 0;
}

/* Returns NULL if the link was refused or ended before it was ready. */
static struct sv_peer *link_once(uint64_t slot)
{
	struct wanted wanted = { .slot = (uint16_t)slot };
	unsigned before = atomic_load(&unreachable);

	while (!linked(&wanted) && atomic_load(&unreachable) == before)
		sched_yield();
	return wanted.peer;
}

static void hello_of_kind(const struct kind *kind, unsigned place, bool usable)
{
	struct process quiet, honest;
	struct sv_peer *peer;
	uint64_t slot;

	/* forked first, so that they do not inherit the descriptors below */
	CU_ASSERT_FATAL(process_start(&quiet, quiet_child, NULL));
	CU_ASSERT_FATAL(process_start(&honest, honest_child, NULL));
	CU_ASSERT_FATAL(process_hear(quiet.fd, &slot));
	hello_fd[place] = kind->make();
	if (hello_fd[place] < 0) {
		fprintf(stderr, "skipped: %s\n", kind->name);
		process_kill(&quiet);
		process_kill(&honest);
		return;
	}
	CU_ASSERT_EQUAL_FATAL(sv_runtime_hold(&sv_data_client), 0);
	peer = link_once(slot);
	if (usable != !!peer)
		fprintf(stderr, "%s in place %u: %s\n", kind->name, place,
			peer ? "linked" : "refused");
	CU_ASSERT_EQUAL(!!peer, usable);
	if (peer)
		sv_peer_put(peer);
	process_say(honest.fd, slot);
	CU_ASSERT_EQUAL(process_end(&honest), 0);
	silent_end();
	process_say(quiet.fd, 1);
	CU_ASSERT_EQUAL(process_end(&quiet), 0);
	sv_runtime_release();
	close(hello_fd[place]);
	hello_fd[place] = -1;
}

static void areas_of_any_kind(void)
{
	static const struct kind kinds[] = {
		{ .name = "a memfd of huge pages", .make = huge_memfd },
		{ .name = "a memfd without seals", .make = unsealed_memfd },
		{ .name = "a memfd that may shrink", .make = half_sealed_memfd },
		{ .name = "a pipe", .make = broken_pipe },
		{ .name = "a file", .make = plain_file },
		{ .name = "a file whose server is silent", .make = silent_file },
	};

	if (PROCESS_TSAN)
		return;
	for (unsigned i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		hello_of_kind(&kinds[i], 0, false);
		hello_of_kind(&kinds[i], 1, false);
	}
}

/* A descriptor that is not memory is not used: each process copies for the other. */
static void memory_of_any_kind(void)
{
	static const struct kind kinds[] = {
		{ .name = "memory for reading only", .make = read_only_memory },
		{ .name = "another file of /proc", .make = proc_file },
		{ .name = "a pipe", .make = full_pipe },
		{ .name = "a file", .make = plain_file },
		{ .name = "a memfd", .make = unsealed_memfd },
		{ .name = "a file whose server is silent", .make = silent_file },
	};

	if (PROCESS_TSAN)
		return;
	setenv("SOFTVERBS_COPY", "memfd", 1);
	for (unsigned i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		hello_of_kind(&kinds[i], 2, true);
	unsetenv("SOFTVERBS_COPY");
}

static const struct unit_test tests[] = {
	{ "an owner passes any descriptor for its channel: senders continue, events come",
	  owner_passes_any_channel },
	{ "a sender spoils the descriptor that it was passed: the owner's events come",
	  sender_spoils_the_channel },
	{ "areas of a wrong kind are refused, and the engine continues", areas_of_any_kind },
	{ "memory of a wrong kind is not used, and the engine continues", memory_of_any_kind },
};

UNIT_MAIN("test_softverbs_hostile", tests)
