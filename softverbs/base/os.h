/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* System calls that older kernels and emulators lack. Their presence is tested at run time, and only here;
 * the C library's headers need not know these calls. */
#ifndef SV_BASE_OS_H
#define SV_BASE_OS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>

/* A power of two: 4 KiB on x86-64, up to 64 KiB on arm64. */
uintptr_t sv_os_page_size(void);

/* Makes the kernel fault in each page from `begin` to `end` for reading or writing, without a change to the
 * contents. Returns 0; ENOSYS if the kernel has no such call (Linux before 5.14); else the errno of
 * madvise(2): EFAULT or ENOMEM if there is no such page. */
int sv_os_populate(uintptr_t begin, uintptr_t end, bool write);

/* True if pages are mapped from `begin` to `end`, whatever they allow. One system call, which touches none. */
bool sv_os_is_mapped(uintptr_t begin, uintptr_t end);

/* True if the byte at `at` can be written. The kernel makes an atomic access that changes nothing, so no
 * write of another thread is lost. One system call; the page is present afterwards. */
bool sv_os_touch(uintptr_t at);

/* A file in shared memory that can be sealed, and that no process can execute, as a kernel may demand
 * (vm.memfd_noexec). -1 with errno. */
int sv_os_memfd(const char *name);

/* Fixes the size of such a file; with `reader_only`, it cannot be mapped for writing from now on, if the kernel knows that
 * (Linux 5.1). -1 with errno. */
int sv_os_seal(int fd, bool reader_only);

/* True if the kernel promises no more memory than there is (vm.overcommit_memory 2). A page of a file in shared memory is
 * promised when it is first touched, and if it cannot be then, the access raises SIGBUS. */
bool sv_os_promises_strictly(void);

/* Allocates the pages from `begin` to `end` in a file in shared memory. 0; ENOMEM if there is no memory for them, or another
 * errno. */
int sv_os_allocate(int fd, uint64_t begin, uint64_t end);

/* open, close, preadv and pwritev that are no cancellation points, for a thread that may hold a lock. -1 with errno. */
int sv_os_open(const char *path, int flags);
void sv_os_close(int fd);
ssize_t sv_os_move(int fd, const struct iovec *iov, unsigned count, uint64_t at, bool write);

/*
 * Whether the kernel copies a few bytes with the processor's moves of strings, which are said to be fast for them (FSRM of x86).
 * AMD's then move byte by byte to a target that lies less than 16 bytes ahead of the source, in the address within 4 KiB.
 */
bool sv_os_moves_strings(void);

/* Reads a token of an eventfd without blocking, even if the descriptor is in blocking mode; its reader may
 * have read the token already. Returns 0, EAGAIN if there is no token, or the errno with which a token
 * remains: EOPNOTSUPP before Linux 5.7 if the descriptor is in blocking mode. A token that remains costs its
 * reader one wake-up. */
int sv_os_token_read(int eventfd);

#endif
