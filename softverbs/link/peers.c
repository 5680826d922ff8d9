/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* The table of linked processes by slot, and the calls on one. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "util/cancel.h"
#include "softverbs/base/foreign.h"
#include "softverbs/base/log_from.h"
#include "softverbs/link/cm_calls.h"
#include "softverbs/link/link_reader.h"
#include "softverbs/link/transport.h"
#include "softverbs/link/runtime.h"
#include "util/log.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static struct {			/* guarded by `lock` */
	struct sv_peer *peer;	/* linked */
	struct sv_link *making; /* in progress; sv_peer_get has promised an answer */
	/* the parent's entry in a forked child: kept for objects that still point to it */
	struct sv_peer *inherited;
} slots[SV_PEERS];

static _Thread_local int cancel_before;

void sv_links_lock(void)
{
	int before = cancel_off();

	pthread_mutex_lock(&lock);
	cancel_before = before;
}

void sv_links_unlock(void)
{
	pthread_mutex_unlock(&lock);
	cancel_restore(cancel_before);
}

/* ---- references ---- */

void sv_peer_hold(struct sv_peer *peer)
{
	/* relaxed: the caller's reference keeps it alive */
	atomic_fetch_add_explicit(&peer->refs, 1, memory_order_relaxed);
}

static void memory_close(struct sv_peer *peer)
{
	int file = atomic_exchange(&peer->memory, -1);

	sv_close_all(&file, 1);
}

void sv_peer_put(struct sv_peer *peer)
{
	/* release: this thread's accesses precede the unmapping; acquire: so do those of all other threads */
	if (atomic_fetch_sub_explicit(&peer->refs, 1, memory_order_acq_rel) != 1)
		return;
	if (peer->far) {
		sv_transport()->peer_free(peer);
		return;
	}
	sv_runtime_client()->peer_free(peer);
	sv_runtime_client()->area_unmap(peer);
	sv_close_all(&peer->doorbell, 1);
	memory_close(peer);
	free(peer);
}

struct sv_peer *sv_peer_get(uint16_t slot)
{
	struct sv_peer *peer = NULL;
	int error = EAGAIN;

	if (slot == sv_runtime_peer_id()) {
		peer = sv_peer_self();
		sv_peer_hold(peer);
		return peer;
	}
	if (slot >= SV_PEERS) {
		errno = ECONNREFUSED;
		return NULL;
	}
	sv_links_lock();
	peer = slots[slot].peer;
	if (peer)
		sv_peer_hold(peer);
	else if (!slots[slot].making && !(slots[slot].making = sv_link_open_locked(slot)))
		error = errno;
	sv_links_unlock();
	if (!peer)
		errno = error;
	return peer;
}

struct sv_peer *sv_peer_linked(uint16_t slot)
{
	struct sv_peer *peer;

	sv_links_lock();
	peer = slots[slot].peer;
	if (peer)
		sv_peer_hold(peer);
	sv_links_unlock();
	return peer;
}

/* ---- messages ---- */

int sv_peer_send(struct sv_peer *peer, enum sv_msg type, const void *payload, size_t size, int fd)
{
	int error = EPIPE;

	if (size > SV_MSG_MAX)
		return EMSGSIZE;
	if (peer->far)
		return sv_transport()->send(peer, type, payload, size);
	sv_links_lock();
	if (peer == sv_peer_self())
		error = sv_kept_add_self_locked(type, payload, size, fd);
	else if (peer->link)
		error = sv_link_send_locked(peer->link, type, payload, size, &fd, fd >= 0);
	sv_links_unlock();
	return error;
}

/* ---- handshake ---- */

bool sv_peers_leave_locked(struct sv_link *link)
{
	struct sv_peer *peer = link->peer;

	if (peer) {
		peer->link = NULL;
		/* release: a thread that sees `dead` also sees that the link is gone */
		atomic_store_explicit(&peer->dead, true, memory_order_release);
		if (slots[peer->slot].peer == peer)
			slots[peer->slot].peer = NULL;
		return false;
	}
	if (link->state == LINK_ACCEPTED || slots[link->slot].making != link)
		return false;
	slots[link->slot].making = NULL;
	return true;
}

static bool nonce_is_lower(const uint64_t *a, const uint64_t *b)
{
	return a[0] != b[0] ? a[0] < b[0] : a[1] < b[1];
}

static bool same_process(const struct sv_peer *peer, const struct handshake *handshake)
{
	return !memcmp(peer->nonce, handshake->nonce, sizeof(handshake->nonce));
}

/* Decides whether a link begun by the peer is accepted. Two processes may connect to each other at once: both
 * keep the link begun by the process with the lower nonce. That process parks the peer's link and never
 * closes it, because the end of that link could arrive before the hello on the kept one; the peer closes its
 * own link when that hello arrives.
 *
 * A process that is in the table already was linked by another connection. If that connection is hung up,
 * either the peer lost it, or another process has the slot now and this side has not noticed yet. */
static bool slot_accepts(struct sv_link *link, const struct handshake *handshake)
{
	struct sv_link *stale = NULL, *mine = NULL;
	struct sv_peer *peer;
	bool take = true;

	sv_links_lock();
	peer = slots[handshake->slot].peer;
	if (peer && same_process(peer, handshake) && !sv_link_hung_up(peer->link)) {
		take = false;
	} else {
		stale = peer ? peer->link : NULL;
		mine = slots[handshake->slot].making;
		if (mine && mine->state == LINK_GREETED &&
		    nonce_is_lower(sv_peer_self()->nonce, handshake->nonce))
			take = false;
	}
	if (take) {
		/* callers that wait for `mine` now wait for this link */
		slots[handshake->slot].making = link;
		link->slot = (uint16_t)handshake->slot;
	} else {
		link->slot = (uint16_t)handshake->slot;
		link->state = LINK_PARKED;
	}
	sv_links_unlock();
	if (take && mine)
		sv_link_down(mine, 0);
	if (take && stale)
		sv_link_down(stale, ECONNRESET);
	return take;
}

/* Both hellos were received: from here on sv_peer_get finds the process. */
static void slot_link(struct sv_link *link, struct sv_peer *peer)
{
	sv_links_lock();
	peer->link = link;
	link->peer = peer;
	link->state = LINK_READY;
	slots[peer->slot].peer = peer;
	slots[peer->slot].making = NULL;
	sv_link_reader_add_locked(link);
	sv_links_unlock();
	sv_engine_timer_cancel(&link->timer);
	log_at(LOG_TRACE, "softverbs: slot %u: linked with process %d, copy class %d", peer->slot,
	       (int)peer->pid, peer->copy);
	sv_runtime_client()->peer_ready(peer);
	sv_cm_peer_ready(peer);
}

static int link_answer(struct sv_link *link, struct sv_peer *peer, bool theirs)
{
	int error = 0;

	peer->doorbell = fcntl(link->handler.fd, F_DUPFD_CLOEXEC, 0);
	if (peer->doorbell < 0)
		return errno;
	if (theirs) {
		sv_links_lock();
		error = sv_handshake_send_locked(link);
		sv_links_unlock();
	}
	return error ? error : sv_link_death_add(link);
}

/* A process of another layout gets a hello in any case, so that its user finds the reason in its log, too. Each
 * such process is logged once. */
static void hello_refuse(struct sv_link *link, uint32_t layout)
{
	static pid_t logged; /* the engine's */

	if (!layout || layout == SV_LAYOUT) {
		sv_log_from(sv_source_process(link->cred.pid), LOG_WARN,
			    "softverbs: process %d: not a hello", (int)link->cred.pid);
		return;
	}
	if (logged != link->cred.pid)
		sv_log_from(
			sv_source_process(link->cred.pid), LOG_ERROR,
			"softverbs: process %d has another version of softverbs (layout %u, and "
			"not %u) and is not reached",
			(int)link->cred.pid, layout, SV_LAYOUT);
	logged = link->cred.pid;
	if (link->state == LINK_ACCEPTED) {
		sv_links_lock();
		sv_handshake_send_locked(link);
		sv_links_unlock();
	}
}

bool sv_peers_handshake(struct sv_link *link, const void *payload, size_t size, int *fds,
			unsigned fd_count)
{
	bool theirs = link->state == LINK_ACCEPTED;
	struct sv_peer *peer;
	struct handshake handshake;

	if (!sv_handshake_read(&handshake, payload, size) ||
	    (!theirs && (link->state != LINK_GREETED || handshake.slot != link->slot))) {
		hello_refuse(link, sv_handshake_layout(payload, size));
		sv_foreign_close(fds, fd_count);
		return false;
	}
	if (theirs && !slot_accepts(link, &handshake)) {
		sv_foreign_close(fds, fd_count);
		return true;
	}
	if (theirs) {
		sv_links_lock();
		link->state = LINK_GREETED;
		sv_links_unlock();
	}
	peer = sv_handshake_peer(&handshake, &link->cred, fds, fd_count);
	if (!peer) {
		link->error = errno;
		return false;
	}
	link->error = link_answer(link, peer, theirs);
	if (link->error) {
		sv_peer_put(peer);
		return false;
	}
	slot_link(link, peer);
	return true;
}

/* The parent's areas are not mapped in the child (MADV_DONTFORK); the unmapping of an absent range tells
 * memory checkers so. Objects are dropped and not freed. */
void sv_peers_fork_child(void)
{
	unsigned i;

	for (i = 0; i < SV_PEERS; i++) {
		if (slots[i].peer) {
			sv_runtime_client()->area_unmap(slots[i].peer);
			sv_close_all(&slots[i].peer->doorbell, 1);
			memory_close(slots[i].peer);
			slots[i].inherited = slots[i].peer;
		}
		slots[i].peer = NULL;
		slots[i].making = NULL;
	}
	sv_kept_fork_child();
}
