/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Stops peers, send queues, polls and copies for peers; and lets them go on. */
#include <sched.h>
#include "softverbs/object/area.h"
#include "softverbs/object/quiesce.h"
#include "softverbs/rc/rc.h"
#include "softverbs/verbs/qp.h"
#include "softverbs/verbs/still.h"
#include "util/clock.h"

#define LIMIT NSEC_PER_MSEC

static struct { /* engine only */
	struct still_qp {
		struct sv_qp *qp; /* pinned, with its `modify` held */
		bool published;
	} qp[SV_QPS];
	uint32_t qps;
	uint64_t deadline;
} still;

/* ---- queue pairs ---- */

/* Datagrams are copied by their receiver, in polls. */
static bool qp_stop(struct sv_qp *qp)
{
	if (qp->ud) {
		sv_qp_unpin(qp);
		return true;
	}
	if (pthread_mutex_trylock(&qp->modify)) {
		sv_qp_unpin(qp);
		return false;
	}
	while (!sv_sq_halt(qp)) {
		if (clock_now() < still.deadline) {
			sched_yield();
			continue;
		}
		pthread_mutex_unlock(&qp->modify);
		sv_qp_unpin(qp);
		return false;
	}
	/* release: a sender that sees no epoch sees `still`, too */
	still.qp[still.qps].published =
		atomic_exchange_explicit(&qp->by_owner->epoch, 0, memory_order_acq_rel);
	still.qp[still.qps++].qp = qp;
	return true;
}

static bool qps_stop(struct area *area)
{
	uint32_t last;

	pthread_mutex_lock(&area->qps.lock);
	last = area->qps.fresh - 1;
	pthread_mutex_unlock(&area->qps.lock);
	for (uint32_t index = 0; index < last; index++) {
		struct sv_qp *qp = sv_qp_pin(index);

		if (qp && !qp_stop(qp))
			return false;
	}
	return true;
}

static bool peers_leave(void)
{
	sv_area_barrier();
	for (uint32_t i = 0; i < still.qps; i++) {
		while (still.qp[i].published && !sv_quiesce_is_done(still.qp[i].qp->index)) {
			if (clock_now() > still.deadline)
				return false;
			sched_yield();
		}
	}
	return true;
}

static void qps_go(struct area *area)
{
	for (uint32_t i = 0; i < still.qps; i++)
		if (still.qp[i].published)
			sv_qp_publish_again_locked(still.qp[i].qp);
	/* release: the epochs are stored before */
	atomic_store_explicit(&area->by_owner->still, 0, memory_order_release);
	fence_full(); /* a waiter sets its flag, then checks again */
	while (still.qps) {
		struct sv_qp *qp = still.qp[--still.qps].qp;

		sv_qp_wake_initiator(qp);
		pthread_mutex_unlock(&qp->modify);
		sv_sq_run_claimed(qp);
		sv_qp_unpin(qp);
	}
}

/* ---- all ---- */

/*
 * Copies for peers, and the reading of datagrams, hold `serve_lock` for reading, inside the lock of a CQ, as does
 * sv_arrivals_land. So no CQ is locked while the lock is held for writing.
 */
bool sv_still_begin(void)
{
	struct area *area = sv_area_own();

	still.qps = 0; /* a child may have a copy of its parent's */
	still.deadline = clock_now() + LIMIT;
	sv_cqs_slow(CQ_STILL, true);
	if (pthread_rwlock_trywrlock(&area->serve_lock)) {
		sv_cqs_slow(CQ_STILL, false);
		return false;
	}
	atomic_store_explicit(&area->by_owner->still, 1, memory_order_relaxed);
	if (qps_stop(area) && peers_leave())
		return true;
	sv_still_end();
	return false;
}

void sv_still_end(void)
{
	pthread_rwlock_unlock(&sv_area_own()->serve_lock);
	qps_go(sv_area_own());
	sv_cqs_slow(CQ_STILL, false);
}
