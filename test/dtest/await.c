/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Waits for one event in each of the ways that DAT has, always until a deadline. */

#include <sched.h>

#include "tool.h"

/* The first polls read no clock, so that a ping-pong does not include the cost of its deadline. */
static bool await_polling(struct waiter *w, DAT_EVD_HANDLE evd, double seconds, DAT_EVENT *event,
			  bool *found)
{
	uint64_t deadline = 0;

	for (unsigned int looks = 1;; looks++) {
		if (!event_look(evd, event, found))
			return false;
		if (*found)
			return true;
		w->polls++;
		if (looks % 1024)
			continue;
		if (!deadline) {
			deadline = clock_after(seconds);
			watchdog_set(seconds);
		} else if (clock_passed(deadline)) {
			return true;
		}
		sched_yield(); /* the peer may need this processor */
	}
}

/*
 * The EVDs are polled first, because one trigger may stand for events on several of them. The hint
 * may be missing or name another EVD of the CNO, so it is not used.
 */
static bool await_notified(struct waiter *w, DAT_EVD_HANDLE evd, uint64_t deadline,
			   DAT_EVENT *event, bool *found)
{
	static const DAT_TIMEOUT second = 1000000;

	for (;;) {
		DAT_EVD_HANDLE hint = DAT_HANDLE_NULL;
		DAT_TIMEOUT left = timeout_left(deadline);
		DAT_RETURN ret;

		if (!event_look(evd, event, found))
			return false;
		if (*found || left == 0)
			return true;
		w->polls++;
		ret = dat_cno_wait(w->cno, left < second ? left : second, &hint);
		if (!dat_is(ret, DAT_QUEUE_EMPTY) && !dat_is(ret, DAT_TIMEOUT_EXPIRED) &&
		    !dat_is(ret, DAT_INTERRUPTED_CALL) && !dat_ok(ret, "dat_cno_wait"))
			return false;
	}
}

static bool await_blocking(struct waiter *w, DAT_EVD_HANDLE evd, double seconds, DAT_EVENT *event,
			   bool *found)
{
	uint64_t deadline = clock_after(seconds);

	watchdog_set(seconds);
	return w->mode == WAIT_CNO ? await_notified(w, evd, deadline, event, found)
				   : event_await_until(evd, deadline, event, found);
}

bool event_await_silent(struct waiter *w, DAT_EVD_HANDLE evd, double seconds, DAT_EVENT *event,
			bool *found)
{
	*found = false;
	return w->mode == WAIT_POLL ? await_polling(w, evd, seconds, event, found)
				    : await_blocking(w, evd, seconds, event, found);
}

bool event_await(struct waiter *w, DAT_EVD_HANDLE evd, const char *what, double seconds,
		 DAT_EVENT *event)
{
	bool found, looked = event_await_silent(w, evd, seconds, event, &found);

	if (looked && !found)
		complain("Error: no %s within %g seconds", what, seconds);
	return looked && found;
}
