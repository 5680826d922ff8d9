/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* The poll set: EVDs that are polled together. It has no triggers, and no thread blocks on it. */
#ifndef DAPL_PSET_H
#define DAPL_PSET_H

#include <pthread.h>
#include <stdarg.h>
#include "dapl/udapl/base/obj.h"

struct dapl_evd;

struct dapl_pset {
	struct obj obj;
	pthread_mutex_t lock;	/* guards all below; locks of EVDs are acquired inside it */
	struct dapl_evd **evds; /* the EVDs, each held by evd_join_set */
	uint32_t count, room;
	uint32_t next; /* where the next poll begins */
};

/* abrupt close: frees the set and its references on EVDs */
void pset_destroy(struct dapl_pset *pset);

/*
 * Polls the EVDs of a CNO or poll set, whose lock is held, for pending events. Stores up to `max`
 * of them and returns their number.
 */
typedef DAT_COUNT poll_once(DAT_HANDLE handle, DAT_COUNT max, DAT_EVD_HANDLE *evds);
/* The common part of both polls: fetches and checks the arguments, and calls `poll` under `lock`. */
DAT_RETURN poll_run(va_list args, pthread_mutex_t *lock, poll_once *poll, DAT_HANDLE handle);

/* Operations of the event extension. The handle is a live poll set, or an IA (ia/ext_table.c). */
DAT_RETURN ext_pset_create(DAT_HANDLE ia, va_list args);
DAT_RETURN ext_pset_add(DAT_HANDLE pset, va_list args);
DAT_RETURN ext_pset_del(DAT_HANDLE pset, va_list args);
DAT_RETURN ext_pset_poll(DAT_HANDLE pset, va_list args);
DAT_RETURN ext_pset_free(DAT_HANDLE pset, va_list args);

#endif
