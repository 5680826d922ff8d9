/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* The UD CM: handles received messages. */
#include <errno.h>
#include <string.h>
#include "dapl/cm/ucm.h"
#include "util/log.h"

/* Rejects a request for a port without a listener: sends the message back with the two sides exchanged. */
static void request_refuse(struct cm_channel *channel, const struct cm_message *request)
{
	struct cm_message answer = { .ver = CM_VERSION,
				     .op = CM_REJ_CM,
				     .sport = request->dport,
				     .dport = request->sport,
				     .sqpn = channel->ucm->qp->qp_num,
				     .dqpn = request->sqpn };
	unsigned char bytes[CM_HEADER];
	struct cm_endpoint from, own;

	cm_endpoint_read(&from, request->saddr);
	cm_endpoint_read(&own, request->daddr);
	own.lid = channel->port.lid;
	cm_endpoint_write(&own, answer.saddr);
	memcpy(answer.daddr, request->saddr, CM_ENDPOINT);
	cm_message_write(&answer, bytes);
	ucm_send(channel, from.lid, request->sqpn, bytes, sizeof(bytes));
}

/* Sets the addresses of a request. A consumer of datagrams can connect to the source address: it holds the QP
 * number of the peer's CM in place of the endpoint's. */
static void address_of_request(struct cm_id *id)
{
	struct cm_endpoint peer = id->endpoint;

	peer.family = AF_INET6;
	if (cm_is_datagram(id))
		peer.qpn = id->peer.sqpn;
	cm_endpoint_write(&peer, (unsigned char *)&id->id.route.addr.dst_storage);
	id->remote = (uint16_t)id->peer.sport;
}

static void request_new(struct cm_channel *channel, const struct cm_message *message,
			const void *data)
{
	struct cm_endpoint from;
	struct cm_id *listener, *id;
	struct ucm_conn *conn;

	cm_endpoint_read(&from, message->saddr);
	listener = cm_listener_find(channel, (uint16_t)message->dport, from.qp_type);
	if (!listener) {
		request_refuse(channel, message);
		return;
	}
	id = cm_id_new(channel, NULL, listener->id.ps);
	conn = id ? ucm_conn_new(channel, id, false) : NULL;
	if (!conn) {
		log_at(LOG_WARN, "UD CM: no memory for a request; its peer will repeat it");
		if (id)
			cm_id_free(id);
		return;
	}
	conn->state = UCM_REQUESTED;
	conn->lid = from.lid;
	conn->head.sport = message->dport & 0xffff;
	conn->head.dport = message->sport & 0xffff;
	conn->head.dqpn = message->sqpn;
	conn->head.d_id = message->s_id;
	memcpy(conn->head.daddr, message->saddr, CM_ENDPOINT);
	id->local = (uint16_t)message->dport;
	cm_peer_copy(id, message, data);
	cm_id_request(id, listener);
	address_of_request(id);
	cm_event_request(listener, id);
}

/* Handles a request. One that is marked as repeated is looked up first, since it may have been answered. */
static void request(struct cm_channel *channel, const struct cm_message *message, const void *data)
{
	struct ucm_conn *conn = message->rtns ? ucm_conn_of_request(channel, message) : NULL;

	if (!conn)
		request_new(channel, message, data);
	else if (conn->state == UCM_ACCEPTED || conn->state == UCM_TIMEWAIT)
		ucm_repeat(conn);
}

static void reply(struct ucm_conn *conn, const struct cm_message *message, const void *data)
{
	struct cm_id *id = conn->id;

	if (conn->state == UCM_CONNECTED || conn->state == UCM_TIMEWAIT) {
		ucm_repeat(conn); /* the RTU, or the message sent after it, was lost */
		return;
	}
	if (conn->state != UCM_REQUESTING || !id)
		return;
	conn->head.d_id = message->s_id;
	memcpy(conn->head.daddr, message->saddr, CM_ENDPOINT);
	cm_peer_copy(id, message, data);
	ucm_settle(conn, UCM_ANSWERED);
	if (cm_is_datagram(id)) {
		ucm_say(conn, CM_RTU, NULL, 0);
		ucm_time_wait(conn);
	}
	cm_event_answer(id);
}

static void request_rejected(struct ucm_conn *conn, const struct cm_message *message,
			     const void *data)
{
	struct cm_id *id = conn->id;
	bool by_user = message->op == CM_REJ_USER;

	if (conn->state == UCM_ACCEPTED && id) {
		id->state = CM_OVER;
		if (!cm_is_datagram(id))
			cm_event_post(id, CM_SLOT_ANSWER, RDMA_CM_EVENT_CONNECT_ERROR, -EPROTO);
	} else if (conn->state == UCM_REQUESTING && id) {
		cm_peer_copy(id, message, data);
		if (!by_user)
			id->peer.p_size = 0;
		cm_event_rejected(id, by_user ? CM_REJECTED_BY_APP : CM_REJECTED_BY_CM);
	} else if (conn->state != UCM_ACCEPTED) {
		return;
	}
	ucm_conn_free(conn);
}

static void ready_to_use(struct ucm_conn *conn)
{
	if (conn->state != UCM_ACCEPTED)
		return;
	conn->frame_size = 0;
	ucm_settle(conn, UCM_CONNECTED);
	if (!conn->id || cm_is_datagram(conn->id)) {
		ucm_time_wait(conn);
		return;
	}
	conn->id->state = CM_CONNECTED;
	cm_event_post(conn->id, CM_SLOT_ANSWER, RDMA_CM_EVENT_ESTABLISHED, 0);
}

/* Handles a DREQ. A peer that sends it before its RTU was received is connected first. */
static void parts(struct ucm_conn *conn)
{
	if (conn->state == UCM_ACCEPTED)
		ready_to_use(conn);
	switch (conn->state) {
	case UCM_CONNECTED:
	case UCM_PARTING:
		ucm_say(conn, CM_DREP, NULL, 0);
		ucm_disconnected(conn);
		break;
	case UCM_TIMEWAIT: ucm_say(conn, CM_DREP, NULL, 0); break;
	default: break;
	}
}

/* Handles a datagram. In a message without data, p_size is left over from an earlier message, so it is
 * limited to the bytes received. */
void ucm_receive(struct cm_channel *channel, const unsigned char *bytes, size_t size)
{
	struct cm_message message;
	struct ucm_conn *conn;

	if (size < CM_HEADER)
		return;
	cm_message_read(&message, bytes);
	if (message.ver < CM_VERSION_MIN)
		return;
	if (message.p_size > size - CM_HEADER)
		message.p_size = (uint16_t)(size - CM_HEADER);
	if (message.p_size > CM_DATA_OLD)
		message.p_size = CM_DATA_OLD;
	if (message.op == CM_REQ) {
		request(channel, &message, bytes + CM_HEADER);
		return;
	}
	conn = ucm_conn_find(channel, &message);
	if (!conn)
		return;
	switch (message.op) {
	case CM_REP: reply(conn, &message, bytes + CM_HEADER); break;
	case CM_REJ_USER:
	case CM_REJ_CM: request_rejected(conn, &message, bytes + CM_HEADER); break;
	case CM_RTU: ready_to_use(conn); break;
	case CM_DREQ: parts(conn); break;
	case CM_DREP:
		if (conn->state == UCM_PARTING)
			ucm_disconnected(conn);
		break;
	default: break;
	}
}
