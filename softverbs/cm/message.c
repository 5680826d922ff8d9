/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Messages between identifiers, and what the links report to the connection manager. */
#include <errno.h>
#include <string.h>
#include "softverbs/cm/cm.h"
#include "softverbs/base/log_from.h"
#include "softverbs/link/cm_calls.h"
#include "util/log.h"

_Static_assert(sizeof(struct cm_message) <= SV_MSG_MAX, "a message fits a link");

/* ---- the addressed identifier ---- */

/* Finds the identifier made by a request of `remote`, an identifier of the peer that does not know this
 * side's number yet. */
static struct cm_id *requested_by_locked(const struct sv_peer *peer, uint32_t remote)
{
	uint32_t cursor = 0;
	struct cm_id *id;

	while ((id = sv_cm_id_next_locked(&cursor)))
		if (id->peer == peer && id->remote == remote && !id->active)
			break;
	return id;
}

static struct cm_id *addressee_locked(const struct sv_peer *peer, const struct cm_message *message)
{
	struct cm_id *id;

	if (message->kind == CM_MSG_REJ && !message->to)
		return requested_by_locked(peer, message->from);
	id = sv_cm_id_by_number_locked(message->to);
	if (!id || id->peer != peer)
		return NULL;
	return !id->remote || !message->from || id->remote == message->from ? id : NULL;
}

/* ---- send ---- */

/* A message between two identifiers of this process is lost only for want of memory, and then no link ends to
 * notify the other identifier. */
static void message_lost_locked(struct sv_peer *peer, const struct cm_message *message)
{
	struct cm_id *id = peer == sv_peer_self() ? addressee_locked(peer, message) : NULL;

	if (id)
		sv_cm_disconnect_lost_locked(id);
}

static int send_locked(struct sv_peer *peer, const struct cm_message *message)
{
	uint8_t bytes[CM_WIRE_SIZE];
	int error;

	if (peer->far) {
		sv_cm_wire_write(bytes, message);
		error = sv_peer_send(peer, SV_MSG_CM, bytes, sizeof(bytes), -1);
	} else {
		error = sv_peer_send(peer, SV_MSG_CM, message, sizeof(*message), -1);
	}
	if (error) {
		log_at(LOG_NOTE, "rdma_cm: slot %u: message %u: %s", peer->slot, message->kind,
		       strerror(error));
		message_lost_locked(peer, message);
	}
	return error;
}

int sv_cm_message_send_data_locked(struct cm_id *id, struct cm_message *message)
{
	message->from = id->number;
	message->to = id->remote;
	return send_locked(id->peer, message);
}

int sv_cm_message_send_locked(struct cm_id *id, enum cm_kind kind)
{
	struct cm_message message = { .kind = kind };

	return sv_cm_message_send_data_locked(id, &message);
}

/* Sends a reject for an identifier that is absent on one side. */
void sv_cm_message_reject_locked(struct sv_peer *peer, uint32_t from, uint32_t to,
				 enum cm_reason reason)
{
	struct cm_message message = {
		.kind = CM_MSG_REJ, .reason = reason, .from = from, .to = to
	};

	send_locked(peer, &message);
}

/* ---- receive ---- */

/* The addressed identifier is destroyed: answers, so that the sender does not wait forever. */
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
	sv_cm_connect_answered_locked(id);
	id->remote = message->from;
	sv_engine_timer_disarm(&id->timer);
}

static void dispatch_locked(struct cm_id *id, const struct cm_message *message)
{
	switch ((enum cm_kind)message->kind) {
	case CM_MSG_MRA: queued_locked(id, message); break;
	case CM_MSG_REP: sv_cm_connect_reply_locked(id, message); break;
	case CM_MSG_RTU: sv_cm_accept_complete_locked(id); break;
	case CM_MSG_REJ: sv_cm_rejected_locked(id, message); break;
	case CM_MSG_DREQ: sv_cm_disconnect_request_locked(id); break;
	case CM_MSG_DREP: sv_cm_disconnect_reply_locked(id); break;
	case CM_MSG_REQ: /* has no addressee */ break;
	}
}

static void message_dispatch(struct sv_peer *peer, const struct cm_message *message)
{
	struct cm_id *id;

	sv_cm_lock();
	if (message->kind == CM_MSG_REQ) {
		sv_cm_listen_request_locked(peer, message);
	} else {
		id = addressee_locked(peer, message);
		if (id)
			dispatch_locked(id, message);
		else
			message_stray_locked(peer, message);
	}
	sv_cm_unlock();
}

static bool cm_far_message(struct sv_peer *peer, const uint8_t *bytes, size_t size)
{
	struct cm_message message;

	if (!sv_cm_wire_read(bytes, size, &message))
		return false;
	message_dispatch(peer, &message);
	return true;
}

static void cm_message(struct sv_peer *peer, const void *payload, size_t size)
{
	struct cm_message message;

	if (size != sizeof(message)) {
		sv_log_from(sv_source_process(peer->pid), LOG_WARN,
			    "rdma_cm: process %d: malformed message of %zu bytes", (int)peer->pid,
			    size);
		return;
	}
	memcpy(&message, payload, sizeof(message));
	message_dispatch(peer, &message);
}

/* ---- links ---- */

static void cm_peer_ready(struct sv_peer *peer)
{
	uint32_t cursor = 0;
	struct cm_id *id;

	sv_cm_lock();
	while ((id = sv_cm_id_next_locked(&cursor))) {
		if (!id->wants_link || id->slot != peer->slot)
			continue;
		sv_peer_hold(peer);
		sv_cm_connect_link_ready_locked(id, peer);
	}
	sv_cm_unlock();
}

static void cm_peer_unreachable(uint16_t slot, int error)
{
	uint32_t cursor = 0;
	struct cm_id *id;

	if (error == ECONNRESET) /* the process ended during the handshake */
		error = ECONNREFUSED;
	sv_cm_lock();
	while ((id = sv_cm_id_next_locked(&cursor))) {
		if (!id->wants_link || id->slot != slot)
			continue;
		id->wants_link = false;
		if (error ==
		    /* the process is alive and slow: a request has a longer timeout than a link */
		    ETIMEDOUT)
			sv_cm_connect_retry_locked(id);
		else
			sv_cm_connect_refused_locked(id, error);
	}
	sv_cm_unlock();
}

static void cm_peer_gone(struct sv_peer *peer)
{
	uint32_t cursor = 0;
	struct cm_id *id;

	sv_cm_lock();
	while ((id = sv_cm_id_next_locked(&cursor)))
		if (id->peer == peer)
			sv_cm_disconnect_lost_locked(id);
	sv_cm_unlock();
}

/* ---- calls from softverbs/link ---- */

static const struct sv_cm_calls cm_calls = {
	.message = cm_message,
	.far_message = cm_far_message,
	.peer_ready = cm_peer_ready,
	.peer_unreachable = cm_peer_unreachable,
	.peer_gone = cm_peer_gone,
	.fork_begin = sv_cm_device_fork_prepare,
	.fork_end = sv_cm_device_fork_end,
	.fork_prepare = sv_cm_ids_fork_prepare,
	.fork_parent = sv_cm_ids_fork_parent,
	.fork_child = sv_cm_ids_fork_child,
};

__attribute__((constructor)) static void cm_register(void)
{
	sv_cm_calls_set(&cm_calls);
}
