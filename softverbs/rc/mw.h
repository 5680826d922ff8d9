/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Memory windows: keys for a part of a region, which work requests bind and invalidate. */
#ifndef SV_RC_MW_H
#define SV_RC_MW_H

#include "softverbs/object/qp.h"

/*
 * Makes the stored copy of a posted bind name its window and region by their keys, not by
 * pointers.
 */
void sv_mw_hold_bind(struct ibv_send_wr *held);
/* Executes such a bind, or a local invalidate: enum ibv_wc_status. */
int sv_mw_execute_bind(struct sv_qp *qp, const struct ibv_send_wr *held);
int sv_mw_execute_invalidate(struct sv_qp *qp, uint32_t key);

/*
 * Retires the region's key, so that no window can be bound to it. False, and nothing changed, if
 * one is bound.
 */
bool sv_mw_region_close(uint32_t lkey);

/* The key of the region under a window, or a region's own; 0 if the key is none any more. */
uint32_t sv_mw_region_under(uint32_t key);
/* Engine: a peer asks for the file under a key, that of a region or of a window. */
void sv_mw_file_answer(struct sv_peer *peer, uint32_t key);

/*
 * Between epoch_enter and epoch_leave: whether a message may invalidate this key of the peer's;
 * and the invalidation, after the message was placed.
 */
bool sv_mw_may_invalidate(const struct sv_remote_rq *remote, uint32_t key);
void sv_mw_invalidate_remote(struct sv_remote_rq *remote, uint32_t key);
/*
 * Called when such a message is polled: unbinds the window. False if the peer may not invalidate
 * it.
 */
bool sv_mw_invalidated(struct sv_qp *qp, uint32_t key);

#endif
