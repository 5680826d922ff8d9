/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * Room `base`: what every object of DAT is, and what all rooms need.
 *
 * This header has the common part of an object: handle, kind, references, IA. A consumer's handle may have any value:
 * obj_from checks it, and may read the slot of an object that is gone, because slots stay allocated until the provider is
 * unloaded (obj.c). An object is not freed while others use it (`users`).
 * ia.h is the IA as other rooms see it, wait.h the loop of all waits, task.h work left to the event thread, upward.h the calls
 * to rooms above, lock_rank.h the order of the short locks, names.h the names of states and events in the log.
 * Locks: each object has its own, in its room. Here are the IA's, for its lists of objects, and that of the list of all IAs.
 */
#ifndef DAPL_OBJ_H
#define DAPL_OBJ_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>
#include <dat2/udat.h>

enum obj_kind {
	OBJ_FREE,
	OBJ_IA,
	OBJ_PZ,
	OBJ_LMR,
	OBJ_RMR,
	OBJ_EVD,
	OBJ_CNO,
	OBJ_EP,
	OBJ_SRQ,
	OBJ_PSP,
	OBJ_RSP,
	OBJ_CSP,
	OBJ_CR,
	OBJ_PSET,
	OBJ_UD_PEER,
	OBJ_KINDS
};

struct dapl_ia;

#define OBJ_INDEX_BITS 20	       /* of obj.index; a pool has fewer slots than that */
#define OBJ_LINE       64u	       /* bytes of a cache line, on which each slot begins */
#define OBJ_RETIRED    (INT32_MIN / 2) /* plus the number of calls still in progress */

/*
 * The first member of every object. Objects come from pools that are stable by kind: a freed slot
 * goes to the end of its kind's queue and is returned to malloc only when the provider is unloaded,
 * so the kind of a stale handle can be read and is OBJ_FREE. A stale handle of a reused slot is
 * taken for the new object.
 */
struct obj {
	const struct dat_provider *provider; /* first: libdat dispatches through it */
	/* enum obj_kind; stored last at creation, with release */
	_Atomic uint32_t kind;
	uint32_t index;		     /* index of the slot in its pool; constant */
	_Atomic uint32_t generation; /* grows with each use, and with each QP of an EP */
	/* number of references from other objects; negative: retired */
	atomic_int users;
	DAT_CONTEXT context; /* the consumer's context; guarded by nothing */
	struct dapl_ia *ia;
	TAILQ_ENTRY(obj) link; /* in ia->objects[kind] (ia->lock) or the pool's queue */
};

/*
 * Called once for each kind, when the provider is loaded and before any other function here. `size` is that of an object,
 * of whose beginning `keep` bytes survive when its slot is reused: `obj`, and a lock that a thread may still hold through
 * a stale handle.
 */
void obj_pool_open(enum obj_kind kind, size_t size, size_t keep);
/*
 * Returns a zeroed object of the IA (NULL for an IA) whose kind is still OBJ_FREE, so that no
 * handle is valid before obj_publish, or NULL without memory. The lock of an SRQ or CNO keeps its
 * value, because a thread may still hold it through a stale handle.
 */
void *obj_new(struct dapl_ia *ia, enum obj_kind kind);
/* Makes the handle valid and lists the object in its IA. */
void obj_publish(struct obj *obj, enum obj_kind kind);
/*
 * Makes the handle invalid and removes the object from its IA's list; the slot stays in use until
 * obj_free.
 */
void obj_hide(struct obj *obj, enum obj_kind kind);
/* Hides the object if it is published, and frees its slot. */
void obj_free(struct obj *obj, enum obj_kind kind);
/* returns the slot by index, used or free; takes no lock */
void *obj_at(enum obj_kind kind, uint32_t index);
/* True if the object is one of this library: that of another provider may have the same layout. */
bool obj_is_ours(DAT_HANDLE handle);
void obj_pools_free(void); /* at unload; no slot may be in use */

/*
 * For the handle that a call was dispatched through: libdat has read its first word, so the second
 * can be read, too, and only the kind is to be checked.
 */
static inline bool obj_is(const void *handle, enum obj_kind kind)
{
	/* acquire: as in obj_from */
	return atomic_load_explicit(&((const struct obj *)handle)->kind, memory_order_acquire) ==
	       kind;
}

/*
 * Returns the object if `handle` is a live one of this kind, else NULL. Never reads through a NULL,
 * small or misaligned handle.
 */
static inline void *obj_from(const void *handle, enum obj_kind kind)
{
	const struct obj *obj = handle;

	if ((uintptr_t)handle < 4096 || ((uintptr_t)handle & 7) ||
	    /*
	     * acquire: pairs with the release in obj_publish, so a valid kind means a built object
	     */
	    atomic_load_explicit(&obj->kind, memory_order_acquire) != kind)
		return NULL;
	return (void *)(uintptr_t)handle;
}

static inline uint32_t obj_generation(const struct obj *obj)
{
	return atomic_load_explicit(&obj->generation, memory_order_relaxed);
}

static inline void obj_next_generation(struct obj *obj)
{
	atomic_fetch_add_explicit(&obj->generation, 1, memory_order_relaxed);
}

/* Adds a reference; returns false if the object is being freed. */
static inline bool obj_hold(struct obj *obj)
{
	int users = atomic_load_explicit(&obj->users, memory_order_relaxed);

	do {
		if (users < 0)
			return false;
	} while (!atomic_compare_exchange_weak(&obj->users, &users, users + 1));
	return true;
}

static inline void obj_release(struct obj *obj)
{
	atomic_fetch_sub(&obj->users, 1);
}

/*
 * Changes from unused to retired in one step; returns false while another object refers to this
 * one.
 */
static inline bool obj_retire(struct obj *obj)
{
	int none = 0;

	return atomic_compare_exchange_strong(&obj->users, &none, OBJ_RETIRED);
}

/*
 * For an object to which only calls in progress refer: no further call may begin, and
 * obj_wait_unused returns when the last one has returned. Returns false if the object is already
 * retired.
 */
static inline bool obj_retire_in_use(struct obj *obj)
{
	int users = atomic_load_explicit(&obj->users, memory_order_relaxed);

	do {
		if (users < 0)
			return false;
	} while (!atomic_compare_exchange_weak(&obj->users, &users, users + OBJ_RETIRED));
	return true;
}

void obj_wait_unused(const struct obj *obj);

static inline bool obj_is_retired(const struct obj *obj)
{
	return atomic_load_explicit(&obj->users, memory_order_relaxed) < 0;
}

/* Called after the device refused: the object stays in use. */
static inline void obj_unretire(struct obj *obj)
{
	atomic_store(&obj->users, 0);
}

#endif
