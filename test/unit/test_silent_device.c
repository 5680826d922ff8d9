/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * A device that names no failure: it flushes the request that failed, like those behind it, and its QP is in error; and that
 * does not count what it flushes as solicited. So does soft-RoCE of Linux 6.12. The software device does neither, so the test
 * stands between.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <infiniband/verbs.h>
#include "test/unit/announce.h"
#include "test/unit/two_ends.h"

static atomic_bool fails;  /* the next send does */
static atomic_bool narrow; /* a CQ was armed for solicited completions, of which there are none */
static atomic_bool late;   /* QPs go to error when the test says so */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct ibv_qp *held[2]; /* lock */
static unsigned held_count;    /* lock */
static struct ibv_context_ops real;

struct ibv_context *__real_ibv_open_device(struct ibv_device *device);
struct ibv_context *__wrap_ibv_open_device(struct ibv_device *device);
int __real_ibv_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask);
int __wrap_ibv_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask);

static void held_add(struct ibv_qp *qp)
{
	unsigned n;

	pthread_mutex_lock(&lock);
	for (n = 0; n < held_count && held[n] != qp; n++)
		;
	CU_ASSERT_FATAL(n < COUNT(held));
	held[n] = qp;
	held_count = n < held_count ? held_count : n + 1;
	pthread_mutex_unlock(&lock);
}

int __wrap_ibv_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
	if (!late || attr->qp_state != IBV_QPS_ERR)
		return __real_ibv_modify_qp(qp, attr, mask);
	held_add(qp);
	return 0;
}

static void held_end(void)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };

	pthread_mutex_lock(&lock);
	late = false;
	while (held_count)
		CU_ASSERT_EQUAL(__real_ibv_modify_qp(held[--held_count], &attr, IBV_QP_STATE), 0);
	pthread_mutex_unlock(&lock);
}

static int post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };

	if (atomic_exchange(&fails, false))
		CU_ASSERT_EQUAL(ibv_modify_qp(qp, &attr, IBV_QP_STATE), 0);
	return real.post_send(qp, wr, bad);
}

static int req_notify_cq(struct ibv_cq *cq, int solicited)
{
	if (solicited)
		narrow = true;
	return solicited ? 0 : real.req_notify_cq(cq, 0);
}

struct ibv_context *__wrap_ibv_open_device(struct ibv_device *device)
{
	struct ibv_context *verbs = __real_ibv_open_device(device);

	real = verbs->ops;
	verbs->ops.post_send = post_send;
	verbs->ops.req_notify_cq = req_notify_cq;
	return verbs;
}

static void begin(void)
{
	announce();
	setup();
	connect_pair(&a, &b);
}

static void end(void)
{
	OK(dat_ep_reset(a.ep));
	OK(dat_ep_reset(b.ep));
	connect_pair(&a, &b);
	message_passes(&a, &b);
	message_passes(&b, &a);
	disconnect_pair(&a, &b);
	teardown();
}

static void test_broken(void)
{
	begin();
	fails = true;
	OK(try_send(&a, 1, 0));
	expect_dto(a.request, a.ep, 1, DAT_DTO_ERR_FLUSHED);
	expect(a.conn, DAT_CONNECTION_EVENT_BROKEN, a.ep);
	expect(b.conn, DAT_CONNECTION_EVENT_DISCONNECTED, b.ep);
	end();
}

/* What a disconnect flushes breaks nothing. */
static void test_disconnected(void)
{
	begin();
	OK(try_recv(&a, 1));
	OK(try_recv(&b, 2));
	disconnect_pair(&a, &b);
	expect_dto(a.recv, a.ep, 1, DAT_DTO_ERR_FLUSHED);
	expect_dto(b.recv, b.ep, 2, DAT_DTO_ERR_FLUSHED);
	expect_quiet(a.conn);
	end();
}

static void *wait_for_flush(void *unused)
{
	DAT_COUNT more;
	DAT_EVENT event;

	(void)unused;
	OK(dat_evd_wait(b.recv, DAT_TIMEOUT_INFINITE, 1, &event, &more));
	CU_ASSERT_EQUAL(event.event_data.dto_completion_event_data.status, DAT_DTO_ERR_FLUSHED);
	return NULL;
}

static bool is_narrow(void *unused)
{
	(void)unused;
	return narrow;
}

/* The flush comes after all that the provider does at the end of the connection. */
static void flush_wakes(struct end *ending)
{
	DAT_EP_ATTR attr = { .max_recv_dtos = 4,
			     .max_request_dtos = 4,
			     .max_recv_iov = 1,
			     .max_request_iov = 1,
			     .recv_completion_flags = DAT_COMPLETION_SOLICITED_WAIT_FLAG };
	pthread_t thread;
	DAT_COUNT more;
	DAT_EVENT event;

	announce();
	env_open(&env);
	env_listen(&env);
	end_open(&env, &a, NULL);
	end_open(&env, &b, &attr);
	connect_pair(&a, &b);
	OK(try_recv(&b, 1));
	OK(try_recv(&b, 2));
	narrow = false;
	CU_ASSERT_EQUAL_FATAL(pthread_create(&thread, NULL, wait_for_flush, NULL), 0);
	CU_ASSERT_TRUE(unit_wait_for(is_narrow, NULL, UNIT_PATIENCE));
	late = true;
	OK(dat_ep_disconnect(ending->ep, DAT_CLOSE_ABRUPT_FLAG));
	expect(a.conn, DAT_CONNECTION_EVENT_DISCONNECTED, a.ep);
	expect(b.conn, DAT_CONNECTION_EVENT_DISCONNECTED, b.ep);
	held_end();
	CU_ASSERT_TRUE_FATAL(unit_join(thread));
	expect_dto(b.recv, b.ep, 2, DAT_DTO_ERR_FLUSHED);
	OK(dat_ep_reset(a.ep));
	OK(dat_ep_reset(b.ep));
	/* from now on the EVD is armed for solicited completions again */
	narrow = false;
	IS(dat_evd_wait(b.recv, 1000, 1, &event, &more), DAT_TIMEOUT_EXPIRED);
	CU_ASSERT_TRUE(narrow);
	teardown();
}

static void test_own_disconnect(void)
{
	flush_wakes(&b);
}

static void test_disconnect_of_the_peer(void)
{
	flush_wakes(&a);
}

static const struct unit_test tests[] = {
	{ "a failed request that is flushed: BROKEN", test_broken },
	{ "a flush of a disconnect: DISCONNECTED", test_disconnected },
	{ "what a disconnect flushes wakes", test_own_disconnect },
	{ "what a disconnect of the peer flushes wakes", test_disconnect_of_the_peer },
};

UNIT_MAIN("silent_device", tests)
