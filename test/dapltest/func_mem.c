/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Functional cases: registering memory. */

#include "func.h"

enum { SIZE = 1024 };

static unsigned char memory[SIZE];

static enum func_result once(const struct func_run *run)
{
	struct bench b;
	bool ok = bench_open(&b, run) && bench_ep(&b) && region_create(&b.region, b.ia, b.pz, SIZE);

	return bench_close(&b, ok);
}

static DAT_RETURN lmr_create(struct bench *b, DAT_PZ_HANDLE pz, DAT_VLEN size, DAT_LMR_HANDLE *lmr)
{
	DAT_REGION_DESCRIPTION where = { .for_va = memory };
	DAT_LMR_CONTEXT lkey;
	DAT_VLEN length;
	DAT_VADDR address;

	return dat_lmr_create(b->ia, DAT_MEM_TYPE_VIRTUAL, where, size, pz, DAT_MEM_PRIV_ALL_FLAG,
			      DAT_VA_TYPE_VA, lmr, &lkey, NULL, &length, &address);
}

static enum func_result twice(const struct func_run *run)
{
	struct bench b;
	bool ok = bench_open(&b, run) && bench_ep(&b);

	for (int i = 0; ok && i < 2; i++) {
		DAT_LMR_HANDLE lmr;

		ok = dat_ok(lmr_create(&b, b.pz, SIZE, &lmr), "dat_lmr_create") &&
		     dat_ok(dat_lmr_free(lmr), "dat_lmr_free");
	}
	return bench_close(&b, ok);
}

static bool refused(struct bench *b, DAT_PZ_HANDLE pz, DAT_VLEN size, DAT_RETURN_TYPE type)
{
	DAT_LMR_HANDLE lmr = DAT_HANDLE_NULL;
	DAT_RETURN ret = lmr_create(b, pz, size, &lmr);

	if (ret == DAT_SUCCESS)
		dat_lmr_free(lmr);
	return expect(ret, type, "dat_lmr_create");
}

static enum func_result length_zero(const struct func_run *run)
{
	struct bench b;
	bool ok = bench_open(&b, run) && bench_ep(&b) && refused(&b, b.pz, 0, DAT_LENGTH_ERROR);

	return bench_close(&b, ok);
}

static enum func_result null_pz(const struct func_run *run)
{
	struct bench b;
	bool ok = bench_open(&b, run) && bench_ep(&b) &&
		  refused(&b, DAT_HANDLE_NULL, SIZE, DAT_INVALID_HANDLE);

	return bench_close(&b, ok);
}

static enum func_result free_null(const struct func_run *run)
{
	struct bench b;
	bool ok = bench_open(&b, run) && bench_ep(&b) &&
		  expect(dat_lmr_free(DAT_HANDLE_NULL), DAT_INVALID_HANDLE, "dat_lmr_free");

	return bench_close(&b, ok);
}

static const struct func_case cases[] = {
	{ "Memory can be registered and deregistered.", once, 0 },
	{ "Memory can be registered once more after it was deregistered.", twice, 0 },
	{ "An empty range cannot be registered.", length_zero, 0 },
	{ "Memory cannot be registered without a protection zone.", null_pz, 0 },
	{ "A null handle cannot be deregistered.", free_null, 0 },
};

const struct func_feature func_mem = {
	"mem",
	"Memory register/deregister",
	cases,
	sizeof(cases) / sizeof(cases[0]),
};
