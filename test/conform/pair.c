/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Two queue pairs of this process, each with its own PD, CQs and memory, connected. */
#include <stdlib.h>
#include "test/conform/conform.h"

#define REMOTE_ALL (IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC)

static const struct pair_options none;

static uint32_t or_default(uint32_t value, uint32_t otherwise)
{
	return value ? value : otherwise;
}

int make_init(struct ibv_qp *qp, int access)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT,
		.port_num = 1,
		.qp_access_flags = (unsigned)access,
	};

	return ibv_modify_qp(qp, &attr,
			     IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
}

void rtr_attr(struct ibv_qp_attr *attr, int *mask, uint32_t peer,
	      const struct pair_options *options)
{
	struct ibv_port_attr port = { 0 };

	ibv_query_port(device, 1, &port);
	*attr = (struct ibv_qp_attr){
		.qp_state = IBV_QPS_RTR,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = peer,
		.max_dest_rd_atomic = options->no_dest_rd_atomic ? 0 : 1,
		.min_rnr_timer = options->min_rnr_timer_none
					 ? 0 : (uint8_t)or_default(options->min_rnr_timer, 12),
		.ah_attr = {
			.is_global = 1,
			.dlid = port.lid,
			.port_num = 1,
			.grh.dgid = options->elsewhere ? options->gid : device_gid,
			.grh.sgid_index = device_gid_index,
			.grh.hop_limit = 1,
		},
	};
	*mask = IBV_QP_STATE;
	if (options->type != IBV_QPT_UD)
		*mask |= IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
	if (!options->type || options->type == IBV_QPT_RC)
		*mask |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
}

int make_rtr(struct ibv_qp *qp, uint32_t peer, const struct pair_options *options)
{
	struct ibv_qp_attr attr;
	int mask;

	rtr_attr(&attr, &mask, peer, options ? options : &none);
	return ibv_modify_qp(qp, &attr, mask);
}

void rts_attr(struct ibv_qp_attr *attr, int *mask, const struct pair_options *options)
{
	*attr = (struct ibv_qp_attr){
		.qp_state = IBV_QPS_RTS,
		.timeout = (uint8_t)or_default(options->timeout, 14),
		.retry_cnt = options->retry_none ? 0 : (uint8_t)or_default(options->retry_cnt, 7),
		.rnr_retry =
			options->rnr_retry_none ? 0 : (uint8_t)or_default(options->rnr_retry, 7),
		.max_rd_atomic = options->no_rd_atomic ? 0 : 1,
	};
	*mask = IBV_QP_STATE | IBV_QP_SQ_PSN;
	if (!options->type || options->type == IBV_QPT_RC)
		*mask |= IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
			 IBV_QP_MAX_QP_RD_ATOMIC;
}

int make_rts(struct ibv_qp *qp, const struct pair_options *options)
{
	struct ibv_qp_attr attr;
	int mask;

	rts_attr(&attr, &mask, options ? options : &none);
	return ibv_modify_qp(qp, &attr, mask);
}

int move_to(struct ibv_qp *qp, enum ibv_qp_state state)
{
	struct ibv_qp_attr attr = { .qp_state = state };

	return ibv_modify_qp(qp, &attr, IBV_QP_STATE);
}

enum ibv_qp_state state_of(struct ibv_qp *qp)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	return ibv_query_qp(qp, &attr, IBV_QP_STATE, &init) ? IBV_QPS_UNKNOWN : attr.qp_state;
}

struct awaited {
	struct ibv_qp *qp;
	enum ibv_qp_state state;
};

static bool is_there(void *arg)
{
	struct awaited *awaited = arg;

	return state_of(awaited->qp) == awaited->state;
}

bool reaches(struct ibv_qp *qp, enum ibv_qp_state state)
{
	return unit_wait_for(is_there, &(struct awaited){ qp, state }, PATIENCE);
}

static bool side_open_qp(struct side *side, const struct pair_options *options)
{
	struct ibv_qp_init_attr init = {
		.send_cq = side->scq,
		.recv_cq = side->rcq,
		.srq = side->srq,
		.qp_type = options->type ? options->type : IBV_QPT_RC,
		.sq_sig_all = options->signal_all,
		.cap = {
			.max_send_wr = or_default(options->send_wr, 16),
			.max_recv_wr = or_default(options->recv_wr, 16),
			.max_send_sge = or_default(options->sge, 4),
			.max_recv_sge = or_default(options->sge, 4),
			.max_inline_data = options->inline_size,
		},
	};

	side->qp = ibv_create_qp(side->pd, &init);
	return side->qp;
}

bool side_open(struct side *side, const struct pair_options *options, bool shared)
{
	int cqe = options->cqe ? options->cqe : 256;
	struct ibv_srq_init_attr srq = {
		.attr = { .max_wr = options->srq_wr, .max_sge = or_default(options->sge, 4) },
	};

	*side = (struct side){ .buffer = calloc(1, BUFFER) };
	side->pd = ibv_alloc_pd(device);
	side->channel = ibv_create_comp_channel(device);
	if (!side->buffer || !side->pd || !side->channel)
		return false;
	side->scq = ibv_create_cq(device, cqe, side, NULL, 0);
	side->rcq = ibv_create_cq(device, cqe, side, side->channel, 0);
	side->mr = ibv_reg_mr(side->pd, side->buffer, BUFFER,
			      options->mr_access ? options->mr_access
						 : IBV_ACCESS_LOCAL_WRITE | REMOTE_ALL);
	if (shared)
		side->srq = ibv_create_srq(side->pd, &srq);
	if (!side->scq || !side->rcq || !side->mr || (shared && !side->srq))
		return false;
	return side_open_qp(side, options);
}

bool side_release(struct side *side)
{
	/* an object is destroyed even if an earlier one failed */
	bool good = !side->qp || !ibv_destroy_qp(side->qp);

	good &= !side->ah || !ibv_destroy_ah(side->ah);
	good &= !side->srq || !ibv_destroy_srq(side->srq);
	good &= !side->scq || !ibv_destroy_cq(side->scq);
	good &= !side->rcq || !ibv_destroy_cq(side->rcq);
	good &= !side->channel || !ibv_destroy_comp_channel(side->channel);
	good &= !side->mr || !ibv_dereg_mr(side->mr);
	good &= !side->pd || !ibv_dealloc_pd(side->pd);
	free(side->buffer);
	*side = (struct side){ 0 };
	return good;
}

void side_close(struct side *side)
{
	CU_ASSERT_TRUE(side_release(side));
}

static int access_of(const struct pair_options *options)
{
	return options->no_qp_access ? 0 : options->qp_access ? options->qp_access : REMOTE_ALL;
}

void init_attr(struct ibv_qp_attr *attr, int *mask, const struct pair_options *options)
{
	bool datagrams = options->type == IBV_QPT_UD;

	*attr = (struct ibv_qp_attr){
		.qp_state = IBV_QPS_INIT,
		.port_num = 1,
		.qkey = datagrams ? QKEY : 0,
		.qp_access_flags = datagrams ? 0 : (unsigned)access_of(options),
	};
	*mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
		(datagrams ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS);
}

bool side_connect(struct side *side, uint32_t peer, const struct pair_options *options)
{
	struct ibv_qp_attr attr;
	int mask;

	init_attr(&attr, &mask, options);
	if (ibv_modify_qp(side->qp, &attr, mask) || make_rtr(side->qp, peer, options) ||
	    make_rts(side->qp, options))
		return false;
	side->peer = peer;
	if (options->type != IBV_QPT_UD)
		return true;
	rtr_attr(&attr, &mask, peer, options);
	side->ah = ibv_create_ah(side->pd, &attr.ah_attr);
	return side->ah;
}

bool pair_open(struct pair *pair, const struct pair_options *options)
{
	bool good;

	if (!options)
		options = &none;
	*pair = (struct pair){ 0 };
	good = side_open(&pair->a, options, false) &&
	       side_open(&pair->b, options, options->srq_wr) &&
	       side_connect(&pair->a, pair->b.qp->qp_num, options) &&
	       side_connect(&pair->b, pair->a.qp->qp_num, options);
	CU_ASSERT_TRUE(good);
	if (!good)
		pair_close(pair);
	return good;
}

void pair_close(struct pair *pair)
{
	side_close(&pair->a);
	side_close(&pair->b);
}
