/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * Behaviour that existing consumers rely on beyond the specification: data transfers and
 * completions.
 */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include "test/unit/two_ends.h"
#include "test/unit/word_watch.h"
#include "util/clock.h"

#define FAR    32768u /* offset of the target of writes */
#define ROUNDS 300u
#define PAGE   4096u

static void connected(void)
{
	setup();
	connect_pair(&a, &b);
}

static DAT_DTO_COOKIE cookie(uint64_t value)
{
	return (DAT_DTO_COOKIE){ .as_64 = value };
}

static DAT_RMR_TRIPLET far(size_t offset, DAT_SEG_LENGTH length)
{
	return (DAT_RMR_TRIPLET){ .virtual_address = (uintptr_t)env.memory + FAR + offset,
				  .segment_length = length,
				  .rmr_context = env.rkey };
}

static DAT_RETURN post_write(uint64_t value, size_t from, size_t to, DAT_SEG_LENGTH length,
			     DAT_COMPLETION_FLAGS flags)
{
	DAT_LMR_TRIPLET local = segment(&env, from, length);
	DAT_RMR_TRIPLET remote = far(to, length);

	return dat_ep_post_rdma_write(a.ep, 1, &local, cookie(value), &remote, flags);
}

static uint32_t *word_at(size_t offset)
{
	return (uint32_t *)(void *)(env.memory + offset);
}

static bool word_becomes(const uint32_t *word, uint32_t value)
{
	uint64_t deadline = clock_now() + PATIENCE * NSEC_PER_USEC;

	while (__atomic_load_n(word, __ATOMIC_ACQUIRE) != value) {
		if (clock_now() > deadline)
			return false;
		sched_yield();
	}
	return true;
}

static bool all_words(const uint32_t *words, size_t count, uint32_t value)
{
	size_t i;

	for (i = 0; i < count; i++)
		if (words[i] != value)
			return false;
	return true;
}

static void expect_done(DAT_EVD_HANDLE evd, DAT_EP_HANDLE ep, uint64_t value, DAT_DTOS operation,
			DAT_SEG_LENGTH length)
{
	const DAT_DTO_COMPLETION_EVENT_DATA *dto;
	DAT_EVENT event;

	if (!event_next(evd, &event))
		return;
	dto = &event.event_data.dto_completion_event_data;
	CU_ASSERT_EQUAL(event.event_number, DAT_DTO_COMPLETION_EVENT);
	CU_ASSERT_PTR_EQUAL(dto->ep_handle, ep);
	CU_ASSERT_EQUAL(dto->user_cookie.as_64, value);
	CU_ASSERT_EQUAL(dto->status, DAT_DTO_SUCCESS);
	CU_ASSERT_TRUE(is_operation(dto, operation));
	CU_ASSERT_EQUAL(dto->transfered_length, length);
}

/* ---- the order of writes in memory ---- */

struct reader {
	size_t words;
	atomic_uint seen; /* the last round whose last word has arrived */
	unsigned torn;	  /* rounds in which a word before the last was still old */
};

static void *read_rounds(void *arg)
{
	struct reader *r = arg;
	const uint32_t *words = word_at(FAR);
	uint32_t round;

	for (round = 1; round <= ROUNDS; round++) {
		if (!word_becomes(words + r->words - 1, round))
			return NULL;
		r->torn += !all_words(words, r->words, round);
		atomic_store(&r->seen, round);
	}
	return NULL;
}

/* One thread polls the last word while another writes, as consumers poll for a message. */
static void watch_writes(size_t words)
{
	struct reader r = { .words = words };
	uint64_t deadline = clock_now() + PATIENCE * NSEC_PER_USEC;
	uint32_t round;
	pthread_t thread;
	size_t i;

	memset(env.memory, 0, BUFFER);
	CU_ASSERT_EQUAL_FATAL(pthread_create(&thread, NULL, read_rounds, &r), 0);
	for (round = 1; round <= ROUNDS; round++) {
		for (i = 0; i < words; i++)
			word_at(0)[i] = round;
		MUST(post_write(round, 0, 0, (DAT_SEG_LENGTH)(words * 4), 0));
		while (atomic_load(&r.seen) != round && clock_now() < deadline)
			sched_yield();
		expect_dto(a.request, a.ep, round, DAT_DTO_SUCCESS);
	}
	pthread_join(thread, NULL);
	CU_ASSERT_EQUAL(atomic_load(&r.seen), ROUNDS);
	CU_ASSERT_EQUAL(r.torn, 0);
}

static void test_last_word_last(void)
{
	connected();
	watch_writes(1);
	watch_writes(2);
	watch_writes(16);
	watch_writes(1000);
	watch_writes(8192);
	teardown();
}

/* Writes that end with the word, from memory that lies so many bytes behind the target, in the address within a page. */
static void flip_word(size_t word, DAT_SEG_LENGTH length, size_t ahead)
{
	size_t to = word + 4 - length, from = (FAR + to - ahead) % PAGE;
	struct word_watch watch;
	unsigned i;

	word_watch_begin(&watch, word_at(FAR + word));
	for (i = 0; i < 600; i++) {
		MUST(post_write(i, from + i % 2 * 2 * PAGE, to, length, 0));
		expect_dto(a.request, a.ep, i, DAT_DTO_SUCCESS);
	}
	word_watch_end(&watch);
}

static void test_word_at_once(void)
{
	static const size_t aheads[] = { 0, 4, 8, 12, PAGE / 2 };
	size_t word, i;

	connected();
	memset(env.memory, 0, 2 * PAGE);
	memset(env.memory + 2 * PAGE, 0xff, 2 * PAGE);
	for (word = 64; word < 128; word += 4) { /* at each place of a line */
		for (i = 0; i < COUNT(aheads); i++) {
			flip_word(word, 4, aheads[i]);
			flip_word(word, 12, aheads[i]);
		}
	}
	teardown();
}

static void test_order_of_writes(void)
{
	uint32_t round;
	size_t i;

	connected();
	for (round = 1; round <= ROUNDS; round++) {
		DAT_LMR_TRIPLET room = segment(&env, 16384, 4);
		DAT_LMR_TRIPLET word = segment(&env, 0, 4);

		for (i = 0; i < 500; i++)
			word_at(0)[i] = round;
		MUST(dat_ep_post_recv(b.ep, 1, &room, cookie(round), 0));
		/* a body, a flag behind it, and a message after both */
		MUST(post_write(1, 0, 4, 2000, DAT_COMPLETION_SUPPRESS_FLAG));
		MUST(post_write(2, 0, 0, 4, DAT_COMPLETION_SUPPRESS_FLAG));
		CU_ASSERT_TRUE(word_becomes(word_at(FAR), round));
		CU_ASSERT_TRUE(all_words(word_at(FAR + 4), 500, round));
		for (i = 0; i < 500; i++)
			word_at(0)[i] = ~round;
		MUST(post_write(3, 0, 4, 2000, DAT_COMPLETION_SUPPRESS_FLAG));
		MUST(dat_ep_post_send(a.ep, 1, &word, cookie(round), 0));
		expect_done(b.recv, b.ep, round, DAT_DTO_RECEIVE, 4);
		CU_ASSERT_TRUE(all_words(word_at(FAR + 4), 500, ~round));
		expect_dto(a.request, a.ep, round, DAT_DTO_SUCCESS);
	}
	teardown();
}

/* ---- contents of completions ---- */

static void test_length_and_cookie(void)
{
	static const DAT_SEG_LENGTH lengths[] = { 1, 7, 64, 4095, 16384 };
	size_t i;

	connected();
	for (i = 0; i < COUNT(lengths); i++) {
		DAT_LMR_TRIPLET from = segment(&env, 0, lengths[i]);
		DAT_LMR_TRIPLET room = segment(&env, 16384, 16384);
		uint64_t value = 0x0123456789abcd00u + i;

		MUST(dat_ep_post_recv(b.ep, 1, &room, cookie(~value), 0));
		MUST(dat_ep_post_send(a.ep, 1, &from, cookie(value), 0));
		expect_done(a.request, a.ep, value, DAT_DTO_SEND, lengths[i]);
		expect_done(b.recv, b.ep, ~value, DAT_DTO_RECEIVE, lengths[i]);
		MUST(post_write(value + 100, 0, 0, lengths[i], 0));
		expect_done(a.request, a.ep, value + 100, DAT_DTO_RDMA_WRITE, lengths[i]);
	}
	teardown();
}

static void test_operation(void)
{
	DAT_LMR_TRIPLET local, room;
	DAT_RMR_TRIPLET remote;

	connected();
	local = segment(&env, 0, 40);
	room = segment(&env, 4096, 40);
	remote = far(0, 40);
	MUST(dat_ep_post_recv(b.ep, 1, &room, cookie(1), 0));
	MUST(dat_ep_post_send(a.ep, 1, &local, cookie(2), 0));
	MUST(dat_ep_post_rdma_write(a.ep, 1, &local, cookie(3), &remote, 0));
	MUST(dat_ep_post_rdma_read(a.ep, 1, &local, cookie(4), &remote, 0));
	expect_done(b.recv, b.ep, 1, DAT_DTO_RECEIVE, 40);
	expect_done(a.request, a.ep, 2, DAT_DTO_SEND, 40);
	expect_done(a.request, a.ep, 3, DAT_DTO_RDMA_WRITE, 40);
	expect_done(a.request, a.ep, 4, DAT_DTO_RDMA_READ, 40);
	teardown();
}

/* The provider has extensions; flushes are still ordinary completion events. */
static void test_flushes(void)
{
	DAT_PROVIDER_ATTR attr;
	DAT_EVENT event;
	unsigned i;

	connected();
	OK(dat_ia_query(env.ia, NULL, 0, NULL, DAT_PROVIDER_FIELD_ALL, &attr));
	CU_ASSERT_TRUE(attr.num_provider_specific_attr > 0);
	post_recvs(&a, 5);
	for (i = 0; i < 3; i++)
		MUST(try_send(&a, 10 + i, 0)); /* the peer has no receives for them */
	disconnect_pair(&a, &b);
	for (i = 0; i < 8; i++) {
		DAT_EVD_HANDLE evd = i < 5 ? a.recv : a.request;

		memset(&event, 0, sizeof(event));
		if (!event_next(evd, &event))
			break;
		CU_ASSERT_EQUAL(event.event_number, DAT_DTO_COMPLETION_EVENT);
		CU_ASSERT_EQUAL(event.event_data.dto_completion_event_data.status,
				DAT_DTO_ERR_FLUSHED);
		CU_ASSERT_EQUAL(event.event_data.dto_completion_event_data.user_cookie.as_64,
				i < 5 ? i : 5 + i);
	}
	teardown();
}

static void test_no_receives(void)
{
	DAT_LMR_TRIPLET local;
	DAT_RMR_TRIPLET remote;
	unsigned i;

	connected();
	local = segment(&env, 0, 4096);
	remote = far(0, 4096);
	for (i = 0; i < 100; i++) {
		MUST(dat_ep_post_rdma_write(a.ep, 1, &local, cookie(i), &remote, 0));
		expect_dto(a.request, a.ep, i, DAT_DTO_SUCCESS);
		MUST(dat_ep_post_rdma_read(a.ep, 1, &local, cookie(i), &remote, 0));
		expect_dto(a.request, a.ep, i, DAT_DTO_SUCCESS);
	}
	CU_ASSERT_EQUAL(state_of(b.ep), DAT_EP_STATE_CONNECTED);
	expect_quiet(b.recv);
	teardown();
}

/* ---- EVDs ---- */

#define MANY 8u

/* One EVD takes the completions of all requests, receives and binds of all endpoints. */
/*
 * Attributes of a shipped MPI: requests may be UNSIGNALLED, receives may not, and both use one EVD.
 */
static const DAT_EP_ATTR mpi_attr = { .request_completion_flags = DAT_COMPLETION_UNSIGNALLED_FLAG,
				      .max_recv_dtos = 16,
				      .max_request_dtos = 16,
				      .max_recv_iov = 4,
				      .max_request_iov = 4 };

static void test_shared_streams(void)
{
	DAT_EVD_HANDLE cm, dto;
	DAT_EP_HANDLE near[MANY], there[MANY];
	DAT_RMR_HANDLE rmr;
	DAT_RMR_CONTEXT context;
	DAT_LMR_TRIPLET part;
	DAT_EVENT event;
	DAT_PSP_HANDLE psp;
	DAT_CONN_QUAL qual;
	unsigned i, sent = 0, received = 0, bound = 0, established = 0;

	env_open(&env);
	cm = evd_open(&env, 64, DAT_EVD_CR_FLAG | DAT_EVD_CONNECTION_FLAG);
	dto = evd_open(&env, 256, DAT_EVD_DTO_FLAG | DAT_EVD_RMR_BIND_FLAG);
	MUST(dat_psp_create_any(env.ia, &qual, cm, DAT_PSP_CONSUMER_FLAG, &psp));
	part = segment(&env, 0, 100);
	for (i = 0; i < MANY; i++) {
		MUST(dat_ep_create(env.ia, env.pz, dto, dto, cm, i % 2 ? NULL : &mpi_attr,
				   &near[i]));
		MUST(dat_ep_create(env.ia, env.pz, dto, dto, cm, i % 3 ? NULL : &mpi_attr,
				   &there[i]));
		MUST(dat_ep_post_recv(there[i], 1, &part, cookie(i), 0));
		MUST(dat_ep_connect(near[i], env.address, qual, DAT_TIMEOUT_INFINITE, 0, NULL,
				    DAT_QOS_BEST_EFFORT, 0));
	}
	for (i = 0; i < 3 * MANY && event_next(cm, &event); i++) {
		if (event.event_number == DAT_CONNECTION_REQUEST_EVENT) {
			static unsigned next;

			MUST(dat_cr_accept(event.event_data.cr_arrival_event_data.cr_handle,
					   there[next++ % MANY], 0, NULL));
		} else {
			CU_ASSERT_EQUAL(event.event_number, DAT_CONNECTION_EVENT_ESTABLISHED);
			established++;
		}
	}
	CU_ASSERT_EQUAL_FATAL(established, 2 * MANY);
	MUST(dat_rmr_create(env.pz, &rmr));
	MUST(dat_rmr_bind(rmr, env.lmr, &part, DAT_MEM_PRIV_REMOTE_READ_FLAG, DAT_VA_TYPE_VA,
			  near[0], (DAT_RMR_COOKIE){ .as_64 = 1 }, 0, &context));
	for (i = 0; i < MANY; i++)
		MUST(dat_ep_post_send(near[i], 1, &part, cookie(100 + i), 0));
	for (i = 0; i < 2 * MANY + 1 && event_next(dto, &event); i++) {
		const DAT_DTO_COMPLETION_EVENT_DATA *data =
			&event.event_data.dto_completion_event_data;

		if (event.event_number == DAT_RMR_BIND_COMPLETION_EVENT)
			bound++;
		else if (data->user_cookie.as_64 >= 100 && is_operation(data, DAT_DTO_SEND))
			sent++;
		else if (data->user_cookie.as_64 < 100 && is_operation(data, DAT_DTO_RECEIVE))
			received++;
	}
	CU_ASSERT_EQUAL(sent, MANY);
	CU_ASSERT_EQUAL(received, MANY);
	CU_ASSERT_EQUAL(bound, 1);
	for (i = 0; i < MANY; i++) {
		MUST(dat_ep_free(near[i]));
		MUST(dat_ep_free(there[i]));
	}
	MUST(dat_rmr_free(rmr));
	MUST(dat_psp_free(psp));
	evd_close(dto);
	evd_close(cm);
	env_close(&env);
}

/*
 * Endpoints may be able to post more than their EVD holds; an overflow is reported only if they do.
 */
static void test_short_evd(void)
{
	DAT_EP_ATTR attr = {
		.max_request_dtos = 512, .max_recv_dtos = 1, .max_request_iov = 1, .max_recv_iov = 1
	};
	DAT_EVD_PARAM param;
	DAT_EVENT event;
	struct end c;
	DAT_COUNT i;

	setup();
	c.env = &env;
	c.conn = evd_open(&env, 8, DAT_EVD_CONNECTION_FLAG);
	c.recv = DAT_HANDLE_NULL;
	c.request = evd_open(&env, 1, DAT_EVD_DTO_FLAG);
	MUST(dat_ep_create(env.ia, env.pz, b.recv, c.request, c.conn, &attr, &c.ep));
	MUST(dat_evd_query(c.request, DAT_EVD_FIELD_EVD_QLEN, &param));
	CU_ASSERT_TRUE_FATAL(param.evd_qlen < 512);
	connect_pair(&c, &b);
	for (i = 0; i < param.evd_qlen; i++)
		MUST(try_write(&c, (uint64_t)i, env.rkey));
	for (i = 0; i < param.evd_qlen; i++)
		expect_dto(c.request, c.ep, (uint64_t)i, DAT_DTO_SUCCESS);
	expect_quiet(env.async);
	for (i = 0; i < 512; i++)
		if (try_write(&c, (uint64_t)i, env.rkey) != DAT_SUCCESS)
			break;
	memset(&event, 0, sizeof(event));
	if (event_next(env.async, &event)) {
		CU_ASSERT_EQUAL(event.event_number, DAT_ASYNC_ERROR_EVD_OVERFLOW);
		CU_ASSERT_PTR_EQUAL(event.event_data.asynch_error_event_data.dat_handle, c.request);
	}
	MUST(dat_ep_free(c.ep));
	evd_close(c.request);
	evd_close(c.conn);
	teardown();
}

/* ---- the end ---- */

static void test_graceful(void)
{
	unsigned i;

	connected();
	post_recvs(&b, 8);
	for (i = 0; i < 8; i++)
		MUST(try_send(&a, i, 0));
	MUST(dat_ep_disconnect(a.ep, DAT_CLOSE_GRACEFUL_FLAG));
	expect(a.conn, DAT_CONNECTION_EVENT_DISCONNECTED, a.ep);
	expect(b.conn, DAT_CONNECTION_EVENT_DISCONNECTED, b.ep);
	for (i = 0; i < 8; i++) {
		expect_dto(b.recv, b.ep, i, DAT_DTO_SUCCESS);
		expect_dto(a.request, a.ep, i, DAT_DTO_SUCCESS);
	}
	teardown();
}

static void test_memory_goes_first(void)
{
	DAT_REGION_DESCRIPTION region;
	DAT_LMR_TRIPLET room = { .segment_length = 4096 };
	DAT_LMR_HANDLE lmr;
	DAT_EVENT event;
	unsigned i;

	connected();
	region.for_va = malloc(4096);
	CU_ASSERT_PTR_NOT_NULL_FATAL(region.for_va);
	room.virtual_address = (uintptr_t)region.for_va;
	MUST(dat_lmr_create(env.ia, DAT_MEM_TYPE_VIRTUAL, region, 4096, env.pz,
			    DAT_MEM_PRIV_ALL_FLAG, DAT_VA_TYPE_VA, &lmr, &room.lmr_context, NULL,
			    NULL, NULL));
	for (i = 0; i < 4; i++)
		MUST(dat_ep_post_recv(b.ep, 1, &room, cookie(i), 0));
	MUST(dat_lmr_free(lmr));
	free(region.for_va);
	disconnect_pair(&a, &b);
	for (i = 0; i < 4; i++)
		expect_dto(b.recv, b.ep, i, DAT_DTO_ERR_FLUSHED);
	IS(dat_evd_dequeue(b.recv, &event), DAT_QUEUE_EMPTY);
	teardown();
}

static void test_20000_dtos(void)
{
	DAT_EP_ATTR attr = { .max_request_dtos = 20000,
			     .max_recv_dtos = 20000,
			     .max_request_iov = 1,
			     .max_recv_iov = 1 };
	DAT_EP_PARAM param;
	DAT_LMR_TRIPLET nothing;
	struct end c;
	unsigned i;

	env_open(&env);
	end_open(&env, &c, &attr);
	MUST(dat_ep_query(c.ep, DAT_EP_FIELD_ALL, &param));
	CU_ASSERT_TRUE(param.ep_attr.max_request_dtos >= 20000);
	CU_ASSERT_TRUE(param.ep_attr.max_recv_dtos >= 20000);
	nothing = segment(&env, 0, 1);
	for (i = 0; i < 20000; i++)
		if (dat_ep_post_recv(c.ep, 1, &nothing, cookie(i), 0) != DAT_SUCCESS)
			break;
	CU_ASSERT_EQUAL(i, 20000);
	end_close(&c);
	env_close(&env);
}

static const struct unit_test tests[] = {
	{ "C1: the last word of a write becomes visible last", test_last_word_last },
	{ "C1: an aligned word of 32 bits becomes visible at once", test_word_at_once },
	{ "C2: writes become visible in order, and before a later message", test_order_of_writes },
	{ "C3: events of sends and writes have length and cookie, too", test_length_and_cookie },
	{ "C4: each event names its operation", test_operation },
	{ "C5: a flush is an ordinary completion event", test_flushes },
	{ "C10: an endpoint that only uses RDMA needs no receive", test_no_receives },
	{ "C20: one EVD carries several streams", test_shared_streams },
	{ "C21: an EVD may be smaller than the queues of its endpoints", test_short_evd },
	{ "C38: a graceful disconnect lets earlier sends arrive", test_graceful },
	{ "C38: memory can be deregistered while receives are posted", test_memory_goes_first },
	{ "C39: an endpoint can have 20,000 requests and receives", test_20000_dtos },
};

UNIT_MAIN("consumer_data", tests)
