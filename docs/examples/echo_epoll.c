/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* The echo server in a loop of its own: one thread, one descriptor, epoll(7). */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>
#include "echo.h"

int main(int argc, char **argv)
{
	struct epoll_event event = { .events = EPOLLIN };
	struct echo *echo = echo_open_args(argc, argv);
	enum echo_state state = ECHO_FAILED;
	int loop = epoll_create1(EPOLL_CLOEXEC);

	if (!echo)
		return EXIT_FAILURE;
	if (loop < 0 || epoll_ctl(loop, EPOLL_CTL_ADD, echo_fd(echo), &event)) {
		perror("epoll");
	} else {
		while ((state = echo_run(echo)) == ECHO_SLEEP || state == ECHO_MORE) {
			int ms = state == ECHO_MORE ? 0 : -1;

			if (epoll_wait(loop, &event, 1, ms) < 0 && errno != EINTR) {
				perror("epoll_wait");
				state = ECHO_FAILED;
				break;
			}
		}
	}
	if (loop >= 0)
		close(loop); /* before the server's descriptor, which it watches */
	echo_close(echo);
	return state == ECHO_DONE ? EXIT_SUCCESS : EXIT_FAILURE;
}
