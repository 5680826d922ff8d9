/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * Room `mem`: protection zones, local memory regions and remote memory regions.
 *
 * No region or window is freed while a bind of it is in flight, and each bind ends once (rmr_flight.c), whatever becomes of its
 * EP.
 * Locks: a PZ and an LMR have none, since they do not change. An RMR has a mutex, for one bind, renewal or free at a time.
 * rmr_lock, a short lock, guards what all RMRs are bound to, since a completion may end a binding.
 */
#ifndef DAPL_MEM_H
#define DAPL_MEM_H

#include <pthread.h>
#include "dapl/udapl/base/ia.h"
#include "util/lock.h"

struct dapl_pz {
	struct obj obj; /* users: EPs, LMRs, RMRs, SRQs */
	struct ib_pd *pd;
};

struct dapl_lmr {
	struct obj obj; /* users: RMRs bound to it, and binds of it in flight */
	struct dapl_pz *pz;
	struct ib_mr *mr;
	/* the attributes that dat_lmr_query returns, without the IA */
	DAT_LMR_PARAM param;
	char cookie[DAT_LMR_COOKIE_SIZE]; /* of SHARED_VIRTUAL; the query points to it */
};

/*
 * A memory window. An RMR holds its present window; a bind in flight holds the window that it
 * binds, even after the RMR is freed.
 */
struct rmr_window {
	struct ib_mw *mw;
	atomic_uint holders;
};

/*
 * A remote memory region: a memory window, of type 1 with the scope of a PZ, of type 2 with that of
 * an EP. Its binding changes when a bind is posted or fails, when the peer invalidates it, and when
 * its EP loses the connection.
 */
struct dapl_rmr {
	struct obj obj;
	/* these three survive the object, for threads that still use the handle */
	/* binds, renewals, free: one at a time; may be held across system calls */
	pthread_mutex_t lock;
	uint64_t bound_by; /* wr_id of the bind that led here, or 0; rmr_lock */
	/* wr_id of the bind that is being posted and has not ended, or 0; rmr_lock */
	uint64_t binding;

	struct dapl_pz *pz;
	struct rmr_window *window; /* NULL while being freed; lock */
	/* the window has to be replaced, because no request can unbind it */
	atomic_bool stale;
	/* the attributes that dat_rmr_query returns, without the IA; rmr_lock */
	DAT_RMR_PARAM param;
	/* the LMR of the binding, which it holds; NULL if unbound; rmr_lock */
	struct dapl_lmr *lmr;
	struct rmr_scope *scope; /* of the EP of the binding, with the scope of an EP; rmr_lock */
	LIST_ENTRY(dapl_rmr) entry; /* in its list; rmr_lock */
};

/* The RMRs with the scope of an EP that are bound through it; rmr_lock. */
LIST_HEAD(rmr_scope, dapl_rmr);

extern struct lock rmr_lock; /* what RMRs are bound to; not held across calls of the device */

static inline struct dapl_rmr *rmr_from(DAT_RMR_HANDLE handle)
{
	return obj_from(handle, OBJ_RMR);
}

void rmr_bind_locked(struct dapl_rmr *rmr, struct dapl_lmr *lmr, struct rmr_scope *scope,
		     uint64_t id);
void rmr_unbind_locked(struct dapl_rmr *rmr);
/* Replaces a stale window. The caller holds the RMR's lock. */
DAT_RETURN rmr_renew(struct dapl_rmr *rmr);
/* Replaces all stale windows, so that their LMRs can be freed. Returns false if there was none. */
bool rmr_renew_all(struct dapl_ia *ia);
/* Called when the bind `id` of the RMR in slot `index` of its pool failed. */
void rmr_bind_failed(uint32_t index, uint64_t id);
/* Called when the peer of the EP sent a message that invalidated `key`. */
void rmr_invalidated(struct rmr_scope *scope, uint32_t key);
/* Called when the EP's connection or QP has ended. */
void rmr_ep_ended(struct rmr_scope *scope);
void rmr_destroy(struct dapl_rmr *rmr);

/*
 * Binds in flight (mem/rmr_flight.c). The device needs window and region of a bind when it executes it, so a bind holds both
 * from its post until its slot retires, or until the EP's QP is gone.
 */
struct rmr_flight {
	struct rmr_window *window;
	struct dapl_lmr *lmr; /* NULL for an unbind */
	uint32_t position;    /* position of the request in its ring */
};
/* The binds in flight of a QP, in posting order. */
struct rmr_flight_list {
	struct rmr_flight *flights; /* NULL if nothing can be posted */
	uint32_t mask, head, tail;
};
/* The binds in flight of an EP. */
struct rmr_flights {
	struct rmr_flight_list list;	 /* lock */
	struct lock *lock;		 /* the EP's post lock */
	const _Atomic uint32_t *retired; /* of its request ring */
	atomic_uint task_ends;		 /* not 0: the task ends flights whose slots retire */
	struct task *task;
	unsigned due; /* what the task gets then */
};
DAT_RETURN rmr_window_create(struct dapl_pz *pz, bool type2, struct rmr_window **window);
/* Accepts NULL. Returns false if a bind in flight still holds the window. */
bool rmr_window_release(struct rmr_window *window);
/* For a ring of `size` slots, of which `depth` are used. */
DAT_RETURN rmr_flights_init(struct rmr_flight_list *list, uint32_t size, uint32_t depth);
/*
 * Called when the QP is destroyed or was never used: all flights end. The caller holds no spin
 * lock.
 */
void rmr_flights_end(struct rmr_flight_list *list);
/* The request in that position was posted. The caller holds the post lock and has seen room for it. */
void rmr_flight_begin_locked(struct rmr_flights *flights, uint32_t position,
			     struct rmr_window *window, struct dapl_lmr *lmr);
/* Releases what the flights hold whose slots have retired. The caller holds no lock but its IA's. */
void rmr_flights_land(struct rmr_flights *flights);
/*
 * Called by the data path when the slot of a bind has retired, with the lock of the request EVD
 * held.
 */
void rmr_flight_landed(struct rmr_flights *flights);

static inline struct dapl_pz *pz_from(DAT_PZ_HANDLE handle)
{
	return obj_from(handle, OBJ_PZ);
}

static inline struct dapl_lmr *lmr_from(DAT_LMR_HANDLE handle)
{
	return obj_from(handle, OBJ_LMR);
}

/* Abrupt close: frees the object even if the device refuses. */
void pz_abandon(struct dapl_pz *pz);
void lmr_abandon(struct dapl_lmr *lmr);

#endif
