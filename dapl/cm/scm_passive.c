/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* The socket CM, passive side: listens, reads requests, answers, waits for the RTU. */
#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>
#include "dapl/cm/scm.h"
#include "util/log.h"

#define ACCEPT_PAUSE (100 * NSEC_PER_MSEC) /* pause when descriptors or memory run out */
#define DRAIN_MOST   4096u

/* ---- half-open connections ---- */

static void half_open_begin(struct scm_id *listener, struct scm_id *id)
{
	id->listener = listener;
	TAILQ_INSERT_TAIL(&listener->waiting, id, half_open);
	listener->waiting_count++;
}

void scm_half_open_end(struct scm_id *id)
{
	if (!id->listener)
		return;
	TAILQ_REMOVE(&id->listener->waiting, id, half_open);
	id->listener->waiting_count--;
	id->listener = NULL;
}

/* Frees a half-open connection, which no event has reported. */
static void half_open_drop(struct scm_id *id)
{
	scm_half_open_end(id);
	scm_close(id);
	cm_id_free(&id->cm);
}

static void half_open_refuse(struct scm_id *id, const char *why)
{
	log_at(LOG_NOTE, "socket CM: a connection to port %u is refused: %s", id->cm.local, why);
	if (id->cm.peer.ver < CM_VERSION_MIN)
		id->cm.peer.ver = CM_VERSION;
	scm_refuse(id, CM_REJ_CM, NULL, 0);
	half_open_drop(id);
}

/* ---- rejects ---- */

/* Reads the rest of the input: unread data would make TCP send a reset, which may overtake the message. */
static void drain(int fd)
{
	unsigned char rest[256];
	unsigned i;

	for (i = 0; i < DRAIN_MOST / sizeof(rest); i++)
		if (recv(fd, rest, sizeof(rest), 0) <= 0)
			return;
}

void scm_refuse(struct scm_id *id, enum cm_op op, const void *data, uint16_t size)
{
	if (id->socket.fd < 0)
		return;
	if (scm_send_message(id, op, data, size))
		log_at(LOG_NOTE, "socket CM: the requester left before it was refused");
	shutdown(id->socket.fd, SHUT_WR);
	drain(id->socket.fd);
	scm_close(id);
}

/* ---- requests ---- */

static void address_of_request(struct cm_id *id)
{
	struct rdma_addr *addr = &id->id.route.addr;
	struct sockaddr_in said;
	socklen_t size = sizeof(struct sockaddr_in);

	memcpy(&said, id->peer.daddr, sizeof(said));
	if (said.sin_family == AF_INET)
		addr->dst_sin = said;
	else
		getpeername(scm_id_of(id)->socket.fd, &addr->dst_addr, &size);
	id->remote = ntohs(addr->dst_sin.sin_port);
}

static void requested(struct scm_id *id, const struct cm_message *message,
		      const unsigned char *data)
{
	struct cm_id *listener;

	cm_peer_copy(&id->cm, message, data);
	id->old_form = message->ver < 8;
	listener = message->op != CM_REQ ? NULL
					 : cm_listener_find(id->cm.channel, id->cm.local,
							    id->cm.endpoint.qp_type);
	if (!listener) {
		half_open_refuse(id, "it does not begin with a request for what is offered");
		return;
	}
	scm_half_open_end(id);
	cm_timer_disarm(id->cm.channel, &id->cm.timer);
	cm_id_request(&id->cm, listener);
	address_of_request(&id->cm);
	cm_event_request(listener, &id->cm);
}

/* The request is complete; any bytes read after it can only be the two bytes of an old form. */
static void read_whole(struct scm_id *id, size_t needed, struct cm_message *message,
		       const unsigned char *data)
{
	size_t more = id->got - needed;

	if (more && more < CM_FRAME_EXTRA && message->ver >= 8)
		return; /* the second byte is still to be received */
	if (more > CM_FRAME_EXTRA || (more && message->ver < 8)) {
		half_open_refuse(id, "more follows its request");
		return;
	}
	if (more == CM_FRAME_EXTRA)
		data = id->bytes + CM_HEADER_OLD;
	id->extra = message->ver < 8 ? 0 : CM_FRAME_EXTRA - more;
	id->got = 0;
	requested(id, message, data);
}

static void read_request(struct scm_id *id)
{
	const unsigned char *data = NULL;
	struct cm_message message;
	int needed, error;

	error = scm_receive(id, sizeof(id->bytes));
	needed = cm_frame_read(id->bytes, id->got, &message, &data);
	if (needed < 0)
		half_open_refuse(id, "its request makes no sense");
	else if (id->got >= (size_t)needed)
		read_whole(id, (size_t)needed, &message, data);
	else if (error && error != EAGAIN && error != EINTR)
		half_open_drop(id);
}

static void request_expire(struct cm_channel *channel, struct cm_timer *timer)
{
	struct scm_id *id = (struct scm_id *)((char *)timer - offsetof(struct scm_id, cm.timer));

	(void)channel;
	half_open_refuse(id, "no request comes");
}

/* The requester waits for its answer: apart from the rest of an old form, input means that it disconnects. */
static void read_waiting(struct scm_id *id)
{
	int error;

	id->got = 0;
	error = scm_receive(id, id->extra + 1);
	if (error == EAGAIN || error == EINTR)
		return;
	if (!error && id->got <= id->extra) {
		id->extra -= id->got;
		return;
	}
	scm_close(id);
	id->cm.state = CM_OVER;
}

/* ---- the listener ---- */

static void connection_ready(struct cm_channel *channel, struct cm_source *source, uint32_t events)
{
	struct scm_id *id = (struct scm_id *)((char *)source - offsetof(struct scm_id, socket));

	(void)channel;
	(void)events;
	scm_passive_ready(id);
}

static void accepted(struct scm_id *listener, int fd)
{
	struct cm_channel *channel = listener->cm.channel;
	struct cm_id *new = cm_id_new(channel, NULL, RDMA_PS_TCP);
	struct scm_id *id = scm_id_of(new);

	if (!new) {
		log_at(LOG_WARN, "socket CM: no memory for a connection to port %u",
		       listener->cm.local);
		close(fd);
		return;
	}
	id->socket = (struct cm_source){ .fd = fd, .ready = connection_ready };
	new->state = CM_HALF_OPEN;
	new->local = listener->cm.local;
	id->own = listener->own;
	half_open_begin(listener, id);
	if (cm_source_add(channel, &id->socket, EPOLLIN)) {
		half_open_drop(id);
		return;
	}
	new->timer.call = request_expire;
	cm_timer_arm(channel, &new->timer, clock_now() + SCM_PATIENCE);
	if (listener->waiting_count > SCM_HALF_OPEN_MOST)
		half_open_refuse(TAILQ_FIRST(&listener->waiting), "too many send no request");
	read_request(id);
}

static void listen_again(struct cm_channel *channel, struct cm_timer *timer)
{
	struct scm_id *id = (struct scm_id *)((char *)timer - offsetof(struct scm_id, cm.timer));

	cm_source_change(channel, &id->socket, EPOLLIN);
}

/* Accepts one connection. If that fails for want of resources, connections stay in the queue and the socket
 * stays readable. */
static void scm_passive_listener_ready(struct cm_channel *channel, struct cm_source *source,
				       uint32_t events)
{
	struct scm_id *id = (struct scm_id *)((char *)source - offsetof(struct scm_id, socket));
	int fd = accept4(source->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

	(void)events;
	if (fd >= 0) {
		accepted(id, fd);
	} else if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS) {
		log_at(LOG_WARN, "socket CM: accept on port %u: %m", id->cm.local);
		cm_source_change(channel, source, 0);
		id->cm.timer.call = listen_again;
		cm_timer_arm(channel, &id->cm.timer, clock_now() + ACCEPT_PAUSE);
	}
}

static int listen_at(struct scm_id *id)
{
	socklen_t size = sizeof(id->own);
	int on = 1;

	memcpy(&id->own, &id->cm.channel->address, sizeof(id->own));
	id->own.sin_port = htons(id->cm.local);
	scm_socket_options(id->socket.fd);
	if (setsockopt(id->socket.fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) ||
	    bind(id->socket.fd, (struct sockaddr *)&id->own, sizeof(id->own)) ||
	    listen(id->socket.fd, SOMAXCONN) ||
	    getsockname(id->socket.fd, (struct sockaddr *)&id->own, &size))
		return errno;
	id->cm.local = ntohs(id->own.sin_port);
	return 0;
}

int scm_listen(struct cm_id *given)
{
	struct scm_id *id = scm_id_of(given);
	int error = scm_socket_new(&id->socket);

	if (error)
		return error;
	id->socket.ready = scm_passive_listener_ready;
	error = listen_at(id);
	if (!error)
		error = cm_source_add(given->channel, &id->socket, EPOLLIN);
	if (error)
		scm_close(id);
	return error;
}

void scm_listener_close(struct scm_id *id)
{
	struct scm_id *waiting;

	while ((waiting = TAILQ_FIRST(&id->waiting)))
		half_open_refuse(waiting, "its listener ends");
	scm_close(id);
}

/* ---- the answer ---- */

static void accept_over(struct scm_id *id)
{
	scm_close(id);
	id->cm.state = CM_OVER;
	if (!cm_is_datagram(&id->cm))
		cm_event_post(&id->cm, CM_SLOT_ANSWER, RDMA_CM_EVENT_CONNECT_ERROR, -EPROTO);
}

static void rtu_expire(struct cm_channel *channel, struct cm_timer *timer)
{
	struct scm_id *id = (struct scm_id *)((char *)timer - offsetof(struct scm_id, cm.timer));

	(void)channel;
	log_at(LOG_NOTE, "socket CM: an accepted peer sends no RTU");
	accept_over(id);
}

static void read_rtu(struct scm_id *id)
{
	int error;

	do
		error = scm_receive(id, CM_SHORT);
	while (!error && id->got < CM_SHORT);
	if (id->got < CM_SHORT) {
		if (error != EAGAIN && error != EINTR)
			accept_over(id);
		return;
	}
	if (id->bytes[2] || id->bytes[3] != CM_RTU || cm_is_datagram(&id->cm)) {
		accept_over(id);
		return;
	}
	cm_timer_disarm(id->cm.channel, &id->cm.timer);
	id->cm.state = CM_CONNECTED;
	cm_event_post(&id->cm, CM_SLOT_ANSWER, RDMA_CM_EVENT_ESTABLISHED, 0);
}

int scm_accept(struct cm_id *given, const void *data, uint16_t size)
{
	struct scm_id *id = scm_id_of(given);

	read_waiting(id);
	if (given->state == CM_REQUESTED && scm_send_message(id, CM_REP, data, size)) {
		scm_close(id);
		given->state = CM_OVER;
	}
	if (given->state == CM_OVER)
		return EINVAL;
	given->state = CM_ACCEPTED;
	id->got = 0;
	given->timer.call = rtu_expire;
	cm_timer_arm(given->channel, &given->timer, clock_now() + SCM_PATIENCE);
	return 0;
}

void scm_passive_ready(struct scm_id *id)
{
	switch (id->cm.state) {
	case CM_HALF_OPEN: read_request(id); break;
	case CM_REQUESTED: read_waiting(id); break;
	case CM_ACCEPTED: read_rtu(id); break;
	default: scm_end(id);
	}
}
