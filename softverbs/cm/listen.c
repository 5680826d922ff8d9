/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Listeners: requests become identifiers, wait for room in the queue, and are passed to the program that
 * fetches them. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "softverbs/cm/cm.h"
#include "softverbs/base/log_from.h"
#include "softverbs/base/settings.h"
#include "util/clock.h"
#include "util/log.h"

#define MRA_TIME \
	NSEC_PER_SEC /* after this time an unanswered request is reported to the active side */

int rdma_listen(struct rdma_cm_id *public, int backlog)
{
	struct sockaddr_in wildcard = { .sin_family = AF_INET };
	struct cm_id *id = cm_id_of(public);
	int error;

	if (!sv_cm_id_is_ours(id))
		return sv_cm_fail(ENODEV);
	if (sv_cm_id_state(id) == CM_IDLE && rdma_bind_addr(public, (struct sockaddr *)&wildcard))
		return -1;
	sv_cm_lock();
	error = id->state == CM_BOUND ? sv_cm_port_listen_locked(id) : EINVAL;
	if (!error) {
		id->backlog = backlog > 0 && backlog <= CM_BACKLOG ? (unsigned)backlog : CM_BACKLOG;
		id->state = CM_LISTENING;
	}
	sv_cm_unlock();
	return error ? sv_cm_fail(error) : 0;
}

/* ---- a request arrives ---- */

static uint8_t listen_lower(uint8_t a, uint8_t b)
{
	return a < b ? a : b;
}

static void request_fill(struct cm_id *request, struct sv_peer *peer,
			 const struct cm_message *message)
{
	struct rdma_addr *addr = &request->id.route.addr;

	sv_peer_hold(peer);
	request->peer = peer;
	request->remote = message->from;
	request->state = CM_REQUESTED;
	request->theirs = message->params;
	/* defaults of an accept without parameters */
	request->local.responder_resources =
		listen_lower(message->params.initiator_depth, sv_cm_max_responder());
	request->local.initiator_depth =
		listen_lower(message->params.responder_resources, sv_cm_max_initiator());
	memcpy(&addr->src_storage, &message->target, sizeof(message->target));
	memcpy(&addr->dst_storage, &message->source, sizeof(message->source));
	sv_cm_route_fill(request);
	/* as in Linux: a request of a datagram id names the peer by IP only, which is a GID on Ethernet alone */
	if (id_is_datagram(request) && sv_lid())
		addr->addr.ibaddr.dgid = (union ibv_gid){ .raw = { 0 } };
}

static void request_free_locked(struct cm_id *request)
{
	sv_cm_id_unnumber_locked(request);
	free(request->parked_event);
	sv_cm_id_free(request);
}

static struct cm_id *request_new_locked(struct cm_id *listener, struct sv_peer *peer,
					const struct cm_message *message)
{
	struct cm_id *request = sv_cm_id_new(sv_cm_channel_of_id(listener), NULL, listener->id.ps);
	struct cm_event *event;

	if (!request)
		return NULL;
	event = sv_cm_event_new(listener, RDMA_CM_EVENT_CONNECT_REQUEST, 0);
	request->parked_event = event;
	if (!event || sv_cm_id_number_locked(request)) {
		request_free_locked(request);
		return NULL;
	}
	request_fill(request, peer, message);
	request->listener = listener;
	event->event.id = &request->id;
	event->event.listen_id = &listener->id;
	if (id_is_datagram(request))
		sv_cm_datagram_set_params(request, event, NULL, message->data, CM_SIDR_REQ_DATA);
	else
		sv_cm_event_set_params(event, &message->params, message->data, CM_REQ_DATA);
	return request;
}

/* Sends an MRA for each request that is queued or fetched and not answered. */
static void requests_send_mra_locked(void)
{
	uint32_t cursor = 0;
	struct cm_id *id;

	while ((id = sv_cm_id_next_locked(&cursor))) {
		if (id->state != CM_REQUESTED || id->notified || id->parked_event)
			continue;
		id->notified = true;
		/* without the MRA the active side ends the attempt at its timeout */
		if (sv_cm_message_send_locked(id, CM_MSG_MRA))
			sv_cm_disconnect_lost_locked(id);
	}
}

static void listen_send_mra(struct sv_timer *timer)
{
	struct cm_id *id = (struct cm_id *)(void *)((char *)timer - offsetof(struct cm_id, timer));

	sv_cm_lock();
	if (id->mra_armed)
		requests_send_mra_locked();
	id->mra_armed = false;
	sv_cm_unlock();
}

static void listen_queue_locked(struct cm_id *listener, struct cm_id *request)
{
	sv_cm_event_post_locked(request->parked_event);
	request->parked_event = NULL;
	listener->queued++;
	if (!listener->mra_armed)
		sv_engine_timer_arm(&listener->timer, clock_now() + MRA_TIME, listen_send_mra);
	listener->mra_armed = true;
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

void sv_cm_listen_request_locked(struct sv_peer *peer, const struct cm_message *message)
{
	struct cm_id *listener, *request;
	struct sv_ip ip;
	uint16_t port;

	if (!request_is_sound(message)) {
		sv_log_from(sv_source_process(peer->pid), LOG_WARN,
			    "rdma_cm: process %d: malformed connection request", (int)peer->pid);
		return;
	}
	sv_ip_from_sockaddr(&ip, &port, (const struct sockaddr *)&message->target);
	listener = sv_cm_port_listener_locked(message->space, port, &ip);
	if (!listener) {
		sv_cm_message_reject_locked(peer, 0, message->from, CM_NO_LISTENER);
		return;
	}
	request = listener->parked_count < CM_PARKED ? request_new_locked(listener, peer, message)
						     : NULL;
	if (!request) {
		sv_cm_message_reject_locked(peer, 0, message->from, CM_NO_RESOURCES);
	} else if (listener->queued < listener->backlog) {
		listen_queue_locked(listener, request);
	} else {
		TAILQ_INSERT_TAIL(&listener->parked, request, parked_entry);
		listener->parked_count++;
	}
}

/* ---- a request leaves the queue ---- */

static struct cm_id *unpark_first_locked(struct cm_id *listener)
{
	struct cm_id *request = TAILQ_FIRST(&listener->parked);

	if (request) {
		TAILQ_REMOVE(&listener->parked, request, parked_entry);
		listener->parked_count--;
	}
	return request;
}

void sv_cm_listen_fetched_locked(struct cm_event *event)
{
	struct cm_id *request = cm_id_of(event->event.id), *listener = event->owner, *next;

	request->listener = NULL;
	request->id.channel = listener->id.channel;
	request->id.context = listener->id.context;
	listener->queued--;
	next = unpark_first_locked(listener);
	if (next)
		listen_queue_locked(listener, next);
}

bool sv_cm_listen_hand_over(struct cm_event *event)
{
	struct cm_id *request = cm_id_of(event->event.id);
	int error = sv_cm_id_own(request);

	if (!error)
		error = sv_cm_device_bind(request);
	if (!error)
		return true;
	log_at(LOG_ERROR, "rdma_cm: a request is refused: %s", strerror(error));
	sv_cm_lock();
	sv_cm_reject_send_locked(request, CM_NO_RESOURCES, NULL, 0);
	sv_cm_id_unnumber_locked(request);
	sv_cm_unlock();
	sv_cm_id_free(request);
	return false;
}

void sv_cm_listen_drop_locked(struct cm_id *request, enum cm_reason reason)
{
	if (request->listener)
		request->listener->queued--;
	sv_cm_reject_send_locked(request, reason, NULL, 0);
	request_free_locked(request);
}

void sv_cm_listen_unpark_locked(struct cm_id *request)
{
	TAILQ_REMOVE(&request->listener->parked, request, parked_entry);
	request->listener->parked_count--;
	request_free_locked(request);
}

/* Requests that wait for room are rejected as if they arrived after the listener. */
void sv_cm_listen_stop_locked(struct cm_id *listener)
{
	struct cm_id *request;

	if (listener->mra_armed) /* fetched requests remain */
		requests_send_mra_locked();
	listener->mra_armed = false;
	while ((request = unpark_first_locked(listener))) {
		sv_cm_reject_send_locked(request, CM_NO_LISTENER, NULL, 0);
		request_free_locked(request);
	}
}
