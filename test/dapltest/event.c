/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Waits for events until a deadline, and checks their contents. */

#include <sched.h>

#include "tool.h"

static bool await_asleep(DAT_EVD_HANDLE evd, DAT_EVENT *event, bool *found)
{
	watchdog_feed();
	return event_await_until(evd, clock_after(wait_limit()), event, found);
}

/*
 * The first polls read no clock, so that a measured wait does not include the cost of its deadline.
 */
static bool await_polling(DAT_EVD_HANDLE evd, DAT_EVENT *event, bool *found)
{
	uint64_t deadline = 0;

	for (unsigned int looks = 1;; looks++) {
		if (!event_look(evd, event, found))
			return false;
		if (*found)
			return true;
		if (looks % 1024)
			continue;
		if (!deadline) {
			deadline = clock_after(wait_limit());
			watchdog_feed();
		} else if (clock_ns() >= deadline) {
			return true;
		}
		sched_yield(); /* the peer may need this processor */
	}
}

bool event_await(DAT_EVD_HANDLE evd, bool poll, const char *what, DAT_EVENT *event)
{
	bool found = false, looked;

	looked = poll ? await_polling(evd, event, &found) : await_asleep(evd, event, &found);
	if (looked && !found)
		complain("Error: no %s within %g seconds", what, wait_limit());
	return looked && found;
}

/* Only for a server that has nothing else to do. */
bool event_await_for_ever(DAT_EVD_HANDLE evd, DAT_EVENT *event)
{
	DAT_COUNT more;
	DAT_RETURN ret;

	do {
		ret = dat_evd_wait(evd, DAT_TIMEOUT_INFINITE, 1, event, &more);
	} while (dat_is(ret, DAT_INTERRUPTED_CALL));
	return dat_ok(ret, "dat_evd_wait");
}

static bool dto_check(const DAT_EVENT *event, const struct dto *want)
{
	const DAT_DTO_COMPLETION_EVENT_DATA *got = &event->event_data.dto_completion_event_data;

	if (event->event_number != DAT_DTO_COMPLETION_EVENT) {
		complain("Error: %s: unexpected %s", want->what, event_name(event->event_number));
		return false;
	}
	if (got->status != DAT_DTO_SUCCESS) {
		complain("Error: %s failed with status %s", want->what,
			 dto_status_name(got->status));
		return false;
	}
	if (got->ep_handle != want->ep) {
		complain("Error: %s: completion names another EP", want->what);
		return false;
	}
	if (got->user_cookie.as_64 != want->cookie) {
		complain("Error: %s: cookie is 0x%llx, not 0x%llx", want->what,
			 (unsigned long long)got->user_cookie.as_64,
			 (unsigned long long)want->cookie);
		return false;
	}
	if (got->transfered_length != want->length) {
		complain("Error: %s: length is %u, not %u", want->what,
			 (unsigned int)got->transfered_length, want->length);
		return false;
	}
	return true;
}

bool dto_await(DAT_EVD_HANDLE evd, bool poll, const struct dto *want)
{
	DAT_EVENT event;

	return event_await(evd, poll, want->what, &event) && dto_check(&event, want);
}

/*
 * Waits for a message that the peer sends at the end of a test, however long that takes: the end of
 * the connection is the deadline.
 */
bool dto_await_patiently(DAT_EVD_HANDLE evd, const struct dto *want)
{
	DAT_EP_STATE state = DAT_EP_STATE_CONNECTED;
	DAT_EVENT event;
	bool found;

	for (;;) {
		if (!await_asleep(evd, &event, &found))
			return false;
		if (found)
			return dto_check(&event, want);
		if (state != DAT_EP_STATE_CONNECTED)
			break;
		if (!dat_ok(dat_ep_get_status(want->ep, &state, NULL, NULL), "dat_ep_get_status"))
			return false;
	}
	complain("Error: the connection ended without %s", want->what);
	return false;
}

bool evd_drain(DAT_EVD_HANDLE evd, int *taken)
{
	DAT_EVENT event;
	bool found;

	for (*taken = 0;; ++*taken) {
		if (!event_look(evd, &event, &found))
			return false;
		if (!found)
			return true;
	}
}
