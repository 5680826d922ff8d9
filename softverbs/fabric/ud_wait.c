/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * Datagrams for processes of other hosts to which there is no link yet: they wait, in order, while the process is
 * searched for. Their requests have completed, so they outlive their QPs.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "softverbs/fabric/data.h"
#include "softverbs/fabric/ud.h"
#include "util/cancel.h"
#include "util/clock.h"
#include "util/log.h"

#define SEARCHES 64u		       /* processes that are searched for at once */
#define PAUSE	 (100 * NSEC_PER_MSEC) /* until one that was not found is searched for again */

enum search_state {
	SEARCH_NONE,
	SEARCH_GOES,
	SEARCH_FAILED,
};

struct search {
	enum search_state state;
	bool logged; /* of a failure */
	uint16_t slot;
	uint32_t cookie;
	struct sv_ip host;
	uint64_t again_at; /* SEARCH_FAILED */
	size_t waiting;	   /* bytes of their frames */
	STAILQ_HEAD(, fabric_out) out;
};

/* Guards all below, and the order of datagrams to one process. Acquired before the fabric's lock. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static _Thread_local int cancel_before;

static struct search searches[SEARCHES];
static unsigned used; /* entries that are not SEARCH_NONE */
static uint32_t last_cookie;

static void wait_lock(void)
{
	int before = cancel_off();

	pthread_mutex_lock(&lock);
	cancel_before = before;
}

static void wait_unlock(void)
{
	pthread_mutex_unlock(&lock);
	cancel_restore(cancel_before);
}

/* ---- a search ---- */

static struct search *search_of_locked(const struct sv_ip *host, uint16_t slot)
{
	for (unsigned i = 0; used && i < SEARCHES; i++)
		if (searches[i].state != SEARCH_NONE && searches[i].slot == slot &&
		    sv_ip_same(&searches[i].host, host))
			return &searches[i];
	return NULL;
}

static void search_end_locked(struct search *search)
{
	struct fabric_out *out;

	if (search->state == SEARCH_NONE)
		return;
	while ((out = STAILQ_FIRST(&search->out))) {
		STAILQ_REMOVE_HEAD(&search->out, entry);
		sv_ud_lose(FAR_NOT_SENT);
		free(out);
	}
	search->state = SEARCH_NONE;
	used--;
}

/* An entry without a search: a free one, or that of a process that may be searched for again. */
static struct search *entry_acquire_locked(uint64_t now)
{
	struct search *old = NULL;

	for (unsigned i = 0; i < SEARCHES; i++) {
		if (searches[i].state == SEARCH_NONE)
			return &searches[i];
		if (searches[i].state == SEARCH_FAILED && now >= searches[i].again_at)
			old = &searches[i];
	}
	if (old)
		search_end_locked(old);
	return old;
}

/* True if the failure is to be logged. */
static bool search_fail_locked(struct search *search)
{
	bool logs = !search->logged;

	search_end_locked(search);
	search->logged = true;
	search->state = SEARCH_FAILED;
	search->again_at = clock_now() + PAUSE;
	used++;
	return logs;
}

static void failure_log(const struct sv_ip *host, uint16_t slot, int error)
{
	char name[64];

	sv_ip_show(host, name);
	log_at(LOG_WARN, "softverbs: %s: no link to slot %u there, datagrams to it are lost: %s",
	       name, slot, strerror(error));
}

/* ---- its end ---- */

static void waiting_send_locked(struct search *search, struct sv_peer *peer)
{
	struct fabric_out *out;

	while ((out = STAILQ_FIRST(&search->out))) {
		STAILQ_REMOVE_HEAD(&search->out, entry);
		if (sv_fabric_out_send(peer, out))
			sv_ud_lose(FAR_NOT_SENT);
	}
	search_end_locked(search);
}

static struct search *search_by_cookie_locked(uint32_t cookie)
{
	for (unsigned i = 0; i < SEARCHES; i++)
		if (searches[i].state == SEARCH_GOES && searches[i].cookie == cookie)
			return &searches[i];
	return NULL;
}

static void slot_found(uint32_t cookie, struct sv_peer *peer, int error)
{
	struct sv_ip host = { 0 };
	struct search *search;
	uint16_t slot = 0;
	bool logs = false;

	wait_lock();
	search = search_by_cookie_locked(cookie);
	if (search) {
		host = search->host;
		slot = search->slot;
		if (!error && (!peer || peer->slot != slot))
			error = EPROTO;
		if (error)
			logs = search_fail_locked(search);
		else
			waiting_send_locked(search, peer);
	}
	wait_unlock();
	if (logs)
		failure_log(&host, slot, error);
	if (peer)
		sv_peer_put(peer);
}

/* ---- its begin ---- */

/* The search that is under way; NULL if none can be. Stores the errno of one that fails at once and is to be logged. */
static struct search *search_begin_locked(struct search *search, const struct sv_ip *host,
					  uint16_t slot, int *error)
{
	uint64_t now = clock_now();
	bool logged = search && search->logged;

	if (search && now < search->again_at)
		return NULL;
	if (search)
		search_end_locked(search);
	else
		search = entry_acquire_locked(now);
	if (!search)
		return NULL;
	*search = (struct search){ .state = SEARCH_GOES,
				   .logged = logged,
				   .slot = slot,
				   .host = *host,
				   .cookie = ++last_cookie };
	STAILQ_INIT(&search->out);
	used++;
	*error = sv_fabric_find_slot(host, slot, search->cookie, slot_found);
	if (!*error)
		return search;
	if (!search_fail_locked(search))
		*error = 0;
	return NULL;
}

static void out_keep_locked(struct search *search, struct fabric_out *out)
{
	if (!search || search->waiting + out->size > FABRIC_BACKLOG) {
		sv_ud_lose(FAR_NOT_SENT);
		free(out);
		return;
	}
	STAILQ_INSERT_TAIL(&search->out, out, entry);
	search->waiting += out->size;
}

struct sv_peer *sv_ud_link_for(const struct sv_ip *host, uint16_t slot, struct fabric_out *out)
{
	struct sv_peer *peer = NULL;
	struct search *search;
	int error = 0;

	wait_lock();
	search = search_of_locked(host, slot);
	if (!search || search->state == SEARCH_FAILED) {
		/* there is a link, or the other side has begun one since a search failed */
		peer = sv_fabric_peer_at(host, slot);
		if (!peer)
			search = search_begin_locked(search, host, slot, &error);
		else if (search)
			search_end_locked(search);
	}
	if (!peer)
		out_keep_locked(search, out);
	wait_unlock();
	if (error)
		failure_log(host, slot, error);
	return peer;
}

/* ---- the end of all ---- */

bool sv_ud_waits_any(void)
{
	bool any = false;

	if (pthread_mutex_trylock(&lock))
		return true;
	for (unsigned i = 0; i < SEARCHES; i++)
		any |= searches[i].state == SEARCH_GOES && searches[i].waiting;
	pthread_mutex_unlock(&lock);
	return any;
}

static void waits_close_locked(void)
{
	for (unsigned i = 0; i < SEARCHES; i++)
		search_end_locked(&searches[i]);
}

void sv_ud_waits_close(void)
{
	wait_lock();
	waits_close_locked();
	wait_unlock();
}

void sv_ud_waits_fork_prepare(void)
{
	wait_lock();
}

void sv_ud_waits_fork_parent(void)
{
	wait_unlock();
}

void sv_ud_waits_fork_child(void)
{
	waits_close_locked();
	wait_unlock();
}
