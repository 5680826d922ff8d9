/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* A forked child opens the adapter that its parent has open. */
#include <string.h>
#include "test/unit/process.h"
#include "test/unit/two_ends.h"

/* Connects, sends a message and disconnects, with objects of this process. */
static void work(void)
{
	connect_pair(&a, &b);
	disconnect_pair(&a, &b);
	MUST(dat_ep_reset(a.ep));
	MUST(dat_ep_reset(b.ep));
}

static void work_anew(void)
{
	setup();
	work();
	teardown();
}

static int child_run(int fd, void *arg)
{
	unsigned failures_of_parent = CU_get_number_of_failures();

	(void)fd;
	(void)arg;
	if (PROCESS_TSAN)
		return 0;
	work_anew();
	work_anew(); /* again after the last close */
	return CU_get_number_of_failures() > failures_of_parent ? 1 : 0;
}

/* While the parent's threads allocate. */
static int busy_child_run(int fd, void *arg)
{
	return PROCESS_ASAN ? 0 : child_run(fd, arg);
}

/* The parent's objects are unchanged, whatever the child does. */
static void test_child_of_a_parent_with_an_adapter(void)
{
	struct process child;

	setup();
	work();
	CU_ASSERT_FATAL(process_start(&child, child_run, NULL));
	work();
	CU_ASSERT_EQUAL(process_end(&child), 0);
	work();
	teardown();
}

static void test_child_of_a_parent_that_closed_it(void)
{
	struct process child;

	work_anew();
	CU_ASSERT_FATAL(process_start(&child, child_run, NULL));
	CU_ASSERT_EQUAL(process_end(&child), 0);
}

/* A fork while other threads of the parent open and close adapters. */
static atomic_bool stop;

static void *open_and_close(void *arg)
{
	struct env other;

	(void)arg;
	while (!atomic_load(&stop)) {
		env_open(&other);
		env_close(&other);
	}
	return NULL;
}

static void test_fork_beside_opens(void)
{
	struct process child;
	pthread_t thread;
	unsigned i;

	atomic_store(&stop, false);
	CU_ASSERT_EQUAL_FATAL(pthread_create(&thread, NULL, open_and_close, NULL), 0);
	for (i = 0; i < 10; i++) {
		CU_ASSERT_FATAL(process_start(&child, busy_child_run, NULL));
		CU_ASSERT_EQUAL(process_end(&child), 0);
	}
	atomic_store(&stop, true);
	CU_ASSERT_EQUAL(pthread_join(thread, NULL), 0);
}

/* ---- a child that connects to its parent, while another thread of that is busy ---- */

/* The other thread's own adapter and ends. */
static struct {
	struct env env;
	struct end a, b;
} other;

static void *waits(void *arg)
{
	DAT_EVENT event;
	DAT_COUNT more;

	(void)arg;
	IS(dat_evd_wait(other.env.cr, DAT_TIMEOUT_INFINITE, 1, &event, &more),
	   E(INVALID_STATE, INVALID_STATE_EVD_UNWAITABLE));
	return NULL;
}

static void *connects(void *arg)
{
	(void)arg;
	while (!atomic_load(&stop)) {
		connect_pair(&other.a, &other.b);
		disconnect_pair(&other.a, &other.b);
		MUST(dat_ep_reset(other.a.ep));
		MUST(dat_ep_reset(other.b.ep));
	}
	return NULL;
}

static void *sends(void *arg)
{
	(void)arg;
	connect_pair(&other.a, &other.b);
	while (!atomic_load(&stop))
		message_passes(&other.a, &other.b);
	disconnect_pair(&other.a, &other.b);
	return NULL;
}

static int client_run(int fd, void *arg)
{
	unsigned failures_of_parent = CU_get_number_of_failures();
	struct env own;
	struct end end;

	(void)fd;
	(void)arg;
	if (PROCESS_TSAN || PROCESS_ASAN)
		return 0;
	env_open(&own);
	own.qual = env.qual;
	end_open(&own, &end, NULL);
	start_connect(&end);
	expect(end.conn, DAT_CONNECTION_EVENT_ESTABLISHED, end.ep);
	MUST(try_recv(&end, 1));
	OK(try_send(&end, 2, 0));
	expect_dto(end.request, end.ep, 2, DAT_DTO_SUCCESS);
	expect(end.conn, DAT_CONNECTION_EVENT_DISCONNECTED, end.ep);
	end_close(&end);
	env_close(&own);
	return CU_get_number_of_failures() > failures_of_parent ? 1 : 0;
}

static void serve_child(void)
{
	struct process child;

	MUST(try_recv(&b, 3));
	CU_ASSERT_FATAL(process_start(&child, client_run, NULL));
	if (!PROCESS_TSAN && !PROCESS_ASAN) {
		MUST(dat_cr_accept(request_next(&env), b.ep, 0, NULL));
		expect(b.conn, DAT_CONNECTION_EVENT_ESTABLISHED, b.ep);
		expect_dto(b.recv, b.ep, 3, DAT_DTO_SUCCESS);
		MUST(dat_ep_disconnect(b.ep, DAT_CLOSE_ABRUPT_FLAG));
		expect(b.conn, DAT_CONNECTION_EVENT_DISCONNECTED, b.ep);
	}
	CU_ASSERT_EQUAL(process_end(&child), 0);
	end_close(&b);
	end_open(&env, &b, NULL);
}

static void fork_beside(void *(*run)(void *))
{
	pthread_t thread;
	unsigned i;

	setup();
	env_open(&other.env);
	env_listen(&other.env);
	end_open(&other.env, &other.a, NULL);
	end_open(&other.env, &other.b, NULL);
	atomic_store(&stop, false);
	CU_ASSERT_EQUAL_FATAL(pthread_create(&thread, NULL, run, NULL), 0);
	for (i = 0; i < 5; i++)
		serve_child();
	atomic_store(&stop, true);
	if (run == waits)
		MUST(dat_evd_set_unwaitable(other.env.cr));
	CU_ASSERT_EQUAL(pthread_join(thread, NULL), 0);
	end_close(&other.a);
	end_close(&other.b);
	env_close(&other.env);
	teardown();
}

static void test_fork_beside_a_waiter(void)
{
	fork_beside(waits);
}

static void test_fork_beside_connections(void)
{
	fork_beside(connects);
}

static void test_fork_beside_messages(void)
{
	fork_beside(sends);
}

static const struct unit_test tests[] = {
	{ "the child of a parent that has the adapter open can open it",
	  test_child_of_a_parent_with_an_adapter },
	{ "the child of a parent that closed the adapter can open it",
	  test_child_of_a_parent_that_closed_it },
	{ "a child that was forked while other threads open and close adapters can open one",
	  test_fork_beside_opens },
	{ "a child connects to its parent, which waits", test_fork_beside_a_waiter },
	{ "a child connects to its parent, which connects", test_fork_beside_connections },
	{ "a child connects to its parent, which sends", test_fork_beside_messages },
};

UNIT_MAIN("fork", tests)
