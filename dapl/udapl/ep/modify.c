/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* dat_ep_modify: makes all requested changes or none. */
#include <stddef.h>
#include <string.h>
#include "dapl/udapl/ep/ep.h"
#include "dapl/udapl/base/provider.h"

#define EVDS                                                              \
	(DAT_EP_FIELD_RECV_EVD_HANDLE | DAT_EP_FIELD_REQUEST_EVD_HANDLE | \
	 DAT_EP_FIELD_CONNECT_EVD_HANDLE)
/* The attributes that can be changed only while the EP is UNCONNECTED. */
#define NAMED                                                                                     \
	(DAT_EP_FIELD_EP_ATTR_NUM_TRANSPORT_ATTR | DAT_EP_FIELD_EP_ATTR_TRANSPORT_SPECIFIC_ATTR | \
	 DAT_EP_FIELD_EP_ATTR_NUM_PROVIDER_ATTR | DAT_EP_FIELD_EP_ATTR_PROVIDER_SPECIFIC_ATTR)
#define ALWAYS_OPEN (EVDS | (DAT_EP_FIELD_EP_ATTR_ALL & ~NAMED))
#define DEPTHS	    (DAT_EP_FIELD_EP_ATTR_MAX_RDMA_READ_IN | DAT_EP_FIELD_EP_ATTR_MAX_RDMA_READ_OUT)

#define FIELD(bit, member)                                                 \
	{                                                                  \
		DAT_EP_FIELD_EP_ATTR_##bit, offsetof(DAT_EP_ATTR, member), \
			sizeof(((DAT_EP_ATTR *)NULL)->member)              \
	}

static const struct {
	DAT_EP_PARAM_MASK bit;
	size_t offset, size;
} fields[] = {
	FIELD(SERVICE_TYPE, service_type),
	FIELD(MAX_MESSAGE_SIZE, max_message_size),
	FIELD(MAX_RDMA_SIZE, max_rdma_size),
	FIELD(QOS, qos),
	FIELD(RECV_COMPLETION_FLAGS, recv_completion_flags),
	FIELD(REQUEST_COMPLETION_FLAGS, request_completion_flags),
	FIELD(MAX_RECV_DTOS, max_recv_dtos),
	FIELD(MAX_REQUEST_DTOS, max_request_dtos),
	FIELD(MAX_RECV_IOV, max_recv_iov),
	FIELD(MAX_REQUEST_IOV, max_request_iov),
	FIELD(MAX_RDMA_READ_IN, max_rdma_read_in),
	FIELD(MAX_RDMA_READ_OUT, max_rdma_read_out),
	FIELD(SRQ_SOFT_HW, srq_soft_hw),
	FIELD(MAX_RDMA_READ_IOV, max_rdma_read_iov),
	FIELD(MAX_RDMA_WRITE_IOV, max_rdma_write_iov),
	FIELD(NUM_TRANSPORT_ATTR, ep_transport_specific_count),
	FIELD(TRANSPORT_SPECIFIC_ATTR, ep_transport_specific),
	FIELD(NUM_PROVIDER_ATTR, ep_provider_specific_count),
	FIELD(PROVIDER_SPECIFIC_ATTR, ep_provider_specific),
};

static DAT_EP_PARAM_MASK open_in(DAT_EP_STATE state)
{
	switch ((int)state) {
	case DAT_EP_STATE_UNCONNECTED: return ALWAYS_OPEN | DAT_EP_FIELD_PZ_HANDLE | NAMED;
	case DAT_EP_STATE_TENTATIVE_CONNECTION_PENDING: return ALWAYS_OPEN | DAT_EP_FIELD_PZ_HANDLE;
	case DAT_EP_STATE_RESERVED:
	case DAT_EP_STATE_PASSIVE_CONNECTION_PENDING: return ALWAYS_OPEN;
	default: return 0;
	}
}

/*
 * A posted receive completes by the flags that were valid at its post, so they do not change before
 * that.
 */
static DAT_RETURN state_check_locked(struct dapl_ep *ep, DAT_EP_PARAM_MASK mask,
				     const DAT_EP_PARAM *param)
{
	DAT_EP_STATE state = atomic_load_explicit(&ep->state, memory_order_relaxed);

	if (mask & ~open_in(state))
		return ep_state_error(state);
	if (mask & DAT_EP_FIELD_EP_ATTR_RECV_COMPLETION_FLAGS &&
	    param->ep_attr.recv_completion_flags != ep->attr.recv_completion_flags) {
		ep_drain(ep);
		if (dto_ring_outstanding(&ep->end.recv))
			return ep_state_error(state);
	}
	return DAT_SUCCESS;
}

static bool handles_read(const struct dapl_ep *ep, DAT_EP_PARAM_MASK mask,
			 const DAT_EP_PARAM *param, struct ep_config *config)
{
	const struct dapl_ia *ia = ep->obj.ia;

	if (mask & DAT_EP_FIELD_PZ_HANDLE) {
		config->pz = pz_from(param->pz_handle);
		if (param->pz_handle && (!config->pz || config->pz->obj.ia != ia))
			return false;
	}
	return (!(mask & DAT_EP_FIELD_RECV_EVD_HANDLE) ||
		ep_evd_find(ia, param->recv_evd_handle, DAT_EVD_DTO_FLAG, &config->recv_evd)) &&
	       (!(mask & DAT_EP_FIELD_REQUEST_EVD_HANDLE) ||
		ep_evd_find(ia, param->request_evd_handle, DAT_EVD_DTO_FLAG,
			    &config->request_evd)) &&
	       (!(mask & DAT_EP_FIELD_CONNECT_EVD_HANDLE) ||
		ep_evd_find(ia, param->connect_evd_handle, DAT_EVD_CONNECTION_FLAG,
			    &config->connect_evd));
}

static void attr_merge(const struct dapl_ep *ep, DAT_EP_PARAM_MASK mask, const DAT_EP_PARAM *param,
		       DAT_EP_ATTR *attr)
{
	size_t i;

	for (i = 0; i < sizeof(fields) / sizeof(fields[0]); i++)
		if (mask & fields[i].bit)
			memcpy((char *)attr + fields[i].offset,
			       (const char *)&param->ep_attr + fields[i].offset, fields[i].size);
	if (ep->srq)
		attr->max_recv_iov = ep->attr.max_recv_iov;
}

/* Merges the requested values with those that stay. */
static DAT_RETURN config_make(const struct dapl_ep *ep, DAT_EP_PARAM_MASK mask,
			      const DAT_EP_PARAM *param, struct ep_config *config)
{
	*config = ep_config_of(ep);
	if (!handles_read(ep, mask, param, config))
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
	attr_merge(ep, mask, param, &config->attr);
	/* the service type stays */
	if (ep_attr_type_known(&config->attr) && config->attr.service_type != ep->attr.service_type)
		return DAT_ERROR(DAT_MODEL_NOT_SUPPORTED, 0);
	if (!ep_attr_type_known(&config->attr) ||
	    !ep_attr_valid(ep->obj.ia, &config->attr, config->recv_evd, config->request_evd,
			   ep->srq))
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
	if (!ep_attr_supported(ep->obj.ia, &config->attr))
		return DAT_ERROR(DAT_MODEL_NOT_SUPPORTED, 0);
	/* the lists are not kept */
	config->attr.ep_transport_specific = NULL;
	config->attr.ep_provider_specific = NULL;
	ep_attr_complete(ep->obj.ia, ep->srq, &config->attr);
	return DAT_SUCCESS;
}

static bool same_queues(const struct dapl_ep *ep, const DAT_EP_ATTR *attr)
{
	const DAT_EP_ATTR *now = &ep->attr;

	return attr->max_request_dtos == now->max_request_dtos &&
	       attr->max_request_iov == now->max_request_iov &&
	       (ep->srq || (attr->max_recv_dtos == now->max_recv_dtos &&
			    attr->max_recv_iov == now->max_recv_iov)) &&
	       (uint32_t)attr->max_rdma_read_iov <= ep->caps.send_sge &&
	       (uint32_t)attr->max_rdma_write_iov <= ep->caps.send_sge;
}

static bool needs_qp(const struct dapl_ep *ep, const struct ep_config *config)
{
	if (!ep->qp)
		return config->pz;
	return config->pz != ep->pz || config->recv_evd != ep->recv_evd ||
	       config->request_evd != ep->request_evd || !same_queues(ep, &config->attr);
}

/*
 * Holds the EVDs during the change: the EP's reference may be the last one on an EVD that it leaves,
 * while flushed receives still go to that EVD, or the change may have to be undone.
 */
struct held {
	struct dapl_evd *evds[3];
};

static struct held evds_hold(const struct ep_config *config)
{
	struct dapl_evd *all[] = { config->recv_evd, config->request_evd, config->connect_evd };
	struct held held = { { NULL } };
	size_t i;

	/* A connect EVD whose own IA was closed abruptly is no longer live. */
	for (i = 0; i < 3; i++)
		if (evd_from(all[i]) && obj_hold(&all[i]->obj))
			held.evds[i] = all[i];
	return held;
}

static void evds_release(const struct held *held)
{
	size_t i;

	for (i = 0; i < 3; i++)
		if (held->evds[i])
			obj_release(&held->evds[i]->obj);
}

struct change {
	struct ep_config before, config;
	struct held held;
	bool rebuild; /* `parts` has the new QP, `old` is the old one */
	struct ep_qp_parts parts;
	struct ib_qp *old;
};

/* All steps that can fail precede the first visible change. */
static DAT_RETURN streams_and_qp_locked(struct dapl_ep *ep, struct change *change)
{
	DAT_RETURN status = DAT_SUCCESS;
	bool moved;

	pthread_mutex_lock(&ep_streams_lock);
	moved = ep_streams_move_locked(ep, &change->before, &change->config);
	if (!moved)
		status = DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
	else if (change->rebuild)
		status = ep_qp_prepare(ep, &change->config, &change->parts);
	if (moved && status != DAT_SUCCESS)
		ep_streams_move_locked(ep, &change->config, &change->before);
	pthread_mutex_unlock(&ep_streams_lock);
	return status;
}

static DAT_RETURN change_begin_locked(struct dapl_ep *ep, DAT_EP_PARAM_MASK mask,
				      const DAT_EP_PARAM *param, struct change *change)
{
	struct ep_config *config = &change->config;
	DAT_RETURN status = state_check_locked(ep, mask, param);

	change->before = ep_config_of(ep);
	if (status == DAT_SUCCESS)
		status = config_make(ep, mask, param, config);
	if (status != DAT_SUCCESS)
		return status;
	if (config->pz && !obj_hold(&config->pz->obj))
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
	change->held = evds_hold(&change->before);
	change->rebuild = needs_qp(ep, config);
	status = streams_and_qp_locked(ep, change);
	if (status != DAT_SUCCESS) {
		evds_release(&change->held);
		if (config->pz)
			obj_release(&config->pz->obj);
	} else if (change->rebuild) {
		change->old = ep_qp_detach_locked(ep);
	} else {
		ep_config_set_locked(ep, config);
	}
	return status;
}

/*
 * Acquires the locks under which other threads follow the EP to its EVDs and read its attributes.
 */
static void locks_acquire(struct dapl_ep *ep)
{
	pthread_mutex_lock(&ep->obj.ia->lock);
	pthread_mutex_lock(&ep->lock);
}

static void locks_release(struct dapl_ep *ep)
{
	pthread_mutex_unlock(&ep->lock);
	pthread_mutex_unlock(&ep->obj.ia->lock);
}

static void change_end(struct dapl_ep *ep, DAT_EP_PARAM_MASK mask, struct change *change)
{
	if (change->old)
		ep_qp_flush(ep, change->old);
	locks_acquire(ep);
	if (change->rebuild)
		ep_qp_swap_locked(ep, change->old, &change->config, &change->parts);
	if (mask & DEPTHS)
		ep->default_depths = false;
	locks_release(ep);
	ib_qp_destroy(change->old);
	evds_release(&change->held);
	if (change->before.pz)
		obj_release(&change->before.pz->obj);
}

/* No lock is held while the old QP is flushed, which may take a second. */
static DAT_RETURN modify(struct dapl_ep *ep, DAT_EP_PARAM_MASK mask, const DAT_EP_PARAM *param)
{
	struct change change = { .rebuild = false };
	DAT_RETURN status;

	pthread_mutex_lock(&ep->lock);
	ep_busy_begin_locked(ep);
	pthread_mutex_unlock(&ep->lock);
	locks_acquire(ep);
	status = change_begin_locked(ep, mask, param, &change);
	locks_release(ep);
	if (status == DAT_SUCCESS)
		change_end(ep, mask, &change);
	pthread_mutex_lock(&ep->lock);
	ep_busy_end_locked(ep);
	pthread_mutex_unlock(&ep->lock);
	return status;
}

DAT_RETURN dapl_ep_modify(DAT_EP_HANDLE handle, DAT_EP_PARAM_MASK mask, const DAT_EP_PARAM *param)
{
	struct dapl_ep *ep = ep_from(handle);
	DAT_RETURN status;

	if (!ep)
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
	if (!param)
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
	if (mask & ~(ALWAYS_OPEN | NAMED | DAT_EP_FIELD_PZ_HANDLE))
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);

	if (!obj_hold(&ep->obj))
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
	status = modify(ep, mask, param);
	obj_release(&ep->obj);
	return status;
}
