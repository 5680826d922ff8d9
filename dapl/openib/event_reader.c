/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * Decides which thread reads CM events: the event thread, or in its place the reader, a thread that waits for the
 * outcome of those events or has just started the operation that causes them. A reader saves the wake-up of the event
 * thread, which would only wake the waiter.
 *
 * A reader may be delayed by consumer code in a signal handler, and connections must not wait for that. So the event
 * thread polls the channel CHECK_AFTER after an event. If the channel still has events, the event thread reads them
 * itself until the reader calls ib_cm_read() again. This wakes the event thread at most once in CHECK_AFTER, and never
 * while no event arrives.
 */
#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <sys/epoll.h>
#include "dapl/openib/openib.h"
#include "util/clock.h"

#define CHECK_AFTER (100 * NSEC_PER_MSEC)

/* The caller holds the device's lock. events 0: the channel does not wake the event thread. */
static int channel_listen(struct ib_device *device, uint32_t events)
{
	struct epoll_event event = { .events = events, .data.ptr = device->channel };

	if (!epoll_ctl(device->epoll, EPOLL_CTL_MOD, device->channel->fd, &event))
		return 0;
	ib_error(errno, "epoll_ctl", device->attr.device_name);
	return -1;
}

/* Leaves the channel to the reader. The first event still wakes the event thread, unless its `check` timer is armed. */
static int channel_hand_over_locked(struct ib_device *device)
{
	device->reader_away = false;
	return channel_listen(device, device->check_armed ? 0 : EPOLLIN | EPOLLONESHOT);
}

int ib_cm_acquire(struct ib_device *device)
{
	int fd = -1;

	if (ib_in_upcall(device))
		return -1;
	pthread_mutex_lock(&device->lock);
	if (!device->read_elsewhere && !channel_hand_over_locked(device)) {
		device->read_elsewhere = true;
		fd = device->channel->fd;
	}
	pthread_mutex_unlock(&device->lock);
	return fd;
}

void ib_cm_release(struct ib_device *device)
{
	pthread_mutex_lock(&device->lock);
	channel_listen(device, EPOLLIN);
	device->read_elsewhere = false;
	pthread_mutex_unlock(&device->lock);
}

/* The call of the `check` timer, in the event thread. */
static void reader_check(struct ib_timer *timer)
{
	struct ib_device *device =
		(struct ib_device *)((char *)timer - offsetof(struct ib_device, check));
	struct pollfd fd = { .fd = device->channel->fd, .events = POLLIN };

	pthread_mutex_lock(&device->lock);
	device->check_armed = false;
	if (device->read_elsewhere && poll(&fd, 1, 0) > 0) {
		device->reader_away = true;
		channel_listen(device, EPOLLIN);
	} else if (device->read_elsewhere) {
		channel_hand_over_locked(device);
	}
	pthread_mutex_unlock(&device->lock);
}

bool reader_has_channel(struct ib_device *device)
{
	bool has, arm;

	pthread_mutex_lock(&device->lock);
	has = device->read_elsewhere && !device->reader_away;
	arm = has && !device->check_armed;
	device->check_armed |= arm;
	pthread_mutex_unlock(&device->lock);
	if (arm)
		ib_timer_arm(device, &device->check, clock_now() + CHECK_AFTER, reader_check);
	return has;
}

static void reader_returns(struct ib_device *device)
{
	pthread_mutex_lock(&device->lock);
	if (device->reader_away)
		channel_hand_over_locked(device);
	pthread_mutex_unlock(&device->lock);
}

/* Blocks signals while it holds `upcalling`, so that no signal handler delays the event thread, which waits for it. */
static bool channel_read(struct ib_device *device)
{
	sigset_t all, old;
	bool reads;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	reads = upcalls_try(device);
	if (reads) {
		reader_returns(device);
		conn_read_channel(device);
		upcalls_over(device);
	}
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return reads;
}

/* Another reader reads all that is there, but an event that comes while it leaves is for the next one. */
bool ib_cm_read(struct ib_device *device)
{
	if (channel_read(device))
		return true;
	if (!upcalls_in_reader(device))
		return false;
	sched_yield();
	return true;
}

/* An event wakes the event thread, too, which may have lost its processor to this thread before it has read the event. */
bool ib_cm_poll(struct ib_device *device)
{
	struct pollfd fd = { .fd = device->channel->fd, .events = POLLIN };

	if (poll(&fd, 1, 0) <= 0)
		return false;
	if (channel_read(device))
		return true;
	sched_yield();
	return false;
}
