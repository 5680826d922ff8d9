/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Linked processes of other hosts. */
#ifndef SV_FABRIC_PEERS_H
#define SV_FABRIC_PEERS_H

#include <sys/queue.h>
#include "softverbs/fabric/link.h"
#include "softverbs/fabric/order.h"

#define FABRIC_ADDRESSES 4u

enum fabric_leave {
	FABRIC_STAYS,
	FABRIC_LEAVES, /* the peer was asked whether it has all that was sent */
	FABRIC_LEFT,   /* it has */
};

/*
 * If both processes connect at once, they have two links. Each sends all that it sends over the one that was
 * ready first here, so that nothing overtakes; the end of either ends both.
 */
struct fabric_peer {
	struct sv_peer peer; /* without areas; `far` points back */
	/* inside the fabric's lock */
	struct fabric_link *link;	   /* to send over; NULL after the end */
	uint64_t token;			   /* with which messages to it begin */
	uint64_t remote;		   /* as the endpoint knows it */
	unsigned generation;		   /* of that endpoint; 0: none */
	bool opened;			   /* messages may be sent to it */
	bool stuck;			   /* listed in endpoint_out.c */
	STAILQ_HEAD(, fabric_out) waiting; /* for the endpoint */
	struct fabric_backlog backlog;	   /* of the endpoint */
	struct fabric_order order;	   /* of its messages */
	enum fabric_leave leave;	   /* this process ends, or closes the device */
	LIST_ENTRY(fabric_peer) stuck_entry;
	struct sv_ip address[FABRIC_ADDRESSES]; /* by which it was reached */
	unsigned address_count;
	LIST_ENTRY(fabric_peer) entry;
};

bool sv_fabric_peers_any_locked(bool (*is)(struct fabric_peer *)); /* calls it for all */

#endif
