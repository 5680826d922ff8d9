/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* The limits of a shared receive queue that can be changed: its size, and its low watermark. */
#include "dapl/udapl/base/provider.h"
#include "dapl/udapl/ep/srq.h"

/* Serialises changes of all SRQs, because the device is called without the SRQ's lock. Outermost. */
static pthread_mutex_t changing = PTHREAD_MUTEX_INITIALIZER;

void srq_limit_fork_child(void)
{
	changing = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
}

/* ---- size ---- */

static DAT_RETURN resize_check(struct dapl_srq *srq, uint32_t wanted)
{
	DAT_RETURN status = DAT_SUCCESS;

	lock_acquire(&srq->pool.lock);
	if (wanted < srq->pool.outstanding || wanted < (uint32_t)srq->attr.low_watermark)
		status = DAT_ERROR(DAT_INVALID_STATE, 0);
	lock_release(&srq->pool.lock);
	return status;
}

/*
 * A smaller queue of the device holds what is posted by then and no more, so posting is limited
 * first. Returns false if too many receives were posted before that; nothing has changed then.
 */
static bool limit_posts(struct dapl_srq *srq, uint32_t count)
{
	bool fits;

	lock_acquire(&srq->pool.lock);
	fits = count >= srq->pool.outstanding;
	if (fits)
		srq->attr.max_recv_dtos = (DAT_COUNT)count;
	lock_release(&srq->pool.lock);
	return fits;
}

/* If the device refuses, the consumer can use the size that the device has. */
static DAT_RETURN shrink(struct dapl_srq *srq, uint32_t now, uint32_t wanted)
{
	if (!limit_posts(srq, wanted))
		return DAT_ERROR(DAT_INVALID_STATE, 0);
	if (!srq->obj.ia->attr->srq_resize || ib_srq_resize(srq->srq, &wanted) != DAT_SUCCESS)
		wanted = now;
	limit_posts(srq, wanted);
	return DAT_SUCCESS;
}

static DAT_RETURN grow(struct dapl_srq *srq, uint32_t wanted)
{
	DAT_RETURN status = DAT_ERROR(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_SRQ);

	if (srq->obj.ia->attr->srq_resize)
		status = ib_srq_resize(srq->srq, &wanted);
	if (status == DAT_SUCCESS)
		limit_posts(srq, wanted < srq->pool.slots_end ? wanted : srq->pool.slots_end);
	return status;
}

DAT_RETURN dapl_srq_resize(DAT_SRQ_HANDLE handle, DAT_COUNT max_recv_dtos)
{
	struct dapl_srq *srq = srq_from(handle);
	uint32_t wanted = (uint32_t)max_recv_dtos, now;
	DAT_RETURN status;

	if (!srq)
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_SRQ);
	if (max_recv_dtos <= 0 || wanted > srq->obj.ia->attr->max_srq_wr)
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
	if (!obj_hold(&srq->obj))
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_SRQ);

	pthread_mutex_lock(&changing);
	/* The size changes only here. */
	now = (uint32_t)srq->attr.max_recv_dtos;
	status = resize_check(srq, wanted);
	if (status == DAT_SUCCESS && wanted > now)
		status = grow(srq, wanted);
	else if (status == DAT_SUCCESS && wanted < now)
		status = shrink(srq, now, wanted);
	pthread_mutex_unlock(&changing);
	obj_release(&srq->obj);
	return status;
}

/* ---- low watermark: reported once, by the device or by a check of the counts, whichever is first ---- */

static bool is_low(struct dapl_srq *srq)
{
	bool low;

	srq_collect(srq);
	lock_acquire(&srq->pool.lock);
	low = (DAT_COUNT)(srq->pool.outstanding - srq->pool.ready) < srq->attr.low_watermark;
	lock_release(&srq->pool.lock);
	return low;
}

static void watermark_report(struct dapl_srq *srq)
{
	bool first;

	lock_acquire(&srq->pool.lock);
	first = srq->low_water.armed;
	srq->low_water.armed = false;
	lock_release(&srq->pool.lock);
	if (first)
		async_post_srq(&srq->obj, DAT_SRQ_LOW_WATERMARK_EVENT);
}

/*
 * The device counts buffers that are in no completion yet, so its report is taken as it is. But a
 * report that may be for a previous watermark is ignored, and the device is asked again.
 */
void srq_limit_reached(struct dapl_srq *srq)
{
	uint32_t watermark;
	bool doubtful;

	lock_acquire(&srq->pool.lock);
	doubtful = srq->low_water.doubtful;
	srq->low_water.asked = doubtful;
	srq->low_water.doubtful = false;
	watermark = srq->low_water.armed ? (uint32_t)srq->attr.low_watermark : 0;
	lock_release(&srq->pool.lock);
	if (doubtful && watermark && !is_low(srq) &&
	    ib_srq_limit(srq->srq, watermark) == DAT_SUCCESS)
		return;
	watermark_report(srq);
}

/* Replaces the watermark and returns the previous one. */
static struct srq_low_water low_water_set(struct dapl_srq *srq, DAT_COUNT watermark,
					  const struct srq_low_water *back)
{
	struct srq_low_water before;

	lock_acquire(&srq->pool.lock);
	before = srq->low_water;
	srq->attr.low_watermark = watermark;
	srq->low_water = (struct srq_low_water){ .armed = watermark > 0,
						 .asked = watermark > 0 || before.asked,
						 .doubtful = before.asked };
	if (back)
		srq->low_water = *back;
	lock_release(&srq->pool.lock);
	return before;
}

/* The watermark is set before the device is asked, because the device may report at once. */
static DAT_RETURN set_low(struct dapl_srq *srq, DAT_COUNT watermark)
{
	DAT_COUNT old = srq->attr.low_watermark;
	struct srq_low_water before = low_water_set(srq, watermark, NULL);
	DAT_RETURN status = ib_srq_limit(srq->srq, (uint32_t)watermark);

	if (status != DAT_SUCCESS) {
		low_water_set(srq, old, &before);
		return status;
	}
	/* Some devices report only buffers that are taken after the request. */
	if (watermark && is_low(srq))
		watermark_report(srq);
	return DAT_SUCCESS;
}

DAT_RETURN dapl_srq_set_lw(DAT_SRQ_HANDLE handle, DAT_COUNT low_watermark)
{
	struct dapl_srq *srq = srq_from(handle);
	DAT_RETURN status;

	if (!srq || !obj_hold(&srq->obj))
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_SRQ);
	pthread_mutex_lock(&changing);
	if (low_watermark < 0 || low_watermark > srq->attr.max_recv_dtos)
		status = DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
	else
		status = set_low(srq, low_watermark);
	pthread_mutex_unlock(&changing);
	obj_release(&srq->obj);
	return status;
}
