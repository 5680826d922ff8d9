/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* What the data path and the device tell an endpoint, brought to the event thread. */
#include <stddef.h>
#include "dapl/udapl/ep.h"

/*
 * A failed DTO breaks what is connected or about to be; in DISCONNECT_PENDING the ending is
 * already decided.
 */
static bool breaks_locked(const struct dapl_ep *ep)
{
	switch ((int)atomic_load_explicit(&ep->state, memory_order_relaxed)) {
	case DAT_EP_STATE_ACTIVE_CONNECTION_PENDING:
	case DAT_EP_STATE_PASSIVE_CONNECTION_PENDING:
	case DAT_EP_STATE_COMPLETION_PENDING:
	case DAT_EP_STATE_CONNECTED: return true;
	default: return false;
	}
}

static void report_call(struct ib_timer *timer)
{
	struct dapl_ep *ep =
		(struct dapl_ep *)((char *)timer - offsetof(struct dapl_ep, report_timer));
	struct dapl_ia *ia = ep->obj.ia;
	struct ib_conn *conn = NULL;
	unsigned reports;

	pthread_mutex_lock(&ep->lock);
	/*
	 * clears the one bit that may come again; acquire: what was done before it was set is
	 * seen
	 */
	reports = atomic_fetch_and_explicit(&ep->reports, ~EP_REPORT_ROOM, memory_order_acquire);
	if (reports & (EP_REPORT_DTO_FAILED | EP_REPORT_QP_FAILED) && breaks_locked(ep)) {
		if (ep->conn)
			/* it is out of reach, most likely */
			ib_conn_disconnect(ep->conn, false);
		conn = ep_end_locked(ep, DAT_CONNECTION_EVENT_BROKEN, NULL, 0);
	}
	if (reports & EP_REPORT_ROOM && !ep->busy && ep->pending_terminal)
		ep_post_terminal_locked(ep);
	pthread_mutex_unlock(&ep->lock);
	ib_conn_destroy(conn);
	ep_notice_run(ia);
}

void ep_report(struct dapl_ep *ep, unsigned what)
{
	/* release: pairs with the acquire of whoever acts on it */
	unsigned before = atomic_fetch_or_explicit(&ep->reports, what, memory_order_acq_rel);

	if (!(before & (what | EP_REPORT_CLOSED)))
		ib_timer_arm(ep->obj.ia->device, &ep->report_timer, 0, report_call);
}

void ep_dto_failed(struct dapl_ep *ep)
{
	ep_report(ep, EP_REPORT_DTO_FAILED);
}

void ep_qp_failed(struct dapl_ep *ep)
{
	ep_report(ep, EP_REPORT_QP_FAILED);
}

void ep_last_wqe(struct dapl_ep *ep)
{
	ep_report(ep, EP_REPORT_LAST_WQE);
}

/*
 * Reporters hold the lock of the EVD of the completion, so once each was taken here nobody is
 * between seeing the gate open and arming the timer. The device's reports have ended with its QP.
 */
void ep_silence(struct dapl_ep *ep)
{
	struct ib_device *device = ep->obj.ia->device;
	struct dapl_evd *evds[] = { ep->recv_evd, ep->request_evd, ep->connect_evd };
	size_t i;

	atomic_fetch_or(&ep->reports, EP_REPORT_CLOSED);
	for (i = 0; i < sizeof(evds) / sizeof(evds[0]); i++) {
		if (evds[i]) {
			lock_acquire(&evds[i]->lock);
			lock_release(&evds[i]->lock);
		}
	}
	ib_timer_cancel(device, &ep->report_timer);
	ib_timer_cancel(device, &ep->timer);
}
