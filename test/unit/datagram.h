/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Datagrams between processes of this host, of eight bytes each. */
#ifndef DATAGRAM_H
#define DATAGRAM_H

#include "test/unit/node.h"

#define QKEY 7u
#define GRH  40u

static inline struct ibv_qp *datagram_qp_unready(struct node *node, uint32_t depth)
{
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_UD,
					 .send_cq = node->cq,
					 .recv_cq = node->cq,
					 .cap = { depth, depth, 1, 1, 0 } };
	struct ibv_qp *qp = ibv_create_qp(node->pd, &init);

	CU_ASSERT_PTR_NOT_NULL_FATAL(qp);
	return qp;
}

static inline void datagram_qp_ready(struct ibv_qp *qp)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = QKEY };

	CU_ASSERT_EQUAL(ibv_modify_qp(qp, &attr,
				      IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY),
			0);
	CU_ASSERT_EQUAL(qp_to(qp, IBV_QPS_RTR), 0);
	attr.qp_state = IBV_QPS_RTS;
	CU_ASSERT_EQUAL(ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN), 0);
}

static inline struct ibv_qp *datagram_qp(struct node *node, uint32_t depth)
{
	struct ibv_qp *qp = datagram_qp_unready(node, depth);

	datagram_qp_ready(qp);
	return qp;
}

static inline struct ibv_ah *ah_to_here(struct node *node)
{
	struct ibv_ah_attr attr = { .is_global = 1, .port_num = 1 };

	CU_ASSERT_EQUAL(ibv_query_gid(node->context, 1, 0, &attr.grh.dgid), 0);
	return ibv_create_ah(node->pd, &attr);
}

static inline int datagram_recv(struct node *node, struct ibv_qp *qp, uint64_t wr_id)
{
	struct ibv_sge to = node_sge(node, 0, GRH + 8);
	struct ibv_recv_wr wr = { .wr_id = wr_id, .sg_list = &to, .num_sge = 1 }, *bad;

	return ibv_post_recv(qp, &wr, &bad);
}

static inline int datagram_send(struct node *node, struct ibv_qp *qp, struct ibv_ah *ah,
				uint32_t qpn, unsigned flags)
{
	struct ibv_sge from = node_sge(node, 256, 8);
	struct ibv_send_wr wr = {
		.sg_list = &from, .num_sge = 1, .opcode = IBV_WR_SEND,
		.send_flags = flags, .wr.ud = { ah, qpn, QKEY },
	}, *bad;

	return ibv_post_send(qp, &wr, &bad);
}

#endif
