/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* The poll set: EVDs that are asked together. Nothing is told to it, and nobody sleeps on it. */
#ifndef DAPL_PSET_H
#define DAPL_PSET_H

#include <pthread.h>
#include <stdarg.h>
#include "dapl/udapl/obj.h"

struct dapl_evd;

struct dapl_pset {
	struct obj obj;
	pthread_mutex_t lock;	/* all below; locks of EVDs are inside it */
	struct dapl_evd **evds; /* each held by evd_join_set */
	uint32_t count, room;
	uint32_t next; /* where the next poll begins */
};

void pset_destroy(struct dapl_pset *pset); /* abrupt close: with what is in it */

/* Up to `max` EVDs that have news, of the CNO or poll set; its lock is held. */
typedef DAT_COUNT poll_once(DAT_HANDLE handle, DAT_COUNT max, DAT_EVD_HANDLE *evds);
/* What both polls do: the arguments, every check of them, and the one poll under the lock. */
DAT_RETURN poll_run(va_list args, pthread_mutex_t *lock, poll_once *poll, DAT_HANDLE handle);

#endif
