/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Listening on the device's address. */
#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "dapl/openib/openib.h"

static void set_port(struct sockaddr_storage *address, uint16_t port)
{
	if (address->ss_family == AF_INET6)
		((struct sockaddr_in6 *)address)->sin6_port = htons(port);
	else
		((struct sockaddr_in *)address)->sin_port = htons(port);
}

DAT_RETURN ib_listen(struct ib_device *device, uint16_t port, void *owner,
		     struct ib_listener **listener)
{
	struct ib_listener *new = calloc(1, sizeof(*new));
	struct sockaddr_storage address = device->address;
	int error;

	if (!new)
		return DAT_ERROR(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_MEMORY);
	new->device = device;
	new->owner = owner;
	if (rdma_create_id(device->channel, &new->id, new, RDMA_PS_TCP)) {
		error = errno;
		free(new);
		return ib_error(error, "rdma_create_id", "listener");
	}
	set_port(&address, port);
	/* Backlog 0: as many as the CM takes. The output comes first: a request may arrive before rdma_listen returns. */
	*listener = new;
	if (!rdma_bind_addr(new->id, (struct sockaddr *)&address) && !rdma_listen(new->id, 0))
		return DAT_SUCCESS;
	error = errno;
	*listener = NULL;
	rdma_destroy_id(new->id);
	free(new);
	if (error == EADDRINUSE || error == EADDRNOTAVAIL || error == EBUSY)
		return DAT_ERROR(DAT_CONN_QUAL_IN_USE, 0);	/* an answer, not a failure: not logged */
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
	if (rdma_destroy_id(listener->id))
		ib_error(errno, "rdma_destroy_id", "listener");
	free(listener);
}

/* Called in the event thread, after the event was acknowledged, with an upcall begun for the listener. */
void listener_request(struct ib_listener *listener, struct rdma_cm_id *id,
		      const struct rdma_conn_param *param, const void *data, uint32_t size)
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
		if (rdma_reject(id, NULL, 0))
			ib_error(errno, "rdma_reject", "request");
		rdma_destroy_id(id);
		return;
	}
	conn->param = *param;
	memcpy(&request.local, local, sockaddr_size(local));
	memcpy(&request.remote, remote, sockaddr_size(remote));
	device->upcalls.request(listener->owner, conn, &request);
}
