/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* The socket CM: each connection keeps a TCP connection open for its lifetime. */
#include <arpa/inet.h>
#include <errno.h>
#include <sys/epoll.h>
#include "dapl/cm/scm.h"

static const unsigned char farewell[CM_SHORT] = { 0, 0, 0xde, 0xad };

/* Ends the connection. Any data, or the end of the stream, on the socket of an established connection means
 * that the peer disconnects. */
void scm_end(struct scm_id *id)
{
	/* old peers read it; a failure means that the peer has disconnected */
	scm_send(id, farewell, sizeof(farewell));
	scm_close(id);
	id->cm.state = CM_OVER;
	cm_event_post(&id->cm, CM_SLOT_END, RDMA_CM_EVENT_DISCONNECTED, 0);
}

static void ready(struct cm_channel *channel, struct cm_source *source, uint32_t events)
{
	struct scm_id *id = (struct scm_id *)((char *)source - offsetof(struct scm_id, socket));

	(void)channel;
	if (id->cm.state == CM_CONNECTED)
		scm_end(id);
	else
		scm_active_ready(id, events);
}

static void id_init(struct cm_id *given)
{
	struct scm_id *id = scm_id_of(given);

	id->socket = (struct cm_source){ .fd = -1, .ready = ready };
	TAILQ_INIT(&id->waiting);
}

static void scm_reject(struct cm_id *given, enum cm_op op, const void *data, uint16_t size)
{
	/* an established peer sees the end of the stream instead */
	if (given->state == CM_REQUESTED)
		scm_refuse(scm_id_of(given), op, data, size);
	scm_close(scm_id_of(given));
}

static int scm_disconnect(struct cm_id *given)
{
	scm_end(scm_id_of(given));
	return 0;
}

static void scm_drop(struct cm_id *given)
{
	struct scm_id *id = scm_id_of(given);

	if (given->state == CM_LISTENING)
		scm_listener_close(id);
	else if (given->state == CM_REQUESTED)
		scm_refuse(id, CM_REJ_CM, NULL, 0);
	else if (given->state == CM_CONNECTED)
		scm_send(id, farewell, sizeof(farewell));
	scm_close(id);
}

static uint16_t port_get(const struct sockaddr *address)
{
	return ntohs(((const struct sockaddr_in *)address)->sin_port);
}

static void port_set(struct sockaddr *address, uint16_t port)
{
	((struct sockaddr_in *)address)->sin_port = htons(port);
}

const struct cm_transport cm_transport = {
	.family = AF_INET,
	.address_size = sizeof(struct sockaddr_in),
	.port_get = port_get,
	.port_set = port_set,
	.id_size = sizeof(struct scm_id),
	.id_init = id_init,
	.listen = scm_listen,
	.connect = scm_connect,
	.accept = scm_accept,
	.reject = scm_reject,
	.establish = scm_establish,
	.disconnect = scm_disconnect,
	.drop = scm_drop,
};
