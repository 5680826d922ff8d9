/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* The shared receive queue. */
#ifndef DAPL_SRQ_H
#define DAPL_SRQ_H

#include "dapl/udapl/evd/dto.h"
#include "dapl/udapl/mem/mem.h"
#include "util/lock.h"

struct dapl_srq {
	struct obj obj;	  /* users: EPs */
	struct lock lock; /* acquired inside EVD locks; survives the object, see obj_new */
	struct dapl_pz *pz;
	struct ib_srq *srq;
	DAT_SRQ_STATE state;	/* lock */
	DAT_SRQ_ATTR attr;	/* the granted attributes; guarded by the lock */
	struct dto_slot *slots; /* constant, like their number */
	uint32_t slots_end;
	/*
	 * a stack of free slots, because completions come out of order; guarded by the lock, as
	 * below
	 */
	uint32_t *free_slots;
	uint32_t free_count;
	uint32_t fresh;	      /* the first slot that was never used */
	uint32_t outstanding; /* receives that are posted and whose event was not yet taken */
	uint32_t ready;	      /* those of them that have completed into events */
	struct srq_watch {
		bool armed;    /* the event of attr.low_watermark is still due */
		bool asked;    /* the device was asked for a report */
		bool doubtful; /* the device's next report may be for a previous watermark */
	} watch;
};

static inline struct dapl_srq *srq_from(DAT_SRQ_HANDLE handle)
{
	return obj_from(handle, OBJ_SRQ);
}

/*
 * Slots are named by dto_id: an event may outlive the SRQ. One whose completion was queued as an
 * event is ready, and stays outstanding until the consumer took the event.
 */
struct dapl_srq *srq_from_id(uint64_t id); /* returns NULL if the SRQ is freed */
void srq_slot_ready(uint64_t id);
void srq_slot_return(uint64_t id, bool was_ready);
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
