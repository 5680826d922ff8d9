/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Events: queued in the channel, fetched, acknowledged. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include "dapl/cm/id.h"

#define SERVE_MOST 64 /* limit of sources per call: the caller may have other work */

struct rdma_cm_event *cm_event_post(struct cm_id *id, enum cm_slot slot,
				    enum rdma_cm_event_type type, int status)
{
	struct cm_event *event = &id->events[slot];

	event->event = (struct rdma_cm_event){ .id = &id->id, .event = type, .status = status };
	TAILQ_INSERT_TAIL(&id->channel->events, event, entry);
	return &event->event;
}

/* ---- contents ---- */

static uint8_t peer_depth(const struct cm_id *id)
{
	return id->peer.ver < 7 ? CM_DEPTH_UNKNOWN : id->peer.rd_in;
}

static void say_ud(const struct cm_id *id, struct rdma_ud_param *ud)
{
	*ud = (struct rdma_ud_param){
		.private_data = id->peer.p_size ? id->data : NULL,
		.private_data_len = (uint8_t)id->peer.p_size,
		.qp_num = id->endpoint.qpn,
		.qkey = CM_UD_QKEY,
	};
	cm_path(id->channel, &id->endpoint, &ud->ah_attr);
}

static void say_conn(const struct cm_id *id, struct rdma_conn_param *conn)
{
	*conn = (struct rdma_conn_param){
		.private_data = id->peer.p_size ? id->data : NULL,
		.private_data_len = (uint8_t)id->peer.p_size,
		.responder_resources = CM_DEPTH_UNKNOWN,
		.initiator_depth = peer_depth(id),
		.retry_count = id->retry_count,
		.rnr_retry_count = id->rnr_retry_count,
		.qp_num = id->endpoint.qpn,
	};
}

static void say(const struct cm_id *id, struct rdma_cm_event *event)
{
	if (cm_is_datagram(id))
		say_ud(id, &event->param.ud);
	else
		say_conn(id, &event->param.conn);
}

void cm_event_request(struct cm_id *listener, struct cm_id *id)
{
	struct rdma_cm_event *event =
		cm_event_post(id, CM_SLOT_FIRST, RDMA_CM_EVENT_CONNECT_REQUEST, 0);

	event->listen_id = &listener->id;
	id->state = CM_REQUESTED;
	say(id, event);
}

void cm_event_answer(struct cm_id *id)
{
	bool datagram = cm_is_datagram(id);

	id->state = datagram ? CM_OVER : CM_ANSWERED;
	say(id, cm_event_post(id, CM_SLOT_ANSWER,
			      datagram ? RDMA_CM_EVENT_ESTABLISHED : RDMA_CM_EVENT_CONNECT_RESPONSE,
			      0));
}

void cm_event_rejected(struct cm_id *id, int status)
{
	struct rdma_cm_event *event =
		cm_event_post(id, CM_SLOT_ANSWER, RDMA_CM_EVENT_REJECTED, status);

	id->state = CM_OVER;
	event->param.conn.private_data = id->peer.p_size ? id->data : NULL;
	event->param.conn.private_data_len = (uint8_t)id->peer.p_size;
}

/* ---- fetch ---- */

static struct cm_event *event_take(struct cm_channel *channel)
{
	struct cm_event *event = TAILQ_FIRST(&channel->events);

	if (!event)
		return NULL;
	TAILQ_REMOVE(&channel->events, event, entry);
	cm_id_of(event->event.id)->unacked++;
	if (event->event.listen_id)
		cm_id_of(event->event.listen_id)->unacked++;
	return event;
}

/* Returns the next report of the epoll, or NULL. */
static const struct epoll_event *report_next(struct cm_channel *channel)
{
	int count;

	if (channel->reports_next == channel->reports_count) {
		count = epoll_wait(channel->channel.fd, channel->reports, CM_REPORTS, 0);
		channel->reports_next = 0;
		channel->reports_count = count > 0 ? (unsigned)count : 0;
		if (!channel->reports_count)
			return NULL;
	}
	return &channel->reports[channel->reports_next++];
}

/* Serves sources until an event is queued. A descriptor whose report is left for the next call keeps the channel readable. */
static void event_serve(struct cm_channel *channel)
{
	const struct epoll_event *report;
	struct cm_source *source;
	int i;

	for (i = 0; i < SERVE_MOST && TAILQ_EMPTY(&channel->events); i++) {
		report = report_next(channel);
		if (!report)
			return;
		source = report->data.ptr;
		if (!source)
			wakefd_clear(&channel->queued);
		else if (report->events)
			source->ready(channel, source, report->events);
	}
}

int rdma_get_cm_event(struct rdma_event_channel *given, struct rdma_cm_event **event)
{
	struct cm_channel *channel = cm_channel_of(given);
	struct cm_event *taken;

	cm_lock(channel);
	event_serve(channel);
	taken = event_take(channel);
	cm_unlock(channel);
	if (!taken) {
		errno = EAGAIN;
		return -1;
	}
	*event = &taken->event;
	return 0;
}

int rdma_ack_cm_event(struct rdma_cm_event *given)
{
	struct cm_channel *channel = cm_id_of(given->id)->channel;

	cm_lock(channel);
	cm_id_of(given->id)->unacked--;
	if (given->listen_id)
		cm_id_of(given->listen_id)->unacked--;
	pthread_cond_broadcast(&channel->acked);
	cm_unlock(channel);
	return 0;
}

/* Removes the identifier's events; requests that a listener did not report are refused. */
void cm_events_forget(struct cm_id *id)
{
	struct cm_channel *channel = id->channel;
	struct cm_event *event = TAILQ_FIRST(&channel->events), *next;
	struct cm_id *of;

	for (; event; event = next) {
		next = TAILQ_NEXT(event, entry);
		of = cm_id_of(event->event.id);
		if (of != id && event->event.listen_id != &id->id)
			continue;
		TAILQ_REMOVE(&channel->events, event, entry);
		if (of != id) {
			cm_transport.drop(of);
			cm_id_free(of);
		}
	}
}
