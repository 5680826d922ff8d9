/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Events: created, queued in channels, removed, fetched and acknowledged. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "softverbs/cm/cm.h"
#include "util/log.h"

/* ---- post ---- */

int sv_cm_event_reserve(struct cm_id *id)
{
	struct cm_event *event;
	int i;

	for (i = 0; i < CM_RESERVE; i++) {
		event = calloc(1, sizeof(*event));
		if (!event)
			return ENOMEM;
		TAILQ_INSERT_TAIL(&id->reserve, event, entry);
	}
	return 0;
}

void sv_cm_event_unreserve(struct cm_id *id)
{
	struct cm_event *event;

	while ((event = TAILQ_FIRST(&id->reserve))) {
		TAILQ_REMOVE(&id->reserve, event, entry);
		free(event);
	}
}

static void event_fill(struct cm_event *event, struct cm_id *owner, enum rdma_cm_event_type type,
		       int status)
{
	event->owner = owner;
	event->event.id = &owner->id;
	event->event.event = type;
	event->event.status = status;
}

struct cm_event *sv_cm_event_new(struct cm_id *owner, enum rdma_cm_event_type type, int status)
{
	struct cm_event *event = calloc(1, sizeof(*event));

	if (event)
		event_fill(event, owner, type, status);
	return event;
}

struct cm_event *sv_cm_event_new_locked(struct cm_id *owner, enum rdma_cm_event_type type,
					int status)
{
	struct cm_event *event = TAILQ_FIRST(&owner->reserve);

	if (event)
		TAILQ_REMOVE(&owner->reserve, event, entry);
	else
		event = calloc(1, sizeof(*event)); /* of another attempt to connect */
	if (event)
		event_fill(event, owner, type, status);
	else
		log_at(LOG_ERROR, "rdma_cm: id %p: %s is lost: out of memory", (void *)&owner->id,
		       rdma_event_str(type));
	return event;
}

/* The private data of an event is the whole field of the message, including zeros. */
void sv_cm_event_set_params(struct cm_event *event, const struct cm_params *theirs,
			    const uint8_t *data, unsigned size)
{
	struct rdma_conn_param *param = &event->event.param.conn;

	if (theirs) {
		/* the peer's initiator depth is this side's responder resources */
		param->responder_resources = theirs->initiator_depth;
		param->initiator_depth = theirs->responder_resources;
		param->flow_control = theirs->flow_control;
		param->retry_count = theirs->retry_count;
		param->rnr_retry_count = theirs->rnr_retry_count;
		param->srq = theirs->srq;
		param->qp_num = theirs->qpn;
	}
	if (size) {
		memcpy(event->data, data, size);
		param->private_data = event->data;
		param->private_data_len = (uint8_t)size;
	}
}

static void event_queue_locked(struct cm_channel *channel, struct cm_event *event)
{
	bool was_empty = TAILQ_EMPTY(&channel->events);

	TAILQ_INSERT_TAIL(&channel->events, event, entry);
	if (sv_cm_channel_is_held(channel) && !channel->readers)
		channel->owes_token |= was_empty;
	else if (was_empty || channel->owes_token)
		sv_cm_token_put_locked(channel);
}

void sv_cm_event_post_locked(struct cm_event *event)
{
	if (event)
		event_queue_locked(sv_cm_channel_of_id(event->owner), event);
}

void sv_cm_event_post_new_locked(struct cm_id *owner, enum rdma_cm_event_type type, int status)
{
	sv_cm_event_post_locked(sv_cm_event_new_locked(owner, type, status));
}

/* ---- removal ---- */

/* Removes an event. The token is taken with the last event; if a thread is between token and event, that
 * thread takes it when it leaves. */
static void unqueue_locked(struct cm_channel *channel, struct cm_event *event)
{
	TAILQ_REMOVE(&channel->events, event, entry);
	if (!channel->readers && TAILQ_EMPTY(&channel->events))
		sv_cm_token_take_locked(channel);
}

static struct cm_event *event_of_id_locked(struct cm_channel *channel, const struct cm_id *id)
{
	struct cm_event *event;

	TAILQ_FOREACH(event, &channel->events, entry)
		if (event->owner == id)
			break;
	return event;
}

void sv_cm_event_discard_locked(struct cm_id *id)
{
	struct cm_channel *channel = sv_cm_channel_of_id(id);
	struct cm_event *event;

	while ((event = event_of_id_locked(channel, id))) {
		unqueue_locked(channel, event);
		if (event->event.event == RDMA_CM_EVENT_CONNECT_REQUEST)
			sv_cm_listen_drop_locked(cm_id_of(event->event.id), CM_CONSUMER);
		free(event);
	}
}

void sv_cm_event_move_locked(struct cm_id *id, struct cm_channel *to)
{
	struct cm_channel *from = sv_cm_channel_of_id(id);
	struct cm_event *event;

	while (from != to && (event = event_of_id_locked(from, id))) {
		unqueue_locked(from, event);
		event_queue_locked(to, event);
	}
}

/* ---- fetch ---- */

/* Takes an event for the program and counts it as delivered: its owner is not destroyed before the
 * acknowledgement. */
static struct cm_event *event_take_locked(struct cm_channel *channel)
{
	struct cm_event *event = TAILQ_FIRST(&channel->events);

	if (!event)
		return NULL;
	unqueue_locked(channel, event);
	event->owner->delivered++;
	if (event->event.event == RDMA_CM_EVENT_CONNECT_REQUEST)
		sv_cm_listen_fetched_locked(event);
	return event;
}

static struct cm_event *event_await_locked(struct cm_channel *channel, int *error)
{
	struct cm_event *event = NULL;

	channel->readers++;
	while (!event && !*error) {
		bool closed = channel->closed;

		sv_cm_unlock();
		*error = sv_cm_token_read(channel, closed);
		sv_cm_lock();
		channel->token &= *error != 0;
		if (channel->closed)
			*error = 0; /* the channel was closed just before the reader would wait */
		else if (!*error)
			event = event_take_locked(channel);
	}
	sv_cm_channel_leave_locked(channel);
	return event;
}

/* Returns the next event, or NULL with *error. */
static struct cm_event *event_next(struct cm_channel *channel, int *error)
{
	struct cm_event *event = NULL;

	*error = 0;
	pthread_testcancel();
	sv_cm_lock();
	if (!channel->readers)
		event = event_take_locked(channel);
	if (!event && sv_cm_channel_is_held(channel) && !channel->token && !channel->loose)
		*error = EAGAIN;
	else if (!event)
		event = event_await_locked(channel, error);
	sv_cm_unlock();
	return event;
}

static void event_settle(struct cm_event *event)
{
	struct cm_id *id = event->owner;

	sv_cm_lock();
	id->acked++;
	if (id->acked == id->delivered)
		pthread_cond_broadcast(&id->all_acked);
	sv_cm_unlock();
	free(event);
}

/* Does the queue pair's part of the event, in the program's thread, before the program sees the event. False
 * if the event is to be discarded. */
static bool event_finish(struct cm_event *event)
{
	if (event->event.event == RDMA_CM_EVENT_CONNECT_RESPONSE)
		return sv_cm_connect_finish(event);
	if (event->event.event == RDMA_CM_EVENT_CONNECT_REQUEST)
		return sv_cm_listen_hand_over(event);
	if (event->event.event == RDMA_CM_EVENT_REJECTED)
		sv_cm_qp_error(event->owner);
	return true;
}

int rdma_get_cm_event(struct rdma_event_channel *public, struct rdma_cm_event **out)
{
	struct cm_channel *channel = sv_cm_channel_from(public);
	struct cm_event *event;
	int error;

	if (!sv_cm_channel_is_ours(public))
		return sv_cm_fail(ENODEV);
	for (;;) {
		event = event_next(channel, &error);
		if (!event)
			return sv_cm_fail(error);
		if (event_finish(event))
			break;
		event_settle(event);
	}
	*out = &event->event;
	return 0;
}

int rdma_ack_cm_event(struct rdma_cm_event *public)
{
	struct cm_event *event = (struct cm_event *)(void *)public; /* its first member */

	if (!event)
		return sv_cm_fail(EINVAL);
	if (!sv_cm_id_is_ours(event->owner))
		return sv_cm_fail(ENODEV);
	event_settle(event);
	return 0;
}

/* ---- names ---- */

const char *rdma_event_str(enum rdma_cm_event_type event)
{
	static const char *const names[] = {
		[RDMA_CM_EVENT_ADDR_RESOLVED] = "RDMA_CM_EVENT_ADDR_RESOLVED",
		[RDMA_CM_EVENT_ADDR_ERROR] = "RDMA_CM_EVENT_ADDR_ERROR",
		[RDMA_CM_EVENT_ROUTE_RESOLVED] = "RDMA_CM_EVENT_ROUTE_RESOLVED",
		[RDMA_CM_EVENT_ROUTE_ERROR] = "RDMA_CM_EVENT_ROUTE_ERROR",
		[RDMA_CM_EVENT_CONNECT_REQUEST] = "RDMA_CM_EVENT_CONNECT_REQUEST",
		[RDMA_CM_EVENT_CONNECT_RESPONSE] = "RDMA_CM_EVENT_CONNECT_RESPONSE",
		[RDMA_CM_EVENT_CONNECT_ERROR] = "RDMA_CM_EVENT_CONNECT_ERROR",
		[RDMA_CM_EVENT_UNREACHABLE] = "RDMA_CM_EVENT_UNREACHABLE",
		[RDMA_CM_EVENT_REJECTED] = "RDMA_CM_EVENT_REJECTED",
		[RDMA_CM_EVENT_ESTABLISHED] = "RDMA_CM_EVENT_ESTABLISHED",
		[RDMA_CM_EVENT_DISCONNECTED] = "RDMA_CM_EVENT_DISCONNECTED",
		[RDMA_CM_EVENT_DEVICE_REMOVAL] = "RDMA_CM_EVENT_DEVICE_REMOVAL",
		[RDMA_CM_EVENT_MULTICAST_JOIN] = "RDMA_CM_EVENT_MULTICAST_JOIN",
		[RDMA_CM_EVENT_MULTICAST_ERROR] = "RDMA_CM_EVENT_MULTICAST_ERROR",
		[RDMA_CM_EVENT_ADDR_CHANGE] = "RDMA_CM_EVENT_ADDR_CHANGE",
		[RDMA_CM_EVENT_TIMEWAIT_EXIT] = "RDMA_CM_EVENT_TIMEWAIT_EXIT",
		[CM_EVENT_ADDRINFO_RESOLVED] = "RDMA_CM_EVENT_ADDRINFO_RESOLVED",
		[CM_EVENT_ADDRINFO_ERROR] = "RDMA_CM_EVENT_ADDRINFO_ERROR",
		[CM_EVENT_USER] = "RDMA_CM_EVENT_USER",
	};

	return (unsigned)event < sizeof(names) / sizeof(names[0]) ? names[event] : "UNKNOWN EVENT";
}

/* ---- events of the program ---- */

int rdma_write_cm_event(struct rdma_cm_id *public, enum rdma_cm_event_type type, int status,
			uint64_t arg)
{
	struct cm_id *id = cm_id_of(public);
	struct cm_event *event;

	if (!sv_cm_id_is_ours(id))
		return sv_cm_fail(ENODEV);
	if ((int)type != CM_EVENT_USER)
		return sv_cm_fail(EINVAL);
	event = sv_cm_event_new(id, type, status);
	if (!event)
		return sv_cm_fail(ENOMEM);
	memcpy(&event->event.param, &arg, sizeof(arg)); /* older headers do not name this member */
	sv_cm_lock();
	sv_cm_event_post_locked(event);
	sv_cm_unlock();
	return 0;
}
