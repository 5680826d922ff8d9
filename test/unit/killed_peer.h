/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * A peer to be killed: a child process with an adapter of its own, which listens or connects, and
 * stops itself in one state of the connection.
 */
#ifndef KILLED_PEER_H
#define KILLED_PEER_H

#include <string.h>
#include "test/unit/process.h"
#include "test/unit/two_ends.h"

/* Where a process listens. An address is of IPv4, or has the size of one of IPv6. */
struct place {
	unsigned char address[sizeof(struct sockaddr_in6)];
	DAT_CONN_QUAL qual;
};

static struct process peer;

static void peer_stops(void)
{
	raise(SIGSTOP);
	_exit(1); /* it is killed, not continued */
}

static void place_send(int fd)
{
	struct place place = { .qual = env.qual };

	memcpy(place.address, env.address,
	       env.address->sa_family == AF_INET ? sizeof(struct sockaddr_in)
						 : sizeof(place.address));
	CU_ASSERT_EQUAL_FATAL(write(fd, &place, sizeof(place)), (ssize_t)sizeof(place));
}

static struct place place_receive(int fd)
{
	struct place place;

	CU_ASSERT_EQUAL_FATAL(read(fd, &place, sizeof(place)), (ssize_t)sizeof(place));
	return place;
}

static int peer_run(int fd, void *arg)
{
	void (**act)(int fd) = arg;

	alarm(UNIT_PATIENCE / 500);
	setup();
	(*act)(fd);
	return 1;
}

/* Starts the process before any adapter is open; it runs `act`, which does not return. */
static void peer_start(void (*act)(int fd))
{
	CU_ASSERT_TRUE_FATAL(process_start(&peer, peer_run, &act));
}

static void peer_await_stop(void)
{
	int status;

	CU_ASSERT_EQUAL_FATAL(waitpid(peer.pid, &status, WUNTRACED), peer.pid);
	CU_ASSERT_TRUE_FATAL(WIFSTOPPED(status));
}

static void connect_to(const struct place *place)
{
	MUST(dat_ep_connect(a.ep, (DAT_IA_ADDRESS_PTR)(uintptr_t)place->address, place->qual,
			    PATIENCE, 0, NULL, DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG));
}

/* ---- the states in which it stops ---- */

static void stop_listening(int fd)
{
	place_send(fd);
	peer_stops();
}

/* It has the request, and does not answer. */
static void stop_requested(int fd)
{
	place_send(fd);
	request_next(&env);
	peer_stops();
}

static void stop_connected_passive(int fd)
{
	place_send(fd);
	MUST(dat_cr_accept(request_next(&env), a.ep, 0, NULL));
	expect(a.conn, DAT_CONNECTION_EVENT_ESTABLISHED, a.ep);
	peer_stops();
}

static void stop_connected_active(int fd)
{
	struct place place = place_receive(fd);

	connect_to(&place);
	expect(a.conn, DAT_CONNECTION_EVENT_ESTABLISHED, a.ep);
	peer_stops();
}

/* It sends its request, and is stopped from outside once that has arrived. */
static void ask(int fd)
{
	struct place place = place_receive(fd);

	connect_to(&place);
	pause();
}

#endif
