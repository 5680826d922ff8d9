/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Puts a QP into the error state. That is visible at once; the engine flushes its queues later (rc/qp_settle.c). */
#include "softverbs/object/qp.h"
#include "util/log.h"

static bool state_enter_error(struct sv_qp *qp)
{
	int now = atomic_load_explicit(&qp->state, memory_order_relaxed);

	do {
		if (now == IBV_QPS_RESET || now == IBV_QPS_ERR)
			return false;
		/* full order: pairs with fence_light in recv_notify_waiters */
	} while (!atomic_compare_exchange_weak(&qp->state, &now, IBV_QPS_ERR));
	return true;
}

bool sv_qp_enter_error(struct sv_qp *qp)
{
	if (!state_enter_error(qp))
		return false;
	log_at(LOG_NOTE, "softverbs: qp 0x%x: error state", qp->ibv.qp_num);
	atomic_store_explicit(&qp->by_owner->epoch, 0, memory_order_relaxed);
	atomic_store_explicit(&qp->unsettled, true, memory_order_relaxed);
	return true;
}

bool sv_qp_fail(struct sv_qp *qp)
{
	if (!sv_qp_enter_error(qp))
		return false;
	sv_attention_set(sv_area_own()->by_peers->attention.qp, qp->index);
	sv_peer_ring(sv_peer_self());
	return true;
}
