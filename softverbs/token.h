/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * The tokens of a completion channel: one is written for each event, and makes the channel's
 * descriptor readable. They are bytes in a pipe. Processes that complete work write them straight
 * into it, each by an open file of its own, so that no process depends on flags that another one
 * can set: a writer never blocks and gets no SIGPIPE, and O_NONBLOCK of the channel is the program's.
 */
#ifndef SV_TOKEN_H
#define SV_TOKEN_H

#include <stdbool.h>

struct sv_tokens {
	int fd;	    /* for the program, which polls it and sets O_NONBLOCK as it likes */
	int writer; /* never blocks */
};

int sv_tokens_open(struct sv_tokens *tokens); /* 0 or errno */
void sv_tokens_close(struct sv_tokens *tokens);

/*
 * A writer of this process's own for the pipe of another one, whose descriptor it passed; -1: it is
 * no pipe, or cannot be opened anew. The descriptor stays the caller's.
 */
int sv_tokens_join(int fd);
/* What to pass for that: an open file that this process does not use itself; -1 with errno. */
int sv_tokens_invite(const struct sv_tokens *tokens);

bool sv_token_put(int writer); /* false: there is no room */

/* Takes one, blocking as the descriptor says; -1 with errno. A cancellation point. */
int sv_token_take(const struct sv_tokens *tokens);
void sv_token_drop(const struct sv_tokens *tokens); /* one, if there is one */

#endif
