/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Resizes the queue of an EVD in use, without loss or reordering of events. */
#include <stdlib.h>
#include "dapl/udapl/evd/evd.h"
#include "dapl/udapl/base/provider.h"

/* Serialises resizes, because the device resizes a CQ without the EVD's lock. Acquired before all other locks. */
static pthread_mutex_t resizing = PTHREAD_MUTEX_INITIALIZER;

void evd_resize_fork_child(void)
{
	resizing = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
}

/* Counts the completions in the CQ, too. */
static DAT_RETURN evd_resize_check_locked(struct dapl_evd *evd, DAT_COUNT qlen)
{
	if (evd->state & EVD_WAITED)
		return DAT_ERROR(DAT_INVALID_STATE, DAT_INVALID_STATE_EVD_WAITER);
	evd_drain_locked(evd);
	if (evd_count_locked(evd) > qlen || evd->state & (EVD_BROKEN | EVD_DYING))
		return DAT_ERROR(DAT_INVALID_STATE, 0);
	return DAT_SUCCESS;
}

/*
 * Extends the CQ if needed. The CQ never shrinks, because its capacity protects work that is already
 * posted. Sets *completions to the number of completions that the ring must have room for.
 */
static DAT_RETURN cq_extend(struct dapl_evd *evd, DAT_COUNT qlen, uint32_t *completions)
{
	if (!evd->cq)
		return DAT_SUCCESS;
	if (qlen > ib_cq_entries(evd->cq) && ib_cq_resize(evd->cq, qlen) != DAT_SUCCESS)
		return DAT_ERROR(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_TEVD);
	*completions = (uint32_t)ib_cq_entries(evd->cq);
	return DAT_SUCCESS;
}

static void swap_locked(struct dapl_evd *evd, struct evd_entry *ring, uint32_t size)
{
	uint32_t count = evd->tail - evd->head, i;

	for (i = 0; i < count; i++)
		ring[i] = evd->ring[(evd->head + i) & evd->ring_mask];
	evd->ring = ring;
	evd->ring_mask = size - 1;
	evd->head = 0;
	evd->tail = count;
}

static DAT_RETURN resize(struct dapl_evd *evd, DAT_COUNT qlen)
{
	uint32_t completions = 0, size = 1;
	struct evd_entry *ring, *old;
	bool wake = false;
	DAT_RETURN status;

	status = cq_extend(evd, qlen, &completions);
	if (status != DAT_SUCCESS)
		return status;
	if (completions < evd->completions_max)
		completions = evd->completions_max;
	/* One more entry holds the overflow event of an async EVD. */
	while (size < (uint32_t)qlen + completions + 1)
		size <<= 1;
	ring = calloc(size, sizeof(*ring));
	if (!ring)
		return DAT_ERROR(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_MEMORY);

	lock_acquire(&evd->lock);
	old = ring;
	status = evd_resize_check_locked(evd, qlen);
	if (status == DAT_SUCCESS) {
		old = evd->ring;
		swap_locked(evd, ring, size);
		evd->qlen = qlen;
		if (evd->armed_threshold > qlen) /* a full queue raises `wake` */
			evd->armed_threshold = qlen;
		evd->completions_max = completions;
		if (evd->room_wanted) {
			evd->room_wanted = false;
			evd->due |= EVD_DUE_ROOM;
		}
		/* A device may drop the arming of the CQ. */
		evd_rearm_locked(evd);
		evd_drain_locked(evd);
		wake = evd_wakes_locked(evd);
	}
	evd_unlock(evd);
	if (wake)
		wakefd_raise(&evd->wake);
	free(old);
	return status;
}

DAT_RETURN dapl_evd_resize(DAT_EVD_HANDLE handle, DAT_COUNT min_qlen)
{
	struct dapl_evd *evd = evd_from(handle);
	DAT_RETURN status;

	if (!evd)
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EVD_REQUEST);
	if (min_qlen <= 0 || (uint32_t)min_qlen > evd->obj.ia->attr->max_cqe)
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
	/* The device resizes the CQ without the EVD's lock: the hold keeps the CQ alive. */
	if (!obj_hold(&evd->obj))
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EVD_REQUEST);

	pthread_mutex_lock(&resizing);
	lock_acquire(&evd->lock);
	status = evd_resize_check_locked(evd, min_qlen);
	evd_unlock(evd);
	if (status == DAT_SUCCESS)
		status = resize(evd, min_qlen);
	pthread_mutex_unlock(&resizing);
	obj_release(&evd->obj);
	return status;
}
