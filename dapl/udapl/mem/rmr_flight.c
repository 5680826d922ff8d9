/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Binds in flight: each holds its window and its LMR until its slot of the send queue retires. */
#include <stdlib.h>
#include "dapl/udapl/mem/mem.h"
#include "dapl/udapl/base/provider.h"

/* Held while flights end. It is acquired before an EP's post lock, and after an IA's lock. */
static pthread_mutex_t ending = PTHREAD_MUTEX_INITIALIZER;

void rmr_flights_fork_child(void)
{
	ending = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
}

DAT_RETURN rmr_window_create(struct dapl_pz *pz, bool type2, struct rmr_window **window)
{
	struct rmr_window *new = calloc(1, sizeof(*new));
	DAT_RETURN status;

	if (!new)
		return DAT_ERROR(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_MEMORY);
	status = ib_mw_create(pz->pd, type2, &new->mw);
	if (status != DAT_SUCCESS) {
		free(new);
		return status;
	}
	atomic_init(&new->holders, 1);
	*window = new;
	return DAT_SUCCESS;
}

bool rmr_window_release(struct rmr_window *window)
{
	if (!window)
		return true;
	if (atomic_fetch_sub(&window->holders, 1) != 1)
		return false;
	ib_mw_destroy(window->mw);
	free(window);
	return true;
}

DAT_RETURN rmr_flights_init(struct rmr_flight_list *list, uint32_t size, uint32_t depth)
{
	/*
	 * The list has twice the size of the ring, and room for the two requests of a bind, because
	 * retired flights may still be listed.
	 */
	uint32_t room = size > 1 ? 2 * size : 4;

	*list = (struct rmr_flight_list){ .mask = room - 1 };
	if (!depth)
		return DAT_SUCCESS;
	list->flights = calloc(room, sizeof(*list->flights));
	return list->flights ? DAT_SUCCESS
			     : DAT_ERROR(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_MEMORY);
}

static void flight_end(const struct rmr_flight *flight)
{
	/*
	 * The window is released first, because the device keeps a region to which a window is
	 * bound.
	 */
	rmr_window_release(flight->window);
	if (flight->lmr)
		obj_release(&flight->lmr->obj);
}

void rmr_flights_end(struct rmr_flight_list *list)
{
	pthread_mutex_lock(&ending);
	for (; list->head != list->tail; list->head++)
		flight_end(&list->flights[list->head & list->mask]);
	pthread_mutex_unlock(&ending);
	free(list->flights);
	list->flights = NULL;
}

void rmr_flight_begin_locked(struct rmr_flights *flights, uint32_t position,
			     struct rmr_window *window, struct dapl_lmr *lmr)
{
	struct rmr_flight_list *list = &flights->list;

	atomic_fetch_add(&window->holders, 1);
	if (lmr)
		obj_hold(&lmr->obj); /* the caller holds a reference, so this cannot fail */
	list->flights[list->tail & list->mask] =
		(struct rmr_flight){ .position = position, .window = window, .lmr = lmr };
	list->tail++;
}

static bool flight_claim_landed(struct rmr_flights *flights, struct rmr_flight *flight)
{
	struct rmr_flight_list *list = &flights->list;
	bool landed = false;
	uint32_t retired;

	lock_acquire(flights->lock);
	if (list->head != list->tail) {
		*flight = list->flights[list->head & list->mask];
		/* acquire: the device is done with the request */
		retired = atomic_load_explicit(flights->retired, memory_order_acquire);
		landed = (int32_t)(retired - flight->position) > 0;
		list->head += landed;
	}
	/* A window that lost its RMR begins no more flights. */
	if (list->head == list->tail)
		atomic_store(&flights->task_ends, 0);
	lock_release(flights->lock);
	return landed;
}

void rmr_flights_land(struct rmr_flights *flights)
{
	struct rmr_flight flight;

	pthread_mutex_lock(&ending);
	while (flight_claim_landed(flights, &flight))
		flight_end(&flight);
	pthread_mutex_unlock(&ending);
}

void rmr_flight_landed(struct rmr_flights *flights)
{
	if (atomic_fetch_or(&flights->task_ends, 0))
		task_post(flights->task, flights->due);
}
