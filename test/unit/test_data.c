/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Data over the software device: transfers, completions and failures. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include "test/unit/ep_util.h"

static struct env env;
static struct end a, b;

static void setup(const DAT_EP_ATTR *attr)
{
	env_open(&env);
	env_listen(&env);
	end_open(&env, &a, attr);
	end_open(&env, &b, attr);
	connect_pair(&a, &b);
}

static void teardown(void)
{
	end_close(&a);
	end_close(&b);
	env_close(&env);
}

static DAT_DTO_COOKIE cookie(uint64_t value)
{
	return (DAT_DTO_COOKIE){ .as_64 = value };
}

static DAT_RMR_TRIPLET target(size_t offset, DAT_SEG_LENGTH length)
{
	return (DAT_RMR_TRIPLET){ .virtual_address = (uintptr_t)env.memory + offset,
				  .segment_length = length,
				  .rmr_context = env.rkey };
}

static DAT_DTO_COMPLETION_EVENT_DATA done(DAT_EVD_HANDLE evd)
{
	DAT_EVENT event;

	memset(&event, 0, sizeof(event));
	if (event_next(evd, &event))
		CU_ASSERT_EQUAL(event.event_number, DAT_DTO_COMPLETION_EVENT);
	return event.event_data.dto_completion_event_data;
}

static void expect_done(DAT_EVD_HANDLE evd, uint64_t value, DAT_DTOS operation,
			DAT_SEG_LENGTH length)
{
	DAT_DTO_COMPLETION_EVENT_DATA data = done(evd);

	CU_ASSERT_EQUAL(data.user_cookie.as_64, value);
	CU_ASSERT_EQUAL(data.status, DAT_DTO_SUCCESS);
	CU_ASSERT_TRUE(is_operation(&data, operation));
	CU_ASSERT_EQUAL(data.transfered_length, length);
}

static void fill(size_t offset, size_t length, int seed)
{
	size_t i;

	for (i = 0; i < length; i++)
		env.memory[offset + i] = (char)(seed + (int)i);
}

static void test_send(void)
{
	DAT_LMR_TRIPLET from[2], to[3];

	setup(NULL);
	fill(0, 100, 1);
	memset(env.memory + 1000, 0x55, 300);
	from[0] = segment(&env, 0, 30);
	from[1] = segment(&env, 30, 70);
	to[0] = segment(&env, 1000, 10);
	to[1] = segment(&env, 1100, 50);
	to[2] = segment(&env, 1200, 60);
	OK(dat_ep_post_recv(b.ep, 3, to, cookie(7), 0));
	OK(dat_ep_post_send(a.ep, 2, from, cookie(8), 0));
	/* the caller may reuse both lists after the post */
	memset(from, 0, sizeof(from));
	memset(to, 0, sizeof(to));
	expect_done(a.request, 8, DAT_DTO_SEND, 100);
	expect_done(b.recv, 7, DAT_DTO_RECEIVE, 100);
	CU_ASSERT_EQUAL(memcmp(env.memory, env.memory + 1000, 10), 0);
	CU_ASSERT_EQUAL(memcmp(env.memory + 10, env.memory + 1100, 50), 0);
	CU_ASSERT_EQUAL(memcmp(env.memory + 60, env.memory + 1200, 40), 0);
	CU_ASSERT_EQUAL(env.memory[1240], 0x55);
	teardown();
}

static void test_write_and_read(void)
{
	DAT_LMR_TRIPLET iov;
	DAT_RMR_TRIPLET remote = target(8000, 1); /* the length is ignored */

	setup(NULL);
	remote.rmr_context = env.rkey;
	remote.virtual_address = (uintptr_t)env.memory + 8000;
	fill(0, 3000, 3);
	iov = segment(&env, 0, 3000);
	OK(dat_ep_post_rdma_write(a.ep, 1, &iov, cookie(1), &remote, 0));
	memset(&remote, 0, sizeof(remote));
	expect_done(a.request, 1, DAT_DTO_RDMA_WRITE, 3000);
	CU_ASSERT_EQUAL(memcmp(env.memory, env.memory + 8000, 3000), 0);
	remote = target(8000, 3000);
	iov = segment(&env, 20000, 3000);
	OK(dat_ep_post_rdma_read(a.ep, 1, &iov, cookie(2), &remote,
				 DAT_COMPLETION_BARRIER_FENCE_FLAG));
	expect_done(a.request, 2, DAT_DTO_RDMA_READ, 3000);
	CU_ASSERT_EQUAL(memcmp(env.memory, env.memory + 20000, 3000), 0);
	expect_quiet(b.recv);
	teardown();
}

static void test_nothing(void)
{
	DAT_LMR_TRIPLET nothing = { .virtual_address = 1, .lmr_context = 0xbad };
	DAT_RMR_TRIPLET remote;

	setup(NULL);
	remote = target(0, 0);
	OK(dat_ep_post_recv(b.ep, 0, NULL, cookie(1), 0));
	OK(dat_ep_post_recv(b.ep, 1, &nothing, cookie(2), 0));
	OK(dat_ep_post_send(a.ep, 0, NULL, cookie(3), 0));
	OK(dat_ep_post_send(a.ep, 1, &nothing, cookie(4), 0));
	OK(dat_ep_post_rdma_write(a.ep, 0, NULL, cookie(5), &remote, 0));
	OK(dat_ep_post_rdma_read(a.ep, 0, NULL, cookie(6), &remote, 0));
	expect_done(b.recv, 1, DAT_DTO_RECEIVE, 0);
	expect_done(b.recv, 2, DAT_DTO_RECEIVE, 0);
	expect_done(a.request, 3, DAT_DTO_SEND, 0);
	expect_done(a.request, 4, DAT_DTO_SEND, 0);
	expect_done(a.request, 5, DAT_DTO_RDMA_WRITE, 0);
	expect_done(a.request, 6, DAT_DTO_RDMA_READ, 0);
	teardown();
}

/* ---- failures ---- */

static void expect_broken(DAT_EVD_HANDLE evd, DAT_DTO_COMPLETION_STATUS status, DAT_DTOS operation)
{
	DAT_DTO_COMPLETION_EVENT_DATA data = done(evd);

	CU_ASSERT_EQUAL(data.status, status);
	CU_ASSERT_TRUE(is_operation(&data, operation));
	CU_ASSERT_EQUAL(data.transfered_length, 0);
	expect(a.conn, DAT_CONNECTION_EVENT_BROKEN, a.ep);
}

static void test_bad_local_key(void)
{
	DAT_LMR_TRIPLET iov;

	setup(NULL);
	iov = segment(&env, 0, 5000);
	iov.lmr_context ^= 0x5a5a5a;
	OK(dat_ep_post_send(a.ep, 1, &iov, cookie(1), 0));
	expect_broken(a.request, DAT_DTO_ERR_LOCAL_PROTECTION, DAT_DTO_SEND);
	teardown();
}

static void test_bad_remote_key(void)
{
	DAT_RMR_TRIPLET remote;
	DAT_LMR_TRIPLET iov;

	setup(NULL);
	iov = segment(&env, 0, 100);
	remote = target(100, 100);
	remote.rmr_context ^= 0x5a5a5a;
	OK(dat_ep_post_rdma_read(a.ep, 1, &iov, cookie(1), &remote, 0));
	expect_broken(a.request, DAT_DTO_ERR_REMOTE_ACCESS, DAT_DTO_RDMA_READ);
	teardown();
}

/* A peer with a read depth of 0 cannot be read, whatever the key permits. */
static void test_read_beyond_a_depth_of_none(void)
{
	DAT_EP_ATTR attr = { .max_recv_dtos = 4,
			     .max_request_dtos = 4,
			     .max_recv_iov = 1,
			     .max_request_iov = 1,
			     .max_rdma_read_out = 4 };
	DAT_RMR_TRIPLET remote;
	DAT_LMR_TRIPLET iov;

	setup(&attr);
	iov = segment(&env, 0, 100);
	remote = target(100, 100);
	OK(dat_ep_post_rdma_read(a.ep, 1, &iov, cookie(1), &remote, 0));
	expect_broken(a.request, DAT_DTO_ERR_REMOTE_ACCESS, DAT_DTO_RDMA_READ);
	teardown();
}

static void test_write_past_the_end(void)
{
	DAT_RMR_TRIPLET remote;
	DAT_LMR_TRIPLET iov;

	setup(NULL);
	iov = segment(&env, 0, 100);
	remote = target(BUFFER - 99, 100);
	OK(dat_ep_post_rdma_write(a.ep, 1, &iov, cookie(1), &remote, 0));
	expect_broken(a.request, DAT_DTO_ERR_REMOTE_ACCESS, DAT_DTO_RDMA_WRITE);
	teardown();
}

static void test_remote_privileges(void)
{
	DAT_REGION_DESCRIPTION region;
	DAT_RMR_TRIPLET remote;
	DAT_RMR_CONTEXT rkey;
	DAT_LMR_HANDLE lmr;
	DAT_LMR_TRIPLET iov;

	setup(NULL);
	region.for_va = env.memory + 4096;
	OK(dat_lmr_create(env.ia, DAT_MEM_TYPE_VIRTUAL, region, 4096, env.pz,
			  DAT_MEM_PRIV_REMOTE_READ_FLAG, DAT_VA_TYPE_VA, &lmr, NULL, &rkey, NULL,
			  NULL));
	iov = segment(&env, 0, 100);
	remote = target(4096, 100);
	remote.rmr_context = rkey;
	OK(dat_ep_post_rdma_read(a.ep, 1, &iov, cookie(1), &remote, 0));
	expect_done(a.request, 1, DAT_DTO_RDMA_READ, 100);
	OK(dat_ep_post_rdma_write(a.ep, 1, &iov, cookie(2), &remote, 0));
	expect_broken(a.request, DAT_DTO_ERR_REMOTE_ACCESS, DAT_DTO_RDMA_WRITE);
	OK(dat_lmr_free(lmr));
	teardown();
}

static void test_short_receive(void)
{
	DAT_LMR_TRIPLET from, to;
	DAT_DTO_COMPLETION_EVENT_DATA data;

	setup(NULL);
	from = segment(&env, 0, 100);
	to = segment(&env, 1000, 99);
	OK(dat_ep_post_recv(b.ep, 1, &to, cookie(1), 0));
	OK(dat_ep_post_send(a.ep, 1, &from, cookie(2), 0));
	data = done(b.recv);
	CU_ASSERT_EQUAL(data.status, DAT_DTO_ERR_LOCAL_LENGTH);
	CU_ASSERT_TRUE(is_operation(&data, DAT_DTO_RECEIVE));
	expect(b.conn, DAT_CONNECTION_EVENT_BROKEN, b.ep);
	CU_ASSERT_EQUAL(done(a.request).status, DAT_DTO_ERR_REMOTE_RESPONDER);
	teardown();
}

/* ---- queues ---- */

static void test_send_before_receive(void)
{
	DAT_LMR_TRIPLET iov;

	setup(NULL);
	iov = segment(&env, 0, 64);
	OK(dat_ep_post_send(a.ep, 1, &iov, cookie(1), 0));
	expect_quiet(a.request);
	iov = segment(&env, 1000, 64);
	OK(dat_ep_post_recv(b.ep, 1, &iov, cookie(2), 0));
	expect_done(b.recv, 2, DAT_DTO_RECEIVE, 64);
	expect_done(a.request, 1, DAT_DTO_SEND, 64);
	teardown();
}

static void test_whole_depth_suppressed(void)
{
	DAT_EP_ATTR attr = { .max_recv_dtos = 110,
			     .max_request_dtos = 107,
			     .max_recv_iov = 1,
			     .max_request_iov = 1 };
	uint64_t i;

	setup(&attr);
	for (i = 0; i < 110; i++)
		OK(dat_ep_post_recv(b.ep, 0, NULL, cookie(i), 0));
	for (i = 0; i < 107; i++) {
		OK(dat_ep_post_send(a.ep, 0, NULL, cookie(i), DAT_COMPLETION_SUPPRESS_FLAG));
		/* the EVD is shorter than the queue */
		if (i >= 50)
			expect_done(b.recv, i - 50, DAT_DTO_RECEIVE, 0);
	}
	expect_quiet(a.request);
	OK(dat_ep_post_send(a.ep, 0, NULL, cookie(500), 0));
	expect_done(a.request, 500, DAT_DTO_SEND, 0);
	teardown();
}

static void test_suppressed_for_ever(void)
{
	uint64_t i;

	setup(NULL);
	for (i = 0; i < 500; i++) {
		OK(dat_ep_post_recv(b.ep, 0, NULL, cookie(i), 0));
		OK(dat_ep_post_send(a.ep, 0, NULL, cookie(i), DAT_COMPLETION_SUPPRESS_FLAG));
		expect_done(b.recv, i, DAT_DTO_RECEIVE, 0);
	}
	expect_quiet(a.request);
	teardown();
}

static void test_full_queue(void)
{
	DAT_EP_PARAM param;
	DAT_COUNT i, depth;

	setup(NULL);
	OK(dat_ep_query(a.ep, DAT_EP_FIELD_ALL, &param));
	depth = param.ep_attr.max_request_dtos;
	for (i = 0; i < depth; i++)
		OK(dat_ep_post_send(a.ep, 0, NULL, cookie((uint64_t)i), 0));
	IS(dat_ep_post_send(a.ep, 0, NULL, cookie(1), 0),
	   E(INSUFFICIENT_RESOURCES, RESOURCE_MEMORY));
	OK(dat_ep_post_recv(b.ep, 0, NULL, cookie(0), 0));
	expect_done(a.request, 0, DAT_DTO_SEND, 0);
	OK(dat_ep_post_send(a.ep, 0, NULL, cookie(1), 0));
	IS(dat_ep_post_send(a.ep, 0, NULL, cookie(1), 0),
	   E(INSUFFICIENT_RESOURCES, RESOURCE_MEMORY));
	teardown();
}

static void test_wait_and_dequeue_alternate(void)
{
	DAT_COUNT i, more = 0, before = 0;
	DAT_EVENT event;

	setup(NULL);
	post_recvs(&b, 12);
	for (i = 0; i < 12; i++)
		OK(try_send(&a, (uint64_t)i, DAT_COMPLETION_SUPPRESS_FLAG));
	OK(dat_evd_wait(b.recv, PATIENCE, 12, &event, &more));
	CU_ASSERT_EQUAL(more, 11);
	for (i = 1; i < 12; i++) {
		before = more;
		if (i % 2) {
			OK(dat_evd_dequeue(b.recv, &event));
		} else {
			OK(dat_evd_wait(b.recv, 0, 1, &event, &more));
			CU_ASSERT_EQUAL(more, before - 2);
		}
		CU_ASSERT_EQUAL(event.event_data.dto_completion_event_data.user_cookie.as_64,
				(uint64_t)i);
	}
	expect_quiet(b.recv);
	teardown();
}

#define LARGE (16u << 20)

/* C39: 16 MiB in one write, or the device's maximum. */
static void test_large(void)
{
	DAT_REGION_DESCRIPTION region;
	DAT_IA_ATTR attr;
	DAT_RMR_TRIPLET remote = { .segment_length = LARGE };
	DAT_LMR_TRIPLET iov = { .segment_length = LARGE };
	char *memory = malloc(2 * LARGE);
	DAT_LMR_HANDLE lmr;
	size_t i;

	setup(NULL);
	OK(dat_ia_query(env.ia, NULL, DAT_IA_FIELD_ALL, &attr, 0, NULL));
	if (attr.max_rdma_size < LARGE)
		iov.segment_length = remote.segment_length = attr.max_rdma_size;
	CU_ASSERT_PTR_NOT_NULL_FATAL(memory);
	for (i = 0; i < LARGE; i++)
		memory[i] = (char)(i * 7 + i / 4096);
	region.for_va = memory;
	OK(dat_lmr_create(env.ia, DAT_MEM_TYPE_VIRTUAL, region, 2 * LARGE, env.pz,
			  DAT_MEM_PRIV_ALL_FLAG, DAT_VA_TYPE_VA, &lmr, &iov.lmr_context,
			  &remote.rmr_context, NULL, NULL));
	iov.virtual_address = (uintptr_t)memory;
	remote.virtual_address = (uintptr_t)memory + LARGE;
	OK(dat_ep_post_rdma_write(a.ep, 1, &iov, cookie(1), &remote, 0));
	expect_done(a.request, 1, DAT_DTO_RDMA_WRITE, iov.segment_length);
	CU_ASSERT_EQUAL(memcmp(memory, memory + LARGE, iov.segment_length), 0);
	OK(dat_lmr_free(lmr));
	free(memory);
	teardown();
}

/* C39, C24: 51,200 entries, or the device's maximum. */
static void test_large_evd(void)
{
	DAT_COUNT wanted = 51200;
	DAT_EVD_PARAM param;
	DAT_EVD_HANDLE evd;
	DAT_IA_ATTR attr;

	env_open(&env);
	OK(dat_ia_query(env.ia, NULL, DAT_IA_FIELD_ALL, &attr, 0, NULL));
	if (attr.max_evd_qlen < wanted)
		wanted = attr.max_evd_qlen;
	evd = evd_open(&env, wanted, DAT_EVD_DTO_FLAG);
	OK(dat_evd_query(evd, DAT_EVD_FIELD_ALL, &param));
	CU_ASSERT_TRUE(param.evd_qlen >= wanted);
	evd_close(evd);
	env_close(&env);
}

/* ---- threads ---- */

#define THREADS 4
#define EACH	500

static void *send_many(void *arg)
{
	uint64_t base = (uintptr_t)arg * EACH, i;
	DAT_RETURN status;

	for (i = 0; i < EACH; i++) {
		do
			status = try_send(&a, base + i, DAT_COMPLETION_DEFAULT_FLAG);
		while (status == E(INSUFFICIENT_RESOURCES, RESOURCE_MEMORY));
		if (status != DAT_SUCCESS)
			return arg;
	}
	return NULL;
}

/* Reaps one side: each cookie completes once, and those of one thread in order. */
static void reap(uint64_t next[THREADS])
{
	DAT_DTO_COMPLETION_EVENT_DATA data = done(a.request);
	uint64_t thread = data.user_cookie.as_64 / EACH;

	CU_ASSERT_EQUAL(data.status, DAT_DTO_SUCCESS);
	CU_ASSERT_TRUE_FATAL(thread < THREADS);
	CU_ASSERT_EQUAL(data.user_cookie.as_64, thread * EACH + next[thread]);
	next[thread]++;
}

static void test_parallel_posts(void)
{
	uint64_t next[THREADS] = { 0 }, i;
	pthread_t threads[THREADS];
	void *result;

	setup(NULL);
	for (i = 0; i < 8; i++)
		OK(try_recv(&b, i));
	for (i = 0; i < THREADS; i++)
		CU_ASSERT_EQUAL_FATAL(pthread_create(&threads[i], NULL, send_many,
						     (void *)(uintptr_t)i),
				      0);
	for (i = 0; i < THREADS * EACH; i++) {
		CU_ASSERT_EQUAL(done(b.recv).user_cookie.as_64, i);
		OK(try_recv(&b, i + 8));
		reap(next);
	}
	for (i = 0; i < THREADS; i++) {
		CU_ASSERT_EQUAL(pthread_join(threads[i], &result), 0);
		CU_ASSERT_PTR_NULL(result);
	}
	teardown();
}

static void *answer(void *arg)
{
	uint64_t i;

	(void)arg;
	for (i = 0; i < EACH; i++) {
		done(b.recv);
		OK(try_recv(&b, i));
		OK(try_send(&b, i, DAT_COMPLETION_SUPPRESS_FLAG));
	}
	return NULL;
}

static void test_ping_pong_asleep(void)
{
	pthread_t thread;
	uint64_t i;

	setup(NULL);
	OK(try_recv(&a, 0));
	OK(try_recv(&b, 0));
	CU_ASSERT_EQUAL_FATAL(pthread_create(&thread, NULL, answer, NULL), 0);
	for (i = 0; i < EACH; i++) {
		OK(try_send(&a, i, DAT_COMPLETION_SUPPRESS_FLAG));
		done(a.recv);
		OK(try_recv(&a, i));
	}
	CU_ASSERT_EQUAL(pthread_join(thread, NULL), 0);
	teardown();
}

static const struct unit_test tests[] = {
	{ "a message is scattered in order, and other memory is unchanged", test_send },
	{ "writes and reads transfer their segments", test_write_and_read },
	{ "C36: transfers of length 0 work in every way", test_nothing },
	{ "LOCAL_PROTECTION", test_bad_local_key },
	{ "REMOTE_ACCESS of a read", test_bad_remote_key },
	{ "a read of a peer whose read depth is 0: REMOTE_ACCESS",
	  test_read_beyond_a_depth_of_none },
	{ "REMOTE_ACCESS of a write past the end", test_write_past_the_end },
	{ "a peer can do what was granted and no more", test_remote_privileges },
	{ "LOCAL_LENGTH and REMOTE_RESPONDER", test_short_receive },
	{ "C9: a send before its receive waits", test_send_before_receive },
	{ "the whole depth can be posted suppressed", test_whole_depth_suppressed },
	{ "suppressed requests alone never fill the queue", test_suppressed_for_ever },
	{ "C8: a full queue has room for one request after one completion", test_full_queue },
	{ "C28: wait and dequeue may alternate, and nmore is right",
	  test_wait_and_dequeue_alternate },
	{ "C39: one write can have 16 MiB", test_large },
	{ "C39: an EVD of 51,200", test_large_evd },
	{ "posts from several threads complete once and in each thread's order",
	  test_parallel_posts },
	{ "two threads that block for each other's messages are woken", test_ping_pong_asleep },
};

UNIT_MAIN("data", tests)
