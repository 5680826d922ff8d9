/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * Helpers for tests of the connection manager: events with a deadline, listeners, clients, whole
 * connections.
 */
#ifndef TEST_CM_H
#define TEST_CM_H

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <rdma/rdma_cma.h>
#include "test/unit/unit.h"

/* A copy of an event that was acknowledged, with its private data. */
struct seen {
	struct rdma_cm_event event;
	uint8_t data[256];
};

static inline bool cm_ready(struct rdma_event_channel *channel, int milliseconds)
{
	struct pollfd poll_fd = { .fd = channel->fd, .events = POLLIN };

	return poll(&poll_fd, 1, milliseconds) == 1 && poll_fd.revents == POLLIN;
}

static inline bool cm_take(struct rdma_event_channel *channel, struct seen *seen)
{
	struct rdma_cm_event *event;

	memset(seen, 0, sizeof(*seen));
	seen->event.event = (enum rdma_cm_event_type) - 1;
	if (!cm_ready(channel, UNIT_PATIENCE) || rdma_get_cm_event(channel, &event))
		return false;
	seen->event = *event;
	if (event->param.conn.private_data)
		memcpy(seen->data, event->param.conn.private_data,
		       event->param.conn.private_data_len);
	return !rdma_ack_cm_event(event);
}

/*
 * Waits for the next event of the channel; fails the test and prints the event if it has another
 * type.
 */
static inline bool cm_expect(struct rdma_event_channel *channel, enum rdma_cm_event_type type,
			     struct seen *seen)
{
	struct seen own;

	seen = seen ? seen : &own;
	if (cm_take(channel, seen) && seen->event.event == type)
		return true;
	fprintf(stderr, "expected %s, got %s status %d\n", rdma_event_str(type),
		rdma_event_str(seen->event.event), seen->event.status);
	return false;
}

static inline struct sockaddr_in cm_loopback(uint16_t port)
{
	return (struct sockaddr_in){ .sin_family = AF_INET,
				     .sin_port = htons(port),
				     .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
}

static inline struct rdma_cm_id *cm_new(struct rdma_event_channel *channel)
{
	struct rdma_cm_id *id = NULL;

	if (rdma_create_id(channel, &id, NULL, RDMA_PS_TCP))
		return NULL;
	return id;
}

static inline struct rdma_cm_id *cm_bound(struct rdma_event_channel *channel, uint16_t port)
{
	struct sockaddr_in addr = cm_loopback(port);
	struct rdma_cm_id *id = cm_new(channel);

	if (id && !rdma_bind_addr(id, (struct sockaddr *)&addr))
		return id;
	if (id)
		rdma_destroy_id(id);
	return NULL;
}

/* A listener on a port that the CM chooses; rdma_get_src_port returns it. */
static inline struct rdma_cm_id *cm_listener(struct rdma_event_channel *channel, int backlog)
{
	struct rdma_cm_id *id = cm_bound(channel, 0);

	if (id && !rdma_listen(id, backlog))
		return id;
	if (id)
		rdma_destroy_id(id);
	return NULL;
}

/* An identifier whose address and route are resolved. */
static inline struct rdma_cm_id *cm_client(struct rdma_event_channel *channel, uint16_t port)
{
	struct sockaddr_in addr = cm_loopback(port);
	struct rdma_cm_id *id = cm_new(channel);

	if (!id)
		return NULL;
	if (!rdma_resolve_addr(id, NULL, (struct sockaddr *)&addr, 1000) &&
	    cm_expect(channel, RDMA_CM_EVENT_ADDR_RESOLVED, NULL) &&
	    !rdma_resolve_route(id, 1000) && cm_expect(channel, RDMA_CM_EVENT_ROUTE_RESOLVED, NULL))
		return id;
	rdma_destroy_id(id);
	return NULL;
}

static inline struct rdma_conn_param cm_param(uint32_t qpn)
{
	return (struct rdma_conn_param){ .responder_resources = 4,
					 .initiator_depth = 4,
					 .retry_count = 7,
					 .rnr_retry_count = 7,
					 .qp_num = qpn };
}

/* Both sides of a connection of identifiers without queue pairs. */
struct pair {
	/* of the connecting side and of the listening side */
	struct rdma_event_channel *near, *far;
	struct rdma_cm_id *listener, *active, *passive;
};

static inline bool pair_listen(struct pair *pair)
{
	memset(pair, 0, sizeof(*pair));
	pair->near = rdma_create_event_channel();
	pair->far = rdma_create_event_channel();
	pair->listener = pair->far ? cm_listener(pair->far, 0) : NULL;
	pair->active = pair->near && pair->listener
			       ? cm_client(pair->near, ntohs(rdma_get_src_port(pair->listener)))
			       : NULL;
	return pair->active;
}

static inline bool pair_request(struct pair *pair)
{
	struct rdma_conn_param param = cm_param(0x123);
	struct seen seen;

	if (!pair_listen(pair) || rdma_connect(pair->active, &param) ||
	    !cm_expect(pair->far, RDMA_CM_EVENT_CONNECT_REQUEST, &seen))
		return false;
	pair->passive = seen.event.id;
	return true;
}

static inline bool pair_connect(struct pair *pair)
{
	struct rdma_conn_param param = cm_param(0x456);

	return pair_request(pair) && !rdma_accept(pair->passive, &param) &&
	       cm_expect(pair->near, RDMA_CM_EVENT_CONNECT_RESPONSE, NULL) &&
	       !rdma_establish(pair->active) &&
	       cm_expect(pair->far, RDMA_CM_EVENT_ESTABLISHED, NULL);
}

static inline void pair_free(struct pair *pair)
{
	if (pair->active)
		CU_ASSERT_EQUAL(rdma_destroy_id(pair->active), 0);
	if (pair->passive)
		CU_ASSERT_EQUAL(rdma_destroy_id(pair->passive), 0);
	if (pair->listener)
		CU_ASSERT_EQUAL(rdma_destroy_id(pair->listener), 0);
	if (pair->near)
		rdma_destroy_event_channel(pair->near);
	if (pair->far)
		rdma_destroy_event_channel(pair->far);
}

static inline bool is_zero(const uint8_t *data, size_t size)
{
	while (size && !data[size - 1])
		size--;
	return !size;
}

#endif
