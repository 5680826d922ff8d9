/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* A sender's claim to a receive of its peer's SRQ. */
#include "softverbs/object/srq.h"
#include "softverbs/rc/rc.h"
#include "softverbs/rc/remote_rq.h"

static void limit_reached(struct sv_remote_rq *remote, uint32_t round)
{
	uint32_t fired = atomic_load_explicit(&remote->srq->limit_round, memory_order_relaxed);

	if (fired == round ||
	    !atomic_compare_exchange_strong_explicit(&remote->srq->limit_round, &fired, round,
						     memory_order_relaxed, memory_order_relaxed))
		return;
	sv_attention_set(remote->peer->by_peers->attention.srq, remote->srq_index);
	sv_peer_ring(remote->peer);
}

bool sv_srq_claim(struct sv_remote_rq *remote, uint64_t *entry)
{
	uint32_t claim = atomic_load_explicit(&remote->srq->claim, memory_order_relaxed), slot,
		 limit;

	do {
		/* acquire: pairs with wq_put_locked */
		*entry = atomic_load_explicit(&remote->post[claim & remote->post_mask],
					      memory_order_acquire);
		if (!post_is_lap(*entry, ring_lap(claim, remote->post_shift))) {
			uint32_t now =
				atomic_load_explicit(&remote->srq->claim, memory_order_relaxed);

			if (now == claim) {
				atomic_store_explicit(&remote->by_peers->intent, 0,
						      memory_order_release);
				return false;
			}
			claim = now;
			continue;
		}
		/*
		 * The owner's search must know of a slot from its claim on, also if this process is
		 * stopped or ends right after it. release: the arrival of the last message before
		 */
		slot = (post_slot(*entry) & remote->mask) + 1;
		atomic_store_explicit(&remote->by_peers->intent, slot, memory_order_release);
		/* release: the intent is stored before the claim; acquire: no other sender has the slot */
		if (atomic_compare_exchange_weak_explicit(&remote->srq->claim, &claim, claim + 1,
							  memory_order_acq_rel,
							  memory_order_relaxed))
			break;
	} while (true);
	/* release: after the claim. From here on the slot may be written to, see slot_taker */
	atomic_store_explicit(&remote->by_peers->held, slot, memory_order_release);
	limit = atomic_load_explicit(&remote->srq_by_owner->limit, memory_order_relaxed);
	if (unlikely(limit) &&
	    atomic_load_explicit(&remote->srq_by_owner->posted, memory_order_relaxed) -
			    (claim + 1) <
		    limit)
		limit_reached(remote, atomic_load_explicit(&remote->srq_by_owner->limit_round,
							   memory_order_relaxed));
	return true;
}
