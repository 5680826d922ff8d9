/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Between cq_poll.c and cq_poll_many.c. The caller holds the CQ's lock. */
#ifndef SV_VERBS_CQ_POLL_H
#define SV_VERBS_CQ_POLL_H

#include "softverbs/object/cq.h"

/* Takes up to `count` completions of the QP, without counting them for CQ_TIGHT; returns their number. */
int sv_cq_member_poll_uncounted_locked(const struct cq_member *member, int count,
				       struct ibv_wc *wc);
/* The same for all QPs of a CQ that has been in mode CQ_MANY. */
int sv_cq_merge_many_locked(struct sv_cq *cq, int count, struct ibv_wc *wc);

#endif
