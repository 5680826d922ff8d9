/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Async events of the device, reported to the owner of the object that they name. */
#include <errno.h>
#include "dapl/openib/openib.h"

static void *qp_owner(const struct ibv_async_event *event)
{
	return ((struct ib_qp *)event->element.qp->qp_context)->owner;
}

static void *srq_owner(const struct ibv_async_event *event)
{
	return ((struct ib_srq *)event->element.srq->srq_context)->owner;
}

void async_device_gone(struct ib_device *device)
{
	if (!device->gone)
		device->upcalls.async(device, IB_ASYNC_DEVICE_FATAL, NULL);
	device->gone = true;
}

static void hand_up(struct ib_device *device, const struct ibv_async_event *event)
{
	void (*up)(struct ib_device *, enum ib_async_kind, void *) = device->upcalls.async;

	switch (event->event_type) {
	case IBV_EVENT_CQ_ERR:
		up(device, IB_ASYNC_CQ_ERROR,
		   ((struct ib_cq *)event->element.cq->cq_context)->owner);
		break;
	case IBV_EVENT_QP_FATAL:
	case IBV_EVENT_QP_REQ_ERR:
	case IBV_EVENT_QP_ACCESS_ERR: up(device, IB_ASYNC_QP_ERROR, qp_owner(event)); break;
	case IBV_EVENT_QP_LAST_WQE_REACHED:
		up(device, IB_ASYNC_QP_LAST_WQE, qp_owner(event));
		break;
	case IBV_EVENT_SRQ_ERR: up(device, IB_ASYNC_SRQ_ERROR, srq_owner(event)); break;
	case IBV_EVENT_SRQ_LIMIT_REACHED: up(device, IB_ASYNC_SRQ_LIMIT, srq_owner(event)); break;
	case IBV_EVENT_DEVICE_FATAL: async_device_gone(device); break;
	case IBV_EVENT_PORT_ERR: up(device, IB_ASYNC_PORT_ERROR, NULL); break;
	default: /* routine on a live fabric */
		log_at(LOG_NOTE, "%s: %s", device->attr.device_name,
		       ibv_event_type_str(event->event_type));
	}
}

/* Acknowledges after the upcall, so that destroying the object waits for it (ibv_ack_async_event(3)). */
void async_read(struct ib_device *device)
{
	struct ibv_async_event event;

	while (!ibv_get_async_event(device->verbs, &event)) {
		hand_up(device, &event);
		ibv_ack_async_event(&event);
	}
	if (errno != EAGAIN && errno != EINTR)
		ib_error(errno, "ibv_get_async_event", device->attr.device_name);
}
