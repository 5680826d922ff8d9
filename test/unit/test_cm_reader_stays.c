/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Whether the CM's events stay with a thread between two waits, or return to the event thread. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include <dat2/dat_event_extensions.h>
#include "test/unit/announce.h"
#include "test/unit/two_ends.h"

#define CONNECTIONS 50u

/* changes of what the event thread's epoll reports of a descriptor */
static atomic_uint hand_overs;

int __real_epoll_ctl(int epoll, int operation, int fd, struct epoll_event *event);
int __wrap_epoll_ctl(int epoll, int operation, int fd, struct epoll_event *event);

/* The software device's engine has an epoll of links in its own. */
static bool is_epoll(int fd)
{
	char path[32], target[64] = "";

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return readlink(path, target, sizeof(target) - 1) > 0 && strstr(target, "eventpoll");
}

int __wrap_epoll_ctl(int epoll, int operation, int fd, struct epoll_event *event)
{
	if (operation == EPOLL_CTL_MOD && !is_epoll(fd))
		atomic_fetch_add(&hand_overs, 1);
	return __real_epoll_ctl(epoll, operation, fd, event);
}

/* of this thread: tokens for the readers of a channel, and rings of a doorbell */
static _Thread_local unsigned tokens;

int __real_eventfd_write(int fd, eventfd_t value);
int __wrap_eventfd_write(int fd, eventfd_t value);

int __wrap_eventfd_write(int fd, eventfd_t value)
{
	tokens++;
	return __real_eventfd_write(fd, value);
}

/* Returns how often the channel changes hands during these connections, the first of which are not counted. */
static unsigned rounds_waiting(void)
{
	unsigned before = 0, i;

	for (i = 0; i < 2 * CONNECTIONS; i++) {
		if (i == CONNECTIONS)
			before = atomic_load(&hand_overs);
		connect_pair(&a, &b);
		disconnect_pair(&a, &b);
		MUST(dat_ep_reset(a.ep));
		MUST(dat_ep_reset(b.ep));
	}
	return atomic_load(&hand_overs) - before;
}

static bool reader_stays(void)
{
	unsigned changes;

	announce();
	setup();
	changes = rounds_waiting();
	teardown();
	return changes < CONNECTIONS;
}

/* On a busy machine the thread may not be back in time; then the test tries again. */
static void test_reader_stays(void)
{
	unsigned tries = 100;

	while (!reader_stays() && --tries)
		continue;
	CU_ASSERT(tries > 0);
}

/* It reads the two events that say what was resolved. The request itself may ring the engine's doorbell. */
static void test_own_events(void)
{
	unsigned before;

	announce();
	setup();
	before = tokens;
	start_connect(&a);
	CU_ASSERT(tokens - before < 2);
	MUST(dat_cr_accept(request_next(&env), b.ep, 0, NULL));
	expect(a.conn, DAT_CONNECTION_EVENT_ESTABLISHED, a.ep);
	expect(b.conn, DAT_CONNECTION_EVENT_ESTABLISHED, b.ep);
	disconnect_pair(&a, &b);
	teardown();
}

static bool is_disconnected(void *arg)
{
	struct end *end = arg;
	DAT_EP_STATE state;

	return dat_ep_get_status(end->ep, &state, NULL, NULL) == DAT_SUCCESS &&
	       state == DAT_EP_STATE_DISCONNECTED;
}

/* Nothing but the event thread reads that the peer has disconnected. */
static void test_reader_gone(void)
{
	announce();
	setup();
	rounds_waiting();
	connect_pair(&a, &b);
	MUST(dat_ep_disconnect(a.ep, DAT_CLOSE_ABRUPT_FLAG));
	CU_ASSERT_TRUE(unit_wait_for(is_disconnected, &b, UNIT_PATIENCE));
	expect(a.conn, DAT_CONNECTION_EVENT_DISCONNECTED, a.ep);
	expect(b.conn, DAT_CONNECTION_EVENT_DISCONNECTED, b.ep);
	teardown();
}

/* The event thread gets the channel back after each connect and each wait. */
static void returns_beside_evd(DAT_EVD_FLAGS flags, bool with_cno)
{
	DAT_CNO_HANDLE cno = DAT_HANDLE_NULL;
	DAT_EVD_HANDLE evd;

	announce();
	setup();
	rounds_waiting();
	if (with_cno)
		MUST(dat_cno_create(env.ia, DAT_OS_WAIT_PROXY_AGENT_NULL, &cno));
	MUST(dat_evd_create(env.ia, 8, cno, flags, &evd));
	CU_ASSERT(rounds_waiting() >= 2 * CONNECTIONS);
	evd_close(evd);
	if (with_cno)
		MUST(dat_cno_free(cno));
	teardown();
}

static void test_stays_not_beside_cno(void)
{
	returns_beside_evd(DAT_EVD_CONNECTION_FLAG, true);
}

static void test_stays_not_beside_mixed(void)
{
	returns_beside_evd(DAT_EVD_CONNECTION_FLAG | DAT_EVD_DTO_FLAG, false);
}

static void test_stays_not_beside_set(void)
{
	DAT_HANDLE set;

	announce();
	setup();
	MUST(DAT_PSET_CREATE(env.ia, &set));
	MUST(DAT_PSET_ADD(set, b.conn));
	CU_ASSERT(rounds_waiting() >= 2 * CONNECTIONS);
	MUST(DAT_PSET_DEL(set, b.conn));
	MUST(DAT_PSET_FREE(set));
	teardown();
}

static void test_stays_not_beside_fd(void)
{
	DAT_FD fd;

	announce();
	setup();
	MUST(DAT_EVD_GET_FD(b.conn, &fd));
	CU_ASSERT(rounds_waiting() >= 2 * CONNECTIONS);
	teardown();
}

/* ---- a second waiter ---- */

static atomic_bool is_over;
static atomic_uint waits;

static void *waits_run_out(void *evd)
{
	DAT_EVENT event;
	DAT_COUNT more;

	while (!atomic_load(&is_over)) {
		IS(dat_evd_wait(evd, 50, 1, &event, &more), DAT_TIMEOUT_EXPIRED);
		atomic_fetch_add(&waits, 1);
	}
	return NULL;
}

static bool has_waited(void *before)
{
	return atomic_load(&waits) > *(unsigned *)before;
}

/*
 * Returns whether the channel changed hands at the waits of the other thread. If this thread began between two of those,
 * it reads, and there are few.
 */
static bool changes_beside_waiter(void)
{
	unsigned ended = atomic_load(&waits), changes;
	DAT_EVENT event;
	DAT_COUNT more;

	CU_ASSERT_TRUE(unit_wait_for(has_waited, &ended, UNIT_PATIENCE));
	changes = atomic_load(&hand_overs);
	ended = atomic_load(&waits);
	IS(dat_evd_wait(a.conn, 20000, 1, &event, &more), DAT_TIMEOUT_EXPIRED);
	changes = atomic_load(&hand_overs) - changes;
	ended = atomic_load(&waits) - ended;
	return ended >= 8 && changes >= ended;
}

static void test_second_waiter(void)
{
	unsigned tries = 200;
	DAT_EVD_HANDLE evd;
	pthread_t thread;

	announce();
	setup();
	evd = evd_open(&env, 8, DAT_EVD_CONNECTION_FLAG);
	atomic_store(&is_over, false);
	CU_ASSERT_EQUAL_FATAL(pthread_create(&thread, NULL, waits_run_out, evd), 0);
	rounds_waiting();
	while (!changes_beside_waiter() && --tries)
		continue;
	CU_ASSERT(tries > 0);
	atomic_store(&is_over, true);
	CU_ASSERT_EQUAL(pthread_join(thread, NULL), 0);
	evd_close(evd);
	teardown();
}

static const struct unit_test tests[] = {
	{ "a connect reads the events of its own calls without a token", test_own_events },
	{ "the channel stays with a thread that makes many connections", test_reader_stays },
	{ "the event thread reads again when that thread does something else", test_reader_gone },
	{ "a thread keeps no events from an EVD with a CNO", test_stays_not_beside_cno },
	{ "a thread keeps no events from an EVD with completions, too",
	  test_stays_not_beside_mixed },
	{ "a thread keeps no events from a poll set", test_stays_not_beside_set },
	{ "a thread keeps no events from a descriptor", test_stays_not_beside_fd },
	{ "a thread keeps no events from a second waiter", test_second_waiter },
};

UNIT_MAIN("cm_reader_stays", tests)
