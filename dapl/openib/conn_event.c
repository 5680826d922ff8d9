/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* CM events of connections, and the upcalls that follow from them. Runs with `upcalling` held. */
#include <errno.h>
#include <string.h>
#include "dapl/openib/openib.h"

#define REJECTED_BY_CONSUMER 28 /* InfiniBand CM, REJ reason: consumer reject */
#define SIDR_REJECTED	     2	/* the same, SIDR_REP status: reject */
#define READ_MOST	     32u

/* A copy of a CM event, which is acknowledged before it is handled (see dispatch()). */
struct cm_event {
	enum rdma_cm_event_type type;
	int status;
	struct rdma_cm_id *id, *listen_id;
	struct rdma_conn_param param; /* for connections; its private data for datagrams, too */
	struct rdma_ud_param ud;
	unsigned char data[IB_CONN_DATA];
};

/* Makes the final upcall. The owner may destroy `conn` in it, so callers must not use `conn` afterwards. */
static void conn_end(struct ib_conn *conn, enum ib_conn_event how, const struct cm_event *event)
{
	void *owner = conn->owner;

	if (atomic_exchange(&conn->step, CONN_ENDED) == CONN_ENDED || !owner)
		return;
	(conn->datagrams ? conn->device->upcalls.resolved
			 : conn->device->upcalls.conn)(owner, conn, how, event ? event->data : NULL,
						       event ? event->param.private_data_len : 0);
}

static void address_resolved(struct ib_conn *conn)
{
	int error;

	conn->tries = 0;
	conn_set_tos(conn);
	error = conn_resolve_route(conn);
	if (!error)
		return;
	ib_error(error, "rdma_resolve_route", "connection");
	conn_end(conn, IB_CONN_UNREACHABLE, NULL);
}

/* An iWARP device may connect over TCP in this call, which a host without the listener refuses. */
static void route_resolved(struct ib_conn *conn)
{
	int error;

	conn->step = CONN_CONNECTING;
	if (conn->datagrams)
		ud_request_address(conn);
	if (!rdma_connect(conn->id, &conn->param))
		return;
	error = errno;
	if (error == ECONNREFUSED || error == ECONNRESET) {
		conn_end(conn, IB_CONN_REJECTED, NULL);
		return;
	}
	ib_error(error, "rdma_connect", "connection");
	conn_end(conn, error_is_shortage(error) ? IB_CONN_ERROR : IB_CONN_UNREACHABLE, NULL);
}

/* Only a silence is worth another try. */
static void resolve_failed(struct ib_conn *conn, int status, bool route)
{
	long limit = device_setting(conn->device,
				    route ? SET_CM_ROUTE_RETRY_COUNT : SET_CM_ARP_RETRY_COUNT);

	if (status == -ETIMEDOUT && ++conn->tries < limit &&
	    !(route ? conn_resolve_route(conn) : conn_resolve_address(conn)))
		return;
	log_at(LOG_WARN, "connection: %s cannot be resolved: %s", route ? "route" : "address",
	       strerror(status < 0 ? -status : status));
	conn_end(conn, IB_CONN_UNREACHABLE, NULL);
}

static void conn_event_lower(uint8_t *depth, uint8_t answered)
{
	if (answered < *depth)
		*depth = answered;
}

/* The peer has accepted, and the QP of the active side is up. */
static void conn_event_accepted(struct ib_conn *conn, const struct cm_event *event)
{
	conn_event_lower(&conn->param.responder_resources, event->param.responder_resources);
	conn_event_lower(&conn->param.initiator_depth, event->param.initiator_depth);
	conn->step = CONN_ESTABLISHED;
	conn->device->upcalls.conn(conn->owner, conn, IB_CONN_ESTABLISHED, event->data,
				   event->param.private_data_len);
}

static void responded(struct ib_conn *conn, const struct cm_event *event)
{
	bool up = !conn_bring_up(conn, false);

	if (up && rdma_establish(conn->id)) {
		ib_error(errno, "rdma_establish", "connection");
		up = false;
	}
	if (!up) {
		if (rdma_reject(conn->id, NULL, 0))
			ib_error(errno, "rdma_reject", "connection");
		conn_end(conn, IB_CONN_ERROR, NULL);
		return;
	}
	conn_event_accepted(conn, event);
}

/* iWARP: the kernel brings the QP of the active side up, so that this is its first event of the connection. */
static void established(struct ib_conn *conn, const struct cm_event *event)
{
	if (conn->datagrams) {
		if (conn->step == CONN_CONNECTING)
			ud_peer_read(conn, &event->ud);
		conn_end(conn, IB_CONN_ESTABLISHED, event);
		return;
	}
	if (conn->step == CONN_CONNECTING) {
		conn_event_accepted(conn, event);
		return;
	}
	if (conn->step != CONN_ACCEPTED)
		return;
	conn->step = CONN_ESTABLISHED;
	conn->device->upcalls.conn(conn->owner, conn, IB_CONN_ESTABLISHED, NULL, 0);
}

/* On iWARP the status is an errno, and only a program's reject carries data. */
static bool rejected_by_peer(const struct ib_conn *conn, const struct cm_event *event)
{
	if (!conn->device->attr.iwarp)
		return event->status == REJECTED_BY_CONSUMER;
	return (event->status == -ECONNREFUSED || event->status == -ECONNRESET) &&
	       event->param.private_data_len;
}

/* For datagrams the CM reports a reject as UNREACHABLE, with a positive SIDR status. */
static void conn_event_unreachable(struct ib_conn *conn, const struct cm_event *event)
{
	if (conn->datagrams && event->status == SIDR_REJECTED)
		conn_end(conn, IB_CONN_REJECTED_BY_PEER, event);
	else if (conn->datagrams && event->status > 0)
		conn_end(conn, IB_CONN_REJECTED, event);
	else
		conn_end(conn, IB_CONN_UNREACHABLE, NULL);
}

static void handle(struct ib_conn *conn, const struct cm_event *event)
{
	switch (event->type) {
	case RDMA_CM_EVENT_ADDR_RESOLVED: address_resolved(conn); break;
	case RDMA_CM_EVENT_ROUTE_RESOLVED: route_resolved(conn); break;
	case RDMA_CM_EVENT_ADDR_ERROR: resolve_failed(conn, event->status, false); break;
	case RDMA_CM_EVENT_ROUTE_ERROR: resolve_failed(conn, event->status, true); break;
	case RDMA_CM_EVENT_CONNECT_RESPONSE: responded(conn, event); break;
	case RDMA_CM_EVENT_ESTABLISHED: established(conn, event); break;
	case RDMA_CM_EVENT_REJECTED:
		conn_end(conn,
			 rejected_by_peer(conn, event) ? IB_CONN_REJECTED_BY_PEER
						       : IB_CONN_REJECTED,
			 event);
		break;
	case RDMA_CM_EVENT_UNREACHABLE: conn_event_unreachable(conn, event); break;
	case RDMA_CM_EVENT_CONNECT_ERROR: conn_end(conn, IB_CONN_UNREACHABLE, NULL); break;
	case RDMA_CM_EVENT_DISCONNECTED: conn_end(conn, IB_CONN_DISCONNECTED, NULL); break;
	case RDMA_CM_EVENT_DEVICE_REMOVAL: conn_end(conn, IB_CONN_DEVICE_REMOVED, NULL); break;
	default: /* timewait, address change, multicast: nothing follows from them */ break;
	}
}

static void copy_event(struct cm_event *copy, const struct rdma_cm_event *event)
{
	const struct rdma_conn_param *param = &event->param.conn;

	copy->type = event->event;
	copy->status = event->status;
	copy->id = event->id;
	copy->listen_id = event->listen_id;
	copy->param = *param;
	copy->ud = event->param.ud;
	if (!param->private_data)
		copy->param.private_data_len = 0;
	if (copy->param.private_data_len)
		memcpy(copy->data, param->private_data, copy->param.private_data_len);
}

/* NULL for the id that holds the device, and for a listener: the former alone reports the device's removal. */
static struct ib_conn *conn_of(const struct rdma_cm_id *id)
{
	const bool *listens = id->context;

	return !listens || *listens ? NULL : id->context;
}

/*
 * rdma_destroy_id(3) waits for the acknowledgement, so the object exists until then: upcall_begin() is called before
 * it. The event is handled after it, since the upcall may call rdma_destroy_id.
 */
static void dispatch(struct ib_device *device, struct rdma_cm_event *event)
{
	bool request = event->event == RDMA_CM_EVENT_CONNECT_REQUEST, begun = false;
	bool removed = event->event == RDMA_CM_EVENT_DEVICE_REMOVAL && event->id == device->bound;
	struct ib_listener *listener = request ? event->listen_id->context : NULL;
	struct ib_conn *conn = request ? NULL : conn_of(event->id);
	struct cm_event copy;
	bool left;

	copy_event(&copy, event);
	if (listener)
		begun = upcall_begin(device, listener, &listener->dead);
	else if (conn)
		begun = upcall_begin(device, conn, &conn->dead);
	left = conn && !begun && conn_drain_ends(conn, event->event);
	rdma_ack_cm_event(event);
	if (left)
		conn_free(conn);
	if (removed)
		async_device_gone(device);
	if (request && !begun) { /* the listener is being closed */
		rdma_reject(copy.id, NULL, 0);
		rdma_destroy_id(copy.id);
	}
	if (!begun)
		return;
	if (listener)
		listener_request(listener, copy.id, &copy.param, &copy.ud, copy.data,
				 copy.param.private_data_len);
	else
		handle(conn, &copy);
	upcall_end(device);
}

/* Bounded, so that the reading thread gets to its other work; unread events keep the channel readable. */
void conn_read_channel(struct ib_device *device)
{
	struct rdma_cm_event *event;
	unsigned i;

	for (i = 0; i < READ_MOST; i++) {
		if (rdma_get_cm_event(device->channel, &event)) {
			if (errno != EAGAIN && errno != EINTR)
				ib_error(errno, "rdma_get_cm_event", device->attr.device_name);
			return;
		}
		dispatch(device, event);
	}
}
