/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Output and input of links between hosts. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include "softverbs/fabric/frames.h"
#include "softverbs/fabric/link.h"
#include "softverbs/fabric/ready_links.h"
#include "softverbs/link/runtime.h"

#define READS 8u /* of a link in a row */

/* ---- output ---- */

void sv_fabric_link_forget(struct fabric_link *link)
{
	struct fabric_out *out;

	while ((out = STAILQ_FIRST(&link->out))) {
		STAILQ_REMOVE_HEAD(&link->out, entry);
		free(out);
	}
}

/* Sends what the socket takes, and keeps the rest. Takes ownership of `out`. */
int sv_fabric_link_out_locked(struct fabric_link *link, struct fabric_out *out)
{
	ssize_t sent = -1;
	bool begins = false;

	if (link->state == FABRIC_DOWN || link->handler.fd < 0) {
		free(out);
		return EPIPE;
	}
	link->backlog.queued += out->size;
	if (STAILQ_EMPTY(&link->out)) {
		sent = send(link->handler.fd, fabric_out_frame(out), out->size,
			    MSG_NOSIGNAL | MSG_DONTWAIT);
		link->backlog.left += sent < 0 ? 0 : (uint64_t)sent;
		if (sent == (ssize_t)out->size) {
			free(out);
			return 0;
		}
		/* other errors end the link when the engine tries again */
		out->sent = sent < 0 ? 0 : (size_t)sent;
		begins = true;
	}
	STAILQ_INSERT_TAIL(&link->out, out, entry);
	if (begins)
		sv_engine_fd_modify(&link->handler, sv_fabric_link_events_locked(link));
	return 0;
}

int sv_fabric_link_send_locked(struct fabric_link *link, enum wire_type type, const void *payload,
			       size_t size)
{
	struct fabric_out *out = sv_fabric_out_new(type, size);

	if (!out)
		return ENOMEM;
	memcpy(fabric_out_payload(out), payload, size);
	return sv_fabric_link_out_locked(link, out);
}

int sv_fabric_link_flush(struct fabric_link *link)
{
	struct fabric_out *out;
	ssize_t sent;
	bool waited;
	int error = 0;

	sv_fabric_lock();
	while ((out = STAILQ_FIRST(&link->out))) {
		sent = send(link->handler.fd, fabric_out_frame(out) + out->sent,
			    out->size - out->sent, MSG_NOSIGNAL | MSG_DONTWAIT);
		if (sent < 0) {
			error = errno == EAGAIN || errno == EINTR ? 0 : errno;
			break;
		}
		out->sent += (size_t)sent;
		link->backlog.left += (uint64_t)sent;
		if (out->sent < out->size)
			break;
		STAILQ_REMOVE_HEAD(&link->out, entry);
		free(out);
	}
	if (!out)
		sv_engine_fd_modify(&link->handler, sv_fabric_link_events_locked(link));
	waited = link->backlog.waited;
	link->backlog.waited = false;
	sv_fabric_unlock();
	if (waited)
		sv_runtime_client()->doorbell(); /* continues the send queues that wait */
	return error;
}

/* ---- input ---- */

static int input_widen(struct fabric_link *link)
{
	uint8_t *in;

	if (link->in != link->first)
		return 0;
	in = malloc(WIRE_HEADER + WIRE_FRAME_MAX);
	if (!in)
		return ENOMEM;
	memcpy(in, link->in, link->in_have);
	link->in = in;
	link->in_size = WIRE_HEADER + WIRE_FRAME_MAX;
	return 0;
}

static void kind_note(struct fabric_link *link, enum wire_type type)
{
	link->has_cm |= type == WIRE_CM;
	link->has_data |= wire_is_data(type);
}

/* Consumes what is complete, until the link is ready, or from then on. 0, or -1 where sv_fabric_link_read returns false. */
static int input_use(struct fabric_link *link)
{
	bool is_ready = link->state == FABRIC_READY;
	size_t used = 0;
	ssize_t part = 1;

	while (part > 0 && used < link->in_have && link->state != FABRIC_DOWN &&
	       is_ready == (link->state == FABRIC_READY)) {
		const uint8_t *bytes = link->in + used;
		size_t size = link->in_have - used;

		part = is_ready ? sv_fabric_frame_read(link->peer, bytes, size, link->in_ready)
				: sv_fabric_opening_read(link, bytes, size);
		if (part > 0 && is_ready)
			kind_note(link, wire_type_of(bytes));
		if (part > 0)
			used += (size_t)part;
	}
	link->in_have -= used;
	memmove(link->in, link->in + used, link->in_have);
	if (part < 0 || link->state == FABRIC_DOWN)
		return -1;
	return link->state == FABRIC_READY ? input_widen(link) : 0;
}

bool sv_fabric_link_read(struct fabric_link *link)
{
	bool was_ready = link->state == FABRIC_READY;
	size_t room;
	ssize_t got;

	if (link->in_have && input_use(link))
		return false;
	for (unsigned i = 0; i < READS && was_ready == (link->state == FABRIC_READY); i++) {
		room = link->in_size - link->in_have;
		got = recv(link->handler.fd, link->in + link->in_have, room, MSG_DONTWAIT);
		if (got < 0 && (errno == EAGAIN || errno == EINTR))
			return true;
		if (got <= 0) {
			if (!link->in_ready) /* else the engine will find the same */
				link->error = link->error ? link->error : got ? errno : ECONNRESET;
			return false;
		}
		link->in_have += (size_t)got;
		if (input_use(link))
			return false;
		if ((size_t)got < room) /* what has come since is reported */
			return true;
	}
	return true;
}
