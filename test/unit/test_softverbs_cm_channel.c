/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * Event channels of the software device's connection manager: tokens, readers, and events of
 * destroyed identifiers.
 */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include "softverbs/cm/cm.h"
#include "test/unit/cm.h"

static void channel_is_an_eventfd(void)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct rdma_cm_event *event;
	struct rdma_cm_id *id;
	struct seen seen;

	CU_ASSERT_PTR_NOT_NULL_FATAL(channel);
	CU_ASSERT_FALSE(cm_ready(channel, 0));
	CU_ASSERT(fcntl(channel->fd, F_GETFD) & FD_CLOEXEC);
	CU_ASSERT_EQUAL(fcntl(channel->fd, F_SETFL, O_NONBLOCK), 0);
	CU_ASSERT_EQUAL(rdma_get_cm_event(channel, &event), -1);
	CU_ASSERT_EQUAL(errno, EAGAIN);
	CU_ASSERT_EQUAL(rdma_ack_cm_event(NULL), -1);
	CU_ASSERT_EQUAL(errno, EINVAL);
	id = cm_client(channel, 1);
	CU_ASSERT_PTR_NOT_NULL(id);
	CU_ASSERT_FALSE(cm_ready(channel, 0));
	CU_ASSERT_EQUAL(rdma_destroy_id(id), 0);
	id = cm_bound(channel, 0);
	CU_ASSERT_EQUAL(rdma_resolve_addr(id, NULL, rdma_get_local_addr(id), 1000), 0);
	CU_ASSERT(cm_ready(channel, UNIT_PATIENCE));
	CU_ASSERT_EQUAL(rdma_destroy_id(id), 0); /* also removes its queued events */
	CU_ASSERT_FALSE(cm_ready(channel, 0));
	CU_ASSERT_EQUAL(rdma_get_cm_event(channel, &event), -1);
	CU_ASSERT_EQUAL(errno, EAGAIN);
	id = cm_bound(channel, 0);
	CU_ASSERT_EQUAL(rdma_resolve_addr(id, NULL, rdma_get_local_addr(id), 1000), 0);
	CU_ASSERT(cm_expect(channel, RDMA_CM_EVENT_ADDR_RESOLVED, &seen));
	CU_ASSERT_EQUAL(rdma_destroy_id(id), 0);
	rdma_destroy_event_channel(channel);
}

/*
 * The descriptor is readable while an event is queued, however many are queued and removed at once.
 */
static void channel_is_ready_to_the_last(void)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct rdma_cm_event *event;
	struct rdma_cm_id *ids[8];
	unsigned i, taken;

	CU_ASSERT_PTR_NOT_NULL_FATAL(channel);
	CU_ASSERT_EQUAL(fcntl(channel->fd, F_SETFL, O_NONBLOCK), 0);
	for (i = 0; i < 8; i++) {
		ids[i] = cm_bound(channel, 0);
		CU_ASSERT_PTR_NOT_NULL_FATAL(ids[i]);
		CU_ASSERT_EQUAL(rdma_resolve_addr(ids[i], NULL, rdma_get_local_addr(ids[i]), 1000),
				0);
	}
	for (taken = 0; cm_ready(channel, 0) && taken < 100; taken++) {
		CU_ASSERT_EQUAL_FATAL(rdma_get_cm_event(channel, &event), 0);
		CU_ASSERT_EQUAL(rdma_ack_cm_event(event), 0);
		if (taken == 3)
			/* its event is removed with it */
			CU_ASSERT_EQUAL(rdma_destroy_id(ids[7]), 0);
	}
	CU_ASSERT_EQUAL(taken, 7);
	CU_ASSERT_EQUAL(rdma_get_cm_event(channel, &event), -1);
	CU_ASSERT_EQUAL(errno, EAGAIN);
	for (i = 0; i < 7; i++)
		CU_ASSERT_EQUAL(rdma_destroy_id(ids[i]), 0);
	rdma_destroy_event_channel(channel);
}

/* Fetches events up to that of the identifier whose context marks the last one. */
static void *fetch_to_the_last(void *arg)
{
	struct rdma_cm_event *event;
	bool last = false;

	while (!last) {
		if (rdma_get_cm_event(arg, &event))
			return arg;
		last = event->id->context;
		rdma_ack_cm_event(event);
	}
	return NULL;
}

#define READERS 3

static void many_readers_leave_no_token(void)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct rdma_cm_event *event;
	struct rdma_cm_id *last[READERS], *id;
	pthread_t threads[READERS];
	void *result;
	unsigned i;

	CU_ASSERT_PTR_NOT_NULL_FATAL(channel);
	for (i = 0; i < READERS; i++)
		CU_ASSERT_EQUAL_FATAL(pthread_create(&threads[i], NULL, fetch_to_the_last, channel),
				      0);
	for (i = 0; i < 300; i++) { /* either fetched by a reader, or removed before that */
		id = cm_bound(channel, 0);
		CU_ASSERT_PTR_NOT_NULL_FATAL(id);
		CU_ASSERT_EQUAL(rdma_resolve_addr(id, NULL, rdma_get_local_addr(id), 1000), 0);
		if (i % 3)
			sched_yield();
		CU_ASSERT_EQUAL(rdma_destroy_id(id), 0);
	}
	for (i = 0; i < READERS; i++) {
		last[i] = cm_bound(channel, 0);
		CU_ASSERT_PTR_NOT_NULL_FATAL(last[i]);
		last[i]->context = channel;
		CU_ASSERT_EQUAL(rdma_resolve_addr(last[i], NULL, rdma_get_local_addr(last[i]),
						  1000),
				0);
	}
	for (i = 0; i < READERS; i++) {
		pthread_join(threads[i], &result);
		CU_ASSERT_PTR_NULL(result);
	}
	CU_ASSERT_FALSE(cm_ready(channel, 0));
	CU_ASSERT_EQUAL(fcntl(channel->fd, F_SETFL, O_NONBLOCK), 0);
	CU_ASSERT_EQUAL(rdma_get_cm_event(channel, &event), -1);
	CU_ASSERT_EQUAL(errno, EAGAIN);
	for (i = 0; i < READERS; i++)
		CU_ASSERT_EQUAL(rdma_destroy_id(last[i]), 0);
	rdma_destroy_event_channel(channel);
}

static bool has_reader(void *arg)
{
	struct cm_channel *channel = arg;
	unsigned readers;

	sv_cm_lock();
	readers = channel->readers;
	sv_cm_unlock();
	return readers;
}

static bool is_not_ready(void *arg)
{
	return !cm_ready(arg, 0);
}

static void *fetch_one(void *arg)
{
	struct rdma_cm_event *event;

	return rdma_get_cm_event(arg, &event) || rdma_ack_cm_event(event) ? arg : NULL;
}

/* The reader consumed the token of an event that was removed, and finds another event. */
static void reader_leaves_no_token(void)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct rdma_cm_id *first = cm_bound(channel, 0), *second = cm_bound(channel, 0);
	pthread_t thread;
	void *result;

	CU_ASSERT_PTR_NOT_NULL_FATAL(first);
	CU_ASSERT_PTR_NOT_NULL_FATAL(second);
	CU_ASSERT_EQUAL_FATAL(pthread_create(&thread, NULL, fetch_one, channel), 0);
	CU_ASSERT(unit_wait_for(has_reader, channel, UNIT_PATIENCE));
	sv_cm_lock();
	sv_cm_event_post_new_locked(cm_id_of(first), RDMA_CM_EVENT_ADDR_ERROR, 0);
	CU_ASSERT(unit_wait_for(is_not_ready, channel, UNIT_PATIENCE));
	sv_cm_event_discard_locked(cm_id_of(first));
	sv_cm_event_post_new_locked(cm_id_of(second), RDMA_CM_EVENT_ADDR_ERROR, 0);
	sv_cm_unlock();
	pthread_join(thread, &result);
	CU_ASSERT_PTR_NULL(result);
	CU_ASSERT_FALSE(cm_ready(channel, 0));
	CU_ASSERT_EQUAL(rdma_destroy_id(first), 0);
	CU_ASSERT_EQUAL(rdma_destroy_id(second), 0);
	rdma_destroy_event_channel(channel);
}

static void *fetch_for_ever(void *arg)
{
	struct rdma_cm_event *event;

	pthread_cleanup_push(unit_forget_stack, NULL);
	rdma_get_cm_event(arg, &event);
	pthread_cleanup_pop(0);
	return NULL;
}

static void reader_may_be_cancelled(void)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct rdma_cm_id *id;
	pthread_t thread;
	unsigned round;
	void *result;

	for (round = 0; round < 20; round++) {
		CU_ASSERT_EQUAL_FATAL(pthread_create(&thread, NULL, fetch_for_ever, channel), 0);
		if (round % 2)
			sched_yield();
		CU_ASSERT_EQUAL(pthread_cancel(thread), 0);
		pthread_join(thread, &result);
		CU_ASSERT_PTR_EQUAL(result, PTHREAD_CANCELED);
	}
	id = cm_bound(channel, 0);
	CU_ASSERT_EQUAL(rdma_resolve_addr(id, NULL, rdma_get_local_addr(id), 1000), 0);
	CU_ASSERT_EQUAL(rdma_destroy_id(id), 0);
	CU_ASSERT_FALSE(cm_ready(channel, 0)); /* readers that have ended are not counted */
	id = cm_client(channel, 1);
	CU_ASSERT_PTR_NOT_NULL_FATAL(id);
	CU_ASSERT_EQUAL(rdma_destroy_id(id), 0);
	rdma_destroy_event_channel(channel);
}

struct latecomer {
	struct rdma_event_channel *channel;
	_Atomic(pid_t) thread;
	atomic_bool returned;
};

static void *come_late(void *arg)
{
	struct latecomer *late = arg;
	struct rdma_cm_event *event;

	pthread_cleanup_push(unit_forget_stack, NULL);
	late->thread = gettid();
	rdma_get_cm_event(late->channel, &event);
	late->returned = true;
	pthread_cleanup_pop(0);
	return NULL;
}

static bool waits_or_returned(void *arg)
{
	struct latecomer *late = arg;

	return late->thread && (late->returned || unit_is_asleep(late->thread));
}

/* As a reader that was in read() when the descriptor was closed. */
static void reader_of_a_destroyed_channel_waits(void)
{
	struct latecomer late = { .channel = rdma_create_event_channel() };
	pthread_t thread;
	void *result;

	CU_ASSERT_PTR_NOT_NULL_FATAL(late.channel);
	rdma_destroy_event_channel(late.channel);
	CU_ASSERT_EQUAL_FATAL(pthread_create(&thread, NULL, come_late, &late), 0);
	CU_ASSERT_TRUE(unit_wait_for(waits_or_returned, &late, UNIT_PATIENCE));
	CU_ASSERT_FALSE(late.returned);
	pthread_cancel(thread);
	pthread_join(thread, &result);
	CU_ASSERT_PTR_EQUAL(result, PTHREAD_CANCELED);
}

struct destroyer {
	struct rdma_cm_id *id;
	atomic_bool done;
};

static void *destroy(void *arg)
{
	struct destroyer *destroyer = arg;

	rdma_destroy_id(destroyer->id);
	atomic_store(&destroyer->done, true);
	return NULL;
}

static void destruction_waits_for_the_acknowledgement(void)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct destroyer destroyer = { .id = cm_bound(channel, 0) };
	struct rdma_cm_event *event;
	pthread_t thread;
	unsigned i;

	CU_ASSERT_EQUAL_FATAL(rdma_resolve_addr(destroyer.id, NULL,
						rdma_get_local_addr(destroyer.id), 1000),
			      0);
	CU_ASSERT_EQUAL_FATAL(rdma_get_cm_event(channel, &event), 0);
	CU_ASSERT_EQUAL_FATAL(pthread_create(&thread, NULL, destroy, &destroyer), 0);
	for (i = 0; i < 2000; i++)
		sched_yield();
	CU_ASSERT_FALSE(atomic_load(&destroyer.done));
	CU_ASSERT_EQUAL(rdma_ack_cm_event(event), 0);
	pthread_join(thread, NULL);
	CU_ASSERT(atomic_load(&destroyer.done));
	rdma_destroy_event_channel(channel);
}

static void request_may_be_destroyed_before_the_acknowledgement(void)
{
	struct rdma_conn_param param = cm_param(1);
	struct rdma_cm_event *event;
	struct pair pair;

	CU_ASSERT_FATAL(pair_listen(&pair));
	CU_ASSERT_EQUAL(rdma_connect(pair.active, &param), 0);
	CU_ASSERT_FATAL(cm_ready(pair.far, UNIT_PATIENCE));
	CU_ASSERT_EQUAL_FATAL(rdma_get_cm_event(pair.far, &event), 0);
	CU_ASSERT_EQUAL(rdma_destroy_id(event->id), 0);
	CU_ASSERT_EQUAL(rdma_ack_cm_event(event), 0);
	CU_ASSERT(cm_expect(pair.near, RDMA_CM_EVENT_REJECTED, NULL));
	pair_free(&pair);
}

static void migration_takes_events_along(void)
{
	struct rdma_event_channel *other = rdma_create_event_channel();
	struct rdma_conn_param param = cm_param(1);
	struct pair pair;
	struct seen seen;

	CU_ASSERT_FATAL(pair_connect(&pair));
	CU_ASSERT_EQUAL(rdma_disconnect(pair.active), 0);
	CU_ASSERT_FATAL(cm_ready(pair.far, UNIT_PATIENCE));
	CU_ASSERT_EQUAL(rdma_migrate_id(pair.passive, other), 0);
	CU_ASSERT_PTR_EQUAL(pair.passive->channel, other);
	CU_ASSERT_FALSE(cm_ready(pair.far, 0));
	CU_ASSERT(cm_expect(other, RDMA_CM_EVENT_DISCONNECTED, &seen));
	CU_ASSERT_PTR_EQUAL(seen.event.id, pair.passive);
	CU_ASSERT_EQUAL(rdma_destroy_id(pair.passive), 0);
	CU_ASSERT_EQUAL(rdma_destroy_id(pair.active), 0);
	pair.passive = NULL;
	/* a listener migrates with its requests */
	pair.active = cm_client(pair.near, ntohs(rdma_get_src_port(pair.listener)));
	CU_ASSERT_PTR_NOT_NULL_FATAL(pair.active);
	CU_ASSERT_EQUAL(rdma_migrate_id(pair.listener, other), 0);
	CU_ASSERT_EQUAL(rdma_connect(pair.active, &param), 0);
	CU_ASSERT_FATAL(cm_expect(other, RDMA_CM_EVENT_CONNECT_REQUEST, &seen));
	CU_ASSERT_PTR_EQUAL(seen.event.id->channel, other);
	CU_ASSERT_EQUAL(rdma_destroy_id(seen.event.id), 0);
	pair_free(&pair);
	rdma_destroy_event_channel(other);
}

static void event_names(void)
{
	int i;

	CU_ASSERT_STRING_EQUAL(rdma_event_str(RDMA_CM_EVENT_ADDR_RESOLVED),
			       "RDMA_CM_EVENT_ADDR_RESOLVED");
	CU_ASSERT_STRING_EQUAL(rdma_event_str(RDMA_CM_EVENT_TIMEWAIT_EXIT),
			       "RDMA_CM_EVENT_TIMEWAIT_EXIT");
	for (i = -2; i < 40; i++)
		CU_ASSERT_PTR_NOT_NULL(rdma_event_str((enum rdma_cm_event_type)i));
}

static const struct unit_test tests[] = {
	{ "the channel's descriptor has one token for each event", channel_is_an_eventfd },
	{ "the channel is readable until the last event is taken", channel_is_ready_to_the_last },
	{ "many readers leave no token behind", many_readers_leave_no_token },
	{ "a reader leaves no token of a removed event", reader_leaves_no_token },
	{ "a reader may be cancelled", reader_may_be_cancelled },
	{ "a reader of a destroyed channel keeps waiting", reader_of_a_destroyed_channel_waits },
	{ "destruction waits for the acknowledgement", destruction_waits_for_the_acknowledgement },
	{ "a request may be destroyed before its event is taken",
	  request_may_be_destroyed_before_the_acknowledgement },
	{ "migration moves the queued events", migration_takes_events_along },
	{ "every event has a name", event_names },
};

UNIT_MAIN("softverbs_cm_channel", tests)
