/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Connections: the CM's id on one side, the QP it never owns on the other. */
#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "dapl/openib/openib.h"

#define REJECTED_BY_CONSUMER 28		/* InfiniBand CM, REJ reason: consumer reject */

struct ib_conn *conn_new(struct ib_device *device, struct rdma_cm_id *id)
{
	struct ib_conn *conn = calloc(1, sizeof(*conn));

	if (!conn)
		return NULL;
	conn->device = device;
	conn->id = id;
	if (id)
		id->context = conn;
	return conn;
}

/* What the settings say otherwise than the CM; -1 leaves it as the CM has it. */
static void apply_settings(const struct ib_device *device, struct ibv_qp_attr *attr)
{
	long rnr_timer = device_setting(device, SET_RNR_TIMER), ack_timer = device_setting(device, SET_ACK_TIMER);

	if (attr->qp_state == IBV_QPS_RTR) {
		if (rnr_timer >= 0)
			attr->min_rnr_timer = (uint8_t)rnr_timer;
		while (attr->path_mtu > IBV_MTU_256 && 128u << attr->path_mtu > device->attr.mtu)
			attr->path_mtu--;
	} else if (attr->qp_state == IBV_QPS_RTS && ack_timer >= 0) {
		attr->timeout = (uint8_t)ack_timer;
	}
}

/* Through INIT, RTR and RTS with the attributes that the CM supplies for this id. */
static int bring_up(struct ib_conn *conn, bool passive)
{
	static const enum ibv_qp_state states[] = { IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS };
	struct ibv_qp_attr attr;
	int error, i, mask;

	for (i = 0; i < 3; i++) {
		memset(&attr, 0, sizeof(attr));
		attr.qp_state = states[i];
		if (rdma_init_qp_attr(conn->id, &attr, &mask)) {
			error = errno;
			ib_error(error, "rdma_init_qp_attr", "connection");
			return error;
		}
		/* What this side agreed to; the CM of the passive side still has what the request asked for. */
		if (passive && states[i] == IBV_QPS_RTR)
			attr.max_dest_rd_atomic = conn->param.responder_resources;
		if (passive && states[i] == IBV_QPS_RTS)
			attr.max_rd_atomic = conn->param.initiator_depth;
		apply_settings(conn->device, &attr);
		error = ibv_modify_qp(conn->qp->qp, &attr, mask);
		if (error) {
			ib_error(error, "ibv_modify_qp", "connection");
			return error;
		}
	}
	return 0;
}

static void set_tos(struct ib_conn *conn)
{
	uint8_t tos = (uint8_t)device_setting(conn->device, SET_CM_TOS);

	if (tos && rdma_set_option(conn->id, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, &tos, sizeof(tos)))
		ib_error(errno, "rdma_set_option", "connection");
}

static int resolve_address(struct ib_conn *conn)
{
	struct sockaddr_storage local = conn->device->address;

	conn->step = CONN_RESOLVING_ADDRESS;
	return rdma_resolve_addr(conn->id, (struct sockaddr *)&local, (struct sockaddr *)&conn->remote,
				 (int)device_setting(conn->device, SET_CM_ARP_TIMEOUT_MS)) ? errno : 0;
}

static int resolve_route(struct ib_conn *conn)
{
	conn->step = CONN_RESOLVING_ROUTE;
	return rdma_resolve_route(conn->id, (int)device_setting(conn->device, SET_CM_ROUTE_TIMEOUT_MS)) ? errno : 0;
}

/* How often the peer sends again what finds no buffer here; each side says so for the other. */
static uint8_t rnr_retries(const struct ib_conn_param *param, uint8_t usual)
{
	return param->never_receives ? 0 : usual;
}

DAT_RETURN ib_conn_connect(struct ib_device *device, struct ib_qp *qp, const struct sockaddr *remote,
			   const struct ib_conn_param *param, void *owner, struct ib_conn **conn)
{
	struct ib_conn *new = conn_new(device, NULL);
	int error;

	if (!new)
		return DAT_ERROR(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_MEMORY);
	new->owner = owner;
	new->qp = qp;
	memcpy(&new->remote, remote, sockaddr_size(remote));
	if (param->size)
		memcpy(new->data, param->data, param->size);
	new->param = (struct rdma_conn_param){
		.private_data = new->data,
		.private_data_len = (uint8_t)param->size,
		.responder_resources = param->responder_resources,
		.initiator_depth = param->initiator_depth,
		.flow_control = 1,
		.retry_count = (uint8_t)device_setting(device, SET_ACK_RETRY),
		.rnr_retry_count = rnr_retries(param, (uint8_t)device_setting(device, SET_RNR_RETRY)),
		.srq = qp->qp->srq != NULL,
		.qp_num = qp->qp->qp_num,
	};
	if (rdma_create_id(device->channel, &new->id, new, RDMA_PS_TCP)) {
		error = errno;
		free(new);
		return ib_error(error, "rdma_create_id", "connection");
	}
	*conn = new;	/* first: an upcall may come before this returns */
	error = resolve_address(new);
	if (!error)
		return DAT_SUCCESS;
	*conn = NULL;
	rdma_destroy_id(new->id);
	free(new);
	return ib_error(error, "rdma_resolve_addr", "connection");
}

DAT_RETURN ib_conn_accept(struct ib_conn *conn, struct ib_qp *qp, const struct ib_conn_param *param,
			  void *owner)
{
	int error;

	conn->qp = qp;
	conn->owner = owner;
	conn->param.private_data = param->data;
	conn->param.private_data_len = (uint8_t)param->size;
	conn->param.responder_resources = param->responder_resources;
	conn->param.initiator_depth = param->initiator_depth;
	conn->param.rnr_retry_count = rnr_retries(param, conn->param.rnr_retry_count);
	conn->param.srq = qp->qp->srq != NULL;
	conn->param.qp_num = qp->qp->qp_num;
	error = bring_up(conn, true);
	conn->step = CONN_ACCEPTED;	/* before the reply: its answer may be faster than this thread */
	if (!error && !rdma_accept(conn->id, &conn->param))
		return DAT_SUCCESS;
	if (!error)
		error = errno;
	conn->step = CONN_ENDED;
	/* The CM forgets a request whose sender gave up: it is no longer in a state to be answered. */
	if (rdma_reject(conn->id, NULL, 0) && errno == EINVAL) {
		log_at(LOG_NOTE, "connection request: the peer gave up before it was accepted");
		return DAT_ERROR(DAT_INVALID_STATE, 0);
	}
	ib_error(error, "rdma_accept", "connection");
	return DAT_ERROR(DAT_INTERNAL_ERROR, 0);
}

DAT_RETURN ib_conn_reject(struct ib_conn *conn, const void *data, uint32_t size)
{
	conn->step = CONN_ENDED;
	if (rdma_reject(conn->id, data, (uint8_t)size))
		return ib_error(errno, "rdma_reject", "connection request");
	return DAT_SUCCESS;
}

void ib_conn_disconnect(struct ib_conn *conn)
{
	/* EINVAL: it was never connected, or the CM has already taken it down. */
	if (rdma_disconnect(conn->id) && errno != EINVAL)
		ib_error(errno, "rdma_disconnect", "connection");
}

void ib_conn_destroy(struct ib_conn *conn)
{
	if (!conn)
		return;
	upcall_forbid(conn->device, conn, &conn->dead);
	if (conn->step == CONN_REQUESTED && rdma_reject(conn->id, NULL, 0) && errno != EINVAL)
		ib_error(errno, "rdma_reject", "connection request");
	if (rdma_destroy_id(conn->id))
		ib_error(errno, "rdma_destroy_id", "connection");
	free(conn);
}

uint16_t ib_conn_local_port(const struct ib_conn *conn)
{
	return ntohs(rdma_get_src_port(conn->id));
}

uint16_t ib_conn_remote_port(const struct ib_conn *conn)
{
	return ntohs(rdma_get_dst_port(conn->id));
}

void ib_conn_depths(const struct ib_conn *conn, uint8_t *responder_resources,
		    uint8_t *initiator_depth)
{
	*responder_resources = conn->param.responder_resources;
	*initiator_depth = conn->param.initiator_depth;
}

/* --- events: in the event thread, acknowledged, with an upcall begun ---------------------------- */

struct cm_event {			/* a copy, so that the CM's can be acknowledged before anybody acts on it */
	enum rdma_cm_event_type type;
	int status;
	struct rdma_cm_id *id, *listen_id;
	struct rdma_conn_param param;
	unsigned char data[IB_CONN_DATA];
};

/* The last thing done for a connection: the owner may destroy it in the upcall. */
static void end(struct ib_conn *conn, enum ib_conn_event how, const struct cm_event *event)
{
	void *owner = conn->owner;

	if (atomic_exchange(&conn->step, CONN_ENDED) == CONN_ENDED || !owner)
		return;
	conn->device->upcalls.conn(owner, conn, how, event ? event->data : NULL,
				   event ? event->param.private_data_len : 0);
}

static void address_resolved(struct ib_conn *conn)
{
	int error;

	conn->tries = 0;
	set_tos(conn);
	error = resolve_route(conn);
	if (!error)
		return;
	ib_error(error, "rdma_resolve_route", "connection");
	end(conn, IB_CONN_UNREACHABLE, NULL);
}

static void route_resolved(struct ib_conn *conn)
{
	int error;

	conn->step = CONN_CONNECTING;
	if (!rdma_connect(conn->id, &conn->param))
		return;
	error = errno;
	ib_error(error, "rdma_connect", "connection");
	end(conn, error == ENOMEM ? IB_CONN_ERROR : IB_CONN_UNREACHABLE, NULL);
}

/* Only a silence is worth another try. */
static void resolve_failed(struct ib_conn *conn, int status, bool route)
{
	long limit = device_setting(conn->device, route ? SET_CM_ROUTE_RETRY_COUNT : SET_CM_ARP_RETRY_COUNT);

	if (status == -ETIMEDOUT && ++conn->tries < limit &&
	    !(route ? resolve_route(conn) : resolve_address(conn)))
		return;
	log_at(LOG_WARN, "connection: %s cannot be resolved: %s", route ? "route" : "address",
	       strerror(status < 0 ? -status : status));
	end(conn, IB_CONN_UNREACHABLE, NULL);
}

static void lower(uint8_t *depth, uint8_t answered)
{
	if (answered < *depth)
		*depth = answered;
}

static void responded(struct ib_conn *conn, const struct cm_event *event)
{
	bool up = !bring_up(conn, false);

	if (up && rdma_establish(conn->id)) {
		ib_error(errno, "rdma_establish", "connection");
		up = false;
	}
	if (!up) {
		if (rdma_reject(conn->id, NULL, 0))
			ib_error(errno, "rdma_reject", "connection");
		end(conn, IB_CONN_ERROR, NULL);
		return;
	}
	lower(&conn->param.responder_resources, event->param.responder_resources);
	lower(&conn->param.initiator_depth, event->param.initiator_depth);
	conn->step = CONN_ESTABLISHED;
	conn->device->upcalls.conn(conn->owner, conn, IB_CONN_ESTABLISHED, event->data,
				   event->param.private_data_len);
}

static void established(struct ib_conn *conn)
{
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

static void handle(struct ib_conn *conn, const struct cm_event *event)
{
	switch (event->type) {
	case RDMA_CM_EVENT_ADDR_RESOLVED:
		address_resolved(conn);
		break;
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
		route_resolved(conn);
		break;
	case RDMA_CM_EVENT_ADDR_ERROR:
		resolve_failed(conn, event->status, false);
		break;
	case RDMA_CM_EVENT_ROUTE_ERROR:
		resolve_failed(conn, event->status, true);
		break;
	case RDMA_CM_EVENT_CONNECT_RESPONSE:
		responded(conn, event);
		break;
	case RDMA_CM_EVENT_ESTABLISHED:
		established(conn);
		break;
	case RDMA_CM_EVENT_REJECTED:
		end(conn, rejected_by_peer(conn, event) ? IB_CONN_REJECTED_BY_PEER : IB_CONN_REJECTED,
		    event);
		break;
	case RDMA_CM_EVENT_UNREACHABLE:
	case RDMA_CM_EVENT_CONNECT_ERROR:
		end(conn, IB_CONN_UNREACHABLE, NULL);
		break;
	case RDMA_CM_EVENT_DISCONNECTED:
		end(conn, IB_CONN_DISCONNECTED, NULL);
		break;
	case RDMA_CM_EVENT_DEVICE_REMOVAL:
		end(conn, IB_CONN_DEVICE_REMOVED, NULL);
		break;
	default:		/* timewait, address change, multicast: nothing follows from them */
		break;
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
	if (!param->private_data)
		copy->param.private_data_len = 0;
	if (copy->param.private_data_len)
		memcpy(copy->data, param->private_data, copy->param.private_data_len);
}

/*
 * Before the acknowledgement the object cannot go away: rdma_destroy_id(3) waits for it. So the upcall is
 * begun first, and acted on after, because it may end in rdma_destroy_id itself.
 */
static void dispatch(struct ib_device *device, struct rdma_cm_event *event)
{
	bool request = event->event == RDMA_CM_EVENT_CONNECT_REQUEST, begun = false;
	struct ib_listener *listener = request ? event->listen_id->context : NULL;
	struct ib_conn *conn = request ? NULL : event->id->context;
	struct cm_event copy;

	copy_event(&copy, event);
	if (listener)
		begun = upcall_begin(device, listener, &listener->dead);
	else if (conn && event->id != device->bound)
		begun = upcall_begin(device, conn, &conn->dead);
	rdma_ack_cm_event(event);
	if (request && !begun) {		/* the listener is being closed */
		rdma_reject(copy.id, NULL, 0);
		rdma_destroy_id(copy.id);
	}
	if (!begun)
		return;
	if (listener)
		listener_request(listener, copy.id, &copy.param, copy.data, copy.param.private_data_len);
	else
		handle(conn, &copy);
	upcall_end(device);
}

void conn_read_channel(struct ib_device *device)
{
	struct rdma_cm_event *event;

	while (!rdma_get_cm_event(device->channel, &event))
		dispatch(device, event);
	if (errno != EAGAIN && errno != EINTR)
		ib_error(errno, "rdma_get_cm_event", device->attr.device_name);
}
