/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * Creation when the device or the CM refuses: the provider's nth call of verbs or rdma_cm fails, in
 * any thread. Linked with --wrap for each function below.
 */
#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>
#include "test/unit/nth_steps.h"

static bool refused(void)
{
	if (!nth_fails())
		return false;
	errno = ENOMEM;
	return true;
}

/* Wraps a call that reports failure by NULL, -1 or an error code. */
#define REFUSABLE(type, name, failure, parameters, arguments)           \
	type __real_##name parameters;                                  \
	type __wrap_##name parameters;                                  \
	type __wrap_##name parameters                                   \
	{                                                               \
		return refused() ? (failure) : __real_##name arguments; \
	}

#undef ibv_reg_mr
#undef ibv_reg_mr_iova
#undef ibv_query_port

REFUSABLE(struct ibv_device **, ibv_get_device_list, NULL, (int *count), (count))
REFUSABLE(struct ibv_context *, ibv_open_device, NULL, (struct ibv_device * device), (device))
REFUSABLE(int, ibv_query_device, ENOMEM,
	  (struct ibv_context * context, struct ibv_device_attr *attr), (context, attr))
REFUSABLE(int, ibv_query_port, ENOMEM,
	  (struct ibv_context * context, uint8_t port, struct _compat_ibv_port_attr *attr),
	  (context, port, attr))
REFUSABLE(struct ibv_pd *, ibv_alloc_pd, NULL, (struct ibv_context * context), (context))
REFUSABLE(struct ibv_mr *, ibv_reg_mr, NULL,
	  (struct ibv_pd * pd, void *address, size_t length, int access),
	  (pd, address, length, access))
REFUSABLE(struct ibv_mr *, ibv_reg_mr_iova, NULL,
	  (struct ibv_pd * pd, void *address, size_t length, uint64_t iova, int access),
	  (pd, address, length, iova, access))
REFUSABLE(struct ibv_mr *, ibv_reg_mr_iova2, NULL,
	  (struct ibv_pd * pd, void *address, size_t length, uint64_t iova, unsigned int access),
	  (pd, address, length, iova, access))
REFUSABLE(struct ibv_comp_channel *, ibv_create_comp_channel, NULL, (struct ibv_context * context),
	  (context))
REFUSABLE(struct ibv_cq *, ibv_create_cq, NULL,
	  (struct ibv_context * context, int entries, void *owner, struct ibv_comp_channel *channel,
	   int vector),
	  (context, entries, owner, channel, vector))
REFUSABLE(int, ibv_resize_cq, ENOMEM, (struct ibv_cq * cq, int entries), (cq, entries))
REFUSABLE(struct ibv_srq *, ibv_create_srq, NULL,
	  (struct ibv_pd * pd, struct ibv_srq_init_attr *attr), (pd, attr))
REFUSABLE(int, ibv_modify_srq, ENOMEM, (struct ibv_srq * srq, struct ibv_srq_attr *attr, int mask),
	  (srq, attr, mask))
REFUSABLE(int, ibv_query_srq, ENOMEM, (struct ibv_srq * srq, struct ibv_srq_attr *attr),
	  (srq, attr))
REFUSABLE(struct ibv_qp *, ibv_create_qp, NULL, (struct ibv_pd * pd, struct ibv_qp_init_attr *attr),
	  (pd, attr))
REFUSABLE(int, ibv_modify_qp, ENOMEM, (struct ibv_qp * qp, struct ibv_qp_attr *attr, int mask),
	  (qp, attr, mask))
REFUSABLE(struct rdma_event_channel *, rdma_create_event_channel, NULL, (void), ())
REFUSABLE(int, rdma_create_id, -1,
	  (struct rdma_event_channel * channel, struct rdma_cm_id **id, void *context,
	   enum rdma_port_space space),
	  (channel, id, context, space))
REFUSABLE(int, rdma_bind_addr, -1, (struct rdma_cm_id * id, struct sockaddr *address),
	  (id, address))
REFUSABLE(int, rdma_listen, -1, (struct rdma_cm_id * id, int backlog), (id, backlog))
REFUSABLE(int, rdma_resolve_addr, -1,
	  (struct rdma_cm_id * id, struct sockaddr *from, struct sockaddr *to, int timeout),
	  (id, from, to, timeout))
REFUSABLE(int, rdma_resolve_route, -1, (struct rdma_cm_id * id, int timeout), (id, timeout))
REFUSABLE(int, rdma_init_qp_attr, -1, (struct rdma_cm_id * id, struct ibv_qp_attr *attr, int *mask),
	  (id, attr, mask))
REFUSABLE(int, rdma_connect, -1, (struct rdma_cm_id * id, struct rdma_conn_param *param),
	  (id, param))
REFUSABLE(int, rdma_accept, -1, (struct rdma_cm_id * id, struct rdma_conn_param *param),
	  (id, param))
REFUSABLE(int, rdma_establish, -1, (struct rdma_cm_id * id), (id))

static void arm(unsigned n)
{
	atomic_store(&nth_fired, 0);
	atomic_store(&nth_left, n);
}

static bool disarm(DAT_RETURN status)
{
	(void)status;
	atomic_store(&nth_left, -1);
	return atomic_load(&nth_fired);
}

static void test_all(void)
{
	nth_warm = true;
	nth_run_all(arm, disarm, 40);
}

/* The first call resizes the queue, the second queries its size. */
static void test_srq_untold(void)
{
	struct nth_scene scene;
	DAT_RETURN status;

	nth_scene_open(&scene);
	nth_srq_open(&scene, NTH_SMALL);
	arm(2);
	status = dat_srq_resize(scene.srq, NTH_LARGE);
	CU_ASSERT_TRUE(disarm(status));
	CU_ASSERT_EQUAL(status, DAT_SUCCESS);
	CU_ASSERT_EQUAL(nth_srq_now(&scene).max_recv_dtos, NTH_LARGE);
	nth_srq_use(&scene);
	nth_srq_close(&scene);
	nth_scene_close(&scene);
}

static const struct unit_test tests[] = {
	{ "a failed call of the device or the CM is reported and leaves nothing behind", test_all },
	{ "an SRQ whose size cannot be queried after a resize has the requested size",
	  test_srq_untold },
};

UNIT_MAIN("nth_verbs", tests)
