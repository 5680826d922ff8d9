/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Connections: each joins a CM id to a QP, which the CM does not own. */
#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "dapl/openib/openib.h"

struct ib_conn *conn_new(struct ib_device *device, struct rdma_cm_id *id)
{
	struct ib_conn *conn = calloc(1, sizeof(*conn));

	if (!conn)
		return NULL;
	conn->device = device;
	conn->id = id;
	if (id)
		id->context = conn;
	return conn;
}

/* Applies the settings that override the CM's defaults; -1: keep the default. */
static void apply_settings(const struct ib_device *device, struct ibv_qp_attr *attr)
{
	long rnr_timer = device_setting(device, SET_RNR_TIMER),
	     ack_timer = device_setting(device, SET_ACK_TIMER),
	     mtu = device_setting(device, SET_IB_MTU);

	if (attr->qp_state == IBV_QPS_RTR) {
		if (rnr_timer >= 0)
			attr->min_rnr_timer = (uint8_t)rnr_timer;
		while (mtu && attr->path_mtu > IBV_MTU_256 && 128 << attr->path_mtu > mtu)
			attr->path_mtu--;
	} else if (attr->qp_state == IBV_QPS_RTS && ack_timer >= 0) {
		attr->timeout = (uint8_t)ack_timer;
	}
}

/* Moves the QP through INIT, RTR and RTS with the attributes that the CM supplies for this id. */
int conn_bring_up(struct ib_conn *conn, bool passive)
{
	static const enum ibv_qp_state states[] = { IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS };
	struct ibv_qp_attr attr;
	int error, i, mask;

	for (i = 0; i < 3; i++) {
		memset(&attr, 0, sizeof(attr));
		attr.qp_state = states[i];
		if (rdma_init_qp_attr(conn->id, &attr, &mask)) {
			error = errno;
			/* EINVAL of an accept: the requester may have given up, see ib_conn_accept */
			if (!passive || error != EINVAL)
				ib_error(error, "rdma_init_qp_attr", "connection");
			return error;
		}
		/* The accepted depth: the passive side's CM still supplies the requested one. */
		if (passive && states[i] == IBV_QPS_RTR)
			attr.max_dest_rd_atomic = conn->param.responder_resources;
		if (passive && states[i] == IBV_QPS_RTS)
			attr.max_rd_atomic = conn->param.initiator_depth;
		/*
		 * Depth 0 would keep a read from being sent. With 1 the peer rejects it, and the consumer gets that
		 * error.
		 */
		if (states[i] == IBV_QPS_RTS && conn->reads && !attr.max_rd_atomic)
			attr.max_rd_atomic = 1;
		apply_settings(conn->device, &attr);
		error = ibv_modify_qp(conn->qp->qp, &attr, mask);
		if (error) {
			ib_error(error, "ibv_modify_qp", "connection");
			return error;
		}
	}
	return 0;
}

void conn_set_tos(struct ib_conn *conn)
{
	uint8_t tos = (uint8_t)device_setting(conn->device, SET_CM_TOS);

	if (tos && rdma_set_option(conn->id, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, &tos, sizeof(tos)))
		ib_error(errno, "rdma_set_option", "connection");
}

int conn_resolve_address(struct ib_conn *conn)
{
	struct sockaddr_storage local = conn->device->address;

	conn->step = CONN_RESOLVING_ADDRESS;
	return rdma_resolve_addr(conn->id, (struct sockaddr *)&local,
				 (struct sockaddr *)&conn->remote,
				 (int)device_setting(conn->device, SET_CM_ARP_TIMEOUT_MS))
		       ? errno
		       : 0;
}

int conn_resolve_route(struct ib_conn *conn)
{
	conn->step = CONN_RESOLVING_ROUTE;
	return rdma_resolve_route(conn->id,
				  (int)device_setting(conn->device, SET_CM_ROUTE_TIMEOUT_MS))
		       ? errno
		       : 0;
}

/* RNR retries of the peer: each side sends the count that the other uses. */
static uint8_t rnr_retries(const struct ib_conn_param *param, uint8_t usual)
{
	return param->never_receives ? 0 : usual;
}

/* Frees `new` on failure. */
static DAT_RETURN conn_begin(struct ib_conn *new, enum rdma_port_space space, struct ib_conn **conn)
{
	int error;

	if (rdma_create_id(new->device->channel, &new->id, new, space)) {
		error = errno;
		free(new);
		return ib_error(error, "rdma_create_id", "connection");
	}
	*conn = new; /* set first: an upcall may run before this function returns */
	error = conn_resolve_address(new);
	if (!error)
		return DAT_SUCCESS;
	*conn = NULL;
	rdma_destroy_id(new->id);
	free(new);
	return ib_error(error, "rdma_resolve_addr", "connection");
}

DAT_RETURN ib_conn_connect(struct ib_device *device, struct ib_qp *qp,
			   const struct sockaddr *remote, const struct ib_conn_param *param,
			   void *owner, struct ib_conn **conn)
{
	struct ib_conn *new = conn_new(device, NULL);

	if (!new)
		return DAT_ERROR(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_MEMORY);
	new->owner = owner;
	new->qp = qp;
	new->reads = param->reads;
	memcpy(&new->remote, remote, sockaddr_size(remote));
	if (param->size)
		memcpy(new->data, param->data, param->size);
	new->param = (struct rdma_conn_param){
		.private_data = new->data,
		.private_data_len = (uint8_t)param->size,
		.responder_resources = param->responder_resources,
		.initiator_depth = param->initiator_depth,
		.flow_control = 1,
		.retry_count = (uint8_t)device_setting(device, SET_ACK_RETRY),
		.rnr_retry_count =
			rnr_retries(param, (uint8_t)device_setting(device, SET_RNR_RETRY)),
		.srq = qp->qp->srq != NULL,
		.qp_num = qp->qp->qp_num,
	};
	return conn_begin(new, RDMA_PS_TCP, conn);
}

DAT_RETURN ib_conn_resolve(struct ib_device *device, struct ib_qp *qp,
			   const struct sockaddr *remote, const void *data, uint32_t size,
			   void *owner, struct ib_conn **conn)
{
	struct ib_conn *new = conn_new(device, NULL);

	if (!new)
		return DAT_ERROR(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_MEMORY);
	new->owner = owner;
	new->qp = qp;
	new->datagrams = true;
	memcpy(&new->remote, remote, sockaddr_size(remote));
	ud_request_write(new, data, size);
	return conn_begin(new, RDMA_PS_UDP, conn);
}

/* The requester has gone: the CM knows (EINVAL), or an iWARP device finds its TCP connection closed. */
static bool is_given_up(int error)
{
	return error == EINVAL || error == ECONNRESET;
}

DAT_RETURN ib_conn_accept(struct ib_conn *conn, struct ib_qp *qp, const struct ib_conn_param *param,
			  void *owner)
{
	int error;

	conn->qp = qp;
	conn->owner = owner;
	conn->reads = param->reads;
	conn->param.private_data = param->data;
	conn->param.private_data_len = (uint8_t)param->size;
	conn->param.responder_resources = param->responder_resources;
	conn->param.initiator_depth = param->initiator_depth;
	conn->param.rnr_retry_count = rnr_retries(param, conn->param.rnr_retry_count);
	conn->param.srq = qp->qp->srq != NULL;
	conn->param.qp_num = qp->qp->qp_num;
	/* a datagram QP is up already */
	error = conn->datagrams ? 0 : conn_bring_up(conn, true);
	/* Set before the reply is sent: ESTABLISHED may be read by another thread before rdma_accept() returns. */
	conn->step = CONN_ACCEPTED;
	if (!error && !rdma_accept(conn->id, &conn->param)) {
		if (conn->datagrams)
			conn->step = CONN_ENDED;
		return DAT_SUCCESS;
	}
	if (!error)
		error = errno;
	conn->step = CONN_ENDED;
	if (rdma_reject(conn->id, NULL, 0) && is_given_up(errno)) {
		log_at(LOG_NOTE, "connection request: the peer gave up before it was accepted");
		return DAT_ERROR(DAT_INVALID_STATE, 0);
	}
	ib_error(error, "rdma_accept", "connection");
	return error_is_shortage(error) ? DAT_ERROR(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_TEP)
					: DAT_ERROR(DAT_INTERNAL_ERROR, 0);
}

DAT_RETURN ib_conn_reject(struct ib_conn *conn, const void *data, uint32_t size)
{
	conn->step = CONN_ENDED;
	if (!rdma_reject(conn->id, data, (uint8_t)size))
		return DAT_SUCCESS;
	if (!is_given_up(errno))
		return ib_error(errno, "rdma_reject", "connection request");
	log_at(LOG_NOTE, "connection request: the peer gave up before it was rejected");
	return DAT_SUCCESS;
}

void ib_conn_disconnect(struct ib_conn *conn, bool awaits_reply)
{
	conn->awaits_reply = awaits_reply;
	/* EINVAL: it was never connected, or the CM has already taken it down. */
	if (!rdma_disconnect(conn->id))
		conn->dreq_sent = true;
	else if (errno != EINVAL)
		ib_error(errno, "rdma_disconnect", "connection");
}

void conn_free(struct ib_conn *conn)
{
	if (rdma_destroy_id(conn->id))
		ib_error(errno, "rdma_destroy_id", "connection");
	free(conn);
}

void ib_conn_destroy(struct ib_conn *conn)
{
	if (!conn)
		return;
	upcall_forbid(conn->device, conn, &conn->dead);
	if (conn->step == CONN_REQUESTED && rdma_reject(conn->id, NULL, 0) && !is_given_up(errno))
		ib_error(errno, "rdma_reject", "connection request");
	if (!conn_drain_begin(conn))
		conn_free(conn);
}

uint16_t ib_conn_local_port(const struct ib_conn *conn)
{
	return ntohs(rdma_get_src_port(conn->id));
}

uint16_t ib_conn_remote_port(const struct ib_conn *conn)
{
	return ntohs(rdma_get_dst_port(conn->id));
}

void ib_conn_depths(const struct ib_conn *conn, uint8_t *responder_resources,
		    uint8_t *initiator_depth)
{
	*responder_resources = conn->param.responder_resources;
	*initiator_depth = conn->param.initiator_depth;
}
