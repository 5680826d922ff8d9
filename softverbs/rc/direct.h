/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * Direct access: memory of a peer that is shared already (object/share.h) is mapped here, so that one-sided operations on
 * it are loads and stores. Only how bytes move is new: keys, rights, epochs and withdrawals are those of all operations.
 * The owner is asked after some uses of a key; until its answer, and where it has no file, copies go the other ways.
 */
#ifndef SV_RC_DIRECT_H
#define SV_RC_DIRECT_H

#include "softverbs/object/share.h"
#include "softverbs/rc/copy.h"
#include "softverbs/rc/remote_rq.h"

/* Bytes: the longest copy by the descriptor of a file, where another way exists that is as fast beyond. */
#define DIRECT_FILE_MAX (64u << 10)

/* Where a range of the peer's memory can be reached without its process. */
struct direct_place {
	void *at;	 /* mapped here; NULL: by `file` only */
	int file;	 /* a descriptor, if it is not mapped */
	uint64_t offset; /* of the range in the file */
};

/* The slow part of direct_find: the region lies in a file, or may do so. */
bool sv_direct_find(struct sv_peer *peer, const struct region_entry *region, uint32_t key,
		    uint64_t va, uint64_t length, bool writes, struct direct_place *place);

/*
 * Fills `place` for [va, va + length), which the key allows; with `writes` it may be written there. False if it can be reached
 * in the other ways only. The executor calls it between epoch_enter and epoch_leave, and uses the place until it leaves.
 */
static inline bool direct_find(const struct sv_remote_rq *remote, uint32_t key, uint64_t va,
			       uint64_t length, bool writes, struct direct_place *place)
{
	const struct region_entry *region = &remote->peer->by_owner->region[key >> 16];

	return atomic_load_explicit(&region->file, memory_order_relaxed) != FILE_NONE &&
	       remote->copy != SV_COPY_SELF &&
	       sv_direct_find(remote->peer, region, key, va, length, writes, place);
}

/*
 * Copies `length` bytes between the list, from byte `skip` on, and such a place. Out: the polled bytes (memory_polled) are
 * stored last and at once. COPY_HERE if a page of a long list is not mapped, as far as `known` says; COPY_THERE if the file does not have the bytes
 * any more, or the list is not mapped: another way to copy finds which.
 */
enum copy_result sv_direct_out(struct mapped *known, const struct iovec *here, unsigned count,
			       uint64_t skip, const struct direct_place *place, size_t length);
enum copy_result sv_direct_in(struct mapped *known, const struct iovec *here, unsigned count,
			      uint64_t skip, const struct direct_place *place, size_t length);

/* The number of mappings in this process, and how many there may be; a test sets another limit before the first. */
unsigned sv_direct_count(void);
extern unsigned sv_direct_limit;
/* Engine: takes an answer of a peer, or the end of a file. */
void sv_direct_message(struct sv_peer *peer, const struct share_text *text, int fd);
/* The last reference to the peer is released. */
void sv_direct_forget(struct sv_peer *peer);

#endif
