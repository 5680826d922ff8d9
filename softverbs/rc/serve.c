/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* The owner's side of copies through shared memory: checks and answers requests. */
#include <sched.h>
#include <string.h>
#include "softverbs/rc/bounce.h"
#include "softverbs/rc/memory.h"
#include "softverbs/rc/rdma.h"
#include "softverbs/rc/serve_memory.h"
#include "softverbs/object/srq.h"
#include "util/clock.h"
#include "util/log.h"

#define IDLE_POLLS 100u			/* polls: a microsecond or two, then the engine yields */
#define TURN	   (50 * NSEC_PER_USEC) /* after this time the engine turns to its other work */

struct request {
	uint32_t kind, key, length;
	uint64_t addr, args[2];
};

/* ---- requests ---- */

static bool own_allows(const struct sv_qp *qp, const struct request *r, unsigned need, uint64_t *va)
{
	const struct region_entry *region = &qp->regions[r->key >> 16];

	if (!region_allows(qp->regions, r->key, qp->pd, r->addr, r->length, need, va))
		return false;
	return region->type != REGION_MW2 ||
	       (region->qpn == qp->ibv.qp_num &&
		atomic_load_explicit(&sv_area_own()->by_peers->invalidated[r->key >> 16],
				     memory_order_relaxed) != r->key);
}

/*
 * Checks the access rights of the QP, then of the memory, as rdma_check and atomic_check do for
 * initiators that access the memory themselves. The initiator reports the fault, so that it has
 * its answer before this QP fails.
 */
static enum ibv_wc_status request_check(struct sv_qp *qp, const struct request *r, uint64_t *va)
{
	bool atomic = r->kind == BOUNCE_CMP_SWP || r->kind == BOUNCE_FETCH_ADD;
	unsigned need = atomic			 ? IBV_ACCESS_REMOTE_ATOMIC
			: r->kind == BOUNCE_READ ? IBV_ACCESS_REMOTE_READ
						 : IBV_ACCESS_REMOTE_WRITE;

	if (!(atomic_load_explicit(&qp->by_owner->access, memory_order_relaxed) & need) ||
	    (atomic && r->addr % 8) ||
	    (r->kind != BOUNCE_WRITE &&
	     !atomic_load_explicit(&qp->by_owner->max_dest_rd, memory_order_relaxed)))
		return IBV_WC_REM_INV_REQ_ERR;
	if (!own_allows(qp, r, need, va) || (atomic && (*va % 8 || r->length != 8)))
		return IBV_WC_REM_ACCESS_ERR;
	return IBV_WC_SUCCESS;
}

static enum ibv_wc_status serve_memory_locked(struct sv_qp *qp, const struct request *r,
					      uint8_t *data, uint64_t *old)
{
	struct iovec at = { .iov_len = r->length };
	enum ibv_wc_status status;
	uint64_t va = 0;

	status = request_check(qp, r, &va);
	if (status != IBV_WC_SUCCESS)
		return status;
	at.iov_base = (void *)(uintptr_t)va;
	if (r->kind == BOUNCE_WRITE || r->kind == BOUNCE_READ) {
		if (!(r->kind == BOUNCE_WRITE ? sv_serve_write_locked(qp, r->key, &at, data)
					      : sv_serve_copy_locked(qp, r->key, &at, data, false)))
			return IBV_WC_GENERAL_ERR;
		return IBV_WC_SUCCESS;
	}
	if (!sv_memory_is_there(&at, 1, true))
		return IBV_WC_GENERAL_ERR;
	*old = sv_atomic_local(va, r->kind == BOUNCE_FETCH_ADD, r->args);
	return IBV_WC_SUCCESS;
}

static enum ibv_wc_status serve_receive_locked(struct sv_qp *qp, const struct request *r,
					       uint8_t *data)
{
	struct sv_wq *wq = qp->srq ? &qp->srq->wq : &qp->rq;
	struct iovec ranges[SV_MAX_SGE * 2];
	uint32_t keys[SV_MAX_SGE * 2];
	bool sound;
	int count;

	lock_acquire(&wq->lock);
	sound = r->key <= wq->mask;
	count = sound ? sv_region_ranges(wq->regions, &wq->sge[(uint64_t)r->key * wq->max_sge],
					 wq->max_sge, wq->pd, r->addr, r->length, ranges, keys)
		      : 0;
	lock_release(&wq->lock);
	if (!sound)
		return IBV_WC_GENERAL_ERR;
	if (count < 0)
		return IBV_WC_REM_OP_ERR;
	for (int i = 0; i < count; i++) {
		if (!sv_serve_copy_locked(qp, keys[i], &ranges[i], data, true))
			return IBV_WC_GENERAL_ERR;
		data += ranges[i].iov_len;
	}
	return IBV_WC_SUCCESS;
}

static enum ibv_wc_status serve_request(struct sv_qp *qp, const struct request *r, uint8_t *data,
					uint64_t *old)
{
	enum ibv_wc_status status = IBV_WC_REM_INV_REQ_ERR;

	pthread_rwlock_rdlock(&sv_area_own()->serve_lock);
	if (r->length <= BOUNCE_BYTES && r->kind == BOUNCE_RECV)
		status = serve_receive_locked(qp, r, data);
	else if (r->length <= BOUNCE_BYTES && r->kind >= BOUNCE_WRITE &&
		 r->kind <= BOUNCE_FETCH_ADD)
		status = serve_memory_locked(qp, r, data, old);
	pthread_rwlock_unlock(&sv_area_own()->serve_lock);
	return status;
}

static bool serve_one_locked(struct sv_qp *qp)
{
	struct sv_serve *serve = &qp->serve;
	uint32_t number = serve->number + 1, part = number % BOUNCE_PARTS;
	struct bounce_ask *ask = &serve->memory->ask[part];
	struct bounce_answer *answer = &serve->memory->answer[part];
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
	/* release: data and status before the number; pairs with bounce_reap */
	atomic_store_explicit(&answer->number, number, memory_order_release);
	serve->number = number;
	serve->answered = true;
	fence_light(qp->expedited); /* pairs with sv_area_barrier in sv_remote_rq_ask */
	sv_qp_wake_initiator(qp);
	return true;
}

/* ---- polls and the engine ---- */

static void serve_open_locked(struct sv_qp *qp)
{
	uint64_t offset;

	if (qp->serve.memory || !atomic_load_explicit(&qp->by_owner->epoch, memory_order_relaxed))
		return;
	qp->serve.memory = sv_heap_alloc(HEAP_BY_PEERS, sizeof(*qp->serve.memory), &offset);
	if (!qp->serve.memory) {
		log_at(LOG_ERROR, "softverbs: qp 0x%x: no shared memory is left for copies",
		       qp->ibv.qp_num);
		sv_async_post_qp(&qp->ibv, IBV_EVENT_QP_FATAL);
		sv_qp_fail(qp);
		return;
	}
	memset(qp->serve.memory, 0, offsetof(struct bounce_by_peers, data));
	qp->serve.number = 0;
	atomic_fetch_add_explicit(&qp->recv_cq->served, 1, memory_order_relaxed);
	/* release: the cleared memory before its offset; pairs with bounce_memory */
	atomic_store_explicit(&qp->by_owner->bounce, offset, memory_order_release);
	fence_light(qp->expedited); /* pairs with sv_area_barrier in sv_remote_rq_ask */
	sv_qp_wake_initiator(qp);
}

bool sv_serve_some(struct sv_qp *qp)
{
	bool moved;

	if (pthread_mutex_trylock(&qp->serve.lock))
		return false;
	moved = qp->serve.memory && serve_one_locked(qp);
	pthread_mutex_unlock(&qp->serve.lock);
	return moved;
}

void sv_serve_begin(uint32_t index)
{
	struct area *area = sv_area_own();
	struct sv_qp *qp = sv_qp_pin(index);

	if (!qp)
		return;
	pthread_mutex_lock(&qp->serve.lock);
	serve_open_locked(qp);
	sv_serve_learn_locked(qp);
	if (qp->serve.memory)
		atomic_store_explicit(&qp->serve.memory->awake, 1, memory_order_relaxed);
	qp->serve.answered = false;
	pthread_mutex_unlock(&qp->serve.lock);
	area->serving.qp[area->serving.count++] = qp;
}

/*
 * Ends a turn. An initiator that got an answer soon sends another request: its QP gets another
 * turn, and the engine stays awake for it until a turn passes without a request.
 */
static void serve_end(struct sv_qp *qp)
{
	bool more;

	pthread_mutex_lock(&qp->serve.lock);
	more = qp->serve.answered;
	if (qp->serve.memory && !more) {
		atomic_store_explicit(&qp->serve.memory->awake, 0, memory_order_relaxed);
		/* The initiator publishes a request, then loads `awake`; see bounce_wake. */
		fence_full();
		more = serve_one_locked(qp);
	}
	pthread_mutex_unlock(&qp->serve.lock);
	if (more && sv_attention_set(sv_area_own()->by_peers->attention.bounce, qp->index))
		sv_peer_ring(sv_peer_self());
	sv_qp_unpin(qp);
}

/* Answers one request of each QP. If a poll holds the lock, the poll answers. */
static bool serve_round(const struct area *area)
{
	bool moved = false;

	for (uint32_t i = 0; i < area->serving.count; i++)
		moved |= sv_serve_some(area->serving.qp[i]);
	return moved;
}

void sv_serve_turn(void)
{
	struct area *area = sv_area_own();
	uint64_t end = area->serving.count ? clock_now() + TURN : 0;
	uint32_t idle = 0;

	while (area->serving.count && clock_now() < end) {
		idle = serve_round(area) ? 0 : idle + 1;
		if (idle < IDLE_POLLS)
			cpu_relax();
		else
			sched_yield();
	}
	while (area->serving.count)
		serve_end(area->serving.qp[--area->serving.count]);
}

void sv_serve_close(struct sv_qp *qp)
{
	struct sv_serve *serve = &qp->serve;

	pthread_mutex_lock(&serve->lock);
	atomic_store_explicit(&qp->by_owner->bounce, 0, memory_order_relaxed);
	if (serve->memory) {
		atomic_fetch_sub_explicit(&qp->recv_cq->served, 1, memory_order_relaxed);
		if (!qp->lost)
			sv_heap_free(HEAP_BY_PEERS, serve->memory, sizeof(*serve->memory));
	}
	serve->memory = NULL;
	sv_serve_forget_locked(qp);
	pthread_mutex_unlock(&serve->lock);
}
