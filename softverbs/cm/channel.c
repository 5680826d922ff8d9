/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Event channels: creation and destruction, and the threads that read from them. */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include "util/cancel.h"
#include "softverbs/cm/cm.h"
#include "softverbs/link/peer.h"
#include "softverbs/object/object.h"
#include "util/log.h"

struct cm_channel *sv_cm_channel_from(struct rdma_event_channel *channel)
{
	return (struct cm_channel *)(void *)channel; /* its first member */
}

struct cm_channel *sv_cm_channel_of_id(struct cm_id *id)
{
	return sv_cm_channel_from(id->id.channel);
}

bool sv_cm_channel_is_ours(const struct rdma_event_channel *channel)
{
	return *((const struct cm_channel *)(const void *)channel)->alive;
}

struct rdma_event_channel *rdma_create_event_channel(void)
{
	struct cm_channel *channel = calloc(1, sizeof(*channel));
	int error = channel ? sv_cm_device_hold() : ENOMEM;

	if (!error) {
		channel->channel.fd = eventfd(0, EFD_CLOEXEC);
		if (channel->channel.fd < 0) {
			error = errno;
			sv_cm_device_release();
		}
	}
	if (error) {
		log_at(LOG_ERROR, "rdma_cm: event channel: %s", strerror(error));
		free(channel);
		errno = error;
		return NULL;
	}
	channel->alive = sv_area_alive();
	TAILQ_INIT(&channel->events);
	return &channel->channel;
}

/* The channels that were destroyed last. Some programs destroy a channel while one of their threads reads
 * from it in a loop, and rely on that thread being blocked in read, where close(2) leaves it. A thread that
 * is between two reads at that moment enters shortly after and must find a closed channel, not freed memory. */
static struct cm_channel *closed_last[8];
static unsigned closed_count;

void sv_cm_channel_free_locked(struct cm_channel *channel)
{
	if (channel->closed && !channel->kept && !channel->readers)
		free(channel);
}

static void channel_keep_locked(struct cm_channel *channel)
{
	static const uint32_t alive = 1; /* the area's flag may be freed with the last channel */
	struct cm_channel **slot =
		&closed_last[closed_count++ % (sizeof(closed_last) / sizeof(closed_last[0]))];

	if (*slot) {
		(*slot)->kept = false;
		sv_cm_channel_free_locked(*slot);
	}
	channel->alive = &alive;
	channel->kept = true;
	*slot = channel;
}

/* ---- the token ---- */

void sv_cm_token_put_locked(struct cm_channel *channel)
{
	if (!channel->token)
		eventfd_write(channel->channel.fd, 1);
	channel->token = true;
	channel->owes_token = false;
}

/* Nothing reads the descriptor but this and readers, so that without a cancelled one the token is there. */
void sv_cm_token_take_locked(struct cm_channel *channel)
{
	struct pollfd token = { .fd = channel->channel.fd, .events = POLLIN };
	eventfd_t count;

	if (channel->loose ? poll(&token, 1, 0) == 1 : channel->token)
		eventfd_read(channel->channel.fd, &count);
	channel->token = channel->loose = channel->owes_token = false;
}

/* A cancelled reader may or may not have read the token; one token too many does no harm. */
static void token_doubt_locked(struct cm_channel *channel)
{
	struct pollfd token = { .fd = channel->channel.fd, .events = POLLIN };

	channel->token = poll(&token, 1, 0) == 1;
	channel->loose = true;
}

/* ---- a thread that reads what it posts ---- */

static _Thread_local struct cm_channel *held;

void rdma_hold_events(struct rdma_event_channel *channel)
{
	held = sv_cm_channel_from(channel);
}

void rdma_unhold_events(void)
{
	struct cm_channel *channel = held;

	if (!channel)
		return;
	held = NULL;
	sv_cm_lock();
	if (channel->owes_token)
		sv_cm_token_put_locked(channel);
	sv_cm_unlock();
}

static _Thread_local bool progresses;

int rdma_begin_progress(void)
{
	int fd = sv_link_reader_begin();

	progresses = fd >= 0;
	return fd;
}

void rdma_progress(void)
{
	if (progresses && !sv_link_reader_read())
		rdma_end_progress(false);
}

bool rdma_progresses(void)
{
	return progresses;
}

void rdma_end_progress(bool returns)
{
	if (progresses)
		sv_link_reader_end(returns);
	progresses = false;
}

bool sv_cm_channel_is_held(const struct cm_channel *channel)
{
	return channel == held;
}

void rdma_destroy_event_channel(struct rdma_event_channel *public)
{
	struct cm_channel *channel = sv_cm_channel_from(public);
	bool ours = sv_cm_channel_is_ours(public);
	int cancel = cancel_off(), fd = public->fd;
	struct cm_event *event;

	if (ours) {
		sv_cm_lock();
		while ((event = TAILQ_FIRST(&channel->events))) {
			TAILQ_REMOVE(&channel->events, event, entry);
			free(event);
		}
		channel->closed = true;
		channel_keep_locked(channel);
		sv_cm_unlock();
	}
	close(fd);
	cancel_restore(cancel);
	/* otherwise it is a copy of the parent's, and only the descriptor belongs to this process */
	if (ours)
		sv_cm_device_release();
}

/* ---- readers ---- */

void sv_cm_channel_leave_locked(struct cm_channel *channel)
{
	channel->readers--;
	if (channel->closed)
		sv_cm_channel_free_locked(channel);
	else if (!TAILQ_EMPTY(&channel->events))
		sv_cm_token_put_locked(channel);
	else if (!channel->readers)
		sv_cm_token_take_locked(channel);
}

struct reader {
	struct cm_channel *channel;
	int error;
};

static void reader_leave(void *arg)
{
	const struct reader *reader = arg;

	sv_cm_lock();
	if (!reader->channel->closed)
		token_doubt_locked(reader->channel);
	sv_cm_channel_leave_locked(reader->channel);
	sv_cm_unlock();
}

/* Some programs destroy a channel while one of their threads waits in it, and rely on that thread staying
 * blocked, as it does in read on a closed descriptor. Here the token of a discarded event may have woken it,
 * so it blocks in pause instead. */
int sv_cm_token_read(struct cm_channel *channel, bool closed)
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
