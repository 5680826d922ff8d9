/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Data transfer operations: the slot of a posted WR, and what its completion becomes. */
#ifndef DAPL_DTO_H
#define DAPL_DTO_H

#include "dapl/udapl/ia.h"

struct dapl_evd;

/* Operation of an internal request that makes no event, whatever becomes of it. */
#define DTO_MARKER 0xff
/* The same, but a failure of it breaks the connection: a window is unbound to be bound anew. */
#define DTO_UNBIND 0xfe

/* Of a ring on which nothing was posted yet: the one before its first. */
#define DTO_NONE_SIGNALLED UINT32_MAX

struct dto_slot {
	DAT_DTO_COOKIE cookie;
	uint32_t length;   /* posted total, for sends and writes; RMR of a bind */
	uint8_t operation; /* DAT_DTOS */
	uint8_t flags;	   /* DAT_COMPLETION_*_FLAG of the post */
	uint8_t special;
#define DTO_SILENT   1u /* success makes no event */
#define DTO_EXTENDED 2u /* it is no DAT_DTO_COMPLETION_EVENT */
	uint8_t unused; /* so that the four are written as one */
};

/*
 * Outstanding WRs of one side of an EP, in posting order. `posted` is written by the poster (the
 * EP's post lock of that side), `retired` by whoever takes completions (the lock of the EVD of
 * that side); each reads the other's.
 */
struct dto_ring {
	struct dto_slot *slots; /* power of two, at least depth */
	uint64_t base;		/* dto_id of slot 0 */
	struct obj *ep;
	uint32_t mask, depth;
	uint32_t signalled; /* the last request that was; poster's */
	/* outstanding ones that the plain way allows (ep_post.h); poster's */
	uint32_t plain_depth;
	/* count of posted up to which they are known not to be reached */
	uint32_t plain_until;
	_Atomic uint32_t posted, retired;
};

/* Depth 0: nothing can be posted. */
DAT_RETURN dto_ring_init(struct dto_ring *ring, uint32_t depth);
/*
 * Takes the lock of that side's EVD (NULL: none) once: after return no completion is being turned
 * with the ring.
 */
void dto_ring_free(struct dto_ring *ring, struct dapl_evd *evd);

static inline uint32_t dto_ring_outstanding(struct dto_ring *ring)
{
	/* acquire: a slot seen retired may be written again */
	return atomic_load_explicit(&ring->posted, memory_order_relaxed) -
	       atomic_load_explicit(&ring->retired, memory_order_acquire);
}

/*
 * A segment of length 0 contributes nothing, and its address and key are not looked at; to verbs
 * some devices make it 2^31 bytes. Lists without one go to the device as they are; the others,
 * which are rare, are packed.
 */
struct dto_segments {
	uint64_t length; /* in total */
	bool empty;	 /* one segment at least has length 0 */
};

static inline struct dto_segments dto_segments_measure(const DAT_LMR_TRIPLET *segments,
						       unsigned count)
{
	struct dto_segments list = { .length = 0 };
	unsigned i;

	if (count == 1)
		return (struct dto_segments){ segments->segment_length, !segments->segment_length };
	for (i = 0; i < count; i++) {
		list.length += segments[i].segment_length;
		list.empty |= !segments[i].segment_length;
	}
	return list;
}

/* Copies the segments that have a length; `kept` has room for all. Returns their number. */
unsigned dto_segments_pack(const DAT_LMR_TRIPLET *segments, unsigned count, DAT_LMR_TRIPLET *kept);

/*
 * A wr_id names a slot, never a pointer: a completion that outlives its EP is recognised and
 * dropped.
 */
enum dto_side { DTO_REQUEST, DTO_RECV, DTO_SRQ };

static inline uint64_t dto_id(enum dto_side side, const struct obj *obj, uint32_t slot)
{
	return (uint64_t)side << 62 | (uint64_t)(obj_generation(obj) & 0x3ffff) << 44 |
	       (uint64_t)(obj->index & 0xfffff) << 24 | (slot & 0xffffff);
}

/* The ids of a ring on which nothing was posted yet, while the generation of its EP lasts. */
static inline void dto_ring_name(struct dto_ring *ring, enum dto_side side, struct obj *ep)
{
	ring->base = dto_id(side, ep, 0);
	ring->ep = ep;
}

/*
 * An EVD remembers the ring of its last completion, whose ids are base ^ slot: one comparison says
 * that the next is of the same ring and generation. Before a ring or the generation of its EP ends
 * it is made to forget; whoever turned a completion of it is done when this returns. NULL: nothing
 * to do.
 */
extern struct dto_ring dto_no_ring; /* has no id */
void dto_forget(struct dapl_evd *evd);

static inline enum dto_side dto_id_side(uint64_t id)
{
	return id >> 62;
}
static inline uint32_t dto_id_generation(uint64_t id)
{
	return id >> 44 & 0x3ffff;
}
static inline uint32_t dto_id_index(uint64_t id)
{
	return id >> 24 & 0xfffff;
}
static inline uint32_t dto_id_slot(uint64_t id)
{
	return id & 0xffffff;
}

/* What became of a completion (dto_complete.h). */
#define DTO_EVENT  1u
#define DTO_NOTIFY 2u /* the event may wake a sleeper */
#define DTO_SLOT   4u /* the wr_id is an SRQ slot: back with the event, or now */
/*
 * It belongs to an EP whose connection is not yet announced on this EVD. Caller holds the EVD's
 * lock.
 */
bool dto_is_early(const struct dapl_evd *evd, const struct ib_completion *completion);

#endif
