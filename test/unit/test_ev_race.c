/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* The event extension with real completions: no wake-up is lost between arming and blocking. */
#include <string.h>
#include "test/unit/ev_race.h"

#define DEPTH 16u

struct pair {
	struct env env;
	struct end active, passive;
};

static void pair_open(struct pair *pair)
{
	unsigned i;

	memset(pair, 0, sizeof(*pair));
	env_open(&pair->env);
	env_listen(&pair->env);
	end_open(&pair->env, &pair->active, NULL);
	end_open(&pair->env, &pair->passive, NULL);
	for (i = 0; i < DEPTH; i++)
		MUST(try_recv(&pair->passive, i));
	connect_pair(&pair->active, &pair->passive);
}

static void drain(DAT_EVD_HANDLE evd)
{
	DAT_EVENT events[32];
	DAT_COUNT n;

	while (DAT_EVD_DEQUEUE_N(evd, 32, events, &n) == DAT_SUCCESS)
		;
}

static void pair_close(struct pair *pair)
{
	disconnect_pair(&pair->active, &pair->passive);
	end_free_ep(&pair->active);
	end_free_ep(&pair->passive);
	drain(pair->passive.recv);
	drain(pair->active.request);
	end_close(&pair->active);
	end_close(&pair->passive);
	env_close(&pair->env);
}

static bool produce_send(struct race *race, unsigned round)
{
	struct pair *pair = race->arg;
	DAT_RETURN status = try_send(&pair->active, round, DAT_COMPLETION_SUPPRESS_FLAG);
	DAT_EVENT event;

	/* Suppressed requests are retired when the queue is polled. */
	dat_evd_dequeue(pair->active.request, &event);
	return status == DAT_SUCCESS;
}

static bool took_receive(struct race *race, unsigned round, const DAT_EVENT *event)
{
	struct pair *pair = race->arg;
	const DAT_DTO_COMPLETION_EVENT_DATA *dto = &event->event_data.dto_completion_event_data;

	return event->event_number == DAT_DTO_COMPLETION_EVENT && dto->status == DAT_DTO_SUCCESS &&
	       dto->user_cookie.as_64 == round &&
	       try_recv(&pair->passive, round + DEPTH) == DAT_SUCCESS;
}

static void test_ping_pong(void)
{
	struct race race = { .produce = produce_send, .taken = took_receive, .arm = race_arm_evd };
	struct pair pair;

	pair_open(&pair);
	race.arg = &pair;
	race.evd = pair.passive.recv;
	MUST(DAT_EVD_GET_FD(race.evd, &race.fd));
	race_run(&race, "W1", RACE_ROUNDS);
	pair_close(&pair);
}

/* ---- batches in four threads ---- */

#define TAKERS	 4
#define MESSAGES (RACE_ROUNDS / 500)
#define BATCH	 8

struct takers {
	struct pair *pair;
	atomic_uint taken, sent, seen[MESSAGES];
	atomic_bool failed;
};

static void *take(void *arg)
{
	struct takers *all = arg;
	DAT_EVENT events[BATCH];
	DAT_COUNT n, i;

	while (atomic_load(&all->taken) < MESSAGES && !atomic_load(&all->failed)) {
		DAT_RETURN status = DAT_EVD_DEQUEUE_N(all->pair->passive.recv, BATCH, events, &n);
		uint64_t first = events[0].event_data.dto_completion_event_data.user_cookie.as_64;

		if (status == DAT_QUEUE_EMPTY) {
			sched_yield();
			continue;
		}
		if (status != DAT_SUCCESS || n < 1 || n > BATCH)
			atomic_store(&all->failed, true);
		for (i = 0; i < n && !atomic_load(&all->failed); i++) {
			uint64_t cookie =
				events[i].event_data.dto_completion_event_data.user_cookie.as_64;

			/* contiguous, and taken by this thread only */
			if (cookie != first + (uint64_t)i || cookie >= MESSAGES ||
			    atomic_fetch_add(&all->seen[cookie], 1))
				atomic_store(&all->failed, true);
		}
		atomic_fetch_add(&all->taken, (unsigned)n);
	}
	return NULL;
}

/* Receives are posted by this thread alone, in the order of their cookies. */
static void send_all(struct takers *all)
{
	struct pair *pair = all->pair;
	unsigned sent = 0, posted = DEPTH;
	DAT_EVENT event;

	while (sent < MESSAGES && !atomic_load(&all->failed)) {
		for (; posted < atomic_load(&all->taken) + DEPTH; posted++)
			if (try_recv(&pair->passive, posted) != DAT_SUCCESS)
				atomic_store(&all->failed, true);
		if (sent < posted &&
		    try_send(&pair->active, sent, DAT_COMPLETION_SUPPRESS_FLAG) == DAT_SUCCESS)
			sent++;
		dat_evd_dequeue(pair->active.request, &event);
	}
}

static void test_batches(void)
{
	struct takers *all = calloc(1, sizeof(*all));
	pthread_t threads[TAKERS];
	struct pair pair;
	unsigned i;

	CU_ASSERT_PTR_NOT_NULL_FATAL(all);
	pair_open(&pair);
	all->pair = &pair;
	for (i = 0; i < TAKERS; i++)
		CU_ASSERT_EQUAL_FATAL(pthread_create(&threads[i], NULL, take, all), 0);
	send_all(all);
	for (i = 0; i < TAKERS; i++)
		CU_ASSERT_EQUAL(pthread_join(threads[i], NULL), 0);
	CU_ASSERT_FALSE(all->failed);
	CU_ASSERT_EQUAL(all->taken, MESSAGES);
	for (i = 0; i < MESSAGES && all->seen[i] == 1; i++)
		;
	CU_ASSERT_EQUAL(i, MESSAGES);
	pair_close(&pair);
	free(all);
}

static const struct unit_test tests[] = {
	{ "arming and blocking lose no wake-up of a producer on another processor",
	  test_ping_pong },
	{ "batches in four threads return each event once, and contiguous ones", test_batches },
};

UNIT_MAIN("ev_race", tests)
