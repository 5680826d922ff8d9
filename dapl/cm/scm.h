/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* What the files of the socket CM share: an identifier with its socket. */
#ifndef CM_SCM_H
#define CM_SCM_H

#include "dapl/cm/id.h"

#define SCM_HALF_OPEN_MOST 1024u /* of a listener; at the limit the oldest one is closed */
#define SCM_PATIENCE	   (30 * NSEC_PER_SEC) /* timeout for a request and for an RTU */
#define SCM_CONNECTS	   5u		       /* attempts in all */

TAILQ_HEAD(scm_half_open, scm_id);

struct scm_id {
	struct cm_id cm; /* first */
	struct cm_source socket;
	struct sockaddr_in own; /* the socket's address, once it is connected */
	/* active: attempts so far; whether the request was sent; whether it had the form for old peers */
	unsigned connects;
	bool asked, old_form;
	bool ignored; /* input arrived between answer and RTU and was left unread */
	/* Bytes received and not decoded yet. The array has one byte more than the longest message, to detect
	 * a message that is too long. */
	size_t got;
	unsigned char bytes[CM_MESSAGE_MAX + CM_FRAME_EXTRA + 1];
	/* passive: bytes that may follow the request */
	size_t extra;
	/* while half-open: the listener, whose list holds this identifier */
	struct scm_id *listener;
	TAILQ_ENTRY(scm_id) half_open;
	/* of a listener */
	struct scm_half_open waiting;
	unsigned waiting_count;
};

static inline struct scm_id *scm_id_of(struct cm_id *id)
{
	return (struct scm_id *)id;
}

/* scm_socket.c */
int scm_socket_new(struct cm_source *source);
void scm_socket_options(int fd);   /* a connection inherits them from its listener */
void scm_close(struct scm_id *id); /* disarms the timer, too */
/* Sends all bytes in one piece, as some peers require; the socket's buffer has room for them. 0 or errno. */
int scm_send(struct scm_id *id, const void *bytes, size_t size);
int scm_send_message(struct scm_id *id, enum cm_op op, const void *data, uint16_t size);
/* Receives once, up to `most` bytes in all. 0 if bytes arrived or `most` are there already; EAGAIN; ENODATA if
 * the peer closed the connection; or another errno. */
int scm_receive(struct scm_id *id, size_t most);

/* scm_active.c */
int scm_connect(struct cm_id *id);
int scm_establish(struct cm_id *id);
void scm_active_ready(struct scm_id *id, uint32_t events);

/* scm_passive.c */
int scm_listen(struct cm_id *id);
int scm_accept(struct cm_id *id, const void *data, uint16_t size);
void scm_passive_ready(struct scm_id *id);
void scm_listener_close(struct scm_id *id);
/* Sends a reject to the requester and closes the socket. */
void scm_refuse(struct scm_id *id, enum cm_op op, const void *data, uint16_t size);
void scm_half_open_end(struct scm_id *id);

/* scm.c */
void scm_end(struct scm_id *id); /* ends a connection: notifies the program and the peer */

#endif
