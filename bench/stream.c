/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * What a network allows: a TCP connection with TCP_NODELAY, over which messages of known sizes go. The tests lat, wake (in
 * poll(2)), rate and bw of traffic.h. -a names the address at which side 1 listens.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>
#include "bench/measure.h"

struct end {
	int fd;
	uint8_t *from, *to;
	size_t expected; /* bytes of a message of the other side */
	size_t got;	 /* of the next one */
	unsigned sent;	 /* and not reported yet */
};

static inline void end_use(struct end *end, unsigned i)
{
	(void)end;
	must(i == 0, "-n: this test has only one connection");
}

/* The socket's own buffer takes what comes. */
static inline void end_recv(struct end *end, unsigned count)
{
	(void)end, (void)count;
}

static inline void end_send(struct end *end, unsigned size, bool signaled)
{
	for (size_t sent = 0; sent < size;) {
		ssize_t n = send(end->fd, end->from + sent, size - sent, MSG_NOSIGNAL);

		must(n > 0, "send");
		sent += (size_t)n;
	}
	end->sent += signaled;
}

static inline void end_poll(struct end *end, struct found *found)
{
	ssize_t n = recv(end->fd, end->to + end->got, end->expected - end->got, MSG_DONTWAIT);

	found->sends += end->sent;
	end->sent = 0;
	must(n > 0 || (n < 0 && errno == EAGAIN), "recv");
	if (n > 0)
		end->got += (size_t)n;
	if (end->got < end->expected)
		return;
	end->got = 0;
	found->recvs++;
}

static inline void end_wait(struct end *end, bool by_fd, struct found *found)
{
	struct pollfd p = { .fd = end->fd, .events = POLLIN };

	(void)by_fd;
	must(poll(&p, 1, -1) == 1, "poll");
	end_poll(end, found);
}

static inline void end_rdma(struct end *end, bool read)
{
	(void)end, (void)read;
	fail("no such test");
}

static inline void end_add(struct end *end)
{
	end_rdma(end, false);
}

static inline uint8_t *end_first(struct end *end)
{
	return end->from;
}

static inline uint8_t *end_second(struct end *end)
{
	return end->to;
}

#include "bench/traffic.h"

static int stream_listen(struct sockaddr_in *address)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	socklen_t size = sizeof(*address);

	must(fd >= 0 && !bind(fd, (struct sockaddr *)address, size) && !listen(fd, 1) &&
		     !getsockname(fd, (struct sockaddr *)address, &size),
	     "listen");
	return fd;
}

/* A stream of one way has short messages in the other one; see traffic_stream. */
static size_t expected_bytes(void)
{
	bool stream = !strcmp(options.test, "bw") || !strcmp(options.test, "rate");

	if (!stream || !side)
		return options.size;
	return options.size < TINY ? 1 : TINY;
}

static void end_open(struct end *end)
{
	struct sockaddr_in address = { .sin_family = AF_INET }, *listening = shared;
	int listener = -1, one = 1;

	must(inet_pton(AF_INET, options.address ? options.address : "127.0.0.1",
		       &address.sin_addr) == 1,
	     "-a is no IPv4 address");
	if (side)
		listener = stream_listen(&address);
	if (side)
		*listening = address;
	meet();
	end->fd = side ? accept(listener, NULL, NULL)
		       : socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	must(end->fd >= 0 &&
		     (side || !connect(end->fd, (struct sockaddr *)listening, sizeof(*listening))),
	     "connect");
	must(!setsockopt(end->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one)), "TCP_NODELAY");
	end->from = buffer();
	end->to = buffer();
	end->expected = expected_bytes();
}

int main(int argc, char **argv)
{
	struct end end = { 0 };

	measure_begin(argc, argv, sizeof(struct sockaddr_in));
	must(options.size, "no such size");
	end_open(&end);
	traffic_run(&end);
	measure_end();
}
