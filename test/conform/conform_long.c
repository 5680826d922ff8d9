/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* While one thread's long copy is under way: what other threads post, modify, destroy and connect. */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>
#include "test/conform/con.h"

/* The thread sanitizer makes everything here slower, so less is as long a copy there. */
#ifdef __SANITIZE_THREAD__
#define LONG (24u << 20)
#else
#define LONG (96u << 20)
#endif
#define ROUNDS 12 /* in at least one round the copy must still be under way after the call */
#define OLD    0x11
#define NEW    0x22
#define AFTER  0x33

struct transfer {
	struct pair pair;
	struct side from, to; /* these are a and b with the long memory */
	enum ibv_wr_opcode opcode;
	pthread_t poster;
	int error;
	unsigned rounds, underway;
};

static volatile char *target_of(const struct transfer *t)
{
	return t->opcode == IBV_WR_RDMA_READ ? t->from.buffer : t->to.buffer;
}

static bool side_lengthen(struct side *side, const struct side *of, char fill)
{
	int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE;

	*side = *of;
	side->buffer = mmap(NULL, LONG, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CU_ASSERT_PTR_NOT_EQUAL_FATAL(side->buffer, MAP_FAILED);
	memset(side->buffer, fill, LONG);
	side->mr = ibv_reg_mr(of->pd, side->buffer, LONG, access);
	CU_ASSERT_PTR_NOT_NULL(side->mr);
	return side->mr;
}

/* A test that deregisters an MR itself sets the pointer to NULL. */
static void side_shorten(struct side *side)
{
	if (side->mr)
		CU_ASSERT_EQUAL(ibv_dereg_mr(side->mr), 0);
	munmap(side->buffer, LONG);
}

static bool transfer_open(struct transfer *t, const struct pair_options *options)
{
	bool read = t->opcode == IBV_WR_RDMA_READ;

	if (!pair_open(&t->pair, options))
		return false;
	return side_lengthen(&t->from, &t->pair.a, read ? OLD : NEW) &&
	       side_lengthen(&t->to, &t->pair.b, read ? NEW : OLD);
}

/* The queue pair may be destroyed already. */
static void transfer_close(struct transfer *t)
{
	side_shorten(&t->from);
	side_shorten(&t->to);
	pair_close(&t->pair);
}

static void *post_long(void *arg)
{
	struct transfer *t = arg;

	t->error = t->opcode == IBV_WR_SEND ? post_send(&t->from, 1, 0, LONG, IBV_SEND_SIGNALED)
					    : post_rdma(&t->from, t->opcode, 1, 0, LONG, &t->to, 0,
							IBV_SEND_SIGNALED);
	return NULL;
}

static bool begun(void *arg)
{
	return target_of(arg)[0] == NEW;
}

static bool is_underway(const struct transfer *t)
{
	return target_of(t)[LONG - 1] == OLD;
}

/* Another thread posts; this function returns when the first bytes have arrived. */
static void transfer_begin(struct transfer *t)
{
	if (t->opcode == IBV_WR_SEND || t->opcode == IBV_WR_RDMA_WRITE_WITH_IMM)
		CU_ASSERT_EQUAL(t->to.srq ? post_srq(&t->to, 1, 0, LONG)
					  : post_recv(&t->to, 1, 0, LONG),
				0);
	CU_ASSERT_EQUAL_FATAL(pthread_create(&t->poster, NULL, post_long, t), 0);
	CU_ASSERT_TRUE(unit_wait_for(begun, t, PATIENCE));
}

static void transfer_join(struct transfer *t)
{
	CU_ASSERT_EQUAL(pthread_join(t->poster, NULL), 0);
	CU_ASSERT_EQUAL(t->error, 0);
}

/* ---- posts ---- */

static void posts_behind(enum ibv_wr_opcode opcode, uint32_t srq_wr)
{
	struct transfer t = { .opcode = opcode };
	struct pair_options options = { .srq_wr = srq_wr };

	for (t.rounds = 0; t.rounds < ROUNDS && !t.underway; t.rounds++) {
		if (!transfer_open(&t, &options))
			return;
		transfer_begin(&t);
		CU_ASSERT_EQUAL(post_rdma(&t.pair.a, IBV_WR_RDMA_WRITE, 2, 0, 8, &t.pair.b, 64,
					  IBV_SEND_SIGNALED),
				0);
		t.underway += is_underway(&t);
		transfer_join(&t);
		CU_ASSERT_TRUE(completes(t.pair.a.scq, 1, IBV_WC_SUCCESS, NULL));
		CU_ASSERT_TRUE(completes(t.pair.a.scq, 2, IBV_WC_SUCCESS, NULL));
		CU_ASSERT(!memcmp(t.from.buffer, t.to.buffer, LONG));
		transfer_close(&t);
	}
	CU_ASSERT(t.underway);
}

static void post_behind_write(void)
{
	posts_behind(IBV_WR_RDMA_WRITE, 0);
}

static void post_behind_write_with_immediate(void)
{
	posts_behind(IBV_WR_RDMA_WRITE_WITH_IMM, 0);
}

static void post_behind_read(void)
{
	posts_behind(IBV_WR_RDMA_READ, 0);
}

static void post_behind_send(void)
{
	posts_behind(IBV_WR_SEND, 0);
}

static void post_behind_send_to_srq(void)
{
	posts_behind(IBV_WR_SEND, 4);
}

/* ---- what ends it ---- */

/* Nothing may be written after this call. */
static void stays_as_it_is(struct transfer *t)
{
	struct timespec pause = { .tv_nsec = SILENCE * 1000000L };
	char *target = (char *)target_of(t);

	memset(target, AFTER, LONG);
	nanosleep(&pause, NULL);
	CU_ASSERT(target[0] == AFTER && !memcmp(target, target + 1, LONG - 1));
}

/*
 * The long request and the short one behind it have both ended when the call returns, or neither.
 */
static void both_end(struct transfer *t, enum ibv_wc_status first)
{
	struct ibv_wc one, two;

	CU_ASSERT_TRUE(poll_one(t->pair.a.scq, &one));
	CU_ASSERT_TRUE(poll_one(t->pair.a.scq, &two));
	CU_ASSERT_EQUAL(one.wr_id, 1);
	CU_ASSERT_EQUAL(two.wr_id, 2);
	if (one.status == IBV_WC_SUCCESS) /* the copy was faster than the call */
		return;
	/* rdma_rxe reports another status for an invalid source. */
	CU_ASSERT(one.status == first || (device_is_rxe && first == IBV_WC_LOC_PROT_ERR &&
					  one.status == rxe_local(IBV_WC_LOC_QP_OP_ERR)));
	CU_ASSERT_EQUAL(two.status, IBV_WC_WR_FLUSH_ERR);
}

enum ending { END_ERROR, END_RESET, END_SOURCE, END_TARGET };

static void transfer_end(struct transfer *t, enum ending how)
{
	struct ibv_mr **mr = how == END_SOURCE ? &t->from.mr : &t->to.mr;

	if (how == END_ERROR || how == END_RESET) {
		CU_ASSERT_EQUAL(move_to(t->pair.a.qp,
					how == END_ERROR ? IBV_QPS_ERR : IBV_QPS_RESET),
				0);
		return;
	}
	CU_ASSERT_EQUAL(ibv_dereg_mr(*mr), 0);
	*mr = NULL;
}

static void ends(enum ibv_wr_opcode opcode, enum ending how, enum ibv_wc_status status,
		 uint32_t srq_wr)
{
	struct transfer t = { .opcode = opcode };
	struct pair_options options = { .srq_wr = srq_wr };

	for (t.rounds = 0; t.rounds < ROUNDS && !t.underway; t.rounds++) {
		if (!transfer_open(&t, &options))
			return;
		transfer_begin(&t);
		CU_ASSERT_EQUAL(post_rdma(&t.pair.a, IBV_WR_RDMA_WRITE, 2, 0, 8, &t.pair.b, 64,
					  IBV_SEND_SIGNALED),
				0);
		transfer_end(&t, how);
		t.underway += is_underway(&t);
		/* The packets that a network carries at that moment still arrive. */
		if (how == END_TARGET || !device_is_rxe)
			stays_as_it_is(&t);
		transfer_join(&t);
		if (how != END_RESET)
			both_end(&t, status);
		CU_ASSERT_TRUE(stays_empty(t.pair.a.scq));
		transfer_close(&t);
	}
	CU_ASSERT(t.underway);
}

static void error_ends_write(void)
{
	ends(IBV_WR_RDMA_WRITE, END_ERROR, IBV_WC_WR_FLUSH_ERR, 0);
}

static void error_ends_read(void)
{
	ends(IBV_WR_RDMA_READ, END_ERROR, IBV_WC_WR_FLUSH_ERR, 0);
}

static void error_ends_send(void)
{
	ends(IBV_WR_SEND, END_ERROR, IBV_WC_WR_FLUSH_ERR, 0);
}

static void error_ends_send_to_srq(void)
{
	ends(IBV_WR_SEND, END_ERROR, IBV_WC_WR_FLUSH_ERR, 4);
}

static void reset_ends_write(void)
{
	ends(IBV_WR_RDMA_WRITE, END_RESET, IBV_WC_WR_FLUSH_ERR, 0);
}

static void dereg_of_source_ends_write(void)
{
	ends(IBV_WR_RDMA_WRITE, END_SOURCE, IBV_WC_LOC_PROT_ERR, 0);
}

static void dereg_of_source_ends_send(void)
{
	ends(IBV_WR_SEND, END_SOURCE, IBV_WC_LOC_PROT_ERR, 0);
}

static void dereg_of_target_ends_write(void)
{
	ends(IBV_WR_RDMA_WRITE, END_TARGET, IBV_WC_REM_ACCESS_ERR, 0);
}

static void dereg_of_target_ends_read(void)
{
	ends(IBV_WR_RDMA_READ, END_SOURCE, IBV_WC_LOC_PROT_ERR, 0);
}

static void destroy_ends_write(void)
{
	struct transfer t = { .opcode = IBV_WR_RDMA_WRITE };

	for (t.rounds = 0; t.rounds < ROUNDS && !t.underway; t.rounds++) {
		if (!transfer_open(&t, &(struct pair_options){ 0 }))
			return;
		transfer_begin(&t);
		transfer_join(&t); /* no call may use an object that another one destroys */
		CU_ASSERT_EQUAL(ibv_destroy_qp(t.pair.a.qp), 0);
		t.pair.a.qp = NULL;
		t.underway += is_underway(&t);
		stays_as_it_is(&t);
		transfer_close(&t);
	}
	CU_ASSERT(t.underway);
}

/* ---- other calls during a copy ---- */

static void connects_meanwhile(void)
{
	struct transfer t = { .opcode = IBV_WR_RDMA_WRITE };
	struct con con;

	for (t.rounds = 0; t.rounds < ROUNDS && !t.underway; t.rounds++) {
		if (!transfer_open(&t, &(struct pair_options){ 0 }))
			return;
		transfer_begin(&t);
		CU_ASSERT_TRUE(con_establish(&con));
		t.underway += is_underway(&t);
		con_close(&con);
		transfer_join(&t);
		CU_ASSERT_TRUE(completes(t.pair.a.scq, 1, IBV_WC_SUCCESS, NULL));
		transfer_close(&t);
	}
	CU_ASSERT(t.underway);
}

/* No thread polls or posts: the device continues by itself, and its event comes. */
static void without_polls(void)
{
	struct transfer t = { .opcode = IBV_WR_RDMA_READ };
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	void *context;

	if (!transfer_open(&t, &(struct pair_options){ 0 }))
		return;
	channel = t.pair.b.channel; /* of b's receive CQ, because b reads from a */
	CU_ASSERT_EQUAL(ibv_req_notify_cq(t.pair.b.rcq, 0), 0);
	CU_ASSERT_EQUAL(post_recv(&t.pair.b, 2, 0, 64), 0);
	CU_ASSERT_EQUAL(post_rdma(&t.from, IBV_WR_RDMA_READ, 1, 0, LONG, &t.to, 0,
				  IBV_SEND_SIGNALED),
			0);
	CU_ASSERT_EQUAL(post_send(&t.pair.a, 2, 0, 8, IBV_SEND_SIGNALED), 0);
	CU_ASSERT_TRUE(readable(channel->fd, PATIENCE));
	CU_ASSERT_EQUAL_FATAL(ibv_get_cq_event(channel, &cq, &context), 0);
	ibv_ack_cq_events(cq, 1);
	CU_ASSERT(!is_underway(&t));
	CU_ASSERT_TRUE(completes(t.pair.a.scq, 1, IBV_WC_SUCCESS, NULL));
	CU_ASSERT_TRUE(completes(t.pair.a.scq, 2, IBV_WC_SUCCESS, NULL));
	CU_ASSERT_TRUE(completes(t.pair.b.rcq, 2, IBV_WC_SUCCESS, NULL));
	transfer_close(&t);
}

/*
 * A request that has begun ends in SQD, and then the event comes; the request behind it waits for
 * RTS.
 */
static void drained_after_it(void)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_SQD, .en_sqd_async_notify = 1 };
	struct transfer t = { .opcode = IBV_WR_RDMA_WRITE };

	if (device_is_rxe) {
		skip("kernel software RoCE reports no drained send queue");
		return;
	}
	if (!transfer_open(&t, &(struct pair_options){ 0 }))
		return;
	transfer_begin(&t);
	CU_ASSERT_EQUAL(ibv_modify_qp(t.pair.a.qp, &attr,
				      IBV_QP_STATE | IBV_QP_EN_SQD_ASYNC_NOTIFY),
			0);
	CU_ASSERT_EQUAL(post_rdma(&t.pair.a, IBV_WR_RDMA_WRITE, 2, 0, 8, &t.pair.b, 64,
				  IBV_SEND_SIGNALED),
			0);
	CU_ASSERT_TRUE(async_is(IBV_EVENT_SQ_DRAINED, t.pair.a.qp));
	CU_ASSERT(!is_underway(&t));
	transfer_join(&t);
	CU_ASSERT_TRUE(completes(t.pair.a.scq, 1, IBV_WC_SUCCESS, NULL));
	CU_ASSERT_TRUE(stays_empty(t.pair.a.scq));
	CU_ASSERT_EQUAL(move_to(t.pair.a.qp, IBV_QPS_RTS), 0);
	CU_ASSERT_TRUE(completes(t.pair.a.scq, 2, IBV_WC_SUCCESS, NULL));
	transfer_close(&t);
}

static void *post_and_stay(void *arg)
{
	pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL);
	post_long(arg);
	for (;;)
		pause();
	return NULL;
}

/*
 * The first bytes have arrived, so the cancelled thread is or was the executor; the queue
 * continues.
 */
static void cancelled_executor(void)
{
	struct transfer t = { .opcode = IBV_WR_RDMA_WRITE };

	if (under_address_sanitizer) {
		skip("the address sanitizer does not follow a cancelled thread");
		return;
	}
	for (unsigned i = 0; i < 5; i++) {
		if (!transfer_open(&t, &(struct pair_options){ 0 }))
			return;
		CU_ASSERT_EQUAL_FATAL(pthread_create(&t.poster, NULL, post_and_stay, &t), 0);
		CU_ASSERT_TRUE(unit_wait_for(begun, &t, PATIENCE));
		CU_ASSERT_EQUAL(pthread_cancel(t.poster), 0);
		CU_ASSERT_EQUAL(pthread_join(t.poster, NULL), 0);
		CU_ASSERT_EQUAL(post_rdma(&t.pair.a, IBV_WR_RDMA_WRITE, 2, 0, 8, &t.pair.b, 64,
					  IBV_SEND_SIGNALED),
				0);
		CU_ASSERT_TRUE(completes(t.pair.a.scq, 1, IBV_WC_SUCCESS, NULL));
		CU_ASSERT_TRUE(completes(t.pair.a.scq, 2, IBV_WC_SUCCESS, NULL));
		transfer_close(&t);
	}
}

/* ---- many posters ---- */

#define POSTERS 4
#define POSTS	60

static const uint32_t mixed[] = { 8, 5000, 3u << 20, 64, 100000, 4096 };

static atomic_uint failures;
static struct transfer shared;

static void *post_mixed(void *arg)
{
	uint64_t poster = (uintptr_t)arg;
	int error;

	for (uint64_t i = 0; i < POSTS; i++) {
		uint32_t length = mixed[(i + poster) % COUNT(mixed)];

		do {
			error = post_rdma(&shared.from,
					  i % 3 ? IBV_WR_RDMA_WRITE : IBV_WR_RDMA_READ,
					  poster << 32 | i, 0, length, &shared.to, 0,
					  IBV_SEND_SIGNALED);
			if (error == ENOMEM)
				sched_yield(); /* until the poller has made room */
		} while (error == ENOMEM);
		failures += error != 0;
	}
	return NULL;
}

/* Each poster's completions come once and in its order. */
static void many_posters(void)
{
	const struct pair_options options = { .cqe = POSTERS * POSTS };
	uint32_t next[POSTERS] = { 0 };
	pthread_t posters[POSTERS];
	struct ibv_wc wc;

	shared.opcode = IBV_WR_RDMA_WRITE;
	if (!transfer_open(&shared, &options))
		return;
	for (uintptr_t i = 0; i < POSTERS; i++)
		CU_ASSERT_EQUAL_FATAL(pthread_create(&posters[i], NULL, post_mixed, (void *)i), 0);
	for (unsigned count = 0; count < POSTERS * POSTS && poll_one(shared.pair.a.scq, &wc);
	     count++) {
		uint32_t poster = (uint32_t)(wc.wr_id >> 32);

		CU_ASSERT_EQUAL(wc.status, IBV_WC_SUCCESS);
		CU_ASSERT(poster < POSTERS && (uint32_t)wc.wr_id == next[poster % POSTERS]++);
	}
	for (unsigned i = 0; i < POSTERS; i++) {
		CU_ASSERT_EQUAL(pthread_join(posters[i], NULL), 0);
		CU_ASSERT_EQUAL(next[i], POSTS);
	}
	CU_ASSERT_EQUAL(failures, 0);
	CU_ASSERT_TRUE(stays_empty(shared.pair.a.scq));
	transfer_close(&shared);
}

static const struct unit_test tests[] = {
	{ "a post returns while a write is copied", post_behind_write },
	{ "a post returns while a write with immediate is copied",
	  post_behind_write_with_immediate },
	{ "a post returns while a read is copied", post_behind_read },
	{ "a post returns while a message is copied", post_behind_send },
	{ "a post returns while a message to an SRQ is copied", post_behind_send_to_srq },
	{ "the error state ends a write", error_ends_write },
	{ "the error state ends a read", error_ends_read },
	{ "the error state ends a message", error_ends_send },
	{ "the error state ends a message to an SRQ", error_ends_send_to_srq },
	{ "a reset ends a write", reset_ends_write },
	{ "deregistration of the source ends a write", dereg_of_source_ends_write },
	{ "deregistration of the source ends a message", dereg_of_source_ends_send },
	{ "deregistration of the target ends a write", dereg_of_target_ends_write },
	{ "deregistration of the target ends a read", dereg_of_target_ends_read },
	{ "destruction of the queue pair ends a write", destroy_ends_write },
	{ "a connection is made during a copy", connects_meanwhile },
	{ "a copy continues without polls", without_polls },
	{ "a send queue is drained when the copy is done", drained_after_it },
	{ "an executor is cancelled", cancelled_executor },
	{ "many posters of requests of all lengths", many_posters },
};

CONFORM_MAIN("conform_long", tests)
