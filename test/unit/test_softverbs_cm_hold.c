/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* A thread that holds an event channel: the events of its own calls have no token until it unholds the channel. */
#include "softverbs/cm/cm.h"
#include "test/unit/cm.h"

static bool resolves(struct rdma_cm_id *id, uint16_t port)
{
	struct sockaddr_in addr = cm_loopback(port);

	return !rdma_resolve_addr(id, NULL, (struct sockaddr *)&addr, 1000);
}

static bool gets(struct rdma_event_channel *channel, enum rdma_cm_event_type type)
{
	struct rdma_cm_event *event;

	if (rdma_get_cm_event(channel, &event))
		return false;
	CU_ASSERT_EQUAL(event->event, type);
	return !rdma_ack_cm_event(event);
}

static bool is_empty(struct rdma_event_channel *channel)
{
	struct rdma_cm_event *event;

	return rdma_get_cm_event(channel, &event) && errno == EAGAIN;
}

/* A channel that this thread holds, and an identifier on it. */
static struct rdma_cm_id *held_id(void)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct rdma_cm_id *id;

	CU_ASSERT_FATAL(channel != NULL);
	id = cm_new(channel);
	CU_ASSERT_FATAL(id != NULL);
	rdma_hold_events(channel);
	return id;
}

static void id_free(struct rdma_cm_id *id)
{
	struct rdma_event_channel *channel = id->channel;

	CU_ASSERT(!cm_ready(channel, 0));
	CU_ASSERT(!rdma_destroy_id(id));
	rdma_destroy_event_channel(channel);
}

static void test_own(void)
{
	struct rdma_cm_id *id = held_id();

	CU_ASSERT(is_empty(id->channel));
	CU_ASSERT(resolves(id, 7));
	CU_ASSERT(!cm_ready(id->channel, 0));
	CU_ASSERT(gets(id->channel, RDMA_CM_EVENT_ADDR_RESOLVED));
	CU_ASSERT(!rdma_resolve_route(id, 1000));
	CU_ASSERT(!cm_ready(id->channel, 0));
	CU_ASSERT(gets(id->channel, RDMA_CM_EVENT_ROUTE_RESOLVED));
	CU_ASSERT(is_empty(id->channel));
	rdma_unhold_events();
	id_free(id);
}

static void test_left(void)
{
	struct rdma_cm_id *id = held_id();

	CU_ASSERT(resolves(id, 7));
	rdma_unhold_events();
	CU_ASSERT(cm_ready(id->channel, 0));
	CU_ASSERT(gets(id->channel, RDMA_CM_EVENT_ADDR_RESOLVED));
	id_free(id);
}

/* The event is gone with its identifier: there is nothing to read after the unhold. */
static void test_discarded(void)
{
	struct rdma_cm_id *id = held_id(), *other = cm_new(id->channel);

	CU_ASSERT(resolves(other, 7));
	CU_ASSERT(!rdma_destroy_id(other));
	rdma_unhold_events();
	id_free(id);
}

static void *resolve_too(void *id)
{
	return resolves(id, 7) ? NULL : id;
}

/* Another thread's event has a token, also behind one that has none; its reader finds both. */
static void test_other(void)
{
	struct rdma_cm_id *id = held_id(), *other = cm_new(id->channel);
	pthread_t thread;
	void *failed;

	CU_ASSERT(resolves(id, 7));
	CU_ASSERT_FATAL(!pthread_create(&thread, NULL, resolve_too, other));
	CU_ASSERT_FATAL(!pthread_join(thread, &failed));
	CU_ASSERT(!failed);
	CU_ASSERT(cm_ready(id->channel, 0));
	CU_ASSERT(gets(id->channel, RDMA_CM_EVENT_ADDR_RESOLVED));
	CU_ASSERT(cm_ready(id->channel, 0));
	CU_ASSERT(gets(id->channel, RDMA_CM_EVENT_ADDR_RESOLVED));
	CU_ASSERT(!cm_ready(id->channel, 0));
	CU_ASSERT(is_empty(id->channel));
	rdma_unhold_events();
	CU_ASSERT(!rdma_destroy_id(other));
	id_free(id);
}

static const struct unit_test tests[] = {
	{ "the holder gets the events of its own calls, which have no token", test_own },
	{ "an event that the holder leaves unread has a token afterwards", test_left },
	{ "an event that is discarded has none", test_discarded },
	{ "another thread's event has a token at once", test_other },
};

UNIT_MAIN("softverbs_cm_hold", tests)
