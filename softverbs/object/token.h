/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * The tokens of a completion channel. Each event writes one, which makes the channel's descriptor
 * readable. Tokens are bytes in a pipe. A process that completes work writes them into the pipe
 * by an open file of its own, so that no process depends on file flags that another process can
 * set: a writer never blocks and gets no SIGPIPE, and O_NONBLOCK of the channel belongs to the
 * program.
 */
#ifndef SV_OBJECT_TOKEN_H
#define SV_OBJECT_TOKEN_H

#include <stdbool.h>

struct sv_tokens {
	int fd;	    /* for the program, which may set O_NONBLOCK */
	int writer; /* never blocks */
};

int sv_tokens_open(struct sv_tokens *tokens); /* returns 0 or an errno */
void sv_tokens_close(struct sv_tokens *tokens);

/*
 * Opens a writer of this process for another process's pipe, whose descriptor `fd` that process
 * passed. -1 if `fd` is no pipe or cannot be reopened. The caller keeps `fd`.
 */
int sv_tokens_join(int fd);
/*
 * A descriptor to pass to such a process: an open file that this process does not use itself. -1
 * with errno.
 */
int sv_tokens_invite(const struct sv_tokens *tokens);

bool sv_token_put(int writer); /* returns false if the pipe is full */

/*
 * Reads one token; blocks unless the descriptor has O_NONBLOCK. -1 with errno. A cancellation
 * point.
 */
int sv_token_take(const struct sv_tokens *tokens);
void sv_token_drop(
	const struct sv_tokens *tokens); /* reads one token if there is one; never blocks */

#endif
