/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * Helpers for suites of the UD CM: a channel on a port of the software device that looks like InfiniBand,
 * and a peer that is a script over its own UD QP.
 */
#ifndef UCM_RIG_H
#define UCM_RIG_H

#include <stdlib.h>
#include "test/unit/scm_rig.h"
#include "util/settings.h"

#define SLOTS  16u
#define SLOT   512u
#define GRH    40u
#define EP_QPN 0x1234u

/* The script's side. */
static struct script {
	struct ibv_context *verbs;
	struct ibv_pd *pd;
	struct ibv_cq *recv_cq, *send_cq;
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	struct ibv_ah *ah;
	unsigned char memory[(SLOTS + 1) * SLOT];
} script;

static inline void script_recv(unsigned slot)
{
	struct ibv_sge sge = { (uintptr_t)(script.memory + slot * SLOT), SLOT, script.mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = slot, .sg_list = &sge, .num_sge = 1 }, *bad;

	CU_ASSERT_EQUAL(ibv_post_recv(script.qp, &wr, &bad), 0);
}

static inline void script_open(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_ah_attr to = { .dlid = 1, .port_num = 1 };
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_UD, .cap = { SLOTS, SLOTS, 1, 1, 0 } };
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = CM_UD_QKEY };
	unsigned i;

	script.verbs = ibv_open_device(list[0]);
	ibv_free_device_list(list);
	script.pd = ibv_alloc_pd(script.verbs);
	init.recv_cq = script.recv_cq = ibv_create_cq(script.verbs, SLOTS, NULL, NULL, 0);
	init.send_cq = script.send_cq = ibv_create_cq(script.verbs, SLOTS, NULL, NULL, 0);
	script.qp = ibv_create_qp(script.pd, &init);
	script.mr =
		ibv_reg_mr(script.pd, script.memory, sizeof(script.memory), IBV_ACCESS_LOCAL_WRITE);
	script.ah = ibv_create_ah(script.pd, &to);
	CU_ASSERT_FATAL(script.qp && script.mr && script.ah);
	CU_ASSERT_EQUAL(ibv_modify_qp(script.qp, &attr,
				      IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY),
			0);
	attr.qp_state = IBV_QPS_RTR;
	CU_ASSERT_EQUAL(ibv_modify_qp(script.qp, &attr, IBV_QP_STATE), 0);
	attr.qp_state = IBV_QPS_RTS;
	CU_ASSERT_EQUAL(ibv_modify_qp(script.qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN), 0);
	for (i = 0; i < SLOTS; i++)
		script_recv(i);
}

static inline void script_close(void)
{
	CU_ASSERT_EQUAL(ibv_destroy_qp(script.qp), 0);
	CU_ASSERT_EQUAL(ibv_destroy_ah(script.ah), 0);
	ibv_destroy_cq(script.recv_cq);
	ibv_destroy_cq(script.send_cq);
	ibv_dereg_mr(script.mr);
	ibv_dealloc_pd(script.pd);
	ibv_close_device(script.verbs);
}

static inline void script_send(uint32_t qpn, const void *bytes, size_t size)
{
	struct ibv_sge sge = { (uintptr_t)(script.memory + SLOTS * SLOT), (uint32_t)size,
			       script.mr->lkey };
	struct ibv_send_wr wr = { .sg_list = &sge,
				  .num_sge = 1,
				  .opcode = IBV_WR_SEND,
				  .send_flags = IBV_SEND_SIGNALED,
				  .wr.ud = { script.ah, qpn, CM_UD_QKEY } },
			   *bad;
	struct ibv_wc wc;

	memcpy(script.memory + SLOTS * SLOT, bytes, size);
	CU_ASSERT_EQUAL_FATAL(ibv_post_send(script.qp, &wr, &bad), 0);
	while (!ibv_poll_cq(script.send_cq, 1, &wc))
		;
}

/* ---- the rig: a channel, and both sides' addresses ---- */

static struct rig rig;
static struct rdma_cm_id *bound;
static struct cm_endpoint own, peer; /* addresses of the two CMs */

static inline void open_both(void)
{
	struct sockaddr_in6 none = { .sin6_family = AF_INET6 };

	script_open();
	memset(&rig, 0, sizeof(rig));
	rig.channel = rdma_create_event_channel();
	CU_ASSERT_EQUAL_FATAL(cm_attach(rig.channel, "soft0", 1, NULL), 0);
	CU_ASSERT_EQUAL_FATAL(rdma_create_id(rig.channel, &bound, NULL, RDMA_PS_TCP), 0);
	CU_ASSERT_EQUAL_FATAL(rdma_bind_addr(bound, (struct sockaddr *)&none), 0);
	cm_endpoint_read(&own, (const unsigned char *)rdma_get_local_addr(bound));
	CU_ASSERT_EQUAL(own.family, AF_INET6);
	CU_ASSERT_EQUAL(own.lid, 1);
	CU_ASSERT_EQUAL(own.qp_type, IBV_QPT_UD);
	peer = (struct cm_endpoint){
		.family = AF_INET6, .lid = 1, .qpn = script.qp->qp_num, .qp_type = IBV_QPT_UD
	};
}

static inline void close_both(void)
{
	if (rig.listener)
		CU_ASSERT_EQUAL(rdma_destroy_id(rig.listener), 0);
	CU_ASSERT_EQUAL(rdma_destroy_id(bound), 0);
	rdma_destroy_event_channel(rig.channel);
	script_close();
}

static inline struct rdma_cm_id *id_at(uint16_t port)
{
	struct cm_endpoint at = { .family = AF_INET6, .port = port };
	unsigned char address[CM_ENDPOINT];
	struct rdma_cm_id *id;

	cm_endpoint_write(&at, address);
	CU_ASSERT_EQUAL_FATAL(rdma_create_id(rig.channel, &id, NULL, RDMA_PS_TCP), 0);
	CU_ASSERT_EQUAL_FATAL(rdma_bind_addr(id, (struct sockaddr *)address), 0);
	return id;
}

static inline void listen_at(uint16_t port)
{
	rig.listener = id_at(port);
	CU_ASSERT_EQUAL(rdma_listen(rig.listener, 0), 0);
}

/*
 * A message of the script to a port; like old peers it leaves `p_size` set in all later messages.
 */
static inline struct cm_message script_message(uint16_t port, uint16_t p_size)
{
	struct cm_endpoint here = { .lid = 1, .qpn = EP_QPN, .qp_type = IBV_QPT_RC };
	struct cm_message message = { .ver = 9,
				      .sport = 77,
				      .dport = port,
				      .sqpn = peer.qpn,
				      .dqpn = own.qpn,
				      .p_size = p_size,
				      .s_id = 5,
				      .rd_in = 3,
				      .mtu = IBV_MTU_1024 };

	cm_endpoint_write(&here, message.saddr);
	cm_endpoint_write(&own, message.daddr);
	return message;
}

#endif
