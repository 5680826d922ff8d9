/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* One process's end of connections over the software device, for tests of the data path. */
#ifndef NODE_H
#define NODE_H

#include <poll.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <infiniband/verbs.h>
#include "softverbs/object/area.h"
#include "softverbs/object/qp.h"
#include "test/unit/process.h"
#include "test/unit/unit.h"
#include "util/clock.h"

#define NODE_QPS 48u

struct node_options {
	uint32_t depth; /* of each queue; 0: 64 */
	uint32_t srq;	/* depth of a shared receive queue; 0: none */
	uint32_t qps;	/* 0: 1 */
	int cqe;	/* 0: 4096 */
	size_t memory;	/* in bytes; 0: 1 MiB */
	uint8_t *at;	/* memory that the caller has made; NULL: private memory */
	uint8_t timeout, retry_cnt, rnr_retry; /* 0: 14, 7, 7 */
	bool channel;
	bool fail_on_rnr; /* sets rnr_retry to 0 */
};

struct node {
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq; /* for all sends and receives */
	struct ibv_srq *srq;
	struct ibv_qp *qp[NODE_QPS];
	struct ibv_mr *mr;
	uint8_t *memory;
	struct node_options options;
};

static inline bool node_open(struct node *node, const struct node_options *options)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct node_options *o = &node->options;

	memset(node, 0, sizeof(*node));
	*o = *options;
	o->depth = o->depth ? o->depth : 64;
	o->qps = o->qps ? o->qps : 1;
	o->cqe = o->cqe ? o->cqe : 4096;
	o->memory = o->memory ? o->memory : 1u << 20;
	o->timeout = o->timeout ? o->timeout : 14;
	o->retry_cnt = o->retry_cnt ? o->retry_cnt : 7;
	o->rnr_retry = o->rnr_retry ? o->rnr_retry : o->fail_on_rnr ? 0 : 7;
	node->context = list ? ibv_open_device(list[0]) : NULL;
	ibv_free_device_list(list);
	if (!node->context)
		return false;
	node->pd = ibv_alloc_pd(node->context);
	node->channel = o->channel ? ibv_create_comp_channel(node->context) : NULL;
	node->cq = ibv_create_cq(node->context, o->cqe, NULL, node->channel, 0);
	/* a multiple of the alignment, as C11 wants it */
	node->memory = o->at ? o->at : aligned_alloc(4096, (o->memory + 4095) / 4096 * 4096);
	if (node->memory)
		memset(node->memory, 0, o->memory);
	node->mr = ibv_reg_mr(node->pd, node->memory, o->memory, 15);
	if (o->srq) {
		struct ibv_srq_init_attr attr = { .attr = { .max_wr = o->srq, .max_sge = 2 } };

		node->srq = ibv_create_srq(node->pd, &attr);
	}
	for (uint32_t i = 0; i < o->qps; i++) {
		struct ibv_qp_init_attr attr = {
			.send_cq = node->cq,
			.recv_cq = node->cq,
			.srq = node->srq,
			.qp_type = IBV_QPT_RC,
			.cap = { .max_send_wr = o->depth,
				 .max_recv_wr = o->depth,
				 .max_send_sge = 2,
				 .max_recv_sge = 2,
				 .max_inline_data = 64 },
		};

		node->qp[i] = ibv_create_qp(node->pd, &attr);
		if (!node->qp[i])
			return false;
	}
	return node->pd && node->cq && node->mr && (!o->srq || node->srq);
}

/* Returns 0, or a bit mask of the objects that could not be destroyed. */
static inline int node_close(struct node *node)
{
	int bad = 0;

	for (uint32_t i = 0; i < NODE_QPS; i++)
		bad |= node->qp[i] && ibv_destroy_qp(node->qp[i]) ? 1 : 0;
	bad |= node->srq && ibv_destroy_srq(node->srq) ? 2 : 0;
	bad |= node->cq && ibv_destroy_cq(node->cq) ? 4 : 0;
	bad |= node->channel && ibv_destroy_comp_channel(node->channel) ? 8 : 0;
	bad |= node->mr && ibv_dereg_mr(node->mr) ? 16 : 0;
	bad |= node->pd && ibv_dealloc_pd(node->pd) ? 32 : 0;
	bad |= node->context && ibv_close_device(node->context) ? 64 : 0;
	if (!node->options.at)
		free(node->memory);
	return bad;
}

static inline int qp_to_init(struct ibv_qp *qp)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT,
				    .port_num = 1,
				    .qp_access_flags = 15 };

	return ibv_modify_qp(qp, &attr,
			     IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
}

static inline int qp_to_rtr(struct ibv_qp *qp, uint32_t peer)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = IBV_MTU_4096,
		.dest_qp_num = peer,
		.max_dest_rd_atomic = 4,
		.min_rnr_timer = 12,
		.ah_attr = { .is_global = 1, .port_num = 1 },
	};

	ibv_query_gid(qp->context, 1, 0, &attr.ah_attr.grh.dgid);
	return ibv_modify_qp(qp, &attr,
			     IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
				     IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
				     IBV_QP_MIN_RNR_TIMER);
}

static inline int qp_to_rts(struct ibv_qp *qp, const struct node_options *options)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTS,
		.timeout = options->timeout,
		.retry_cnt = options->retry_cnt,
		.rnr_retry = options->rnr_retry,
		.max_rd_atomic = 4,
	};

	return ibv_modify_qp(qp, &attr,
			     IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
				     IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC);
}

static inline int qp_to(struct ibv_qp *qp, enum ibv_qp_state state)
{
	struct ibv_qp_attr attr = { .qp_state = state };

	return ibv_modify_qp(qp, &attr, IBV_QP_STATE);
}

static inline bool node_qp_connect(struct ibv_qp *qp, uint32_t peer,
				   const struct node_options *options)
{
	return !qp_to_init(qp) && !qp_to_rtr(qp, peer) && !qp_to_rts(qp, options);
}

/*
 * Connects the QPs with those of the process at the other end of `fd`, which makes the same call.
 */
static inline bool node_connect(struct node *node, uint32_t first, uint32_t count, int fd)
{
	for (uint32_t i = first; i < first + count; i++) {
		uint64_t peer;

		if (!process_say(fd, node->qp[i]->qp_num) || !process_hear(fd, &peer) ||
		    !node_qp_connect(node->qp[i], (uint32_t)peer, &node->options))
			return false;
	}
	return process_say(fd, 1) && process_sync(fd);
}

static inline struct ibv_sge node_sge(const struct node *node, size_t offset, uint32_t length)
{
	return (struct ibv_sge){ (uintptr_t)node->memory + offset, length, node->mr->lkey };
}

static inline int node_send(struct node *node, uint32_t qp, uint64_t wr_id, size_t offset,
			    uint32_t length, unsigned flags)
{
	struct ibv_sge sge = node_sge(node, offset, length);
	struct ibv_send_wr wr = {
		.wr_id = wr_id, .sg_list = &sge, .num_sge = length ? 1 : 0,
		.opcode = IBV_WR_SEND, .send_flags = flags,
	}, *bad;

	return ibv_post_send(node->qp[qp], &wr, &bad);
}

static inline int node_recv(struct node *node, uint32_t qp, uint64_t wr_id, size_t offset,
			    uint32_t length)
{
	struct ibv_sge sge = node_sge(node, offset, length);
	struct ibv_recv_wr wr = { .wr_id = wr_id, .sg_list = &sge, .num_sge = 1 }, *bad;

	return node->srq ? ibv_post_srq_recv(node->srq, &wr, &bad)
			 : ibv_post_recv(node->qp[qp], &wr, &bad);
}

/*
 * Polls for one completion until the deadline; returns false if there is none or it cannot be
 * polled.
 */
static inline bool node_poll(struct node *node, struct ibv_wc *wc)
{
	uint64_t deadline = clock_now() + UNIT_PATIENCE * NSEC_PER_MSEC;

	for (;;) {
		int n = ibv_poll_cq(node->cq, 1, wc);

		if (n || clock_now() >= deadline)
			return n == 1;
		sched_yield();
	}
}

/* Waits as programs do: poll, arm, poll again, block. */
static inline bool node_event_poll(struct node *node, struct ibv_wc *wc)
{
	struct pollfd poll_fd = { .fd = node->channel->fd, .events = POLLIN };
	struct ibv_cq *cq;
	void *context;

	for (;;) {
		if (ibv_poll_cq(node->cq, 1, wc) == 1)
			return true;
		if (ibv_req_notify_cq(node->cq, 0))
			return false;
		if (ibv_poll_cq(node->cq, 1, wc) == 1)
			return true;
		if (poll(&poll_fd, 1, UNIT_PATIENCE) != 1 ||
		    ibv_get_cq_event(node->channel, &cq, &context))
			return false;
		ibv_ack_cq_events(cq, 1);
	}
}

#endif
