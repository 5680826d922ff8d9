/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Touching the connected peer's areas: only inside a window, which its owner can wait out. */
#ifndef SV_TX_H
#define SV_TX_H

#include "softverbs/qp.h"

/*
 * Store busy, then load the epoch; the owner clears the epoch, then loads busy: one of the two sees
 * the other. The barrier between ours is free as long as the owner's is a membarrier that reaches
 * us.
 */
static inline void window_enter(struct sv_tx *tx)
{
	atomic_store_explicit(&tx->rw->busy, ++tx->busy, memory_order_relaxed);
	fence_light(tx->expedited);
}

static inline bool window_is_open(const struct sv_tx *tx)
{
	/* acquire: the receive side described by this epoch was written before it */
	return likely(atomic_load_explicit(&tx->ro->epoch, memory_order_acquire) == tx->epoch);
}

static inline void window_leave(struct sv_tx *tx)
{
	/* release: what was done inside is done for whoever sees the even number */
	atomic_store_explicit(&tx->rw->busy, ++tx->busy, memory_order_release);
}

/* Opens a window on a peer that takes messages: 0, or EXEC_WAIT of what stands against it. */
static inline int tx_enter_locked(struct sv_qp *qp)
{
	struct sv_tx *tx = &qp->tx;

	for (;;) {
		if (unlikely(!tx->epoch)) {
			int why = tx_bind_locked(qp);

			if (why)
				return EXEC_WAIT(why);
		}
		window_enter(tx);
		if (window_is_open(tx))
			return 0;
		window_leave(tx);
		tx_unbind_locked(qp);
	}
}

/* Inside a window: tells the owner's engine that this work request was wrong; its QP fails. */
void tx_report(struct sv_tx *tx, enum qp_fault fault);
/* Asks for a doorbell once what is missing is there. True: newly asked, test once more. */
bool tx_ask(struct sv_qp *qp, enum sq_wait why);
/* To a CQ that may be too small, or has more QPs than it looks at. */
void tx_tell_slow(struct sv_tx *tx, uint32_t messages, uint32_t mode);

/* After messages, and a fence if tx->notify: the peer's CQ counts, is marked, and has its event. */
static inline void tx_tell(struct sv_tx *tx, uint32_t messages, bool solicited)
{
	uint32_t mode = atomic_load_explicit(&tx->cq->mode, memory_order_relaxed);

	if (unlikely(mode))
		tx_tell_slow(tx, messages, mode);
	if (tx->notify)
		cq_fire(tx->cq, tx->peer, tx->cq_index, solicited);
}

/* The peer's CQ has something to poll from its QP; after the message and a fence. */
void tx_mark(const struct sv_peer *peer, uint32_t cq, uint32_t qp);

/* The process of a slot, this one included; NULL with errno as peer_get. */
struct sv_peer *slot_peer(uint32_t slot);
void slot_peer_put(struct sv_peer *peer);
/* The QP's peer process, asked for when not known yet; NULL with errno. */
struct sv_peer *qp_peer(struct sv_qp *qp);

#endif
