/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* The other host of a link, played by a test over the loopback address: it speaks the bytes itself. */
#ifndef FABRIC_RIG_H
#define FABRIC_RIG_H

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "softverbs/attend.h"
#include "softverbs/fabric/fabric.h"
#include "softverbs/fabric/link.h"
#include "softverbs/fabric/plugin.h"
#include "test/unit/unit.h"

#define OTHER	 5u /* the slot of the process of the other host */
#define THEIR_QP (OTHER << 12 | 3)

/* 192.0.2.1, an address that no host has (RFC 5737) */
static const uint8_t elsewhere[16] = { [10] = 0xff, 0xff, 192, 0, 2, 1 };
static const struct wire_end rig_end = { .name.kind = WIRE_KIND_LINK };

/* A port that is free now; two tests at once find different ones. */
static inline uint16_t rig_port(void)
{
	struct sockaddr_in any = { .sin_family = AF_INET,
				   .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t size = sizeof(any);
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	CU_ASSERT_EQUAL_FATAL(bind(fd, (struct sockaddr *)&any, sizeof(any)), 0);
	CU_ASSERT_EQUAL_FATAL(getsockname(fd, (struct sockaddr *)&any, &size), 0);
	close(fd);
	return ntohs(any.sin_port);
}

static inline const char *rig_plugin_path(const char *which)
{
	static char path[4096 + 64];
	ssize_t length = readlink("/proc/self/exe", path, 4096);

	while (length > 0 && path[length - 1] != '/')
		length--;
	snprintf(path + (length > 0 ? length : 0), 64, "../lib/softverbs/libsoftverbs-%s.so.1",
		 which);
	return path;
}

/* Without opening it: a test sees whether the device does. */
static inline bool rig_has_libfabric(void)
{
	if (!access(rig_plugin_path("ofi"), R_OK))
		return true;
	puts("skipped: the test of messages: libfabric is not here");
	return false;
}

/* False, with a line, where the object that needs other libraries was not built. */
static inline bool rig_can(void)
{
	const char *path = rig_plugin_path("fabric");

	if (!access(path, R_OK))
		return true;
	printf("skipped: no %s: its libraries are not here\n", path);
	return false;
}

static inline uint16_t rig_on_as(const char *kind)
{
	uint16_t port = rig_port();
	char text[8];

	snprintf(text, sizeof(text), "%u", port);
	setenv("SOFTVERBS_FABRIC", kind, 1);
	setenv("SOFTVERBS_FABRIC_PORT", text, 1);
	setenv("SOFTVERBS_FABRIC_KEY", "none", 1);
	setenv("SOFTVERBS_FABRIC_ADDRESS", "127.0.0.1", 1);
	CU_ASSERT_EQUAL_FATAL(sv_runtime_hold(&sv_data_client), 0);
	CU_ASSERT_TRUE_FATAL(sv_fabric_is_on());
	return port;
}

static inline uint16_t rig_on(void)
{
	return rig_on_as(WIRE_KIND_LINK);
}

/* Connects a socket of the caller's. */
static inline bool rig_connect(int fd, uint16_t port)
{
	struct sockaddr_in to = { .sin_family = AF_INET,
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
				  .sin_port = htons(port) };

	return !connect(fd, (struct sockaddr *)&to, sizeof(to));
}

static inline int rig_dial(uint16_t port)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (rig_connect(fd, port))
		return fd;
	close(fd);
	return -1;
}

/* Reads exactly so many bytes; false at the end of the stream. */
static inline bool rig_read(int fd, void *bytes, size_t size)
{
	struct pollfd poll_fd = { .fd = fd, .events = POLLIN };
	size_t have = 0;
	ssize_t got;

	while (have < size) {
		if (poll(&poll_fd, 1, (int)UNIT_PATIENCE) != 1)
			return false;
		got = recv(fd, (char *)bytes + have, size - have, 0);
		if (got <= 0)
			return false;
		have += (size_t)got;
	}
	return true;
}

static inline void rig_write(int fd, const void *bytes, size_t size)
{
	CU_ASSERT_EQUAL(send(fd, bytes, size, MSG_NOSIGNAL), (ssize_t)size);
}

/* Waits for the end of the stream. */
static inline bool rig_is_closed(int fd)
{
	struct pollfd poll_fd = { .fd = fd, .events = POLLIN };
	char byte;

	return poll(&poll_fd, 1, (int)UNIT_PATIENCE) == 1 && recv(fd, &byte, 1, 0) <= 0;
}

static inline void rig_prelude(int fd)
{
	uint8_t nonce[WIRE_NONCE], bytes[WIRE_PRELUDE];

	memset(nonce, 7, sizeof(nonce));
	sv_wire_prelude_write(bytes, nonce);
	rig_write(fd, bytes, sizeof(bytes));
}

/* Reads the other side's prelude; proves with `key`. False at the end of the stream. */
static inline bool rig_proof_send(int fd, const char *key)
{
	uint8_t said[8 + 2 * WIRE_NONCE] = "softverA", bytes[WIRE_PRELUDE], proof[WIRE_PROOF];
	uint32_t version;

	memset(said + 8, 7, WIRE_NONCE);
	if (!rig_read(fd, bytes, sizeof(bytes)) ||
	    !sv_wire_prelude_read(bytes, &version, said + 8 + WIRE_NONCE))
		return false;
	sv_fabric_plugin()->digest(key, strlen(key), said, sizeof(said), proof);
	rig_write(fd, proof, sizeof(proof));
	return true;
}

/* -1 at the end of the stream. */
static inline int rig_verdict(int fd)
{
	uint8_t verdict[WIRE_VERDICT];

	return rig_read(fd, verdict, sizeof(verdict)) ? verdict[0] : -1;
}

static inline int rig_proof(int fd, const char *key)
{
	return rig_proof_send(fd, key) ? rig_verdict(fd) : -1;
}

static inline int rig_prove(int fd, const char *key)
{
	rig_prelude(fd);
	return rig_proof(fd, key);
}

static inline void rig_frame(int fd, enum wire_type type, const void *payload, size_t size)
{
	struct wire_frame frame = { .size = (uint32_t)size, .type = (uint16_t)type };
	uint8_t bytes[WIRE_HEADER + 8192];

	CU_ASSERT_TRUE_FATAL(size <= sizeof(bytes) - WIRE_HEADER);
	sv_wire_header_write(bytes, &frame);
	memcpy(bytes + WIRE_HEADER, payload, size);
	rig_write(fd, bytes, WIRE_HEADER + size);
}

/* Names a target, and reads the answer: its status, or -1. */
static inline int rig_target(int fd, const struct wire_target *target, struct wire_answer *answer)
{
	uint8_t bytes[WIRE_TARGET_SIZE], back[WIRE_HEADER + WIRE_ANSWER_SIZE];
	struct wire_frame frame;

	sv_wire_target_write(bytes, target);
	rig_frame(fd, WIRE_TARGET, bytes, sizeof(bytes));
	if (!rig_read(fd, back, sizeof(back)) || !sv_wire_header_read(back, &frame) ||
	    frame.type != WIRE_ANSWER ||
	    !sv_wire_answer_read(back + WIRE_HEADER, frame.size, answer))
		return -1;
	return answer->status;
}

static inline bool rig_is_answered(int fd)
{
	struct wire_target target = { .kind = WIRE_TO_CHECK, .end = rig_end };
	struct wire_answer answer;

	return rig_target(fd, &target, &answer) == WIRE_LINKED;
}

/* ---- a host that is connected to ---- */

#define RIG_HOST \
	"127.0.0.2" /* the device listens on 127.0.0.1, so this address is free for the same port */

static inline int rig_listen(uint16_t port)
{
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_port = htons(port) };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;

	inet_pton(AF_INET, RIG_HOST, &at.sin_addr);
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	CU_ASSERT_EQUAL_FATAL(bind(fd, (struct sockaddr *)&at, sizeof(at)), 0);
	CU_ASSERT_EQUAL_FATAL(listen(fd, 16), 0);
	return fd;
}

/* Accepts a connection, and proves to it that there is no key. It reads no target yet. */
static inline int rig_accept(int listener)
{
	struct pollfd poll_fd = { .fd = listener, .events = POLLIN };
	uint8_t said[8 + 2 * WIRE_NONCE] = "softverP", bytes[WIRE_PRELUDE], proof[WIRE_PROOF],
			     verdict[WIRE_VERDICT] = { WIRE_WELCOME };
	uint32_t version;
	int fd;

	CU_ASSERT_EQUAL_FATAL(poll(&poll_fd, 1, (int)UNIT_PATIENCE), 1);
	fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	CU_ASSERT_TRUE_FATAL(fd >= 0);
	CU_ASSERT_TRUE(rig_read(fd, bytes, sizeof(bytes)));
	CU_ASSERT_TRUE(sv_wire_prelude_read(bytes, &version, said + 8));
	memset(said + 8 + WIRE_NONCE, 9, WIRE_NONCE);
	sv_wire_prelude_write(bytes, said + 8 + WIRE_NONCE);
	rig_write(fd, bytes, sizeof(bytes));
	CU_ASSERT_TRUE(rig_read(fd, proof, sizeof(proof)));
	sv_fabric_plugin()->digest("", 0, said, sizeof(said), verdict + 1);
	rig_write(fd, verdict, sizeof(verdict));
	return fd;
}

/* Reads a frame; false at the end of the stream. */
static inline bool rig_frame_read(int fd, struct wire_frame *frame, uint8_t *payload, size_t room)
{
	uint8_t header[WIRE_HEADER];

	return rig_read(fd, header, sizeof(header)) && sv_wire_header_read(header, frame) &&
	       frame->size <= room && rig_read(fd, payload, frame->size);
}

/* Reads the target of that connection, and answers as the process of that slot. */
static inline void rig_answer(int fd, enum wire_status status, struct wire_target *target)
{
	struct wire_answer answer = { .status = (uint8_t)status,
				      .nonce = { 5, (uint64_t)fd },
				      .end = rig_end };
	uint8_t bytes[WIRE_TARGET_SIZE];
	struct wire_frame frame;

	CU_ASSERT_TRUE_FATAL(rig_frame_read(fd, &frame, bytes, sizeof(bytes)));
	CU_ASSERT_EQUAL(frame.type, WIRE_TARGET);
	CU_ASSERT_TRUE(sv_wire_target_read(bytes, frame.size, target));
	answer.slot = target->slot;
	sv_wire_answer_write(bytes, &answer);
	rig_frame(fd, WIRE_ANSWER, bytes, WIRE_ANSWER_SIZE);
	if (status != WIRE_LINKED)
		return;
	CU_ASSERT_TRUE(rig_frame_read(fd, &frame, bytes, 0));
	CU_ASSERT_EQUAL(frame.type, WIRE_OPEN);
}

#endif
