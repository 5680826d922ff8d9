/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* The last steps of a message, and a short one whole: in the caller's own code, for each counts there. */
#ifndef SV_SEND_H
#define SV_SEND_H

#include "softverbs/copy.h"
#include "softverbs/region.h"
#include "softverbs/tx.h"

#define AHEAD 8u /* messages: some 200 ns, a few transfers of a line */

/*
 * Into a landing, and what does not fit there into its tail. That first: the receiver looks at the
 * landing all the time, and would take the line away before its number is in it.
 */
static inline void land_put(struct sv_tx *tx, uint32_t slot, const void *from, uint32_t length)
{
	uint8_t *to = tx->landing[slot].data;

	if (likely(length <= SV_LAND)) {
		copy_small(to, from, length);
		return;
	}
	memcpy(landing_tail(tx->landing, tx->mask, slot)->data, (const uint8_t *)from + SV_LAND,
	       length - SV_LAND);
	memcpy(to, from, SV_LAND);
}

static inline void message_publish(struct sv_tx *tx, uint32_t slot, uint64_t what,
				   uint32_t byte_len)
{
	struct landing *landing = &tx->landing[slot];
	uint32_t seq = tx->seq++;

	atomic_store_explicit(&landing->what, what, memory_order_relaxed);
	/* release: all of the message before its number; from here on it is accepted */
	atomic_store_explicit(&landing->head, (uint64_t)byte_len << 32 | (seq + 1),
			      memory_order_release);
	atomic_store_explicit(&tx->rw->seq, seq + 1, memory_order_relaxed);
	if (unlikely(tx->arrival)) {
		atomic_store_explicit(&tx->arrival[seq & tx->mask],
				      ring_lap(seq, tx->shift) << 16 | slot, memory_order_release);
		/*
		 * release: not before the arrival; in this order, so that there is never an intent
		 * alone
		 */
		atomic_store_explicit(&tx->rw->intent, 0, memory_order_release);
		atomic_store_explicit(&tx->rw->held, 0, memory_order_release);
	}
}

/* Of a queue that is no SRQ: the next receive, and its slot. */
static inline bool receive_next(const struct sv_tx *tx, uint32_t *slot, uint64_t *entry)
{
	*slot = tx->seq & tx->mask;
	if (!(tx->seq & 7))
		__builtin_prefetch((const void *)&tx->post[(tx->seq + 8) & tx->post_mask]);
	/* acquire: pairs with wq_put_locked */
	*entry = atomic_load_explicit(&tx->post[tx->seq & tx->post_mask], memory_order_acquire);
	return post_is_lap(*entry, ring_lap(tx->seq, tx->post_shift));
}

static inline enum landing_op send_op(enum ibv_wr_opcode opcode)
{
	return opcode == IBV_WR_SEND		? LAND_SEND
	       : opcode == IBV_WR_SEND_WITH_IMM ? LAND_SEND_IMM
						: LAND_SEND_INV;
}

/* From one buffer into a landing. */
static inline bool send_is_short(const struct sv_qp *qp, const struct ibv_send_wr *wr)
{
	return wr->num_sge == 1 &&
	       (wr->opcode == IBV_WR_SEND || wr->opcode == IBV_WR_SEND_WITH_IMM) &&
	       wr->sg_list->length <= SV_INLINE &&
	       (!(wr->send_flags & IBV_SEND_INLINE) || wr->sg_list->length <= qp->sq.max_inline);
}

/* The steps of send_execute_locked for such a one, and nothing else. False: something stands against it. */
static inline bool send_short_locked(struct sv_qp *qp, const struct ibv_send_wr *wr)
{
	const struct ibv_sge *sge = wr->sg_list;
	uint32_t slot, length = sge->length;
	struct sv_tx *tx = &qp->tx;
	uint64_t va = sge->addr, entry;

	if (!(wr->send_flags & IBV_SEND_INLINE) && length &&
	    unlikely(!region_allows(qp->regions, sge->lkey, qp->pd, va, length, REGION_LOCAL, &va)))
		return false;
	if (unlikely(!tx->epoch || tx->arrival))
		return false;
	window_enter(tx);
	if (unlikely(!window_is_open(tx) || !receive_next(tx, &slot, &entry) ||
		     post_is_bad(entry) || length > (uint32_t)entry)) {
		window_leave(tx);
		return false;
	}
	land_put(tx, slot, (const void *)(uintptr_t)va, length);
	/* In a stream the receiver, or what its processor fetches ahead, still has those lines. */
	fetch_to_write(&tx->landing[(tx->seq + AHEAD) & tx->mask]);
	message_publish(tx, slot, landing_what(send_op(wr->opcode), LAND_INLINE, wr->imm_data),
			length);
	window_leave(tx);
	qp->sq.told++;
	qp->sq.told_solicited |= (wr->send_flags & IBV_SEND_SOLICITED) != 0;
	return true;
}

#endif
