/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* The active side when the target is on another host: a search in the place of a lookup. */
#include <errno.h>
#include <string.h>
#include "softverbs/cm/cm.h"
#include "softverbs/fabric/fabric.h"
#include "util/log.h"

bool sv_cm_far_reaches(const struct sockaddr *target)
{
	return sv_fabric_is_on() && !sv_ip_is_multicast(target);
}

/* Over the link, the search ends at a process of the other host, or at the errno that prevents it. */
static void port_found(uint32_t number, struct sv_peer *peer, int error)
{
	struct cm_id *id;

	sv_cm_lock();
	id = sv_cm_id_by_number_locked(number);
	if (!id || !id->wants_far || id->state != CM_CONNECTING) {
		if (peer)
			sv_peer_put(peer);
	} else {
		id->wants_far = false;
		if (peer) {
			memcpy(id->nonce, peer->nonce, sizeof(id->nonce));
			sv_cm_known_keep_locked(id, peer->slot, peer->nonce);
			sv_cm_connect_link_ready_locked(id, peer);
		} else if (error == EBUSY || error == EAGAIN || error == ECONNRESET) {
			/* the process that accepted lacks a resource, or has ended */
			sv_cm_connect_retry_locked(id);
		} else {
			log_at(LOG_NOTE, "rdma_cm: id %p: the other host: %s", (void *)&id->id,
			       strerror(error));
			/* no process there at all: none that listens */
			sv_cm_connect_refused_locked(id, error == ENOENT ? ECONNREFUSED : error);
		}
	}
	sv_cm_unlock();
}

int sv_cm_far_ask_locked(struct cm_id *id, uint32_t space, uint16_t number, const struct sv_ip *ip)
{
	int error;

	sv_cm_known_drop_locked(space, number);
	error = sv_fabric_find_port(ip, space, number, id->number, port_found);
	id->wants_far = !error;
	return error;
}

int sv_cm_far_lookup_locked(struct cm_id *id, uint32_t space, uint16_t number,
			    const struct sv_ip *ip)
{
	const struct cm_known *known = sv_cm_known_find_locked(space, number, ip);
	struct sv_peer *peer = known ? sv_fabric_peer_linked(known->nonce, ip) : NULL;

	if (!peer)
		return sv_cm_far_ask_locked(id, space, number, ip);
	sv_cm_connect_known_locked(id, peer);
	return 0;
}
