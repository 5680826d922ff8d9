/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * Room `rc`: the data path between processes of this host: post, execute, land, poll, flush.
 *
 * A send queue has at most one executor (executor.c), which is the posting thread if the queue is idle. post.c posts, send.c,
 * rdma.c, atomic.c and mw.c execute one request each, pending.c says how a request waits, recv.c polls what has landed,
 * remote_rq.h is the peer's receive queue as the sender sees it. A message that is accepted is delivered; no request waits
 * for another thread's payload.
 * Locks: that of the send queue (`_locked`: it is held), released while long payload is copied; the receive CQ's, for polls.
 * No lock is shared with a peer.
 */
#ifndef SV_RC_RC_H
#define SV_RC_RC_H

#include "softverbs/object/qp.h"

/* ---- post ---- */

/* Posts all requests or none: 0 or errno. */
int sv_qp_post_batch(struct sv_qp *qp, const struct ibv_send_wr *wr, uint32_t count);
/* The opcodes of a service, a bit each. */
uint32_t sv_service_opcodes(enum sv_service service);

/* ---- execute ---- */

/*
 * What the execution of a work request returns besides enum ibv_wc_status (0 and above): it has
 * to wait.
 */
#define EXEC_WAIT(why) (-(int)(why))

/*
 * Executes a request of a connected QP, with the status that the responder reports. Executor only.
 */
int sv_sq_execute_connected(struct sv_qp *qp, const struct ibv_send_wr *wr, uint32_t length);
/* Translates the SGEs into addresses of this process. False unless each of them allows `need`. */
bool sv_send_resolve(const struct sv_qp *qp, const struct ibv_send_wr *wr, unsigned need,
		     struct iovec *iov);
/*
 * Executes the requests that wait, as far as possible. Chunks of long requests are copied without
 * the lock, until `room` bytes are copied; 0: none. If another thread is the executor, makes it
 * try the oldest request again.
 */
void sv_sq_run_locked(struct sv_qp *qp, unsigned room);
/*
 * Makes the caller the executor if the oldest request is long and may proceed. True: the caller
 * must call sv_sq_run_claimed, without the lock.
 */
bool sv_sq_claim_locked(struct sv_qp *qp);
void sv_sq_run_claimed(struct sv_qp *qp);
/*
 * Makes the caller the executor, if there is none, so that other threads leave all but short sends in the queue. True: the
 * caller must call sv_sq_run_claimed. Does not wait.
 */
bool sv_sq_halt(struct sv_qp *qp);
/*
 * Acquires the lock, executes at most one chunk, notifies. The engine does not wait for the lock;
 * it tries again later. True if a request has completed.
 */
bool sv_sq_run(struct sv_qp *qp);
/* Acquires the lock while there is no executor. Waits for one chunk at most. */
void sv_sq_lock_idle(struct sv_qp *qp);
/*
 * Called after the withdrawal of a key: on return, no request that waited in a send queue of this
 * process, or was long, uses memory that it had found by the key. Waits for one chunk at most.
 */
void sv_sq_quiesce(void);

/* ---- complete and poll ---- */

/* Stores the completion of sq.exec and advances to the next request. */
void sv_sq_complete_locked(struct sv_qp *qp, const struct ibv_send_wr *wr,
			   enum ibv_wc_status status);
/* A transport has the answer to the oldest request, which it had sent: completes it, and continues the queue. */
void sv_sq_answered_locked(struct sv_qp *qp, enum ibv_wc_status status);
/*
 * Notifies the peer's CQ of the messages placed, and the send CQ of the completions stored, since
 * the last call.
 */
void sv_sq_notify_locked(struct sv_qp *qp);
/*
 * Stores up to `count` receive completions in wc; returns their number. The receive CQ's lock is
 * held.
 */
int sv_rx_poll_locked(struct sv_qp *qp, int count, struct ibv_wc *wc);
/* The number that a poll would return, but for datagrams that were not read yet; at most `most`. */
uint32_t sv_rx_count_locked(const struct sv_qp *qp, uint32_t most);
/* Whether a poll would return a receive completion of this QP. */
bool sv_rx_has_locked(const struct sv_qp *qp);
/* False if a poll might return one, or has something else to do. Faster than sv_rx_has_locked, which is exact. */
static inline bool rx_is_idle_locked(const struct sv_qp *qp)
{
	const struct sv_rx *rx = &qp->rx;
	uint32_t head = atomic_load_explicit(&rx->head, memory_order_relaxed);

	return !rx->datagrams && !rx->arrival && !rx->tails &&
	       !atomic_load_explicit(&rx->flush, memory_order_relaxed) &&
	       (uint32_t)atomic_load_explicit(&rx->rx_slot[head & rx->mask].head,
					      memory_order_relaxed) != head + 1;
}
/*
 * The initiator of the QP is dead or may not place messages any more, and may have placed
 * messages without a notification. Notifies the receive CQ if any message waits. The caller holds
 * no lock.
 */
void sv_rx_notify(struct sv_qp *qp);
/* Rings the doorbell of the peer's process if the peer waits for this QP. False if it does not. */
bool sv_qp_wake_initiator(struct sv_qp *qp);

/* ---- connect and end ---- */

/*
 * The SQ lock is held. Binds `remote_rq` to the peer's queue: 0, or the enum sq_wait that prevents
 * it.
 */
int sv_remote_rq_bind_locked(struct sv_qp *qp);
void sv_remote_rq_unbind_locked(struct sv_qp *qp);
/* The QP has entered SQD: true if a request is partly executed; its end is reported later. */
bool sv_sq_drain(struct sv_qp *qp);
void sv_sq_drop_locked(struct sv_qp *qp); /* drops all requests; no executor */
/*
 * Unpublishes the receive side and waits for the initiator. False if a stopped process may still
 * use it.
 */
bool sv_qp_quiesce(struct sv_qp *qp);
/*
 * Engine, with the QP pinned: flushes the queues once the initiator has left; otherwise tries
 * again later.
 */
void sv_qp_settle(struct sv_qp *qp);
/* The same for ibv_modify_qp: waits, and returns when the queues are flushed. `modify` is held. */
void sv_qp_settle_now_locked(struct sv_qp *qp);
void sv_sq_peer_gone(struct sv_qp *qp);			   /* engine: the peer's process died */
void sv_sq_retry_at_locked(struct sv_qp *qp, uint64_t at); /* the engine continues the queue then */
void sv_sq_unreachable(struct sv_qp *qp); /* engine: the link to the peer's process failed */

#endif
