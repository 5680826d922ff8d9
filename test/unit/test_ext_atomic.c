/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Atomics over the software device: their effect on local and remote memory, and refusals. */
#include <dat2/dat_ib_extensions.h>
#include <pthread.h>
#include <string.h>
#include "test/unit/ep_util.h"

#define ROUNDS 500

static struct env env;
static struct end a, b;
static DAT_LMR_HANDLE lmr;
static DAT_RMR_TRIPLET remote;
static uint64_t word[4] __attribute__((aligned(64)));

/* Registers memory with these privileges. */
static void setup(DAT_MEM_PRIV_FLAGS privileges)
{
	DAT_REGION_DESCRIPTION region = { .for_va = word };
	DAT_RMR_CONTEXT rkey;

	env_open(&env);
	env_listen(&env);
	end_open(&env, &a, NULL);
	end_open(&env, &b, NULL);
	connect_pair(&a, &b);
	MUST(dat_lmr_create(env.ia, DAT_MEM_TYPE_VIRTUAL, region, sizeof(word), env.pz, privileges,
			    DAT_VA_TYPE_VA, &lmr, NULL, &rkey, NULL, NULL));
	remote = (DAT_RMR_TRIPLET){ (uintptr_t)word, 8, rkey };
	memset(word, 0, sizeof(word));
}

static void teardown(void)
{
	end_close(&a);
	end_close(&b);
	MUST(dat_lmr_free(lmr));
	env_close(&env);
}

static DAT_DTO_COMPLETION_STATUS done(struct end *end, int type)
{
	const DAT_IB_EXTENSION_EVENT_DATA *data;
	DAT_EVENT event;

	memset(&event, 0, sizeof(event));
	if (!event_next(end->request, &event))
		return DAT_DTO_ERR_TRANSPORT;
	data = (const DAT_IB_EXTENSION_EVENT_DATA *)event.event_extension_data;
	CU_ASSERT_EQUAL((int)event.event_number, DAT_IB_DTO_EVENT);
	CU_ASSERT_EQUAL((int)data->type, type);
	CU_ASSERT_PTR_EQUAL(event.event_data.dto_completion_event_data.ep_handle, end->ep);
	return event.event_data.dto_completion_event_data.status;
}

static uint64_t landed(void)
{
	uint64_t value;

	memcpy(&value, env.memory, sizeof(value));
	return value;
}

static DAT_RETURN add(struct end *end, uint64_t value, size_t offset)
{
	DAT_LMR_TRIPLET local = segment(&env, offset, 8);

	return dat_ib_post_fetch_and_add(end->ep, value, &local, (DAT_DTO_COOKIE){ .as_64 = 1 },
					 &remote, 0);
}

static DAT_RETURN swap(uint64_t compare, uint64_t value)
{
	DAT_LMR_TRIPLET local = segment(&env, 0, 8);

	return dat_ib_post_cmp_and_swap(a.ep, compare, value, &local,
					(DAT_DTO_COOKIE){ .as_64 = 1 }, &remote, 0);
}

#define ALL (DAT_MEM_PRIV_ALL_FLAG | DAT_IB_MEM_PRIV_REMOTE_ATOMIC)

static void test_add(void)
{
	setup(ALL);
	word[0] = 0xfffffffffffffff0;
	OK(add(&a, 0x20, 0));
	IS(done(&a, DAT_IB_FETCH_AND_ADD), DAT_DTO_SUCCESS);
	CU_ASSERT_EQUAL(landed(), 0xfffffffffffffff0);
	CU_ASSERT_EQUAL(word[0], 0x10);
	CU_ASSERT_EQUAL(word[1], 0);
	teardown();
}

static void test_swap(void)
{
	setup(ALL);
	word[0] = 5;
	OK(swap(4, 9));
	IS(done(&a, DAT_IB_CMP_AND_SWAP), DAT_DTO_SUCCESS);
	CU_ASSERT_EQUAL(landed(), 5);
	CU_ASSERT_EQUAL(word[0], 5);
	OK(swap(5, 0x123456789abcdef0));
	IS(done(&a, DAT_IB_CMP_AND_SWAP), DAT_DTO_SUCCESS);
	CU_ASSERT_EQUAL(landed(), 5);
	CU_ASSERT_EQUAL(word[0], 0x123456789abcdef0);
	teardown();
}

static void test_without_the_privilege(void)
{
	setup(DAT_MEM_PRIV_ALL_FLAG);
	OK(add(&a, 1, 0));
	IS(done(&a, DAT_IB_FETCH_AND_ADD), DAT_DTO_ERR_REMOTE_ACCESS);
	CU_ASSERT_EQUAL(word[0], 0);
	expect(a.conn, DAT_CONNECTION_EVENT_BROKEN, a.ep);
	teardown();
}

static void test_beyond_the_region(void)
{
	setup(ALL);
	remote.virtual_address = (uintptr_t)(word + 4);
	OK(add(&a, 1, 0));
	IS(done(&a, DAT_IB_FETCH_AND_ADD), DAT_DTO_ERR_REMOTE_ACCESS);
	teardown();
}

static void *adder(void *arg)
{
	struct end *end = arg;
	int i;

	for (i = 0; i < ROUNDS; i++) {
		OK(add(end, 1, end == &a ? 0 : 64));
		IS(done(end, DAT_IB_FETCH_AND_ADD), DAT_DTO_SUCCESS);
	}
	return NULL;
}

static void test_two_adders(void)
{
	pthread_t thread;

	setup(ALL);
	CU_ASSERT_EQUAL_FATAL(pthread_create(&thread, NULL, adder, &b), 0);
	adder(&a);
	pthread_join(thread, NULL);
	CU_ASSERT_EQUAL(word[0], 2 * ROUNDS);
	teardown();
}

static const struct unit_test tests[] = {
	{ "fetch and add returns the old value", test_add },
	{ "compare and swap returns the old value, swapped or not", test_swap },
	{ "an atomic without the privilege fails", test_without_the_privilege },
	{ "an atomic beyond the region fails", test_beyond_the_region },
	{ "no addition of two peers to one word is lost", test_two_adders },
};

UNIT_MAIN("ext_atomic", tests)
