/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* The active side: looks the listener up, gets a link to its process, sends the request, handles the answer. */
#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include "softverbs/cm/cm.h"
#include "softverbs/link/name.h"
#include "util/clock.h"
#include "util/log.h"

#define RETRY_TIME (10 * NSEC_PER_MSEC) /* between two lookups */

static void connect_expire(struct sv_timer *timer);

/* ---- parameters ---- */

/* Reads several numbers per system call and keeps the rest for later calls. */
static uint32_t random_psn_locked(void)
{
	static uint32_t psns[32];
	static unsigned left;

	if (!left) {
		if (getrandom(psns, sizeof(psns), GRND_NONBLOCK) != sizeof(psns))
			return (uint32_t)clock_now() & 0xffffff;
		left = sizeof(psns) / sizeof(psns[0]);
	}
	return psns[--left] & 0xffffff;
}

static int depth_choose(uint8_t *depth, uint8_t wish, uint8_t limit)
{
	if (wish == RDMA_MAX_RESP_RES)
		return 0; /* the maximum, which is the default */
	if (wish > limit)
		return EINVAL;
	*depth = wish;
	return 0;
}

static uint8_t retries(uint8_t count)
{
	return count > 7 ? 7 : count;
}

/*
 * Fills id->local, whose depths hold the defaults: the device's limits, or what the request asks
 * for. 0 or EINVAL.
 */
int sv_cm_params_copy(struct cm_id *id, const struct rdma_conn_param *param)
{
	struct cm_params local = id->local;
	struct ibv_qp *qp = id->id.qp;

	if (!qp && !param)
		return EINVAL;
	local.retry_count = local.rnr_retry_count = 7;
	if (param) {
		if (depth_choose(&local.responder_resources, param->responder_resources,
				 sv_cm_max_responder()) ||
		    depth_choose(&local.initiator_depth, param->initiator_depth,
				 sv_cm_max_initiator()))
			return EINVAL;
		local.flow_control = param->flow_control;
		local.retry_count = retries(param->retry_count);
		local.rnr_retry_count = retries(param->rnr_retry_count);
	}
	local.qpn = qp ? qp->qp_num : param->qp_num & 0xffffff;
	local.srq = qp ? qp->srq != NULL : !!param->srq;
	local.psn = random_psn_locked();
	id->local = local;
	return 0;
}

/* ---- the attempt ---- */

static void connect_end_locked(struct cm_id *id)
{
	sv_engine_timer_disarm(&id->timer);
	sv_cm_lookup_stop_locked(id);
	id->wants_link = id->wants_far = false;
	free(id->request);
	id->request = NULL;
	id->state = CM_CLOSED;
}

void sv_cm_connect_refused_locked(struct cm_id *id, int error)
{
	static const uint8_t nothing[CM_REJ_DATA];
	struct cm_event *event;

	connect_end_locked(id);
	if (id_is_datagram(id)) {
		sv_cm_datagram_refused_locked(id,
					      error == ECONNREFUSED ? CM_SIDR_NO_SERVICE : -error,
					      NULL);
		return;
	}
	if (error != ECONNREFUSED) {
		sv_cm_event_post_new_locked(id, RDMA_CM_EVENT_UNREACHABLE, -error);
		return;
	}
	log_at(LOG_NOTE, "rdma_cm: id %p: no process of this user listens there%s", (void *)&id->id,
	       id->is_far		? ""
	       : sv_name_is_in_folder() ? " in this folder"
					: " in this network namespace");
	event = sv_cm_event_new_locked(id, RDMA_CM_EVENT_REJECTED, CM_NO_LISTENER);
	if (event)
		sv_cm_event_set_params(event, NULL, nothing, sizeof(nothing));
	sv_cm_event_post_locked(event);
}

void sv_cm_connect_retry_locked(struct cm_id *id)
{
	sv_engine_timer_arm(&id->timer, clock_now() + RETRY_TIME, connect_expire);
}

/* Takes over the caller's reference to `peer`. */
void sv_cm_connect_link_ready_locked(struct cm_id *id, struct sv_peer *peer)
{
	id->wants_link = false;
	/* another process has the slot now */
	if (memcmp(peer->nonce, id->nonce, sizeof(id->nonce))) {
		sv_peer_put(peer);
		sv_cm_connect_refused_locked(id, ECONNREFUSED);
		return;
	}
	id->peer = peer;
	sv_engine_timer_arm(&id->timer, id->deadline, connect_expire);
	if (sv_cm_message_send_data_locked(id, id->request))
		sv_cm_disconnect_lost_locked(id);
	free(id->request);
	id->request = NULL;
}

void sv_cm_connect_found_locked(struct cm_id *id, uint16_t slot, const uint64_t nonce[2])
{
	struct sv_peer *peer;

	id->slot = slot;
	memcpy(id->nonce, nonce, sizeof(id->nonce));
	peer = sv_peer_get(slot);
	if (peer)
		sv_cm_connect_link_ready_locked(id, peer);
	else if (errno == EAGAIN)
		id->wants_link = true;
	else
		sv_cm_connect_refused_locked(id, errno);
}

static int connect_lookup_locked(struct cm_id *id)
{
	struct sv_ip ip;
	uint16_t port;

	sv_ip_from_sockaddr(&ip, &port, &id->id.route.addr.dst_addr);
	if (id->is_far)
		return sv_cm_far_lookup_locked(id, id->id.ps, port, &ip);
	return sv_cm_lookup_start_locked(id, id->id.ps, port, &ip);
}

void sv_cm_connect_known_locked(struct cm_id *id, struct sv_peer *peer)
{
	id->peer = peer;
	id->known = true;
	if (sv_cm_message_send_data_locked(id, id->request))
		sv_cm_connect_mistaken_locked(id);
}

void sv_cm_connect_mistaken_locked(struct cm_id *id)
{
	struct sv_ip ip;
	uint16_t port;
	int error;

	id->known = false;
	sv_peer_put(id->peer);
	id->peer = NULL;
	sv_ip_from_sockaddr(&ip, &port, &id->id.route.addr.dst_addr);
	error = id->is_far ? sv_cm_far_ask_locked(id, id->id.ps, port, &ip)
			   : sv_cm_lookup_ask_locked(id, id->id.ps, port, &ip);
	if (error)
		sv_cm_connect_refused_locked(id, error);
}

void sv_cm_connect_answered_locked(struct cm_id *id)
{
	id->known = false;
	free(id->request);
	id->request = NULL;
}

static void connect_expire(struct sv_timer *timer)
{
	struct cm_id *id = (struct cm_id *)(void *)((char *)timer - offsetof(struct cm_id, timer));
	int error = 0;

	sv_cm_lock();
	if (id->state == CM_CONNECTING && !deadline_is_set(&timer->due)) {
		if (clock_now() >= id->deadline) {
			if (id->peer)
				sv_cm_message_reject_locked(id->peer, id->number, id->remote,
							    CM_GONE);
			error = ETIMEDOUT;
		} else if (!id->peer && !id->wants_link && !id->wants_far && !id->lookup) {
			sv_engine_timer_arm(timer, id->deadline, connect_expire);
			error = connect_lookup_locked(id);
		}
		if (error)
			sv_cm_connect_refused_locked(id, error);
	}
	sv_cm_unlock();
}

/* ---- the call ---- */

static struct cm_message *request_new(struct cm_id *id, const struct rdma_conn_param *param)
{
	const struct rdma_addr *addr = &id->id.route.addr;
	struct cm_message *request = calloc(1, sizeof(*request));

	if (!request)
		return NULL;
	request->kind = CM_MSG_REQ;
	request->space = id->id.ps;
	memcpy(&request->source, &addr->src_storage, sv_ip_sockaddr_size(&addr->src_addr));
	memcpy(&request->target, &addr->dst_storage, sv_ip_sockaddr_size(&addr->dst_addr));
	request->params = id->local;
	if (param && param->private_data && param->private_data_len)
		memcpy(request->data, param->private_data, param->private_data_len);
	return request;
}

static int connect_begin_locked(struct cm_id *id)
{
	int error = sv_cm_id_number_locked(id);

	if (error) {
		free(id->request);
		id->request = NULL;
		return error;
	}
	id->state = CM_CONNECTING;
	id->active = true;
	id->deadline = clock_now() + CM_CONNECT_TIME;
	sv_engine_timer_arm(&id->timer, id->deadline, connect_expire);
	error = connect_lookup_locked(id);
	if (error == ECONNREFUSED) {
		sv_cm_connect_refused_locked(id, error);
		return 0;
	}
	if (error) {
		connect_end_locked(id);
		sv_cm_id_unnumber_locked(id);
		id->state = CM_ROUTE_RESOLVED;
	}
	return error;
}

int rdma_connect(struct rdma_cm_id *public, struct rdma_conn_param *param)
{
	struct cm_id *id = cm_id_of(public);
	int error = 0;

	if (!sv_cm_id_is_ours(id))
		return sv_cm_fail(ENODEV);
	if (param && param->private_data_len > sv_cm_request_room(id))
		return sv_cm_fail(EINVAL);
	sv_cm_lock();
	if (id->state == CM_ROUTE_RESOLVED) {
		id->local.responder_resources = sv_cm_max_responder();
		id->local.initiator_depth = sv_cm_max_initiator();
		error = sv_cm_params_copy(id, param);
	} else {
		error = EINVAL;
	}
	if (!error && !(id->request = request_new(id, param)))
		error = ENOMEM;
	if (!error)
		error = connect_begin_locked(id);
	sv_cm_unlock();
	if (error)
		return sv_cm_fail(error);
	return sv_cm_sync_finish(id);
}

/* ---- the answer ---- */

static uint8_t connect_lower(uint8_t a, uint8_t b)
{
	return a < b ? a : b;
}

void sv_cm_connect_reply_locked(struct cm_id *id, const struct cm_message *reply)
{
	struct cm_event *event;

	if (id->state != CM_CONNECTING || !id->peer)
		return;
	sv_cm_connect_answered_locked(id);
	if (id_is_datagram(id)) {
		sv_cm_datagram_resolved_locked(id, reply);
		return;
	}
	sv_engine_timer_disarm(&id->timer);
	id->remote = reply->from;
	id->theirs = reply->params;
	id->local.responder_resources =
		connect_lower(reply->params.initiator_depth, sv_cm_max_responder());
	id->local.initiator_depth =
		connect_lower(reply->params.responder_resources, sv_cm_max_initiator());
	id->state = CM_ANSWERED;
	event = sv_cm_event_new_locked(id, RDMA_CM_EVENT_CONNECT_RESPONSE, 0);
	if (event)
		sv_cm_event_set_params(event, &id->theirs, reply->data, CM_REP_DATA);
	sv_cm_event_post_locked(event);
}

/* True if the connection is established, even if only until the next event: the peer may have disconnected
 * already. */
static bool establish_locked(struct cm_id *id)
{
	if (id->state == CM_ANSWERED) {
		id->state = CM_ESTABLISHED;
		if (sv_cm_message_send_locked(id, CM_MSG_RTU))
			sv_cm_disconnect_lost_locked(id);
		return true;
	}
	return id->state == CM_DISCONNECTED;
}

static void connect_failed(struct cm_event *event, int error)
{
	struct cm_id *id = event->owner;

	sv_cm_qp_error(id);
	sv_cm_lock();
	sv_cm_reject_send_locked(id, CM_CONSUMER, NULL, 0);
	sv_cm_unlock();
	memset(&event->event.param, 0, sizeof(event->event.param));
	event->event.event = RDMA_CM_EVENT_CONNECT_ERROR;
	event->event.status = -error;
}

bool sv_cm_connect_finish(struct cm_event *event)
{
	struct cm_id *id = event->owner;
	bool is_up;
	int error;

	sv_cm_lock();
	is_up = id->state == CM_ANSWERED || id->state == CM_DISCONNECTED;
	sv_cm_unlock();
	if (!is_up || !id->id.qp)
		return is_up;
	error = sv_cm_qp_connect(id);
	if (error) {
		connect_failed(event, error);
		return true;
	}
	sv_cm_lock();
	is_up = establish_locked(id);
	sv_cm_unlock();
	event->event.event = RDMA_CM_EVENT_ESTABLISHED;
	return is_up;
}

int rdma_establish(struct rdma_cm_id *public)
{
	struct cm_id *id = cm_id_of(public);
	bool is_up;

	if (!sv_cm_id_is_ours(id))
		return sv_cm_fail(ENODEV);
	if (public->qp)
		return sv_cm_fail(EINVAL);
	sv_cm_lock();
	is_up = id->active && establish_locked(id);
	sv_cm_unlock();
	return is_up ? 0 : sv_cm_fail(EINVAL);
}
