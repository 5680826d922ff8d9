/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Connects the two ends of a scene while one call of the connection is made to fail. */
#ifndef NTH_CONNECT_H
#define NTH_CONNECT_H

#include "test/unit/nth.h"

/* How far the two ends have got. */
struct nth_course {
	struct nth_scene *s;
	DAT_RETURN status;	     /* of the first call that failed */
	unsigned established, ended; /* bit masks: 1 is the active end, 2 the passive end */
};

static void nth_course_event(struct nth_course *course, DAT_EVD_HANDLE evd, unsigned end)
{
	DAT_EVENT event;

	if (dat_evd_dequeue(evd, &event) != DAT_SUCCESS)
		return;
	if (event.event_number == DAT_CONNECTION_REQUEST_EVENT)
		course->status = dat_cr_accept(event.event_data.cr_arrival_event_data.cr_handle,
					       course->s->b.ep, 0, NULL);
	else if (event.event_number == DAT_CONNECTION_EVENT_ESTABLISHED)
		course->established |= end;
	else
		course->ended |= end;
}

/*
 * True when both ends are established, or when the connection has ended on each side that had begun
 * it.
 */
static bool nth_course_done(void *arg)
{
	struct nth_course *course = arg;
	struct nth_scene *s = course->s;

	nth_course_event(course, s->env.cr, 0);
	nth_course_event(course, s->a.conn, 1);
	nth_course_event(course, s->b.conn, 2);
	return (course->established == 3 && !course->ended) ||
	       (course->ended & 1 &&
		(course->ended & 2 || state_of(s->b.ep) == DAT_EP_STATE_UNCONNECTED));
}

static DAT_RETURN nth_connect(struct nth_scene *s)
{
	struct nth_course course = { .s = s };
	DAT_RETURN status = try_connect(&s->a, DAT_TIMEOUT_INFINITE);

	if (status != DAT_SUCCESS) {
		CU_ASSERT_EQUAL(state_of(s->a.ep), DAT_EP_STATE_UNCONNECTED);
		return status;
	}
	CU_ASSERT_TRUE(unit_wait_for(nth_course_done, &course, UNIT_PATIENCE));
	if (course.status != DAT_SUCCESS || !course.ended)
		return course.status;
	/* the event does not tell the cause */
	CU_ASSERT_EQUAL(state_of(s->a.ep), DAT_EP_STATE_DISCONNECTED);
	return E(INSUFFICIENT_RESOURCES, RESOURCE_DEVICE);
}

static void nth_connect_settle(struct nth_scene *s)
{
	OK(dat_ep_reset(s->a.ep));
	OK(dat_ep_reset(s->b.ep));
	expect_quiet(s->env.cr);
}

static void nth_connect_undo(struct nth_scene *s)
{
	disconnect_pair(&s->a, &s->b);
	nth_connect_settle(s);
}

static const struct nth_step nth_connect_step = { "dat_ep_connect and dat_cr_accept", nth_connect,
						  nth_connect_undo, nth_connect_settle, true };

#endif
