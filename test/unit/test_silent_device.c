/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * A device that names no failure: it flushes the request that failed, like those behind it, and its QP is in error, as with
 * soft-RoCE of Linux 6.12. The software device names failures, so the test stands between.
 */
#include <stdatomic.h>
#include <infiniband/verbs.h>
#include "test/unit/announce.h"
#include "test/unit/two_ends.h"

static atomic_bool fails; /* the next send does */
static struct ibv_context_ops real;

struct ibv_context *__real_ibv_open_device(struct ibv_device *device);
struct ibv_context *__wrap_ibv_open_device(struct ibv_device *device);

static int post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };

	if (atomic_exchange(&fails, false))
		CU_ASSERT_EQUAL(ibv_modify_qp(qp, &attr, IBV_QP_STATE), 0);
	return real.post_send(qp, wr, bad);
}

struct ibv_context *__wrap_ibv_open_device(struct ibv_device *device)
{
	struct ibv_context *verbs = __real_ibv_open_device(device);

	real = verbs->ops;
	verbs->ops.post_send = post_send;
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

static const struct unit_test tests[] = {
	{ "a failed request that is flushed: BROKEN", test_broken },
	{ "a flush of a disconnect: DISCONNECTED", test_disconnected },
};

UNIT_MAIN("silent_device", tests)
