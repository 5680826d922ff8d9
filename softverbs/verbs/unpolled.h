/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * Arrivals that no thread polls for: the engine copies their payload to the receives, and the completions wait for a poll. A
 * program may thus wait on the memory of a receive, as with a device whose hardware writes there.
 */
#ifndef SV_VERBS_UNPOLLED_H
#define SV_VERBS_UNPOLLED_H

struct sv_cq;

/* A new CQ: the next message rings the engine. */
void sv_unpolled_init(struct sv_cq *cq);
/* The CQ is being destroyed, and is in no table any more. The caller holds no lock. */
void sv_unpolled_end(struct sv_cq *cq);

/* Engine, with the CQ pinned: the doorbell rang for the CQ; a peer of one of its QPs has ended. */
void sv_unpolled_attend(struct sv_cq *cq);
void sv_unpolled_peer_gone(struct sv_cq *cq);

#endif
