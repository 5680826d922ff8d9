/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* The software device's data path between processes: streams, events, capacity. */
#include <errno.h>
#include <infiniband/verbs.h>
#include <sys/resource.h>
#include "softverbs/object/srq.h"
#include "test/unit/node.h"

#define SIGNALED IBV_SEND_SIGNALED

/* ---- streams: lengths and contents are a function of the message's number ---- */

#define SLOT   (160u << 10)
#define WINDOW 8u

static uint32_t stream_length(uint32_t n)
{
	static const uint32_t around[] = {
		0,   1,	  7,   8,   47,	  48,	49,   63,   64,	   65,
		111, 112, 113, 500, 4095, 4096, 4097, 9000, 70000, SLOT
	};

	return around[(n * 2654435761u >> 7) % (sizeof(around) / sizeof(around[0]))];
}

static uint8_t stream_byte(uint32_t n, uint32_t at)
{
	return (uint8_t)(n * 31 + at * 7 + (at >> 8));
}

static void stream_fill(uint8_t *to, uint32_t n)
{
	for (uint32_t i = 0, length = stream_length(n); i < length; i++)
		to[i] = stream_byte(n, i);
}

static bool stream_holds(const uint8_t *at, uint32_t n, uint32_t length)
{
	if (length != stream_length(n))
		return false;
	for (uint32_t i = 0; i < length; i++)
		if (at[i] != stream_byte(n, i))
			return false;
	return true;
}

/* Memory: WINDOW slots to send from, then WINDOW slots to receive into. */
static const struct node_options stream_options = { .depth = WINDOW, .memory = 2 * WINDOW * SLOT };

/*
 * Sends and receives `count` messages at once, with at most WINDOW posted in each direction;
 * returns 0 or the line that failed.
 */
static int stream_run(struct node *node, uint32_t count)
{
	uint32_t sent = 0, done = 0, got = 0, posted = 0;
	struct ibv_wc wc;

	while (done < count || got < count) {
		for (; posted < count && posted - got < WINDOW; posted++)
			if (node_recv(node, 0, posted, (WINDOW + posted % WINDOW) * SLOT, SLOT))
				return __LINE__;
		for (; sent < count && sent - done < WINDOW; sent++) {
			stream_fill(node->memory + sent % WINDOW * SLOT, sent);
			if (node_send(node, 0, sent, sent % WINDOW * SLOT, stream_length(sent),
				      SIGNALED))
				return __LINE__;
		}
		if (!node_poll(node, &wc) || wc.status)
			return __LINE__;
		if (wc.opcode == IBV_WC_SEND) {
			if (wc.wr_id != done++)
				return __LINE__;
		} else {
			if (wc.wr_id != got ||
			    !stream_holds(node->memory + (WINDOW + got % WINDOW) * SLOT, got,
					  wc.byte_len))
				return __LINE__;
			got++;
		}
	}
	return 0;
}

static int stream_child(int fd, void *arg)
{
	struct node node;
	int result;

	if (!node_open(&node, &stream_options) || !node_connect(&node, 0, 1, fd))
		return 1;
	result = stream_run(&node, *(uint32_t *)arg);
	process_say(fd, (uint64_t)result);
	process_sync(fd);
	return node_close(&node) ? 2 : 0;
}

static void stream_both(uint32_t count)
{
	struct process child;
	struct node node;
	uint64_t result = 99;

	CU_ASSERT_TRUE_FATAL(process_start(&child, stream_child, &count));
	CU_ASSERT_TRUE_FATAL(node_open(&node, &stream_options));
	CU_ASSERT_TRUE_FATAL(node_connect(&node, 0, 1, child.fd));
	CU_ASSERT_EQUAL(stream_run(&node, count), 0);
	CU_ASSERT_TRUE(process_hear(child.fd, &result));
	CU_ASSERT_EQUAL(result, 0);
	process_say(child.fd, 0);
	CU_ASSERT_EQUAL(process_end(&child), 0);
	CU_ASSERT_EQUAL(node_close(&node), 0);
}

static void streams(void)
{
	stream_both(PROCESS_TSAN ? 200 : 1500);
}

static void streams_with_fences(void)
{
	struct node node;
	struct ibv_wc wc;

	/* the effect of a kernel or filter without membarrier */
	CU_ASSERT_TRUE_FATAL(node_open(&node, &(struct node_options){ .qps = 2 }));
	CU_ASSERT_EQUAL(node_close(&node), 0);
	CU_ASSERT_TRUE_FATAL(node_open(&node, &(struct node_options){ 0 }));
	sv_area_own()->expedited = false;
	sv_area_own()->by_owner->expedited = 0;
	for (uint32_t i = 1; i < 3; i++) {
		struct ibv_qp_init_attr attr = {
			.send_cq = node.cq,
			.recv_cq = node.cq,
			.qp_type = IBV_QPT_RC,
			.cap = { 16, 16, 1, 1, 0 },
		};

		node.qp[i] = ibv_create_qp(node.pd, &attr);
		CU_ASSERT_PTR_NOT_NULL_FATAL(node.qp[i]);
	}
	CU_ASSERT_TRUE(node_qp_connect(node.qp[1], node.qp[2]->qp_num, &node.options));
	CU_ASSERT_TRUE(node_qp_connect(node.qp[2], node.qp[1]->qp_num, &node.options));
	for (uint64_t i = 0; i < 50; i++) {
		/* the send waits for a receive */
		CU_ASSERT_EQUAL(node_send(&node, 1, i, 0, 8, SIGNALED), 0);
		CU_ASSERT_EQUAL(ibv_poll_cq(node.cq, 1, &wc), 0);
		CU_ASSERT_EQUAL(node_recv(&node, 2, i, 64, 8), 0);
		CU_ASSERT_TRUE(node_poll(&node, &wc) && !wc.status);
		CU_ASSERT_TRUE(node_poll(&node, &wc) && !wc.status);
	}
	CU_ASSERT_EQUAL(node_close(&node), 0);
}

/* ---- events ---- */

#define EVENTS 1000u

static const struct node_options event_options = { .channel = true };

static int event_run(struct node *node, bool first)
{
	struct ibv_wc wc;

	for (uint32_t i = 0; i < EVENTS; i++) {
		if (first && node_send(node, 0, i, 0, 8, 0))
			return __LINE__;
		if (!node_event_poll(node, &wc) || wc.status || wc.opcode != IBV_WC_RECV)
			return __LINE__;
		if (node_recv(node, 0, i, 64, 8))
			return __LINE__;
		/* one in eight is signalled, otherwise the queue would fill up */
		if (!first && node_send(node, 0, i, 0, 8, 0))
			return __LINE__;
		if (i % 32 != 31)
			continue;
		if (node_send(node, 0, i, 0, 0, SIGNALED) || !node_event_poll(node, &wc) ||
		    wc.status)
			return __LINE__;
		if (wc.opcode == IBV_WC_RECV &&
		    (node_recv(node, 0, i, 64, 8) || !node_event_poll(node, &wc) || wc.status))
			return __LINE__;
		if (wc.opcode == IBV_WC_SEND && (!node_event_poll(node, &wc) || wc.status))
			return __LINE__;
		if (node_recv(node, 0, i, 64, 8))
			return __LINE__;
	}
	return 0;
}

static int event_child(int fd, void *arg)
{
	struct node node;
	int result;

	(void)arg;
	if (!node_open(&node, &event_options) || !node_connect(&node, 0, 1, fd))
		return 1;
	for (uint32_t i = 0; i < 4; i++)
		node_recv(&node, 0, i, 64, 8);
	result = event_run(&node, false);
	process_say(fd, (uint64_t)result);
	process_sync(fd);
	return node_close(&node);
}

static void no_event_is_lost(void)
{
	struct process child;
	struct node node;
	uint64_t result = 99;

	CU_ASSERT_TRUE_FATAL(process_start(&child, event_child, NULL));
	CU_ASSERT_TRUE_FATAL(node_open(&node, &event_options));
	CU_ASSERT_TRUE_FATAL(node_connect(&node, 0, 1, child.fd));
	for (uint32_t i = 0; i < 4; i++)
		CU_ASSERT_EQUAL(node_recv(&node, 0, i, 64, 8), 0);
	CU_ASSERT_EQUAL(event_run(&node, true), 0);
	CU_ASSERT_TRUE(process_hear(child.fd, &result));
	CU_ASSERT_EQUAL(result, 0);
	process_say(child.fd, 0);
	CU_ASSERT_EQUAL(process_end(&child), 0);
	CU_ASSERT_EQUAL(node_close(&node), 0);
}

/* ---- capacity ---- */

static int burst_child(int fd, void *arg)
{
	struct node node;

	(void)arg;
	if (!node_open(&node, &(struct node_options){ 0 }) || !node_connect(&node, 0, 1, fd))
		return 1;
	for (uint64_t i = 0; i < 16; i++)
		if (node_send(&node, 0, i, 0, 8, SIGNALED))
			return 2;
	process_sync(fd);
	return node_close(&node);
}

/* The owner of the CQ is idle: the senders detect the overrun. */
static void overrun_by_a_peer(void)
{
	struct pollfd poll_fd = { .events = POLLIN };
	struct ibv_async_event event = { 0 };
	struct process child;
	struct node node;

	CU_ASSERT_TRUE_FATAL(process_start(&child, burst_child, NULL));
	CU_ASSERT_TRUE_FATAL(node_open(&node, &(struct node_options){ .cqe = 8 }));
	CU_ASSERT_EQUAL(qp_to_init(node.qp[0]), 0);
	CU_ASSERT_TRUE_FATAL(node_connect(&node, 0, 1, child.fd));
	for (uint64_t i = 0; i < 16; i++)
		CU_ASSERT_EQUAL(node_recv(&node, 0, i, 0, 8), 0);
	poll_fd.fd = node.context->async_fd;
	CU_ASSERT_EQUAL_FATAL(poll(&poll_fd, 1, UNIT_PATIENCE), 1);
	CU_ASSERT_EQUAL(ibv_get_async_event(node.context, &event), 0);
	CU_ASSERT_EQUAL(event.event_type, IBV_EVENT_CQ_ERR);
	ibv_ack_async_event(&event);
	process_say(child.fd, 0);
	process_end(&child);
	CU_ASSERT_EQUAL(node_close(&node), 0);
}

/* Whichever resource runs out first, all of it is freed. */
static void area_is_reused(void)
{
	struct ibv_qp_init_attr attr = { .qp_type = IBV_QPT_RC, .cap = { 1024, 1024, 8, 8, 0 } };
	struct ibv_qp **qps = calloc(SV_QPS, sizeof(struct ibv_qp *));
	struct rlimit limit;
	uint32_t counts[3];
	struct node node;

	/* a small area */
	CU_ASSERT_EQUAL(getrlimit(RLIMIT_FSIZE, &limit), 0);
	CU_ASSERT_EQUAL(setrlimit(RLIMIT_FSIZE, &(struct rlimit){ 32 << 20, limit.rlim_max }), 0);
	CU_ASSERT_TRUE_FATAL(node_open(&node, &(struct node_options){ 0 }));
	attr.send_cq = attr.recv_cq = node.cq;
	for (int round = 0; round < 3; round++) {
		uint32_t n = 0;

		while (n < SV_QPS && (qps[n] = ibv_create_qp(node.pd, &attr)))
			n++;
		CU_ASSERT_EQUAL(errno, ENOMEM);
		counts[round] = n;
		while (n)
			CU_ASSERT_EQUAL(ibv_destroy_qp(qps[--n]), 0);
	}
	CU_ASSERT(counts[0] > 16);
	CU_ASSERT_EQUAL(counts[0], counts[1]);
	CU_ASSERT_EQUAL(counts[1], counts[2]);
	CU_ASSERT_EQUAL(node_close(&node), 0);
	CU_ASSERT_EQUAL(setrlimit(RLIMIT_FSIZE, &limit), 0);
	free(qps);
}

/* Creates `most` objects, is refused one more, and after freeing one can create it. */
#define as_many_as_said(most, make, destroy)                     \
	do {                                                     \
		int n_ = 0;                                      \
		while (n_ < (most) && (made[n_] = (make)))       \
			n_++;                                    \
		CU_ASSERT_EQUAL(n_, (most));                     \
		errno = 0;                                       \
		CU_ASSERT_PTR_NULL((make));                      \
		CU_ASSERT_EQUAL(errno, ENOMEM);                  \
		if (n_)                                          \
			CU_ASSERT_EQUAL(destroy(made[--n_]), 0); \
		CU_ASSERT_PTR_NOT_NULL((made[n_] = (make)));     \
		for (n_ += !!made[n_]; n_;)                      \
			CU_ASSERT_EQUAL(destroy(made[--n_]), 0); \
	} while (0)

static void counts_are_as_said(void)
{
	struct ibv_qp_init_attr qp = { .qp_type = IBV_QPT_RC, .cap = { 1024, 1024, 8, 8, 0 } };
	struct ibv_srq_init_attr srq = { .attr = { .max_wr = 1024, .max_sge = 8 } };
	struct ibv_device_attr most;
	struct node node;
	void **made;

	CU_ASSERT_TRUE_FATAL(node_open(&node, &(struct node_options){ 0 }));
	CU_ASSERT_EQUAL_FATAL(ibv_query_device(node.context, &most), 0);
	made = calloc((size_t)most.max_qp + (size_t)most.max_cq + (size_t)most.max_srq,
		      sizeof(*made));
	CU_ASSERT_PTR_NOT_NULL_FATAL(made);
	qp.send_cq = qp.recv_cq = node.cq;
	/* the node itself has a QP and a CQ */
	as_many_as_said(most.max_qp - 1, ibv_create_qp(node.pd, &qp), ibv_destroy_qp);
	as_many_as_said(most.max_srq, ibv_create_srq(node.pd, &srq), ibv_destroy_srq);
	as_many_as_said(most.max_cq - 1, ibv_create_cq(node.context, 1, NULL, NULL, 0),
			ibv_destroy_cq);
	free(made);
	CU_ASSERT_EQUAL(node_close(&node), 0);
}

static const struct unit_test tests[] = {
	{ "two streams of all lengths arrive whole and in order", streams },
	{ "without membarrier everything still works", streams_with_fences },
	{ "no event between processes is lost", no_event_is_lost },
	{ "a peer overruns a CQ that is not polled", overrun_by_a_peer },
	{ "freed parts of the areas are used again", area_is_reused },
	{ "as many QPs, SRQs and CQs as the device says, with long queues, and no more",
	  counts_are_as_said },
};

UNIT_MAIN("softverbs_data", tests)
