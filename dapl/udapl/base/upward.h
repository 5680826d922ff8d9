/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * The calls from a room to one above it: a completion ends a connection, an event triggers a CNO. Filled in when the
 * provider is loaded (ia/rooms.c).
 */
#ifndef DAPL_UPWARD_H
#define DAPL_UPWARD_H

#include "dapl/udapl/base/obj.h"

struct dapl_cno;
struct dapl_evd;

struct upward {
	/* A request of the EP failed. Called with the lock of one of its EVDs held. */
	void (*ep_dto_failed)(struct obj *ep);
	/* A request or receive of the EP was flushed. Likewise. */
	void (*ep_dto_flushed)(struct obj *ep);
	/* The IA has a zero-based region: its EPs post nothing inline from now on. The caller holds no lock of the IA. */
	void (*ep_inline_end)(struct dapl_ia *ia);
	/*
	 * Calls rmr_flights_land for each EP of the IA. With `task_ends`, a flight may hold a window without an RMR, which no
	 * call would release; the event thread then releases it after the completion of the bind.
	 */
	void (*ep_flights_land)(struct dapl_ia *ia, bool task_ends);

	/* The caller of these holds no lock of an EVD. `cno` is NULL if there is to be none. */
	DAT_RETURN (*cno_set)(struct dapl_evd *evd, struct dapl_cno *cno);
	void (*cno_leave)(struct dapl_evd *evd);  /* the EVD is being freed */
	void (*cno_pause)(struct dapl_evd *evd);  /* before a change that may free its CQ */
	void (*cno_resume)(struct dapl_evd *evd); /* after one that left the CQ in place */
	void (*cno_trigger)(struct dapl_evd *evd);
	void (*cno_unready)(struct dapl_evd *evd); /* the EVD was emptied */
};
extern struct upward upward; /* constant once the provider is loaded */

#endif
