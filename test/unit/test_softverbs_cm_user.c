/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Calls of the connection manager that newer releases of rdma-core have: events of the program, asynchronous names. */
#include "softverbs/cm/cm.h"
#include "test/unit/cm.h"

static void an_event_of_the_program_wakes(void)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	const enum rdma_cm_event_type user = RDMA_CM_EVENT_TIMEWAIT_EXIT + 3;
	uint64_t arg = 0x123456789abcdef0;
	struct rdma_cm_event *event;
	struct rdma_cm_id *id;

	CU_ASSERT_EQUAL_FATAL(rdma_create_id(channel, &id, NULL, RDMA_PS_TCP), 0);
	CU_ASSERT_EQUAL(rdma_write_cm_event(id, RDMA_CM_EVENT_ESTABLISHED, 0, arg), -1);
	CU_ASSERT_EQUAL(errno, EINVAL);
	CU_ASSERT_FALSE(cm_ready(channel, 0));
	CU_ASSERT_EQUAL(rdma_write_cm_event(id, user, -5, arg), 0);
	CU_ASSERT_TRUE_FATAL(cm_ready(channel, 0));
	CU_ASSERT_EQUAL_FATAL(rdma_get_cm_event(channel, &event), 0);
	CU_ASSERT_EQUAL(event->event, user);
	CU_ASSERT_EQUAL(event->status, -5);
	CU_ASSERT_PTR_EQUAL(event->id, id);
	CU_ASSERT_EQUAL(memcmp(&event->param, &arg, sizeof(arg)), 0);
	CU_ASSERT_EQUAL(rdma_ack_cm_event(event), 0);
	CU_ASSERT_STRING_EQUAL(rdma_event_str(user), "RDMA_CM_EVENT_USER");
	CU_ASSERT_EQUAL(rdma_write_cm_event(id, user, 0, arg), 0); /* never fetched */
	CU_ASSERT_EQUAL(rdma_destroy_id(id), 0);
	CU_ASSERT_FALSE(cm_ready(channel, 0));
	rdma_destroy_event_channel(channel);
}

static void names_are_not_resolved(void)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct rdma_addrinfo *info = NULL;
	struct rdma_cm_id *id;

	CU_ASSERT_EQUAL_FATAL(rdma_create_id(channel, &id, NULL, RDMA_PS_TCP), 0);
	CU_ASSERT_EQUAL(rdma_resolve_addrinfo(id, "127.0.0.1", "1", NULL), -1);
	CU_ASSERT_EQUAL(errno, ENOTSUP);
	CU_ASSERT_EQUAL(rdma_query_addrinfo(id, &info), -1);
	CU_ASSERT_EQUAL(errno, ENOENT);
	CU_ASSERT_PTR_NULL(info);
	CU_ASSERT_FALSE(cm_ready(channel, 0));
	CU_ASSERT_EQUAL(rdma_destroy_id(id), 0);
	rdma_destroy_event_channel(channel);
}

static const struct unit_test tests[] = {
	{ "an event of the program wakes it", an_event_of_the_program_wakes },
	{ "rdma_resolve_addrinfo is refused", names_are_not_resolved },
};

UNIT_MAIN("softverbs_cm_user", tests)
