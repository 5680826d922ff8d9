/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* How a thread sleeps in this provider: on descriptors, to a deadline, cancellable, woken by signals. */
#ifndef DAPL_SLEEP_H
#define DAPL_SLEEP_H

#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <dat2/udat.h>

/* What a look says when the thread has to go on waiting; no status has this value. */
#define WAIT_ON ((DAT_RETURN)UINT32_MAX)

/*
 * One wait. From sleep_begin to sleep_end the thread cannot be cancelled but in sleep_on, where it
 * holds no lock; `leave` then gives up what it holds besides.
 */
struct sleeper {
	uint64_t deadline; /* computed once; CLOCK_NEVER */
	void (*leave)(void *arg);
	void *arg;
	int cancel_state; /* the consumer's */
	nfds_t count;
	struct pollfd fds[2];
};

void sleep_begin(struct sleeper *self, DAT_TIMEOUT timeout);
void sleep_end(const struct sleeper *self);
bool sleep_is_over(const struct sleeper *self); /* the deadline has passed */
/* Until a descriptor is ready, the deadline, or a signal. 0, or errno: EINTR for a signal. */
int sleep_on(struct sleeper *self);

#endif
