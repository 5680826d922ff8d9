/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Identifiers: creation and destruction, their numbers, and the lock of the connection manager. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "util/cancel.h"
#include "softverbs/cm/cm.h"
#include "softverbs/object/object.h"
#include "util/log.h"

#define INDEX_BITS 20
#define INDEX_MASK ((1u << INDEX_BITS) - 1)

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* number = generation:12 | index:20. A freed index is reused after all indexes that were free before it. */
struct number {
	struct cm_id *id;
	uint32_t next_free;
};

static struct { /* guarded by `lock` */
	struct number *table;
	uint32_t size, first_free, last_free; /* index 0 is unused and ends the free list */
	uint32_t generation;
	unsigned ids; /* number of identifiers that programs own */
} numbers;

static _Thread_local int cancel_before;

void sv_cm_lock(void)
{
	int before = cancel_off();

	pthread_mutex_lock(&lock);
	cancel_before = before;
}

void sv_cm_unlock(void)
{
	pthread_mutex_unlock(&lock);
	cancel_restore(cancel_before);
}

void sv_cm_wait(pthread_cond_t *cond)
{
	pthread_cond_wait(cond, &lock);
}

int sv_cm_fail(int error)
{
	errno = error;
	return -1;
}

bool sv_cm_id_is_ours(const struct cm_id *id)
{
	return *id->alive;
}

enum cm_state sv_cm_id_state(const struct cm_id *id)
{
	enum cm_state state;

	sv_cm_lock();
	state = id->state;
	sv_cm_unlock();
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

int sv_cm_id_number_locked(struct cm_id *id)
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

void sv_cm_id_unnumber_locked(struct cm_id *id)
{
	if (id->number)
		number_give_locked(id->number & INDEX_MASK);
	id->number = 0;
}

struct cm_id *sv_cm_id_by_number_locked(uint32_t number)
{
	uint32_t index = number & INDEX_MASK;
	struct cm_id *id = index < numbers.size ? numbers.table[index].id : NULL;

	return id && id->number == number ? id : NULL;
}

struct cm_id *sv_cm_id_next_locked(uint32_t *cursor)
{
	while (*cursor < numbers.size) {
		struct cm_id *id = numbers.table[(*cursor)++].id;

		if (id)
			return id;
	}
	return NULL;
}

/* ---- allocate and free ---- */

struct cm_id *sv_cm_id_new(struct cm_channel *channel, void *context, enum rdma_port_space space)
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
	if (sv_cm_event_reserve(id)) {
		sv_cm_id_free(id);
		return NULL;
	}
	return id;
}

int sv_cm_id_own(struct cm_id *id)
{
	int error = sv_cm_device_hold();

	if (error)
		return error;
	id->owned = true;
	sv_cm_lock();
	numbers.ids++;
	sv_cm_unlock();
	return 0;
}

static void disown(void)
{
	sv_cm_lock();
	if (!--numbers.ids) {
		sv_cm_port_idle_locked();
		free(numbers.table);
		numbers.table = NULL;
		numbers.size = numbers.first_free = 0;
	}
	sv_cm_unlock();
	sv_cm_device_release();
}

void sv_cm_id_free(struct cm_id *id)
{
	sv_engine_timer_cancel(&id->timer);
	if (id->peer)
		sv_peer_put(id->peer);
	sv_cm_device_unbind(id);
	if (id->owned)
		disown();
	sv_cm_event_unreserve(id);
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
		return sv_cm_fail(EINVAL);
	if (channel && !sv_cm_channel_is_ours(channel))
		return sv_cm_fail(ENODEV);
	if (!channel) {
		own = rdma_create_event_channel();
		if (!own)
			return -1;
	}
	id = sv_cm_id_new((struct cm_channel *)(void *)(channel ? channel : own), context, space);
	error = id ? sv_cm_id_own(id) : ENOMEM;
	if (error) {
		if (id)
			sv_cm_id_free(id);
		if (own)
			rdma_destroy_event_channel(own);
		return sv_cm_fail(error);
	}
	id->sync = own;
	*out = &id->id;
	return 0;
}

/* Blocks until the program has acknowledged all delivered events, then frees the identifier. */
int rdma_destroy_id(struct rdma_cm_id *public)
{
	struct cm_id *id = cm_id_of(public);
	struct rdma_event_channel *own = id->sync ? public->channel : NULL;

	if (!sv_cm_id_is_ours(id))
		return sv_cm_fail(ENODEV);
	if (public->event)
		rdma_ack_cm_event(public->event);
	sv_cm_lock();
	sv_cm_abandon_locked(id);
	sv_cm_event_discard_locked(id);
	while (id->acked != id->delivered)
		sv_cm_wait(&id->all_acked);
	sv_cm_unlock();
	sv_cm_id_free(id);
	if (own)
		rdma_destroy_event_channel(own);
	return 0;
}

/* Without a channel, the identifier gets one of its own, and calls wait for their event. */
int rdma_migrate_id(struct rdma_cm_id *public, struct rdma_event_channel *channel)
{
	struct cm_id *id = cm_id_of(public);
	struct rdma_event_channel *old = public->channel, *own = NULL;
	bool old_is_own = id->sync;
	unsigned fetched;

	if (!sv_cm_id_is_ours(id) || (channel && !sv_cm_channel_is_ours(channel)))
		return sv_cm_fail(ENODEV);
	if (!channel) {
		own = rdma_create_event_channel();
		if (!own)
			return -1;
	}
	if (old_is_own && public->event) {
		rdma_ack_cm_event(public->event);
		public->event = NULL;
	}
	sv_cm_lock();
	sv_cm_event_move_locked(id, (struct cm_channel *)(void *)(channel ? channel : own));
	public->channel = channel ? channel : own;
	id->sync = own;
	fetched = id->delivered; /* from the old channel; later ones are from the new */
	while ((int)(id->acked - fetched) < 0)
		sv_cm_wait(&id->all_acked);
	sv_cm_unlock();
	if (old_is_own)
		rdma_destroy_event_channel(old);
	return 0;
}

/* ---- fork ---- */

void sv_cm_ids_fork_prepare(void)
{
	sv_cm_lock();
}

void sv_cm_ids_fork_parent(void)
{
	sv_cm_unlock();
}

/* The identifiers remain in the program's memory; each refuses every call. */
void sv_cm_ids_fork_child(void)
{
	sv_cm_port_fork_child();
	free(numbers.table);
	memset(&numbers, 0, sizeof(numbers));
	sv_cm_unlock();
}
