/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Who lives in which slot: the table of linked processes, and what is asked of one. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "softverbs/cancel.h"
#include "softverbs/foreign.h"
#include "softverbs/log_from.h"
#include "softverbs/runtime.h"
#include "util/log.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static struct {			/* lock */
	struct sv_peer *peer;	/* linked */
	struct sv_link *making; /* not yet; peer_get has promised an answer */
	/* of the process that forked this one: kept for objects that still point there */
	struct sv_peer *inherited;
} slots[SV_SLOTS];

struct self_message {
	STAILQ_ENTRY(self_message) entry;
	enum sv_msg type;
	int fd;
	size_t size;
	uint8_t payload[];
};

/* lock */
static STAILQ_HEAD(, self_message) self_messages = STAILQ_HEAD_INITIALIZER(self_messages);
static struct engine_job self_job;
static bool self_pending; /* lock: self_job is on its way */

static _Thread_local int cancel_before;

void links_lock(void)
{
	int before = cancel_off();

	pthread_mutex_lock(&lock);
	cancel_before = before;
}

void links_unlock(void)
{
	pthread_mutex_unlock(&lock);
	cancel_restore(cancel_before);
}

/* ---- references ---- */

void peer_hold(struct sv_peer *peer)
{
	/* the caller's own keeps it alive */
	atomic_fetch_add_explicit(&peer->refs, 1, memory_order_relaxed);
}

void peer_put(struct sv_peer *peer)
{
	/*
	 * release: this holder's accesses come before the unmapping; acquire: it sees those of all
	 * the others
	 */
	if (atomic_fetch_sub_explicit(&peer->refs, 1, memory_order_acq_rel) != 1)
		return;
	data_peer_free(peer);
	area_unmap(peer);
	close_all(&peer->doorbell, 1);
	close_all(&peer->memory, 1);
	free(peer);
}

struct sv_peer *peer_get(uint16_t slot)
{
	struct sv_peer *peer = NULL;
	int error = EAGAIN;

	if (slot == runtime_slot()) {
		peer = peer_self();
		peer_hold(peer);
		return peer;
	}
	if (slot >= SV_SLOTS) {
		errno = ECONNREFUSED;
		return NULL;
	}
	links_lock();
	peer = slots[slot].peer;
	if (peer)
		peer_hold(peer);
	else if (!slots[slot].making && !(slots[slot].making = link_open_locked(slot)))
		error = errno;
	links_unlock();
	if (!peer)
		errno = error;
	return peer;
}

struct sv_peer *peer_linked(uint16_t slot)
{
	struct sv_peer *peer;

	links_lock();
	peer = slots[slot].peer;
	if (peer)
		peer_hold(peer);
	links_unlock();
	return peer;
}

bool peer_is_there(uint16_t slot)
{
	bool there;

	links_lock();
	there = slots[slot].peer && !link_hung_up(slots[slot].peer->link);
	links_unlock();
	return there;
}

/* ---- messages ---- */

static void self_deliver(struct engine_job *job)
{
	struct self_message *message;

	(void)job;
	for (;;) {
		links_lock();
		message = STAILQ_FIRST(&self_messages);
		if (message)
			STAILQ_REMOVE_HEAD(&self_messages, entry);
		else
			self_pending = false;
		links_unlock();
		if (!message)
			return;
		if (message->type == SV_MSG_DATA)
			data_message(peer_self(), message->payload, message->size, message->fd);
		else
			cm_message(peer_self(), message->payload, message->size);
		free(message);
	}
}

static int self_send_locked(enum sv_msg type, const void *payload, size_t size, int fd)
{
	struct self_message *message = malloc(sizeof(*message) + size);

	if (!message)
		return ENOMEM;
	message->fd = fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, 0);
	if (fd >= 0 && message->fd < 0) {
		free(message);
		return errno;
	}
	message->type = type;
	message->size = size;
	memcpy(message->payload, payload, size);
	STAILQ_INSERT_TAIL(&self_messages, message, entry);
	if (!self_pending)
		engine_defer(&self_job, self_deliver);
	self_pending = true;
	return 0;
}

int peer_send(struct sv_peer *peer, enum sv_msg type, const void *payload, size_t size, int fd)
{
	int error = EPIPE;

	if (size > SV_MSG_MAX)
		return EMSGSIZE;
	links_lock();
	if (peer == peer_self())
		error = self_send_locked(type, payload, size, fd);
	else if (peer->link)
		error = link_send_locked(peer->link, type, payload, size, &fd, fd >= 0);
	links_unlock();
	return error;
}

/* ---- hello ---- */

bool slot_leave_locked(struct sv_link *link)
{
	struct sv_peer *peer = link->peer;

	if (peer) {
		peer->link = NULL;
		/* release: whoever sees it dead also sees that its link is gone */
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

static bool same_process(const struct sv_peer *peer, const struct hello *hello)
{
	return !memcmp(peer->nonce, hello->nonce, sizeof(hello->nonce));
}

/*
 * Whether a link of theirs is taken. Two processes may connect to each other at once: both keep the
 * link that the lower nonce began. The owner of the kept one parks the other, and never closes it,
 * for its end could reach the other side before the hello on the kept one; the other side drops its
 * own when that hello comes. A process that stands in the table already was linked by another
 * connection, unless that one is hung up: then it has lost it, or another process has taken the
 * slot since, and this side is only late to notice.
 */
static bool slot_takes(struct sv_link *link, const struct hello *hello)
{
	struct sv_link *stale = NULL, *mine = NULL;
	struct sv_peer *peer;
	bool take = true;

	links_lock();
	peer = slots[hello->slot].peer;
	if (peer && same_process(peer, hello) && !link_hung_up(peer->link)) {
		take = false;
	} else {
		stale = peer ? peer->link : NULL;
		mine = slots[hello->slot].making;
		if (mine && mine->state == LINK_GREETED &&
		    nonce_is_lower(peer_self()->nonce, hello->nonce))
			take = false;
	}
	if (take) {
		/* who waited for mine now waits for this one */
		slots[hello->slot].making = link;
		link->slot = (uint16_t)hello->slot;
	} else {
		link->slot = (uint16_t)hello->slot;
		link->state = LINK_PARKED;
	}
	links_unlock();
	if (take && mine)
		link_down(mine, 0);
	if (take && stale)
		link_down(stale, ECONNRESET);
	return take;
}

/* Both hellos are exchanged: from here on peer_get finds the process. */
static void slot_link(struct sv_link *link, struct sv_peer *peer)
{
	links_lock();
	peer->link = link;
	link->peer = peer;
	link->state = LINK_READY;
	slots[peer->slot].peer = peer;
	slots[peer->slot].making = NULL;
	links_unlock();
	engine_timer_cancel(&link->timer);
	log_at(LOG_TRACE, "softverbs: slot %u: linked with process %d, copy class %d", peer->slot,
	       (int)peer->pid, peer->copy);
	data_peer_ready(peer);
	cm_peer_ready(peer);
}

static int link_answer(struct sv_link *link, struct sv_peer *peer, bool theirs)
{
	int error = 0;

	peer->doorbell = fcntl(link->watch.fd, F_DUPFD_CLOEXEC, 0);
	if (peer->doorbell < 0)
		return errno;
	if (theirs) {
		links_lock();
		error = hello_send_locked(link);
		links_unlock();
	}
	return error ? error : link_watch_death(link);
}

bool slot_hello(struct sv_link *link, const void *payload, size_t size, int *fds, unsigned fd_count)
{
	bool theirs = link->state == LINK_ACCEPTED;
	struct sv_peer *peer;
	struct hello hello;

	if (!hello_read(&hello, payload, size) ||
	    (!theirs && (link->state != LINK_GREETED || hello.slot != link->slot))) {
		sv_log_from(sv_source_process(link->cred.pid), LOG_WARN,
			    "softverbs: process %d: not a hello", (int)link->cred.pid);
		sv_foreign_close(fds, fd_count);
		return false;
	}
	if (theirs && !slot_takes(link, &hello)) {
		sv_foreign_close(fds, fd_count);
		return true;
	}
	if (theirs) {
		links_lock();
		link->state = LINK_GREETED;
		links_unlock();
	}
	peer = hello_peer(&hello, &link->cred, fds, fd_count);
	if (!peer) {
		link->error = errno;
		return false;
	}
	link->error = link_answer(link, peer, theirs);
	if (link->error) {
		peer_put(peer);
		return false;
	}
	slot_link(link, peer);
	return true;
}

/*
 * The parent's areas are not in the child (MADV_DONTFORK); unmapping what is not there tells so to
 * memory checkers. Objects are only forgotten.
 */
void slots_fork_child(void)
{
	struct self_message *message;
	unsigned i;

	for (i = 0; i < SV_SLOTS; i++) {
		if (slots[i].peer) {
			area_unmap(slots[i].peer);
			close_all(&slots[i].peer->doorbell, 1);
			close_all(&slots[i].peer->memory, 1);
			slots[i].inherited = slots[i].peer;
		}
		slots[i].peer = NULL;
		slots[i].making = NULL;
	}
	while ((message = STAILQ_FIRST(&self_messages))) {
		STAILQ_REMOVE_HEAD(&self_messages, entry);
		if (message->fd >= 0)
			close(message->fd);
		free(message);
	}
	self_pending = false;
}
