/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * The endpoint of a process: where the requests and answers of QPs arrive if SOFTVERBS_FABRIC names a provider of
 * libfabric. With `link` there is none, and they go over the links.
 *
 * A message is the token that its receiver gave to the sender, and a frame (wire.h). What belongs to rdma_cm stays on
 * the link, so that either may overtake the other. That is safe:
 * - A request may come before the message by which the connection is established: the QP accepts requests from RTR
 *   on, as on a wire, and before RTR it answers that it is not ready.
 * - A message that ends the connection may come before requests that were sent earlier: none of them has completed
 *   at its initiator, as none is answered. Those that were answered before are executed.
 * - The end of a link may come before the answers sent earlier: what has arrived by then is read first.
 */
#ifndef SV_FABRIC_ENDPOINT_H
#define SV_FABRIC_ENDPOINT_H

#include "softverbs/fabric/peers.h"

/* The engine runs. 0, or an errno with a log line. `wish`: SOFTVERBS_FABRIC, not off. */
int sv_fabric_endpoint_open(const char *wish);
/* The engine is halted, and the links are closed. */
void sv_fabric_endpoint_close(void);
void sv_fabric_endpoint_fork_child(void);

const struct sv_endpoint_name *sv_fabric_endpoint_name(void);
bool sv_fabric_endpoint_is_open(void);

/* A peer from its end on, and no more. With `link` these do nothing. 0 or errno. */
int sv_fabric_endpoint_peer_add_locked(struct fabric_peer *peer, const struct wire_end *end,
				       const struct sv_ip *host);
void sv_fabric_endpoint_peer_known_locked(struct fabric_peer *peer); /* it knows this process */
void sv_fabric_endpoint_peer_opened_locked(
	struct fabric_peer *peer); /* it, or this one, sent the first message */
void sv_fabric_endpoint_peer_leave_locked(struct fabric_peer *peer);
void sv_fabric_endpoint_peer_free(struct fabric_peer *peer); /* not held, nothing under way */

/* Messages that were dropped, as their token is that of no link. */
uint64_t sv_fabric_endpoint_dropped(void);

/* Takes ownership; sends it now or later. */
void sv_fabric_endpoint_send_locked(struct fabric_peer *peer, struct fabric_out *out);
/* Engine: reads what has arrived. Returns the number of the next message of this peer. */
uint32_t sv_fabric_endpoint_drain(const struct fabric_peer *peer);
/* Waits, not for long, until what was sent is on its way. */
void sv_fabric_endpoint_flush(void);

#endif
