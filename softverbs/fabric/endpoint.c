/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* The endpoint of a process: messages of the data path, and their progress. */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include "softverbs/base/log_from.h"
#include "softverbs/base/settings.h"
#include "softverbs/fabric/data.h"
#include "softverbs/fabric/endpoint_out.h"
#include "softverbs/fabric/frames.h"
#include "softverbs/fabric/progress.h"
#include "softverbs/fabric/transport.h"
#include "util/clock.h"
#include "util/log.h"

#define LONGEST	    (WIRE_TOKEN + WIRE_HEADER + WIRE_FRAME_MAX)
#define DRAIN_READS 64u
#define FLUSH_TIME  (500 * NSEC_PER_MSEC)

static struct {
	const struct sv_endpoint_calls *calls;
	struct sv_endpoint *open; /* NULL: none; constant while there are links */
	struct sv_endpoint_name name;
	unsigned generation; /* counts the endpoints of a process */
	struct fabric_source source;
	unsigned peers; /* this and the next inside the fabric's lock */
	uint64_t dropped;
} endpoint;

static _Thread_local bool opening;

bool sv_fabric_is_opening(void)
{
	return opening;
}

const struct sv_endpoint_name *sv_fabric_endpoint_name(void)
{
	return &endpoint.name;
}

bool sv_fabric_endpoint_is_open(void)
{
	return endpoint.open;
}

uint64_t sv_fabric_endpoint_dropped(void)
{
	uint64_t dropped;

	sv_fabric_lock();
	dropped = endpoint.dropped;
	sv_fabric_unlock();
	return dropped;
}

/* ---- input ---- */

static void drop_locked(void)
{
	endpoint.dropped++;
	sv_log_from(sv_source_user(0), LOG_WARN,
		    "softverbs: a message without a token of a link is dropped: %" PRIu64
		    " until now",
		    endpoint.dropped);
}

static void message_arrived(const uint8_t *bytes, size_t size)
{
	struct fabric_peer *peer = NULL;
	const uint8_t *at = bytes;

	sv_fabric_lock();
	if (size > WIRE_TOKEN)
		peer = sv_fabric_link_peer_locked(wire_get(&at, WIRE_TOKEN));
	if (peer)
		sv_peer_hold(&peer->peer);
	else
		drop_locked();
	sv_fabric_unlock();
	if (!peer)
		return;
	if (!sv_fabric_order_read(peer, at, size - WIRE_TOKEN)) {
		sv_fabric_lock();
		sv_fabric_link_break_locked(peer, "a message is malformed", EPROTO);
		sv_fabric_unlock();
	}
	sv_peer_put(&peer->peer);
}

/* ---- progress ---- */

static unsigned read_some(void)
{
	unsigned count = endpoint.calls->read(endpoint.open);

	sv_fabric_stuck_send();
	return count;
}

static bool may_wait(void)
{
	return endpoint.calls->may_wait(endpoint.open);
}

static bool is_paced(void)
{
	bool paced;

	sv_fabric_lock();
	paced = sv_fabric_any_stuck_locked() || (!sv_fabric_progress_is_woken() && endpoint.peers);
	sv_fabric_unlock();
	return paced;
}

uint32_t sv_fabric_endpoint_drain(const struct fabric_peer *peer)
{
	uint32_t next;

	sv_fabric_reading_lock();
	for (unsigned i = 0; i < DRAIN_READS && read_some(); i++)
		continue;
	sv_far_dues_send(false);
	next = peer->order.next;
	sv_fabric_reading_unlock();
	return next;
}

static bool is_idle(void)
{
	bool idle;

	sv_fabric_lock();
	idle = sv_fabric_outs_are_idle_locked();
	sv_fabric_unlock();
	return idle;
}

void sv_fabric_endpoint_flush(void)
{
	uint64_t end = clock_now() + FLUSH_TIME;

	while (endpoint.open && !is_idle() && clock_now() < end)
		if (!read_some())
			poll(NULL, 0, 1);
}

/* ---- peers ---- */

int sv_fabric_endpoint_peer_add_locked(struct fabric_peer *peer, const struct wire_end *end,
				       const struct sv_ip *host)
{
	int error;

	peer->token = end->token;
	if (!endpoint.open)
		return 0;
	error = endpoint.calls->peer_add(endpoint.open, &end->name, host->addr.s6_addr,
					 &peer->remote);
	if (error)
		return error;
	peer->generation = endpoint.generation;
	if (!endpoint.peers++) /* from here on it is paced, where nothing wakes the engine */
		sv_fabric_progress_now();
	return 0;
}

void sv_fabric_endpoint_peer_opened_locked(struct fabric_peer *peer)
{
	if (peer->opened || !peer->link)
		return;
	peer->opened = true;
	sv_fabric_waiting_send_locked(peer);
	if (peer->stuck)
		sv_fabric_progress_soon();
}

static bool leads(const struct sv_peer *self, const struct sv_peer *peer)
{
	return self->nonce[0] != peer->nonce[0] ? self->nonce[0] < peer->nonce[0]
						: self->nonce[1] < peer->nonce[1];
}

/* Some providers connect before the first message, and lose what two that connect to each other at once send. So one of
 * the two begins, and the other one waits for its first message. */
void sv_fabric_endpoint_peer_known_locked(struct fabric_peer *peer)
{
	struct fabric_out *out;

	if (!endpoint.open || peer->opened || !leads(sv_peer_self(), &peer->peer))
		return;
	out = sv_fabric_out_new(WIRE_OPEN, 0);
	if (!out) {
		sv_fabric_link_break_locked(peer, "no first message", ENOMEM);
		return;
	}
	peer->backlog.queued += out->size;
	STAILQ_INSERT_HEAD(&peer->waiting, out, entry);
	sv_fabric_endpoint_peer_opened_locked(peer);
}

void sv_fabric_endpoint_peer_leave_locked(struct fabric_peer *peer)
{
	sv_fabric_waiting_drop_locked(peer);
	if (peer->generation)
		endpoint.peers--;
}

void sv_fabric_endpoint_peer_free(struct fabric_peer *peer)
{
	sv_fabric_order_close(&peer->order);
	sv_fabric_lock();
	if (endpoint.open && peer->generation == endpoint.generation)
		endpoint.calls->peer_remove(endpoint.open, peer->remote);
	sv_fabric_unlock();
}

/* ---- open and close ---- */

static int provider_open(const char *wish)
{
	static const struct sv_endpoint_events events = { message_arrived, sv_fabric_message_sent };
	int error;

	opening = true;
	error = endpoint.calls->open(wish, sv_setting_text(SV_SET_FABRIC_ADDRESS), LONGEST, &events,
				     &endpoint.open, &endpoint.name);
	opening = false;
	if (error == ENODATA)
		log_at(LOG_ERROR,
		       "softverbs: no fabric: SOFTVERBS_FABRIC=%s: libfabric has no such provider "
		       "here, see fi_info -p %s -t FI_EP_RDM; \"link\" needs none",
		       wish, wish);
	else if (error)
		log_at(LOG_ERROR, "softverbs: no fabric: SOFTVERBS_FABRIC=%s: %s", wish,
		       strerror(error));
	return error;
}

int sv_fabric_endpoint_open(const char *wish)
{
	int error;

	endpoint.name = (struct sv_endpoint_name){ .kind = WIRE_KIND_LINK };
	if (!strcmp(wish, WIRE_KIND_LINK))
		return 0;
	endpoint.calls = sv_endpoint_calls();
	if (!endpoint.calls) {
		log_at(LOG_ERROR,
		       "softverbs: SOFTVERBS_FABRIC=%s needs libfabric (in Debian libfabric1) and "
		       "a softverbs that was built with it; \"link\" needs neither",
		       wish);
		return ENOSYS;
	}
	error = provider_open(wish);
	if (error)
		return error;
	endpoint.generation++;
	sv_fabric_outs_open(endpoint.calls, endpoint.open, sv_fabric_progress_soon);
	endpoint.source = (struct fabric_source){ .fd = endpoint.calls->wait_fd(endpoint.open),
						  .read = read_some,
						  .read_over = sv_far_dues_send,
						  .may_wait = may_wait,
						  .is_paced = is_paced };
	error = sv_fabric_progress_open(&endpoint.source);
	if (error) {
		sv_fabric_endpoint_close();
		return error;
	}
	log_at(LOG_NOTE, "softverbs: the fabric is %s", endpoint.name.kind);
	return 0;
}

void sv_fabric_endpoint_close(void)
{
	struct sv_endpoint *open = endpoint.open;

	if (!open)
		return;
	sv_fabric_progress_close();
	endpoint.open = NULL;
	endpoint.calls->close(open);
}

/* The parent's endpoint stays as it is: no call of libfabric is made for it here. */
void sv_fabric_endpoint_fork_child(void)
{
	endpoint.open = NULL;
	sv_fabric_outs_forget();
	endpoint.peers = 0;
}
