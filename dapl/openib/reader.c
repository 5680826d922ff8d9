/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * Who reads the CM's events: the event thread, or in its place a thread that waits for what they
 * bring or has just asked for it, which saves waking one thread to wake another.
 */
#include <errno.h>
#include <sys/epoll.h>
#include "dapl/openib/openib.h"

/* The device's lock is held. Without events the event thread sleeps on, whatever the channel has. */
static int channel_listen(struct ib_device *device, uint32_t events)
{
	struct epoll_event event = { .events = events, .data.ptr = device->channel };

	if (!epoll_ctl(device->epoll, EPOLL_CTL_MOD, device->channel->fd, &event))
		return 0;
	ib_error(errno, "epoll_ctl", device->attr.device_name);
	return -1;
}

int ib_cm_take(struct ib_device *device)
{
	int fd = -1;

	if (ib_in_upcall(device))
		return -1;
	pthread_mutex_lock(&device->lock);
	if (!device->read_elsewhere && !channel_listen(device, 0)) {
		device->read_elsewhere = true;
		fd = device->channel->fd;
	}
	pthread_mutex_unlock(&device->lock);
	return fd;
}

void ib_cm_give(struct ib_device *device)
{
	pthread_mutex_lock(&device->lock);
	channel_listen(device, EPOLLIN);
	device->read_elsewhere = false;
	pthread_mutex_unlock(&device->lock);
}

bool ib_cm_read(struct ib_device *device)
{
	if (!upcalls_try(device))
		return false;
	conn_read_channel(device);
	upcalls_over(device);
	return true;
}
