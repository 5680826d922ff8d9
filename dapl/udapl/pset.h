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
	pthread_mutex_t lock;		/* all below; locks of EVDs are inside it */
	struct dapl_evd **evds;		/* each held by evd_join_set */
	uint32_t count, room;
	uint32_t next;			/* where the next poll begins */
};

void pset_destroy(struct dapl_pset *pset);	/* abrupt close: with what is in it */

/* What both polls take; every check of them. */
struct poll_args {
	DAT_COUNT max, *n;
	DAT_EVD_HANDLE *evds;
};
DAT_RETURN poll_args(va_list args, struct poll_args *out);

#endif
