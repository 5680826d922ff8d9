/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * dat_ep_disconnect and the end of a connection: one event for each end, after all earlier events.
 */
#include <pthread.h>
#include "test/unit/two_ends.h"
#include "util/clock.h"

#ifdef __SANITIZE_THREAD__
#define ROUNDS 100
#else
#define ROUNDS 1000
#endif

/* After this neither EP can report another event. */
static void reset_both(void)
{
	OK(dat_ep_reset(a.ep));
	OK(dat_ep_reset(b.ep));
	expect_quiet(a.conn);
	expect_quiet(b.conn);
}

static void test_arguments(void)
{
	setup();
	IS(dat_ep_disconnect(DAT_HANDLE_NULL, DAT_CLOSE_ABRUPT_FLAG),
	   E(INVALID_HANDLE, INVALID_HANDLE_EP));
	IS(dat_ep_disconnect(a.ep, (DAT_CLOSE_FLAGS)2), E(INVALID_PARAMETER, INVALID_ARG2));
	IS(dat_ep_disconnect(a.ep, DAT_CLOSE_ABRUPT_FLAG),
	   E(INVALID_STATE, INVALID_STATE_EP_UNCONNECTED));
	IS(dat_ep_disconnect(a.ep, DAT_CLOSE_GRACEFUL_FLAG),
	   E(INVALID_STATE, INVALID_STATE_EP_UNCONNECTED));
	teardown();
}

static void test_abrupt(void)
{
	setup();
	post_recvs(&a, 2);
	post_recvs(&b, 3);
	connect_pair(&a, &b);
	disconnect_pair(&a, &b);
	CU_ASSERT_EQUAL(state_of(a.ep), DAT_EP_STATE_DISCONNECTED);
	CU_ASSERT_EQUAL(state_of(b.ep), DAT_EP_STATE_DISCONNECTED);
	expect_dto(a.recv, a.ep, 0, DAT_DTO_ERR_FLUSHED);
	expect_dto(a.recv, a.ep, 1, DAT_DTO_ERR_FLUSHED);
	expect_dto(b.recv, b.ep, 0, DAT_DTO_ERR_FLUSHED);
	expect_dto(b.recv, b.ep, 1, DAT_DTO_ERR_FLUSHED);
	expect_dto(b.recv, b.ep, 2, DAT_DTO_ERR_FLUSHED);
	reset_both();
	teardown();
}

/* C12: a second disconnect succeeds without an event. */
static void test_twice(void)
{
	setup();
	connect_pair(&a, &b);
	disconnect_pair(&a, &b);
	OK(dat_ep_disconnect(a.ep, DAT_CLOSE_ABRUPT_FLAG));
	OK(dat_ep_disconnect(b.ep, DAT_CLOSE_GRACEFUL_FLAG));
	reset_both();
	teardown();
}

static void test_at_once_again(void)
{
	unsigned i;

	setup();
	for (i = 0; i < 20; i++) {
		connect_pair(&a, &b);
		OK(dat_ep_disconnect(a.ep, DAT_CLOSE_GRACEFUL_FLAG));
		OK(dat_ep_disconnect(a.ep, DAT_CLOSE_GRACEFUL_FLAG));
		OK(dat_ep_disconnect(a.ep, DAT_CLOSE_ABRUPT_FLAG));
		expect(a.conn, DAT_CONNECTION_EVENT_DISCONNECTED, a.ep);
		expect(b.conn, DAT_CONNECTION_EVENT_DISCONNECTED, b.ep);
		reset_both();
	}
	teardown();
}

/* C38: earlier sends arrive, signalled or not. */
static uint64_t graceful_run(void *arg)
{
	DAT_COMPLETION_FLAGS flags = *(DAT_COMPLETION_FLAGS *)arg;
	uint64_t began, took;
	unsigned i;

	setup();
	post_recvs(&b, 9);
	connect_pair(&a, &b);
	for (i = 0; i < 8; i++)
		CU_ASSERT_EQUAL(try_send(&a, i, flags), DAT_SUCCESS);
	began = clock_now();
	OK(dat_ep_disconnect(a.ep, DAT_CLOSE_GRACEFUL_FLAG));
	expect(a.conn, DAT_CONNECTION_EVENT_DISCONNECTED, a.ep);
	took = clock_now() - began;
	expect(b.conn, DAT_CONNECTION_EVENT_DISCONNECTED, b.ep);
	for (i = 0; i < 8; i++)
		expect_dto(b.recv, b.ep, i, DAT_DTO_SUCCESS);
	expect_dto(b.recv, b.ep, 8, DAT_DTO_ERR_FLUSHED);
	if (flags == DAT_COMPLETION_DEFAULT_FLAG)
		for (i = 0; i < 8; i++)
			expect_dto(a.request, a.ep, i, DAT_DTO_SUCCESS);
	reset_both();
	expect_quiet(a.request);
	teardown();
	return took;
}

/* The run must not take as long as the timeout for requests. */
static void test_graceful(DAT_COMPLETION_FLAGS flags)
{
	CU_ASSERT_TRUE(unit_is_soon(graceful_run, &flags, 3 * NSEC_PER_SEC));
}

static void test_graceful_signalled(void)
{
	test_graceful(DAT_COMPLETION_DEFAULT_FLAG);
}

static void test_graceful_suppressed(void)
{
	test_graceful(DAT_COMPLETION_SUPPRESS_FLAG);
}

/*
 * The peer has no receive, so the send never completes; an abrupt call ends the graceful
 * disconnect.
 */
static void test_graceful_cut_short(void)
{
	setup();
	connect_pair(&a, &b);
	CU_ASSERT_EQUAL(try_send(&a, 7, 0), DAT_SUCCESS);
	OK(dat_ep_disconnect(a.ep, DAT_CLOSE_GRACEFUL_FLAG));
	CU_ASSERT_EQUAL(state_of(a.ep), DAT_EP_STATE_DISCONNECT_PENDING);
	IS(try_send(&a, 8, 0), E(INVALID_STATE, INVALID_STATE_EP_DISCPENDING));
	IS(try_connect(&a, 1), E(INVALID_STATE, INVALID_STATE_EP_DISCPENDING));
	IS(dat_ep_reset(a.ep), E(INVALID_STATE, INVALID_STATE_EP_DISCPENDING));
	CU_ASSERT_EQUAL(try_recv(&a, 1), DAT_SUCCESS);
	OK(dat_ep_disconnect(a.ep, DAT_CLOSE_ABRUPT_FLAG));
	expect(a.conn, DAT_CONNECTION_EVENT_DISCONNECTED, a.ep);
	expect(b.conn, DAT_CONNECTION_EVENT_DISCONNECTED, b.ep);
	expect_dto(a.request, a.ep, 7, DAT_DTO_ERR_FLUSHED);
	expect_dto(a.recv, a.ep, 1, DAT_DTO_ERR_FLUSHED);
	reset_both();
	teardown();
}

static void test_attempt(void)
{
	DAT_CR_HANDLE cr;

	setup();
	start_connect(&a);
	cr = request_next(&env);
	OK(dat_ep_disconnect(a.ep, DAT_CLOSE_GRACEFUL_FLAG));
	CU_ASSERT_EQUAL(state_of(a.ep), DAT_EP_STATE_DISCONNECTED);
	expect(a.conn, DAT_CONNECTION_EVENT_DISCONNECTED, a.ep);
	OK(dat_cr_reject(cr, 0, NULL));
	OK(dat_ep_reset(a.ep));
	expect_quiet(a.conn);
	teardown();
}

/* Posting in state D is legal and flushes; consumers use it as a marker. */
static void test_marker(void)
{
	setup();
	connect_pair(&a, &b);
	disconnect_pair(&b, &a);
	CU_ASSERT_EQUAL(try_send(&a, 1, 0), DAT_SUCCESS);
	CU_ASSERT_EQUAL(try_send(&a, 2, DAT_COMPLETION_SUPPRESS_FLAG), DAT_SUCCESS);
	CU_ASSERT_EQUAL(try_recv(&a, 3), DAT_SUCCESS);
	expect_dto(a.request, a.ep, 1, DAT_DTO_ERR_FLUSHED);
	expect_dto(a.request, a.ep, 2, DAT_DTO_ERR_FLUSHED);
	expect_dto(a.recv, a.ep, 3, DAT_DTO_ERR_FLUSHED);
	reset_both();
	teardown();
}

static pthread_barrier_t start;

static void *disconnect_run(void *arg)
{
	struct end *end = arg;
	unsigned i;

	for (i = 0; i < ROUNDS; i++) {
		pthread_barrier_wait(&start);
		dat_ep_disconnect(end->ep, DAT_CLOSE_ABRUPT_FLAG);
		pthread_barrier_wait(&start);
	}
	return NULL;
}

static void test_simultaneous(void)
{
	pthread_t other;
	unsigned i;

	setup();
	pthread_barrier_init(&start, NULL, 2);
	CU_ASSERT_EQUAL_FATAL(pthread_create(&other, NULL, disconnect_run, &b), 0);
	for (i = 0; i < ROUNDS; i++) {
		connect_pair(&a, &b);
		pthread_barrier_wait(&start);
		OK(dat_ep_disconnect(a.ep, DAT_CLOSE_ABRUPT_FLAG));
		expect(a.conn, DAT_CONNECTION_EVENT_DISCONNECTED, a.ep);
		expect(b.conn, DAT_CONNECTION_EVENT_DISCONNECTED, b.ep);
		pthread_barrier_wait(&start);
		reset_both();
	}
	pthread_join(other, NULL);
	pthread_barrier_destroy(&start);
	teardown();
}

static void *free_run(void *arg)
{
	struct end *end = arg;

	pthread_barrier_wait(&start);
	OK(dat_ep_free(end->ep));
	return NULL;
}

/*
 * One end is freed while the other disconnects: one event each, and no access to the freed end's
 * memory.
 */
static void test_free_race(void)
{
	DAT_EP_HANDLE freed;
	pthread_t other;
	unsigned i;

	setup();
	pthread_barrier_init(&start, NULL, 2);
	for (i = 0; i < ROUNDS / 5; i++) {
		connect_pair(&a, &b);
		freed = b.ep;
		CU_ASSERT_EQUAL_FATAL(pthread_create(&other, NULL, free_run, &b), 0);
		pthread_barrier_wait(&start);
		OK(dat_ep_disconnect(a.ep, DAT_CLOSE_ABRUPT_FLAG));
		pthread_join(other, NULL);
		expect(b.conn, DAT_CONNECTION_EVENT_DISCONNECTED, freed);
		expect_quiet(b.conn);
		expect(a.conn, DAT_CONNECTION_EVENT_DISCONNECTED, a.ep);
		OK(dat_ep_reset(a.ep));
		expect_quiet(a.conn);
		MUST(dat_ep_create(env.ia, env.pz, b.recv, b.request, b.conn, NULL, &b.ep));
	}
	pthread_barrier_destroy(&start);
	teardown();
}

/* A write with a key that was never issued fails and breaks the connection on both sides. */
static void test_broken(void)
{
	DAT_EVENT event;

	setup();
	post_recvs(&a, 1);
	connect_pair(&a, &b);
	CU_ASSERT_EQUAL(try_write(&a, 1, 0xdead), DAT_SUCCESS);
	expect_dto(a.request, a.ep, 1, DAT_DTO_ERR_REMOTE_ACCESS);
	expect(a.conn, DAT_CONNECTION_EVENT_BROKEN, a.ep);
	CU_ASSERT_EQUAL(state_of(a.ep), DAT_EP_STATE_DISCONNECTED);
	expect_dto(a.recv, a.ep, 0, DAT_DTO_ERR_FLUSHED);
	/* The responder's device may report the violation before the requester's DREQ arrives. */
	if (event_next(b.conn, &event))
		CU_ASSERT_TRUE(event.event_number == DAT_CONNECTION_EVENT_DISCONNECTED ||
			       event.event_number == DAT_CONNECTION_EVENT_BROKEN);
	reset_both();
	while (dat_evd_dequeue(env.async, &event) == DAT_SUCCESS)
		CU_ASSERT_PTR_EQUAL(event.event_data.asynch_error_event_data.dat_handle, b.ep);
	teardown();
}

/* One EVD for all events: completions of received messages precede the end. */
static void test_order(void)
{
	DAT_EVD_HANDLE one;
	struct end c;
	unsigned i;

	setup();
	one = evd_open(&env, 64, DAT_EVD_CONNECTION_FLAG | DAT_EVD_DTO_FLAG);
	c = (struct end){ .env = &env, .conn = one, .recv = one, .request = one };
	MUST(dat_ep_create(env.ia, env.pz, one, one, one, NULL, &c.ep));
	post_recvs(&c, 4);
	connect_pair(&a, &c);
	for (i = 0; i < 4; i++)
		CU_ASSERT_EQUAL(try_send(&a, i, 0), DAT_SUCCESS);
	for (i = 0; i < 4; i++)
		expect_dto(a.request, a.ep, i, DAT_DTO_SUCCESS);
	OK(dat_ep_disconnect(a.ep, DAT_CLOSE_ABRUPT_FLAG));
	for (i = 0; i < 4; i++)
		expect_dto(one, c.ep, i, DAT_DTO_SUCCESS);
	expect(one, DAT_CONNECTION_EVENT_DISCONNECTED, c.ep);
	expect(a.conn, DAT_CONNECTION_EVENT_DISCONNECTED, a.ep);
	OK(dat_ep_free(c.ep));
	expect_quiet(one);
	evd_close(one);
	teardown();
}

/* Ends that find their EVD full are reported when there is room; the overflow is reported once. */
static void test_full_evd(void)
{
	DAT_EVD_HANDLE small;
	DAT_EP_HANDLE eps[3];
	struct end peers[3];
	DAT_EVENT event;
	unsigned i, ended = 0;

	setup();
	small = evd_open(&env, 1, DAT_EVD_CONNECTION_FLAG);
	for (i = 0; i < 3; i++) {
		end_open(&env, &peers[i], NULL);
		MUST(dat_ep_create(env.ia, env.pz, a.recv, a.request, small, NULL, &eps[i]));
		start_connect(&peers[i]);
		OK(dat_cr_accept(request_next(&env), eps[i], 0, NULL));
		expect(small, DAT_CONNECTION_EVENT_ESTABLISHED, eps[i]);
		expect(peers[i].conn, DAT_CONNECTION_EVENT_ESTABLISHED, peers[i].ep);
	}
	for (i = 0; i < 3; i++)
		OK(dat_ep_disconnect(peers[i].ep, DAT_CLOSE_ABRUPT_FLAG));
	for (i = 0; i < 3; i++)
		expect(peers[i].conn, DAT_CONNECTION_EVENT_DISCONNECTED, peers[i].ep);
	/* The overflow shows that all three have ended or are about to; no event was taken yet. */
	if (event_next(env.async, &event)) {
		CU_ASSERT_EQUAL(event.event_number, DAT_ASYNC_ERROR_EVD_OVERFLOW);
		CU_ASSERT_PTR_EQUAL(event.event_data.asynch_error_event_data.dat_handle, small);
	}
	for (i = 0; i < 3; i++) {
		if (event_next(small, &event) &&
		    event.event_number == DAT_CONNECTION_EVENT_DISCONNECTED &&
		    event.event_data.connect_event_data.ep_handle == eps[i])
			ended++;
	}
	CU_ASSERT_EQUAL(ended, 3);
	for (i = 0; i < 3; i++) {
		OK(dat_ep_free(eps[i]));
		end_close(&peers[i]);
	}
	expect_quiet(small);
	evd_close(small);
	teardown();
}

/*
 * Without room for ESTABLISHED the connection is disconnected, because the consumer could not learn
 * of it. The end is reported when there is room.
 */
static void test_no_room_for_established(void)
{
	DAT_EVENT filler = { .event_number = DAT_SOFTWARE_EVENT }, event;
	DAT_EVD_HANDLE small;
	DAT_EP_HANDLE ep;

	setup();
	small = evd_open(&env, 1, DAT_EVD_CONNECTION_FLAG | DAT_EVD_SOFTWARE_FLAG);
	MUST(dat_ep_create(env.ia, env.pz, b.recv, b.request, small, NULL, &ep));
	OK(dat_evd_post_se(small, &filler));
	start_connect(&a);
	OK(dat_cr_accept(request_next(&env), ep, 0, NULL));
	expect(a.conn, DAT_CONNECTION_EVENT_ESTABLISHED, a.ep);
	expect(a.conn, DAT_CONNECTION_EVENT_DISCONNECTED, a.ep);
	if (event_next(env.async, &event))
		CU_ASSERT_EQUAL(event.event_number, DAT_ASYNC_ERROR_EVD_OVERFLOW);
	OK(dat_evd_dequeue(small, &event));
	CU_ASSERT_EQUAL(event.event_number, DAT_SOFTWARE_EVENT);
	expect(small, DAT_CONNECTION_EVENT_DISCONNECTED, ep);
	OK(dat_ep_free(ep));
	expect_quiet(small);
	evd_close(small);
	teardown();
}

static const struct unit_test tests[] = {
	{ "rows 1, 2, 4", test_arguments },
	{ "abrupt: DISCONNECTED on both sides, and receives are flushed", test_abrupt },
	{ "in state D a disconnect succeeds without an event", test_twice },
	{ "a second disconnect during the first makes no further event", test_at_once_again },
	{ "graceful: sends arrive first", test_graceful_signalled },
	{ "graceful: suppressed sends arrive first", test_graceful_suppressed },
	{ "graceful, then abrupt: what cannot complete is flushed", test_graceful_cut_short },
	{ "a disconnect of an attempt: DISCONNECTED at once, and the request fails", test_attempt },
	{ "posts in state D are accepted and flushed", test_marker },
	{ "both ends disconnect at the same time: one event each", test_simultaneous },
	{ "an EP can be freed while its peer disconnects", test_free_race },
	{ "a failed write: BROKEN once", test_broken },
	{ "successful completions come before the end", test_order },
	{ "endings wait for room in the EVD", test_full_evd },
	{ "without room for ESTABLISHED the connection is disconnected",
	  test_no_room_for_established },
};

UNIT_MAIN("disconnect", tests)
