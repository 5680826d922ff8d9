/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Listening on the device's address. */
#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "dapl/openib/openib.h"

#define PORT_TRIES 16

static bool is_in_use(int error)
{
	return error == EADDRINUSE || error == EADDRNOTAVAIL || error == EBUSY;
}

/* Creates a listening id. Sets *id before it listens, since a request may arrive before this returns. */
static int listen_on(struct ib_listener *listener, enum rdma_port_space space, uint16_t port,
		     struct rdma_cm_id **id)
{
	struct sockaddr_storage address = listener->device->address;
	int error;

	if (rdma_create_id(listener->device->channel, id, listener, space)) {
		*id = NULL;
		return errno;
	}
	ib_cm.port_set(&address, port);
	/* backlog 0: the CM's maximum */
	if (!rdma_bind_addr(*id, (struct sockaddr *)&address) && !rdma_listen(*id, 0))
		return 0;
	error = errno;
	rdma_destroy_id(*id);
	*id = NULL;
	return error;
}

/*
 * Listens on one port number in both port spaces. A number that the CM chose in the first may be in use in the second;
 * then the CM chooses again.
 */
static int listen_on_both(struct ib_listener *listener, uint16_t port)
{
	int error, tries = port ? 1 : PORT_TRIES;

	do {
		error = listen_on(listener, RDMA_PS_TCP, port, &listener->id);
		if (error || !listener->device->attr.datagrams)
			return error;
		error = listen_on(listener, RDMA_PS_UDP, ntohs(rdma_get_src_port(listener->id)),
				  &listener->datagrams);
		if (!error)
			return 0;
		rdma_destroy_id(listener->id);
		listener->id = NULL;
	} while (is_in_use(error) && --tries);
	return error;
}

DAT_RETURN ib_listen(struct ib_device *device, uint16_t port, void *owner,
		     struct ib_listener **listener)
{
	struct ib_listener *new = calloc(1, sizeof(*new));
	int error;

	if (!new)
		return DAT_ERROR(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_MEMORY);
	new->listens = true;
	new->device = device;
	new->owner = owner;
	*listener = new;
	error = listen_on_both(new, port);
	if (!error)
		return DAT_SUCCESS;
	*listener = NULL;
	free(new);
	if (is_in_use(error))
		/* an expected result: not logged */
		return DAT_ERROR(DAT_CONN_QUAL_IN_USE, 0);
	return ib_error(error, "rdma_listen", "listener");
}

void ib_listener_address(const struct ib_listener *listener, struct sockaddr_storage *address)
{
	const struct sockaddr *local = rdma_get_local_addr(listener->id);

	memset(address, 0, sizeof(*address));
	memcpy(address, local, sockaddr_size(local));
}

void ib_listener_destroy(struct ib_listener *listener)
{
	if (!listener)
		return;
	upcall_forbid(listener->device, listener, &listener->dead);
	if (rdma_destroy_id(listener->id) ||
	    (listener->datagrams && rdma_destroy_id(listener->datagrams)))
		ib_error(errno, "rdma_destroy_id", "listener");
	free(listener);
}

static void request_refuse(struct rdma_cm_id *id)
{
	if (rdma_reject(id, NULL, 0))
		ib_error(errno, "rdma_reject", "request");
	rdma_destroy_id(id);
}

/* Called after the event was acknowledged and upcall_begin() has succeeded for the listener. */
void listener_request(struct ib_listener *listener, struct rdma_cm_id *id,
		      const struct rdma_conn_param *param, const struct rdma_ud_param *ud,
		      const void *data, uint32_t size)
{
	struct ib_device *device = listener->device;
	struct ib_conn *conn = conn_new(device, id);
	struct ib_request request = {
		.data = data,
		.size = size,
		.responder_resources = param->responder_resources,
		.initiator_depth = param->initiator_depth,
	};
	struct sockaddr *local = rdma_get_local_addr(id), *remote = rdma_get_peer_addr(id);

	if (!conn) {
		log_at(LOG_WARN, "listener: no memory for a connection request; refused");
		request_refuse(id);
		return;
	}
	conn->datagrams = request.datagrams = id->ps == RDMA_PS_UDP;
	if (conn->datagrams && !ud_request_read(conn, ud, &request)) {
		log_at(LOG_WARN, "listener: malformed request for a datagram endpoint; refused");
		request_refuse(id);
		free(conn);
		return;
	}
	conn->param = *param;
	memcpy(&request.local, local, sockaddr_size(local));
	memcpy(&request.remote, remote, sockaddr_size(remote));
	device->upcalls.request(listener->owner, conn, &request);
}
