/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * Ends of connections: disconnected by either side, rejected, abandoned with the identifier, or
 * lost with the process.
 */
#include <errno.h>
#include <string.h>
#include "softverbs/cm.h"
#include "util/clock.h"
#include "util/log.h"

/* ---- time wait ---- */

static void linger_over(struct sv_timer *timer)
{
	struct cm_id *id = (struct cm_id *)(void *)((char *)timer - offsetof(struct cm_id, timer));

	cm_lock();
	/* the number goes with the destruction, and an abandoned identifier gets no more events */
	if (id->state == CM_CLOSED && id->number)
		event_post_new_locked(id, RDMA_CM_EVENT_TIMEWAIT_EXIT, 0);
	cm_unlock();
}

static void close_locked(struct cm_id *id)
{
	id->state = CM_CLOSED;
	engine_timer_arm(&id->timer, clock_now() + CM_LINGER_TIME, linger_over);
}

/* ---- from this side ---- */

static void disconnect_locked(struct cm_id *id)
{
	switch (id->state) {
	case CM_ACCEPTED:
	case CM_ESTABLISHED:
		id->state = CM_DISCONNECTING;
		if (message_send_locked(id, CM_MSG_DREQ))
			disconnect_lost_locked(id);
		break;
	case CM_ANSWERED: /* never established, so there is nothing to disconnect */
		reject_send_locked(id, CM_CONSUMER, NULL, 0);
		break;
	case CM_DISCONNECTED: close_locked(id); break;
	/* before the answer it has no effect, after the end it is repeated */
	default: break;
	}
}

int rdma_disconnect(struct rdma_cm_id *public)
{
	struct cm_id *id = cm_id_of(public);
	bool waits;
	int error;

	if (!id_is_ours(id))
		return cm_fail(ENODEV);
	if (id_is_datagram(id) || id_state(id) < CM_CONNECTING)
		return cm_fail(EINVAL);
	error = qp_error(id);
	if (error)
		return cm_fail(error);
	cm_lock();
	waits = id->state == CM_ACCEPTED || id->state == CM_ESTABLISHED ||
		id->state == CM_DISCONNECTED;
	disconnect_locked(id);
	cm_unlock();
	return waits ? sync_finish(id) : 0;
}

void abandon_locked(struct cm_id *id)
{
	switch (id->state) {
	case CM_LISTENING: listen_stop_locked(id); break;
	case CM_CONNECTING:
		if (id->peer)
			message_reject_locked(id->peer, id->number, id->remote, CM_GONE);
		lookup_stop_locked(id);
		break;
	case CM_REQUESTED:
	case CM_ANSWERED: reject_send_locked(id, CM_CONSUMER, NULL, 0); break;
	case CM_ACCEPTED:
	case CM_ESTABLISHED: disconnect_locked(id); break;
	default: break;
	}
	port_release_locked(id);
	engine_timer_disarm(&id->timer);
	id_unnumber_locked(id);
	id->wants_link = false;
	id->state = CM_CLOSED;
}

/* ---- from the other side ---- */

/* Acknowledged before the program knows: the other side need not wait for it. */
void disconnect_request_locked(struct cm_id *id)
{
	if (message_send_locked(id, CM_MSG_DREP))
		log_at(LOG_TRACE, "rdma_cm: id %p: nobody waits for the DREP", (void *)&id->id);
	switch (id->state) {
	case CM_ANSWERED:
	case CM_ACCEPTED:
	case CM_ESTABLISHED:
		id->state = CM_DISCONNECTED;
		event_post_new_locked(id, RDMA_CM_EVENT_DISCONNECTED, 0);
		break;
	case CM_DISCONNECTING: /* both at once */ disconnect_reply_locked(id); break;
	default: break;
	}
}

void disconnect_reply_locked(struct cm_id *id)
{
	if (id->state != CM_DISCONNECTING)
		return;
	event_post_new_locked(id, RDMA_CM_EVENT_DISCONNECTED, 0);
	close_locked(id);
}

static int sidr_status(int reason)
{
	return reason == CM_NO_LISTENER ? CM_SIDR_NO_SERVICE
	       : reason == CM_CONSUMER	? CM_SIDR_REJECTED
					: CM_SIDR_NO_QP;
}

static void rejected_post_locked(struct cm_id *id, int reason, const uint8_t *data)
{
	struct cm_event *event;

	engine_timer_disarm(&id->timer);
	id->state = CM_CLOSED;
	if (id_is_datagram(id)) {
		datagram_refused_locked(id, sidr_status(reason), data);
		return;
	}
	event = event_new_locked(id, RDMA_CM_EVENT_REJECTED, reason);
	if (event)
		event_set_params(event, NULL, data, CM_REJ_DATA);
	event_post_locked(event);
}

void rejected_locked(struct cm_id *id, const struct cm_message *reject)
{
	int reason = reject->reason && reject->reason <= 32 ? (int)reject->reason : CM_CONSUMER;

	switch (id->state) {
	case CM_CONNECTING:
		if (id->known && reason == CM_NO_LISTENER) {
			connect_mistaken_locked(id);
			break;
		}
		/* fall through */
	case CM_ANSWERED:
	case CM_ACCEPTED: rejected_post_locked(id, reason, reject->data); break;
	case CM_REQUESTED: /* withdrawn: the program learns it when it answers */
		id->state = CM_CLOSED;
		if (id->parked_event)
			listen_unpark_locked(id);
		break;
	default: break;
	}
}

/* As if the other side had left in order, in the way that the state allows. */
void disconnect_lost_locked(struct cm_id *id)
{
	static const struct cm_message gone = { .reason = CM_CONSUMER };

	switch (id->state) {
	case CM_ESTABLISHED:
		id->state = CM_CLOSED;
		event_post_new_locked(id, RDMA_CM_EVENT_DISCONNECTED, 0);
		break;
	case CM_DISCONNECTING: disconnect_reply_locked(id); break;
	case CM_DISCONNECTED: break;
	case CM_CONNECTING:
		if (id->known) { /* perhaps somebody else listens there by now */
			connect_mistaken_locked(id);
			break;
		}
		if (id_is_datagram(id)) {
			connect_refused_locked(id, ETIMEDOUT);
			break;
		}
		/* fall through */
	default: rejected_locked(id, &gone); break;
	}
}
