/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Queue pairs as objects: creation with the granted capabilities, destruction. */
#include <errno.h>
#include "softverbs/base/lock_rank.h"
#include "softverbs/object/srq.h"
#include "softverbs/rc/rc.h"
#include "softverbs/rc/remote_rq.h"
#include "softverbs/ud/ud.h"
#include "softverbs/verbs/qp.h"
#include "util/cancel.h"
#include "util/log.h"

#define INLINE_GRANT 64u /* the minimum */

/* ---- create ---- */

/* As a kernel, which looks up each object among those of the context. */
static bool is_of_one_context(const struct ibv_pd *pd, const struct ibv_qp_init_attr *init)
{
	return init->send_cq->context == pd->context && init->recv_cq->context == pd->context &&
	       (!init->srq || init->srq->context == pd->context);
}

static int qp_check(const struct ibv_pd *pd, const struct ibv_qp_init_attr *init)
{
	const struct ibv_qp_cap *cap = &init->cap;

	if (!context_is_ours(pd->context))
		return ENODEV;
	if (init->qp_type != IBV_QPT_RC && init->qp_type != IBV_QPT_UC &&
	    init->qp_type != IBV_QPT_UD)
		return EOPNOTSUPP;
	if (!init->send_cq || !init->recv_cq || !is_of_one_context(pd, init) ||
	    cap->max_send_wr > SV_MAX_WR || cap->max_send_sge > SV_MAX_SGE ||
	    cap->max_inline_data > SV_MAX_INLINE)
		return EINVAL;
	if (!init->srq && (cap->max_recv_wr > SV_MAX_WR || cap->max_recv_sge > SV_MAX_SGE))
		return EINVAL;
	return 0;
}

static int sq_open(struct sv_sq *sq, const struct ibv_qp_init_attr *init)
{
	uint64_t size = round_up_pow2(init->cap.max_send_wr);

	sq->mask = (uint32_t)size - 1;
	sq->service = init->qp_type == IBV_QPT_RC   ? SERVICE_RC
		      : init->qp_type == IBV_QPT_UC ? SERVICE_UC
						    : SERVICE_UD;
	sq->opcodes = sv_service_opcodes((enum sv_service)sq->service);
	sq->max_sge = init->cap.max_send_sge ? init->cap.max_send_sge : 1;
	sq->max_inline =
		init->cap.max_inline_data > INLINE_GRANT ? init->cap.max_inline_data : INLINE_GRANT;
	sq->sig_all = init->sq_sig_all;
	sq->done = sv_heap_alloc(HEAP_OWN, size * sizeof(*sq->done), NULL);
	sq->held = sv_heap_alloc(HEAP_OWN, size * sizeof(*sq->held), NULL);
	sq->held_sge = sv_heap_alloc(HEAP_OWN, size * sq->max_sge * sizeof(*sq->held_sge), NULL);
	sq->held_inline = sv_heap_alloc(HEAP_OWN, size * sq->max_inline, NULL);
	return sq->done && sq->held && sq->held_sge && sq->held_inline ? 0 : ENOMEM;
}

static void sq_close(struct sv_sq *sq)
{
	uint64_t size = sq->mask + 1;

	sv_heap_free(HEAP_OWN, sq->done, size * sizeof(*sq->done));
	sv_heap_free(HEAP_OWN, sq->held, size * sizeof(*sq->held));
	sv_heap_free(HEAP_OWN, sq->held_sge, size * sq->max_sge * sizeof(*sq->held_sge));
	sv_heap_free(HEAP_OWN, sq->held_inline, size * sq->max_inline);
}

/* Opens the receive side: a queue of its own, or the order of arrival in slots of the SRQ. */
static int rx_open(struct sv_qp *qp, const struct ibv_qp_init_attr *init)
{
	struct sv_rx *rx = &qp->rx;
	struct sv_wq *wq = &qp->rq;
	int err;

	if (qp->srq && qp->sq.service == SERVICE_UD) {
		wq = &qp->srq->wq; /* the receiver matches datagrams with receives */
		err = 0;
	} else if (qp->srq) {
		wq = &qp->srq->wq;
		rx->arrival =
			sv_heap_alloc_zero(HEAP_BY_PEERS, (wq->mask + 1) * sizeof(*rx->arrival),
					   &qp->arrival_offset);
		err = rx->arrival ? 0 : ENOMEM;
	} else {
		err = sv_wq_open(wq, init->cap.max_recv_wr, init->cap.max_recv_sge, qp->pd);
	}
	rx->mask = wq->mask;
	rx->shift = wq->shift;
	rx->rx_slot = wq->rx_slot;
	if (!err && qp->sq.service == SERVICE_UD)
		err = sv_ud_open(qp);
	return err;
}

/* Frees the receive rings; sv_qp_clear_locked frees what belongs to a connection. */
static void rx_close(struct sv_qp *qp)
{
	if (!qp->srq)
		sv_wq_close(&qp->rq, qp->lost);
	else if (!qp->lost)
		sv_heap_free(HEAP_BY_PEERS, (void *)qp->rx.arrival,
			     (qp->rx.mask + 1) * sizeof(*qp->rx.arrival));
	sv_ud_close(qp);
}

static int queues_attach(struct sv_qp *qp)
{
	int err;

	if (qp->srq)
		sv_srq_attach(qp->srq, qp);
	if (qp->send_cq == qp->recv_cq)
		return sv_cq_attach(qp->send_cq, qp, CQ_SENDS | CQ_RECVS);
	err = sv_cq_attach(qp->send_cq, qp, CQ_SENDS);
	return err ? err : sv_cq_attach(qp->recv_cq, qp, CQ_RECVS);
}

static int qp_open(struct sv_qp *qp, const struct ibv_qp_init_attr *init)
{
	struct area *area = sv_area_own();
	int err;

	qp->id = sv_ids_alloc(&area->qps);
	if (!qp->id)
		return ENOMEM;
	qp->index = qp->id - 1;
	qp->alive = area->alive;
	qp->expedited = area->expedited;
	qp->pd = qp->ibv.pd->handle;
	qp->regions = area->by_owner->region;
	qp->send_cq = cq_of(init->send_cq);
	qp->recv_cq = cq_of(init->recv_cq);
	qp->srq = init->srq ? srq_of(init->srq) : NULL;
	qp->by_owner = &area->by_owner->qp[qp->index];
	qp->by_peers = &area->by_peers->qp[qp->index];
	pthread_mutex_init(&qp->modify, NULL);
	pthread_mutex_init(&qp->serve.lock, NULL);
	err = sq_open(&qp->sq, init);
	if (err)
		return err;
	qp->sq.plain = qp->sq.service == SERVICE_RC;
	qp->ops = qp->sq.service == SERVICE_UC	 ? &sv_uc_ops
		  : qp->sq.service == SERVICE_UD ? &sv_ud_ops
						 : NULL;
	sv_srq_shape_lock(qp->srq);
	err = rx_open(qp, init);
	if (!err) {
		sv_qp_clear_locked(qp);
		err = queues_attach(qp);
	}
	sv_srq_shape_unlock(qp->srq);
	return err;
}

/* Accepts an incomplete QP. No other thread can find it. */
static void qp_free(struct sv_qp *qp)
{
	if (qp->id) {
		sv_srq_shape_lock(qp->srq);
		sv_cq_detach(qp->send_cq, qp);
		sv_cq_detach(qp->recv_cq, qp);
		if (qp->srq)
			sv_srq_detach(qp->srq, qp);
		sv_srq_shape_unlock(qp->srq);
		sv_qp_close_ex(qp);
		rx_close(qp);
		sq_close(&qp->sq);
		sv_ids_free(&sv_area_own()->qps, qp->id);
		pthread_mutex_destroy(&qp->modify);
		pthread_mutex_destroy(&qp->serve.lock);
	}
	sv_qp_memory_free(qp);
}

static void qp_grant(struct sv_qp *qp, struct ibv_qp_init_attr *init)
{
	struct ibv_qp_cap *cap = &init->cap;

	cap->max_send_wr = qp->sq.mask + 1;
	cap->max_send_sge = qp->sq.max_sge;
	cap->max_inline_data = qp->sq.max_inline;
	cap->max_recv_wr = qp->srq ? 0 : qp->rq.limit;
	cap->max_recv_sge = qp->srq ? 0 : qp->rq.max_sge;
	qp->init = *init;
	qp->attr.cap = *cap;
}

struct sv_qp *sv_qp_make(struct ibv_pd *pd, struct ibv_qp_init_attr *init)
{
	int err = qp_check(pd, init);
	struct sv_qp *qp;

	if (err) {
		errno = err;
		return NULL;
	}
	qp = sv_qp_memory_alloc();
	if (!qp) {
		errno = ENOMEM;
		return NULL;
	}
	lock_init(&qp->sq.lock, SV_RANK_SQ);
	qp->ibv.context = pd->context;
	qp->ibv.qp_context = init->qp_context;
	qp->ibv.pd = pd;
	qp->ibv.send_cq = init->send_cq;
	qp->ibv.recv_cq = init->recv_cq;
	qp->ibv.srq = init->srq;
	qp->ibv.state = IBV_QPS_RESET;
	qp->ibv.qp_type = init->qp_type;
	err = qp_open(qp, init);
	if (err) {
		qp_free(qp);
		errno = err;
		return NULL;
	}
	qp->ibv.qp_num = (uint32_t)sv_runtime_peer_id() << 12 | qp->index;
	qp->ibv.handle = qp->index;
	qp_grant(qp, init);
	pthread_mutex_init(&qp->ibv.mutex, NULL);
	pthread_cond_init(&qp->ibv.cond, NULL);
	atomic_fetch_add_explicit(&pd_of(pd)->users, 1, memory_order_relaxed);
	sv_qp_list(qp);
	return qp;
}

struct ibv_qp *ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *init)
{
	struct sv_qp *qp = sv_qp_make(pd, init);

	return qp ? &qp->ibv : NULL;
}

static void completions_leave(struct sv_qp *qp)
{
	if (qp->send_cq == qp->recv_cq) {
		sv_cq_keep(qp->send_cq, qp, CQ_SENDS | CQ_RECVS);
		return;
	}
	sv_cq_keep(qp->send_cq, qp, CQ_SENDS);
	sv_cq_keep(qp->recv_cq, qp, CQ_RECVS);
}

int ibv_destroy_qp(struct ibv_qp *ibv)
{
	CANCEL_OFF_HERE;
	struct sv_qp *qp = qp_of(ibv);

	if (!context_is_ours(ibv->context))
		return ENODEV;
	sv_qp_unlist(qp);
	pthread_mutex_lock(&qp->modify);
	sv_qp_leave_locked(qp);
	completions_leave(qp);
	sv_qp_clear_locked(qp);
	pthread_mutex_unlock(&qp->modify);
	sv_engine_timer_cancel(&qp->settle_timer);
	sv_engine_timer_cancel(&qp->sq.timer);
	sv_engine_timer_cancel(&qp->sq.lock_timer);
	sv_async_retire_qp(ibv);
	pthread_mutex_destroy(&ibv->mutex);
	pthread_cond_destroy(&ibv->cond);
	/* release: see ibv_dealloc_pd */
	atomic_fetch_sub_explicit(&pd_of(ibv->pd)->users, 1, memory_order_release);
	qp_free(qp);
	return 0;
}

enum ibv_qp_state sv_qp_state(struct ibv_qp *ibv)
{
	return (enum ibv_qp_state)atomic_load_explicit(&qp_of(ibv)->state, memory_order_acquire);
}

void sv_qp_attributes(struct ibv_qp *ibv, struct ibv_qp_attr *attr, struct ibv_qp_init_attr *init)
{
	struct sv_qp *qp = qp_of(ibv);

	pthread_mutex_lock(&qp->modify);
	*attr = qp->attr;
	attr->qp_state = attr->cur_qp_state = sv_qp_state(ibv);
	*init = qp->init;
	pthread_mutex_unlock(&qp->modify);
	ibv->state = attr->qp_state;
}
