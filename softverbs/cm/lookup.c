/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Finds the process that listens on a port: a query on the socket of the port's name, which the engine of the
 * listener's process answers with its slot. If a linked process listened there before, the next request is
 * sent to it at once; if it no longer listens, or ends before it answers, the query is made after all. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>
#include "softverbs/cm/cm.h"
#include "softverbs/base/identity.h"
#include "softverbs/link/port_name.h"
#include "util/log.h"

struct cm_lookup {
	struct engine_fd handler;
	struct engine_job job;
	struct cm_id *id;
};

void sv_cm_lookup_answer(int fd)
{
	const struct sv_peer *self = sv_peer_self();
	struct sv_port_answer answer = { .magic = SV_PORT_MAGIC,
					 .slot = self->slot,
					 .nonce = { self->nonce[0], self->nonce[1] } };
	struct ucred asker;
	int error = sv_identity_of_peer(fd, &asker);

	/* a new socket has room; a closed one needs no answer */
	if (!error && send(fd, &answer, sizeof(answer), MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
		error = errno;
	if (error)
		log_at(LOG_NOTE, "rdma_cm: a query for the owner of a port gets no reply: %s",
		       strerror(error));
	close(fd);
}

static void lookup_free(struct engine_job *job)
{
	free((char *)job - offsetof(struct cm_lookup, job));
}

void sv_cm_lookup_stop_locked(struct cm_id *id)
{
	struct cm_lookup *lookup = id->lookup;

	if (!lookup)
		return;
	id->lookup = NULL;
	sv_engine_fd_remove(&lookup->handler);
	sv_engine_defer(&lookup->job, lookup_free);
}

/* The nonce belongs to one process, so a new process in the same slot does not match. */
static struct sv_peer *known_peer_locked(uint32_t space, uint16_t number, const struct sv_ip *ip)
{
	const struct cm_known *known = sv_cm_known_find_locked(space, number, ip);
	struct sv_peer *peer = known ? sv_peer_linked(known->slot) : NULL;

	if (peer && !memcmp(peer->nonce, known->nonce, sizeof(known->nonce)))
		return peer;
	if (peer)
		sv_peer_put(peer);
	return NULL;
}

/* ---- queries ---- */

static void lookup_ready(struct engine_fd *handler, uint32_t events)
{
	struct cm_lookup *lookup =
		(struct cm_lookup *)(void *)((char *)handler - offsetof(struct cm_lookup, handler));
	struct cm_id *id = lookup->id;
	struct sv_port_answer answer;
	ssize_t got;

	(void)events;
	sv_cm_lock();
	if (handler->fd < 0) { /* stopped in the mean time */
		sv_cm_unlock();
		return;
	}
	got = recv(handler->fd, &answer, sizeof(answer), MSG_DONTWAIT | MSG_TRUNC);
	if (got < 0 && (errno == EAGAIN || errno == EINTR)) {
		sv_cm_unlock();
		return;
	}
	sv_cm_lookup_stop_locked(id);
	if (got == sizeof(answer) && answer.magic == SV_PORT_MAGIC && answer.slot < SV_PEERS) {
		sv_cm_known_keep_locked(id, (uint16_t)answer.slot, answer.nonce);
		sv_cm_connect_found_locked(id, (uint16_t)answer.slot, answer.nonce);
	} else {
		/* closed without an answer: the peer lacks a resource, or has ended */
		sv_cm_connect_retry_locked(id);
	}
	sv_cm_unlock();
}

static int lookup_handler_add_locked(struct cm_id *id, int fd)
{
	struct cm_lookup *lookup = calloc(1, sizeof(*lookup));

	if (!lookup) {
		close(fd);
		return ENOMEM;
	}
	lookup->id = id;
	lookup->handler.fd = -1;
	id->lookup = lookup;
	return sv_engine_fd_add(&lookup->handler, fd, EPOLLIN, lookup_ready);
}

int sv_cm_lookup_ask_locked(struct cm_id *id, uint32_t space, uint16_t number,
			    const struct sv_ip *ip)
{
	int fd;

	if (sv_cm_port_listener_locked(space, number, ip)) {
		sv_cm_connect_found_locked(id, sv_runtime_peer_id(), sv_peer_self()->nonce);
		return 0;
	}
	sv_cm_known_drop_locked(space, number);
	fd = sv_port_reach(space, number, ip);
	if (fd >= 0)
		return lookup_handler_add_locked(id, fd);
	if (errno != EAGAIN)
		return errno;
	sv_cm_connect_retry_locked(id);
	return 0;
}

int sv_cm_lookup_start_locked(struct cm_id *id, uint32_t space, uint16_t number,
			      const struct sv_ip *ip)
{
	struct sv_peer *peer = NULL;

	if (!sv_cm_port_listener_locked(space, number, ip))
		peer = known_peer_locked(space, number, ip);
	if (!peer)
		return sv_cm_lookup_ask_locked(id, space, number, ip);
	sv_cm_connect_known_locked(id, peer);
	return 0;
}
