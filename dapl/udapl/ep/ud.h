/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * Endpoints for datagrams: they have no connection, but any number of peers, each the result of a
 * resolution.
 */
#ifndef DAPL_EP_UD_H
#define DAPL_EP_UD_H

#include <dat2/dat_ib_extensions.h>
#include "dapl/udapl/ep/ep.h"

/*
 * One resolution and its address handle. The consumer has it as a context and as an address handle
 * and frees the two separately; the endpoint frees the rest.
 */
struct dapl_ud_peer {
	struct obj obj;
	struct dapl_ep *ep;   /* constant, like `pz` */
	struct dapl_pz *pz;   /* of the address handle */
	struct ib_conn *conn; /* guarded by the EP's lock; NULL after the free */
	/* NULL before it is created and after it is freed; see ud_ah_free */
	_Atomic(struct ib_ah *) ah;
	uint32_t qp_num;
	struct sockaddr_storage remote;
	uint32_t private_size;
	unsigned char private_data[EP_PRIVATE_DATA_MAX]; /* the peer's event points here */
	/* in ep->peers; guarded by the EP's lock */
	TAILQ_ENTRY(dapl_ud_peer) entry;
};

static inline struct dapl_ud_peer *ud_peer_from(const void *handle)
{
	return obj_from(handle, OBJ_UD_PEER);
}

/* Starts the resolution of the endpoint at `remote`. Its result is an event. */
DAT_RETURN ud_resolve_locked(struct dapl_ep *ep, const struct sockaddr_storage *remote,
			     const void *data, uint32_t size);
/* Answers a request. The requester becomes a peer of the endpoint and is reported in an event. */
DAT_RETURN ud_accept_locked(struct dapl_ep *ep, struct dapl_cr *cr, const void *data,
			    uint32_t size);
void ud_resolved_upcall(void *owner, struct ib_conn *conn, enum ib_conn_event event,
			const void *data, uint32_t size);
/*
 * Both return E(INVALID_PARAMETER, ARG2) if `peer` is not of the EP, or that part of it was freed.
 */
DAT_RETURN ud_cm_free(struct dapl_ep *ep, struct dapl_ud_peer *peer);
DAT_RETURN ud_ah_free(struct dapl_ep *ep, struct dapl_ud_peer *peer);
void ud_peers_free(struct dapl_ep *ep); /* the caller holds no lock, and no thread posts any more */
/* Fills in the extension's part of an event; `peer` may be NULL. */
void ud_event_extend(DAT_EVENT *event, DAT_IB_EXT_TYPE type, struct dapl_ud_peer *peer);

#endif
