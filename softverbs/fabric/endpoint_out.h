/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Messages from the endpoint to peers; see endpoint.h. */
#ifndef SV_FABRIC_ENDPOINT_OUT_H
#define SV_FABRIC_ENDPOINT_OUT_H

#include "softverbs/fabric/endpoint.h"

/* Ends the link of a peer to which nothing can be sent; the engine reads that end, and reports it. */
void sv_fabric_link_break_locked(struct fabric_peer *peer, const char *what, int error);
/* Sends what waits for this peer, in order. */
void sv_fabric_waiting_send_locked(struct fabric_peer *peer);
void sv_fabric_waiting_drop_locked(struct fabric_peer *peer);
/* The same for all peers for which the provider took no more. */
void sv_fabric_stuck_send(void);
bool sv_fabric_any_stuck_locked(void);
/* The provider is done with a message. */
void sv_fabric_message_sent(struct sv_endpoint_op *op, int error);
/* Whether nothing waits, and nothing is under way. */
bool sv_fabric_outs_are_idle_locked(void);
/* `is_stuck`, with the fabric's lock: a message waits, and the engine is to call sv_fabric_stuck_send soon. */
void sv_fabric_outs_open(const struct sv_endpoint_calls *calls, struct sv_endpoint *endpoint,
			 void (*is_stuck)(void));
void sv_fabric_outs_forget(void);

#endif
