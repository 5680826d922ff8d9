/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* An open device: what stands around the public context. */
#ifndef SV_CONTEXT_H
#define SV_CONTEXT_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>
#include "softverbs/api.h"

struct async_entry;

struct sv_context {
	const uint32_t *alive;		   /* area_alive() when it was opened */
	atomic_uint users;		   /* PDs, and what else keeps it from being closed */
	STAILQ_HEAD(, async_entry) events; /* verbs.context.mutex */
	pthread_cond_t acked;		   /* with it: an object is fully acknowledged */
	struct verbs_context verbs;
};

static inline struct sv_context *context_of(struct ibv_context *context)
{
	return (struct sv_context *)(void *)((char *)context -
					     offsetof(struct sv_context, verbs.context));
}

/* Opened by this process; false in a forked child, which must not touch its parent's objects. */
static inline bool context_is_ours(struct ibv_context *context)
{
	return *context_of(context)->alive;
}

/* async.c: the event queue of a context. async_close accepts one that async_open failed on. */
int async_open(struct sv_context *context);
void async_close(struct sv_context *context);

#endif
