/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Moving bytes between this process and a peer's memory. */
#ifndef SV_COPY_H
#define SV_COPY_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/uio.h>
#include "softverbs/peer.h"

#define COPY_PIECE (1u << 20) /* moved at once: bounds how long a window stays open */

enum copy_result {
	COPY_DONE,
	COPY_HERE,  /* a page of ours is not there */
	COPY_THERE, /* a page of theirs is not there */
	COPY_GONE,  /* the process is */
	COPY_DENIED,
};

/* `here` holds at least `length` bytes from `skip` on; `there` exactly `length`. In any order. */
enum copy_result copy_out(const struct sv_peer *peer, const struct iovec *here, unsigned here_count,
			  uint64_t skip, const struct iovec *there, unsigned there_count,
			  size_t length);
/* The same, the last 8 bytes last: a program that polls them must find the rest. */
enum copy_result copy_out_polled(const struct sv_peer *peer, const struct iovec *here,
				 unsigned here_count, uint64_t skip, struct iovec there);
enum copy_result copy_in(const struct sv_peer *peer, const struct iovec *here, unsigned here_count,
			 uint64_t skip, const struct iovec *there, unsigned there_count,
			 size_t length);

/* A few bytes, mostly 8: without the call. */
static inline void copy_small(void *to, const void *from, size_t length)
{
	if (length == 8)
		memcpy(to, from, 8);
	else
		memcpy(to, from, length);
}

#endif
