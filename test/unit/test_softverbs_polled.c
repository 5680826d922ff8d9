/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* A CQ that is polled for long and then armed: senders stop looking at its arm word, and no wake-up is lost. */
#include <poll.h>
#include <sys/mman.h>
#include "softverbs/object/cq.h"
#include "test/unit/node.h"

#define ROUNDS 400u
#define POLLS  70000u /* more than after which senders need not look */

static const struct node_options options = { .channel = true };

static const struct cq_by_peers *shared_part(const struct node *node)
{
	return cq_of(node->cq)->by_peers;
}

static bool is_polled(const struct node *node)
{
	return atomic_load(&shared_part(node)->polled);
}

static _Atomic(uint32_t) *go; /* in memory of both processes: the rounds that have begun */

/* Waits up to two microseconds, and in each eighth round longer, so that the receiver sleeps. */
static void pass_time(uint32_t round, bool sends)
{
	uint32_t turns = sends && round % 8 == 7 ? 100000 : round * 2654435761u >> 22;

	for (volatile uint32_t i = 0; i < turns; i++)
		;
}

static bool has_begun(uint32_t round)
{
	uint64_t deadline = clock_now() + UNIT_PATIENCE * NSEC_PER_MSEC;

	while (atomic_load(go) <= round)
		if (clock_now() > deadline)
			return false;
	return true;
}

static int sender(int fd, void *arg)
{
	struct node node;
	struct ibv_wc wc;

	(void)arg;
	if (!node_open(&node, &options) || !node_connect(&node, 0, 1, fd))
		return 1;
	for (uint32_t round = 0; round < ROUNDS; round++) {
		if (!has_begun(round))
			return 2;
		pass_time(round, true);
		if (node_send(&node, 0, round, 0, 8, IBV_SEND_SIGNALED))
			return 3;
		if (!node_poll(&node, &wc) || wc.status)
			return 4;
	}
	process_sync(fd);
	return node_close(&node);
}

static void poll_for_long(struct node *node)
{
	struct ibv_wc wc;

	for (uint32_t i = 0; i < POLLS; i++)
		CU_ASSERT_EQUAL_FATAL(ibv_poll_cq(node->cq, 1, &wc), 0);
}

static void event_take(struct node *node)
{
	struct ibv_cq *cq;
	void *context;

	CU_ASSERT_EQUAL(ibv_get_cq_event(node->channel, &cq, &context), 0);
	ibv_ack_cq_events(cq, 1);
}

/*
 * Arms, polls and blocks, again after an event of an earlier arming: the sender may write it after the message was polled.
 * True if the channel woke this thread.
 */
static bool receive(struct node *node)
{
	struct pollfd poll_fd = { .fd = node->channel->fd, .events = POLLIN };
	bool woken = false;
	struct ibv_wc wc;

	for (;;) {
		CU_ASSERT_EQUAL_FATAL(ibv_req_notify_cq(node->cq, 0), 0);
		CU_ASSERT(!is_polled(node));
		if (ibv_poll_cq(node->cq, 1, &wc) == 1)
			break;
		CU_ASSERT_EQUAL_FATAL(poll(&poll_fd, 1, UNIT_PATIENCE), 1);
		event_take(node);
		woken = true;
	}
	CU_ASSERT(!wc.status && wc.opcode == IBV_WC_RECV);
	return woken;
}

static void no_wake_up_is_lost(void)
{
	struct process process;
	unsigned woken = 0, polled = 0;
	bool is_armed;
	struct node node;

	go = mmap(NULL, sizeof(*go), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	CU_ASSERT_FATAL(go != MAP_FAILED);
	CU_ASSERT_FATAL(process_start(&process, sender, NULL));
	CU_ASSERT_FATAL(node_open(&node, &options));
	CU_ASSERT_FATAL(node_connect(&node, 0, 1, process.fd));
	for (uint32_t round = 0; round < ROUNDS; round++) {
		CU_ASSERT_EQUAL_FATAL(node_recv(&node, 0, round, 0, 8), 0);
		/* A message would do that: the engine, which may rest, is not to be rung for the next one. */
		sv_cq_notify_arrived(cq_of(node.cq), qp_of(node.qp[0])->index);
		poll_for_long(&node);
		is_armed = atomic_load(&shared_part(&node)->arm) & ARM_TYPE; /* found by a poll */
		CU_ASSERT_FATAL(is_polled(&node) != is_armed);
		polled += is_polled(&node);
		atomic_store(go, round + 1);
		pass_time(round * 40503, false);
		woken += receive(&node);
	}
	CU_ASSERT(woken > 0 && polled > 0);
	process_say(process.fd, 1);
	CU_ASSERT_EQUAL(process_end(&process), 0);
	munmap((void *)(uintptr_t)go, sizeof(*go));
	CU_ASSERT_EQUAL(node_close(&node), 0);
}

/* Armed first, then polled for long: the event still comes. */
static void an_armed_cq_stays_armed(void)
{
	struct pollfd poll_fd = { .events = POLLIN };
	struct node node;

	CU_ASSERT_FATAL(node_open(&node, &options));
	CU_ASSERT_FATAL(node_qp_connect(node.qp[0], node.qp[0]->qp_num, &node.options));
	CU_ASSERT_EQUAL_FATAL(ibv_req_notify_cq(node.cq, 0), 0);
	poll_for_long(&node);
	CU_ASSERT(!is_polled(&node));
	CU_ASSERT_EQUAL_FATAL(node_recv(&node, 0, 1, 0, 8), 0);
	CU_ASSERT_EQUAL_FATAL(node_send(&node, 0, 2, 64, 8, 0), 0);
	poll_fd.fd = node.channel->fd;
	CU_ASSERT_EQUAL_FATAL(poll(&poll_fd, 1, UNIT_PATIENCE), 1);
	event_take(&node);
	CU_ASSERT_EQUAL(node_close(&node), 0);
}

static void short_polls_change_nothing(void)
{
	struct node node;
	struct ibv_wc wc;

	CU_ASSERT_FATAL(node_open(&node, &options));
	for (uint32_t i = 0; i < 1000; i++)
		CU_ASSERT_EQUAL_FATAL(ibv_poll_cq(node.cq, 1, &wc), 0);
	CU_ASSERT(!is_polled(&node));
	for (uint32_t round = 0; round < 100; round++) {
		for (uint32_t i = 0; i < 1000; i++)
			ibv_poll_cq(node.cq, 1, &wc);
		CU_ASSERT_EQUAL(ibv_req_notify_cq(node.cq, 0), 0);
	}
	CU_ASSERT(!is_polled(&node));
	CU_ASSERT_EQUAL(node_close(&node), 0);
}

static bool has_no_barrier(void)
{
	struct node node;
	bool expedited = node_open(&node, &options) && sv_area_own()->expedited;

	node_close(&node);
	return !expedited;
}

static const struct unit_test tests[] = {
	{ "no wake-up is lost when a CQ that was polled is armed", no_wake_up_is_lost },
	{ "a CQ that was armed first sends its event after long polls", an_armed_cq_stays_armed },
	{ "a CQ that is armed between polls is not taken for a polled one",
	  short_polls_change_nothing },
};

UNIT_MAIN_UNLESS(has_no_barrier(), "no membarrier(2) here", "softverbs_polled", tests)
