/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* The attributes of a connection's QP: those that the two sides exchanged, and those that are fixed by
 * convention. */
#include <errno.h>
#include <string.h>
#include "dapl/cm/id.h"
#include "util/log.h"

/* The messages do not carry these; both sides use the same values (OFED's dapl). */
#define PSN	  1
#define RNR_TIMER 12
#define ACK_TIMER 20

/* On Ethernet a path has a GRH. Its source is GID 0, since that GID was sent to the peer, and a device may
 * check the source of packets. */
void cm_path(const struct cm_channel *channel, const struct cm_endpoint *to,
	     struct ibv_ah_attr *attr)
{
	*attr = (struct ibv_ah_attr){
		.dlid = to->lid,
		.sl = (uint8_t)cm_setting(channel, SET_IB_SL),
		.port_num = channel->port.num,
	};
	if (!channel->port.ethernet && !cm_setting(channel, SET_GLOBAL_ROUTING))
		return;
	attr->is_global = 1;
	memcpy(attr->grh.dgid.raw, to->gid, sizeof(to->gid));
	attr->grh.hop_limit = (uint8_t)cm_setting(channel, SET_HOP_LIMIT);
	attr->grh.traffic_class = (uint8_t)cm_setting(channel, SET_TCLASS);
}

/* Returns the index of the configured key, or 0 if the port does not have that key. */
static uint16_t pkey_index(const struct cm_channel *channel)
{
	long wanted = cm_setting(channel, SET_IB_PKEY);
	struct ibv_device_attr attr;
	__be16 pkey;
	int i;

	if (!wanted || ibv_query_device(channel->port.verbs, &attr))
		return 0;
	for (i = 0; i < attr.max_pkeys; i++)
		if (!ibv_query_pkey(channel->port.verbs, channel->port.num, i, &pkey) &&
		    be16toh(pkey) == wanted)
			return (uint16_t)i;
	log_at(LOG_WARN, "%s: port %u has no partition key 0x%lx: its first is used",
	       ibv_get_device_name(channel->port.verbs->device), channel->port.num, wanted);
	return 0;
}

static int qp_attr_to_init(const struct cm_id *id, struct ibv_qp_attr *attr)
{
	const struct cm_port *port = &id->channel->port;

	attr->pkey_index = pkey_index(id->channel);
	attr->port_num = port->num;
	attr->qp_access_flags = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
				IBV_ACCESS_REMOTE_READ |
				(port->atomics ? IBV_ACCESS_REMOTE_ATOMIC : 0);
	return IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
}

static int to_rtr(const struct cm_id *id, struct ibv_qp_attr *attr)
{
	cm_path(id->channel, &id->endpoint, &attr->ah_attr);
	attr->path_mtu = (enum ibv_mtu)id->mtu;
	attr->dest_qp_num = id->endpoint.qpn;
	attr->rq_psn = PSN;
	attr->max_dest_rd_atomic = id->responder_resources;
	attr->min_rnr_timer = RNR_TIMER;
	return IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
	       IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
}

static int qp_attr_to_rts(const struct cm_id *id, struct ibv_qp_attr *attr)
{
	uint8_t most = id->peer.ver < 7 ? CM_DEPTH_UNKNOWN : id->peer.rd_in,
		delay = id->channel->port.ack_delay;

	attr->timeout = delay > ACK_TIMER ? delay : ACK_TIMER;
	attr->retry_cnt = id->retry_count;
	attr->rnr_retry = id->rnr_retry_count;
	attr->sq_psn = PSN;
	attr->max_rd_atomic = id->initiator_depth < most ? id->initiator_depth : most;
	return IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
	       IBV_QP_MAX_QP_RD_ATOMIC;
}

int rdma_init_qp_attr(struct rdma_cm_id *given, struct ibv_qp_attr *attr, int *mask)
{
	struct cm_id *id = cm_id_of(given);
	int error = 0;

	cm_lock(id->channel);
	switch (attr->qp_state) {
	case IBV_QPS_INIT: *mask = qp_attr_to_init(id, attr); break;
	case IBV_QPS_RTR: *mask = to_rtr(id, attr); break;
	case IBV_QPS_RTS: *mask = qp_attr_to_rts(id, attr); break;
	default: error = EINVAL;
	}
	cm_unlock(id->channel);
	if (!error)
		return 0;
	errno = error;
	return -1;
}
