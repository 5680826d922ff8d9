/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * Copies that the owner of the target memory makes, because processes cannot access each other's
 * memory; and atomic operations.
 */
#ifndef SV_RC_BOUNCE_H
#define SV_RC_BOUNCE_H

#include <sys/uio.h>
#include "softverbs/object/qp.h"
#include "softverbs/rc/rc.h"

struct bounce_op {
	enum bounce_kind kind;
	uint32_t key;
	uint64_t addr;
	uint32_t length;
	unsigned iov_count;
	const struct iovec *iov; /* the initiator's data or buffer */
	uint64_t args[2];
};

/*
 * Between epoch_enter and epoch_leave: whether the work request in execution has begun, in the
 * peer's current epoch.
 */
static inline bool bounce_is_active(const struct sv_qp *qp)
{
	return qp->bounce.active && qp->bounce.epoch == qp->remote_rq.epoch;
}

/*
 * Between epoch_enter and epoch_leave: whether the request took a receive of an SRQ and still has
 * it, although the copy could not begin yet or has to begin again after a resize of the SRQ.
 */
static inline bool bounce_holds(const struct sv_qp *qp)
{
	return qp->bounce.taken && qp->remote_rq.arrival &&
	       atomic_load_explicit(&qp->remote_rq.by_peers->held, memory_order_relaxed) ==
		       qp->bounce.slot + 1;
}

/*
 * Between epoch_enter and epoch_leave. Returns enum ibv_wc_status when done, EXEC_WAIT(SQ_REMOTE)
 * to wait for the owner, or EXEC_WAIT(SQ_COPYING) after a chunk: polls or the engine execute the
 * same work request again.
 */
int sv_bounce_move(struct sv_qp *qp, const struct bounce_op *op);

/*
 * Owner: answers copy requests. Polls that find no completion call sv_serve_some. The engine
 * begins the QPs that requested it (by index), and gives all of them one turn of bounded time.
 */
bool sv_serve_some(struct sv_qp *qp); /* returns true if it answered a request */
void sv_serve_begin(uint32_t index);
void sv_serve_turn(void);
/* Stops answering and frees the bounce memory; modify is held. */
void sv_serve_close(struct sv_qp *qp);

#endif
