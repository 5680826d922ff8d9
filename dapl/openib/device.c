/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Opens and closes devices: one reference-counted struct for each address. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "dapl/openib/openib.h"

/* Lock order: before a device's lock. Held while opening, so that concurrent opens of one address get one device. */
static pthread_mutex_t devices_lock = PTHREAD_MUTEX_INITIALIZER;
static LIST_HEAD(, ib_device) devices = LIST_HEAD_INITIALIZER(devices);

/* The child must not use the parent's devices: their event threads do not exist in it. */
void ib_fork_child(void)
{
	devices_lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
	LIST_INIT(&devices);
}

static bool device_same_address(const struct sockaddr_storage *a, const struct sockaddr_storage *b)
{
	const struct sockaddr_in6 *a6 = (const void *)a, *b6 = (const void *)b;
	const struct sockaddr_in *a4 = (const void *)a, *b4 = (const void *)b;

	if (a->ss_family != b->ss_family)
		return false;
	if (a->ss_family == AF_INET6)
		return a6->sin6_scope_id == b6->sin6_scope_id &&
		       !memcmp(&a6->sin6_addr, &b6->sin6_addr, sizeof(a6->sin6_addr));
	return a4->sin_addr.s_addr == b4->sin_addr.s_addr;
}

static bool same_place(const struct ib_place *a, const struct ib_place *b)
{
	return device_same_address(&a->address, &b->address) && !strcmp(a->device, b->device) &&
	       a->port == b->port;
}

static int set_nonblocking(int fd)
{
	int flags = fcntl(fd, F_GETFL);

	return flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0 ? errno : 0;
}

/* Any errno but a shortage means that the address belongs to no device. */
static DAT_RETURN no_device(int error)
{
	if (error_is_shortage(error))
		return DAT_ERROR(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_DEVICE);
	return error == ENODEV ? ib_cm.unknown : DAT_ERROR(DAT_INVALID_ADDRESS, 0);
}

/* Finds the device of the address: the CM sets it when an id is bound to the address. */
static DAT_RETURN find_verbs(struct ib_device *device)
{
	struct sockaddr *address = (struct sockaddr *)&device->address;
	int error;

	device->channel = rdma_create_event_channel();
	if (!device->channel) {
		error = errno; /* may mean that this kernel has no RDMA stack */
		ib_error(error, "rdma_create_event_channel", "CM");
		return no_device(error);
	}
	error = ib_cm.attach ? ib_cm.attach(device->channel, &device->place) : 0;
	if (error)
		return no_device(error);
	if (rdma_create_id(device->channel, &device->bound, NULL, RDMA_PS_TCP)) {
		ib_error(errno, "rdma_create_id", "CM");
		return DAT_ERROR(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_DEVICE);
	}
	error = rdma_bind_addr(device->bound, address) ? errno : 0;
	if (!error && !device->bound->verbs)
		error = ENODEV;
	if (error) {
		ib_error(error, "rdma_bind_addr", "local address");
		return no_device(error);
	}
	if (ib_cm.attach) /* the CM may have assigned the address */
		memcpy(&device->address, rdma_get_local_addr(device->bound),
		       sockaddr_size(rdma_get_local_addr(device->bound)));
	device->verbs = ibv_open_device(device->bound->verbs->device);
	if (!device->verbs) {
		ib_error(errno, "ibv_open_device",
			 ibv_get_device_name(device->bound->verbs->device));
		return DAT_ERROR(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_DEVICE);
	}
	error = set_nonblocking(device->channel->fd);
	if (!error)
		error = set_nonblocking(device->verbs->async_fd);
	if (!error)
		error = attr_read(device, device->bound->port_num);
	return error ? ib_error(error, "open", "device") : DAT_SUCCESS;
}

/* Accepts a partly initialised device. */
static void device_destroy(struct ib_device *device)
{
	if (device->epoll >= 0)
		events_stop(device);
	conn_drain_drop(device);
	if (device->verbs && ibv_close_device(device->verbs))
		ib_error(errno, "ibv_close_device", device->attr.device_name);
	if (device->bound && rdma_destroy_id(device->bound))
		ib_error(errno, "rdma_destroy_id", device->attr.device_name);
	if (device->channel)
		rdma_destroy_event_channel(device->channel);
	wakefd_close(&device->wake);
	pthread_cond_destroy(&device->left);
	pthread_cond_destroy(&device->upcall_done);
	pthread_mutex_destroy(&device->upcalling);
	pthread_mutex_destroy(&device->lock);
	free(device);
}

static DAT_RETURN device_create(const struct ib_place *place, const struct ib_upcalls *upcalls,
				struct ib_device **device)
{
	struct ib_device *new = calloc(1, sizeof(*new));
	pthread_condattr_t monotonic;
	DAT_RETURN status;

	if (!new)
		return DAT_ERROR(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_MEMORY);
	new->epoll = -1;
	new->place = *place;
	new->address = place->address;
	new->upcalls = *upcalls;
	pthread_mutex_init(&new->lock, NULL);
	pthread_mutex_init(&new->upcalling, NULL);
	pthread_cond_init(&new->upcall_done, NULL);
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&new->left, &monotonic);
	pthread_condattr_destroy(&monotonic);
	LIST_INIT(&new->draining);
	status = find_verbs(new);
	if (status == DAT_SUCCESS)
		status = events_start(new);
	if (status != DAT_SUCCESS) {
		device_destroy(new);
		return status;
	}
	*device = new;
	return DAT_SUCCESS;
}

DAT_RETURN ib_device_open(const char *params, const struct ib_upcalls *upcalls,
			  struct ib_device **device)
{
	struct ib_place place = { .port = 0 };
	DAT_RETURN status = DAT_SUCCESS;
	struct ib_device *found;
	int error = ib_cm.find(params, &place);

	if (error)
		return no_device(error);
	pthread_mutex_lock(&devices_lock);
	LIST_FOREACH(found, &devices, entry)
		if (same_place(&found->place, &place))
			break;
	if (!found) {
		status = device_create(&place, upcalls, &found);
		if (status == DAT_SUCCESS)
			LIST_INSERT_HEAD(&devices, found, entry);
	}
	if (status == DAT_SUCCESS) {
		found->opens++;
		*device = found;
	}
	pthread_mutex_unlock(&devices_lock);
	return status;
}

bool device_is_opened_once(const struct ib_device *device)
{
	bool once;

	pthread_mutex_lock(&devices_lock);
	once = device->opens == 1;
	pthread_mutex_unlock(&devices_lock);
	return once;
}

void ib_device_close(struct ib_device *device)
{
	if (!device)
		return;
	pthread_mutex_lock(&devices_lock);
	if (!--device->opens) {
		LIST_REMOVE(device, entry);
		device_destroy(device);
	}
	pthread_mutex_unlock(&devices_lock);
}

const struct ib_attr *ib_device_attr(const struct ib_device *device)
{
	return &device->attr;
}

const struct sockaddr *ib_device_address(const struct ib_device *device)
{
	return (const struct sockaddr *)&device->address;
}
