/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Takes one event, by a poll or by a wait until a deadline. */

#include "common.h"

bool event_look(DAT_EVD_HANDLE evd, DAT_EVENT *event, bool *found)
{
	DAT_RETURN ret = dat_evd_dequeue(evd, event);

	*found = ret == DAT_SUCCESS;
	return dat_is(ret, DAT_QUEUE_EMPTY) || dat_ok(ret, "dat_evd_dequeue");
}

bool event_await_until(DAT_EVD_HANDLE evd, uint64_t deadline, DAT_EVENT *event, bool *found)
{
	DAT_COUNT more;
	DAT_RETURN ret;

	do {
		ret = dat_evd_wait(evd, timeout_left(deadline), 1, event, &more);
	} while (dat_is(ret, DAT_INTERRUPTED_CALL) && !clock_passed(deadline));
	*found = ret == DAT_SUCCESS;
	return dat_is(ret, DAT_TIMEOUT_EXPIRED) || dat_is(ret, DAT_INTERRUPTED_CALL) ||
	       dat_ok(ret, "dat_evd_wait");
}
