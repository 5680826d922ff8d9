/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* A process with a UD QP and an address handle for another host, which the test plays. */
#ifndef FABRIC_UD_H
#define FABRIC_UD_H

#include <infiniband/verbs.h>
#include "softverbs/fabric/data.h"
#include "softverbs/fabric/ud.h"
#include "test/unit/fabric_rig.h"
#include "util/clock.h"

#define QKEY 0x1234567u
#define ROOM (GRH_SIZE + DATAGRAM_MAX)

static const uint8_t home[16] = { [10] = 0xff, 0xff, 127, 0, 0, 1 };

static struct {
	uint16_t port;
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	struct ibv_ah *ah;
	char memory[2 * ROOM];
} own;

static uint64_t lost_before[FAR_LOSSES];

static inline uint64_t lost(enum far_loss why)
{
	return sv_ud_lost(why) - lost_before[why];
}

static inline struct ibv_qp *qp_new(void)
{
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_UD,
					 .send_cq = own.cq,
					 .recv_cq = own.cq,
					 .cap = { 8, 8, 1, 1, 0 } };
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = QKEY };
	struct ibv_qp *qp = ibv_create_qp(own.pd, &init);

	CU_ASSERT_PTR_NOT_NULL_FATAL(qp);
	CU_ASSERT_EQUAL(ibv_modify_qp(qp, &attr,
				      IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY),
			0);
	attr.qp_state = IBV_QPS_RTR;
	CU_ASSERT_EQUAL(ibv_modify_qp(qp, &attr, IBV_QP_STATE), 0);
	attr.qp_state = IBV_QPS_RTS;
	CU_ASSERT_EQUAL(ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN), 0);
	return qp;
}

/* The other host, as it is known to programs, is at the rig's address. */
static inline void ah_open(void)
{
	struct ibv_ah_attr attr = { .is_global = 1, .port_num = 1 };

	memcpy(attr.grh.dgid.raw, elsewhere, sizeof(elsewhere));
	own.ah = ibv_create_ah(own.pd, &attr);
	CU_ASSERT_PTR_NOT_NULL_FATAL(own.ah);
	CU_ASSERT_FALSE(ah_of(own.ah)->is_here);
	CU_ASSERT_TRUE(ah_of(own.ah)->is_far);
	CU_ASSERT_TRUE(sv_ip_parse(&ah_of(own.ah)->host, "::ffff:" RIG_HOST));
}

static inline void own_open(void)
{
	own.port = rig_on();
	own.context = ibv_open_device(sv_device_soft());
	CU_ASSERT_PTR_NOT_NULL_FATAL(own.context);
	own.pd = ibv_alloc_pd(own.context);
	own.cq = ibv_create_cq(own.context, 64, NULL, NULL, 0);
	own.mr = ibv_reg_mr(own.pd, own.memory, sizeof(own.memory), IBV_ACCESS_LOCAL_WRITE);
	own.qp = qp_new();
	ah_open();
	for (int why = 0; why < FAR_LOSSES; why++)
		lost_before[why] = sv_ud_lost(why);
}

static inline void own_close(void)
{
	CU_ASSERT_EQUAL(ibv_destroy_ah(own.ah), 0);
	if (own.qp)
		CU_ASSERT_EQUAL(ibv_destroy_qp(own.qp), 0);
	CU_ASSERT_EQUAL(ibv_dereg_mr(own.mr), 0);
	CU_ASSERT_EQUAL(ibv_destroy_cq(own.cq), 0);
	CU_ASSERT_EQUAL(ibv_dealloc_pd(own.pd), 0);
	CU_ASSERT_EQUAL(ibv_close_device(own.context), 0);
	sv_runtime_release();
}

static inline void recv_post(uint64_t wr_id, uint32_t length)
{
	struct ibv_sge sge = { (uintptr_t)own.memory + ROOM, length, own.mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = wr_id, .sg_list = &sge, .num_sge = 1 }, *bad;

	CU_ASSERT_EQUAL(ibv_post_recv(own.qp, &wr, &bad), 0);
}

static inline bool completes(void *arg)
{
	return ibv_poll_cq(own.cq, 1, arg) == 1;
}

static inline void post_one(struct ibv_qp *qp, uint32_t imm, uint32_t length)
{
	struct ibv_sge sge = { (uintptr_t)own.memory, length, own.mr->lkey };
	struct ibv_send_wr wr = { .wr_id = imm,
				  .sg_list = &sge,
				  .num_sge = 1,
				  .opcode = IBV_WR_SEND_WITH_IMM,
				  .send_flags = IBV_SEND_SIGNALED,
				  .imm_data = htonl(imm),
				  .wr.ud = { own.ah, THEIR_QP, QKEY } },
			   *bad;

	memset(own.memory, (int)imm, length);
	CU_ASSERT_EQUAL(ibv_post_send(qp, &wr, &bad), 0);
}

/* Sends a datagram, and waits until its request has completed. */
static inline void send_one(struct ibv_qp *qp, uint32_t imm, uint32_t length)
{
	struct ibv_wc wc;

	post_one(qp, imm, length);
	if (ibv_poll_cq(own.cq, 1, &wc) != 1)
		CU_ASSERT_TRUE_FATAL(unit_wait_for(completes, &wc, UNIT_PATIENCE));
	CU_ASSERT_EQUAL(wc.status, IBV_WC_SUCCESS);
	CU_ASSERT_EQUAL(wc.wr_id, imm);
}

#endif
