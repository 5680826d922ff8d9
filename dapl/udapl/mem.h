/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Protection zones, local memory regions, and what of them is open to peers. */
#ifndef DAPL_MEM_H
#define DAPL_MEM_H

#include "dapl/udapl/ia.h"
#include "util/lock.h"

struct dapl_pz {
	struct obj obj; /* users: EPs, LMRs, RMRs, SRQs */
	struct ib_pd *pd;
};

struct dapl_lmr {
	struct obj obj; /* users: RMRs bound to it */
	struct dapl_pz *pz;
	struct ib_mr *mr;
	DAT_LMR_PARAM param;		  /* what dat_lmr_query answers, but for the IA */
	char cookie[DAT_LMR_COOKIE_SIZE]; /* of SHARED_VIRTUAL: the query points at it */
};

/*
 * A remote memory region: a memory window, of type 1 with the scope of a PZ, of type 2 with that of
 * an EP. What it is bound to changes when a bind is posted, and when one fails, the peer invalidates
 * it or its EP loses the connection.
 */
struct dapl_rmr {
	struct obj obj;
	/* these two outlive the object, for who comes late */
	struct lock lock;  /* binds, renewals, free: one at a time */
	uint64_t bound_by; /* wr_id of the bind that led here, or 0; rmr_lock */

	struct dapl_pz *pz;
	struct ib_mw *mw;	    /* NULL: being freed; lock */
	atomic_bool stale;	    /* the window has to be made anew: nobody can unbind it */
	DAT_RMR_PARAM param;	    /* what dat_rmr_query answers, but for the IA; rmr_lock */
	struct dapl_lmr *lmr;	    /* bound to, and holding it; NULL: unbound; rmr_lock */
	struct dapl_ep *ep;	    /* bound through, with the scope of an EP; rmr_lock */
	LIST_ENTRY(dapl_rmr) entry; /* of ep->rmrs; rmr_lock */
};

extern struct lock rmr_lock; /* what RMRs are bound to; innermost but for the device */

static inline struct dapl_rmr *rmr_from(DAT_RMR_HANDLE handle)
{
	return obj_from(handle, OBJ_RMR);
}

void rmr_bind_locked(struct dapl_rmr *rmr, struct dapl_lmr *lmr, struct dapl_ep *ep, uint64_t id);
void rmr_unbind_locked(struct dapl_rmr *rmr);
/* Makes a stale window anew; caller holds the RMR's lock. */
DAT_RETURN rmr_renew(struct dapl_rmr *rmr);
/* All that are stale: what they were bound to may then be freed. false: there was none. */
bool rmr_renew_all(struct dapl_ia *ia);
/* The bind `id` of the RMR in slot `index` of its pool failed. */
void rmr_bind_failed(uint32_t index, uint64_t id);
/* The peer of the EP sent that the key is to end. */
void rmr_invalidated(struct dapl_ep *ep, uint32_t key);
/* The EP's connection, or its QP, has come to an end. */
void rmr_ep_ended(struct dapl_ep *ep);
void rmr_destroy(struct dapl_rmr *rmr);

static inline struct dapl_pz *pz_from(DAT_PZ_HANDLE handle)
{
	return obj_from(handle, OBJ_PZ);
}

static inline struct dapl_lmr *lmr_from(DAT_LMR_HANDLE handle)
{
	return obj_from(handle, OBJ_LMR);
}

/* Abrupt close: freed whatever the device says. */
void pz_abandon(struct dapl_pz *pz);
void lmr_abandon(struct dapl_lmr *lmr);

#endif
