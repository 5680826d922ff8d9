/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Names of the kernel that older headers lack, with the first version of Linux that knows them. */
#ifndef SV_BASE_KERNEL_H
#define SV_BASE_KERNEL_H

#include <fcntl.h>
#include <linux/membarrier.h>
#include <linux/userfaultfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#ifndef RWF_NOWAIT
#define RWF_NOWAIT 8 /* 4.14 */
#endif
#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x10 /* 5.1 */
#endif
#ifndef SYS_pidfd_send_signal
#define SYS_pidfd_send_signal 424 /* 5.1 */
#endif
#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434 /* 5.3 */
#endif
#ifndef UFFD_USER_MODE_ONLY
#define UFFD_USER_MODE_ONLY 1 /* 5.11 */
#endif
#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ  22 /* 5.14 */
#define MADV_POPULATE_WRITE 23
#endif
#ifndef UFFD_FEATURE_WP_HUGETLBFS_SHMEM
#define UFFD_FEATURE_WP_HUGETLBFS_SHMEM (1 << 12) /* 5.19 */
#endif
#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 8u /* 6.3 */
#endif
#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77 /* 6.5 */
#endif

/* 4.16; newer headers have enumerators of these values. */
#define MEMBARRIER_CMD_GLOBAL_EXPEDITED		 (1 << 1)
#define MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED (1 << 2)

#ifndef UFFDIO_WRITEPROTECT /* 5.7 */
struct uffdio_writeprotect {
	struct uffdio_range range;
	__u64 mode;
};
#define UFFDIO_WRITEPROTECT	    _IOWR(UFFDIO, 0x06, struct uffdio_writeprotect)
#define UFFDIO_WRITEPROTECT_MODE_WP ((__u64)1 << 0)
#endif
#ifndef UFFD_FEATURE_PAGEFAULT_FLAG_WP
#define UFFD_FEATURE_PAGEFAULT_FLAG_WP (1 << 0)
#endif

#endif
