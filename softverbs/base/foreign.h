/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Checks of descriptors that another process passed. A call on a file of a FUSE server (fstat, read, even
 * close) blocks until the server answers, and a peer must neither block nor end this process. So the kind of
 * a descriptor is established first, by calls that the kernel answers by itself. */
#ifndef SV_BASE_FOREIGN_H
#define SV_BASE_FOREIGN_H

#include <stdbool.h>
#include <stdint.h>

/* True for a memfd of exactly `size` bytes, in ordinary pages and sealed against a change of its size: an access
 * to its mapping raises no SIGBUS. */
bool sv_foreign_is_memfd(int fd, uint64_t size);

/* True for a memfd, or another file of a tmpfs, in ordinary pages that has at least `size` bytes now. */
bool sv_foreign_is_file(int fd, uint64_t size);

/* True for a memfd in ordinary pages that has at least `size` bytes and cannot shrink; it may grow. */
bool sv_foreign_is_whole(int fd, uint64_t size);

/* True for /proc/PID/mem of a living process, open for reading and writing. Touches no page of it. */
bool sv_foreign_is_memory(int fd);

/* True for a pipe; false for a FIFO of a file system. */
bool sv_foreign_is_pipe(int fd);

/* Closes `count` descriptors; -1 is skipped. A descriptor of unknown kind is closed in a thread of its own,
 * since close may block. */
void sv_foreign_close(int *fds, unsigned count);

#endif
