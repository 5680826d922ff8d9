/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Counters of IAs, EPs and EVDs. They only grow; a reset stores the present value in `base`, which only readers use. */
#ifndef DAPL_COUNTERS_H
#define DAPL_COUNTERS_H

#include <stdatomic.h>
#include <stdint.h>
#include <dat2/udat.h>
#include <dat2/dat_ib_extensions.h>

/* Of an IA: any thread adds to them, without a lock. */
struct ia_counters {
	_Atomic uint64_t value[DCNT_IA_ALL_COUNTERS];
	uint64_t base[DCNT_IA_ALL_COUNTERS];
};

/* Of EPs and EVDs: written and read under the lock that guards the counted action (ext/counters.c). */
struct ep_counters {
	uint64_t value[DCNT_EP_ALL_COUNTERS]; /* by ep_counter_at */
	uint64_t base[DCNT_EP_ALL_COUNTERS];
};

/* Those of messages and of writes share a cache line. That of the data follows that of the messages, as in the enum. */
static inline unsigned ep_counter_at(unsigned which)
{
	static const unsigned char at[DCNT_EP_ALL_COUNTERS] = {
		[DCNT_EP_POST_SEND] = 0,
		[DCNT_EP_POST_SEND_DATA] = 1,
		[DCNT_EP_POST_RECV] = 2,
		[DCNT_EP_POST_RECV_DATA] = 3,
		[DCNT_EP_RECV] = 4,
		[DCNT_EP_RECV_DATA] = 5,
		[DCNT_EP_POST_WRITE] = 6,
		[DCNT_EP_POST_WRITE_DATA] = 7,
		[DCNT_EP_POST_READ] = 8,
		[DCNT_EP_POST_READ_DATA] = 9,
		[DCNT_EP_POST_WRITE_IMM] = 10,
		[DCNT_EP_POST_WRITE_IMM_DATA] = 11,
		[DCNT_EP_RECV_RDMA_IMM] = 12,
		[DCNT_EP_RECV_RDMA_IMM_DATA] = 13,
		[DCNT_EP_POST_CMP_SWAP] = 14,
		[DCNT_EP_POST_FETCH_ADD] = 15,
		[DCNT_EP_POST_SEND_UD] = 16,
		[DCNT_EP_POST_SEND_UD_DATA] = 17,
		[DCNT_EP_RECV_UD] = 18,
		[DCNT_EP_RECV_UD_DATA] = 19,
		[DCNT_EP_RECV_IMM] = 20,
		[DCNT_EP_RECV_IMM_DATA] = 21,
		[DCNT_EP_CONNECT] = 22,
		[DCNT_EP_DISCONNECT] = 23,
	};

	return at[which];
}

/*
 * A counter that is the sum of others is not kept. The number of dequeue calls is the sum of those
 * that found an event and those that did not; the number of polls kept here is of those that found
 * nothing.
 */
struct evd_counters {
	uint64_t value[DCNT_EVD_ALL_COUNTERS], base[DCNT_EVD_ALL_COUNTERS];
};

static inline void counter_add(_Atomic uint64_t *value, uint64_t more)
{
	atomic_fetch_add_explicit(value, more, memory_order_relaxed);
}

#endif
