/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* One mapping of a peer's file, or its descriptor. */
#ifndef SV_RC_DIRECT_MAP_H
#define SV_RC_DIRECT_MAP_H

#include <sys/queue.h>
#include "softverbs/object/share.h"

struct direct_map {    /* constant while it is in use */
	uint32_t file; /* the number by which the owner knows the file */
	bool writable, is_segment;
	bool is_pool;	     /* of each region, only the whole pages are in it */
	uint64_t begin, end; /* bytes of the file */
	uint8_t *base;	     /* NULL: the file may shrink, so it is not mapped */
	int file_fd;	     /* then its descriptor, else -1 */
	TAILQ_ENTRY(direct_map) entry;
};

/*
 * Maps what an answer offers, after the kernel has confirmed that no access to it raises a signal; the descriptor is the
 * caller's. NULL with errno.
 */
struct direct_map *sv_direct_map(const struct share_text *text, int fd);
void sv_direct_unmap(struct direct_map *map);

#endif
