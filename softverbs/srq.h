/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Shared receive queues: slots are taken by senders in order and come back out of order. */
#ifndef SV_SRQ_H
#define SV_SRQ_H

#include "softverbs/qp.h"

struct sv_srq {
	struct ibv_srq ibv;
	const uint32_t *alive;
	uint32_t id, index; /* id 0: none yet */
	struct sv_wq wq;    /* its lock guards free_head too */
	uint32_t free_head;
	_Atomic(uint32_t) free_tail;
	_Atomic(uint32_t) *free;  /* ring of slots to post into; lap:16 | slot:16 */
	_Atomic(uint32_t) *round; /* by slot, how often it was posted; lock of wq for changes */
	struct rw_srq *rw;
	struct ro_srq *ro;
	uint32_t limit_round; /* lock of wq */
	pthread_mutex_t lock; /* guards the list; taken after a QP's modify */
	TAILQ_HEAD(, sv_qp) qps;
	bool lost;	   /* a stopped process may still write into its landings; lock */
	uint32_t *missing; /* by slot: its round when it was not seen; engine */
	struct sv_timer recover_timer;
	unsigned pins; /* area table lock */
};

static inline struct sv_srq *srq_of(struct ibv_srq *ibv)
{
	return container(sv_srq, ibv, ibv);
}

/*
 * srq_resize.c. Around making and unmaking a QP's part in it, so that a resize finds it whole; NULL
 * accepted. The rest of srq_grow is that of ibv_modify_srq: 0 or ENOMEM.
 */
void srq_shape_lock(const struct sv_srq *srq);
void srq_shape_unlock(const struct sv_srq *srq);
int srq_grow(struct sv_srq *srq, uint32_t entries);

void srq_attach(struct sv_srq *srq, struct sv_qp *qp);
void srq_detach(struct sv_srq *srq, struct sv_qp *qp);

/* A polled slot may be posted into again. Any thread. */
void srq_give_slot(struct sv_srq *srq, uint32_t slot);

/* Sender, inside a window: takes the oldest posted slot; false if there is none. */
bool srq_claim(struct sv_tx *tx, uint64_t *entry);

/* Engine, pinned: the limit was reached. */
void srq_attend(struct sv_srq *srq);
/*
 * Engine: a process is gone that may have taken a slot and not filled it; the slot is posted again,
 * now or soon.
 */
void srq_recover(struct sv_srq *srq);

#endif
