/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Calls that only newer kernels have: the result is the same with and without them. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include "softverbs/rc/memory.h"
#include "softverbs/base/kernel.h"
#include "softverbs/base/os.h"
#include "test/unit/system_call.h"
#include "test/unit/unit.h"

int __wrap_madvise(void *addr, size_t length, int advice);
int __real_madvise(void *addr, size_t length, int advice);

/* What the kernel answers to the new calls in this run. */
static enum { NEW, OLD, EMULATED } kernel;

int __wrap_madvise(void *addr, size_t length, int advice)
{
	if (kernel == NEW || advice < MADV_POPULATE_READ)
		return __real_madvise(addr, length, advice);
	errno = EINVAL;
	return kernel == OLD ? -1 : 0;
}

/* preadv2, which newer kernels have, and futex, which all have, call this. */
static long system_call(long number, const long *argument)
{
	if (kernel == NEW || number == SYS_futex)
		return system_call_made(number, argument);
	return system_call_fails(kernel == OLD ? EOPNOTSUPP : ENOSYS);
}

/* Kernels before 6.3 know no such flag, and newer ones may be set to refuse files without it. */
static bool is_memfd_strict;

int memfd_create(const char *name, unsigned flags)
{
	errno = EINVAL;
	if (kernel == OLD && flags & MFD_NOEXEC_SEAL)
		return -1;
	errno = EACCES;
	if (is_memfd_strict && !(flags & MFD_NOEXEC_SEAL))
		return -1;
	return (int)__real_syscall(SYS_memfd_create, name, flags & ~MFD_NOEXEC_SEAL, 0, 0, 0, 0);
}

int fcntl(int fd, int command, ...)
{
	va_list list;
	long argument;

	va_start(list, command);
	argument = va_arg(list, long);
	va_end(list);
	if (kernel == OLD && command == F_ADD_SEALS && argument & F_SEAL_FUTURE_WRITE) {
		errno = EINVAL;
		return -1;
	}
	return (int)__real_syscall(SYS_fcntl, fd, command, argument, 0, 0, 0);
}

static int memfd_opens(void)
{
	int fd = sv_os_memfd("test");

	CU_ASSERT_TRUE_FATAL(fd >= 0);
	CU_ASSERT_EQUAL(fcntl(fd, F_GETFD), FD_CLOEXEC);
	CU_ASSERT_EQUAL(ftruncate(fd, 1 << 20), 0);
	return fd;
}

static bool can_be_written(int fd)
{
	void *map = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	return map != MAP_FAILED && !munmap(map, 1 << 20);
}

/* Its size is fixed; a reader's file is not mapped for writing where the kernel can refuse that. */
static void memfd_is_sealed(bool reader_only)
{
	const int seals = F_SEAL_SHRINK | F_SEAL_GROW;
	int fd = memfd_opens(), other = memfd_opens();
	bool knows = !fcntl(other, F_ADD_SEALS, F_SEAL_FUTURE_WRITE);

	CU_ASSERT_EQUAL(sv_os_seal(fd, reader_only), 0);
	CU_ASSERT_EQUAL(fcntl(fd, F_GET_SEALS) & seals, seals);
	CU_ASSERT_EQUAL(fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE), -1);
	CU_ASSERT_EQUAL(can_be_written(fd), !reader_only || !knows);
	close(other);
	close(fd);
}

static void files_are_sealed(void)
{
	memfd_is_sealed(false);
	memfd_is_sealed(true);
	kernel = OLD;
	memfd_is_sealed(false);
	memfd_is_sealed(true);
	kernel = NEW;
	errno = 0;
	CU_ASSERT_EQUAL(sv_os_seal(-1, true), -1);
	CU_ASSERT_EQUAL(errno, EBADF);
}

static void files_in_memory(void)
{
	kernel = NEW;
	is_memfd_strict = true;
	close(memfd_opens());
	is_memfd_strict = false;
	kernel = OLD;
	close(memfd_opens());
	kernel = NEW;
}

/* Two pages: the first is mapped and writable, the second is not mapped. */
static uint8_t *pages_make(void)
{
	size_t size = sv_os_page_size();
	uint8_t *pages =
		mmap(NULL, 2 * size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	CU_ASSERT_PTR_NOT_EQUAL_FATAL(pages, MAP_FAILED);
	munmap(pages + size, size);
	memset(pages, 7, size);
	return pages;
}

static bool is_there(uint8_t *at, size_t length, bool write)
{
	return sv_memory_is_there(&(struct iovec){ at, length }, 1, write);
}

static void check_pages(void)
{
	size_t size = sv_os_page_size();
	uint8_t *pages = pages_make(), byte = 9;

	CU_ASSERT_EQUAL(size, (size_t)sysconf(_SC_PAGESIZE));
	CU_ASSERT_TRUE(is_there(pages, size, true));
	CU_ASSERT_TRUE(is_there(pages + size - 1, 1, true));
	CU_ASSERT_FALSE(is_there(pages + size, 1, false));
	CU_ASSERT_FALSE(is_there(pages + size - 1, 2, true));
	CU_ASSERT_TRUE(sv_memory_copy(&(struct iovec){ pages, 1 }, &byte, false) && byte == 7);
	CU_ASSERT_FALSE(sv_memory_copy(&(struct iovec){ pages + size, 1 }, &byte, true));
	mprotect(pages, size, PROT_READ);
	CU_ASSERT_TRUE(is_there(pages, size, false));
	CU_ASSERT_FALSE(is_there(pages, size, true));
	munmap(pages, size);
}

/*
 * On a kernel that has the advice, a hole must be reported. An emulator accepts the advice for a
 * hole, too.
 */
static void check_populate(void)
{
	size_t size = sv_os_page_size();
	uint8_t *pages = pages_make();
	bool knows = kernel == NEW && __real_madvise(pages + size, size, MADV_POPULATE_READ) &&
		     errno == ENOMEM;

	CU_ASSERT_EQUAL(sv_os_populate((uintptr_t)pages, (uintptr_t)pages + size, true),
			knows ? 0 : ENOSYS);
	munmap(pages, size);
}

enum { COUNTS = 200000 };
static atomic_bool has_counted;

static void *count_up(void *counter)
{
	for (int i = 0; i < COUNTS; i++)
		atomic_fetch_add((atomic_ullong *)counter, 1);
	atomic_store(&has_counted, true);
	return NULL;
}

/* Reading a word that another thread increments must not write an old count back. */
static void check_no_loss(void)
{
	uint8_t *pages = pages_make();
	atomic_ullong *counter = memset(pages, 0, sizeof(*counter));
	pthread_t thread;

	CU_ASSERT_EQUAL_FATAL(pthread_create(&thread, NULL, count_up, counter), 0);
	while (!atomic_load(&has_counted))
		CU_ASSERT_FATAL(is_there(pages, sizeof(*counter), true));
	pthread_join(thread, NULL);
	CU_ASSERT_EQUAL(atomic_load(counter), COUNTS);
	munmap(pages, sv_os_page_size());
}

/* A copy of pages, the last of which is unmapped, must not end the process. */
static void check_large_copy(void)
{
	static uint8_t data[4 << 16];
	size_t size = sv_os_page_size();
	uint8_t *pages = pages_make();

	CU_ASSERT_TRUE(sv_memory_copy(&(struct iovec){ pages, size }, data, false));
	CU_ASSERT_EQUAL(data[size - 1], 7);
	CU_ASSERT_FALSE(sv_memory_copy(&(struct iovec){ pages, 2 * size }, data, false));
	munmap(pages, size);
}

static void check_tokens(int flags, int stays)
{
	uint64_t count;
	int fd = eventfd(2, EFD_SEMAPHORE | flags);

	CU_ASSERT_EQUAL(sv_os_token_read(fd), stays);
	CU_ASSERT_EQUAL(sv_os_token_read(fd), stays);
	fcntl(fd, F_SETFL, O_NONBLOCK);
	CU_ASSERT_EQUAL(read(fd, &count, sizeof(count)), stays ? (ssize_t)sizeof(count) : -1);
	if (!stays) /* must return at once although there is no token */
		CU_ASSERT_EQUAL(sv_os_token_read(fd), EAGAIN);
	close(fd);
}

/* Linux 5.7. */
static bool reads_without_wait(void)
{
	uint64_t token;
	struct iovec iov = { .iov_base = &token, .iov_len = sizeof(token) };
	int fd = eventfd(1, 0);
	bool reads =
		__real_syscall(SYS_preadv2, fd, (long)&iov, 1l, -1l, -1l, (long)RWF_NOWAIT) >= 0;

	close(fd);
	return reads;
}

static void everything(void)
{
	check_pages();
	check_populate();
	check_no_loss();
	check_large_copy();
	check_tokens(EFD_NONBLOCK, 0);
	check_tokens(0, kernel == NEW && reads_without_wait() ? 0 : EOPNOTSUPP);
}

/* The kernel is probed once in a process, so each kind runs in a child. */
static void in_child(int kind)
{
	pid_t child = fork();
	int status = -1;

	if (!child) {
		kernel = kind;
		everything();
		_exit(CU_get_number_of_failures() ? 1 : 0);
	}
	CU_ASSERT_EQUAL(waitpid(child, &status, 0), child);
	CU_ASSERT_EQUAL(status, 0);
}

static void this_kernel(void)
{
	in_child(NEW);
}

static void old_kernel(void)
{
	in_child(OLD);
}

static void emulated_kernel(void)
{
	in_child(EMULATED);
}

static const struct unit_test tests[] = {
	{ "os: pages and tokens with this kernel", this_kernel },
	{ "os: pages and tokens with a kernel that refuses the new calls", old_kernel },
	{ "os: pages with an emulator that accepts any advice", emulated_kernel },
	{ "os: a file in memory, whether the kernel knows or demands that it is not executable",
	  files_in_memory },
	{ "os: the size of such a file is fixed, and a reader cannot write", files_are_sealed },
};
UNIT_MAIN("softverbs_os", tests)
