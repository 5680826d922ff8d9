/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Shared receive queues: creation, posting, and the limit. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "softverbs/object/srq.h"
#include "softverbs/rc/rc.h"
#include "softverbs/rc/remote_rq.h"
#include "util/cancel.h"
#include "util/log.h"

/* ---- create and destroy ---- */

static int srq_open(struct sv_srq *srq, const struct ibv_srq_init_attr *init)
{
	struct area *area = sv_area_own();
	int err;

	srq->id = sv_ids_alloc(&area->srqs);
	if (!srq->id)
		return ENOMEM;
	srq->index = srq->id - 1;
	srq->alive = area->alive;
	srq->by_peers = &area->by_peers->srq[srq->index];
	srq->by_owner = &area->by_owner->srq[srq->index];
	pthread_mutex_init(&srq->lock, NULL);
	TAILQ_INIT(&srq->qps);
	err = sv_wq_open(&srq->wq, init->attr.max_wr, init->attr.max_sge, srq->ibv.pd->handle);
	srq->free = sv_heap_alloc_zero(HEAP_OWN, (srq->wq.mask + 1) * sizeof(*srq->free), NULL);
	srq->round = sv_heap_alloc_zero(HEAP_OWN, (srq->wq.mask + 1) * sizeof(*srq->round), NULL);
	if (err || !srq->free || !srq->round)
		return ENOMEM;
	memset(srq->by_peers, 0, sizeof(*srq->by_peers));
	memset(srq->by_owner, 0, sizeof(*srq->by_owner));
	for (uint32_t slot = 0; slot <= srq->wq.mask; slot++)
		sv_srq_slot_release(srq, slot);
	pthread_mutex_lock(&area->table_lock);
	area->srq[srq->index] = srq;
	pthread_mutex_unlock(&area->table_lock);
	return 0;
}

/* Accepts an SRQ that srq_open left incomplete. */
static void srq_free(struct sv_srq *srq)
{
	if (srq->id) {
		sv_wq_close(&srq->wq, srq->lost);
		sv_heap_free(HEAP_OWN, (void *)srq->free, (srq->wq.mask + 1) * sizeof(*srq->free));
		sv_heap_free(HEAP_OWN, (void *)srq->round,
			     (srq->wq.mask + 1) * sizeof(*srq->round));
		free(srq->missing);
		pthread_mutex_destroy(&srq->lock);
		sv_ids_free(&sv_area_own()->srqs, srq->id);
	}
	free(srq);
}

struct ibv_srq *ibv_create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *init)
{
	struct sv_srq *srq;

	errno = !context_is_ours(pd->context) ? ENODEV
		: !init->attr.max_wr || init->attr.max_wr > SV_MAX_WR ||
				init->attr.max_sge > SV_MAX_SGE
			? EINVAL
			: 0;
	if (errno)
		return NULL;
	srq = calloc(1, sizeof(*srq));
	if (!srq)
		return NULL;
	srq->ibv.context = pd->context;
	srq->ibv.srq_context = init->srq_context;
	srq->ibv.pd = pd;
	if (srq_open(srq, init)) {
		srq_free(srq);
		errno = ENOMEM;
		return NULL;
	}
	srq->ibv.handle = srq->id;
	pthread_mutex_init(&srq->ibv.mutex, NULL);
	pthread_cond_init(&srq->ibv.cond, NULL);
	init->attr.max_wr = srq->wq.limit;
	init->attr.max_sge = srq->wq.max_sge;
	atomic_fetch_add_explicit(&pd_of(pd)->users, 1, memory_order_relaxed);
	return &srq->ibv;
}

int ibv_destroy_srq(struct ibv_srq *ibv)
{
	CANCEL_OFF_HERE;
	struct sv_srq *srq = srq_of(ibv);
	struct area *area = sv_area_own();
	bool used;

	if (!context_is_ours(ibv->context))
		return ENODEV;
	pthread_mutex_lock(&srq->lock);
	used = !TAILQ_EMPTY(&srq->qps);
	pthread_mutex_unlock(&srq->lock);
	if (used)
		return EBUSY;
	pthread_mutex_lock(&area->table_lock);
	area->srq[srq->index] = NULL;
	while (srq->pins)
		pthread_cond_wait(&area->unpinned, &area->table_lock);
	pthread_mutex_unlock(&area->table_lock);
	sv_engine_timer_cancel(&srq->recover_timer);
	sv_async_retire_srq(ibv);
	pthread_mutex_destroy(&ibv->mutex);
	pthread_cond_destroy(&ibv->cond);
	/* release: see ibv_dealloc_pd */
	atomic_fetch_sub_explicit(&pd_of(ibv->pd)->users, 1, memory_order_release);
	srq_free(srq);
	return 0;
}

void sv_srq_attach(struct sv_srq *srq, struct sv_qp *qp)
{
	pthread_mutex_lock(&srq->lock);
	TAILQ_INSERT_TAIL(&srq->qps, qp, srq_entry);
	pthread_mutex_unlock(&srq->lock);
	qp->in_srq = true;
}

void sv_srq_detach(struct sv_srq *srq, struct sv_qp *qp)
{
	if (!qp->in_srq)
		return;
	pthread_mutex_lock(&srq->lock);
	TAILQ_REMOVE(&srq->qps, qp, srq_entry);
	if (srq->woken == qp)
		srq->woken = NULL;
	/* a sender that is stuck in the QP may also write to a receive slot */
	srq->lost |= qp->lost;
	pthread_mutex_unlock(&srq->lock);
}

/* ---- post ---- */

static int srq_post_one_locked(struct sv_srq *srq, const struct ibv_recv_wr *wr)
{
	struct sv_wq *wq = &srq->wq;
	/* acquire: pairs with sv_srq_slot_release */
	uint32_t entry =
		atomic_load_explicit(&srq->free[srq->free_head & wq->mask], memory_order_acquire);
	int err;

	if (entry >> 16 != (ring_lap(srq->free_head, wq->shift) & 0xffff))
		return ENOMEM;
	err = wq_put_locked(wq, wq->posted, entry & 0xffff, wr);
	if (err)
		return err;
	srq->free_head++;
	atomic_fetch_add_explicit(&srq->round[entry & 0xffff], 1, memory_order_relaxed);
	return 0;
}

/* The one that is woken first probably takes the receive, so the next time it is the last one. */
static void initiators_wake_locked(struct sv_srq *srq)
{
	struct sv_qp *start = srq->woken ? TAILQ_NEXT(srq->woken, srq_entry) : NULL, *qp;
	bool found = false;

	if (!start)
		start = TAILQ_FIRST(&srq->qps);
	qp = start;
	do {
		if (sv_qp_wake_initiator(qp) && !found) {
			srq->woken = qp;
			found = true;
		}
		qp = TAILQ_NEXT(qp, srq_entry);
		if (!qp)
			qp = TAILQ_FIRST(&srq->qps);
	} while (qp != start);
}

static void srq_wake_initiators(struct sv_srq *srq)
{
	/* acquire: pairs with sv_remote_rq_ask; each waiter sets its own flag before */
	if (!atomic_exchange_explicit(&srq->by_peers->wait, 0, memory_order_acquire))
		return;
	pthread_mutex_lock(&srq->lock);
	if (!TAILQ_EMPTY(&srq->qps))
		initiators_wake_locked(srq);
	pthread_mutex_unlock(&srq->lock);
}

int sv_srq_post_recv(struct ibv_srq *ibv, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	struct sv_srq *srq = srq_of(ibv);
	int err = 0;

	if (unlikely(!*srq->alive)) {
		*bad = wr;
		return ENODEV;
	}
	lock_acquire(&srq->wq.lock);
	for (; wr; wr = wr->next) {
		err = srq_post_one_locked(srq, wr);
		if (unlikely(err)) {
			*bad = wr;
			break;
		}
	}
	/* release: pairs with sv_arrivals_land_locked; the SGEs are written */
	atomic_store_explicit(&srq->by_owner->posted, srq->wq.posted, memory_order_release);
	lock_release(&srq->wq.lock);
	/* the waiter has the full barrier, see sv_remote_rq_ask */
	fence_light(sv_area_own()->expedited);
	if (unlikely(atomic_load_explicit(&srq->by_peers->wait, memory_order_relaxed)))
		srq_wake_initiators(srq);
	return err;
}

/* ---- limit ---- */

void sv_srq_attend(struct sv_srq *srq)
{
	bool fire;

	lock_acquire(&srq->wq.lock);
	fire = atomic_load_explicit(&srq->by_owner->limit, memory_order_relaxed) &&
	       atomic_load_explicit(&srq->by_peers->limit_round, memory_order_relaxed) ==
		       srq->limit_round;
	if (fire)
		atomic_store_explicit(&srq->by_owner->limit, 0, memory_order_relaxed);
	lock_release(&srq->wq.lock);
	if (fire)
		sv_async_post_srq(&srq->ibv, IBV_EVENT_SRQ_LIMIT_REACHED);
}

/* A smaller queue keeps its memory and the length granted before; but a length below the number of posted
 * receives or the limit is refused. */
static int modify_check_locked(const struct sv_srq *srq, const struct ibv_srq_attr *attr, int mask)
{
	uint32_t limit = mask & IBV_SRQ_LIMIT ? attr->srq_limit
					      : atomic_load_explicit(&srq->by_owner->limit,
								     memory_order_relaxed);
	uint32_t left =
		srq->wq.posted - atomic_load_explicit(&srq->by_peers->claim, memory_order_relaxed);

	if (!(mask & IBV_SRQ_MAX_WR))
		return limit > srq->wq.limit ? EINVAL : 0;
	return !attr->max_wr || attr->max_wr > SV_MAX_WR || attr->max_wr < left ||
			       attr->max_wr < limit
		       ? EINVAL
		       : 0;
}

int ibv_modify_srq(struct ibv_srq *ibv, struct ibv_srq_attr *attr, int mask)
{
	struct sv_srq *srq = srq_of(ibv);
	int err;

	if (!context_is_ours(ibv->context))
		return ENODEV;
	if (mask & ~(IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT))
		return EINVAL;
	lock_acquire(&srq->wq.lock);
	err = modify_check_locked(srq, attr, mask);
	lock_release(&srq->wq.lock);
	if (!err && mask & IBV_SRQ_MAX_WR)
		err = sv_srq_grow(srq, attr->max_wr);
	if (err || !(mask & IBV_SRQ_LIMIT))
		return err;
	lock_acquire(&srq->wq.lock);
	srq->limit_round++;
	atomic_store_explicit(&srq->by_owner->limit_round, srq->limit_round, memory_order_relaxed);
	atomic_store_explicit(&srq->by_owner->limit, attr->srq_limit,
			      memory_order_release); /* release: limit_round is stored before */
	lock_release(&srq->wq.lock);
	return 0;
}

int ibv_query_srq(struct ibv_srq *ibv, struct ibv_srq_attr *attr)
{
	struct sv_srq *srq = srq_of(ibv);

	if (!context_is_ours(ibv->context))
		return ENODEV;
	lock_acquire(&srq->wq.lock);
	attr->max_wr = srq->wq.limit;
	lock_release(&srq->wq.lock);
	attr->max_sge = srq->wq.max_sge;
	attr->srq_limit = atomic_load_explicit(&srq->by_owner->limit, memory_order_relaxed);
	return 0;
}
