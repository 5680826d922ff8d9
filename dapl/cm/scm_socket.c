/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* The socket CM: its sockets, all non-blocking. */
#include <errno.h>
#include <netinet/tcp.h>
#include <string.h>
#include "dapl/cm/scm.h"
#include "util/log.h"

int scm_socket_new(struct cm_source *source)
{
	source->fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	return source->fd < 0 ? errno : 0;
}

void scm_socket_options(int fd)
{
	int on = 1;

	if (setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)))
		log_at(LOG_NOTE, "socket CM: TCP_NODELAY: %m");
}

void scm_close(struct scm_id *id)
{
	cm_timer_disarm(id->cm.channel, &id->cm.timer);
	cm_source_close(id->cm.channel, &id->socket);
}

int scm_send(struct scm_id *id, const void *bytes, size_t size)
{
	ssize_t sent = send(id->socket.fd, bytes, size, MSG_NOSIGNAL);

	if (sent < 0)
		return errno;
	return (size_t)sent == size ? 0 : EPIPE;
}

/* Sends a message. An old passive side gets a form and an MTU that it supports; so does an old server that
 * did not answer the new form. */
int scm_send_message(struct scm_id *id, enum cm_op op, const void *data, uint16_t size)
{
	struct cm_message message = { .ver = CM_VERSION, .op = (uint16_t)op, .p_size = size };
	size_t header = id->old_form ? CM_HEADER_OLD : CM_HEADER;
	unsigned char bytes[CM_MESSAGE_MAX];

	if (op == CM_REJ_USER || op == CM_REJ_CM) {
		message = id->cm.peer;
		message.op = (uint16_t)op;
		message.p_size = size;
	} else {
		message.rd_in = id->cm.responder_resources;
		message.mtu = op == CM_REQ	    ? id->cm.channel->port.mtu
			      : id->cm.peer.ver < 9 ? (uint8_t)IBV_MTU_2048
						    : id->cm.mtu;
		cm_endpoint_here(&id->cm, message.saddr);
		memcpy(message.daddr, &id->own, sizeof(id->own));
	}
	return scm_send(id, bytes, cm_frame_write(&message, data, header, bytes));
}

int scm_receive(struct scm_id *id, size_t most)
{
	ssize_t got;

	if (id->got >= most)
		return 0;
	got = recv(id->socket.fd, id->bytes + id->got, most - id->got, 0);
	if (got < 0)
		return errno;
	id->got += (size_t)got;
	return got ? 0 : ENODATA;
}
