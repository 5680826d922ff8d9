/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Functional cases: endpoints. */

#include "func.h"

static enum func_result create_free(const struct func_run *run)
{
	struct bench b;
	bool ok = bench_open(&b, run) && bench_ep(&b);

	return bench_close(&b, ok);
}

static enum func_result freed_pz(const struct func_run *run)
{
	struct bench b;
	bool ok = bench_open(&b, run) && bench_pz(&b) && bench_evds(&b);
	DAT_PZ_HANDLE gone = b.pz;

	if (ok && dat_ok(dat_pz_free(gone), "dat_pz_free"))
		b.pz = DAT_HANDLE_NULL;
	ok = ok && !b.pz &&
	     expect(dat_ep_create(b.ia, gone, b.recv_evd, b.request_evd, b.conn_evd, NULL, &b.ep),
		    DAT_INVALID_HANDLE, "dat_ep_create");
	return bench_close(&b, ok);
}

static enum func_result free_with_recv(const struct func_run *run)
{
	struct bench b;
	DAT_DTO_COOKIE cookie = { .as_64 = 1 };
	bool ok = bench_open(&b, run) && bench_ep(&b) && region_create(&b.region, b.ia, b.pz, 4096);

	if (ok) {
		DAT_LMR_TRIPLET iov = region_part(&b.region, 0, 4096);

		ok = dat_ok(dat_ep_post_recv(b.ep, 1, &iov, cookie, DAT_COMPLETION_DEFAULT_FLAG),
			    "dat_ep_post_recv");
	}
	return bench_close(&b, ok);
}

static const struct func_case cases[] = {
	{ "An endpoint can be created and freed.", create_free, 0 },
	{ "An endpoint cannot be created in a protection zone that was freed.", freed_pz, 0 },
	{ "An endpoint can be freed while a receive is posted on it.", free_with_recv, 0 },
};

const struct func_feature func_endpoint = {
	"endpoint",
	"EndPoint management",
	cases,
	sizeof(cases) / sizeof(cases[0]),
};
