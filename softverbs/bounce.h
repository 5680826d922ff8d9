/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Copies made by the owner of the target, where processes may not reach into each other. */
#ifndef SV_BOUNCE_H
#define SV_BOUNCE_H

#include <sys/uio.h>
#include "softverbs/qp.h"

struct bounce_op {
	enum bounce_kind kind;
	uint32_t key;
	uint64_t addr;
	uint32_t length;
	unsigned iov_count;
	const struct iovec *iov; /* where the data are or go here */
	uint64_t args[2];
};

/*
 * Inside the window: the work request being executed has begun already, with the peer as it is now.
 */
static inline bool bounce_is_active(const struct sv_qp *qp)
{
	return qp->bounce.active && qp->bounce.epoch == qp->tx.epoch;
}

/*
 * Inside the window: it took a receive of an SRQ and has it still, though the copy could not begin
 * yet, or has to begin again because the SRQ was resized.
 */
static inline bool bounce_holds(const struct sv_qp *qp)
{
	return qp->bounce.taken && qp->tx.arrival &&
	       atomic_load_explicit(&qp->tx.rw->held, memory_order_relaxed) == qp->bounce.slot + 1;
}

/*
 * Inside the window. enum ibv_wc_status when done, EXEC_WAIT(SQ_REMOTE) when the same work request
 * has to come here again: polls and the engine see to that.
 */
int bounce_move(struct sv_qp *qp, const struct bounce_op *op);

/*
 * Owner: answers what there is to answer. The engine (with a pin), and polls that have nothing
 * better to do.
 */
void serve_attend(struct sv_qp *qp);
void serve_some(struct sv_qp *qp);
/* Nothing is served any more, the memory is given back; modify held. */
void serve_close(struct sv_qp *qp);

#endif
