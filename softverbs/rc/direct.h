/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * Direct access: memory of a peer that is shared already (object/share.h) is mapped here, so that one-sided operations on
 * it are loads and stores. Only how bytes move is new: keys, rights, epochs and withdrawals are those of all operations.
 * A mapping is made after a few uses of a key; until then, and where it cannot be made, copies go the other ways.
 */
#ifndef SV_RC_DIRECT_H
#define SV_RC_DIRECT_H

#include "softverbs/object/share.h"
#include "softverbs/rc/copy.h"
#include "softverbs/rc/remote_rq.h"

/* The slow part of direct_at: the region lies in a file. */
void *sv_direct_find(struct sv_peer *peer, const struct region_entry *region, uint32_t key,
		     uint64_t va, uint64_t length, bool writes);

/*
 * Where [va, va + length), which the key allows, is mapped here, and may be written with `writes`; NULL if it is not. The
 * executor calls it between epoch_enter and epoch_leave, and uses the address until it leaves.
 */
static inline void *direct_at(const struct sv_remote_rq *remote, uint32_t key, uint64_t va,
			      uint64_t length, bool writes)
{
	const struct region_entry *region = &remote->peer->by_owner->region[key >> 16];

	if (likely(!region->file) || remote->copy == SV_COPY_SELF)
		return NULL;
	return sv_direct_find(remote->peer, region, key, va, length, writes);
}

/*
 * Copies `length` bytes between the list, from byte `skip` on, and such an address. Out: the polled bytes (memory_polled) are
 * stored last and at once. COPY_HERE if a page of a long list is not mapped.
 */
enum copy_result sv_direct_out(const struct iovec *here, unsigned count, uint64_t skip, void *there,
			       size_t length);
enum copy_result sv_direct_in(const struct iovec *here, unsigned count, uint64_t skip,
			      const void *there, size_t length);

/* The number of mappings in this process. */
unsigned sv_direct_count(void);
/* Engine: takes an answer of a peer, or the end of a file. */
void sv_direct_message(struct sv_peer *peer, const struct share_text *text, int fd);
/* The last reference to the peer is released. */
void sv_direct_forget(struct sv_peer *peer);

#endif
