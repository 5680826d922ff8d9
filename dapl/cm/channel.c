/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Event channels: one descriptor for the sockets, QPs and timers of a port's connections. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>
#include "dapl/cm/id.h"
#include "util/log.h"

/* ---- the lock ---- */

void cm_lock(struct cm_channel *channel)
{
	int cancel;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	pthread_mutex_lock(&channel->lock);
	channel->cancel = cancel;
}

/* Releases the lock, and raises the descriptor only if events remain: an event that this thread fetched
 * itself wakes no other thread. The reader that finds no more events clears it, once for many events. */
void cm_unlock(struct cm_channel *channel)
{
	int cancel = channel->cancel;

	if (!TAILQ_EMPTY(&channel->events))
		wakefd_raise(&channel->queued);
	pthread_mutex_unlock(&channel->lock);
	pthread_setcancelstate(cancel, NULL);
}

/* ---- sources ---- */

static int source_control(struct cm_channel *channel, int operation, const struct cm_source *source,
			  uint32_t events)
{
	struct epoll_event event = { .events = events, .data.ptr = (void *)(uintptr_t)source };

	if (!epoll_ctl(channel->channel.fd, operation, source->fd, &event))
		return 0;
	log_at(LOG_WARN, "CM: epoll_ctl: %m");
	return errno;
}

int cm_source_add(struct cm_channel *channel, struct cm_source *source, uint32_t events)
{
	return source_control(channel, EPOLL_CTL_ADD, source, events);
}

/* Drops a report that is not served yet: the source may be freed next. */
static void report_forget(struct cm_channel *channel, const struct cm_source *source)
{
	unsigned i;

	for (i = channel->reports_next; i < channel->reports_count; i++)
		if (channel->reports[i].data.ptr == source)
			channel->reports[i].events = 0;
}

void cm_source_change(struct cm_channel *channel, struct cm_source *source, uint32_t events)
{
	source_control(channel, EPOLL_CTL_MOD, source, events);
}

/* Stops all reports of a source, including hang-up and errors. */
void cm_source_ignore(struct cm_channel *channel, struct cm_source *source)
{
	report_forget(channel, source);
	epoll_ctl(channel->channel.fd, EPOLL_CTL_DEL, source->fd, NULL);
}

/* Removes the source from the epoll first: a child process may hold the descriptor, which would keep it
 * there. */
void cm_source_close(struct cm_channel *channel, struct cm_source *source)
{
	if (source->fd < 0)
		return;
	report_forget(channel, source);
	epoll_ctl(channel->channel.fd, EPOLL_CTL_DEL, source->fd, NULL);
	close(source->fd);
	source->fd = -1;
}

/* ---- timers ---- */

static void due_set(struct cm_channel *channel, uint64_t deadline)
{
	struct itimerspec at = { .it_value = { 0, 0 } };

	channel->due = deadline;
	if (deadline != CLOCK_NEVER) {
		at.it_value.tv_sec = (time_t)(deadline / NSEC_PER_SEC);
		at.it_value.tv_nsec = (long)(deadline % NSEC_PER_SEC);
	}
	if (timerfd_settime(channel->timers_due.fd, TFD_TIMER_ABSTIME, &at, NULL))
		log_at(LOG_ERROR, "CM: timerfd_settime: %m");
}

void cm_timer_arm(struct cm_channel *channel, struct cm_timer *timer, uint64_t deadline)
{
	deadline_set(&channel->timers, &timer->due, deadline);
	if (deadline < channel->due)
		due_set(channel, deadline);
}

/* Leaves the timerfd set: it may become readable once without a timer due. */
void cm_timer_disarm(struct cm_channel *channel, struct cm_timer *timer)
{
	deadline_clear(&channel->timers, &timer->due);
}

static void channel_timers_run(struct cm_channel *channel, struct cm_source *source,
			       uint32_t events)
{
	struct deadline *first;
	uint64_t expirations;

	(void)events;
	while (read(source->fd, &expirations, sizeof(expirations)) > 0)
		;
	while ((first = channel->timers.first) && first->at <= clock_now()) {
		struct cm_timer *timer = (struct cm_timer *)first;

		cm_timer_disarm(channel, timer);
		timer->call(channel, timer);
	}
	due_set(channel, first ? first->at : CLOCK_NEVER);
}

/* ---- channels ---- */

static int sources_open(struct cm_channel *channel)
{
	struct epoll_event event = { .events = EPOLLIN, .data.ptr = NULL };
	int queued;

	channel->channel.fd = epoll_create1(EPOLL_CLOEXEC);
	if (channel->channel.fd < 0)
		return errno;
	channel->timers_due.fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	queued = wakefd_get(&channel->queued);
	if (channel->timers_due.fd < 0 || queued < 0 ||
	    epoll_ctl(channel->channel.fd, EPOLL_CTL_ADD, queued, &event))
		return errno;
	return cm_source_add(channel, &channel->timers_due, EPOLLIN);
}

/* Accepts an incomplete channel. */
static void channel_free(struct cm_channel *channel)
{
	cm_port_close(channel);
	wakefd_close(&channel->queued);
	if (channel->timers_due.fd >= 0)
		close(channel->timers_due.fd);
	if (channel->channel.fd >= 0)
		close(channel->channel.fd);
	pthread_cond_destroy(&channel->acked);
	pthread_mutex_destroy(&channel->lock);
	free(channel);
}

struct rdma_event_channel *rdma_create_event_channel(void)
{
	struct cm_channel *channel = calloc(1, sizeof(*channel));
	int error;

	if (!channel)
		return NULL;
	channel->timers_due = (struct cm_source){ .fd = -1, .ready = channel_timers_run };
	channel->channel.fd = -1;
	channel->due = CLOCK_NEVER;
	TAILQ_INIT(&channel->events);
	LIST_INIT(&channel->listeners);
	pthread_mutex_init(&channel->lock, NULL);
	pthread_cond_init(&channel->acked, NULL);
	error = sources_open(channel);
	if (!error)
		return &channel->channel;
	channel_free(channel);
	errno = error;
	return NULL;
}

/* The caller has destroyed the channel's identifiers; a half-open connection is destroyed with its listener. */
void rdma_destroy_event_channel(struct rdma_event_channel *given)
{
	channel_free(cm_channel_of(given));
}
