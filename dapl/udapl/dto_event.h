/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* The events that completions become. */
#ifndef DAPL_DTO_EVENT_H
#define DAPL_DTO_EVENT_H

#include <string.h>
#include "dapl/udapl/ep.h"

/* Each member once, the unused bytes as zeros. */
static inline void dto_fill(struct dapl_evd *evd, struct dapl_ep *ep, DAT_DTO_COOKIE cookie,
			    uint32_t status, uint32_t length, uint32_t operation,
			    uint32_t rmr_context, DAT_EVENT *event)
{
	DAT_DTO_COMPLETION_EVENT_DATA *data = &event->event_data.dto_completion_event_data;

	event->event_number = DAT_DTO_COMPLETION_EVENT;
	event->evd_handle = evd;
	data->ep_handle = ep;
	data->user_cookie = cookie;
	data->status = status;
	data->transfered_length = length;
	data->operation = operation;
	if (__builtin_constant_p(rmr_context) && !rmr_context) {
		memset(&data->rmr_context, 0,
		       sizeof(*event) - offsetof(DAT_EVENT, event_data) -
			       offsetof(DAT_DTO_COMPLETION_EVENT_DATA, rmr_context));
		return;
	}
	data->rmr_context = rmr_context;
	memset(data + 1, 0, sizeof(*event) - offsetof(DAT_EVENT, event_data) - sizeof(*data));
}

/* Messages, and behind them in the counters their bytes. */
static inline void dto_count_received(struct dapl_ep *ep, DAT_EP_COUNTERS which, uint64_t messages,
				      uint64_t bytes)
{
	ep_count_locked(ep, which, messages);
	ep_count_locked(ep, which + 1, bytes);
}

/* Of the InfiniBand extensions: a request of theirs, or a receive that came with immediate data. */
void dto_fill_extended(struct dapl_evd *evd, struct dapl_ep *ep, const struct dto_slot *slot,
		       const struct ib_completion *completion, DAT_EVENT *event);
/* Of a bind, whose RMR learns that it failed. */
void dto_fill_bind(struct dapl_evd *evd, const struct dto_slot *slot,
		   const struct ib_completion *completion, DAT_EVENT *event);

#endif
