/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * Work requests that the device does not return after the end of a connection. DAT flushes what is posted to an EP that is
 * DISCONNECTED. A QP of InfiniBand in error returns all that is posted to it; one of iWARP may refuse it at once (RDMA
 * Protocol Verbs, Error state), and siw returns nothing that is posted after the error, which comes before the CM's event.
 * The rings of the EP have all that is outstanding, so it is flushed from there. The task decides when (ep/task.c).
 */
#include "dapl/udapl/ep/ep.h"

bool ep_may_lose(struct dapl_ep *ep)
{
	return ep->obj.ia->attr->iwarp &&
	       atomic_load_explicit(&ep->state, memory_order_acquire) == DAT_EP_STATE_DISCONNECTED;
}

bool ep_takes_refused(struct dapl_ep *ep)
{
	return ep_may_lose(ep) || (ep->obj.ia->attr->iwarp && ib_qp_is_broken(ep->qp));
}

void ep_flush_due(struct dapl_ep *ep)
{
	if (ep_may_lose(ep))
		task_post(&ep->task, EP_DUE_FLUSH);
}

bool ep_flush(struct dapl_ep *ep, uint32_t qp_num)
{
	evd_flush(ep->request_evd, &ep->end.request, qp_num);
	evd_flush(ep->recv_evd, &ep->end.recv, qp_num);
	return !dto_ring_outstanding(&ep->end.request) && !dto_ring_outstanding(&ep->end.recv);
}
