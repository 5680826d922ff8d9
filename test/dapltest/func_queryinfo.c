/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Functional cases: each query returns what its object was made with, and refuses bad arguments. */

#include "func.h"

/* Returns what is wrong with a query, or NULL. */
enum fault { FAULT_NONE, FAULT_NULL, FAULT_HANDLE };

static DAT_RETURN_TYPE outcome(int fault)
{
	switch (fault) {
	case FAULT_NULL: return DAT_INVALID_PARAMETER;
	case FAULT_HANDLE: return DAT_INVALID_HANDLE;
	default: return DAT_SUCCESS;
	}
}

static enum func_result query_ia(const struct func_run *run)
{
	int fault = run->variant;
	DAT_PROVIDER_ATTR provider;
	DAT_IA_ATTR attr;
	DAT_EVD_HANDLE async_evd;
	struct bench b;
	bool ok = bench_open(&b, run) && bench_evds(&b);
	DAT_IA_HANDLE handle = fault == FAULT_HANDLE ? b.cr_evd : b.ia;

	ok = ok && expect(dat_ia_query(handle, &async_evd, DAT_IA_FIELD_ALL,
				       fault == FAULT_NULL ? NULL : &attr, DAT_PROVIDER_FIELD_ALL,
				       &provider),
			  outcome(fault), "dat_ia_query");
	if (ok && fault == FAULT_NONE)
		ok = expect_true(async_evd == b.async_evd, "the asynchronous EVD is our own") &&
		     expect_true(attr.ia_address_ptr && attr.max_eps > 0, "there are limits") &&
		     expect_true(provider.provider_name[0] != '\0', "the provider has a name");
	return bench_close(&b, ok);
}

static enum func_result query_cno(const struct func_run *run)
{
	int fault = run->variant;
	DAT_CNO_HANDLE cno = DAT_HANDLE_NULL;
	DAT_CNO_PARAM param;
	struct bench b;
	bool ok =
		bench_open(&b, run) && bench_evds(&b) &&
		dat_ok(dat_cno_create(b.ia, DAT_OS_WAIT_PROXY_AGENT_NULL, &cno), "dat_cno_create");

	if (ok) {
		ok = expect(dat_cno_query(fault == FAULT_HANDLE ? b.cr_evd : cno, DAT_CNO_FIELD_ALL,
					  fault == FAULT_NULL ? NULL : &param),
			    outcome(fault), "dat_cno_query");
		ok &= dat_ok(dat_cno_free(cno), "dat_cno_free");
	}
	return bench_close(&b, ok);
}

static enum func_result query_evd(const struct func_run *run)
{
	int fault = run->variant;
	DAT_EVD_PARAM param;
	struct bench b;
	bool ok = bench_open(&b, run) && bench_pz(&b) && bench_evds(&b);

	ok = ok && expect(dat_evd_query(fault == FAULT_HANDLE ? b.pz : b.recv_evd,
					DAT_EVD_FIELD_ALL, fault == FAULT_NULL ? NULL : &param),
			  outcome(fault), "dat_evd_query");
	if (ok && fault == FAULT_NONE)
		ok = expect_true(param.evd_qlen >= 10, "the EVD is as long as asked for") &&
		     expect_true((param.evd_flags & DAT_EVD_DTO_FLAG) != 0, "the EVD takes DTOs");
	return bench_close(&b, ok);
}

static enum func_result query_psp(const struct func_run *run)
{
	int fault = run->variant;
	DAT_PSP_HANDLE psp = DAT_HANDLE_NULL;
	DAT_PSP_PARAM param;
	struct bench b;
	bool ok =
		bench_open(&b, run) && bench_evds(&b) &&
		dat_ok(dat_psp_create(b.ia, run->opt->port, b.cr_evd, DAT_PSP_PROVIDER_FLAG, &psp),
		       "dat_psp_create");

	if (ok) {
		ok = expect(dat_psp_query(fault == FAULT_HANDLE ? b.cr_evd : psp, DAT_PSP_FIELD_ALL,
					  fault == FAULT_NULL ? NULL : &param),
			    outcome(fault), "dat_psp_query");
		if (ok && fault == FAULT_NONE)
			ok = expect_true(param.conn_qual == run->opt->port &&
						 param.evd_handle == b.cr_evd &&
						 param.psp_flags == DAT_PSP_PROVIDER_FLAG,
					 "the PSP is as it was made");
		ok &= dat_ok(dat_psp_free(psp), "dat_psp_free");
	}
	return bench_close(&b, ok);
}

static enum func_result query_rsp(const struct func_run *run)
{
	DAT_RSP_HANDLE rsp = DAT_HANDLE_NULL;
	DAT_RSP_PARAM param;
	struct bench b;
	bool ok = bench_open(&b, run) && bench_ep(&b) &&
		  dat_ok(dat_rsp_create(b.ia, run->opt->port, b.ep, b.cr_evd, &rsp),
			 "dat_rsp_create");

	if (ok) {
		ok = dat_ok(dat_rsp_query(rsp, DAT_RSP_FIELD_ALL, &param), "dat_rsp_query") &&
		     expect_true(param.conn_qual == run->opt->port &&
					 param.evd_handle == b.cr_evd && param.ep_handle == b.ep,
				 "the RSP is as it was made");
		ok &= dat_ok(dat_rsp_free(rsp), "dat_rsp_free");
	}
	return bench_close(&b, ok);
}

/* A connection request needs a peer; the transaction test has one, and queries each request. */
static enum func_result query_cr(const struct func_run *run)
{
	(void)run;
	return FUNC_UNSUPPORTED;
}

static enum func_result query_ep(const struct func_run *run)
{
	DAT_EP_PARAM param;
	struct bench b;
	bool ok =
		bench_open(&b, run) && bench_ep(&b) &&
		dat_ok(dat_ep_query(b.ep, DAT_EP_FIELD_ALL, &param), "dat_ep_query") &&
		expect_true(param.ep_state == DAT_EP_STATE_UNCONNECTED && param.pz_handle == b.pz &&
				    param.recv_evd_handle == b.recv_evd &&
				    param.request_evd_handle == b.request_evd &&
				    param.connect_evd_handle == b.conn_evd,
			    "the EP is as it was made");

	return bench_close(&b, ok);
}

static enum func_result query_pz(const struct func_run *run)
{
	DAT_PZ_PARAM param;
	struct bench b;
	bool ok = bench_open(&b, run) && bench_pz(&b) &&
		  dat_ok(dat_pz_query(b.pz, DAT_PZ_FIELD_ALL, &param), "dat_pz_query");

	return bench_close(&b, ok);
}

static enum func_result query_lmr(const struct func_run *run)
{
	DAT_LMR_PARAM param;
	struct bench b;
	bool ok = bench_open(&b, run) && bench_pz(&b) &&
		  region_create(&b.region, b.ia, b.pz, 1024) &&
		  dat_ok(dat_lmr_query(b.region.lmr, DAT_LMR_FIELD_ALL, &param), "dat_lmr_query") &&
		  expect_true(param.pz_handle == b.pz && param.length == 1024 &&
				      param.lmr_context == b.region.lkey &&
				      param.region_desc.for_va == b.region.base,
			      "the LMR is as it was made");

	return bench_close(&b, ok);
}

static enum func_result query_rmr(const struct func_run *run)
{
	DAT_RMR_HANDLE rmr = DAT_HANDLE_NULL;
	DAT_RMR_PARAM param;
	struct bench b;
	bool ok = bench_open(&b, run) && bench_pz(&b);
	DAT_RETURN ret = ok ? dat_rmr_create(b.pz, &rmr) : DAT_SUCCESS;

	if (ok && dat_is(ret, DAT_MODEL_NOT_SUPPORTED))
		return bench_close(&b, true) == FUNC_PASS ? FUNC_UNSUPPORTED : FUNC_FAIL;
	ok = ok && dat_ok(ret, "dat_rmr_create");
	if (ok) {
		/* The RMR is unbound, so it has no triplet to report. */
		ok = dat_ok(dat_rmr_query(rmr, DAT_RMR_FIELD_PZ_HANDLE, &param), "dat_rmr_query") &&
		     expect_true(param.pz_handle == b.pz, "the RMR is as it was made");
		ok &= dat_ok(dat_rmr_free(rmr), "dat_rmr_free");
	}
	return bench_close(&b, ok);
}

static const struct func_case cases[] = {
	{ "An adapter can be queried.", query_ia, FAULT_NONE },
	{ "A CNO can be queried.", query_cno, FAULT_NONE },
	{ "An EVD can be queried.", query_evd, FAULT_NONE },
	{ "A PSP that makes endpoints can be queried.", query_psp, FAULT_NONE },
	{ "An RSP can be queried.", query_rsp, FAULT_NONE },
	{ "A connection request can be queried.", query_cr, FAULT_NONE },
	{ "An endpoint can be queried.", query_ep, FAULT_NONE },
	{ "A protection zone can be queried.", query_pz, FAULT_NONE },
	{ "An LMR can be queried.", query_lmr, FAULT_NONE },
	{ "An RMR can be queried.", query_rmr, FAULT_NONE },
	{ "A query of an adapter needs a place for the result.", query_ia, FAULT_NULL },
	{ "A query of an adapter needs an adapter.", query_ia, FAULT_HANDLE },
	{ "A query of a CNO needs a place for the result.", query_cno, FAULT_NULL },
	{ "A query of a CNO needs a CNO.", query_cno, FAULT_HANDLE },
	{ "A query of an EVD needs a place for the result.", query_evd, FAULT_NULL },
	{ "A query of an EVD needs an EVD.", query_evd, FAULT_HANDLE },
	{ "A query of a PSP needs a place for the result.", query_psp, FAULT_NULL },
	{ "A query of a PSP needs a PSP.", query_psp, FAULT_HANDLE },
};

const struct func_feature func_queryinfo = {
	"queryinfo",
	"Queryinfo",
	cases,
	sizeof(cases) / sizeof(cases[0]),
};
