/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * Requests that the passive side posts between dat_cr_accept and ESTABLISHED, on a device: the
 * active side's answer is withheld, or its queue pair is not up yet.
 */
#include <dat2/dat_ib_extensions.h>
#include <stdlib.h>
#include <string.h>
#include <rdma/rdma_cma.h>
#include "test/unit/announce.h"
#include "test/unit/two_ends.h"
#include "util/clock.h"

/* ---- what is withheld ---- */

static atomic_bool hold_answer, hold_queue_pair;
static _Atomic(struct rdma_cm_id *) held_answer;
static atomic_bool held_queue_pair;
static pthread_t accepting; /* the passive side's thread */

int __real_rdma_establish(struct rdma_cm_id *id);
int __wrap_rdma_establish(struct rdma_cm_id *id);
int __real_rdma_init_qp_attr(struct rdma_cm_id *id, struct ibv_qp_attr *attr, int *mask);
int __wrap_rdma_init_qp_attr(struct rdma_cm_id *id, struct ibv_qp_attr *attr, int *mask);

/* The active side continues as if it had answered; the peer receives nothing. */
int __wrap_rdma_establish(struct rdma_cm_id *id)
{
	if (!atomic_load(&hold_answer))
		return __real_rdma_establish(id);
	atomic_store(&held_answer, id);
	return 0;
}

static bool queue_pair_is_free(void *unused)
{
	(void)unused;
	return !atomic_load(&hold_queue_pair);
}

/*
 * The steps that bring up the active side's queue pair; those of the passive side run in
 * dat_cr_accept.
 */
int __wrap_rdma_init_qp_attr(struct rdma_cm_id *id, struct ibv_qp_attr *attr, int *mask)
{
	if (atomic_load(&hold_queue_pair) && !pthread_equal(pthread_self(), accepting)) {
		atomic_store(&held_queue_pair, true);
		unit_wait_for(queue_pair_is_free, NULL, UNIT_PATIENCE);
	}
	return __real_rdma_init_qp_attr(id, attr, mask);
}

static bool is_true(void *flag)
{
	return atomic_load((atomic_bool *)flag);
}

static void answer_release(void)
{
	atomic_store(&hold_answer, false);
	CU_ASSERT_EQUAL(__real_rdma_establish(atomic_exchange(&held_answer, NULL)), 0);
}

/* ---- the two sides ---- */

/* b's EP also permits remote atomics. */
static DAT_LMR_HANDLE atomic_lmr;
static DAT_RMR_CONTEXT atomic_rkey;

static void setup_region(void)
{
	DAT_REGION_DESCRIPTION region = { .for_va = env.memory };

	MUST(dat_lmr_create(env.ia, DAT_MEM_TYPE_VIRTUAL, region, BUFFER, env.pz,
			    (DAT_MEM_PRIV_FLAGS)(DAT_MEM_PRIV_ALL_FLAG |
						 (int)DAT_IB_MEM_PRIV_REMOTE_ATOMIC),
			    DAT_VA_TYPE_VA, &atomic_lmr, NULL, &atomic_rkey, NULL, NULL));
}

static void teardown_region(void)
{
	OK(dat_lmr_free(atomic_lmr));
	teardown();
}

/* b has accepted; a has received that and answered, but the answer is withheld from b. */
static void connect_without_answer(void)
{
	announce();
	setup();
	setup_region();
	atomic_store(&hold_answer, true);
	start_connect(&a);
	MUST(dat_cr_accept(request_next(&env), b.ep, 0, NULL));
	expect(a.conn, DAT_CONNECTION_EVENT_ESTABLISHED, a.ep);
	CU_ASSERT_PTR_NOT_NULL_FATAL(atomic_load(&held_answer));
	CU_ASSERT_EQUAL(state_of(b.ep), DAT_EP_STATE_COMPLETION_PENDING);
}

static void finish(void)
{
	answer_release();
	expect(b.conn, DAT_CONNECTION_EVENT_ESTABLISHED, b.ep);
	message_passes(&a, &b);
	message_passes(&b, &a);
	disconnect_pair(&a, &b);
	teardown_region();
}

static DAT_DTO_COOKIE cookie(uint64_t value)
{
	return (DAT_DTO_COOKIE){ .as_64 = value };
}

static DAT_RMR_TRIPLET target(size_t offset, DAT_SEG_LENGTH length)
{
	return (DAT_RMR_TRIPLET){ (uintptr_t)env.memory + offset, length, atomic_rkey };
}

/* The passive side replies to a message, as existing programs do. */
static void test_reply(void)
{
	DAT_LMR_TRIPLET piece;

	connect_without_answer();
	piece = segment(&env, 0, 64);
	OK(try_recv(&b, 1));
	OK(dat_ep_post_send(a.ep, 1, &piece, cookie(2), 0));
	expect_dto(b.recv, b.ep, 1, DAT_DTO_SUCCESS);
	expect_dto(a.request, a.ep, 2, DAT_DTO_SUCCESS);
	OK(try_recv(&a, 3));
	OK(dat_ep_post_send(b.ep, 1, &piece, cookie(4), 0));
	expect_dto(a.recv, a.ep, 3, DAT_DTO_SUCCESS);
	expect_dto(b.request, b.ep, 4, DAT_DTO_SUCCESS);
	CU_ASSERT_EQUAL(state_of(b.ep), DAT_EP_STATE_COMPLETION_PENDING);
	finish();
}

static void test_each_kind(void)
{
	static const DAT_SEG_LENGTH lengths[] = { 8, 100, 5000 };
	DAT_RMR_TRIPLET there;
	DAT_RMR_CONTEXT context;
	DAT_LMR_TRIPLET here;
	DAT_RMR_HANDLE rmr;
	DAT_EVENT event;
	uint64_t value;
	size_t i;

	connect_without_answer();
	for (i = 0; i < COUNT(lengths); i++) {
		memset(env.memory, (int)i + 1, lengths[i]);
		here = segment(&env, 0, lengths[i]);
		there = target(BUFFER / 2, lengths[i]);
		OK(dat_ep_post_rdma_write(b.ep, 1, &here, cookie(1), &there, 0));
		expect_dto(b.request, b.ep, 1, DAT_DTO_SUCCESS);
		CU_ASSERT_EQUAL(memcmp(env.memory, env.memory + BUFFER / 2, lengths[i]), 0);
		memset(env.memory, 0, lengths[i]);
		OK(dat_ep_post_rdma_read(b.ep, 1, &here, cookie(2), &there, 0));
		expect_dto(b.request, b.ep, 2, DAT_DTO_SUCCESS);
		CU_ASSERT_EQUAL(memcmp(env.memory, env.memory + BUFFER / 2, lengths[i]), 0);
	}
	value = 5;
	memcpy(env.memory + BUFFER / 2, &value, 8);
	here = segment(&env, 0, 8);
	there = target(BUFFER / 2, 8);
	OK(dat_ib_post_fetch_and_add(b.ep, 2, &here, cookie(3), &there, 0));
	CU_ASSERT_TRUE(event_next(b.request, &event));
	CU_ASSERT_EQUAL(event.event_data.dto_completion_event_data.status, DAT_DTO_SUCCESS);
	CU_ASSERT_EQUAL(env.memory[0], 5);
	CU_ASSERT_EQUAL(env.memory[BUFFER / 2], 7);
	OK(dat_rmr_create(env.pz, &rmr));
	OK(dat_rmr_bind(rmr, env.lmr, &here, DAT_MEM_PRIV_REMOTE_READ_FLAG, DAT_VA_TYPE_VA, b.ep,
			(DAT_RMR_COOKIE){ .as_64 = 4 }, 0, &context));
	CU_ASSERT_TRUE(event_next(b.request, &event));
	CU_ASSERT_EQUAL(event.event_number, DAT_RMR_BIND_COMPLETION_EVENT);
	CU_ASSERT_EQUAL(event.event_data.rmr_completion_event_data.status, DAT_RMR_BIND_SUCCESS);
	OK(dat_rmr_free(rmr));
	finish();
}

/* The connection ends before the answer: pending requests are flushed, once each and in order. */
static void test_flushed(void)
{
	DAT_LMR_TRIPLET piece;
	unsigned i;

	connect_without_answer();
	piece = segment(&env, 0, 64);
	/* a has no receives for them */
	for (i = 0; i < 4; i++)
		OK(dat_ep_post_send(b.ep, 1, &piece, cookie(i), 0));
	OK(dat_ep_disconnect(b.ep, DAT_CLOSE_ABRUPT_FLAG));
	expect(b.conn, DAT_CONNECTION_EVENT_DISCONNECTED, b.ep);
	for (i = 0; i < 4; i++)
		expect_dto(b.request, b.ep, i, DAT_DTO_ERR_FLUSHED);
	expect(a.conn, DAT_CONNECTION_EVENT_DISCONNECTED, a.ep);
	expect_quiet(b.request);
	atomic_store(&hold_answer, false);
	teardown_region();
}

static bool has_waited(void *begin)
{
	return clock_now() - *(uint64_t *)begin > 50 * NSEC_PER_MSEC;
}

static void test_peer_not_up(void)
{
	DAT_RMR_TRIPLET there;
	DAT_LMR_TRIPLET piece;
	uint64_t begin;

	announce();
	setup();
	setup_region();
	OK(try_recv(&a, 3));
	accepting = pthread_self();
	atomic_store(&hold_queue_pair, true);
	start_connect(&a);
	MUST(dat_cr_accept(request_next(&env), b.ep, 0, NULL));
	CU_ASSERT_TRUE_FATAL(unit_wait_for(is_true, &held_queue_pair, UNIT_PATIENCE));
	memset(env.memory, 9, 64);
	piece = segment(&env, 0, 64);
	there = target(BUFFER / 2, 64);
	OK(dat_ep_post_rdma_write(b.ep, 1, &piece, cookie(1), &there, 0));
	OK(dat_ep_post_send(b.ep, 1, &piece, cookie(2), 0));
	/* the device retries for some time */
	begin = clock_now();
	unit_wait_for(has_waited, &begin, UNIT_PATIENCE);
	expect_quiet(b.request);
	atomic_store(&hold_queue_pair, false);
	expect_dto(b.request, b.ep, 1, DAT_DTO_SUCCESS);
	expect_dto(b.request, b.ep, 2, DAT_DTO_SUCCESS);
	expect_dto(a.recv, a.ep, 3, DAT_DTO_SUCCESS);
	CU_ASSERT_EQUAL(memcmp(env.memory, env.memory + BUFFER / 2, 64), 0);
	expect(a.conn, DAT_CONNECTION_EVENT_ESTABLISHED, a.ep);
	expect(b.conn, DAT_CONNECTION_EVENT_ESTABLISHED, b.ep);
	disconnect_pair(&a, &b);
	teardown_region();
}

static const struct unit_test tests[] = {
	{ "C11: a message that came before ESTABLISHED can be answered", test_reply },
	{ "C11: every kind of request can be posted before ESTABLISHED", test_each_kind },
	{ "requests before ESTABLISHED are flushed when the connection ends first", test_flushed },
	{ "requests before ESTABLISHED wait for a peer whose queue pair is not up",
	  test_peer_not_up },
};

UNIT_MAIN("early_post", tests)
