/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Ends of connections: disconnected by either side, rejected, destroyed with the identifier, or lost with the
 * peer process. */
#include <errno.h>
#include <string.h>
#include "softverbs/cm/cm.h"
#include "softverbs/rc/arrival.h"
#include "util/clock.h"
#include "util/log.h"

#define REPORT_PAUSE NSEC_PER_MSEC

/* ---- the event ---- */

static void disconnected_post_locked(struct cm_id *id)
{
	id->unreported = false;
	sv_cm_event_post_new_locked(id, RDMA_CM_EVENT_DISCONNECTED, 0);
}

static void report_again(struct sv_timer *timer);

static void disconnected_report_locked(struct cm_id *id)
{
	uint64_t now = clock_now();

	if (now < id->deadline &&
	    (sv_arrivals_wait(id->local.qpn) || sv_answers_wait(id->local.qpn)))
		sv_engine_timer_arm(&id->timer, now + REPORT_PAUSE, report_again);
	else
		disconnected_post_locked(id);
}

static void report_again(struct sv_timer *timer)
{
	struct cm_id *id = (struct cm_id *)(void *)((char *)timer - offsetof(struct cm_id, timer));

	sv_cm_lock();
	if (id->unreported)
		disconnected_report_locked(id);
	sv_cm_unlock();
}

/*
 * The event waits a little for the program to poll the messages that came before it. A disconnect request over a wire is
 * milliseconds behind the last message, so programs destroy the QP when they see the event, and count on having all
 * messages by then. The same holds for answers from another host: its program sees what was written, disconnects, and its
 * request may overtake the answer, without which the write would fail here.
 */
static void disconnected_by_peer_locked(struct cm_id *id, enum cm_state state)
{
	id->state = state;
	id->unreported = true;
	id->deadline = clock_now() + (state == CM_DISCONNECTED && sv_answers_wait(id->local.qpn)
					      ? CM_ANSWER_TIME
					      : CM_REPORT_TIME);
	disconnected_report_locked(id);
}

/* ---- time wait ---- */

static void linger_over(struct sv_timer *timer)
{
	struct cm_id *id = (struct cm_id *)(void *)((char *)timer - offsetof(struct cm_id, timer));

	sv_cm_lock();
	/* a destroyed identifier has no number and gets no more events */
	if (id->state == CM_CLOSED && id->number)
		sv_cm_event_post_new_locked(id, RDMA_CM_EVENT_TIMEWAIT_EXIT, 0);
	sv_cm_unlock();
}

static void disconnect_close_locked(struct cm_id *id)
{
	id->state = CM_CLOSED;
	sv_engine_timer_arm(&id->timer, clock_now() + CM_LINGER_TIME, linger_over);
}

/* ---- from this side ---- */

static void disconnect_locked(struct cm_id *id)
{
	switch (id->state) {
	case CM_ACCEPTED:
	case CM_ESTABLISHED:
		id->state = CM_DISCONNECTING;
		if (sv_cm_message_send_locked(id, CM_MSG_DREQ))
			sv_cm_disconnect_lost_locked(id);
		break;
	case CM_ANSWERED: /* never established: reject instead of disconnect */
		sv_cm_reject_send_locked(id, CM_CONSUMER, NULL, 0);
		break;
	case CM_DISCONNECTED:
		if (id->unreported)
			disconnected_post_locked(id);
		disconnect_close_locked(id);
		break;
	/* no effect before the answer or after the end */
	default: break;
	}
}

int rdma_disconnect(struct rdma_cm_id *public)
{
	struct cm_id *id = cm_id_of(public);
	bool waits;
	int error;

	if (!sv_cm_id_is_ours(id))
		return sv_cm_fail(ENODEV);
	if (id_is_datagram(id) || sv_cm_id_state(id) < CM_CONNECTING)
		return sv_cm_fail(EINVAL);
	error = sv_cm_qp_error(id);
	if (error)
		return sv_cm_fail(error);
	sv_cm_lock();
	waits = id->state == CM_ACCEPTED || id->state == CM_ESTABLISHED ||
		id->state == CM_DISCONNECTED;
	disconnect_locked(id);
	sv_cm_unlock();
	return waits ? sv_cm_sync_finish(id) : 0;
}

void sv_cm_abandon_locked(struct cm_id *id)
{
	switch (id->state) {
	case CM_LISTENING: sv_cm_listen_stop_locked(id); break;
	case CM_CONNECTING:
		if (id->peer)
			sv_cm_message_reject_locked(id->peer, id->number, id->remote, CM_GONE);
		sv_cm_lookup_stop_locked(id);
		break;
	case CM_REQUESTED:
	case CM_ANSWERED: sv_cm_reject_send_locked(id, CM_CONSUMER, NULL, 0); break;
	case CM_ACCEPTED:
	case CM_ESTABLISHED: disconnect_locked(id); break;
	default: break;
	}
	sv_cm_port_release_locked(id);
	sv_engine_timer_disarm(&id->timer);
	sv_cm_id_unnumber_locked(id);
	id->wants_link = id->wants_far = id->unreported = false;
	id->state = CM_CLOSED;
}

/* ---- from the peer ---- */

/* Acknowledges at once: the peer need not wait until the program fetches the event. */
void sv_cm_disconnect_request_locked(struct cm_id *id)
{
	if (sv_cm_message_send_locked(id, CM_MSG_DREP))
		log_at(LOG_TRACE, "rdma_cm: id %p: no side waits for the DREP", (void *)&id->id);
	switch (id->state) {
	case CM_ANSWERED:
	case CM_ACCEPTED:
	case CM_ESTABLISHED: disconnected_by_peer_locked(id, CM_DISCONNECTED); break;
	case CM_DISCONNECTING: /* both sides at once */ sv_cm_disconnect_reply_locked(id); break;
	default: break;
	}
}

void sv_cm_disconnect_reply_locked(struct cm_id *id)
{
	if (id->state != CM_DISCONNECTING)
		return;
	sv_cm_event_post_new_locked(id, RDMA_CM_EVENT_DISCONNECTED, 0);
	disconnect_close_locked(id);
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

	sv_engine_timer_disarm(&id->timer);
	id->state = CM_CLOSED;
	if (id_is_datagram(id)) {
		sv_cm_datagram_refused_locked(id, sidr_status(reason), data);
		return;
	}
	event = sv_cm_event_new_locked(id, RDMA_CM_EVENT_REJECTED, reason);
	if (event)
		sv_cm_event_set_params(event, NULL, data, CM_REJ_DATA);
	sv_cm_event_post_locked(event);
}

void sv_cm_rejected_locked(struct cm_id *id, const struct cm_message *reject)
{
	int reason = reject->reason && reject->reason <= 32 ? (int)reject->reason : CM_CONSUMER;

	switch (id->state) {
	case CM_CONNECTING:
		if (id->known && reason == CM_NO_LISTENER) {
			sv_cm_connect_mistaken_locked(id);
			break;
		}
		/* fall through */
	case CM_ANSWERED:
	case CM_ACCEPTED: rejected_post_locked(id, reason, reject->data); break;
	case CM_REQUESTED: /* withdrawn: the program gets an error when it answers */
		id->state = CM_CLOSED;
		if (id->parked_event)
			sv_cm_listen_unpark_locked(id);
		break;
	default: break;
	}
}

/* Handles the loss of the peer like an orderly end, according to the state. */
void sv_cm_disconnect_lost_locked(struct cm_id *id)
{
	static const struct cm_message gone = { .reason = CM_CONSUMER };

	switch (id->state) {
	case CM_ESTABLISHED: disconnected_by_peer_locked(id, CM_CLOSED); break;
	case CM_DISCONNECTING: sv_cm_disconnect_reply_locked(id); break;
	case CM_DISCONNECTED: break;
	case CM_CONNECTING:
		if (id->known) { /* another process may listen there by now */
			sv_cm_connect_mistaken_locked(id);
			break;
		}
		if (id_is_datagram(id)) {
			sv_cm_connect_refused_locked(id, ETIMEDOUT);
			break;
		}
		/* fall through */
	default: sv_cm_rejected_locked(id, &gone); break;
	}
}
