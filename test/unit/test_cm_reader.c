/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Which thread reads the CM's events: a thread in dat_evd_wait, or the event thread. */
#include <dirent.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "test/unit/two_ends.h"

#define SHORT 20000u /* in microseconds; a wait that runs out */

/* ---- a thread that waits for a connection event that never occurs ---- */

struct waiter {
	pthread_t thread;
	atomic_int tid;
	DAT_EVD_HANDLE evd;
	DAT_TIMEOUT timeout;
	DAT_RETURN status;
};

static void *waiter_run(void *arg)
{
	struct waiter *w = arg;
	DAT_EVENT event;
	DAT_COUNT more;

	atomic_store(&w->tid, gettid());
	pthread_cleanup_push(unit_forget_stack, NULL);
	w->status = dat_evd_wait(w->evd, w->timeout, 1, &event, &more);
	pthread_cleanup_pop(0);
	return NULL;
}

static bool waiter_sleeps(void *arg)
{
	struct waiter *w = arg;
	int tid = atomic_load(&w->tid);

	return tid && unit_is_asleep(tid);
}

static void waiter_start(struct waiter *w, DAT_TIMEOUT timeout)
{
	*w = (struct waiter){ .evd = evd_open(&env, 8, DAT_EVD_CONNECTION_FLAG),
			      .timeout = timeout };
	CU_ASSERT_EQUAL_FATAL(pthread_create(&w->thread, NULL, waiter_run, w), 0);
}

static void waiter_end(struct waiter *w)
{
	CU_ASSERT_EQUAL(pthread_join(w->thread, NULL), 0);
	evd_close(w->evd);
}

/* ---- a thread that polls without waiting ---- */

struct look {
	DAT_EVD_HANDLE evd;
	DAT_EVENT event;
};

static bool look_finds(void *arg)
{
	struct look *look = arg;

	return dat_evd_dequeue(look->evd, &look->event) == DAT_SUCCESS;
}

static DAT_EVENT polled(DAT_EVD_HANDLE evd, DAT_EVENT_NUMBER number)
{
	struct look look = { .evd = evd };

	CU_ASSERT_TRUE_FATAL(unit_wait_for(look_finds, &look, UNIT_PATIENCE));
	CU_ASSERT_EQUAL_FATAL(look.event.event_number, number);
	return look.event;
}

static void connect_polling(void)
{
	DAT_EVENT event;

	start_connect(&a);
	event = polled(env.cr, DAT_CONNECTION_REQUEST_EVENT);
	MUST(dat_cr_accept(event.event_data.cr_arrival_event_data.cr_handle, b.ep, 0, NULL));
	polled(a.conn, DAT_CONNECTION_EVENT_ESTABLISHED);
	polled(b.conn, DAT_CONNECTION_EVENT_ESTABLISHED);
}

/* ---- the event thread, by its name ---- */

static bool has_name(const char *task, const char *name)
{
	char path[300], line[32] = "";
	FILE *file;

	snprintf(path, sizeof(path), "/proc/self/task/%s/comm", task);
	file = fopen(path, "r");
	if (!file)
		return false;
	if (!fgets(line, sizeof(line), file))
		line[0] = '\0';
	fclose(file);
	line[strcspn(line, "\n")] = '\0';
	return !strcmp(line, name);
}

static pid_t event_thread(void)
{
	DIR *tasks = opendir("/proc/self/task");
	struct dirent *task;
	pid_t found = 0;

	CU_ASSERT_PTR_NOT_NULL_FATAL(tasks);
	while ((task = readdir(tasks)))
		if (has_name(task->d_name, "dapl events"))
			found = (pid_t)atoi(task->d_name);
	closedir(tasks);
	return found;
}

static bool thread_sleeps(void *arg)
{
	return unit_is_asleep(*(pid_t *)arg);
}

/* Returns how often the thread has blocked. */
static unsigned long sleeps_of(pid_t thread)
{
	unsigned long count = 0;
	char path[64], line[128];
	FILE *file;

	snprintf(path, sizeof(path), "/proc/self/task/%d/status", (int)thread);
	file = fopen(path, "r");
	CU_ASSERT_PTR_NOT_NULL_FATAL(file);
	while (fgets(line, sizeof(line), file))
		if (sscanf(line, "voluntary_ctxt_switches: %lu", &count) == 1)
			break;
	fclose(file);
	return count;
}

/* ---- the tests ---- */

#define ROUNDS 8u

/* Returns how often the event thread blocks during one connection; its end is not counted. */
static unsigned long connect_counting(pid_t thread)
{
	unsigned long before, after;

	CU_ASSERT_TRUE(unit_wait_for(thread_sleeps, &thread, UNIT_PATIENCE));
	before = sleeps_of(thread);
	connect_polling();
	CU_ASSERT_TRUE(unit_wait_for(thread_sleeps, &thread, UNIT_PATIENCE));
	after = sleeps_of(thread);
	MUST(dat_ep_disconnect(a.ep, DAT_CLOSE_ABRUPT_FLAG));
	polled(a.conn, DAT_CONNECTION_EVENT_DISCONNECTED);
	polled(b.conn, DAT_CONNECTION_EVENT_DISCONNECTED);
	MUST(dat_ep_reset(a.ep));
	MUST(dat_ep_reset(b.ep));
	return after - before;
}

static unsigned long rounds_beside_waiter(pid_t thread)
{
	unsigned long sleeps = 0;
	struct waiter w;
	unsigned i;

	waiter_start(&w, DAT_TIMEOUT_INFINITE);
	CU_ASSERT_TRUE(unit_wait_for(waiter_sleeps, &w, UNIT_PATIENCE));
	for (i = 0; i < ROUNDS; i++)
		sleeps += connect_counting(thread);
	MUST(dat_evd_set_unwaitable(w.evd));
	waiter_end(&w);
	IS(w.status, E(INVALID_STATE, INVALID_STATE_EVD_UNWAITABLE));
	return sleeps;
}

/*
 * Each timer may wake the event thread once in all rounds; events would wake it in each round. If a
 * timer fires while the waiter is about to read, the event thread keeps the channel until that wait
 * ends; then the test tries again, with an adapter that has no timers yet.
 */
static bool waiter_reads(void)
{
	unsigned long sleeps;
	pid_t thread;

	setup();
	thread = event_thread();
	CU_ASSERT_NOT_EQUAL_FATAL(thread, 0);
	sleeps = rounds_beside_waiter(thread);
	teardown();
	return sleeps < ROUNDS;
}

static void test_waiter_reads(void)
{
	unsigned tries = 100;

	while (!waiter_reads() && --tries)
		continue;
	CU_ASSERT(tries > 0);
}

static void test_given_back_in_time(void)
{
	struct waiter w;

	setup();
	waiter_start(&w, SHORT);
	waiter_end(&w);
	IS(w.status, DAT_TIMEOUT_EXPIRED);
	connect_polling();
	disconnect_pair(&a, &b);
	teardown();
}

static void test_given_back_when_cancelled(void)
{
	struct waiter w;

	setup();
	waiter_start(&w, DAT_TIMEOUT_INFINITE);
	CU_ASSERT_TRUE(unit_wait_for(waiter_sleeps, &w, UNIT_PATIENCE));
	CU_ASSERT_EQUAL(pthread_cancel(w.thread), 0);
	waiter_end(&w);
	connect_polling();
	disconnect_pair(&a, &b);
	teardown();
}

/* Of two waiters, the one that reads the channel also dispatches the other's event. */
static void test_reads_for_others(void)
{
	struct waiter w;

	setup();
	waiter_start(&w, DAT_TIMEOUT_INFINITE);
	CU_ASSERT_TRUE(unit_wait_for(waiter_sleeps, &w, UNIT_PATIENCE));
	connect_pair(&a, &b);
	disconnect_pair(&a, &b);
	MUST(dat_evd_set_unwaitable(w.evd));
	waiter_end(&w);
	teardown();
}

/* ---- a slow agent in the event thread ---- */

static atomic_bool agent_in, agent_may_go;

static bool is_true(void *arg)
{
	return atomic_load((atomic_bool *)arg);
}

static void agent(DAT_PVOID data, DAT_EVD_HANDLE evd)
{
	(void)data;
	(void)evd;
	atomic_store(&agent_in, true);
	unit_wait_for(is_true, &agent_may_go, UNIT_PATIENCE);
}

static void test_agent_delays_no_wait(void)
{
	DAT_OS_WAIT_PROXY_AGENT proxy = { .proxy_agent_func = agent };
	DAT_EVD_HANDLE evd;
	DAT_CNO_HANDLE cno;
	DAT_EVENT event = { .event_number = DAT_SOFTWARE_EVENT };
	DAT_COUNT more;

	setup();
	MUST(dat_cno_create(env.ia, proxy, &cno));
	MUST(dat_evd_create(env.ia, 8, cno, DAT_EVD_SOFTWARE_FLAG, &evd));
	MUST(dat_evd_post_se(evd, &event));
	CU_ASSERT_TRUE(unit_wait_for(is_true, &agent_in, UNIT_PATIENCE));
	start_connect(&a);
	IS(dat_evd_wait(env.cr, SHORT, 1, &event, &more), DAT_TIMEOUT_EXPIRED);
	atomic_store(&agent_may_go, true);
	MUST(dat_cr_reject(request_next(&env), 0, NULL));
	polled(a.conn, DAT_CONNECTION_EVENT_PEER_REJECTED);
	polled(evd, DAT_SOFTWARE_EVENT);
	evd_close(evd);
	MUST(dat_cno_free(cno));
	teardown();
}

/* ---- a waiter whose signal handler does not return ---- */

static int handler_begins[2], handler_ends[2]; /* pipes */

static void on_signal(int number)
{
	char byte = 0;

	(void)number;
	if (write(handler_begins[1], &byte, 1) != 1 || read(handler_ends[0], &byte, 1) != 1)
		abort();
}

/*
 * The waiter does not read while its handler runs; connections of other threads do not depend on
 * it.
 */
static void test_reader_in_a_handler(void)
{
	struct sigaction action = { .sa_handler = on_signal }, old;
	struct waiter w;
	char byte = 0;

	setup();
	CU_ASSERT_EQUAL_FATAL(pipe(handler_begins), 0);
	CU_ASSERT_EQUAL_FATAL(pipe(handler_ends), 0);
	sigaction(SIGUSR1, &action, &old);
	waiter_start(&w, DAT_TIMEOUT_INFINITE);
	CU_ASSERT_TRUE(unit_wait_for(waiter_sleeps, &w, UNIT_PATIENCE));
	pthread_kill(w.thread, SIGUSR1);
	CU_ASSERT_EQUAL(read(handler_begins[0], &byte, 1), 1);
	connect_polling();
	disconnect_pair(&a, &b);
	CU_ASSERT_EQUAL(write(handler_ends[1], &byte, 1), 1);
	waiter_end(&w);
	IS(w.status, DAT_INTERRUPTED_CALL);
	sigaction(SIGUSR1, &old, NULL);
	close(handler_begins[0]);
	close(handler_begins[1]);
	close(handler_ends[0]);
	close(handler_ends[1]);
	teardown();
}

static const struct unit_test tests[] = {
	{ "a waiter for connection events reads for all EVDs while the event thread sleeps",
	  test_waiter_reads },
	{ "the event thread reads again after a wait has timed out", test_given_back_in_time },
	{ "the event thread reads again after a wait that was cancelled",
	  test_given_back_when_cancelled },
	{ "a waiter that reads CM events wakes the other waiters", test_reads_for_others },
	{ "a reader in a signal handler stops no connection", test_reader_in_a_handler },
	{ "a wait ends in time while an agent runs", test_agent_delays_no_wait },
};

UNIT_MAIN("cm_reader", tests)
