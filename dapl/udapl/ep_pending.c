/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Terminal events that found their connect EVD full: never lost, delivered when it has room. */
#include "dapl/udapl/ep.h"

/* Order: after EP locks; none of ours is taken inside it. */
static pthread_mutex_t waiting_lock = PTHREAD_MUTEX_INITIALIZER;
static TAILQ_HEAD(, dapl_ep) waiting = TAILQ_HEAD_INITIALIZER(waiting);

void ep_pending_add_locked(struct dapl_ep *ep)
{
	pthread_mutex_lock(&waiting_lock);
	if (!ep->pending_listed)
		TAILQ_INSERT_TAIL(&waiting, ep, pending);
	ep->pending_listed = true;
	pthread_mutex_unlock(&waiting_lock);
}

void ep_pending_remove(struct dapl_ep *ep)
{
	pthread_mutex_lock(&waiting_lock);
	if (ep->pending_listed)
		TAILQ_REMOVE(&waiting, ep, pending);
	ep->pending_listed = false;
	pthread_mutex_unlock(&waiting_lock);
}

void ep_room(struct dapl_evd *evd)
{
	struct dapl_ep *ep;

	pthread_mutex_lock(&waiting_lock);
	TAILQ_FOREACH(ep, &waiting, pending)
		if (ep->connect_evd == evd)
			ep_report(ep, EP_REPORT_ROOM);
	pthread_mutex_unlock(&waiting_lock);
}
