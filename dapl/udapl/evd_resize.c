/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* A longer or shorter queue for an EVD in use: nothing is lost, and the order stays. */
#include <stdlib.h>
#include "dapl/udapl/evd.h"
#include "dapl/udapl/provider.h"

/* One at a time, since the device changes a CQ outside of the EVD's lock. Before all other locks. */
static pthread_mutex_t resizing = PTHREAD_MUTEX_INITIALIZER;

/* With what the CQ holds counted, too. */
static DAT_RETURN check_locked(struct dapl_evd *evd, DAT_COUNT qlen)
{
	if (evd->state & EVD_WAITED)
		return DAT_ERROR(DAT_INVALID_STATE, DAT_INVALID_STATE_EVD_WAITER);
	evd_drain_locked(evd);
	if (evd_count_locked(evd) > qlen || evd->state & (EVD_BROKEN | EVD_DYING))
		return DAT_ERROR(DAT_INVALID_STATE, 0);
	return DAT_SUCCESS;
}

/*
 * The CQ only grows: its capacity protects work that is posted already. Says how many completions
 * the ring has to have room for.
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
	/* One more for the overflow event of an async EVD. */
	while (size < (uint32_t)qlen + completions + 1)
		size <<= 1;
	ring = calloc(size, sizeof(*ring));
	if (!ring)
		return DAT_ERROR(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_MEMORY);

	lock_acquire(&evd->lock);
	old = ring;
	status = check_locked(evd, qlen);
	if (status == DAT_SUCCESS) {
		old = evd->ring;
		swap_locked(evd, ring, size);
		evd->qlen = qlen;
		if (evd->watched > qlen) /* so many fill the queue */
			evd->watched = qlen;
		evd->completions_max = completions;
		if (evd->room_wanted) {
			evd->room_wanted = false;
			evd->due |= EVD_DUE_ROOM;
		}
		/* A device may forget that the CQ was armed. */
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
	/* The device is asked without the EVD's lock, and the CQ must stay. */
	if (!obj_hold(&evd->obj))
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EVD_REQUEST);

	pthread_mutex_lock(&resizing);
	lock_acquire(&evd->lock);
	status = check_locked(evd, min_qlen);
	evd_unlock(evd);
	if (status == DAT_SUCCESS)
		status = resize(evd, min_qlen);
	pthread_mutex_unlock(&resizing);
	obj_release(&evd->obj);
	return status;
}
