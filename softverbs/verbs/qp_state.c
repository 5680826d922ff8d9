/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* The effect of a state on the queues. The caller has checked that the transition is allowed. */
#include <errno.h>
#include <string.h>
#include "softverbs/link/transport.h"
#include "softverbs/object/path.h"
#include "softverbs/rc/bounce.h"
#include "softverbs/object/srq.h"
#include "softverbs/rc/rc.h"
#include "softverbs/rc/remote_rq.h"
#include "softverbs/ud/ud.h"
#include "softverbs/verbs/qp.h"

#define EAGER_MOST  (256u << 10) /* a larger ring would not stay in the caches of both sides */
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

/* Publishes the attributes that initiators read in each operation. */
static void attr_publish(struct sv_qp *qp)
{
	atomic_store_explicit(&qp->by_owner->access, qp->attr.qp_access_flags,
			      memory_order_relaxed);
	atomic_store_explicit(&qp->by_owner->min_rnr, qp->attr.min_rnr_timer, memory_order_relaxed);
	atomic_store_explicit(&qp->by_owner->max_dest_rd, qp->attr.max_dest_rd_atomic,
			      memory_order_relaxed);
	if (qp->ud)
		atomic_store_explicit(&qp->ud->qkey, qp->attr.qkey, memory_order_relaxed);
}

/* ---- RESET ---- */

/* Releases the slots of messages that will not be polled. */
static void arrivals_drop_locked(struct sv_qp *qp)
{
	struct sv_rx *rx = &qp->rx;
	uint32_t head = atomic_load_explicit(&rx->head, memory_order_relaxed), arrival;

	for (uint32_t i = 0; i <= rx->mask; i++, head++) {
		arrival = atomic_load_explicit(&rx->arrival[head & rx->mask], memory_order_acquire);
		if (arrival >> 16 != (ring_lap(head, rx->shift) & 0xffff))
			break;
		if ((arrival & 0xffff) <= rx->mask)
			sv_srq_slot_release(qp->srq, arrival & 0xffff);
	}
	for (uint32_t i = 0; i <= rx->mask; i++)
		atomic_store_explicit(&rx->arrival[i], 0, memory_order_relaxed);
}

static void rx_clear(struct sv_qp *qp)
{
	struct sv_rx *rx = &qp->rx;
	uint32_t intent, held;

	lock_acquire(&qp->recv_cq->lock);
	if (rx->arrival) {
		arrivals_drop_locked(qp);
	} else if (!qp->srq) {
		lock_acquire(&qp->rq.lock);
		if (qp->rq.posted)
			sv_wq_reset(&qp->rq);
		lock_release(&qp->rq.lock);
	}
	atomic_store_explicit(&rx->head, 0, memory_order_relaxed);
	atomic_store_explicit(&rx->flush, false, memory_order_relaxed);
	rx->eager_cons = rx->landed = 0;
	lock_release(&qp->recv_cq->lock);
	if (rx->eager && !qp->lost)
		sv_heap_free(HEAP_BY_PEERS, rx->eager, rx->eager_size);
	rx->eager = NULL;
	rx->eager_size = 0;
	atomic_store_explicit(&sv_area_own()->by_owner->rx[qp->index].eager_cons, 0,
			      memory_order_relaxed);
	sv_serve_close(qp);
	atomic_store_explicit(&qp->by_peers->busy, 0, memory_order_relaxed);
	atomic_store_explicit(&qp->by_peers->seq, 0, memory_order_relaxed);
	atomic_store_explicit(&qp->by_peers->eager_prod, 0, memory_order_relaxed);
	atomic_store_explicit(&qp->by_peers->fault, FAULT_NONE, memory_order_relaxed);
	intent = atomic_exchange_explicit(&qp->by_peers->intent, 0, memory_order_relaxed);
	held = atomic_exchange_explicit(&qp->by_peers->held, 0, memory_order_relaxed);
	/* The initiator ended, perhaps before the engine handled it: a slot is claimed, or was about to be. */
	if (qp->srq && (intent || held))
		sv_srq_recover(qp->srq);
}

static void sq_clear(struct sv_qp *qp)
{
	struct sv_sq *sq = &qp->sq;

	sv_sq_lock_idle(qp); /* no executor begins in this state */
	lock_release(&sq->lock);
	lock_acquire(&qp->send_cq->lock);
	lock_acquire(&sq->lock);
	sv_sq_drop_locked(qp);
	sv_remote_rq_unbind_locked(qp);
	sq->head = sq->exec = sq->polled_seen = 0;
	sq->wait = SQ_GOES;
	sq->written = sq->engines = sq->gone = false;
	atomic_store_explicit(&qp->sq_ready, 0, memory_order_relaxed);
	atomic_store_explicit(&qp->sq_polled, 0, memory_order_relaxed);
	if (qp->rx.passed_over) /* then the CQ is that of the receives, too */
		qp->rx.passed_over = 0;
	lock_release(&sq->lock);
	lock_release(&qp->send_cq->lock);
}

/* A search for lost receives of the SRQ reads the peer of each of its QPs under the SRQ's lock (srq_recover.c). */
static void peer_release(struct sv_qp *qp)
{
	struct sv_peer *peer;

	if (qp->srq)
		pthread_mutex_lock(&qp->srq->lock);
	peer = atomic_exchange_explicit(&qp->peer, NULL, memory_order_acq_rel);
	if (qp->srq)
		pthread_mutex_unlock(&qp->srq->lock);
	sv_peer_by_id_put(peer);
}

void sv_qp_clear_locked(struct sv_qp *qp)
{
	if (qp->ud)
		sv_ud_clear(qp);
	sq_clear(qp);
	rx_clear(qp);
	atomic_store_explicit(&qp->unsettled, false, memory_order_relaxed);
	atomic_store_explicit(&qp->dest, 0, memory_order_relaxed);
	peer_release(qp);
	memset(&qp->attr, 0, sizeof(qp->attr));
	qp->attr.cap = qp->init.cap;
	attr_publish(qp);
}

/* The memory of a lost QP cannot be reused while a stopped process may write to it: allocates fresh rings. */
static int rings_renew(struct sv_qp *qp)
{
	int err = 0;

	if (!qp->lost)
		return 0;
	if (qp->srq) {
		_Atomic(uint32_t) *arrival =
			sv_heap_alloc_zero(HEAP_BY_PEERS, (qp->rx.mask + 1) * sizeof(*arrival),
					   &qp->arrival_offset);

		qp->rx.arrival = arrival ? arrival : qp->rx.arrival;
		err = arrival ? 0 : ENOMEM;
	} else {
		sv_wq_close(&qp->rq, true);
		err = sv_wq_open(&qp->rq, qp->rq.limit, qp->rq.max_sge, qp->pd);
		qp->rx.rx_slot = qp->rq.rx_slot;
	}
	qp->lost = err;
	return err;
}

void sv_qp_leave_locked(struct sv_qp *qp)
{
	int was = atomic_exchange(&qp->state, IBV_QPS_RESET);

	if (was >= IBV_QPS_RTR && !atomic_load_explicit(&qp->rx.flush, memory_order_relaxed))
		sv_qp_quiesce(qp);
	sv_qp_wake_initiator(qp);
	if (qp->path)
		qp->path->ops->close(qp);
}

void sv_qp_reset_locked(struct sv_qp *qp)
{
	sv_qp_leave_locked(qp);
	sv_qp_clear_locked(qp);
}

/* ---- RTR ---- */

/* Allocates the ring for messages that do not fit their receive slot; a smaller one as the area fills up, and
 * finally none. */
static void eager_open(struct sv_qp *qp)
{
	unsigned use = sv_heap_use(HEAP_BY_PEERS);
	uint32_t size = use < 50 ? EAGER_MOST : use < 75 ? EAGER_MOST / 4 : EAGER_LEAST;
	uint64_t offset = 0;

	if (qp->ud || use >= 95)
		size = 0;
	qp->rx.eager = size ? sv_heap_alloc(HEAP_BY_PEERS, size, &offset) : NULL;
	qp->rx.eager_size = qp->rx.eager ? size : 0;
	qp->by_owner->eager = offset;
	qp->by_owner->eager_size = qp->rx.eager_size;
}

/* Describes the receive queue: all that senders copy when they bind to the new epoch. */
static void rx_describe(struct sv_qp *qp)
{
	const struct sv_wq *wq = qp->srq ? &qp->srq->wq : &qp->rq;
	struct qp_by_owner *by_owner = qp->by_owner;

	by_owner->size = wq->mask + 1;
	by_owner->max_sge = wq->max_sge;
	by_owner->post = wq->post_offset;
	by_owner->sge = wq->sge_offset;
	by_owner->rx_slot = wq->rx_slot_offset;
	by_owner->arrival = qp->arrival_offset;
	qp->epoch += qp->epoch + 1 ? 1 : 2;
	/* release: pairs with epoch_is_current and sv_remote_rq_bind_locked */
	atomic_store_explicit(&by_owner->epoch, qp->epoch, memory_order_release);
}

static void rx_publish(struct sv_qp *qp)
{
	struct qp_by_owner *by_owner = qp->by_owner;

	eager_open(qp);
	by_owner->pd = qp->pd;
	by_owner->recv_pd = qp->srq ? qp->srq->wq.pd : qp->pd;
	by_owner->cq = qp->recv_cq->index;
	__atomic_store_n(&by_owner->srq, qp->srq ? qp->srq->index + 1 : 0, __ATOMIC_RELAXED);
	atomic_store_explicit(&by_owner->peer,
			      qp->path ? qp->path->ops->initiator(qp) : qp->attr.dest_qp_num,
			      memory_order_relaxed);
	attr_publish(qp);
	rx_describe(qp);
}

/* An error that occurs during this call is settled later, under `modify`. */
void sv_qp_publish_again_locked(struct sv_qp *qp)
{
	rx_describe(qp);
	fence_full(); /* pairs with sv_qp_fail, which sets the state and then clears the epoch */
	if (atomic_load_explicit(&qp->state, memory_order_relaxed) == IBV_QPS_ERR)
		atomic_store_explicit(&qp->by_owner->epoch, 0, memory_order_relaxed);
}

static void enter_rtr(struct sv_qp *qp)
{
	atomic_store_explicit(&qp->dest, qp->attr.dest_qp_num, memory_order_relaxed);
	if (!qp->ud && !qp->path) {
		atomic_store_explicit(&qp->by_owner->initiates, qp->attr.dest_qp_num,
				      memory_order_relaxed);
		fence_full(); /* the first epoch_enter follows; pairs with initiator_has_stopped */
	}
	rx_publish(qp);
	if (qp->ud) {
		sv_ud_receive(qp);
		return;
	}
	sv_qp_peer(qp);		    /* begins the link before the first send */
	fence_light(qp->expedited); /* the waiter has the full barrier, see sv_remote_rq_ask */
	sv_qp_wake_initiator(qp);
}

/* ---- any state ---- */

static int qp_state_enter_locked(struct sv_qp *qp, enum ibv_qp_state from, enum ibv_qp_state to)
{
	int now = from;

	if (to == IBV_QPS_RESET) {
		sv_qp_reset_locked(qp);
		return rings_renew(qp);
	}
	if (to == IBV_QPS_ERR) {
		sv_qp_enter_error(qp);
		sv_qp_settle_now_locked(qp);
		return 0;
	}
	if (to == IBV_QPS_RTR && from != to) {
		int error = sv_transport()->path_open(qp);

		if (error)
			return error;
	}
	/* an error may have occurred before; then the state remains IBV_QPS_ERR */
	if (from != to && !atomic_compare_exchange_strong(&qp->state, &now, to))
		return EINVAL;
	if (to == IBV_QPS_RTR && from != to)
		enter_rtr(qp);
	if (to == IBV_QPS_RTS || to == IBV_QPS_SQD)
		attr_publish(qp);
	if (to == IBV_QPS_RTS)
		sv_sq_run(qp);
	if (to == IBV_QPS_SQD && from != to && qp->attr.en_sqd_async_notify && !sv_sq_drain(qp))
		sv_async_post_qp(&qp->ibv, IBV_EVENT_SQ_DRAINED);
	return 0;
}

int sv_qp_enter_state(struct ibv_qp *ibv, enum ibv_qp_state from, enum ibv_qp_state to,
		      const struct ibv_qp_attr *attr, int mask)
{
	struct sv_qp *qp = qp_of(ibv);
	int err;

	pthread_mutex_lock(&qp->modify);
	if (sv_qp_state(ibv) != from) {
		pthread_mutex_unlock(&qp->modify);
		return EINVAL;
	}
	if (from == IBV_QPS_RTS && to == IBV_QPS_SQD && !(mask & IBV_QP_EN_SQD_ASYNC_NOTIFY))
		qp->attr.en_sqd_async_notify = 0;
	attr_keep(&qp->attr, attr, mask);
	err = qp_state_enter_locked(qp, from, to);
	if (!err)
		ibv->state = to;
	pthread_mutex_unlock(&qp->modify);
	return err;
}
