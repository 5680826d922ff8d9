/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* A connection whose consumer takes no completions: that one of them failed is found all the same. */
#include "dapl/udapl/ep.h"
#include "util/clock.h"

/*
 * Verbs tell of a failed request by its completion and by nothing else, so a consumer that waits for
 * connection events only would wait for ever. The event thread looks from time to time, at the same
 * moments for all endpoints, so that it wakes once for all of them.
 */
#define WATCH_EVERY (2 * NSEC_PER_SEC)

/* Changes with each completion that somebody takes. */
static uint32_t retired(struct dapl_ep *ep)
{
	return atomic_load_explicit(&ep->request.retired, memory_order_relaxed) +
	       atomic_load_explicit(&ep->recv.retired, memory_order_relaxed);
}

static void next_look_locked(struct dapl_ep *ep)
{
	ep->looked = retired(ep);
	ep_timer_arm_locked(ep, (clock_now() / WATCH_EVERY + 1) * WATCH_EVERY);
}

void ep_watch_begin_locked(struct dapl_ep *ep)
{
	next_look_locked(ep);
}

/*
 * Whoever takes completions finds the failed one by himself. What cannot be moved, for want of room
 * in the EVD, has the state of the QP looked at, which may be a system call.
 */
void ep_watch_step_locked(struct dapl_ep *ep)
{
	if (ep->looked == retired(ep) && !ep_drain(ep) && ib_qp_is_broken(ep->qp))
		ep_qp_failed(ep);
	next_look_locked(ep);
}
