/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* What every DAT object has in common: the handle, its check, its references, its IA. */
#ifndef DAPL_OBJ_H
#define DAPL_OBJ_H

#include <stdatomic.h>
#include <stdbool.h>
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

#define OBJ_RETIRED (INT32_MIN / 2) /* plus the calls that have not noticed yet */

/*
 * First member of every object. Objects come from pools that are stable by kind: a freed slot goes
 * to the end of its kind's queue and back to malloc only when the provider is unloaded, so reading
 * the kind of a stale handle is defined and answers OBJ_FREE. A slot in use again passes for the
 * old object.
 */
struct obj {
	const struct dat_provider *provider; /* first: libdat dispatches through it */
	_Atomic uint32_t kind;		     /* enum obj_kind; released last at creation */
	uint32_t index;			     /* of the slot in its pool; constant */
	_Atomic uint32_t generation;	     /* grows with each use, and each QP of an EP */
	atomic_int users;		     /* objects that refer to it; negative: retired */
	DAT_CONTEXT context;		     /* the consumer's; guarded by nothing */
	struct dapl_ia *ia;
	TAILQ_ENTRY(obj) link; /* ia->objects[kind] (ia->lock) or pool's queue */
};

/*
 * A zeroed object of the IA (NULL for an IA), kind still OBJ_FREE: no handle to it is valid before
 * obj_publish. NULL when memory is out. The lock of an SRQ or CNO keeps its value: a late holder
 * of the slot's last life may still have it.
 */
void *obj_new(struct dapl_ia *ia, enum obj_kind kind);
/* Makes the handle valid and lists the object in its IA. */
void obj_publish(struct obj *obj, enum obj_kind kind);
/*
 * Makes the handle invalid and takes the object off its IA's list; the slot stays taken until
 * obj_free.
 */
void obj_hide(struct obj *obj, enum obj_kind kind);
/* The same, and gives the slot back. Published, hidden or neither. */
void obj_free(struct obj *obj, enum obj_kind kind);
void *obj_at(enum obj_kind kind, uint32_t index); /* slot by index, used or free; lock-free */
void obj_pools_free(void);			  /* at unload; nothing may be in use */

/*
 * For the handle that a call was dispatched through: libdat has read its first word, so the second
 * can be read too, and the kind alone is in question.
 */
static inline bool obj_is(const void *handle, enum obj_kind kind)
{
	/* acquire: as in obj_from */
	return atomic_load_explicit(&((const struct obj *)handle)->kind, memory_order_acquire) ==
	       kind;
}

/*
 * The object if `handle` is a live one of this kind, else NULL. Never reads through a NULL, small
 * or misaligned one.
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

/* One more reference; false when the object is being freed. */
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

/* From unused to retired in one step; false while something refers to the object. */
static inline bool obj_retire(struct obj *obj)
{
	int none = 0;

	return atomic_compare_exchange_strong(&obj->users, &none, OBJ_RETIRED);
}

/*
 * For an object that nothing refers to but calls in progress: no further one may begin, and
 * obj_wait_unused returns when the last of them is over. false: it is retired already.
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

/* The device refused: the object stays in use. */
static inline void obj_unretire(struct obj *obj)
{
	atomic_store(&obj->users, 0);
}

#endif
