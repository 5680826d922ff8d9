/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Messages between identifiers, and what the links report to the connection manager. */
#include <errno.h>
#include <string.h>
#include "softverbs/cm.h"
#include "softverbs/log_from.h"
#include "util/log.h"

_Static_assert(sizeof(struct cm_message) <= SV_MSG_MAX, "a message fits a link");

/* ---- addressees ---- */

/* The request of an identifier over there that has not been told our number. */
static struct cm_id *requested_by_locked(const struct sv_peer *peer, uint32_t remote)
{
	uint32_t cursor = 0;
	struct cm_id *id;

	while ((id = id_next_locked(&cursor)))
		if (id->peer == peer && id->remote == remote && !id->active)
			break;
	return id;
}

static struct cm_id *addressee_locked(const struct sv_peer *peer, const struct cm_message *message)
{
	struct cm_id *id;

	if (message->kind == CM_MSG_REJ && !message->to)
		return requested_by_locked(peer, message->from);
	id = id_by_number_locked(message->to);
	if (!id || id->peer != peer)
		return NULL;
	return !id->remote || !message->from || id->remote == message->from ? id : NULL;
}

/* ---- sending ---- */

/*
 * Between two identifiers of this process a message is lost only for want of memory, and no link
 * will end to tell the other one.
 */
static void message_lost_locked(struct sv_peer *peer, const struct cm_message *message)
{
	struct cm_id *id = peer == peer_self() ? addressee_locked(peer, message) : NULL;

	if (id)
		disconnect_lost_locked(id);
}

static int send_locked(struct sv_peer *peer, const struct cm_message *message)
{
	int error = peer_send(peer, SV_MSG_CM, message, sizeof(*message), -1);

	if (error) {
		log_at(LOG_NOTE, "rdma_cm: slot %u: message %u: %s", peer->slot, message->kind,
		       strerror(error));
		message_lost_locked(peer, message);
	}
	return error;
}

int message_send_data_locked(struct cm_id *id, struct cm_message *message)
{
	message->from = id->number;
	message->to = id->remote;
	return send_locked(id->peer, message);
}

int message_send_locked(struct cm_id *id, enum cm_kind kind)
{
	struct cm_message message = { .kind = kind };

	return message_send_data_locked(id, &message);
}

/* Without an identifier on this side, or without one known on the other. */
void message_reject_locked(struct sv_peer *peer, uint32_t from, uint32_t to, enum cm_reason reason)
{
	struct cm_message message = {
		.kind = CM_MSG_REJ, .reason = reason, .from = from, .to = to
	};

	send_locked(peer, &message);
}

/* ---- receiving ---- */

/* The identifier is destroyed. Who waits for its word shall not wait for ever. */
static void message_stray_locked(struct sv_peer *peer, const struct cm_message *message)
{
	struct cm_message answer = { .to = message->from };

	if (message->kind == CM_MSG_DREQ) {
		answer.kind = CM_MSG_DREP;
		send_locked(peer, &answer);
	} else if (message->kind == CM_MSG_REP) {
		answer.kind = CM_MSG_REJ;
		answer.reason = CM_UNKNOWN_ID;
		send_locked(peer, &answer);
	}
}

static void queued_locked(struct cm_id *id, const struct cm_message *message)
{
	if (id->state != CM_CONNECTING)
		return;
	connect_heard_locked(id);
	id->remote = message->from;
	engine_timer_disarm(&id->timer);
}

static void dispatch_locked(struct cm_id *id, const struct cm_message *message)
{
	switch ((enum cm_kind)message->kind) {
	case CM_MSG_MRA: queued_locked(id, message); break;
	case CM_MSG_REP: connect_reply_locked(id, message); break;
	case CM_MSG_RTU: accept_complete_locked(id); break;
	case CM_MSG_REJ: rejected_locked(id, message); break;
	case CM_MSG_DREQ: disconnect_request_locked(id); break;
	case CM_MSG_DREP: disconnect_reply_locked(id); break;
	case CM_MSG_REQ: /* has no addressee */ break;
	}
}

void cm_message(struct sv_peer *peer, const void *payload, size_t size)
{
	struct cm_message message;
	struct cm_id *id;

	if (size != sizeof(message)) {
		sv_log_from(sv_source_process(peer->pid), LOG_WARN,
			    "rdma_cm: process %d: malformed message of %zu bytes", (int)peer->pid,
			    size);
		return;
	}
	memcpy(&message, payload, sizeof(message));
	cm_lock();
	if (message.kind == CM_MSG_REQ) {
		listen_request_locked(peer, &message);
	} else {
		id = addressee_locked(peer, &message);
		if (id)
			dispatch_locked(id, &message);
		else
			message_stray_locked(peer, &message);
	}
	cm_unlock();
}

/* ---- links ---- */

void cm_peer_ready(struct sv_peer *peer)
{
	uint32_t cursor = 0;
	struct cm_id *id;

	cm_lock();
	while ((id = id_next_locked(&cursor))) {
		if (!id->wants_link || id->slot != peer->slot)
			continue;
		peer_hold(peer);
		connect_link_ready_locked(id, peer);
	}
	cm_unlock();
}

void cm_slot_unreachable(uint16_t slot, int error)
{
	uint32_t cursor = 0;
	struct cm_id *id;

	if (error == ECONNRESET) /* it died while it said hello */
		error = ECONNREFUSED;
	cm_lock();
	while ((id = id_next_locked(&cursor))) {
		if (!id->wants_link || id->slot != slot)
			continue;
		id->wants_link = false;
		if (error ==
		    ETIMEDOUT) /* it lives, and is slow: the request has more time than a link */
			connect_retry_locked(id);
		else
			connect_refused_locked(id, error);
	}
	cm_unlock();
}

void cm_peer_gone(struct sv_peer *peer)
{
	uint32_t cursor = 0;
	struct cm_id *id;

	cm_lock();
	while ((id = id_next_locked(&cursor)))
		if (id->peer == peer)
			disconnect_lost_locked(id);
	cm_unlock();
}
