/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* The objects of a functional case, and the expected results of calls. */

#include <string.h>

#include "func.h"

enum { EVENTS = 10 };

bool expect(DAT_RETURN ret, DAT_RETURN_TYPE type, const char *call)
{
	char got[128], want[128];

	if (dat_is(ret, type))
		return true;
	complain("Error: %s: %s, but %s was expected", call, dat_text(ret, got),
		 dat_text((DAT_RETURN)type, want));
	return false;
}

bool expect_true(bool fact, const char *what)
{
	if (!fact)
		complain("Error: this is false: %s", what);
	return fact;
}

bool bench_open(struct bench *b, const struct func_run *run)
{
	memset(b, 0, sizeof(*b));
	return dat_ok(dat_ia_open((DAT_NAME_PTR)(uintptr_t)run->opt->device, EVENTS, &b->async_evd,
				  &b->ia),
		      "dat_ia_open");
}

bool bench_pz(struct bench *b)
{
	return dat_ok(dat_pz_create(b->ia, &b->pz), "dat_pz_create");
}

static bool evd_create(struct bench *b, int streams, DAT_EVD_HANDLE *evd)
{
	return dat_ok(dat_evd_create(b->ia, EVENTS, DAT_HANDLE_NULL, (DAT_EVD_FLAGS)streams, evd),
		      "dat_evd_create");
}

bool bench_evds(struct bench *b)
{
	return evd_create(b, DAT_EVD_CR_FLAG, &b->cr_evd) &&
	       evd_create(b, DAT_EVD_CONNECTION_FLAG, &b->conn_evd) &&
	       evd_create(b, DAT_EVD_DTO_FLAG | DAT_EVD_RMR_BIND_FLAG, &b->request_evd) &&
	       evd_create(b, DAT_EVD_DTO_FLAG, &b->recv_evd);
}

bool bench_ep(struct bench *b)
{
	return bench_pz(b) && bench_evds(b) &&
	       dat_ok(dat_ep_create(b->ia, b->pz, b->recv_evd, b->request_evd, b->conn_evd, NULL,
				    &b->ep),
		      "dat_ep_create");
}

enum func_result bench_close(struct bench *b, bool passed)
{
	const DAT_EVD_HANDLE evds[] = { b->cr_evd, b->conn_evd, b->request_evd, b->recv_evd };

	if (b->ep)
		passed &= dat_ok(dat_ep_free(b->ep), "dat_ep_free");
	passed &= region_free(&b->region);
	for (size_t i = 0; i < sizeof(evds) / sizeof(evds[0]); i++)
		if (evds[i])
			passed &= dat_ok(dat_evd_free(evds[i]), "dat_evd_free");
	if (b->pz)
		passed &= dat_ok(dat_pz_free(b->pz), "dat_pz_free");
	if (b->ia && !dat_ok(dat_ia_close(b->ia, DAT_CLOSE_GRACEFUL_FLAG), "dat_ia_close")) {
		dat_ia_close(b->ia, DAT_CLOSE_ABRUPT_FLAG);
		passed = false;
	}
	return passed ? FUNC_PASS : FUNC_FAIL;
}
