/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Shared receive queues. */
#include <pthread.h>
#include <sched.h>
#include "test/conform/conform.h"

#define ROOM 16

/* A second connection whose responder shares b's PD, CQ and SRQ. */
struct second {
	struct side a;
	struct ibv_qp *qp;
};

static bool open_shared(struct pair *pair)
{
	if (!device_attr.max_srq) {
		skip("no shared receive queues");
		return false;
	}
	return pair_open(pair, &(struct pair_options){ .srq_wr = ROOM, .send_wr = 64 });
}

static bool open_second(struct second *second, struct pair *pair)
{
	struct ibv_qp_init_attr init = {
		.send_cq = pair->b.scq,
		.recv_cq = pair->b.rcq,
		.srq = pair->b.srq,
		.qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = 4, .max_send_sge = 1 },
	};
	bool good = side_open(&second->a, &(struct pair_options){ 0 }, false);

	second->qp = ibv_create_qp(pair->b.pd, &init);
	good = good && second->qp && !make_init(second->a.qp, 0) && !make_init(second->qp, 0) &&
	       !make_rtr(second->a.qp, second->qp->qp_num, NULL) &&
	       !make_rtr(second->qp, second->a.qp->qp_num, NULL) && !make_rts(second->a.qp, NULL) &&
	       !make_rts(second->qp, NULL);
	CU_ASSERT_TRUE(good);
	return good;
}

static void close_second(struct second *second)
{
	CU_ASSERT_EQUAL(second->qp ? ibv_destroy_qp(second->qp) : 0, 0);
	side_close(&second->a);
}

static bool send_one(struct side *side, uint64_t wr_id)
{
	return !post_send(side, wr_id, 0, 8, IBV_SEND_SIGNALED) &&
	       completes(side->scq, wr_id, IBV_WC_SUCCESS, NULL);
}

static uint32_t limit_of(struct ibv_srq *srq)
{
	struct ibv_srq_attr attr = { .srq_limit = 99 };

	CU_ASSERT_EQUAL(ibv_query_srq(srq, &attr), 0);
	return attr.srq_limit;
}

static void creation_is_checked(void)
{
	struct ibv_pd *pd = ibv_alloc_pd(device);
	struct ibv_srq_init_attr init = { .attr = { .max_wr = 5, .max_sge = 2 } };
	struct ibv_srq_attr attr;
	struct ibv_srq *srq;

	CU_ASSERT_PTR_NOT_NULL_FATAL(pd);
	srq = ibv_create_srq(pd, &init);
	CU_ASSERT_PTR_NOT_NULL_FATAL(srq);
	CU_ASSERT_TRUE(init.attr.max_wr >= 5 && init.attr.max_sge >= 2);
	CU_ASSERT_EQUAL(ibv_query_srq(srq, &attr), 0);
	CU_ASSERT_TRUE(attr.max_wr >= 5 && attr.max_sge >= 2);
	CU_ASSERT_EQUAL(attr.srq_limit, 0);
	CU_ASSERT_EQUAL(ibv_destroy_srq(srq), 0);
	init.attr = (struct ibv_srq_attr){ .max_wr = (uint32_t)device_attr.max_srq_wr + 1,
					   .max_sge = 1 };
	errno = 0;
	CU_ASSERT_PTR_NULL(ibv_create_srq(pd, &init));
	CU_ASSERT_EQUAL(errno, EINVAL);
	init.attr = (struct ibv_srq_attr){ .max_wr = 4,
					   .max_sge = (uint32_t)device_attr.max_srq_sge + 1 };
	errno = 0;
	CU_ASSERT_PTR_NULL(ibv_create_srq(pd, &init));
	CU_ASSERT_EQUAL(errno, EINVAL);
	CU_ASSERT_EQUAL(ibv_dealloc_pd(pd), 0);
}

static void qp_has_no_queue_of_its_own(void)
{
	struct ibv_recv_wr wr = { .wr_id = 1 }, *bad = NULL;
	struct pair pair;

	if (!open_shared(&pair))
		return;
	CU_ASSERT_PTR_EQUAL(pair.b.qp->srq, pair.b.srq);
	CU_ASSERT_EQUAL(ibv_post_recv(pair.b.qp, &wr, &bad), EINVAL);
	CU_ASSERT_TRUE(bad == &wr || device_is_rxe); /* rxe does not set it */
	pair_close(&pair);
}

static void posting_is_checked(void)
{
	struct ibv_sge sges[64] = { 0 };
	struct ibv_recv_wr second = { .wr_id = 2, .sg_list = sges, .num_sge = 64 },
			   first = { .wr_id = 1, .next = &second }, *bad = NULL;
	struct ibv_srq_attr attr;
	struct pair pair;
	uint32_t i;

	if (!open_shared(&pair))
		return;
	CU_ASSERT_EQUAL(ibv_post_srq_recv(pair.b.srq, &first, &bad), EINVAL);
	CU_ASSERT_PTR_EQUAL(bad, &second);
	CU_ASSERT_EQUAL(ibv_query_srq(pair.b.srq, &attr), 0);
	for (i = 1; i < attr.max_wr; i++)
		CU_ASSERT_EQUAL(post_srq(&pair.b, i, 0, 8), 0);
	CU_ASSERT_EQUAL(post_srq(&pair.b, i, 0, 8), ENOMEM);
	CU_ASSERT_EQUAL(post_send(&pair.a, 7, 0, 0, IBV_SEND_SIGNALED), 0);
	CU_ASSERT_TRUE(completes(pair.a.scq, 7, IBV_WC_SUCCESS, NULL));
	CU_ASSERT_TRUE(completes(pair.b.rcq, 1, IBV_WC_SUCCESS, NULL));
	CU_ASSERT_EQUAL(post_srq(&pair.b, i, 0, 8), 0);
	pair_close(&pair);
}

static void first_come_first_served(void)
{
	struct second second;
	struct ibv_wc wc;
	struct pair pair;
	uint64_t i;

	if (!open_shared(&pair))
		return;
	if (open_second(&second, &pair)) {
		for (i = 0; i < 40; i++) {
			struct side *from = i % 3 ? &pair.a : &second.a;
			uint32_t qpn = i % 3 ? pair.b.qp->qp_num : second.qp->qp_num;

			memset(from->buffer, (int)i + 1, 8);
			CU_ASSERT_EQUAL(post_srq(&pair.b, i, (uint32_t)i * 8, 8), 0);
			CU_ASSERT_TRUE(send_one(from, i));
			CU_ASSERT_TRUE(completes(pair.b.rcq, i, IBV_WC_SUCCESS, &wc));
			CU_ASSERT_EQUAL(wc.qp_num, qpn);
			CU_ASSERT_EQUAL(pair.b.buffer[i * 8 + 7], (char)(i + 1));
		}
	}
	close_second(&second);
	pair_close(&pair);
}

static void several_in_flight(void)
{
	struct second second;
	struct ibv_wc wc;
	struct pair pair;
	uint64_t seen = 0, i;

	if (!open_shared(&pair))
		return;
	if (open_second(&second, &pair)) {
		for (i = 0; i < 12; i++)
			CU_ASSERT_EQUAL(post_srq(&pair.b, i, (uint32_t)i * 8, 8), 0);
		for (i = 0; i < 12; i++)
			CU_ASSERT_TRUE(send_one(i % 2 ? &pair.a : &second.a, i));
		for (i = 0; i < 12; i++) {
			CU_ASSERT_TRUE(poll_one(pair.b.rcq, &wc));
			CU_ASSERT_EQUAL(wc.status, IBV_WC_SUCCESS);
			seen |= 1ull << wc.wr_id;
		}
		CU_ASSERT_EQUAL(seen, 0xfff);
	}
	close_second(&second);
	pair_close(&pair);
}

static void limit_fires_once(void)
{
	struct ibv_srq_attr attr = { .srq_limit = 4 };
	struct pair pair;
	uint64_t i;

	if (!open_shared(&pair))
		return;
	for (i = 0; i < 6; i++)
		CU_ASSERT_EQUAL(post_srq(&pair.b, i, 0, 8), 0);
	CU_ASSERT_EQUAL(ibv_modify_srq(pair.b.srq, &attr, IBV_SRQ_LIMIT), 0);
	CU_ASSERT_EQUAL(limit_of(pair.b.srq), 4);
	CU_ASSERT_TRUE(send_one(&pair.a, 1));
	CU_ASSERT_TRUE(send_one(&pair.a, 2));
	CU_ASSERT_TRUE(async_silent());
	CU_ASSERT_TRUE(send_one(&pair.a, 3));
	CU_ASSERT_TRUE(async_is(IBV_EVENT_SRQ_LIMIT_REACHED, pair.b.srq));
	CU_ASSERT_EQUAL(limit_of(pair.b.srq), 0);
	CU_ASSERT_TRUE(send_one(&pair.a, 4));
	CU_ASSERT_TRUE(async_silent());
	pair_close(&pair);
}

static void limit_is_armed_again(void)
{
	struct ibv_srq_attr attr = { .srq_limit = 2 };
	struct pair pair;
	uint64_t round, i;

	if (!open_shared(&pair))
		return;
	for (round = 0; round < 3; round++) {
		for (i = 0; i < 3; i++)
			CU_ASSERT_EQUAL(post_srq(&pair.b, i, 0, 8), 0);
		CU_ASSERT_EQUAL(ibv_modify_srq(pair.b.srq, &attr, IBV_SRQ_LIMIT), 0);
		for (i = 0; i < 3; i++)
			CU_ASSERT_TRUE(send_one(&pair.a, i));
		CU_ASSERT_TRUE(async_is(IBV_EVENT_SRQ_LIMIT_REACHED, pair.b.srq));
		for (i = 0; i < 3; i++)
			CU_ASSERT_TRUE(completes(pair.b.rcq, i, IBV_WC_SUCCESS, NULL));
		CU_ASSERT_TRUE(async_silent());
	}
	pair_close(&pair);
}

static void limit_armed_too_late(void)
{
	struct ibv_srq_attr attr = { .srq_limit = 4 };
	struct pair pair;

	if (!open_shared(&pair))
		return;
	CU_ASSERT_EQUAL(post_srq(&pair.b, 0, 0, 8), 0);
	CU_ASSERT_EQUAL(post_srq(&pair.b, 1, 0, 8), 0);
	CU_ASSERT_EQUAL(ibv_modify_srq(pair.b.srq, &attr, IBV_SRQ_LIMIT), 0);
	/* at once, as IBTA requires, or with the next message, as the kernel does */
	if (!readable(device->async_fd, SILENCE))
		CU_ASSERT_TRUE(send_one(&pair.a, 1));
	CU_ASSERT_TRUE(async_is(IBV_EVENT_SRQ_LIMIT_REACHED, pair.b.srq));
	pair_close(&pair);
}

static void limit_is_in_range(void)
{
	struct ibv_srq_attr attr;
	struct pair pair;

	if (!open_shared(&pair))
		return;
	CU_ASSERT_EQUAL(ibv_query_srq(pair.b.srq, &attr), 0);
	attr.srq_limit = attr.max_wr + 1;
	CU_ASSERT_EQUAL(ibv_modify_srq(pair.b.srq, &attr, IBV_SRQ_LIMIT), EINVAL);
	CU_ASSERT_EQUAL(limit_of(pair.b.srq), 0);
	pair_close(&pair);
}

/* Requests that were posted before a resize stay posted and are used afterwards. */
static void resize_keeps_the_contents(void)
{
	struct ibv_srq_attr attr = { .max_wr = 4 * ROOM };
	struct pair pair;
	uint64_t i;

	if (!open_shared(&pair))
		return;
	for (i = 0; i < 6; i++)
		CU_ASSERT_EQUAL(post_srq(&pair.b, i, 0, 8), 0);
	if (!(device_attr.device_cap_flags & IBV_DEVICE_SRQ_RESIZE) || device_is_rxe) {
		skip("no resizing of shared receive queues");
	} else {
		CU_ASSERT_EQUAL(ibv_modify_srq(pair.b.srq, &attr, IBV_SRQ_MAX_WR), 0);
		for (; i < 4 * ROOM; i++)
			CU_ASSERT_EQUAL_FATAL(post_srq(&pair.b, i, 0, 8), 0);
		attr.max_wr = 3;
		CU_ASSERT_EQUAL(ibv_modify_srq(pair.b.srq, &attr, IBV_SRQ_MAX_WR), EINVAL);
	}
	for (i = 0; i < 6; i++) {
		CU_ASSERT_TRUE(send_one(&pair.a, i));
		CU_ASSERT_TRUE(completes(pair.b.rcq, i, IBV_WC_SUCCESS, NULL));
	}
	pair_close(&pair);
}

static bool resizes(void)
{
	if (device_attr.device_cap_flags & IBV_DEVICE_SRQ_RESIZE && !device_is_rxe)
		return true;
	skip("no resizing of shared receive queues");
	return false;
}

/* A refused resize changes nothing. */
static void resize_is_checked(void)
{
	struct ibv_srq_attr attr = { .max_wr = (uint32_t)device_attr.max_srq_wr + 1 }, now;
	struct pair pair;

	if (!resizes() || !open_shared(&pair))
		return;
	CU_ASSERT_EQUAL(ibv_modify_srq(pair.b.srq, &attr, IBV_SRQ_MAX_WR), EINVAL);
	attr.max_wr = 0;
	CU_ASSERT_EQUAL(ibv_modify_srq(pair.b.srq, &attr, IBV_SRQ_MAX_WR), EINVAL);
	attr.max_wr = 2 * ROOM;
	attr.srq_limit = 2 * ROOM + 1;
	CU_ASSERT_EQUAL(ibv_modify_srq(pair.b.srq, &attr, IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT), EINVAL);
	CU_ASSERT_EQUAL(ibv_query_srq(pair.b.srq, &now), 0);
	CU_ASSERT_EQUAL(now.max_wr, ROOM);
	attr.srq_limit = 2 * ROOM;
	CU_ASSERT_EQUAL(ibv_modify_srq(pair.b.srq, &attr, IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT), 0);
	CU_ASSERT_EQUAL(ibv_query_srq(pair.b.srq, &now), 0);
	CU_ASSERT_TRUE(now.max_wr >= 2 * ROOM);
	CU_ASSERT_EQUAL(now.srq_limit, 2 * ROOM);
	attr.max_wr = ROOM; /* less than the armed limit */
	CU_ASSERT_EQUAL(ibv_modify_srq(pair.b.srq, &attr, IBV_SRQ_MAX_WR), EINVAL);
	pair_close(&pair);
}

static void resize_keeps_what_arrived(void)
{
	struct ibv_srq_attr attr = { .max_wr = ROOM };
	struct second second;
	struct ibv_wc wc;
	struct pair pair;
	uint64_t next = 0, i;

	if (!resizes() || !open_shared(&pair))
		return;
	if (open_second(&second, &pair)) {
		for (i = 0; i < ROOM; i++)
			CU_ASSERT_EQUAL(post_srq(&pair.b, i, (uint32_t)i * 8, 8), 0);
		for (; attr.max_wr <= 32 * ROOM; attr.max_wr *= 2) {
			for (i = next; i < next + 5; i++)
				CU_ASSERT_TRUE(send_one(i % 2 ? &pair.a : &second.a, i));
			CU_ASSERT_EQUAL(ibv_modify_srq(pair.b.srq, &attr, IBV_SRQ_MAX_WR), 0);
			for (i = next; i < next + 5; i++) {
				CU_ASSERT_TRUE(poll_one(pair.b.rcq, &wc));
				CU_ASSERT_EQUAL(wc.status, IBV_WC_SUCCESS);
				CU_ASSERT_TRUE(wc.wr_id >= next && wc.wr_id < next + 5);
			}
			for (next += 5; i < next + 5; i++)
				CU_ASSERT_EQUAL(post_srq(&pair.b, i + ROOM - 5, 0, 8), 0);
		}
	}
	close_second(&second);
	pair_close(&pair);
}

static void *grow(void *arg)
{
	struct ibv_srq *srq = arg;
	struct ibv_srq_attr attr = { .max_wr = 2 * ROOM };
	uint32_t last =
		(uint32_t)device_attr.max_srq_wr < 2048 ? (uint32_t)device_attr.max_srq_wr : 2048;

	for (; attr.max_wr <= last; attr.max_wr *= 2) {
		if (ibv_modify_srq(srq, &attr, IBV_SRQ_MAX_WR))
			return NULL;
		sched_yield();
	}
	return arg;
}

/* Each message is received once and in order while the queue is resized. */
static void resize_under_traffic(void)
{
	struct pair pair;
	pthread_t thread;
	void *good;
	uint64_t posted, seen;

	if (!resizes())
		return;
	for (int round = 0; round < 4; round++) {
		if (!open_shared(&pair))
			return;
		for (posted = 0; posted < ROOM; posted++)
			CU_ASSERT_EQUAL(post_srq(&pair.b, posted, 0, 8), 0);
		CU_ASSERT_EQUAL_FATAL(pthread_create(&thread, NULL, grow, pair.b.srq), 0);
		for (seen = 0; seen < 3000; seen++) {
			CU_ASSERT_TRUE_FATAL(send_one(&pair.a, seen));
			CU_ASSERT_TRUE_FATAL(completes(pair.b.rcq, seen, IBV_WC_SUCCESS, NULL));
			CU_ASSERT_EQUAL(post_srq(&pair.b, posted++, 0, 8), 0);
		}
		CU_ASSERT_EQUAL(pthread_join(thread, &good), 0);
		CU_ASSERT_PTR_EQUAL(good, pair.b.srq);
		pair_close(&pair);
	}
}

static void error_leaves_the_queue_alone(void)
{
	struct second second;
	struct pair pair;

	if (!open_shared(&pair))
		return;
	if (open_second(&second, &pair)) {
		CU_ASSERT_EQUAL(post_srq(&pair.b, 1, 0, 8), 0);
		CU_ASSERT_EQUAL(move_to(pair.b.qp, IBV_QPS_ERR), 0);
		/* an older kernel's software RoCE raises no event */
		CU_ASSERT_TRUE((device_is_rxe && !rxe_since(6, 12)) ||
			       async_is(IBV_EVENT_QP_LAST_WQE_REACHED, pair.b.qp));
		CU_ASSERT_TRUE(stays_empty(pair.b.rcq));
		CU_ASSERT_TRUE(async_silent());
		CU_ASSERT_TRUE(send_one(&second.a, 2));
		CU_ASSERT_TRUE(completes(pair.b.rcq, 1, IBV_WC_SUCCESS, NULL));
	}
	close_second(&second);
	pair_close(&pair);
}

static void destroy_leaves_the_queue_alone(void)
{
	struct second second;
	struct pair pair;

	if (!open_shared(&pair))
		return;
	if (open_second(&second, &pair)) {
		CU_ASSERT_EQUAL(post_srq(&pair.b, 1, 0, 8), 0);
		CU_ASSERT_EQUAL(ibv_destroy_srq(pair.b.srq), EBUSY);
		CU_ASSERT_EQUAL(ibv_destroy_qp(pair.b.qp), 0);
		pair.b.qp = NULL;
		CU_ASSERT_EQUAL(ibv_destroy_srq(pair.b.srq), EBUSY);
		CU_ASSERT_TRUE(send_one(&second.a, 2));
		CU_ASSERT_TRUE(completes(pair.b.rcq, 1, IBV_WC_SUCCESS, NULL));
	}
	close_second(&second);
	pair_close(&pair);
}

static void empty_queue_is_not_ready(void)
{
	struct pair pair;

	if (!open_shared(&pair))
		return;
	CU_ASSERT_EQUAL(post_send(&pair.a, 1, 0, 8, IBV_SEND_SIGNALED), 0);
	CU_ASSERT_TRUE(stays_empty(pair.a.scq));
	CU_ASSERT_EQUAL(post_srq(&pair.b, 2, 0, 8), 0);
	CU_ASSERT_TRUE(completes(pair.a.scq, 1, IBV_WC_SUCCESS, NULL));
	CU_ASSERT_TRUE(completes(pair.b.rcq, 2, IBV_WC_SUCCESS, NULL));
	pair_close(&pair);
}

static const struct unit_test tests[] = {
	{ "create_srq: sizes granted; beyond the limits EINVAL", creation_is_checked },
	{ "post_recv on a QP with an SRQ: EINVAL", qp_has_no_queue_of_its_own },
	{ "full: ENOMEM; a bad element of a list is named", posting_is_checked },
	{ "requests are used in order by the QP that needs one", first_come_first_served },
	{ "several connections in flight use each request once", several_in_flight },
	{ "limit: once, when fewer than it are left", limit_fires_once },
	{ "limit: armed again it fires again", limit_is_armed_again },
	{ "limit: armed when it is too late fires at once or with the next message",
	  limit_armed_too_late },
	{ "limit above the size: EINVAL", limit_is_in_range },
	{ "resize keeps what is posted", resize_keeps_the_contents },
	{ "resize beyond the limits, or below what is posted or armed: EINVAL", resize_is_checked },
	{ "resize keeps what has arrived", resize_keeps_what_arrived },
	{ "resize while messages arrive", resize_under_traffic },
	{ "QP to ERR: nothing is flushed, QP_LAST_WQE_REACHED", error_leaves_the_queue_alone },
	{ "destroy in use: EBUSY; requests outlive a QP", destroy_leaves_the_queue_alone },
	{ "an empty queue is RNR, a post resumes the sender", empty_queue_is_not_ready },
};

CONFORM_MAIN("conform_srq", tests)
