/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Event channels: made and destroyed, with the threads that read in them. */
#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include "softverbs/cancel.h"
#include "softverbs/cm.h"
#include "softverbs/sv.h"
#include "util/log.h"

struct cm_channel *channel_from(struct rdma_event_channel *channel)
{
	return (struct cm_channel *)(void *)channel; /* its first member */
}

struct cm_channel *channel_of_id(struct cm_id *id)
{
	return channel_from(id->id.channel);
}

bool channel_is_ours(const struct rdma_event_channel *channel)
{
	return *((const struct cm_channel *)(const void *)channel)->alive;
}

struct rdma_event_channel *rdma_create_event_channel(void)
{
	struct cm_channel *channel = calloc(1, sizeof(*channel));
	int error = channel ? cm_device_hold() : ENOMEM;

	if (!error) {
		channel->channel.fd = eventfd(0, EFD_CLOEXEC);
		if (channel->channel.fd < 0) {
			error = errno;
			cm_device_release();
		}
	}
	if (error) {
		log_at(LOG_ERROR, "rdma_cm: event channel: %s", strerror(error));
		free(channel);
		errno = error;
		return NULL;
	}
	channel->alive = area_alive();
	TAILQ_INIT(&channel->events);
	return &channel->channel;
}

/*
 * Channels that were destroyed last. Programs destroy the channel that a thread of theirs reads in a
 * loop, and count on that thread's being inside a read, where close(2) leaves it. One that is just
 * then between two reads comes an instant later and finds the channel closed; without these it would
 * find freed memory.
 */
static struct cm_channel *closed_last[8];
static unsigned closed_count;

void channel_free_locked(struct cm_channel *channel)
{
	if (channel->closed && !channel->kept && !channel->readers)
		free(channel);
}

static void channel_keep_locked(struct cm_channel *channel)
{
	static const uint32_t alive = 1; /* the area's own goes with the last channel */
	struct cm_channel **slot =
		&closed_last[closed_count++ % (sizeof(closed_last) / sizeof(closed_last[0]))];

	if (*slot) {
		(*slot)->kept = false;
		channel_free_locked(*slot);
	}
	channel->alive = &alive;
	channel->kept = true;
	*slot = channel;
}

/* ---- the token ---- */

/*
 * One promise at a time waits for the end of the section that made it, or of the engine's messages that
 * came together; a second is kept at once.
 */
static struct cm_channel *due; /* the cm lock */
static _Thread_local bool batching;

void token_promise_locked(struct cm_channel *channel)
{
	if (channel->token)
		return;
	channel->token = true;
	if (due || channel->loose)
		eventfd_write(channel->channel.fd, 1);
	else
		due = channel;
}

struct cm_channel *token_due_locked(void)
{
	struct cm_channel *channel = batching ? NULL : due;

	if (channel) {
		due = NULL;
		atomic_fetch_add(&channel->writing, 1);
	}
	return channel;
}

void token_write(struct cm_channel *channel)
{
	eventfd_write(channel->channel.fd, 1);
	atomic_fetch_sub(&channel->writing, 1); /* from here on it may be freed */
}

void token_write_locked(void)
{
	if (due)
		eventfd_write(due->channel.fd, 1);
	due = NULL;
}

void token_forget_promises(void)
{
	due = NULL;
}

/* With nobody reading, a token that was promised and not yet seen is on its way, and takes no lock. */
void token_take_locked(struct cm_channel *channel)
{
	struct pollfd token = { .fd = channel->channel.fd, .events = POLLIN };
	bool written = channel->token && due != channel;
	eventfd_t count;

	if (due == channel)
		due = NULL;
	if (written || channel->loose) {
		while (poll(&token, 1, written ? -1 : 0) < 0 && errno == EINTR)
			;
		if (token.revents & POLLIN)
			eventfd_read(channel->channel.fd, &count);
	}
	channel->token = channel->loose = false;
}

/* Nobody is about to write one. */
static void token_settle_locked(struct cm_channel *channel)
{
	if (due == channel)
		token_write_locked();
	while (atomic_load(&channel->writing))
		sched_yield();
}

/* Whether a reader that was cancelled had taken it nobody knows; one too many does no harm. */
static void token_doubt_locked(struct cm_channel *channel)
{
	struct pollfd token = { .fd = channel->channel.fd, .events = POLLIN };

	token_settle_locked(channel);
	channel->token = poll(&token, 1, 0) == 1;
	channel->loose = true;
}

void cm_batch_begin(void)
{
	batching = true;
}

void cm_batch_end(void)
{
	batching = false;
	cm_lock();
	cm_unlock();
}

void rdma_destroy_event_channel(struct rdma_event_channel *public)
{
	struct cm_channel *channel = channel_from(public);
	bool ours = channel_is_ours(public);
	int cancel = cancel_off(), fd = public->fd;
	struct cm_event *event;

	if (ours) {
		cm_lock();
		while ((event = TAILQ_FIRST(&channel->events))) {
			TAILQ_REMOVE(&channel->events, event, entry);
			free(event);
		}
		/* before the descriptor, for who is about to read or write that */
		token_settle_locked(channel);
		channel->closed = true;
		channel_keep_locked(channel);
		cm_unlock();
	}
	close(fd);
	cancel_restore(cancel);
	if (ours) /* else a copy of the parent's; only the descriptor is this process's own */
		cm_device_release();
}

/* ---- reading ---- */

void channel_leave_locked(struct cm_channel *channel)
{
	channel->readers--;
	if (channel->closed)
		channel_free_locked(channel);
	else if (!TAILQ_EMPTY(&channel->events))
		token_promise_locked(channel);
	else if (!channel->readers)
		token_take_locked(channel);
}

struct reader {
	struct cm_channel *channel;
	int error;
};

static void reader_leave(void *arg)
{
	const struct reader *reader = arg;

	cm_lock();
	if (!reader->channel->closed)
		token_doubt_locked(reader->channel);
	channel_leave_locked(reader->channel);
	cm_unlock();
}

/*
 * Programs destroy the channel that a thread of theirs waits in, and count on
 * its waiting on, as it does in a descriptor that is closed: here it may have been woken by the
 * token of an event that was discarded.
 */
int token_read(struct cm_channel *channel, bool closed)
{
	struct reader reader = { .channel = channel };
	uint64_t token;

	pthread_cleanup_push(reader_leave, &reader);
	while (closed)
		pause();
	if (read(channel->channel.fd, &token, sizeof(token)) < 0)
		reader.error = errno;
	pthread_cleanup_pop(0);
	return reader.error;
}
