/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* A queue of posted receives, of a QP or of an SRQ: its entries, and how one is posted. */
#ifndef SV_OBJECT_WQ_H
#define SV_OBJECT_WQ_H

#include "softverbs/object/area.h"
#include "softverbs/object/region.h"

struct sv_wq {
	/*
	 * Guards `posted` and the entries that no sender can see. The first member: see
	 * sv_wq_exchange.
	 */
	struct lock lock;
	uint32_t mask, shift;		/* of slots, of which there are 1 << shift */
	uint32_t post_mask, post_shift; /* of the post ring */
	uint32_t limit;			/* receives that may be posted at once: 0 or mask + 1 */
	uint32_t max_sge;
	uint32_t posted;
	/* The lap of `posted`, as in its entry. All entries of a cache line have the same lap. */
	uint64_t lap;
	uint32_t pd;
	struct region_entry *regions;
	_Atomic(uint64_t) *post;
	struct ibv_sge *sge;	 /* max_sge of them for each slot */
	uint64_t *wr_id;	 /* by slot */
	struct rx_slot *rx_slot; /* by slot */
	uint64_t post_offset, sge_offset, rx_slot_offset;
};

/*
 * Allocates memory for at least `entries` receives; sets limit, max_sge and the offsets as
 * granted. 0 or ENOMEM.
 */
int sv_wq_open(struct sv_wq *wq, uint32_t entries, uint32_t max_sge, uint32_t pd);
/*
 * Frees the memory; accepts a queue on which sv_wq_open failed. `lost`: a stopped process may
 * still write into the shared memory, so that memory is not freed.
 */
void sv_wq_close(struct sv_wq *wq, bool lost);
/* Empties the queue, as after sv_wq_open. No other thread uses it. */
void sv_wq_reset(struct sv_wq *wq);

/* Exchanges memory and entries of two queues. Each keeps its own lock. */
void sv_wq_exchange(struct sv_wq *wq, struct sv_wq *other);

/* Makes n the number of the next entry. */
static inline void wq_continue(struct sv_wq *wq, uint32_t n)
{
	wq->posted = n;
	wq->lap = post_pack(ring_lap(n, wq->post_shift), 0, 0);
}

/*
 * Posts entry n, for a slot whose SGEs are written; `slot` has POST_BAD if no sender can fill the
 * receive.
 */
static inline __attribute__((always_inline)) void wq_publish_locked(struct sv_wq *wq, uint32_t n,
								    uint32_t slot, uint32_t length)
{
	/*
	 * Once for each line of the ring: senders read the next line one lap ago, and may still
	 * have it in their cache.
	 */
	if (unlikely(!(n & 7))) {
		wq_continue(wq, n);
		fetch_to_write((const void *)&wq->post[(n + 8) & wq->post_mask]);
	}
	wq->posted = n + 1;
	/* release: senders that acquire the lap in receive_next see the SGEs */
	atomic_store_explicit(&wq->post[n & wq->post_mask], wq->lap | post_pack(0, slot, length),
			      memory_order_release);
}

/* The slow path of wq_put_locked: any work request. */
int sv_wq_put_slow_locked(struct sv_wq *wq, uint32_t n, uint32_t slot,
			  const struct ibv_recv_wr *wr);

/* Writes the work request into a free slot and posts it as entry n, the next one. 0 or EINVAL. */
static inline __attribute__((always_inline)) int wq_put_locked(struct sv_wq *wq, uint32_t n,
							       uint32_t slot,
							       const struct ibv_recv_wr *wr)
{
	const struct ibv_sge *sge = wr->sg_list;
	const struct region_entry *region;
	uint32_t length, lkey;
	uint64_t addr, va;

	if (unlikely(wr->num_sge != 1 || wq->max_sge != 1))
		return sv_wq_put_slow_locked(wq, n, slot, wr);
	/*
	 * Member by member, as the consumer just wrote them: wider loads would stall on its
	 * stores.
	 */
	addr = sge->addr;
	length = sge->length;
	lkey = sge->lkey;
	region = &wq->regions[lkey >> 16];
	if (unlikely(!length ||
		     !region_allows(wq->regions, lkey, wq->pd, addr, length, IBV_ACCESS_LOCAL_WRITE,
				    &va) ||
		     !atomic_load_explicit(&region->received, memory_order_relaxed)))
		return sv_wq_put_slow_locked(wq, n, slot, wr);
	wq->sge[slot].addr = addr;
	wq->sge[slot].length = length;
	wq->sge[slot].lkey = lkey;
	wq->wr_id[slot] = wr->wr_id;
	wq_publish_locked(wq, n, slot, length);
	return 0;
}

/* A change of a region, for the receives that name it. */
struct wq_change {
	uint32_t lkey;
	/*
	 * The region will become `next`, or none if that is NULL. Otherwise the table has the
	 * change already.
	 */
	bool ahead;
	const struct region_entry *next; /* all fields except the key */
};

/*
 * Marks each posted receive as fillable or bad after the change. On return, senders see the
 * marks. With `ahead`, receives can only be marked bad.
 */
void sv_wq_recheck(struct sv_wq *wq, const struct wq_change *change);

/* The number of posted receives, if `head` is the oldest. */
uint32_t sv_wq_count(struct sv_wq *wq, uint32_t head);

static inline uint64_t wq_entry(const struct sv_wq *wq, uint32_t n)
{
	/* acquire: pairs with the release of wq_publish_locked */
	return atomic_load_explicit(&wq->post[n & wq->post_mask], memory_order_acquire);
}

/* Whether `entry`, as wq_entry returns it, is entry n: the nth receive was posted. */
static inline bool wq_is_posted(const struct sv_wq *wq, uint64_t entry, uint32_t n)
{
	return post_is_lap(entry, ring_lap(n, wq->post_shift));
}

static inline uint32_t round_up_pow2(uint32_t n)
{
	return n <= 1 ? 1 : 1u << (32 - __builtin_clz(n - 1));
}

#endif
