/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * Work requests that an iWARP device does not return: after the error of a QP it refuses what is posted, or loses it. The
 * software device returns all, so the test stands between.
 */
#include <errno.h>
#include <sched.h>
#include <stdatomic.h>
#include <infiniband/verbs.h>
#include "dapl/openib/ib.h"
#include "test/unit/announce.h"
#include "test/unit/two_ends.h"
#include "util/clock.h"

/* What the device does with posts. LEAVES: it keeps receives, and flushes them when their QP is destroyed. */
static _Atomic enum { RETURNS, LOSES, REFUSES, LEAVES } way;
static struct ibv_context_ops real;
static uint64_t left[10]; /* wr_ids */
static int left_count, polled_count;
static struct ibv_cq *_Atomic left_in; /* from the destruction of the QP on */
static struct ibv_cq *left_for;	       /* that of the last one */
static atomic_bool is_broken;	       /* what a query of a QP says */
static _Atomic uint64_t stopped;       /* the time that all see; 0: the clock goes on */
static _Atomic uint64_t timer;	       /* the last deadline that was armed */

struct ibv_context *__real_ibv_open_device(struct ibv_device *device);
struct ibv_context *__wrap_ibv_open_device(struct ibv_device *device);
int __real_ibv_query_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask,
			struct ibv_qp_init_attr *init);
int __wrap_ibv_query_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask,
			struct ibv_qp_init_attr *init);
int __real_ibv_destroy_qp(struct ibv_qp *qp);
int __wrap_ibv_destroy_qp(struct ibv_qp *qp);
int __real_clock_gettime(clockid_t clock, struct timespec *now);
int __wrap_clock_gettime(clockid_t clock, struct timespec *now);
void __real_ib_timer_arm(struct ib_device *device, struct ib_timer *armed, uint64_t deadline,
			 void (*call)(struct ib_timer *timer));
void __wrap_ib_timer_arm(struct ib_device *device, struct ib_timer *armed, uint64_t deadline,
			 void (*call)(struct ib_timer *timer));

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
	if (way == LEAVES) {
		CU_ASSERT_FATAL(left_count < (int)COUNT(left));
		left[left_count++] = wr->wr_id;
		left_for = qp->recv_cq;
		return 0;
	}
	*bad = wr;
	return way == LOSES ? 0 : -EINVAL;
}

static int poll_cq(struct ibv_cq *cq, int count, struct ibv_wc *wc)
{
	int i;

	if (cq != left_in || polled_count == left_count)
		return real.poll_cq(cq, count, wc);
	for (i = 0; i < count && polled_count < left_count; i++)
		wc[i] = (struct ibv_wc){ .wr_id = left[polled_count++],
					 .status = IBV_WC_WR_FLUSH_ERR };
	return i;
}

int __wrap_ibv_query_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask,
			struct ibv_qp_init_attr *init)
{
	int error = __real_ibv_query_qp(qp, attr, mask, init);

	if (is_broken)
		attr->qp_state = IBV_QPS_ERR;
	return error;
}

int __wrap_ibv_destroy_qp(struct ibv_qp *qp)
{
	if (way == LEAVES)
		left_in = qp->recv_cq;
	return __real_ibv_destroy_qp(qp);
}

int __wrap_clock_gettime(clockid_t clock, struct timespec *now)
{
	uint64_t time = stopped;

	if (!time)
		return __real_clock_gettime(clock, now);
	*now = (struct timespec){ .tv_sec = (time_t)(time / NSEC_PER_SEC),
				  .tv_nsec = (long)(time % NSEC_PER_SEC) };
	return 0;
}

void __wrap_ib_timer_arm(struct ib_device *device, struct ib_timer *armed, uint64_t deadline,
			 void (*call)(struct ib_timer *timer))
{
	if (deadline)
		timer = deadline;
	__real_ib_timer_arm(device, armed, deadline, call);
}

struct ibv_context *__wrap_ibv_open_device(struct ibv_device *device)
{
	struct ibv_context *verbs;

	device->transport_type = IBV_TRANSPORT_IWARP;
	verbs = __real_ibv_open_device(device);
	real = verbs->ops;
	verbs->ops.post_send = post_send;
	verbs->ops.post_recv = post_recv;
	verbs->ops.poll_cq = poll_cq;
	return verbs;
}

static void begin(void)
{
	announce();
	way = RETURNS;
	left_count = polled_count = 0;
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
		expect_dto(a.request, a.ep, 10 + i, DAT_DTO_ERR_FLUSHED);
		expect_dto(a.request, a.ep, 20 + i, DAT_DTO_ERR_FLUSHED);
		OK(try_recv(&a, 30 + i));
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

/* The same with a device that refuses what is posted after the error. */
static void test_refused_broken(void)
{
	begin();
	way = REFUSES;
	is_broken = true;
	OK(try_send(&a, 1, DAT_COMPLETION_DEFAULT_FLAG));
	OK(try_recv(&a, 2));
	is_broken = false;
	OK(dat_ep_disconnect(b.ep, DAT_CLOSE_ABRUPT_FLAG));
	expect(a.conn, DAT_CONNECTION_EVENT_DISCONNECTED, a.ep);
	expect(b.conn, DAT_CONNECTION_EVENT_DISCONNECTED, b.ep);
	expect_dto(a.request, a.ep, 1, DAT_DTO_ERR_FLUSHED);
	expect_dto(a.recv, a.ep, 2, DAT_DTO_ERR_FLUSHED);
	end();
}

/* The QP is in order: the device refuses the post itself. */
static void test_refused_before(void)
{
	begin();
	way = REFUSES;
	IS(try_send(&a, 1, DAT_COMPLETION_DEFAULT_FLAG), E0(INVALID_PARAMETER));
	IS(try_recv(&a, 2), E0(INVALID_PARAMETER));
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

/* EPs that share an EVD come and go: what the device left in the CQ is not there when the next one posts. */
static void test_left(void)
{
	struct end c = { .env = &env };

	begin();
	c.recv = b.recv;
	c.request = b.request;
	c.conn = b.conn;
	MUST(dat_ep_create(env.ia, env.pz, c.recv, c.request, c.conn, NULL, &c.ep));
	way = LEAVES;
	post_recvs(&c, COUNT(left));
	CU_ASSERT_EQUAL(left_count, COUNT(left));
	OK(dat_ep_free(c.ep));
	CU_ASSERT_PTR_NOT_NULL(left_in);
	CU_ASSERT_EQUAL(polled_count, left_count);
	left_in = NULL;
	way = RETURNS;
	expect_quiet(b.recv);
	disconnect_pair(&a, &b);
	end();
}

/* The device has had its time since the error, but not since the post. */
static void test_late(void)
{
	time_t until = time(NULL) + PATIENCE / 1000000;

	begin();
	disconnect_pair(&a, &b);
	way = LEAVES;
	timer = 0;
	stopped = clock_now() + 2 * NSEC_PER_SEC;
	OK(try_recv(&a, 1));
	while (timer < stopped && time(NULL) < until)
		sched_yield();
	CU_ASSERT_EQUAL(timer, stopped + 100 * NSEC_PER_MSEC);
	left_in = left_for;
	expect_dto(a.recv, a.ep, 1, DAT_DTO_ERR_FLUSHED);
	CU_ASSERT_EQUAL(polled_count, left_count);
	left_in = NULL;
	stopped = 0;
	end();
}

/* Then it was flushed, and what the device returns at last is no event. */
static void test_too_late(void)
{
	begin();
	disconnect_pair(&a, &b);
	way = LEAVES;
	OK(try_recv(&a, 1));
	expect_dto(a.recv, a.ep, 1, DAT_DTO_ERR_FLUSHED);
	left_in = left_for;
	expect_quiet(a.recv);
	CU_ASSERT_EQUAL(polled_count, left_count);
	left_in = NULL;
	way = RETURNS;
	OK(try_recv(&a, 2));
	expect_dto(a.recv, a.ep, 2, DAT_DTO_ERR_FLUSHED);
	end();
}

static const struct unit_test tests[] = {
	{ "posts after the end, which the device loses", test_lost },
	{ "posts after the end, which the device refuses", test_refused },
	{ "posts after the end, which the device returns", test_returned },
	{ "posts that the device loses before the end is reported", test_lost_before },
	{ "posts that the device refuses before the end is reported", test_refused_broken },
	{ "posts that the device refuses on a live connection fail", test_refused_before },
	{ "a reset flushes what the device has lost", test_reset },
	{ "a post has 100 ms in which the device may return it", test_late },
	{ "a post that the device returns after it was flushed makes one event", test_too_late },
	{ "a free takes what the device flushes when the QP is destroyed", test_left },
};

UNIT_MAIN("flush", tests)
