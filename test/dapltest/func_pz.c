/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Functional cases: protection zones. */

#include "func.h"

static enum func_result create_free(const struct func_run *run)
{
	struct bench b;
	bool ok = bench_open(&b, run) && bench_pz(&b);

	return bench_close(&b, ok);
}

static enum func_result free_with_ep(const struct func_run *run)
{
	struct bench b;
	bool ok = bench_open(&b, run) && bench_ep(&b) &&
		  expect(dat_pz_free(b.pz), DAT_INVALID_STATE, "dat_pz_free");

	return bench_close(&b, ok);
}

static enum func_result free_with_lmr(const struct func_run *run)
{
	struct bench b;
	bool ok = bench_open(&b, run) && bench_pz(&b) &&
		  region_create(&b.region, b.ia, b.pz, 1024) &&
		  expect(dat_pz_free(b.pz), DAT_INVALID_STATE, "dat_pz_free");

	return bench_close(&b, ok);
}

static const struct func_case cases[] = {
	{ "A protection zone can be created and freed.", create_free, 0 },
	{ "A protection zone cannot be freed while an endpoint is in it.", free_with_ep, 0 },
	{ "A protection zone cannot be freed while registered memory is in it.", free_with_lmr, 0 },
};

const struct func_feature func_pz = {
	"pz",
	"Protection Zone management",
	cases,
	sizeof(cases) / sizeof(cases[0]),
};
