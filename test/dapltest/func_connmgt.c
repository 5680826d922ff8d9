/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Functional cases: waits for connection requests that do not come. */

#include "func.h"

static enum func_result wait_in_vain(const struct func_run *run)
{
	DAT_TIMEOUT us = (DAT_TIMEOUT)run->variant;
	struct bench b;
	DAT_PSP_HANDLE psp = DAT_HANDLE_NULL;
	DAT_EVENT event;
	DAT_COUNT more;
	bool ok =
		bench_open(&b, run) && bench_ep(&b) &&
		dat_ok(dat_psp_create(b.ia, run->opt->port, b.cr_evd, DAT_PSP_CONSUMER_FLAG, &psp),
		       "dat_psp_create");

	if (ok) {
		uint64_t begin = clock_ns(), waited;

		ok = expect(dat_evd_wait(b.cr_evd, us, 1, &event, &more), DAT_TIMEOUT_EXPIRED,
			    "dat_evd_wait");
		waited = (clock_ns() - begin) / 1000;
		ok &= expect_true(waited >= us, "the wait lasted as long as it should");
		ok &= dat_ok(dat_psp_free(psp), "dat_psp_free");
	}
	return bench_close(&b, ok);
}

static const struct func_case cases[] = {
	{ "A wait ends when its time has run out.", wait_in_vain, 10000 },
	{ "A wait with a timeout of 0 returns at once.", wait_in_vain, 0 },
};

const struct func_feature func_connmgt = {
	"connmgt",
	"Connect Management (Server side)",
	cases,
	sizeof(cases) / sizeof(cases[0]),
};
