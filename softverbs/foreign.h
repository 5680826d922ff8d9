/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * Descriptors that another process passed. Their kind is established by calls that the kernel
 * answers by itself, before anything is done to one: a file of a FUSE server makes its user wait for
 * the server in fstat, read and even close, and a peer shall neither stop nor end this process.
 */
#ifndef SV_FOREIGN_H
#define SV_FOREIGN_H

#include <stdbool.h>
#include <stdint.h>

/*
 * A memfd of this size in ordinary pages that nobody can shrink: touching the mapping brings no
 * SIGBUS.
 */
bool sv_foreign_is_memfd(int fd, uint64_t size);

/* /proc/PID/mem of a living process, for reading and writing. No page of it is touched. */
bool sv_foreign_is_memory(int fd);

/* A pipe, and no FIFO of a file system. */
bool sv_foreign_is_pipe(int fd);

/* Closes descriptors, -1 among them; one of an unknown kind in a thread of its own. */
void sv_foreign_close(int *fds, unsigned count);

#endif
