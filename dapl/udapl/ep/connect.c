/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* The active side: dat_ep_connect, dat_ep_dup_connect and dat_ep_common_connect. */
#include <pthread.h>
#include <string.h>
#include "dapl/udapl/ep/ud.h"
#include "dapl/udapl/base/provider.h"
#include "dapl/udapl/ep/cr.h"
#include "util/clock.h"

/* The arguments of the three calls in one form. */
struct attempt {
	struct sockaddr_storage remote; /* the address with the port */
	DAT_CONN_QUAL qual;
	DAT_COMM comm;
	DAT_TIMEOUT timeout;
	DAT_COUNT size;
	const void *data;
};

static bool is_unicast(const struct sockaddr_storage *address)
{
	const struct sockaddr_in6 *v6 = (const void *)address;
	const struct sockaddr_in *v4 = (const void *)address;
	in_addr_t host;

	if (address->ss_family == AF_INET6)
		return !IN6_IS_ADDR_MULTICAST(&v6->sin6_addr);
	host = ntohl(v4->sin_addr.s_addr);
	return !IN_MULTICAST(host) && host != INADDR_BROADCAST;
}

/* Old consumers leave the family unset and mean IPv4. */
static DAT_RETURN remote_parse(const struct sockaddr *given, sa_family_t local_family,
			       struct sockaddr_storage *remote)
{
	sa_family_t family = given->sa_family == AF_UNSPEC ? AF_INET : given->sa_family;

	*remote = (struct sockaddr_storage){ .ss_family = AF_UNSPEC };
	if (family != AF_INET && family != AF_INET6)
		return DAT_ERROR(DAT_INVALID_ADDRESS, DAT_INVALID_ADDRESS_UNSUPPORTED);
	memcpy(remote, given,
	       family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in));
	remote->ss_family = family;
	if (!is_unicast(remote))
		return DAT_ERROR(DAT_INVALID_ADDRESS, DAT_INVALID_ADDRESS_UNSUPPORTED);
	if (family != local_family)
		return DAT_ERROR(DAT_INVALID_ADDRESS, DAT_INVALID_ADDRESS_UNREACHABLE);
	return DAT_SUCCESS;
}

/* The port of the qualifier replaces the one that the consumer wrote into the address. */
static DAT_RETURN qual_apply(struct attempt *attempt)
{
	uint16_t port = ib_cm.qual_port(attempt->qual);

	if (!port)
		return DAT_ERROR(DAT_INVALID_ADDRESS, DAT_INVALID_ADDRESS_MALFORMED);
	ib_cm.port_set(&attempt->remote, port);
	return DAT_SUCCESS;
}

/* `size_arg` and `data_arg` are the error subtypes of the two arguments. */
static DAT_RETURN private_check(const struct dapl_ep *ep, DAT_COUNT size, const void *data,
				DAT_RETURN_SUBTYPE size_arg, DAT_RETURN_SUBTYPE data_arg)
{
	const struct ib_attr *attr = ep->obj.ia->attr;
	uint32_t most = ep->end.datagrams ? attr->max_private_resolve : attr->max_private_connect;

	if (size < 0 || (uint32_t)size > most)
		return DAT_ERROR(DAT_INVALID_PARAMETER, size_arg);
	if (size && !data)
		return DAT_ERROR(DAT_INVALID_PARAMETER, data_arg);
	return DAT_SUCCESS;
}

bool ep_evds_live(const struct dapl_ep *ep)
{
	return (!ep->recv_evd || evd_from(ep->recv_evd)) &&
	       (!ep->request_evd || evd_from(ep->request_evd));
}

static uint8_t ep_connect_depth(DAT_COUNT wanted)
{
	return wanted > UINT8_MAX ? UINT8_MAX : (uint8_t)wanted;
}

/* An EP without a receive EVD does not use its SRQ: a message sent to it breaks the connection. */
struct ib_conn_param ep_conn_param(const struct dapl_ep *ep, const void *data, DAT_COUNT size)
{
	return (struct ib_conn_param){
		.responder_resources = ep_connect_depth(ep->attr.max_rdma_read_in),
		.initiator_depth = ep_connect_depth(ep->attr.max_rdma_read_out),
		.reads = ep->attr.max_rdma_read_out > 0,
		.never_receives = ep->srq && !ep->recv_evd,
		.data = data,
		.size = (uint32_t)size,
	};
}

void ep_depths_agreed_locked(struct dapl_ep *ep, uint8_t in, uint8_t out)
{
	if (!ep->default_depths)
		return;
	ep->attr.max_rdma_read_in = in;
	ep->attr.max_rdma_read_out = out;
}

static DAT_RETURN start_check_locked(struct dapl_ep *ep)
{
	DAT_EP_STATE state;

	for (;;) {
		state = atomic_load_explicit(&ep->state, memory_order_relaxed);
		if (!ep->pz || !ep_evds_live(ep))
			return DAT_ERROR(DAT_INVALID_STATE, DAT_INVALID_STATE_EP_NOTREADY);
		if (state != DAT_EP_STATE_UNCONNECTED)
			return ep_state_error(state);
		if (!ep->busy)
			break;
		/* A change of the EP is about to replace its QP. */
		pthread_cond_wait(&ep->idle, &ep->lock);
	}
	return ep->qp ? DAT_SUCCESS : ep_qp_create_locked(ep);
}

static DAT_RETURN start_locked(struct dapl_ep *ep, const struct attempt *attempt)
{
	struct ib_conn_param param = ep_conn_param(ep, attempt->data, attempt->size);
	DAT_RETURN status;

	ep_set_state_locked(ep, EP_CONNECT);
	status = ib_conn_connect(ep->obj.ia->device, ep->qp,
				 (const struct sockaddr *)&attempt->remote, &param, ep, &ep->conn);
	if (status != DAT_SUCCESS) {
		ep_set_state_locked(ep, EP_CONNECT_REFUSED);
		return status;
	}
	ep_count_locked(ep, DCNT_EP_CONNECT, 1);
	ia_count(ep->obj.ia, DCNT_IA_CM_REQ_TX);
	ep->remote = attempt->remote;
	ep->remote_port = ib_cm.port_qual(ib_cm.port_get(&attempt->remote));
	ep->qual = attempt->qual;
	ep->comm = attempt->comm;
	ep->private_size = 0;
	ep_deadline_set_locked(ep, attempt->timeout == DAT_TIMEOUT_INFINITE
					   ? CLOCK_NEVER
					   : clock_now() + attempt->timeout * NSEC_PER_USEC);
	return DAT_SUCCESS;
}

static DAT_RETURN ep_connect_begin(struct dapl_ep *ep, const struct attempt *attempt)
{
	DAT_RETURN status;

	pthread_mutex_lock(&ep->lock);
	status = start_check_locked(ep);
	if (status == DAT_SUCCESS && ep->end.datagrams)
		status = ud_resolve_locked(ep, &attempt->remote, attempt->data,
					   (uint32_t)attempt->size);
	else if (status == DAT_SUCCESS)
		status = start_locked(ep, attempt);
	pthread_mutex_unlock(&ep->lock);
	return status;
}

/*
 * A software device resolves address and route at once: the caller reads these CM events here, which
 * saves a wake-up of the event thread for each; later events are read by the event thread. The EP's lock
 * is not held, because upcalls acquire it. Not for datagrams: OFED's dtestx sends its peer its address
 * before it listens there, and a peer that is faster waits for ever.
 */
static DAT_RETURN ep_connect_start(struct dapl_ep *ep, const struct attempt *attempt)
{
	struct ib_device *device;
	DAT_RETURN status;
	bool reads;
	int cancel;

	if (!obj_hold(&ep->obj))
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
	device = ep->obj.ia->device;
	/* a cancelled thread could not release the CM channel */
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	reads = !ep->end.datagrams && ib_cm_acquire(device) >= 0;
	status = ep_connect_begin(ep, attempt);
	if (reads && status == DAT_SUCCESS)
		ib_cm_read(device);
	if (reads)
		ib_cm_release(device);
	pthread_setcancelstate(cancel, NULL);
	obj_release(&ep->obj);
	return status;
}

/* What the connects to an address check first; `subtype` names the timeout. */
static DAT_RETURN ep_connect_check(const struct dapl_ep *ep, const struct sockaddr *address,
				   DAT_UINT32 subtype, struct attempt *attempt)
{
	if (!address)
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
	if (!ep)
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
	if (!evd_from(ep->end.connect_evd))
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EVD_CONN);
	if (!attempt->timeout)
		return DAT_ERROR(DAT_INVALID_PARAMETER, subtype);
	return remote_parse(address, ep->local.ss_family, &attempt->remote);
}

DAT_RETURN dapl_ep_connect(DAT_EP_HANDLE handle, DAT_IA_ADDRESS_PTR address, DAT_CONN_QUAL qual,
			   DAT_TIMEOUT timeout, DAT_COUNT size, const DAT_PVOID data, DAT_QOS qos,
			   DAT_CONNECT_FLAGS flags)
{
	struct attempt attempt = { .qual = qual, .timeout = timeout, .size = size, .data = data };
	struct dapl_ep *ep = ep_from(handle);
	DAT_RETURN status = ep_connect_check(ep, address, DAT_INVALID_ARG4, &attempt);

	if (status != DAT_SUCCESS)
		return status;
	if (!qual)
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
	status = private_check(ep, size, data, DAT_INVALID_ARG5, DAT_INVALID_ARG6);
	if (status != DAT_SUCCESS)
		return status;
	if (qos != DAT_QOS_BEST_EFFORT || flags != DAT_CONNECT_DEFAULT_FLAG)
		return DAT_ERROR(DAT_MODEL_NOT_SUPPORTED, 0);
	status = qual_apply(&attempt);
	return status == DAT_SUCCESS ? ep_connect_start(ep, &attempt) : status;
}

/* Reads the peer's address from `dup`. Its lock is released before that of the other EP is acquired. */
static DAT_RETURN dup_read(struct dapl_ep *dup, struct attempt *attempt)
{
	DAT_EP_STATE state;

	if (!ep_lock(dup))
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
	state = atomic_load_explicit(&dup->state, memory_order_relaxed);
	attempt->remote = dup->remote;
	attempt->qual = dup->qual;
	attempt->comm = dup->comm;
	ep_unlock(dup);
	return state == DAT_EP_STATE_CONNECTED ? DAT_SUCCESS : ep_state_error(state);
}

DAT_RETURN dapl_ep_dup_connect(DAT_EP_HANDLE handle, DAT_EP_HANDLE dup_handle, DAT_TIMEOUT timeout,
			       DAT_COUNT size, const DAT_PVOID data, DAT_QOS qos)
{
	struct attempt attempt = { .timeout = timeout, .size = size, .data = data };
	struct dapl_ep *ep = ep_from(handle), *dup = ep_from(dup_handle);
	struct sockaddr_storage remote;
	DAT_RETURN status;

	if (!dup || !ep)
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
	if (!timeout)
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
	status = dup_read(dup, &attempt);
	if (status != DAT_SUCCESS)
		return status;
	if (!evd_from(ep->end.connect_evd))
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EVD_CONN);
	/* An EP of another IA may have an address of another family. */
	status = remote_parse((const struct sockaddr *)&attempt.remote, ep->local.ss_family,
			      &remote);
	if (status == DAT_SUCCESS)
		status = private_check(ep, size, data, DAT_INVALID_ARG4, DAT_INVALID_ARG5);
	if (status != DAT_SUCCESS)
		return status;
	if (qos != DAT_QOS_BEST_EFFORT)
		return DAT_ERROR(DAT_MODEL_NOT_SUPPORTED, 0);
	status = qual_apply(&attempt);
	return status == DAT_SUCCESS ? ep_connect_start(ep, &attempt) : status;
}

/* The address has the peer's port, from which the connection qualifier is derived. */
DAT_RETURN dapl_ep_common_connect(DAT_EP_HANDLE handle, DAT_IA_ADDRESS_PTR address,
				  DAT_TIMEOUT timeout, DAT_COUNT size, const DAT_PVOID data)
{
	struct attempt attempt = { .timeout = timeout, .size = size, .data = data };
	struct dapl_ep *ep = ep_from(handle);
	DAT_RETURN status = ep_connect_check(ep, address, DAT_INVALID_ARG3, &attempt);

	if (status != DAT_SUCCESS)
		return status;
	attempt.qual = ib_cm.port_qual(ib_cm.port_get(&attempt.remote));
	if (!ib_cm.port_get(&attempt.remote))
		return DAT_ERROR(DAT_INVALID_ADDRESS, DAT_INVALID_ADDRESS_MALFORMED);
	status = private_check(ep, size, data, DAT_INVALID_ARG4, DAT_INVALID_ARG5);
	if (status != DAT_SUCCESS)
		return status;
	attempt.comm = (DAT_COMM){ .domain = attempt.remote.ss_family, .type = SOCK_STREAM };
	return ep_connect_start(ep, &attempt);
}
