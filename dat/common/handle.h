/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* From handles to the objects of providers. */
#ifndef DAT_COMMON_HANDLE_H
#define DAT_COMMON_HANDLE_H

#include "dat/common/reg.h"

/* ia_handle.c: consumers hold small integers for IAs; all of them are below IA_INDEX_END. */
#define IA_INDEX_END 4096u

struct ia_slot {
	atomic_uint state;
	_Atomic(DAT_IA_HANDLE) object; /* the provider's */
	const DAT_PROVIDER *provider;  /* this and the rest: constant while the slot is live */
	DAT_EXTENSION extension;
	struct reg_hold hold;
};

bool ia_insert(DAT_IA_HANDLE object, DAT_EXTENSION extension, const struct reg_hold *hold,
	       DAT_IA_HANDLE *handle);		    /* false: the table is full */
struct ia_slot *ia_acquire(DAT_IA_HANDLE handle);   /* NULL unless live; a close waits */
struct ia_slot *ia_acquire_named(const char *name); /* any open IA of this name */
void ia_release(struct ia_slot *ia);
struct ia_slot *ia_retire(DAT_IA_HANDLE handle); /* waits for all users */
void ia_revive(struct ia_slot *ia);		 /* the close failed */
void ia_remove(struct ia_slot *ia);
/*
 * The last providers of which an IA with extensions was opened, as long as one is open: spares the
 * search, and its lock, to posts by extension and to operations that are called in signal handlers.
 * All have a handler; a free place holds an address that is neither a provider's nor NULL.
 */
#define IA_EXTENDED 16
extern _Atomic(const DAT_PROVIDER *) ia_extended[IA_EXTENDED];

static inline bool ia_provider_is_known(const DAT_PROVIDER *provider)
{
	unsigned i;

	if (__builtin_expect(provider ==
				     atomic_load_explicit(&ia_extended[0], memory_order_relaxed),
			     1))
		return true;
	for (i = 1; i < IA_EXTENDED; i++)
		if (provider == atomic_load_explicit(&ia_extended[i], memory_order_relaxed))
			return true;
	return false;
}

bool ia_provider_extends(const DAT_PROVIDER *provider); /* has an IA open that reports extensions */
bool ia_none_live_locked(void);
void ia_table_free_locked(void);
void ia_fork_locked(void);

/*
 * Every object starts with its provider's table. NULL for what cannot be an object: IA handles and
 * other small numbers, and odd addresses. What else is not an object, the provider finds out.
 */
static inline const DAT_PROVIDER *provider_of(DAT_HANDLE handle)
{
	const DAT_PROVIDER *provider;

	if ((uintptr_t)handle < IA_INDEX_END || (uintptr_t)handle % 4)
		return NULL;
	memcpy(&provider, handle, sizeof(provider));
	return provider;
}

/*
 * The provider's pointer for a handle of any type; *ia is to be released if not NULL. NULL for a
 * bad handle.
 */
static inline DAT_HANDLE handle_acquire(DAT_HANDLE handle, struct ia_slot **ia)
{
	*ia = ia_acquire(handle);
	if (*ia)
		return (*ia)->object;
	return provider_of(handle) ? handle : DAT_HANDLE_NULL;
}

static inline void handle_release(struct ia_slot *ia)
{
	if (ia)
		ia_release(ia);
}

#endif
