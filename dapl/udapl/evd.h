/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* The event dispatcher: a bounded queue of events over a CQ, and the one way to sleep on it. */
#ifndef DAPL_EVD_H
#define DAPL_EVD_H

#include <dat2/dat_event_extensions.h>
#include "dapl/udapl/cno.h"
#include "dapl/udapl/dto.h"
#include "util/lock.h"
#include "util/wakefd.h"

/* dapl_evd.state; with none of these the next event is the next completion of the CQ. */
#define EVD_WAITED     (1u << 0) /* a thread is in dat_evd_wait */
#define EVD_BROKEN     (1u << 1) /* the CQ failed */
#define EVD_HOLDING    (1u << 2) /* `held` is a completion */
#define EVD_QUEUED     (1u << 3) /* the ring is not empty */
#define EVD_UNWAITABLE (1u << 4)
#define EVD_DYING      (1u << 5)
#define EVD_MERGED     (1u << 6) /* completions and connection events; constant */
#define EVD_NO_CQ      (1u << 7) /* constant */
#define EVD_READY      (1u << 8) /* on the ready list of its CNO, whose lock is held to change it */

/*
 * dapl_evd.arming. First the class, at most one bit, that the completion streams on the EVD make of it (evd_stream.c).
 * None: they are DEFAULT or EVD_THRESHOLD. On an EVD that is MIXED some streams are UNSIGNALLED, and each keeps its own
 * rule of which completions notify.
 */
#define EVD_MIXED	(1u << 0)
#define EVD_UNSIGNALLED (1u << 1)
#define EVD_SOLICITED	(1u << 2)
#define EVD_CLASS	(EVD_MIXED | EVD_UNSIGNALLED | EVD_SOLICITED)
#define EVD_MODERATED	(1u << 3) /* the CQ was asked to fire after several completions */
#define EVD_ARMED	(1u << 4) /* the CQ was armed, and no event of it was read since */
#define EVD_NARROW	(1u << 5) /* for solicited completions only */

struct evd_entry {
	DAT_EVENT event;
	uint64_t srq_id; /* SRQ slot to give back with it (dto_id); 0: none */
	bool software;	 /* came through evd_post: counts against qlen */
};

/*
 * Order of events: the CQ is emptied into the ring before anything else enters the ring, so
 * completions still in the CQ are younger than all that is in the ring. The ring holds qlen
 * software-side events beside a whole CQ.
 *
 * A completion that beats the ESTABLISHED of its own connection to an EVD that carries both is
 * held back, and with it what is behind it in the CQ, until that event (or the end of the attempt)
 * is in the ring.
 */
struct dapl_evd {
	struct obj obj;	     /* users: EPs (one per stream), service points, IAs */
	struct lock lock;    /* all below unless said; only SRQ locks are inside it */
	struct ib_cq *cq;    /* NULL without DTO or RMR_BIND flag, and when it ends */
	uint64_t spin;	     /* nanoseconds of looking before a first sleep */
	DAT_EVD_FLAGS flags; /* constant */
	DAT_COUNT qlen;	     /* the largest threshold, and room for software events */
	struct evd_entry *ring;
	uint32_t ring_mask, head, tail; /* free-running; tail - head entries are queued */
	uint32_t software;		/* entries in the ring that came through evd_post */
	uint32_t completions_max;	/* entries that may come from the CQ */
	struct dto_ring *last_ring;	/* of the last completion, see dto_forget */
	struct ib_completion held;
	uint16_t state;	 /* EVD_WAITED and so on */
	uint32_t arming; /* EVD_CLASS and so on */
	bool enabled;
	bool zombie;		 /* destroyed by an abrupt close, others refer to it */
	bool overflowed;	 /* this episode's overflow was reported */
	bool room_wanted;	 /* an event was refused: one that leaves is news */
	unsigned due;		 /* what evd_unlock has to see to: */
#define EVD_DUE_ROOM	1u	 /* async_room and ep_room */
#define EVD_DUE_BROKEN	2u	 /* the CQ failed: news for the async EVD */
#define EVD_DUE_TRIGGER 4u	 /* evd_trigger */
#define EVD_DUE_UNREADY 8u	 /* evd_unready */
	bool awake;		 /* the waiter: it looks before it sleeps again */
	bool may_return;	 /* a notification event came since the decision to sleep */
	bool news;		 /* one entered the ring since the last look for the CNO */
	unsigned char idle_arms; /* armings until the channel is read for nothing */
	DAT_COUNT need;		 /* the waiter's threshold */
	/* `wake` is to be raised once so many are pending; 0: never */
	DAT_COUNT watched;
	DAT_EV_WAIT_POLICY policy;
	/* raised by software events, set_unwaitable, signals, free */
	struct wakefd wake;
	atomic_int fd;	      /* the consumer's, made when asked for; + 1 */
	bool thread_reads;    /* the event thread reads the channel; `attaching` */
	int channel;	      /* that its CNO watches; -1: none; `attaching` */
	struct wakefd left;   /* raised by a waiter that leaves a dying EVD */
	struct dapl_cno *cno; /* both locks; see cno.h */
	TAILQ_ENTRY(dapl_evd) cno_link, ready_link; /* the CNO's lock */
	struct evd_counters counters;
	/* stream agreement; and `class` */
	unsigned dto_streams;				     /* request and recv streams attached */
	unsigned unsignalled_streams, srq_threshold_streams; /* of these */
	unsigned other_streams;				     /* connection, CR, async */
	unsigned sets;					     /* poll sets it is in */
};

static inline struct dapl_evd *evd_from(DAT_EVD_HANDLE handle)
{
	return obj_from(handle, OBJ_EVD);
}

static inline void evd_set_locked(struct dapl_evd *evd, unsigned bits, bool on)
{
	evd->state = (uint16_t)((evd->state & ~bits) | (on ? bits : 0));
}

static inline void evd_tally_locked(struct dapl_evd *evd, DAT_EVD_COUNTERS which)
{
	evd->counters.value[which]++;
}

DAT_RETURN evd_create(struct dapl_ia *ia, DAT_COUNT qlen, DAT_EVD_FLAGS flags,
		      struct dapl_evd **evd); /* published */
/* Accepts a half-built one. Wakes a waiter and waits until it is out. */
void evd_destroy(struct dapl_evd *evd);

/*
 * Queues a software-side event (connection, CR, async, software) behind everything the CQ already
 * holds for it, and wakes who is to be woken. false: the queue is full, the event is not queued,
 * and the caller handles it as its stream's overflow rule says. `event->evd_handle` is filled in
 * here.
 */
bool evd_post(struct dapl_evd *evd, const DAT_EVENT *event);
/* The same, and reports an overflow episode to the async EVD. */
bool evd_post_or_overflow(struct dapl_evd *evd, const DAT_EVENT *event);
/*
 * Moves completions from the CQ into the ring as far as there is room; caller holds no EVD lock.
 * false: some are left, or may be.
 */
bool evd_drain(struct dapl_evd *evd);
void evd_drain_locked(struct dapl_evd *evd);
DAT_COUNT evd_count_locked(const struct dapl_evd *evd); /* after a drain: the pending count */
/*
 * What a consumer's call takes: the next event, from the ring or straight from the CQ. false:
 * none.
 */
bool evd_take_locked(struct dapl_evd *evd, DAT_EVENT *event);
/* A dequeue whatever there is, or is not, in the way; the precise error. */
DAT_RETURN evd_dequeue_special_locked(struct dapl_evd *evd, DAT_EVENT *event);
bool evd_take_uncommon_locked(struct dapl_evd *evd, unsigned made, DAT_EVENT *event);

/* Somebody sleeps and has enough to be woken for: the caller raises `wake` once it gave the lock back. */
static inline bool evd_wakes_locked(struct dapl_evd *evd)
{
	if (evd->state & EVD_WAITED)
		return !evd->awake && evd->may_return && evd_count_locked(evd) >= evd->need;
	if (!evd->watched || evd_count_locked(evd) < evd->watched)
		return false;
	evd->watched = 0;
	return true;
}

/* What waits look at besides (evd_wait.c). */
DAT_RETURN evd_check_class_locked(const struct dapl_evd *evd, DAT_COUNT threshold);

/*
 * evd_arm.c: for a thread that watches the channel for its level. From now on the CQ fires for what completes,
 * or its channel is readable; all that completed is in the ring, as far as there is room.
 */
DAT_RETURN evd_arm_cq_locked(struct dapl_evd *evd, bool solicited);
void evd_disarmed_locked(struct dapl_evd *evd); /* an event was read */
/* Once more, if it is armed: what it is armed for, or the CQ itself, is another one. */
void evd_rearm_locked(struct dapl_evd *evd);
/*
 * The CQ fired, and its event was read. true: the CNO is to be told. *wake: `wake` is to be raised
 * once the lock is given back.
 */
bool evd_fired_locked(struct dapl_evd *evd, bool *wake);
DAT_RETURN evd_arm(struct dapl_evd *evd, bool solicited, DAT_COUNT threshold);
int evd_fd(struct dapl_evd *evd); /* -1 with errno */
/* A dequeue would return something, or tell of the EVD's end. Leaves `due` to the next evd_unlock. */
bool evd_has_news(struct dapl_evd *evd);
/* Uses up a signal. */
static inline bool evd_take_signal(struct dapl_evd *evd)
{
	return wakefd_take_signal(&evd->wake);
}

void evd_discard_locked(struct dapl_evd *evd); /* all that could be taken, SRQ slots given back */
void evd_settle(struct dapl_evd *evd, unsigned due); /* no EVD lock held */

/* Gives the lock back after anything that may have taken from the CQ or the ring. */
static inline void evd_unlock(struct dapl_evd *evd)
{
	unsigned due = evd->due;

	if (__builtin_expect(!due, 1)) {
		lock_release(&evd->lock);
		return;
	}
	evd->due = 0;
	lock_release(&evd->lock);
	evd_settle(evd, due);
}

void evd_broken(struct dapl_evd *evd); /* its CQ overflowed: ERROR state, sleeper woken */

enum evd_stream { EVD_STREAM_REQUEST, EVD_STREAM_RECV, EVD_STREAM_SRQ_RECV, EVD_STREAM_OTHER };
/*
 * Attaches a stream with the EP's completion flags for that side, taking a reference on the EVD.
 * false: the flags do not agree with the other streams; nothing changed. EVD may be NULL (true).
 */
bool evd_attach(struct dapl_evd *evd, enum evd_stream stream, DAT_COMPLETION_FLAGS flags);
void evd_detach(struct dapl_evd *evd, enum evd_stream stream, DAT_COMPLETION_FLAGS flags);
bool evd_join_set(struct dapl_evd *evd); /* false: it is being freed */
void evd_leave_set(struct dapl_evd *evd);

#endif
