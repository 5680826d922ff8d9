/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Asynchronous errors: what each report of the device does to its object, and the IA's task. */
#include <stddef.h>
#include "dapl/udapl/ep/ep.h"
#include "util/log.h"

void ia_task_run(struct task *task, unsigned mask)
{
	(void)mask; /* one kind of work */
	ep_notices_post((struct dapl_ia *)((char *)task - offsetof(struct dapl_ia, task)));
}

/* Completions of a CQ that overflowed are lost, so its endpoints are broken. */
static void cq_failed(struct dapl_evd *evd)
{
	struct dapl_ia *ia = evd->obj.ia;
	struct obj *obj;

	evd_broken(evd);
	pthread_mutex_lock(&ia->lock);
	TAILQ_FOREACH(obj, &ia->objects[OBJ_EP], link) {
		struct dapl_ep *ep = (struct dapl_ep *)obj;

		if (ep->recv_evd == evd || ep->request_evd == evd)
			ep_qp_failed(ep);
	}
	pthread_mutex_unlock(&ia->lock);
}

void async_upcall(struct ib_device *device, enum ib_async_kind kind, void *owner)
{
	struct dapl_srq *srq = owner;

	if (owner && (kind == IB_ASYNC_CQ_ERROR || kind == IB_ASYNC_QP_ERROR)) {
		struct dapl_ia *ia = ((struct obj *)owner)->ia;

		ia_count(ia, DCNT_IA_ASYNC_ERROR);
		ia_count(ia, kind == IB_ASYNC_CQ_ERROR ? DCNT_IA_ASYNC_CQ_ERROR
						       : DCNT_IA_ASYNC_QP_ERROR);
	}
	switch (kind) {
	case IB_ASYNC_CQ_ERROR:
		if (owner) /* NULL for ia_no_cq, the CQ that no thread polls */
			cq_failed(owner);
		break;
	case IB_ASYNC_QP_ERROR: ep_device_error(owner); break;
	case IB_ASYNC_QP_LAST_WQE: ep_last_wqe(owner); break;
	case IB_ASYNC_SRQ_ERROR:
		srq_failed(srq);
		async_post_srq(&srq->obj, DAT_SRQ_TRANSFER_TO_ERROR);
		break;
	case IB_ASYNC_SRQ_LIMIT: srq_limit_reached(srq); break;
	case IB_ASYNC_DEVICE_FATAL:
		async_post_device(device, DAT_ASYNC_ERROR_IA_CATASTROPHIC,
				  DAT_IA_CATASTROPHIC_ERROR);
		break;
	case IB_ASYNC_PORT_ERROR:
		async_post_device(device, DAT_ASYNC_ERROR_PROVIDER_INTERNAL_ERROR,
				  DAT_IA_OTHER_ERROR);
		break;
	}
}
