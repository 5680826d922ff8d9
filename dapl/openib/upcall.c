/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Upcalls: their serialisation, and the wait for a running upcall before its object is freed. */
#include "dapl/openib/openib.h"
#include "util/lock_check.h"

/*
 * `upcalling` serialises upcalls: those of the event thread, and those of a thread that reads CM events in its place
 * (event_reader.c). The reader never blocks for it, since an upcall of the event thread may run a consumer's agent.
 */
static _Thread_local const struct ib_device
	*upcalls_of; /* the device whose upcalls this thread makes; NULL: none */

void upcalls_turn(struct ib_device *device)
{
	pthread_mutex_lock(&device->upcalling);
	/* relaxed, here and below: a thread that sees the former value asks again, or leaves the events to this one */
	atomic_store_explicit(&device->upcalls_turned, true, memory_order_relaxed);
	upcalls_of = device;
}

/* Fails in an upcall of another device, too: a consumer's agent may call this from one. */
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
	atomic_store_explicit(&device->upcalls_turned, false, memory_order_relaxed);
	pthread_mutex_unlock(&device->upcalling);
}

/* A reader's upcalls run no agent of a consumer, so they end soon. */
bool upcalls_in_reader(const struct ib_device *device)
{
	return !upcalls_of && !atomic_load_explicit(&device->upcalls_turned, memory_order_relaxed);
}

bool ib_in_upcall(const struct ib_device *device)
{
	return upcalls_of == device;
}

/*
 * No object is freed during its upcall. `current` is the object whose upcall runs; `dead` forbids further upcalls of an
 * object; the device's lock guards both. The thread that destroys an object sets `dead` and waits until the object is
 * not `current`. The thread that makes the upcalls does not wait, since it would wait for itself.
 */
bool upcall_begin(struct ib_device *device, const void *object, const bool *dead)
{
	bool alive;

	if (LOCK_CHECKED)
		lock_check_none("an upcall");
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
	if (LOCK_CHECKED)
		lock_check_none("a wait for the end of an upcall");
	pthread_mutex_lock(&device->lock);
	*dead = true;
	while (device->current == object && !ib_in_upcall(device))
		pthread_cond_wait(&device->upcall_done, &device->lock);
	pthread_mutex_unlock(&device->lock);
}
