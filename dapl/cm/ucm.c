/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* The UD CM: messages over one QP for all connections of a port. */
#include <errno.h>
#include <string.h>
#include "dapl/cm/ucm.h"

/* ---- addresses: endpoints in the space of an IPv6 address, with a port that is never sent ---- */

static uint16_t port_get(const struct sockaddr *address)
{
	struct cm_endpoint endpoint;

	cm_endpoint_read(&endpoint, (const unsigned char *)address);
	return endpoint.port;
}

static void port_set(struct sockaddr *address, uint16_t port)
{
	struct cm_endpoint endpoint;

	cm_endpoint_read(&endpoint, (const unsigned char *)address);
	endpoint.port = port;
	cm_endpoint_write(&endpoint, (unsigned char *)address);
}

/* ---- endings ---- */

static void event_end(struct ucm_conn *conn, enum cm_slot slot, enum rdma_cm_event_type type)
{
	if (!conn->id || conn->id->state == CM_OVER)
		return;
	conn->id->state = CM_OVER;
	if (!cm_is_datagram(conn->id) || slot != CM_SLOT_END)
		cm_event_post(conn->id, slot, type, -ETIMEDOUT);
}

void ucm_disconnected(struct ucm_conn *conn)
{
	event_end(conn, CM_SLOT_END, RDMA_CM_EVENT_DISCONNECTED);
	ucm_time_wait(conn);
}

/* Ends a connection whose peer did not answer the last repetition. */
void ucm_given_up(struct ucm_conn *conn)
{
	if (conn->state == UCM_PARTING) {
		ucm_disconnected(conn);
		return;
	}
	if (conn->state == UCM_REQUESTING)
		event_end(conn, CM_SLOT_ANSWER, RDMA_CM_EVENT_UNREACHABLE);
	else if (conn->id && !cm_is_datagram(conn->id))
		event_end(conn, CM_SLOT_ANSWER, RDMA_CM_EVENT_CONNECT_ERROR);
	ucm_conn_free(conn);
}

/* ---- the calls ---- */

static void id_init(struct cm_id *id)
{
	(void)id;
}

static int listen_at(struct cm_id *id)
{
	uint32_t port;

	if (id->local)
		return cm_listener_find(id->channel, id->local, IBV_QPT_RC) ||
				       cm_listener_find(id->channel, id->local, IBV_QPT_UD)
			       ? EADDRINUSE
			       : 0;
	for (port = 1; port < UCM_PORTS; port++) {
		if (!cm_listener_find(id->channel, (uint16_t)port, IBV_QPT_RC) &&
		    !cm_listener_find(id->channel, (uint16_t)port, IBV_QPT_UD)) {
			id->local = (uint16_t)port;
			return 0;
		}
	}
	return EADDRINUSE;
}

static int ucm_ask(struct cm_id *id)
{
	struct ucm_conn *conn = ucm_conn_new(id->channel, id, true);
	struct cm_endpoint to;

	if (!conn)
		return ENOMEM;
	cm_endpoint_read(&to, (const unsigned char *)&id->id.route.addr.dst_storage);
	conn->lid = to.lid;
	conn->head.dqpn = to.qpn;
	conn->head.dport = id->remote;
	conn->head.rd_in = id->responder_resources;
	conn->head.mtu = id->channel->port.mtu;
	to.qpn = 0;
	to.port = 0;
	cm_endpoint_write(&to, conn->head.daddr);
	cm_endpoint_here(id, conn->head.saddr);
	id->local = (uint16_t)conn->head.sport;
	ucm_say(conn, CM_REQ, id->sent, id->sent_size);
	ucm_expect(conn, UCM_REQUESTING);
	return 0;
}

static int ucm_accept(struct cm_id *id, const void *data, uint16_t size)
{
	struct ucm_conn *conn = ucm_id_of(id)->conn;

	cm_endpoint_here(id, conn->head.saddr);
	conn->head.rd_in = id->responder_resources;
	conn->head.mtu = id->mtu;
	id->state = CM_ACCEPTED;
	ucm_say(conn, CM_REP, data, size);
	ucm_expect(conn, UCM_ACCEPTED);
	return 0;
}

static void ucm_reject(struct cm_id *id, enum cm_op op, const void *data, uint16_t size)
{
	struct ucm_conn *conn = ucm_id_of(id)->conn;

	cm_endpoint_here(id, conn->head.saddr);
	ucm_say(conn, op, data, size);
	ucm_time_wait(conn);
}

static int establish(struct cm_id *id)
{
	struct ucm_conn *conn = ucm_id_of(id)->conn;

	ucm_say(conn, CM_RTU, NULL, 0);
	ucm_settle(conn, UCM_CONNECTED);
	return 0;
}

static void conn_part(struct ucm_conn *conn)
{
	ucm_say(conn, CM_DREQ, NULL, 0);
	ucm_expect(conn, UCM_PARTING);
}

static int ucm_disconnect(struct cm_id *id)
{
	struct ucm_conn *conn = ucm_id_of(id)->conn;

	if (conn->state != UCM_CONNECTED)
		return EINVAL;
	conn_part(conn);
	return 0;
}

/* Detaches the connection, which remains until its last messages are sent. */
static void drop(struct cm_id *id)
{
	struct ucm_conn *conn = ucm_id_of(id)->conn;

	if (!conn)
		return;
	switch (conn->state) {
	case UCM_REQUESTING: ucm_conn_free(conn); return;
	case UCM_REQUESTED:
	case UCM_ANSWERED: ucm_reject(id, CM_REJ_CM, NULL, 0); break;
	case UCM_CONNECTED: conn_part(conn); break;
	case UCM_ACCEPTED:
		if (!cm_is_datagram(id))
			conn_part(conn);
		break;
	default: break;
	}
	conn->id = NULL;
	ucm_id_of(id)->conn = NULL;
}

const struct cm_transport cm_transport = {
	.family = AF_INET6,
	.address_size = CM_ENDPOINT,
	.port_get = port_get,
	.port_set = port_set,
	.open = ucm_open,
	.close = ucm_close,
	.id_size = sizeof(struct ucm_id),
	.id_init = id_init,
	.listen = listen_at,
	.connect = ucm_ask,
	.accept = ucm_accept,
	.reject = ucm_reject,
	.establish = establish,
	.disconnect = ucm_disconnect,
	.drop = drop,
};
