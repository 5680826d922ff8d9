/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* A queue of posted receives, a QP's own or shared: its entries, and how one is written. */
#ifndef SV_WQ_H
#define SV_WQ_H

#include "softverbs/area.h"
#include "softverbs/region.h"

struct sv_wq {
	/* guards posted and the entries that no sender can see; first: see wq_exchange */
	struct lock lock;
	uint32_t mask, shift;		/* of slots, 1 << shift */
	uint32_t post_mask, post_shift;	/* of the ring in which they are posted */
	uint32_t limit;			/* receives that may be posted at once: 0 or mask + 1 */
	uint32_t max_sge;
	uint32_t posted;
	uint32_t pd;
	struct ro_region *regions;
	_Atomic(uint64_t) *post;
	struct ibv_sge *sge;		/* max_sge for each slot */
	uint64_t *wr_id;		/* by slot */
	struct landing *landing;	/* by slot */
	uint64_t post_offset, sge_offset, landing_offset;
};

/* Memory for at least `entries`; limit, max_sge and offsets as granted. 0 or ENOMEM. */
int wq_open(struct sv_wq *wq, uint32_t entries, uint32_t max_sge, uint32_t pd);
/*
 * Accepts one half open. `lost`: a stopped process may still write there, so the memory is not used
 * again.
 */
void wq_close(struct sv_wq *wq, bool lost);
/* Empty again, as after wq_open; nobody else uses it. */
void wq_reset(struct sv_wq *wq);

/* The same queue with the memory and the entries of the other; both locks stay what they are. */
void wq_exchange(struct sv_wq *wq, struct sv_wq *other);

static inline bool wq_may_receive(const struct sv_wq *wq, const struct ibv_sge *sge)
{
	uint64_t va;

	return !sge->length || region_allows(wq->regions, sge->lkey, wq->pd, sge->addr, sge->length,
					     IBV_ACCESS_LOCAL_WRITE, &va);
}

/* Withdrawing the region will have to look for such receives; most regions have none. */
static inline void wq_note_receive(const struct sv_wq *wq, uint32_t lkey)
{
	struct ro_region *region = &wq->regions[lkey >> 16];

	if (unlikely(!atomic_load_explicit(&region->received, memory_order_relaxed)))
		atomic_store_explicit(&region->received, 1, memory_order_relaxed);
}

/* The entry of a slot whose SGEs are written. */
static inline void wq_publish_locked(struct sv_wq *wq, uint32_t slot, uint32_t bad, uint32_t length,
				     uint64_t wr_id)
{
	uint32_t n = wq->posted++;

	wq->wr_id[slot] = wr_id;
	/* release: senders that see the lap see the SGEs */
	atomic_store_explicit(&wq->post[n & wq->post_mask],
			      post_pack(ring_lap(n, wq->post_shift), slot | bad, length),
			      memory_order_release);
	if (!(wq->posted & 7))
		__builtin_prefetch((const void *)&wq->post[(wq->posted + 8) & wq->post_mask], 1);
}

/* The same as wq_put_locked, for any number of SGEs. */
int wq_put_any_locked(struct sv_wq *wq, uint32_t slot, const struct ibv_recv_wr *wr);

/* Writes the work request into a free slot and makes it the next entry. 0 or EINVAL. */
static inline int wq_put_locked(struct sv_wq *wq, uint32_t slot, const struct ibv_recv_wr *wr)
{
	const struct ibv_sge *sge = wr->sg_list;
	uint32_t bad;

	if (unlikely(wr->num_sge != 1 || wq->max_sge != 1))
		return wq_put_any_locked(wq, slot, wr);
	bad = likely(wq_may_receive(wq, sge)) ? 0 : POST_BAD;
	wq_note_receive(wq, sge->lkey);
	wq->sge[slot] = *sge;
	wq_publish_locked(wq, slot, bad, sge->length, wr->wr_id);
	return 0;
}

/*
 * The region of that key is another now, or gone: senders that come from here on see which receives
 * can still be filled.
 */
void wq_look_again(struct sv_wq *wq, uint32_t lkey);

/* Posted and not yet given back, if `head` is the oldest. */
uint32_t wq_count(struct sv_wq *wq, uint32_t head);

static inline uint64_t wq_entry(const struct sv_wq *wq, uint32_t n)
{
	/* acquire: what was written for it before */
	return atomic_load_explicit(&wq->post[n & wq->post_mask], memory_order_acquire);
}

/* Whether the nth posting, as wq_entry gives it, was made. */
static inline bool wq_is_posted(const struct sv_wq *wq, uint64_t entry, uint32_t n)
{
	return post_is_lap(entry, ring_lap(n, wq->post_shift));
}

static inline uint32_t round_up_pow2(uint32_t n)
{
	return n <= 1 ? 1 : 1u << (32 - __builtin_clz(n - 1));
}

#endif
