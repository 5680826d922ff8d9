/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Completion queues as objects: creation, resize, destruction, attached QPs, overrun. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "softverbs/object/channel.h"
#include "softverbs/base/lock_rank.h"
#include "softverbs/object/srq.h"
#include "softverbs/verbs/unpolled.h"
#include "util/cancel.h"
#include "util/log.h"

static void cq_publish(struct sv_cq *cq)
{
	struct area *area = sv_area_own();

	cq->alive = area->alive;
	cq->by_peers = &area->by_peers->cq[cq->index];
	cq->by_owner = &area->by_owner->cq[cq->index];
	memset(cq->by_peers, 0, sizeof(*cq->by_peers));
	memset(cq->by_owner, 0, sizeof(*cq->by_owner));
	atomic_store_explicit(&cq->by_owner->cqe, (uint32_t)cq->ibv.cqe, memory_order_relaxed);
	sv_unpolled_init(cq);
	if (cq->ibv.channel)
		sv_channel_join(channel_of(cq->ibv.channel), cq);
	pthread_mutex_lock(&area->table_lock);
	area->cq[cq->index] = cq;
	pthread_mutex_unlock(&area->table_lock);
}

struct sv_cq *sv_cq_make(struct ibv_context *context, uint32_t cqe, void *cq_context,
			 struct ibv_comp_channel *channel, uint32_t comp_vector)
{
	struct sv_cq *cq;
	uint32_t id;

	if (!context_is_ours(context)) {
		errno = ENODEV;
		return NULL;
	}
	if (!cqe || cqe > SV_MAX_CQE || comp_vector >= SV_COMP_VECTORS ||
	    (channel && channel->context != context)) {
		errno = EINVAL;
		return NULL;
	}
	cq = aligned_alloc(SV_LINE, sizeof(*cq));
	if (!cq)
		return NULL;
	memset(cq, 0, sizeof(*cq));
	lock_init(&cq->lock, SV_RANK_CQ);
	id = sv_ids_alloc(&sv_area_own()->cqs);
	if (!id) {
		free(cq);
		errno = ENOMEM;
		return NULL;
	}
	cq->index = id - 1;
	cq->ibv.context = context;
	cq->ibv.channel = channel;
	cq->ibv.cq_context = cq_context;
	cq->ibv.handle = id;
	cq->ibv.cqe = (int)cqe;
	pthread_mutex_init(&cq->ibv.mutex, NULL);
	pthread_cond_init(&cq->ibv.cond, NULL);
	atomic_fetch_add_explicit(&context_of(context)->users, 1, memory_order_relaxed);
	cq_publish(cq);
	return cq;
}

struct ibv_cq *ibv_create_cq(struct ibv_context *context, int cqe, void *cq_context,
			     struct ibv_comp_channel *channel, int comp_vector)
{
	struct sv_cq *cq;

	if (cqe < 0 || comp_vector < 0) {
		errno = EINVAL;
		return NULL;
	}
	cq = sv_cq_make(context, (uint32_t)cqe, cq_context, channel, (uint32_t)comp_vector);
	return cq ? &cq->ibv : NULL;
}

static void many_free(struct cq_many *many)
{
	sv_heap_free(HEAP_OWN, many->members, sizeof(*many->members) * SV_QPS);
	sv_heap_free(HEAP_OWN, many->is_hot, SV_WORDS(SV_QPS) * sizeof(uint64_t));
	sv_heap_free(HEAP_BY_PEERS, many->ready, sizeof(*many->ready));
}

int ibv_destroy_cq(struct ibv_cq *ibv)
{
	CANCEL_OFF_HERE;
	struct sv_cq *cq = cq_of(ibv);
	struct area *area = sv_area_own();

	if (!context_is_ours(ibv->context))
		return ENODEV;
	lock_acquire(&cq->lock);
	if (cq->total) {
		lock_release(&cq->lock);
		return EBUSY;
	}
	lock_release(&cq->lock);
	pthread_mutex_lock(&area->table_lock);
	area->cq[cq->index] = NULL;
	while (cq->pins)
		pthread_cond_wait(&area->unpinned, &area->table_lock);
	pthread_mutex_unlock(&area->table_lock);
	sv_unpolled_end(cq);
	if (ibv->channel)
		sv_channel_leave(channel_of(ibv->channel), cq);
	pthread_mutex_lock(&ibv->mutex);
	while (ibv->comp_events_completed != cq->consumed)
		pthread_cond_wait(&ibv->cond, &ibv->mutex);
	pthread_mutex_unlock(&ibv->mutex);
	sv_async_retire_cq(ibv);

	atomic_store_explicit(&cq->by_owner->ready, 0, memory_order_relaxed);
	many_free(&cq->many);
	free(cq->kept.wc);
	sv_cq_close_ex(cq);
	sv_ids_free(&area->cqs, cq->index + 1);
	pthread_mutex_destroy(&ibv->mutex);
	pthread_cond_destroy(&ibv->cond);
	atomic_fetch_sub_explicit(&context_of(ibv->context)->users, 1,
				  memory_order_release); /* release: see ibv_dealloc_pd */
	free(cq);
	return 0;
}

/* Sets CQ_TIGHT, with which senders count, if the queues of the attached QPs could overrun the CQ. */
static void cq_set_tight_locked(struct sv_cq *cq)
{
	bool tight = cq->demand > (uint64_t)cq->ibv.cqe;
	uint32_t mode = atomic_load_explicit(&cq->by_peers->mode, memory_order_relaxed);

	atomic_store_explicit(&cq->by_peers->mode,
			      (mode & ~(uint32_t)CQ_TIGHT) | (tight ? CQ_TIGHT : 0),
			      memory_order_relaxed);
}

int ibv_resize_cq(struct ibv_cq *ibv, int cqe)
{
	struct sv_cq *cq = cq_of(ibv);
	int err = 0;

	if (!context_is_ours(ibv->context))
		return ENODEV;
	if (cqe <= 0 || cqe > SV_MAX_CQE)
		return EINVAL;
	lock_acquire(&cq->lock);
	if (sv_cq_count_locked(cq) > (uint64_t)cqe) {
		err = EINVAL;
	} else {
		ibv->cqe = cqe;
		atomic_store_explicit(&cq->by_owner->cqe, (uint32_t)cqe, memory_order_relaxed);
		cq_set_tight_locked(cq);
	}
	lock_release(&cq->lock);
	return err;
}

/* ---- attached QPs ---- */

static uint64_t member_demand(const struct sv_qp *qp, unsigned roles)
{
	uint64_t demand = roles & CQ_SENDS ? qp->sq.mask + 1 : 0;

	if (roles & CQ_RECVS)
		demand += qp->srq ? qp->rx.mask + 1 : qp->rq.limit;
	return demand;
}

static int many_make(struct cq_many *many)
{
	many->members = sv_heap_alloc_zero(HEAP_OWN, sizeof(*many->members) * SV_QPS, NULL);
	many->is_hot = sv_heap_alloc_zero(HEAP_OWN, SV_WORDS(SV_QPS) * sizeof(uint64_t), NULL);
	many->ready = sv_heap_alloc_zero(HEAP_BY_PEERS, sizeof(*many->ready), &many->ready_offset);
	return many->members && many->is_hot && many->ready ? 0 : ENOMEM;
}

static void hot_add_locked(struct sv_cq *cq, struct cq_member member)
{
	uint32_t index = member.qp->index;

	cq->hot[cq->count++] = member;
	if (!cq->many.ready)
		return;
	cq->many.is_hot[index / 64] |= 1ull << index % 64;
	atomic_fetch_or_explicit(&cq->many.ready->word[index / 64], 1ull << index % 64,
				 memory_order_relaxed);
}

/* From now on senders mark their QPs; the QPs attached so far are hot and need no mark. */
static void cq_go_many_locked(struct sv_cq *cq, const struct cq_many *many)
{
	uint32_t count = cq->count;

	cq->many = *many;
	cq->count = 0;
	for (uint32_t i = 0; i < count; i++) {
		cq->many.members[cq->hot[i].qp->index] = cq->hot[i];
		hot_add_locked(cq, cq->hot[i]);
	}
	/* release: pairs with senders, which load it when they see the mode */
	atomic_store_explicit(&cq->by_owner->ready, many->ready_offset, memory_order_release);
	atomic_fetch_or_explicit(&cq->by_peers->mode, CQ_MANY, memory_order_release);
}

void sv_cq_demand_grew_locked(struct sv_cq *cq, uint32_t more)
{
	cq->demand += more;
	cq_set_tight_locked(cq);
}

int sv_cq_attach(struct sv_cq *cq, struct sv_qp *qp, unsigned roles)
{
	struct cq_member member = { .qp = qp, .roles = roles };
	struct cq_many many = { 0 };
	uint32_t mode;
	bool changed;

	lock_acquire(&cq->lock);
	mode = atomic_load_explicit(&cq->by_peers->mode, memory_order_relaxed);
	if (!cq->many.ready && cq->count == CQ_HOT) {
		lock_release(&cq->lock);
		if (many_make(&many)) {
			many_free(&many);
			return ENOMEM;
		}
		lock_acquire(&cq->lock);
		if (!cq->many.ready) {
			cq_go_many_locked(cq, &many);
			many = (struct cq_many){ 0 };
		}
	}
	if (cq->many.ready)
		cq->many.members[qp->index] = member;
	if (cq->count < CQ_HOT)
		hot_add_locked(cq, member);
	cq->total++;
	cq->demand += member_demand(qp, roles);
	cq_set_tight_locked(cq);
	changed = atomic_load_explicit(&cq->by_peers->mode, memory_order_relaxed) != mode;
	lock_release(&cq->lock);
	many_free(&many);
	if (changed)
		sv_area_barrier(); /* no message is still sent under the old mode */
	return 0;
}

void sv_cq_detach(struct sv_cq *cq, struct sv_qp *qp)
{
	uint64_t bit = 1ull << qp->index % 64;
	unsigned roles = 0;

	lock_acquire(&cq->lock);
	if (cq->many.ready) {
		roles = cq->many.members[qp->index].roles;
		cq->many.members[qp->index] = (struct cq_member){ 0 };
		cq->many.is_hot[qp->index / 64] &= ~bit;
		atomic_fetch_and_explicit(&cq->many.ready->word[qp->index / 64], ~bit,
					  memory_order_relaxed);
	}
	for (uint32_t i = 0; i < cq->count; i++) {
		if (cq->hot[i].qp != qp)
			continue;
		roles = cq->hot[i].roles;
		cq->hot[i] = cq->hot[--cq->count];
		cq->turn = 0;
		break;
	}
	if (roles) {
		cq->total--;
		cq->demand -= member_demand(qp, roles);
		cq_set_tight_locked(cq);
	}
	lock_release(&cq->lock);
}

/* ---- overrun ---- */

static void member_break(struct cq_member *member)
{
	if (!member->qp ||
	    atomic_load_explicit(&member->qp->state, memory_order_relaxed) == IBV_QPS_ERR)
		return;
	sv_async_post_qp(&member->qp->ibv, IBV_EVENT_QP_FATAL);
	sv_qp_fail(member->qp);
}

static void cq_break_locked(struct sv_cq *cq)
{
	if (cq->slow & CQ_BROKEN)
		return;
	cq->slow |= CQ_BROKEN;
	cq->left = (uint32_t)cq->ibv.cqe;
	log_at(LOG_ERROR, "softverbs: cq %u: overrun, more than %d completions", cq->index,
	       cq->ibv.cqe);
	sv_async_post_cq(&cq->ibv, IBV_EVENT_CQ_ERR);
	if (!cq->many.ready) {
		for (uint32_t i = 0; i < cq->count; i++)
			member_break(&cq->hot[i]);
		return;
	}
	for (uint32_t i = 0; i < SV_QPS; i++)
		member_break(&cq->many.members[i]);
}

void sv_cq_attend(struct sv_cq *cq)
{
	uint32_t due = atomic_exchange_explicit(&cq->by_peers->due, 0, memory_order_acquire);

	if (due)
		sv_channel_wake_due(cq->index, due);
	if (!atomic_exchange_explicit(&cq->by_peers->overflow, 0, memory_order_acquire))
		return;
	lock_acquire(&cq->lock);
	/* The overflow flag is set by senders, and one may be faulty while other QPs share this CQ: counts
	 * again. */
	if (cq->demand > (uint64_t)cq->ibv.cqe && sv_cq_count_locked(cq) > (uint64_t)cq->ibv.cqe)
		cq_break_locked(cq);
	lock_release(&cq->lock);
}

static void slow_set(struct sv_cq *cq, uint32_t flag, bool on)
{
	lock_acquire(&cq->lock);
	cq->slow = on ? cq->slow | flag : cq->slow & ~flag;
	lock_release(&cq->lock);
}

/* A thread that armed the CQ and then missed its completions in a poll waits for their event. */
static void missed_fire(struct sv_cq *cq)
{
	bool missed;

	lock_acquire(&cq->lock);
	missed = cq->slow & CQ_MISSED && sv_cq_count_locked(cq);
	cq->slow &= ~(uint32_t)CQ_MISSED;
	lock_release(&cq->lock);
	if (missed)
		cq_fire(cq->by_peers, sv_peer_self(), cq->index, true);
}

void sv_cqs_slow(enum cq_slow flag, bool on)
{
	struct area *area = sv_area_own();
	uint32_t last;

	pthread_mutex_lock(&area->cqs.lock);
	last = area->cqs.fresh - 1; /* identifiers begin with 1, indices with 0 */
	pthread_mutex_unlock(&area->cqs.lock);
	for (uint32_t index = 0; index < last; index++) {
		struct sv_cq *cq;

		pthread_mutex_lock(&area->table_lock);
		cq = area->cq[index];
		if (cq)
			cq->pins++;
		pthread_mutex_unlock(&area->table_lock);
		if (!cq)
			continue;
		slow_set(cq, flag, on);
		if (flag == CQ_STILL && !on)
			missed_fire(cq);
		sv_area_unpin(&cq->pins);
	}
}
