/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Identifiers: the calls of rdma_cm on them. Each call checks the state and calls the transport. */
#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "dapl/cm/id.h"
#include "util/log.h"

/* Releases the lock. Returns 0, or -1 with errno. */
static int outcome(struct cm_channel *channel, int error)
{
	cm_unlock(channel);
	if (!error)
		return 0;
	errno = error;
	return -1;
}

/* ---- create and destroy ---- */

struct cm_id *cm_id_new(struct cm_channel *channel, void *context, enum rdma_port_space space)
{
	struct cm_id *id = calloc(1, cm_transport.id_size);

	if (!id)
		return NULL;
	id->channel = channel;
	id->id.channel = &channel->channel;
	id->id.context = context;
	id->id.ps = space;
	id->id.qp_type = space == RDMA_PS_UDP ? IBV_QPT_UD : IBV_QPT_RC;
	cm_transport.id_init(id);
	return id;
}

void cm_id_free(struct cm_id *id)
{
	cm_timer_disarm(id->channel, &id->timer);
	free(id);
}

int rdma_create_id(struct rdma_event_channel *given, struct rdma_cm_id **id, void *context,
		   enum rdma_port_space space)
{
	struct cm_channel *channel = cm_channel_of(given);
	struct cm_id *new;

	if (space != RDMA_PS_TCP && space != RDMA_PS_UDP) {
		errno = EPROTONOSUPPORT;
		return -1;
	}
	cm_lock(channel);
	new = cm_id_new(channel, context, space);
	if (new)
		*id = &new->id;
	return outcome(channel, new ? 0 : ENOMEM);
}

int rdma_destroy_id(struct rdma_cm_id *given)
{
	struct cm_id *id = cm_id_of(given);
	struct cm_channel *channel = id->channel;
	int cancel;

	cm_lock(channel);
	cancel = channel->cancel;
	cm_transport.drop(id);
	if (id->state == CM_LISTENING)
		LIST_REMOVE(id, entry);
	id->state = CM_OVER;
	cm_events_forget(id);
	while (id->unacked) {
		pthread_cond_wait(&channel->acked, &channel->lock);
		channel->cancel = cancel; /* other threads held the lock during the wait */
	}
	cm_id_free(id);
	cm_unlock(channel);
	return 0;
}

/* ---- addresses ---- */

static void id_bind_locked(struct cm_id *id)
{
	struct cm_channel *channel = id->channel;

	id->id.verbs = channel->port.verbs;
	id->id.port_num = channel->port.num;
	id->id.route.addr.src_storage = channel->address;
	id->id.route.addr.addr.ibaddr.sgid = channel->port.gid;
}

int rdma_bind_addr(struct rdma_cm_id *given, struct sockaddr *address)
{
	struct cm_id *id = cm_id_of(given);
	int error = 0;

	cm_lock(id->channel);
	if (id->state != CM_IDLE)
		error = EINVAL;
	else if (!id->channel->port.verbs)
		error = ENODEV;
	if (!error) {
		id_bind_locked(id);
		id->local = cm_transport.port_get(address);
		id->state = CM_BOUND;
	}
	return outcome(id->channel, error);
}

int rdma_resolve_addr(struct rdma_cm_id *given, struct sockaddr *source,
		      struct sockaddr *destination, int milliseconds)
{
	struct cm_id *id = cm_id_of(given);
	int error = 0;

	(void)source; /* the channel's address is used */
	(void)milliseconds;
	cm_lock(id->channel);
	if (!id->channel->port.verbs)
		error = ENODEV;
	else if (id->state != CM_IDLE && id->state != CM_BOUND)
		error = EINVAL;
	else if (destination->sa_family != cm_transport.family)
		error = EAFNOSUPPORT;
	if (!error) {
		id_bind_locked(id);
		memcpy(&id->id.route.addr.dst_storage, destination, cm_transport.address_size);
		id->remote = cm_transport.port_get(destination);
		id->state = CM_ADDRESS;
		cm_event_post(id, CM_SLOT_FIRST, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
	}
	return outcome(id->channel, error);
}

int rdma_resolve_route(struct rdma_cm_id *given, int milliseconds)
{
	struct cm_id *id = cm_id_of(given);
	int error = 0;

	(void)milliseconds;
	cm_lock(id->channel);
	if (id->state != CM_ADDRESS)
		error = EINVAL;
	if (!error) {
		id->state = CM_ROUTE;
		cm_event_post(id, CM_SLOT_ROUTE, RDMA_CM_EVENT_ROUTE_RESOLVED, 0);
	}
	return outcome(id->channel, error);
}

__be16 rdma_get_src_port(struct rdma_cm_id *given)
{
	return htons(cm_id_of(given)->local);
}

__be16 rdma_get_dst_port(struct rdma_cm_id *given)
{
	return htons(cm_id_of(given)->remote);
}

/* The type of service applies to IP packets, which these connections do not use: accepted without effect. */
int rdma_set_option(struct rdma_cm_id *given, int level, int name, void *value, size_t size)
{
	(void)given;
	(void)value;
	(void)size;
	if (level == RDMA_OPTION_ID && name == RDMA_OPTION_ID_TOS)
		return 0;
	errno = ENOSYS;
	return -1;
}

/* ---- listen ---- */

/* True if an identifier of the other kind listens on the port already; the transport then passes it the
 * requests for this one. */
static bool is_beside_locked(const struct cm_id *id)
{
	const struct cm_id *other;

	if (!cm_is_datagram(id) || !id->local)
		return false;
	LIST_FOREACH(other, &id->channel->listeners, entry)
		if (!cm_is_datagram(other) && other->local == id->local)
			return true;
	return false;
}

struct cm_id *cm_listener_find(struct cm_channel *channel, uint16_t port, uint8_t qp_type)
{
	struct cm_id *id;

	LIST_FOREACH(id, &channel->listeners, entry)
		if (id->local == port && id->id.qp_type == qp_type)
			return id;
	return NULL;
}

void cm_id_request(struct cm_id *id, const struct cm_id *listener)
{
	id->id.ps = listener->id.ps;
	id->id.qp_type = listener->id.qp_type;
	id->retry_count = (uint8_t)cm_setting(id->channel, SET_ACK_RETRY);
	id->rnr_retry_count = (uint8_t)cm_setting(id->channel, SET_RNR_RETRY);
	id_bind_locked(id);
	cm_transport.port_set(&id->id.route.addr.src_addr, id->local);
}

int rdma_listen(struct rdma_cm_id *given, int backlog)
{
	struct cm_id *id = cm_id_of(given);
	int error = 0;

	(void)backlog; /* no limit */
	cm_lock(id->channel);
	if (id->state != CM_BOUND)
		error = EINVAL;
	else if (!is_beside_locked(id))
		error = cm_transport.listen(id);
	if (!error) {
		id->state = CM_LISTENING;
		LIST_INSERT_HEAD(&id->channel->listeners, id, entry);
		cm_transport.port_set(&id->id.route.addr.src_addr, id->local);
	}
	return outcome(id->channel, error);
}

/* ---- connections ---- */

int rdma_connect(struct rdma_cm_id *given, struct rdma_conn_param *param)
{
	struct cm_id *id = cm_id_of(given);
	int error = 0;

	cm_lock(id->channel);
	if (id->state != CM_ROUTE || param->private_data_len > CM_DATA)
		error = EINVAL;
	if (!error)
		error = cm_port_read(id->channel);
	if (!error) {
		id->qpn = param->qp_num;
		id->responder_resources = param->responder_resources;
		id->initiator_depth = param->initiator_depth;
		id->retry_count = param->retry_count;
		id->rnr_retry_count = param->rnr_retry_count;
		id->sent_size = param->private_data_len;
		if (id->sent_size)
			memcpy(id->sent, param->private_data, id->sent_size);
		id->state = CM_CONNECTING;
		error = cm_transport.connect(id);
		if (error)
			id->state = CM_OVER;
	}
	return outcome(id->channel, error);
}

int rdma_accept(struct rdma_cm_id *given, struct rdma_conn_param *param)
{
	struct cm_id *id = cm_id_of(given);
	int error = 0;

	cm_lock(id->channel);
	if (id->state != CM_REQUESTED || param->private_data_len > CM_DATA)
		error = EINVAL;
	if (!error)
		error = cm_port_read(id->channel);
	if (!error) {
		id->qpn = param->qp_num;
		id->responder_resources = param->responder_resources;
		error = cm_transport.accept(id, param->private_data, param->private_data_len);
	}
	return outcome(id->channel, error);
}

int rdma_reject(struct rdma_cm_id *given, const void *data, uint8_t size)
{
	struct cm_id *id = cm_id_of(given);
	int error = 0;

	cm_lock(id->channel);
	if ((id->state != CM_REQUESTED && id->state != CM_ANSWERED) || size > CM_DATA)
		error = EINVAL;
	if (!error) {
		cm_transport.reject(id, data ? CM_REJ_USER : CM_REJ_CM, data, size);
		id->state = CM_OVER;
	}
	return outcome(id->channel, error);
}

int rdma_establish(struct rdma_cm_id *given)
{
	struct cm_id *id = cm_id_of(given);
	int error = 0;

	cm_lock(id->channel);
	if (id->state != CM_ANSWERED)
		error = EINVAL;
	if (!error)
		error = cm_transport.establish(id);
	if (!error)
		id->state = CM_CONNECTED;
	return outcome(id->channel, error);
}

int rdma_disconnect(struct rdma_cm_id *given)
{
	struct cm_id *id = cm_id_of(given);
	int error = 0;

	cm_lock(id->channel);
	if (id->state != CM_CONNECTED)
		error = EINVAL;
	if (!error)
		error = cm_transport.disconnect(id);
	return outcome(id->channel, error);
}
