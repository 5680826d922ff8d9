/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Data transfer operations: the slots of posted WRs, their ids, and completions as events. */
#ifndef DAPL_DTO_H
#define DAPL_DTO_H

#include "dapl/udapl/base/ia.h"
#include "dapl/udapl/mem/mem.h"
#include "util/lock.h"

struct dapl_evd;

/* Operation of an internal request that makes no event, whether it succeeds or fails. */
#define DTO_MARKER 0xff
/* The same for the unbind of a window before its next bind; its failure breaks the connection. */
#define DTO_UNBIND 0xfe

/* dto_ring.signalled before the first post: the position before the first one. */
#define DTO_NONE_SIGNALLED UINT32_MAX

struct dto_slot {
	DAT_DTO_COOKIE cookie;
	uint8_t operation; /* DAT_DTOS */
	uint8_t flags;	   /* DAT_COMPLETION_*_FLAG of the post */
	uint8_t kind;
#define DTO_SILENT   1u /* success makes no event */
#define DTO_EXTENDED 2u /* its event is of an extension */
	uint8_t unused; /* one store writes all four bytes */
	/* bytes posted, for requests; index of the RMR, for a bind; 0 for receives */
	uint32_t length;
};

/*
 * Outstanding WRs of one side of an EP, in posting order. The poster writes `posted` under the EP's
 * post lock of that side. The thread that takes completions writes `retired` under the lock of the
 * EVD of that side. Each side reads the other's counter.
 */
struct dto_ring {
	_Alignas(OBJ_LINE) struct dto_slot *slots; /* power of two, at least depth */
	uint64_t base;				   /* dto_id of slot 0 */
	struct obj *ep;
	uint32_t mask, depth;
	uint32_t signalled; /* position of the last signalled request; the poster's */
	/* WRs that the fast path may leave outstanding (post/post.h); the poster's */
	uint32_t fast_depth;
	/* while `posted` is below this, fewer than fast_depth are outstanding */
	uint32_t fast_until;
	_Atomic uint32_t posted, retired;
};

/*
 * What the conversion of completions knows of an endpoint, DTO_END_AT bytes behind the beginning of its `obj`: between
 * the two is what posts read first.
 */
#define DTO_END_AT 128

/* What a message changes is in four cache lines: those of the rings, of the locks, and of the first counters. */
struct dto_end {
	struct dto_ring request, recv;
	struct lock post_lock, recv_lock; /* serialise posts of one side */
	bool datagrams;			  /* service type UD: see ep/ud.h; constant */
	/*
	 * True while the EP connects, and neither ESTABLISHED nor a terminal event is in the connect
	 * EVD yet. An EVD that also takes completions then holds the EP's completions back (evd/evd.h).
	 * ep_set_state_locked sets it on entry into ACTIVE_ and COMPLETION_PENDING, and clears it on
	 * return to UNCONNECTED; evd_post clears it with the connection event.
	 */
	atomic_bool unannounced;
	struct dapl_evd *connect_evd; /* the EP's lock */
	/*
	 * Counters of posts are guarded by the post lock of that side, those of receives by the lock of
	 * the receive EVD, the others by the EP's lock.
	 */
	struct ep_counters counters;
	struct rmr_scope rmrs; /* bound through this EP, with its scope */
	struct rmr_flights flights;
};

_Static_assert(offsetof(struct dto_end, post_lock) % OBJ_LINE == 0 &&
		       offsetof(struct dto_end, counters) % OBJ_LINE == 0,
	       "cache lines");

static inline struct dto_end *dto_end_of(const struct obj *ep)
{
	return (struct dto_end *)((uintptr_t)ep + DTO_END_AT);
}

/*
 * The slots of the receives of an SRQ. It follows the SRQ's `obj`. An event may outlive the SRQ, so it names its slot by
 * dto_id.
 */
struct dto_pool {
	/* Guards all below unless noted; acquired inside EVD locks; survives the SRQ, see obj_new. */
	struct lock lock;
	struct dto_slot *slots; /* constant, like their number */
	uint32_t slots_end;
	uint32_t *free_slots; /* a stack, because completions come out of order */
	uint32_t free_count;
	uint32_t fresh;	      /* the first slot that was never used */
	uint32_t outstanding; /* receives that are posted and whose event was not yet taken */
	uint32_t ready;	      /* those of them that have completed into events */
};

/* Returns NULL if the SRQ is freed. */
struct dto_pool *dto_pool_from_id(uint64_t id);
/* A completion became a queued event; its slot stays outstanding until the consumer takes that. */
void dto_pool_ready(uint64_t id);
void dto_pool_return(uint64_t id, bool was_ready);

/* `depth` in WRs; 0: nothing can be posted. */
DAT_RETURN dto_ring_init(struct dto_ring *ring, uint32_t depth);
/*
 * Acquires and releases the lock of that side's EVD (NULL: none): after return no thread converts a
 * completion with the ring.
 */
void dto_ring_free(struct dto_ring *ring, struct dapl_evd *evd);

static inline uint32_t dto_ring_outstanding(struct dto_ring *ring)
{
	/* acquire: a slot seen retired may be written again */
	return atomic_load_explicit(&ring->posted, memory_order_relaxed) -
	       atomic_load_explicit(&ring->retired, memory_order_acquire);
}

/* The number of WRs that may yet be posted. */
static inline uint32_t dto_ring_room(struct dto_ring *ring)
{
	return ring->depth - dto_ring_outstanding(ring);
}

/*
 * In DAT a segment of length 0 contributes nothing, and its address and key are ignored; with verbs,
 * some devices take it as 2^31 bytes. A list without such a segment is posted as it is; a list with
 * one, which is rare, is packed first. IB_SGE_MAX is the most that attributes allow of a list.
 */
struct dto_list {
	const DAT_LMR_TRIPLET *segments;
	unsigned count;
	uint64_t length; /* in total */
	DAT_LMR_TRIPLET packed[IB_SGE_MAX];
};

uint64_t dto_list_length(const DAT_LMR_TRIPLET *segments, unsigned count);
void dto_list_pack(struct dto_list *list, const DAT_LMR_TRIPLET *segments, unsigned count);

/* The list of every post: its length is parameter 2, its address parameter 3. A negative count is a large one. */
static inline DAT_RETURN list_check(unsigned count, const DAT_LMR_TRIPLET *segments, DAT_COUNT most)
{
	if (count > (unsigned)most)
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
	if (count && !segments)
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
	return DAT_SUCCESS;
}

/* The checked list of a post: at most `count` segments, none of length 0. */
static inline void dto_list_init(struct dto_list *list, const DAT_LMR_TRIPLET *segments,
				 unsigned count)
{
	list->segments = segments;
	list->count = count;
	if (count != 1 || !segments->segment_length)
		dto_list_pack(list, segments, count);
	else
		list->length = segments->segment_length;
}

/*
 * A wr_id names a slot, never a pointer: a completion that outlives its EP is recognised and
 * dropped. From its highest bit on it has the side, the low bits of the generation of the EP or SRQ, the index of that
 * object in its pool, and the slot.
 */
enum dto_side { DTO_REQUEST, DTO_RECV, DTO_SRQ, DTO_NO_SIDE };

#define DTO_SLOT_BITS	     24
#define DTO_INDEX_BITS	     OBJ_INDEX_BITS
#define DTO_GENERATION_BITS  18
#define DTO_SIDE_BITS	     2
#define DTO_INDEX_SHIFT	     DTO_SLOT_BITS
#define DTO_GENERATION_SHIFT (DTO_INDEX_SHIFT + DTO_INDEX_BITS)
#define DTO_SIDE_SHIFT	     (DTO_GENERATION_SHIFT + DTO_GENERATION_BITS)
#define DTO_MASK(name)	     ((1u << DTO_##name##_BITS) - 1)

_Static_assert(DTO_SIDE_SHIFT + DTO_SIDE_BITS == 64, "a wr_id has 64 bits");
_Static_assert(DTO_NO_SIDE == DTO_MASK(SIDE), "dto_no_ring has the id of no slot");
_Static_assert(IB_WR_MAX <= 1u << DTO_SLOT_BITS, "a wr_id can name each slot of the longest queue");

static inline uint32_t dto_generation(const struct obj *obj)
{
	return obj_generation(obj) & DTO_MASK(GENERATION);
}

static inline uint64_t dto_id(enum dto_side side, const struct obj *obj, uint32_t slot)
{
	return (uint64_t)side << DTO_SIDE_SHIFT |
	       (uint64_t)dto_generation(obj) << DTO_GENERATION_SHIFT |
	       (uint64_t)obj->index << DTO_INDEX_SHIFT | slot;
}

/* Sets the ids of an unused ring; they are valid for the EP's present generation. */
static inline void dto_ring_name(struct dto_ring *ring, enum dto_side side, struct obj *ep)
{
	ring->base = dto_id(side, ep, 0);
	ring->ep = ep;
}

/*
 * An EVD caches the ring of its last completion. The ids of a ring are base ^ slot, so one comparison
 * tells whether the next completion is of the same ring and generation. dto_forget drops the cached
 * ring; it is called before a ring or the generation of its EP ends, and when it returns no thread
 * converts a completion with that ring. NULL: does nothing.
 */
extern struct dto_ring dto_no_ring; /* has no id */
void dto_forget(struct dapl_evd *evd);

static inline enum dto_side dto_id_side(uint64_t id)
{
	return id >> DTO_SIDE_SHIFT;
}
static inline uint32_t dto_id_generation(uint64_t id)
{
	return id >> DTO_GENERATION_SHIFT & DTO_MASK(GENERATION);
}
static inline uint32_t dto_id_index(uint64_t id)
{
	return id >> DTO_INDEX_SHIFT & DTO_MASK(INDEX);
}
static inline uint32_t dto_id_slot(uint64_t id)
{
	return id & DTO_MASK(SLOT);
}

/* Result of the conversion of a completion (evd/dto_complete.h). */
#define DTO_EVENT  1u
#define DTO_NOTIFY 2u /* the event may wake a waiter */
#define DTO_SLOT   4u /* the wr_id is an SRQ slot: returned with the event, or now if there is none */
/*
 * True if the completion belongs to an EP whose connection is not yet announced on this EVD. The
 * caller holds the EVD's lock.
 */
bool dto_is_early(const struct dapl_evd *evd, const struct ib_completion *completion);

#endif
