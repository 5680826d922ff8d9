/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* A thread that reads links in place of the engine. */
#include "test/unit/link_rig.h"

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
	no_check = true;
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

static void turn_run(struct engine_fd *handler, uint32_t events)
{
	eventfd_t count;

	(void)events;
	CU_ASSERT_EQUAL(eventfd_read(handler->fd, &count), 0);
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
	sv_link_reader_end(false);
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
