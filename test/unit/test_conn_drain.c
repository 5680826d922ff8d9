/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * A disconnect whose answer is late: the CM keeps asking for it although the EP is freed, and a
 * graceful close of the IA waits for it. The software device loses no messages, so the test
 * withholds the answer.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <rdma/rdma_cma.h>
#include "test/unit/announce.h"
#include "test/unit/two_ends.h"
#include "util/clock.h"

static _Atomic(struct rdma_cm_id *) first;   /* the test's first identifier that disconnects */
static struct rdma_event_channel *channel;   /* the channel of `first` */
static atomic_bool quiet;		     /* events of its end are withheld */
static _Atomic(struct rdma_cm_event *) kept; /* the event that is withheld */
static atomic_bool destroyed, destroyed_unanswered, hurries, waits;

int __real_rdma_disconnect(struct rdma_cm_id *id);
int __wrap_rdma_disconnect(struct rdma_cm_id *id);
int __real_rdma_destroy_id(struct rdma_cm_id *id);
int __wrap_rdma_destroy_id(struct rdma_cm_id *id);
int __real_rdma_get_cm_event(struct rdma_event_channel *from, struct rdma_cm_event **event);
int __wrap_rdma_get_cm_event(struct rdma_event_channel *from, struct rdma_cm_event **event);
int __real_pthread_cond_timedwait(pthread_cond_t *cond, pthread_mutex_t *mutex,
				  const struct timespec *until);
int __wrap_pthread_cond_timedwait(pthread_cond_t *cond, pthread_mutex_t *mutex,
				  const struct timespec *until);

int __wrap_rdma_disconnect(struct rdma_cm_id *id)
{
	struct rdma_cm_id *none = NULL;

	if (atomic_compare_exchange_strong(&first, &none, id))
		channel = id->channel;
	return __real_rdma_disconnect(id);
}

int __wrap_rdma_get_cm_event(struct rdma_event_channel *from, struct rdma_cm_event **event)
{
	int status;

	if (!atomic_load(&quiet)) {
		*event = atomic_exchange(&kept, NULL);
		return *event ? 0 : __real_rdma_get_cm_event(from, event);
	}
	status = __real_rdma_get_cm_event(from, event);
	if (status || (*event)->id != atomic_load(&first))
		return status;
	if ((*event)->event == RDMA_CM_EVENT_DISCONNECTED)
		atomic_store(&kept, *event);
	else if ((*event)->event == RDMA_CM_EVENT_TIMEWAIT_EXIT)
		rdma_ack_cm_event(*event); /* it would not come without the answer */
	else
		return status;
	errno = EAGAIN;
	return -1;
}

/* The wait of the close. Times out at once if the test sets `hurries`, but must have a deadline. */
int __wrap_pthread_cond_timedwait(pthread_cond_t *cond, pthread_mutex_t *mutex,
				  const struct timespec *until)
{
	atomic_store(&waits, true);
	if (!atomic_exchange(&hurries, false))
		return __real_pthread_cond_timedwait(cond, mutex, until);
	CU_ASSERT_TRUE((uint64_t)until->tv_sec * NSEC_PER_SEC <= clock_now() + 20 * NSEC_PER_SEC);
	return ETIMEDOUT;
}

/*
 * The real call blocks until all events of the identifier are acknowledged, so the withheld event
 * is acknowledged first.
 */
int __wrap_rdma_destroy_id(struct rdma_cm_id *id)
{
	struct rdma_cm_event *event;

	if (id == atomic_load(&first)) {
		event = atomic_exchange(&kept, NULL);
		if (event)
			rdma_ack_cm_event(event);
		atomic_store(&destroyed_unanswered, event != NULL);
		atomic_store(&destroyed, true);
	}
	return __real_rdma_destroy_id(id);
}

static bool is_given(void *arg)
{
	(void)arg;
	return !atomic_load(&kept);
}

/* Lets the peer's answer through, and makes an unrelated CM event so that the channel is read. */
static void answer(void)
{
	struct sockaddr_in loopback = { .sin_family = AF_INET,
					.sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct rdma_cm_id *none;

	atomic_store(&quiet, false);
	CU_ASSERT_EQUAL_FATAL(rdma_create_id(channel, &none, NULL, RDMA_PS_TCP), 0);
	CU_ASSERT_EQUAL(rdma_resolve_addr(none, NULL, (struct sockaddr *)&loopback, 1000), 0);
	CU_ASSERT_TRUE(unit_wait_for(is_given, NULL, UNIT_PATIENCE));
	CU_ASSERT_EQUAL(__real_rdma_destroy_id(none), 0);
}

static void begin_connected(void)
{
	announce();
	setup();
	connect_pair(&a, &b);
	atomic_store(&first, NULL);
	atomic_store(&destroyed, false);
	atomic_store(&destroyed_unanswered, false);
	atomic_store(&waits, false);
	atomic_store(&quiet, true);
}

static void begin(void)
{
	begin_connected();
	disconnect_pair(&a, &b);
	CU_ASSERT_PTR_NOT_NULL(atomic_load(&kept));
}

static void end(void)
{
	teardown();
	atomic_store(&quiet, false);
	CU_ASSERT_TRUE(atomic_load(&destroyed));
}

static bool is_destroyed(void *arg)
{
	(void)arg;
	return atomic_load(&destroyed);
}

static void test_freed(void)
{
	begin();
	end_free_ep(&a);
	CU_ASSERT_FALSE(is_destroyed(NULL));
	answer();
	CU_ASSERT_TRUE(unit_wait_for(is_destroyed, NULL, UNIT_PATIENCE));
	CU_ASSERT_FALSE(atomic_load(&destroyed_unanswered));
	end();
}

static void test_reset(void)
{
	begin();
	OK(dat_ep_reset(a.ep));
	OK(dat_ep_reset(b.ep));
	connect_pair(&a, &b);
	disconnect_pair(&b, &a);
	CU_ASSERT_FALSE(is_destroyed(NULL));
	answer();
	CU_ASSERT_TRUE(unit_wait_for(is_destroyed, NULL, UNIT_PATIENCE));
	end();
}

static void test_answered(void)
{
	begin();
	answer();
	CU_ASSERT_FALSE(is_destroyed(NULL));
	end_free_ep(&a);
	CU_ASSERT_TRUE(unit_wait_for(is_destroyed, NULL, UNIT_PATIENCE));
	end();
}

/* A close that does not wait destroys the identifier instead. */
static bool close_waits_or_is_over(void *arg)
{
	return atomic_load(&waits) || is_destroyed(arg);
}

static void *answer_run(void *arg)
{
	unit_wait_for(close_waits_or_is_over, arg, UNIT_PATIENCE);
	if (!is_destroyed(NULL))
		answer();
	return NULL;
}

static void test_graceful_close(void)
{
	pthread_t thread;

	begin();
	CU_ASSERT_EQUAL_FATAL(pthread_create(&thread, NULL, answer_run, NULL), 0);
	end();
	CU_ASSERT_FALSE(atomic_load(&destroyed_unanswered));
	CU_ASSERT_TRUE(unit_join(thread));
}

static void test_never_answered(void)
{
	begin();
	atomic_store(&hurries, true);
	end();
	CU_ASSERT_FALSE(atomic_load(&hurries));
	CU_ASSERT_TRUE(atomic_load(&destroyed_unanswered));
}

/* A peer that did not answer a write is not expected to answer the disconnect request either. */
static void test_broken(void)
{
	DAT_EVENT event;

	begin_connected();
	CU_ASSERT_EQUAL(try_write(&a, 1, 0xdead), DAT_SUCCESS);
	expect_dto(a.request, a.ep, 1, DAT_DTO_ERR_REMOTE_ACCESS);
	expect(a.conn, DAT_CONNECTION_EVENT_BROKEN, a.ep);
	event_next(b.conn, &event);
	atomic_store(&hurries, true);
	end();
	CU_ASSERT_TRUE(atomic_exchange(&hurries, false));
}

static void test_abrupt_close(void)
{
	uint64_t began;

	begin();
	end_free_ep(&a);
	began = clock_now();
	OK(dat_ia_close(env.ia, DAT_CLOSE_ABRUPT_FLAG));
	CU_ASSERT_TRUE(clock_now() - began < 5 * NSEC_PER_SEC);
	CU_ASSERT_TRUE(atomic_load(&destroyed_unanswered));
	atomic_store(&quiet, false);
	free(env.memory);
}

static const struct unit_test tests[] = {
	{ "an EP is freed before the peer has answered", test_freed },
	{ "an EP is reset and used again before the peer has answered", test_reset },
	{ "the answer comes before the EP is freed", test_answered },
	{ "a graceful close of the IA waits for the answer", test_graceful_close },
	{ "a graceful close waits for the answer only for a limited time", test_never_answered },
	{ "a graceful close does not wait for a peer that is out of reach", test_broken },
	{ "an abrupt close does not wait for the answer", test_abrupt_close },
};

UNIT_MAIN("conn_drain", tests)
