/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * The short locks of softverbs (util/lock.h) in the order in which a thread acquires them. docs/architecture.md has this
 * table; test/check-locks compares the two.
 */
#ifndef SV_BASE_LOCK_RANK_H
#define SV_BASE_LOCK_RANK_H

#include "util/lock.h"

enum sv_lock_rank {
	/* The resize of an SRQ holds those of all its CQs. */
	SV_RANK_CQ = 32 | LOCK_RANK_SEVERAL, /* CQ: its ring, and what polls change in its QPs */
	SV_RANK_SQ = 33,		     /* send queue: posted requests and their execution */
	SV_RANK_UD_RING = 34, /* UD ring: datagrams that arrive, the receiving side of UD QPs */
	SV_RANK_WQ = 35,      /* receive queue, SRQ: posted receives */
	SV_RANK_OUTBOX = 36,  /* outbox: datagrams to one process */
};

#endif
