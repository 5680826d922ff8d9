/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* An SRQ under traffic: watermark events, resizing, and an EP that never receives. */
#include "test/unit/ep_util.h"

static struct env env;
static struct end a, b; /* b receives from the SRQ */
static DAT_SRQ_HANDLE srq;

static void srq_post(unsigned count)
{
	unsigned i;

	for (i = 0; i < count; i++) {
		DAT_LMR_TRIPLET where = segment(&env, BUFFER / 2 + 64 * i, 64);

		OK(dat_srq_post_recv(srq, 1, &where, (DAT_DTO_COOKIE){ .as_64 = i }));
	}
}

static void setup(bool receives)
{
	DAT_SRQ_ATTR srq_attr = { .max_recv_dtos = 16, .max_recv_iov = 1 };
	DAT_EP_ATTR attr = { .max_request_dtos = 4, .max_request_iov = 1 };

	env_open(&env);
	env_listen(&env);
	MUST(dat_srq_create(env.ia, env.pz, &srq_attr, &srq));
	end_open(&env, &a, NULL);
	end_open(&env, &b, NULL);
	MUST(dat_ep_free(b.ep));
	MUST(dat_ep_create_with_srq(env.ia, env.pz, receives ? b.recv : DAT_HANDLE_NULL, b.request,
				    b.conn, srq, &attr, &b.ep));
}

static void teardown(void)
{
	end_close(&a);
	end_close(&b);
	OK(dat_srq_free(srq));
	env_close(&env);
}

static void expect_async(DAT_EVENT_NUMBER number, DAT_HANDLE handle, DAT_COUNT reason)
{
	DAT_EVENT event;

	if (!event_next(env.async, &event))
		return;
	CU_ASSERT_EQUAL(event.event_number, number);
	CU_ASSERT_PTR_EQUAL(event.event_data.asynch_error_event_data.dat_handle, handle);
	CU_ASSERT_EQUAL(event.event_data.asynch_error_event_data.reason, reason);
}

static void expect_low(void)
{
	expect_async(DAT_ASYNC_ERROR_PROVIDER_INTERNAL_ERROR, srq, DAT_SRQ_LOW_WATERMARK_EVENT);
}

static void message(uint64_t cookie)
{
	OK(try_send(&a, cookie, 0));
	expect_dto(a.request, a.ep, cookie, DAT_DTO_SUCCESS);
}

static void expect_received(void)
{
	DAT_EVENT event;

	if (event_next(b.recv, &event))
		CU_ASSERT_EQUAL(event.event_data.dto_completion_event_data.status, DAT_DTO_SUCCESS);
}

static void test_watermark(void)
{
	unsigned i;

	setup(true);
	connect_pair(&a, &b);
	srq_post(5);
	OK(dat_srq_set_lw(srq, 4));
	message(1);
	expect_quiet(env.async); /* four are left */
	message(2);
	expect_low();
	message(3);
	srq_post(3);
	message(4);
	expect_quiet(env.async); /* each watermark makes one event */
	for (i = 0; i < 4; i++)
		expect_received();
	/* again four receives are left, below the new mark of five */
	OK(dat_srq_set_lw(srq, 5));
	expect_low();
	message(5);
	expect_received();
	expect_quiet(env.async);
	disconnect_pair(&a, &b);
	expect_async(DAT_ASYNC_ERROR_EP_BROKEN, b.ep, DAT_EP_TRANSFER_TO_ERROR);
	teardown();
}

/* Whether the device resizes or refuses, no posted receive is lost. */
static void test_resize(void)
{
	DAT_SRQ_PARAM before, after;
	DAT_RETURN status;
	unsigned i;

	setup(true);
	connect_pair(&a, &b);
	srq_post(6);
	message(1);
	OK(dat_srq_query(srq, DAT_SRQ_FIELD_ALL, &before));
	IS(dat_srq_resize(srq, 5), E0(INVALID_STATE));
	OK(dat_srq_resize(srq, 6));
	OK(dat_srq_query(srq, DAT_SRQ_FIELD_ALL, &after));
	CU_ASSERT_TRUE(after.max_recv_dtos >= 6 && after.max_recv_dtos <= before.max_recv_dtos);
	status = dat_srq_resize(srq, before.max_recv_dtos * 2);
	CU_ASSERT_TRUE(status == DAT_SUCCESS || status == E(INSUFFICIENT_RESOURCES, RESOURCE_SRQ));
	if (status == DAT_SUCCESS) {
		OK(dat_srq_query(srq, DAT_SRQ_FIELD_ALL, &after));
		CU_ASSERT_TRUE(after.max_recv_dtos >= before.max_recv_dtos * 2);
	}
	for (i = 0; i < 5; i++)
		message(2 + i);
	for (i = 0; i < 6; i++)
		expect_received();
	disconnect_pair(&a, &b);
	expect_async(DAT_ASYNC_ERROR_EP_BROKEN, b.ep, DAT_EP_TRANSFER_TO_ERROR);
	teardown();
}

/* The EP may write and be written to; any message, even an empty one, breaks the connection. */
static void test_never_receives(DAT_COUNT segments)
{
	DAT_LMR_TRIPLET what;

	setup(false);
	srq_post(4);
	connect_pair(&a, &b);
	OK(try_write(&b, 1, env.rkey));
	expect_dto(b.request, b.ep, 1, DAT_DTO_SUCCESS);
	OK(try_write(&a, 2, env.rkey));
	expect_dto(a.request, a.ep, 2, DAT_DTO_SUCCESS);
	what = segment(&env, 0, 64);
	OK(dat_ep_post_send(a.ep, segments, &what, (DAT_DTO_COOKIE){ .as_64 = 3 }, 0));
	expect_dto(a.request, a.ep, 3, DAT_DTO_ERR_RECEIVER_NOT_READY);
	expect(a.conn, DAT_CONNECTION_EVENT_BROKEN, a.ep);
	expect(b.conn, DAT_CONNECTION_EVENT_DISCONNECTED, b.ep);
	teardown();
}

static void test_passive_never_receives(void)
{
	test_never_receives(1);
	test_never_receives(0);
}

static void test_active_never_receives(void)
{
	struct end passive;

	setup(false);
	passive = a;
	a = b;
	b = passive;
	connect_pair(&a, &b);
	OK(try_send(&b, 3, 0));
	expect_dto(b.request, b.ep, 3, DAT_DTO_ERR_RECEIVER_NOT_READY);
	expect(b.conn, DAT_CONNECTION_EVENT_BROKEN, b.ep);
	expect(a.conn, DAT_CONNECTION_EVENT_DISCONNECTED, a.ep);
	teardown();
}

static const struct unit_test tests[] = {
	{ "the watermark makes one event under traffic", test_watermark },
	{ "a resize under traffic loses no receive", test_resize },
	{ "R16: a message breaks the connection of a passive EP without recv EVD",
	  test_passive_never_receives },
	{ "R16: a message breaks the connection of an active EP without recv EVD",
	  test_active_never_receives },
};

UNIT_MAIN("srq_traffic", tests)
