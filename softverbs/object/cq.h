/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * Completion queues. A CQ stores no completions: a poll merges the finished work of its member
 * QPs.
 */
#ifndef SV_OBJECT_CQ_H
#define SV_OBJECT_CQ_H

#include <time.h>
#include "softverbs/object/area.h"

#define CQ_HOT 8 /* members that each poll examines; with more, the others must be marked ready */

enum cq_role {
	CQ_SENDS = 1, /* the CQ is the QP's send CQ */
	CQ_RECVS = 2,
};

struct cq_member {
	struct sv_qp *qp;
	unsigned roles;
};

struct cq_many {		   /* used once the CQ has had more than CQ_HOT members */
	struct cq_member *members; /* all of them, by QP index */
	uint64_t *is_hot;	   /* a bit for each QP index */
	struct cq_ready_by_peers *ready;
	uint64_t ready_offset;
	uint32_t victim; /* index in `hot` of the member that is replaced next */
	uint32_t next;	 /* QP index with which a poll of the marked ones begins: base/turn.h */
	uint32_t passed_over; /* polls since the last one that had room for them */
};

/* Completions of QPs that were destroyed before they were polled; the next poll begins at `next`. */
struct cq_kept {
	struct ibv_wc *wc;
	uint32_t room, count, next;
};

/* What the engine last saw of the CQ (verbs/unpolled.h). */
struct cq_unpolled {
	struct sv_timer timer; /* while it does not rest */
	uint64_t pause;	       /* of that timer */
	bool rests;
	uint32_t polls, arm_round;
};

/* Polls of the CQ take the slow path. */
enum cq_slow {
	CQ_BROKEN = 1, /* overrun: polls return `left` more completions, then fail */
	CQ_KEEPS = 2,  /* `kept` is not empty */
	CQ_STILL = 4,  /* polls find nothing for a moment, and do nothing (verbs/still.h) */
	CQ_SWAP = 8,   /* the next poll first lets the engine swap memory (verbs/swap.h) */
	CQ_MISSED = 16 /* a poll found nothing because of CQ_STILL */
};

struct sv_cq {
	union {
		struct ibv_cq ibv;
		struct ibv_cq_ex ex;
	};
	/* Guards all below. Acquired before an SQ's lock and after a channel's. */
	_Alignas(SV_LINE) struct lock lock;
	uint32_t slow; /* enum cq_slow */
	uint32_t left;
	_Atomic(uint32_t) polls;   /* since the last arming */
	uint32_t count, turn;	   /* entries of `hot`; the one that the next poll begins with */
	_Atomic(uint32_t) waiting; /* member QPs with sends that wait */
	uint32_t waiting_turn;	   /* the entry of `hot` whose sends the next poll tries first */
	/* Member QPs with bounce memory: their initiators ask this process to copy. */
	_Atomic(uint32_t) served;
	_Atomic(uint32_t) far; /* roles of member QPs whose peer is on another host */
	const uint32_t *alive;
	struct cq_by_peers *by_peers;
	struct cq_by_owner *by_owner;
	struct cq_member hot[CQ_HOT];
	/* The rest is off the fast path. */
	_Alignas(SV_LINE) struct cq_many many;
	uint32_t index;
	uint32_t total;		  /* members */
	uint64_t demand;	  /* sum of the lengths of the members' queues */
	uint32_t arm_round;	  /* generation of the last arming */
	bool arm_counted;	  /* the event of that arming is in `fired` or `unblocked` */
	bool unblocked;		  /* an event came to the thread in ibv_block */
	uint32_t blocks_on;	  /* `arm` as that thread expects it */
	uint32_t fired, consumed; /* channel events, by the CQ's lock */
	unsigned pins;		  /* under the area's table_lock */
	TAILQ_ENTRY(sv_cq) entry; /* in the channel's list, under the channel's lock */
	struct cq_unpolled unpolled;
	struct cq_kept kept;
	struct ex_poll *ex_poll;
};

static inline struct sv_cq *cq_of(struct ibv_cq *ibv)
{
	return container_of(sv_cq, ibv, ibv);
}

/*
 * Makes the QP a member, detaches it. 0 or ENOMEM. A QP that has both roles is attached once,
 * with both.
 */
int sv_cq_attach(struct sv_cq *cq, struct sv_qp *qp, unsigned roles);
void sv_cq_detach(struct sv_cq *cq, struct sv_qp *qp);
/* A member's queue has room for `more` additional entries. The caller holds the CQ's lock. */
void sv_cq_demand_grew_locked(struct sv_cq *cq, uint32_t more);

/* Marks a QP of this process as ready to poll. cq_fire must follow. */
void cq_mark(struct sv_cq *cq, uint32_t qp_index);

/*
 * `count` sends of a QP of this process completed: marks and counts them if the CQ's mode is
 * CQ_MANY or CQ_TIGHT.
 */
void sv_cq_notify_sends_slow(struct sv_cq *cq, uint32_t qp_index, uint32_t count);

static inline void cq_notify_sends(struct sv_cq *cq, uint32_t qp_index, uint32_t count)
{
	if (unlikely(atomic_load_explicit(&cq->by_peers->mode, memory_order_relaxed)))
		sv_cq_notify_sends_slow(cq, qp_index, count);
}

/* This process completed a receive of one of its own QPs. cq_fire must follow. */
void sv_cq_notify_recv(struct sv_cq *cq, uint32_t qp_index);
/* Messages wait at a QP of this process, and may not have been announced. */
void sv_cq_notify_arrived(struct sv_cq *cq, uint32_t qp_index);
/*
 * `count` receives of a QP of this process were flushed. They are ready to poll, and count as
 * solicited.
 */
void sv_cq_notify_flush(struct sv_cq *cq, uint32_t qp_index, uint32_t count);

/* Whether the program waits for an event. */
static inline bool arm_is_for_program(uint32_t arm)
{
	return (arm & ARM_TYPE) == ARM_SOLICITED || (arm & ARM_TYPE) == ARM_ANY;
}

/*
 * Called after a completion was published and after fence_full: if the CQ is armed for such a
 * completion, disarms it and sends its event. `owner`: the process that owns the CQ.
 */
void sv_cq_fire_armed(struct cq_by_peers *by_peers, struct sv_peer *owner, uint32_t index,
		      bool solicited);

/*
 * After a completion was published: whether the owner of the CQ polls, and need not be woken. `expedited`: membarrier acts on
 * both processes.
 */
static inline bool cq_is_polled(const struct cq_by_peers *by_peers, bool expedited)
{
	atomic_signal_fence(memory_order_seq_cst); /* pairs with sv_area_barrier in sv_cq_arm */
	return likely(expedited) && atomic_load_explicit(&by_peers->polled, memory_order_relaxed);
}

static inline void cq_fire(struct cq_by_peers *by_peers, struct sv_peer *owner, uint32_t index,
			   bool solicited)
{
	uint32_t armed = atomic_load_explicit(&by_peers->arm, memory_order_relaxed) & ARM_TYPE;

	if (unlikely(armed == ARM_ANY || (armed == ARM_SOLICITED && solicited)))
		sv_cq_fire_armed(by_peers, owner, index, solicited);
}

/* The same after a message, of which the owner's engine may want to know, too. */
static inline void cq_fire_message(struct cq_by_peers *by_peers, struct sv_peer *owner,
				   uint32_t index, bool solicited)
{
	uint32_t arm = atomic_load_explicit(&by_peers->arm, memory_order_relaxed);

	if (unlikely(arm & ARM_ANY ||
		     (arm & ARM_SOLICITED && solicited))) /* or ARM_ENGINE, which has both bits */
		sv_cq_fire_armed(by_peers, owner, index, solicited);
}

/*
 * Consumes an event of the CQ that its channel has not returned yet; false if there is none. The
 * caller holds the channel's lock.
 */
bool sv_cq_event_consume(struct sv_cq *cq);
bool sv_cq_has_event(struct sv_cq *cq); /* The same, but consumes nothing. */
/* Adds and consumes an event for a token that has none. Polls find no completion for it, which is allowed. */
void sv_cq_event_add_consumed(struct sv_cq *cq);

/*
 * Counts the event of the last arming, once a completion has disarmed the CQ; returns the arm word. The caller holds the
 * CQ's lock.
 */
uint32_t sv_cq_event_count_locked(struct sv_cq *cq);

/* cq_block.c */
/*
 * An extension of verbs: a thread sleeps until a CQ has an event, by one system call, and without its channel.
 * True: from now on the event of the present arming ends ibv_block, and the channel does not get it. False: the CQ is not
 * armed, or has fired, so that the channel has the event. One thread at a time; until ibv_block_end the CQ must stay.
 */
bool ibv_block_begin(struct ibv_cq *cq);
/*
 * Sleeps until the event, ibv_block_interrupt, or `timeout` is over; NULL: no limit. It may return early. 0, or EINTR if a
 * signal handler has run, whatever its flags. A cancellation point; the caller has deferred cancellation.
 */
int ibv_block(struct ibv_cq *cq, const struct timespec *timeout);
/* Ends ibv_block, now or when it is called. Async-signal-safe; without effect outside begin and end. */
void ibv_block_interrupt(struct ibv_cq *cq);
/* True if the event has come, which needs no acknowledgement. Else the CQ stays armed, for the channel. */
bool ibv_block_end(struct ibv_cq *cq);
/* Wakes the thread of the CQ's owner that sleeps, if the arm word says that there is one. */
void sv_cq_block_wake(struct cq_by_peers *by_peers, uint32_t arm);

/* The number of completions that a poll would find. The caller holds the CQ's lock. */
uint64_t sv_cq_count_locked(struct sv_cq *cq);
/* Those of one member alone, counted and polled. */
uint64_t sv_cq_member_count_locked(const struct cq_member *member);
int sv_cq_member_poll_locked(struct sv_cq *cq, const struct cq_member *member, int count,
			     struct ibv_wc *wc);

/* cq_kept.c */
/* The QP, which is about to be destroyed and takes no more messages, leaves its completions to the CQ. */
void sv_cq_keep(struct sv_cq *cq, struct sv_qp *qp, unsigned roles);
int sv_cq_kept_take_locked(struct sv_cq *cq, int count, struct ibv_wc *wc);

/*
 * Engine, with the CQ pinned. sv_cq_attend handles an overrun that a sender reported, and writes
 * tokens that are due. sv_cq_peer_gone replaces the token that a dead process may not have
 * written.
 */
void sv_cq_attend(struct sv_cq *cq);
/* Sets or clears a flag in `slow` of each CQ. The caller holds no lock. */
void sv_cqs_slow(enum cq_slow flag, bool on);
void sv_cq_peer_gone(struct sv_cq *cq);

void sv_cq_close_ex(struct sv_cq *cq); /* accepts a CQ without an extended part */

/* Creates a CQ of `cqe` entries, with its public fields filled in. NULL with errno. */
struct sv_cq *sv_cq_make(struct ibv_context *context, uint32_t cqe, void *cq_context,
			 struct ibv_comp_channel *channel, uint32_t comp_vector);

#endif
