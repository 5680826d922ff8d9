/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Asynchronous events: their queue, their descriptor, and the objects that they name. */
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include "test/conform/conform.h"

/* Raises SQ_DRAINED for the QP. */
static int drain(struct ibv_qp *qp)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_SQD, .en_sqd_async_notify = 1 };

	return ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_EN_SQD_ASYNC_NOTIFY);
}

/* The QPs drain at the same time, and the device reports them in any order. */
static void events_queue_up(void)
{
	struct ibv_async_event events[2];
	struct pair pair;
	int i;

	if (!pair_open(&pair, NULL))
		return;
	CU_ASSERT_EQUAL(drain(pair.a.qp), 0);
	CU_ASSERT_EQUAL(drain(pair.b.qp), 0);
	for (i = 0; i < 2; i++) {
		CU_ASSERT_TRUE_FATAL(readable(device->async_fd, PATIENCE));
		CU_ASSERT_EQUAL_FATAL(ibv_get_async_event(device, &events[i]), 0);
		CU_ASSERT_EQUAL(events[i].event_type, IBV_EVENT_SQ_DRAINED);
		ibv_ack_async_event(&events[i]);
	}
	CU_ASSERT_TRUE(events[0].element.qp == pair.a.qp || events[0].element.qp == pair.b.qp);
	CU_ASSERT_TRUE(events[1].element.qp == pair.a.qp || events[1].element.qp == pair.b.qp);
	CU_ASSERT_PTR_NOT_EQUAL(events[0].element.qp, events[1].element.qp);
	CU_ASSERT_TRUE(async_silent());
	pair_close(&pair);
}

static void events_go_to_their_context(void)
{
	struct ibv_context *other = ibv_open_device(device->device);
	struct pair pair;

	CU_ASSERT_PTR_NOT_NULL_FATAL(other);
	if (pair_open(&pair, NULL)) {
		CU_ASSERT_EQUAL(drain(pair.a.qp), 0);
		CU_ASSERT_TRUE(async_is(IBV_EVENT_SQ_DRAINED, pair.a.qp));
		CU_ASSERT_FALSE(readable(other->async_fd, SILENCE));
		pair_close(&pair);
	}
	CU_ASSERT_EQUAL(ibv_close_device(other), 0);
}

static void unread_events_go_with_their_object(void)
{
	struct pair pair;

	if (!pair_open(&pair, NULL))
		return;
	CU_ASSERT_EQUAL(drain(pair.a.qp), 0);
	CU_ASSERT_TRUE(readable(device->async_fd, PATIENCE));
	CU_ASSERT_EQUAL(ibv_destroy_qp(pair.a.qp), 0);
	pair.a.qp = NULL;
	CU_ASSERT_FALSE(readable(device->async_fd, SILENCE));
	CU_ASSERT_EQUAL(drain(pair.b.qp), 0);
	CU_ASSERT_TRUE(async_is(IBV_EVENT_SQ_DRAINED, pair.b.qp));
	pair_close(&pair);
}

struct destroyer {
	struct ibv_qp *qp;
	atomic_bool done;
	int result;
};

static void *destroy(void *arg)
{
	struct destroyer *destroyer = arg;

	destroyer->result = ibv_destroy_qp(destroyer->qp);
	atomic_store(&destroyer->done, true);
	return NULL;
}

static bool is_done(void *arg)
{
	return atomic_load(&((struct destroyer *)arg)->done);
}

static void destroy_waits_for_acknowledgement(void)
{
	struct destroyer destroyer = { 0 };
	struct ibv_async_event event;
	pthread_t thread;
	struct pair pair;

	if (!pair_open(&pair, NULL))
		return;
	CU_ASSERT_EQUAL(drain(pair.a.qp), 0);
	CU_ASSERT_TRUE_FATAL(readable(device->async_fd, PATIENCE));
	CU_ASSERT_EQUAL_FATAL(ibv_get_async_event(device, &event), 0);
	CU_ASSERT_PTR_EQUAL(event.element.qp, pair.a.qp);
	destroyer.qp = pair.a.qp;
	pair.a.qp = NULL;
	CU_ASSERT_EQUAL_FATAL(pthread_create(&thread, NULL, destroy, &destroyer), 0);
	CU_ASSERT_FALSE(unit_wait_for(is_done, &destroyer, SILENCE));
	ibv_ack_async_event(&event);
	CU_ASSERT_TRUE(unit_wait_for(is_done, &destroyer, PATIENCE));
	CU_ASSERT_EQUAL(pthread_join(thread, NULL), 0);
	CU_ASSERT_EQUAL(destroyer.result, 0);
	pair_close(&pair);
}

static void *wait_for_event(void *arg)
{
	struct ibv_async_event *event = arg;

	return ibv_get_async_event(device, event) ? NULL : event;
}

static void sleeper_is_woken(void)
{
	struct ibv_async_event event = { 0 };
	void *result = NULL;
	pthread_t thread;
	struct pair pair;

	if (!pair_open(&pair, NULL))
		return;
	CU_ASSERT_EQUAL_FATAL(pthread_create(&thread, NULL, wait_for_event, &event), 0);
	CU_ASSERT_EQUAL(drain(pair.a.qp), 0);
	CU_ASSERT_EQUAL(pthread_join(thread, &result), 0);
	CU_ASSERT_PTR_EQUAL(result, &event);
	CU_ASSERT_PTR_EQUAL(event.element.qp, pair.a.qp);
	ibv_ack_async_event(&event);
	pair_close(&pair);
}

static void sleeper_is_cancelled(void)
{
	struct ibv_async_event event = { 0 };
	void *result = NULL;
	pthread_t thread;
	struct pair pair;

	if (under_address_sanitizer) {
		skip("the address sanitizer does not follow a cancelled thread");
		return;
	}
	CU_ASSERT_EQUAL_FATAL(pthread_create(&thread, NULL, wait_for_event, &event), 0);
	CU_ASSERT_EQUAL(pthread_cancel(thread), 0);
	CU_ASSERT_EQUAL(pthread_join(thread, &result), 0);
	CU_ASSERT_PTR_EQUAL(result, PTHREAD_CANCELED);
	/* the cancelled thread holds nothing */
	if (!pair_open(&pair, NULL))
		return;
	CU_ASSERT_EQUAL(drain(pair.a.qp), 0);
	CU_ASSERT_TRUE(async_is(IBV_EVENT_SQ_DRAINED, pair.a.qp));
	pair_close(&pair);
}

static void no_restart(int signal)
{
	(void)signal;
}

static void *wait_for_signal(void *arg)
{
	struct ibv_async_event event;

	(void)arg;
	errno = 0;
	return (void *)(uintptr_t)(ibv_get_async_event(device, &event) == -1 ? errno : -1);
}

/* The signal may come before the thread blocks, so it is sent until the thread ends. */
static void sleeper_is_interrupted(void)
{
	struct sigaction action = { .sa_handler = no_restart }, before;
	void *result = NULL;
	pthread_t thread;

	CU_ASSERT_EQUAL(sigaction(SIGUSR1, &action, &before), 0);
	CU_ASSERT_EQUAL_FATAL(pthread_create(&thread, NULL, wait_for_signal, NULL), 0);
	while (pthread_tryjoin_np(thread, &result)) {
		pthread_kill(thread, SIGUSR1);
		sched_yield();
	}
	CU_ASSERT_EQUAL((uintptr_t)result, EINTR);
	CU_ASSERT_EQUAL(sigaction(SIGUSR1, &before, NULL), 0);
}

static const struct unit_test tests[] = {
	{ "events queue up, one read each", events_queue_up },
	{ "events go to the context of their object", events_go_to_their_context },
	{ "unread events go with their object", unread_events_go_with_their_object },
	{ "destroy_qp waits until its events are acknowledged", destroy_waits_for_acknowledgement },
	{ "a thread that waits for an event is woken", sleeper_is_woken },
	{ "a thread that waits for an event can be cancelled", sleeper_is_cancelled },
	{ "a thread that waits for an event can be interrupted: EINTR", sleeper_is_interrupted },
};

CONFORM_MAIN("conform_async", tests)
