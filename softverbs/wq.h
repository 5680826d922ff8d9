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
	uint32_t post_mask, post_shift; /* of the ring in which they are posted */
	uint32_t limit;			/* receives that may be posted at once: 0 or mask + 1 */
	uint32_t max_sge;
	uint32_t posted;
	/* of `posted`, as in its entry; a line of those has one lap */
	uint64_t lap;
	uint32_t pd;
	struct ro_region *regions;
	_Atomic(uint64_t) *post;
	struct ibv_sge *sge;	 /* max_sge for each slot */
	uint64_t *wr_id;	 /* by slot */
	struct landing *landing; /* by slot */
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

/* The next entry is number n. */
static inline void wq_continue(struct sv_wq *wq, uint32_t n)
{
	wq->posted = n;
	wq->lap = post_pack(ring_lap(n, wq->post_shift), 0, 0);
}

/* Entry n, of a slot whose SGEs are written; with POST_BAD for one that cannot be filled. */
static inline __attribute__((always_inline)) void wq_publish_locked(struct sv_wq *wq, uint32_t n,
								    uint32_t slot, uint32_t length)
{
	/* With each line of the ring. Senders read the next one a lap ago, and still have it. */
	if (unlikely(!(n & 7))) {
		wq_continue(wq, n);
		fetch_to_write((const void *)&wq->post[(n + 8) & wq->post_mask]);
	}
	wq->posted = n + 1;
	/* release: senders that see the lap see the SGEs */
	atomic_store_explicit(&wq->post[n & wq->post_mask], wq->lap | post_pack(0, slot, length),
			      memory_order_release);
}

/* The same as wq_put_locked, whatever it is. */
int wq_put_any_locked(struct sv_wq *wq, uint32_t n, uint32_t slot, const struct ibv_recv_wr *wr);

/* Writes the work request into a free slot and makes it entry n, the next one. 0 or EINVAL. */
static inline __attribute__((always_inline)) int wq_put_locked(struct sv_wq *wq, uint32_t n,
							       uint32_t slot,
							       const struct ibv_recv_wr *wr)
{
	const struct ibv_sge *sge = wr->sg_list;
	const struct ro_region *region;
	uint32_t length, lkey;
	uint64_t addr, va;

	if (unlikely(wr->num_sge != 1 || wq->max_sge != 1))
		return wq_put_any_locked(wq, n, slot, wr);
	/* Member by member: just written so by the consumer, wider loads would wait for its stores. */
	addr = sge->addr;
	length = sge->length;
	lkey = sge->lkey;
	region = &wq->regions[lkey >> 16];
	if (unlikely(!length ||
		     !region_allows(wq->regions, lkey, wq->pd, addr, length, IBV_ACCESS_LOCAL_WRITE,
				    &va) ||
		     !atomic_load_explicit(&region->received, memory_order_relaxed)))
		return wq_put_any_locked(wq, n, slot, wr);
	wq->sge[slot].addr = addr;
	wq->sge[slot].length = length;
	wq->sge[slot].lkey = lkey;
	wq->wr_id[slot] = wr->wr_id;
	wq_publish_locked(wq, n, slot, length);
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
