/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * Queue pairs in the error state: waits until no peer is inside their queues, and flushes these. sv_qp_fail has made the
 * state visible before.
 */
#include "softverbs/object/quiesce.h"
#include "softverbs/object/srq.h"
#include "softverbs/rc/request.h"
#include "util/clock.h"
#include "util/log.h"

#define SETTLE_PAUSE NSEC_PER_MSEC

/* IBTA: an unreliable QP continues to receive, and its send queue can be restarted. */
void sv_sq_fail_locked(struct sv_qp *qp)
{
	int now = IBV_QPS_RTS;

	if (qp->sq.service == SERVICE_RC)
		sv_qp_fail(qp);
	else if (atomic_compare_exchange_strong(&qp->state, &now, IBV_QPS_SQE))
		log_at(LOG_NOTE, "softverbs: qp 0x%x: send queue error state", qp->ibv.qp_num);
}

/*
 * After the epoch was cleared: true if the only initiator has stopped its send queue, or begins only now and finds no epoch.
 * A barrier, which interrupts the other processors, is not necessary then: of two QPs that are disconnected, the second needs
 * none.
 */
static bool initiator_has_stopped(const struct sv_qp *qp)
{
	const struct sv_peer *peer = atomic_load_explicit(&qp->peer, memory_order_acquire);
	uint32_t dest = atomic_load_explicit(&qp->dest, memory_order_relaxed);

	if (!peer || !dest || qp->ud || qp->path)
		return false;
	fence_full(); /* pairs with enter_rtr */
	/* acquire: the initiator's accesses have ended; pairs with sq_stopped_locked */
	return atomic_load_explicit(&peer->by_owner->qp[qp_index_of(dest)].initiates,
				    memory_order_acquire) != qp->ibv.qp_num;
}

bool sv_qp_quiesce(struct sv_qp *qp)
{
	bool quiet;

	atomic_store_explicit(&qp->by_owner->epoch, 0, memory_order_relaxed);
	if (initiator_has_stopped(qp))
		return true;
	sv_area_barrier();
	quiet = sv_quiesce_one(qp->index);
	if (!quiet) {
		qp->lost = true;
		log_at(LOG_ERROR,
		       "softverbs: qp 0x%x: its peer stopped in the middle of a copy; its memory "
		       "is given up",
		       qp->ibv.qp_num);
	}
	return quiet;
}

/*
 * Flushes the send queue. The engine leaves that to an executor, which does it after its chunk;
 * other threads wait for it.
 */
static void sq_flush(struct sv_qp *qp)
{
	if (sv_engine_is_self())
		lock_acquire(&qp->sq.lock);
	else
		sv_sq_lock_idle(qp);
	if (!qp->sq.executing) {
		sv_sq_flush_locked(qp);
		sv_sq_notify_locked(qp);
	}
	lock_release(&qp->sq.lock);
}

void sv_rx_notify(struct sv_qp *qp)
{
	struct sv_cq *cq = qp->recv_cq;
	bool waits;

	lock_acquire(&cq->lock);
	waits = sv_rx_has_locked(qp);
	lock_release(&cq->lock);
	if (waits)
		sv_cq_notify_arrived(cq, qp->index);
}

/* Flushes the queues. The peer can place no further messages. */
static void qp_flush_locked(struct sv_qp *qp)
{
	sq_flush(qp);

	atomic_store_explicit(&qp->unsettled, false, memory_order_relaxed);
	/*
	 * release: the last message was published before; a poll that sees `flush` finds it first
	 */
	atomic_store_explicit(&qp->rx.flush, true, memory_order_release);
	/* The completion precedes the event that reports the last one. */
	if (qp->srq && atomic_load_explicit(&qp->by_peers->intent, memory_order_relaxed))
		sv_srq_recover_now(qp->srq);
	if (qp->srq) {
		sv_rx_notify(qp);
		sv_async_post_qp(&qp->ibv, IBV_EVENT_QP_LAST_WQE_REACHED);
	} else {
		sv_cq_notify_flush(qp->recv_cq, qp->index,
				   sv_wq_count(&qp->rq, atomic_load(&qp->rx.head)));
	}
}

void sv_qp_settle_now_locked(struct sv_qp *qp)
{
	if (!atomic_load_explicit(&qp->unsettled, memory_order_relaxed))
		return;
	sv_qp_quiesce(qp);
	qp_flush_locked(qp);
}

static bool initiator_is_out(const struct sv_qp *qp)
{
	if (initiator_has_stopped(qp))
		return true;
	sv_area_barrier();
	return sv_quiesce_is_done(qp->index);
}

static void settle_fire(struct sv_timer *timer)
{
	struct sv_qp *qp = container_of(sv_qp, settle_timer, timer);

	sv_qp_settle(qp);
}

/* The engine never waits for a peer: a timer makes it try again. */
void sv_qp_settle(struct sv_qp *qp)
{
	uint64_t now = clock_now();

	if (pthread_mutex_trylock(&qp->modify)) {
		sv_engine_timer_arm(&qp->settle_timer, now + SETTLE_PAUSE, settle_fire);
		return;
	}
	if (atomic_load_explicit(&qp->unsettled, memory_order_relaxed)) {
		bool quiet = initiator_is_out(qp);

		if (!qp->settle_deadline)
			qp->settle_deadline = now + QUIESCE_LIMIT;
		if (quiet || now > qp->settle_deadline) {
			qp->lost |= !quiet;
			qp->settle_deadline = 0;
			qp_flush_locked(qp);
		} else {
			sv_engine_timer_arm(&qp->settle_timer, now + SETTLE_PAUSE, settle_fire);
		}
	}
	pthread_mutex_unlock(&qp->modify);
}
