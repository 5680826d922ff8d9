/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Takes an event from the CQ for the consumer: the fast path, inlined into its callers. */
#ifndef DAPL_EVD_TAKE_H
#define DAPL_EVD_TAKE_H

#include "dapl/udapl/evd/dto_complete.h"

/* The next completion of the CQ, or NULL. Polls the device if no polled completion is left, and counts the poll. */
static inline const struct ib_completion *evd_cq_next_locked(struct dapl_evd *evd)
{
	const struct ib_completion *completion;

	if (__builtin_expect(!ib_cq_store_is_empty(evd->cq), 0))
		return ib_cq_take(evd->cq);
	completion = ib_cq_poll(evd->cq);
	evd_tally_locked(evd, completion ? DCNT_EVD_DEQUEUE_POLL_FOUND : DCNT_EVD_DEQUEUE_POLL);
	return completion;
}

/* Polls the device; no polled completion is left. True if it returned any. */
static inline bool evd_cq_fill_locked(struct dapl_evd *evd)
{
	bool filled = ib_cq_fill(evd->cq);

	evd_tally_locked(evd, filled ? DCNT_EVD_DEQUEUE_POLL_FOUND : DCNT_EVD_DEQUEUE_POLL);
	return filled;
}

/* For an EVD whose `state` is 0: most completions make one event and need no further work. */
static inline __attribute__((always_inline)) bool evd_take_fast_locked(struct dapl_evd *evd,
								       DAT_EVENT *event)
{
	const struct ib_completion *completion = evd_cq_next_locked(evd);
	unsigned made;

	if (!completion)
		return false;
	made = dto_complete(evd, completion, event);
	return __builtin_expect((made & (DTO_EVENT | DTO_SLOT)) == DTO_EVENT, 1) ||
	       evd_take_slow_locked(evd, made, event);
}

#endif
