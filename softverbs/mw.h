/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Memory windows: narrower keys on a region, given and taken back by work requests. */
#ifndef SV_MW_H
#define SV_MW_H

#include "softverbs/qp.h"

/* A send queue reaches a bind or a local invalidate: enum ibv_wc_status. */
int mw_execute_bind(struct sv_qp *qp, const struct ibv_send_wr *wr);
int mw_execute_invalidate(struct sv_qp *qp, uint32_t key);

/* Inside a window: a message may take back this key of the peer's; does so, once it is placed. */
bool mw_may_invalidate(const struct sv_tx *tx, uint32_t key);
void mw_invalidate_remote(struct sv_tx *tx, uint32_t key);
/* Such a message is polled: its window can be bound again. False: the peer may not do that. */
bool mw_invalidated(struct sv_qp *qp, uint32_t key);

#endif
