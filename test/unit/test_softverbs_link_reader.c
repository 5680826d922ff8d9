/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* A thread that reads links in place of the engine: another process sends what the test asks for. */
#include "softverbs/link/cm_calls.h"
#include "softverbs/link/link_reader.h"
#include "test/unit/busy_engine.h"
#include "test/unit/linked.h"
#include "test/unit/no_look.h"

/* ---- what arrives here ---- */

#define LOG_SIZE 8

static atomic_uint cm_by_engine, cm_by_reader, rings, data_count;
static atomic_int data_order[LOG_SIZE];
static atomic_bool data_in_engine, ring_in_engine;

static void cm_arrives(struct sv_peer *peer, const void *payload, size_t size)
{
	(void)peer;
	(void)payload;
	CU_ASSERT_EQUAL(size, sizeof(uint64_t));
	atomic_fetch_add(sv_engine_is_self() ? &cm_by_engine : &cm_by_reader, 1);
}

static void data_arrives(struct sv_peer *peer, const void *payload, size_t size, int fd)
{
	uint64_t number;

	(void)peer;
	CU_ASSERT_EQUAL_FATAL(size, sizeof(number));
	memcpy(&number, payload, sizeof(number));
	if (fd >= 0)
		close(fd);
	atomic_store(&data_in_engine, sv_engine_is_self());
	atomic_store(&data_order[atomic_load(&data_count)], (int)number);
	atomic_fetch_add(&data_count, 1);
}

static void ring_arrives(void)
{
	atomic_store(&ring_in_engine, sv_engine_is_self());
	atomic_fetch_add(&rings, 1);
}

static void peer_event(struct sv_peer *peer)
{
	(void)peer;
}

static void peer_unreachable(uint16_t slot, int error)
{
	(void)slot;
	(void)error;
}

static void nothing(void)
{
}

static const struct sv_cm_calls cm_calls = {
	.message = cm_arrives,
	.peer_ready = peer_event,
	.peer_unreachable = peer_unreachable,
	.peer_gone = peer_event,
	.fork_begin = nothing,
	.fork_end = nothing,
	.fork_prepare = nothing,
	.fork_parent = nothing,
	.fork_child = nothing,
};

static struct sv_link_client client;

static bool is_one(void *count)
{
	return atomic_load((atomic_uint *)count) == 1;
}

/* ---- the sender ---- */

enum order { STOP, SEND_CM, SEND_DATA, SEND_RING, SEND_BAD };

static int send_one(struct sv_peer *peer, uint64_t order, uint64_t number)
{
	static const enum sv_msg types[] = {
		[SEND_CM] = SV_MSG_CM, [SEND_DATA] = SV_MSG_DATA, [SEND_BAD] = 99
	};
	int fd = order == SEND_DATA ? eventfd(0, EFD_CLOEXEC) : -1, error = 0;

	if (order == SEND_RING)
		sv_peer_ring(peer);
	else
		error = sv_peer_send(peer, types[order], &number, sizeof(number), fd);
	if (fd >= 0)
		close(fd);
	return error;
}

/* Sends to the process whose slot it hears first. */
static int sender_run(int fd, void *arg)
{
	uint64_t slot, order, number = 0;
	struct sv_peer *peer;

	(void)arg;
	if (!process_hear(fd, &slot) || sv_runtime_hold(&client))
		return 1;
	peer = link_to(slot);
	process_say(fd, sv_runtime_peer_id());
	while (peer && process_hear(fd, &order) && order != STOP) {
		if (send_one(peer, order, ++number))
			return 1;
		process_say(fd, 0);
	}
	if (peer)
		sv_peer_put(peer);
	sv_runtime_release();
	return !peer;
}

static struct process sender;
static struct sv_peer *sender_peer;

static void ask(enum order order)
{
	CU_ASSERT_TRUE_FATAL(process_say(sender.fd, order));
	CU_ASSERT_TRUE_FATAL(process_sync(sender.fd));
}

/* ---- the reader ---- */

static void sender_start(void)
{
	client = sv_data_client;
	client.message = data_arrives;
	client.doorbell = ring_arrives;
	sv_cm_calls_set(&cm_calls);
	atomic_store(&cm_by_engine, 0);
	atomic_store(&cm_by_reader, 0);
	atomic_store(&data_count, 0);
	CU_ASSERT_TRUE_FATAL(process_start(&sender, sender_run, NULL));
	CU_ASSERT_EQUAL_FATAL(sv_runtime_hold(&client), 0);
}

static void sender_link(void)
{
	uint64_t slot;

	CU_ASSERT_TRUE_FATAL(process_say(sender.fd, sv_runtime_peer_id()));
	CU_ASSERT_TRUE_FATAL(process_hear(sender.fd, &slot));
	sender_peer = link_to(slot);
	CU_ASSERT_PTR_NOT_NULL_FATAL(sender_peer);
	atomic_store(&rings, 0);
}

static void rig_open(void)
{
	sender_start();
	sender_link();
}

static void sender_stop(void)
{
	CU_ASSERT_TRUE(process_say(sender.fd, STOP));
	CU_ASSERT_EQUAL(process_end(&sender), 0);
}

static void rig_close(bool stops_sender)
{
	no_look = false;
	if (stops_sender)
		sender_stop();
	sv_peer_put(sender_peer);
	sv_runtime_release();
}

static int begin(void)
{
	int fd;

	no_look = true;
	fd = sv_link_reader_begin();
	CU_ASSERT_TRUE_FATAL(fd >= 0);
	return fd;
}

static bool is_readable(int fd)
{
	struct pollfd poll_fd = { .fd = fd, .events = POLLIN };

	return poll(&poll_fd, 1, 0) == 1;
}

static void end(void)
{
	sv_link_reader_end();
	no_look = false;
}

static void engine_catches_up(void)
{
	bool looks = no_look;

	no_look = false;
	busy_end();
	no_look = looks;
}

/* ---- tests ---- */

static void test_reads(void)
{
	int fd;

	rig_open();
	fd = begin();
	CU_ASSERT_FALSE(is_readable(fd));
	ask(SEND_CM);
	engine_catches_up();
	CU_ASSERT_EQUAL(atomic_load(&cm_by_engine), 0);
	CU_ASSERT_TRUE(is_readable(fd));
	CU_ASSERT_TRUE(sv_link_reader_read());
	CU_ASSERT_EQUAL(atomic_load(&cm_by_reader), 1);
	CU_ASSERT_FALSE(is_readable(fd));
	CU_ASSERT_EQUAL(sv_link_reader_begin(), -1); /* there is one */
	end();
	ask(SEND_CM);
	CU_ASSERT_TRUE(unit_wait_for(is_one, &cm_by_engine, UNIT_PATIENCE));
	rig_close(true);
}

static void test_reads_later_link(void)
{
	sender_start();
	begin();
	end();
	sender_link();
	begin();
	ask(SEND_CM);
	engine_catches_up();
	sv_link_reader_read();
	CU_ASSERT_EQUAL(atomic_load(&cm_by_engine), 0);
	CU_ASSERT_EQUAL(atomic_load(&cm_by_reader), 1);
	end();
	rig_close(true);
}

/* It does not call sv_link_reader_read, as in a signal handler. Afterwards it ends, and may begin anew. */
static void test_is_away(void)
{
	rig_open();
	CU_ASSERT_TRUE(sv_link_reader_begin() >= 0);
	ask(SEND_CM);
	CU_ASSERT_TRUE(unit_wait_for(is_one, &cm_by_engine, UNIT_PATIENCE));
	CU_ASSERT_FALSE(sv_link_reader_read());
	end();
	begin();
	ask(SEND_CM);
	engine_catches_up();
	CU_ASSERT_TRUE(sv_link_reader_read());
	CU_ASSERT_EQUAL(atomic_load(&cm_by_engine), 1);
	CU_ASSERT_EQUAL(atomic_load(&cm_by_reader), 1);
	end();
	rig_close(true);
}

/* The engine waits for the links, too, and is busy with something else when a message comes. */
static void test_has_them_again(void)
{
	rig_open();
	CU_ASSERT_TRUE(sv_link_reader_begin() >= 0);
	ask(SEND_CM);
	CU_ASSERT_TRUE(unit_wait_for(is_one, &cm_by_engine, UNIT_PATIENCE));
	busy_begin(0, false);
	ask(SEND_CM);
	no_look = true;
	CU_ASSERT_TRUE(sv_link_reader_read());
	busy_let_go();
	engine_catches_up();
	ask(SEND_CM);
	engine_catches_up();
	CU_ASSERT_EQUAL(atomic_load(&cm_by_engine), 1);
	CU_ASSERT_TRUE(sv_link_reader_read());
	CU_ASSERT_EQUAL(atomic_load(&cm_by_reader), 2);
	end();
	rig_close(true);
}

static void test_leaves_rings(void)
{
	rig_open();
	begin();
	ask(SEND_RING);
	engine_catches_up();
	CU_ASSERT_EQUAL(atomic_load(&rings), 0);
	CU_ASSERT_FALSE(sv_link_reader_read()); /* it is to end */
	CU_ASSERT_TRUE(unit_wait_for(is_one, &rings, UNIT_PATIENCE));
	CU_ASSERT_TRUE(atomic_load(&ring_in_engine));
	end();
	rig_close(true);
}

static void test_leaves_data(void)
{
	unsigned fds;

	rig_open();
	begin();
	fds = unit_entries("/proc/self/fd");
	ask(SEND_DATA);
	engine_catches_up();
	CU_ASSERT_EQUAL(atomic_load(&data_count), 0);
	sv_link_reader_read();
	CU_ASSERT_TRUE(unit_wait_for(is_one, &data_count, UNIT_PATIENCE));
	CU_ASSERT_TRUE(atomic_load(&data_in_engine));
	CU_ASSERT_EQUAL(unit_entries("/proc/self/fd"), fds);
	end();
	rig_close(true);
}

/* ---- one turn of the engine ---- */

static atomic_bool turn_begun, turn_goes_on;

static void turn_run(struct engine_fd *watch, uint32_t events)
{
	eventfd_t count;

	(void)events;
	CU_ASSERT_EQUAL(eventfd_read(watch->fd, &count), 0);
	atomic_store(&turn_begun, true);
	while (!atomic_load(&turn_goes_on))
		poll(NULL, 0, 1);
}

static bool both_came(void *unused)
{
	(void)unused;
	return atomic_load(&data_count) == 2;
}

/*
 * The engine learns in one turn of a descriptor, with which it is busy, and of the links. In between a reader reads the first
 * message, which the engine is to handle, and the second comes, which the engine reads itself.
 */
static void test_keeps_order(void)
{
	static struct engine_fd turn = { .fd = -1 };
	int wake = eventfd(0, EFD_CLOEXEC);

	rig_open();
	begin();
	end();
	atomic_store(&turn_begun, false);
	atomic_store(&turn_goes_on, false);
	CU_ASSERT_EQUAL_FATAL(sv_engine_fd_add(&turn, wake, EPOLLIN, turn_run), 0);
	busy_begin(0, false);
	CU_ASSERT_EQUAL(eventfd_write(wake, 1), 0);
	ask(SEND_DATA);
	busy_let_go();
	CU_ASSERT_TRUE_FATAL(unit_wait_for(busy_flag_is, &turn_begun, UNIT_PATIENCE));
	begin();
	sv_link_reader_read();
	ask(SEND_DATA);
	CU_ASSERT_EQUAL(atomic_load(&data_count), 0);
	atomic_store(&turn_goes_on, true);
	CU_ASSERT_TRUE(unit_wait_for(both_came, NULL, UNIT_PATIENCE));
	CU_ASSERT_EQUAL(atomic_load(&data_order[0]), 1);
	CU_ASSERT_EQUAL(atomic_load(&data_order[1]), 2);
	end();
	sv_engine_fd_remove(&turn);
	rig_close(true);
}

/* ---- ends ---- */

/* The engine closes the link, whose end the reader has seen, and the descriptor is not readable any more. */
static void test_violation(void)
{
	int fd;

	rig_open();
	fd = begin();
	ask(SEND_BAD);
	engine_catches_up();
	CU_ASSERT_FALSE(is_dead(sender_peer));
	sv_link_reader_read();
	CU_ASSERT_TRUE(unit_wait_for(is_dead, sender_peer, UNIT_PATIENCE));
	CU_ASSERT_FALSE(is_readable(fd));
	end();
	rig_close(true);
}

static bool read_until_dead(void *peer)
{
	sv_link_reader_read();
	return is_dead(peer);
}

static void test_peer_ends(void)
{
	int fd;

	rig_open();
	fd = begin();
	sender_stop();
	CU_ASSERT_TRUE(unit_wait_for(read_until_dead, sender_peer, UNIT_PATIENCE));
	CU_ASSERT_FALSE(is_readable(fd));
	end();
	rig_close(false);
}

static void test_leaves_nothing(void)
{
	unsigned fds, held;

	rig_open();
	rig_close(true);
	fds = unit_entries("/proc/self/fd");
	rig_open();
	held = unit_entries("/proc/self/fd");
	begin();
	end();
	CU_ASSERT_EQUAL(unit_entries("/proc/self/fd"), held);
	rig_close(true);
	CU_ASSERT_EQUAL(unit_entries("/proc/self/fd"), fds);
}

/* A child begins anew, while its parent is a reader and goes on to be one. */
static int child_reads(int fd, void *arg)
{
	int links;

	(void)fd;
	(void)arg;
	if (sv_runtime_hold(&client))
		return 1;
	links = sv_link_reader_begin();
	sv_link_reader_end();
	sv_runtime_release();
	return links < 0;
}

static void test_fork(void)
{
	struct process child;

	if (PROCESS_TSAN)
		return;
	rig_open();
	begin();
	CU_ASSERT_TRUE_FATAL(process_start(&child, child_reads, NULL));
	CU_ASSERT_EQUAL(process_end(&child), 0);
	ask(SEND_CM);
	sv_link_reader_read();
	CU_ASSERT_EQUAL(atomic_load(&cm_by_reader), 1);
	end();
	rig_close(true);
}

static const struct unit_test tests[] = {
	{ "a reader handles the messages, and the engine does not", test_reads },
	{ "a reader reads links that were made later, too", test_reads_later_link },
	{ "the engine reads while a reader does not", test_is_away },
	{ "a reader that reads again has the links to itself", test_has_them_again },
	{ "a doorbell that a reader reads is answered by the engine", test_leaves_rings },
	{ "a message of the data path is handled by the engine", test_leaves_data },
	{ "messages of the data path keep their order", test_keeps_order },
	{ "a link that violates the protocol is closed", test_violation },
	{ "a link ends with its peer", test_peer_ends },
	{ "nothing is left after the end", test_leaves_nothing },
	{ "a forked child has links of its own", test_fork },
};

UNIT_MAIN("softverbs_link_reader", tests)
