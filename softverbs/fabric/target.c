/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Brings a link that another host began to the process that it is for: this one, or another one of this host,
 * which gets the socket. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>
#include "softverbs/base/foreign.h"
#include "softverbs/fabric/peers.h"
#include "softverbs/fabric/transport.h"
#include "softverbs/link/name.h"
#include "softverbs/link/port_name.h"
#include "softverbs/link/runtime.h"
#include "util/log.h"

/* The message that goes with the socket: a target, as on the wire. */
#define HANDED_SIZE WIRE_TARGET_SIZE

static void answer_send_locked(struct fabric_link *link, enum wire_status status)
{
	const struct sv_peer *self = sv_peer_self();
	struct wire_answer answer = { .status = (uint8_t)status,
				      .slot = self->slot,
				      .nonce = { self->nonce[0], self->nonce[1] } };
	uint8_t bytes[WIRE_ANSWER_SIZE];

	sv_fabric_end_fill(link, &answer.end);
	sv_wire_answer_write(bytes, &answer);
	link->error = sv_fabric_link_send_locked(link, WIRE_ANSWER, bytes, sizeof(bytes));
	if (status != WIRE_LINKED || link->target.kind == WIRE_TO_CHECK)
		link->state = FABRIC_LOOKUP; /* nothing more is read; the other side closes it */
}

static void answer_send(struct fabric_link *link, enum wire_status status)
{
	sv_fabric_lock();
	answer_send_locked(link, status);
	sv_fabric_unlock();
}

/* This is the process. */
static void link_accept(struct fabric_link *link)
{
	const struct wire_target *target = &link->target;
	struct sv_peer *peer;

	if (!sv_fabric_end_fits(link, &target->end)) {
		answer_send(link, WIRE_UNLIKE);
		return;
	}
	peer = sv_fabric_peer_linked(target->from_nonce, &link->host);
	if (peer) {
		sv_peer_put(peer);
		answer_send(link, WIRE_ALREADY);
		return;
	}
	/* in one step: what the other side sends once it has the answer comes from a peer that is known */
	sv_fabric_lock();
	answer_send_locked(link, WIRE_LINKED);
	if (!link->error)
		peer = sv_fabric_peer_ready_locked(link, target->from_slot, target->from_nonce,
						   &target->end);
	sv_fabric_unlock();
	if (peer)
		sv_peer_put(peer);
	else
		sv_fabric_link_down(link, ENOMEM);
}

/* Passes the socket to the process of that slot. 0 or errno. */
static int hand_over(struct fabric_link *link, uint16_t slot)
{
	struct {
		uint32_t type, size;
		uint8_t target[HANDED_SIZE];
	} message = { .type = SV_MSG_FAR, .size = HANDED_SIZE };
	struct iovec iov = { &message, sizeof(message) };
	union {
		struct cmsghdr header;
		char room[CMSG_SPACE(sizeof(int))];
	} control = { .room = { 0 } };
	struct msghdr msg = { .msg_iov = &iov,
			      .msg_iovlen = 1,
			      .msg_control = &control,
			      .msg_controllen = sizeof(control) };
	struct ucred owner;
	char name[16];
	int fd, error;

	snprintf(name, sizeof(name), "s%u", slot);
	fd = sv_name_connect(name, &owner);
	if (fd < 0)
		return errno;
	sv_wire_target_write(message.target, &link->target);
	control.header.cmsg_level = SOL_SOCKET;
	control.header.cmsg_type = SCM_RIGHTS;
	control.header.cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(&control.header), &link->handler.fd, sizeof(int));
	error = sendmsg(fd, &msg, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 ? errno : 0;
	close(fd);
	return error;
}

static void slot_reach(struct fabric_link *link, uint16_t slot)
{
	int error;

	if (slot == sv_runtime_peer_id()) {
		link_accept(link);
		return;
	}
	error = hand_over(link, slot);
	if (!error)
		sv_fabric_link_down(link, 0); /* the other process has the socket */
	else
		answer_send(link, error == ECONNREFUSED ? WIRE_ABSENT : WIRE_BUSY);
}

static void lookup_ready(struct engine_fd *handler, uint32_t events)
{
	struct fabric_link *link =
		(struct fabric_link *)(void *)((char *)handler -
					       offsetof(struct fabric_link, asked));
	struct sv_port_answer answer;
	ssize_t got;

	(void)events;
	if (link->state != FABRIC_LOOKUP || handler->fd < 0)
		return;
	got = recv(handler->fd, &answer, sizeof(answer), MSG_DONTWAIT | MSG_TRUNC);
	if (got < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	sv_engine_fd_remove(handler);
	if (got == sizeof(answer) && answer.magic == SV_PORT_MAGIC && answer.slot < SV_PEERS)
		slot_reach(link, (uint16_t)answer.slot);
	else
		answer_send(link, WIRE_BUSY); /* that process lacks a resource, or has ended */
}

static void port_reach(struct fabric_link *link)
{
	const struct wire_target *target = &link->target;
	struct sv_ip ip = { .families = SV_IPV6 };
	int fd;

	memcpy(&ip.addr, target->address, sizeof(ip.addr));
	if (IN6_IS_ADDR_V4MAPPED(&ip.addr))
		ip.families = SV_IPV4;
	if (IN6_IS_ADDR_LINKLOCAL(&ip.addr))
		ip.scope = link->host.scope; /* of the interface that the link came in by */
	fd = sv_port_reach(target->space, target->port, &ip);
	if (fd < 0) {
		answer_send(link, errno == ECONNREFUSED ? WIRE_ABSENT : WIRE_BUSY);
		return;
	}
	sv_fabric_lock();
	link->state = FABRIC_LOOKUP;
	link->error = sv_engine_fd_add(&link->asked, fd, EPOLLIN, lookup_ready);
	sv_fabric_unlock();
}

void sv_fabric_target(struct fabric_link *link)
{
	bool fits;

	switch ((enum wire_target_kind)link->target.kind) {
	case WIRE_TO_CHECK:
		fits = sv_fabric_end_fits(link, &link->target.end);
		answer_send(link, fits ? WIRE_LINKED : WIRE_UNLIKE);
		break;
	case WIRE_TO_SLOT: slot_reach(link, link->target.slot); break;
	case WIRE_TO_PORT: port_reach(link); break;
	}
}

void sv_fabric_handed(int fd, const void *payload, size_t size)
{
	struct wire_target target;
	int type = 0, domain = 0;
	socklen_t length = sizeof(int);

	/* these two the kernel answers by itself, whatever descriptor a process of this host passed */
	if (!sv_fabric_is_on() || !sv_wire_target_read(payload, size, &target) ||
	    getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &length) || type != SOCK_STREAM ||
	    getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &length) ||
	    (domain != AF_INET && domain != AF_INET6)) {
		log_at(LOG_WARN, "softverbs: a connection that was handed over is refused");
		sv_foreign_close(&fd, 1);
		return;
	}
	if (target.kind == WIRE_TO_PORT)
		target.kind = WIRE_TO_SLOT; /* found; not to be looked up again */
	target.slot = sv_runtime_peer_id();
	sv_fabric_link_adopt(fd, &target);
}
