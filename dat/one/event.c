/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* dat_evd_*: truncates events to the size of DAT 1.2, and repacks the data of DTO events. */
#include "dat/one/one.h"

/*
 * Truncates the event of an extension, which no call of DAT 1.2 can cause. Reads only what DAT 1.2 has, since the rest
 * of the event may be undefined.
 */
static inline void event_to_one(DAT_EVENT *event, const struct two_event *two_event)
{
	const struct two_dto_data *from = &two_event->event_data.dto;
	DAT_DTO_COMPLETION_EVENT_DATA *to = &event->event_data.dto_completion_event_data;

	event->event_number = two_event->event_number;
	event->evd_handle = two_event->evd_handle;
	if (__builtin_expect(two_event->event_number != DAT_DTO_COMPLETION_EVENT, 0)) {
		memcpy(&event->event_data, &two_event->event_data, sizeof(event->event_data));
		return;
	}
	to->ep_handle = from->ep_handle;
	to->user_cookie = from->user_cookie;
	to->status = from->status == TWO_DTO_ERR_LOCAL_MM_ERROR
			     ? DAT_DTO_ERR_LOCAL_PROTECTION
			     : (DAT_DTO_COMPLETION_STATUS)from->status;
	to->transfered_length = from->transfered_length;
}

DAT_RETURN dat_evd_dequeue(DAT_EVD_HANDLE evd, DAT_EVENT *event)
{
	struct two_event two_event;
	DAT_RETURN ret = two.evd_dequeue(evd, event ? &two_event : NULL);

	if (ret != DAT_SUCCESS)
		return one_failure(ret);
	event_to_one(event, &two_event);
	return DAT_SUCCESS;
}

DAT_RETURN dat_evd_wait(DAT_EVD_HANDLE evd, DAT_TIMEOUT timeout, DAT_COUNT threshold,
			DAT_EVENT *event, DAT_COUNT *more)
{
	struct two_event two_event;
	DAT_RETURN ret = two.evd_wait(evd, timeout, threshold, event ? &two_event : NULL, more);

	if (ret != DAT_SUCCESS)
		return one_failure(ret);
	event_to_one(event, &two_event);
	return DAT_SUCCESS;
}

DAT_RETURN dat_evd_post_se(DAT_EVD_HANDLE evd, const DAT_EVENT *event)
{
	struct two_event two_event = { .event_number = DAT_SOFTWARE_EVENT };

	if (event) {
		two_event.event_number = event->event_number;
		two_event.evd_handle = event->evd_handle;
		memcpy(&two_event.event_data, &event->event_data, sizeof(event->event_data));
	}
	return one_status(two.evd_post_se(evd, event ? &two_event : NULL));
}

DAT_RETURN dat_evd_create(DAT_IA_HANDLE ia, DAT_COUNT qlen, DAT_CNO_HANDLE cno, DAT_EVD_FLAGS flags,
			  DAT_EVD_HANDLE *evd)
{
	return one_status(two.evd_create(ia, qlen, cno, flags, evd));
}

DAT_RETURN dat_evd_query(DAT_EVD_HANDLE evd, DAT_EVD_PARAM_MASK mask, DAT_EVD_PARAM *param)
{
	return one_status(two.evd_query(evd, mask, param));
}

DAT_RETURN dat_evd_modify_cno(DAT_EVD_HANDLE evd, DAT_CNO_HANDLE cno)
{
	return one_status(two.evd_modify_cno(evd, cno));
}

DAT_RETURN dat_evd_enable(DAT_EVD_HANDLE evd)
{
	return one_status(two.evd_enable(evd));
}

DAT_RETURN dat_evd_disable(DAT_EVD_HANDLE evd)
{
	return one_status(two.evd_disable(evd));
}

DAT_RETURN dat_evd_set_unwaitable(DAT_EVD_HANDLE evd)
{
	return one_status(two.evd_set_unwaitable(evd));
}

DAT_RETURN dat_evd_clear_unwaitable(DAT_EVD_HANDLE evd)
{
	return one_status(two.evd_clear_unwaitable(evd));
}

DAT_RETURN dat_evd_resize(DAT_EVD_HANDLE evd, DAT_COUNT qlen)
{
	return one_status(two.evd_resize(evd, qlen));
}

DAT_RETURN dat_evd_free(DAT_EVD_HANDLE evd)
{
	return one_status(two.evd_free(evd));
}
