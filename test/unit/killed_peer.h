/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* A peer to be killed: it stops itself in one state of the connection. */
#ifndef KILLED_PEER_H
#define KILLED_PEER_H

#include "test/unit/other_side.h"

static void peer_stops(void)
{
	raise(SIGSTOP);
	_exit(1); /* it is killed, not continued */
}

static void peer_await_stop(void)
{
	int status;

	CU_ASSERT_EQUAL_FATAL(waitpid(peer.pid, &status, WUNTRACED), peer.pid);
	CU_ASSERT_TRUE_FATAL(WIFSTOPPED(status));
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
