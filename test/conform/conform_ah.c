/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Address handles, and the return path from a received datagram. */
#include <arpa/inet.h>
#include "test/conform/conform.h"

static const struct pair_options ud = { .type = IBV_QPT_UD };

static struct ibv_ah_attr attr_here(void)
{
	struct ibv_qp_attr attr;
	int mask;

	rtr_attr(&attr, &mask, 0, &ud);
	return attr.ah_attr;
}

static struct ibv_pd *pd;

static bool refused(struct ibv_ah_attr attr)
{
	struct ibv_ah *ah;

	errno = 0;
	ah = ibv_create_ah(pd, &attr);
	if (ah)
		ibv_destroy_ah(ah);
	return !ah && errno;
}

static void bad_attributes(void)
{
	struct ibv_ah_attr attr;

	pd = ibv_alloc_pd(device);
	CU_ASSERT_PTR_NOT_NULL_FATAL(pd);
	CU_ASSERT_FALSE(refused(attr_here()));
	attr = attr_here();
	attr.is_global = 0;
	CU_ASSERT_TRUE(refused(attr));
	attr = attr_here();
	attr.port_num = 2;
	CU_ASSERT_TRUE(refused(attr));
	attr = attr_here();
	attr.grh.sgid_index = 255;
	CU_ASSERT_TRUE(refused(attr));
	CU_ASSERT_EQUAL(ibv_dealloc_pd(pd), 0);
}

static void domain_is_busy(void)
{
	struct ibv_ah_attr attr = attr_here();
	struct ibv_pd *own = ibv_alloc_pd(device);
	struct ibv_ah *ah = ibv_create_ah(own, &attr);

	CU_ASSERT_PTR_NOT_NULL_FATAL(ah);
	CU_ASSERT_PTR_EQUAL(ah->pd, own);
	CU_ASSERT_PTR_EQUAL(ah->context, device);
	CU_ASSERT_EQUAL(ibv_dealloc_pd(own), EBUSY);
	CU_ASSERT_EQUAL(ibv_destroy_ah(ah), 0);
	CU_ASSERT_EQUAL(ibv_dealloc_pd(own), 0);
	CU_ASSERT_TRUE(device_attr.max_ah > 0);
}

/* Sends one datagram from a to b; its header is at the start of b's buffer. */
static bool exchange(struct pair *pair, struct ibv_wc *wc)
{
	return !post_recv(&pair->b, 1, 0, 1000) && !post_send(&pair->a, 2, 0, 10, 0) &&
	       completes(pair->b.rcq, 1, IBV_WC_SUCCESS, wc);
}

static void from_completion(void)
{
	struct ibv_ah_attr attr;
	struct ibv_wc wc;
	struct pair pair;

	if (!pair_open(&pair, &ud))
		return;
	CU_ASSERT_TRUE(exchange(&pair, &wc));
	CU_ASSERT_EQUAL(ibv_init_ah_from_wc(device, 1, &wc, (struct ibv_grh *)(void *)pair.b.buffer,
					    &attr),
			0);
	CU_ASSERT_EQUAL(attr.is_global, 1);
	CU_ASSERT_EQUAL(attr.port_num, 1);
	CU_ASSERT_EQUAL(memcmp(&attr.grh.dgid, &device_gid, sizeof(device_gid)), 0);
	CU_ASSERT_EQUAL(attr.grh.sgid_index, device_gid_index);
	pair_close(&pair);
}

static void answer_goes_back(void)
{
	struct ibv_ah *there;
	struct ibv_wc wc;
	struct pair pair;

	if (!pair_open(&pair, &ud))
		return;
	CU_ASSERT_TRUE(exchange(&pair, &wc));
	there = pair.b.ah;
	pair.b.ah =
		ibv_create_ah_from_wc(pair.b.pd, &wc, (struct ibv_grh *)(void *)pair.b.buffer, 1);
	CU_ASSERT_PTR_NOT_NULL_FATAL(pair.b.ah);
	pair.b.peer = wc.src_qp;
	CU_ASSERT_EQUAL(post_recv(&pair.a, 3, 0, 1000), 0);
	CU_ASSERT_EQUAL(post_send(&pair.b, 4, 0, 10, 0), 0);
	CU_ASSERT_TRUE(completes(pair.a.rcq, 3, IBV_WC_SUCCESS, &wc));
	CU_ASSERT_EQUAL(wc.src_qp, pair.b.qp->qp_num);
	CU_ASSERT_EQUAL(ibv_destroy_ah(there), 0);
	pair_close(&pair);
}

/*
 * A device that reports the kind of header has it in wc.sl, with the numbers of mlx5: UCX drops every datagram over
 * IPv4 otherwise. The return path does not use it as a priority.
 */
static void header_kind(void)
{
	bool ipv4 = device_gid.raw[10] == 0xff && device_gid.raw[11] == 0xff;
	struct ibv_ah_attr attr;
	struct ibv_wc wc;
	struct pair pair;

	if (device_is_rxe) {
		skip("rxe leaves wc.sl at 0");
		return;
	}
	if (!pair_open(&pair, &ud))
		return;
	CU_ASSERT_TRUE(exchange(&pair, &wc));
	CU_ASSERT_EQUAL(wc.sl & 3, ipv4 ? 2 : 1);
	CU_ASSERT_EQUAL(ibv_init_ah_from_wc(device, 1, &wc, (struct ibv_grh *)(void *)pair.b.buffer,
					    &attr),
			0);
	CU_ASSERT_EQUAL(attr.sl, 0);
	pair_close(&pair);
}

/* RoCE v2: the IPv4 header is in the second half, with a valid checksum. */
static void ipv4_header(void)
{
	const uint8_t *ip;
	struct ibv_wc wc;
	struct pair pair;
	uint32_t sum = 0;

	if (device_is_rxe) {
		skip("no checksum between addresses of one host");
		return;
	}
	if (device_gid.raw[10] != 0xff || device_gid.raw[11] != 0xff) {
		skip("no IPv4 address");
		return;
	}
	if (!pair_open(&pair, &ud))
		return;
	CU_ASSERT_TRUE(exchange(&pair, &wc));
	ip = (const uint8_t *)pair.b.buffer + 20;
	CU_ASSERT_EQUAL(ip[0], 0x45);
	CU_ASSERT_EQUAL(ip[9], 17);
	CU_ASSERT_EQUAL(memcmp(ip + 12, device_gid.raw + 12, 4), 0);
	CU_ASSERT_EQUAL(memcmp(ip + 16, device_gid.raw + 12, 4), 0);
	for (int i = 0; i < 20; i += 2)
		sum += (uint32_t)ip[i] << 8 | ip[i + 1];
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	/* rxe computes no checksum of a packet that it delivers to itself. */
	if (!device_is_rxe)
		CU_ASSERT_EQUAL(sum, 0xffff);
	pair_close(&pair);
}

static void no_header_no_way_back(void)
{
	struct ibv_wc wc = { .wc_flags = IBV_WC_GRH };
	struct ibv_ah_attr attr;
	struct ibv_grh grh;

	memset(&grh, 0, sizeof(grh));
	CU_ASSERT_NOT_EQUAL(ibv_init_ah_from_wc(device, 1, &wc, &grh, &attr), 0);
	wc.wc_flags = 0;
	wc.slid = 7;
	CU_ASSERT_EQUAL(ibv_init_ah_from_wc(device, 1, &wc, &grh, &attr), 0);
	CU_ASSERT_EQUAL(attr.is_global, 0);
	CU_ASSERT_EQUAL(attr.dlid, 7);
}

/* The IPv6 header has an address of this host, because the GID table has an entry for no other. */
static void ipv6_header(void)
{
	struct ibv_wc wc = { .wc_flags = IBV_WC_GRH };
	struct ibv_grh grh = { .version_tclass_flow = htonl(6u << 28 | 0x12345), .hop_limit = 9 };
	struct ibv_ah_attr attr;

	if (device_is_rxe) {
		skip("rdma-core sets the hop limit itself");
		return;
	}
	grh.dgid = device_gid;
	memset(&grh.sgid, 0x20, sizeof(grh.sgid));
	CU_ASSERT_EQUAL(ibv_init_ah_from_wc(device, 1, &wc, &grh, &attr), 0);
	CU_ASSERT_EQUAL(attr.grh.flow_label, 0x12345);
	CU_ASSERT_EQUAL(memcmp(&attr.grh.dgid, &grh.sgid, sizeof(grh.sgid)), 0);
	CU_ASSERT_EQUAL(attr.grh.sgid_index, device_gid_index);
	memset(&grh.dgid, 0x30, sizeof(grh.dgid));
	CU_ASSERT_NOT_EQUAL(ibv_init_ah_from_wc(device, 1, &wc, &grh, &attr), 0);
}

static const struct unit_test tests[] = {
	{ "an address handle needs GRH, port and source GID", bad_attributes },
	{ "a PD with an address handle is busy", domain_is_busy },
	{ "the return path is in the header", from_completion },
	{ "an answer to a datagram arrives", answer_goes_back },
	{ "the header has IPv4 form", ipv4_header },
	{ "wc.sl has the kind of header", header_kind },
	{ "an IPv6 header is read, too", ipv6_header },
	{ "without a header there is no return path", no_header_no_way_back },
};

CONFORM_MAIN("conform_ah", tests)
