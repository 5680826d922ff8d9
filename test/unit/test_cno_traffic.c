/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Notification objects under real traffic: no event stays unreported, whatever races with it. */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>
#include "test/unit/ep_util.h"

#define EVDS	 4
#define THREADS	 2
#define EVENTS	 5000u /* posted by each thread on each EVD */
#define MESSAGES 2000u
#define DEPTH	 16u

static DAT_EVD_HANDLE evd_on(struct env *env, DAT_CNO_HANDLE cno, DAT_COUNT qlen,
			     DAT_EVD_FLAGS flags)
{
	DAT_EVD_HANDLE evd = DAT_HANDLE_NULL;

	MUST(dat_evd_create(env->ia, qlen, cno, flags, &evd));
	return evd;
}

struct storm {
	DAT_EVD_HANDLE evds[EVDS];
	unsigned evd_count, events;
};

static void *storm_run(void *arg)
{
	struct storm *storm = arg;
	DAT_EVENT event = { .event_number = DAT_SOFTWARE_EVENT };
	unsigned i, failures = 0;
	DAT_RETURN status;

	for (i = 0; i < storm->events * storm->evd_count; i++) {
		do {
			status = dat_evd_post_se(storm->evds[i % storm->evd_count], &event);
			if (DAT_GET_TYPE(status) == DAT_QUEUE_FULL)
				sched_yield();
		} while (DAT_GET_TYPE(status) == DAT_QUEUE_FULL);
		failures += status != DAT_SUCCESS;
	}
	CU_ASSERT_EQUAL(failures, 0);
	return NULL;
}

static unsigned drain(DAT_EVD_HANDLE evd)
{
	unsigned count = 0;
	DAT_EVENT event;

	while (dat_evd_dequeue(evd, &event) == DAT_SUCCESS)
		count++;
	return count;
}

static void test_storm(void)
{
	struct storm storm = { .evd_count = EVDS, .events = EVENTS };
	unsigned i, taken = 0;
	pthread_t threads[THREADS];
	DAT_CNO_HANDLE cno;
	DAT_EVD_HANDLE evd;
	struct env env;

	env_open(&env);
	MUST(dat_cno_create(env.ia, DAT_OS_WAIT_PROXY_AGENT_NULL, &cno));
	for (i = 0; i < EVDS; i++)
		storm.evds[i] = evd_on(&env, cno, 16, DAT_EVD_SOFTWARE_FLAG);
	for (i = 0; i < THREADS; i++)
		CU_ASSERT_EQUAL_FATAL(pthread_create(&threads[i], NULL, storm_run, &storm), 0);
	while (taken < THREADS * EVDS * EVENTS) {
		DAT_RETURN status = dat_cno_wait(cno, PATIENCE, &evd);

		CU_ASSERT_EQUAL(status, DAT_SUCCESS);
		if (status != DAT_SUCCESS)
			break;
		taken += drain(evd);
	}
	CU_ASSERT_EQUAL(taken, THREADS * EVDS * EVENTS);
	for (i = 0; i < THREADS; i++)
		CU_ASSERT_EQUAL(pthread_join(threads[i], NULL), 0);
	for (i = 0; i < EVDS; i++)
		MUST(dat_evd_free(storm.evds[i]));
	MUST(dat_cno_free(cno));
	env_close(&env);
}

/* ---- an agent that arms itself again ---- */

struct agent {
	DAT_CNO_HANDLE cno;
	atomic_uint calls, taken;
};

static void on_trigger(DAT_PVOID data, DAT_EVD_HANDLE evd)
{
	struct agent *agent = data;
	DAT_OS_WAIT_PROXY_AGENT self = { data, on_trigger };

	atomic_fetch_add(&agent->calls, 1);
	if (!evd)
		return;
	atomic_fetch_add(&agent->taken, drain(evd));
	CU_ASSERT_EQUAL(dat_cno_modify_agent(agent->cno, self), DAT_SUCCESS);
}

static bool took_all(void *arg)
{
	return atomic_load(&((struct agent *)arg)->taken) == 100000;
}

static void test_agent(void)
{
	struct storm storm = { .evd_count = 1, .events = 100000 };
	struct agent agent = { .calls = 0 };
	struct env env;

	env_open(&env);
	MUST(dat_cno_create(env.ia, (DAT_OS_WAIT_PROXY_AGENT){ &agent, on_trigger }, &agent.cno));
	storm.evds[0] = evd_on(&env, agent.cno, 64, DAT_EVD_SOFTWARE_FLAG);
	storm_run(&storm);
	CU_ASSERT_TRUE(unit_wait_for(took_all, &agent, UNIT_PATIENCE));
	CU_ASSERT_TRUE(agent.calls >= 1);
	MUST(dat_evd_modify_cno(storm.evds[0], DAT_HANDLE_NULL));
	MUST(dat_evd_free(storm.evds[0]));
	MUST(dat_cno_free(agent.cno));
	env_close(&env);
}

/* ---- messages ---- */

struct pair {
	struct env env;
	struct end active, passive;
	DAT_CNO_HANDLE cno;
	unsigned posted, received;
};

static void pair_open(struct pair *pair)
{
	memset(pair, 0, sizeof(*pair));
	env_open(&pair->env);
	env_listen(&pair->env);
	end_open(&pair->env, &pair->active, NULL);
	end_open(&pair->env, &pair->passive, NULL);
	MUST(dat_cno_create(pair->env.ia, DAT_OS_WAIT_PROXY_AGENT_NULL, &pair->cno));
	for (; pair->posted < DEPTH; pair->posted++)
		MUST(try_recv(&pair->passive, pair->posted));
	connect_pair(&pair->active, &pair->passive);
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
	MUST(dat_cno_free(pair->cno));
	env_close(&pair->env);
}

static void *send_all(void *arg)
{
	struct pair *pair = arg;
	unsigned i, failures = 0;
	DAT_EVENT event;
	DAT_COUNT more;

	for (i = 0; i < MESSAGES; i++) {
		failures += try_send(&pair->active, i, DAT_COMPLETION_DEFAULT_FLAG) != DAT_SUCCESS;
		failures += dat_evd_wait(pair->active.request, PATIENCE, 1, &event, &more) !=
			    DAT_SUCCESS;
	}
	CU_ASSERT_EQUAL(failures, 0);
	return NULL;
}

/* Takes all queued events, in order, and posts a receive for each. */
static bool receive(struct pair *pair)
{
	bool good = true;
	DAT_EVENT event;

	while (good && dat_evd_dequeue(pair->passive.recv, &event) == DAT_SUCCESS) {
		good = event.event_data.dto_completion_event_data.user_cookie.as_64 ==
		       pair->received++;
		good &= try_recv(&pair->passive, pair->posted++) == DAT_SUCCESS;
	}
	CU_ASSERT_TRUE(good);
	return good;
}

/* Every message triggers the CNO while `disturb` changes the EVD. */
static void run_traffic(void (*disturb)(struct pair *pair, unsigned round))
{
	struct pair pair;
	DAT_EVD_HANDLE evd;
	pthread_t thread;
	unsigned round;

	pair_open(&pair);
	MUST(dat_evd_modify_cno(pair.passive.recv, pair.cno));
	CU_ASSERT_EQUAL_FATAL(pthread_create(&thread, NULL, send_all, &pair), 0);
	for (round = 0; pair.received < MESSAGES; round++) {
		DAT_RETURN status = dat_cno_wait(pair.cno, PATIENCE, &evd);

		CU_ASSERT_EQUAL(status, DAT_SUCCESS);
		if (status != DAT_SUCCESS || !receive(&pair))
			break;
		CU_ASSERT_PTR_EQUAL(evd, pair.passive.recv);
		disturb(&pair, round);
	}
	CU_ASSERT_EQUAL(pair.received, MESSAGES);
	CU_ASSERT_EQUAL(pthread_join(thread, NULL), 0);
	MUST(dat_evd_modify_cno(pair.passive.recv, DAT_HANDLE_NULL));
	IS(dat_cno_wait(pair.cno, 0, &evd), DAT_QUEUE_EMPTY);
	pair_close(&pair);
}

static void leave_alone(struct pair *pair, unsigned round)
{
	(void)pair;
	(void)round;
}

static void toggle(struct pair *pair, unsigned round)
{
	if (round % 2) {
		MUST(dat_evd_modify_cno(pair->passive.recv, DAT_HANDLE_NULL));
		MUST(dat_evd_modify_cno(pair->passive.recv, pair->cno));
	} else {
		MUST(dat_evd_disable(pair->passive.recv));
		MUST(dat_evd_enable(pair->passive.recv));
	}
}

static void resize(struct pair *pair, unsigned round)
{
	static const DAT_COUNT lengths[] = { 100, 64, 400, 32, 1000 };

	MUST(dat_evd_resize(pair->passive.recv, lengths[round % COUNT(lengths)]));
}

static void test_messages(void)
{
	run_traffic(leave_alone);
}

static void test_modify_under_traffic(void)
{
	run_traffic(toggle);
}

static void test_resize_under_traffic(void)
{
	run_traffic(resize);
}

static const struct unit_test tests[] = {
	{ "with many triggers and one drained EVD each, no event is left", test_storm },
	{ "an agent that sets itself again misses no event", test_agent },
	{ "every message triggers the CNO", test_messages },
	{ "modify_cno, enable and disable lose no trigger under traffic",
	  test_modify_under_traffic },
	{ "a resize loses no trigger under traffic", test_resize_under_traffic },
};

UNIT_MAIN("cno_traffic", tests)
