/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * The limit of making connections: UNIX SEQPACKET sockets, -o of them under way at a time. Connections a second.
 *   plain   connect, a request and a reply of 128 bytes, close
 *   ring    the same, and a fresh memfd of 64 KiB goes along, is mapped at both ends and unmapped
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include "bench/measure.h"

#define TEXT  128
#define BYTES (64 << 10)
#define BATCH 64u

struct packet {
	struct iovec iov;
	struct msghdr header;
	char text[TEXT];
	_Alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof(int))];
};

static struct sockaddr_un name;
static socklen_t name_size;

static void packet_make(struct packet *packet)
{
	packet->iov = (struct iovec){ packet->text, TEXT };
	packet->header = (struct msghdr){ .msg_iov = &packet->iov, .msg_iovlen = 1 };
}

static void send_request(int fd, int memory)
{
	struct packet packet = { .text = "request" };
	struct cmsghdr *c;

	packet_make(&packet);
	if (memory >= 0) {
		packet.header.msg_control = packet.control;
		packet.header.msg_controllen = sizeof(packet.control);
		c = CMSG_FIRSTHDR(&packet.header);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(c), &memory, sizeof(memory));
	}
	must(sendmsg(fd, &packet.header, MSG_NOSIGNAL) == TEXT, "sendmsg");
}

/* The descriptor that came along, or -1. */
static int take_request(int fd)
{
	struct packet packet;
	struct cmsghdr *c;
	int memory = -1;

	packet_make(&packet);
	packet.header.msg_control = packet.control;
	packet.header.msg_controllen = sizeof(packet.control);
	must(recvmsg(fd, &packet.header, MSG_CMSG_CLOEXEC) == TEXT, "recvmsg");
	c = CMSG_FIRSTHDR(&packet.header);
	if (c && c->cmsg_type == SCM_RIGHTS)
		memcpy(&memory, CMSG_DATA(c), sizeof(memory));
	return memory;
}

static void *ring_map(int memory)
{
	uint8_t *ring = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0);

	must(ring != MAP_FAILED, "mmap");
	ring[0]++;
	return ring;
}

static void serve_one(int listener)
{
	int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC), memory;
	char text[TEXT] = "reply";

	must(fd >= 0, "accept");
	memory = take_request(fd);
	if (memory >= 0) {
		munmap(ring_map(memory), BYTES);
		close(memory);
	}
	must(send(fd, text, TEXT, MSG_NOSIGNAL) == TEXT, "send");
	close(fd);
}

struct attempt {
	int fd;
	void *ring;
};

static void begin_one(struct attempt *a, bool ring)
{
	int memory = -1;

	a->fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	must(a->fd >= 0, "socket");
	must(!connect(a->fd, (struct sockaddr *)&name, name_size), "connect");
	if (ring) {
		memory = memfd_create("ring", MFD_CLOEXEC);
		must(memory >= 0 && !ftruncate(memory, BYTES), "memfd_create");
		a->ring = ring_map(memory);
	}
	send_request(a->fd, memory);
	if (ring)
		close(memory);
}

static void end_one(struct attempt *a, bool ring)
{
	char text[TEXT];

	must(recv(a->fd, text, TEXT, 0) == TEXT, "recv");
	close(a->fd);
	if (ring)
		munmap(a->ring, BYTES);
}

static void connect_all(bool ring)
{
	struct attempt *attempts = calloc(options.outstanding, sizeof(*attempts));

	must(attempts != NULL, "calloc");
	for (unsigned batch = 0; batch < options.batches; batch++) {
		uint64_t begin = now_ns();

		for (unsigned n = 0; n < BATCH; n += options.outstanding) {
			for (unsigned i = 0; i < options.outstanding; i++)
				begin_one(&attempts[i], ring);
			for (unsigned i = 0; i < options.outstanding; i++)
				end_one(&attempts[i], ring);
		}
		figure(BATCH * 1e9 / (double)(now_ns() - begin));
	}
	free(attempts);
}

int main(int argc, char **argv)
{
	int listener = -1;

	measure_begin(argc, argv, LINE);
	if (strcmp(options.test, "plain") && strcmp(options.test, "ring"))
		fail("no such test");
	must(BATCH % options.outstanding == 0, "-o does not divide the batch");
	name.sun_family = AF_UNIX;
	name_size = (socklen_t)(sizeof(sa_family_t) + 1 +
				(size_t)snprintf(name.sun_path + 1, sizeof(name.sun_path) - 1,
						 "bench-%d", side ? (int)getpid() : (int)other));
	if (side) {
		listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
		must(listener >= 0 && !bind(listener, (struct sockaddr *)&name, name_size) &&
			     !listen(listener, 128),
		     "listen");
	}
	meet();
	if (!side)
		connect_all(!strcmp(options.test, "ring"));
	else
		for (unsigned i = 0; i < BATCH * options.batches; i++)
			serve_one(listener);
	measure_end();
}
