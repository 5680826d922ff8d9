/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Upcalls: who makes them, and how they end before their object does. */
#include "dapl/openib/openib.h"

/*
 * Upcalls are made one at a time, whoever makes them: the event thread, or a thread that reads CM events in its place
 * (reader.c). The latter does not wait for its turn, since in an upcall of the event thread a consumer's agent may run.
 */
static _Thread_local const struct ib_device *upcalls_of; /* whose this thread makes */

void upcalls_turn(struct ib_device *device)
{
	pthread_mutex_lock(&device->upcalling);
	upcalls_of = device;
}

/* Nor in an upcall of another device, which this thread may be in, called by an agent. */
bool upcalls_try(struct ib_device *device)
{
	if (upcalls_of || pthread_mutex_trylock(&device->upcalling))
		return false;
	upcalls_of = device;
	return true;
}

void upcalls_over(struct ib_device *device)
{
	upcalls_of = NULL;
	pthread_mutex_unlock(&device->upcalling);
}

bool ib_in_upcall(const struct ib_device *device)
{
	return upcalls_of == device;
}

/*
 * What keeps an upcall and the end of its object apart: `current` names the object an upcall runs for, `dead` says that
 * no further one may begin, both under the device's lock. Whoever ends an object sets `dead` and waits until it is not
 * `current`; who makes the upcalls does not wait, since the upcall it is in is its own.
 */
bool upcall_begin(struct ib_device *device, const void *object, const bool *dead)
{
	bool alive;

	pthread_mutex_lock(&device->lock);
	alive = !*dead;
	if (alive)
		device->current = object;
	pthread_mutex_unlock(&device->lock);
	return alive;
}

void upcall_end(struct ib_device *device)
{
	pthread_mutex_lock(&device->lock);
	device->current = NULL;
	pthread_cond_broadcast(&device->upcall_done);
	pthread_mutex_unlock(&device->lock);
}

void upcall_forbid(struct ib_device *device, const void *object, bool *dead)
{
	pthread_mutex_lock(&device->lock);
	*dead = true;
	while (device->current == object && !ib_in_upcall(device))
		pthread_cond_wait(&device->upcall_done, &device->lock);
	pthread_mutex_unlock(&device->lock);
}
