/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * Listeners: requests become identifiers, wait for room in the queue, and are handed to the program
 * that fetches them.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "softverbs/cm.h"
#include "softverbs/log_from.h"
#include "util/clock.h"
#include "util/log.h"

#define TELL_TIME \
	NSEC_PER_SEC /* a program that answers sooner need not tell that it has a request */

int rdma_listen(struct rdma_cm_id *public, int backlog)
{
	struct sockaddr_in wildcard = { .sin_family = AF_INET };
	struct cm_id *id = cm_id_of(public);
	int error;

	if (!id_is_ours(id))
		return cm_fail(ENODEV);
	if (id_state(id) == CM_IDLE && rdma_bind_addr(public, (struct sockaddr *)&wildcard))
		return -1;
	cm_lock();
	error = id->state == CM_BOUND ? port_listen_locked(id) : EINVAL;
	if (!error) {
		id->backlog = backlog > 0 && backlog <= CM_BACKLOG ? (unsigned)backlog : CM_BACKLOG;
		id->state = CM_LISTENING;
	}
	cm_unlock();
	return error ? cm_fail(error) : 0;
}

/* ---- a request arrives ---- */

static uint8_t lower(uint8_t a, uint8_t b)
{
	return a < b ? a : b;
}

static void request_fill(struct cm_id *request, struct sv_peer *peer,
			 const struct cm_message *message)
{
	struct rdma_addr *addr = &request->id.route.addr;

	peer_hold(peer);
	request->peer = peer;
	request->remote = message->from;
	request->state = CM_REQUESTED;
	request->theirs = message->params;
	/* what an accept without parameters of its own means */
	request->local.responder_resources =
		lower(message->params.initiator_depth, cm_max_responder());
	request->local.initiator_depth =
		lower(message->params.responder_resources, cm_max_initiator());
	memcpy(&addr->src_storage, &message->target, sizeof(message->target));
	memcpy(&addr->dst_storage, &message->source, sizeof(message->source));
	route_fill(request);
}

static void request_free_locked(struct cm_id *request)
{
	id_unnumber_locked(request);
	free(request->parked_event);
	id_free(request);
}

static struct cm_id *request_new_locked(struct cm_id *listener, struct sv_peer *peer,
					const struct cm_message *message)
{
	struct cm_id *request = id_new(channel_of_id(listener), NULL, listener->id.ps);
	struct cm_event *event;

	if (!request)
		return NULL;
	event = event_new(listener, RDMA_CM_EVENT_CONNECT_REQUEST, 0);
	request->parked_event = event;
	if (!event || id_number_locked(request)) {
		request_free_locked(request);
		return NULL;
	}
	request_fill(request, peer, message);
	request->listener = listener;
	event->event.id = &request->id;
	event->event.listen_id = &listener->id;
	if (id_is_datagram(request))
		datagram_set_params(request, event, NULL, message->data, CM_SIDR_REQ_DATA);
	else
		event_set_params(event, &message->params, message->data, CM_REQ_DATA);
	return request;
}

/* All that are queued or fetched, and not answered. */
static void requests_tell_locked(void)
{
	uint32_t cursor = 0;
	struct cm_id *id;

	while ((id = id_next_locked(&cursor))) {
		if (id->state != CM_REQUESTED || id->told || id->parked_event)
			continue;
		id->told = true;
		/* who does not hear that the request is here gives up in time */
		if (message_send_locked(id, CM_MSG_MRA))
			disconnect_lost_locked(id);
	}
}

static void listen_tell(struct sv_timer *timer)
{
	struct cm_id *id = (struct cm_id *)(void *)((char *)timer - offsetof(struct cm_id, timer));

	cm_lock();
	if (id->telling)
		requests_tell_locked();
	id->telling = false;
	cm_unlock();
}

static void queue_locked(struct cm_id *listener, struct cm_id *request)
{
	event_post_locked(request->parked_event);
	request->parked_event = NULL;
	listener->queued++;
	if (!listener->telling)
		engine_timer_arm(&listener->timer, clock_now() + TELL_TIME, listen_tell);
	listener->telling = true;
}

static bool address_is_sound(const struct sockaddr_in6 *addr)
{
	return addr->sin6_family == AF_INET || addr->sin6_family == AF_INET6;
}

static bool request_is_sound(const struct cm_message *message)
{
	return address_is_sound(&message->source) && address_is_sound(&message->target) &&
	       message->source.sin6_family == message->target.sin6_family && message->from &&
	       message->params.qpn <= 0xffffff && message->params.psn <= 0xffffff &&
	       message->params.retry_count <= 7 && message->params.rnr_retry_count <= 7;
}

void listen_request_locked(struct sv_peer *peer, const struct cm_message *message)
{
	struct cm_id *listener, *request;
	struct cm_ip ip;
	uint16_t port;

	if (!request_is_sound(message)) {
		sv_log_from(sv_source_process(peer->pid), LOG_WARN,
			    "rdma_cm: process %d: malformed connection request", (int)peer->pid);
		return;
	}
	ip_from_sockaddr(&ip, &port, (const struct sockaddr *)&message->target);
	listener = port_listener_locked(message->space, port, &ip);
	if (!listener) {
		message_reject_locked(peer, 0, message->from, CM_NO_LISTENER);
		return;
	}
	request = listener->parked_count < CM_PARKED ? request_new_locked(listener, peer, message)
						     : NULL;
	if (!request) {
		message_reject_locked(peer, 0, message->from, CM_NO_RESOURCES);
	} else if (listener->queued < listener->backlog) {
		queue_locked(listener, request);
	} else {
		TAILQ_INSERT_TAIL(&listener->parked, request, parked_entry);
		listener->parked_count++;
	}
}

/* ---- it leaves the queue ---- */

static struct cm_id *unpark_first_locked(struct cm_id *listener)
{
	struct cm_id *request = TAILQ_FIRST(&listener->parked);

	if (request) {
		TAILQ_REMOVE(&listener->parked, request, parked_entry);
		listener->parked_count--;
	}
	return request;
}

void listen_fetched_locked(struct cm_event *event)
{
	struct cm_id *request = cm_id_of(event->event.id), *listener = event->owner, *next;

	request->listener = NULL;
	request->id.channel = listener->id.channel;
	request->id.context = listener->id.context;
	listener->queued--;
	next = unpark_first_locked(listener);
	if (next)
		queue_locked(listener, next);
}

bool listen_hand_over(struct cm_event *event)
{
	struct cm_id *request = cm_id_of(event->event.id);
	int error = id_own(request);

	if (!error)
		error = cm_device_bind(request);
	if (!error)
		return true;
	log_at(LOG_ERROR, "rdma_cm: a request is refused: %s", strerror(error));
	cm_lock();
	reject_send_locked(request, CM_NO_RESOURCES, NULL, 0);
	id_unnumber_locked(request);
	cm_unlock();
	id_free(request);
	return false;
}

void listen_drop_locked(struct cm_id *request, enum cm_reason reason)
{
	if (request->listener)
		request->listener->queued--;
	reject_send_locked(request, reason, NULL, 0);
	request_free_locked(request);
}

void listen_unpark_locked(struct cm_id *request)
{
	TAILQ_REMOVE(&request->listener->parked, request, parked_entry);
	request->listener->parked_count--;
	request_free_locked(request);
}

/* Requests that never reached the queue find nobody, as if they came now. */
void listen_stop_locked(struct cm_id *listener)
{
	struct cm_id *request;

	if (listener->telling) /* those that were fetched live on */
		requests_tell_locked();
	listener->telling = false;
	while ((request = unpark_first_locked(listener))) {
		reject_send_locked(request, CM_NO_LISTENER, NULL, 0);
		request_free_locked(request);
	}
}
