/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * The short locks of udapl (util/lock.h) in the order in which a thread acquires them; those of a device in user space come
 * after them and have ranks from 32 on. docs/architecture.md has this table; test/check-locks compares the two.
 */
#ifndef DAPL_LOCK_RANK_H
#define DAPL_LOCK_RANK_H

enum dapl_lock_rank {
	RANK_EP_POST = 1, /* EP post: the ring of posted requests */
	RANK_EP_RECV = 2, /* EP recv: the ring of posted receives */
	RANK_EVD = 3, /* EVD: queue, CQ, waiter, the EPs whose ending waits for room; never two */
	RANK_RMR_BOUND = 4, /* all RMRs: what each is bound to; a completion may end a binding */
	RANK_SRQ = 5,	    /* SRQ: its slots */
};

#endif
