/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* The event thread of a device: CM events, async events, registered CQs, timers. */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>
#include "dapl/openib/openib.h"
#include "util/clock.h"

/* --- timers --------------------------------------------------------------------------------- */

static struct ib_timer *first_locked(const struct ib_device *device)
{
	return (struct ib_timer *)device->timers.first;
}

bool events_timer_arm_locked(struct ib_device *device, struct ib_timer *timer, uint64_t deadline,
			     void (*call)(struct ib_timer *timer))
{
	bool sooner = deadline < device->wakes_at;

	timer->call = call;
	deadline_set(&device->timers, &timer->due, deadline);
	if (sooner)
		device->wakes_at = deadline;
	return sooner;
}

void ib_timer_arm(struct ib_device *device, struct ib_timer *timer, uint64_t deadline,
		  void (*call)(struct ib_timer *timer))
{
	bool sooner;

	pthread_mutex_lock(&device->lock);
	sooner = events_timer_arm_locked(device, timer, deadline, call);
	pthread_mutex_unlock(&device->lock);
	if (sooner)
		wakefd_raise(&device->wake);
}

void ib_timer_disarm(struct ib_device *device, struct ib_timer *timer)
{
	pthread_mutex_lock(&device->lock);
	deadline_clear(&device->timers, &timer->due);
	pthread_mutex_unlock(&device->lock);
}

/* The loop disarms again after waiting, since a running call may arm its own timer. */
void ib_timer_cancel(struct ib_device *device, struct ib_timer *timer)
{
	pthread_mutex_lock(&device->lock);
	for (;;) {
		deadline_clear(&device->timers, &timer->due);
		if (device->current != timer || ib_in_upcall(device))
			break;
		pthread_cond_wait(&device->upcall_done, &device->lock);
	}
	pthread_mutex_unlock(&device->lock);
}

/* Rounded up to milliseconds for epoll_wait; -1: never. */
static int time_left(uint64_t deadline)
{
	uint64_t now = clock_now(), ms;

	if (deadline == CLOCK_NEVER)
		return -1;
	ms = deadline > now ? (deadline - now + NSEC_PER_MSEC - 1) / NSEC_PER_MSEC : 0;
	return ms > 3600000 ? 3600000 : (int)ms;
}

/*
 * Runs the timers that are due, and returns the timeout for epoll_wait in milliseconds. `wakes_at` is never moved
 * later before it has passed: most timers are disarmed early, and arming the next one need not wake the event thread
 * if its deadline is not before `wakes_at`.
 */
static int events_timers_run(struct ib_device *device)
{
	void (*call)(struct ib_timer * timer);
	struct ib_timer *timer;
	uint64_t next;

	pthread_mutex_lock(&device->lock);
	while ((timer = first_locked(device)) && timer->due.at <= clock_now()) {
		deadline_clear(&device->timers, &timer->due);
		device->current = timer;
		call = timer->call;
		pthread_mutex_unlock(&device->lock);
		call(timer);
		pthread_mutex_lock(&device->lock);
		device->current = NULL;
		pthread_cond_broadcast(&device->upcall_done);
	}
	next = timer ? timer->due.at : CLOCK_NEVER;
	if (device->wakes_at > next || device->wakes_at <= clock_now())
		device->wakes_at = next;
	next = device->wakes_at;
	pthread_mutex_unlock(&device->lock);
	return time_left(next);
}

/* --- alarms ----------------------------------------------------------------------------------- */

void ib_alarm_add(struct ib_device *device, struct ib_alarm *alarm,
		  void (*call)(struct ib_alarm *alarm))
{
	pthread_mutex_lock(&device->lock);
	alarm->call = call;
	alarm->next = device->alarms;
	device->alarms = alarm;
	pthread_mutex_unlock(&device->lock);
}

void ib_alarm_remove(struct ib_device *device, struct ib_alarm *alarm)
{
	struct ib_alarm **link = &device->alarms;

	pthread_mutex_lock(&device->lock);
	while (*link != alarm)
		link = &(*link)->next;
	*link = alarm->next;
	while (device->current == alarm && !ib_in_upcall(device))
		pthread_cond_wait(&device->upcall_done, &device->lock);
	pthread_mutex_unlock(&device->lock);
}

void ib_alarm_raise(struct ib_device *device, struct ib_alarm *alarm)
{
	atomic_store(&alarm->raised, true);
	wakefd_raise(&device->wake);
}

static struct ib_alarm *alarm_raised_locked(struct ib_device *device)
{
	struct ib_alarm *alarm;

	for (alarm = device->alarms; alarm; alarm = alarm->next)
		if (atomic_exchange(&alarm->raised, false))
			break;
	return alarm;
}

static void alarms_run(struct ib_device *device)
{
	struct ib_alarm *alarm;

	pthread_mutex_lock(&device->lock);
	while ((alarm = alarm_raised_locked(device))) {
		device->current = alarm;
		pthread_mutex_unlock(&device->lock);
		alarm->call(alarm);
		pthread_mutex_lock(&device->lock);
		device->current = NULL;
		pthread_cond_broadcast(&device->upcall_done);
	}
	pthread_mutex_unlock(&device->lock);
}

/* --- registered completion queues ------------------------------------------------------------ */

static struct ib_cq_tag *tag_acquire(struct ib_device *device, struct ib_cq *cq)
{
	struct ib_cq_tag *tag;

	pthread_mutex_lock(&device->lock);
	tag = SLIST_FIRST(&device->free_tags);
	if (tag)
		SLIST_REMOVE_HEAD(&device->free_tags, entry);
	else
		tag = calloc(1, sizeof(*tag));
	if (tag)
		tag->cq = cq;
	pthread_mutex_unlock(&device->lock);
	return tag;
}

static void tag_release(struct ib_device *device, struct ib_cq_tag *tag, const struct ib_cq *cq)
{
	pthread_mutex_lock(&device->lock);
	tag->cq = NULL;
	while (device->current == cq && !ib_in_upcall(device))
		pthread_cond_wait(&device->upcall_done, &device->lock);
	SLIST_INSERT_HEAD(&device->free_tags, tag, entry);
	pthread_mutex_unlock(&device->lock);
}

DAT_RETURN ib_cq_register(struct ib_cq *cq)
{
	struct ib_device *device = cq->device;
	struct ib_cq_tag *tag = tag_acquire(device, cq);
	struct epoll_event event = { .events = EPOLLIN, .data.ptr = tag };

	if (!tag)
		return DAT_ERROR(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_MEMORY);
	if (epoll_ctl(device->epoll, EPOLL_CTL_ADD, cq->channel->fd, &event)) {
		ib_error(errno, "epoll_ctl", "completion channel");
		tag_release(device, tag, cq);
		return DAT_ERROR(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_MEMORY);
	}
	cq->tag = tag;
	return DAT_SUCCESS;
}

void ib_cq_unregister(struct ib_cq *cq)
{
	struct ib_device *device = cq->device;

	if (!cq->tag)
		return;
	if (epoll_ctl(device->epoll, EPOLL_CTL_DEL, cq->channel->fd, NULL))
		ib_error(errno, "epoll_ctl", "completion channel");
	tag_release(device, cq->tag, cq);
	cq->tag = NULL;
}

static void tag_read(struct ib_device *device, struct ib_cq_tag *tag)
{
	struct ib_cq *cq;

	pthread_mutex_lock(&device->lock);
	cq = tag->cq;
	device->current = cq;
	pthread_mutex_unlock(&device->lock);
	if (!cq)
		return;
	if (ib_cq_collect(cq))
		device->upcalls.completion(cq->owner);
	upcall_end(device);
}

static void tags_free(struct ib_device *device)
{
	struct ib_cq_tag *tag;

	while ((tag = SLIST_FIRST(&device->free_tags))) {
		SLIST_REMOVE_HEAD(&device->free_tags, entry);
		free(tag);
	}
}

static void woken(struct ib_device *device)
{
	wakefd_clear(&device->wake);
	alarms_run(device);
}

/* --- the thread ----------------------------------------------------------------------------- */

static void ready_serve(struct ib_device *device, void *tag)
{
	if (tag == device->channel && reader_has_channel(device))
		return;
	if (tag == device->channel)
		conn_read_channel(device);
	else if (tag == device->verbs)
		async_read(device);
	else if (tag == &device->wake)
		woken(device);
	else
		tag_read(device, tag);
}

static void *events_run(void *arg)
{
	struct ib_device *device = arg;
	struct epoll_event ready[4];
	int i, n, left;

	upcalls_turn(device);
	/* relaxed: the write to the descriptor of `wake` orders it */
	while (!atomic_load_explicit(&device->stopping, memory_order_relaxed)) {
		left = events_timers_run(device);
		upcalls_over(device);
		n = epoll_wait(device->epoll, ready, 4, left);
		if (n < 0 && errno != EINTR) {
			ib_error(errno, "epoll_wait", device->attr.device_name);
			return NULL;
		}
		upcalls_turn(device);
		for (i = 0; i < n; i++)
			ready_serve(device, ready[i].data.ptr);
	}
	upcalls_over(device);
	return NULL;
}

static int event_source_add(struct ib_device *device, int fd, void *tag)
{
	struct epoll_event event = { .events = EPOLLIN, .data.ptr = tag };

	return fd < 0 || epoll_ctl(device->epoll, EPOLL_CTL_ADD, fd, &event) ? errno : 0;
}

/* The event thread blocks all signals: the consumer's handlers must not run in it. */
static int start_thread(struct ib_device *device)
{
	sigset_t all, old;
	int error;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	error = pthread_create(&device->thread, NULL, events_run, device);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (!error)
		pthread_setname_np(device->thread, "dapl events");
	return error;
}

DAT_RETURN events_start(struct ib_device *device)
{
	int error;

	device->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (device->epoll < 0)
		return ib_error(errno, "epoll_create1", device->attr.device_name);
	error = event_source_add(device, device->channel->fd, device->channel);
	if (!error)
		error = event_source_add(device, device->verbs->async_fd, device->verbs);
	if (!error)
		error = event_source_add(device, wakefd_get(&device->wake), &device->wake);
	if (!error)
		error = start_thread(device);
	if (!error)
		return DAT_SUCCESS;
	close(device->epoll);
	device->epoll = -1;
	return ib_error(error, "event thread", device->attr.device_name);
}

void events_stop(struct ib_device *device)
{
	int error;

	atomic_store(&device->stopping, true);
	wakefd_raise(&device->wake);
	error = pthread_join(device->thread, NULL);
	if (error)
		ib_error(error, "pthread_join", device->attr.device_name);
	close(device->epoll);
	tags_free(device);
}
