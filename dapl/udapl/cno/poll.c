/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Polls all EVDs of a CNO for pending events. */
#include "dapl/udapl/evd/evd.h"
#include "dapl/udapl/cno/cno.h"
#include "dapl/udapl/cno/pset.h"

/* True if the EVD has only an empty CQ, which is the common case. */
static inline bool is_bare_locked(struct dapl_evd *evd)
{
	int polled;

	if (evd->state || !ib_cq_store_is_empty(evd->cq))
		return false;
	polled = ib_cq_ask(evd->cq);
	evd_tally_locked(evd, polled > 0 ? DCNT_EVD_DEQUEUE_POLL_FOUND : DCNT_EVD_DEQUEUE_POLL);
	if (__builtin_expect(polled != 0, 0))
		ib_cq_keep(evd->cq, polled);
	return !polled && !ib_cq_failed(evd->cq);
}

bool evd_is_pending(struct dapl_evd *evd)
{
	bool pending = false;

	lock_acquire(&evd->lock);
	if (!is_bare_locked(evd) && !(evd->state & EVD_DYING)) {
		if (!(evd->state & EVD_WAITED))
			evd_drain_locked(evd);
		pending = evd->state & (EVD_QUEUED | EVD_BROKEN);
	}
	lock_release(&evd->lock);
	return pending;
}

bool cno_is_pending(struct dapl_cno *cno)
{
	struct dapl_evd *evd;
	bool pending = false;

	pthread_mutex_lock(&cno->lock);
	TAILQ_FOREACH(evd, &cno->evds, cno_link) {
		/* EVDs that are disabled or have a waiter are not polled. */
		lock_acquire(&evd->lock);
		if (evd_may_trigger_locked(evd)) {
			evd_drain_locked(evd);
			pending = evd->state & (EVD_QUEUED | EVD_BROKEN);
		}
		lock_release(&evd->lock);
		if (pending)
			break;
	}
	pthread_mutex_unlock(&cno->lock);
	return pending;
}

/* Prefetches the next EVDs, because a thousand of them do not fit into a cache. */
static void fetch_ahead(const struct dapl_evd *evd)
{
	const struct dapl_evd *next = TAILQ_NEXT(evd, cno_link);
	const struct dapl_evd *after = next ? TAILQ_NEXT(next, cno_link) : NULL;

	if (after) {
		__builtin_prefetch(&after->lock);
		__builtin_prefetch(&after->tail);
		__builtin_prefetch(&after->cno_link);
		__builtin_prefetch(&after->counters.value[DCNT_EVD_DEQUEUE_POLL]);
	}
}

/* Polls each EVD at most once, beginning at poll_next; the next call begins where this one stops. */
static DAT_COUNT cno_poll_locked(DAT_HANDLE handle, DAT_COUNT max, DAT_EVD_HANDLE *evds)
{
	struct dapl_cno *cno = handle;
	struct dapl_evd *first = cno->poll_next ? cno->poll_next : TAILQ_FIRST(&cno->evds), *evd;
	DAT_COUNT count = 0;

	evd = first;
	while (evd) {
		bool pending;

		fetch_ahead(evd);
		pending = evd_is_pending(evd);
		if (pending)
			evds[count++] = evd;
		evd = TAILQ_NEXT(evd, cno_link);
		if (pending)
			cno->poll_next = evd;
		if (!evd)
			evd = TAILQ_FIRST(&cno->evds);
		if (evd == first || count == max)
			break;
	}
	return count;
}

DAT_RETURN poll_run(va_list args, pthread_mutex_t *lock, poll_once *poll, DAT_HANDLE handle)
{
	DAT_COUNT max = va_arg(args, DAT_COUNT), count;
	DAT_EVD_HANDLE *evds = va_arg(args, DAT_EVD_HANDLE *);
	DAT_COUNT *n = va_arg(args, DAT_COUNT *);

	if (max < 1)
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
	if (!evds)
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG4);
	if (!n)
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG5);
	pthread_mutex_lock(lock);
	count = poll(handle, max, evds);
	pthread_mutex_unlock(lock);
	*n = count;
	return count ? DAT_SUCCESS : DAT_QUEUE_EMPTY; /* no failure: without a class */
}

DAT_RETURN ext_cno_poll(DAT_HANDLE handle, va_list args)
{
	return poll_run(args, &((struct dapl_cno *)handle)->lock, cno_poll_locked, handle);
}
