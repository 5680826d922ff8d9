/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Streams that share an EVD: which completion flags agree, and what a query reports. */
#include "test/unit/rig.h"

#define T DAT_COMPLETION_EVD_THRESHOLD_FLAG
#define N DAT_COMPLETION_DEFAULT_FLAG
#define U DAT_COMPLETION_UNSIGNALLED_FLAG
#define S DAT_COMPLETION_SOLICITED_WAIT_FLAG

enum {
	REQUEST = EVD_STREAM_REQUEST,
	RECV = EVD_STREAM_RECV,
	SRQ = EVD_STREAM_SRQ_RECV,
	OTHER = EVD_STREAM_OTHER
};

struct pair {
	int first;
	DAT_COMPLETION_FLAGS first_flags;
	int second;
	DAT_COMPLETION_FLAGS second_flags;
	bool agree;
};

static DAT_EVD_STATE configuration(DAT_EVD_HANDLE evd)
{
	DAT_EVD_PARAM param;

	MUST(dat_evd_query(evd, DAT_EVD_FIELD_ALL, &param));
	return param.evd_state & 0x30;
}

static void test_pairs(void)
{
	static const struct pair pairs[] = {
		{ REQUEST, T, RECV, T, true },
		{ REQUEST, N, RECV, T, true },
		{ RECV, N, RECV, T, true },
		{ SRQ, T, REQUEST, T, true },
		{ SRQ, T, REQUEST, N, true },
		{ SRQ, T, OTHER, 0, true },
		{ OTHER, 0, SRQ, T, true },
		{ REQUEST, T, OTHER, 0, true },
		{ REQUEST, U, RECV, U, true },
		{ SRQ, U, REQUEST, U, true },
		{ RECV, U, OTHER, 0, true },
		{ OTHER, 0, RECV, U, true },
		{ RECV, U, RECV, T, true },
		{ RECV, T, RECV, U, true },
		{ REQUEST, U, RECV, N, true },
		{ RECV, N, REQUEST, U, true },
		{ SRQ, N, REQUEST, U, true },
		{ REQUEST, U, SRQ, N, true },
		{ SRQ, T, REQUEST, U, false },
		{ REQUEST, U, SRQ, T, false },
		{ RECV, U, SRQ, T, false },
		{ RECV, S, RECV, S, true },
		{ SRQ, S, RECV, S, true },
		{ RECV, S, RECV, T, false },
		{ RECV, T, RECV, S, false },
		{ RECV, S, RECV, U, false },
		{ RECV, S, REQUEST, N, false },
		{ REQUEST, N, RECV, S, false },
		{ RECV, S, OTHER, 0, false },
		{ OTHER, 0, RECV, S, false },
		/* on the request side the flag means nothing */
		{ REQUEST, S, REQUEST, T, true },
	};
	struct dapl_evd *evd;
	struct rig rig;
	size_t i;

	rig_open(&rig, NULL);
	for (i = 0; i < COUNT(pairs); i++) {
		const struct pair *p = &pairs[i];

		evd = rig_evd(&rig, 4, DAT_EVD_DTO_FLAG | DAT_EVD_CONNECTION_FLAG);
		CU_ASSERT_TRUE(evd_attach(evd, p->first, p->first_flags));
		CU_ASSERT_EQUAL(evd_attach(evd, p->second, p->second_flags), p->agree);
		IS(dat_evd_free(evd), E(INVALID_STATE, INVALID_STATE_EVD_IN_USE));
		if (p->agree)
			evd_detach(evd, p->second, p->second_flags);
		evd_detach(evd, p->first, p->first_flags);
		MUST(dat_evd_free(evd));
	}
	rig_close(&rig);
}

static void test_a_software_evd_takes_no_solicited_stream(void)
{
	struct dapl_evd *evd;
	struct rig rig;

	rig_open(&rig, NULL);
	evd = rig_evd(&rig, 4, DAT_EVD_DTO_FLAG | DAT_EVD_SOFTWARE_FLAG);
	CU_ASSERT_FALSE(evd_attach(evd, EVD_STREAM_RECV, S));
	CU_ASSERT_TRUE(evd_attach(evd, EVD_STREAM_RECV, U));
	evd_detach(evd, EVD_STREAM_RECV, U);
	MUST(dat_evd_free(evd));
	rig_close(&rig);
}

static void test_configuration_lasts_as_long_as_its_streams(void)
{
	struct dapl_evd *evd;
	struct rig rig;

	rig_open(&rig, NULL);
	evd = rig_evd(&rig, 4, DAT_EVD_DTO_FLAG);
	CU_ASSERT_EQUAL(configuration(evd), DAT_EVD_STATE_CONFIG_THRESHOLD);
	CU_ASSERT_TRUE(evd_attach(evd, EVD_STREAM_RECV, S));
	CU_ASSERT_TRUE(evd_attach(evd, EVD_STREAM_RECV, S));
	CU_ASSERT_EQUAL(configuration(evd), DAT_EVD_STATE_CONFIG_SOLICITED);
	evd_detach(evd, EVD_STREAM_RECV, S);
	CU_ASSERT_FALSE(evd_attach(evd, EVD_STREAM_RECV, U));
	evd_detach(evd, EVD_STREAM_RECV, S);
	CU_ASSERT_TRUE(evd_attach(evd, EVD_STREAM_RECV, U));
	CU_ASSERT_EQUAL(configuration(evd), DAT_EVD_STATE_CONFIG_NOTIFY);
	CU_ASSERT_TRUE(evd_attach(evd, EVD_STREAM_REQUEST, N));
	CU_ASSERT_EQUAL(configuration(evd), DAT_EVD_STATE_CONFIG_THRESHOLD);
	evd_detach(evd, EVD_STREAM_REQUEST, N);
	CU_ASSERT_EQUAL(configuration(evd), DAT_EVD_STATE_CONFIG_NOTIFY);
	evd_detach(evd, EVD_STREAM_RECV, U);
	CU_ASSERT_EQUAL(configuration(evd), DAT_EVD_STATE_CONFIG_THRESHOLD);
	/* an UNSIGNALLED stream that has gone does not prevent an SRQ's stream */
	CU_ASSERT_TRUE(evd_attach(evd, EVD_STREAM_SRQ_RECV, T));
	CU_ASSERT_FALSE(evd_attach(evd, EVD_STREAM_RECV, U));
	evd_detach(evd, EVD_STREAM_SRQ_RECV, T);
	MUST(dat_evd_free(evd));
	rig_close(&rig);
}

static void test_creation_of_endpoints(void)
{
	DAT_EP_ATTR attr = rig_attr(), other;
	DAT_EP_HANDLE ep = DAT_HANDLE_NULL;
	struct rig rig;

	rig_open(&rig, &attr);
	other = rig_attr();
	other.recv_completion_flags = S;
	IS(dat_ep_create(rig.ia, rig.pz, rig.recv, rig.request, rig.conn, &other, &ep),
	   E(INVALID_PARAMETER, INVALID_ARG6));
	CU_ASSERT_PTR_NULL(ep);
	/* the refused stream left nothing behind */
	MUST(dat_ep_free(rig.ep));
	MUST(dat_evd_free(rig.recv));
	rig.recv = rig_evd(&rig, RIG_QLEN, DAT_EVD_DTO_FLAG);
	MUST(dat_ep_create(rig.ia, rig.pz, rig.recv, rig.request, rig.conn, &other, &rig.ep));
	CU_ASSERT_EQUAL(configuration(rig.recv), DAT_EVD_STATE_CONFIG_SOLICITED);
	rig_close(&rig);
}

static void test_no_evd_agrees_with_all(void)
{
	CU_ASSERT_TRUE(evd_attach(NULL, EVD_STREAM_RECV, U));
	evd_detach(NULL, EVD_STREAM_RECV, U);
}

static const struct unit_test tests[] = {
	{ "R32 to R36, F1 to F4: every pair of streams", test_pairs },
	{ "a software EVD takes no solicited stream",
	  test_a_software_evd_takes_no_solicited_stream },
	{ "the agreed flags last as long as their streams",
	  test_configuration_lasts_as_long_as_its_streams },
	{ "R37: a refused endpoint changes no agreement", test_creation_of_endpoints },
	{ "streams without an EVD always agree", test_no_evd_agrees_with_all },
};

UNIT_MAIN("evd_stream", tests)
