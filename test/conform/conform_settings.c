/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* The software device with settings that no other device has. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include "test/conform/remote.h"

static void no_message_through_the_ring(void)
{
	static const uint32_t sizes[] = { 48, 49, 1000, 4096, 5000 };
	struct side here;
	struct remote peer;

	if (!remote_open(&peer, &here, NULL))
		return;
	messages_there(&here, &peer, sizes, COUNT(sizes));
	remote_close(&peer);
	side_close(&here);
}

static void looks_like_infiniband(void)
{
	struct ibv_ah_attr by_lid = { .dlid = 1, .port_num = 1 }, nowhere = { .port_num = 1 };
	struct ibv_ah_attr by_gid_alone = {
		.is_global = 1,
		.grh = { .dgid = device_gid, .sgid_index = device_gid_index },
		.port_num = 1,
	};
	struct ibv_pd *pd = ibv_alloc_pd(device);
	struct ibv_port_attr port;
	struct ibv_ah *ah;

	CU_ASSERT_PTR_NOT_NULL_FATAL(pd);
	CU_ASSERT_EQUAL(ibv_query_port(device, 1, &port), 0);
	CU_ASSERT_EQUAL(port.link_layer, IBV_LINK_LAYER_ETHERNET);
	CU_ASSERT_EQUAL(port.lid, 0);
	CU_ASSERT_PTR_NULL(ibv_create_ah(pd, &by_lid));
	CU_ASSERT_EQUAL(errno, EINVAL);
	setenv("SOFTVERBS_LINK", "infiniband", 1);
	CU_ASSERT_EQUAL(ibv_query_port(device, 1, &port), 0);
	CU_ASSERT_EQUAL(port.link_layer, IBV_LINK_LAYER_INFINIBAND);
	CU_ASSERT_EQUAL(port.lid, 1);
	ah = ibv_create_ah(pd, &by_lid);
	CU_ASSERT_PTR_NOT_NULL_FATAL(ah);
	CU_ASSERT_EQUAL(ibv_destroy_ah(ah), 0);
	CU_ASSERT_PTR_NULL(ibv_create_ah(pd, &nowhere));
	CU_ASSERT_EQUAL(errno, EINVAL);
	CU_ASSERT_PTR_NULL(ibv_create_ah(pd, &by_gid_alone));
	CU_ASSERT_EQUAL(errno, EINVAL);
	unsetenv("SOFTVERBS_LINK");
	CU_ASSERT_EQUAL(ibv_dealloc_pd(pd), 0);
}

/* A path names a LID, with and without a GRH. */
static void connects_by_lid(void)
{
	struct pair_options options = { 0 };
	struct ibv_qp_attr attr;
	struct side side;
	int mask;

	setenv("SOFTVERBS_LINK", "infiniband", 1);
	CU_ASSERT_TRUE_FATAL(side_open(&side, &options, false));
	CU_ASSERT_EQUAL(make_init(side.qp, 0), 0);
	rtr_attr(&attr, &mask, side.qp->qp_num, &options);
	CU_ASSERT_NOT_EQUAL(attr.ah_attr.dlid, 0);
	attr.ah_attr.dlid = 0;
	CU_ASSERT_EQUAL(ibv_modify_qp(side.qp, &attr, mask), EINVAL);
	attr.ah_attr.is_global = 0;
	CU_ASSERT_EQUAL(ibv_modify_qp(side.qp, &attr, mask), EINVAL);
	attr.ah_attr.dlid = 1;
	CU_ASSERT_EQUAL(ibv_modify_qp(side.qp, &attr, mask), 0);
	unsetenv("SOFTVERBS_LINK");
	CU_ASSERT_EQUAL(move_to(side.qp, IBV_QPS_RESET), 0);
	CU_ASSERT_EQUAL(make_init(side.qp, 0), 0);
	CU_ASSERT_EQUAL(ibv_modify_qp(side.qp, &attr, mask), EINVAL);
	side_close(&side);
}

static void datagram_with_lid(unsigned lid)
{
	struct pair_options options = { .type = IBV_QPT_UD };
	struct ibv_wc wc = { 0 };
	struct pair pair;

	if (!pair_open(&pair, &options))
		return;
	CU_ASSERT_EQUAL(post_recv(&pair.b, 1, 0, 1024), 0);
	CU_ASSERT_EQUAL(post_send(&pair.a, 2, 0, 8, IBV_SEND_SIGNALED), 0);
	CU_ASSERT_TRUE(completes(pair.a.scq, 2, IBV_WC_SUCCESS, NULL));
	CU_ASSERT_TRUE(completes(pair.b.rcq, 1, IBV_WC_SUCCESS, &wc));
	CU_ASSERT_EQUAL(wc.slid, lid);
	pair_close(&pair);
}

static void datagrams_name_the_lid(void)
{
	datagram_with_lid(0);
	setenv("SOFTVERBS_LINK", "infiniband", 1);
	datagram_with_lid(1);
	unsetenv("SOFTVERBS_LINK");
}

static const struct unit_test tests[] = {
	{ "SOFTVERBS_LINK: a LID, and address handles without a GRH", looks_like_infiniband },
	{ "SOFTVERBS_LINK: a path by LID", connects_by_lid },
	{ "SOFTVERBS_LINK: a datagram names the LID of its sender", datagrams_name_the_lid },
	{ "SOFTVERBS_EAGER=0: no message goes through the ring", no_message_through_the_ring },
};

int main(int argc, char **argv)
{
	setenv("SOFTVERBS_EAGER", "0", 1);
	remote_main(argc, argv);
	if (!conform_open())
		return 77;
	if (strcmp(ibv_get_device_name(device->device), "soft0")) {
		fprintf(stderr, "skipped: not the software device\n");
		return 77;
	}
	return unit_main("conform_settings", tests, COUNT(tests), argc, argv);
}
