/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * Draining: keeps the CM id of a destroyed connection until its peer has answered the disconnect request. The CM
 * repeats the request until it is answered or its retries are used up, but only while the id exists (InfiniBand 12.9.7,
 * DREQ sent).
 */
#include "dapl/openib/openib.h"
#include "util/clock.h"

bool conn_drain_begin(struct ib_conn *conn)
{
	struct ib_device *device = conn->device;
	bool drains;

	pthread_mutex_lock(&device->lock);
	drains = conn->drains = conn->dreq_sent && conn->step != CONN_ENDED;
	if (drains)
		LIST_INSERT_HEAD(&device->draining, conn, draining);
	pthread_mutex_unlock(&device->lock); /* from here on the event thread may free `conn` */
	return drains;
}

static bool is_end(enum rdma_cm_event_type type)
{
	return type == RDMA_CM_EVENT_DISCONNECTED || type == RDMA_CM_EVENT_TIMEWAIT_EXIT ||
	       type == RDMA_CM_EVENT_DEVICE_REMOVAL;
}

/* Sets the step even if the drain has not begun: conn_drain_begin() then finds that it is not needed. */
bool conn_drain_ends(struct ib_conn *conn, enum rdma_cm_event_type type)
{
	struct ib_device *device = conn->device;
	bool ends;

	if (!is_end(type))
		return false;
	pthread_mutex_lock(&device->lock);
	conn->step = CONN_ENDED;
	ends = conn->drains;
	if (ends) {
		LIST_REMOVE(conn, draining);
		pthread_cond_broadcast(&device->left);
	}
	pthread_mutex_unlock(&device->lock);
	return ends;
}

static bool is_awaited_locked(const struct ib_device *device)
{
	const struct ib_conn *conn;

	LIST_FOREACH(conn, &device->draining, draining)
		if (conn->awaits_reply)
			return true;
	return false;
}

void ib_device_drain(struct ib_device *device, uint64_t deadline)
{
	struct timespec until = { .tv_sec = (time_t)(deadline / NSEC_PER_SEC),
				  .tv_nsec = (long)(deadline % NSEC_PER_SEC) };
	int error = 0;

	if (ib_in_upcall(device) || !device_is_opened_once(device))
		return;
	ib_cm_share(device);
	pthread_mutex_lock(&device->lock);
	while (is_awaited_locked(device) && !error)
		error = pthread_cond_timedwait(&device->left, &device->lock, &until);
	pthread_mutex_unlock(&device->lock);
	if (error)
		log_at(LOG_NOTE, "device %s: closed before all peers had answered a disconnect",
		       device->attr.device_name);
}

/* The event thread has ended: no lock is needed. */
void conn_drain_drop(struct ib_device *device)
{
	struct ib_conn *conn;

	while ((conn = LIST_FIRST(&device->draining))) {
		LIST_REMOVE(conn, draining);
		conn_free(conn);
	}
}
