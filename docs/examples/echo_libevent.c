/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* The same server as one of the tasks of a libevent loop. */
#include <event2/event.h>
#include <stdio.h>
#include <stdlib.h>
#include "echo.h"

struct task {
	struct event_base *base;
	struct event *more; /* a timer of 0 s: the loop comes back after all other tasks */
	struct echo *echo;
	enum echo_state state;
};

static void readable(evutil_socket_t fd, short what, void *arg)
{
	const struct timeval now = { 0, 0 };
	struct task *task = arg;

	(void)fd, (void)what;
	task->state = echo_run(task->echo);
	if (task->state == ECHO_MORE && event_add(task->more, &now))
		task->state = ECHO_FAILED;
	if (task->state != ECHO_SLEEP && task->state != ECHO_MORE)
		event_base_loopbreak(task->base);
}

int main(int argc, char **argv)
{
	struct task task = { .base = event_base_new(), .echo = echo_open_args(argc, argv) };
	struct event *event = NULL;

	task.state = ECHO_FAILED;
	if (task.base && task.echo)
		event = event_new(task.base, echo_fd(task.echo), EV_READ | EV_PERSIST, readable,
				  &task);
	if (event)
		task.more = evtimer_new(task.base, readable, &task);
	if (task.more && !event_add(event, NULL)) {
		readable(-1, 0, &task); /* arms the descriptor for the first time */
		if (task.state == ECHO_SLEEP || task.state == ECHO_MORE)
			event_base_dispatch(task.base);
	}
	if (task.more)
		event_free(task.more);
	if (event)
		event_free(event); /* before the server's descriptor, which it watches */
	if (task.base)
		event_base_free(task.base);
	if (task.echo)
		echo_close(task.echo);
	return task.state == ECHO_DONE ? EXIT_SUCCESS : EXIT_FAILURE;
}
