/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* The common part of dat_evd_wait and dat_cno_wait: the loop, blocking, cancellation and interruption. */
#ifndef DAPL_WAIT_H
#define DAPL_WAIT_H

#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <dat2/udat.h>
#include <dat2/dat_event_extensions.h>

/* The waiter continues to wait; no DAT status has this value. */
#define WAIT_ON ((DAT_RETURN)UINT32_MAX)

struct wait;

/*
 * The operations of the object in the loop. They are called and return with the object's lock held.
 * Each returns WAIT_ON, or the status that ends the wait.
 */
struct wait_ops {
	DAT_RETURN (*poll_locked)(struct wait *wait);
	/*
	 * Asks for a notification of the next event, and polls once more. NULL if poll_locked does
	 * that.
	 */
	DAT_RETURN (*arm_locked)(struct wait *wait);
	/*
	 * Called without the lock between two polls of a thread that does not block yet:
	 * wait_relax, wait_break.
	 */
	DAT_RETURN (*pause_locked)(struct wait *wait);
	/* Blocks without the lock: wait_block. */
	DAT_RETURN (*block_locked)(struct wait *wait);
	/* Called without the lock if the thread is cancelled: releases what the waiter holds. */
	void (*leave)(struct wait *wait);
};

/*
 * One wait, the first member of the object's own struct. The caller sets `ops`, `policy`, `spin`,
 * `count` and `fds`, and sets `cancel` to the result of cancel_off. Until cancel_restore the thread
 * can be cancelled only in wait_block and wait_break, where it holds no lock.
 */
struct wait {
	const struct wait_ops *ops;
	DAT_EV_WAIT_POLICY policy;
	uint64_t spin;	   /* nanoseconds before the thread first blocks */
	uint64_t deadline; /* computed once; CLOCK_NEVER if there is none */
	uint64_t next_break;
	bool polls;	      /* the thread polls and does not block yet */
	bool signals_held;    /* signals are blocked except in ppoll */
	sigset_t signal_mask; /* the consumer's signal mask, if they are */
	int cancel;	      /* the consumer's cancel type; util/cancel.h */
	nfds_t count;
	struct pollfd fds[3];
};

void wait_begin(struct wait *self, DAT_TIMEOUT timeout);
void wait_end(struct wait *self);
DAT_RETURN wait_run_locked(struct wait *self); /* runs the loop; never returns WAIT_ON */
bool wait_is_over(const struct wait *self);    /* true after the deadline */

/* The functions below are called without the lock. */

/*
 * Blocks until a descriptor is ready, the deadline has passed, or a signal comes. Returns 0, or
 * errno: EINTR for a signal.
 */
int wait_block(struct wait *self);
/* The same by a call in place of ppoll, which is a cancellation point; NULL: without a limit. It may return early. */
typedef int wait_by(struct wait *self, const struct timespec *timeout);
int wait_block_by(struct wait *self, wait_by *by);
/* Pauses once, as the policy says. */
void wait_relax(const struct wait *self);
/*
 * For a thread that polls: from time to time, the point at which it can be cancelled and
 * interrupted; blocks for that many nanoseconds, less than a second, or not at all. Returns 0, or
 * errno as wait_block does.
 */
int wait_break(struct wait *self, uint64_t nanoseconds);
bool wait_break_is_due(const struct wait *self);

#endif
