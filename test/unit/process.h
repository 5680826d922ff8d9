/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * A second process for a test: a forked child that exchanges numbers with its parent; every wait
 * has a deadline.
 */
#ifndef PROCESS_H
#define PROCESS_H

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include "test/unit/unit.h"
#include "util/clock.h"

/*
 * The thread sanitizer does not support a child that was forked from several threads and starts
 * threads.
 */
#ifdef __SANITIZE_THREAD__
#define PROCESS_TSAN 1
#else
#define PROCESS_TSAN 0
#endif

/*
 * Under gcc's address sanitizer, a child that was forked beside threads that never sleep cannot allocate: unit.c.
 */
#ifdef __SANITIZE_ADDRESS__
#define PROCESS_ASAN 1
#else
#define PROCESS_ASAN 0
#endif

struct process {
	pid_t pid;
	int fd; /* socket to the other process; for the child see process_start */
};

static inline bool process_say(int fd, uint64_t value)
{
	return send(fd, &value, sizeof(value), MSG_NOSIGNAL) == sizeof(value);
}

static inline bool process_hear(int fd, uint64_t *value)
{
	struct pollfd poll_fd = { .fd = fd, .events = POLLIN };
	int ready;

	do /* again after a signal handler */
		ready = poll(&poll_fd, 1, UNIT_PATIENCE);
	while (ready < 0 && errno == EINTR);
	return ready == 1 && recv(fd, value, sizeof(*value), 0) == sizeof(*value);
}

/* Waits for one number and discards it; returns false at the deadline. */
static inline bool process_sync(int fd)
{
	uint64_t value;

	return process_hear(fd, &value);
}

/*
 * Forks a child that calls `run` with its end of the socket; the result of `run` is the exit
 * status, 0 for success. The child is killed when its parent ends.
 */
static inline bool process_start(struct process *process, int (*run)(int fd, void *arg), void *arg)
{
	pid_t parent = getpid();
	int fds[2];

	process->pid = process->fd = -1;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, fds))
		return false;
	process->fd = fds[0];
	process->pid = fork();
	if (!process->pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() != parent)
			_exit(99);
		close(fds[0]);
		_exit(run(fds[1], arg));
	}
	close(fds[1]);
	return process->pid > 0;
}

/*
 * Waits for the child. Returns its exit status, 1000 plus the signal that ended it, or -1 if it had
 * to be killed at the deadline.
 */
static inline int process_end(struct process *process)
{
	uint64_t deadline = clock_now() + UNIT_PATIENCE * NSEC_PER_MSEC;
	struct pollfd poll_fd = { .fd = process->fd };
	int status;
	pid_t done;

	poll(&poll_fd, 1, UNIT_PATIENCE); /* POLLHUP when the child's end is closed */
	while (!(done = waitpid(process->pid, &status, WNOHANG)) && clock_now() < deadline)
		sched_yield();
	if (!done) {
		kill(process->pid, SIGKILL);
		waitpid(process->pid, &status, 0);
	}
	close(process->fd);
	if (!done)
		return -1;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

static inline void process_kill(struct process *process)
{
	kill(process->pid, SIGKILL);
	waitpid(process->pid, NULL, 0);
	close(process->fd);
}

#endif
