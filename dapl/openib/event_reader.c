/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * Decides which thread reads CM events: the event thread, or in its place the reader, a thread that waits for the
 * outcome of those events or has just started the operation that causes them. A reader saves the wake-up of the event
 * thread, which would only wake the waiter.
 *
 * A reader may be delayed by consumer code in a signal handler, and connections must not wait for that. So the event
 * thread polls the channel CHECK_AFTER after an event. If the channel still has events, the event thread reads them
 * itself until the reader calls ib_cm_read() again. Only events that come of what the reader does itself, its calls and
 * rdma_progress, may wait for it. This wakes the event thread at most once in CHECK_AFTER, and never while no event
 * arrives.
 *
 * A server, or a client that makes many connections, reads again as soon as it has handled an event. The channel stays
 * with such a thread in between, since each event would wake the event thread. The event thread takes the channel back
 * STAY after the last return. A thread that waits for CM events and does not read them would get them that much later;
 * so the channel stays with no thread while there is one.
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
#define STAY	    NSEC_PER_MSEC

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

static void events_hold(struct ib_device *device)
{
	if (rdma_hold_events)
		rdma_hold_events(device->channel);
}

static void events_unhold(void)
{
	if (rdma_unhold_events)
		rdma_unhold_events();
}

int ib_cm_begin_progress(void)
{
	return rdma_begin_progress ? rdma_begin_progress() : -1;
}

bool ib_cm_progresses(void)
{
	return rdma_progresses && rdma_progresses();
}

int ib_cm_acquire(struct ib_device *device)
{
	int fd = -1;

	if (ib_in_upcall(device))
		return -1;
	pthread_mutex_lock(&device->lock);
	if (!device->read_elsewhere &&
	    (device->reader_stays || !channel_hand_over_locked(device))) {
		device->read_elsewhere = true;
		fd = device->channel->fd;
	}
	pthread_mutex_unlock(&device->lock);
	if (fd >= 0)
		events_hold(device);
	return fd;
}

/* Takes the channel from a reader that has left it or leaves events unread; one that waits keeps it. */
static void channel_check_locked(struct ib_device *device)
{
	struct pollfd fd = { .fd = device->channel->fd, .events = POLLIN };

	if (!device->read_elsewhere) {
		channel_listen(device, EPOLLIN);
	} else if (poll(&fd, 1, 0) > 0) {
		device->reader_away = true;
		channel_listen(device, EPOLLIN);
	} else {
		channel_hand_over_locked(device);
	}
}

/* The call of the `check` timer, in the event thread. */
static void reader_check(struct ib_timer *timer)
{
	struct ib_device *device =
		(struct ib_device *)((char *)timer - offsetof(struct ib_device, check));
	uint64_t end;

	pthread_mutex_lock(&device->lock);
	end = device->reader_returned + STAY;
	device->reader_stays = device->reader_stays && end > clock_now();
	device->check_armed = device->reader_stays;
	if (device->reader_stays)
		events_timer_arm_locked(device, timer, end, reader_check);
	else
		channel_check_locked(device);
	pthread_mutex_unlock(&device->lock);
}

/* True if a reader returned less than STAY ago, and no other thread depends on what this one leaves unread. */
static bool stays_locked(struct ib_device *device, uint64_t now)
{
	return now - device->reader_returned < STAY && !device->reader_away &&
	       !device->reader_shared && !device->reader_waiters;
}

void ib_cm_release(struct ib_device *device)
{
	uint64_t now = clock_now();
	bool sooner = false, stays;

	events_unhold();
	pthread_mutex_lock(&device->lock);
	device->read_elsewhere = false;
	if (!device->reader_stays && stays_locked(device, now)) {
		device->reader_stays = device->check_armed = true;
		sooner = events_timer_arm_locked(device, &device->check, now + STAY, reader_check);
	}
	device->reader_returned = now;
	stays = device->reader_stays;
	if (!stays)
		channel_listen(device, EPOLLIN);
	pthread_mutex_unlock(&device->lock);
	if (rdma_end_progress)
		rdma_end_progress(stays);
	if (sooner)
		wakefd_raise(&device->wake);
}

static void stay_end_locked(struct ib_device *device)
{
	if (device->reader_stays && !device->read_elsewhere)
		channel_listen(device, EPOLLIN);
	device->reader_stays = false;
}

void ib_cm_await(struct ib_device *device)
{
	pthread_mutex_lock(&device->lock);
	device->reader_waiters++;
	stay_end_locked(device);
	pthread_mutex_unlock(&device->lock);
}

void ib_cm_unawait(struct ib_device *device)
{
	pthread_mutex_lock(&device->lock);
	device->reader_waiters--;
	pthread_mutex_unlock(&device->lock);
}

void ib_cm_share(struct ib_device *device)
{
	pthread_mutex_lock(&device->lock);
	device->reader_shared = true;
	stay_end_locked(device);
	pthread_mutex_unlock(&device->lock);
}

bool reader_has_channel(struct ib_device *device)
{
	bool has;

	pthread_mutex_lock(&device->lock);
	has = (device->read_elsewhere || device->reader_stays) && !device->reader_away;
	if (has && !device->check_armed) {
		device->check_armed = true;
		events_timer_arm_locked(device, &device->check, clock_now() + CHECK_AFTER,
					reader_check);
	}
	pthread_mutex_unlock(&device->lock);
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
		events_hold(device);
		if (rdma_progress)
			rdma_progress();
		conn_read_channel(device);
		events_unhold();
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
