/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* A work request in the send queue, inside this room: its execution, its waits and its flushing. */
#ifndef SV_RC_REQUEST_H
#define SV_RC_REQUEST_H

#include "softverbs/rc/rc.h"

/* Executor only: bytes of the request in execution that are copied and need not be copied again. */
static inline uint32_t sq_moved(struct sv_qp *qp)
{
	struct sv_sq *sq = &qp->sq;

	if (unlikely(sq->moved && sq->moved_epoch != qp->remote_rq.epoch))
		sq->moved = 0; /* they were copied to a queue that has since moved */
	return sq->moved;
}

/* Counts `part` more bytes of `length` as copied: 0 at the end, else EXEC_WAIT(SQ_COPYING). */
static inline int sq_move(struct sv_qp *qp, uint32_t part, uint32_t length)
{
	struct sv_sq *sq = &qp->sq;

	if (likely(part == length))
		return 0;
	sq->moved += part;
	sq->moved_epoch = qp->remote_rq.epoch;
	return sq->moved < length ? EXEC_WAIT(SQ_COPYING) : 0;
}

/* post.c */
uint64_t sv_wr_length(const struct ibv_send_wr *wr);
/*
 * Executor only: executes a request, or the next chunk of a long one. enum ibv_wc_status when
 * done, else EXEC_WAIT.
 */
int sv_sq_execute(struct sv_qp *qp, const struct ibv_send_wr *wr);

/* send.c, rdma.c, atomic.c */
int sv_send_execute_locked(struct sv_qp *qp, const struct ibv_send_wr *wr, uint32_t length);
int sv_rdma_execute_locked(struct sv_qp *qp, const struct ibv_send_wr *wr, uint32_t length);
int sv_atomic_execute_locked(struct sv_qp *qp, const struct ibv_send_wr *wr, uint32_t length);
/* Sends the message that follows the data of a write with immediate. */
int sv_send_immediate_locked(struct sv_qp *qp, const struct ibv_send_wr *wr, uint32_t length);

/* pending.c */
/* Stores a copy of a work request, with its SGEs and inline data, as number sq.head. */
void sv_sq_hold_locked(struct sv_qp *qp, const struct ibv_send_wr *wr);
/*
 * The oldest request cannot proceed because of `why`. 0: try again now. EXEC_WAIT(why): wait.
 * Above 0: the status to fail with.
 */
int sv_sq_wait_locked(struct sv_qp *qp, enum sq_wait why);
/* The oldest request may proceed at once: a poll of its CQ continues it, or soon the engine. */
void sv_sq_pause_locked(struct sv_qp *qp);
/* Sets whether polls and the engine have to continue the queue. */
void sv_sq_set_waiting(struct sv_qp *qp, bool waiting);

/* executor.c */
#define SQ_SHORT 4096u /* bytes of payload that are copied under the queue's lock */

/* Flushes all remaining requests; the state is ERR or SQE. There must be no executor. */
void sv_sq_flush_locked(struct sv_qp *qp);

/* qp_settle.c */
/*
 * A work request failed: puts the QP into ERR, or an unreliable QP's send queue into SQE. The SQ
 * lock is held.
 */
void sv_sq_fail_locked(struct sv_qp *qp);

/* recv.c */
/*
 * Completes posted receives with a flush error; no message can arrive any more. The receive CQ's
 * lock is held.
 */
int sv_rx_flush_locked(struct sv_qp *qp, int count, struct ibv_wc *wc);

#endif
