/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * UNIX SEQPACKET sockets: connect, a request and a reply of 128 bytes, close; -o of them at a time.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include "bench/limit.h"

#define TEXT 128

static struct sockaddr_un name = { .sun_family = AF_UNIX };
static socklen_t name_size;

static int listener_open(void)
{
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	must(fd >= 0 && !bind(fd, (struct sockaddr *)&name, name_size) && !listen(fd, 128),
	     "listen");
	return fd;
}

static void serve_one(int listener)
{
	int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	char text[TEXT];

	must(fd >= 0 && recv(fd, text, TEXT, 0) == TEXT &&
		     send(fd, text, TEXT, MSG_NOSIGNAL) == TEXT,
	     "a reply");
	close(fd);
}

static void connect_all(int *fds)
{
	char text[TEXT] = "request";

	for (unsigned i = 0; i < options.burst; i++) {
		fds[i] = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
		must(fds[i] >= 0 && !connect(fds[i], (struct sockaddr *)&name, name_size) &&
			     send(fds[i], text, TEXT, MSG_NOSIGNAL) == TEXT,
		     "a request");
	}
	for (unsigned i = 0; i < options.burst; i++) {
		must(recv(fds[i], text, TEXT, 0) == TEXT, "recv");
		close(fds[i]);
	}
}

void limit_conn(void)
{
	int listener = -1, *fds = calloc(options.burst, sizeof(*fds));
	unsigned bursts = batch_of(64) / options.burst + 1;

	must(fds != NULL, "calloc");
	name_size = (socklen_t)(sizeof(sa_family_t) + 1 +
				(size_t)snprintf(name.sun_path + 1, sizeof(name.sun_path) - 1,
						 "bench-%d", side ? (int)getpid() : (int)other));
	if (side)
		listener = listener_open();
	meet();
	for (unsigned batch = 0; batch < options.batches; batch++) {
		uint64_t begin = now_ns();

		for (unsigned i = 0; i < bursts * (side ? options.burst : 1); i++) {
			if (side)
				serve_one(listener);
			else
				connect_all(fds);
		}
		figure(1e9 * bursts * options.burst / (double)(now_ns() - begin));
	}
}
