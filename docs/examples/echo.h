/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * A server that sends every message back: any number of endpoints, one shared receive queue, one
 * descriptor. It owns no loop; the two programs beside it show how a loop drives it.
 */
#ifndef ECHO_H
#define ECHO_H

#include <stdbool.h>
#include <dat2/udat.h>
#include <dat2/dat_event_extensions.h>

enum {
	ECHO_MESSAGE = 64, /* bytes in a message */
	ECHO_EACH = 4	   /* messages that an endpoint has under way at most */
};

struct echo;

/*
 * Opens the provider `name` and listens at `qual`, for at most `most` endpoints at a time; after
 * `lives` of them came and went the server is done (0: never). NULL, with the reason on standard
 * error, if that is not possible.
 */
struct echo *echo_open(char *name, DAT_CONN_QUAL qual, int most, long lives);
void echo_close(struct echo *echo);

/* The one descriptor: readable when echo_run() has something to do. */
int echo_fd(const struct echo *echo);

/*
 * Serves what there is to serve, and arms the descriptor: when it returns ECHO_SLEEP, it is safe to
 * sleep until the descriptor is readable.
 */
enum echo_state { ECHO_SLEEP, ECHO_DONE, ECHO_FAILED } echo_run(struct echo *echo);

/* The command line both programs have: [-P provider] [-p port] [-m endpoints] [-n lives]. */
struct echo *echo_open_args(int argc, char **argv);

/* Says on standard error what went wrong in which call. */
bool echo_ok(DAT_RETURN status, const char *call);

#endif
