/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * Completions of destroyed QPs. A CQ stores no completions of its members, so those that a poll would have found when a
 * QP is destroyed move here: a message that was accepted reaches its receiver. Flushed requests of the QP's own queues do
 * not, as most programs destroy a QP without polling for them, and free what their wr_id points to. A flushed receive of
 * an SRQ does: the program gets its buffer back.
 */
#include <stdlib.h>
#include <string.h>
#include "softverbs/object/cq.h"
#include "softverbs/object/qp.h"
#include "util/log.h"

static bool is_kept(const struct sv_qp *qp, const struct ibv_wc *wc)
{
	return wc->status != IBV_WC_WR_FLUSH_ERR || (qp->srq && wc->opcode & IBV_WC_RECV);
}

/* Returns the number of those that are kept, which are the first ones then. */
static uint32_t select_kept(const struct sv_qp *qp, struct ibv_wc *wc, uint32_t count)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < count; i++)
		if (is_kept(qp, &wc[i]))
			wc[kept++] = wc[i];
	return kept;
}

/* Fills `kept` with what is left of the former ones, and with those of the member. */
static void completion_keep_locked(struct sv_cq *cq, const struct cq_member *member,
				   struct cq_kept *kept)
{
	struct ibv_wc *end;
	int n;

	kept->count = cq->kept.count - cq->kept.next;
	if (kept->count)
		memcpy(kept->wc, cq->kept.wc + cq->kept.next, kept->count * sizeof(*kept->wc));
	end = kept->wc + kept->count;
	n = sv_cq_member_poll_locked(cq, member, (int)(kept->room - kept->count), end);
	kept->count += select_kept(member->qp, end, (uint32_t)n);
}

void sv_cq_keep(struct sv_cq *cq, struct sv_qp *qp, unsigned roles)
{
	const struct cq_member member = { .qp = qp, .roles = roles };
	struct cq_kept kept = { 0 }, former = { 0 };
	uint32_t need;

	lock_acquire(&cq->lock);
	/* Another QP of the CQ may be destroyed at the same time. */
	while ((need = cq->kept.count - cq->kept.next +
		       (uint32_t)sv_cq_member_count_locked(&member)) > kept.room) {
		lock_release(&cq->lock);
		free(kept.wc);
		kept = (struct cq_kept){ .wc = malloc(need * sizeof(*kept.wc)), .room = need };
		if (!kept.wc) {
			log_at(LOG_ERROR,
			       "softverbs: qp 0x%x: no memory for %u completions that it leaves",
			       qp->ibv.qp_num, need);
			return;
		}
		lock_acquire(&cq->lock);
	}
	if (kept.wc) {
		former = cq->kept;
		completion_keep_locked(cq, &member, &kept);
		cq->kept = kept;
		cq->slow = (cq->slow & ~CQ_KEEPS) | (kept.count ? CQ_KEEPS : 0);
	}
	lock_release(&cq->lock);
	free(former.wc);
}

int sv_cq_kept_take_locked(struct sv_cq *cq, int count, struct ibv_wc *wc)
{
	struct cq_kept *kept = &cq->kept;
	uint32_t left = kept->count - kept->next,
		 n = (uint32_t)count < left ? (uint32_t)count : left;

	if (n)
		memcpy(wc, kept->wc + kept->next, n * sizeof(*wc));
	kept->next += n;
	if (kept->next == kept->count)
		cq->slow &= ~CQ_KEEPS;
	return (int)n;
}
