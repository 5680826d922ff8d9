/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Implements the tokens of completion channels as bytes in a pipe. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "softverbs/base/foreign.h"
#include "softverbs/object/token.h"

/*
 * Reopens the pipe: the new open file has flags of its own. It is opened for reading too, so that
 * writes raise no SIGPIPE after the other readers are gone.
 */
static int pipe_reopen(int fd, int flags)
{
	char path[32];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return open(path, flags | O_CLOEXEC);
}

int sv_tokens_open(struct sv_tokens *tokens)
{
	int fds[2], reopened;

	if (pipe2(fds, O_CLOEXEC))
		return errno;
	tokens->fd = fds[0];
	tokens->writer = fds[1];
	reopened = pipe_reopen(fds[1], O_RDWR | O_NONBLOCK);
	if (reopened >= 0) {
		tokens->writer = reopened;
		close(fds[1]);
	} else if (errno == EMFILE || errno == ENFILE || fcntl(fds[1], F_SETFL, O_NONBLOCK)) {
		int error = errno;

		sv_tokens_close(tokens);
		return error;
	}
	/*
	 * Without /proc the writer cannot read, so sv_token_drop does nothing, and a reader reads
	 * one token too many.
	 */
	return 0;
}

void sv_tokens_close(struct sv_tokens *tokens)
{
	close(tokens->fd);
	close(tokens->writer);
	tokens->fd = tokens->writer = -1;
}

int sv_tokens_join(int fd)
{
	return sv_foreign_is_pipe(fd) ? pipe_reopen(fd, O_RDWR | O_NONBLOCK) : -1;
}

int sv_tokens_invite(const struct sv_tokens *tokens)
{
	return pipe_reopen(tokens->writer, O_WRONLY);
}

int sv_token_take(const struct sv_tokens *tokens)
{
	char token;

	return read(tokens->fd, &token, 1) < 0 ? -1 : 0;
}

/*
 * The calls below are made with locks held. They use syscall(), as write() and read() are
 * cancellation points.
 */

bool sv_token_put(int writer)
{
	static const char token;

	return syscall(SYS_write, writer, &token, 1) == 1;
}

void sv_token_drop(const struct sv_tokens *tokens)
{
	char token;

	syscall(SYS_read, tokens->writer, &token, 1);
}
