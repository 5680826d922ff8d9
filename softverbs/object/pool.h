/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * The pool: a memfd of this process in which the offset of a page is its address. Private memory that peers use often moves
 * into it in place, and is then memory that they can map (share.h). Only the engine moves memory, while no other access by
 * this device is under way (verbs/still.h).
 *
 * A child of fork(2) has its own private copy of what was in the pool, as of all memory.
 */
#ifndef SV_OBJECT_POOL_H
#define SV_OBJECT_POOL_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/types.h>
#include "softverbs/base/os.h"

#define POOL_NAME "softverbs-pool"
#define POOL_MOST (64ull << 20) /* bytes: limit of what is in the pool */

/* A range of whole pages. */
struct pool_range {
	uint64_t begin, end;
};

/*
 * The whole pages inside [addr, addr + length); an empty range if there are none. What is beside them in their pages is not of
 * the region: a child, in which the pool's pages are absent at first, may need it.
 */
static inline struct pool_range pool_pages(uint64_t addr, uint64_t length)
{
	uint64_t page = sv_os_page_size(), begin = (addr + page - 1) & ~(page - 1),
		 end = (addr + length) & ~(page - 1);

	return (struct pool_range){ begin, end > begin ? end : begin };
}

/* The private parts of a range; the rest of it is in the pool. */
struct pool_parts {
	unsigned count;
	struct pool_range part[16];
};

static inline bool pool_is_named(const char *path)
{
	static const char name[] = "/memfd:" POOL_NAME;

	return !strncmp(path, name, sizeof(name) - 1);
}

/* Whether this is the file of the pool. */
bool sv_pool_is(dev_t dev, ino_t ino);

/*
 * Whether the range may move: the program could not tell it from private memory, and no device or system call may hold on
 * to its pages. `stack`: an address in the stack of the thread that waits for the engine. NULL if it may, else the reason,
 * as part of a sentence.
 */
const char *sv_pool_refusal(const struct pool_range *range, uintptr_t stack,
			    struct pool_parts *parts);

/* Moves the parts into the pool: 0, or errno; on error all memory is as valid as before. */
int sv_pool_move(const struct pool_parts *parts);
/* Makes what of the range is in the pool private again, as far as the kernel allows. */
void sv_pool_return(const struct pool_range *range);

/* No memory is registered any more. */
void sv_pool_close(void);

/* For sv_link_client. */
void sv_pool_fork_prepare(void);
void sv_pool_fork_parent(void);
void sv_pool_fork_child(void);

#endif
