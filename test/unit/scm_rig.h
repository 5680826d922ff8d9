/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * Helpers for suites of the socket CM: a channel on the software device's port, and peers that are
 * scripts over plain sockets.
 */
#ifndef SCM_RIG_H
#define SCM_RIG_H

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "dapl/cm/cm.h"
#include "test/unit/unit.h"
#include "util/clock.h"

struct rig {
	struct rdma_event_channel *channel;
	struct rdma_cm_id *listener, *datagrams;
	uint16_t port;
};

/* A copy of an event that was acknowledged, with its private data. */
struct seen {
	struct rdma_cm_event event;
	unsigned char data[256];
	unsigned size;
};

static inline void rig_open(struct rig *rig)
{
	struct sockaddr_in own = { .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } };

	memset(rig, 0, sizeof(*rig));
	rig->channel = rdma_create_event_channel();
	CU_ASSERT_PTR_NOT_NULL_FATAL(rig->channel);
	CU_ASSERT_EQUAL_FATAL(cm_attach(rig->channel, "soft0", 1, (struct sockaddr *)&own), 0);
}

static inline struct rdma_cm_id *rig_id(struct rig *rig, enum rdma_port_space space, uint16_t port)
{
	struct sockaddr_in own = { .sin_family = AF_INET, .sin_port = htons(port) };
	struct rdma_cm_id *id;

	CU_ASSERT_EQUAL_FATAL(rdma_create_id(rig->channel, &id, NULL, space), 0);
	CU_ASSERT_EQUAL_FATAL(rdma_bind_addr(id, (struct sockaddr *)&own), 0);
	return id;
}

static inline void rig_listen(struct rig *rig)
{
	rig->listener = rig_id(rig, RDMA_PS_TCP, 0);
	CU_ASSERT_EQUAL_FATAL(rdma_listen(rig->listener, 0), 0);
	rig->port = ntohs(rdma_get_src_port(rig->listener));
	rig->datagrams = rig_id(rig, RDMA_PS_UDP, rig->port);
	CU_ASSERT_EQUAL_FATAL(rdma_listen(rig->datagrams, 0), 0);
}

static inline void rig_close(struct rig *rig)
{
	if (rig->listener)
		CU_ASSERT_EQUAL(rdma_destroy_id(rig->listener), 0);
	if (rig->datagrams)
		CU_ASSERT_EQUAL(rdma_destroy_id(rig->datagrams), 0);
	rdma_destroy_event_channel(rig->channel);
}

/* Takes an event if there is one; does not wait. */
static inline bool rig_poll(struct rig *rig, struct seen *seen)
{
	struct rdma_cm_event *event;

	if (rdma_get_cm_event(rig->channel, &event)) {
		CU_ASSERT_EQUAL(errno, EAGAIN);
		return false;
	}
	memset(seen, 0, sizeof(*seen));
	seen->event = *event;
	seen->size = event->param.conn.private_data_len;
	if (seen->size)
		memcpy(seen->data, event->param.conn.private_data, seen->size);
	CU_ASSERT_EQUAL(rdma_ack_cm_event(event), 0);
	return true;
}

/* Waits until the descriptor is readable; the next event must have this type. */
static inline void rig_expect(struct rig *rig, enum rdma_cm_event_type type, struct seen *seen)
{
	struct pollfd poll_fd = { .fd = rig->channel->fd, .events = POLLIN };
	uint64_t deadline = clock_now() + UNIT_PATIENCE * NSEC_PER_MSEC;
	struct seen own;

	seen = seen ? seen : &own;
	while (!rig_poll(rig, seen)) {
		CU_ASSERT_TRUE_FATAL(clock_now() < deadline);
		poll(&poll_fd, 1, 100);
	}
	if (seen->event.event != type)
		fprintf(stderr, "event %d in the place of %d\n", seen->event.event, type);
	CU_ASSERT_EQUAL_FATAL(seen->event.event, type);
}

/* ---- the scripts ---- */

static inline int wire_connect(uint16_t port)
{
	struct sockaddr_in to = { .sin_family = AF_INET,
				  .sin_port = htons(port),
				  .sin_addr = { htonl(INADDR_LOOPBACK) } };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	CU_ASSERT_TRUE_FATAL(fd >= 0);
	CU_ASSERT_EQUAL_FATAL(connect(fd, (struct sockaddr *)&to, sizeof(to)), 0);
	return fd;
}

static inline int wire_listen(uint16_t *port)
{
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } };
	socklen_t size = sizeof(at);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	CU_ASSERT_EQUAL_FATAL(bind(fd, (struct sockaddr *)&at, sizeof(at)), 0);
	CU_ASSERT_EQUAL_FATAL(listen(fd, 16), 0);
	CU_ASSERT_EQUAL_FATAL(getsockname(fd, (struct sockaddr *)&at, &size), 0);
	*port = ntohs(at.sin_port);
	return fd;
}

/*
 * Writes a request or an answer as an old peer does: `header` bytes, of which the last two may
 * belong to the private data.
 */
static inline size_t wire_message(unsigned char bytes[512], unsigned ver, unsigned op,
				  size_t header, const void *data, size_t size, unsigned qp_type)
{
	memset(bytes, 0, 512);
	bytes[1] = (unsigned char)ver;
	bytes[3] = (unsigned char)op;
	bytes[16] = (unsigned char)(size >> 8);
	bytes[17] = (unsigned char)size;
	bytes[28] = 3; /* rd_in */
	bytes[32] = 3; /* 1024 */
	bytes[36 + 3] = 7;
	bytes[36 + 6] = 0x12;
	bytes[36 + 7] = 0x34;
	bytes[36 + 8] = 0xfe;
	bytes[36 + 27] = (unsigned char)qp_type;
	bytes[64] = AF_INET;
	bytes[64 + 2] = 0x43;
	bytes[64 + 3] = 0x21;
	bytes[64 + 4] = 127;
	bytes[64 + 7] = 1;
	if (size && header == CM_HEADER_OLD)
		memcpy(bytes + CM_HEADER, data, size < 2 ? size : 2);
	if (size)
		memcpy(bytes + header, data, size < 256 ? size : 256);
	return header + size;
}

static inline void wire_send(int fd, const void *bytes, size_t size)
{
	CU_ASSERT_EQUAL(send(fd, bytes, size, MSG_NOSIGNAL), (ssize_t)size);
}

/* Reads exactly `size` bytes while the rig handles its events. */
static inline size_t wire_read(struct rig *rig, int fd, void *bytes, size_t size)
{
	struct pollfd poll_fds[] = { { .fd = fd, .events = POLLIN },
				     { .fd = rig->channel->fd, .events = POLLIN } };
	uint64_t deadline = clock_now() + UNIT_PATIENCE * NSEC_PER_MSEC;
	struct seen seen;
	size_t got = 0;
	ssize_t n;

	while (got < size && clock_now() < deadline) {
		poll(poll_fds, 2, 100);
		if (poll_fds[1].revents && rig_poll(rig, &seen))
			CU_FAIL("an event that was not expected");
		n = recv(fd, (char *)bytes + got, size - got, MSG_DONTWAIT);
		if (n > 0)
			got += (size_t)n;
		else if (!n || errno != EAGAIN)
			break;
	}
	return got;
}

/* The peer closes the socket without sending anything more. */
static inline bool wire_ends(struct rig *rig, int fd)
{
	unsigned char byte;
	ssize_t got;

	if (wire_read(rig, fd, &byte, 1))
		return false;
	got = recv(fd, &byte, 1, MSG_DONTWAIT);
	return !got || (got < 0 && errno != EAGAIN);
}

#endif
