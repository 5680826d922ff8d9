/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Queue pairs and connections: the attributes that a connection sets, and the queue pair that an identifier
 * owns. */
#include <arpa/inet.h>
#include <errno.h>
#include <string.h>
#include "softverbs/cm/cm.h"
#include "softverbs/object/device.h"
#include "util/log.h"

#define ACK_TIMEOUT 19 /* the value that a kernel chooses for a path without latency */

/* ---- attributes ---- */

static void attr_init(struct ibv_qp_attr *attr, int *mask)
{
	attr->port_num = 1;
	*mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
}

void sv_cm_address_fill(const struct cm_id *id, struct ibv_ah_attr *ah)
{
	const struct rdma_ib_addr *addr = &id->id.route.addr.addr.ibaddr;
	int index = sv_gid_index(&addr->sgid);

	ah->is_global = 1;
	ah->port_num = 1;
	ah->dlid = ntohs(id->path.dlid);
	ah->grh.dgid = addr->dgid;
	/* A local address without an entry in the table may use any entry: the path is the same. */
	ah->grh.sgid_index = index < 0 ? 0 : (uint8_t)index;
	ah->grh.hop_limit = 64;
	ah->grh.traffic_class = id->tos;
}

static void attr_rtr(const struct cm_id *id, struct ibv_qp_attr *attr, int *mask)
{
	sv_cm_address_fill(id, &attr->ah_attr);
	attr->path_mtu = IBV_MTU_4096;
	attr->dest_qp_num = id->theirs.qpn;
	attr->rq_psn = id->theirs.psn;
	attr->max_dest_rd_atomic = id->local.responder_resources;
	attr->qp_access_flags = IBV_ACCESS_REMOTE_WRITE;
	if (id->local.responder_resources)
		attr->qp_access_flags |= IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
	*mask = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
		IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER | IBV_QP_ACCESS_FLAGS;
}

/* The requester's transport retry count applies to both sides; each side uses the RNR retry count that its
 * peer asked for. */
static void attr_rts(const struct cm_id *id, struct ibv_qp_attr *attr, int *mask)
{
	attr->sq_psn = id->local.psn;
	attr->timeout = id->ack_timeout ? id->ack_timeout : ACK_TIMEOUT;
	attr->retry_cnt = id->active ? id->local.retry_count : id->theirs.retry_count;
	attr->rnr_retry = id->theirs.rnr_retry_count;
	attr->max_rd_atomic = id->local.initiator_depth;
	*mask = IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
		IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
}

static bool peer_is_known(const struct cm_id *id)
{
	return id->state == CM_REQUESTED || id->state == CM_ANSWERED || id->state == CM_ACCEPTED ||
	       id->state == CM_ESTABLISHED || id->state == CM_DISCONNECTED;
}

/* A datagram queue pair needs no peer. */
static int attr_datagram(struct ibv_qp_attr *attr, int *mask)
{
	*mask = IBV_QP_STATE;
	if (attr->qp_state == IBV_QPS_INIT) {
		attr->port_num = 1;
		attr->qkey = RDMA_UDP_QKEY;
		*mask |= IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY;
	} else if (attr->qp_state == IBV_QPS_RTS) {
		*mask |= IBV_QP_SQ_PSN;
	}
	return 0;
}

static int attr_fill_locked(const struct cm_id *id, struct ibv_qp_attr *attr, int *mask)
{
	enum ibv_qp_state state = attr->qp_state;

	if (!id->has_device ||
	    (state != IBV_QPS_INIT && state != IBV_QPS_RTR && state != IBV_QPS_RTS))
		return EINVAL;
	/* a withdrawn request needs no queue pair */
	if (!id_is_datagram(id) &&
	    (id->state == CM_CLOSED || (state != IBV_QPS_INIT && !peer_is_known(id))))
		return EINVAL;
	memset(attr, 0, sizeof(*attr));
	attr->qp_state = state;
	if (id_is_datagram(id))
		return attr_datagram(attr, mask);
	if (state == IBV_QPS_INIT)
		attr_init(attr, mask);
	else if (state == IBV_QPS_RTR)
		attr_rtr(id, attr, mask);
	else
		attr_rts(id, attr, mask);
	return 0;
}

int rdma_init_qp_attr(struct rdma_cm_id *public, struct ibv_qp_attr *attr, int *mask)
{
	struct cm_id *id = cm_id_of(public);
	int error;

	if (!sv_cm_id_is_ours(id))
		return sv_cm_fail(ENODEV);
	sv_cm_lock();
	error = attr_fill_locked(id, attr, mask);
	sv_cm_unlock();
	return error ? sv_cm_fail(error) : 0;
}

/* ---- states ---- */

static int qp_enter(struct cm_id *id, enum ibv_qp_state state)
{
	struct ibv_qp_attr attr = { .qp_state = state };
	int mask;

	if (rdma_init_qp_attr(&id->id, &attr, &mask))
		return errno;
	return ibv_modify_qp(id->id.qp, &attr, mask);
}

int sv_cm_qp_connect(struct cm_id *id)
{
	int error;

	if (!id->id.qp)
		return 0;
	error = qp_enter(id, IBV_QPS_RTR);
	return error ? error : qp_enter(id, IBV_QPS_RTS);
}

int sv_cm_qp_error(struct cm_id *id)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };
	int error;

	if (!id->id.qp)
		return 0;
	error = ibv_modify_qp(id->id.qp, &attr, IBV_QP_STATE);
	if (error)
		log_at(LOG_ERROR, "rdma_cm: id %p: QP %x to error: %s", (void *)&id->id,
		       id->id.qp->qp_num, strerror(error));
	return error;
}

/* Enters INIT; a datagram queue pair goes on to RTS. */
static int qp_prepare(struct cm_id *id)
{
	int error = qp_enter(id, IBV_QPS_INIT);

	return error || !id_is_datagram(id) ? error : sv_cm_qp_connect(id);
}

/* ---- the queue pair of an identifier ---- */

static void cqs_destroy(struct rdma_cm_id *id)
{
	if (id->recv_cq)
		ibv_destroy_cq(id->recv_cq);
	if (id->recv_cq_channel)
		ibv_destroy_comp_channel(id->recv_cq_channel);
	if (id->send_cq)
		ibv_destroy_cq(id->send_cq);
	if (id->send_cq_channel)
		ibv_destroy_comp_channel(id->send_cq_channel);
	id->recv_cq = id->send_cq = NULL;
	id->recv_cq_channel = id->send_cq_channel = NULL;
}

static int cq_make(struct rdma_cm_id *id, uint32_t depth, struct ibv_comp_channel **channel,
		   struct ibv_cq **cq)
{
	*channel = ibv_create_comp_channel(id->verbs);
	if (!*channel)
		return errno;
	*cq = ibv_create_cq(id->verbs, depth ? (int)depth : 1, id, *channel, 0);
	return *cq ? 0 : errno;
}

/* Sets what the attributes leave open: completion queues of its own, sized by the work requests. */
static int attr_complete(struct rdma_cm_id *id, struct ibv_qp_init_attr_ex *attr)
{
	int error = 0;

	if (!attr->srq)
		attr->srq = id->srq;
	if (!attr->recv_cq) {
		error = cq_make(id, attr->cap.max_recv_wr, &id->recv_cq_channel, &id->recv_cq);
		attr->recv_cq = id->recv_cq;
	}
	if (!error && !attr->send_cq) {
		error = cq_make(id, attr->cap.max_send_wr, &id->send_cq_channel, &id->send_cq);
		attr->send_cq = id->send_cq;
	}
	return error;
}

int rdma_create_qp_ex(struct rdma_cm_id *public, struct ibv_qp_init_attr_ex *attr)
{
	struct cm_id *id = cm_id_of(public);
	struct ibv_qp_init_attr_ex full = *attr;
	int error;

	if (!sv_cm_id_is_ours(id))
		return sv_cm_fail(ENODEV);
	if (public->qp || !id->has_device || public->qp_type != attr->qp_type)
		return sv_cm_fail(EINVAL);
	if (!(attr->comp_mask & IBV_QP_INIT_ATTR_PD)) {
		full.comp_mask |= IBV_QP_INIT_ATTR_PD;
		full.pd = public->pd;
	}
	if (!full.pd || full.pd->context != public->verbs)
		return sv_cm_fail(EINVAL);
	error = attr_complete(public, &full);
	if (!error) {
		public->qp = ibv_create_qp_ex(public->verbs, &full);
		error = public->qp ? qp_prepare(id) : errno;
	}
	if (error) {
		rdma_destroy_qp(public);
		return sv_cm_fail(error);
	}
	public->pd = full.pd;
	attr->cap = full.cap;
	return 0;
}

int rdma_create_qp(struct rdma_cm_id *public, struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
	struct ibv_qp_init_attr_ex full = { .pd = pd ? pd : public->pd };

	/* the extended form begins with the plain one, which has padding where the mask is */
	memcpy(&full, attr, offsetof(struct ibv_qp_init_attr_ex, comp_mask));
	full.comp_mask = IBV_QP_INIT_ATTR_PD;
	if (!full.pd)
		return sv_cm_fail(EINVAL);
	if (rdma_create_qp_ex(public, &full))
		return -1;
	attr->cap = full.cap;
	return 0;
}

void rdma_destroy_qp(struct rdma_cm_id *public)
{
	int error = public->qp ? ibv_destroy_qp(public->qp) : 0;

	if (error)
		log_at(LOG_ERROR, "rdma_cm: id %p: destroy QP: %s", (void *)public,
		       strerror(error));
	public->qp = NULL;
	cqs_destroy(public);
}
