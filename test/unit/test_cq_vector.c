/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* The CQs of EVDs use all completion vectors of a device. */
#include <string.h>
#include <infiniband/verbs.h>
#include "test/unit/announce.h"
#include "test/unit/ep_util.h"

#define VECTORS 4

static unsigned used[VECTORS];

struct ibv_context *__real_ibv_open_device(struct ibv_device *device);
struct ibv_context *__wrap_ibv_open_device(struct ibv_device *device);
struct ibv_cq *__real_ibv_create_cq(struct ibv_context *verbs, int entries, void *context,
				    struct ibv_comp_channel *channel, int vector);
struct ibv_cq *__wrap_ibv_create_cq(struct ibv_context *verbs, int entries, void *context,
				    struct ibv_comp_channel *channel, int vector);

struct ibv_context *__wrap_ibv_open_device(struct ibv_device *device)
{
	struct ibv_context *verbs = __real_ibv_open_device(device);

	if (verbs)
		verbs->num_comp_vectors = VECTORS;
	return verbs;
}

/* The software device has one vector. */
struct ibv_cq *__wrap_ibv_create_cq(struct ibv_context *verbs, int entries, void *context,
				    struct ibv_comp_channel *channel, int vector)
{
	CU_ASSERT_TRUE_FATAL(vector >= 0 && vector < VECTORS);
	used[vector]++;
	return __real_ibv_create_cq(verbs, entries, context, channel, 0);
}

static void test_vectors(void)
{
	DAT_EVD_HANDLE evds[2 * VECTORS];
	unsigned before[VECTORS], i;
	struct env env;

	announce();
	env_open(&env);
	memcpy(before, used, sizeof(before));
	for (i = 0; i < 2 * VECTORS; i++)
		MUST(dat_evd_create(env.ia, 8, DAT_HANDLE_NULL, DAT_EVD_DTO_FLAG, &evds[i]));
	for (i = 0; i < VECTORS; i++)
		CU_ASSERT_EQUAL(used[i] - before[i], 2);
	for (i = 0; i < 2 * VECTORS; i++)
		MUST(dat_evd_free(evds[i]));
	env_close(&env);
}

static const struct unit_test tests[] = {
	{ "EVDs use the completion vectors in turn", test_vectors },
};

UNIT_MAIN("cq_vector", tests)
