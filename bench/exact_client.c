/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * exact-client IA: the program whose calls `exact` counts. `exact` selects the libraries; this program depends on no
 * particular provider.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <dat2/udat.h>
#ifndef TEST_ONE
#include <dat2/dat_event_extensions.h>
#endif
#include "bench/exact_mark.h"
#include "bench/exact_pair.h"

#define WARM_UP 100 /* calls, until the locks of objects that one thread uses are biased to it */
#define WANTED	32  /* how often each call was counted and succeeded */
#define TRIES	2000
#define SECONDS 1000000u /* of DAT_TIMEOUT */

static struct pair pair;
static DAT_EVENT event;
static DAT_COUNT more;
static const DAT_DTO_COOKIE cookie = { .as_64 = 7 };
static bool marking;

/* Counts one call, through a pointer, so that the jump into the library is not counted. */
#define COUNTED(which, function, expected, ...)                             \
	counted_end(which,                                                  \
		    (counted_begin(which, (uint64_t)(uintptr_t)(function)), \
		     (function)(__VA_ARGS__)),                              \
		    expected)

static unsigned good[EXACT_CALLS];

static void counted_begin(enum exact_call which, uint64_t function)
{
	if (marking)
		exact_mark(which, function);
}

static bool counted_end(enum exact_call which, DAT_RETURN status, DAT_RETURN expected)
{
	if (status != expected && DAT_GET_TYPE(status) != DAT_QUEUE_EMPTY)
		must(status, "a counted call");
	if (marking)
		exact_mark(EXACT_RESULT, status == expected);
	good[which] += marking && status == expected;
	return status == expected;
}

static void take(DAT_EVD_HANDLE evd)
{
	MUST(dat_evd_wait(evd, 20 * SECONDS, 1, &event, &more));
	if (event.event_number != DAT_DTO_COMPLETION_EVENT ||
	    event.event_data.dto_completion_event_data.status != DAT_DTO_SUCCESS) {
		fprintf(stderr, "event %#x is no success\n", event.event_number);
		exit(2);
	}
}

/* Sends a message and reaps both of its events; on the software device they come without delay. */
static void message(bool count)
{
	bool was = marking;

	marking &= count;
	COUNTED(EXACT_POST_RECV, dat_ep_post_recv, DAT_SUCCESS, pair.passive, 1, &pair.landing,
		cookie, DAT_COMPLETION_DEFAULT_FLAG);
	COUNTED(EXACT_POST_SEND, dat_ep_post_send, DAT_SUCCESS, pair.active, 1, &pair.local, cookie,
		DAT_COMPLETION_DEFAULT_FLAG);
	marking = was;
}

static void by_dequeue(void)
{
	message(true);
	if (!COUNTED(EXACT_DEQUEUE_RECEIVED, dat_evd_dequeue, DAT_SUCCESS, pair.received, &event))
		take(pair.received);
	if (!COUNTED(EXACT_DEQUEUE_SENT, dat_evd_dequeue, DAT_SUCCESS, pair.sent, &event))
		take(pair.sent);
	COUNTED(EXACT_DEQUEUE_EMPTY, dat_evd_dequeue, DAT_QUEUE_EMPTY, pair.received, &event);
}

static void by_wait(void)
{
	message(false);
	COUNTED(EXACT_WAIT_RECEIVED, dat_evd_wait, DAT_SUCCESS, pair.received, 20 * SECONDS, 1,
		&event, &more);
	COUNTED(EXACT_WAIT_SENT, dat_evd_wait, DAT_SUCCESS, pair.sent, 20 * SECONDS, 1, &event,
		&more);
}

static void one_sided(void)
{
	COUNTED(EXACT_POST_WRITE, dat_ep_post_rdma_write, DAT_SUCCESS, pair.active, 1, &pair.local,
		cookie, &pair.remote, DAT_COMPLETION_DEFAULT_FLAG);
	take(pair.sent);
	COUNTED(EXACT_POST_READ, dat_ep_post_rdma_read, DAT_SUCCESS, pair.active, 1, &pair.local,
		cookie, &pair.remote, DAT_COMPLETION_DEFAULT_FLAG);
	take(pair.sent);
}

#ifdef TEST_ONE /* without extensions */
static void with_events(void)
{
}

static bool has_events(void)
{
	return false;
}
#else
static void post_batch(void)
{
	int i;

	for (i = 0; i < EXACT_BATCH; i++)
		message(false);
}

/* Dequeues the batch if it is complete, else waits for the rest without counting. */
static void dequeue_batch(enum exact_call which, DAT_EVD_HANDLE evd)
{
	int i;

	for (i = 0; i < EXACT_BATCH; i++)
		if (!COUNTED(which, dat_evd_dequeue, DAT_SUCCESS, evd, &event))
			take(evd);
}

static void dequeue_at_once(enum exact_call which, DAT_EVD_HANDLE evd)
{
	static DAT_EVENT events[EXACT_BATCH];
	DAT_COUNT n = 0;

	if (marking)
		exact_mark(which, (uint64_t)(uintptr_t)dat_extension_op);
	MUST(DAT_EVD_DEQUEUE_N(evd, EXACT_BATCH, events, &n));
	if (marking)
		exact_mark(EXACT_RESULT, n == EXACT_BATCH);
	good[which] += marking && n == EXACT_BATCH;
	while (n++ < EXACT_BATCH)
		take(evd);
}

/* Arms an EVD with nothing pending; each call takes another EVD, which then is armed already. */
static void arm(void)
{
	DAT_EVD_HANDLE evd;

	MUST(dat_evd_create(pair.ia, PAIR_DEPTH, DAT_HANDLE_NULL, DAT_EVD_DTO_FLAG, &evd));
	COUNTED(EXACT_ARM, dat_extension_op, DAT_SUCCESS, evd, DAT_EVD_ARM_OP, (DAT_UINT32)0,
		(DAT_COUNT)1);
	COUNTED(EXACT_ARM_AGAIN, dat_extension_op, DAT_SUCCESS, evd, DAT_EVD_ARM_OP, (DAT_UINT32)0,
		(DAT_COUNT)1);
	MUST(dat_evd_free(evd));
}

static void with_events(void)
{
	post_batch();
	dequeue_batch(EXACT_QUEUED_RECEIVED, pair.received);
	dequeue_batch(EXACT_QUEUED_SENT, pair.sent);
	post_batch();
	dequeue_at_once(EXACT_BATCH_RECEIVED, pair.received);
	dequeue_at_once(EXACT_BATCH_SENT, pair.sent);
	arm();
}

static bool has_events(void)
{
	DAT_UINT32 major, minor;

	return DAT_EV_VERSION(pair.ia, &major, &minor) == DAT_SUCCESS;
}

#endif

static void plain(void)
{
	by_dequeue();
	by_wait();
	one_sided();
}

static bool enough(int first, int end)
{
	for (; first < end; first++)
		if (good[first] < WANTED)
			return false;
	return true;
}

/* Repeats until each of these calls was counted often enough. */
static void repeat(void (*round)(void), int first, int end)
{
	int i;

	for (i = 0; i < TRIES && !enough(first, end); i++) {
		marking = i >= WARM_UP;
		round();
	}
	marking = false;
}

int main(int argc, char **argv)
{
	if (argc != 2) {
		fprintf(stderr, "usage: exact-client IA\n");
		return 2;
	}
	pair_open(&pair, argv[1]);
	repeat(plain, 0, EXACT_PLAIN);
	if (has_events())
		repeat(with_events, EXACT_PLAIN, EXACT_CALLS);
	exact_mark(EXACT_DONE, 0);
	pair_close(&pair);
	return 0;
}
