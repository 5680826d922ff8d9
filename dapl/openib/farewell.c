/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * Connections that their owner has given up, but whose peer may not know of the end: the CM sends a disconnect request
 * again until it is answered or its tries are used up, but only as long as the id exists (InfiniBand 12.9.7, DREQ sent).
 */
#include "dapl/openib/openib.h"
#include "util/clock.h"

bool farewell_begin(struct ib_conn *conn)
{
	struct ib_device *device = conn->device;
	bool leaves;

	pthread_mutex_lock(&device->lock);
	leaves = conn->leaves = conn->told && conn->step != CONN_ENDED;
	if (leaves)
		LIST_INSERT_HEAD(&device->leaving, conn, leaving);
	pthread_mutex_unlock(&device->lock); /* from here on the event thread may free it */
	return leaves;
}

static bool is_end(enum rdma_cm_event_type type)
{
	return type == RDMA_CM_EVENT_DISCONNECTED || type == RDMA_CM_EVENT_TIMEWAIT_EXIT ||
	       type == RDMA_CM_EVENT_DEVICE_REMOVAL;
}

/* The step tells a farewell that is only about to begin that it is over. */
bool farewell_ends(struct ib_conn *conn, enum rdma_cm_event_type type)
{
	struct ib_device *device = conn->device;
	bool ends;

	if (!is_end(type))
		return false;
	pthread_mutex_lock(&device->lock);
	conn->step = CONN_ENDED;
	ends = conn->leaves;
	if (ends) {
		LIST_REMOVE(conn, leaving);
		pthread_cond_broadcast(&device->left);
	}
	pthread_mutex_unlock(&device->lock);
	return ends;
}

static bool is_awaited_locked(const struct ib_device *device)
{
	const struct ib_conn *conn;

	LIST_FOREACH(conn, &device->leaving, leaving)
		if (conn->hopeful)
			return true;
	return false;
}

void ib_device_farewell(struct ib_device *device, uint64_t deadline)
{
	struct timespec until = { .tv_sec = (time_t)(deadline / NSEC_PER_SEC),
				  .tv_nsec = (long)(deadline % NSEC_PER_SEC) };
	int error = 0;

	if (ib_in_upcall(device) || !device_is_opened_once(device))
		return;
	pthread_mutex_lock(&device->lock);
	while (is_awaited_locked(device) && !error)
		error = pthread_cond_timedwait(&device->left, &device->lock, &until);
	pthread_mutex_unlock(&device->lock);
	if (error)
		log_at(LOG_NOTE, "device %s: closed before all peers had answered a disconnect",
		       device->attr.device_name);
}

/* No event thread any more. */
void farewell_drop(struct ib_device *device)
{
	struct ib_conn *conn;

	while ((conn = LIST_FIRST(&device->leaving))) {
		LIST_REMOVE(conn, leaving);
		conn_free(conn);
	}
}
