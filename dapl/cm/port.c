/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* The port of a channel's verbs device, and the attributes of it that the peers of a connection exchange. */
#include <errno.h>
#include <string.h>
#include "dapl/cm/id.h"
#include "util/log.h"

static int open_named(const char *name, struct ibv_context **verbs)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	int i, error = ENODEV;

	if (!list) {
		error = errno;
		log_at(LOG_ERROR, "%s: ibv_get_device_list: %m", name);
		return error;
	}
	for (i = 0; list[i] && strcmp(ibv_get_device_name(list[i]), name); i++)
		;
	if (!list[i]) {
		log_at(LOG_ERROR, "%s: there is no verbs device of this name", name);
	} else {
		*verbs = ibv_open_device(list[i]);
		error = *verbs ? 0 : errno;
		if (error)
			log_at(LOG_ERROR, "%s: ibv_open_device: %s", name, strerror(error));
	}
	ibv_free_device_list(list);
	return error;
}

/* iWARP: the kernel connects the QP, which has no attributes that peers could exchange. */
static int transport_check(struct ibv_device *device)
{
	if (device->transport_type != IBV_TRANSPORT_IWARP)
		return 0;
	log_at(LOG_ERROR,
	       "%s: this CM cannot connect the QPs of an iWARP device; libdaplofa.so.2 can",
	       ibv_get_device_name(device));
	return ENXIO;
}

static uint8_t mtu_offered(const struct cm_channel *channel, enum ibv_mtu active)
{
	long most = cm_setting(channel, SET_IB_MTU);

	while (most && active > IBV_MTU_256 && 128 << active > most)
		active--;
	return (uint8_t)active;
}

int cm_port_read(struct cm_channel *channel)
{
	struct cm_port *port = &channel->port;
	const char *name = ibv_get_device_name(port->verbs->device);
	struct ibv_port_attr attr;
	int error = ibv_query_port(port->verbs, port->num, &attr);

	if (error) {
		log_at(LOG_ERROR, "%s: ibv_query_port: %s", name, strerror(error));
		return error;
	}
	if (ibv_query_gid(port->verbs, port->num, 0, &port->gid)) {
		error = errno;
		log_at(LOG_ERROR, "%s: ibv_query_gid: %m", name);
		return error ? error : EIO;
	}
	port->ethernet = attr.link_layer == IBV_LINK_LAYER_ETHERNET;
	port->lid = attr.lid;
	port->mtu = mtu_offered(channel, attr.active_mtu);
	return 0;
}

static int device_read(struct cm_port *port, const char *name, unsigned num)
{
	struct ibv_device_attr attr;
	int error = ibv_query_device(port->verbs, &attr);

	if (error) {
		log_at(LOG_ERROR, "%s: ibv_query_device: %s", name, strerror(error));
		return error;
	}
	if (!num || num > attr.phys_port_cnt) {
		log_at(LOG_ERROR, "%s has no port %u: its ports are 1 to %u", name, num,
		       attr.phys_port_cnt);
		return ENXIO;
	}
	port->num = (uint8_t)num;
	port->ack_delay = attr.local_ca_ack_delay;
	port->atomics = attr.atomic_cap != IBV_ATOMIC_NONE;
	port->max_wr = attr.max_qp_wr;
	port->max_cqe = attr.max_cqe;
	return 0;
}

int cm_attach(struct rdma_event_channel *given, const char *device, unsigned port,
	      const struct sockaddr *address)
{
	struct cm_channel *channel = cm_channel_of(given);
	int error;

	cm_lock(channel);
	memset(&channel->address, 0, sizeof(channel->address));
	if (address)
		memcpy(&channel->address, address, cm_transport.address_size);
	error = open_named(device, &channel->port.verbs);
	if (!error)
		error = transport_check(channel->port.verbs->device);
	if (!error)
		error = device_read(&channel->port, device, port);
	if (!error)
		error = cm_port_read(channel);
	if (!error && cm_transport.open)
		error = cm_transport.open(channel);
	cm_unlock(channel);
	return error;
}

void cm_port_close(struct cm_channel *channel)
{
	if (channel->port.verbs && cm_transport.close)
		cm_transport.close(channel);
	if (channel->port.verbs && ibv_close_device(channel->port.verbs))
		log_at(LOG_WARN, "CM: ibv_close_device: %m");
}

void cm_endpoint_here(const struct cm_id *id, unsigned char bytes[CM_ENDPOINT])
{
	const struct cm_port *port = &id->channel->port;
	struct cm_endpoint here = { .lid = port->lid,
				    .qpn = id->qpn,
				    .qp_type = (uint8_t)id->id.qp_type };

	memcpy(here.gid, port->gid.raw, sizeof(here.gid));
	cm_endpoint_write(&here, bytes);
}

/* Returns the lower MTU of the two sides. Messages before version 9 carry none: such peers use 2048. */
static uint8_t mtu_agreed(const struct cm_port *port, const struct cm_message *message)
{
	bool said =
		message->ver >= 9 && message->mtu >= IBV_MTU_256 && message->mtu <= IBV_MTU_4096;
	uint8_t peer = said ? message->mtu : IBV_MTU_2048;

	return peer < port->mtu ? peer : port->mtu;
}

void cm_peer_copy(struct cm_id *id, const struct cm_message *message, const void *data)
{
	id->peer = *message;
	cm_endpoint_read(&id->endpoint, message->saddr);
	id->mtu = mtu_agreed(&id->channel->port, message);
	if (message->p_size)
		memcpy(id->data, data, message->p_size);
}
