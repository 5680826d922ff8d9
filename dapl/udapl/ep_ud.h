/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Endpoints of datagrams: no connection, but any number of peers, each found by a resolution. */
#ifndef DAPL_EP_UD_H
#define DAPL_EP_UD_H

#include <dat2/dat_ib_extensions.h>
#include "dapl/udapl/ep.h"

/*
 * One resolution and the address that came of it. The consumer knows it as context and as address
 * handle, and frees the two apart; the endpoint frees what is left.
 */
struct dapl_ud_peer {
	struct obj obj;
	struct dapl_ep *ep;	    /* constant, as the next */
	struct dapl_pz *pz;	    /* of the address */
	struct ib_conn *conn;	    /* the EP's lock; NULL: freed */
	_Atomic(struct ib_ah *) ah; /* NULL: not there yet, or freed; see ud_ah_free */
	uint32_t qp_num;
	struct sockaddr_storage remote;
	uint32_t private_size;
	unsigned char private_data[EP_PRIVATE_DATA_MAX]; /* that its event points to */
	TAILQ_ENTRY(dapl_ud_peer) entry;		 /* of the EP; its lock */
};

static inline struct dapl_ud_peer *ud_peer_from(const void *handle)
{
	return obj_from(handle, OBJ_UD_PEER);
}

/* Asks for the endpoint at `remote`; its event follows. */
DAT_RETURN ud_resolve_locked(struct dapl_ep *ep, const struct sockaddr_storage *remote,
			     const void *data, uint32_t size);
/* Answers a request; who asked is a peer of the endpoint from now on, as its event says. */
DAT_RETURN ud_accept_locked(struct dapl_ep *ep, struct dapl_cr *cr, const void *data,
			    uint32_t size);
void ud_resolved_upcall(void *owner, struct ib_conn *conn, enum ib_conn_event event,
			const void *data, uint32_t size);
/* Both are E(INVALID_PARAMETER, ARG2) when it is not the EP's, or was freed. */
DAT_RETURN ud_cm_free(struct dapl_ep *ep, struct dapl_ud_peer *peer);
DAT_RETURN ud_ah_free(struct dapl_ep *ep, struct dapl_ud_peer *peer);
void ud_peers_free(struct dapl_ep *ep); /* no lock held; nothing is posted any more */
/* The extension's part of an event; `peer` may be NULL. */
void ud_event_extend(DAT_EVENT *event, DAT_IB_EXT_TYPE type, struct dapl_ud_peer *peer);

#endif
