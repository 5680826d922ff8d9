/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* The thread that waits for events of an EVD, as wait.c and block.c of this folder see it. */
#ifndef DAPL_EVD_WAITER_H
#define DAPL_EVD_WAITER_H

#include "dapl/udapl/base/wait.h"
#include "dapl/udapl/evd/evd.h"

/* One thread inside a wait that does not succeed at once; it is the EVD's only waiter. */
struct waiter {
	/*
	 * blocks on `wake` and a channel: the CQ's if there is one, the CM's if this thread reads it; or on the CQ
	 * without its channel
	 */
	struct wait wait;
	struct dapl_evd *evd;
	DAT_EVENT *event;
	DAT_COUNT *more;
	bool on_cq; /* it blocks on the CQ itself, and on `wake` by the listener */
	struct wakefd_listener listener;
	bool reads_cm, may_read;
	bool reads, awaits; /* CM events; those that another thread reads */
	uint64_t pauses;
};

static inline struct waiter *evd_wait_waiter_of(struct wait *wait)
{
	return (struct waiter *)wait;
}

/* evd/block.c */
/* Blocks until an event may be there, with what the thread does on either side of that. */
DAT_RETURN evd_wait_block_locked(struct wait *wait);
/* A signal handler ran. Sets *more to the number of pending events. */
DAT_RETURN evd_wait_interrupted_locked(const struct waiter *self);
/* Ends a block on the CQ itself; does nothing after one on descriptors. Returns true if the CQ has fired. */
bool evd_wait_unblock(struct waiter *self);
/* The thread leaves the EVD, and reads no CM events any more. The caller holds no EVD lock. */
void evd_wait_read_end(struct waiter *self);

#endif
