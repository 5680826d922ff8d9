/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* The device, its port and tables, contexts and protection domains. */
#include <fcntl.h>
#include <stdlib.h>
#include "test/conform/conform.h"

static void list_is_terminated(void)
{
	int count = -1, i;
	struct ibv_device **list = ibv_get_device_list(&count);

	CU_ASSERT_PTR_NOT_NULL_FATAL(list);
	CU_ASSERT_TRUE(count >= 1);
	for (i = 0; list[i]; i++) {
		CU_ASSERT_TRUE(strlen(ibv_get_device_name(list[i])) > 0);
		CU_ASSERT_NOT_EQUAL(ibv_get_device_guid(list[i]), 0);
	}
	CU_ASSERT_EQUAL(i, count);
	ibv_free_device_list(list);
}

static void device_survives_its_list(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *context;

	CU_ASSERT_PTR_NOT_NULL_FATAL(list);
	context = ibv_open_device(list[0]);
	ibv_free_device_list(list);
	CU_ASSERT_PTR_NOT_NULL_FATAL(context);
	CU_ASSERT_TRUE(strlen(ibv_get_device_name(context->device)) > 0);
	CU_ASSERT_EQUAL(ibv_close_device(context), 0);
}

static void opens_are_independent(void)
{
	struct ibv_context *one = ibv_open_device(device->device),
			   *two = ibv_open_device(device->device);
	struct ibv_pd *pd;

	CU_ASSERT_PTR_NOT_NULL_FATAL(one);
	CU_ASSERT_PTR_NOT_NULL_FATAL(two);
	CU_ASSERT_PTR_NOT_EQUAL(one, two);
	CU_ASSERT_NOT_EQUAL(one->async_fd, two->async_fd);
	CU_ASSERT_TRUE(one->num_comp_vectors >= 1);
	CU_ASSERT_EQUAL(ibv_close_device(one), 0);
	pd = ibv_alloc_pd(two);
	CU_ASSERT_PTR_NOT_NULL(pd);
	CU_ASSERT_TRUE(pd && !ibv_dealloc_pd(pd));
	CU_ASSERT_EQUAL(ibv_close_device(two), 0);
}

static void attributes_make_sense(void)
{
	const struct ibv_device_attr *attr = &device_attr;

	CU_ASSERT_EQUAL(attr->node_guid, ibv_get_device_guid(device->device));
	CU_ASSERT_TRUE(attr->max_qp > 0 && attr->max_cq > 0 && attr->max_pd > 0 &&
		       attr->max_mr > 0);
	CU_ASSERT_TRUE(attr->max_qp_wr > 0 && attr->max_cqe > 0 && attr->max_sge > 0 &&
		       attr->max_mr_size > 0);
	CU_ASSERT_TRUE(attr->max_srq == 0 || (attr->max_srq_wr > 0 && attr->max_srq_sge > 0));
	CU_ASSERT_TRUE(attr->phys_port_cnt >= 1 && attr->max_pkeys >= 1);
	CU_ASSERT_TRUE(attr->max_qp_rd_atom > 0 && attr->max_qp_init_rd_atom > 0);
}

static void extended_attributes_agree(void)
{
	struct ibv_device_attr_ex ex;
	struct ibv_query_device_ex_input future = { .comp_mask = 1u << 31 };

	memset(&ex, 0xa5, sizeof(ex));
	CU_ASSERT_EQUAL_FATAL(ibv_query_device_ex(device, NULL, &ex), 0);
	CU_ASSERT_EQUAL(ex.orig_attr.node_guid, device_attr.node_guid);
	CU_ASSERT_EQUAL(ex.orig_attr.max_qp_wr, device_attr.max_qp_wr);
	CU_ASSERT_EQUAL(ex.orig_attr.device_cap_flags, device_attr.device_cap_flags);
	CU_ASSERT_TRUE(device_is_rxe || ibv_query_device_ex(device, &future, &ex) == EINVAL);
}

static void port_is_active(void)
{
	struct ibv_port_attr port;

	memset(&port, 0xa5, sizeof(port));
	CU_ASSERT_EQUAL_FATAL(ibv_query_port(device, 1, &port), 0);
	CU_ASSERT_EQUAL(port.state, IBV_PORT_ACTIVE);
	CU_ASSERT_TRUE(port.active_mtu >= IBV_MTU_256 && port.active_mtu <= port.max_mtu);
	CU_ASSERT_TRUE(port.max_msg_sz >= 1u << 23);
	CU_ASSERT_TRUE(port.gid_tbl_len > device_gid_index);
	CU_ASSERT_TRUE(port.pkey_tbl_len >= 1);
	CU_ASSERT_NOT_EQUAL(ibv_query_port(device, 0, &port), 0);
	CU_ASSERT_NOT_EQUAL(ibv_query_port(device, (uint8_t)(device_attr.phys_port_cnt + 1), &port),
			    0);
}

static void gid_table_is_consistent(void)
{
	static const union ibv_gid zero;
	struct ibv_gid_entry *entries, entry;
	struct ibv_port_attr port;
	union ibv_gid gid;
	ssize_t count, seen = 0;
	int i;

	CU_ASSERT_EQUAL_FATAL(ibv_query_port(device, 1, &port), 0);
	entries = calloc((size_t)port.gid_tbl_len, sizeof(*entries));
	CU_ASSERT_PTR_NOT_NULL_FATAL(entries);
	count = ibv_query_gid_table(device, entries, (size_t)port.gid_tbl_len, 0);
	CU_ASSERT_TRUE(count >= 1);
	for (i = 0; i < port.gid_tbl_len; i++) {
		CU_ASSERT_EQUAL(ibv_query_gid(device, 1, i, &gid), 0);
		errno = 0;
		if (ibv_query_gid_ex(device, 1, (uint32_t)i, &entry, 0)) {
			CU_ASSERT_EQUAL(errno, ENODATA);
			CU_ASSERT_EQUAL(memcmp(&gid, &zero, sizeof(gid)), 0);
			continue;
		}
		CU_ASSERT_EQUAL(memcmp(&gid, &entry.gid, sizeof(gid)), 0);
		CU_ASSERT_TRUE(entry.gid_index == (uint32_t)i && entry.port_num == 1);
		CU_ASSERT_TRUE(seen < count && !memcmp(&entries[seen].gid, &gid, sizeof(gid)));
		seen++;
	}
	CU_ASSERT_EQUAL(seen, count);
	free(entries);
}

static void gid_queries_are_checked(void)
{
	struct ibv_gid_entry entry;
	struct ibv_port_attr port;
	union ibv_gid gid;

	CU_ASSERT_EQUAL_FATAL(ibv_query_port(device, 1, &port), 0);
	CU_ASSERT_EQUAL(ibv_query_gid(device, 1, port.gid_tbl_len, &gid), -1);
	CU_ASSERT_EQUAL(ibv_query_gid(device, 1, -1, &gid), -1);
	CU_ASSERT_NOT_EQUAL(ibv_query_gid_ex(device, 1, (uint32_t)port.gid_tbl_len, &entry, 0), 0);
	CU_ASSERT_NOT_EQUAL(ibv_query_gid_ex(device, 99, 0, &entry, 0), 0);
	CU_ASSERT_NOT_EQUAL(ibv_query_gid_ex(device, 1, 0, &entry, 1), 0);
}

static void pkeys(void)
{
	struct ibv_port_attr port;
	__be16 pkey = 0;

	CU_ASSERT_EQUAL_FATAL(ibv_query_port(device, 1, &port), 0);
	CU_ASSERT_EQUAL(ibv_query_pkey(device, 1, 0, &pkey), 0);
	CU_ASSERT_EQUAL(pkey, 0xffff);
	CU_ASSERT_EQUAL(ibv_get_pkey_index(device, 1, pkey), 0);
	CU_ASSERT_EQUAL(ibv_query_pkey(device, 1, port.pkey_tbl_len, &pkey), -1);
	CU_ASSERT_EQUAL(ibv_get_pkey_index(device, 1, 0x1234), -1);
}

static void any_value_has_text(void)
{
	static const int values[] = { -1, 0, 1, 5, 13, 23, 24, 1000, INT32_MAX };
	size_t i;

	for (i = 0; i < COUNT(values); i++) {
		CU_ASSERT_PTR_NOT_NULL(ibv_wc_status_str((enum ibv_wc_status)values[i]));
		CU_ASSERT_PTR_NOT_NULL(ibv_event_type_str((enum ibv_event_type)values[i]));
		CU_ASSERT_PTR_NOT_NULL(ibv_node_type_str((enum ibv_node_type)values[i]));
		CU_ASSERT_PTR_NOT_NULL(ibv_port_state_str((enum ibv_port_state)values[i]));
	}
}

static void rates_convert_back(void)
{
	static const enum ibv_rate codes[] = { IBV_RATE_2_5_GBPS, IBV_RATE_10_GBPS,
					       IBV_RATE_40_GBPS, IBV_RATE_120_GBPS };
	size_t i;

	for (i = 0; i < COUNT(codes); i++) {
		CU_ASSERT_EQUAL(mult_to_ibv_rate(ibv_rate_to_mult(codes[i])), codes[i]);
		CU_ASSERT_EQUAL(mbps_to_ibv_rate(ibv_rate_to_mbps(codes[i])), codes[i]);
		CU_ASSERT_EQUAL(ibv_rate_to_mbps(codes[i]), 2500 * ibv_rate_to_mult(codes[i]));
	}
}

static void fork_is_prepared(void)
{
	CU_ASSERT_EQUAL(ibv_fork_init(), 0);
}

static void async_fd_may_not_block(void)
{
	struct ibv_async_event event;
	int flags = fcntl(device->async_fd, F_GETFL);

	CU_ASSERT_FALSE(readable(device->async_fd, 0));
	CU_ASSERT_EQUAL(fcntl(device->async_fd, F_SETFL, flags | O_NONBLOCK), 0);
	errno = 0;
	CU_ASSERT_EQUAL(ibv_get_async_event(device, &event), -1);
	CU_ASSERT_EQUAL(errno, EAGAIN);
	CU_ASSERT_EQUAL(fcntl(device->async_fd, F_SETFL, flags), 0);
}

static void pd_stays_while_used(void)
{
	struct pair_options options = { .srq_wr = device_attr.max_srq ? 4 : 0 };
	struct side side;

	CU_ASSERT_TRUE_FATAL(side_open(&side, &options, device_attr.max_srq));
	CU_ASSERT_EQUAL(ibv_dealloc_pd(side.pd), EBUSY);
	CU_ASSERT_EQUAL(ibv_destroy_qp(side.qp), 0);
	side.qp = NULL;
	CU_ASSERT_EQUAL(ibv_dealloc_pd(side.pd), EBUSY);
	CU_ASSERT_EQUAL(ibv_dereg_mr(side.mr), 0);
	side.mr = NULL;
	if (side.srq) {
		CU_ASSERT_EQUAL(ibv_dealloc_pd(side.pd), EBUSY);
		CU_ASSERT_EQUAL(ibv_destroy_srq(side.srq), 0);
		side.srq = NULL;
	}
	CU_ASSERT_EQUAL(ibv_dealloc_pd(side.pd), 0);
	side.pd = NULL;
	side_close(&side);
}

static void pd_stays_while_a_window_lives(void)
{
	struct ibv_pd *pd = ibv_alloc_pd(device);
	struct ibv_mw *mw;

	CU_ASSERT_PTR_NOT_NULL_FATAL(pd);
	mw = ibv_alloc_mw(pd, IBV_MW_TYPE_1);
	if (mw) {
		CU_ASSERT_EQUAL(ibv_dealloc_pd(pd), EBUSY);
		CU_ASSERT_EQUAL(ibv_dealloc_mw(mw), 0);
	} else {
		skip("no memory windows of type 1");
	}
	CU_ASSERT_EQUAL(ibv_dealloc_pd(pd), 0);
}

static const struct unit_test tests[] = {
	{ "the device list ends with NULL and counts its devices", list_is_terminated },
	{ "a device outlives the list it came from", device_survives_its_list },
	{ "each open gives a context and an async descriptor of its own", opens_are_independent },
	{ "device attributes are usable", attributes_make_sense },
	{ "query_device_ex: agrees with query_device, refuses unknown input",
	  extended_attributes_agree },
	{ "port 1 is active; other ports do not exist", port_is_active },
	{ "the GID table: three ways to read it agree, empty entries say ENODATA",
	  gid_table_is_consistent },
	{ "GID queries out of range fail", gid_queries_are_checked },
	{ "P_Key 0 is the default key, others do not exist", pkeys },
	{ "any value has a text", any_value_has_text },
	{ "rates convert forth and back", rates_convert_back },
	{ "fork_init succeeds", fork_is_prepared },
	{ "an empty non-blocking async descriptor: EAGAIN", async_fd_may_not_block },
	{ "PD with QP, MR or SRQ: EBUSY", pd_stays_while_used },
	{ "PD with a memory window: EBUSY", pd_stays_while_a_window_lives },
};

CONFORM_MAIN("conform_device", tests)
