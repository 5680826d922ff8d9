/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Datagram endpoints: queue pairs, requests, and address handles of the peer. */
#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "dapl/openib/openib.h"

/*
 * The header before the private data of a request, for a CM whose message identifies neither the requester's QP nor its
 * path (ib_cm.ud_header). The kernel's CM reports no path of such a request; on InfiniBand not even the GID. The path back is
 * the requester's path with its ends exchanged. Numbers are in network order.
 */
struct ud_header {
	uint32_t version, qp_num;
	uint8_t gid[16];
	uint16_t lid; /* 0 on Ethernet */
	uint8_t sl, traffic_class;
};
_Static_assert(sizeof(struct ud_header) == IB_UD_HEADER, "header of a request");

#define REQUEST_VERSION 2u
#define HOP_LIMIT	64
#define SL_MOST		15u

struct ib_ah {
	struct ibv_ah *ah;
	uint32_t qkey;
};

/* ---- queue pairs ---- */

/*
 * The P_Key is that of the CM for the device's address, as for connections: of the network interface, or as it is set. The
 * Q_Key must be the one that the peer's CM reports for this QP (rdma_cma.h).
 */
static int ud_to_rts(const struct ib_device *device, struct ibv_qp *qp)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT };
	int error, mask;

	if (rdma_init_qp_attr(device->bound, &attr, &mask))
		return errno;
	attr.port_num = (uint8_t)device->attr.port;
	attr.qkey = ib_cm.ud_qkey;
	error = ibv_modify_qp(qp, &attr,
			      IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY);
	attr.qp_state = IBV_QPS_RTR;
	if (!error)
		error = ibv_modify_qp(qp, &attr, IBV_QP_STATE);
	attr.qp_state = IBV_QPS_RTS;
	return error ? error : ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN);
}

DAT_RETURN ib_qp_create_datagram(struct ib_pd *pd, struct ib_cq *send_cq, struct ib_cq *recv_cq,
				 struct ib_srq *srq, struct ib_qp_caps *caps, void *owner,
				 struct ib_qp **qp)
{
	return qp_create(pd, IBV_QPT_UD, send_cq, recv_cq, srq, caps, ud_to_rts, owner, qp);
}

void ib_work_address(struct ib_send_work *work, const struct ib_ah *ah, uint32_t qp_num)
{
	struct ibv_send_wr *wr = (struct ibv_send_wr *)work;

	wr->wr.ud.ah = ah->ah;
	wr->wr.ud.remote_qpn = qp_num;
	wr->wr.ud.remote_qkey = ah->qkey;
}

/* ---- requests ---- */

void ud_request_write(struct ib_conn *conn, const void *data, uint32_t size)
{
	if (size)
		memcpy(conn->data + ib_cm.ud_header, data, size);
	conn->param = (struct rdma_conn_param){
		.private_data = conn->data,
		.private_data_len = (uint8_t)(ib_cm.ud_header + size),
		.qp_num = conn->qp->qp->qp_num,
	};
}

void ud_request_address(struct ib_conn *conn)
{
	const struct rdma_route *route = &conn->id->route;
	struct ud_header header = { .version = htonl(REQUEST_VERSION),
				    .qp_num = htonl(conn->qp->qp->qp_num) };

	memcpy(header.gid, &route->addr.addr.ibaddr.sgid, sizeof(header.gid));
	if (route->num_paths && route->path_rec) {
		header.lid = route->path_rec->slid;
		header.sl = route->path_rec->sl;
		header.traffic_class = route->path_rec->traffic_class;
	}
	memcpy(conn->data, &header, ib_cm.ud_header);
}

/* Port and GID of this side follow when the address handle is created. */
static bool header_read(struct ib_conn *conn, const struct ud_header *header)
{
	struct ibv_ah_attr *peer = &conn->peer_address;

	conn->peer_qp = ntohl(header->qp_num);
	conn->peer_qkey = ib_cm.ud_qkey;
	peer->is_global = 1;
	peer->dlid = ntohs(header->lid);
	peer->sl = header->sl;
	memcpy(&peer->grh.dgid, header->gid, sizeof(header->gid));
	peer->grh.traffic_class = header->traffic_class;
	peer->grh.hop_limit = HOP_LIMIT;
	return ntohl(header->version) == REQUEST_VERSION && conn->peer_qp < 1u << 24 &&
	       header->sl <= SL_MOST;
}

bool ud_request_read(struct ib_conn *conn, const struct rdma_ud_param *ud,
		     struct ib_request *request)
{
	struct ud_header header;

	request->responder_resources = request->initiator_depth = 0;
	if (!ib_cm.ud_header) {
		ud_peer_read(conn, ud);
		return true;
	}
	if (request->size < sizeof(header))
		return false;
	memcpy(&header, request->data, sizeof(header));
	request->data = (const char *)request->data + sizeof(header);
	request->size -= (uint32_t)sizeof(header);
	return header_read(conn, &header);
}

void ud_peer_read(struct ib_conn *conn, const struct rdma_ud_param *param)
{
	conn->peer_address = param->ah_attr;
	conn->peer_qp = param->qp_num;
	conn->peer_qkey = param->qkey;
}

/* ---- addresses ---- */

/* If two GID table entries have the same address, the one of RoCE v2 is used, since IP routes it. */
static int gid_find(const struct ib_device *device, const union ibv_gid *gid)
{
	struct ibv_gid_entry entry;
	struct ibv_port_attr port;
	int found = -1, i;

	if (ibv_query_port(device->verbs, (uint8_t)device->attr.port, &port))
		return -1;
	for (i = 0; i < port.gid_tbl_len; i++) {
		if (ibv_query_gid_ex(device->verbs, device->attr.port, (uint32_t)i, &entry, 0) ||
		    memcmp(&entry.gid, gid, sizeof(*gid)))
			continue;
		if (found < 0 || entry.gid_type == IBV_GID_TYPE_ROCE_V2)
			found = i;
	}
	return found;
}

/* The active side uses the address in the reply, the passive side that of the request's header. */
static int address_of(const struct ib_conn *conn, struct ibv_ah_attr *attr)
{
	int index;

	*attr = conn->peer_address;
	if (attr->port_num)
		return 0;
	index = gid_find(conn->device, &conn->id->route.addr.addr.ibaddr.sgid);
	if (index < 0)
		return EADDRNOTAVAIL;
	attr->port_num = (uint8_t)conn->device->attr.port;
	attr->grh.sgid_index = (uint8_t)index;
	return 0;
}

DAT_RETURN ib_ah_create(struct ib_conn *conn, struct ib_pd *pd, struct ib_ah **ah, uint32_t *qp_num)
{
	struct ib_ah *new = calloc(1, sizeof(*new));
	struct ibv_ah_attr attr;
	int error;

	if (!new)
		return DAT_ERROR(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_MEMORY);
	error = address_of(conn, &attr);
	if (!error) {
		new->ah = ibv_create_ah(pd->pd, &attr);
		error = new->ah ? 0 : errno;
	}
	if (error) {
		free(new);
		return ib_error(error, "ibv_create_ah", conn->device->attr.device_name);
	}
	new->qkey = conn->peer_qkey;
	*ah = new;
	*qp_num = conn->peer_qp;
	return DAT_SUCCESS;
}

void ib_ah_destroy(struct ib_ah *ah)
{
	int error = ah ? ibv_destroy_ah(ah->ah) : 0;

	if (error)
		ib_error(error, "ibv_destroy_ah", "address handle");
	free(ah);
}
