/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* An open device: the private part of a context. */
#ifndef SV_OBJECT_CONTEXT_H
#define SV_OBJECT_CONTEXT_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>
#include "softverbs/base/api.h"

struct async_entry;

struct sv_context {
	const uint32_t *alive; /* sv_area_alive() at the time of the open */
	atomic_uint users;     /* PDs, channels, and other objects; the context closes at 0 */
	STAILQ_HEAD(, async_entry) events; /* guarded by verbs.context.mutex */
	pthread_cond_t acked; /* the same mutex: all events of an object are acknowledged */
	struct verbs_context verbs;
};

static inline struct sv_context *context_of(struct ibv_context *context)
{
	return (struct sv_context *)(void *)((char *)context -
					     offsetof(struct sv_context, verbs.context));
}

/*
 * Whether this process opened the context. False in a forked child, which must not touch its
 * parent's objects.
 */
static inline bool context_is_ours(struct ibv_context *context)
{
	return *context_of(context)->alive;
}

/*
 * async.c: the event queue of a context. 0 or errno. sv_async_close accepts a context on which
 * sv_async_open failed.
 */
int sv_async_open(struct sv_context *context);
void sv_async_close(struct sv_context *context);

#endif
