/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* The table of IA handles. A lookup takes no lock; a call costs two atomic additions. */
#include <stdlib.h>
#include "dat/common/handle.h"

/*
 * A slot is free (0), live, or live and retiring; the lower bits count its users, the calls in progress. Only a live
 * slot that is not retiring gets new users, and only a slot without users is freed.
 */
#define SLOT_LIVE     0x80000000u
#define SLOT_RETIRING 0x40000000u
#define SLOT_USERS    0x3fffffffu

#define CHUNK 64u

static struct ia_slot first_chunk[CHUNK];
static _Atomic(struct ia_slot *) chunks[IA_INDEX_END / CHUNK] = { first_chunk };
static uintptr_t last; /* index last given out; registry lock */

#define NO_PROVIDER ((const DAT_PROVIDER *)(const void *)ia_extended)
_Atomic(const DAT_PROVIDER *) ia_extended[IA_EXTENDED] = { [0 ... IA_EXTENDED - 1] = NO_PROVIDER };
static unsigned extended_next; /* registry lock */

/* NULL beyond the table. Slot 0 is never live: its handle would be DAT_HANDLE_NULL. */
static struct ia_slot *ia_handle_slot_at(uintptr_t index)
{
	struct ia_slot *chunk;

	if (index >= IA_INDEX_END)
		return NULL;
	/* acquire: the zeros of a new chunk */
	chunk = atomic_load_explicit(&chunks[index / CHUNK], memory_order_acquire);
	return chunk ? &chunk[index % CHUNK] : NULL;
}

static bool slot_is_live(const struct ia_slot *slot)
{
	/* acquire: what insert wrote before it made the slot live */
	return atomic_load_explicit(&slot->state, memory_order_acquire) & SLOT_LIVE;
}

/* Round robin, so that a handle that was closed stays invalid as long as possible. */
static uintptr_t free_index_locked(void)
{
	uintptr_t end = 0, i, index;
	struct ia_slot *chunk;

	while (ia_handle_slot_at(end))
		end += CHUNK;
	for (i = 1; i <= end; i++) {
		index = (last + i) % end;
		if (index && !slot_is_live(ia_handle_slot_at(index)))
			return index;
	}
	if (end == IA_INDEX_END)
		return 0;
	chunk = calloc(CHUNK, sizeof(*chunk));
	if (!chunk)
		return 0;
	atomic_store_explicit(&chunks[end / CHUNK], chunk, memory_order_release);
	return end;
}

/* The next live slot after *index, or NULL. */
static struct ia_slot *next_live(uintptr_t *index)
{
	struct ia_slot *slot;

	while ((slot = ia_handle_slot_at(++*index)))
		if (slot_is_live(slot))
			return slot;
	return NULL;
}

/* Entered when an IA is opened, so that an operation in a signal handler needs no lock. */
static void extended_add_locked(const DAT_PROVIDER *provider)
{
	unsigned i;

	if (ia_provider_is_known(provider))
		return;
	i = extended_next++ % IA_EXTENDED;
	atomic_store_explicit(&ia_extended[i], provider, memory_order_relaxed);
}

/* Keeps the entry if another open IA has the same provider. */
static void extended_remove_locked(const struct ia_slot *gone)
{
	const struct ia_slot *slot;
	uintptr_t index = 0;
	unsigned i;

	while ((slot = next_live(&index)))
		if (slot != gone && slot->provider == gone->provider &&
		    slot->extension != DAT_EXTENSION_NONE)
			return;
	for (i = 0; i < IA_EXTENDED; i++)
		if (gone->provider == atomic_load_explicit(&ia_extended[i], memory_order_relaxed))
			atomic_store_explicit(&ia_extended[i], NO_PROVIDER, memory_order_relaxed);
}

bool ia_insert(DAT_IA_HANDLE object, DAT_EXTENSION extension, const struct reg_hold *hold,
	       DAT_IA_HANDLE *handle)
{
	struct ia_slot *slot;
	uintptr_t index;

	reg_lock();
	index = free_index_locked();
	if (index) {
		slot = ia_handle_slot_at(index);
		slot->provider = provider_of(object);
		slot->extension = extension;
		slot->hold = *hold;
		slot->object = object;
		/* release: a thread that finds the slot live sees the fields above */
		atomic_store_explicit(&slot->state, SLOT_LIVE, memory_order_release);
		if (extension != DAT_EXTENSION_NONE && slot->provider->handle_extendedop_func)
			extended_add_locked(slot->provider);
		last = index;
		*handle = (DAT_IA_HANDLE)index;
	}
	reg_unlock();
	return index;
}

static struct ia_slot *slot_hold(struct ia_slot *slot)
{
	unsigned state = atomic_load_explicit(&slot->state, memory_order_relaxed);

	while ((state & (SLOT_LIVE | SLOT_RETIRING)) == SLOT_LIVE) {
		/* acquire: as in slot_is_live */
		if (atomic_compare_exchange_weak_explicit(&slot->state, &state, state + 1,
							  memory_order_acquire,
							  memory_order_relaxed))
			return slot;
	}
	return NULL;
}

struct ia_slot *ia_acquire(DAT_IA_HANDLE handle)
{
	struct ia_slot *slot = ia_handle_slot_at((uintptr_t)handle);

	return slot ? slot_hold(slot) : NULL;
}

void ia_release(struct ia_slot *ia)
{
	/* release: what the call did comes before what the closer does */
	unsigned before = atomic_fetch_sub_explicit(&ia->state, 1, memory_order_release);

	if (before == (SLOT_LIVE | SLOT_RETIRING | 1)) {
		reg_lock();
		reg_wake_locked();
		reg_unlock();
	}
}

struct ia_slot *ia_retire(DAT_IA_HANDLE handle)
{
	struct ia_slot *slot = ia_acquire(handle);
	unsigned before;

	if (!slot)
		return NULL;
	before = atomic_fetch_or_explicit(&slot->state, SLOT_RETIRING, memory_order_relaxed);
	ia_release(slot);
	if (before & SLOT_RETIRING)
		return NULL; /* another thread is closing it */
	reg_lock();
	/* acquire: pairs with the release of ia_release() */
	while (atomic_load_explicit(&slot->state, memory_order_acquire) & SLOT_USERS)
		reg_wait_locked();
	reg_unlock();
	return slot;
}

void ia_revive(struct ia_slot *ia)
{
	atomic_fetch_and_explicit(&ia->state, ~SLOT_RETIRING, memory_order_release);
}

static void slot_clear_locked(struct ia_slot *slot)
{
	extended_remove_locked(slot);
	slot->object = DAT_HANDLE_NULL;
	atomic_store_explicit(&slot->state, 0, memory_order_release);
}

void ia_remove(struct ia_slot *ia)
{
	reg_lock();
	slot_clear_locked(ia);
	reg_unlock();
}

struct ia_slot *ia_acquire_named(const char *name)
{
	struct ia_slot *slot;
	uintptr_t index = 0;

	reg_lock(); /* the lock keeps slots from being freed, and their holds unchanged */
	while ((slot = next_live(&index)))
		if (!strcmp(slot->hold.dr->info.ia_name, name) && slot_hold(slot))
			break;
	reg_unlock();
	return slot;
}

bool ia_provider_extends(const DAT_PROVIDER *provider)
{
	struct ia_slot *slot;
	uintptr_t index = 0;

	if (ia_provider_is_known(provider))
		return true;
	reg_lock();
	while ((slot = next_live(&index)))
		if (slot->provider == provider && slot->extension != DAT_EXTENSION_NONE)
			break;
	if (slot)
		extended_add_locked(provider);
	reg_unlock();
	return slot;
}

bool ia_none_live_locked(void)
{
	uintptr_t index = 0;

	return !next_live(&index);
}

void ia_table_free_locked(void)
{
	size_t i;

	for (i = 1; i < IA_INDEX_END / CHUNK; i++)
		free(atomic_exchange_explicit(&chunks[i], NULL, memory_order_acq_rel));
}

/* Handles of the parent are invalid in the child. */
void ia_fork_locked(void)
{
	struct ia_slot *slot;
	uintptr_t index = 0;

	while ((slot = next_live(&index)))
		slot_clear_locked(slot);
}

DAT_RETURN dats_get_ia_handle(DAT_IA_HANDLE handle, DAT_IA_HANDLE *other)
{
	struct ia_slot *slot = ia_handle_slot_at((uintptr_t)handle);
	DAT_IA_HANDLE object;
	uintptr_t index = 0;

	if (!other)
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
	if (slot) {
		object = slot->object;
		if (!object)
			return bad_handle(DAT_INVALID_HANDLE_IA);
		*other = object;
		return DAT_SUCCESS;
	}
	/* Includes retiring slots: events that a provider delivers while it closes an IA need the IA's handle. */
	while ((slot = next_live(&index))) {
		if (slot->object == handle) {
			*other = (DAT_IA_HANDLE)index;
			return DAT_SUCCESS;
		}
	}
	return bad_handle(DAT_INVALID_HANDLE_IA);
}
