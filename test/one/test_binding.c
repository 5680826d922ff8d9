/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* An LMR is made with every argument, and a binding finds it by its context. */
#include "test/one/fake.h"

#define W(i)   (0x7000 + (i))
#define P(i)   ((void *)(uintptr_t)W(i))
#define C(i)   ((DAT_CONTEXT){ .as_64 = W(i) })
#define ARG(n) ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG##n)

static struct two_lmr_param lmr_says;
static struct two_rmr_param rmr_says;

static DAT_RETURN lmr_query(DAT_LMR_HANDLE lmr, int mask, struct two_lmr_param *param)
{
	(void)lmr;
	(void)mask;
	*param = lmr_says;
	return DAT_SUCCESS;
}

static DAT_RETURN rmr_query(DAT_RMR_HANDLE rmr, int mask, struct two_rmr_param *param)
{
	(void)rmr;
	(void)mask;
	*param = rmr_says;
	return DAT_SUCCESS;
}

static struct {
	void **table;
} lmrs[2] = { { fake_table }, { fake_table } };

static DAT_LMR_HANDLE create(unsigned i, DAT_LMR_CONTEXT context)
{
	DAT_REGION_DESCRIPTION region = { .for_shared_memory = { .virtual_address = P(2),
								 .shared_memory_id = P(3) } };
	DAT_LMR_HANDLE given = &lmrs[i], lmr = NULL;
	DAT_LMR_CONTEXT lmr_context;
	DAT_RMR_CONTEXT rmr_context;
	DAT_VLEN length;
	DAT_VADDR address;

	lmr_says.lmr_context = context;
	fake_aim(FAKE_SLOT(lmr_create), DAT_SUCCESS);
	fake.out_arg = 8;
	fake.out = &given;
	fake.out_size = sizeof(given);
	CU_ASSERT_EQUAL(dat_lmr_create(fake_ia, W(1), region, UINT64_C(0x500000004), P(5), W(6),
				       &lmr, &lmr_context, &rmr_context, &length, &address),
			DAT_SUCCESS);
	CU_ASSERT_EQUAL(fake.seen[0], (uintptr_t)&fake_object);
	CU_ASSERT_EQUAL((uint32_t)fake.seen[1], W(1));
	CU_ASSERT_EQUAL(fake.seen[2], W(2));
	CU_ASSERT_EQUAL(fake.seen[3], W(3));
	CU_ASSERT_EQUAL(fake.seen[4], UINT64_C(0x500000004));
	CU_ASSERT_EQUAL(fake.seen[5], W(5));
	CU_ASSERT_EQUAL((uint32_t)fake.seen[6], W(6));
	CU_ASSERT_EQUAL((uint32_t)fake.seen[7], TWO_VA_TYPE_VA);
	CU_ASSERT_EQUAL(fake.seen[9], (uintptr_t)&lmr_context);
	CU_ASSERT_EQUAL(fake.seen[10], (uintptr_t)&rmr_context);
	CU_ASSERT_EQUAL(fake.seen[11], (uintptr_t)&length);
	CU_ASSERT_EQUAL(fake.seen[12], (uintptr_t)&address);
	CU_ASSERT_PTR_EQUAL(lmr, given);
	return lmr;
}

static DAT_RETURN try_bind(DAT_LMR_CONTEXT context, DAT_VLEN length)
{
	const DAT_LMR_TRIPLET part = { .lmr_context = context,
				       .pad = 0xbad,
				       .virtual_address = UINT64_C(0x500000000),
				       .segment_length = length };

	fake_aim(FAKE_SLOT(rmr_bind), DAT_SUCCESS);
	fake.in_arg = 2;
	fake.in_size = sizeof(struct two_lmr_triplet);
	return dat_rmr_bind(&fake_object, &part, W(3), P(5), C(6), W(7), P(8));
}

static void check_bound(DAT_LMR_HANDLE lmr, DAT_LMR_CONTEXT context, DAT_VLEN length)
{
	struct two_lmr_triplet part;

	memcpy(&part, fake.in, sizeof(part));
	CU_ASSERT_EQUAL(fake.calls, 1);
	CU_ASSERT_EQUAL(fake.seen[0], (uintptr_t)&fake_object);
	CU_ASSERT_EQUAL(fake.seen[1], (uintptr_t)lmr);
	CU_ASSERT_EQUAL((uint32_t)fake.seen[3], W(3));
	CU_ASSERT_EQUAL((uint32_t)fake.seen[4], TWO_VA_TYPE_VA);
	CU_ASSERT_EQUAL(fake.seen[5], W(5));
	CU_ASSERT_EQUAL(fake.seen[6], W(6));
	CU_ASSERT_EQUAL((uint32_t)fake.seen[7], W(7));
	CU_ASSERT_EQUAL(fake.seen[8], W(8));
	CU_ASSERT_EQUAL(part.virtual_address, UINT64_C(0x500000000));
	CU_ASSERT_EQUAL(part.segment_length, length);
	CU_ASSERT_EQUAL(part.lmr_context, context);
}

static void setup_memory(void)
{
	fake_open();
	memset(&lmr_says, 0, sizeof(lmr_says));
	memset(&rmr_says, 0, sizeof(rmr_says));
	lmr_says.ia_handle = rmr_says.ia_handle = P(9);
	fake_table[FAKE_SLOT(lmr_query)] = (void *)lmr_query;
	fake_table[FAKE_SLOT(rmr_query)] = (void *)rmr_query;
	fake_table[FAKE_SLOT(lmr_free)] = (void *)fake_success;
}

static void test_bind(void)
{
	DAT_LMR_HANDLE first, second;

	setup_memory();
	first = create(0, 0x1234);
	second = create(1, 0x12340000); /* of the same chain */
	CU_ASSERT_EQUAL(try_bind(0x1234, 100), DAT_SUCCESS);
	check_bound(first, 0x1234, 100);
	CU_ASSERT_EQUAL(try_bind(0x12340000, 0xffffffff), DAT_SUCCESS);
	check_bound(second, 0x12340000, 0xffffffff);
	/* An unbind names no context and needs none. */
	CU_ASSERT_EQUAL(try_bind(0xdead, 0), DAT_SUCCESS);
	check_bound(NULL, 0xdead, 0);
	/* An unknown context, a length beyond 32 bits, no triplet. */
	CU_ASSERT_EQUAL(try_bind(0xdead, 1), ARG(2));
	CU_ASSERT_EQUAL(try_bind(0x1234, UINT64_C(0x100000000)), ARG(2));
	CU_ASSERT_EQUAL(fake.calls, 0);
	fake_aim(FAKE_SLOT(rmr_bind), 0x80060027u);
	CU_ASSERT_EQUAL(dat_rmr_bind(&fake_object, NULL, 0, NULL, C(1), 0, NULL), ARG(2));
	CU_ASSERT_EQUAL(fake.seen[2], 0);
	/* The context belongs to another IA. */
	rmr_says.ia_handle = P(10);
	CU_ASSERT_EQUAL(try_bind(0x1234, 100), ARG(2));
	fake_close();
}

static void test_bind_after_free(void)
{
	DAT_LMR_HANDLE lmr;

	setup_memory();
	lmr = create(0, 0x55);
	/* A failed free keeps the context. */
	fake_aim(FAKE_SLOT(lmr_free), 0x80070051u);
	CU_ASSERT_EQUAL(dat_lmr_free(lmr), ERROR(DAT_INVALID_STATE, DAT_INVALID_STATE_LMR_IN_USE));
	CU_ASSERT_EQUAL(try_bind(0x55, 1), DAT_SUCCESS);
	check_bound(lmr, 0x55, 1);
	fake_aim(FAKE_SLOT(lmr_free), DAT_SUCCESS);
	CU_ASSERT_EQUAL(dat_lmr_free(lmr), DAT_SUCCESS);
	CU_ASSERT_EQUAL(try_bind(0x55, 1), ARG(2));
	/* Another LMR has the context. */
	lmr = create(1, 0x55);
	CU_ASSERT_EQUAL(try_bind(0x55, 1), DAT_SUCCESS);
	check_bound(lmr, 0x55, 1);
	/* A failed close keeps the contexts; a successful one drops all that the IA had. */
	fake_aim(FAKE_SLOT(ia_close), 0x80070050u);
	CU_ASSERT_EQUAL(dat_ia_close(fake_ia, DAT_CLOSE_GRACEFUL_FLAG),
			ERROR(DAT_INVALID_STATE, DAT_INVALID_STATE_IA_IN_USE));
	CU_ASSERT_EQUAL(try_bind(0x55, 1), DAT_SUCCESS);
	fake_close();
	fake_open();
	fake_table[FAKE_SLOT(rmr_query)] = (void *)rmr_query;
	CU_ASSERT_EQUAL(try_bind(0x55, 1), ARG(2));
	fake_close();
}

static const struct unit_test tests[] = {
	{ "a binding finds its LMR by context", test_bind },
	{ "a binding after a free or a close", test_bind_after_free },
};

UNIT_MAIN("one binding", tests)
