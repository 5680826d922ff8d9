/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Checks of the queries: an unknown bit in the mask, no output, and both. */
#include "test/unit/things.h"

#define QUERY(name, type, structure)                                         \
	static DAT_RETURN on_##name(DAT_HANDLE h, unsigned mask, bool place) \
	{                                                                    \
		structure *param = (structure *)things_out.bytes;            \
		return dat_##name(h, (type)mask, place ? param : NULL);      \
	}

QUERY(pz_query, DAT_PZ_PARAM_MASK, DAT_PZ_PARAM)
QUERY(lmr_query, DAT_LMR_PARAM_MASK, DAT_LMR_PARAM)
QUERY(rmr_query, DAT_RMR_PARAM_MASK, DAT_RMR_PARAM)
QUERY(evd_query, DAT_EVD_PARAM_MASK, DAT_EVD_PARAM)
QUERY(cno_query, DAT_CNO_PARAM_MASK, DAT_CNO_PARAM)
QUERY(ep_query, DAT_EP_PARAM_MASK, DAT_EP_PARAM)
QUERY(srq_query, DAT_SRQ_PARAM_MASK, DAT_SRQ_PARAM)
QUERY(psp_query, DAT_PSP_PARAM_MASK, DAT_PSP_PARAM)
QUERY(rsp_query, DAT_RSP_PARAM_MASK, DAT_RSP_PARAM)
QUERY(csp_query, DAT_CSP_PARAM_MASK, DAT_CSP_PARAM)
QUERY(cr_query, DAT_CR_PARAM_MASK, DAT_CR_PARAM)

static const struct {
	const char *name;
	DAT_RETURN (*query)(DAT_HANDLE h, unsigned mask, bool place);
	const DAT_HANDLE *handle;
	unsigned all, unknown;
	bool mask_first; /* the mask is checked before the output */
} queries[] = {
	{ "pz", on_pz_query, &things.pz, DAT_PZ_FIELD_ALL, 0x02, false },
	{ "lmr", on_lmr_query, &things.lmr, DAT_LMR_FIELD_ALL, 0x800, false },
	{ "rmr", on_rmr_query, &things.rmr, DAT_RMR_FIELD_ALL & ~DAT_RMR_FIELD_LMR_TRIPLET, 0x80,
	  false },
	{ "evd", on_evd_query, &things.evd, DAT_EVD_FIELD_ALL, 0x20, true },
	{ "cno", on_cno_query, &things.cno, DAT_CNO_FIELD_ALL, 0x08, true },
	{ "ep", on_ep_query, &things.ep, DAT_EP_FIELD_ALL, 0x80000000, false },
	{ "srq", on_srq_query, &things.srq, DAT_SRQ_FIELD_ALL, 0x100, false },
	{ "psp", on_psp_query, &things.psp, DAT_PSP_FIELD_ALL, 0x10, false },
	{ "rsp", on_rsp_query, &things.rsp, DAT_RSP_FIELD_ALL, 0x10, false },
	{ "csp", on_csp_query, &things.csp, DAT_CSP_FIELD_ALL, 0x10, false },
	{ "cr", on_cr_query, &things.cr, DAT_CR_FIELD_ALL, 0x20, false },
};

static void ask(size_t i, unsigned mask, bool place, DAT_RETURN expected)
{
	DAT_RETURN status = queries[i].query(*queries[i].handle, mask, place);
	bool written = !things_untouched();

	if (status != expected || written != (status == DAT_SUCCESS))
		printf("dat_%s_query, mask 0x%x%s: 0x%x, expected 0x%x%s\n", queries[i].name, mask,
		       place ? "" : ", no place", status, expected, written ? ", written" : "");
	CU_ASSERT_EQUAL(status, expected);
	CU_ASSERT_EQUAL(written, status == DAT_SUCCESS);
	memset(&things_out, 0xa5, sizeof(things_out));
}

static void test_queries(void)
{
	const DAT_RETURN bad_mask = E(INVALID_PARAMETER, INVALID_ARG2);
	const DAT_RETURN no_place = E(INVALID_PARAMETER, INVALID_ARG3);
	size_t i;

	things_open();
	for (i = 0; i < COUNT(queries); i++) {
		unsigned all = queries[i].all, unknown = queries[i].unknown;

		ask(i, all, true, DAT_SUCCESS);
		ask(i, all, false, no_place);
		ask(i, 0, false, no_place);
		ask(i, unknown, true, bad_mask);
		ask(i, all | unknown, true, bad_mask);
		ask(i, all | unknown, false, queries[i].mask_first ? bad_mask : no_place);
	}
	things_close();
}

/* An RMR that is not bound has no triplet. */
static void test_unbound(void)
{
	things_open();
	IS(dat_rmr_query(things.rmr, DAT_RMR_FIELD_ALL, &things_out.rmr),
	   E(INVALID_PARAMETER, INVALID_ARG2));
	CU_ASSERT_TRUE(things_untouched());
	things_close();
}

/* dat_ia_query checks two masks and two outputs, in this order. */
static void test_ia(void)
{
	static const struct {
		DAT_UINT64 ia;
		DAT_UINT64 provider;
		bool ia_place, provider_place;
		DAT_RETURN expected;
	} rows[] = {
		{ DAT_IA_FIELD_ALL + 1, 0, true, true, E(INVALID_PARAMETER, INVALID_ARG3) },
		{ DAT_IA_FIELD_ALL + 1, 0, false, true, E(INVALID_PARAMETER, INVALID_ARG3) },
		{ DAT_IA_FIELD_ALL + 1, DAT_PROVIDER_FIELD_ALL + 1, true, true,
		  E(INVALID_PARAMETER, INVALID_ARG3) },
		{ DAT_IA_FIELD_ALL, 0, false, true, E(INVALID_PARAMETER, INVALID_ARG4) },
		{ DAT_IA_FIELD_ALL, DAT_PROVIDER_FIELD_ALL + 1, false, true,
		  E(INVALID_PARAMETER, INVALID_ARG4) },
		{ 0, DAT_PROVIDER_FIELD_ALL + 1, false, true, E(INVALID_PARAMETER, INVALID_ARG5) },
		{ 0, DAT_PROVIDER_FIELD_ALL + 1, false, false, E(INVALID_PARAMETER, INVALID_ARG5) },
		{ 0, DAT_PROVIDER_FIELD_ALL, false, false, E(INVALID_PARAMETER, INVALID_ARG6) },
	};
	size_t i;

	things_open();
	for (i = 0; i < COUNT(rows); i++) {
		IS(dat_ia_query(things.ia, &things_out.handle, rows[i].ia,
				rows[i].ia_place ? &things_out.ia : NULL, rows[i].provider,
				rows[i].provider_place ? &things_out.provider : NULL),
		   rows[i].expected);
		CU_ASSERT_TRUE(things_untouched());
	}
	OK(dat_ia_query(things.ia, NULL, 0, NULL, 0, NULL));
	IS(dat_ia_close(things.ia, (DAT_CLOSE_FLAGS)2), E(INVALID_PARAMETER, INVALID_ARG2));
	IS(dat_ia_close(things.ia, DAT_CLOSE_GRACEFUL_FLAG),
	   E(INVALID_STATE, INVALID_STATE_IA_IN_USE));
	things_close();
}

static const struct unit_test tests[] = {
	{ "queries check the mask, then the output", test_queries },
	{ "an unbound RMR has no triplet", test_unbound },
	{ "an open query and close check masks and outputs", test_ia },
};

UNIT_MAIN("query_args", tests)
