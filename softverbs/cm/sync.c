/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Identifiers without a channel of the program: each call waits for its event and returns the outcome. */
#include <errno.h>
#include "softverbs/cm/cm.h"

int sv_cm_sync_finish(struct cm_id *id)
{
	struct rdma_cm_id *public = &id->id;

	if (!id->sync)
		return 0;
	if (public->event) {
		rdma_ack_cm_event(public->event);
		public->event = NULL;
	}
	if (rdma_get_cm_event(public->channel, &public->event))
		return -1;
	if (!public->event->status)
		return 0;
	if (public->event->event == RDMA_CM_EVENT_REJECTED)
		return sv_cm_fail(ECONNREFUSED);
	return sv_cm_fail(public->event->status < 0 ? -public->event->status
						    : public->event->status);
}
