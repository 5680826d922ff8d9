/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Type-stable pools: one for each kind of object; slots are found by index without a lock. */
#include <assert.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include "dapl/udapl/base/ia.h"
#include "dapl/udapl/base/provider.h"

/* Chunk k holds CHUNK_FIRST << k slots, so the highest bit of an index selects its chunk. */
#define CHUNK_FIRST_BITS 4
#define CHUNK_FIRST	 (1u << CHUNK_FIRST_BITS)
#define CHUNKS		 (OBJ_INDEX_BITS - CHUNK_FIRST_BITS)
/*
 * This many other slots are freed before a slot is reused: a thread that has just checked a handle
 * finishes before its slot holds another object.
 */
#define DEAD_LEAST 1024u

struct pool {
	size_t size;			/* of a slot; 0 before obj_pool_open */
	size_t keep;			/* bytes that are kept when the slot is reused */
	_Atomic(char *) chunks[CHUNKS]; /* from the first cache line of `memory` on */
	void *memory[CHUNKS];
	pthread_mutex_t lock;	 /* guards all below; no other lock is acquired inside it */
	uint32_t used;		 /* number of slots that were ever used */
	uint32_t end;		 /* number of slots in chunks */
	TAILQ_HEAD(, obj) queue; /* freed slots, the one that was freed first at the head */
	uint32_t dead;		 /* number of slots in the queue */
};

static struct pool pools[OBJ_KINDS];

void obj_pool_open(enum obj_kind kind, size_t size, size_t keep)
{
	struct pool *pool = &pools[kind];

	pool->size = (size + OBJ_LINE - 1) & ~(size_t)(OBJ_LINE - 1);
	pool->keep = keep;
	pthread_mutex_init(&pool->lock, NULL);
	TAILQ_INIT(&pool->queue);
}

void obj_fork_prepare(void)
{
	struct pool *pool;

	for (pool = pools; pool < pools + OBJ_KINDS; pool++)
		pthread_mutex_lock(&pool->lock);
}

void obj_fork_end(void)
{
	struct pool *pool;

	for (pool = pools; pool < pools + OBJ_KINDS; pool++)
		pthread_mutex_unlock(&pool->lock);
}

static unsigned chunk_of(uint32_t index)
{
	return 31u - (unsigned)__builtin_clz(index + CHUNK_FIRST) - CHUNK_FIRST_BITS;
}

static struct obj *obj_slot_at(struct pool *pool, uint32_t index)
{
	unsigned k = chunk_of(index);
	char *chunk = NULL;

	if (k < CHUNKS)
		/* acquire: a thread that knows the index sees the zeroed chunk */
		chunk = atomic_load_explicit(&pool->chunks[k], memory_order_acquire);
	if (!chunk)
		return NULL;
	return (void *)(chunk + (index + CHUNK_FIRST - (CHUNK_FIRST << k)) * pool->size);
}

void *obj_at(enum obj_kind kind, uint32_t index)
{
	return obj_slot_at(&pools[kind], index);
}

static bool obj_grow_locked(struct pool *pool)
{
	unsigned k = chunk_of(pool->end);
	uint32_t count = CHUNK_FIRST << k;
	char *chunk;

	if (k == CHUNKS)
		return false;
	chunk = pool->memory[k] = calloc(count + 1, pool->size);
	if (!chunk)
		return false;
	chunk += -(uintptr_t)chunk % OBJ_LINE;
	/* release: pairs with slot_at */
	atomic_store_explicit(&pool->chunks[k], chunk, memory_order_release);
	pool->end += count;
	return true;
}

/*
 * Unused slots are taken first, then the one that was freed first: a stale handle stays
 * recognisable as long as possible.
 */
static struct obj *slot_acquire(struct pool *pool)
{
	struct obj *obj = NULL;

	pthread_mutex_lock(&pool->lock);
	if (pool->used < pool->end || (pool->dead < DEAD_LEAST && obj_grow_locked(pool))) {
		obj = obj_slot_at(pool, pool->used);
		obj->index = pool->used++;
	} else if (pool->dead) {
		obj = TAILQ_FIRST(&pool->queue);
		TAILQ_REMOVE(&pool->queue, obj, link);
		pool->dead--;
	}
	pthread_mutex_unlock(&pool->lock);
	return obj;
}

void *obj_new(struct dapl_ia *ia, enum obj_kind kind)
{
	struct pool *pool = &pools[kind];
	struct obj *obj;

	assert(pool->size);
	obj = slot_acquire(pool);
	if (!obj)
		return NULL;
	memset((char *)obj + pool->keep, 0, pool->size - pool->keep);
	obj_next_generation(obj);
	atomic_store_explicit(&obj->users, 0, memory_order_relaxed);
	obj->context.as_64 = 0;
	obj->ia = ia;
	if (ia) {
		ia_count(ia, DCNT_IA_MEM_ALLOC);
		counter_add(&ia->counters.value[DCNT_IA_MEM_ALLOC_DATA], pool->size);
	}
	/*
	 * A slot's provider word is never cleared, because libdat reads it through stale handles,
	 * too.
	 */
	if (ia && obj->provider != ia->obj.provider)
		obj->provider = ia->obj.provider;
	return obj;
}

/* The counters of creation and free. Service points count themselves (sp/sp.c). */
static const struct {
	bool counted;
	DAT_IA_COUNTERS created, freed;
} counted_as[OBJ_KINDS] = {
	[OBJ_PZ] = { true, DCNT_IA_PZ_CREATE, DCNT_IA_PZ_FREE },
	[OBJ_LMR] = { true, DCNT_IA_LMR_CREATE, DCNT_IA_LMR_FREE },
	[OBJ_RMR] = { true, DCNT_IA_RMR_CREATE, DCNT_IA_RMR_FREE },
	[OBJ_EVD] = { true, DCNT_IA_EVD_CREATE, DCNT_IA_EVD_FREE },
	[OBJ_EP] = { true, DCNT_IA_EP_CREATE, DCNT_IA_EP_FREE },
	[OBJ_SRQ] = { true, DCNT_IA_SRQ_CREATE, DCNT_IA_SRQ_FREE },
};

void obj_publish(struct obj *obj, enum obj_kind kind)
{
	if (obj->ia && counted_as[kind].counted)
		ia_count(obj->ia, counted_as[kind].created);
	if (obj->ia) {
		pthread_mutex_lock(&obj->ia->lock);
		TAILQ_INSERT_TAIL(&obj->ia->objects[kind], obj, link);
		pthread_mutex_unlock(&obj->ia->lock);
	}
	/* release: pairs with obj_from */
	atomic_store_explicit(&obj->kind, kind, memory_order_release);
}

void obj_hide(struct obj *obj, enum obj_kind kind)
{
	if (atomic_load_explicit(&obj->kind, memory_order_relaxed) == OBJ_FREE)
		return;
	/* release: nothing of the object's destruction moves before its handle is invalid */
	atomic_store_explicit(&obj->kind, OBJ_FREE, memory_order_release);
	if (obj->ia && counted_as[kind].counted)
		ia_count(obj->ia, counted_as[kind].freed);
	if (obj->ia) {
		pthread_mutex_lock(&obj->ia->lock);
		TAILQ_REMOVE(&obj->ia->objects[kind], obj, link);
		pthread_mutex_unlock(&obj->ia->lock);
	}
}

void obj_free(struct obj *obj, enum obj_kind kind)
{
	struct pool *pool = &pools[kind];

	obj_hide(obj, kind);
	if (obj->ia)
		ia_count(obj->ia, DCNT_IA_MEM_FREE);
	pthread_mutex_lock(&pool->lock);
	TAILQ_INSERT_TAIL(&pool->queue, obj, link);
	pool->dead++;
	pthread_mutex_unlock(&pool->lock);
}

void obj_wait_unused(const struct obj *obj)
{
	/* acquire: the effects of those calls are seen */
	while (atomic_load_explicit(&obj->users, memory_order_acquire) != OBJ_RETIRED)
		sched_yield();
}

void obj_pools_free(void)
{
	struct pool *pool;
	unsigned k;

	for (pool = pools; pool < pools + OBJ_KINDS; pool++) {
		for (k = 0; k < CHUNKS; k++) {
			atomic_store(&pool->chunks[k], NULL);
			free(pool->memory[k]);
			pool->memory[k] = NULL;
		}
		pool->used = pool->end = pool->dead = 0;
		TAILQ_INIT(&pool->queue);
	}
}
