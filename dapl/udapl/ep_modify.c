/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* dat_ep_modify: all of what is asked, or none of it. */
#include <stddef.h>
#include <string.h>
#include "dapl/udapl/ep.h"
#include "dapl/udapl/provider.h"

#define EVDS                                                              \
	(DAT_EP_FIELD_RECV_EVD_HANDLE | DAT_EP_FIELD_REQUEST_EVD_HANDLE | \
	 DAT_EP_FIELD_CONNECT_EVD_HANDLE)
/* The attributes that are for an UNCONNECTED EP alone. */
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

/* A receive completes as was agreed on when it was posted, so its flags stay until then. */
static DAT_RETURN state_check_locked(struct dapl_ep *ep, DAT_EP_PARAM_MASK mask,
				     const DAT_EP_PARAM *param)
{
	DAT_EP_STATE state = atomic_load_explicit(&ep->state, memory_order_relaxed);

	if (mask & ~open_in(state))
		return ep_state_error(state);
	if (mask & DAT_EP_FIELD_EP_ATTR_RECV_COMPLETION_FLAGS &&
	    param->ep_attr.recv_completion_flags != ep->attr.recv_completion_flags) {
		ep_drain(ep);
		if (dto_ring_outstanding(&ep->recv))
			return ep_state_error(state);
	}
	return DAT_SUCCESS;
}

static bool handles_take(const struct dapl_ep *ep, DAT_EP_PARAM_MASK mask,
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

/* The values that are asked for together with those that stay. */
static DAT_RETURN config_make(const struct dapl_ep *ep, DAT_EP_PARAM_MASK mask,
			      const DAT_EP_PARAM *param, struct ep_config *config)
{
	*config = ep_config_of(ep);
	if (!handles_take(ep, mask, param, config))
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
	attr_merge(ep, mask, param, &config->attr);
	/* what it is made for it stays */
	if (ep_attr_type_known(&config->attr) && config->attr.service_type != ep->attr.service_type)
		return DAT_ERROR(DAT_MODEL_NOT_SUPPORTED, 0);
	if (!ep_attr_type_known(&config->attr) ||
	    !ep_attr_valid(ep->obj.ia, &config->attr, config->recv_evd, config->request_evd,
			   ep->srq))
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
	if (!ep_attr_supported(ep->obj.ia, &config->attr))
		return DAT_ERROR(DAT_MODEL_NOT_SUPPORTED, 0);
	/* empty lists that are not kept */
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
 * The EP's reference may be the last on an EVD that it leaves, while flushed receives still go to
 * it, or while it may have to come back.
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

/* Everything that can fail comes before the first thing that is seen of it. */
static DAT_RETURN change_locked(struct dapl_ep *ep, const struct ep_config *before,
				const struct ep_config *config, struct ib_qp **old)
{
	bool rebuild = needs_qp(ep, config);
	struct ep_qp_parts parts;
	DAT_RETURN status;

	if (!ep_streams_move_locked(ep, before, config))
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
	if (!rebuild) {
		ep_config_set_locked(ep, config);
		return DAT_SUCCESS;
	}
	status = ep_qp_prepare(ep, config, &parts);
	if (status == DAT_SUCCESS)
		*old = ep_qp_swap_locked(ep, config, &parts);
	else
		ep_streams_move_locked(ep, config, before);
	return status;
}

static DAT_RETURN modify_locked(struct dapl_ep *ep, DAT_EP_PARAM_MASK mask,
				const DAT_EP_PARAM *param, struct ib_qp **old)
{
	struct ep_config before = ep_config_of(ep), config;
	DAT_RETURN status = state_check_locked(ep, mask, param);
	struct held held;

	if (status == DAT_SUCCESS)
		status = config_make(ep, mask, param, &config);
	if (status != DAT_SUCCESS)
		return status;
	if (config.pz && !obj_hold(&config.pz->obj))
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
	held = evds_hold(&before);
	pthread_mutex_lock(&ep_streams_lock);
	status = change_locked(ep, &before, &config, old);
	pthread_mutex_unlock(&ep_streams_lock);
	evds_release(&held);
	if (status != DAT_SUCCESS) {
		if (config.pz)
			obj_release(&config.pz->obj);
		return status;
	}
	if (before.pz)
		obj_release(&before.pz->obj);
	if (mask & DEPTHS)
		ep->default_depths = false;
	return DAT_SUCCESS;
}

/*
 * With the IA's lock, under which others follow an EP to its EVDs. In the states that allow a
 * change no connection waits for the EP's lock.
 */
DAT_RETURN dapl_ep_modify(DAT_EP_HANDLE handle, DAT_EP_PARAM_MASK mask, const DAT_EP_PARAM *param)
{
	struct dapl_ep *ep = ep_from(handle);
	struct ib_qp *old = NULL;
	DAT_RETURN status;

	if (!ep)
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
	if (!param)
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
	if (mask & ~(ALWAYS_OPEN | NAMED | DAT_EP_FIELD_PZ_HANDLE))
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);

	if (!obj_hold(&ep->obj))
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
	pthread_mutex_lock(&ep->obj.ia->lock);
	pthread_mutex_lock(&ep->lock);
	status = modify_locked(ep, mask, param, &old);
	pthread_mutex_unlock(&ep->lock);
	pthread_mutex_unlock(&ep->obj.ia->lock);
	ib_qp_destroy(old);
	obj_release(&ep->obj);
	return status;
}
