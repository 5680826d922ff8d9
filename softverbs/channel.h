/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Completion channels: a descriptor with a token for each event, written by the process that completes. */
#ifndef SV_CHANNEL_H
#define SV_CHANNEL_H

#include "softverbs/cq.h"

void channel_join(struct sv_channel *channel, struct sv_cq *cq);
void channel_leave(struct sv_channel *channel, struct sv_cq *cq);

/*
 * A token for the channel of the owner's CQ: written here, or by its engine as long as the
 * descriptor is not here.
 */
void channel_wake(struct sv_peer *owner, uint32_t cq_index);
/* Engine: a token for a CQ of this process, for a peer that could not write it. */
void channel_wake_due(uint32_t cq_index);
/* Asks for the descriptor of the CQ's channel, so that it is here when needed. */
void channel_ask(struct sv_peer *owner, uint32_t cq_index);

/* Engine: a message about descriptors; owns fd. */
void channel_message(struct sv_peer *peer, const void *payload, size_t size, int fd);
void channel_forget_peer(struct sv_peer *peer);

#endif
