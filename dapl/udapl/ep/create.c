/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Creation of endpoints, with and without an SRQ: one path, two orders of checks. */
#include <string.h>
#include "dapl/udapl/ep/ep.h"
#include "dapl/udapl/base/lock_rank.h"
#include "dapl/udapl/base/provider.h"

struct ep_parts {
	struct dapl_ia *ia;
	struct dapl_pz *pz;
	struct dapl_evd *recv, *request, *connect;
	struct dapl_srq *srq;
};

bool ep_evd_find(const struct dapl_ia *ia, DAT_EVD_HANDLE handle, DAT_EVD_FLAGS flag,
		 struct dapl_evd **evd)
{
	*evd = evd_from(handle);
	if (!handle)
		return true;
	return *evd && (*evd)->flags & flag && (flag != DAT_EVD_DTO_FLAG || (*evd)->obj.ia == ia);
}

static DAT_RETURN parts_find(DAT_IA_HANDLE ia, DAT_PZ_HANDLE pz, DAT_EVD_HANDLE recv,
			     DAT_EVD_HANDLE request, DAT_EVD_HANDLE connect, struct ep_parts *parts)
{
	*parts = (struct ep_parts){ .ia = ia_from(ia), .pz = pz_from(pz) };
	if (!parts->ia)
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_IA);
	if (pz && (!parts->pz || parts->pz->obj.ia != parts->ia))
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_PZ);
	if (!ep_evd_find(parts->ia, connect, DAT_EVD_CONNECTION_FLAG, &parts->connect))
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EVD_CONN);
	if (!ep_evd_find(parts->ia, recv, DAT_EVD_DTO_FLAG, &parts->recv))
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EVD_RECV);
	if (!ep_evd_find(parts->ia, request, DAT_EVD_DTO_FLAG, &parts->request))
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EVD_REQUEST);
	return DAT_SUCCESS;
}

/* The EP takes over all its parts together, so that its destructor knows what to release. */
static bool ep_create_attach(struct dapl_ep *ep, const struct ep_parts *parts)
{
	struct ep_config config = { .pz = ep->pz,
				    .recv_evd = parts->recv,
				    .request_evd = parts->request,
				    .connect_evd = parts->connect,
				    .attr = ep->attr };
	bool joined;

	pthread_mutex_lock(&ep_streams_lock);
	joined = ep_streams_join_locked(ep, &config);
	pthread_mutex_unlock(&ep_streams_lock);
	if (joined)
		ep_config_set_locked(ep, &config);
	return joined;
}

/* NULL attributes stand for the defaults. */
static void attr_copy(struct dapl_ep *ep, const struct ep_parts *parts, const DAT_EP_ATTR *attr)
{
	if (attr)
		ep->attr = *attr;
	else
		ep_attr_default(parts->ia, parts->recv, parts->request, &ep->attr);
	ep->end.datagrams = ep_attr_is_datagram(&ep->attr);
	ep->default_depths = !attr;
	ep->read_in = ep->attr.max_rdma_read_in;
	ep->read_out = ep->attr.max_rdma_read_out;
	/* the counts belong to lists that are not kept */
	ep->attr.ep_transport_specific = NULL;
	ep->attr.ep_provider_specific = NULL;
	if (ep->srq)
		ep->attr.max_recv_iov = ep->srq->attr.max_recv_iov;
	ep_attr_complete(ep->obj.ia, ep->srq, &ep->attr);
}

/*
 * Takes over the reference on the SRQ that the caller holds. Fails with E(INVALID_PARAMETER) when
 * flags disagree.
 */
static DAT_RETURN ep_build(const struct ep_parts *parts, const DAT_EP_ATTR *attr,
			   struct dapl_ep **ep)
{
	struct dapl_ep *new = obj_new(parts->ia, OBJ_EP);
	DAT_RETURN status = DAT_SUCCESS;

	if (!new) {
		if (parts->srq)
			srq_detach(parts->srq);
		return DAT_ERROR(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_MEMORY);
	}
	lock_init(&new->end.post_lock, RANK_EP_POST);
	lock_init(&new->end.recv_lock, RANK_EP_RECV);
	pthread_mutex_init(&new->lock, NULL);
	pthread_cond_init(&new->idle, NULL);
	TAILQ_INIT(&new->peers);
	task_init(&new->task, parts->ia->device, ep_task_run);
	new->room = (struct evd_room_waiter){ .task = &new->task, .due = EP_DUE_ROOM };
	new->end.flights = (struct rmr_flights){ .lock = &new->end.post_lock,
						 .retired = &new->end.request.retired,
						 .task = &new->task,
						 .due = EP_DUE_FLIGHTS };
	new->srq = parts->srq;
	new->longest = parts->ia->attr->max_message < UINT32_MAX
			       ? (uint32_t)parts->ia->attr->max_message
			       : UINT32_MAX;
	address_copy(&new->local, ib_device_address(parts->ia->device));
	attr_copy(new, parts, attr);
	if (parts->pz && obj_hold(&parts->pz->obj))
		new->pz = parts->pz;
	if (parts->pz && !new->pz)
		status = DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_PZ);
	else if (!ep_create_attach(new, parts))
		status = DAT_ERROR(DAT_INVALID_PARAMETER, 0);
	else if (new->pz)
		status = ep_qp_create_locked(new);
	if (status != DAT_SUCCESS) {
		ep_dispose(new);
		return status;
	}
	obj_publish(&new->obj, OBJ_EP);
	ep_inline_update(new);
	*ep = new;
	return DAT_SUCCESS;
}

static bool is_aligned(const void *pointer)
{
	return !((uintptr_t)pointer & (_Alignof(DAT_EP_ATTR) - 1));
}

DAT_RETURN dapl_ep_create(DAT_IA_HANDLE ia, DAT_PZ_HANDLE pz, DAT_EVD_HANDLE recv,
			  DAT_EVD_HANDLE request, DAT_EVD_HANDLE connect, const DAT_EP_ATTR *attr,
			  DAT_EP_HANDLE *handle)
{
	struct ep_parts parts;
	struct dapl_ep *ep;
	DAT_RETURN status = parts_find(ia, pz, recv, request, connect, &parts);

	if (status != DAT_SUCCESS)
		return status;
	if (!handle)
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG7);
	if (!is_aligned(attr))
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG6);
	if (attr && !ep_attr_type_known(attr))
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG6);
	if (attr && !ep_attr_supported(parts.ia, attr))
		return DAT_ERROR(DAT_MODEL_NOT_SUPPORTED, 0);
	if (attr && !ep_attr_valid(parts.ia, attr, parts.recv, parts.request, false))
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG6);

	status = ep_build(&parts, attr, &ep);
	if (DAT_GET_TYPE(status) == DAT_INVALID_PARAMETER)
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG6);
	if (status == DAT_SUCCESS)
		*handle = ep;
	return status;
}

DAT_RETURN ep_create_tentative(struct dapl_ia *ia, struct dapl_ep **ep)
{
	return ep_build(&(struct ep_parts){ .ia = ia }, NULL, ep);
}

/* The SRQ is held from its check on, so that it is not freed after the check. */
static DAT_RETURN srq_find(DAT_SRQ_HANDLE handle, struct ep_parts *parts)
{
	struct dapl_srq *srq = srq_from(handle);
	DAT_RETURN status;

	if (!srq || srq->obj.ia != parts->ia)
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_SRQ);
	status = srq_attach(srq);
	if (status == DAT_SUCCESS)
		parts->srq = srq;
	return status;
}

static DAT_RETURN srq_attr_check(const struct ep_parts *parts, const DAT_EP_ATTR *attr,
				 const DAT_EP_HANDLE *handle)
{
	if (!attr || !is_aligned(attr))
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG7);
	if (!handle)
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG8);
	if (!ep_attr_type_known(attr) ||
	    !ep_attr_valid(parts->ia, attr, parts->recv, parts->request, true))
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG7);
	if (!ep_attr_supported(parts->ia, attr))
		return DAT_ERROR(DAT_MODEL_NOT_SUPPORTED, 0);
	return DAT_SUCCESS;
}

DAT_RETURN dapl_ep_create_with_srq(DAT_IA_HANDLE ia, DAT_PZ_HANDLE pz, DAT_EVD_HANDLE recv,
				   DAT_EVD_HANDLE request, DAT_EVD_HANDLE connect,
				   DAT_SRQ_HANDLE srq, const DAT_EP_ATTR *attr,
				   DAT_EP_HANDLE *handle)
{
	struct ep_parts parts;
	struct dapl_ep *ep;
	DAT_RETURN status = parts_find(ia, pz, recv, request, connect, &parts);

	if (status == DAT_SUCCESS)
		status = srq_find(srq, &parts);
	if (status != DAT_SUCCESS)
		return status;
	status = srq_attr_check(&parts, attr, handle);
	if (status != DAT_SUCCESS) {
		srq_detach(parts.srq);
		return status;
	}

	status = ep_build(&parts, attr, &ep);
	if (DAT_GET_TYPE(status) == DAT_INVALID_PARAMETER)
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG7);
	if (status == DAT_SUCCESS)
		*handle = ep;
	return status;
}
