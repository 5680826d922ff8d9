/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Two contexts of one device: a call whose objects are of both is refused with EINVAL, as by a kernel. */
#include <errno.h>
#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>
#include <infiniband/verbs.h>
#include "test/unit/unit.h"

static struct owner {
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	struct ibv_srq *srq;
} own, foreign;

static struct owner owner_open(struct ibv_context *context)
{
	struct ibv_srq_init_attr init = { .attr = { .max_wr = 4, .max_sge = 1 } };
	struct owner owner = { .context = context, .pd = ibv_alloc_pd(context) };

	owner.channel = ibv_create_comp_channel(context);
	owner.cq = ibv_create_cq(context, 4, NULL, owner.channel, 0);
	owner.srq = ibv_create_srq(owner.pd, &init);
	CU_ASSERT_FATAL(owner.pd && owner.cq && owner.srq);
	return owner;
}

static void owner_close(const struct owner *owner)
{
	CU_ASSERT_EQUAL(ibv_destroy_srq(owner->srq), 0);
	CU_ASSERT_EQUAL(ibv_destroy_cq(owner->cq), 0);
	CU_ASSERT_EQUAL(ibv_destroy_comp_channel(owner->channel), 0);
	CU_ASSERT_EQUAL(ibv_dealloc_pd(owner->pd), 0);
}

static struct ibv_context *context_open(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *context = ibv_open_device(list[0]);

	ibv_free_device_list(list);
	CU_ASSERT_PTR_NOT_NULL_FATAL(context);
	return context;
}

static void open_both(void)
{
	own = owner_open(context_open());
	foreign = owner_open(context_open());
}

static void close_both(void)
{
	owner_close(&own);
	owner_close(&foreign);
	CU_ASSERT_EQUAL(ibv_close_device(own.context), 0);
	CU_ASSERT_EQUAL(ibv_close_device(foreign.context), 0);
}

static struct ibv_qp_init_attr qp_init(struct ibv_cq *send, struct ibv_cq *recv,
				       struct ibv_srq *srq)
{
	return (struct ibv_qp_init_attr){ .send_cq = send,
					  .recv_cq = recv,
					  .srq = srq,
					  .qp_type = IBV_QPT_RC,
					  .cap = { 4, 4, 1, 1, 0 } };
}

/* The errno of a creation that failed, or 0 after the QP was destroyed again. */
static int qp_error(struct ibv_cq *send, struct ibv_cq *recv, struct ibv_srq *srq)
{
	struct ibv_qp_init_attr init = qp_init(send, recv, srq);
	struct ibv_qp *qp = ibv_create_qp(own.pd, &init);

	if (!qp)
		return errno;
	CU_ASSERT_EQUAL(ibv_destroy_qp(qp), 0);
	return 0;
}

static void test_qp(void)
{
	open_both();
	CU_ASSERT_EQUAL(qp_error(own.cq, own.cq, own.srq), 0);
	CU_ASSERT_EQUAL(qp_error(foreign.cq, own.cq, NULL), EINVAL);
	CU_ASSERT_EQUAL(qp_error(own.cq, foreign.cq, NULL), EINVAL);
	CU_ASSERT_EQUAL(qp_error(own.cq, own.cq, foreign.srq), EINVAL);
	close_both();
}

static void test_qp_ex(void)
{
	struct ibv_qp_init_attr_ex init = { .qp_type = IBV_QPT_RC,
					    .cap = { 4, 4, 1, 1, 0 },
					    .comp_mask = IBV_QP_INIT_ATTR_PD };

	open_both();
	init.send_cq = init.recv_cq = own.cq;
	init.pd = foreign.pd;
	CU_ASSERT_PTR_NULL(ibv_create_qp_ex(own.context, &init));
	CU_ASSERT_EQUAL(errno, EINVAL);
	init.pd = own.pd;
	init.recv_cq = foreign.cq;
	CU_ASSERT_PTR_NULL(ibv_create_qp_ex(own.context, &init));
	CU_ASSERT_EQUAL(errno, EINVAL);
	close_both();
}

static void test_cq(void)
{
	struct ibv_cq_init_attr_ex init = { .cqe = 4 };

	open_both();
	CU_ASSERT_PTR_NULL(ibv_create_cq(own.context, 4, NULL, foreign.channel, 0));
	CU_ASSERT_EQUAL(errno, EINVAL);
	init.channel = foreign.channel;
	CU_ASSERT_PTR_NULL(ibv_create_cq_ex(own.context, &init));
	CU_ASSERT_EQUAL(errno, EINVAL);
	close_both();
}

static void test_mr(void)
{
	static char memory[4096];
	struct ibv_mr *mr;

	open_both();
	mr = ibv_reg_mr(own.pd, memory, sizeof(memory), IBV_ACCESS_LOCAL_WRITE);
	CU_ASSERT_PTR_NOT_NULL_FATAL(mr);
	CU_ASSERT_EQUAL(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_PD, foreign.pd, NULL, 0, 0),
			IBV_REREG_MR_ERR_INPUT);
	CU_ASSERT_PTR_EQUAL(mr->pd, own.pd);
	CU_ASSERT_EQUAL(ibv_dereg_mr(mr), 0);
	close_both();
}

/* ---- identifiers of rdma_cm ---- */

static int id_qp_error(struct rdma_cm_id *id, struct ibv_pd *pd, struct ibv_cq *send,
		       struct ibv_cq *recv)
{
	struct ibv_qp_init_attr init = qp_init(send, recv, NULL);

	if (rdma_create_qp(id, pd, &init))
		return errno;
	rdma_destroy_qp(id);
	return 0;
}

static void test_identifier(void)
{
	struct sockaddr_in loopback = { .sin_family = AF_INET,
					.sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct ibv_srq_init_attr srq = { .attr = { .max_wr = 4, .max_sge = 1 } };
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct owner of_id;
	struct rdma_cm_id *id;

	open_both();
	CU_ASSERT_EQUAL_FATAL(rdma_create_id(channel, &id, NULL, RDMA_PS_TCP), 0);
	CU_ASSERT_EQUAL_FATAL(rdma_bind_addr(id, (struct sockaddr *)&loopback), 0);
	of_id = owner_open(id->verbs);
	CU_ASSERT_EQUAL(id_qp_error(id, of_id.pd, of_id.cq, of_id.cq), 0);
	CU_ASSERT_EQUAL(id_qp_error(id, of_id.pd, foreign.cq, of_id.cq), EINVAL);
	CU_ASSERT_EQUAL(id_qp_error(id, of_id.pd, of_id.cq, foreign.cq), EINVAL);
	CU_ASSERT_EQUAL(id_qp_error(id, foreign.pd, of_id.cq, of_id.cq), EINVAL);
	CU_ASSERT_EQUAL(rdma_create_srq(id, foreign.pd, &srq), -1);
	CU_ASSERT_EQUAL(errno, EINVAL);
	owner_close(&of_id);
	CU_ASSERT_EQUAL(rdma_destroy_id(id), 0);
	rdma_destroy_event_channel(channel);
	close_both();
}

static const struct unit_test tests[] = {
	{ "contexts: a queue pair has its CQs and SRQ in the PD's context", test_qp },
	{ "contexts: also an extended queue pair, and its PD", test_qp_ex },
	{ "contexts: a CQ has its channel in its own", test_cq },
	{ "contexts: a region keeps to its own", test_mr },
	{ "contexts: an identifier's queue pair is in the identifier's", test_identifier },
};

UNIT_MAIN("softverbs_contexts", tests)
