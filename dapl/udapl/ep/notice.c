/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Last-WQE notices of SRQ endpoints: one per connection, in the order of the terminal events. */
#include "dapl/udapl/ep/ep.h"
#include "util/clock.h"

/*
 * Consumers pair the notices with the terminal events by position, so a notice waits for those before it, and the first
 * one also for room in the async EVD. The task of the IA posts them.
 *
 * Some devices (rdma_rxe) do not report that a QP in error returned its last buffer. The first QP waits
 * one second for the report. If there is none, later QPs wait only as long as a flush takes, until the
 * device does report one.
 */
#define NOTICE_WAIT (1 * NSEC_PER_SEC)
#define SILENT_WAIT (100 * NSEC_PER_MSEC)

uint64_t ep_last_wqe_deadline(const struct dapl_ep *ep)
{
	bool silent = atomic_load_explicit(&ep->obj.ia->last_wqe_silent, memory_order_relaxed);

	return ep->error_since + (silent ? SILENT_WAIT : NOTICE_WAIT);
}

void ep_notice_queue_locked(struct dapl_ep *ep)
{
	struct dapl_ia *ia = ep->obj.ia;

	if (!ep->notice_owed)
		return;
	pthread_mutex_lock(&ia->notices_lock);
	ep->notice_queued = true;
	TAILQ_INSERT_TAIL(&ia->notices, ep, notice);
	pthread_mutex_unlock(&ia->notices_lock);
	task_post(&ia->task, IA_DUE_NOTICES);
}

static bool was_reported(const struct dapl_ep *ep)
{
	return task_mask(&ep->task) & EP_FACT_LAST_WQE;
}

static void unlist_locked(struct dapl_ia *ia, struct dapl_ep *ep)
{
	TAILQ_REMOVE(&ia->notices, ep, notice);
	ep->notice_queued = false;
}

void ep_notices_post(struct dapl_ia *ia)
{
	struct dapl_ep *ep;

	pthread_mutex_lock(&ia->notices_lock);
	while ((ep = TAILQ_FIRST(&ia->notices))) {
		bool reported = was_reported(ep);

		if (!reported && clock_now() < ep_last_wqe_deadline(ep)) {
			task_at_locked(&ia->task, ep_last_wqe_deadline(ep));
			break;
		}
		if (!async_post_last_wqe(&ep->obj))
			break;
		atomic_store_explicit(&ia->last_wqe_silent, !reported, memory_order_relaxed);
		unlist_locked(ia, ep);
	}
	pthread_mutex_unlock(&ia->notices_lock);
}

/* The caller has made the EP busy: it is not listed again. */
void ep_notice_cancel(struct dapl_ep *ep)
{
	struct dapl_ia *ia = ep->obj.ia;
	bool queued;

	pthread_mutex_lock(&ia->notices_lock);
	queued = ep->notice_queued;
	if (queued)
		unlist_locked(ia, ep);
	pthread_mutex_unlock(&ia->notices_lock);
	if (queued) /* the next one may be the first now */
		task_post(&ia->task, IA_DUE_NOTICES);
}
