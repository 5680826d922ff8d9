/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * Access to this process's own memory by the kernel, so that an unmapped page causes an error and
 * no signal.
 */
#ifndef SV_RC_MEMORY_H
#define SV_RC_MEMORY_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>

/*
 * Copies between one range and `data`; `write`: into the range. False if part of it is not mapped
 * or not writable.
 */
bool sv_memory_copy(const struct iovec *at, uint8_t *data, bool write);

/* Copies between two lists of the same length, in the order of `to`. False as above. */
bool sv_memory_move(const struct iovec *to, unsigned to_count, const struct iovec *from,
		    unsigned from_count);

/* Whether each page can be read, and with `write` also written. The contents do not change. */
bool sv_memory_is_there(const struct iovec *iov, unsigned count, bool write);

#endif
