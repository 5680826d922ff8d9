/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * Room `evd`: the event dispatcher (EVD), a bounded queue of events above a CQ, and how a thread waits for it.
 *
 * It turns completions into events (dto.h) and keeps the order in which they came; it loses no event that was promised: one
 * that finds the queue full waits for room (struct evd_room_waiter). One thread at a time waits (wait.c); arm.c arms the CQ, and
 * stream.c says which streams may share an EVD. It knows endpoints and SRQs only as struct dto_end and struct dto_pool, and a
 * CNO as a pointer for the calls upward.
 * Locks: the EVD's lock guards its queue, its state and what completions change; it is short, and no thread blocks with it held.
 */
#ifndef DAPL_EVD_H
#define DAPL_EVD_H

#include <stdarg.h>
#include <dat2/dat_event_extensions.h>
#include "dapl/udapl/evd/dto.h"
#include "dapl/udapl/base/task.h"
#include "util/lock.h"
#include "util/wakefd.h"

/* dapl_evd.state. If no bit is set, the next event is the next completion of the CQ. */
#define EVD_WAITED     (1u << 0) /* a thread is in dat_evd_wait */
#define EVD_BROKEN     (1u << 1) /* the CQ failed */
#define EVD_HOLDING    (1u << 2) /* `held` is a completion */
#define EVD_QUEUED     (1u << 3) /* the ring is not empty */
#define EVD_UNWAITABLE (1u << 4)
#define EVD_DYING      (1u << 5)
#define EVD_MERGED     (1u << 6) /* completions and connection events; constant */
#define EVD_NO_CQ      (1u << 7) /* constant */
#define EVD_READY      (1u << 8) /* on its CNO's ready list; written under both locks */
#define EVD_READING    (1u << 9) /* a thread that polls it reads the CM's events */

/*
 * dapl_evd.arming. The first three bits are the class of the EVD, at most one of them, which follows from its completion
 * streams (evd/stream.c). None: the streams are DEFAULT or EVD_THRESHOLD. MIXED: some streams are UNSIGNALLED, and each
 * stream keeps its own rule of which completions notify.
 */
#define EVD_MIXED	(1u << 0)
#define EVD_UNSIGNALLED (1u << 1)
#define EVD_SOLICITED	(1u << 2)
#define EVD_CLASS	(EVD_MIXED | EVD_UNSIGNALLED | EVD_SOLICITED)
#define EVD_MODERATED	(1u << 3) /* the CQ was asked to fire after several completions */
#define EVD_ARMED	(1u << 4) /* the CQ was armed, and no event of it has been read since */
#define EVD_NARROW	(1u << 5) /* it is armed for solicited completions only */

/* dapl_evd.notes. */
#define EVD_MAY_RETURN \
	(1u << 0) /* an event that notifies arrived since the waiter decided to block */
#define EVD_PENDING \
	(1u << 1) /* an event that notifies entered the ring since the last check for a trigger */
#define EVD_AWAKE (1u << 2) /* the waiter was woken: it polls before it blocks again */

/*
 * Work that a change under the lock has made due. evd_unlock does the work that concerns the CNO, and leaves the rest to
 * the event thread (evd/task.c).
 */
#define EVD_DUE_ROOM	 (1u << 0) /* a full queue has room: post the events that wait for it */
#define EVD_DUE_BROKEN	 (1u << 1) /* the CQ failed: post an async event, and trigger */
#define EVD_DUE_OVERFLOW (1u << 2) /* an event was refused: post an async event */
#define EVD_DUE_TRIGGER	 (1u << 3) /* of its CNO */
#define EVD_DUE_UNREADY	 (1u << 4) /* of its CNO */
#define EVD_DUE_LATER	 (EVD_DUE_ROOM | EVD_DUE_BROKEN | EVD_DUE_OVERFLOW)

/* An object whose event found the EVD full: its task gets `due` once there is room. */
struct evd_room_waiter {
	TAILQ_ENTRY(evd_room_waiter) entry;
	bool waits; /* it is listed; guarded by the EVD's lock, as the entry */
	struct task *task;
	unsigned due;
};

struct evd_entry {
	DAT_EVENT event;
	uint64_t srq_id; /* SRQ slot to return with the event (dto_id); 0: none */
	bool software;	 /* entered by evd_post: counts against qlen */
};

/*
 * Order of events: the CQ is drained into the ring before a software-side event enters the ring, so
 * completions in the CQ are younger than all events in the ring. The ring has room for qlen
 * software-side events and for all completions of the CQ.
 *
 * A completion may reach an EVD before the ESTABLISHED event of its own connection, if the EVD
 * takes both. It is then held back in `held`, and the completions behind it stay in the CQ, until
 * that event (or the end of the attempt) is in the ring.
 */
struct dapl_evd {
	struct obj obj;	  /* users: EPs (one per stream), service points, IAs */
	struct lock lock; /* guards all below unless noted; only SRQ locks are acquired under it */
	struct ib_cq *cq; /* NULL without DTO or RMR_BIND flag, and while the EVD is destroyed */
	uint64_t spin;	  /* nanoseconds that a waiter polls before it first blocks */
	DAT_EVD_FLAGS flags; /* constant */
	DAT_COUNT qlen;	     /* the largest threshold, and room for software events */
	struct evd_entry *ring;
	uint32_t ring_mask, head, tail; /* free-running; tail - head entries are queued */
	uint32_t software;		/* entries of the ring that evd_post made */
	uint32_t completions_max;	/* entries that completions may use */
	struct dto_ring *last_ring;	/* of the last completion, see dto_forget */
	struct ib_completion held;
	uint16_t state;	 /* EVD_WAITED and so on */
	uint32_t arming; /* EVD_CLASS and so on */
	bool enabled;
	bool zombie;	  /* destroyed by an abrupt close; other objects still refer to it */
	bool overflowed;  /* the present overflow was reported */
	bool room_wanted; /* an event was refused: the next free entry makes EVD_DUE_ROOM due */
	unsigned due;	  /* EVD_DUE_*, until evd_unlock */
	uint8_t notes;	  /* EVD_MAY_RETURN and so on */
	unsigned char
		idle_arms; /* armings until the channel is read although none of its events is due */
	DAT_COUNT need;	   /* the waiter's threshold */
	/* `wake` is raised once so many events are pending; 0: never */
	DAT_COUNT armed_threshold;
	DAT_EV_WAIT_POLICY policy;
	uint32_t flushes; /* QPs that may flush receives into it: their connection has ended */
	/* raised by software events, set_unwaitable, signals, free */
	struct wakefd wake;
	atomic_int fd;	   /* the consumer's descriptor + 1, created on request; 0: none */
	bool thread_reads; /* the event thread reads the channel; guarded by `attaching` */
	int channel; /* the channel in its CNO's descriptor; -1: none; guarded by `attaching` */
	struct wakefd left; /* raised by a waiter that leaves an EVD being destroyed */
	/*
	 * This and EVD_READY are changed with the locks of the CNO and of the EVD held, so either lock is enough to read
	 * them.
	 */
	struct dapl_cno *cno;
	TAILQ_ENTRY(dapl_evd) cno_link, ready_link; /* guarded by the CNO's lock */
	struct task task;			    /* for EVD_DUE_LATER */
	TAILQ_HEAD(, evd_room_waiter) endings;	    /* of terminal events */
	struct evd_counters counters;
	/* the streams of the EVD, from which its class follows */
	unsigned dto_streams;				     /* request and recv streams attached */
	unsigned unsignalled_streams, srq_threshold_streams; /* of these */
	unsigned other_streams;				     /* connection, CR, async */
	unsigned sets;					     /* poll sets that contain the EVD */
	unsigned pins;					     /* see evd_pin */
};

static inline struct dapl_evd *evd_from(DAT_EVD_HANDLE handle)
{
	return obj_from(handle, OBJ_EVD);
}

#define EVD_CM_FLAGS ((DAT_EVD_FLAGS)(DAT_EVD_CONNECTION_FLAG | DAT_EVD_CR_FLAG))

/* The events of the EVD come from the CM, not from a CQ: threads that wait for them or poll read the CM themselves. */
static inline bool evd_has_cm_alone(const struct dapl_evd *evd)
{
	return !evd->cq && evd->flags & EVD_CM_FLAGS;
}

/* Called before a thread that cannot read the CM (a CNO's, one that polls a descriptor) may wait for the EVD's events. */
void evd_share_cm(const struct dapl_evd *evd);

static inline void evd_set_locked(struct dapl_evd *evd, unsigned bits, bool on)
{
	evd->state = (uint16_t)((evd->state & ~bits) | (on ? bits : 0));
}

static inline void evd_tally_locked(struct dapl_evd *evd, DAT_EVD_COUNTERS which)
{
	evd->counters.value[which]++;
}

DAT_RETURN evd_create(struct dapl_ia *ia, DAT_COUNT qlen, DAT_EVD_FLAGS flags,
		      struct dapl_evd **evd); /* publishes it */
/* Destroys an EVD, which may be half-built. Wakes a waiter and returns when it has left. */
void evd_destroy(struct dapl_evd *evd);

/*
 * Queues a software-side event (connection, CR, async, software) behind all completions that are in
 * the CQ, sets its evd_handle, and wakes the waiter if it now has enough. false: the queue is full,
 * the event is not queued, and the caller follows the overflow rule of its stream. The caller holds
 * no EVD lock.
 */
bool evd_post(struct dapl_evd *evd, const DAT_EVENT *event);
/* The same, and reports an overflow to the async EVD. */
bool evd_post_or_overflow(struct dapl_evd *evd, const DAT_EVENT *event);
/* The same for the terminal event of an EP. After false, the task of the waiter gets its `due` once there is room. */
bool evd_post_ending(struct dapl_evd *evd, const DAT_EVENT *event, struct evd_room_waiter *waiter);
void evd_ending_cancel(struct dapl_evd *evd, struct evd_room_waiter *waiter);
/*
 * Drains the CQ into the ring as far as there is room; the caller holds no EVD lock. false: there are
 * or may be completions left.
 */
bool evd_drain(struct dapl_evd *evd);
/*
 * Makes FLUSHED events of what is outstanding in a ring of the QP `qp_num`, which is in error and returns no more, as far
 * as there is room; the caller holds no EVD lock. Does nothing for NULL.
 */
void evd_flush(struct dapl_evd *evd, struct dto_ring *ring, uint32_t qp_num);
void evd_drain_locked(struct dapl_evd *evd);
DAT_COUNT evd_count_locked(const struct dapl_evd *evd); /* after a drain: the pending count */
/*
 * Takes the next event for a consumer's call, from the ring or directly from the CQ. false: there is
 * none.
 */
bool evd_take_locked(struct dapl_evd *evd, DAT_EVENT *event);
/* A dequeue in any state of the EVD; returns the error that DAT defines for it. May release and reacquire the lock. */
DAT_RETURN evd_dequeue_slow_locked(struct dapl_evd *evd, DAT_EVENT *event);
bool evd_take_slow_locked(struct dapl_evd *evd, unsigned made, DAT_EVENT *event);

/*
 * evd/read.c: for a thread that has polled in vain `polls` times. Now and then it reads the CM's events here, if the EVD
 * takes no other ones. true: it read some, and the lock was released and reacquired.
 */
bool evd_read_cm_locked(struct dapl_evd *evd, uint64_t polls);

/* True if a waiter blocks and has enough events: the caller raises `wake` after it has released the lock. */
static inline bool evd_wakes_locked(struct dapl_evd *evd)
{
	if (evd->state & EVD_WAITED)
		return (evd->notes & (EVD_MAY_RETURN | EVD_AWAKE)) == EVD_MAY_RETURN &&
		       evd_count_locked(evd) >= evd->need;
	if (!evd->armed_threshold || evd_count_locked(evd) < evd->armed_threshold)
		return false;
	evd->armed_threshold = 0;
	return true;
}

/*
 * evd/wait.c: a wait that may block. The caller holds the lock, and has the thread's cancellation off; `cancel` is what cancel_off
 * returned. Releases the lock.
 */
DAT_RETURN evd_wait_locked(struct dapl_evd *evd, int cancel, DAT_TIMEOUT timeout,
			   DAT_COUNT threshold, DAT_EVENT *event, DAT_COUNT *more);
/* Checks `threshold` against the class of the EVD (evd/wait.c). */
DAT_RETURN evd_check_class_locked(const struct dapl_evd *evd, DAT_COUNT threshold);

/*
 * evd/arm.c: for a thread that blocks until the channel is readable. After return the CQ fires for the next
 * completion, or its channel is already readable; all earlier completions are in the ring, as far as it has room.
 */
DAT_RETURN evd_arm_cq_locked(struct dapl_evd *evd, bool solicited);
void evd_disarmed_locked(struct dapl_evd *evd); /* an event of the channel was read */
/* Arms the CQ again, if it is armed, after a change of the CQ or of what it is armed for. */
void evd_rearm_locked(struct dapl_evd *evd);
/*
 * Between these two calls a QP may flush receives into the EVD, so a thread that waits for solicited ones is woken by any
 * completion. The caller may hold the lock of the EP.
 */
void evd_flush_expect(struct dapl_evd *evd);
void evd_flush_over(struct dapl_evd *evd);
/*
 * The CQ fired, and its event was read. Returns true if the caller has to trigger the CNO; sets *wake
 * if it has to raise `wake`. It does both after it has released the lock.
 */
bool evd_fired_locked(struct dapl_evd *evd, bool *wake);
/* The EVD has a CNO, and an event of it may trigger that. */
static inline bool evd_may_trigger_locked(const struct dapl_evd *evd)
{
	return evd->cno && evd->enabled && !(evd->state & (EVD_WAITED | EVD_DYING));
}
void evd_arm_locked(struct dapl_evd *evd); /* arms the CQ if an event of it may trigger the CNO */
/* Re-arms the CQ, then counts the pending events. More than `known` of them make a trigger due. */
void evd_rearm_and_count_locked(struct dapl_evd *evd, DAT_COUNT known);
DAT_RETURN evd_arm(struct dapl_evd *evd, bool solicited, DAT_COUNT threshold);
int evd_fd(struct dapl_evd *evd); /* -1 with errno */
/* True if a dequeue would return an event or an error of the EVD. Leaves `due` to the next evd_unlock. */
bool evd_is_pending(struct dapl_evd *evd);
/* Consumes a pending signal, if any. */
static inline bool evd_take_signal(struct dapl_evd *evd)
{
	return wakefd_take_signal(&evd->wake);
}

void evd_discard_locked(
	struct dapl_evd *evd); /* drops all pending events and returns their SRQ slots */

void evd_unlock_slow(struct dapl_evd *evd); /* something is due */

/* Releases the lock after any action that may have taken from the CQ or the ring. */
static inline void evd_unlock(struct dapl_evd *evd)
{
	if (__builtin_expect(!evd->due, 1))
		lock_release(&evd->lock);
	else
		evd_unlock_slow(evd);
}

void evd_task_run(struct task *task, unsigned mask);
/* Posts the `due` of the waiters in `endings` to their tasks. */
void evd_endings_wake_locked(struct dapl_evd *evd);
void evd_broken(
	struct dapl_evd *evd); /* the CQ overflowed: sets the ERROR state and wakes the waiter */

enum evd_stream { EVD_STREAM_REQUEST, EVD_STREAM_RECV, EVD_STREAM_SRQ_RECV, EVD_STREAM_OTHER };
/*
 * Attaches a stream with the EP's completion flags for that side, and holds the EVD. false: the flags
 * do not agree with the other streams, and nothing has changed. A NULL EVD returns true.
 */
bool evd_attach(struct dapl_evd *evd, enum evd_stream stream, DAT_COMPLETION_FLAGS flags);
void evd_detach(struct dapl_evd *evd, enum evd_stream stream, DAT_COMPLETION_FLAGS flags);
bool evd_is_referred_locked(
	const struct dapl_evd *evd); /* objects other than its CNO refer to it, or it is pinned */
bool evd_join_set(struct dapl_evd *evd); /* false: the EVD is being freed */
void evd_leave_set(struct dapl_evd *evd);
/*
 * For a thread that posts to an EVD that it found under ia_all_lock. A pinned EVD may be destroyed, and then drops the
 * events posted to it, but its memory is not reused until evd_unpin.
 */
void evd_pin(struct dapl_evd *evd);
void evd_unpin(struct dapl_evd *evd);

/* Operations of the event extension. The handle is a live EVD (ia/ext_table.c). */
DAT_RETURN ext_evd_get_fd(DAT_HANDLE evd, va_list args);
DAT_RETURN ext_evd_arm(DAT_HANDLE evd, va_list args);
DAT_RETURN ext_evd_dequeue_n(DAT_HANDLE evd, va_list args);
DAT_RETURN ext_evd_pending(DAT_HANDLE evd, va_list args);
DAT_RETURN ext_evd_signal(DAT_HANDLE evd, va_list args);
DAT_RETURN ext_evd_wait_policy(DAT_HANDLE evd, va_list args);

#endif
