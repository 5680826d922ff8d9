/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Copies between this process and a peer's memory. */
#ifndef SV_RC_COPY_H
#define SV_RC_COPY_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/uio.h>
#include "softverbs/link/peer.h"

/* Bytes of one copy: bounds the time between epoch_enter and epoch_leave. */
#define COPY_PIECE (1u << 20)

enum copy_result {
	COPY_DONE,
	COPY_HERE,  /* a page of this process is not mapped */
	COPY_THERE, /* a page of the peer is not mapped */
	COPY_GONE,  /* the peer's process is dead */
	COPY_DENIED,
};

/*
 * Copies `length` bytes, in any order. `here` has at least that many from byte `skip` on, `there`
 * exactly as many.
 */
enum copy_result sv_copy_out(struct sv_peer *peer, const struct iovec *here, unsigned here_count,
			     uint64_t skip, const struct iovec *there, unsigned there_count,
			     size_t length);
/* The same to one range, whose polled bytes (memory_polled) are written last. */
enum copy_result sv_copy_out_polled(struct sv_peer *peer, const struct iovec *here,
				    unsigned here_count, uint64_t skip, struct iovec there);
enum copy_result sv_copy_in(struct sv_peer *peer, const struct iovec *here, unsigned here_count,
			    uint64_t skip, const struct iovec *there, unsigned there_count,
			    size_t length);

/*
 * The same between `here` and a file in memory, from byte `at` of it on. Out: the polled bytes are written last and
 * at once. False if the file has not that many, or a page of this process is not mapped; or if the polled bytes are two or
 * four, which the kernel would store one by one: then nothing is written.
 */
bool sv_copy_file(int file, uint64_t at, const struct iovec *here, unsigned here_count,
		  uint64_t skip, size_t length, bool write);

/* Whether the kernel may store bytes at this place one by one if they go through a descriptor of the peer's memory. */
bool sv_copy_file_is_bytewise(const void *to);

/*
 * A descriptor of the peer's memory: one that it passed (SV_COPY_MEMFD), or one that this process has opened at the first
 * call, which the kernel allows where it allows process_vm_writev. Negative if there is none.
 */
int sv_peer_memory(struct sv_peer *peer);

/* Inlines the common length of 8 bytes. */
static inline void copy_small(void *to, const void *from, size_t length)
{
	if (length == 8)
		memcpy(to, from, 8);
	else
		memcpy(to, from, length);
}

#endif
