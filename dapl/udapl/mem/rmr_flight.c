/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Binds in flight: each holds its window and its LMR until its slot of the send queue retires. */
#include <stdlib.h>
#include "dapl/udapl/ep/ep.h"

/* Held while flights end. It is acquired before an EP's post lock, and after an IA's lock. */
static pthread_mutex_t landing = PTHREAD_MUTEX_INITIALIZER;

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

DAT_RETURN rmr_flights_init(struct rmr_flights *flights, const struct dto_ring *ring)
{
	/*
	 * The list has twice the size of the ring, and room for the two requests of a bind, because
	 * retired flights may still be listed.
	 */
	uint32_t size = ring->mask ? 2 * (ring->mask + 1) : 4;

	*flights = (struct rmr_flights){ .mask = size - 1 };
	if (!ring->depth)
		return DAT_SUCCESS;
	flights->list = calloc(size, sizeof(*flights->list));
	return flights->list ? DAT_SUCCESS
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

void rmr_flights_end(struct rmr_flights *flights)
{
	pthread_mutex_lock(&landing);
	for (; flights->head != flights->tail; flights->head++)
		flight_end(&flights->list[flights->head & flights->mask]);
	pthread_mutex_unlock(&landing);
	free(flights->list);
	flights->list = NULL;
}

void rmr_flight_begin_locked(struct dapl_ep *ep, uint32_t position, struct rmr_window *window,
			     struct dapl_lmr *lmr)
{
	struct rmr_flights *flights = &ep->flights;

	atomic_fetch_add(&window->holders, 1);
	if (lmr)
		obj_hold(&lmr->obj); /* the caller holds a reference, so this cannot fail */
	flights->list[flights->tail & flights->mask] =
		(struct rmr_flight){ .position = position, .window = window, .lmr = lmr };
	flights->tail++;
}

static bool flight_take_landed(struct dapl_ep *ep, struct rmr_flight *flight)
{
	struct rmr_flights *flights = &ep->flights;
	bool landed = false;
	uint32_t retired;

	lock_acquire(&ep->post_lock);
	if (flights->head != flights->tail) {
		*flight = flights->list[flights->head & flights->mask];
		/* acquire: the device is done with the request */
		retired = atomic_load_explicit(&ep->request.retired, memory_order_acquire);
		landed = (int32_t)(retired - flight->position) > 0;
		flights->head += landed;
	}
	/* A window that lost its RMR begins no more flights. */
	if (flights->head == flights->tail)
		atomic_store(&ep->flights_watched, 0);
	lock_release(&ep->post_lock);
	return landed;
}

void rmr_flights_land(struct dapl_ep *ep)
{
	struct rmr_flight flight;

	pthread_mutex_lock(&landing);
	while (flight_take_landed(ep, &flight))
		flight_end(&flight);
	pthread_mutex_unlock(&landing);
}

void rmr_flights_land_all(struct dapl_ia *ia, bool watch)
{
	struct dapl_ep *ep;
	struct obj *obj;

	pthread_mutex_lock(&ia->lock);
	TAILQ_FOREACH(obj, &ia->objects[OBJ_EP], link) {
		ep = (struct dapl_ep *)obj;
		/*
		 * The completion's side also uses an exchange: either this thread sees the retired
		 * slot, or the completion sees the flag.
		 */
		if (watch)
			atomic_exchange(&ep->flights_watched, 1);
		rmr_flights_land(ep);
	}
	pthread_mutex_unlock(&ia->lock);
}

void rmr_flight_landed(struct dapl_ep *ep)
{
	if (atomic_fetch_or(&ep->flights_watched, 0))
		task_post(&ep->task, EP_DUE_FLIGHTS);
}
