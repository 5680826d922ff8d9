/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* The messages of a link: sent without blocking, queued in order when the socket is full, and decoded on
 * arrival. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include "util/cancel.h"
#include "softverbs/base/foreign.h"
#include "softverbs/base/log_from.h"
#include "softverbs/link/cm_calls.h"
#include "softverbs/link/link_reader.h"
#include "softverbs/link/transport.h"
#include "softverbs/link/runtime.h"
#include "util/log.h"

#define OUT_MAX	    16384 /* limit of messages queued for a peer that does not read */
#define OUT_FDS_MAX 64	  /* limit of their descriptors */

#define HEADER (offsetof(struct link_message, wire.payload) - offsetof(struct link_message, wire))

void sv_close_all(int *fds, unsigned count)
{
	unsigned i;

	for (i = 0; i < count; i++) {
		if (fds[i] >= 0)
			close(fds[i]);
		fds[i] = -1;
	}
}

static void message_free(struct link_message *message)
{
	sv_close_all(message->fds, message->fd_count);
	free(message);
}

void sv_link_forget_messages(struct sv_link *link)
{
	struct link_message *message;

	while ((message = STAILQ_FIRST(&link->out))) {
		STAILQ_REMOVE_HEAD(&link->out, entry);
		message_free(message);
	}
}

/* ---- send ---- */

static int message_send(int fd, const void *wire, size_t size, const int *fds, unsigned fd_count)
{
	struct iovec iov = { (void *)(uintptr_t)wire, size };
	union {
		struct cmsghdr header;
		char room[CMSG_SPACE(SV_HANDSHAKE_FDS * sizeof(int))];
	} control = { .room = { 0 } };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	ssize_t sent;

	if (fd_count) {
		msg.msg_control = &control;
		msg.msg_controllen = CMSG_SPACE(fd_count * sizeof(int));
		control.header.cmsg_level = SOL_SOCKET;
		control.header.cmsg_type = SCM_RIGHTS;
		control.header.cmsg_len = CMSG_LEN(fd_count * sizeof(int));
		memcpy(CMSG_DATA(&control.header), fds, fd_count * sizeof(int));
	}
	do {
		sent = sendmsg(fd, &msg, MSG_DONTWAIT | MSG_NOSIGNAL);
	} while (sent < 0 && errno == EINTR);
	return sent < 0 ? errno : 0;
}

static bool is_full(int error)
{
	return error == EAGAIN || error == ENOBUFS;
}

static int message_queue_locked(struct sv_link *link, struct link_message *message)
{
	unsigned i;

	if (link->out_count >= OUT_MAX || link->out_fds + message->fd_count > OUT_FDS_MAX)
		return ENOBUFS;
	for (i = 0; i < message->fd_count; i++) {
		int fd = fcntl(message->fds[i], F_DUPFD_CLOEXEC, 0);

		if (fd < 0) {
			sv_close_all(message->fds, i);
			return errno;
		}
		message->fds[i] = fd;
	}
	STAILQ_INSERT_TAIL(&link->out, message, entry);
	if (!link->out_count++)
		sv_link_interest_locked(link);
	link->out_fds += message->fd_count;
	return 0;
}

/* Allocates memory only for a message that must be queued. */
int sv_link_send_locked(struct sv_link *link, enum sv_msg type, const void *payload, size_t size,
			const int *fds, unsigned fd_count)
{
	struct link_message message = { .size = HEADER + size, .fd_count = fd_count }, *waiting;
	int error = EAGAIN;

	message.wire.type = type;
	message.wire.size = (uint32_t)size;
	memcpy(message.wire.payload, payload, size);
	if (STAILQ_EMPTY(&link->out))
		error = message_send(link->handler.fd, &message.wire, message.size, fds, fd_count);
	if (!is_full(error))
		return error;
	waiting = malloc(sizeof(*waiting));
	if (!waiting)
		return ENOMEM;
	*waiting = message;
	memcpy(waiting->fds, fds, fd_count * sizeof(int));
	error = message_queue_locked(link, waiting);
	if (error)
		free(waiting);
	return error;
}

static const struct {
	uint32_t type, size; /* a header as in all messages */
} ring = { .type = SV_MSG_RING };

/* Rings without a lock, since senders ring while they hold their own. The doorbell is a message and not an
 * eventfd shared by both processes, because the peer could change the flags and the count of an eventfd. */
void sv_peer_ring(struct sv_peer *peer)
{
	int cancel = cancel_off();
	bool full = false;

	if (peer == sv_peer_self())
		eventfd_write(peer->doorbell, 1); /* if the counter is full, it is rung already */
	else
		full = is_full(message_send(peer->doorbell, &ring, sizeof(ring), NULL, 0));
	if (full) {
		sv_links_lock();
		if (peer->link)
			sv_link_ring_locked(peer->link);
		sv_links_unlock();
	}
	cancel_restore(cancel);
}

void sv_link_ring_locked(struct sv_link *link)
{
	bool waited = link->ring_waits;

	link->ring_waits = true;
	if (STAILQ_EMPTY(&link->out) && !waited)
		sv_link_interest_locked(link);
}

static void flush_ring_locked(struct sv_link *link)
{
	link->ring_waits = link->ring_waits &&
			   is_full(message_send(link->handler.fd, &ring, sizeof(ring), NULL, 0));
}

void sv_link_flush(struct sv_link *link)
{
	struct link_message *message;
	int error = 0;

	sv_links_lock();
	while ((message = STAILQ_FIRST(&link->out))) {
		error = message_send(link->handler.fd, &message->wire, message->size, message->fds,
				     message->fd_count);
		if (is_full(error))
			break;
		/* Other errors: the read side detects the end of the link; or only this message's descriptor
		 * was refused. */
		if (error)
			log_at(LOG_WARN, "softverbs: link to slot %u: message lost: %s", link->slot,
			       strerror(error));
		STAILQ_REMOVE_HEAD(&link->out, entry);
		link->out_count--;
		link->out_fds -= message->fd_count;
		message_free(message);
	}
	if (!message)
		flush_ring_locked(link);
	if (!message && !link->ring_waits)
		sv_link_interest_locked(link);
	sv_links_unlock();
}

/* ---- receive ---- */

/* Takes ownership of the descriptors of a message. With MSG_CTRUNC some are missing, so the others cannot be
 * identified. */
static unsigned message_fds(struct msghdr *msg, int *fds)
{
	struct cmsghdr *cmsg;
	unsigned count = 0, i, have;
	int fd;

	for (cmsg = CMSG_FIRSTHDR(msg); cmsg; cmsg = CMSG_NXTHDR(msg, cmsg)) {
		if (cmsg->cmsg_level != SOL_SOCKET || cmsg->cmsg_type != SCM_RIGHTS)
			continue;
		have = (unsigned)((cmsg->cmsg_len - CMSG_LEN(0)) / sizeof(int));
		for (i = 0; i < have; i++) {
			memcpy(&fd, CMSG_DATA(cmsg) + i * sizeof(int), sizeof(int));
			if (count < SV_HANDSHAKE_FDS)
				fds[count++] = fd;
			else
				sv_foreign_close(&fd, 1);
		}
	}
	if (msg->msg_flags & MSG_CTRUNC) {
		sv_log_from(sv_source_process(0), LOG_ERROR,
			    "softverbs: descriptors of a message were lost: too many open files");
		sv_foreign_close(fds, count);
		count = 0;
	}
	return count;
}

/* Dispatches one message; takes ownership of the descriptors. False if it violates the protocol. */
static bool link_dispatch(struct sv_link *link, const struct link_message *message, int *fds,
			  unsigned fd_count, bool *rung)
{
	const void *payload = message->wire.payload;
	size_t size = message->wire.size;

	if (message->wire.type == SV_MSG_HANDSHAKE && sv_engine_is_self())
		return sv_peers_handshake(link, payload, size, fds, fd_count);
	if (message->wire.type == SV_MSG_DATA && link->state == LINK_READY) {
		if (fd_count > 1)
			sv_foreign_close(fds + 1, fd_count - 1);
		sv_kept_handle(link->peer, payload, size, fd_count ? fds[0] : -1);
		return true;
	}
	if (message->wire.type == SV_MSG_FAR && link->state == LINK_ACCEPTED && fd_count == 1) {
		sv_transport()->handed(fds[0], payload, size);
		return true;
	}
	sv_foreign_close(fds, fd_count);
	if (link->state != LINK_READY)
		return false;
	if (message->wire.type == SV_MSG_CM)
		sv_cm_message(link->peer, payload, size);
	else if (message->wire.type == SV_MSG_RING)
		*rung = true;
	else
		return false;
	return true;
}

#define BATCH 16

struct arrival {
	struct link_message message;
	struct iovec iov;
	union {
		struct cmsghdr header;
		char room[CMSG_SPACE(SV_HANDSHAKE_FDS * sizeof(int))];
	} control;
};

static void arrivals_prepare(struct arrival *arrivals, struct mmsghdr *headers)
{
	unsigned i;

	for (i = 0; i < BATCH; i++) {
		struct arrival *a = &arrivals[i];

		a->iov = (struct iovec){ &a->message.wire, sizeof(a->message.wire) };
		headers[i].msg_hdr = (struct msghdr){ .msg_iov = &a->iov,
						      .msg_iovlen = 1,
						      .msg_control = &a->control,
						      .msg_controllen = sizeof(a->control) };
	}
}

/* Handles one message as received. False if it violates the protocol or is the end of the stream. */
static bool link_message_read(struct sv_link *link, struct arrival *arrival, struct mmsghdr *header,
			      bool usable, bool *rung)
{
	const struct link_message *message = &arrival->message;
	int fds[SV_HANDSHAKE_FDS] = { -1, -1, -1 };
	unsigned fd_count = message_fds(&header->msg_hdr, fds);

	if (!usable || link->state == LINK_DOWN || link->state == LINK_PARKED ||
	    header->msg_len < HEADER || header->msg_hdr.msg_flags & MSG_TRUNC ||
	    message->wire.size != header->msg_len - HEADER) {
		sv_foreign_close(fds, fd_count);
		return false;
	}
	return link_dispatch(link, message, fds, fd_count, rung);
}

/* Reads some messages with one call. Returns their number; 0 at the end of the stream or after a violation;
 * -1 if there are none. */
static int link_read(struct sv_link *link, bool *rung)
{
	struct mmsghdr headers[BATCH];
	struct arrival arrivals[BATCH];
	bool usable = true;
	int got, i;

	arrivals_prepare(arrivals, headers);
	do {
		/* ECONNRESET says only that the peer closed the socket with unread messages of this process
		 * in it; messages from the peer are still readable. */
		got = recvmmsg(link->handler.fd, headers, BATCH, MSG_DONTWAIT | MSG_CMSG_CLOEXEC,
			       NULL);
	} while (got < 0 && (errno == EINTR || errno == ECONNRESET));
	if (got < 0 && errno == EAGAIN)
		return -1;
	for (i = 0; i < got; i++)
		usable = link_message_read(link, &arrivals[i], &headers[i], usable, rung);
	return usable && got > 0 ? got : 0;
}

bool sv_link_read(struct sv_link *link, bool all, bool *rung)
{
	int got = 1;

	do {
		if (link->state != LINK_DOWN)
			got = link_read(link, rung);
	} while (all && got > 0 && link->state != LINK_DOWN);
	return !got;
}
