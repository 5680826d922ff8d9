/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Functional cases: opening and closing an adapter. */

#include "func.h"

static enum func_result open_close(const struct func_run *run)
{
	struct bench b;
	bool ok = bench_open(&b, run);

	return bench_close(&b, ok);
}

static enum func_result bad_names(const struct func_run *run)
{
	static const char *const names[] = { "40", "x", "xsdf", "x34", "34df" };
	bool ok = true;

	(void)run;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		DAT_EVD_HANDLE async_evd = DAT_HANDLE_NULL;
		DAT_IA_HANDLE ia = DAT_HANDLE_NULL;
		DAT_RETURN ret =
			dat_ia_open((DAT_NAME_PTR)(uintptr_t)names[i], 10, &async_evd, &ia);

		ok &= expect(ret, DAT_PROVIDER_NOT_FOUND, "dat_ia_open");
		if (ret == DAT_SUCCESS)
			dat_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG);
	}
	return ok ? FUNC_PASS : FUNC_FAIL;
}

static enum func_result close_null(const struct func_run *run)
{
	DAT_RETURN ret = dat_ia_close(DAT_HANDLE_NULL, DAT_CLOSE_ABRUPT_FLAG);

	(void)run;
	return expect(ret, DAT_INVALID_HANDLE, "dat_ia_close") ? FUNC_PASS : FUNC_FAIL;
}

static enum func_result close_with_ep(const struct func_run *run)
{
	struct bench b;
	bool ok = bench_open(&b, run) && bench_ep(&b);

	if (!ok)
		return bench_close(&b, false);
	return dat_ok(dat_ia_close(b.ia, DAT_CLOSE_ABRUPT_FLAG), "dat_ia_close") ? FUNC_PASS
										 : FUNC_FAIL;
}

static const struct func_case cases[] = {
	{ "An adapter can be opened and closed.", open_close, 0 },
	{ "Names that no adapter has are refused.", bad_names, 0 },
	{ "A null handle cannot be closed.", close_null, 0 },
	{ "An abrupt close frees an open endpoint, too.", close_with_ep, 0 },
};

const struct func_feature func_hwconn = {
	"hwconn",
	"Hardware connection",
	cases,
	sizeof(cases) / sizeof(cases[0]),
};
