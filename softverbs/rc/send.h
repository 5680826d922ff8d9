/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * The last steps of a message, and the whole of a short one: inline, since they are the fast path
 * of a post.
 */
#ifndef SV_RC_SEND_H
#define SV_RC_SEND_H

#include "softverbs/rc/copy.h"
#include "softverbs/object/region.h"
#include "softverbs/rc/remote_rq.h"
#include "softverbs/rc/request.h"

#define AHEAD 8u /* messages: about 200 ns, a few transfers of a line */

/*
 * Copies the payload into a receive slot, and what exceeds SV_SLOT_INLINE into its rx_slot_ext.
 * The extension is written first: the receiver polls the slot, and would take the line away
 * before the message number is in it.
 */
static inline void rx_slot_fill(struct sv_remote_rq *remote, uint32_t slot, const void *from,
				uint32_t length)
{
	uint8_t *to = remote->rx_slot[slot].data;

	if (likely(length <= SV_SLOT_INLINE)) {
		copy_small(to, from, length);
		return;
	}
	memcpy(rx_slot_ext(remote->rx_slot, remote->mask, slot)->data,
	       (const uint8_t *)from + SV_SLOT_INLINE, length - SV_SLOT_INLINE);
	memcpy(to, from, SV_SLOT_INLINE);
}

static inline void message_publish(struct sv_remote_rq *remote, uint32_t slot, uint64_t what,
				   uint32_t byte_len)
{
	struct rx_slot *rx_slot = &remote->rx_slot[slot];
	uint32_t seq = remote->seq++;

	atomic_store_explicit(&rx_slot->what, what, memory_order_relaxed);
	/* release: the whole message before its number; the receiver accepts it from here on */
	atomic_store_explicit(&rx_slot->head, (uint64_t)byte_len << 32 | (seq + 1),
			      memory_order_release);
	atomic_store_explicit(&remote->by_peers->seq, seq + 1, memory_order_relaxed);
	if (unlikely(remote->arrival)) {
		atomic_store_explicit(&remote->arrival[seq & remote->mask],
				      ring_lap(seq, remote->shift) << 16 | slot,
				      memory_order_release);
		/*
		 * release: after the arrival. `intent` is cleared first, so that it is never set
		 * alone.
		 */
		atomic_store_explicit(&remote->by_peers->intent, 0, memory_order_release);
		atomic_store_explicit(&remote->by_peers->held, 0, memory_order_release);
	}
}

/* Without an SRQ: the next receive and its slot. False if it is not posted. */
static inline bool receive_next(const struct sv_remote_rq *remote, uint32_t *slot, uint64_t *entry)
{
	*slot = remote->seq & remote->mask;
	if (!(remote->seq & 7))
		__builtin_prefetch(
			(const void *)&remote->post[(remote->seq + 8) & remote->post_mask]);
	/* acquire: pairs with wq_publish_locked */
	*entry = atomic_load_explicit(&remote->post[remote->seq & remote->post_mask],
				      memory_order_acquire);
	return post_is_lap(*entry, ring_lap(remote->seq, remote->post_shift));
}

static inline enum rx_slot_op send_op(enum ibv_wr_opcode opcode)
{
	return opcode == IBV_WR_SEND		? RX_SEND
	       : opcode == IBV_WR_SEND_WITH_IMM ? RX_SEND_IMM
						: RX_SEND_INV;
}

/* Whether the fast path takes the request: one buffer, short enough for a receive slot. */
static inline bool send_is_fast(const struct sv_qp *qp, const struct ibv_send_wr *wr)
{
	return wr->num_sge == 1 &&
	       (wr->opcode == IBV_WR_SEND || wr->opcode == IBV_WR_SEND_WITH_IMM) &&
	       wr->sg_list->length <= SV_INLINE &&
	       (!(wr->send_flags & IBV_SEND_INLINE) || wr->sg_list->length <= qp->sq.max_inline);
}

/*
 * sv_send_execute_locked for such a request. False if something prevents it; then nothing has
 * been done.
 */
static inline bool send_fast_locked(struct sv_qp *qp, const struct ibv_send_wr *wr)
{
	const struct ibv_sge *sge = wr->sg_list;
	uint32_t slot, length = sge->length;
	struct sv_remote_rq *remote = &qp->remote_rq;
	uint64_t va = sge->addr, entry;

	if (!(wr->send_flags & IBV_SEND_INLINE) && length &&
	    unlikely(!region_allows(qp->regions, sge->lkey, qp->pd, va, length, REGION_LOCAL, &va)))
		return false;
	if (unlikely(!remote->epoch || remote->arrival))
		return false;
	epoch_enter(remote);
	if (unlikely(!epoch_is_current(remote) || !receive_next(remote, &slot, &entry) ||
		     post_is_bad(entry) || length > (uint32_t)entry)) {
		epoch_leave(remote);
		return false;
	}
	rx_slot_fill(remote, slot, (const void *)(uintptr_t)va, length);
	/*
	 * In a stream, the receiver's cache still has those lines, or its processor has
	 * prefetched them.
	 */
	fetch_to_write(&remote->rx_slot[(remote->seq + AHEAD) & remote->mask]);
	message_publish(remote, slot, rx_slot_what(send_op(wr->opcode), RX_INLINE, wr->imm_data),
			length);
	epoch_leave(remote);
	qp->sq.notified++;
	qp->sq.notified_solicited |= (wr->send_flags & IBV_SEND_SOLICITED) != 0;
	return true;
}

#endif
