/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * Waits until no thread and no peer uses an object that was just withdrawn: examines the busy
 * word of each initiator.
 */
#include <sched.h>
#include <time.h>
#include "softverbs/object/qp.h"
#include "softverbs/object/quiesce.h"
#include "util/clock.h"
#include "util/log.h"

static bool initiator_is_dead(uint32_t index)
{
	struct sv_qp *qp = sv_qp_pin(index);
	struct sv_peer *peer = qp ? atomic_load_explicit(&qp->peer, memory_order_acquire) : NULL;
	/*
	 * Without a QP, an initiator that is still inside belongs to an earlier QP, whose end has
	 * waited for it.
	 */
	bool dead = !qp || (peer && atomic_load_explicit(&peer->dead, memory_order_relaxed));

	if (qp)
		sv_qp_unpin(qp);
	return dead;
}

bool sv_quiesce_is_done(uint32_t index)
{
	/* acquire: the initiator's accesses have ended; pairs with epoch_leave */
	return !(atomic_load_explicit(&sv_area_own()->by_peers->qp[index].busy,
				      memory_order_acquire) &
		 1) ||
	       initiator_is_dead(index);
}

bool sv_quiesce_one(uint32_t index)
{
	static const struct timespec pause = { .tv_nsec = 50000 };
	const _Atomic(uint32_t) *busy = &sv_area_own()->by_peers->qp[index].busy;
	uint32_t first = atomic_load_explicit(busy, memory_order_acquire), polls = 0;
	uint64_t deadline = 0;

	while (!sv_quiesce_is_done(index) &&
	       atomic_load_explicit(busy, memory_order_acquire) == first) {
		if (++polls < 100) {
			sched_yield();
			continue;
		}
		if (!deadline)
			deadline = clock_now() + QUIESCE_LIMIT;
		if (clock_now() > deadline)
			return false;
		nanosleep(&pause, NULL);
	}
	return true;
}

void sv_quiesce_all(void)
{
	struct area *area = sv_area_own();
	uint32_t last;

	sv_area_barrier();
	pthread_mutex_lock(&area->qps.lock);
	last = area->qps.fresh - 1; /* identifiers begin with 1, indices with 0 */
	pthread_mutex_unlock(&area->qps.lock);
	for (uint32_t index = 0; index < last; index++) {
		struct sv_qp *qp;

		if (sv_quiesce_one(index))
			continue;
		log_at(LOG_ERROR,
		       "softverbs: qp 0x%x: its peer stopped in the middle of a copy, the "
		       "connection fails",
		       (unsigned)sv_runtime_peer_id() << 12 | index);
		qp = sv_qp_pin(index);
		if (qp) {
			sv_qp_fail(qp);
			sv_qp_unpin(qp);
		}
	}
}

void sv_quiesce_polls(void)
{
	struct area *area = sv_area_own();
	uint32_t last;

	pthread_mutex_lock(&area->cqs.lock);
	last = area->cqs.fresh - 1;
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
		lock_acquire(&cq->lock);
		lock_release(&cq->lock);
		sv_area_unpin(&cq->pins);
	}
}
