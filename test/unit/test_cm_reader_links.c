/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* A thread in dat_evd_wait reads what the other process sends: the engine of this one does something else. */
#include "test/unit/announce.h"
#include "test/unit/busy_engine.h"
#include "test/unit/other_side.h"

/* Connections to or from the child: the first links the two processes, which the engines do. */
static void accept_one(void)
{
	MUST(dat_cr_accept(request_next(&env), a.ep, 0, NULL));
	expect(a.conn, DAT_CONNECTION_EVENT_ESTABLISHED, a.ep);
}

static void connect_one(const struct place *place)
{
	connect_to(place);
	expect(a.conn, DAT_CONNECTION_EVENT_ESTABLISHED, a.ep);
}

static void end_one(void)
{
	expect(a.conn, DAT_CONNECTION_EVENT_DISCONNECTED, a.ep);
	MUST(dat_ep_reset(a.ep));
}

static void disconnect_one(void)
{
	MUST(dat_ep_disconnect(a.ep, DAT_CLOSE_ABRUPT_FLAG));
	end_one();
}

static void child_listens(int fd)
{
	place_send(fd);
	accept_one();
	end_one();
	accept_one();
	end_one();
	process_say(fd, 0);
	pause();
}

static void child_connects(int fd)
{
	struct place place = place_receive(fd);

	connect_one(&place);
	end_one();
	process_sync(fd);
	connect_one(&place);
	end_one();
	process_say(fd, 0);
	pause();
}

static void test_active(void)
{
	struct place place;

	announce();
	peer_start(child_listens);
	setup();
	place = place_receive(peer.fd);
	connect_one(&place);
	disconnect_one();
	busy_begin(0, false);
	connect_one(&place);
	disconnect_one();
	busy_let_go();
	busy_end();
	CU_ASSERT_TRUE(process_sync(peer.fd));
	process_kill(&peer);
	teardown();
}

static void test_passive(void)
{
	announce();
	peer_start(child_connects);
	setup();
	place_send(peer.fd);
	accept_one();
	disconnect_one();
	busy_begin(0, false);
	CU_ASSERT_TRUE(process_say(peer.fd, 0));
	accept_one();
	disconnect_one();
	busy_let_go();
	busy_end();
	CU_ASSERT_TRUE(process_sync(peer.fd));
	process_kill(&peer);
	teardown();
}

static const struct unit_test tests[] = {
	{ "the active side's waiter reads the reply and the end", test_active },
	{ "the passive side's waiter reads the request and what follows", test_passive },
};

UNIT_MAIN("cm_reader_links", tests)
