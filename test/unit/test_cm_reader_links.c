/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* A thread in dat_evd_wait reads what the other process sends: the engine of this one does something else. */
#include <sched.h>
#include "dapl/openib/ib.h"
#include "test/unit/announce.h"
#include "softverbs/link/link_reader.h"
#include "test/unit/busy_engine.h"
#include "test/unit/linked.h"
#include "test/unit/no_check.h"
#include "test/unit/other_side.h"

/* ---- the event thread: upcalls of its own end soon here, and the waiter does not leave the links to the engine for them ---- */

bool __real_upcalls_try(struct ib_device *device);
bool __wrap_upcalls_try(struct ib_device *device);
bool __wrap_upcalls_try(struct ib_device *device)
{
	bool got;

	while (!(got = __real_upcalls_try(device)) && !ib_in_upcall(device))
		sched_yield();
	return got;
}

/* ---- connections to or from the child: the first links the two processes, which the engines do ---- */

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

/* ---- doorbells ---- */

static atomic_uint read_by_waiter, read_by_engine;

bool __real_sv_link_read(struct sv_link *link, bool all, bool *rung);
bool __wrap_sv_link_read(struct sv_link *link, bool all, bool *rung);
bool __wrap_sv_link_read(struct sv_link *link, bool all, bool *rung)
{
	bool ends = __real_sv_link_read(link, all, rung);

	atomic_fetch_add(sv_engine_is_self() ? &read_by_engine : &read_by_waiter, 1);
	return ends;
}

static void child_rings(int fd)
{
	struct place place = place_receive(fd);
	struct sv_peer *parent;
	uint64_t slot;

	connect_one(&place);
	process_hear(fd, &slot);
	parent = link_to(slot);
	for (unsigned i = 0; parent && i < 3; i++) {
		process_sync(fd);
		sv_peer_ring(parent);
	}
	process_sync(fd);
	disconnect_one();
	pause();
}

static atomic_int waiter_tid;
static atomic_bool waiter_reads; /* it has the links */

int __real_sv_link_reader_begin(void);
int __wrap_sv_link_reader_begin(void);
int __wrap_sv_link_reader_begin(void)
{
	int fd = __real_sv_link_reader_begin();

	if (fd >= 0 && gettid() == atomic_load(&waiter_tid))
		atomic_store(&waiter_reads, true);
	return fd;
}

static void *wait_for_end(void *unused)
{
	(void)unused;
	no_check = true;
	atomic_store(&waiter_tid, gettid());
	expect(a.conn, DAT_CONNECTION_EVENT_DISCONNECTED, a.ep);
	return NULL;
}

static bool waiter_sleeps(void *unused)
{
	int tid = atomic_load(&waiter_tid);

	(void)unused;
	return tid && atomic_load(&waiter_reads) && unit_is_asleep(tid);
}

static bool is_more(void *before)
{
	return atomic_load(&read_by_engine) > *(unsigned *)before;
}

static bool is_read(void *unused)
{
	(void)unused;
	return atomic_load(&read_by_waiter);
}

static void engine_reads_ring(void)
{
	unsigned before = atomic_load(&read_by_engine);

	process_say(peer.fd, 0);
	CU_ASSERT_TRUE(unit_wait_for(is_more, &before, UNIT_PATIENCE));
}

/* The waiter reads the first, and leaves the links to the engine for the rest of its wait. */
static void test_doorbells(void)
{
	pthread_t thread;

	announce();
	peer_start(child_rings);
	setup();
	place_send(peer.fd);
	no_check = true; /* the engine would check in the next thread's wait */
	accept_one();
	atomic_store(&waiter_tid, 0);
	atomic_store(&waiter_reads, false);
	CU_ASSERT_EQUAL_FATAL(pthread_create(&thread, NULL, wait_for_end, NULL), 0);
	CU_ASSERT_TRUE(unit_wait_for(waiter_sleeps, NULL, UNIT_PATIENCE));
	atomic_store(&read_by_waiter, 0);
	process_say(peer.fd, sv_runtime_peer_id());
	process_say(peer.fd, 0);
	CU_ASSERT_TRUE(unit_wait_for(is_read, NULL, UNIT_PATIENCE));
	CU_ASSERT_TRUE(unit_wait_for(waiter_sleeps, NULL, UNIT_PATIENCE));
	engine_reads_ring();
	engine_reads_ring();
	CU_ASSERT_EQUAL(atomic_load(&read_by_waiter), 1);
	process_say(peer.fd, 0);
	CU_ASSERT_EQUAL(pthread_join(thread, NULL), 0);
	no_check = false;
	process_kill(&peer);
	teardown();
}

static const struct unit_test tests[] = {
	{ "the active side's waiter reads the reply and the end", test_active },
	{ "the passive side's waiter reads the request and what follows", test_passive },
	{ "a waiter that reads a doorbell leaves the links to the engine", test_doorbells },
};

UNIT_MAIN("cm_reader_links", tests)
