/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* System calls that some kernels lack, and their replacements. */
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>
#ifdef __x86_64__
#include <cpuid.h>
#endif
#include "softverbs/base/kernel.h"
#include "softverbs/base/os.h"

static pthread_once_t once = PTHREAD_ONCE_INIT;
static uintptr_t page_size;
static bool can_populate;

/* Emulators accept unknown advice and do nothing. So the probe uses advice that must fail: at address 0,
 * where no page is. Kernels that support the advice return ENOMEM there, others EINVAL. (A page without
 * access rights does not tell them apart: EINVAL in both cases.) */
static void os_find_out(void)
{
	page_size = (uintptr_t)sysconf(_SC_PAGESIZE);
	can_populate = madvise(NULL, page_size, MADV_POPULATE_READ) && errno == ENOMEM;
}

uintptr_t sv_os_page_size(void)
{
	pthread_once(&once, os_find_out);
	return page_size;
}

int sv_os_populate(uintptr_t begin, uintptr_t end, bool write)
{
	uintptr_t last = sv_os_page_size() - 1;
	int advice = write ? MADV_POPULATE_WRITE : MADV_POPULATE_READ;

	if (!can_populate)
		return ENOSYS;
	begin &= ~last;
	end = (end + last) & ~last;
	return madvise((void *)begin, end - begin, advice) ? errno : 0;
}

bool sv_os_touch(uintptr_t at)
{
	uint32_t waker = 0;
	void *word = (void *)(at & ~(uintptr_t)3);

	/* Ors 0 into the word. A waiter on the word may wake spuriously, which futex(2) allows. */
	return syscall(SYS_futex, &waker, FUTEX_WAKE_OP | FUTEX_PRIVATE_FLAG, 0, 0, word,
		       FUTEX_OP(FUTEX_OP_OR, 0, FUTEX_OP_CMP_EQ, 0)) >= 0;
}

bool sv_os_is_mapped(uintptr_t begin, uintptr_t end)
{
	begin &= ~(sv_os_page_size() - 1);
	return !syscall(SYS_msync, begin, end - begin, MS_ASYNC) || errno != ENOMEM;
}

/* Linux before 6.3 refuses the flag. */
int sv_os_memfd(const char *name)
{
	const unsigned flags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
	int fd = memfd_create(name, flags | MFD_NOEXEC_SEAL);

	return fd >= 0 || errno != EINVAL ? fd : memfd_create(name, flags);
}

int sv_os_seal(int fd, bool reader_only)
{
	const int seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

	if (reader_only && !fcntl(fd, F_ADD_SEALS, seals | F_SEAL_FUTURE_WRITE))
		return 0;
	if (reader_only && errno != EINVAL)
		return -1;
	return fcntl(fd, F_ADD_SEALS, seals);
}

bool sv_os_promises_strictly(void)
{
	char mode = 0;
	int fd = sv_os_open("/proc/sys/vm/overcommit_memory", O_RDONLY);

	if (fd < 0)
		return false;
	if (syscall(SYS_read, fd, &mode, 1ul) != 1)
		mode = 0;
	sv_os_close(fd);
	return mode == '2';
}

/* A signal ends a piece, and the kernel frees what it has allocated of it. */
#define ALLOCATE_PIECE (256u << 10)

int sv_os_allocate(int fd, uint64_t begin, uint64_t end)
{
	while (begin < end) {
		uint64_t rest = end - begin;
		uint64_t piece = rest < ALLOCATE_PIECE ? rest : ALLOCATE_PIECE;

		if (!syscall(SYS_fallocate, fd, 0, begin, piece))
			begin += piece;
		else if (errno != EINTR)
			return errno == ENOSPC ? ENOMEM : errno;
	}
	return 0;
}

int sv_os_open(const char *path, int flags)
{
	return (int)syscall(SYS_openat, AT_FDCWD, path, flags | O_CLOEXEC, 0);
}

void sv_os_close(int fd)
{
	syscall(SYS_close, fd);
}

ssize_t sv_os_move(int fd, const struct iovec *iov, unsigned count, uint64_t at, bool write)
{
	/* the upper half of the offset is an argument of its own, which a 64-bit kernel ignores */
	if (count == 1)
		return syscall(write ? SYS_pwrite64 : SYS_pread64, fd, iov->iov_base, iov->iov_len,
			       at);
	return syscall(write ? SYS_pwritev : SYS_preadv, fd, iov, (unsigned long)count, at, 0ul);
}

bool sv_os_moves_strings(void)
{
#ifdef __x86_64__
	enum { UNKNOWN, NO, YES };
	static _Atomic(uint8_t) known;
	uint8_t answer = atomic_load_explicit(&known, memory_order_relaxed);
	unsigned a, b, c, d;

	if (answer == UNKNOWN) { /* in a virtual machine the instruction takes a microsecond */
		answer = __get_cpuid_count(7, 0, &a, &b, &c, &d) && d & 1 << 4 ? YES : NO;
		atomic_store_explicit(&known, answer, memory_order_relaxed);
	}
	return answer == YES;
#else
	return false;
#endif
}

/* preadv2 with RWF_NOWAIT by its number: musl before 1.2.5 does not declare it. */
static ssize_t read_without_wait(int fd, const struct iovec *iov)
{
	return syscall(SYS_preadv2, fd, iov, 1ul, -1l, -1l, RWF_NOWAIT);
}

int sv_os_token_read(int eventfd)
{
	uint64_t token;
	struct iovec iov = { .iov_base = &token, .iov_len = sizeof(token) };

	if (read_without_wait(eventfd, &iov) >= 0)
		return 0;
	if (errno != EOPNOTSUPP && errno != ENOSYS)
		return errno;
	if (!(fcntl(eventfd, F_GETFL) & O_NONBLOCK))
		return EOPNOTSUPP;
	return read(eventfd, &token, sizeof(token)) < 0 ? errno : 0;
}
