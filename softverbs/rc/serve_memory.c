/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* The owner's side of copies through shared memory: access to its own regions. */
#include <string.h>
#include "softverbs/base/mapped.h"
#include "softverbs/object/mapping.h"
#include "softverbs/object/region.h"
#include "softverbs/rc/memory.h"
#include "softverbs/rc/serve_memory.h"

#define AHEAD (256u << 10) /* bytes: the kernel is asked about that much of a region at once */

static _Atomic(uint8_t) *use_of(uint32_t key)
{
	return &sv_area_own()->use[key >> 16];
}

/* Counts a copy of a region of which nothing is known yet. After some, the engine is to find out. */
static void use_count(struct sv_qp *qp, uint32_t key)
{
	_Atomic(uint8_t) *use = use_of(key);
	uint8_t count = atomic_load_explicit(use, memory_order_relaxed);

	if (count >= REGION_USES || qp->serve.learn)
		return;
	/* another QP may count the same copy; the engine may have stored what it found */
	if (!atomic_compare_exchange_strong_explicit(use, &count, count + 1, memory_order_relaxed,
						     memory_order_relaxed) ||
	    count + 1 < REGION_USES)
		return;
	qp->serve.learn = key;
	if (sv_attention_set(sv_area_own()->by_peers->attention.bounce, qp->index))
		sv_peer_ring(sv_peer_self());
}

void sv_serve_learn_locked(struct sv_qp *qp)
{
	struct area *area = sv_area_own();
	uint32_t key = qp->serve.learn;
	const struct region_entry *region = &area->by_owner->region[key >> 16];
	bool own;

	qp->serve.learn = 0;
	if (!key)
		return;
	pthread_rwlock_rdlock(&area->serve_lock);
	/* acquire: the rest of the entry was written before its key */
	if (atomic_load_explicit(&region->key, memory_order_acquire) == key) {
		own = sv_mapping_is_own(region->addr, region->length);
		atomic_store_explicit(use_of(key), own ? REGION_OWN : REGION_OTHER,
				      memory_order_relaxed);
	}
	pthread_rwlock_unlock(&area->serve_lock);
}

void sv_serve_forget_locked(struct sv_qp *qp)
{
	if (qp->serve.learn)
		atomic_store_explicit(use_of(qp->serve.learn), 0, memory_order_relaxed);
	qp->serve.learn = 0;
}

/*
 * Whether accesses in user mode are safe. Not with the thread sanitizer, which cannot see how the peer's accesses are
 * ordered with them.
 */
static bool is_safe_locked(struct sv_qp *qp, uint32_t key, const struct iovec *at)
{
	const struct region_entry *region = &sv_area_own()->by_owner->region[key >> 16];
	uintptr_t begin = (uintptr_t)at->iov_base, last = region->addr + region->length;

#if defined(__SANITIZE_THREAD__)
	return false;
#endif
	if (atomic_load_explicit(use_of(key), memory_order_relaxed) == REGION_OWN)
		return mapped_covers(&qp->serve.mapped, begin, begin + at->iov_len,
				     last - begin > AHEAD ? begin + AHEAD : last);
	use_count(qp, key);
	return false;
}

bool sv_serve_copy_locked(struct sv_qp *qp, uint32_t key, const struct iovec *at, uint8_t *data,
			  bool write)
{
	if (!is_safe_locked(qp, key, at))
		return sv_memory_copy(at, data, write);
	memcpy(write ? at->iov_base : data, write ? data : at->iov_base, at->iov_len);
	return true;
}

bool sv_serve_write_locked(struct sv_qp *qp, uint32_t key, const struct iovec *at, uint8_t *data)
{
	size_t last = at->iov_len ? memory_polled(at) : 0, body = at->iov_len - last;
	struct iovec first = { at->iov_base, body },
		     unit = { (uint8_t *)at->iov_base + body, last };
	uint64_t value = 0;

	if (!last)
		return true;
	if (!is_safe_locked(qp, key, at))
		return (!body || sv_memory_copy(&first, data, true)) &&
		       sv_memory_store(&unit, data + body);
	memcpy(at->iov_base, data, body);
	memcpy(&value, data + body, last);
	memory_store_unit(unit.iov_base, value, last);
	return true;
}
