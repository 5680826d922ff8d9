/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Messages from the endpoint to peers: those under way, and those that wait where the provider takes no more. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include "softverbs/fabric/endpoint_out.h"
#include "softverbs/fabric/frames.h"
#include "softverbs/fabric/transport.h"
#include "util/log.h"

static struct {
	const struct sv_endpoint_calls *calls;
	struct sv_endpoint *endpoint;
	void (*is_stuck)(void);
	_Atomic(uint32_t) stuck_count; /* length of `stuck` */
	/* inside the fabric's lock */
	LIST_HEAD(, fabric_peer) stuck; /* they have frames that could not be sent yet */
	unsigned flying;
} outs;

void sv_fabric_link_break_locked(struct fabric_peer *peer, const char *what, int error)
{
	if (!peer->link)
		return;
	log_at(LOG_NOTE, "softverbs: %s: %s: %s; its link ends", peer->link->name, what,
	       strerror(error));
	shutdown(peer->link->handler.fd, SHUT_RDWR);
}

static void frame_sent_locked(struct fabric_peer *peer, const struct fabric_out *out)
{
	peer->backlog.left += out->size;
	if (peer->backlog.waited)
		sv_peer_ring(sv_peer_self()); /* the engine continues the send queues that wait */
	peer->backlog.waited = false;
}

/* Sends a frame and returns true, or keeps nothing of it. A frame under way holds its peer. */
static bool frame_send_locked(struct fabric_peer *peer, struct fabric_out *out)
{
	int error;

	out->to = peer;
	wire_put(out->bytes, peer->token, WIRE_TOKEN);
	sv_fabric_order_write(&peer->order, out->bytes + WIRE_TOKEN);
	sv_peer_hold(&peer->peer);
	outs.flying++;
	error = outs.calls->send(outs.endpoint, peer->remote, &out->op, out->bytes,
				 WIRE_TOKEN + out->size);
	peer->order.sent += error != EAGAIN;
	if (error == EINPROGRESS)
		return true;
	outs.flying--;
	sv_peer_put(&peer->peer); /* not the last one: it is linked */
	if (error == EAGAIN)
		return false;
	frame_sent_locked(peer, out);
	free(out);
	if (error)
		sv_fabric_link_break_locked(peer, "a message is refused", error);
	return true;
}

static void stuck_set_locked(struct fabric_peer *peer, bool stuck)
{
	if (peer->stuck == stuck)
		return;
	peer->stuck = stuck;
	if (stuck)
		LIST_INSERT_HEAD(&outs.stuck, peer, stuck_entry);
	else
		LIST_REMOVE(peer, stuck_entry);
	atomic_fetch_add_explicit(&outs.stuck_count, stuck ? 1 : UINT32_MAX, memory_order_relaxed);
}

void sv_fabric_waiting_send_locked(struct fabric_peer *peer)
{
	struct fabric_out *out;

	while ((out = STAILQ_FIRST(&peer->waiting))) {
		STAILQ_REMOVE_HEAD(&peer->waiting, entry);
		if (frame_send_locked(peer, out))
			continue;
		STAILQ_INSERT_HEAD(&peer->waiting, out, entry);
		break;
	}
	stuck_set_locked(peer, out);
}

void sv_fabric_endpoint_send_locked(struct fabric_peer *peer, struct fabric_out *out)
{
	peer->backlog.queued += out->size;
	if (peer->opened && STAILQ_EMPTY(&peer->waiting) && frame_send_locked(peer, out))
		return;
	STAILQ_INSERT_TAIL(&peer->waiting, out, entry);
	if (!peer->opened || peer->stuck)
		return;
	stuck_set_locked(peer, true);
	outs.is_stuck();
}

void sv_fabric_stuck_send(void)
{
	struct fabric_peer *peer, *next;

	if (!atomic_load_explicit(&outs.stuck_count, memory_order_relaxed))
		return;
	sv_fabric_lock();
	for (peer = LIST_FIRST(&outs.stuck); peer; peer = next) {
		next = LIST_NEXT(peer, stuck_entry);
		sv_fabric_waiting_send_locked(peer);
	}
	sv_fabric_unlock();
}

void sv_fabric_message_sent(struct sv_endpoint_op *op, int error)
{
	struct fabric_out *out = (struct fabric_out *)(void *)op; /* its first member */
	struct fabric_peer *peer = out->to;

	sv_fabric_lock();
	outs.flying--;
	frame_sent_locked(peer, out);
	if (error)
		sv_fabric_link_break_locked(peer, "a message is lost", error);
	sv_fabric_unlock();
	free(out);
	sv_peer_put(&peer->peer);
}

void sv_fabric_waiting_drop_locked(struct fabric_peer *peer)
{
	struct fabric_out *out;

	stuck_set_locked(peer, false);
	while ((out = STAILQ_FIRST(&peer->waiting))) {
		STAILQ_REMOVE_HEAD(&peer->waiting, entry);
		free(out);
	}
}

bool sv_fabric_any_stuck_locked(void)
{
	return !LIST_EMPTY(&outs.stuck);
}

bool sv_fabric_outs_are_idle_locked(void)
{
	return !outs.flying && LIST_EMPTY(&outs.stuck);
}

void sv_fabric_outs_open(const struct sv_endpoint_calls *calls, struct sv_endpoint *endpoint,
			 void (*is_stuck)(void))
{
	outs.calls = calls;
	outs.endpoint = endpoint;
	outs.is_stuck = is_stuck;
	sv_fabric_outs_forget();
}

void sv_fabric_outs_forget(void)
{
	LIST_INIT(&outs.stuck);
	atomic_store(&outs.stuck_count, 0);
	outs.flying = 0;
}
