/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* SOFTVERBS_FAULT: messages find no receive, take long, lose their link, as asked for when the QP was made. */
#include <stdio.h>
#include <stdlib.h>
#include "test/conform/remote.h"
#include "util/clock.h"

#define MESSAGES    20u
#define TIMER_640US 12

static bool pair_with(struct pair *pair, const char *faults, const struct pair_options *options)
{
	bool good;

	setenv("SOFTVERBS_FAULT", faults, 1);
	good = pair_open(pair, options);
	unsetenv("SOFTVERBS_FAULT");
	return good;
}

static void the_third_finds_no_receive(void)
{
	struct pair pair;

	if (!pair_with(&pair, "rnr=3", &(struct pair_options){ .rnr_retry_none = true }))
		return;
	for (uint64_t i = 1; i <= 3; i++)
		CU_ASSERT_EQUAL(post_recv(&pair.b, i, 0, 8), 0);
	for (uint64_t i = 1; i <= 3; i++) {
		CU_ASSERT_EQUAL(post_send(&pair.a, i, 0, 8, IBV_SEND_SIGNALED), 0);
		/* what needs no receive does not count */
		CU_ASSERT_EQUAL(i == 3 ? 0
				       : post_rdma(&pair.a, IBV_WR_RDMA_WRITE, 9, 0, 8, &pair.b, 0,
						   0),
				0);
		CU_ASSERT_TRUE(completes(pair.a.scq, i,
					 i == 3 ? IBV_WC_RNR_RETRY_EXC_ERR : IBV_WC_SUCCESS, NULL));
	}
	CU_ASSERT_EQUAL(state_of(pair.a.qp), IBV_QPS_ERR);
	CU_ASSERT_EQUAL(state_of(pair.b.qp), IBV_QPS_RTS);
	pair_close(&pair);
}

/* Each retry takes its time, nothing is lost, and the order stays. */
static void retries_succeed(void)
{
	struct pair pair;
	uint64_t begin;

	if (!pair_with(&pair, "rnr=2",
		       &(struct pair_options){ .min_rnr_timer = TIMER_640US,
					       .send_wr = 2 * MESSAGES,
					       .recv_wr = MESSAGES,
					       .rnr_retry = 7 }))
		return;
	begin = clock_now();
	for (uint64_t i = 0; i < MESSAGES; i++) {
		pattern_fill(pair.a.buffer + i * 1000, 1000, (unsigned)i);
		CU_ASSERT_EQUAL(post_recv(&pair.b, i, (uint32_t)(30000 + i * 1000), 1000), 0);
		CU_ASSERT_EQUAL(post_send(&pair.a, i, (uint32_t)i * 1000, 1000, IBV_SEND_SIGNALED),
				0);
	}
	for (uint64_t i = 0; i < MESSAGES; i++) {
		CU_ASSERT_TRUE(completes(pair.a.scq, i, IBV_WC_SUCCESS, NULL));
		CU_ASSERT_TRUE(completes(pair.b.rcq, i, IBV_WC_SUCCESS, NULL));
		CU_ASSERT_TRUE(pattern_holds(pair.b.buffer + 30000 + i * 1000, 1000, (unsigned)i));
	}
	CU_ASSERT_TRUE(clock_now() - begin >= MESSAGES / 2 * 320 * NSEC_PER_USEC);
	pair_close(&pair);
}

static void an_unreliable_one_is_lost(void)
{
	struct pair pair;

	if (!pair_with(&pair, "rnr=2", &(struct pair_options){ .type = IBV_QPT_UC }))
		return;
	for (uint64_t i = 1; i <= 2; i++)
		CU_ASSERT_EQUAL(post_recv(&pair.b, i, 0, 8), 0);
	for (uint64_t i = 1; i <= 3; i++) {
		memset(pair.a.buffer, (int)i, 8);
		CU_ASSERT_EQUAL(post_send(&pair.a, i, 0, 8, IBV_SEND_SIGNALED), 0);
		CU_ASSERT_TRUE(completes(pair.a.scq, i, IBV_WC_SUCCESS, NULL));
	}
	CU_ASSERT_TRUE(completes(pair.b.rcq, 1, IBV_WC_SUCCESS, NULL));
	CU_ASSERT_TRUE(completes(pair.b.rcq, 2, IBV_WC_SUCCESS, NULL));
	CU_ASSERT_EQUAL(pair.b.buffer[0], 3);
	CU_ASSERT_TRUE(stays_empty(pair.b.rcq));
	pair_close(&pair);
}

static void each_waits(const char *faults, enum ibv_qp_type type, enum ibv_wr_opcode opcode)
{
	struct pair pair;
	uint64_t begin;

	if (!pair_with(&pair, faults, &(struct pair_options){ .type = type }))
		return;
	begin = clock_now();
	for (uint64_t i = 1; i <= 3; i++) {
		CU_ASSERT_EQUAL(post_recv(&pair.b, i, 0, 64), 0);
		CU_ASSERT_EQUAL(opcode == IBV_WR_SEND
					? post_send(&pair.a, i, 0, 8, IBV_SEND_SIGNALED)
					: post_rdma(&pair.a, opcode, i, 0, 8, &pair.b, 0,
						    IBV_SEND_SIGNALED),
				0);
	}
	for (uint64_t i = 1; i <= 3; i++)
		CU_ASSERT_TRUE(completes(pair.a.scq, i, IBV_WC_SUCCESS, NULL));
	CU_ASSERT_TRUE(clock_now() - begin >= 3 * 10 * NSEC_PER_MSEC);
	for (uint64_t i = 1; i <= 3 && opcode == IBV_WR_SEND; i++)
		CU_ASSERT_TRUE(completes(pair.b.rcq, i, IBV_WC_SUCCESS, NULL));
	pair_close(&pair);
}

static void delay(void)
{
	each_waits("delay=10000", IBV_QPT_RC, IBV_WR_SEND);
	each_waits("delay=10000", IBV_QPT_RC, IBV_WR_RDMA_WRITE);
	each_waits("delay=10000", IBV_QPT_RC, IBV_WR_RDMA_READ);
	each_waits("delay=10000", IBV_QPT_UC, IBV_WR_SEND);
	each_waits("delay=10000,rnr=1", IBV_QPT_RC, IBV_WR_SEND);
}

/* Nobody polls: the engine ends the wait. */
static void delay_without_polls(void)
{
	struct pair pair;
	struct ibv_wc wc;
	void *context;
	struct ibv_cq *cq;

	if (!pair_with(&pair, "delay=10000", NULL))
		return;
	CU_ASSERT_EQUAL(post_recv(&pair.b, 1, 0, 8), 0);
	CU_ASSERT_EQUAL(ibv_req_notify_cq(pair.b.rcq, 0), 0);
	CU_ASSERT_EQUAL(post_send(&pair.a, 1, 0, 8, IBV_SEND_SIGNALED), 0);
	CU_ASSERT_EQUAL(ibv_poll_cq(pair.b.rcq, 1, &wc), 0);
	CU_ASSERT_TRUE(readable(pair.b.channel->fd, PATIENCE));
	CU_ASSERT_EQUAL(ibv_get_cq_event(pair.b.channel, &cq, &context), 0);
	ibv_ack_cq_events(cq, 1);
	CU_ASSERT_TRUE(completes(pair.b.rcq, 1, IBV_WC_SUCCESS, NULL));
	pair_close(&pair);
}

/* The link goes with the fifth; then nobody answers. */
static void drop(void)
{
	struct side here;
	struct remote peer;
	struct ibv_wc wc = { .status = IBV_WC_SUCCESS };
	uint64_t posted = 0;

	setenv("SOFTVERBS_FAULT", "drop=5", 1);
	if (!remote_open(&peer, &here, NULL))
		return;
	unsetenv("SOFTVERBS_FAULT");
	for (; wc.status == IBV_WC_SUCCESS && posted < 1000000; posted++) {
		CU_ASSERT_EQUAL_FATAL(post_rdma(&here, IBV_WR_RDMA_WRITE, posted, 0, 8, &peer.side,
						0, IBV_SEND_SIGNALED),
				      0);
		CU_ASSERT_TRUE_FATAL(poll_one(here.scq, &wc));
		CU_ASSERT_EQUAL(wc.wr_id, posted);
	}
	CU_ASSERT_EQUAL(wc.status, IBV_WC_RETRY_EXC_ERR);
	CU_ASSERT_TRUE(posted > 5);
	CU_ASSERT_EQUAL(state_of(here.qp), IBV_QPS_ERR);
	side_close(&here);
	remote_close(&peer);
}

static void no_such_faults(void)
{
	static const char *const bad[] = { "",	    "rnr",	     "rnr=",
					   "rnr=0", "rnr=-1",	     "rnr=1,",
					   "x=1",   "rnr=1;delay=1", "delay=99999999999" };

	for (size_t i = 0; i < COUNT(bad); i++) {
		struct pair pair;

		if (!pair_with(&pair, bad[i], &(struct pair_options){ .rnr_retry_none = true }))
			return;
		CU_ASSERT_EQUAL(post_recv(&pair.b, 1, 0, 8), 0);
		CU_ASSERT_EQUAL(post_send(&pair.a, 1, 0, 8, IBV_SEND_SIGNALED), 0);
		CU_ASSERT_TRUE(completes(pair.a.scq, 1, IBV_WC_SUCCESS, NULL));
		pair_close(&pair);
	}
}

static const struct unit_test tests[] = {
	{ "C.12 SOFTVERBS_FAULT rnr=3: the third message finds no receive",
	  the_third_finds_no_receive },
	{ "C.12 SOFTVERBS_FAULT rnr=2: the retries succeed, in order", retries_succeed },
	{ "C.12 SOFTVERBS_FAULT rnr=2: on an unreliable connection it is lost",
	  an_unreliable_one_is_lost },
	{ "C.12 SOFTVERBS_FAULT delay: each work request takes so long", delay },
	{ "C.12 SOFTVERBS_FAULT delay: also when nobody polls", delay_without_polls },
	{ "C.12 SOFTVERBS_FAULT drop=5: after five nobody answers", drop },
	{ "C.12 SOFTVERBS_FAULT: what is no fault is ignored", no_such_faults },
};

int main(int argc, char **argv)
{
	remote_main(argc, argv);
	if (!conform_open())
		return 77;
	if (strcmp(ibv_get_device_name(device->device), "soft0")) {
		fprintf(stderr, "skipped: not the software device\n");
		return 77;
	}
	return unit_main("conform_fault", tests, COUNT(tests), argc, argv);
}
