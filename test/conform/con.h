/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* The rdma_cm side of conformance: a listener and a connector of this process. */
#ifndef CONFORM_CON_H
#define CONFORM_CON_H

#include <sys/socket.h>
#include <rdma/rdma_cma.h>
#include "test/conform/conform.h"

/* The address of the device's GID, with port 0. */
struct sockaddr_storage con_address(uint16_t port);
/* That of another host. */
struct sockaddr_storage con_address_of(const union ibv_gid *gid, uint16_t port);

/* An id and, where it has one, its QP with the CQs that rdma_create_qp makes. */
struct con {
	struct rdma_event_channel *server, *client;
	struct rdma_cm_id *listener; /* on `server`, with a port of its own */
	struct rdma_cm_id *active;   /* on `client` */
	struct rdma_cm_id *passive;  /* on `server`, after con_request */
};

/* Channels and a listener. */
bool con_open(struct con *con, int backlog);
bool con_open_in(struct con *con, int backlog, enum rdma_port_space space);
/* Closes all objects that exist: the QP first, then the id, then the channel. */
void con_close(struct con *con);
void con_destroy(struct rdma_cm_id **id);

bool con_readable(struct rdma_event_channel *channel, unsigned milliseconds);
/*
 * Returns the next event, unacknowledged, if it is the expected one and comes within PATIENCE; else
 * prints it and returns NULL.
 */
struct rdma_cm_event *con_wait(struct rdma_event_channel *channel, enum rdma_cm_event_type type);
/* The same, but acknowledges the event; its status must be 0. */
bool con_comes(struct rdma_event_channel *channel, enum rdma_cm_event_type type);
bool con_silent(struct rdma_event_channel *channel);

/* Makes an id on the client's channel, resolved to `port`, without a QP. */
bool con_resolve(struct con *con, struct rdma_cm_id **id, uint16_t port);
bool con_resolve_at(struct con *con, struct rdma_cm_id **id, const union ibv_gid *gid,
		    uint16_t port);
bool con_make_qp(struct rdma_cm_id *id);
struct rdma_conn_param con_param(const void *data, uint8_t length);
/* Resolves to the listener, makes a QP, and calls rdma_connect. */
bool con_connect(struct con *con, const void *data, uint8_t length);
/* Takes the connect request into con->passive and makes a QP for it. */
bool con_request(struct con *con);
/* Does all of the above; both sides are established. */
bool con_establish(struct con *con);

/* Sends a zero-length message from one side to the other. */
bool con_message(struct rdma_cm_id *from, struct rdma_cm_id *to);

#endif
