/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* The size and the low watermark of an SRQ over the fake device. */
#include "test/unit/rig.h"

struct shared {
	struct rig rig;
	DAT_SRQ_HANDLE srq;
	DAT_EP_HANDLE ep;
};

static struct ib_srq *device_srq(const struct shared *s)
{
	return ((struct dapl_srq *)s->srq)->srq;
}

static void open_shared(struct shared *s)
{
	DAT_SRQ_ATTR attr = { .max_recv_dtos = 8, .max_recv_iov = 1 };
	DAT_EP_ATTR ep = { .max_request_dtos = 4, .max_request_iov = 1 };

	rig_open(&s->rig, NULL);
	MUST(dat_srq_create(s->rig.ia, s->rig.pz, &attr, &s->srq));
	MUST(dat_ep_create_with_srq(s->rig.ia, s->rig.pz, s->rig.recv, s->rig.request, s->rig.conn,
				    s->srq, &ep, &s->ep));
}

static void close_shared(struct shared *s)
{
	DAT_EVENT event;

	IS(dat_evd_dequeue(s->rig.async, &event), DAT_QUEUE_EMPTY);
	MUST(dat_ep_free(s->ep));
	MUST(dat_srq_free(s->srq));
	rig_close(&s->rig);
}

static DAT_RETURN try_post(struct shared *s, uint64_t cookie)
{
	return dat_srq_post_recv(s->srq, 0, NULL, (DAT_DTO_COOKIE){ .as_64 = cookie });
}

/* Posts `count` receives; returns the wr_id of the last. */
static uint64_t post(struct shared *s, unsigned count)
{
	while (count--)
		MUST(try_post(s, count));
	return fake.last.wr_id;
}

static void limit_event(struct shared *s)
{
	fake.upcalls.async(&fake.devices[0], IB_ASYNC_SRQ_LIMIT, s->srq);
}

static void expect_low(struct shared *s)
{
	DAT_EVENT event = rig_take(s->rig.async);

	CU_ASSERT_EQUAL(event.event_number, DAT_ASYNC_ERROR_PROVIDER_INTERNAL_ERROR);
	CU_ASSERT_PTR_EQUAL(event.event_data.asynch_error_event_data.dat_handle, s->srq);
	CU_ASSERT_EQUAL(event.event_data.asynch_error_event_data.reason,
			DAT_SRQ_LOW_WATERMARK_EVENT);
}

static void expect_none(struct shared *s)
{
	DAT_EVENT event;

	IS(dat_evd_dequeue(s->rig.async, &event), DAT_QUEUE_EMPTY);
}

static DAT_SRQ_PARAM query(struct shared *s)
{
	DAT_SRQ_PARAM param;

	MUST(dat_srq_query(s->srq, DAT_SRQ_FIELD_ALL, &param));
	return param;
}

static void test_resize_checks(void)
{
	struct shared s;

	open_shared(&s);
	IS(dat_srq_resize(s.ep, 8), E(INVALID_HANDLE, INVALID_HANDLE_SRQ));
	IS(dat_srq_resize(s.srq, 0), E(INVALID_PARAMETER, INVALID_ARG2));
	IS(dat_srq_resize(s.srq, -1), E(INVALID_PARAMETER, INVALID_ARG2));
	IS(dat_srq_resize(s.srq, 33), E(INVALID_PARAMETER, INVALID_ARG2));
	post(&s, 5);
	IS(dat_srq_resize(s.srq, 4), E0(INVALID_STATE));
	MUST(dat_srq_set_lw(s.srq, 6));
	expect_low(&s);
	IS(dat_srq_resize(s.srq, 5), E0(INVALID_STATE));
	CU_ASSERT_EQUAL(query(&s).max_recv_dtos, 8);
	/* a mark equal to either bound is allowed */
	MUST(dat_srq_set_lw(s.srq, 5));
	MUST(dat_srq_resize(s.srq, 5));
	close_shared(&s);
}

static void test_resize_grows(void)
{
	uint64_t id;
	unsigned i;
	struct shared s;

	open_shared(&s);
	id = post(&s, 8);
	IS(try_post(&s, 9), E(INSUFFICIENT_RESOURCES, RESOURCE_MEMORY));
	fake.refuse = E(INSUFFICIENT_RESOURCES, RESOURCE_SRQ);
	IS(dat_srq_resize(s.srq, 9), E(INSUFFICIENT_RESOURCES, RESOURCE_SRQ));
	CU_ASSERT_EQUAL(query(&s).max_recv_dtos, 8);
	fake.devices[0].attr.srq_resize = false;
	IS(dat_srq_resize(s.srq, 9), E(INSUFFICIENT_RESOURCES, RESOURCE_SRQ));
	fake.devices[0].attr.srq_resize = true;
	MUST(dat_srq_resize(s.srq, 30));
	CU_ASSERT_EQUAL(query(&s).max_recv_dtos, 32); /* rounded by the device */
	CU_ASSERT_EQUAL(query(&s).outstanding_dto_count, 8);
	/* receives posted before the resize keep their cookies */
	rig_complete(s.rig.recv, id, DAT_DTO_SUCCESS, 10);
	CU_ASSERT_EQUAL(rig_take(s.rig.recv).event_data.dto_completion_event_data.user_cookie.as_64,
			0);
	for (i = 0; i < 25; i++)
		MUST(try_post(&s, 100 + i));
	IS(try_post(&s, 200), E(INSUFFICIENT_RESOURCES, RESOURCE_MEMORY));
	rig_complete(s.rig.recv, fake.last.wr_id, DAT_DTO_SUCCESS, 10);
	CU_ASSERT_EQUAL(rig_take(s.rig.recv).event_data.dto_completion_event_data.user_cookie.as_64,
			124);
	MUST(dat_srq_resize(s.srq, 32)); /* the size is the same: no effect */
	close_shared(&s);
}

static void test_resize_shrinks(void)
{
	struct shared s;

	open_shared(&s);
	post(&s, 3);
	fake.refuse = E(INSUFFICIENT_RESOURCES, RESOURCE_SRQ);
	MUST(dat_srq_resize(s.srq, 4)); /* the device refuses, so the queue stays large */
	CU_ASSERT_EQUAL(query(&s).max_recv_dtos, 8);
	MUST(dat_srq_resize(s.srq, 4));
	CU_ASSERT_EQUAL(query(&s).max_recv_dtos, 4);
	CU_ASSERT_EQUAL(device_srq(&s)->max_wr, 4);
	MUST(try_post(&s, 1));
	IS(try_post(&s, 2), E(INSUFFICIENT_RESOURCES, RESOURCE_MEMORY));
	close_shared(&s);
}

static void test_watermark_checks(void)
{
	struct shared s;

	open_shared(&s);
	IS(dat_srq_set_lw(s.ep, 1), E(INVALID_HANDLE, INVALID_HANDLE_SRQ));
	IS(dat_srq_set_lw(s.srq, -1), E(INVALID_PARAMETER, INVALID_ARG2));
	IS(dat_srq_set_lw(s.srq, 9), E(INVALID_PARAMETER, INVALID_ARG2));
	fake.refuse = E0(MODEL_NOT_SUPPORTED);
	IS(dat_srq_set_lw(s.srq, 3), E0(MODEL_NOT_SUPPORTED));
	CU_ASSERT_EQUAL(query(&s).low_watermark, 0);
	limit_event(&s);
	expect_none(&s);
	close_shared(&s);
}

static void test_watermark_once(void)
{
	struct shared s;

	open_shared(&s);
	post(&s, 8);
	MUST(dat_srq_set_lw(s.srq, 3));
	CU_ASSERT_EQUAL(query(&s).low_watermark, 3);
	CU_ASSERT_EQUAL(device_srq(&s)->limit, 3);
	expect_none(&s);
	limit_event(&s);
	expect_low(&s);
	limit_event(&s);
	expect_none(&s);
	/* setting the same value again arms it again */
	MUST(dat_srq_set_lw(s.srq, 3));
	limit_event(&s);
	expect_low(&s);
	close_shared(&s);
}

static void test_watermark_at_once(void)
{
	uint64_t id;
	struct shared s;

	open_shared(&s);
	id = post(&s, 3);
	MUST(dat_srq_set_lw(s.srq, 3)); /* not below the mark */
	expect_none(&s);
	MUST(dat_srq_set_lw(s.srq, 0));
	/* one was consumed, as a poll of the CQ finds */
	rig_complete(s.rig.recv, id, DAT_DTO_SUCCESS, 10);
	MUST(dat_srq_set_lw(s.srq, 3));
	expect_low(&s);
	limit_event(&s); /* the device reports it, too */
	expect_none(&s);
	rig_take(s.rig.recv);
	close_shared(&s);
}

static void test_watermark_replaced(void)
{
	unsigned arms;
	struct shared s;

	open_shared(&s);
	post(&s, 8);
	MUST(dat_srq_set_lw(s.srq, 7));
	MUST(dat_srq_set_lw(s.srq, 2));
	/* a late event for mark 7: eight receives are posted, so the device is armed again */
	arms = device_srq(&s)->arms;
	limit_event(&s);
	expect_none(&s);
	CU_ASSERT_EQUAL(device_srq(&s)->arms, arms + 1);
	CU_ASSERT_EQUAL(device_srq(&s)->limit, 2);
	limit_event(&s);
	expect_low(&s);
	/* a mark that was withdrawn makes no event */
	MUST(dat_srq_set_lw(s.srq, 7));
	MUST(dat_srq_set_lw(s.srq, 0));
	CU_ASSERT_EQUAL(device_srq(&s)->limit, 0);
	limit_event(&s);
	expect_none(&s);
	close_shared(&s);
}

static const struct unit_test tests[] = {
	{ "resize: every check", test_resize_checks },
	{ "a larger queue keeps all receives", test_resize_grows },
	{ "the queue shrinks as far as the device's", test_resize_shrinks },
	{ "set_lw: every check", test_watermark_checks },
	{ "each setting of the mark makes exactly one event", test_watermark_once },
	{ "a mark above the number of receives makes its event at once, and once",
	  test_watermark_at_once },
	{ "replaced, disarmed", test_watermark_replaced },
};

UNIT_MAIN("srq_limit", tests)
