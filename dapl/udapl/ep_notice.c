/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Last-WQE notices of SRQ endpoints: one per connection, in the order of the terminal events. */
#include <stddef.h>
#include "dapl/udapl/ep.h"
#include "util/clock.h"

/*
 * Consumers pair the notices with the terminal events by position, so a notice waits for those
 * before it.
 *
 * Not each device says that a QP in error gave its last buffer back (rdma_rxe does not). The first
 * time it has a second to; when that went by in vain, later QPs get only the time that a flush
 * takes, until the device does say it.
 */
#define NOTICE_WAIT (1 * NSEC_PER_SEC)
#define SILENT_WAIT (100 * NSEC_PER_MSEC)

uint64_t ep_last_wqe_deadline(const struct dapl_ep *ep)
{
	bool silent = atomic_load_explicit(&ep->obj.ia->last_wqe_silent, memory_order_relaxed);

	return ep->error_since + (silent ? SILENT_WAIT : NOTICE_WAIT);
}

/* Order: after EP locks, before that of the async EVD. */
static pthread_mutex_t notices_lock = PTHREAD_MUTEX_INITIALIZER;
static TAILQ_HEAD(, dapl_ep) notices = TAILQ_HEAD_INITIALIZER(notices);

void ep_notice_queue_locked(struct dapl_ep *ep)
{
	if (!ep->last_wqe_due)
		return;
	ep->last_wqe_due = false;
	pthread_mutex_lock(&notices_lock);
	ep->last_wqe_queued = true;
	TAILQ_INSERT_TAIL(&notices, ep, notice);
	pthread_mutex_unlock(&notices_lock);
	/* For the device that never says it. */
	ep_timer_arm_locked(ep, ep_last_wqe_deadline(ep));
}

static bool was_said(const struct dapl_ep *ep)
{
	return atomic_load_explicit(&ep->reports, memory_order_relaxed) & EP_REPORT_LAST_WQE;
}

/* The device said it, or had its time to. */
static bool is_ready(const struct dapl_ep *ep)
{
	return was_said(ep) || clock_now() >= ep_last_wqe_deadline(ep);
}

static struct dapl_ep *first_of(const struct dapl_ia *ia)
{
	struct dapl_ep *ep;

	TAILQ_FOREACH(ep, &notices, notice)
		if (ep->obj.ia == ia)
			break;
	return ep;
}

void ep_notice_run(struct dapl_ia *ia)
{
	struct dapl_ep *ep;

	pthread_mutex_lock(&notices_lock);
	while ((ep = first_of(ia)) && is_ready(ep)) {
		TAILQ_REMOVE(&notices, ep, notice);
		ep->last_wqe_queued = false;
		atomic_store_explicit(&ia->last_wqe_silent, !was_said(ep), memory_order_relaxed);
		async_post_last_wqe(ep);
	}
	pthread_mutex_unlock(&notices_lock);
}

/* Caller has made the EP busy: it does not come back into the list. */
void ep_notice_cancel(struct dapl_ep *ep)
{
	pthread_mutex_lock(&notices_lock);
	if (ep->last_wqe_queued)
		TAILQ_REMOVE(&notices, ep, notice);
	ep->last_wqe_queued = false;
	pthread_mutex_unlock(&notices_lock);
	async_cancel_last_wqe(ep);
	ep_notice_run(ep->obj.ia);
}
