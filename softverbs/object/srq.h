/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Shared receive queues: senders take slots in order, and the slots become free out of order. */
#ifndef SV_OBJECT_SRQ_H
#define SV_OBJECT_SRQ_H

#include "softverbs/object/qp.h"

struct sv_srq {
	struct ibv_srq ibv;
	const uint32_t *alive;
	uint32_t id, index; /* id 0: not allocated yet */
	struct sv_wq wq;    /* its lock guards free_head too */
	uint32_t free_head;
	_Atomic(uint32_t) free_tail;
	_Atomic(uint32_t) *free;  /* ring of slots that are free to post into; lap:16 | slot:16 */
	_Atomic(uint32_t) *round; /* by slot: how often it was posted; changed under wq.lock */
	struct srq_by_peers *by_peers;
	struct srq_by_owner *by_owner;
	uint32_t limit_round; /* generation of the last arming of the limit; wq.lock */
	pthread_mutex_t lock; /* guards the list and `woken`; acquired after a QP's modify */
	TAILQ_HEAD(, sv_qp) qps;
	struct sv_qp *woken; /* whose initiator the last post woke first */
	bool lost; /* a stopped process may still write into its receive slots; under `lock` */
	uint32_t *missing; /* by slot: its round when a search did not find it; engine */
	struct sv_timer recover_timer;
	unsigned pins; /* under the area's table_lock */
};

static inline struct sv_srq *srq_of(struct ibv_srq *ibv)
{
	return container_of(sv_srq, ibv, ibv);
}

/*
 * srq_resize.c. The shape lock is held while a QP is attached or detached, so that a resize finds
 * the QP complete; NULL is accepted. sv_srq_grow implements the resize of ibv_modify_srq: 0 or
 * ENOMEM.
 */
void sv_srq_shape_lock(const struct sv_srq *srq);
void sv_srq_shape_unlock(const struct sv_srq *srq);
void sv_srq_shape_fork_child(void);
int sv_srq_grow(struct sv_srq *srq, uint32_t entries);

void sv_srq_attach(struct sv_srq *srq, struct sv_qp *qp);
void sv_srq_detach(struct sv_srq *srq, struct sv_qp *qp);

/* The slot was polled and may be posted into again. Any thread. */
void sv_srq_slot_release(struct sv_srq *srq, uint32_t slot);

/*
 * Sender, between epoch_enter and epoch_leave: takes the oldest posted slot. False if there is
 * none.
 */
bool sv_srq_claim(struct sv_remote_rq *remote, uint64_t *entry);

/* Engine, with the SRQ pinned: the limit was reached. */
void sv_srq_attend(struct sv_srq *srq);
/*
 * A dead sender, or one whose QP failed, may have taken a slot that it will not fill: soon the
 * slot is flushed or posted again. sv_srq_recover_now: before return.
 */
void sv_srq_recover(struct sv_srq *srq);
void sv_srq_recover_now(struct sv_srq *srq);

#endif
