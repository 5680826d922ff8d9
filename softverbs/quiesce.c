/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Waiting until nobody uses what was just withdrawn: one look at the window of each initiator. */
#include <sched.h>
#include <time.h>
#include "softverbs/qp.h"
#include "softverbs/quiesce.h"
#include "util/clock.h"
#include "util/log.h"

static bool initiator_is_dead(uint32_t index)
{
	struct sv_qp *qp = qp_pin(index);
	struct sv_peer *peer = qp ? atomic_load_explicit(&qp->peer, memory_order_acquire) : NULL;
	/* without a QP, whoever was inside came from an earlier one and has long been waited for */
	bool dead = !qp || (peer && atomic_load_explicit(&peer->dead, memory_order_relaxed));

	if (qp)
		qp_unpin(qp);
	return dead;
}

bool quiesce_is_quiet(uint32_t index)
{
	/* acquire: what was done in the window is done; pairs with window_leave */
	return !(atomic_load_explicit(&area_own()->rw->qp[index].busy, memory_order_acquire) & 1) ||
	       initiator_is_dead(index);
}

bool quiesce_one(uint32_t index)
{
	static const struct timespec nap = { .tv_nsec = 50000 };
	const _Atomic(uint32_t) *busy = &area_own()->rw->qp[index].busy;
	uint32_t first = atomic_load_explicit(busy, memory_order_acquire), looks = 0;
	uint64_t deadline = 0;

	while (!quiesce_is_quiet(index) &&
	       atomic_load_explicit(busy, memory_order_acquire) == first) {
		if (++looks < 100) {
			sched_yield();
			continue;
		}
		if (!deadline)
			deadline = clock_now() + QUIESCE_LIMIT;
		if (clock_now() > deadline)
			return false;
		nanosleep(&nap, NULL);
	}
	return true;
}

void quiesce_all(void)
{
	struct area *area = area_own();
	uint32_t last;

	area_barrier();
	pthread_mutex_lock(&area->qps.lock);
	last = area->qps.fresh - 1; /* of identifiers, which begin with 1 */
	pthread_mutex_unlock(&area->qps.lock);
	for (uint32_t index = 0; index < last; index++) {
		struct sv_qp *qp;

		if (quiesce_one(index))
			continue;
		log_at(LOG_ERROR,
		       "softverbs: qp 0x%x: its peer stopped in the middle of a copy, the "
		       "connection fails",
		       (unsigned)runtime_slot() << 12 | index);
		qp = qp_pin(index);
		if (qp) {
			qp_fail(qp);
			qp_unpin(qp);
		}
	}
}
