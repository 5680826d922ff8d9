/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * Datagrams between hosts: a frame each, without an answer. What cannot be sent or received is lost, and counted.
 */
#ifndef SV_FABRIC_UD_H
#define SV_FABRIC_UD_H

#include "softverbs/fabric/peers.h"
#include "softverbs/ud/ud.h"

/*
 * WIRE_DATAGRAM: QPNs of destination and source, Q_Key, immediate (bytes as the consumer gave them), flags:32, the
 * address by which the sender reaches the receiver; then the payload. The address of the sender is that of the link.
 */
#define FAR_DATAGRAM_SIZE 36u

void sv_far_datagram_write(uint8_t bytes[static FAR_DATAGRAM_SIZE],
			   const struct ud_ring_record *head, bool solicited);
/* False if it is malformed. `size`: with the payload. The source address stays zero. */
bool sv_far_datagram_read(const uint8_t *bytes, size_t size, struct ud_ring_record *head,
			  bool *solicited);

/* Engine: a frame of a peer. False if the peer violates the protocol. */
bool sv_far_datagram(struct fabric_peer *from, const uint8_t *bytes, size_t size);
/* Engine: the link has ended. The QP is pinned. */
void sv_ud_far_peer_gone(struct sv_qp *qp, const struct sv_peer *peer);

enum far_loss {
	FAR_NOT_SENT,	  /* no link, too much waits for it, or no memory */
	FAR_NOT_RECEIVED, /* no such QP, another Q_Key, no posted receive, no address of this host */
	FAR_LOSSES
};
void sv_ud_lose(enum far_loss why);
uint64_t sv_ud_lost(enum far_loss why); /* since the device was opened */
void sv_ud_losses_log(void);
void sv_ud_losses_forget(void);

/* ---- ud_wait.c ---- */

/*
 * The linked process of a slot of a host, held. NULL: takes ownership of `out`, which is sent once there is a link, in
 * order, or lost: FABRIC_BACKLOG bytes wait for each process. Never waits itself.
 */
struct sv_peer *sv_ud_link_for(const struct sv_ip *host, uint16_t slot, struct fabric_out *out);
/* Whether datagrams wait. May be called in a handler of a signal: does not wait for a lock, but returns true. */
bool sv_ud_waits_any(void);
/* Drops all datagrams that wait; no search ends later. */
void sv_ud_waits_close(void);
/* Around fork, inside the links lock and outside the fabric's. */
void sv_ud_waits_fork_prepare(void);
void sv_ud_waits_fork_parent(void);
void sv_ud_waits_fork_child(void);

#endif
