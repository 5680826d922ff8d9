/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* What a datagram queue pair has beyond others: made, found by datagrams, emptied. */
#include <errno.h>
#include <stdlib.h>
#include "softverbs/tx.h"
#include "softverbs/ud.h"

int ud_open(struct sv_qp *qp)
{
	qp->ud = calloc(1, sizeof(*qp->ud));
	if (!qp->ud)
		return ENOMEM;
	qp->ud->mask = qp->srq ? SV_MAX_WR - 1 : qp->rx.mask;
	qp->ud->done =
		heap_take(HEAP_OWN, (uint64_t)(qp->ud->mask + 1) * sizeof(*qp->ud->done), NULL);
	qp->rx.datagrams = true;
	return qp->ud->done ? 0 : ENOMEM;
}

void ud_close(struct sv_qp *qp)
{
	if (!qp->ud)
		return;
	heap_give(HEAP_OWN, qp->ud->done, (uint64_t)(qp->ud->mask + 1) * sizeof(*qp->ud->done));
	free(qp->ud);
}

void ud_receive(struct sv_qp *qp)
{
	struct mail *mail = &area_own()->mail;

	lock_acquire(&mail->lock);
	mail->qp[qp->index] = qp;
	lock_release(&mail->lock);
}

void ud_clear(struct sv_qp *qp)
{
	struct mail *mail = &area_own()->mail;
	struct sv_peer *peer;

	lock_acquire(&mail->lock);
	mail->qp[qp->index] = NULL;
	lock_release(&mail->lock);
	lock_acquire(&qp->recv_cq->lock);
	atomic_store_explicit(&qp->ud->taken, 0, memory_order_relaxed);
	/* with it, so that no poll sees one without the other */
	atomic_store_explicit(&qp->rx.head, 0, memory_order_relaxed);
	lock_release(&qp->recv_cq->lock);
	lock_acquire(&qp->sq.lock);
	peer = qp->ud->peer;
	qp->ud->peer = NULL;
	atomic_store_explicit(&qp->ud->wants, 0, memory_order_relaxed);
	lock_release(&qp->sq.lock);
	slot_peer_put(peer);
}
