/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* From the CQ to the consumer, for whatever hands out events: the ways that are taken each time. */
#ifndef DAPL_EVD_TAKE_H
#define DAPL_EVD_TAKE_H

#include "dapl/udapl/dto_complete.h"

/* The CQ's next, or NULL. The device is asked when nothing polled is left, and each asking counts. */
static inline const struct ib_completion *evd_cq_next_locked(struct dapl_evd *evd)
{
	const struct ib_completion *completion;

	if (__builtin_expect(!ib_cq_store_is_empty(evd->cq), 0))
		return ib_cq_take(evd->cq);
	completion = ib_cq_poll(evd->cq);
	evd_tally_locked(evd, completion ? DCNT_EVD_DEQUEUE_POLL_FOUND : DCNT_EVD_DEQUEUE_POLL);
	return completion;
}

/* The device is asked, with nothing polled left: whether there is anything now. */
static inline bool evd_cq_fill_locked(struct dapl_evd *evd)
{
	bool filled = ib_cq_fill(evd->cq);

	evd_tally_locked(evd, filled ? DCNT_EVD_DEQUEUE_POLL_FOUND : DCNT_EVD_DEQUEUE_POLL);
	return filled;
}

/* Of an EVD with nothing special: most completions make one event and need no more. */
static inline bool evd_take_plain_locked(struct dapl_evd *evd, DAT_EVENT *event)
{
	const struct ib_completion *completion = evd_cq_next_locked(evd);
	unsigned made;

	if (!completion)
		return false;
	made = dto_complete(evd, completion, event);
	return __builtin_expect((made & (DTO_EVENT | DTO_SLOT)) == DTO_EVENT, 1) ||
	       evd_take_uncommon_locked(evd, made, event);
}

#endif
