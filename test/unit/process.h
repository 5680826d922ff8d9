/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * A second process for a test: started by fork, spoken to in numbers, never waited for without a
 * deadline.
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
 * The thread sanitizer cannot follow a child that was forked from several threads and starts
 * threads itself.
 */
#ifdef __SANITIZE_THREAD__
#define PROCESS_TSAN 1
#else
#define PROCESS_TSAN 0
#endif

struct process {
	pid_t pid;
	int fd; /* to the other one; the child's own end in the child */
};

static inline bool process_say(int fd, uint64_t value)
{
	return send(fd, &value, sizeof(value), MSG_NOSIGNAL) == sizeof(value);
}

static inline bool process_hear(int fd, uint64_t *value)
{
	struct pollfd poll_fd = { .fd = fd, .events = POLLIN };

	return poll(&poll_fd, 1, UNIT_PATIENCE) == 1 &&
	       recv(fd, value, sizeof(*value), 0) == sizeof(*value);
}

/* Waits for one number and drops it. */
static inline bool process_sync(int fd)
{
	uint64_t value;

	return process_hear(fd, &value);
}

/*
 * Runs `run` in a child; what it returns is the child's exit status, 0 for success. The child dies
 * with its parent.
 */
static inline bool process_start(struct process *process, int (*run)(int fd, void *arg), void *arg)
{
	pid_t parent = getpid();
	int fds[2];

	process->pid = process->fd = -1;
	/* memory checkers search all of it, in either process */
	setenv("SOFTVERBS_AREA_MB", "32", 0);
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

/* The exit status, 1000 + signal, or -1 when it does not end in time; then it is killed. */
static inline int process_end(struct process *process)
{
	uint64_t deadline = clock_now() + UNIT_PATIENCE * NSEC_PER_MSEC;
	struct pollfd poll_fd = { .fd = process->fd };
	int status;
	pid_t done;

	poll(&poll_fd, 1, UNIT_PATIENCE); /* its end hangs up */
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
