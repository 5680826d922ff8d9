/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* The slots of the receives of an SRQ. */
#include "dapl/udapl/evd/dto.h"

static struct dto_pool *pool_at(uint64_t id)
{
	struct obj *srq = obj_at(OBJ_SRQ, dto_id_index(id));

	return srq ? (struct dto_pool *)(srq + 1) : NULL;
}

struct dto_pool *dto_pool_from_id(uint64_t id)
{
	struct dto_pool *pool = pool_at(id);
	const struct obj *srq = (struct obj *)pool - 1;

	/* acquire: pairs with the release in obj_publish */
	if (!pool || atomic_load_explicit(&srq->kind, memory_order_acquire) != OBJ_SRQ ||
	    dto_generation(srq) != dto_id_generation(id) || dto_id_slot(id) >= pool->slots_end)
		return NULL;
	return pool;
}

void dto_pool_ready(uint64_t id)
{
	struct dto_pool *pool = pool_at(id);

	lock_acquire(&pool->lock);
	if (dto_pool_from_id(id))
		pool->ready++;
	lock_release(&pool->lock);
}

void dto_pool_return(uint64_t id, bool was_ready)
{
	struct dto_pool *pool = pool_at(id);

	lock_acquire(&pool->lock);
	if (dto_pool_from_id(id)) {
		pool->free_slots[pool->free_count++] = dto_id_slot(id);
		pool->outstanding--;
		pool->ready -= was_ready;
	}
	lock_release(&pool->lock);
}
