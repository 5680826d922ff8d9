/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* The socket CM, active side: connects, sends the request, receives the answer, sends the RTU. */
#include <arpa/inet.h>
#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include "dapl/cm/scm.h"
#include "util/log.h"

static const unsigned char rtu[CM_SHORT] = { 0, CM_VERSION, 0, CM_RTU };

/* ---- end of an attempt ---- */

static void attempt_rejected(struct scm_id *id, int status)
{
	scm_close(id);
	cm_event_rejected(&id->cm, status);
}

static void scm_active_unreachable(struct scm_id *id, int error)
{
	scm_close(id);
	id->cm.state = CM_OVER;
	cm_event_post(&id->cm, CM_SLOT_ANSWER, RDMA_CM_EVENT_UNREACHABLE, -error);
}

static int scm_active_begin(struct scm_id *id)
{
	const struct sockaddr *to = &id->cm.id.route.addr.dst_addr;
	int error = scm_socket_new(&id->socket);

	if (error)
		return error;
	id->connects++;
	id->asked = false;
	id->got = 0;
	scm_socket_options(id->socket.fd);
	if (connect(id->socket.fd, to, sizeof(struct sockaddr_in)) && errno != EINPROGRESS)
		error = errno;
	if (!error)
		error = cm_source_add(id->cm.channel, &id->socket, EPOLLOUT);
	/* a host under load may return the error at once instead of later */
	if (error)
		scm_close(id);
	return error;
}

/* No listener, or one that closed before it accepted. */
static bool is_refusal(int error)
{
	return error == ECONNREFUSED || error == ECONNRESET;
}

/* True if another attempt may succeed: the server is starting, or its listen queue is full. */
static bool is_worth_another(const struct scm_id *id, int error)
{
	return (is_refusal(error) || error == ETIMEDOUT) && id->connects < SCM_CONNECTS;
}

static void scm_active_connect_failed(struct scm_id *id, int error)
{
	scm_close(id);
	while (is_worth_another(id, error)) {
		error = scm_active_begin(id);
		if (!error)
			return;
	}
	if (is_refusal(error))
		attempt_rejected(id, CM_REJECTED_BY_CM);
	else
		scm_active_unreachable(id, error);
}

/* The peer closed the connection before it answered. If it is older than version 8, it waited for two more
 * bytes, and gets them in a second connection; otherwise it is no connection manager, or has ended. */
static void unanswered(struct scm_id *id)
{
	int error;

	if (id->old_form) {
		attempt_rejected(id, CM_REJECTED_BY_CM);
		return;
	}
	scm_close(id);
	id->old_form = true;
	id->connects = 0;
	error = scm_active_begin(id);
	if (error)
		scm_active_connect_failed(id, error);
}

int scm_connect(struct cm_id *given)
{
	struct scm_id *id = scm_id_of(given);

	return scm_active_begin(id);
}

/* ---- the request ---- */

/* True if TCP connected the socket to itself, which is possible if the port is a dynamic one without a
 * listener. */
static bool is_own(const struct scm_id *id)
{
	struct sockaddr_in peer;
	socklen_t size = sizeof(peer);

	return id->own.sin_port == id->cm.id.route.addr.dst_sin.sin_port &&
	       !getpeername(id->socket.fd, (struct sockaddr *)&peer, &size) &&
	       peer.sin_port == id->own.sin_port && peer.sin_addr.s_addr == id->own.sin_addr.s_addr;
}

/* The result of connect(2), 0 or errno. A socket whose connection failed reports an error or a hang-up. */
static int connected(struct scm_id *id, uint32_t events)
{
	socklen_t size = sizeof(int);
	int error = 0;

	if (events & (EPOLLERR | EPOLLHUP) &&
	    getsockopt(id->socket.fd, SOL_SOCKET, SO_ERROR, &error, &size))
		return errno;
	if (error)
		return error;
	size = sizeof(id->own);
	if (getsockname(id->socket.fd, (struct sockaddr *)&id->own, &size))
		return errno;
	return is_own(id) ? ECONNREFUSED : 0;
}

static void request_send(struct scm_id *id, uint32_t events)
{
	int error = connected(id, events);

	if (error) {
		scm_active_connect_failed(id, error);
		return;
	}
	id->cm.local = ntohs(id->own.sin_port);
	id->asked = true;
	cm_source_change(id->cm.channel, &id->socket, EPOLLIN);
	if (scm_send_message(id, CM_REQ, id->cm.sent, id->cm.sent_size))
		unanswered(id);
}

/* ---- the answer ---- */

static void answered(struct scm_id *id, const struct cm_message *message, const unsigned char *data)
{
	bool right_kind;

	cm_peer_copy(&id->cm, message, data);
	right_kind = id->cm.endpoint.qp_type == id->cm.id.qp_type;
	id->got = 0;
	if (message->op == CM_REP && right_kind && cm_is_datagram(&id->cm)) {
		/* a datagram endpoint needs nothing more from the peer */
		if (scm_send(id, rtu, sizeof(rtu)))
			log_at(LOG_NOTE, "socket CM: the peer left before its RTU");
		scm_close(id);
		cm_event_answer(&id->cm);
	} else if (message->op == CM_REP && right_kind) {
		cm_event_answer(&id->cm);
	} else {
		if (message->op != CM_REJ_USER)
			id->cm.peer.p_size = 0;
		attempt_rejected(id, message->op == CM_REJ_USER ? CM_REJECTED_BY_APP
								: CM_REJECTED_BY_CM);
	}
}

static void read_answer(struct scm_id *id)
{
	const unsigned char *data = NULL;
	struct cm_message message;
	int needed, error;

	do {
		needed = cm_frame_read(id->bytes, id->got, &message, &data);
		if (needed < 0) {
			log_at(LOG_WARN, "socket CM: an answer that makes no sense");
			attempt_rejected(id, CM_REJECTED_BY_CM);
			return;
		}
		if (id->got >= (size_t)needed) {
			answered(id, &message, data);
			return;
		}
		error = scm_receive(id, (size_t)needed);
	} while (!error);
	if (error != EAGAIN && error != EINTR)
		unanswered(id);
}

/* Between answer and RTU the peer sends nothing. Input is ignored until then, and the established connection
 * handles it. */
void scm_active_ready(struct scm_id *id, uint32_t events)
{
	if (id->cm.state == CM_ANSWERED) {
		cm_source_ignore(id->cm.channel, &id->socket);
		id->ignored = true;
	} else if (!id->asked) {
		request_send(id, events);
	} else {
		read_answer(id);
	}
}

int scm_establish(struct cm_id *given)
{
	struct scm_id *id = scm_id_of(given);
	int error = id->socket.fd < 0 ? EPIPE : scm_send(id, rtu, sizeof(rtu));

	if (!error && id->ignored)
		error = cm_source_add(given->channel, &id->socket, EPOLLIN);
	return error;
}
