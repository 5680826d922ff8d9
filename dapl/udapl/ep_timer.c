/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* What an endpoint does when a time is over: each state has at most one thing to wait for. */
#include <stddef.h>
#include "dapl/udapl/ep.h"
#include "util/clock.h"

/* Returns the connection to destroy, or NULL. */
static struct ib_conn *step_locked(struct dapl_ep *ep)
{
	switch ((int)atomic_load_explicit(&ep->state, memory_order_relaxed)) {
	case DAT_EP_STATE_ACTIVE_CONNECTION_PENDING:
		ia_count(ep->obj.ia, DCNT_IA_CM_ERR_TIMEOUT);
		return ep_end_locked(ep, DAT_CONNECTION_EVENT_TIMED_OUT, NULL, 0);
	case DAT_EP_STATE_CONNECTED: ep_watch_step_locked(ep); return NULL;
	case DAT_EP_STATE_DISCONNECT_PENDING: return ep_disconnect_step_locked(ep);
	default: return NULL;
	}
}

static void timer_call(struct ib_timer *timer)
{
	struct dapl_ep *ep = (struct dapl_ep *)((char *)timer - offsetof(struct dapl_ep, timer));
	struct dapl_ia *ia = ep->obj.ia;
	struct ib_conn *conn = NULL;

	pthread_mutex_lock(&ep->lock);
	if (!ep->busy && clock_now() >= ep->deadline)
		conn = step_locked(ep);
	pthread_mutex_unlock(&ep->lock);
	ib_conn_destroy(conn);
	ep_notice_run(ia);
}

void ep_timer_disarm_locked(struct dapl_ep *ep)
{
	ep->deadline = CLOCK_NEVER;
	ib_timer_disarm(ep->obj.ia->device, &ep->timer);
}

void ep_timer_arm_locked(struct dapl_ep *ep, uint64_t deadline)
{
	ep->deadline = deadline;
	if (!ep->busy && deadline != CLOCK_NEVER)
		ib_timer_arm(ep->obj.ia->device, &ep->timer, deadline, timer_call);
}
