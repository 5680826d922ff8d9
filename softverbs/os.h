/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * What kernels have since different versions, and emulators never: asked for at run time, here
 * only. The C library's headers need not know these calls.
 */
#ifndef SV_OS_H
#define SV_OS_H

#include <stdbool.h>
#include <stdint.h>

/* A power of two: 4 KiB on x86-64, up to 64 KiB on arm64. */
uintptr_t os_page_size(void);

/*
 * Has the kernel make each page from `begin` to `end` readable, or writable, as an access would;
 * contents stay as they are. 0; ENOSYS if this kernel cannot be asked (Linux before 5.14); else the
 * errno of madvise(2): EFAULT or ENOMEM where there is no such page.
 */
int os_populate(uintptr_t begin, uintptr_t end, bool write);

/*
 * Whether the byte at `at` can be written: the kernel makes an atomic access that changes nothing, so
 * no write of another thread is lost. One system call; the page is there afterwards.
 */
bool os_touch(uintptr_t at);

/*
 * Takes a token of an eventfd back without waiting for one, even if the descriptor waits: its
 * reader may have been faster. 0, EAGAIN if there is none, or the errno for which a token stays:
 * EOPNOTSUPP before Linux 5.7 if the descriptor waits. Then its reader wakes once for nothing.
 */
int os_token_take(int eventfd);

#endif
