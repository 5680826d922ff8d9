/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Peers of a datagram endpoint: resolved, accepted, announced and freed. */
#include <string.h>
#include "dapl/udapl/ep/ud.h"
#include "dapl/udapl/ep/cr.h"
#include "util/log.h"

/* ---- a peer ---- */

static struct dapl_ud_peer *peer_new_locked(struct dapl_ep *ep,
					    const struct sockaddr_storage *remote)
{
	struct dapl_ud_peer *peer = obj_new(ep->obj.ia, OBJ_UD_PEER);

	if (!peer)
		return NULL;
	peer->ep = ep;
	peer->pz = ep->pz;
	peer->remote = *remote;
	TAILQ_INSERT_TAIL(&ep->peers, peer, entry);
	return peer;
}

static void peer_free_locked(struct dapl_ud_peer *peer)
{
	TAILQ_REMOVE(&peer->ep->peers, peer, entry);
	obj_free(&peer->obj, OBJ_UD_PEER);
}

static void peer_keep_data(struct dapl_ud_peer *peer, const void *data, uint32_t size)
{
	peer->private_size = size < EP_PRIVATE_DATA_MAX ? size : EP_PRIVATE_DATA_MAX;
	if (peer->private_size)
		memcpy(peer->private_data, data, peer->private_size);
}

/* ---- events ---- */

void ud_event_extend(DAT_EVENT *event, DAT_IB_EXT_TYPE type, struct dapl_ud_peer *peer)
{
	DAT_IB_EXTENSION_EVENT_DATA *data =
		(DAT_IB_EXTENSION_EVENT_DATA *)event->event_extension_data;

	memset(data, 0, sizeof(*data));
	data->type = type;
	data->status = type == DAT_IB_UD_CONNECT_REJECT || type == DAT_IB_UD_CONNECT_ERROR
			       ? DAT_IB_OP_ERR
			       : DAT_OP_SUCCESS;
	if (!peer)
		return;
	data->remote_ah.ah = (void *)peer;
	data->remote_ah.qpn = peer->qp_num;
	memcpy(&data->remote_ah.ia_addr, &peer->remote, sizeof(data->remote_ah.ia_addr));
	data->context.as_ptr = peer;
}

static bool ep_ud_event_post_locked(struct dapl_ep *ep, DAT_IB_EVENT_NUMBER number,
				    DAT_IB_EXT_TYPE type, struct dapl_ud_peer *peer,
				    const unsigned char *data, uint32_t size)
{
	DAT_EVENT event = {
		.event_number = (DAT_EVENT_NUMBER)number,
		.event_data.connect_event_data = {
			.ep_handle = ep,
			.private_data_size = (DAT_COUNT)size,
			.private_data = size ? (DAT_PVOID)(uintptr_t)data : NULL,
		},
	};

	ud_event_extend(&event, type, peer);
	if (evd_from(ep->end.connect_evd) && evd_post_or_overflow(ep->end.connect_evd, &event))
		return true;
	log_at(LOG_WARN, "ep %p: no room for an event of a datagram peer", (void *)ep);
	return false;
}

/*
 * Reports the peer with its address, which then belongs to the consumer. Returns false if there was
 * no room; the peer is then freed.
 */
static bool ep_ud_announce_locked(struct dapl_ud_peer *peer, DAT_IB_EXT_TYPE type)
{
	obj_publish(&peer->obj, OBJ_UD_PEER);
	if (ep_ud_event_post_locked(peer->ep, DAT_IB_UD_CONNECTION_EVENT_ESTABLISHED, type, peer,
				    peer->private_data, peer->private_size)) {
		ia_count(peer->obj.ia, DCNT_IA_CM_AH_RESOLVED);
		return true;
	}
	obj_hide(&peer->obj, OBJ_UD_PEER);
	ib_ah_destroy(atomic_exchange(&peer->ah, NULL));
	return false;
}

static DAT_RETURN address_make(struct dapl_ud_peer *peer, struct ib_conn *conn)
{
	struct ib_ah *ah;
	DAT_RETURN status = ib_ah_create(conn, peer->pz->pd, &ah, &peer->qp_num);

	if (status == DAT_SUCCESS)
		atomic_store(&peer->ah, ah);
	return status;
}

/* ---- the active side ---- */

DAT_RETURN ud_resolve_locked(struct dapl_ep *ep, const struct sockaddr_storage *remote,
			     const void *data, uint32_t size)
{
	struct dapl_ud_peer *peer = peer_new_locked(ep, remote);
	DAT_RETURN status;

	if (!peer)
		return DAT_ERROR(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_MEMORY);
	status = ib_conn_resolve(ep->obj.ia->device, ep->qp, (const struct sockaddr *)remote, data,
				 size, peer, &peer->conn);
	if (status != DAT_SUCCESS) {
		peer_free_locked(peer);
		return status;
	}
	ep_count_locked(ep, DCNT_EP_CONNECT, 1);
	ia_count(ep->obj.ia, DCNT_IA_CM_AH_REQ_TX);
	return DAT_SUCCESS;
}

/* A consumer's reject data follows a header that marks it as a consumer's (sp/cr.c). */
static void refused_locked(struct dapl_ep *ep, enum ib_conn_event how, const void *data,
			   uint32_t size)
{
	const unsigned char *bytes = data;
	bool by_peer = how == IB_CONN_REJECTED_BY_PEER && ep_reject_is_consumers(data, size);

	ia_count(ep->obj.ia, by_peer ? DCNT_IA_CM_USER_REJ_RX : DCNT_IA_CM_ERR_REJ_RX);
	ep->private_size = by_peer ? size - ib_cm.reject_header : 0;
	if (ep->private_size > EP_PRIVATE_DATA_MAX)
		ep->private_size = EP_PRIVATE_DATA_MAX;
	if (ep->private_size)
		memcpy(ep->private_data, bytes + ib_cm.reject_header, ep->private_size);
	ep_ud_event_post_locked(ep, DAT_IB_UD_CONNECTION_REJECT_EVENT, DAT_IB_UD_CONNECT_REJECT,
				NULL, ep->private_data, ep->private_size);
}

/* Returns true if the peer stays. */
static bool resolved_locked(struct dapl_ud_peer *peer, struct ib_conn *conn,
			    enum ib_conn_event event, const void *data, uint32_t size)
{
	struct dapl_ep *ep = peer->ep;

	if (event == IB_CONN_REJECTED || event == IB_CONN_REJECTED_BY_PEER) {
		refused_locked(ep, event, data, size);
		return false;
	}
	if (event == IB_CONN_ESTABLISHED && address_make(peer, conn) == DAT_SUCCESS) {
		peer_keep_data(peer, data, size);
		return ep_ud_announce_locked(peer, DAT_IB_UD_REMOTE_AH);
	}
	ia_count(ep->obj.ia, DCNT_IA_CM_ERR);
	ep_ud_event_post_locked(ep, DAT_IB_UD_CONNECTION_ERROR_EVENT, DAT_IB_UD_CONNECT_ERROR, NULL,
				NULL, 0);
	return false;
}

void ud_resolved_upcall(void *owner, struct ib_conn *conn, enum ib_conn_event event,
			const void *data, uint32_t size)
{
	struct dapl_ud_peer *peer = owner;
	struct dapl_ep *ep = peer->ep;
	struct ib_conn *over = NULL;

	pthread_mutex_lock(&ep->lock);
	/* otherwise the EP is being freed, and waits for this upcall to return */
	if (peer->conn == conn && !resolved_locked(peer, conn, event, data, size)) {
		over = conn;
		peer->conn = NULL;
		peer_free_locked(peer);
	}
	pthread_mutex_unlock(&ep->lock);
	ib_conn_destroy(over);
}

/* ---- the passive side ---- */

static DAT_RETURN ep_ud_answer(struct dapl_ud_peer *peer, struct dapl_cr *cr, const void *data,
			       uint32_t size)
{
	struct ib_conn_param param = { .data = data, .size = size };
	DAT_RETURN status = address_make(peer, cr->conn);

	if (status == DAT_SUCCESS)
		status = ib_conn_accept(cr->conn, peer->ep->qp, &param, NULL);
	return status;
}

/*
 * If the requester has given up, the call succeeds and an event reports it, as for a connection.
 */
DAT_RETURN ud_accept_locked(struct dapl_ep *ep, struct dapl_cr *cr, const void *data, uint32_t size)
{
	DAT_RETURN status = ep->qp ? DAT_SUCCESS : ep_qp_create_locked(ep);
	struct dapl_ud_peer *peer;

	if (ep->obj.ia->device != cr->obj.ia->device)
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
	if (status != DAT_SUCCESS)
		return status;
	peer = peer_new_locked(ep, &cr->remote);
	if (!peer)
		return DAT_ERROR(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_MEMORY);
	status = ep_ud_answer(peer, cr, data, size);
	peer_keep_data(peer, cr->param.private_data, (uint32_t)cr->param.private_data_size);
	if (status == DAT_SUCCESS && ep_ud_announce_locked(peer, DAT_IB_UD_PASSIVE_REMOTE_AH)) {
		peer->conn = cr->conn;
		cr->conn = NULL;
		ia_count(ep->obj.ia, DCNT_IA_CM_AH_REQ_RX);
		return DAT_SUCCESS;
	}
	ib_ah_destroy(atomic_exchange(&peer->ah, NULL));
	peer_free_locked(peer);
	if (DAT_GET_TYPE(status) != DAT_INVALID_STATE)
		return status;
	ep_ud_event_post_locked(ep, DAT_IB_UD_CONNECTION_ERROR_EVENT, DAT_IB_UD_CONNECT_ERROR, NULL,
				NULL, 0);
	return DAT_SUCCESS;
}

/* ---- freeing ---- */

DAT_RETURN ud_cm_free(struct dapl_ep *ep, struct dapl_ud_peer *peer)
{
	struct ib_conn *conn = NULL;

	pthread_mutex_lock(&ep->lock);
	if (peer && peer->ep == ep && obj_is(peer, OBJ_UD_PEER)) {
		conn = peer->conn;
		peer->conn = NULL;
		if (conn && !atomic_load(&peer->ah))
			peer_free_locked(peer);
	}
	pthread_mutex_unlock(&ep->lock);
	ib_conn_destroy(conn);
	return conn ? DAT_SUCCESS : DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
}

/* Posters use the address handle under their post locks: after each was acquired once, none uses it any more. */
static void posts_pass(struct dapl_ia *ia)
{
	struct obj *obj;

	pthread_mutex_lock(&ia->lock);
	TAILQ_FOREACH(obj, &ia->objects[OBJ_EP], link) {
		struct dapl_ep *ep = (struct dapl_ep *)obj;

		lock_acquire(&ep->end.post_lock);
		lock_release(&ep->end.post_lock);
	}
	pthread_mutex_unlock(&ia->lock);
}

DAT_RETURN ud_ah_free(struct dapl_ep *ep, struct dapl_ud_peer *peer)
{
	struct ib_ah *ah = NULL;

	pthread_mutex_lock(&ep->lock);
	if (peer && peer->ep == ep && obj_is(peer, OBJ_UD_PEER)) {
		ah = atomic_exchange(&peer->ah, NULL);
		if (ah && !peer->conn)
			peer_free_locked(peer);
	}
	pthread_mutex_unlock(&ep->lock);
	if (!ah)
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
	posts_pass(ep->obj.ia);
	ib_ah_destroy(ah);
	return DAT_SUCCESS;
}

void ud_peers_free(struct dapl_ep *ep)
{
	struct dapl_ud_peer *peer;
	struct ib_conn *conn;
	struct ib_ah *ah;

	for (;;) {
		pthread_mutex_lock(&ep->lock);
		peer = TAILQ_FIRST(&ep->peers);
		if (!peer) {
			pthread_mutex_unlock(&ep->lock);
			return;
		}
		conn = peer->conn;
		peer->conn = NULL;
		ah = atomic_exchange(&peer->ah, NULL);
		if (!conn)
			peer_free_locked(peer);
		pthread_mutex_unlock(&ep->lock);
		if (ah)
			posts_pass(ep->obj.ia); /* other EPs of the PZ may be posting with it */
		ib_ah_destroy(ah);
		ib_conn_destroy(conn); /* after this no upcall uses the peer, so it can be freed */
	}
}
