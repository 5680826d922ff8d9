/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Completion queues as objects: made, resized, destroyed, joined and left by QPs, overrun. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "softverbs/channel.h"
#include "softverbs/srq.h"
#include "util/log.h"

static void cq_publish(struct sv_cq *cq)
{
	struct area *area = area_own();

	cq->alive = area->alive;
	cq->rw = &area->rw->cq[cq->index];
	cq->ro = &area->ro->cq[cq->index];
	memset(cq->rw, 0, sizeof(*cq->rw));
	memset(cq->ro, 0, sizeof(*cq->ro));
	atomic_store_explicit(&cq->ro->cqe, (uint32_t)cq->ibv.cqe, memory_order_relaxed);
	if (cq->ibv.channel)
		channel_join(channel_of(cq->ibv.channel), cq);
	pthread_mutex_lock(&area->table_lock);
	area->cq[cq->index] = cq;
	pthread_mutex_unlock(&area->table_lock);
}

struct sv_cq *cq_make(struct ibv_context *context, uint32_t cqe, void *cq_context,
		      struct ibv_comp_channel *channel, uint32_t comp_vector)
{
	struct sv_cq *cq;
	uint32_t id;

	if (!context_is_ours(context)) {
		errno = ENODEV;
		return NULL;
	}
	if (!cqe || cqe > SV_MAX_CQE || comp_vector >= SV_COMP_VECTORS) {
		errno = EINVAL;
		return NULL;
	}
	cq = aligned_alloc(SV_LINE, sizeof(*cq));
	if (!cq)
		return NULL;
	memset(cq, 0, sizeof(*cq));
	id = ids_take(&area_own()->cqs);
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
	cq = cq_make(context, (uint32_t)cqe, cq_context, channel, (uint32_t)comp_vector);
	return cq ? &cq->ibv : NULL;
}

static void many_free(struct cq_many *many)
{
	heap_give(HEAP_OWN, many->members, sizeof(*many->members) * SV_QPS);
	heap_give(HEAP_OWN, many->is_hot, SV_WORDS(SV_QPS) * sizeof(uint64_t));
	heap_give(HEAP_RW, many->ready, sizeof(*many->ready));
}

int ibv_destroy_cq(struct ibv_cq *ibv)
{
	struct sv_cq *cq = cq_of(ibv);
	struct area *area = area_own();

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
	if (ibv->channel)
		channel_leave(channel_of(ibv->channel), cq);
	pthread_mutex_lock(&ibv->mutex);
	while (ibv->comp_events_completed != cq->consumed)
		pthread_cond_wait(&ibv->cond, &ibv->mutex);
	pthread_mutex_unlock(&ibv->mutex);
	async_retire_cq(ibv);

	atomic_store_explicit(&cq->ro->ready, 0, memory_order_relaxed);
	many_free(&cq->many);
	cq_close_ex(cq);
	ids_give(&area->cqs, cq->index + 1);
	pthread_mutex_destroy(&ibv->mutex);
	pthread_cond_destroy(&ibv->cond);
	atomic_fetch_sub_explicit(&context_of(ibv->context)->users, 1,
				  memory_order_release); /* release: see ibv_dealloc_pd */
	free(cq);
	return 0;
}

/* Whether the members' queues could overrun it; then senders count. */
static void cq_set_tight_locked(struct sv_cq *cq)
{
	bool tight = cq->demand > (uint64_t)cq->ibv.cqe;
	uint32_t mode = atomic_load_explicit(&cq->rw->mode, memory_order_relaxed);

	atomic_store_explicit(&cq->rw->mode, (mode & ~(uint32_t)CQ_TIGHT) | (tight ? CQ_TIGHT : 0),
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
	if (cq_count_locked(cq) > (uint64_t)cqe) {
		err = EINVAL;
	} else {
		ibv->cqe = cqe;
		atomic_store_explicit(&cq->ro->cqe, (uint32_t)cqe, memory_order_relaxed);
		cq_set_tight_locked(cq);
	}
	lock_release(&cq->lock);
	return err;
}

/* ---- members ---- */

static uint64_t member_demand(const struct sv_qp *qp, unsigned roles)
{
	uint64_t demand = roles & CQ_SENDS ? qp->sq.mask + 1 : 0;

	if (roles & CQ_RECVS)
		demand += qp->srq ? qp->rx.mask + 1 : qp->rq.limit;
	return demand;
}

static int many_make(struct cq_many *many)
{
	many->members = heap_take_zero(HEAP_OWN, sizeof(*many->members) * SV_QPS, NULL);
	many->is_hot = heap_take_zero(HEAP_OWN, SV_WORDS(SV_QPS) * sizeof(uint64_t), NULL);
	many->ready = heap_take_zero(HEAP_RW, sizeof(*many->ready), &many->ready_offset);
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

/* From now on senders mark their QPs; those known so far are hot and need no mark. */
static void cq_go_many_locked(struct sv_cq *cq, const struct cq_many *many)
{
	uint32_t count = cq->count;

	cq->many = *many;
	cq->count = 0;
	for (uint32_t i = 0; i < count; i++) {
		cq->many.members[cq->hot[i].qp->index] = cq->hot[i];
		hot_add_locked(cq, cq->hot[i]);
	}
	/* release: pairs with senders, who load it when they see the mode */
	atomic_store_explicit(&cq->ro->ready, many->ready_offset, memory_order_release);
	atomic_fetch_or_explicit(&cq->rw->mode, CQ_MANY, memory_order_release);
}

void cq_demand_grew_locked(struct sv_cq *cq, uint32_t more)
{
	cq->demand += more;
	cq_set_tight_locked(cq);
}

int cq_attach(struct sv_cq *cq, struct sv_qp *qp, unsigned roles)
{
	struct cq_member member = { .qp = qp, .roles = roles };
	struct cq_many many = { 0 };
	uint32_t mode;
	bool changed;

	lock_acquire(&cq->lock);
	mode = atomic_load_explicit(&cq->rw->mode, memory_order_relaxed);
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
	changed = atomic_load_explicit(&cq->rw->mode, memory_order_relaxed) != mode;
	lock_release(&cq->lock);
	many_free(&many);
	if (changed)
		area_barrier(); /* nobody's message goes by the new mode */
	return 0;
}

void cq_detach(struct sv_cq *cq, struct sv_qp *qp)
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
	async_post_qp(&member->qp->ibv, IBV_EVENT_QP_FATAL);
	qp_fail(member->qp);
}

static void cq_break_locked(struct sv_cq *cq)
{
	if (cq->broken)
		return;
	cq->broken = true;
	cq->left = (uint32_t)cq->ibv.cqe;
	log_at(LOG_ERROR, "softverbs: cq %u: overrun, more than %d completions", cq->index,
	       cq->ibv.cqe);
	async_post_cq(&cq->ibv, IBV_EVENT_CQ_ERR);
	if (!cq->many.ready) {
		for (uint32_t i = 0; i < cq->count; i++)
			member_break(&cq->hot[i]);
		return;
	}
	for (uint32_t i = 0; i < SV_QPS; i++)
		member_break(&cq->many.members[i]);
}

void cq_attend(struct sv_cq *cq)
{
	uint32_t due = atomic_exchange_explicit(&cq->rw->due, 0, memory_order_acquire);

	if (due)
		channel_wake_due(cq->index);
	if (!atomic_exchange_explicit(&cq->rw->overflow, 0, memory_order_acquire))
		return;
	lock_acquire(&cq->lock);
	/* the count is the senders' guess, of whom one may be mad: others share this CQ */
	if (cq->demand > (uint64_t)cq->ibv.cqe && cq_count_locked(cq) > (uint64_t)cq->ibv.cqe)
		cq_break_locked(cq);
	lock_release(&cq->lock);
}
