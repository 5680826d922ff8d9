/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Peers that are killed, stopped in a copy, or write nonsense: who is left goes on. */
#include <errno.h>
#include <infiniband/verbs.h>
#include "softverbs/srq.h"
#include "test/unit/node.h"

#define SIGNALED IBV_SEND_SIGNALED
#define SHARED	 32u
#define ROUNDS	 (PROCESS_TSAN ? 4u : 24u)

/* ---- senders on a shared receive queue ---- */

static const struct node_options sender_options = { .depth = 64, .memory = 1u << 20 };
static const struct node_options shared_options = {
	.srq = SHARED, .qps = 2, .memory = 4u << 20, .timeout = 8
};

/* Sends until killed: all kinds of payload. */
static int sender_child(int fd, void *arg)
{
	static const uint32_t lengths[] = { 8, 8, 48, 200, 3000, 8, 20000, 100000 };
	struct node node;
	struct ibv_wc wc;

	(void)arg;
	if (!node_open(&node, &sender_options) || !node_connect(&node, 0, 1, fd))
		return 1;
	for (uint32_t i = 0;; i++) {
		if (node_send(&node, 0, i, 0, lengths[i % 8], SIGNALED) || !node_poll(&node, &wc))
			return 2;
	}
}

/* Sends exactly what it is told to, one after the other. */
static int counting_child(int fd, void *arg)
{
	struct node node;
	struct ibv_wc wc;
	uint64_t count;

	(void)arg;
	if (!node_open(&node, &sender_options) || !node_connect(&node, 0, 1, fd))
		return 1;
	while (process_hear(fd, &count) && count) {
		for (uint64_t i = 0; i < count; i++)
			if (node_send(&node, 0, i, 0, 8, SIGNALED) || !node_poll(&node, &wc) ||
			    wc.status)
				return 2;
		process_say(fd, count);
	}
	return node_close(&node);
}

static int shared_post(struct node *node, uint64_t wr_id)
{
	return node_recv(node, 0, wr_id, (size_t)(wr_id % SHARED) * 100000, 100000);
}

/*
 * Takes what the doomed one sends until some number of messages came; then its life ends wherever
 * it is.
 */
static uint32_t receive_some(struct node *node, uint32_t count)
{
	uint32_t got = 0;
	struct ibv_wc wc;

	while (got < count && node_poll(node, &wc) && !wc.status) {
		got++;
		if (shared_post(node, wc.wr_id))
			break;
	}
	return got;
}

static bool slots_are_back(void *arg)
{
	struct node *node = arg;
	struct sv_srq *srq = srq_of(node->srq);
	struct ibv_wc wc;

	while (ibv_poll_cq(node->cq, 1, &wc) == 1)
		if (!wc.status)
			shared_post(node, wc.wr_id);
	return atomic_load(&srq->ro->posted) - atomic_load(&srq->rw->claim) == SHARED;
}

/* Every slot is posted again in the end: those in flight, those that died with their taker. */
static void shared_slots_survive(void)
{
	struct process doomed, other;
	struct node node;

	for (uint32_t round = 0; round < ROUNDS; round++) {
		uint64_t count = 3 * SHARED;

		CU_ASSERT_TRUE_FATAL(process_start(&doomed, sender_child, NULL));
		CU_ASSERT_TRUE_FATAL(process_start(&other, counting_child, NULL));
		CU_ASSERT_TRUE_FATAL(node_open(&node, &shared_options));
		for (uint64_t i = 0; i < SHARED; i++)
			CU_ASSERT_EQUAL(shared_post(&node, i), 0);
		CU_ASSERT_TRUE_FATAL(node_connect(&node, 0, 1, doomed.fd));
		CU_ASSERT_TRUE_FATAL(node_connect(&node, 1, 1, other.fd));
		CU_ASSERT_EQUAL(receive_some(&node, 20 + round * 7), 20 + round * 7);
		process_kill(&doomed);
		CU_ASSERT_TRUE(unit_wait_for(slots_are_back, &node, UNIT_PATIENCE));
		process_say(other.fd, count);
		CU_ASSERT_EQUAL(receive_some(&node, (uint32_t)count), count);
		CU_ASSERT_TRUE(process_hear(other.fd, &count));
		process_say(other.fd, 0);
		CU_ASSERT_EQUAL(process_end(&other), 0);
		CU_ASSERT_EQUAL(node_close(&node), 0);
	}
}

static bool is_linked(void *arg)
{
	return atomic_load(&((struct sv_qp *)arg)->peer);
}

/* The window between taking a slot and filling it, made as long as one likes. */
static void taken_slot_is_posted_again(void)
{
	struct process doomed;
	struct sv_srq *srq;
	struct node node;

	CU_ASSERT_TRUE_FATAL(process_start(&doomed, counting_child, NULL));
	CU_ASSERT_TRUE_FATAL(node_open(&node, &shared_options));
	CU_ASSERT_TRUE_FATAL(node_connect(&node, 0, 1, doomed.fd));
	CU_ASSERT_TRUE_FATAL(unit_wait_for(is_linked, qp_of(node.qp[0]), UNIT_PATIENCE));
	srq = srq_of(node.srq);
	for (uint64_t i = 0; i < SHARED; i++)
		CU_ASSERT_EQUAL(shared_post(&node, i), 0);
	/*
	 * as if the sender had just taken two: of one it wrote down which, of the other it did not
	 * get to
	 */
	qp_of(node.qp[0])->rw->intent = 1;
	qp_of(node.qp[0])->rw->held = 0;
	srq->rw->claim = 2;
	process_kill(&doomed);
	CU_ASSERT_TRUE(unit_wait_for(slots_are_back, &node, UNIT_PATIENCE));
	CU_ASSERT_EQUAL(node_close(&node), 0);
}

/* ---- a receiver dies ---- */

static int receiver_child(int fd, void *arg)
{
	struct node node;
	struct ibv_wc wc;

	(void)arg;
	if (!node_open(&node, &(struct node_options){ 0 }) || !node_connect(&node, 0, 1, fd))
		return 1;
	for (uint64_t i = 0;; i++)
		if (node_recv(&node, 0, i, 0, 100000) || !node_poll(&node, &wc))
			return 2;
}

static void receiver_dies(void)
{
	const struct node_options options = { .timeout = 10, .retry_cnt = 7 };

	for (uint32_t round = 0; round < ROUNDS; round++) {
		uint32_t sent = 0, ended = 0, failed = 0;
		struct process child;
		struct node node;
		struct ibv_wc wc;

		CU_ASSERT_TRUE_FATAL(process_start(&child, receiver_child, NULL));
		CU_ASSERT_TRUE_FATAL(node_open(&node, &options));
		CU_ASSERT_TRUE_FATAL(node_connect(&node, 0, 1, child.fd));
		for (; sent < 10 + round * 5; sent++, ended++) {
			CU_ASSERT_EQUAL(node_send(&node, 0, sent, 0, sent % 5 ? 8 : 100000,
						  SIGNALED),
					0);
			CU_ASSERT_TRUE(node_poll(&node, &wc) && !wc.status);
		}
		kill(child.pid, SIGKILL);
		while (!failed &&
		       node_send(&node, 0, sent, 0, sent % 5 ? 8 : 100000, SIGNALED) == 0) {
			sent++;
			if (!node_poll(&node, &wc))
				break;
			ended++;
			failed = wc.status;
		}
		CU_ASSERT_EQUAL(failed, IBV_WC_RETRY_EXC_ERR);
		CU_ASSERT_EQUAL(node_send(&node, 0, 7, 0, 8, 0), 0);
		CU_ASSERT_TRUE(node_poll(&node, &wc));
		CU_ASSERT_EQUAL(wc.status, IBV_WC_WR_FLUSH_ERR);
		process_kill(&child);
		CU_ASSERT_EQUAL(node_close(&node), 0);
	}
}

/* ---- a peer stopped or killed inside a window ---- */

static int writer_child(int fd, void *arg)
{
	uint64_t address, key;
	struct node node;
	struct ibv_wc wc;

	(void)arg;
	if (!node_open(&node, &(struct node_options){ 0 }) || !node_connect(&node, 0, 1, fd) ||
	    !process_hear(fd, &address) || !process_hear(fd, &key))
		return 1;
	memset(node.memory, 1, 1 << 20);
	for (uint32_t i = 0;; i++) {
		struct ibv_sge sge = node_sge(&node, 0, 1u << 19);
		struct ibv_send_wr wr = {
			.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE,
			.send_flags = SIGNALED,
			.wr.rdma = { address, (uint32_t)key },
		}, *bad;

		if (ibv_post_send(node.qp[0], &wr, &bad) || !node_poll(&node, &wc))
			return 2;
		if (wc.status) /* the key has gone */
			break;
		if (!i)
			process_say(fd, 0);
	}
	process_say(fd, wc.status);
	process_sync(fd);
	return node_close(&node);
}

/* What deregistering promises: from its return on nothing is written. */
static void deregistered_memory_is_still(void)
{
	for (uint32_t round = 0; round < ROUNDS; round++) {
		uint64_t status = 0;
		struct process child;
		struct node node;

		CU_ASSERT_TRUE_FATAL(process_start(&child, writer_child, NULL));
		CU_ASSERT_TRUE_FATAL(node_open(&node, &(struct node_options){ 0 }));
		CU_ASSERT_TRUE_FATAL(node_connect(&node, 0, 1, child.fd));
		process_say(child.fd, (uintptr_t)node.memory);
		process_say(child.fd, node.mr->rkey);
		CU_ASSERT_TRUE_FATAL(process_sync(child.fd));
		CU_ASSERT_EQUAL(ibv_dereg_mr(node.mr), 0);
		node.mr = NULL;
		memset(node.memory, 2, 1u << 19);
		CU_ASSERT_TRUE(process_hear(child.fd, &status));
		CU_ASSERT_EQUAL(status, IBV_WC_REM_ACCESS_ERR);
		for (uint32_t i = 0; i < 1u << 19; i++) {
			if (node.memory[i] != 2) {
				CU_FAIL("written after it was deregistered");
				break;
			}
		}
		process_say(child.fd, 0);
		CU_ASSERT_EQUAL(process_end(&child), 0);
		CU_ASSERT_EQUAL(node_close(&node), 0);
	}
}

/* Killed wherever it is, mostly in a copy: deregistering and destroying do not wait for it. */
static void killed_writer_holds_nothing_up(void)
{
	for (uint32_t round = 0; round < ROUNDS; round++) {
		struct process child;
		struct node node;
		siginfo_t ended = { 0 };

		CU_ASSERT_TRUE_FATAL(process_start(&child, writer_child, NULL));
		CU_ASSERT_TRUE_FATAL(node_open(&node, &(struct node_options){ 0 }));
		CU_ASSERT_TRUE_FATAL(node_connect(&node, 0, 1, child.fd));
		process_say(child.fd, (uintptr_t)node.memory);
		process_say(child.fd, node.mr->rkey);
		CU_ASSERT_TRUE_FATAL(process_sync(child.fd));
		kill(child.pid, SIGKILL);
		CU_ASSERT_EQUAL(ibv_dereg_mr(node.mr), 0);
		node.mr = NULL;
		/* a living process would have been given up after two seconds; this one may die slowly */
		CU_ASSERT_EQUAL(waitid(P_PID, (id_t)child.pid, &ended, WEXITED | WNOHANG | WNOWAIT),
				0);
		CU_ASSERT(!ended.si_pid || qp_state(node.qp[0]) != IBV_QPS_ERR);
		CU_ASSERT_EQUAL(node_close(&node), 0);
		process_kill(&child);
	}
}

/*
 * A window that never closes, of a living process: given up after two seconds, and its memory is
 * not used again.
 */
static void stopped_peer_is_given_up(void)
{
	struct process child;
	struct node node;
	uint64_t begin;

	CU_ASSERT_TRUE_FATAL(process_start(&child, counting_child, NULL));
	CU_ASSERT_TRUE_FATAL(node_open(&node, &(struct node_options){ 0 }));
	CU_ASSERT_TRUE_FATAL(node_connect(&node, 0, 1, child.fd));
	qp_of(node.qp[0])->rw->busy = 1;
	begin = clock_now();
	CU_ASSERT_EQUAL(ibv_dereg_mr(node.mr), 0);
	node.mr = NULL;
	CU_ASSERT(clock_now() - begin < UNIT_PATIENCE * NSEC_PER_MSEC);
	CU_ASSERT_EQUAL(qp_state(node.qp[0]), IBV_QPS_ERR);
	CU_ASSERT_EQUAL(qp_to(node.qp[0], IBV_QPS_RESET), 0);
	CU_ASSERT_EQUAL(qp_to_init(node.qp[0]), 0);
	process_kill(&child);
	CU_ASSERT_EQUAL(node_close(&node), 0);
}

/* ---- nonsense ---- */

#define VICTIMS 12u

struct noise {
	uint32_t state;
};

static uint32_t noise(struct noise *noise)
{
	noise->state ^= noise->state << 13;
	noise->state ^= noise->state >> 17;
	noise->state ^= noise->state << 5;
	return noise->state;
}

static void scribble(void *at, uint32_t word, uint32_t value)
{
	atomic_store_explicit((_Atomic(uint32_t) *)at + word, value, memory_order_relaxed);
}

/*
 * A peer gone mad: it sends, and writes at random wherever it can write, most of all where its
 * victim looks.
 */
static int mad_child(int fd, void *arg)
{
	struct noise n = { 2463534242u + *(uint32_t *)arg };
	struct sv_qp *qp;
	struct node node;
	struct ibv_wc wc;

	if (!node_open(&node,
		       &(struct node_options){ .qps = VICTIMS, .timeout = 5, .retry_cnt = 1 }) ||
	    !node_connect(&node, 0, VICTIMS, fd))
		return 1;
	qp = qp_of(node.qp[0]);
	if (!unit_wait_for(is_linked, qp, UNIT_PATIENCE))
		return 2;
	for (uint32_t i = 0; i < VICTIMS * 4; i++)
		node_send(&node, i % VICTIMS, i, 0, i % 3 * 30, SIGNALED);
	for (uint32_t i = 0; i < 20000; i++) {
		struct sv_tx *tx = &qp_of(node.qp[noise(&n) % VICTIMS])->tx;
		uint32_t value = noise(&n) & (noise(&n) % 2 ? ~0u : 0xffu);

		switch (noise(&n) % 4) {
		case 0:
			if (tx->landing)
				scribble(&tx->landing[noise(&n) & tx->mask], noise(&n) % 4, value);
			break;
		case 1:
			if (tx->rw)
				scribble(tx->rw, noise(&n) % 32, value);
			break;
		case 2:
			if (tx->cq)
				scribble(tx->cq, noise(&n) % 16, value);
			break;
		default: scribble(qp->tx.peer->rw, noise(&n) % (sizeof(struct sv_rw) / 4), value);
		}
		if (i % 64 == 0) {
			node_send(&node, i / 64 % VICTIMS, i, 0, noise(&n) % 5000, SIGNALED);
			peer_ring(qp->tx.peer);
		}
		while (ibv_poll_cq(node.cq, 1, &wc) == 1)
			;
	}
	process_say(fd, 0);
	process_sync(fd);
	return 0; /* and leaves without a word */
}

static void mad_peer(uint32_t seed, uint32_t srq)
{
	struct process child;
	uint64_t deadline;
	struct node node;
	struct ibv_wc wc;
	int n;

	CU_ASSERT_TRUE_FATAL(process_start(&child, mad_child, &seed));
	CU_ASSERT_TRUE_FATAL(
		node_open(&node,
			  &(struct node_options){ .qps = VICTIMS, .srq = srq, .channel = true }));
	CU_ASSERT_TRUE_FATAL(node_connect(&node, 0, VICTIMS, child.fd));
	deadline = clock_now() + UNIT_PATIENCE * NSEC_PER_MSEC;
	for (uint32_t i = 0; clock_now() < deadline; i++) {
		struct pollfd poll_fd = { .fd = child.fd, .events = POLLIN };

		node_recv(&node, i % VICTIMS, i, i % 64 * 4096, 4096);
		node_send(&node, i % VICTIMS, i, 0, 8, SIGNALED);
		ibv_req_notify_cq(node.cq, 0);
		n = ibv_poll_cq(node.cq, 1, &wc);
		if (n == 1 && wc.byte_len > 1u << 20 && !wc.status && wc.opcode == IBV_WC_RECV)
			CU_FAIL("a length that cannot be");
		if (!(i % 64) && poll(&poll_fd, 1, 0))
			break;
	}
	process_say(child.fd, 0);
	CU_ASSERT_EQUAL(process_end(&child), 0);
	CU_ASSERT_EQUAL(node_close(&node), 0);
}

static void nonsense_costs_the_connection(void)
{
	for (uint32_t seed = 1; seed <= ROUNDS; seed++)
		mad_peer(seed, 0);
}

static void nonsense_on_a_shared_queue(void)
{
	for (uint32_t seed = 1; seed <= ROUNDS; seed++)
		mad_peer(1000 + seed, 64);
}

static const struct unit_test tests[] = {
	{ "B.14 a killed sender takes no shared receive along", shared_slots_survive },
	{ "C.5 a slot taken and not filled is posted again", taken_slot_is_posted_again },
	{ "B.4 a killed receiver: RETRY_EXC_ERR, then flushes", receiver_dies },
	{ "B.9 nothing is written after ibv_dereg_mr", deregistered_memory_is_still },
	{ "B.14 a killed writer holds nothing up", killed_writer_holds_nothing_up },
	{ "C.6 a stopped peer is given up", stopped_peer_is_given_up },
	{ "C.10 nonsense from a peer costs its connection", nonsense_costs_the_connection },
	{ "C.10 nonsense on a shared receive queue", nonsense_on_a_shared_queue },
};

UNIT_MAIN("softverbs_death", tests)
