/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* The owner's side of copies through shared memory: requests are checked and answered. */
#include <string.h>
#include "softverbs/bounce.h"
#include "softverbs/memory.h"
#include "softverbs/rdma.h"
#include "softverbs/srq.h"
#include "util/log.h"

#define IDLE_LOOKS 100u /* a microsecond or two, then the engine sleeps */

struct request {
	uint32_t kind, key, length;
	uint64_t addr, args[2];
};

/* ---- requests ---- */

static bool own_allows(const struct sv_qp *qp, const struct request *r, unsigned need, uint64_t *va)
{
	const struct ro_region *region = &qp->regions[r->key >> 16];

	if (!region_allows(qp->regions, r->key, qp->pd, r->addr, r->length, need, va))
		return false;
	return region->type != REGION_MW2 ||
	       (region->qpn == qp->ibv.qp_num &&
		atomic_load_explicit(&area_own()->rw->invalidated[r->key >> 16],
				     memory_order_relaxed) != r->key);
}

/*
 * What the QP, then the memory says: as rdma_check and atomic_check do for those who reach it
 * themselves. It is the initiator's to report what was wrong, so that it has its answer before this
 * QP fails.
 */
static enum ibv_wc_status request_check(struct sv_qp *qp, const struct request *r, uint64_t *va)
{
	bool atomic = r->kind == BOUNCE_CMP_SWP || r->kind == BOUNCE_FETCH_ADD;
	unsigned need = atomic			 ? IBV_ACCESS_REMOTE_ATOMIC
			: r->kind == BOUNCE_READ ? IBV_ACCESS_REMOTE_READ
						 : IBV_ACCESS_REMOTE_WRITE;

	if (!(atomic_load_explicit(&qp->ro->access, memory_order_relaxed) & need) ||
	    (atomic && r->addr % 8) ||
	    (r->kind != BOUNCE_WRITE &&
	     !atomic_load_explicit(&qp->ro->max_dest_rd, memory_order_relaxed)))
		return IBV_WC_REM_INV_REQ_ERR;
	if (!own_allows(qp, r, need, va) || (atomic && (*va % 8 || r->length != 8)))
		return IBV_WC_REM_ACCESS_ERR;
	return IBV_WC_SUCCESS;
}

static enum ibv_wc_status serve_memory(struct sv_qp *qp, const struct request *r, uint8_t *data,
				       uint64_t *old)
{
	struct iovec at = { .iov_len = r->length };
	enum ibv_wc_status status;
	uint64_t va = 0;

	status = request_check(qp, r, &va);
	if (status != IBV_WC_SUCCESS)
		return status;
	at.iov_base = (void *)(uintptr_t)va;
	if (r->kind == BOUNCE_WRITE || r->kind == BOUNCE_READ) {
		if (!memory_copy(&at, data, r->kind == BOUNCE_WRITE))
			return IBV_WC_GENERAL_ERR;
		return IBV_WC_SUCCESS;
	}
	if (!memory_is_there(&at, 1, true))
		return IBV_WC_GENERAL_ERR;
	*old = atomic_own(va, r->kind == BOUNCE_FETCH_ADD, r->args);
	return IBV_WC_SUCCESS;
}

static enum ibv_wc_status serve_receive(struct sv_qp *qp, const struct request *r, uint8_t *data)
{
	struct sv_wq *wq = qp->srq ? &qp->srq->wq : &qp->rq;
	struct iovec ranges[SV_MAX_SGE * 2];
	bool sound;
	int count;

	lock_acquire(&wq->lock);
	sound = r->key <= wq->mask;
	count = sound ? region_ranges(wq->regions, &wq->sge[(uint64_t)r->key * wq->max_sge],
				      wq->max_sge, wq->pd, r->addr, r->length, ranges)
		      : 0;
	lock_release(&wq->lock);
	if (!sound)
		return IBV_WC_GENERAL_ERR;
	if (count < 0)
		return IBV_WC_REM_OP_ERR;
	for (int i = 0; i < count; i++) {
		if (!memory_copy(&ranges[i], data, true))
			return IBV_WC_GENERAL_ERR;
		data += ranges[i].iov_len;
	}
	return IBV_WC_SUCCESS;
}

static enum ibv_wc_status serve_request(struct sv_qp *qp, const struct request *r, uint8_t *data,
					uint64_t *old)
{
	enum ibv_wc_status status = IBV_WC_REM_INV_REQ_ERR;

	pthread_rwlock_rdlock(&area_own()->serve_lock);
	if (r->length <= BOUNCE_BYTES && r->kind == BOUNCE_RECV)
		status = serve_receive(qp, r, data);
	else if (r->length <= BOUNCE_BYTES && r->kind >= BOUNCE_WRITE &&
		 r->kind <= BOUNCE_FETCH_ADD)
		status = serve_memory(qp, r, data, old);
	pthread_rwlock_unlock(&area_own()->serve_lock);
	return status;
}

static bool serve_one_locked(struct sv_qp *qp)
{
	struct sv_serve *serve = &qp->serve;
	uint32_t number = serve->number + 1, part = number % BOUNCE_PARTS;
	struct rw_bounce_ask *ask = &serve->memory->ask[part];
	struct rw_bounce_answer *answer = &serve->memory->answer[part];
	struct request r;
	uint64_t old = 0;

	/* acquire: pairs with bounce_issue */
	if (atomic_load_explicit(&ask->number, memory_order_acquire) != number)
		return false;
	r.kind = atomic_load_explicit(&ask->kind, memory_order_relaxed);
	r.key = atomic_load_explicit(&ask->key, memory_order_relaxed);
	r.length = atomic_load_explicit(&ask->length, memory_order_relaxed);
	r.addr = atomic_load_explicit(&ask->addr, memory_order_relaxed);
	r.args[0] = atomic_load_explicit(&ask->args[0], memory_order_relaxed);
	r.args[1] = atomic_load_explicit(&ask->args[1], memory_order_relaxed);
	atomic_store_explicit(&answer->status,
			      serve_request(qp, &r, serve->memory->data[part], &old),
			      memory_order_relaxed);
	atomic_store_explicit(&answer->old, old, memory_order_relaxed);
	/* release: data and status before the number */
	atomic_store_explicit(&answer->number, number, memory_order_release);
	serve->number = number;
	fence_light(qp->expedited); /* who waits has the barrier, see tx_ask */
	qp_wake_initiator(qp);
	return true;
}

/* ---- who serves ---- */

static void serve_open_locked(struct sv_qp *qp)
{
	uint64_t offset;

	if (qp->serve.memory || !atomic_load_explicit(&qp->ro->epoch, memory_order_relaxed))
		return;
	qp->serve.memory = heap_take(HEAP_RW, sizeof(*qp->serve.memory), &offset);
	if (!qp->serve.memory) {
		log_at(LOG_ERROR, "softverbs: qp 0x%x: no shared memory left for copies",
		       qp->ibv.qp_num);
		async_post_qp(&qp->ibv, IBV_EVENT_QP_FATAL);
		qp_fail(qp);
		return;
	}
	memset(qp->serve.memory, 0, offsetof(struct rw_bounce, data));
	qp->serve.number = 0;
	atomic_fetch_add_explicit(&qp->recv_cq->served, 1, memory_order_relaxed);
	/* release: the cleared memory before its place */
	atomic_store_explicit(&qp->ro->bounce, offset, memory_order_release);
	fence_light(qp->expedited); /* who waits has the barrier, see tx_ask */
	qp_wake_initiator(qp);
}

void serve_attend(struct sv_qp *qp)
{
	struct sv_serve *serve = &qp->serve;
	uint32_t idle;

	pthread_mutex_lock(&serve->lock);
	serve_open_locked(qp);
	if (serve->memory) {
		atomic_store_explicit(&serve->memory->awake, 1, memory_order_relaxed);
		for (idle = 0; idle < IDLE_LOOKS; idle++) {
			while (serve_one_locked(qp))
				idle = 0;
			cpu_relax();
		}
		atomic_store_explicit(&serve->memory->awake, 0, memory_order_relaxed);
		fence_full(); /* the initiator publishes a request, then looks whether we sleep */
		while (serve_one_locked(qp))
			;
	}
	pthread_mutex_unlock(&serve->lock);
}

void serve_some(struct sv_qp *qp)
{
	if (pthread_mutex_trylock(&qp->serve.lock))
		return;
	if (qp->serve.memory)
		serve_one_locked(qp);
	pthread_mutex_unlock(&qp->serve.lock);
}

void serve_close(struct sv_qp *qp)
{
	struct sv_serve *serve = &qp->serve;

	pthread_mutex_lock(&serve->lock);
	atomic_store_explicit(&qp->ro->bounce, 0, memory_order_relaxed);
	if (serve->memory) {
		atomic_fetch_sub_explicit(&qp->recv_cq->served, 1, memory_order_relaxed);
		if (!qp->lost)
			heap_give(HEAP_RW, serve->memory, sizeof(*serve->memory));
	}
	serve->memory = NULL;
	pthread_mutex_unlock(&serve->lock);
}
