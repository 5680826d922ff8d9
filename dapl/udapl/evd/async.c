/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Asynchronous errors: the events that report them, and the async EVD that each goes to. */
#include "dapl/udapl/base/names.h"
#include "dapl/udapl/evd/evd.h"
#include "util/log.h"

/*
 * This number serves all SRQ events: DAT has none for them, and consumers tell them apart by handle
 * and reason.
 */
#define SRQ_EVENT DAT_ASYNC_ERROR_PROVIDER_INTERNAL_ERROR

/*
 * The EVD for an IA's errors: its own, or for an IA that was opened with DAT_EVD_ASYNC_EXISTS that
 * of the oldest other instance of the device. NULL if there is none.
 */
static struct dapl_evd *route_locked(const struct dapl_ia *ia)
{
	const struct dapl_ia *other;

	if (ia->async_evd)
		return ia->async_evd;
	TAILQ_FOREACH(other, &ia_all, all)
		if (other->device == ia->device && other->async_evd)
			return other->async_evd;
	return NULL;
}

static DAT_EVENT async_event(DAT_EVENT_NUMBER number, DAT_HANDLE handle, DAT_COUNT reason)
{
	DAT_EVENT event = { .event_number = number };

	event.event_data.asynch_error_event_data.dat_handle = handle;
	event.event_data.asynch_error_event_data.reason = reason;
	return event;
}

/*
 * Returns the EVD, pinned, or NULL. No event is posted with the lock held: a post may cause work
 * that acquires it.
 */
static struct dapl_evd *route_pin_locked(const struct dapl_ia *ia)
{
	struct dapl_evd *evd = route_locked(ia);

	if (evd)
		evd_pin(evd);
	return evd;
}

static struct dapl_evd *route_pin(const struct dapl_ia *ia)
{
	struct dapl_evd *evd;

	pthread_mutex_lock(&ia_all_lock);
	evd = route_pin_locked(ia);
	pthread_mutex_unlock(&ia_all_lock);
	return evd;
}

/* Posts to a pinned EVD, or does nothing for NULL, and unpins it. */
static void post_pinned(struct dapl_evd *evd, DAT_EVENT_NUMBER number, DAT_HANDLE handle,
			DAT_COUNT reason)
{
	DAT_EVENT event = async_event(number, handle, reason);

	log_at(LOG_WARN, "async error %s for %p, reason %d", async_error_name(number), handle,
	       reason);
	if (!evd || !evd_post_or_overflow(evd, &event))
		log_at(LOG_WARN, "that event is lost: %s",
		       evd ? "the async EVD is full" : "there is no async EVD");
	if (evd)
		evd_unpin(evd);
}

static void async_post(const struct dapl_ia *ia, DAT_EVENT_NUMBER number, DAT_HANDLE handle,
		       DAT_COUNT reason)
{
	post_pinned(route_pin(ia), number, handle, reason);
}

void async_post_ep_broken(struct obj *ep)
{
	async_post(ep->ia, DAT_ASYNC_ERROR_EP_BROKEN, ep, DAT_EP_TRANSFER_TO_ERROR);
}

void async_post_evd_overflow(struct dapl_evd *evd)
{
	async_post(evd->obj.ia, DAT_ASYNC_ERROR_EVD_OVERFLOW, evd, DAT_EVD_OVERFLOW_ERROR);
}

void async_post_srq(struct obj *srq, DAT_COUNT reason)
{
	async_post(srq->ia, SRQ_EVENT, srq, reason);
}

bool async_post_last_wqe(struct obj *ep)
{
	DAT_EVENT event = async_event(DAT_ASYNC_ERROR_EP_BROKEN, ep, DAT_EP_TRANSFER_TO_ERROR);
	struct dapl_evd *evd = route_pin(ep->ia);
	bool posted = !evd || evd_post(evd, &event);

	if (evd)
		evd_unpin(evd);
	return posted;
}

void async_room(struct dapl_evd *evd)
{
	struct dapl_ia *ia;

	pthread_mutex_lock(&ia_all_lock);
	TAILQ_FOREACH(ia, &ia_all, all)
		if (route_locked(ia) == evd)
			task_post(&ia->task, IA_DUE_NOTICES);
	pthread_mutex_unlock(&ia_all_lock);
}

/* ---- events about the device ---- */

/* A device event is posted once to each async EVD, also if several IAs share it. */
static bool is_posted_locked(const struct dapl_ia *ia)
{
	const struct dapl_ia *before;

	TAILQ_FOREACH(before, &ia_all, all) {
		if (before == ia)
			return false;
		if (before->device == ia->device && route_locked(before) == route_locked(ia))
			return true;
	}
	return false;
}

/* Returns the first IA of the device with a number above `after` that gets the event, or NULL. */
static struct dapl_ia *hearer_locked(const struct ib_device *device, uint64_t after)
{
	struct dapl_ia *ia;

	TAILQ_FOREACH(ia, &ia_all, all)
		if (ia->number > after && ia->device == device && !is_posted_locked(ia))
			break;
	return ia;
}

/* The lock is released for each async_post, and IAs may come and go; their numbers only grow. */
void async_post_device(const struct ib_device *device, DAT_EVENT_NUMBER number, DAT_COUNT reason)
{
	struct dapl_evd *evd = NULL;
	DAT_HANDLE handle = NULL;
	uint64_t after = 0;
	struct dapl_ia *ia;

	do {
		pthread_mutex_lock(&ia_all_lock);
		ia = hearer_locked(device, after);
		if (ia) {
			evd = route_pin_locked(ia);
			handle = ia_handle(ia);
			after = ia->number;
		}
		pthread_mutex_unlock(&ia_all_lock);
		if (ia)
			post_pinned(evd, number, handle, reason);
	} while (ia);
}
