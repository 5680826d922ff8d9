/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * Peers that are killed, stopped in a copy, or write malformed messages: the remaining processes
 * continue.
 */
#include <errno.h>
#include <infiniband/verbs.h>
#include "softverbs/object/srq.h"
#include "test/unit/node.h"

#define SIGNALED IBV_SEND_SIGNALED
#define SHARED	 32u
#define ROUNDS	 (PROCESS_TSAN ? 4u : 24u)

/* ---- senders on a shared receive queue ---- */

static const struct node_options sender_options = { .depth = 64, .memory = 1u << 20 };
static const struct node_options shared_options = {
	.srq = SHARED, .qps = 2, .memory = 4u << 20, .timeout = 8
};

/* Sends all kinds of payload until it is killed. */
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

/* Sends the messages that the test asks for, one after the other. */
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
 * Receives from a sender until some number of messages have arrived, then kills it, at any point of
 * its work.
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
		shared_post(node, wc.wr_id);
	return atomic_load(&srq->by_owner->posted) - atomic_load(&srq->by_peers->claim) == SHARED;
}

/*
 * In the end every slot is posted again: those in flight, and those that a killed sender had taken.
 */
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

/* Prolongs the interval between taking a slot and filling it. */
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
	 * the state just after a sender took two slots: one is recorded in its intent, the other is
	 * not recorded yet
	 */
	qp_of(node.qp[0])->by_peers->intent = 1;
	qp_of(node.qp[0])->by_peers->held = 0;
	srq->by_peers->claim = 2;
	process_kill(&doomed);
	CU_ASSERT_TRUE(unit_wait_for(slots_are_back, &node, UNIT_PATIENCE));
	CU_ASSERT_EQUAL(node_close(&node), 0);
}

/* Links a sender to the first of two QPs on one SRQ, with all slots posted. */
static bool shared_rig(struct process *sender, struct node *node)
{
	CU_ASSERT_TRUE_FATAL(process_start(sender, counting_child, NULL));
	CU_ASSERT_TRUE_FATAL(node_open(node, &shared_options));
	CU_ASSERT_TRUE_FATAL(node_connect(node, 0, 1, sender->fd));
	CU_ASSERT_TRUE_FATAL(unit_wait_for(is_linked, qp_of(node->qp[0]), UNIT_PATIENCE));
	for (uint64_t i = 0; i < SHARED; i++)
		CU_ASSERT_EQUAL(shared_post(node, i), 0);
	return true;
}

/* The state after the sender has taken two slots and begun to fill the first. */
static void shared_take(struct node *node)
{
	struct sv_srq *srq = srq_of(node->srq);

	qp_of(node->qp[0])->by_peers->intent = 1;
	qp_of(node->qp[0])->by_peers->held = post_slot(wq_entry(&srq->wq, 0)) + 1;
	srq->by_peers->claim = 2;
}

static void flush_comes(struct node *node)
{
	struct ibv_wc wc = { 0 };

	CU_ASSERT_TRUE(node_poll(node, &wc));
	CU_ASSERT_EQUAL(wc.status, IBV_WC_WR_FLUSH_ERR);
	CU_ASSERT_EQUAL(wc.wr_id, 0);
	CU_ASSERT_EQUAL(wc.qp_num, node->qp[0]->qp_num);
	CU_ASSERT_EQUAL(sv_qp_state(node->qp[0]), IBV_QPS_ERR);
	CU_ASSERT_EQUAL(shared_post(node, 0), 0);
	CU_ASSERT_TRUE(unit_wait_for(slots_are_back, node, UNIT_PATIENCE));
}

/*
 * A slot that was partly filled cannot be posted again: it is flushed, and the consumer gets its
 * completion.
 */
static void half_written_slot_is_flushed(void)
{
	struct process doomed;
	struct node node;

	shared_rig(&doomed, &node);
	shared_take(&node);
	process_kill(&doomed);
	flush_comes(&node);
	CU_ASSERT_EQUAL(node_close(&node), 0);
}

/* The flush has completed when ibv_modify_qp returns, before the last-WQE event. */
static void failed_qp_flushes(uint32_t other_intent)
{
	struct process sender;
	struct ibv_wc wc = { 0 };
	struct node node;

	shared_rig(&sender, &node);
	shared_take(&node);
	qp_of(node.qp[1])->by_peers->intent = other_intent;
	CU_ASSERT_EQUAL(qp_to(node.qp[0], IBV_QPS_ERR), 0);
	CU_ASSERT_EQUAL(ibv_poll_cq(node.cq, 1, &wc), 1);
	CU_ASSERT_EQUAL(wc.status, IBV_WC_WR_FLUSH_ERR);
	CU_ASSERT_EQUAL(wc.wr_id, 0);
	CU_ASSERT_EQUAL(shared_post(&node, 0), 0);
	qp_of(node.qp[1])->by_peers->intent = 0;
	CU_ASSERT_TRUE(unit_wait_for(slots_are_back, &node, UNIT_PATIENCE));
	process_kill(&sender);
	CU_ASSERT_EQUAL(node_close(&node), 0);
}

static void slot_of_a_failed_qp_is_flushed(void)
{
	failed_qp_flushes(0);
}

/* The search does not wait for another sender, which is alive and about to claim a slot. */
static void live_sender_does_not_delay_a_flush(void)
{
	failed_qp_flushes(3);
}

/*
 * The slot is claimed but not yet written; only the intent says which queue pair was about to take
 * it.
 */
static void slot_of_a_destroyed_qp_is_back(void)
{
	struct process doomed;
	struct node node;

	shared_rig(&doomed, &node);
	qp_of(node.qp[0])->by_peers->intent = 1;
	srq_of(node.srq)->by_peers->claim = 1;
	CU_ASSERT_EQUAL(ibv_destroy_qp(node.qp[0]), 0);
	node.qp[0] = NULL;
	process_kill(&doomed);
	CU_ASSERT_TRUE(unit_wait_for(slots_are_back, &node, UNIT_PATIENCE));
	CU_ASSERT_EQUAL(node_close(&node), 0);
}

/* ---- a sender dies between filling a slot and notifying the receiver's CQ ---- */

#define COLD (CQ_HOT + 2) /* so many QPs that a poll reads only marked ones */

/* The state of a sender that has not yet marked its QP, nor made the event of an armed CQ. */
static void mark_is_missing(struct node *node, uint32_t cold)
{
	struct cq_ready_by_peers *ready = cq_of(node->cq)->many.ready;

	CU_ASSERT_FALSE(cq_of(node->cq)->many.is_hot[cold / 64] >> cold % 64 & 1);
	atomic_fetch_and(&ready->word[cold / 64], ~(1ull << cold % 64));
	atomic_store(&ready->summary, 0);
}

static void unmarked_message_is_found(uint32_t srq, bool fails)
{
	struct node_options options = { .srq = srq, .qps = COLD, .channel = true };
	uint64_t count = 1;
	struct process doomed;
	struct ibv_wc wc = { 0 };
	struct node node;
	struct pollfd poll_fd = { .events = POLLIN };

	CU_ASSERT_TRUE_FATAL(process_start(&doomed, counting_child, NULL));
	CU_ASSERT_TRUE_FATAL(node_open(&node, &options));
	CU_ASSERT_TRUE_FATAL(node_connect(&node, COLD - 1, 1, doomed.fd));
	CU_ASSERT_TRUE_FATAL(unit_wait_for(is_linked, qp_of(node.qp[COLD - 1]), UNIT_PATIENCE));
	CU_ASSERT_EQUAL(node_recv(&node, COLD - 1, 7, 0, 100), 0);
	process_say(doomed.fd, count);
	CU_ASSERT_TRUE(process_hear(doomed.fd, &count));
	mark_is_missing(&node, qp_of(node.qp[COLD - 1])->index);
	CU_ASSERT_EQUAL(ibv_poll_cq(node.cq, 1, &wc), 0);
	CU_ASSERT_EQUAL(ibv_req_notify_cq(node.cq, 0), 0);
	if (fails) {
		CU_ASSERT_EQUAL(qp_to(node.qp[COLD - 1], IBV_QPS_ERR), 0);
		CU_ASSERT_EQUAL(ibv_poll_cq(node.cq, 1, &wc), 1);
		process_kill(&doomed);
	} else {
		process_kill(&doomed);
		poll_fd.fd = node.channel->fd;
		CU_ASSERT_EQUAL(poll(&poll_fd, 1, UNIT_PATIENCE), 1);
		CU_ASSERT_TRUE(node_poll(&node, &wc));
	}
	CU_ASSERT_EQUAL(wc.status, IBV_WC_SUCCESS);
	CU_ASSERT_EQUAL(wc.wr_id, 7);
	CU_ASSERT_EQUAL(node_close(&node), 0);
}

static void message_without_a_word(void)
{
	unmarked_message_is_found(0, false);
	unmarked_message_is_found(SHARED, false);
	unmarked_message_is_found(0, true);
	unmarked_message_is_found(SHARED, true);
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
		CU_ASSERT_EQUAL(ended, sent);
		CU_ASSERT_EQUAL(node_send(&node, 0, 7, 0, 8, 0), 0);
		CU_ASSERT_TRUE(node_poll(&node, &wc));
		CU_ASSERT_EQUAL(wc.status, IBV_WC_WR_FLUSH_ERR);
		process_kill(&child);
		CU_ASSERT_EQUAL(node_close(&node), 0);
	}
}

/* ---- a peer stopped or killed during a copy ---- */

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
		if (wc.status) /* the key is invalid now */
			break;
		if (!i)
			process_say(fd, 0);
	}
	process_say(fd, wc.status);
	process_sync(fd);
	return node_close(&node);
}

/* After ibv_dereg_mr returns, no peer writes to the memory. */
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

/* Killed at any point, mostly in a copy: deregistering and destroying do not wait for it. */
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
		/*
		 * a living process is given up after two seconds; a killed one may take long to
		 * exit
		 */
		CU_ASSERT_EQUAL(waitid(P_PID, (id_t)child.pid, &ended, WEXITED | WNOHANG | WNOWAIT),
				0);
		CU_ASSERT(!ended.si_pid || sv_qp_state(node.qp[0]) != IBV_QPS_ERR);
		CU_ASSERT_EQUAL(node_close(&node), 0);
		process_kill(&child);
	}
}

/*
 * A living process that stays in a copy is given up after two seconds, and its memory is not used
 * again.
 */
static void stopped_peer_is_given_up(void)
{
	struct process child;
	struct node node;
	uint64_t begin;

	CU_ASSERT_TRUE_FATAL(process_start(&child, counting_child, NULL));
	CU_ASSERT_TRUE_FATAL(node_open(&node, &(struct node_options){ 0 }));
	CU_ASSERT_TRUE_FATAL(node_connect(&node, 0, 1, child.fd));
	qp_of(node.qp[0])->by_peers->busy = 1;
	begin = clock_now();
	CU_ASSERT_EQUAL(ibv_dereg_mr(node.mr), 0);
	node.mr = NULL;
	CU_ASSERT(clock_now() - begin < UNIT_PATIENCE * NSEC_PER_MSEC);
	CU_ASSERT_EQUAL(sv_qp_state(node.qp[0]), IBV_QPS_ERR);
	CU_ASSERT_EQUAL(qp_to(node.qp[0], IBV_QPS_RESET), 0);
	CU_ASSERT_EQUAL(qp_to_init(node.qp[0]), 0);
	process_kill(&child);
	CU_ASSERT_EQUAL(node_close(&node), 0);
}

/* ---- malformed messages ---- */

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
 * A peer that sends while it writes random data to all memory that it can write, mostly where its
 * victim reads.
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
		struct sv_remote_rq *remote = &qp_of(node.qp[noise(&n) % VICTIMS])->remote_rq;
		uint32_t value = noise(&n) & (noise(&n) % 2 ? ~0u : 0xffu);

		switch (noise(&n) % 4) {
		case 0:
			if (remote->rx_slot)
				scribble(&remote->rx_slot[noise(&n) & remote->mask], noise(&n) % 4,
					 value);
			break;
		case 1:
			if (remote->by_peers)
				scribble(remote->by_peers, noise(&n) % 32, value);
			break;
		case 2:
			if (remote->cq)
				scribble(remote->cq, noise(&n) % 16, value);
			break;
		default:
			scribble(qp->remote_rq.peer->by_peers,
				 noise(&n) % (sizeof(struct area_by_peers) / 4), value);
		}
		if (i % 64 == 0) {
			node_send(&node, i / 64 % VICTIMS, i, 0, noise(&n) % 5000, SIGNALED);
			sv_peer_ring(qp->remote_rq.peer);
		}
		while (ibv_poll_cq(node.cq, 1, &wc) == 1)
			;
	}
	process_say(fd, 0);
	process_sync(fd);
	return 0; /* exits without disconnecting */
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
	{ "no receive of an SRQ is lost with a killed sender", shared_slots_survive },
	{ "a slot that was taken and not filled is posted again", taken_slot_is_posted_again },
	{ "a slot that was partly filled is flushed", half_written_slot_is_flushed },
	{ "a partly filled slot is flushed when the QP fails, before its last event",
	  slot_of_a_failed_qp_is_flushed },
	{ "a live sender that is about to claim does not delay that flush",
	  live_sender_does_not_delay_a_flush },
	{ "a slot that a destroyed QP was about to take is posted again",
	  slot_of_a_destroyed_qp_is_back },
	{ "a message whose sender died before it notified the CQ is found",
	  message_without_a_word },
	{ "a killed receiver: RETRY_EXC_ERR, then flushes", receiver_dies },
	{ "nothing is written after ibv_dereg_mr", deregistered_memory_is_still },
	{ "a killed writer does not delay deregistering and destroying",
	  killed_writer_holds_nothing_up },
	{ "a stopped peer is given up", stopped_peer_is_given_up },
	{ "a peer's malformed messages break its connection only", nonsense_costs_the_connection },
	{ "a peer's malformed messages on an SRQ break its connection only",
	  nonsense_on_a_shared_queue },
};

UNIT_MAIN("softverbs_death", tests)
