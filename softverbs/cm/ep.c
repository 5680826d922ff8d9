/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* rdma_create_ep and related calls: an identifier, its addresses and its queue pair in one call. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "softverbs/cm/cm.h"

#define RESOLVE_MS 2000

/* Keeps the attributes for the queue pairs of the listener's requests. */
static int ep_passive(struct cm_id *id, struct rdma_addrinfo *info, struct ibv_pd *pd,
		      const struct ibv_qp_init_attr *attr)
{
	if (rdma_bind_addr(&id->id, info->ai_src_addr))
		return -1;
	id->ep_pd = pd;
	if (!attr)
		return 0;
	id->ep_attr = malloc(sizeof(*attr));
	if (!id->ep_attr)
		return sv_cm_fail(ENOMEM);
	*id->ep_attr = *attr;
	id->ep_attr->qp_type = (enum ibv_qp_type)info->ai_qp_type;
	return 0;
}

static int ep_active(struct cm_id *id, struct rdma_addrinfo *info, struct ibv_pd *pd,
		     struct ibv_qp_init_attr *attr)
{
	if (rdma_resolve_addr(&id->id, info->ai_src_addr, info->ai_dst_addr, RESOLVE_MS) ||
	    rdma_resolve_route(&id->id, RESOLVE_MS))
		return -1;
	if (!attr)
		return 0;
	attr->qp_type = (enum ibv_qp_type)info->ai_qp_type;
	return rdma_create_qp(&id->id, pd, attr);
}

int rdma_create_ep(struct rdma_cm_id **out, struct rdma_addrinfo *info, struct ibv_pd *pd,
		   struct ibv_qp_init_attr *attr)
{
	struct rdma_cm_id *id;
	int error;

	if (rdma_create_id(NULL, &id, NULL, (enum rdma_port_space)info->ai_port_space))
		return -1;
	if (info->ai_flags & RAI_PASSIVE)
		error = ep_passive(cm_id_of(id), info, pd, attr);
	else
		error = ep_active(cm_id_of(id), info, pd, attr);
	if (!error) {
		*out = id;
		return 0;
	}
	error = errno;
	rdma_destroy_ep(id);
	return sv_cm_fail(error);
}

void rdma_destroy_ep(struct rdma_cm_id *id)
{
	if (id->qp)
		rdma_destroy_qp(id);
	if (id->srq)
		rdma_destroy_srq(id);
	rdma_destroy_id(id);
}

/* Moves the identifier of the request to a channel of its own, and keeps the event until its next call. */
static int request_keep(struct cm_id *listener, struct rdma_cm_event *event)
{
	struct rdma_cm_id *id = event->id;
	struct ibv_qp_init_attr attr;
	int error;

	if (rdma_migrate_id(id, NULL))
		return -1;
	if (!listener->ep_attr)
		return 0;
	attr = *listener->ep_attr;
	if (!rdma_create_qp(id, listener->ep_pd, &attr))
		return 0;
	error = errno;
	rdma_reject(id, NULL, 0);
	return sv_cm_fail(error);
}

int rdma_get_request(struct rdma_cm_id *public, struct rdma_cm_id **id)
{
	struct cm_id *listener = cm_id_of(public);
	struct rdma_cm_event *event;
	int error;

	if (!sv_cm_id_is_ours(listener))
		return sv_cm_fail(ENODEV);
	if (!listener->sync)
		return sv_cm_fail(EINVAL);
	if (public->event) {
		rdma_ack_cm_event(public->event);
		public->event = NULL;
	}
	if (rdma_get_cm_event(public->channel, &event))
		return -1;
	if (event->event != RDMA_CM_EVENT_CONNECT_REQUEST) {
		error = event->status < 0 ? -event->status : EINVAL;
		rdma_ack_cm_event(event);
		return sv_cm_fail(error);
	}
	if (!request_keep(listener, event)) {
		*id = event->id;
		(*id)->event = event;
		return 0;
	}
	error = errno;
	*id = event->id;
	rdma_ack_cm_event(event);
	rdma_destroy_ep(*id);
	*id = NULL;
	return sv_cm_fail(error);
}
