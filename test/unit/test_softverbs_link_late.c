/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* A link of two processes that are late: one that was given up makes no peer, and a hello that has come is in time. */
#include "softverbs/attend.h"
#include "test/unit/busy_engine.h"
#include "test/unit/linked.h"

static atomic_uint ready;

static void count_ready(struct sv_peer *peer)
{
	atomic_fetch_add(&ready, 1);
	sv_data_client.peer_ready(peer);
}

/* Begins a link to the slot that it hears, and gives it up before it is answered. */
static int give_up(int fd, void *arg)
{
	uint64_t slot;
	bool begun;

	(void)arg;
	if (sv_runtime_hold(&sv_data_client) || !process_hear(fd, &slot))
		return 1;
	begun = !sv_peer_get((uint16_t)slot) && errno == EAGAIN;
	sv_runtime_release();
	process_say(fd, begun);
	process_sync(fd);
	return begun ? 0 : 2;
}

static int make_link(int fd, void *arg)
{
	struct sv_peer *peer;
	uint64_t slot;

	(void)arg;
	if (sv_runtime_hold(&sv_data_client) || !process_hear(fd, &slot))
		return 1;
	peer = link_to(slot);
	if (peer)
		sv_peer_put(peer);
	sv_runtime_release();
	return peer ? 0 : 2;
}

/* A peer that does not exist any more would take the requests that wait for the next link along. */
static void given_up(void)
{
	static struct sv_link_client client; /* fork uses it after the end of the runtime */
	struct process first, second;

	CU_ASSERT_FATAL(process_start(&first, give_up, NULL));
	CU_ASSERT_FATAL(process_start(&second, make_link, NULL));
	client = sv_data_client;
	client.peer_ready = count_ready;
	atomic_store(&ready, 0);
	CU_ASSERT_EQUAL_FATAL(sv_runtime_hold(&client), 0);
	busy_begin(0, false);
	process_say(first.fd, sv_runtime_peer_id());
	CU_ASSERT_TRUE(process_sync(first.fd));
	busy_let_go();
	busy_end();
	/* links are accepted in turn */
	process_say(second.fd, sv_runtime_peer_id());
	CU_ASSERT_EQUAL(process_end(&second), 0);
	busy_end(); /* the engine answers a hello before it calls */
	CU_ASSERT_EQUAL(atomic_load(&ready), 1);
	process_say(first.fd, 0);
	CU_ASSERT_EQUAL(process_end(&first), 0);
	sv_runtime_release();
}

/* The hello arrives in time, while the engine of this process is busy beyond the time of the link. */
static void is_linked(bool timers_first)
{
	struct process other;
	struct sv_peer *peer;
	uint64_t slot = 0;

	CU_ASSERT_FATAL(process_start(&other, reside, NULL));
	CU_ASSERT_FATAL(process_hear(other.fd, &slot));
	CU_ASSERT_EQUAL_FATAL(sv_runtime_hold(&sv_data_client), 0);
	busy_begin(3500 * NSEC_PER_MSEC, timers_first);
	CU_ASSERT_PTR_NULL(sv_peer_get((uint16_t)slot));
	CU_ASSERT_EQUAL(errno, EAGAIN);
	busy_let_go();
	busy_end();
	peer = sv_peer_get((uint16_t)slot);
	CU_ASSERT_PTR_NOT_NULL(peer);
	if (peer)
		sv_peer_put(peer);
	sv_runtime_release();
	process_say(other.fd, 0);
	CU_ASSERT_EQUAL(process_end(&other), 0);
}

static void busy_process(void)
{
	is_linked(false);
	is_linked(true);
}

static const struct unit_test tests[] = {
	{ "a link that was given up makes no peer", given_up },
	{ "a busy process does not take a peer for a late one", busy_process },
};

UNIT_MAIN("softverbs_link_late", tests)
