/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Completions of binds. */
#include "dapl/udapl/evd/dto_event.h"

/* The RMR may be freed; this is its former handle. */
void dto_fill_bind(struct dapl_evd *evd, const struct dto_slot *slot,
		   const struct ib_completion *completion, DAT_EVENT *event)
{
	DAT_RMR_BIND_COMPLETION_EVENT_DATA *data = &event->event_data.rmr_completion_event_data;
	DAT_DTO_COMPLETION_STATUS status = completion->status;

	if (status != DAT_DTO_SUCCESS)
		rmr_bind_failed(slot->length, completion->wr_id);
	if (status != DAT_DTO_SUCCESS && status != DAT_DTO_ERR_FLUSHED)
		status = DAT_RMR_OPERATION_FAILED;
	memset(event, 0, sizeof(*event));
	event->event_number = DAT_RMR_BIND_COMPLETION_EVENT;
	event->evd_handle = evd;
	data->rmr_handle = obj_at(OBJ_RMR, slot->length);
	data->user_cookie = slot->cookie;
	data->status = status;
}
