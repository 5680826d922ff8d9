/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* The kernel's counters of a device, between start and stop. */
#include <dat2/dat_ib_extensions.h>
#include "test/unit/rig.h"

static uint64_t counter(const struct rig *rig, DAT_IA_COUNTERS which)
{
	DAT_UINT64 values[DCNT_IA_ALL_COUNTERS] = { 0 };

	MUST(dat_ib_query_counters(rig->ia, which, values, 0));
	return values[which];
}

static void kernel_counts(unsigned which, uint64_t more)
{
	fake.kernel[which] += more;
}

static void test_checks(void)
{
	struct rig rig;

	rig_open(&rig, NULL);
	IS(dat_ib_start_counter(rig.pz, DCNT_IA_CM), E(INVALID_HANDLE, INVALID_HANDLE_IA));
	IS(dat_ib_stop_counter(rig.pz, DCNT_IA_CM), E(INVALID_HANDLE, INVALID_HANDLE_IA));
	IS(dat_ib_start_counter(rig.ia, 3), E(INVALID_PARAMETER, INVALID_ARG2));
	IS(dat_ib_start_counter(rig.ia, -1), E(INVALID_PARAMETER, INVALID_ARG2));
	IS(dat_ib_stop_counter(rig.ia, 3), E(INVALID_PARAMETER, INVALID_ARG2));
	IS(dat_ib_stop_counter(rig.ia, DCNT_IA_LNK), E0(INVALID_STATE));
	rig_close(&rig);
}

static void test_difference(void)
{
	struct rig rig;

	rig_open(&rig, NULL);
	kernel_counts(0, 100); /* before the start */
	MUST(dat_ib_start_counter(rig.ia, DCNT_IA_LNK));
	kernel_counts(0, 7);
	kernel_counts(8, 9);
	CU_ASSERT_EQUAL(counter(&rig, DCNT_IA_LNK_ERR_RCV), 0);
	MUST(dat_ib_stop_counter(rig.ia, DCNT_IA_LNK));
	CU_ASSERT_EQUAL(counter(&rig, DCNT_IA_LNK_ERR_RCV), 7);
	CU_ASSERT_EQUAL(counter(&rig, DCNT_IA_LNK_WARN_XMT_WAIT), 9);
	kernel_counts(0, 1000); /* after the stop */
	IS(dat_ib_stop_counter(rig.ia, DCNT_IA_LNK), E0(INVALID_STATE));
	CU_ASSERT_EQUAL(counter(&rig, DCNT_IA_LNK_ERR_RCV), 7);
	MUST(dat_ib_start_counter(rig.ia, DCNT_IA_LNK));
	kernel_counts(0, 3);
	MUST(dat_ib_stop_counter(rig.ia, DCNT_IA_LNK));
	CU_ASSERT_EQUAL(counter(&rig, DCNT_IA_LNK_ERR_RCV), 10);
	rig_close(&rig);
}

static void test_groups(void)
{
	struct rig rig;

	rig_open(&rig, NULL);
	MUST(dat_ib_start_counter(rig.ia, DCNT_IA_DIAG));
	MUST(dat_ib_start_counter(rig.ia, DCNT_IA_CM));
	kernel_counts(0, 1);  /* cm: requests sent, which the IA counts itself */
	kernel_counts(4, 2);  /* cm: ready-to-use sent */
	kernel_counts(18, 5); /* cm: requests sent again */
	kernel_counts(30, 6); /* cm: duplicate replies */
	MUST(dat_ib_stop_counter(rig.ia, DCNT_IA_CM));
	MUST(dat_ib_stop_counter(rig.ia, DCNT_IA_DIAG));
	CU_ASSERT_EQUAL(counter(&rig, DCNT_IA_CM_REQ_TX), 0);
	CU_ASSERT_EQUAL(counter(&rig, DCNT_IA_CM_RTU_TX), 2);
	CU_ASSERT_EQUAL(counter(&rig, DCNT_IA_CM_ERR_REQ_RETRY), 5);
	CU_ASSERT_EQUAL(counter(&rig, DCNT_IA_CM_ERR_REP_DUP), 6);
	CU_ASSERT_EQUAL(counter(&rig, DCNT_IA_DIAG_ERR_RQ_RAE), 1);
	CU_ASSERT_EQUAL(counter(&rig, DCNT_IA_DIAG_ERR_SQ_RAE), 2);
	CU_ASSERT_EQUAL(counter(&rig, DCNT_IA_LNK_ERR_RCV), 0);
	rig_close(&rig);
}

/* The kernel's counter is reset between start and stop: the result is 0. */
static void test_set_back(void)
{
	struct rig rig;

	rig_open(&rig, NULL);
	fake.kernel[0] = 50;
	MUST(dat_ib_start_counter(rig.ia, DCNT_IA_LNK));
	fake.kernel[0] = 10;
	MUST(dat_ib_stop_counter(rig.ia, DCNT_IA_LNK));
	CU_ASSERT_EQUAL(counter(&rig, DCNT_IA_LNK_ERR_RCV), 0);
	rig_close(&rig);
}

static const struct unit_test tests[] = {
	{ "start and stop: each check", test_checks },
	{ "a counter is the difference between start and stop", test_difference },
	{ "events that the IA counts itself are not counted twice", test_groups },
	{ "a counter that is reset between start and stop counts 0", test_set_back },
};

UNIT_MAIN("ext_kernel", tests)
