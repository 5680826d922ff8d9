/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* The attributes of an IA equal those of the device, and the device's behaviour agrees. */
#include <arpa/inet.h>
#include <endian.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <dat2/udat.h>
#include <dat2/dat_ib_extensions.h>
#include <infiniband/verbs.h>
#include "test/unit/announce.h"
#include "test/unit/ep_util.h"

/* A device whose limits are above those of an id of a request and of a list of segments. */
static bool generous;

int __real_ibv_query_device(struct ibv_context *verbs, struct ibv_device_attr *device);
int __wrap_ibv_query_device(struct ibv_context *verbs, struct ibv_device_attr *device);

int __wrap_ibv_query_device(struct ibv_context *verbs, struct ibv_device_attr *device)
{
	int error = __real_ibv_query_device(verbs, device);

	if (!error && generous) {
		device->max_qp_wr = device->max_srq_wr = INT_MAX;
		device->max_sge = device->max_sge_rd = device->max_srq_sge = INT_MAX;
	}
	return error;
}

/* The same facts from verbs, without DAT. */
struct measured {
	struct ibv_device_attr device;
	struct ibv_port_attr port;
	union ibv_gid gid;
	char name[64];
};

static void measure(struct measured *m)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *verbs;

	CU_ASSERT_PTR_NOT_NULL_FATAL(list);
	verbs = ibv_open_device(list[0]);
	CU_ASSERT_PTR_NOT_NULL_FATAL(verbs);
	snprintf(m->name, sizeof(m->name), "%s", ibv_get_device_name(list[0]));
	CU_ASSERT_EQUAL(ibv_query_device(verbs, &m->device), 0);
	CU_ASSERT_EQUAL(ibv_query_port(verbs, 1, &m->port), 0);
	CU_ASSERT_EQUAL(ibv_query_gid(verbs, 1, 0, &m->gid), 0);
	CU_ASSERT_EQUAL(ibv_close_device(verbs), 0);
	ibv_free_device_list(list);
}

static DAT_COUNT cut(long long value)
{
	return value > INT_MAX ? INT_MAX : (DAT_COUNT)value;
}

static void test_numbers(void)
{
	struct measured m;
	struct env env;
	DAT_IA_ATTR ia;

	measure(&m);
	env_open(&env);
	memset(&ia, 0xee, sizeof(ia));
	OK(dat_ia_query(env.ia, NULL, DAT_IA_FIELD_ALL, &ia, 0, NULL));
	CU_ASSERT_STRING_EQUAL(ia.adapter_name, m.name);
	CU_ASSERT_EQUAL(ia.hardware_version_major, m.device.hw_ver);
	CU_ASSERT_EQUAL(ia.max_eps, cut(m.device.max_qp));
	CU_ASSERT_EQUAL(ia.max_dto_per_ep, cut(m.device.max_qp_wr));
	CU_ASSERT_EQUAL(ia.max_rdma_read_per_ep_in, cut(m.device.max_qp_rd_atom));
	CU_ASSERT_EQUAL(ia.max_rdma_read_per_ep_out, cut(m.device.max_qp_init_rd_atom));
	CU_ASSERT_EQUAL(ia.max_evds, cut(m.device.max_cq));
	CU_ASSERT_EQUAL(ia.max_evd_qlen, cut(m.device.max_cqe));
	CU_ASSERT_EQUAL(ia.max_iov_segments_per_dto, cut(m.device.max_sge));
	CU_ASSERT_EQUAL(ia.max_lmrs, cut(m.device.max_mr));
	CU_ASSERT_EQUAL(ia.max_pzs, cut(m.device.max_pd));
	CU_ASSERT_EQUAL(ia.max_rmrs, cut(m.device.max_mw));
	CU_ASSERT_EQUAL(ia.max_message_size, m.port.max_msg_sz);
	CU_ASSERT_EQUAL(ia.max_rdma_size, m.port.max_msg_sz);
	CU_ASSERT_EQUAL(ia.max_srqs, cut(m.device.max_srq));
	CU_ASSERT_EQUAL(ia.max_recv_per_srq, cut(m.device.max_srq_wr));
	CU_ASSERT_EQUAL(ia.max_ep_per_srq, cut(m.device.max_qp));
	CU_ASSERT_EQUAL(ia.max_iov_segments_per_rdma_read, cut(m.device.max_sge_rd));
	CU_ASSERT_EQUAL(ia.max_iov_segments_per_rdma_write, cut(m.device.max_sge));
	CU_ASSERT_EQUAL(ia.max_rdma_read_in, cut(m.device.max_res_rd_atom));
	CU_ASSERT_EQUAL(((struct sockaddr *)ia.ia_address_ptr)->sa_family, AF_INET);
	CU_ASSERT_EQUAL((int)ia.extension_supported, DAT_EXTENSION_IB);
	CU_ASSERT_EQUAL(ia.extension_version, DAT_IB_EXTENSION_VERSION);
	env_close(&env);
}

static void test_limits_of_the_provider(void)
{
	struct env env;
	DAT_IA_ATTR ia;

	announce(); /* from here on the provider is the one in this program */
	generous = true;
	env_open(&env);
	OK(dat_ia_query(env.ia, NULL, DAT_IA_FIELD_ALL, &ia, 0, NULL));
	CU_ASSERT_EQUAL(ia.max_dto_per_ep, 1 << 24);
	CU_ASSERT_EQUAL(ia.max_recv_per_srq, 1 << 24);
	CU_ASSERT_EQUAL(ia.max_iov_segments_per_dto, 128);
	CU_ASSERT_EQUAL(ia.max_iov_segments_per_rdma_read, 128);
	CU_ASSERT_EQUAL(ia.max_iov_segments_per_rdma_write, 128);
	env_close(&env);
	generous = false;
}

static const char *named(const DAT_PROVIDER_ATTR *attr, const char *name)
{
	int i;

	for (i = 0; i < attr->num_provider_specific_attr; i++)
		if (!strcmp(attr->provider_specific_attr[i].name, name))
			return attr->provider_specific_attr[i].value;
	return "";
}

static void test_names(void)
{
	static const char *const states[] = { "NOP", "DOWN", "INIT", "ARMED", "ACTIVE", "DEFER" };
	bool atomics;
	DAT_PROVIDER_ATTR p;
	struct measured m;
	struct env env;
	char text[64];
	uint64_t guid;

	measure(&m);
	env_open(&env);
	OK(dat_ia_query(env.ia, NULL, 0, NULL, DAT_PROVIDER_FIELD_ALL, &p));
	CU_ASSERT_STRING_EQUAL(named(&p, "DAT_IB_DEVICE_NAME"), m.name);
	guid = be64toh(m.device.node_guid);
	snprintf(text, sizeof(text), "%04x:%04x:%04x:%04x", (unsigned)(guid >> 48),
		 (unsigned)(guid >> 32) & 0xffff, (unsigned)(guid >> 16) & 0xffff,
		 (unsigned)guid & 0xffff);
	CU_ASSERT_STRING_EQUAL(named(&p, "DAT_IB_NODE_GUID"), text);
	CU_ASSERT_PTR_NOT_NULL(inet_ntop(AF_INET6, m.gid.raw, text, sizeof(text)));
	CU_ASSERT_STRING_EQUAL(named(&p, "DAT_IB_GID"), text);
	snprintf(text, sizeof(text), "%u", 128u << m.port.active_mtu);
	CU_ASSERT_STRING_EQUAL(named(&p, "DAT_IB_TRANSPORT_MTU"), text);
	CU_ASSERT_STRING_EQUAL(named(&p, "DAT_IB_PORT_STATUS"), states[m.port.state]);
	CU_ASSERT_STRING_EQUAL(named(&p, "DAT_IB_PORT_NUMBER"), "1");
	atomics = m.device.atomic_cap != IBV_ATOMIC_NONE;
	CU_ASSERT_STRING_EQUAL(named(&p, "DAT_IB_FETCH_AND_ADD"), atomics ? "TRUE" : "FALSE");
	CU_ASSERT_STRING_EQUAL(named(&p, "DAT_IB_CMP_AND_SWAP"), atomics ? "TRUE" : "FALSE");
	CU_ASSERT_STRING_EQUAL(named(&p, "DAT_IB_RDMA_READ"), "TRUE");
	CU_ASSERT_EQUAL(p.srq_supported, m.device.max_srq ? DAT_TRUE : DAT_FALSE);
	CU_ASSERT_EQUAL(p.max_private_data_size, 56);
	env_close(&env);
}

/* The maximum of each attribute works, and one more is refused. */
static void test_limits(void)
{
	DAT_EVD_HANDLE evd, recv, request, conn;
	DAT_SRQ_ATTR srq_attr = { .max_recv_iov = 1 };
	DAT_SRQ_HANDLE srq;
	DAT_EP_ATTR attr = { 0 };
	DAT_EP_HANDLE ep;
	struct env env;
	DAT_IA_ATTR ia;

	env_open(&env);
	OK(dat_ia_query(env.ia, NULL, DAT_IA_FIELD_ALL, &ia, 0, NULL));
	OK(dat_evd_create(env.ia, ia.max_evd_qlen, DAT_HANDLE_NULL, DAT_EVD_DTO_FLAG, &evd));
	OK(dat_evd_free(evd));
	IS(dat_evd_create(env.ia, ia.max_evd_qlen + 1, DAT_HANDLE_NULL, DAT_EVD_DTO_FLAG, &evd),
	   E(INSUFFICIENT_RESOURCES, RESOURCE_TEVD));
	srq_attr.max_recv_dtos = ia.max_recv_per_srq;
	OK(dat_srq_create(env.ia, env.pz, &srq_attr, &srq));
	OK(dat_srq_free(srq));
	srq_attr.max_recv_dtos++;
	IS(dat_srq_create(env.ia, env.pz, &srq_attr, &srq), E(INVALID_PARAMETER, INVALID_ARG3));

	recv = evd_open(&env, 8, DAT_EVD_DTO_FLAG);
	request = evd_open(&env, 8, DAT_EVD_DTO_FLAG);
	conn = evd_open(&env, 8, DAT_EVD_CONNECTION_FLAG);
	attr.max_recv_dtos = attr.max_request_dtos = ia.max_dto_per_ep;
	attr.max_recv_iov = attr.max_request_iov = ia.max_iov_segments_per_dto;
	attr.max_rdma_read_in = ia.max_rdma_read_per_ep_in;
	attr.max_rdma_read_out = ia.max_rdma_read_per_ep_out;
	attr.max_rdma_read_iov = ia.max_iov_segments_per_rdma_read;
	attr.max_rdma_write_iov = ia.max_iov_segments_per_rdma_write;
	attr.max_message_size = ia.max_message_size;
	attr.max_rdma_size = ia.max_rdma_size;
	OK(dat_ep_create(env.ia, env.pz, recv, request, conn, &attr, &ep));
	OK(dat_ep_free(ep));
	attr.max_request_dtos++;
	IS(dat_ep_create(env.ia, env.pz, recv, request, conn, &attr, &ep),
	   E(INVALID_PARAMETER, INVALID_ARG6));
	evd_close(recv);
	evd_close(request);
	evd_close(conn);
	env_close(&env);
}

/* Announced features work; the others are refused with the right error. */
static void test_kinds(void)
{
	DAT_REGION_DESCRIPTION region;
	DAT_PROVIDER_ATTR p;
	DAT_LMR_CONTEXT lkey;
	DAT_LMR_HANDLE lmr;
	DAT_RMR_HANDLE rmr;
	struct env env;
	DAT_IA_ATTR ia;
	bool pz, ep;

	env_open(&env);
	OK(dat_ia_query(env.ia, NULL, DAT_IA_FIELD_ALL, &ia, DAT_PROVIDER_FIELD_ALL, &p));
	region.for_va = env.memory;
	IS(dat_lmr_create(env.ia, DAT_MEM_TYPE_VIRTUAL, region, 64, env.pz, DAT_MEM_PRIV_ALL_FLAG,
			  DAT_VA_TYPE_ZB, &lmr, &lkey, NULL, NULL, NULL),
	   ia.zb_supported ? DAT_SUCCESS : E0(MODEL_NOT_SUPPORTED));
	if (ia.zb_supported)
		OK(dat_lmr_free(lmr));
	pz = p.rmr_scope_supported != DAT_RMR_SCOPE_EP;
	ep = p.rmr_scope_supported != DAT_RMR_SCOPE_PZ;
	IS(dat_rmr_create(env.pz, &rmr), pz ? DAT_SUCCESS : E0(MODEL_NOT_SUPPORTED));
	if (pz)
		OK(dat_rmr_free(rmr));
	IS(dat_rmr_create_for_ep(env.pz, &rmr), ep ? DAT_SUCCESS : E0(MODEL_NOT_SUPPORTED));
	if (ep)
		OK(dat_rmr_free(rmr));
	env_close(&env);
}

/* Many open IAs of one device: each has its own attributes, valid until it is closed. */
static void test_many(void)
{
	enum { MANY = 70 };
	static DAT_IA_HANDLE ias[MANY];
	static DAT_PROVIDER_ATTR attrs[MANY];
	DAT_EVD_HANDLE async;
	DAT_PZ_HANDLE pz;
	int i;

	for (i = 0; i < MANY; i++) {
		async = DAT_HANDLE_NULL;
		MUST(dat_ia_open((char *)(uintptr_t) "ofa-v2-soft", 8, &async, &ias[i]));
		OK(dat_ia_query(ias[i], NULL, 0, NULL, DAT_PROVIDER_FIELD_ALL, &attrs[i]));
	}
	for (i = 0; i < MANY; i += 2)
		OK(dat_ia_close(ias[i], DAT_CLOSE_GRACEFUL_FLAG));
	for (i = 1; i < MANY; i += 2) {
		CU_ASSERT_STRING_EQUAL(named(&attrs[i], "DAT_IB_PORT_NUMBER"), "1");
		OK(dat_pz_create(ias[i], &pz));
		IS(dat_ia_close(ias[i], DAT_CLOSE_GRACEFUL_FLAG),
		   E(INVALID_STATE, INVALID_STATE_IA_IN_USE));
		OK(dat_pz_free(pz));
		OK(dat_ia_close(ias[i], DAT_CLOSE_GRACEFUL_FLAG));
	}
}

static const struct unit_test tests[] = {
	{ "numbers in the attributes are those of the device", test_numbers },
	{ "named attributes have the values of the device", test_names },
	{ "the maximum of each attribute works, and one more is refused", test_limits },
	{ "announced features work, others are refused", test_kinds },
	{ "seventy instances of one device", test_many },
	{ "a device's limits above those of the provider are cut", test_limits_of_the_provider },
};

UNIT_MAIN("ia_measured", tests)
