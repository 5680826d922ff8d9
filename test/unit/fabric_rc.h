/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* An RC QP whose peer is on another host, which the test plays. */
#ifndef FABRIC_RC_H
#define FABRIC_RC_H

#include <infiniband/verbs.h>
#include "softverbs/cm/cm.h"
#include "softverbs/fabric/data.h"
#include "softverbs/verbs/qp.h"
#include "test/unit/busy_engine.h"
#include "test/unit/fabric_rig.h"
#include "util/clock.h"

static struct {
	uint16_t port;
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
} own;

static inline void qp_connect(uint8_t timeout)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = 1 };

	CU_ASSERT_EQUAL(ibv_modify_qp(own.qp, &attr,
				      IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
					      IBV_QP_ACCESS_FLAGS),
			0);
	attr = (struct ibv_qp_attr){ .qp_state = IBV_QPS_RTR,
				     .path_mtu = IBV_MTU_1024,
				     .dest_qp_num = THEIR_QP,
				     .max_dest_rd_atomic = 1,
				     .ah_attr = { .is_global = 1, .port_num = 1 } };
	memcpy(attr.ah_attr.grh.dgid.raw, elsewhere, sizeof(elsewhere));
	CU_ASSERT_EQUAL(ibv_modify_qp(own.qp, &attr,
				      IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
					      IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
					      IBV_QP_MIN_RNR_TIMER),
			0);
	attr = (struct ibv_qp_attr){
		.qp_state = IBV_QPS_RTS, .timeout = timeout, .retry_cnt = 7, .max_rd_atomic = 1
	};
	CU_ASSERT_EQUAL(ibv_modify_qp(own.qp, &attr,
				      IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
					      IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
					      IBV_QP_MAX_QP_RD_ATOMIC),
			0);
	/* the other host, as it is known to programs, is at the rig's address */
	CU_ASSERT_PTR_NOT_NULL_FATAL(far_of(qp_of(own.qp)));
	CU_ASSERT_TRUE(sv_ip_parse(&far_of(qp_of(own.qp))->host, "::ffff:" RIG_HOST));
}

static inline void own_open(uint8_t timeout)
{
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_RC, .cap = { 8, 8, 1, 1, 8 } };

	own.port = rig_on();
	own.context = ibv_open_device(sv_device_soft());
	CU_ASSERT_PTR_NOT_NULL_FATAL(own.context);
	own.pd = ibv_alloc_pd(own.context);
	own.cq = ibv_create_cq(own.context, 64, NULL, NULL, 0);
	init.send_cq = init.recv_cq = own.cq;
	own.qp = ibv_create_qp(own.pd, &init);
	CU_ASSERT_PTR_NOT_NULL_FATAL(own.qp);
	qp_connect(timeout);
}

static inline void own_close(void)
{
	CU_ASSERT_EQUAL(ibv_destroy_qp(own.qp), 0);
	CU_ASSERT_EQUAL(ibv_destroy_cq(own.cq), 0);
	CU_ASSERT_EQUAL(ibv_dealloc_pd(own.pd), 0);
	CU_ASSERT_EQUAL(ibv_close_device(own.context), 0);
	sv_runtime_release();
}

static inline void send_one(uint32_t imm)
{
	struct ibv_send_wr wr = { .wr_id = imm,
				  .opcode = IBV_WR_SEND_WITH_IMM,
				  .send_flags = IBV_SEND_SIGNALED,
				  .imm_data = htonl(imm) },
			   *bad;

	CU_ASSERT_EQUAL(ibv_post_send(own.qp, &wr, &bad), 0);
}

/* The request comes over that link; the answer to it. */
static inline bool comes(int fd, uint32_t imm, struct far_done *done)
{
	struct wire_frame frame;
	struct far_request request;
	uint8_t payload[FAR_REQUEST_SIZE];

	if (!rig_frame_read(fd, &frame, payload, sizeof(payload)) || frame.type != WIRE_REQUEST ||
	    !sv_far_request_read(payload, frame.size, &request) || request.dest != THEIR_QP)
		return false;
	*done = (struct far_done){ .dest = request.source,
				   .source = request.dest,
				   .connection = request.connection,
				   .number = request.number };
	return request.imm == htonl(imm);
}

/* The QP has a link, and has sent requests 1 and 2. The socket. */
static inline int linked_open(uint8_t timeout, struct far_done done[static 2])
{
	struct wire_target target;
	int listener, fd;

	own_open(timeout);
	listener = rig_listen(own.port);
	send_one(1);
	fd = rig_accept(listener);
	close(listener);
	rig_answer(fd, WIRE_LINKED, &target);
	CU_ASSERT_TRUE_FATAL(comes(fd, 1, &done[0]));
	send_one(2);
	CU_ASSERT_TRUE_FATAL(comes(fd, 2, &done[1]));
	busy_end(); /* the engine has done what it does with a link that is ready */
	return fd;
}

static inline void linked_close(int fd)
{
	close(fd);
	own_close();
}

/* What the peer sends next, at once. */
static uint8_t theirs[1024];
static size_t theirs_size;

static inline void their_frame(enum wire_type type, const void *payload, size_t size)
{
	struct wire_frame frame = { .size = (uint32_t)size, .type = (uint16_t)type };

	sv_wire_header_write(theirs + theirs_size, &frame);
	memcpy(theirs + theirs_size + WIRE_HEADER, payload, size);
	theirs_size += WIRE_HEADER + size;
}

static inline void their_answer(const struct far_done *done)
{
	uint8_t bytes[FAR_DONE_SIZE];

	sv_far_done_write(bytes, done);
	their_frame(WIRE_DONE, bytes, sizeof(bytes));
}

static inline void they_send(int fd)
{
	rig_write(fd, theirs, theirs_size);
	theirs_size = 0;
}

static inline bool one_completes(void *wc)
{
	return ibv_poll_cq(own.cq, 1, wc) == 1;
}

static inline void assert_completes(uint64_t wr_id, enum ibv_wc_status status)
{
	struct ibv_wc wc = { .wr_id = 0 };

	CU_ASSERT_TRUE(unit_wait_for(one_completes, &wc, UNIT_PATIENCE));
	CU_ASSERT_EQUAL(wc.wr_id, wr_id);
	CU_ASSERT_EQUAL(wc.status, status);
}

#endif
