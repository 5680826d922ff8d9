/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * Completion channels: a descriptor that holds a token for each event. The process that completes
 * the work writes it.
 */
#ifndef SV_OBJECT_CHANNEL_H
#define SV_OBJECT_CHANNEL_H

#include "softverbs/object/cq.h"

void sv_channel_join(struct sv_channel *channel, struct sv_cq *cq);
void sv_channel_leave(struct sv_channel *channel, struct sv_cq *cq);

/*
 * Writes a token to the channel of the owner's CQ. Until this process has the channel's
 * descriptor, the owner's engine writes it.
 */
void sv_channel_wake(struct sv_peer *owner, uint32_t cq_index);
/* Engine: writes tokens for a CQ of this process, on behalf of peers that could not write them. */
void sv_channel_wake_due(uint32_t cq_index, uint32_t count);
/* Requests the descriptor of the CQ's channel ahead of its use, unless this process has it. */
void sv_channel_ask(struct sv_peer *owner, uint32_t cq_index);

/* Engine: handles a peer's message of type SV_MSG_DATA. Owns fd, or -1. */
void sv_channel_message(struct sv_peer *peer, const void *payload, size_t size, int fd);
void sv_channel_forget_peer(struct sv_peer *peer);

#endif
