/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* What entering a state does to the queues. Which transitions exist is decided before. */
#include <errno.h>
#include <string.h>
#include "softverbs/bounce.h"
#include "softverbs/srq.h"
#include "softverbs/tx.h"
#include "softverbs/ud.h"

#define EAGER_MOST  (256u << 10) /* below, both sides keep writing into each other's cache */
#define EAGER_LEAST (16u << 10)

/* ---- attributes ---- */

static void attr_keep(struct ibv_qp_attr *to, const struct ibv_qp_attr *from, int mask)
{
	static const struct {
		int mask;
		size_t offset, size;
	} fields[] = {
#define FIELD(bit, name) { bit, offsetof(struct ibv_qp_attr, name), sizeof(from->name) }
		FIELD(IBV_QP_ACCESS_FLAGS, qp_access_flags),
		FIELD(IBV_QP_PKEY_INDEX, pkey_index),
		FIELD(IBV_QP_PORT, port_num),
		FIELD(IBV_QP_QKEY, qkey),
		FIELD(IBV_QP_AV, ah_attr),
		FIELD(IBV_QP_PATH_MTU, path_mtu),
		FIELD(IBV_QP_TIMEOUT, timeout),
		FIELD(IBV_QP_RETRY_CNT, retry_cnt),
		FIELD(IBV_QP_RNR_RETRY, rnr_retry),
		FIELD(IBV_QP_RQ_PSN, rq_psn),
		FIELD(IBV_QP_SQ_PSN, sq_psn),
		FIELD(IBV_QP_MAX_QP_RD_ATOMIC, max_rd_atomic),
		FIELD(IBV_QP_MAX_DEST_RD_ATOMIC, max_dest_rd_atomic),
		FIELD(IBV_QP_MIN_RNR_TIMER, min_rnr_timer),
		FIELD(IBV_QP_PATH_MIG_STATE, path_mig_state),
		FIELD(IBV_QP_DEST_QPN, dest_qp_num),
		FIELD(IBV_QP_EN_SQD_ASYNC_NOTIFY, en_sqd_async_notify),
#undef FIELD
	};

	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++)
		if (mask & fields[i].mask)
			memcpy((char *)to + fields[i].offset, (const char *)from + fields[i].offset,
			       fields[i].size);
}

/* What initiators look at in each operation. */
static void attr_publish(struct sv_qp *qp)
{
	atomic_store_explicit(&qp->ro->access, qp->attr.qp_access_flags, memory_order_relaxed);
	atomic_store_explicit(&qp->ro->min_rnr, qp->attr.min_rnr_timer, memory_order_relaxed);
	atomic_store_explicit(&qp->ro->max_dest_rd, qp->attr.max_dest_rd_atomic,
			      memory_order_relaxed);
	if (qp->ud)
		atomic_store_explicit(&qp->ud->qkey, qp->attr.qkey, memory_order_relaxed);
}

/* ---- RESET ---- */

/* Messages that nobody will poll give their slots back. */
static void arrivals_drop_locked(struct sv_qp *qp)
{
	struct sv_rx *rx = &qp->rx;
	uint32_t head = atomic_load_explicit(&rx->head, memory_order_relaxed), arrival;

	for (uint32_t i = 0; i <= rx->mask; i++, head++) {
		arrival = atomic_load_explicit(&rx->arrival[head & rx->mask], memory_order_acquire);
		if (arrival >> 16 != (ring_lap(head, rx->shift) & 0xffff))
			break;
		if ((arrival & 0xffff) <= rx->mask)
			srq_give_slot(qp->srq, arrival & 0xffff);
	}
	for (uint32_t i = 0; i <= rx->mask; i++)
		atomic_store_explicit(&rx->arrival[i], 0, memory_order_relaxed);
}

static void rx_clear(struct sv_qp *qp)
{
	struct sv_rx *rx = &qp->rx;

	lock_acquire(&qp->recv_cq->lock);
	if (rx->arrival) {
		arrivals_drop_locked(qp);
	} else if (!qp->srq) {
		lock_acquire(&qp->rq.lock);
		if (qp->rq.posted)
			wq_reset(&qp->rq);
		lock_release(&qp->rq.lock);
	}
	atomic_store_explicit(&rx->head, 0, memory_order_relaxed);
	atomic_store_explicit(&rx->flush, false, memory_order_relaxed);
	rx->eager_cons = 0;
	lock_release(&qp->recv_cq->lock);
	if (rx->eager && !qp->lost)
		heap_give(HEAP_RW, rx->eager, rx->eager_size);
	rx->eager = NULL;
	rx->eager_size = 0;
	atomic_store_explicit(&area_own()->ro->rx[qp->index].eager_cons, 0, memory_order_relaxed);
	serve_close(qp);
	atomic_store_explicit(&qp->rw->busy, 0, memory_order_relaxed);
	atomic_store_explicit(&qp->rw->seq, 0, memory_order_relaxed);
	atomic_store_explicit(&qp->rw->eager_prod, 0, memory_order_relaxed);
	atomic_store_explicit(&qp->rw->intent, 0, memory_order_relaxed);
	atomic_store_explicit(&qp->rw->fault, FAULT_NONE, memory_order_relaxed);
	if (atomic_exchange_explicit(&qp->rw->held, 0, memory_order_relaxed) && qp->srq)
		srq_recover(
			qp->srq); /* its initiator died, and the engine may not have come to that */
}

static void sq_clear(struct sv_qp *qp)
{
	struct sv_sq *sq = &qp->sq;

	lock_acquire(&qp->send_cq->lock);
	lock_acquire(&sq->lock);
	sq_drop_locked(qp);
	tx_unbind_locked(qp);
	sq->head = sq->exec = sq->polled_seen = 0;
	sq->wait = SQ_GOES;
	sq->written = sq->engines = sq->gone = false;
	atomic_store_explicit(&qp->sq_ready, 0, memory_order_relaxed);
	atomic_store_explicit(&qp->sq_polled, 0, memory_order_relaxed);
	lock_release(&sq->lock);
	lock_release(&qp->send_cq->lock);
}

void qp_clear_locked(struct sv_qp *qp)
{
	if (qp->ud)
		ud_clear(qp);
	sq_clear(qp);
	rx_clear(qp);
	atomic_store_explicit(&qp->unsettled, false, memory_order_relaxed);
	atomic_store_explicit(&qp->dest, 0, memory_order_relaxed);
	slot_peer_put(atomic_exchange_explicit(&qp->peer, NULL, memory_order_acq_rel));
	memset(&qp->attr, 0, sizeof(qp->attr));
	qp->attr.cap = qp->init.cap;
	attr_publish(qp);
}

/*
 * Its memory cannot be used again while a stopped process may write there: the QP goes on with
 * fresh rings.
 */
static int rings_renew(struct sv_qp *qp)
{
	int err = 0;

	if (!qp->lost)
		return 0;
	if (qp->srq) {
		_Atomic(uint32_t) *arrival =
			heap_take_zero(HEAP_RW, (qp->rx.mask + 1) * sizeof(*arrival),
				       &qp->arrival_offset);

		qp->rx.arrival = arrival ? arrival : qp->rx.arrival;
		err = arrival ? 0 : ENOMEM;
	} else {
		wq_close(&qp->rq, true);
		err = wq_open(&qp->rq, qp->rq.limit, qp->rq.max_sge, qp->pd);
		qp->rx.landing = qp->rq.landing;
	}
	qp->lost = err;
	return err;
}

void qp_reset_locked(struct sv_qp *qp)
{
	int was = atomic_exchange(&qp->state, IBV_QPS_RESET);

	if (was >= IBV_QPS_RTR && !atomic_load_explicit(&qp->rx.flush, memory_order_relaxed))
		qp_quiesce(qp);
	qp_wake_initiator(qp);
	qp_clear_locked(qp);
}

/* ---- RTR ---- */

/*
 * The ring for messages that do not fit their landing; smaller ones when the area fills up, then
 * none.
 */
static void eager_open(struct sv_qp *qp)
{
	unsigned use = heap_use(HEAP_RW);
	uint32_t size = use < 50 ? EAGER_MOST : use < 75 ? EAGER_MOST / 4 : EAGER_LEAST;
	uint64_t offset = 0;

	if (qp->ud || use >= 95)
		size = 0;
	qp->rx.eager = size ? heap_take(HEAP_RW, size, &offset) : NULL;
	qp->rx.eager_size = qp->rx.eager ? size : 0;
	qp->ro->eager = offset;
	qp->ro->eager_size = qp->rx.eager_size;
}

/* Where messages go: all that senders copy when they bind to the new epoch. */
static void rx_describe(struct sv_qp *qp)
{
	const struct sv_wq *wq = qp->srq ? &qp->srq->wq : &qp->rq;
	struct ro_qp *ro = qp->ro;

	ro->size = wq->mask + 1;
	ro->max_sge = wq->max_sge;
	ro->post = wq->post_offset;
	ro->sge = wq->sge_offset;
	ro->landing = wq->landing_offset;
	ro->arrival = qp->arrival_offset;
	qp->epoch += qp->epoch + 1 ? 1 : 2;
	/* release: pairs with window_is_open and tx_bind_locked */
	atomic_store_explicit(&ro->epoch, qp->epoch, memory_order_release);
}

static void rx_publish(struct sv_qp *qp)
{
	struct ro_qp *ro = qp->ro;

	eager_open(qp);
	ro->pd = qp->pd;
	ro->recv_pd = qp->srq ? qp->srq->wq.pd : qp->pd;
	ro->cq = qp->recv_cq->index;
	__atomic_store_n(&ro->srq, qp->srq ? qp->srq->index + 1 : 0, __ATOMIC_RELAXED);
	atomic_store_explicit(&ro->peer, qp->attr.dest_qp_num, memory_order_relaxed);
	attr_publish(qp);
	rx_describe(qp);
}

/* An error that comes meanwhile is settled after this, with modify. */
void qp_publish_again_locked(struct sv_qp *qp)
{
	rx_describe(qp);
	fence_full(); /* qp_fail enters the state, then takes the epoch away */
	if (atomic_load_explicit(&qp->state, memory_order_relaxed) == IBV_QPS_ERR)
		atomic_store_explicit(&qp->ro->epoch, 0, memory_order_relaxed);
}

static void enter_rtr(struct sv_qp *qp)
{
	atomic_store_explicit(&qp->dest, qp->attr.dest_qp_num, memory_order_relaxed);
	rx_publish(qp);
	if (qp->ud) {
		ud_receive(qp);
		return;
	}
	qp_peer(qp);		    /* the link is on its way when the first send comes */
	fence_light(qp->expedited); /* who waits has the barrier, see tx_ask */
	qp_wake_initiator(qp);
}

/* ---- all ---- */

static int enter_locked(struct sv_qp *qp, enum ibv_qp_state from, enum ibv_qp_state to)
{
	int now = from;

	if (to == IBV_QPS_RESET) {
		qp_reset_locked(qp);
		return rings_renew(qp);
	}
	if (to == IBV_QPS_ERR) {
		qp_fail(qp);
		qp_settle_now_locked(qp);
		return 0;
	}
	/* an error may come first; it stays */
	if (from != to && !atomic_compare_exchange_strong(&qp->state, &now, to))
		return EINVAL;
	if (to == IBV_QPS_RTR && from != to)
		enter_rtr(qp);
	if (to == IBV_QPS_RTS || to == IBV_QPS_SQD)
		attr_publish(qp);
	if (to == IBV_QPS_RTS)
		sq_run(qp);
	if (to == IBV_QPS_SQD && from != to && qp->attr.en_sqd_async_notify)
		async_post_qp(&qp->ibv,
			      IBV_EVENT_SQ_DRAINED); /* nothing is under way between two calls */
	return 0;
}

int qp_enter_state(struct ibv_qp *ibv, enum ibv_qp_state from, enum ibv_qp_state to,
		   const struct ibv_qp_attr *attr, int mask)
{
	struct sv_qp *qp = qp_of(ibv);
	int err;

	pthread_mutex_lock(&qp->modify);
	if (qp_state(ibv) != from) {
		pthread_mutex_unlock(&qp->modify);
		return EINVAL;
	}
	if (from == IBV_QPS_RTS && to == IBV_QPS_SQD && !(mask & IBV_QP_EN_SQD_ASYNC_NOTIFY))
		qp->attr.en_sqd_async_notify = 0;
	attr_keep(&qp->attr, attr, mask);
	err = enter_locked(qp, from, to);
	if (!err)
		ibv->state = to;
	pthread_mutex_unlock(&qp->modify);
	return err;
}
