/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * Who listens on a port: asked on the socket of the port's name, answered with a slot by the engine
 * that owns it. A linked process that listened there before is sent the next request at once; if
 * it does not listen there any more, or ends before it answers, the question is asked after all.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>
#include "softverbs/cm.h"
#include "softverbs/identity.h"
#include "softverbs/name.h"
#include "util/log.h"

#define ANSWER_MAGIC 0x73766c31u

struct answer {
	uint32_t magic, slot;
	uint64_t nonce[2];
};

#define KNOWN 64

static struct known { /* the cm lock; by space and number */
	struct cm_ip ip;
	uint32_t space;
	uint16_t number, slot;
	uint64_t nonce[2]; /* zeros: nothing is known */
} known[KNOWN];

struct cm_lookup {
	struct engine_watch watch;
	struct engine_job job;
	struct cm_id *id;
};

void lookup_answer(int fd)
{
	const struct sv_peer *self = peer_self();
	struct answer answer = { .magic = ANSWER_MAGIC,
				 .slot = self->slot,
				 .nonce = { self->nonce[0], self->nonce[1] } };
	struct ucred asker;
	int error = sv_identity_of_peer(fd, &asker);

	/* a fresh socket has room; whoever is gone already needs no answer */
	if (!error && send(fd, &answer, sizeof(answer), MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
		error = errno;
	if (error)
		log_at(LOG_NOTE, "rdma_cm: a question about a port stays open: %s",
		       strerror(error));
	close(fd);
}

static void lookup_free(struct engine_job *job)
{
	free((char *)job - offsetof(struct cm_lookup, job));
}

void lookup_stop_locked(struct cm_id *id)
{
	struct cm_lookup *lookup = id->lookup;

	if (!lookup)
		return;
	id->lookup = NULL;
	engine_unwatch(&lookup->watch);
	engine_defer(&lookup->job, lookup_free);
}

/* ---- who was found before ---- */

static struct known *known_entry(uint32_t space, uint16_t number)
{
	return &known[(space * 31 + number) % KNOWN];
}

static void known_keep_locked(const struct cm_id *id, const struct answer *answer)
{
	uint16_t number;
	struct known *entry;
	struct cm_ip ip;

	if (ip_from_sockaddr(&ip, &number, &id->id.route.addr.dst_addr))
		return;
	entry = known_entry(id->id.ps, number);
	*entry = (struct known){ .ip = ip,
				 .space = id->id.ps,
				 .number = number,
				 .slot = (uint16_t)answer->slot,
				 .nonce = { answer->nonce[0], answer->nonce[1] } };
}

/* The nonce is that of one life of a process, so that nobody is taken for who lived there before. */
static struct sv_peer *known_peer_locked(uint32_t space, uint16_t number, const struct cm_ip *ip)
{
	struct known *entry = known_entry(space, number);
	struct sv_peer *peer;

	if (!(entry->nonce[0] | entry->nonce[1]) || entry->space != space ||
	    entry->number != number || !ip_same(&entry->ip, ip))
		return NULL;
	peer = peer_linked(entry->slot);
	if (peer && !memcmp(peer->nonce, entry->nonce, sizeof(entry->nonce)))
		return peer;
	if (peer)
		peer_put(peer);
	return NULL;
}

/* ---- asking ---- */

static void lookup_ready(struct engine_watch *watch, uint32_t events)
{
	struct cm_lookup *lookup =
		(struct cm_lookup *)(void *)((char *)watch - offsetof(struct cm_lookup, watch));
	struct cm_id *id = lookup->id;
	struct answer answer;
	ssize_t got;

	(void)events;
	cm_lock();
	if (watch->fd < 0) { /* stopped meanwhile */
		cm_unlock();
		return;
	}
	got = recv(watch->fd, &answer, sizeof(answer), MSG_DONTWAIT | MSG_TRUNC);
	if (got < 0 && (errno == EAGAIN || errno == EINTR)) {
		cm_unlock();
		return;
	}
	lookup_stop_locked(id);
	if (got == sizeof(answer) && answer.magic == ANSWER_MAGIC && answer.slot < SV_SLOTS) {
		known_keep_locked(id, &answer);
		connect_found_locked(id, (uint16_t)answer.slot, answer.nonce);
	} else {
		/* it closed without a word: it is short of something, or gone */
		connect_retry_locked(id);
	}
	cm_unlock();
}

static int lookup_watch_locked(struct cm_id *id, int fd)
{
	struct cm_lookup *lookup = calloc(1, sizeof(*lookup));

	if (!lookup) {
		close(fd);
		return ENOMEM;
	}
	lookup->id = id;
	lookup->watch.fd = -1;
	id->lookup = lookup;
	return engine_watch(&lookup->watch, fd, EPOLLIN, lookup_ready);
}

/* A connection to the name of the address, or to the wildcard that stands for it. */
static int name_reach(uint32_t space, uint16_t number, const struct cm_ip *ip)
{
	struct cm_ip tries[3] = { *ip,
				  { .any = true, .families = ip->families },
				  { .any = true, .families = CM_IPV4 | CM_IPV6 } };
	struct ucred owner;
	char name[96];
	unsigned i;
	int fd = -1;

	for (i = 0; i < 3; i++) {
		port_name(name, space, number, &tries[i]);
		fd = name_connect(name, &owner);
		if (fd >= 0 || errno != ECONNREFUSED)
			break;
	}
	return fd;
}

int lookup_ask_locked(struct cm_id *id, uint32_t space, uint16_t number, const struct cm_ip *ip)
{
	int fd;

	if (port_listener_locked(space, number, ip)) {
		connect_found_locked(id, runtime_slot(), peer_self()->nonce);
		return 0;
	}
	memset(known_entry(space, number), 0, sizeof(struct known));
	fd = name_reach(space, number, ip);
	if (fd >= 0)
		return lookup_watch_locked(id, fd);
	if (errno != EAGAIN)
		return errno;
	connect_retry_locked(id);
	return 0;
}

int lookup_start_locked(struct cm_id *id, uint32_t space, uint16_t number, const struct cm_ip *ip)
{
	struct sv_peer *peer = NULL;

	if (!port_listener_locked(space, number, ip))
		peer = known_peer_locked(space, number, ip);
	if (!peer)
		return lookup_ask_locked(id, space, number, ip);
	connect_known_locked(id, peer);
	return 0;
}
