/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * Zero-based regions in every kind of transfer, on either side, with lengths around the inline
 * limit.
 */
#include <dat2/dat_ib_extensions.h>
#include <string.h>
#include "test/unit/ep_util.h"

#define HALF   (BUFFER / 2)
#define OFFSET 16u

/*
 * One buffer, registered by virtual address and zero-based; a uses the near half, b the far half.
 */
static struct env env;
static struct end a, b;
static DAT_LMR_HANDLE zero_based;
static DAT_LMR_CONTEXT zero_lkey;
static DAT_RMR_CONTEXT zero_rkey;
static bool supported;

static void setup(void)
{
	DAT_REGION_DESCRIPTION region;
	DAT_IA_ATTR attr;

	env_open(&env);
	env_listen(&env);
	end_open(&env, &a, NULL);
	end_open(&env, &b, NULL);
	connect_pair(&a, &b);
	MUST(dat_ia_query(env.ia, NULL, DAT_IA_FIELD_ALL, &attr, 0, NULL));
	supported = attr.zb_supported;
	region.for_va = env.memory;
	IS(dat_lmr_create(env.ia, DAT_MEM_TYPE_VIRTUAL, region, BUFFER, env.pz,
			  (DAT_MEM_PRIV_FLAGS)(DAT_MEM_PRIV_ALL_FLAG |
					       (int)DAT_IB_MEM_PRIV_REMOTE_ATOMIC),
			  DAT_VA_TYPE_ZB, &zero_based, &zero_lkey, &zero_rkey, NULL, NULL),
	   supported ? DAT_SUCCESS : E0(MODEL_NOT_SUPPORTED));
}

static void teardown(void)
{
	if (supported)
		OK(dat_lmr_free(zero_based));
	end_close(&a);
	end_close(&b);
	env_close(&env);
}

static DAT_DTO_COOKIE cookie(uint64_t value)
{
	return (DAT_DTO_COOKIE){ .as_64 = value };
}

static DAT_LMR_TRIPLET local(size_t offset, DAT_SEG_LENGTH length, bool zero)
{
	DAT_LMR_TRIPLET piece = segment(&env, offset, length);

	return zero ? (DAT_LMR_TRIPLET){ offset, length, zero_lkey } : piece;
}

static DAT_RMR_TRIPLET remote(size_t offset, DAT_SEG_LENGTH length, bool zero)
{
	if (zero)
		return (DAT_RMR_TRIPLET){ offset, length, zero_rkey };
	return (DAT_RMR_TRIPLET){ (uintptr_t)env.memory + offset, length, env.rkey };
}

static void expect_success(DAT_EVD_HANDLE evd, uint64_t value)
{
	DAT_EVENT event;

	memset(&event, 0, sizeof(event));
	CU_ASSERT_TRUE_FATAL(event_next(evd, &event));
	CU_ASSERT_EQUAL(event.event_data.dto_completion_event_data.user_cookie.as_64, value);
	CU_ASSERT_EQUAL_FATAL(event.event_data.dto_completion_event_data.status, DAT_DTO_SUCCESS);
}

/* Each transfer moves `length` bytes between OFFSET of the near half and HALF + OFFSET. */
struct transfer {
	const char *name;
	bool back; /* the near half is the target */
	void (*run)(DAT_SEG_LENGTH length, bool near_zero, bool far_zero);
};

static void run_send(DAT_SEG_LENGTH length, bool near_zero, bool far_zero)
{
	DAT_LMR_TRIPLET from = local(OFFSET, length, near_zero);
	DAT_LMR_TRIPLET to = local(HALF + OFFSET, length, far_zero);

	OK(dat_ep_post_recv(b.ep, 1, &to, cookie(2), 0));
	OK(dat_ep_post_send(a.ep, 1, &from, cookie(1), 0));
	expect_success(a.request, 1);
	expect_success(b.recv, 2);
}

/* In two segments, which take another path through the provider than one segment. */
static void run_send_pieces(DAT_SEG_LENGTH length, bool near_zero, bool far_zero)
{
	DAT_SEG_LENGTH first = length / 2, second = length - first;
	DAT_LMR_TRIPLET from[] = { local(OFFSET, first, near_zero),
				   local(OFFSET + first, second, near_zero) };
	DAT_LMR_TRIPLET to[] = { local(HALF + OFFSET, second, far_zero),
				 local(HALF + OFFSET + second, first, far_zero) };

	OK(dat_ep_post_recv(b.ep, 2, to, cookie(2), 0));
	OK(dat_ep_post_send(a.ep, 2, from, cookie(1), DAT_COMPLETION_SOLICITED_WAIT_FLAG));
	expect_success(a.request, 1);
	expect_success(b.recv, 2);
}

static void run_write(DAT_SEG_LENGTH length, bool near_zero, bool far_zero)
{
	DAT_LMR_TRIPLET from = local(OFFSET, length, near_zero);
	DAT_RMR_TRIPLET to = remote(HALF + OFFSET, length, far_zero);

	OK(dat_ep_post_rdma_write(a.ep, 1, &from, cookie(1), &to, 0));
	expect_success(a.request, 1);
}

/* Suppressed; the next request's completion covers both. */
static void run_write_silent(DAT_SEG_LENGTH length, bool near_zero, bool far_zero)
{
	DAT_LMR_TRIPLET from = local(OFFSET, length, near_zero);
	DAT_RMR_TRIPLET to = remote(HALF + OFFSET, length, far_zero);

	OK(dat_ep_post_rdma_write(a.ep, 1, &from, cookie(1), &to, DAT_COMPLETION_SUPPRESS_FLAG));
	OK(dat_ep_post_rdma_write(a.ep, 0, NULL, cookie(3), &to, 0));
	expect_success(a.request, 3);
}

static void run_write_immediate(DAT_SEG_LENGTH length, bool near_zero, bool far_zero)
{
	DAT_LMR_TRIPLET from = local(OFFSET, length, near_zero);
	DAT_RMR_TRIPLET to = remote(HALF + OFFSET, length, far_zero);

	OK(dat_ep_post_recv(b.ep, 0, NULL, cookie(2), 0));
	OK(dat_ib_post_rdma_write_immed(a.ep, 1, &from, cookie(1), &to, 7, 0));
	expect_success(a.request, 1);
	expect_success(b.recv, 2);
}

static void run_read(DAT_SEG_LENGTH length, bool near_zero, bool far_zero)
{
	DAT_LMR_TRIPLET to = local(OFFSET, length, near_zero);
	DAT_RMR_TRIPLET from = remote(HALF + OFFSET, length, far_zero);

	OK(dat_ep_post_rdma_read(a.ep, 1, &to, cookie(1), &from, 0));
	expect_success(a.request, 1);
}

static const struct transfer transfers[] = {
	{ "send", false, run_send },
	{ "send of two pieces", false, run_send_pieces },
	{ "write", false, run_write },
	{ "suppressed write", false, run_write_silent },
	{ "write with immediate data", false, run_write_immediate },
	{ "read", true, run_read },
};

static void transfer_check(const struct transfer *transfer, DAT_SEG_LENGTH length, bool near_zero,
			   bool far_zero)
{
	char *from = env.memory + (transfer->back ? HALF : 0);
	char *to = env.memory + (transfer->back ? 0 : HALF);
	size_t i;

	memset(to, 0, HALF);
	for (i = 0; i < HALF; i++)
		from[i] = (char)(1 + (i * 7 + length) % 100);
	transfer->run(length, near_zero, far_zero);
	CU_ASSERT_EQUAL(memcmp(to + OFFSET, from + OFFSET, length), 0);
	CU_ASSERT_EQUAL(to[OFFSET - 1], 0);
	CU_ASSERT_EQUAL(to[OFFSET + length], 0);
}

static void test_transfers(void)
{
	static const DAT_SEG_LENGTH lengths[] = { 1, 8, 63, 64, 65, 128, 4096, 20000 };
	size_t i, k;

	setup();
	for (i = 0; supported && i < COUNT(transfers); i++) {
		for (k = 0; k < COUNT(lengths); k++) {
			transfer_check(&transfers[i], lengths[k], false, false);
			transfer_check(&transfers[i], lengths[k], true, false);
			transfer_check(&transfers[i], lengths[k], false, true);
			transfer_check(&transfers[i], lengths[k], true, true);
		}
	}
	teardown();
}

/* Only the target may be zero-based, because the environment's region does not permit atomics. */
static void atomic_check(bool near_zero)
{
	DAT_LMR_TRIPLET before = local(OFFSET, 8, near_zero);
	DAT_RMR_TRIPLET where = remote(HALF + OFFSET, 8, true);
	uint64_t was = 0;
	const uint64_t now = 40;

	memcpy(env.memory + HALF + OFFSET, &now, 8);
	OK(dat_ib_post_fetch_and_add(a.ep, 2, &before, cookie(1), &where, 0));
	expect_success(a.request, 1);
	memcpy(&was, env.memory + OFFSET, 8);
	CU_ASSERT_EQUAL(was, 40);
	OK(dat_ib_post_cmp_and_swap(a.ep, 42, 1, &before, cookie(2), &where, 0));
	expect_success(a.request, 2);
	memcpy(&was, env.memory + OFFSET, 8);
	CU_ASSERT_EQUAL(was, 42);
	CU_ASSERT_EQUAL(env.memory[HALF + OFFSET], 1);
}

static void test_atomics(void)
{
	setup();
	if (supported) {
		atomic_check(false);
		atomic_check(true);
	}
	teardown();
}

/* The first byte of the region has address 0, the last one the region's length minus one. */
static void test_bounds(void)
{
	DAT_LMR_TRIPLET from;
	DAT_RMR_TRIPLET to;

	setup();
	if (supported) {
		memset(env.memory, 5, HALF);
		memset(env.memory + HALF, 0, HALF);
		from = local(0, 1, true);
		to = remote(BUFFER - 1, 1, true);
		OK(dat_ep_post_rdma_write(a.ep, 1, &from, cookie(1), &to, 0));
		expect_success(a.request, 1);
		CU_ASSERT_EQUAL(env.memory[BUFFER - 1], 5);
		from = local(BUFFER - 7, 8, true);
		OK(dat_ep_post_send(a.ep, 1, &from, cookie(2), 0));
		expect_dto(a.request, a.ep, 2, DAT_DTO_ERR_LOCAL_PROTECTION);
	}
	teardown();
}

/* A key of another PZ makes an error completion, whatever the length. */
static void test_other_pz(void)
{
	DAT_LMR_CONTEXT lkey = 0;
	DAT_REGION_DESCRIPTION region;
	DAT_LMR_TRIPLET from;
	DAT_LMR_HANDLE lmr;
	DAT_PZ_HANDLE pz;

	setup();
	if (supported) {
		OK(dat_pz_create(env.ia, &pz));
		region.for_va = env.memory;
		OK(dat_lmr_create(env.ia, DAT_MEM_TYPE_VIRTUAL, region, HALF, pz,
				  DAT_MEM_PRIV_ALL_FLAG, DAT_VA_TYPE_ZB, &lmr, &lkey, NULL, NULL,
				  NULL));
		from = (DAT_LMR_TRIPLET){ OFFSET, 8, lkey };
		OK(dat_ep_post_send(a.ep, 1, &from, cookie(1), 0));
		expect_dto(a.request, a.ep, 1, DAT_DTO_ERR_LOCAL_PROTECTION);
		OK(dat_lmr_free(lmr));
		OK(dat_pz_free(pz));
	}
	teardown();
}

/* Receives of an SRQ use zero-based addresses, too. */
static void test_srq(void)
{
	static const DAT_SEG_LENGTH lengths[] = { 1, 64, 65, 4096 };
	DAT_SRQ_ATTR srq_attr = { .max_recv_dtos = 4, .max_recv_iov = 1 };
	DAT_EP_ATTR attr = { .max_request_dtos = 4, .max_request_iov = 1 };
	DAT_LMR_TRIPLET from, to;
	DAT_SRQ_HANDLE srq;
	size_t i;

	setup();
	disconnect_pair(&a, &b);
	OK(dat_ep_reset(a.ep));
	OK(dat_ep_free(b.ep));
	OK(dat_srq_create(env.ia, env.pz, &srq_attr, &srq));
	MUST(dat_ep_create_with_srq(env.ia, env.pz, b.recv, b.request, b.conn, srq, &attr, &b.ep));
	connect_pair(&a, &b);
	for (i = 0; supported && i < COUNT(lengths); i++) {
		memset(env.memory, (int)i + 1, HALF);
		memset(env.memory + HALF, 0, HALF);
		from = local(OFFSET, lengths[i], true);
		to = local(HALF + OFFSET, lengths[i], true);
		OK(dat_srq_post_recv(srq, 1, &to, cookie(2)));
		OK(dat_ep_post_send(a.ep, 1, &from, cookie(1), 0));
		expect_success(a.request, 1);
		expect_success(b.recv, 2);
		CU_ASSERT_EQUAL(memcmp(env.memory + OFFSET, env.memory + HALF + OFFSET, lengths[i]),
				0);
		CU_ASSERT_EQUAL(env.memory[HALF + OFFSET + lengths[i]], 0);
	}
	OK(dat_ep_free(b.ep));
	OK(dat_srq_free(srq));
	MUST(dat_ep_create(env.ia, env.pz, b.recv, b.request, b.conn, NULL, &b.ep));
	teardown();
}

static const struct unit_test tests[] = {
	{ "every transfer works with either end by address or zero-based", test_transfers },
	{ "atomics", test_atomics },
	{ "the first and the last byte can be accessed", test_bounds },
	{ "a region of another PZ causes a failed completion", test_other_pz },
	{ "receives of an SRQ may be zero-based", test_srq },
};

UNIT_MAIN("zero-based regions", tests)
