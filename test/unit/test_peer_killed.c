/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * The peer is killed in each state of a connection: which event follows and when, and that nothing
 * is left. The peer stops itself in the state in question, and is killed there.
 *
 * Connection managers differ in what they learn of a death: the socket CM sees the socket close,
 * and the software device the link to the process, so the event follows at once; the UD CM learns
 * nothing, and its event comes at the end of a time limit, not before.
 */
#include <stdio.h>
#include <string.h>
#include "test/unit/killed_peer.h"

/*
 * Settings, and the time limits that follow from them, in milliseconds. The intervals of the UD CM
 * double. The unit of the acknowledge timeout is 4.096 microseconds.
 */
#define REP_TIME  70u
#define RTU_TIME  140u
#define RETRY	  5u
#define ACK_TIMER 18u
#define NO_REP	  (REP_TIME << (RETRY - 1))
#define NO_RTU	  (RTU_TIME << (RETRY - 1))
#define NO_DREP	  250u /* of the EP, for all connection managers */
#define NO_ACK	  ((4096u << ACK_TIMER) / 1000000u)
/* How late an event may be: less than a repetition too many would take. */
#define SLACK NSEC_PER_SEC

/* ---- this side ---- */

static bool is_ud_cm(void)
{
	DAT_PROVIDER_ATTR attr;
	int i;

	MUST(dat_ia_query(env.ia, NULL, 0, NULL, DAT_PROVIDER_FIELD_ALL, &attr));
	for (i = 0; i < attr.num_provider_specific_attr; i++) {
		const DAT_NAMED_ATTR *named = &attr.provider_specific_attr[i];

		if (!strcmp(named->name, "DAT_IB_PROVIDER_NAME"))
			return !strcmp(named->value, "UCM");
	}
	return false;
}

/*
 * What this end awaits: an event that is due at the death of the peer or, over the UD CM, at the
 * end of a time limit. That begins after the call whose message the peer does not answer, so the
 * event must not come before.
 */
struct promise {
	DAT_EVENT_NUMBER event, of_ud_cm;
	unsigned limit; /* in milliseconds */
};

static const struct promise no_answer = { DAT_CONNECTION_EVENT_NON_PEER_REJECTED,
					  DAT_CONNECTION_EVENT_UNREACHABLE, NO_REP };
static const struct promise no_rtu = { DAT_CONNECTION_EVENT_ACCEPT_COMPLETION_ERROR,
				       DAT_CONNECTION_EVENT_ACCEPT_COMPLETION_ERROR, NO_RTU };
static const struct promise no_peer = { DAT_CONNECTION_EVENT_DISCONNECTED,
					DAT_CONNECTION_EVENT_DISCONNECTED, NO_DREP };
static const struct promise no_receiver = { DAT_CONNECTION_EVENT_DISCONNECTED,
					    DAT_CONNECTION_EVENT_BROKEN, NO_ACK };

/*
 * Takes the event, and returns the nanoseconds by which it is late; the endpoint serves again after
 * its reset. `begun` is the time before the call that starts the limit, `killed` the time before
 * the death, or before the call that meets it.
 */
static uint64_t ends(const struct promise *promise, uint64_t begun, uint64_t killed)
{
	bool of_ud_cm = is_ud_cm();
	uint64_t due = of_ud_cm ? begun + promise->limit * NSEC_PER_MSEC : killed;
	uint64_t now;

	expect(a.conn, of_ud_cm ? promise->of_ud_cm : promise->event, a.ep);
	now = clock_now();
	CU_ASSERT_TRUE_FATAL(now >= due);
	CU_ASSERT_EQUAL(state_of(a.ep), DAT_EP_STATE_DISCONNECTED);
	MUST(dat_ep_reset(a.ep));
	connect_pair(&b, &a);
	disconnect_pair(&a, &b);
	teardown();
	return now - due;
}

/* ---- the deaths: each returns the nanoseconds by which the event is late ---- */

static uint64_t killed_listening(void *unused)
{
	struct place place;
	uint64_t begun;

	(void)unused;
	peer_start(stop_listening);
	setup();
	place = place_receive(peer.fd);
	peer_await_stop();
	process_kill(&peer);
	begun = clock_now();
	connect_to(&place);
	return ends(&no_answer, begun, begun);
}

/* Connects to a peer that stops before it reads the request, or before it answers, and kills it. */
static uint64_t kill_asked(void (*stop)(int fd))
{
	struct place place;
	uint64_t begun, killed;

	peer_start(stop);
	setup();
	place = place_receive(peer.fd);
	if (stop == stop_listening)
		peer_await_stop();
	begun = clock_now();
	connect_to(&place);
	if (stop == stop_requested)
		peer_await_stop();
	killed = clock_now();
	process_kill(&peer);
	return ends(&no_answer, begun, killed);
}

static uint64_t killed_unread(void *unused)
{
	(void)unused;
	return kill_asked(stop_listening);
}

static uint64_t killed_requested(void *unused)
{
	(void)unused;
	return kill_asked(stop_requested);
}

/* The request of a peer that has stopped since. */
static DAT_CR_HANDLE request_of_stopped_peer(void)
{
	DAT_CR_HANDLE cr;

	peer_start(ask);
	setup();
	place_send(peer.fd);
	cr = request_next(&env);
	CU_ASSERT_EQUAL(kill(peer.pid, SIGSTOP), 0);
	peer_await_stop();
	return cr;
}

/* The requester is killed before it is accepted: the accept fails, or its completion does. */
static uint64_t requester_killed(void *unused)
{
	DAT_CR_HANDLE cr = request_of_stopped_peer();
	DAT_RETURN status;
	uint64_t begun;

	(void)unused;
	process_kill(&peer);
	begun = clock_now();
	status = dat_cr_accept(cr, a.ep, 0, NULL);
	if (status == DAT_SUCCESS)
		return ends(&no_rtu, begun, begun);
	CU_ASSERT_EQUAL(DAT_GET_TYPE(status), DAT_INVALID_STATE);
	teardown();
	return 0;
}

/* Accepted, and the RTU is to come. */
static uint64_t requester_killed_accepted(void *unused)
{
	DAT_CR_HANDLE cr = request_of_stopped_peer();
	uint64_t begun = clock_now(), killed;

	(void)unused;
	MUST(dat_cr_accept(cr, a.ep, 0, NULL));
	killed = clock_now();
	process_kill(&peer);
	return ends(&no_rtu, begun, killed);
}

static void connect_to_peer(void)
{
	struct place place;

	peer_start(stop_connected_passive);
	setup();
	place = place_receive(peer.fd);
	connect_to(&place);
	expect(a.conn, DAT_CONNECTION_EVENT_ESTABLISHED, a.ep);
	peer_await_stop();
}

static void accept_peer(void)
{
	peer_start(stop_connected_active);
	setup();
	place_send(peer.fd);
	MUST(dat_cr_accept(request_next(&env), a.ep, 0, NULL));
	expect(a.conn, DAT_CONNECTION_EVENT_ESTABLISHED, a.ep);
	peer_await_stop();
}

/* Kills the peer of a connection. The UD CM notices only that its disconnect is not answered. */
static uint64_t kill_connected(void)
{
	uint64_t begun = clock_now();

	process_kill(&peer);
	if (is_ud_cm())
		MUST(dat_ep_disconnect(a.ep, DAT_CLOSE_ABRUPT_FLAG));
	return ends(&no_peer, begun, begun);
}

static uint64_t killed_connected(void *unused)
{
	(void)unused;
	connect_to_peer();
	return kill_connected();
}

static uint64_t requester_killed_connected(void *unused)
{
	(void)unused;
	accept_peer();
	return kill_connected();
}

/* A transfer to the dead peer fails and ends the connection, over the UD CM, too. */
static uint64_t killed_receiving(void *unused)
{
	uint64_t begun;
	DAT_EVENT event;

	(void)unused;
	connect_to_peer();
	begun = clock_now();
	process_kill(&peer);
	OK(try_send(&a, 1, 0));
	if (event_next(a.request, &event))
		CU_ASSERT_NOT_EQUAL(event.event_data.dto_completion_event_data.status,
				    DAT_DTO_SUCCESS);
	return ends(&no_receiver, begun, begun);
}

static uint64_t killed_disconnecting(void *unused)
{
	uint64_t begun, killed;

	(void)unused;
	connect_to_peer();
	begun = clock_now();
	MUST(dat_ep_disconnect(a.ep, DAT_CLOSE_GRACEFUL_FLAG));
	killed = clock_now();
	process_kill(&peer);
	return ends(&no_peer, begun, killed);
}

/* ---- the tests ---- */

static void in_time(uint64_t (*death)(void *unused))
{
	CU_ASSERT(unit_is_soon(death, NULL, SLACK));
}

static void test_listening(void)
{
	in_time(killed_listening);
}

static void test_unread(void)
{
	in_time(killed_unread);
}

static void test_requested(void)
{
	in_time(killed_requested);
}

static void test_requester(void)
{
	in_time(requester_killed);
}

static void test_requester_accepted(void)
{
	in_time(requester_killed_accepted);
}

static void test_connected(void)
{
	in_time(killed_connected);
}

static void test_requester_connected(void)
{
	in_time(requester_killed_connected);
}

static void test_receiving(void)
{
	in_time(killed_receiving);
}

static void test_disconnecting(void)
{
	in_time(killed_disconnecting);
}

/* Each of the others once more: no descriptor is left. */
static void test_nothing_is_left(void)
{
	static uint64_t (*const deaths[])(void *unused) = {
		killed_listening,	    killed_unread,
		killed_requested,	    requester_killed,
		requester_killed_accepted,  killed_connected,
		requester_killed_connected, killed_receiving,
		killed_disconnecting,
	};
	unsigned before = unit_entries("/proc/self/fd");
	size_t i;

	for (i = 0; i < COUNT(deaths); i++)
		deaths[i](NULL);
	CU_ASSERT_EQUAL(unit_entries("/proc/self/fd"), before);
}

static const struct unit_test tests[] = {
	{ "a peer that is killed while it listens: the connect ends", test_listening },
	{ "a peer that is killed before it reads a request: the connect ends", test_unread },
	{ "a peer that is killed before it answers a request: the connect ends", test_requested },
	{ "a peer that is killed before its request is accepted: the accept fails",
	  test_requester },
	{ "a peer that is killed before it sends the RTU: ACCEPT_COMPLETION_ERROR",
	  test_requester_accepted },
	{ "a peer that is killed while connected: DISCONNECTED", test_connected },
	{ "a requester that is killed while connected: DISCONNECTED", test_requester_connected },
	{ "a send to a killed peer fails and ends the connection", test_receiving },
	{ "a peer that is killed before it answers a disconnect: DISCONNECTED",
	  test_disconnecting },
	{ "no descriptor is left by connections to killed peers", test_nothing_is_left },
};

static void set(const char *name, unsigned value)
{
	char text[16];

	snprintf(text, sizeof(text), "%u", value);
	setenv(name, text, 1);
}

int main(int argc, char **argv)
{
	set("DAPL_UCM_REP_TIME", REP_TIME);
	set("DAPL_UCM_RTU_TIME", RTU_TIME);
	set("DAPL_UCM_RETRY", RETRY);
	set("DAPL_ACK_TIMER", ACK_TIMER);
	return unit_main("peer_killed", tests, COUNT(tests), argc, argv);
}
