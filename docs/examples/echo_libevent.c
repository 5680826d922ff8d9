/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* The same server as one of the tasks of a libevent loop. */
#include <event2/event.h>
#include <stdio.h>
#include <stdlib.h>
#include "echo.h"

struct task {
	struct event_base *base;
	struct echo *echo;
	enum echo_state state;
};

static void readable(evutil_socket_t fd, short what, void *arg)
{
	struct task *task = arg;

	(void)fd, (void)what;
	task->state = echo_run(task->echo);
	if (task->state != ECHO_SLEEP)
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
	if (event && !event_add(event, NULL)) {
		task.state = echo_run(task.echo); /* arms for the first sleep */
		if (task.state == ECHO_SLEEP)
			event_base_dispatch(task.base);
	}
	if (event)
		event_free(event); /* before the descriptor that it watches */
	if (task.base)
		event_base_free(task.base);
	if (task.echo)
		echo_close(task.echo);
	return task.state == ECHO_DONE ? EXIT_SUCCESS : EXIT_FAILURE;
}
