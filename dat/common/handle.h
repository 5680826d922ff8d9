/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Maps handles to objects of providers. */
#ifndef DAT_COMMON_HANDLE_H
#define DAT_COMMON_HANDLE_H

#include "dat/common/reg.h"
#include "util/log.h"

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
 * A cache of providers that have an open IA with extensions. It spares posts by extension, and operations called in
 * signal handlers, the search and its lock. All have a handler; a free place holds an address that is neither NULL nor
 * a provider's.
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
 * Returns the provider's table, which is at the start of every object; NULL for IA handles, other small numbers and
 * misaligned addresses. The provider detects all other invalid handles.
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
 * Returns the provider's pointer for a handle of any type, or NULL for a bad handle. The caller releases *ia if not
 * NULL.
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

/* refused.c: logs a call that the provider refused. `arguments`: the names of its arguments, comma-separated. */
DAT_RETURN refused_by_provider(const char *call, const char *arguments,
			       const DAT_PROVIDER *provider, DAT_HANDLE handle, DAT_RETURN ret)
	__attribute__((cold));

static inline DAT_RETURN answer(const char *call, const char *arguments,
				const DAT_PROVIDER *provider, DAT_HANDLE handle, DAT_RETURN ret)
{
	if (__builtin_expect(ret & DAT_CLASS_ERROR && log_on(REG_LOG_CONSUMER), 0))
		return refused_by_provider(call, arguments, provider, handle, ret);
	return ret;
}

/*
 * What a function of the provider's table answers to the arguments, of which the first is the object and all stand in
 * the order of the call of the API. The calls of the data path do without: they jump into the provider, whose traces name
 * those that it refuses.
 */
#define PROVIDER_ANSWER(provider, function, ...)                                         \
	answer(__func__, #__VA_ARGS__, (provider), (DAT_HANDLE)FIRST_OF(__VA_ARGS__, 0), \
	       (provider)->function(__VA_ARGS__))
#define FIRST_OF(first, ...) first

#endif
