/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * Room `cno`: the consumer notification object (CNO), and other ways to wait for several objects: poll sets and waiting for
 * memory.
 *
 * A CNO knows which of its EVDs have an event that notifies, its waiters, and its agent. No event is lost between two waits:
 * an EVD stays on the ready list until it is handed over or found empty. Agents run in the event thread (agent.c).
 * Locks: the CNO's mutex, acquired before the locks of its EVDs; a poll set's mutex, before that. `attaching` (member.c)
 * serialises the rare changes of membership.
 */
#ifndef DAPL_CNO_H
#define DAPL_CNO_H

#include <pthread.h>
#include <stdarg.h>
#include <dat2/dat_event_extensions.h>
#include "dapl/udapl/base/ia.h"
#include "util/wakefd.h"

struct dapl_evd;

/* dapl_cno.state */
#define CNO_DYING  (1u << 0)
#define CNO_NARROW (1u << 1) /* some CQ may be armed for solicited completions only */
#define CNO_LISTED (1u << 2) /* the consumer knows the descriptors one by one */
#define CNO_ARMED  (1u << 3) /* the consumer may block on them */
/* the set of descriptors changed while armed: wake the consumer */
#define CNO_CHANGED	  (1u << 4)
#define CNO_MISSED	  (1u << 5) /* a trigger found no agent and was not yet consumed */
#define CNO_MISSED_SIGNAL (1u << 6) /* a signal found no agent and was not yet consumed */

/*
 * A CNO is triggered while an EVD is on its ready list or a signal is pending. A trigger puts an EVD
 * on the list, at most once; the EVD leaves it when it is returned to the consumer, emptied or
 * detached. A software-side event triggers in the thread that posts it. A completion makes a channel
 * readable that the CNO's descriptor watches; the thread that polls the CNO reads the channel and
 * triggers (cno_serve_locked). If the CNO ever had an agent, the event thread reads the channels, too.
 *
 * The lock survives the reuse of the object's slot: a thread that reads the CNO from an EVD acquires
 * it first, and checks under it that the EVD is still attached. A new slot is all zeros, which is an
 * unlocked mutex.
 */
struct dapl_cno {
	struct obj obj; /* users: EVDs, threads in dat_cno_wait */
	/* guards all below; acquired before the locks of EVDs and of the device */
	pthread_mutex_t lock;
	TAILQ_HEAD(cno_evds, dapl_evd) evds;   /* attached */
	TAILQ_HEAD(cno_ready, dapl_evd) ready; /* in the order of their triggers */
	/* raised exactly while the CNO is triggered, `leaving` is not 0, or CNO_CHANGED is set */
	struct wakefd wake;
	/* the descriptor for `wake` and the channels of the EVDs; constant */
	int epoll;
	atomic_uint channels; /* number of channels in `epoll` */
	bool has_fd;	      /* constant: the CNO was created with a descriptor for the consumer */
	unsigned state;	      /* CNO_DYING and so on */
	unsigned takes;
	uint64_t change_index;
	struct dapl_evd *poll_next; /* where the next cno_poll begins; NULL for the first EVD */
	uint64_t spin; /* nanoseconds that a waiter polls before it first blocks; constant */
	DAT_EV_WAIT_POLICY policy; /* constant */
	atomic_bool serviced;	   /* has or had an agent; to write it, also hold `attaching` */
	unsigned waiters;
	unsigned round;	  /* waiters of an earlier round return no EVD */
	unsigned leaving; /* waiters of earlier rounds */

	DAT_OS_WAIT_PROXY_AGENT agent;	/* armed, if it has a function */
	DAT_OS_WAIT_PROXY_AGENT called; /* disarmed by a trigger; the timer calls it */
	struct dapl_evd *called_evd;
	struct ib_timer timer; /* calls `called` in the event thread, with no lock held */
	struct ib_alarm alarm; /* for signals, while `serviced` */
};

static inline struct dapl_cno *cno_from(DAT_CNO_HANDLE handle)
{
	return obj_from(handle, OBJ_CNO);
}

static inline void cno_set_locked(struct dapl_cno *cno, unsigned bits, bool on)
{
	cno->state = (cno->state & ~bits) | (on ? bits : 0);
}

/* Abrupt close: wakes the waiters, and returns when they have left. */
void cno_destroy(struct dapl_cno *cno);

/*
 * Read channels and put EVDs whose armed CQs fired on the ready list: the first one some of them,
 * the second one all that fired before the call.
 */
void cno_serve_locked(struct dapl_cno *cno);
void cno_serve_all_locked(struct dapl_cno *cno);
/*
 * Add the channel of the EVD's CQ to the CNO's descriptor, and remove it. The caller excludes other
 * threads that attach or detach the EVD.
 */
bool cno_fd_add(struct dapl_cno *cno, struct dapl_evd *evd); /* returns false with errno set */
void cno_fd_remove_locked(struct dapl_cno *cno, struct dapl_evd *evd);
/* Records that the list of EVDs changed. */
void cno_changed_locked(struct dapl_cno *cno);
/* Called before a wait for a trigger: any completion makes one, not only a solicited one. */
void cno_widen_locked(struct dapl_cno *cno);
DAT_RETURN cno_arm(struct dapl_cno *cno, bool solicited);
/* true if an enabled EVD has pending events; cno/poll.c */
bool cno_is_pending(struct dapl_cno *cno);
bool cno_take_signal_locked(struct dapl_cno *cno);

/* Raises or clears `wake`. Called after each change of what it depends on. */
void cno_show_locked(struct dapl_cno *cno);
/* Makes all present waiters return without an EVD, and calls an armed agent without one. */
void cno_dismiss_locked(struct dapl_cno *cno);

/* cno/agent.c */
void cno_agent_trigger_locked(struct dapl_cno *cno, struct dapl_evd *evd);
/* calls the agent if one is armed */
void cno_agent_call_locked(struct dapl_cno *cno, struct dapl_evd *evd);
/* The EVD is not passed to the agent any more. If it alone triggered the agent, the trigger is undone. */
void cno_agent_forget_locked(struct dapl_cno *cno, const struct dapl_evd *evd);
/* Ends the agent. `call`: an armed agent is called first. The caller holds no lock. */
void cno_agent_end(struct dapl_cno *cno, bool call);
/* true if this thread runs an agent of the CNO */
bool cno_agent_is_here(const struct dapl_cno *cno);
/* true if this thread runs an agent of a CNO of the IA */
bool cno_agent_is_of(const struct dapl_ia *ia);
void cno_agent_on_alarm(struct ib_alarm *alarm);

/* For upward.h. */
DAT_RETURN evd_set_cno(struct dapl_evd *evd, struct dapl_cno *cno);
void evd_leave_cno(struct dapl_evd *evd);
void evd_pause_cno(struct dapl_evd *evd);
void evd_resume_cno(struct dapl_evd *evd);
void evd_trigger(struct dapl_evd *evd);
void evd_unready(struct dapl_evd *evd);

void evd_trigger_locked(struct dapl_evd *evd, struct dapl_cno *cno); /* the CNO's lock is held */
/* From now on the event thread reads the channels of the CNO's EVDs, too. */
DAT_RETURN evd_serve_agents(struct dapl_cno *cno);
void evd_completion_upcall(void *owner);

/* Operations of the event extension. The handle is a live CNO, or an IA (ia/ext_table.c). */
DAT_RETURN ext_cno_get_fd(DAT_HANDLE cno, va_list args);
DAT_RETURN ext_cno_arm(DAT_HANDLE cno, va_list args);
DAT_RETURN ext_cno_signal(DAT_HANDLE cno, va_list args);
DAT_RETURN ext_cno_poll(DAT_HANDLE cno, va_list args);
DAT_RETURN ext_cno_get_pollfds(DAT_HANDLE cno, va_list args);
DAT_RETURN ext_ev_version(DAT_HANDLE ia, va_list args);
DAT_RETURN ext_trywait(DAT_HANDLE ia, va_list args);
DAT_RETURN ext_wait_mem(DAT_HANDLE handle, va_list args); /* handles of an IA, EVD or CNO */

#endif
