/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* The consumer notification object: which of its EVDs have news, and who is told. */
#ifndef DAPL_CNO_H
#define DAPL_CNO_H

#include <pthread.h>
#include "dapl/udapl/ia.h"
#include "util/wakefd.h"

struct dapl_evd;

/*
 * Triggered is: an EVD is on the ready list. An EVD is there at most once, from a trigger until
 * it is named to somebody, emptied or detached.
 *
 * The lock keeps its value from one life of the slot to the next: who learned of the CNO from an
 * EVD takes it, and only then sees whether the EVD is still attached. A slot begins as zeros, which
 * make a mutex nobody holds.
 */
struct dapl_cno {
	struct obj obj;			/* users: EVDs, threads in dat_cno_wait */
	pthread_mutex_t lock;		/* all below; locks of EVDs and the device's are inside it */
	TAILQ_HEAD(cno_evds, dapl_evd) evds;	/* attached */
	TAILQ_HEAD(cno_ready, dapl_evd) ready;	/* the one triggered first in front */
	struct wakefd wake;		/* readable exactly while cno_is_triggered or threads leave */
	bool has_fd;			/* constant: the consumer has `wake` */
	bool dying;
	unsigned waiters;
	unsigned round;			/* of waiters; those of an earlier one leave with no EVD */
	unsigned leaving;		/* waiters of earlier rounds */

	DAT_OS_WAIT_PROXY_AGENT agent;	/* armed, if it has a function */
	DAT_OS_WAIT_PROXY_AGENT called;	/* disarmed by a trigger, to be called by the timer */
	struct dapl_evd *called_evd;
	bool missed;			/* a trigger found no agent, and nobody has taken it */
	struct ib_timer timer;		/* the way into the event thread, which holds no lock */
};

static inline struct dapl_cno *cno_from(DAT_CNO_HANDLE handle)
{
	return obj_from(handle, OBJ_CNO);
}

void cno_destroy(struct dapl_cno *cno);	/* abrupt close: all who wait are told and awaited */

/* Makes the descriptor say what is the case; after each change. */
void cno_show_locked(struct dapl_cno *cno);
/* All present waiters leave with no EVD, an armed agent is called with none. */
void cno_dismiss_locked(struct dapl_cno *cno);

/* cno_agent.c */
void cno_agent_trigger_locked(struct dapl_cno *cno, struct dapl_evd *evd);
void cno_agent_call_locked(struct dapl_cno *cno, struct dapl_evd *evd);	/* if one is armed */
/* The EVD must not be named any more. A trigger by it alone is undone. */
void cno_agent_forget_locked(struct dapl_cno *cno, const struct dapl_evd *evd);
void cno_agent_end(struct dapl_cno *cno, bool call);	/* no lock held; whoever is armed is called */
bool cno_agent_is_here(const struct dapl_cno *cno);	/* this thread runs an agent of it */
bool cno_agent_is_of(const struct dapl_ia *ia);		/* ... of a CNO of the IA */

/*
 * evd_cno.c: the EVD's side. Its `cno`, `ready` are changed with the lock of the CNO and that of the
 * EVD held, so either is enough to read them.
 */
DAT_RETURN evd_set_cno(struct dapl_evd *evd, struct dapl_cno *cno);	/* NULL: none */
void evd_leave_cno(struct dapl_evd *evd);	/* it is being freed */
void evd_pause_cno(struct dapl_evd *evd);	/* its CQ may go */
void evd_resume_cno(struct dapl_evd *evd);	/* it did not */
void evd_trigger(struct dapl_evd *evd);		/* no EVD lock held */
void evd_unready(struct dapl_evd *evd);		/* it was emptied; no EVD lock held */
/* Re-arms the CQ, then counts: a trigger is due when there is more than the consumer knows of. */
void evd_look_locked(struct dapl_evd *evd, DAT_COUNT known);
void evd_arm_locked(struct dapl_evd *evd);	/* for its CNO, if that is to hear of it */
void evd_completion_upcall(void *owner);

#endif
