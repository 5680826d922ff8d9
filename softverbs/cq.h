/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Completion queues: a view on the finished work of their QPs, merged when polled. */
#ifndef SV_CQ_H
#define SV_CQ_H

#include "softverbs/area.h"

#define CQ_HOT 8 /* QPs looked at in each poll; with more, the others must be marked ready */

enum cq_role {
	CQ_SENDS = 1, /* the CQ is the QP's send CQ */
	CQ_RECVS = 2,
};

struct cq_member {
	struct sv_qp *qp;
	unsigned roles;
};

struct cq_many {		   /* with more than CQ_HOT members */
	struct cq_member *members; /* all of them, by QP index */
	uint64_t *is_hot;	   /* a bit for each QP index */
	struct rw_ready *ready;
	uint64_t ready_offset;
	uint32_t victim; /* of hot, the next to leave */
};

struct sv_cq {
	union {
		struct ibv_cq ibv;
		struct ibv_cq_ex ex;
	};
	_Alignas(SV_LINE) struct lock
		lock; /* guards all below; taken before an SQ's, after a channel's */
	bool broken;  /* overrun: `left` more are handed out, then it fails */
	uint32_t left;
	uint32_t count, turn;	   /* of hot; which one polls begin with */
	_Atomic(uint32_t) waiting; /* member QPs with sends that wait for something */
	_Atomic(uint32_t) served;  /* member QPs whose initiator has copies made */
	const uint32_t *alive;
	struct rw_cq *rw;
	struct ro_cq *ro;
	struct cq_member hot[CQ_HOT];
	/* seldom touched */
	_Alignas(SV_LINE) struct cq_many many;
	uint32_t index;
	uint32_t total;		  /* members */
	uint64_t demand;	  /* completions that the members' queues can have at once */
	uint32_t arm_round;	  /* of the last arming */
	bool arm_counted;	  /* its event is in `fired` */
	bool repair;		  /* a token may be there without an event: then it is this CQ's */
	uint32_t fired, consumed; /* channel events */
	unsigned pins;		  /* area table lock */
	TAILQ_ENTRY(sv_cq) entry; /* in the channel's list, under its lock */
	struct ex_poll *ex_poll;
};

static inline struct sv_cq *cq_of(struct ibv_cq *ibv)
{
	return container(sv_cq, ibv, ibv);
}

/* ENOMEM or 0. A QP with both roles is attached once with both. */
int cq_attach(struct sv_cq *cq, struct sv_qp *qp, unsigned roles);
void cq_detach(struct sv_cq *cq, struct sv_qp *qp);
/* A member's queue got longer by so many. */
void cq_demand_grew_locked(struct sv_cq *cq, uint32_t more);

/* The QP has something to poll; then cq_fire. For QPs of this process. */
void cq_mark(struct sv_cq *cq, uint32_t qp_index);

/* Sends of a QP of this process completed; with CQ_MANY and CQ_TIGHT somebody has to be told. */
void cq_tell_sends_slow(struct sv_cq *cq, uint32_t qp_index, uint32_t count);

static inline void cq_tell_sends(struct sv_cq *cq, uint32_t qp_index, uint32_t count)
{
	if (unlikely(atomic_load_explicit(&cq->rw->mode, memory_order_relaxed)))
		cq_tell_sends_slow(cq, qp_index, count);
}

/* A receive of a QP of this process completed in this process; then cq_fire. */
void cq_tell_recv(struct sv_cq *cq, uint32_t qp_index);
/* Receives of a QP of this process were flushed: they are ready to poll, and count as errors do. */
void cq_tell_flush(struct sv_cq *cq, uint32_t qp_index, uint32_t count);

/*
 * After a completion was published and fence_full: if the CQ is armed for it, the one event of this
 * arming. `owner` is whose CQ it is.
 */
void cq_fire_armed(struct rw_cq *rw, struct sv_peer *owner, uint32_t index, bool solicited);

static inline void cq_fire(struct rw_cq *rw, struct sv_peer *owner, uint32_t index, bool solicited)
{
	uint32_t armed = atomic_load_explicit(&rw->arm, memory_order_relaxed) & ARM_TYPE;

	if (unlikely(armed == ARM_ANY || (armed == ARM_SOLICITED && solicited)))
		cq_fire_armed(rw, owner, index, solicited);
}

/* Whether an event of the CQ is due to its channel's reader; takes it. Under the channel's lock. */
bool cq_take_event(struct sv_cq *cq);
bool cq_has_event(struct sv_cq *cq); /* only whether */
/* The same for a token that no event explains: see data_peer_gone. */
bool cq_take_repair(struct sv_cq *cq);

/* Completions that wait to be polled. */
uint64_t cq_count_locked(struct sv_cq *cq);

/*
 * Engine, pinned: overrun reported by a sender, tokens due; a process died that may have taken a
 * token along.
 */
void cq_attend(struct sv_cq *cq);
void cq_peer_gone(struct sv_cq *cq);

void cq_close_ex(struct sv_cq *cq); /* accepts one without */

/* NULL with errno; the public fields filled. */
struct sv_cq *cq_make(struct ibv_context *context, uint32_t cqe, void *cq_context,
		      struct ibv_comp_channel *channel, uint32_t comp_vector);

#endif
