/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* The consumer notification object: which of its EVDs have news, and who is told. */
#ifndef DAPL_CNO_H
#define DAPL_CNO_H

#include <pthread.h>
#include <dat2/dat_event_extensions.h>
#include "dapl/udapl/ia.h"
#include "util/wakefd.h"

struct dapl_evd;

/*
 * Triggered is: an EVD is on the ready list, or the CNO was signalled. An EVD is there at most once,
 * from a trigger until it is named to somebody, emptied or detached. Software-side events trigger
 * where they are posted. Completions make a channel readable that the CNO's descriptor watches: who
 * looks at the CNO reads it, and triggers (cno_serve_locked). If the CNO ever had an agent, the event
 * thread reads the channels, too.
 *
 * The lock keeps its value from one life of the slot to the next: who learned of the CNO from an
 * EVD takes it, and only then sees whether the EVD is still attached. A slot begins as zeros, which
 * make a mutex nobody holds.
 */
struct dapl_cno {
	struct obj obj; /* users: EVDs, threads in dat_cno_wait */
	/* all below; locks of EVDs and the device's are inside it */
	pthread_mutex_t lock;
	TAILQ_HEAD(cno_evds, dapl_evd) evds;   /* attached */
	TAILQ_HEAD(cno_ready, dapl_evd) ready; /* the one triggered first in front */
	/* raised exactly while triggered, threads leave, or `changed` */
	struct wakefd wake;
	/* the descriptor: `wake` and the EVDs' channels; constant */
	int epoll;
	atomic_uint channels; /* that it watches */
	bool has_fd;	      /* constant: the consumer was given it at creation */
	bool dying;
	bool narrow;  /* some CQ may be armed for solicited completions only */
	bool listed;  /* the consumer knows the descriptors one by one */
	bool armed;   /* the consumer may sleep on them */
	bool changed; /* they did since; whoever sleeps is to be woken */
	unsigned takes;
	uint64_t change_index;
	struct dapl_evd *poll_next; /* where cno_poll goes on; NULL: with the first */
	uint64_t spin;		    /* nanoseconds of looking before a first sleep; constant */
	DAT_EV_WAIT_POLICY policy;  /* constant */
	atomic_bool serviced;	    /* has or had an agent; `attaching`, too */
	unsigned waiters;
	unsigned round;	  /* of waiters; those of an earlier one leave with no EVD */
	unsigned leaving; /* waiters of earlier rounds */

	DAT_OS_WAIT_PROXY_AGENT agent;	/* armed, if it has a function */
	DAT_OS_WAIT_PROXY_AGENT called; /* disarmed by a trigger, to be called by the timer */
	struct dapl_evd *called_evd;
	bool missed; /* a trigger found no agent, and nobody has taken it */
	bool missed_signal;
	struct ib_timer timer; /* the way into the event thread, which holds no lock */
	struct ib_alarm alarm; /* for a signal; while serviced */
};

static inline struct dapl_cno *cno_from(DAT_CNO_HANDLE handle)
{
	return obj_from(handle, OBJ_CNO);
}

void cno_destroy(struct dapl_cno *cno); /* abrupt close: all who wait are told and awaited */

/* EVDs whose armed CQs fired get on the ready list: some of them, or all that fired before. */
void cno_serve_locked(struct dapl_cno *cno);
void cno_serve_all_locked(struct dapl_cno *cno);
/* Between the descriptor and a CQ's channel; no other thread attaches or detaches the EVD. */
bool cno_fd_add(struct dapl_cno *cno, struct dapl_evd *evd); /* false with errno */
void cno_fd_remove_locked(struct dapl_cno *cno, struct dapl_evd *evd);
/* The list of EVDs changed. */
void cno_changed_locked(struct dapl_cno *cno);
/* Before a trigger is awaited: whatever completes is to make one. */
void cno_widen_locked(struct dapl_cno *cno);
DAT_RETURN cno_arm(struct dapl_cno *cno, bool solicited);
bool cno_has_news(struct dapl_cno *cno); /* an enabled EVD has; cno_poll.c */
bool cno_take_signal_locked(struct dapl_cno *cno);

/* Makes the descriptor say what is the case; after each change. */
void cno_show_locked(struct dapl_cno *cno);
/* All present waiters leave with no EVD, an armed agent is called with none. */
void cno_dismiss_locked(struct dapl_cno *cno);

/* cno_agent.c */
void cno_agent_trigger_locked(struct dapl_cno *cno, struct dapl_evd *evd);
void cno_agent_call_locked(struct dapl_cno *cno, struct dapl_evd *evd); /* if one is armed */
/* The EVD must not be named any more. A trigger by it alone is undone. */
void cno_agent_forget_locked(struct dapl_cno *cno, const struct dapl_evd *evd);
/* no lock held; whoever is armed is called */
void cno_agent_end(struct dapl_cno *cno, bool call);
bool cno_agent_is_here(const struct dapl_cno *cno); /* this thread runs an agent of it */
bool cno_agent_is_of(const struct dapl_ia *ia);	    /* ... of a CNO of the IA */
void cno_agent_on_alarm(struct ib_alarm *alarm);

/*
 * evd_cno.c: the EVD's side. Its `cno`, `ready` are changed with the lock of the CNO and that of the
 * EVD held, so either is enough to read them.
 */
DAT_RETURN evd_set_cno(struct dapl_evd *evd, struct dapl_cno *cno);  /* NULL: none */
void evd_leave_cno(struct dapl_evd *evd);			     /* it is being freed */
void evd_pause_cno(struct dapl_evd *evd);			     /* its CQ may go */
void evd_resume_cno(struct dapl_evd *evd);			     /* it did not */
void evd_trigger(struct dapl_evd *evd);				     /* no EVD lock held */
void evd_trigger_locked(struct dapl_evd *evd, struct dapl_cno *cno); /* the CNO's lock is held */
/* from now on the event thread reads, too */
DAT_RETURN evd_serve_agents(struct dapl_cno *cno);
bool evd_may_trigger_locked(const struct dapl_evd *evd);
void evd_unready(struct dapl_evd *evd); /* it was emptied; no EVD lock held */
/* Re-arms the CQ, then counts: a trigger is due when there is more than the consumer knows of. */
void evd_look_locked(struct dapl_evd *evd, DAT_COUNT known);
void evd_arm_locked(struct dapl_evd *evd); /* for its CNO, if that is to hear of it */
void evd_completion_upcall(void *owner);

#endif
