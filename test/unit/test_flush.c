/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * Work requests that an iWARP device does not return: after the error of a QP it refuses what is posted, or loses it. The
 * software device returns all, so the test stands between.
 */
#include <errno.h>
#include <infiniband/verbs.h>
#include "test/unit/announce.h"
#include "test/unit/two_ends.h"

static enum { RETURNS, LOSES, REFUSES } way; /* of posts */
static struct ibv_context_ops real;

struct ibv_context *__real_ibv_open_device(struct ibv_device *device);
struct ibv_context *__wrap_ibv_open_device(struct ibv_device *device);

static int post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	if (way == RETURNS)
		return real.post_send(qp, wr, bad);
	*bad = wr;
	return way == LOSES ? 0 : -EINVAL;
}

static int post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	if (way == RETURNS)
		return real.post_recv(qp, wr, bad);
	*bad = wr;
	return way == LOSES ? 0 : -EINVAL;
}

struct ibv_context *__wrap_ibv_open_device(struct ibv_device *device)
{
	struct ibv_context *verbs;

	device->transport_type = IBV_TRANSPORT_IWARP;
	verbs = __real_ibv_open_device(device);
	real = verbs->ops;
	verbs->ops.post_send = post_send;
	verbs->ops.post_recv = post_recv;
	return verbs;
}

static void begin(void)
{
	announce();
	way = RETURNS;
	setup();
	connect_pair(&a, &b);
}

/* The EP works as before. */
static void end(void)
{
	way = RETURNS;
	expect_quiet(a.request);
	expect_quiet(a.recv);
	OK(dat_ep_reset(a.ep));
	OK(dat_ep_reset(b.ep));
	connect_pair(&a, &b);
	message_passes(&a, &b);
	message_passes(&b, &a);
	disconnect_pair(&a, &b);
	teardown();
}

static void posts_after_the_end(int device)
{
	unsigned i;

	begin();
	disconnect_pair(&a, &b);
	way = device;
	for (i = 0; i < 2; i++) {
		OK(try_send(&a, 10 + i, DAT_COMPLETION_SUPPRESS_FLAG));
		OK(try_send(&a, 20 + i, DAT_COMPLETION_DEFAULT_FLAG));
		OK(try_recv(&a, 30 + i));
		expect_dto(a.request, a.ep, 10 + i, DAT_DTO_ERR_FLUSHED);
		expect_dto(a.request, a.ep, 20 + i, DAT_DTO_ERR_FLUSHED);
		expect_dto(a.recv, a.ep, 30 + i, DAT_DTO_ERR_FLUSHED);
	}
	end();
}

static void test_lost(void)
{
	posts_after_the_end(LOSES);
}

static void test_refused(void)
{
	posts_after_the_end(REFUSES);
}

static void test_returned(void)
{
	posts_after_the_end(RETURNS);
}

/* The device knows of the end before the CM. */
static void test_lost_before(void)
{
	begin();
	OK(try_recv(&a, 1));
	way = LOSES;
	OK(try_send(&a, 2, DAT_COMPLETION_DEFAULT_FLAG));
	OK(try_recv(&a, 3));
	OK(dat_ep_disconnect(b.ep, DAT_CLOSE_ABRUPT_FLAG));
	expect_dto(a.recv, a.ep, 1, DAT_DTO_ERR_FLUSHED);
	expect(a.conn, DAT_CONNECTION_EVENT_DISCONNECTED, a.ep);
	expect(b.conn, DAT_CONNECTION_EVENT_DISCONNECTED, b.ep);
	expect_dto(a.request, a.ep, 2, DAT_DTO_ERR_FLUSHED);
	expect_dto(a.recv, a.ep, 3, DAT_DTO_ERR_FLUSHED);
	end();
}

/* A connection whose posts are refused is not ended yet: they fail. */
static void test_refused_before(void)
{
	begin();
	way = REFUSES;
	CU_ASSERT_NOT_EQUAL(try_send(&a, 1, DAT_COMPLETION_DEFAULT_FLAG), DAT_SUCCESS);
	CU_ASSERT_NOT_EQUAL(try_recv(&a, 2), DAT_SUCCESS);
	way = RETURNS;
	message_passes(&a, &b);
	disconnect_pair(&a, &b);
	end();
}

static void test_reset(void)
{
	begin();
	disconnect_pair(&a, &b);
	way = LOSES;
	OK(try_send(&a, 1, DAT_COMPLETION_DEFAULT_FLAG));
	OK(try_recv(&a, 2));
	OK(dat_ep_reset(a.ep));
	expect_dto(a.request, a.ep, 1, DAT_DTO_ERR_FLUSHED);
	expect_dto(a.recv, a.ep, 2, DAT_DTO_ERR_FLUSHED);
	way = RETURNS;
	OK(dat_ep_reset(b.ep));
	connect_pair(&a, &b);
	disconnect_pair(&a, &b);
	end();
}

static const struct unit_test tests[] = {
	{ "posts after the end, which the device loses", test_lost },
	{ "posts after the end, which the device refuses", test_refused },
	{ "posts after the end, which the device returns", test_returned },
	{ "posts that the device loses before the end is reported", test_lost_before },
	{ "posts that the device refuses before the end is reported", test_refused_before },
	{ "a reset flushes what the device has lost", test_reset },
};

UNIT_MAIN("flush", tests)
