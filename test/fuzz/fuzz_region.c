/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * Fuzzes shared memory over a live connection: a faulty peer overwrites every field of every structure that it shares
 * with its victim, and keeps sending. The victim, built with the address sanitizer, must see only error completions and
 * broken connections; afterwards it connects to a correct peer and closes everything.
 *
 * FUZZ_SECONDS bounds the time, FUZZ_SEED is the first round's number.
 */
#include <stdio.h>
#include <infiniband/verbs.h>
#include "softverbs/object/srq.h"
#include "test/fuzz/mutate.h"
#include "test/unit/node.h"

#define QPS	  6u
#define MUTATIONS 6000u
#define SIGNALED  IBV_SEND_SIGNALED
#define ROUND_MAX (60 * NSEC_PER_SEC) /* seconds after which a round counts as hung */

struct round {
	uint32_t number;
	const char *copy; /* the peer's and the victim's SOFTVERBS_COPY */
	uint32_t srq;
};

static struct round round_of(uint32_t number)
{
	static const char *const ways[] = { "auto", "bounce", "memfd" };

	return (struct round){ number, ways[number % 3], number / 3 % 2 ? 64 : 0 };
}

/*
 * ---- targets: in the area that the victim writes, and in its own area, which the victim reads
 * ----
 */

#define FIELD(pointer) ((struct place){ (void *)(pointer), sizeof(*(pointer)) })

struct place {
	void *at;
	size_t size;
};

/* Picks a member of a structure, each with the same probability. */
#define MEMBER(noise, pointer, type) \
	(FIELD((_Atomic(uint32_t) *)(void *)(pointer) + noise_next(noise) % (sizeof(type) / 4)))

static struct place place_connection(struct noise *n, struct sv_remote_rq *remote)
{
	struct bounce_by_peers *bounce = NULL;
	uint64_t offset = remote->by_owner ? atomic_load(&remote->by_owner->bounce) : 0;

	if (!remote->by_peers || !remote->rx_slot)
		return (struct place){ 0 };
	if (offset)
		bounce = sv_area_at(remote->peer, HEAP_BY_PEERS, offset, sizeof(*bounce));
	switch (noise_next(n) % 12) {
	case 0: return FIELD(&remote->rx_slot[noise_next(n) & remote->mask].head);
	case 1: return FIELD(&remote->rx_slot[noise_next(n) & remote->mask].what);
	case 2: return FIELD(&remote->rx_slot[noise_next(n) & remote->mask].eager);
	case 3: return FIELD(&remote->by_peers->seq);
	case 4: return MEMBER(n, remote->by_peers, struct qp_by_peers);
	case 5: return MEMBER(n, remote->cq, struct cq_by_peers);
	case 6: return FIELD(&remote->rx_slot[remote->seq & remote->mask].head);
	case 7:
		if (remote->arrival)
			return FIELD(&remote->arrival[noise_next(n) & remote->mask]);
		return FIELD(&remote->by_peers->fault);
	case 8:
		if (remote->srq && remote->arrival)
			return MEMBER(n, remote->srq, struct srq_by_peers);
		return FIELD(&remote->by_peers->wait);
	case 9:
		if (bounce)
			return MEMBER(n, &bounce->ask[noise_next(n) % BOUNCE_PARTS],
				      struct bounce_ask);
		return FIELD(&remote->by_peers->busy);
	case 10:
		if (bounce)
			return MEMBER(n, &bounce->answer[noise_next(n) % BOUNCE_PARTS],
				      struct bounce_answer);
		return FIELD(&remote->by_peers->eager_prod);
	default:
		if (remote->eager)
			return (struct place){
				remote->eager + noise_next(n) % remote->eager_size / 16 * 16, 16
			};
		return FIELD(&remote->by_peers->seq);
	}
}

static struct place place_process(struct noise *n, struct area_by_peers *by_peers)
{
	switch (noise_next(n) % 6) {
	case 0: return MEMBER(n, &by_peers->attention, struct attention_by_peers);
	case 1: return FIELD(&by_peers->invalidated[noise_next(n) % 16]);
	case 2: return FIELD(&by_peers->invalidated[noise_next(n) % SV_REGIONS]);
	case 3: return MEMBER(n, &by_peers->qp[noise_next(n) % 16], struct qp_by_peers);
	case 4: return MEMBER(n, &by_peers->cq[noise_next(n) % 4], struct cq_by_peers);
	default:
		return FIELD((_Atomic(uint64_t) *)(void *)by_peers +
			     noise_next(n) % (sizeof(*by_peers) / 8));
	}
}

/* The structures that this process publishes: its queues, receives and keys. */
static struct place place_own(struct noise *n, struct sv_qp *qp)
{
	struct area_by_owner *by_owner = sv_area_own()->by_owner;
	struct sv_wq *wq = qp->srq ? &qp->srq->wq : &qp->rq;

	switch (noise_next(n) % 8) {
	case 0: return MEMBER(n, qp->by_owner, struct qp_by_owner);
	case 1: return FIELD(&wq->post[noise_next(n) & wq->post_mask]);
	case 2: return FIELD(&wq->post[wq->posted & wq->post_mask]);
	case 3: return FIELD(&wq->sge[noise_next(n) % ((wq->mask + 1) * wq->max_sge)]);
	case 4: return MEMBER(n, &by_owner->region[noise_next(n) % 8], struct region_entry);
	case 5: return MEMBER(n, &by_owner->rx[qp->index], struct rx_by_owner);
	case 6: return MEMBER(n, &by_owner->cq[noise_next(n) % 4], struct cq_by_owner);
	default: return MEMBER(n, &by_owner->srq[noise_next(n) % 4], struct srq_by_owner);
	}
}

/* ---- the faulty peer ---- */

static bool is_linked(void *arg)
{
	return atomic_load(&((struct sv_qp *)arg)->peer);
}

static void mad_post(struct noise *n, struct node *node)
{
	static const uint32_t lengths[] = { 0, 8, 48, 49, 3000, 4096, 20000, 70000 };
	uint32_t i = noise_next(n) % QPS;
	struct ibv_wc wc;

	node_send(node, i, 1, 0, lengths[noise_next(n) % 8], SIGNALED);
	node_recv(node, i, 2, 0, 100000);
	sv_peer_ring(atomic_load(&qp_of(node->qp[0])->peer));
	while (ibv_poll_cq(node->cq, 1, &wc) == 1)
		;
}

static int mad_child(int fd, void *arg)
{
	const struct round *round = arg;
	struct noise n = noise_from(round->number);
	struct node node;

	setenv("SOFTVERBS_COPY", round->copy, 1);
	if (!node_open(&node,
		       &(struct node_options){
			       .qps = QPS, .timeout = 5, .retry_cnt = 1, .srq = round->srq }) ||
	    !node_connect(&node, 0, QPS, fd))
		return 1;
	if (!unit_wait_for(is_linked, qp_of(node.qp[0]), UNIT_PATIENCE))
		return 2;
	for (uint32_t i = 0; i < QPS * 8; i++)
		mad_post(&n, &node);
	for (uint32_t i = 0; i < MUTATIONS; i++) {
		struct sv_qp *qp = qp_of(node.qp[noise_next(&n) % QPS]);
		uint32_t which = noise_next(&n) % 8;
		struct place place = which < 5 ? place_connection(&n, &qp->remote_rq)
				     : which < 7
					     ? place_own(&n, qp)
					     : place_process(&n, atomic_load(&qp->peer)->by_peers);

		if (place.at)
			mutate(&n, place.at, place.size);
		if (i % 16 == 0)
			mad_post(&n, &node);
	}
	process_say(fd, 0);
	process_sync(fd);
	/* its own tables are corrupted, so it cannot close an object */
	_exit(0);
}

/* ---- the victim ---- */

static const uint32_t victim_depth = 64;

static void victim_post(struct noise *n, struct node *node, uint32_t i)
{
	struct ibv_sge sge = node_sge(node, 0, noise_next(n) % 3 ? 8 : 60000);
	struct ibv_send_wr wr = {
		.wr_id = i, .sg_list = &sge, .num_sge = 1, .send_flags = SIGNALED,
		.opcode = noise_next(n) % 2 ? IBV_WR_SEND : IBV_WR_RDMA_WRITE,
		.wr.rdma = { noise_next(n), noise_next(n) << 8 },
	}, *bad;

	node_recv(node, i % QPS, i, i % victim_depth * 4096, 4096);
	if (noise_next(n) % 4 == 0)
		ibv_post_send(node->qp[i % QPS], &wr, &bad);
	if (noise_next(n) % 8 == 0)
		ibv_req_notify_cq(node->cq, noise_next(n) % 2);
}

static void victim_poll(struct node *node)
{
	struct ibv_wc wc[4];
	int count = ibv_poll_cq(node->cq, 4, wc);

	for (int i = 0; i < count; i++) {
		CU_ASSERT_TRUE(wc[i].status <= IBV_WC_GENERAL_ERR);
		if (wc[i].status == IBV_WC_SUCCESS && wc[i].opcode == IBV_WC_RECV &&
		    wc[i].byte_len > 4096)
			CU_FAIL("more bytes than the receive has");
	}
}

/* Does what programs do with a failed connection: some are reset, some are closed. */
static void victim_repair(struct noise *n, struct node *node)
{
	struct ibv_qp *qp = node->qp[noise_next(n) % QPS];

	if (sv_qp_state(qp) == IBV_QPS_ERR && noise_next(n) % 64 == 0)
		qp_to(qp, noise_next(n) % 2 ? IBV_QPS_RESET : IBV_QPS_ERR);
}

static int sane_child(int fd, void *arg)
{
	const struct round *round = arg;
	struct node node;
	struct ibv_wc wc;

	setenv("SOFTVERBS_COPY", round->copy, 1);
	if (!node_open(&node, &(struct node_options){ 0 }) || !node_connect(&node, 0, 1, fd))
		return 1;
	for (uint32_t i = 0; i < 40; i++)
		if (node_send(&node, 0, i, 0, i % 2 ? 8 : 4096, SIGNALED) ||
		    !node_poll(&node, &wc) || wc.status)
			return 2;
	process_say(fd, 0);
	process_sync(fd);
	return node_close(&node);
}

/* Makes a new connection beside the broken ones and their remains. */
static void victim_is_well(struct round *round)
{
	struct process child;
	struct node node;
	struct ibv_wc wc;

	CU_ASSERT_TRUE_FATAL(process_start(&child, sane_child, round));
	CU_ASSERT_TRUE_FATAL(node_open(&node, &(struct node_options){ 0 }));
	CU_ASSERT_TRUE_FATAL(node_connect(&node, 0, 1, child.fd));
	for (uint32_t i = 0; i < 40; i++)
		CU_ASSERT_EQUAL(node_recv(&node, 0, i, 0, 4096), 0);
	for (uint32_t i = 0; i < 40; i++)
		CU_ASSERT_TRUE_FATAL(node_poll(&node, &wc) && !wc.status && wc.wr_id == i);
	CU_ASSERT_TRUE(process_sync(child.fd));
	process_say(child.fd, 0);
	CU_ASSERT_EQUAL(process_end(&child), 0);
	CU_ASSERT_EQUAL(node_close(&node), 0);
}

static void victim_lives(struct round *round)
{
	struct noise n = noise_from(~round->number);
	uint64_t deadline = clock_now() + ROUND_MAX;
	struct process child;
	struct node node;

	CU_ASSERT_TRUE_FATAL(process_start(&child, mad_child, round));
	CU_ASSERT_TRUE_FATAL(node_open(&node, &(struct node_options){ .qps = QPS,
								      .srq = round->srq,
								      .channel = true,
								      .timeout = 5,
								      .retry_cnt = 1 }));
	CU_ASSERT_TRUE_FATAL(node_connect(&node, 0, QPS, child.fd));
	for (uint32_t i = 0;; i++) {
		struct pollfd poll_fd = { .fd = child.fd, .events = POLLIN };

		victim_post(&n, &node, i);
		victim_poll(&node);
		victim_repair(&n, &node);
		if (i % 64 == 0 && poll(&poll_fd, 1, 0))
			break;
		if (clock_now() > deadline) {
			CU_FAIL("a round that does not end");
			break;
		}
	}
	/*
	 * the faulty peer is dead, or in one round of eight alive, with copies that it never ends
	 */
	if (round->number % 8)
		process_kill(&child);
	victim_is_well(round);
	if (!(round->number % 8))
		process_kill(&child);
	CU_ASSERT_EQUAL(node_close(&node), 0);
}

static void mad_peers(void)
{
	const char *seconds = getenv("FUZZ_SECONDS"), *seed = getenv("FUZZ_SEED");
	uint64_t end = clock_now() + strtoul(seconds ? seconds : "5", NULL, 0) * NSEC_PER_SEC;
	uint32_t number = (uint32_t)strtoul(seed ? seed : "1", NULL, 0), first = number;

	do {
		struct round round = round_of(number++);

		fprintf(stderr, "round FUZZ_SEED=%u, copy %s, srq %u\n", round.number, round.copy,
			round.srq);
		setenv("SOFTVERBS_COPY", round.copy, 1);
		victim_lives(&round);
	} while (clock_now() < end || number - first < 6);
	printf("%u rounds, %u mutations\n", number - first, (number - first) * MUTATIONS);
}

static const struct unit_test tests[] = {
	{ "a peer that writes random values breaks its own connections only", mad_peers },
};

/*
 * The races are intended, and the test forks while threads run, so the thread sanitizer cannot
 * judge it.
 */
int main(int argc, char **argv)
{
	if (PROCESS_TSAN) {
		fprintf(stderr, "skipped: not under the thread sanitizer\n");
		return 77;
	}
	return unit_main("fuzz_region", tests, sizeof(tests) / sizeof(tests[0]), argc, argv);
}
