/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * Identifiers: making and destroying them, their numbers, and the lock of the connection manager.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "softverbs/cancel.h"
#include "softverbs/cm.h"
#include "softverbs/cm_fork.h"
#include "softverbs/sv.h"
#include "util/log.h"

#define INDEX_BITS 20
#define INDEX_MASK ((1u << INDEX_BITS) - 1)

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* number = generation:12 | index:20. An index returns to use after all the free ones before it. */
struct number {
	struct cm_id *id;
	uint32_t next_free;
};

static struct { /* lock */
	struct number *table;
	uint32_t size, first_free, last_free; /* index 0 is nobody's and ends the free list */
	uint32_t generation;
	unsigned ids; /* that programs own */
} numbers;

static _Thread_local int cancel_before;

void cm_lock(void)
{
	int before = cancel_off();

	pthread_mutex_lock(&lock);
	cancel_before = before;
}

void cm_unlock(void)
{
	struct cm_channel *channel = token_due_locked();

	pthread_mutex_unlock(&lock);
	if (channel)
		token_write(channel);
	cancel_restore(cancel_before);
}

void cm_wait(pthread_cond_t *cond)
{
	token_write_locked();
	pthread_cond_wait(cond, &lock);
}

int cm_fail(int error)
{
	errno = error;
	return -1;
}

bool id_is_ours(const struct cm_id *id)
{
	return *id->alive;
}

enum cm_state id_state(const struct cm_id *id)
{
	enum cm_state state;

	cm_lock();
	state = id->state;
	cm_unlock();
	return state;
}

/* ---- numbers ---- */

static void number_give_locked(uint32_t index)
{
	numbers.table[index].id = NULL;
	numbers.table[index].next_free = 0;
	if (numbers.first_free)
		numbers.table[numbers.last_free].next_free = index;
	else
		numbers.first_free = index;
	numbers.last_free = index;
}

static int numbers_grow_locked(void)
{
	uint32_t size = numbers.size ? numbers.size * 2 : 64,
		 index = numbers.size ? numbers.size : 1;
	struct number *table;

	if (size > INDEX_MASK + 1)
		return ENOMEM;
	table = realloc(numbers.table, size * sizeof(*table));
	if (!table)
		return ENOMEM;
	memset(table + numbers.size, 0, (size - numbers.size) * sizeof(*table));
	numbers.table = table;
	numbers.size = size;
	for (; index < size; index++)
		number_give_locked(index);
	return 0;
}

int id_number_locked(struct cm_id *id)
{
	int error = numbers.first_free ? 0 : numbers_grow_locked();
	uint32_t index;

	if (error)
		return error;
	index = numbers.first_free;
	numbers.first_free = numbers.table[index].next_free;
	numbers.table[index].id = id;
	id->number = ++numbers.generation << INDEX_BITS | index;
	return 0;
}

void id_unnumber_locked(struct cm_id *id)
{
	if (id->number)
		number_give_locked(id->number & INDEX_MASK);
	id->number = 0;
}

struct cm_id *id_by_number_locked(uint32_t number)
{
	uint32_t index = number & INDEX_MASK;
	struct cm_id *id = index < numbers.size ? numbers.table[index].id : NULL;

	return id && id->number == number ? id : NULL;
}

struct cm_id *id_next_locked(uint32_t *cursor)
{
	while (*cursor < numbers.size) {
		struct cm_id *id = numbers.table[(*cursor)++].id;

		if (id)
			return id;
	}
	return NULL;
}

/* ---- making and freeing ---- */

struct cm_id *id_new(struct cm_channel *channel, void *context, enum rdma_port_space space)
{
	struct cm_id *id = calloc(1, sizeof(*id));

	if (!id)
		return NULL;
	id->id.channel = &channel->channel;
	id->id.context = context;
	id->id.ps = space;
	id->id.qp_type = space == RDMA_PS_TCP ? IBV_QPT_RC : IBV_QPT_UD;
	id->alive = channel->alive;
	pthread_cond_init(&id->all_acked, NULL);
	TAILQ_INIT(&id->parked);
	TAILQ_INIT(&id->reserve);
	if (event_reserve(id)) {
		id_free(id);
		return NULL;
	}
	return id;
}

int id_own(struct cm_id *id)
{
	int error = cm_device_hold();

	if (error)
		return error;
	id->owned = true;
	cm_lock();
	numbers.ids++;
	cm_unlock();
	return 0;
}

static void disown(void)
{
	cm_lock();
	if (!--numbers.ids) {
		port_idle_locked();
		free(numbers.table);
		numbers.table = NULL;
		numbers.size = numbers.first_free = 0;
	}
	cm_unlock();
	cm_device_release();
}

void id_free(struct cm_id *id)
{
	engine_timer_cancel(&id->timer);
	if (id->peer)
		peer_put(id->peer);
	cm_device_unbind(id);
	if (id->owned)
		disown();
	event_unreserve(id);
	pthread_cond_destroy(&id->all_acked);
	free(id->request);
	free(id->ep_attr);
	free(id);
}

/* ---- calls ---- */

int rdma_create_id(struct rdma_event_channel *channel, struct rdma_cm_id **out, void *context,
		   enum rdma_port_space space)
{
	struct rdma_event_channel *own = NULL;
	struct cm_id *id;
	int error;

	if (space != RDMA_PS_TCP && space != RDMA_PS_UDP)
		return cm_fail(EINVAL);
	if (channel && !channel_is_ours(channel))
		return cm_fail(ENODEV);
	if (!channel) {
		own = rdma_create_event_channel();
		if (!own)
			return -1;
	}
	id = id_new((struct cm_channel *)(void *)(channel ? channel : own), context, space);
	error = id ? id_own(id) : ENOMEM;
	if (error) {
		if (id)
			id_free(id);
		if (own)
			rdma_destroy_event_channel(own);
		return cm_fail(error);
	}
	id->sync = own;
	*out = &id->id;
	return 0;
}

/*
 * Nobody but the caller knows the identifier after this, except events that the program has not
 * acknowledged.
 */
int rdma_destroy_id(struct rdma_cm_id *public)
{
	struct cm_id *id = cm_id_of(public);
	struct rdma_event_channel *own = id->sync ? public->channel : NULL;

	if (!id_is_ours(id))
		return cm_fail(ENODEV);
	if (public->event)
		rdma_ack_cm_event(public->event);
	cm_lock();
	abandon_locked(id);
	event_discard_locked(id);
	while (id->acked != id->delivered)
		cm_wait(&id->all_acked);
	cm_unlock();
	id_free(id);
	if (own)
		rdma_destroy_event_channel(own);
	return 0;
}

/* Without a channel the identifier gets one of its own, and calls wait for their event. */
int rdma_migrate_id(struct rdma_cm_id *public, struct rdma_event_channel *channel)
{
	struct cm_id *id = cm_id_of(public);
	struct rdma_event_channel *old = public->channel, *own = NULL;
	bool old_is_own = id->sync;
	unsigned fetched;

	if (!id_is_ours(id) || (channel && !channel_is_ours(channel)))
		return cm_fail(ENODEV);
	if (!channel) {
		own = rdma_create_event_channel();
		if (!own)
			return -1;
	}
	if (old_is_own && public->event) {
		rdma_ack_cm_event(public->event);
		public->event = NULL;
	}
	cm_lock();
	event_move_locked(id, (struct cm_channel *)(void *)(channel ? channel : own));
	public->channel = channel ? channel : own;
	id->sync = own;
	fetched = id->delivered; /* from the old one; later ones come from the new */
	while ((int)(id->acked - fetched) < 0)
		cm_wait(&id->all_acked);
	cm_unlock();
	if (old_is_own)
		rdma_destroy_event_channel(old);
	return 0;
}

/* ---- fork ---- */

void cm_fork_prepare(void)
{
	cm_lock();
}

void cm_fork_parent(void)
{
	cm_unlock();
}

/* The identifiers stay in the program's memory; each refuses every call. */
void cm_fork_child(void)
{
	port_fork_child();
	token_forget_promises();
	free(numbers.table);
	memset(&numbers, 0, sizeof(numbers));
	cm_unlock();
}
