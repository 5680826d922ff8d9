/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * Access to this process's own memory by the kernel, so that an unmapped page causes an error and
 * no signal.
 */
#ifndef SV_RC_MEMORY_H
#define SV_RC_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/uio.h>

/*
 * Copies between one range and `data`; `write`: into the range. False if part of it is not mapped
 * or not writable.
 */
bool sv_memory_copy(const struct iovec *at, uint8_t *data, bool write);

/*
 * The bytes of a write that a program may poll, and that are written last and at once (rule C1): the longest naturally
 * aligned unit of 8, 4, 2 or 1 bytes that ends where the range ends. The range is not empty.
 */
static inline size_t memory_polled(const struct iovec *at)
{
	uintptr_t end = (uintptr_t)at->iov_base + at->iov_len;
	size_t unit = 8;

	while (unit > 1 && (unit > at->iov_len || end % unit))
		unit /= 2;
	return unit;
}

/* Stores such a unit, the first `size` bytes of `value`, after all that this thread stored before. */
__attribute__((always_inline)) static inline void memory_store_unit(void *to, uint64_t value,
								    size_t size)
{
	uint32_t four;
	uint16_t two;
	uint8_t one;

	switch (size) {
	case 8: __atomic_store_n((uint64_t *)to, value, __ATOMIC_RELEASE); break;
	case 4:
		memcpy(&four, &value, sizeof(four));
		__atomic_store_n((uint32_t *)to, four, __ATOMIC_RELEASE);
		break;
	case 2:
		memcpy(&two, &value, sizeof(two));
		__atomic_store_n((uint16_t *)to, two, __ATOMIC_RELEASE);
		break;
	default:
		memcpy(&one, &value, sizeof(one));
		__atomic_store_n((uint8_t *)to, one, __ATOMIC_RELEASE);
		break;
	}
}

/* Writes such a unit after all that this thread wrote before. False as above. */
bool sv_memory_store(const struct iovec *at, uint8_t *data);

/* Copies between two lists of the same length, in the order of `to`. False as above. */
bool sv_memory_move(const struct iovec *to, unsigned to_count, const struct iovec *from,
		    unsigned from_count);

/* Whether each page can be read, and with `write` also written. The contents do not change. */
bool sv_memory_is_there(const struct iovec *iov, unsigned count, bool write);

#endif
