/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * ibv_dereg_mr while work requests that name the region are posted: what has arrived is in the memory, and
 * nothing touches it any more.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>
#include "test/conform/remote.h"

#define FIRST 0x55 /* the contents of the memory when it is deregistered */

/*
 * These lengths travel in a receive slot, in its extension, through a ring, and straight into the
 * buffer.
 */
static const uint32_t lengths[] = { 1, 8, 48, 49, 112, 113, 1000, 4096, 4097, 30000 };

static char memory[BUFFER];

static struct ibv_mr *region(struct side *side)
{
	struct ibv_mr *mr = ibv_reg_mr(side->pd, memory, sizeof(memory), IBV_ACCESS_LOCAL_WRITE);

	CU_ASSERT_PTR_NOT_NULL_FATAL(mr);
	memset(memory, FIRST, sizeof(memory));
	return mr;
}

static bool is_untouched(void)
{
	return memory[0] == FIRST && !memcmp(memory, memory + 1, sizeof(memory) - 1);
}

/* Posts a receive of two pieces: the first in the side's own buffer, the second in the region. */
static int post_into(struct side *side, uint64_t wr_id, uint32_t before, const struct ibv_mr *mr)
{
	struct ibv_sge sge[2] = { { (uintptr_t)side->buffer, before, side->mr->lkey },
				  { (uintptr_t)mr->addr, (uint32_t)mr->length, mr->lkey } };
	struct ibv_recv_wr wr = { .wr_id = wr_id,
				  .sg_list = before ? sge : sge + 1,
				  .num_sge = before ? 2 : 1 },
			   *bad;

	return side->srq ? ibv_post_srq_recv(side->srq, &wr, &bad)
			 : ibv_post_recv(side->qp, &wr, &bad);
}

static int post_own(struct side *side, uint64_t wr_id)
{
	return side->srq ? post_srq(side, wr_id, 0, BUFFER) : post_recv(side, wr_id, 0, BUFFER);
}

/*
 * The earlier receive is used as always, the one with the region fails, and the later ones are
 * flushed.
 */
static void meets_receives(const struct pair_options *options, uint32_t before)
{
	for (size_t i = 0; i < COUNT(lengths); i++) {
		bool reliable = options->type != IBV_QPT_UC;
		struct pair pair;
		struct ibv_mr *mr;

		if (lengths[i] <= before)
			continue;
		if (!pair_open(&pair, options))
			return;
		mr = region(&pair.b);
		CU_ASSERT_EQUAL(post_own(&pair.b, 1), 0);
		CU_ASSERT_EQUAL(post_into(&pair.b, 2, before, mr), 0);
		CU_ASSERT_EQUAL(post_own(&pair.b, 3), 0);
		CU_ASSERT_EQUAL(ibv_dereg_mr(mr), 0);
		CU_ASSERT_EQUAL(post_send(&pair.a, 1, 0, lengths[i], IBV_SEND_SIGNALED), 0);
		CU_ASSERT_TRUE(completes(pair.a.scq, 1, IBV_WC_SUCCESS, NULL));
		CU_ASSERT_TRUE(completes(pair.b.rcq, 1, IBV_WC_SUCCESS, NULL));
		CU_ASSERT_EQUAL(post_send(&pair.a, 2, 0, lengths[i], IBV_SEND_SIGNALED), 0);
		CU_ASSERT_TRUE(completes(pair.a.scq, 2,
					 reliable ? IBV_WC_REM_OP_ERR : IBV_WC_SUCCESS, NULL));
		CU_ASSERT_TRUE(
			completes_or_rxe(pair.b.rcq, 2, IBV_WC_LOC_PROT_ERR, IBV_WC_LOC_QP_OP_ERR));
		if (!options->srq_wr)
			CU_ASSERT_TRUE(completes(pair.b.rcq, 3, IBV_WC_WR_FLUSH_ERR, NULL));
		CU_ASSERT_TRUE(reaches(pair.b.qp, IBV_QPS_ERR));
		CU_ASSERT_EQUAL(state_of(pair.a.qp), reliable ? IBV_QPS_ERR : IBV_QPS_RTS);
		CU_ASSERT_TRUE(is_untouched());
		if (options->srq_wr)
			CU_ASSERT_TRUE(device_is_rxe ||
				       async_is(IBV_EVENT_QP_LAST_WQE_REACHED, pair.b.qp));
		pair_close(&pair);
	}
}

static void receives(void)
{
	meets_receives(&(struct pair_options){ 0 }, 0);
}

static void second_piece_of_receives(void)
{
	meets_receives(&(struct pair_options){ 0 }, 48);
	meets_receives(&(struct pair_options){ 0 }, 4000);
}

/* Only the pieces that a message reaches must be valid. */
static void pieces_that_nothing_reaches(void)
{
	struct ibv_wc wc = { 0 };
	struct pair pair;
	struct ibv_mr *mr;

	if (!pair_open(&pair, NULL))
		return;
	mr = region(&pair.b);
	CU_ASSERT_EQUAL(post_into(&pair.b, 1, 0, mr), 0);
	for (uint64_t i = 2; i <= 4; i++)
		CU_ASSERT_EQUAL(post_into(&pair.b, i, 5000, mr), 0);
	CU_ASSERT_EQUAL(ibv_dereg_mr(mr), 0);
	CU_ASSERT_EQUAL(post_send(&pair.a, 1, 0, 0, IBV_SEND_SIGNALED), 0);
	CU_ASSERT_EQUAL(post_send(&pair.a, 2, 0, 8, IBV_SEND_SIGNALED), 0);
	CU_ASSERT_EQUAL(post_send(&pair.a, 3, 0, 5000, IBV_SEND_SIGNALED), 0);
	for (uint64_t i = 1; i <= 3; i++) {
		CU_ASSERT_TRUE(completes(pair.a.scq, i, IBV_WC_SUCCESS, NULL));
		CU_ASSERT_TRUE(completes(pair.b.rcq, i, IBV_WC_SUCCESS, &wc));
	}
	CU_ASSERT_EQUAL(wc.byte_len, 5000);
	CU_ASSERT_EQUAL(post_send(&pair.a, 4, 0, 5001, IBV_SEND_SIGNALED), 0);
	CU_ASSERT_TRUE(completes(pair.a.scq, 4, IBV_WC_REM_OP_ERR, NULL));
	CU_ASSERT_TRUE(completes_or_rxe(pair.b.rcq, 4, IBV_WC_LOC_PROT_ERR, IBV_WC_LOC_QP_OP_ERR));
	CU_ASSERT_TRUE(is_untouched());
	pair_close(&pair);
}

static void shared_receives(void)
{
	meets_receives(&(struct pair_options){ .srq_wr = 8 }, 0);
}

static void unreliable_receives(void)
{
	meets_receives(&(struct pair_options){ .type = IBV_QPT_UC }, 0);
}

static void datagrams(void)
{
	static const uint32_t payloads[] = { 0, 1, 100, 1000 };

	for (size_t i = 0; i < COUNT(payloads); i++) {
		struct pair pair;
		struct ibv_mr *mr;

		if (!pair_open(&pair, &(struct pair_options){ .type = IBV_QPT_UD }))
			return;
		mr = region(&pair.b);
		CU_ASSERT_EQUAL(post_into(&pair.b, 1, 0, mr), 0);
		CU_ASSERT_EQUAL(ibv_dereg_mr(mr), 0);
		CU_ASSERT_EQUAL(post_send(&pair.a, 1, 0, payloads[i], IBV_SEND_SIGNALED), 0);
		CU_ASSERT_TRUE(completes(pair.a.scq, 1, IBV_WC_SUCCESS, NULL));
		CU_ASSERT_TRUE(
			completes_or_rxe(pair.b.rcq, 1, IBV_WC_LOC_PROT_ERR, IBV_WC_LOC_QP_OP_ERR));
		CU_ASSERT_TRUE(is_untouched());
		CU_ASSERT_EQUAL(state_of(pair.a.qp), IBV_QPS_RTS);
		pair_close(&pair);
	}
}

/* The new region has the same memory, perhaps the same number, and another key. */
static void registered_again(void)
{
	for (size_t i = 0; i < COUNT(lengths); i++) {
		struct pair pair;
		struct ibv_mr *mr;

		if (!pair_open(&pair, NULL))
			return;
		mr = region(&pair.b);
		CU_ASSERT_EQUAL(post_into(&pair.b, 1, 0, mr), 0);
		CU_ASSERT_EQUAL(ibv_dereg_mr(mr), 0);
		mr = region(&pair.b);
		CU_ASSERT_EQUAL(post_send(&pair.a, 1, 0, lengths[i], IBV_SEND_SIGNALED), 0);
		CU_ASSERT_TRUE(completes(pair.a.scq, 1, IBV_WC_REM_OP_ERR, NULL));
		CU_ASSERT_TRUE(
			completes_or_rxe(pair.b.rcq, 1, IBV_WC_LOC_PROT_ERR, IBV_WC_LOC_QP_OP_ERR));
		CU_ASSERT_TRUE(is_untouched());
		CU_ASSERT_EQUAL(ibv_dereg_mr(mr), 0);
		pair_close(&pair);
	}
}

/*
 * The source of a send is deregistered while the send waits for a receive; the receiver gets no
 * completion.
 */
static void waiting_sends(void)
{
	for (size_t i = 0; i < COUNT(lengths); i++) {
		struct ibv_sge sge;
		struct ibv_send_wr wr = { .wr_id = 1,
					  .sg_list = &sge,
					  .num_sge = 1,
					  .opcode = IBV_WR_SEND },
				   *bad;
		struct pair pair;
		struct ibv_mr *mr;

		if (!pair_open(&pair, NULL))
			return;
		mr = region(&pair.a);
		sge = (struct ibv_sge){ (uintptr_t)memory, lengths[i], mr->lkey };
		CU_ASSERT_EQUAL(ibv_post_send(pair.a.qp, &wr, &bad), 0);
		CU_ASSERT_TRUE(stays_empty(pair.a.scq));
		CU_ASSERT_EQUAL(ibv_dereg_mr(mr), 0);
		CU_ASSERT_EQUAL(post_recv(&pair.b, 1, 0, BUFFER), 0);
		CU_ASSERT_TRUE(completes_or_rxe(pair.a.scq, 1, IBV_WC_LOC_PROT_ERR,
						rxe_local(IBV_WC_LOC_QP_OP_ERR)));
		CU_ASSERT_EQUAL(state_of(pair.b.qp), IBV_QPS_RTS);
		CU_ASSERT_TRUE(stays_empty(pair.b.rcq));
		pair_close(&pair);
	}
}

/* ---- what has arrived before ---- */

static void fill(struct side *side, uint32_t length, unsigned seed)
{
	for (uint32_t i = 0; i < length; i++)
		side->buffer[i] = (char)(seed + i * 7 + 1);
}

/* Returns true if the message is there and the bytes behind it are unchanged. */
static bool holds(const char *at, const struct side *sender, uint32_t length, size_t size)
{
	if (memcmp(at, sender->buffer, length))
		return false;
	for (size_t i = length; i < size; i++)
		if (at[i] != FIRST)
			return false;
	return true;
}

/* The QP still works: more messages than its queues and rings have room for arrive. */
static void goes_on(struct pair *pair)
{
	for (uint64_t i = 0; i < 200; i++) {
		uint32_t length = i % 3 ? 3000 : 100;

		fill(&pair->a, length, (unsigned)i);
		CU_ASSERT_EQUAL(post_own(&pair->b, 100 + i), 0);
		CU_ASSERT_EQUAL(post_send(&pair->a, i, 0, length, IBV_SEND_SIGNALED), 0);
		CU_ASSERT_TRUE(completes(pair->a.scq, i, IBV_WC_SUCCESS, NULL));
		CU_ASSERT_TRUE(completes(pair->b.rcq, 100 + i, IBV_WC_SUCCESS, NULL));
		CU_ASSERT_EQUAL(memcmp(pair->a.buffer, pair->b.buffer, length), 0);
	}
}

/*
 * The send has completed and the receive is not polled when the memory is deregistered: the message
 * is in it.
 */
static void arrives_before(const struct pair_options *options, uint32_t before)
{
	for (size_t i = 0; i < COUNT(lengths); i++) {
		struct ibv_wc wc = { 0 };
		struct pair pair;
		struct ibv_mr *mr;

		if (lengths[i] < before)
			continue;
		if (!pair_open(&pair, options))
			return;
		mr = region(&pair.b);
		CU_ASSERT_EQUAL(post_into(&pair.b, 1, before, mr), 0);
		CU_ASSERT_EQUAL(post_into(&pair.b, 2, before, mr), 0);
		fill(&pair.a, lengths[i], 3);
		for (uint64_t n = 1; n <= 2; n++) {
			CU_ASSERT_EQUAL(post_send(&pair.a, n, 0, lengths[i], IBV_SEND_SIGNALED), 0);
			CU_ASSERT_TRUE(completes(pair.a.scq, n, IBV_WC_SUCCESS, NULL));
		}
		CU_ASSERT_EQUAL(ibv_dereg_mr(mr), 0);
		CU_ASSERT_EQUAL(memcmp(pair.b.buffer, pair.a.buffer, before), 0);
		CU_ASSERT_EQUAL(memcmp(memory, pair.a.buffer + before, lengths[i] - before), 0);
		memset(memory, FIRST, sizeof(memory));
		for (uint64_t n = 1; n <= 2; n++) {
			CU_ASSERT_TRUE(completes(pair.b.rcq, n, IBV_WC_SUCCESS, &wc));
			CU_ASSERT_EQUAL(wc.byte_len, lengths[i]);
		}
		CU_ASSERT_TRUE(is_untouched());
		goes_on(&pair);
		pair_close(&pair);
	}
}

#define SENT_BEFORE "kernel software RoCE completes an unreliable send before the message is there"

static void arrived(void)
{
	arrives_before(&(struct pair_options){ 0 }, 0);
	arrives_before(&(struct pair_options){ 0 }, 48);
}

static void arrived_in_a_shared_queue(void)
{
	arrives_before(&(struct pair_options){ .srq_wr = 8 }, 0);
	arrives_before(&(struct pair_options){ .srq_wr = 8 }, 48);
}

static void arrived_unreliably(void)
{
	if (rxe_since(6, 12)) {
		skip(SENT_BEFORE);
		return;
	}
	arrives_before(&(struct pair_options){ .type = IBV_QPT_UC }, 0);
}

static void arrived_datagrams(void)
{
	static const uint32_t payloads[] = { 0, 1, 100, 1000 };

	if (rxe_since(6, 12)) {
		skip(SENT_BEFORE);
		return;
	}
	for (size_t i = 0; i < COUNT(payloads); i++) {
		struct ibv_wc wc = { 0 };
		struct pair pair;
		struct ibv_mr *mr;

		if (!pair_open(&pair, &(struct pair_options){ .type = IBV_QPT_UD }))
			return;
		mr = region(&pair.b);
		CU_ASSERT_EQUAL(post_into(&pair.b, 1, 0, mr), 0);
		fill(&pair.a, payloads[i], 3);
		CU_ASSERT_EQUAL(post_send(&pair.a, 1, 0, payloads[i], IBV_SEND_SIGNALED), 0);
		CU_ASSERT_TRUE(completes(pair.a.scq, 1, IBV_WC_SUCCESS, NULL));
		CU_ASSERT_EQUAL(ibv_dereg_mr(mr), 0);
		CU_ASSERT_TRUE(completes(pair.b.rcq, 1, IBV_WC_SUCCESS, &wc));
		CU_ASSERT_EQUAL(wc.byte_len, GRH_SIZE + payloads[i]);
		CU_ASSERT_TRUE(
			holds(memory + GRH_SIZE, &pair.a, payloads[i], sizeof(memory) - GRH_SIZE));
		pair_close(&pair);
	}
}

/*
 * A message from before the change is where the receive was posted; one from after it is where the
 * key points now.
 */
static void arrived_before_a_change(void)
{
	static char elsewhere[BUFFER];

	for (size_t i = 0; i < COUNT(lengths); i++) {
		struct pair pair;
		struct ibv_mr *mr;

		if (!pair_open(&pair, NULL))
			return;
		mr = region(&pair.b);
		memset(elsewhere, FIRST, sizeof(elsewhere));
		CU_ASSERT_EQUAL(post_into(&pair.b, 1, 0, mr), 0);
		fill(&pair.a, lengths[i], 9);
		CU_ASSERT_EQUAL(post_send(&pair.a, 1, 0, lengths[i], IBV_SEND_SIGNALED), 0);
		CU_ASSERT_TRUE(completes(pair.a.scq, 1, IBV_WC_SUCCESS, NULL));
		if (ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, elsewhere,
				 sizeof(elsewhere), 0)) {
			CU_ASSERT_TRUE(device_is_rxe);
		} else {
			CU_ASSERT_TRUE(holds(memory, &pair.a, lengths[i], sizeof(memory)));
			CU_ASSERT_TRUE(completes(pair.b.rcq, 1, IBV_WC_SUCCESS, NULL));
			CU_ASSERT_EQUAL(post_into(&pair.b, 2, 0, mr), 0);
			CU_ASSERT_EQUAL(post_send(&pair.a, 2, 0, lengths[i], IBV_SEND_SIGNALED), 0);
			CU_ASSERT_TRUE(completes(pair.b.rcq, 2, IBV_WC_SUCCESS, NULL));
			CU_ASSERT_TRUE(holds(elsewhere, &pair.a, lengths[i], sizeof(elsewhere)));
		}
		CU_ASSERT_EQUAL(ibv_dereg_mr(mr), 0);
		pair_close(&pair);
	}
}

/* Takes the pages away, and keeps their addresses, where another thread would map something else. */
static void unmap(char *pages)
{
	CU_ASSERT(mmap(pages, BUFFER, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) ==
		  pages);
}

/*
 * A device that pins pages has delivered the message; this one has not, unless its engine was early, and reports that it could
 * not. The program survives both.
 */
static void arrived_and_unmapped(void)
{
	for (size_t i = 0; i < COUNT(lengths); i++) {
		struct ibv_wc wc = { 0 };
		struct pair pair;
		struct ibv_mr *mr;
		char *pages;

		if (!pair_open(&pair, NULL))
			return;
		pages = mmap(NULL, BUFFER, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
			     0);
		CU_ASSERT_FATAL(pages != MAP_FAILED);
		mr = ibv_reg_mr(pair.b.pd, pages, BUFFER, IBV_ACCESS_LOCAL_WRITE);
		CU_ASSERT_PTR_NOT_NULL_FATAL(mr);
		CU_ASSERT_EQUAL(post_into(&pair.b, 1, 0, mr), 0);
		CU_ASSERT_EQUAL(post_send(&pair.a, 1, 0, lengths[i], IBV_SEND_SIGNALED), 0);
		CU_ASSERT_TRUE(completes(pair.a.scq, 1, IBV_WC_SUCCESS, NULL));
		unmap(pages);
		CU_ASSERT_EQUAL(ibv_dereg_mr(mr), 0);
		CU_ASSERT_TRUE(poll_one(pair.b.rcq, &wc));
		CU_ASSERT_EQUAL(wc.wr_id, 1);
		CU_ASSERT_TRUE(wc.status == IBV_WC_SUCCESS ||
			       (lengths[i] <= 4096 && wc.status == IBV_WC_LOC_PROT_ERR));
		munmap(pages, BUFFER);
		pair_close(&pair);
	}
}

/* ---- messages that arrive during deregistration ---- */

#define RACE_ROUNDS 300u
#define RACE_DEPTH  8u

struct race {
	struct pair pair;
	unsigned seed;
	uint32_t lengths[RACE_DEPTH];
	atomic_bool polls_end;
	uint32_t received, failed;
};

static void *race_send(void *arg)
{
	struct race *race = arg;

	for (uint32_t i = 0; i < RACE_DEPTH; i++)
		CU_ASSERT_EQUAL(post_send(&race->pair.a, i, i * 5000, race->lengths[i],
					  IBV_SEND_SIGNALED),
				0);
	return NULL;
}

static void race_poll(struct race *race)
{
	struct ibv_wc wc;

	while (ibv_poll_cq(race->pair.b.rcq, 1, &wc) == 1) {
		if (wc.status != IBV_WC_SUCCESS) {
			race->failed++;
			continue;
		}
		CU_ASSERT_FALSE(race->failed);
		CU_ASSERT_EQUAL(wc.wr_id, race->received);
		CU_ASSERT_EQUAL(wc.byte_len, race->lengths[race->received]);
		race->received++;
	}
}

static void *race_polls(void *arg)
{
	struct race *race = arg;

	while (!atomic_load(&race->polls_end))
		race_poll(race);
	return NULL;
}

static void race_post(struct race *race, const struct ibv_mr *mr)
{
	struct side *b = &race->pair.b;

	for (uint64_t i = 0; i < RACE_DEPTH; i++) {
		struct ibv_sge sge = { (uintptr_t)memory + i * 5000, 5000, mr->lkey };
		struct ibv_recv_wr wr = { .wr_id = i, .sg_list = &sge, .num_sge = 1 }, *bad;

		CU_ASSERT_EQUAL(b->srq ? ibv_post_srq_recv(b->srq, &wr, &bad)
				       : ibv_post_recv(b->qp, &wr, &bad),
				0);
	}
}

/*
 * As many messages were received as were sent, each at its place, and nothing is written behind the
 * last.
 */
static void race_judge(struct race *race)
{
	uint32_t sent = 0;
	struct ibv_wc wc;

	for (uint32_t i = 0; i < RACE_DEPTH; i++) {
		CU_ASSERT_TRUE_FATAL(poll_one(race->pair.a.scq, &wc));
		sent += wc.status == IBV_WC_SUCCESS;
	}
	if (sent < RACE_DEPTH)
		CU_ASSERT_TRUE(reaches(race->pair.b.qp, IBV_QPS_ERR));
	race_poll(race);
	CU_ASSERT_EQUAL(race->received, sent);
	for (uint32_t i = 0; i < sent; i++)
		CU_ASSERT_EQUAL(memcmp(memory + i * 5000, race->pair.a.buffer + i * 5000,
				       race->lengths[i]),
				0);
}

static void race_once(struct race *race, const struct pair_options *options, bool polls)
{
	static char then[BUFFER];
	pthread_t sender, poller;
	struct ibv_mr *mr;

	if (!pair_open(&race->pair, options))
		return;
	mr = region(&race->pair.b);
	for (uint32_t i = 0; i < RACE_DEPTH; i++)
		race->lengths[i] = 1 + (uint32_t)rand_r(&race->seed) % (i % 2 ? 5000 : 112);
	fill(&race->pair.a, BUFFER, race->seed);
	race_post(race, mr);
	pthread_create(&sender, NULL, race_send, race);
	if (polls)
		pthread_create(&poller, NULL, race_polls, race);
	for (unsigned n = (unsigned)rand_r(&race->seed) % 20000; n; n--)
		atomic_load(&race->polls_end);
	CU_ASSERT_EQUAL(ibv_dereg_mr(mr), 0);
	memcpy(then, memory, sizeof(then));
	pthread_join(sender, NULL);
	atomic_store(&race->polls_end, true);
	if (polls)
		pthread_join(poller, NULL);
	race_judge(race);
	CU_ASSERT_EQUAL(memcmp(then, memory, sizeof(then)), 0);
	pair_close(&race->pair);
}

static void arrives_meanwhile(void)
{
	unsigned seed = (unsigned)getpid();

	for (unsigned i = 0; i < RACE_ROUNDS; i++) {
		const struct pair_options options = { .srq_wr = i % 3 ? 0 : RACE_DEPTH };
		struct race race = { .seed = seed + i };

		race_once(&race, &options, i % 2);
	}
}

static const struct unit_test tests[] = {
	{ "dereg: a posted receive completes with LOC_PROT_ERR, its sender with REM_OP_ERR",
	  receives },
	{ "dereg: also of a later piece of the receive", second_piece_of_receives },
	{ "dereg: not of a piece that the message does not reach", pieces_that_nothing_reaches },
	{ "dereg: receives in a shared queue", shared_receives },
	{ "dereg: receives of an unreliable connection", unreliable_receives },
	{ "dereg: receives of datagrams", datagrams },
	{ "dereg: registering the memory again does not bring receives back", registered_again },
	{ "dereg: a send that waits completes with LOC_PROT_ERR, the peer unaffected",
	  waiting_sends },
	{ "dereg: what has arrived is in the memory, and completes", arrived },
	{ "dereg: also in a shared queue", arrived_in_a_shared_queue },
	{ "dereg: also by an unreliable connection", arrived_unreliably },
	{ "dereg: also datagrams", arrived_datagrams },
	{ "rereg: what has arrived is where it was to be", arrived_before_a_change },
	{ "dereg: of memory that is unmapped by then", arrived_and_unmapped },
	{ "dereg: a message that arrives during it is delivered, or fails at both ends",
	  arrives_meanwhile },
};

CONFORM_MAIN("conform_dereg", tests)
