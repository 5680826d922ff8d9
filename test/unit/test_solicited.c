/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Receives of which only a solicited message, or a failure, wakes a waiter. */
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>
#include "test/unit/ep_util.h"

static struct env env;
static struct end a, b;
static _Atomic pid_t waiter; /* a thread; 0: not yet */

static void begin(unsigned receives)
{
	DAT_EP_ATTR attr = { .max_recv_dtos = 8,
			     .max_request_dtos = 8,
			     .max_recv_iov = 1,
			     .max_request_iov = 1,
			     .recv_completion_flags = DAT_COMPLETION_SOLICITED_WAIT_FLAG };

	env_open(&env);
	env_listen(&env);
	end_open(&env, &a, &attr);
	end_open(&env, &b, &attr);
	post_recvs(&b, receives);
	connect_pair(&a, &b);
}

static void end(void)
{
	end_close(&a);
	end_close(&b);
	env_close(&env);
}

/* Both messages are there: the first one did not wake. */
static void *wait_for_messages(void *unused)
{
	DAT_COUNT more;
	DAT_EVENT event;

	(void)unused;
	waiter = gettid();
	OK(dat_evd_wait(b.recv, DAT_TIMEOUT_INFINITE, 1, &event, &more));
	CU_ASSERT_EQUAL(event.event_data.dto_completion_event_data.user_cookie.as_64, 1);
	CU_ASSERT_EQUAL(more, 1);
	return NULL;
}

static void *wait_for_flush(void *unused)
{
	DAT_COUNT more;
	DAT_EVENT event;

	(void)unused;
	waiter = gettid();
	OK(dat_evd_wait(b.recv, DAT_TIMEOUT_INFINITE, 1, &event, &more));
	CU_ASSERT_EQUAL(event.event_data.dto_completion_event_data.status, DAT_DTO_ERR_FLUSHED);
	return NULL;
}

static bool waiter_sleeps(void *unused)
{
	(void)unused;
	return waiter && unit_is_asleep(waiter);
}

static pthread_t waiter_start(void *(*wait)(void *))
{
	pthread_t thread;

	waiter = 0;
	CU_ASSERT_EQUAL_FATAL(pthread_create(&thread, NULL, wait, NULL), 0);
	CU_ASSERT_TRUE(unit_wait_for(waiter_sleeps, NULL, UNIT_PATIENCE));
	return thread;
}

static void test_message(void)
{
	pthread_t thread;
	DAT_COUNT more;
	DAT_EVENT event;

	begin(3);
	OK(try_send(&a, 1, DAT_COMPLETION_DEFAULT_FLAG));
	expect_dto(a.request, a.ep, 1, DAT_DTO_SUCCESS);
	/* the message has arrived; at the start of a wait any event counts */
	OK(dat_evd_wait(b.recv, DAT_TIMEOUT_INFINITE, 1, &event, &more));
	IS(dat_evd_wait(b.recv, 1000, 1, &event, &more), DAT_TIMEOUT_EXPIRED);
	thread = waiter_start(wait_for_messages);
	OK(try_send(&a, 2, DAT_COMPLETION_DEFAULT_FLAG));
	expect_dto(a.request, a.ep, 2, DAT_DTO_SUCCESS);
	OK(try_send(&a, 3, DAT_COMPLETION_SOLICITED_WAIT_FLAG));
	CU_ASSERT_TRUE_FATAL(unit_join(thread));
	end();
}

static void flush_wakes(struct end *ending)
{
	pthread_t thread;

	begin(2);
	thread = waiter_start(wait_for_flush);
	OK(dat_ep_disconnect(ending->ep, DAT_CLOSE_ABRUPT_FLAG));
	CU_ASSERT_TRUE_FATAL(unit_join(thread));
	expect_dto(b.recv, b.ep, 1, DAT_DTO_ERR_FLUSHED);
	end();
}

static void test_own_disconnect(void)
{
	flush_wakes(&b);
}

static void test_disconnect_of_the_peer(void)
{
	flush_wakes(&a);
}

static const struct unit_test tests[] = {
	{ "only a solicited message wakes", test_message },
	{ "what a disconnect flushes wakes", test_own_disconnect },
	{ "what a disconnect of the peer flushes wakes", test_disconnect_of_the_peer },
};

UNIT_MAIN("solicited", tests)
