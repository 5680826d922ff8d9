/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* The part of a QP that only UD has: creates and frees it, begins and ends delivery. */
#include <errno.h>
#include <stdlib.h>
#include "softverbs/base/settings.h"
#include "softverbs/link/transport.h"
#include "softverbs/rc/remote_rq.h"
#include "softverbs/ud/ud.h"

int sv_ud_open(struct sv_qp *qp)
{
	qp->ud = calloc(1, sizeof(*qp->ud));
	if (!qp->ud)
		return ENOMEM;
	qp->ud->mask = qp->srq ? SV_MAX_WR - 1 : qp->rx.mask;
	qp->ud->done =
		sv_heap_alloc(HEAP_OWN, (uint64_t)(qp->ud->mask + 1) * sizeof(*qp->ud->done), NULL);
	qp->rx.datagrams = true;
	qp->ud->lid = sv_lid();
	return qp->ud->done ? 0 : ENOMEM;
}

void sv_ud_close(struct sv_qp *qp)
{
	if (!qp->ud)
		return;
	sv_heap_free(HEAP_OWN, qp->ud->done, (uint64_t)(qp->ud->mask + 1) * sizeof(*qp->ud->done));
	free(qp->ud);
}

void sv_ud_receive(struct sv_qp *qp)
{
	struct ud_ring *ud_ring = &sv_area_own()->ud_ring;

	lock_acquire(&ud_ring->lock);
	ud_ring->qp[qp->index] = qp;
	lock_release(&ud_ring->lock);
}

void sv_ud_clear(struct sv_qp *qp)
{
	struct ud_ring *ud_ring = &sv_area_own()->ud_ring;
	struct sv_peer *peer;

	lock_acquire(&ud_ring->lock);
	ud_ring->qp[qp->index] = NULL;
	lock_release(&ud_ring->lock);
	lock_acquire(&qp->recv_cq->lock);
	atomic_store_explicit(&qp->ud->taken, 0, memory_order_relaxed);
	/* under the same lock, so that no poll sees only one of the two change */
	atomic_store_explicit(&qp->rx.head, 0, memory_order_relaxed);
	lock_release(&qp->recv_cq->lock);
	lock_acquire(&qp->sq.lock);
	peer = qp->ud->peer;
	qp->ud->peer = NULL;
	atomic_store_explicit(&qp->ud->wants, 0, memory_order_relaxed);
	lock_release(&qp->sq.lock);
	sv_peer_by_id_put(peer);
	sv_transport()->datagrams_end(qp);
}
