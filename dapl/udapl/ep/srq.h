/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* The shared receive queue. */
#ifndef DAPL_SRQ_H
#define DAPL_SRQ_H

#include <stddef.h>
#include "dapl/udapl/evd/dto.h"
#include "dapl/udapl/mem/mem.h"
#include "util/lock.h"

struct dapl_srq {
	struct obj obj; /* users: EPs */
	struct dto_pool pool;
	struct dapl_pz *pz;
	struct ib_srq *srq;
	DAT_SRQ_STATE state; /* guarded by the lock of the pool, as all below */
	DAT_SRQ_ATTR attr;   /* the granted attributes */
	struct srq_low_water {
		bool armed;    /* the event of attr.low_watermark is still due */
		bool asked;    /* the device was asked for a report */
		bool doubtful; /* the device's next report may be for a previous watermark */
	} low_water;
};

_Static_assert(offsetof(struct dapl_srq, pool) == sizeof(struct obj), "dto_pool_from_id");

static inline struct dapl_srq *srq_from(DAT_SRQ_HANDLE handle)
{
	return obj_from(handle, OBJ_SRQ);
}

/* Drains the CQs of the SRQ's EPs, so that the counts are current. */
void srq_collect(struct dapl_srq *srq);
/* The device reported IB_ASYNC_SRQ_LIMIT (ep/srq_limit.c). */
void srq_limit_reached(struct dapl_srq *srq);
/*
 * Returns E(INVALID_HANDLE, SRQ), SRQ_SHUTDOWN or SRQ_ERROR, or acquires a reference for a new EP.
 */
DAT_RETURN srq_attach(struct dapl_srq *srq);
void srq_detach(struct dapl_srq *srq);
void srq_failed(struct dapl_srq *srq); /* the device reported SRQ_ERR */
/* Abrupt close, after its EPs: frees the SRQ even if the device refuses. */
void srq_abandon(struct dapl_srq *srq);

#endif
