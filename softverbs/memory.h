/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* This process's own memory, touched by the kernel: a page that is not there costs no signal. */
#ifndef SV_MEMORY_H
#define SV_MEMORY_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>

/* Between one range and `data`. False: not all of it is there, or may be written. */
bool memory_copy(const struct iovec *at, uint8_t *data, bool write);

/* From one list to another of the same length, the elements of `to` in order. */
bool memory_move(const struct iovec *to, unsigned to_count, const struct iovec *from,
		 unsigned from_count);

/* Whether each page can be read, and written if need be; contents stay as they are. */
bool memory_is_there(const struct iovec *iov, unsigned count, bool write);

#endif
