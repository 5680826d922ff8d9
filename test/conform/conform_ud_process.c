/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Datagrams between processes, with shared receive queues, events, many queue pairs and deaths. */
#include "test/conform/remote.h"

static const struct pair_options ud = {
	.type = IBV_QPT_UD,
	.send_wr = 512,
	.recv_wr = 512,
	.cqe = 1024,
};

#define ROOM (GRH_SIZE + 1024)

/* The first datagram waits until the processes are linked. */
static void first_one_arrives(void)
{
	struct remote peer;
	struct side here;
	uint32_t length;

	if (!remote_open(&peer, &here, &ud))
		return;
	pattern_fill(here.buffer, 1000, 3);
	CU_ASSERT_EQUAL(remote_post_recv(&peer, 1, 0, ROOM), 0);
	CU_ASSERT_EQUAL(post_send(&here, 2, 0, 1000, IBV_SEND_SIGNALED), 0);
	CU_ASSERT_TRUE(completes(here.scq, 2, IBV_WC_SUCCESS, NULL));
	CU_ASSERT_TRUE(remote_completes_recv(&peer, 1, IBV_WC_SUCCESS, &length));
	CU_ASSERT_EQUAL(length, GRH_SIZE + 1000);
	CU_ASSERT_TRUE(remote_holds(&peer, GRH_SIZE, 1000, 3));
	remote_close(&peer);
	side_close(&here);
}

static void there_and_back(void)
{
	struct ibv_wc wc = { 0 };
	struct remote peer;
	struct side here;

	if (!remote_open(&peer, &here, &ud))
		return;
	for (uint32_t i = 0; i < 2000; i++) {
		uint32_t length = i * 37 % 1024 + 1;

		CU_ASSERT_EQUAL(remote_post_recv(&peer, i, 0, ROOM), 0);
		CU_ASSERT_EQUAL(post_recv(&here, i, 8192, ROOM), 0);
		pattern_fill(here.buffer, length, i);
		CU_ASSERT_EQUAL(post_send(&here, i, 0, length, IBV_SEND_SIGNALED), 0);
		CU_ASSERT_TRUE_FATAL(completes(here.scq, i, IBV_WC_SUCCESS, NULL));
		CU_ASSERT_TRUE_FATAL(remote_completes_recv(&peer, i, IBV_WC_SUCCESS, NULL));
		CU_ASSERT_EQUAL(remote_post_send(&peer, i, GRH_SIZE, length), 0);
		CU_ASSERT_TRUE_FATAL(completes(here.rcq, i, IBV_WC_SUCCESS, &wc));
		CU_ASSERT_TRUE_FATAL(remote_completes_send(&peer, i, IBV_WC_SUCCESS));
		CU_ASSERT_EQUAL(wc.src_qp, peer.side.qp->qp_num);
		CU_ASSERT_TRUE(pattern_holds(here.buffer + 8192 + GRH_SIZE, length, i));
	}
	remote_close(&peer);
	side_close(&here);
}

/* All of them are sent before the other side polls. */
static void remote_does_nothing(void)
{
	enum { MANY = 400 };
	struct remote peer;
	struct side here;
	uint32_t length;

	if (!remote_open(&peer, &here, &ud))
		return;
	for (uint32_t i = 0; i < MANY; i++)
		CU_ASSERT_EQUAL(remote_post_recv(&peer, i, i * 64 % 32768, ROOM), 0);
	for (uint32_t i = 0; i < MANY; i++) {
		CU_ASSERT_EQUAL(post_send(&here, i, 0, i + 1, IBV_SEND_SIGNALED), 0);
		CU_ASSERT_TRUE_FATAL(completes(here.scq, i, IBV_WC_SUCCESS, NULL));
	}
	for (uint32_t i = 0; i < MANY; i++) {
		CU_ASSERT_TRUE_FATAL(remote_completes_recv(&peer, i, IBV_WC_SUCCESS, &length));
		CU_ASSERT_EQUAL(length, GRH_SIZE + i + 1);
	}
	remote_close(&peer);
	side_close(&here);
}

/* More datagrams than any buffer holds: some are lost, the others arrive whole and in order. */
static void flood(void)
{
	enum { MANY = 6000 };
	struct remote peer;
	struct side here;
	uint32_t length, came = 0;

	if (!remote_open(&peer, &here, &ud))
		return;
	for (uint32_t i = 0; i < 100; i++)
		CU_ASSERT_EQUAL(remote_post_recv(&peer, i, 0, ROOM), 0);
	pattern_fill(here.buffer, 1024, 1);
	for (uint32_t i = 0; i < MANY; i++) {
		CU_ASSERT_EQUAL(post_send(&here, i, 0, 1024, IBV_SEND_SIGNALED), 0);
		CU_ASSERT_TRUE_FATAL(completes(here.scq, i, IBV_WC_SUCCESS, NULL));
	}
	while (came < 100 && remote_completes_recv(&peer, came, IBV_WC_SUCCESS, &length))
		came++;
	CU_ASSERT_EQUAL(came, 100);
	CU_ASSERT_TRUE(remote_holds(&peer, GRH_SIZE, 1024, 1));
	CU_ASSERT_EQUAL(state_of(here.qp), IBV_QPS_RTS);
	remote_close(&peer);
	side_close(&here);
}

static void sleeper_is_woken(void)
{
	struct remote peer;
	struct side here;

	if (!remote_open(&peer, &here, &ud))
		return;
	for (uint64_t i = 0; i < 20; i++) {
		CU_ASSERT_EQUAL(remote_post_recv(&peer, i, 0, ROOM), 0);
		CU_ASSERT_TRUE(remote_arm(&peer));
		CU_ASSERT_EQUAL(post_send(&here, i, 0, 8, IBV_SEND_SIGNALED), 0);
		CU_ASSERT_TRUE(completes(here.scq, i, IBV_WC_SUCCESS, NULL));
		CU_ASSERT_TRUE(remote_event_comes(&peer));
		CU_ASSERT_TRUE(remote_completes_recv(&peer, i, IBV_WC_SUCCESS, NULL));
	}
	remote_close(&peer);
	side_close(&here);
}

static void shared_queue(void)
{
	struct pair_options options = { .type = IBV_QPT_UD, .srq_wr = 8 };
	struct remote peer;
	struct side here;

	if (!remote_open(&peer, &here, &options))
		return;
	CU_ASSERT_TRUE(remote_srq_limit(&peer, 2));
	for (uint64_t i = 0; i < 4; i++)
		CU_ASSERT_EQUAL(remote_post_srq(&peer, i, (uint32_t)i * 2048, ROOM), 0);
	for (uint64_t i = 0; i < 4; i++) {
		pattern_fill(here.buffer, 500, (unsigned)i);
		CU_ASSERT_EQUAL(post_send(&here, i, 0, 500, IBV_SEND_SIGNALED), 0);
		CU_ASSERT_TRUE(completes(here.scq, i, IBV_WC_SUCCESS, NULL));
	}
	for (uint64_t i = 0; i < 4; i++) {
		CU_ASSERT_TRUE(remote_completes_recv(&peer, i, IBV_WC_SUCCESS, NULL));
		CU_ASSERT_TRUE(
			remote_holds(&peer, (uint32_t)i * 2048 + GRH_SIZE, 500, (unsigned)i));
	}
	CU_ASSERT_TRUE(remote_async_is(&peer, IBV_EVENT_SRQ_LIMIT_REACHED, true));
	CU_ASSERT_EQUAL(post_send(&here, 9, 0, 8, IBV_SEND_SIGNALED), 0); /* lost */
	CU_ASSERT_TRUE(completes(here.scq, 9, IBV_WC_SUCCESS, NULL));
	remote_close(&peer);
	side_close(&here);
}

static bool grow(struct side *side, uint32_t entries)
{
	struct ibv_srq_attr attr = { .max_wr = entries };

	return !ibv_modify_srq(side->srq, &attr, IBV_SRQ_MAX_WR);
}

static void shared_queue_grows(void)
{
	struct pair_options options = { .type = IBV_QPT_UD, .srq_wr = 4, .send_wr = 64 };
	struct pair pair;
	uint64_t i;

	if (!(device_attr.device_cap_flags & IBV_DEVICE_SRQ_RESIZE)) {
		skip("shared receive queues keep their size");
		return;
	}
	if (!pair_open(&pair, &options))
		return;
	for (i = 0; i < 4; i++)
		CU_ASSERT_EQUAL(post_srq(&pair.b, i, (uint32_t)i * 1100, ROOM), 0);
	for (i = 0; i < 2; i++)
		CU_ASSERT_EQUAL(post_send(&pair.a, i, 0, 8, 0), 0);
	CU_ASSERT_TRUE(grow(&pair.b, 40));
	for (i = 4; i < 30; i++)
		CU_ASSERT_EQUAL(post_srq(&pair.b, i, (uint32_t)i * 1100, ROOM), 0);
	for (i = 2; i < 30; i++)
		CU_ASSERT_EQUAL(post_send(&pair.a, i, 0, 8, 0), 0);
	for (i = 0; i < 30; i++)
		CU_ASSERT_TRUE(completes(pair.b.rcq, i, IBV_WC_SUCCESS, NULL));
	pair_close(&pair);
}

/* So many queue pairs on one completion queue that one poll does not cover all. */
static void many_queue_pairs(void)
{
	enum { MANY = 20 };
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_UD,
		.cap = { .max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1 },
	};
	struct side sides[MANY], here;

	CU_ASSERT_TRUE_FATAL(side_open(&here, &ud, false));
	CU_ASSERT_TRUE_FATAL(side_connect(&here, 0, &ud));
	init.send_cq = init.recv_cq = here.rcq;
	for (int i = 0; i < MANY; i++) {
		sides[i] = here;
		sides[i].qp = ibv_create_qp(here.pd, &init);
		CU_ASSERT_PTR_NOT_NULL_FATAL(sides[i].qp);
		CU_ASSERT_TRUE_FATAL(side_connect(&sides[i], 0, &ud));
		CU_ASSERT_EQUAL(post_recv(&sides[i], (uint64_t)i, (uint32_t)i * 2048, ROOM), 0);
	}
	for (int i = MANY - 1; i >= 0; i--) {
		here.peer = sides[i].qp->qp_num;
		CU_ASSERT_EQUAL(post_send(&here, 1, 0, 8, 0), 0);
		CU_ASSERT_TRUE(completes(here.rcq, (uint64_t)i, IBV_WC_SUCCESS, NULL));
	}
	for (int i = 0; i < MANY; i++) {
		CU_ASSERT_EQUAL(ibv_destroy_qp(sides[i].qp), 0);
		CU_ASSERT_EQUAL(ibv_destroy_ah(sides[i].ah), 0);
	}
	side_close(&here);
}

/* One process receives from several at once. */
static void several_senders(void)
{
	enum { EACH = 60, SENDERS = 3 };
	struct remote peer[SENDERS];
	struct side side[SENDERS];
	unsigned came[SENDERS] = { 0 };

	for (int s = 0; s < SENDERS; s++)
		if (!remote_open(&peer[s], &side[s], &ud))
			return;
	for (uint32_t i = 0; i < EACH; i++)
		for (int s = 0; s < SENDERS; s++) {
			CU_ASSERT_EQUAL(post_recv(&side[s], i, (uint32_t)s * 2048, ROOM), 0);
			CU_ASSERT_EQUAL(remote_post_send(&peer[s], i, 0, 600), 0);
		}
	for (uint32_t i = 0; i < EACH; i++)
		for (int s = SENDERS - 1; s >= 0; s--)
			came[s] += completes(side[s].rcq, i, IBV_WC_SUCCESS, NULL);
	for (int s = 0; s < SENDERS; s++)
		CU_ASSERT_EQUAL(came[s], EACH);
	for (int s = 0; s < SENDERS; s++) {
		remote_close(&peer[s]);
		side_close(&side[s]);
	}
}

static void death_loses(void)
{
	struct remote peer, next;
	struct side here, other;

	if (!remote_open(&peer, &here, &ud))
		return;
	CU_ASSERT_EQUAL(remote_post_recv(&peer, 1, 0, ROOM), 0);
	CU_ASSERT_EQUAL(post_send(&here, 1, 0, 8, IBV_SEND_SIGNALED), 0);
	CU_ASSERT_TRUE(completes(here.scq, 1, IBV_WC_SUCCESS, NULL));
	remote_kill(&peer);
	for (uint64_t i = 2; i < 10; i++) {
		CU_ASSERT_EQUAL(post_send(&here, i, 0, 1024, IBV_SEND_SIGNALED), 0);
		CU_ASSERT_TRUE(completes(here.scq, i, IBV_WC_SUCCESS, NULL));
	}
	CU_ASSERT_EQUAL(state_of(here.qp), IBV_QPS_RTS);
	/* the same queue pair reaches a process that starts later */
	if (remote_open(&next, &other, &ud)) {
		here.peer = other.peer;
		CU_ASSERT_EQUAL(remote_post_recv(&next, 5, 0, ROOM), 0);
		CU_ASSERT_EQUAL(post_send(&here, 20, 0, 8, IBV_SEND_SIGNALED), 0);
		CU_ASSERT_TRUE(completes(here.scq, 20, IBV_WC_SUCCESS, NULL));
		CU_ASSERT_TRUE(remote_completes_recv(&next, 5, IBV_WC_SUCCESS, NULL));
		remote_close(&next);
		side_close(&other);
	}
	side_close(&here);
}

/* The first datagram arrives, because those that wait for a link to another host end with their process. */
static void sender_dies(void)
{
	struct remote peer;
	struct side here;

	if (!remote_open(&peer, &here, &ud))
		return;
	for (uint64_t i = 0; i < 4; i++) {
		CU_ASSERT_EQUAL(post_recv(&here, i, 0, ROOM), 0);
		CU_ASSERT_EQUAL(remote_post_send(&peer, i, 0, 8), 0);
		CU_ASSERT_TRUE(remote_completes_send(&peer, i, IBV_WC_SUCCESS));
		if (i == 0)
			CU_ASSERT_TRUE(completes(here.rcq, i, IBV_WC_SUCCESS, NULL));
	}
	remote_kill(&peer);
	for (uint64_t i = 1; i < 4; i++)
		CU_ASSERT_TRUE(completes(here.rcq, i, IBV_WC_SUCCESS, NULL));
	CU_ASSERT_EQUAL(state_of(here.qp), IBV_QPS_RTS);
	side_close(&here);
}

static const struct unit_test tests[] = {
	{ "the first datagram to a process waits for the link", first_one_arrives },
	{ "to another process and back", there_and_back },
	{ "as many as receives are posted, while the program there does nothing",
	  remote_does_nothing },
	{ "too many: some are lost, the sender goes on", flood },
	{ "a sleeper is woken", sleeper_is_woken },
	{ "datagrams into an SRQ, its limit", shared_queue },
	{ "an SRQ of datagrams is resized", shared_queue_grows },
	{ "many queue pairs on one CQ", many_queue_pairs },
	{ "several processes send at once", several_senders },
	{ "datagrams to a process that died are lost", death_loses },
	{ "datagrams of a process that died afterwards are delivered", sender_dies },
};

int main(int argc, char **argv)
{
	remote_main(argc, argv);
	return conform_open() ? unit_main("conform_ud_process", tests, COUNT(tests), argc, argv)
			      : 77;
}
