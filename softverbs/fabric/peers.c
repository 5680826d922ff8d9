/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* The list of linked processes of other hosts, and the frames that they send. */
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include "softverbs/fabric/frames.h"
#include "softverbs/fabric/data.h"
#include "softverbs/fabric/endpoint.h"
#include "softverbs/fabric/ud.h"
#include "softverbs/fabric/transport.h"
#include "softverbs/link/cm_calls.h"
#include "util/clock.h"
#include "util/log.h"

#define LEAVE_STEP  NSEC_PER_MSEC
#define LEAVE_STEPS 1000u /* until the peer's messages are no longer waited for */

static LIST_HEAD(, fabric_peer) peers = LIST_HEAD_INITIALIZER(peers); /* fabric's lock */

static struct fabric_peer *peer_by_nonce_locked(const uint64_t nonce[2])
{
	struct fabric_peer *peer;

	LIST_FOREACH(peer, &peers, entry)
		if (!memcmp(peer->peer.nonce, nonce, sizeof(peer->peer.nonce)))
			break;
	return peer;
}

static bool peer_has_address(const struct fabric_peer *peer, const struct sv_ip *host)
{
	for (unsigned i = 0; i < peer->address_count; i++)
		if (sv_ip_same(&peer->address[i], host))
			return true;
	return false;
}

static void address_note_locked(struct fabric_peer *peer, const struct sv_ip *host)
{
	if (!peer_has_address(peer, host) && peer->address_count < FABRIC_ADDRESSES)
		peer->address[peer->address_count++] = *host;
}

struct sv_peer *sv_fabric_peer_linked(const uint64_t nonce[2], const struct sv_ip *host)
{
	struct fabric_peer *peer;

	sv_fabric_lock();
	peer = peer_by_nonce_locked(nonce);
	if (peer) {
		address_note_locked(peer, host);
		sv_peer_hold(&peer->peer);
	}
	sv_fabric_unlock();
	return peer ? &peer->peer : NULL;
}

static struct fabric_peer *peer_new(uint16_t slot, const uint64_t nonce[2])
{
	struct fabric_peer *peer = calloc(1, sizeof(*peer));

	if (!peer)
		return NULL;
	peer->peer.slot = slot;
	memcpy(peer->peer.nonce, nonce, sizeof(peer->peer.nonce));
	peer->peer.doorbell = -1;
	atomic_init(&peer->peer.memory, -1);
	peer->peer.far = peer;
	STAILQ_INIT(&peer->waiting);
	sv_fabric_order_open(&peer->order);
	atomic_init(&peer->peer.refs, 1);
	return peer;
}

static struct fabric_peer *peer_add_locked(struct fabric_link *link, uint16_t slot,
					   const uint64_t nonce[2], const struct wire_end *end)
{
	struct fabric_peer *peer = peer_new(slot, nonce);
	int error = peer ? sv_fabric_endpoint_peer_add_locked(peer, end, &link->host) : ENOMEM;

	if (error) {
		log_at(LOG_ERROR, "softverbs: %s: no peer: %s", link->name, strerror(error));
		free(peer);
		errno = error;
		return NULL;
	}
	peer->link = link;
	LIST_INSERT_HEAD(&peers, peer, entry);
	return peer;
}

struct sv_peer *sv_fabric_peer_ready_locked(struct fabric_link *link, uint16_t slot,
					    const uint64_t nonce[2], const struct wire_end *end)
{
	struct fabric_peer *peer = peer_by_nonce_locked(nonce);

	if (!peer) {
		peer = peer_add_locked(link, slot, nonce, end);
		if (!peer)
			return NULL;
	}
	if (link->active) {
		peer->token = end->token; /* the one that is known there for certain */
		sv_fabric_endpoint_peer_known_locked(peer);
	}
	sv_peer_hold(&peer->peer); /* for the caller */
	address_note_locked(peer, &link->host);
	link->peer = peer;
	sv_fabric_link_opened_locked(link);
	sv_engine_timer_cancel(&link->timer);
	log_at(LOG_TRACE, "softverbs: %s: linked with slot %u there", link->name, slot);
	return &peer->peer;
}

struct sv_peer *sv_fabric_peer_leave_locked(struct fabric_link *link)
{
	struct fabric_peer *peer = link->peer;

	link->peer = NULL;
	if (!peer || !peer->link)
		return NULL;
	peer->link = NULL;
	sv_fabric_endpoint_peer_leave_locked(peer);
	LIST_REMOVE(peer, entry);
	/* release: a thread that sees `dead` also sees that the link is gone */
	atomic_store_explicit(&peer->peer.dead, true, memory_order_release);
	return &peer->peer;
}

void sv_fabric_peer_free(struct sv_peer *peer)
{
	sv_fabric_endpoint_peer_free(peer->far);
	free(peer->far);
}

bool sv_fabric_peers_any_locked(bool (*is)(struct fabric_peer *))
{
	struct fabric_peer *peer;
	bool any = false;

	LIST_FOREACH(peer, &peers, entry)
		any |= is(peer);
	return any;
}

void sv_fabric_peers_fork_child(void)
{
	LIST_INIT(&peers); /* objects of the parent may point to them: they stay */
}

struct sv_peer *sv_fabric_peer_at(const struct sv_ip *host, uint16_t slot)
{
	struct fabric_peer *peer;

	sv_fabric_lock();
	LIST_FOREACH(peer, &peers, entry)
		if (peer->peer.slot == slot && peer_has_address(peer, host))
			break;
	if (peer)
		sv_peer_hold(&peer->peer);
	sv_fabric_unlock();
	return peer ? &peer->peer : NULL;
}

/* ---- frames ---- */

struct fabric_out *sv_fabric_out_new(enum wire_type type, size_t size)
{
	struct fabric_out *out = malloc(sizeof(*out) + WIRE_TOKEN + WIRE_HEADER + size);
	struct wire_frame frame = { .size = (uint32_t)size, .type = (uint16_t)type };

	if (!out)
		return NULL;
	out->size = WIRE_HEADER + size;
	out->sent = 0;
	sv_wire_header_write(fabric_out_frame(out), &frame);
	return out;
}

int sv_fabric_out_send(struct sv_peer *peer, struct fabric_out *out)
{
	int error = EPIPE;

	sv_fabric_lock();
	if (!peer->far->link) {
		free(out);
	} else if (sv_fabric_endpoint_is_open()) {
		sv_fabric_endpoint_send_locked(peer->far, out);
		error = 0;
	} else {
		error = sv_fabric_link_out_locked(peer->far->link, out);
	}
	sv_fabric_unlock();
	return error;
}

/* NULL after the end of the link. */
static struct fabric_backlog *backlog_of_locked(struct fabric_peer *peer)
{
	if (!peer->link)
		return NULL;
	return sv_fabric_endpoint_is_open() ? &peer->backlog : &peer->link->backlog;
}

bool sv_fabric_out_is_full(struct sv_peer *peer)
{
	const struct fabric_backlog *backlog;
	bool full;

	sv_fabric_lock();
	backlog = backlog_of_locked(peer->far);
	full = backlog && backlog->queued - backlog->left > FABRIC_BACKLOG;
	sv_fabric_unlock();
	return full;
}

bool sv_fabric_out_has_left(struct sv_peer *peer, uint64_t *mark)
{
	struct fabric_backlog *backlog;
	bool left = true;

	sv_fabric_lock();
	backlog = backlog_of_locked(peer->far);
	if (backlog) {
		if (!*mark)
			*mark = backlog->queued;
		left = backlog->left >= *mark;
		backlog->waited |= !left;
	}
	sv_fabric_unlock();
	return left;
}

int sv_fabric_send(struct sv_peer *peer, enum sv_msg type, const void *payload, size_t size)
{
	int error = EPIPE;

	if (type != SV_MSG_CM)
		return EINVAL; /* the others carry descriptors, or ring a doorbell of this host */
	sv_fabric_lock();
	if (peer->far->link)
		error = sv_fabric_link_send_locked(peer->far->link, WIRE_CM, payload, size);
	sv_fabric_unlock();
	return error;
}

static bool data_read(struct fabric_peer *from, const struct wire_frame *frame,
		      const uint8_t *payload)
{
	switch (frame->type) {
	case WIRE_REQUEST: return sv_far_request(from, payload, frame->size);
	case WIRE_DONE: return sv_far_answer(from, payload, frame->size);
	case WIRE_DATAGRAM: return sv_far_datagram(from, payload, frame->size);
	default: return false;
	}
}

static bool open_read(struct fabric_peer *from, const struct wire_frame *frame,
		      void (*open_locked)(struct fabric_peer *))
{
	sv_fabric_lock();
	open_locked(from);
	sv_fabric_unlock();
	return !frame->size;
}

bool sv_fabric_message_read(struct fabric_peer *from, const uint8_t *bytes, size_t size)
{
	uint8_t header[WIRE_HEADER] = { 0 };
	struct wire_frame frame;

	if (size < WIRE_HEADER)
		return false;
	memcpy(header, bytes, ORDER_NUMBER); /* without the number, see order.h */
	if (!sv_wire_header_read(header, &frame) || size != WIRE_HEADER + frame.size)
		return false;
	if (frame.type == WIRE_OPEN)
		return open_read(from, &frame, sv_fabric_endpoint_peer_opened_locked);
	return data_read(from, &frame, bytes + WIRE_HEADER);
}

/* ---- a peer that ends ---- */

static void leave_step(struct sv_timer *timer)
{
	struct fabric_link *link = (void *)((char *)timer - offsetof(struct fabric_link, timer));
	struct fabric_out *out;

	if (sv_fabric_endpoint_drain(link->peer) != link->last) {
		if (++link->steps < LEAVE_STEPS)
			sv_engine_timer_arm(&link->timer, clock_now() + LEAVE_STEP, leave_step);
		return;
	}
	out = sv_fabric_out_new(WIRE_LEFT, 0);
	sv_fabric_lock();
	if (out)
		sv_fabric_link_out_locked(link, out);
	sv_fabric_unlock();
}

static bool leave_read(struct fabric_peer *from, const uint8_t *payload, size_t size)
{
	struct fabric_link *link = from->link;

	if (size != WIRE_LEAVE_SIZE || !sv_fabric_endpoint_is_open())
		return false;
	if (link->handler.fd < 0)
		return true; /* it ends */
	link->last = (uint32_t)wire_get(&payload, WIRE_LEAVE_SIZE);
	link->steps = 0;
	leave_step(&link->timer);
	return true;
}

static bool left_read(struct fabric_peer *from, size_t size)
{
	sv_fabric_lock();
	from->leave = FABRIC_LEFT;
	sv_fabric_unlock();
	return !size;
}

/* ---- frames of a link ---- */

/* With an endpoint, what is not the engine's comes by that. */
static bool link_carries(enum wire_type type, bool data_only)
{
	return wire_is_data(type) ? !sv_fabric_endpoint_is_open() : !data_only;
}

ssize_t sv_fabric_frame_read(struct fabric_peer *from, const uint8_t *bytes, size_t size,
			     bool data_only)
{
	const uint8_t *payload = bytes + WIRE_HEADER;
	struct wire_frame frame;
	bool sound = false;

	if (size < WIRE_HEADER)
		return 0;
	if (!sv_wire_header_read(bytes, &frame))
		return -1;
	if (size < WIRE_HEADER + frame.size)
		return 0;
	if (!link_carries((enum wire_type)frame.type, data_only))
		return -1;
	if (frame.type == WIRE_OPEN)
		sound = open_read(from, &frame, sv_fabric_endpoint_peer_known_locked);
	else if (frame.type == WIRE_LEAVE)
		sound = leave_read(from, payload, frame.size);
	else if (frame.type == WIRE_LEFT)
		sound = left_read(from, frame.size);
	else if (frame.type == WIRE_CM)
		sound = sv_cm_far_message(&from->peer, payload, frame.size);
	else
		sound = data_read(from, &frame, payload);
	return sound ? (ssize_t)(WIRE_HEADER + frame.size) : -1;
}
