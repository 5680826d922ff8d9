/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* A thread that reads links in place of the engine: another process sends what the test asks for. For one suite each. */
#ifndef LINK_RIG_H
#define LINK_RIG_H

#include "softverbs/link/cm_calls.h"
#include "softverbs/link/link_reader.h"
#include "test/unit/busy_engine.h"
#include "test/unit/linked.h"
#include "test/unit/no_check.h"

/* ---- what arrives here ---- */

#define LOG_SIZE 8

static atomic_uint cm_by_engine, cm_by_reader, rings, data_count;
static atomic_int data_order[LOG_SIZE];
static atomic_bool data_in_engine, ring_in_engine;

static void cm_arrives(struct sv_peer *peer, const void *payload, size_t size)
{
	(void)peer;
	(void)payload;
	CU_ASSERT_EQUAL(size, sizeof(uint64_t));
	atomic_fetch_add(sv_engine_is_self() ? &cm_by_engine : &cm_by_reader, 1);
}

static void data_arrives(struct sv_peer *peer, const void *payload, size_t size, int fd)
{
	uint64_t number;

	(void)peer;
	CU_ASSERT_EQUAL_FATAL(size, sizeof(number));
	memcpy(&number, payload, sizeof(number));
	if (fd >= 0)
		close(fd);
	atomic_store(&data_in_engine, sv_engine_is_self());
	atomic_store(&data_order[atomic_load(&data_count)], (int)number);
	atomic_fetch_add(&data_count, 1);
}

static void ring_arrives(void)
{
	atomic_store(&ring_in_engine, sv_engine_is_self());
	atomic_fetch_add(&rings, 1);
}

static void peer_event(struct sv_peer *peer)
{
	(void)peer;
}

static void peer_unreachable(uint16_t slot, int error)
{
	(void)slot;
	(void)error;
}

static void nothing(void)
{
}

static const struct sv_cm_calls cm_calls = {
	.message = cm_arrives,
	.peer_ready = peer_event,
	.peer_unreachable = peer_unreachable,
	.peer_gone = peer_event,
	.fork_begin = nothing,
	.fork_end = nothing,
	.fork_prepare = nothing,
	.fork_parent = nothing,
	.fork_child = nothing,
};

static struct sv_link_client client;

static bool is_one(void *count)
{
	return atomic_load((atomic_uint *)count) == 1;
}

/* ---- the sender ---- */

enum order { STOP, SEND_CM, SEND_DATA, SEND_RING, SEND_BAD };

static int send_one(struct sv_peer *peer, uint64_t order, uint64_t number)
{
	static const enum sv_msg types[] = {
		[SEND_CM] = SV_MSG_CM, [SEND_DATA] = SV_MSG_DATA, [SEND_BAD] = 99
	};
	int fd = order == SEND_DATA ? eventfd(0, EFD_CLOEXEC) : -1, error = 0;

	if (order == SEND_RING)
		sv_peer_ring(peer);
	else
		error = sv_peer_send(peer, types[order], &number, sizeof(number), fd);
	if (fd >= 0)
		close(fd);
	return error;
}

/* Sends to the process whose slot it hears first. */
static int sender_run(int fd, void *arg)
{
	uint64_t slot, order, number = 0;
	struct sv_peer *peer;

	(void)arg;
	if (!process_hear(fd, &slot) || sv_runtime_hold(&client))
		return 1;
	peer = link_to(slot);
	process_say(fd, sv_runtime_peer_id());
	while (peer && process_hear(fd, &order) && order != STOP) {
		if (send_one(peer, order, ++number))
			return 1;
		process_say(fd, 0);
	}
	if (peer)
		sv_peer_put(peer);
	sv_runtime_release();
	return !peer;
}

static struct process sender;
static struct sv_peer *sender_peer;

static void ask(enum order order)
{
	CU_ASSERT_TRUE_FATAL(process_say(sender.fd, order));
	CU_ASSERT_TRUE_FATAL(process_sync(sender.fd));
}

/* ---- the reader ---- */

static void sender_start(void)
{
	client = sv_data_client;
	client.message = data_arrives;
	client.doorbell = ring_arrives;
	sv_cm_calls_set(&cm_calls);
	atomic_store(&cm_by_engine, 0);
	atomic_store(&cm_by_reader, 0);
	atomic_store(&data_count, 0);
	CU_ASSERT_TRUE_FATAL(process_start(&sender, sender_run, NULL));
	CU_ASSERT_EQUAL_FATAL(sv_runtime_hold(&client), 0);
}

static void sender_link(void)
{
	uint64_t slot;

	CU_ASSERT_TRUE_FATAL(process_say(sender.fd, sv_runtime_peer_id()));
	CU_ASSERT_TRUE_FATAL(process_hear(sender.fd, &slot));
	sender_peer = link_to(slot);
	CU_ASSERT_PTR_NOT_NULL_FATAL(sender_peer);
	atomic_store(&rings, 0);
}

static void rig_open(void)
{
	sender_start();
	sender_link();
}

static void sender_stop(void)
{
	CU_ASSERT_TRUE(process_say(sender.fd, STOP));
	CU_ASSERT_EQUAL(process_end(&sender), 0);
}

static void rig_close(bool stops_sender)
{
	no_check = false;
	if (stops_sender)
		sender_stop();
	sv_peer_put(sender_peer);
	sv_runtime_release();
}

static int begin(void)
{
	int fd;

	no_check = true;
	fd = sv_link_reader_begin();
	CU_ASSERT_TRUE_FATAL(fd >= 0);
	return fd;
}

static inline bool is_readable(int fd)
{
	struct pollfd poll_fd = { .fd = fd, .events = POLLIN };

	return poll(&poll_fd, 1, 0) == 1;
}

static void end(void)
{
	sv_link_reader_end(false);
	no_check = false;
}

static void engine_catches_up(void)
{
	bool looks = no_check;

	no_check = false;
	busy_end();
	no_check = looks;
}

#endif
