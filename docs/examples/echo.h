/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * A server that sends every message back: any number of endpoints, one shared receive queue, one
 * descriptor. It has no loop of its own; the two programs beside it drive it from a loop.
 */
#ifndef ECHO_H
#define ECHO_H

#include <stdbool.h>
#include <dat2/udat.h>
#include <dat2/dat_event_extensions.h>

enum {
	ECHO_MESSAGE = 64, /* bytes in a message */
	ECHO_EACH = 4	   /* the most messages that an endpoint has in flight */
};

struct echo;

/*
 * Opens the provider `name` and listens at `qual`, for at most `most` endpoints at a time; the
 * server is done after `lives` of them have ended (0: never). On failure prints the reason and
 * returns NULL.
 */
struct echo *echo_open(char *name, DAT_CONN_QUAL qual, int most, long lives);
void echo_close(struct echo *echo);

/* The one descriptor: readable when echo_run() has something to do. */
int echo_fd(const struct echo *echo);

/*
 * Serves the pending events, and arms the descriptor: after ECHO_SLEEP it is safe to block until
 * the descriptor is readable. After ECHO_MORE there may be more to serve without the descriptor
 * becoming readable; the loop runs its other tasks without blocking, and calls again.
 */
enum echo_state { ECHO_SLEEP, ECHO_MORE, ECHO_DONE, ECHO_FAILED } echo_run(struct echo *echo);

/* The command line of both programs: [-P provider] [-p port] [-m endpoints] [-n lives]. */
struct echo *echo_open_args(int argc, char **argv);

/* Prints on standard error the failed call and its result. */
bool echo_ok(DAT_RETURN status, const char *call);

#endif
