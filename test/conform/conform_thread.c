/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Several threads: on one object, on several, and destroying what others use. */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include "test/conform/conform.h"

#define THREADS 4
#define ROUNDS	300

static struct pair pair;
static atomic_uint failures, polled;
static atomic_bool stop;

static void run(void *(*function)(void *), unsigned count)
{
	pthread_t threads[THREADS];
	unsigned i;

	for (i = 0; i < count; i++)
		CU_ASSERT_EQUAL_FATAL(pthread_create(&threads[i], NULL, function,
						     (void *)(uintptr_t)i),
				      0);
	for (i = 0; i < count; i++)
		CU_ASSERT_EQUAL(pthread_join(threads[i], NULL), 0);
	CU_ASSERT_EQUAL(atomic_exchange(&failures, 0), 0);
}

static void *post_writes(void *arg)
{
	uint64_t thread = (uintptr_t)arg;
	unsigned i;
	int error;

	for (i = 0; i < ROUNDS; i++) {
		do {
			error = post_rdma(&pair.a, IBV_WR_RDMA_WRITE, thread << 32 | i, 0, 8,
					  &pair.b, 64, IBV_SEND_SIGNALED);
			if (error == ENOMEM)
				sched_yield(); /* until the poller has made room */
		} while (error == ENOMEM);
		failures += error != 0;
	}
	return NULL;
}

/* Each thread's completions come once and in its order. */
static void *poll_writes(void *arg)
{
	unsigned next[THREADS] = { 0 }, count = 0;
	struct ibv_wc wc;

	(void)arg;
	while (count < THREADS * ROUNDS && poll_one(pair.a.scq, &wc)) {
		unsigned thread = (unsigned)(wc.wr_id >> 32);

		count++;
		failures += wc.status != IBV_WC_SUCCESS || thread >= THREADS ||
			    (uint32_t)wc.wr_id != next[thread]++;
	}
	failures += count != THREADS * ROUNDS;
	return NULL;
}

static void many_post_one_polls(void)
{
	/*
	 * A device may free its send queue before the poller comes, so the CQ has room for all
	 * completions.
	 */
	const struct pair_options options = { .cqe = THREADS * ROUNDS };
	pthread_t poller;

	if (!pair_open(&pair, &options))
		return;
	CU_ASSERT_EQUAL_FATAL(pthread_create(&poller, NULL, poll_writes, NULL), 0);
	run(post_writes, THREADS);
	CU_ASSERT_EQUAL(pthread_join(poller, NULL), 0);
	CU_ASSERT_EQUAL(atomic_exchange(&failures, 0), 0);
	CU_ASSERT_TRUE(stays_empty(pair.a.scq));
	pair_close(&pair);
}

static void *poll_and_repost(void *arg)
{
	struct ibv_wc wc[4];
	int n, i;

	(void)arg;
	while (!atomic_load(&stop)) {
		n = ibv_poll_cq(pair.b.rcq, 4, wc);
		failures += n < 0;
		for (i = 0; i < n; i++) {
			failures += wc[i].status != IBV_WC_SUCCESS || wc[i].byte_len != 16;
			failures += post_recv(&pair.b, 0, 0, 64) != 0;
			atomic_fetch_add(&polled, 1);
		}
		if (!n)
			sched_yield();
	}
	return NULL;
}

static void *send_all(void *arg)
{
	unsigned i;

	(void)arg;
	for (i = 0; i < 4 * ROUNDS; i++)
		failures += post_send(&pair.a, i, 0, 16, IBV_SEND_SIGNALED) ||
			    !completes(pair.a.scq, i, IBV_WC_SUCCESS, NULL);
	return NULL;
}

static bool all_polled(void *arg)
{
	(void)arg;
	return atomic_load(&polled) == 4 * ROUNDS;
}

static void many_poll_one_sends(void)
{
	pthread_t pollers[2];
	unsigned i;

	if (!pair_open(&pair, &(struct pair_options){ .min_rnr_timer = 1 }))
		return;
	atomic_store(&stop, false);
	atomic_store(&polled, 0);
	for (i = 0; i < 8; i++)
		CU_ASSERT_EQUAL(post_recv(&pair.b, 0, 0, 64), 0);
	for (i = 0; i < 2; i++)
		CU_ASSERT_EQUAL_FATAL(pthread_create(&pollers[i], NULL, poll_and_repost, NULL), 0);
	run(send_all, 1);
	CU_ASSERT_TRUE(unit_wait_for(all_polled, NULL, PATIENCE));
	atomic_store(&stop, true);
	for (i = 0; i < 2; i++)
		CU_ASSERT_EQUAL(pthread_join(pollers[i], NULL), 0);
	CU_ASSERT_EQUAL(atomic_exchange(&failures, 0), 0);
	pair_close(&pair);
}

static void *live_and_die(void *arg)
{
	static pthread_mutex_t asserting = PTHREAD_MUTEX_INITIALIZER; /* CUnit is not thread-safe */
	struct pair own;
	unsigned i;

	(void)arg;
	for (i = 0; i < 20; i++) {
		bool good;

		pthread_mutex_lock(&asserting);
		good = pair_open(&own, NULL);
		pthread_mutex_unlock(&asserting);
		if (!good) {
			failures++;
			break;
		}
		failures += post_recv(&own.b, 1, 0, 64) ||
			    post_send(&own.a, 2, 0, 64, IBV_SEND_SIGNALED) ||
			    !completes(own.a.scq, 2, IBV_WC_SUCCESS, NULL) ||
			    !completes(own.b.rcq, 1, IBV_WC_SUCCESS, NULL);
		failures += !side_release(&own.a);
		failures += !side_release(&own.b);
	}
	return NULL;
}

static void objects_of_their_own(void)
{
	run(live_and_die, THREADS);
}

/* Writes until one fails because another thread deregisters the memory. */
static void *write_until_refused(void *arg)
{
	struct ibv_wc wc = { 0 };

	(void)arg;
	while (!post_rdma(&pair.a, IBV_WR_RDMA_WRITE, 1, 0, 4096, &pair.b, 0, IBV_SEND_SIGNALED) &&
	       poll_one(pair.a.scq, &wc) && !wc.status)
		atomic_fetch_add(&polled, 1);
	failures += wc.status != IBV_WC_REM_ACCESS_ERR;
	return NULL;
}

static bool some_were_written(void *arg)
{
	(void)arg;
	return atomic_load(&polled) > 100;
}

static void nothing_arrives_after_dereg(void)
{
	struct side target;
	struct ibv_mr copy;
	pthread_t writer;
	size_t i;

	if (!pair_open(&pair, NULL))
		return;
	target = pair.b;
	copy = *target.mr;
	pair.b.mr = &copy;
	atomic_store(&polled, 0);
	memset(pair.a.buffer, 0x5a, 4096);
	CU_ASSERT_EQUAL_FATAL(pthread_create(&writer, NULL, write_until_refused, NULL), 0);
	CU_ASSERT_TRUE(unit_wait_for(some_were_written, NULL, PATIENCE));
	CU_ASSERT_EQUAL(ibv_dereg_mr(target.mr), 0);
	memset(target.buffer, 0, 4096);
	CU_ASSERT_EQUAL(pthread_join(writer, NULL), 0);
	for (i = 0; i < 4096 && !target.buffer[i]; i++)
		;
	CU_ASSERT_EQUAL(i, 4096);
	CU_ASSERT_EQUAL(atomic_exchange(&failures, 0), 0);
	CU_ASSERT_TRUE(device_is_rxe || async_is(IBV_EVENT_QP_ACCESS_ERR, pair.b.qp));
	pair.b.mr = NULL;
	pair_close(&pair);
}

/* Posts until `stop`, and counts the accepted requests. */
static void *post_receives(void *arg)
{
	(void)arg;
	while (!atomic_load(&stop)) {
		int error = post_recv(&pair.b, 7, 0, 8);

		failures += error && error != ENOMEM;
		atomic_fetch_add(&polled, !error);
		if (error)
			sched_yield();
	}
	return NULL;
}

static void error_while_posting(void)
{
	unsigned flushed = 0, n;
	struct ibv_wc wc[16];
	pthread_t poster;

	if (device_is_rxe) {
		skip("kernel software RoCE forgets receives that are posted in ERR");
		return;
	}
	if (!pair_open(&pair, NULL))
		return;
	atomic_store(&stop, false);
	atomic_store(&polled, 0);
	CU_ASSERT_EQUAL_FATAL(pthread_create(&poster, NULL, post_receives, NULL), 0);
	CU_ASSERT_EQUAL(move_to(pair.b.qp, IBV_QPS_ERR), 0);
	while (flushed < 200) {
		n = (unsigned)ibv_poll_cq(pair.b.rcq, 16, wc);
		failures += n > 16;
		flushed += n;
	}
	atomic_store(&stop, true);
	CU_ASSERT_EQUAL(pthread_join(poster, NULL), 0);
	while (flushed < atomic_load(&polled) && poll_one(pair.b.rcq, wc))
		flushed++;
	CU_ASSERT_EQUAL(flushed, atomic_load(&polled));
	CU_ASSERT_TRUE(stays_empty(pair.b.rcq));
	CU_ASSERT_EQUAL(atomic_exchange(&failures, 0), 0);
	pair_close(&pair);
}

static const struct unit_test tests[] = {
	{ "several threads post to one QP, one polls", many_post_one_polls },
	{ "several threads poll one CQ and post receives", many_poll_one_sends },
	{ "several threads with objects of their own", objects_of_their_own },
	{ "dereg while another thread writes: nothing arrives afterwards",
	  nothing_arrives_after_dereg },
	{ "ERR while another thread posts: each request is flushed once", error_while_posting },
};

CONFORM_MAIN("conform_thread", tests)
