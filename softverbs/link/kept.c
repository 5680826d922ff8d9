/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Messages that wait for the engine: those of this process to itself, and those of the data path that a reader has read. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include "softverbs/base/foreign.h"
#include "softverbs/link/cm_calls.h"
#include "softverbs/link/runtime.h"
#include "util/log.h"

struct kept_message {
	STAILQ_ENTRY(kept_message) entry;
	struct sv_peer *peer; /* the sender; holds a reference */
	enum sv_msg type;
	int fd;
	size_t size;
	uint8_t payload[];
};

/* guarded by the links lock */
static STAILQ_HEAD(, kept_message) messages = STAILQ_HEAD_INITIALIZER(messages);
static bool pending; /* `job` is deferred */
static struct engine_job job;

static struct kept_message *first_take(void)
{
	struct kept_message *message;

	sv_links_lock();
	message = STAILQ_FIRST(&messages);
	if (message)
		STAILQ_REMOVE_HEAD(&messages, entry);
	sv_links_unlock();
	return message;
}

static void deliver(void)
{
	struct kept_message *message;

	while ((message = first_take())) {
		if (message->type == SV_MSG_DATA)
			sv_runtime_client()->message(message->peer, message->payload, message->size,
						     message->fd);
		else
			sv_cm_message(message->peer, message->payload, message->size);
		sv_peer_put(message->peer);
		free(message);
	}
}

static void kept_run(struct engine_job *unused)
{
	(void)unused;
	sv_links_lock();
	pending = false; /* the job may be deferred again from here on */
	sv_links_unlock();
	deliver();
}

/* Takes ownership of `fd`. */
static int add_locked(struct sv_peer *peer, enum sv_msg type, const void *payload, size_t size,
		      int fd)
{
	struct kept_message *message = malloc(sizeof(*message) + size);

	if (!message) {
		sv_close_all(&fd, 1);
		return ENOMEM;
	}
	sv_peer_hold(peer);
	message->peer = peer;
	message->fd = fd;
	message->type = type;
	message->size = size;
	memcpy(message->payload, payload, size);
	STAILQ_INSERT_TAIL(&messages, message, entry);
	if (!pending)
		sv_engine_defer(&job, kept_run);
	pending = true;
	return 0;
}

int sv_kept_add_self_locked(enum sv_msg type, const void *payload, size_t size, int fd)
{
	int copy = fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, 0);

	if (fd >= 0 && copy < 0)
		return errno;
	return add_locked(sv_peer_self(), type, payload, size, copy);
}

void sv_kept_handle(struct sv_peer *peer, const void *payload, size_t size, int fd)
{
	int error;

	if (sv_engine_is_self()) {
		deliver(); /* what a reader read before */
		sv_runtime_client()->message(peer, payload, size, fd);
		return;
	}
	sv_links_lock();
	error = add_locked(peer, SV_MSG_DATA, payload, size, fd);
	sv_links_unlock();
	if (error)
		log_at(LOG_ERROR, "softverbs: slot %u: a message is lost: %s", peer->slot,
		       strerror(error));
}

void sv_kept_fork_child(void)
{
	struct kept_message *message;

	while ((message = STAILQ_FIRST(&messages))) {
		STAILQ_REMOVE_HEAD(&messages, entry);
		sv_close_all(&message->fd, 1);
		free(message);
	}
	pending = false;
}
