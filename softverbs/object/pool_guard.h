/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * Holds the stores of the program's other threads to a range while it is copied. A system call that writes into the range
 * meanwhile fails with EFAULT.
 */
#ifndef SV_OBJECT_POOL_GUARD_H
#define SV_OBJECT_POOL_GUARD_H

#include <stdbool.h>
#include <stdint.h>

struct pool_guard {
	int fd; /* -1: there is no other thread to hold */
};

/* `shared`: the range is mapped from the pool. 0, or errno if the kernel cannot hold threads. */
int sv_pool_guard_begin(struct pool_guard *guard, uint64_t begin, uint64_t end, bool shared);
/* After another mapping has taken the place of the range, or nothing was done: the stores go on. */
void sv_pool_guard_end(struct pool_guard *guard);

#endif
