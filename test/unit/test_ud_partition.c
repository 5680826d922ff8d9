/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Endpoints for datagrams are in the partition that the CM names for the device's address. */
#include <rdma/rdma_cma.h>
#include "test/unit/announce.h"
#include "test/unit/datagram_ep.h"
#include "test/unit/ep_util.h"

#define PKEY_INDEX 7

static unsigned datagram_qps; /* brought to INIT with that index */

int __real_rdma_init_qp_attr(struct rdma_cm_id *id, struct ibv_qp_attr *attr, int *mask);
int __wrap_rdma_init_qp_attr(struct rdma_cm_id *id, struct ibv_qp_attr *attr, int *mask);
int __real_ibv_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask);
int __wrap_ibv_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask);

int __wrap_rdma_init_qp_attr(struct rdma_cm_id *id, struct ibv_qp_attr *attr, int *mask)
{
	int result = __real_rdma_init_qp_attr(id, attr, mask);

	if (!result && *mask & IBV_QP_PKEY_INDEX)
		attr->pkey_index = PKEY_INDEX;
	return result;
}

/* The software device has one key, at index 0. */
int __wrap_ibv_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
	struct ibv_qp_attr first = *attr;

	if (mask & IBV_QP_PKEY_INDEX && qp->qp_type == IBV_QPT_UD)
		datagram_qps += attr->pkey_index == PKEY_INDEX;
	first.pkey_index = 0;
	return __real_ibv_modify_qp(qp, &first, mask);
}

static void test_partition(void)
{
	DAT_EP_ATTR attr = datagram_attr();
	struct env env;
	struct end end;

	announce();
	env_open(&env);
	end_open(&env, &end, &attr);
	CU_ASSERT_EQUAL(datagram_qps, 1);
	end_close(&end);
	env_close(&env);
}

static const struct unit_test tests[] = {
	{ "a datagram endpoint has the partition key of the device's address", test_partition },
};

UNIT_MAIN("ud_partition", tests)
