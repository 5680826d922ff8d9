/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Extension operations that are refused: the collectives, and datagrams on a connection. */
#include <dat2/dat_ib_extensions.h>
#include "test/unit/rig.h"

static const DAT_RETURN absent = E0(NOT_IMPLEMENTED);
static DAT_CONTEXT context;

static void test_groups(void)
{
	DAT_IB_COLLECTIVE_GROUP group = { .local_size = 1 };
	DAT_IB_COLLECTIVE_MEMBER member = &group;
	struct rig rig;
	DAT_UINT32 size = 7;
	DAT_UINT64 clock = 8;

	rig_open(&rig, NULL);
	IS(dat_ib_collective_create_member(rig.ia, NULL, &member, &size), absent);
	CU_ASSERT_PTR_EQUAL(member, &group);
	CU_ASSERT_EQUAL(size, 7);
	IS(dat_ib_collective_free_member(rig.ia, member), absent);
	IS(dat_ib_collective_create_group(&member, 1, 0, 0, &group, rig.conn, rig.pz, context),
	   absent);
	IS(dat_ib_collective_free_group(rig.conn), absent);
	IS(dat_ib_collective_set_clock(rig.conn, 9, context), absent);
	IS(dat_ib_collective_read_clock(rig.conn, &clock), absent);
	CU_ASSERT_EQUAL(clock, 8);
	rig_close(&rig);
}

static void test_moves(void)
{
	char from[8] = "ABCDEFG", to[8] = "abcdefg";
	DAT_COUNT sizes[1] = { 8 }, places[1] = { 0 };
	struct rig rig;

	rig_open(&rig, NULL);
	IS(dat_ib_collective_scatter(rig.conn, from, 8, to, 8, 0, context, 0), absent);
	IS(dat_ib_collective_scatterv(rig.conn, from, sizes, places, to, 8, 0, context, 0), absent);
	IS(dat_ib_collective_gather(rig.conn, from, 8, to, 8, 0, context, 0), absent);
	IS(dat_ib_collective_gatherv(rig.conn, from, 8, to, sizes, places, 0, context, 0), absent);
	IS(dat_ib_collective_allgather(rig.conn, from, 8, to, 8, context, 0), absent);
	IS(dat_ib_collective_allgatherv(rig.conn, from, 8, to, sizes, places, context, 0), absent);
	IS(dat_ib_collective_alltoall(rig.conn, from, 8, to, 8, context, 0), absent);
	IS(dat_ib_collective_alltoallv(rig.conn, from, sizes, places, to, sizes, places, context,
				       0),
	   absent);
	IS(dat_ib_collective_broadcast(rig.conn, to, 8, 0, context, 0), absent);
	IS(dat_ib_collective_barrier(rig.conn, context, 0), absent);
	CU_ASSERT_STRING_EQUAL(to, "abcdefg");
	IS(dat_evd_dequeue(rig.conn, &(DAT_EVENT){ 0 }), DAT_QUEUE_EMPTY);
	rig_close(&rig);
}

static void test_reductions(void)
{
	enum { SUM = DAT_IB_COLLECTIVE_REDUCE_OP_SUM, INT32 = DAT_IB_COLLECTIVE_TYPE_INT32 };
	int32_t from = 4, to = 5;
	DAT_COUNT sizes[1] = { 4 };
	struct rig rig;

	rig_open(&rig, NULL);
	IS(dat_ib_collective_reduce(rig.conn, &from, 4, &to, 4, SUM, INT32, 0, context, 0), absent);
	IS(dat_ib_collective_allreduce(rig.conn, &from, 4, &to, 4, SUM, INT32, context, 0), absent);
	IS(dat_ib_collective_reduce_scatter(rig.conn, &from, 4, &to, sizes, SUM, INT32, context, 0),
	   absent);
	IS(dat_ib_collective_scan(rig.conn, &from, 4, &to, 4, SUM, INT32, context, 0), absent);
	CU_ASSERT_EQUAL(to, 5);
	rig_close(&rig);
}

static void test_datagrams_on_a_stream(void)
{
	DAT_EP_ATTR attr = rig_attr();
	DAT_IB_ADDR_HANDLE ah = { 0 };
	struct rig rig;

	rig_open(&rig, &attr);
	IS(dat_ib_post_send_ud(rig.ep, 0, NULL, &ah, (DAT_DTO_COOKIE){ 0 }, 0),
	   E(INVALID_HANDLE, INVALID_HANDLE_EP));
	IS(dat_ib_ud_cm_free(rig.ep, context), E(INVALID_HANDLE, INVALID_HANDLE_EP));
	IS(dat_ib_ud_ah_free(rig.ep, &ah), E(INVALID_HANDLE, INVALID_HANDLE_EP));
	IS(dat_ib_ud_cm_free(rig.pz, context), E(INVALID_HANDLE, INVALID_HANDLE_EP));
	IS(dat_ib_ud_ah_free(rig.pz, &ah), E(INVALID_HANDLE, INVALID_HANDLE_EP));
	rig_close(&rig);
}

static void test_no_datagrams(void)
{
	DAT_EP_ATTR attr = rig_attr();
	DAT_EP_HANDLE ep = NULL;
	struct rig rig;

	rig_open(&rig, NULL);
	attr.service_type = (DAT_SERVICE_TYPE)DAT_IB_SERVICE_TYPE_UD;
	IS(dat_ep_create(rig.ia, rig.pz, rig.recv, rig.request, rig.conn, &attr, &ep),
	   E0(MODEL_NOT_SUPPORTED));
	CU_ASSERT_PTR_NULL(ep);
	rig_close(&rig);
}

static const struct unit_test tests[] = {
	{ "groups are refused", test_groups },
	{ "collectives are refused", test_moves },
	{ "reductions are refused", test_reductions },
	{ "an endpoint for datagrams on a device without them is refused", test_no_datagrams },
	{ "datagrams on an endpoint for connections are refused", test_datagrams_on_a_stream },
};

UNIT_MAIN("ext_absent", tests)
