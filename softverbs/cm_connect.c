/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * The active side: find the listener, get a link to its process, send the request, take the answer.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include "softverbs/cm.h"
#include "softverbs/name.h"
#include "util/clock.h"
#include "util/log.h"

#define RETRY_TIME (10 * NSEC_PER_MSEC) /* between two questions who listens */

static void connect_late(struct sv_timer *timer);

/* ---- parameters ---- */

/* Some for later ones by the same call. */
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

static int depth_take(uint8_t *depth, uint8_t wish, uint8_t limit)
{
	if (wish == RDMA_MAX_RESP_RES)
		return 0; /* as much as there is: what stands there already */
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
int params_take(struct cm_id *id, const struct rdma_conn_param *param)
{
	struct cm_params local = id->local;
	struct ibv_qp *qp = id->id.qp;

	if (!qp && !param)
		return EINVAL;
	local.retry_count = local.rnr_retry_count = 7;
	if (param) {
		if (depth_take(&local.responder_resources, param->responder_resources,
			       cm_max_responder()) ||
		    depth_take(&local.initiator_depth, param->initiator_depth, cm_max_initiator()))
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

/* ---- on the way ---- */

static void connect_end_locked(struct cm_id *id)
{
	engine_timer_disarm(&id->timer);
	lookup_stop_locked(id);
	id->wants_link = false;
	free(id->request);
	id->request = NULL;
	id->state = CM_CLOSED;
}

void connect_refused_locked(struct cm_id *id, int error)
{
	static const uint8_t nothing[CM_REJ_DATA];
	struct cm_event *event;

	connect_end_locked(id);
	if (id_is_datagram(id)) {
		datagram_refused_locked(id, error == ECONNREFUSED ? CM_SIDR_NO_SERVICE : -error,
					NULL);
		return;
	}
	if (error != ECONNREFUSED) {
		event_post_new_locked(id, RDMA_CM_EVENT_UNREACHABLE, -error);
		return;
	}
	log_at(LOG_NOTE, "rdma_cm: id %p: no process of this user listens there in this %s",
	       (void *)&id->id, name_is_in_folder() ? "folder" : "network namespace");
	event = event_new_locked(id, RDMA_CM_EVENT_REJECTED, CM_NO_LISTENER);
	if (event)
		event_set_params(event, NULL, nothing, sizeof(nothing));
	event_post_locked(event);
}

void connect_retry_locked(struct cm_id *id)
{
	engine_timer_arm(&id->timer, clock_now() + RETRY_TIME, connect_late);
}

/* `peer`: a reference that becomes the identifier's. */
void connect_link_ready_locked(struct cm_id *id, struct sv_peer *peer)
{
	id->wants_link = false;
	/* another process lives there by now */
	if (memcmp(peer->nonce, id->nonce, sizeof(id->nonce))) {
		peer_put(peer);
		connect_refused_locked(id, ECONNREFUSED);
		return;
	}
	id->peer = peer;
	engine_timer_arm(&id->timer, id->deadline, connect_late);
	if (message_send_data_locked(id, id->request))
		disconnect_lost_locked(id);
	free(id->request);
	id->request = NULL;
}

void connect_found_locked(struct cm_id *id, uint16_t slot, const uint64_t nonce[2])
{
	struct sv_peer *peer;

	id->slot = slot;
	memcpy(id->nonce, nonce, sizeof(id->nonce));
	peer = peer_get(slot);
	if (peer)
		connect_link_ready_locked(id, peer);
	else if (errno == EAGAIN)
		id->wants_link = true;
	else
		connect_refused_locked(id, errno);
}

static int connect_look_locked(struct cm_id *id)
{
	struct cm_ip ip;
	uint16_t port;

	ip_from_sockaddr(&ip, &port, &id->id.route.addr.dst_addr);
	return lookup_start_locked(id, id->id.ps, port, &ip);
}

void connect_known_locked(struct cm_id *id, struct sv_peer *peer)
{
	id->peer = peer;
	id->known = true;
	if (message_send_data_locked(id, id->request))
		connect_mistaken_locked(id);
}

void connect_mistaken_locked(struct cm_id *id)
{
	struct cm_ip ip;
	uint16_t port;
	int error;

	id->known = false;
	peer_put(id->peer);
	id->peer = NULL;
	ip_from_sockaddr(&ip, &port, &id->id.route.addr.dst_addr);
	error = lookup_ask_locked(id, id->id.ps, port, &ip);
	if (error)
		connect_refused_locked(id, error);
}

void connect_heard_locked(struct cm_id *id)
{
	id->known = false;
	free(id->request);
	id->request = NULL;
}

static void connect_late(struct sv_timer *timer)
{
	struct cm_id *id = (struct cm_id *)(void *)((char *)timer - offsetof(struct cm_id, timer));
	int error = 0;

	cm_lock();
	if (id->state == CM_CONNECTING && !timer->armed) {
		if (clock_now() >= id->deadline) {
			if (id->peer)
				message_reject_locked(id->peer, id->number, id->remote, CM_GONE);
			error = ETIMEDOUT;
		} else if (!id->peer && !id->wants_link && !id->lookup) {
			engine_timer_arm(timer, id->deadline, connect_late);
			error = connect_look_locked(id);
		}
		if (error)
			connect_refused_locked(id, error);
	}
	cm_unlock();
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
	memcpy(&request->source, &addr->src_storage, ip_sockaddr_size(&addr->src_addr));
	memcpy(&request->target, &addr->dst_storage, ip_sockaddr_size(&addr->dst_addr));
	request->params = id->local;
	if (param && param->private_data && param->private_data_len)
		memcpy(request->data, param->private_data, param->private_data_len);
	return request;
}

static int connect_begin_locked(struct cm_id *id)
{
	int error = id_number_locked(id);

	if (error) {
		free(id->request);
		id->request = NULL;
		return error;
	}
	id->state = CM_CONNECTING;
	id->active = true;
	id->deadline = clock_now() + CM_CONNECT_TIME;
	engine_timer_arm(&id->timer, id->deadline, connect_late);
	error = connect_look_locked(id);
	if (error == ECONNREFUSED) {
		connect_refused_locked(id, error);
		return 0;
	}
	if (error) {
		connect_end_locked(id);
		id_unnumber_locked(id);
		id->state = CM_ROUTE_RESOLVED;
	}
	return error;
}

int rdma_connect(struct rdma_cm_id *public, struct rdma_conn_param *param)
{
	struct cm_id *id = cm_id_of(public);
	int error = 0;

	if (!id_is_ours(id))
		return cm_fail(ENODEV);
	if (param && param->private_data_len > request_room(id))
		return cm_fail(EINVAL);
	cm_lock();
	if (id->state == CM_ROUTE_RESOLVED) {
		id->local.responder_resources = cm_max_responder();
		id->local.initiator_depth = cm_max_initiator();
		error = params_take(id, param);
	} else {
		error = EINVAL;
	}
	if (!error && !(id->request = request_new(id, param)))
		error = ENOMEM;
	if (!error)
		error = connect_begin_locked(id);
	cm_unlock();
	if (error)
		return cm_fail(error);
	return sync_finish(id);
}

/* ---- the answer ---- */

static uint8_t lower(uint8_t a, uint8_t b)
{
	return a < b ? a : b;
}

void connect_reply_locked(struct cm_id *id, const struct cm_message *reply)
{
	struct cm_event *event;

	if (id->state != CM_CONNECTING || !id->peer)
		return;
	connect_heard_locked(id);
	if (id_is_datagram(id)) {
		datagram_resolved_locked(id, reply);
		return;
	}
	engine_timer_disarm(&id->timer);
	id->remote = reply->from;
	id->theirs = reply->params;
	id->local.responder_resources = lower(reply->params.initiator_depth, cm_max_responder());
	id->local.initiator_depth = lower(reply->params.responder_resources, cm_max_initiator());
	id->state = CM_ANSWERED;
	event = event_new_locked(id, RDMA_CM_EVENT_CONNECT_RESPONSE, 0);
	if (event)
		event_set_params(event, &id->theirs, reply->data, CM_REP_DATA);
	event_post_locked(event);
}

/*
 * True when the connection stands, if only until the next event: the other side may have left
 * already.
 */
static bool establish_locked(struct cm_id *id)
{
	if (id->state == CM_ANSWERED) {
		id->state = CM_ESTABLISHED;
		if (message_send_locked(id, CM_MSG_RTU))
			disconnect_lost_locked(id);
		return true;
	}
	return id->state == CM_DISCONNECTED;
}

static void connect_failed(struct cm_event *event, int error)
{
	struct cm_id *id = event->owner;

	qp_error(id);
	cm_lock();
	reject_send_locked(id, CM_CONSUMER, NULL, 0);
	cm_unlock();
	memset(&event->event.param, 0, sizeof(event->event.param));
	event->event.event = RDMA_CM_EVENT_CONNECT_ERROR;
	event->event.status = -error;
}

bool connect_finish(struct cm_event *event)
{
	struct cm_id *id = event->owner;
	bool stands;
	int error;

	cm_lock();
	stands = id->state == CM_ANSWERED || id->state == CM_DISCONNECTED;
	cm_unlock();
	if (!stands || !id->id.qp)
		return stands;
	error = qp_connect(id);
	if (error) {
		connect_failed(event, error);
		return true;
	}
	cm_lock();
	stands = establish_locked(id);
	cm_unlock();
	event->event.event = RDMA_CM_EVENT_ESTABLISHED;
	return stands;
}

int rdma_establish(struct rdma_cm_id *public)
{
	struct cm_id *id = cm_id_of(public);
	bool stands;

	if (!id_is_ours(id))
		return cm_fail(ENODEV);
	if (public->qp)
		return cm_fail(EINVAL);
	cm_lock();
	stands = id->active && establish_locked(id);
	cm_unlock();
	return stands ? 0 : cm_fail(EINVAL);
}
