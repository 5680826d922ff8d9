/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * Access to the connected peer's areas: only between epoch_enter and epoch_leave, for which the
 * owner can wait.
 */
#ifndef SV_RC_REMOTE_RQ_H
#define SV_RC_REMOTE_RQ_H

#include "softverbs/object/qp.h"
#include "softverbs/rc/rc.h"

/*
 * The initiator stores busy, then loads the epoch. The owner clears the epoch, then loads busy.
 * So at least one of them sees the other's store. The initiator needs no fence if the owner uses
 * a membarrier that acts on this process.
 */
static inline void epoch_enter(struct sv_remote_rq *remote)
{
	atomic_store_explicit(&remote->by_peers->busy, ++remote->busy, memory_order_relaxed);
	fence_light(remote->expedited);
}

static inline bool epoch_is_current(const struct sv_remote_rq *remote)
{
	/* acquire: the owner wrote the description of the receive queue before the epoch */
	return likely(atomic_load_explicit(&remote->by_owner->epoch, memory_order_acquire) ==
		      remote->epoch);
}

static inline void epoch_leave(struct sv_remote_rq *remote)
{
	/*
	 * release: accesses since epoch_enter end before the even number; pairs with
	 * sv_quiesce_is_done
	 */
	atomic_store_explicit(&remote->by_peers->busy, ++remote->busy, memory_order_release);
}

/*
 * Enters the epoch of a peer that accepts messages: 0, or EXEC_WAIT of the enum sq_wait that
 * prevents it. The SQ lock is held.
 */
static inline int remote_rq_enter_locked(struct sv_qp *qp)
{
	struct sv_remote_rq *remote = &qp->remote_rq;

	for (;;) {
		if (unlikely(!remote->epoch)) {
			int why = sv_remote_rq_bind_locked(qp);

			if (why)
				return EXEC_WAIT(why);
		}
		epoch_enter(remote);
		if (epoch_is_current(remote))
			return 0;
		epoch_leave(remote);
		sv_remote_rq_unbind_locked(qp);
	}
}

/*
 * Between epoch_enter and epoch_leave: reports to the owner's engine that a work request was
 * wrong; the owner's QP fails.
 */
void sv_remote_rq_report(struct sv_remote_rq *remote, enum qp_fault fault);
/*
 * Requests a doorbell for the end of the wait. True: the request is new, and the caller has to
 * test its condition once more.
 */
bool sv_remote_rq_ask(struct sv_qp *qp, enum sq_wait why);
/* Notifies a CQ whose mode is CQ_TIGHT or CQ_MANY: counts, marks. `fenced`: after fence_full. */
void sv_remote_rq_notify_slow(struct sv_remote_rq *remote, bool fenced, uint32_t messages,
			      uint32_t mode);

/*
 * Notifies the peer's CQ after messages were placed: counts and marks them, and sends the event if it `may_wait`, which
 * requires fence_full.
 */
static inline void remote_rq_notify(struct sv_remote_rq *remote, bool may_wait, uint32_t messages,
				    bool solicited)
{
	uint32_t mode = atomic_load_explicit(&remote->cq->mode, memory_order_relaxed);

	if (unlikely(mode))
		sv_remote_rq_notify_slow(remote, may_wait, messages, mode);
	if (may_wait)
		cq_fire_message(remote->cq, remote->peer, remote->cq_index, solicited);
}

/*
 * Marks a QP in the peer's CQ as ready to poll. The caller has placed the message and called
 * fence_full.
 */
void sv_remote_rq_mark(struct sv_peer *peer, uint32_t cq, uint32_t qp);

/* The process with this number, which may be this process; NULL with errno as sv_peer_get. */
struct sv_peer *sv_peer_by_id(uint32_t slot);
void sv_peer_by_id_put(struct sv_peer *peer);
/* The QP's peer process, looked up if not known yet; NULL with errno. */
struct sv_peer *sv_qp_peer(struct sv_qp *qp);

#endif
