/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * A device that is removed while an IA has it open. The CM reports that for each of its ids; the
 * software device never does, so the test makes the events.
 */
#include <stdatomic.h>
#include <rdma/rdma_cma.h>
#include "test/unit/announce.h"
#include "test/unit/ep_util.h"

static struct env env;
static struct rdma_cm_id *ids[8];
static atomic_uint known, removed; /* identifiers in the order of their creation */

int __real_rdma_create_id(struct rdma_event_channel *channel, struct rdma_cm_id **id, void *context,
			  enum rdma_port_space space);
int __wrap_rdma_create_id(struct rdma_event_channel *channel, struct rdma_cm_id **id, void *context,
			  enum rdma_port_space space);
int __real_rdma_get_cm_event(struct rdma_event_channel *channel, struct rdma_cm_event **event);
int __wrap_rdma_get_cm_event(struct rdma_event_channel *channel, struct rdma_cm_event **event);
int __real_rdma_ack_cm_event(struct rdma_cm_event *event);
int __wrap_rdma_ack_cm_event(struct rdma_cm_event *event);

int __wrap_rdma_create_id(struct rdma_event_channel *channel, struct rdma_cm_id **id, void *context,
			  enum rdma_port_space space)
{
	int status = __real_rdma_create_id(channel, id, context, space);

	if (!status && atomic_load(&known) < COUNT(ids))
		ids[atomic_fetch_add(&known, 1)] = *id;
	return status;
}

static struct rdma_cm_event removal = { .event = RDMA_CM_EVENT_DEVICE_REMOVAL };

/* Returns the test's events before the CM's own. */
int __wrap_rdma_get_cm_event(struct rdma_event_channel *channel, struct rdma_cm_event **event)
{
	if (!atomic_load(&removed))
		return __real_rdma_get_cm_event(channel, event);
	removal.id = ids[atomic_fetch_sub(&removed, 1) - 1];
	*event = &removal;
	return 0;
}

int __wrap_rdma_ack_cm_event(struct rdma_cm_event *event)
{
	return event == &removal ? 0 : __real_rdma_ack_cm_event(event);
}

static void expect_catastrophe(void)
{
	DAT_EVENT event;

	if (!event_next(env.async, &event))
		return;
	CU_ASSERT_EQUAL(event.event_number, DAT_ASYNC_ERROR_IA_CATASTROPHIC);
	CU_ASSERT_EQUAL(event.event_data.asynch_error_event_data.dat_handle, env.ia);
	CU_ASSERT_EQUAL(event.event_data.asynch_error_event_data.reason, DAT_IA_CATASTROPHIC_ERROR);
}

static void setup(struct end *a, struct end *b)
{
	announce();
	atomic_store(&known, 0);
	env_open(&env);
	env_listen(&env);
	end_open(&env, a, NULL);
	end_open(&env, b, NULL);
}

static void teardown(struct end *a, struct end *b)
{
	expect_quiet(env.async);
	end_close(a);
	end_close(b);
	env_close(&env);
}

/* The IA's own id makes an event; events of the listener's ids have no effect. */
static void test_idle(void)
{
	struct end a, b;

	setup(&a, &b);
	CU_ASSERT_EQUAL(atomic_load(&known), 3);
	atomic_store(&removed, 3);
	/* makes the CM's channel readable; dispatched after the removal */
	connect_pair(&a, &b);
	expect_catastrophe();
	disconnect_pair(&a, &b);
	teardown(&a, &b);
}

static void test_connected(void)
{
	struct end a, b, c, d;

	setup(&a, &b);
	end_open(&env, &c, NULL);
	end_open(&env, &d, NULL);
	connect_pair(&a, &b);
	CU_ASSERT_EQUAL(atomic_load(&known), 4);
	atomic_store(&removed, 4);
	connect_pair(&c, &d);
	expect(a.conn, DAT_CONNECTION_EVENT_BROKEN, a.ep);
	CU_ASSERT_EQUAL(state_of(a.ep), DAT_EP_STATE_DISCONNECTED);
	expect(b.conn, DAT_CONNECTION_EVENT_DISCONNECTED, b.ep); /* the peer's DREQ */
	expect_catastrophe();
	end_close(&c);
	end_close(&d);
	teardown(&a, &b);
}

/* A removal that is reported in both ways makes one event; IAs opened later make none. */
static void test_once(void)
{
	struct end a, b;

	setup(&a, &b);
	ids[1] = ids[2] = ids[0];
	atomic_store(&removed, 3);
	connect_pair(&a, &b);
	expect_catastrophe();
	disconnect_pair(&a, &b);
	teardown(&a, &b);
	setup(&a, &b);
	teardown(&a, &b);
}

static const struct unit_test tests[] = {
	{ "the removal of a listening IA's device is reported", test_idle },
	{ "the removal of a connection's device is reported", test_connected },
	{ "a removal is reported once for each IA", test_once },
};

UNIT_MAIN("removal", tests)
