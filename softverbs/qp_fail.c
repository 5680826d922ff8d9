/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* A queue pair entering the error state: at once for who looks, then its queues are flushed. */
#include "softverbs/quiesce.h"
#include "softverbs/srq.h"
#include "util/clock.h"
#include "util/log.h"

#define SETTLE_PAUSE NSEC_PER_MSEC

static bool state_enter_error(struct sv_qp *qp)
{
	int now = atomic_load_explicit(&qp->state, memory_order_relaxed);

	do {
		if (now == IBV_QPS_RESET || now == IBV_QPS_ERR)
			return false;
		/* full order: see qp_post_recv */
	} while (!atomic_compare_exchange_weak(&qp->state, &now, IBV_QPS_ERR));
	return true;
}

bool qp_fail(struct sv_qp *qp)
{
	if (!state_enter_error(qp))
		return false;
	log_at(LOG_NOTE, "softverbs: qp 0x%x: error state", qp->ibv.qp_num);
	atomic_store_explicit(&qp->ro->epoch, 0, memory_order_relaxed);
	atomic_store_explicit(&qp->unsettled, true, memory_order_relaxed);
	attention_set(area_own()->rw->attention.qp, qp->index);
	peer_ring(peer_self());
	return true;
}

/* IBTA: an unreliable queue pair goes on receiving, and its send queue can be revived. */
void sq_fail_locked(struct sv_qp *qp)
{
	int now = IBV_QPS_RTS;

	if (qp->sq.service == SERVICE_RC)
		qp_fail(qp);
	else if (atomic_compare_exchange_strong(&qp->state, &now, IBV_QPS_SQE))
		log_at(LOG_NOTE, "softverbs: qp 0x%x: send queue error state", qp->ibv.qp_num);
}

bool qp_quiesce(struct sv_qp *qp)
{
	bool quiet;

	atomic_store_explicit(&qp->ro->epoch, 0, memory_order_relaxed);
	area_barrier();
	quiet = quiesce_one(qp->index);
	if (!quiet) {
		qp->lost = true;
		log_at(LOG_ERROR,
		       "softverbs: qp 0x%x: its peer stopped in the middle of a copy; its memory "
		       "is given up",
		       qp->ibv.qp_num);
	}
	return quiet;
}

/* Nobody places messages any more: what is posted can be flushed. */
static void qp_flush_locked(struct sv_qp *qp)
{
	lock_acquire(&qp->sq.lock);
	sq_flush_locked(qp);
	sq_tell_locked(qp);
	lock_release(&qp->sq.lock);

	atomic_store_explicit(&qp->unsettled, false, memory_order_relaxed);
	/* release: the last message was published before; polls that see this find it first */
	atomic_store_explicit(&qp->rx.flush, true, memory_order_release);
	if (qp->srq)
		async_post_qp(&qp->ibv, IBV_EVENT_QP_LAST_WQE_REACHED);
	else
		cq_tell_flush(qp->recv_cq, qp->index, wq_count(&qp->rq, atomic_load(&qp->rx.head)));
}

void qp_settle_now_locked(struct sv_qp *qp)
{
	if (!atomic_load_explicit(&qp->unsettled, memory_order_relaxed))
		return;
	qp_quiesce(qp);
	qp_flush_locked(qp);
}

static void settle_fire(struct sv_timer *timer)
{
	struct sv_qp *qp = container(sv_qp, settle_timer, timer);

	qp_settle(qp);
}

/* The engine never waits for a peer: it looks again later. */
void qp_settle(struct sv_qp *qp)
{
	uint64_t now = clock_now();

	if (pthread_mutex_trylock(&qp->modify)) {
		engine_timer_arm(&qp->settle_timer, now + SETTLE_PAUSE, settle_fire);
		return;
	}
	if (atomic_load_explicit(&qp->unsettled, memory_order_relaxed)) {
		if (!qp->settle_deadline)
			qp->settle_deadline = now + QUIESCE_LIMIT;
		area_barrier();
		if (quiesce_is_quiet(qp->index) || now > qp->settle_deadline) {
			qp->lost |= !quiesce_is_quiet(qp->index);
			qp->settle_deadline = 0;
			qp_flush_locked(qp);
		} else {
			engine_timer_arm(&qp->settle_timer, now + SETTLE_PAUSE, settle_fire);
		}
	}
	pthread_mutex_unlock(&qp->modify);
}
