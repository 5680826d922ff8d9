/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Fills in the events of completions. */
#ifndef DAPL_DTO_EVENT_H
#define DAPL_DTO_EVENT_H

#include <string.h>
#include "dapl/udapl/evd/evd.h"

/* Writes each byte of the event once; unused bytes are zeros. */
static inline void dto_fill(struct dapl_evd *evd, struct obj *ep, DAT_DTO_COOKIE cookie,
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

/* Counts `messages` in the counter `which`, and their `bytes` in the next one. */
static inline void dto_count_received(struct obj *ep, DAT_EP_COUNTERS which, uint64_t messages,
				      uint64_t bytes)
{
	struct dto_end *end = dto_end_of(ep);

	end->counters.value[ep_counter_at(which)] += messages;
	end->counters.value[ep_counter_at(which) + 1] += bytes;
}

/* For a request of the InfiniBand extensions, or a receive with immediate data. */
void dto_fill_extended(struct dapl_evd *evd, struct obj *ep, const struct dto_slot *slot,
		       const struct ib_completion *completion, DAT_EVENT *event);
/* For a bind. A failure is also reported to its RMR. */
void dto_fill_bind(struct dapl_evd *evd, const struct dto_slot *slot,
		   const struct ib_completion *completion, DAT_EVENT *event);

#endif
