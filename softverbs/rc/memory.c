/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * Access to this process's own memory by the kernel, so that an unmapped page causes an error and
 * no signal.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>
#include "softverbs/rc/memory.h"
#include "softverbs/object/area.h"
#include "softverbs/base/os.h"

/* A system call filter may forbid process_vm_*, even on the own process. */
static bool is_denied(void)
{
	return errno == EPERM || errno == ENOSYS || errno == EACCES;
}

static bool memory_by_file(const struct iovec *at, uint8_t *data, bool write)
{
	struct iovec part = { data, at->iov_len };
	int fd = sv_os_open("/proc/self/mem", O_RDWR);
	ssize_t moved;

	if (fd < 0)
		return false;
	moved = sv_os_move(fd, &part, 1, (uintptr_t)at->iov_base, write);
	sv_os_close(fd);
	return moved == (ssize_t)at->iov_len;
}

/*
 * Whether an access in user mode is safe, once the kernel has populated all pages. It is faster
 * when another processor wrote the lines. Not with the thread sanitizer, which cannot see how the
 * peer's accesses are ordered with such ones.
 */
static bool memory_is_populated(const struct iovec *at, bool write)
{
#if !defined(__SANITIZE_THREAD__)
	uintptr_t begin = (uintptr_t)at->iov_base;

	return !sv_os_populate(begin, begin + at->iov_len, write);
#else
	(void)at, (void)write;
	return false;
#endif
}

bool sv_memory_copy(const struct iovec *at, uint8_t *data, bool write)
{
	struct iovec here = { data, at->iov_len };
	ssize_t moved;

	if (at->iov_len >= sv_os_page_size() && memory_is_populated(at, write)) {
		memcpy(write ? at->iov_base : data, write ? data : at->iov_base, at->iov_len);
		return true;
	}
	moved = write ? process_vm_writev(getpid(), &here, 1, at, 1, 0)
		      : process_vm_readv(getpid(), &here, 1, at, 1, 0);
	if (moved < 0 && is_denied())
		return memory_by_file(at, data, write);
	return moved == (ssize_t)at->iov_len;
}

/* The thread sanitizer does not see it, as it does not see what the kernel copies. */
__attribute__((no_sanitize("thread"))) static void store_unseen(void *to, uint64_t value,
								size_t size)
{
	memory_store_unit(to, value, size);
}

bool sv_memory_store(const struct iovec *at, uint8_t *data)
{
	uintptr_t begin = (uintptr_t)at->iov_base;
	int error = sv_os_populate(begin, begin + at->iov_len, true);
	uint64_t value = 0;

	if (error == ENOSYS && sv_os_touch(begin)) /* it lies in one page */
		error = 0;
	if (error) {
		fence_release();
		return sv_memory_copy(at, data, true);
	}
	memcpy(&value, data, at->iov_len);
	store_unseen(at->iov_base, value, at->iov_len);
	return true;
}

/* Writes element by element through /proc/self/mem, from the list `from`. */
static bool move_by_file(const struct iovec *to, unsigned to_count, const struct iovec *from)
{
	size_t done = 0;

	for (unsigned i = 0; i < to_count; i++) {
		for (size_t at = 0; at < to[i].iov_len;) {
			size_t left = to[i].iov_len - at, have = from->iov_len - done;
			struct iovec part = { (uint8_t *)to[i].iov_base + at,
					      left < have ? left : have };

			if (!memory_by_file(&part, (uint8_t *)from->iov_base + done, true))
				return false;
			at += part.iov_len;
			done += part.iov_len;
			if (done == from->iov_len) {
				from++;
				done = 0;
			}
		}
	}
	return true;
}

bool sv_memory_move(const struct iovec *to, unsigned to_count, const struct iovec *from,
		    unsigned from_count)
{
	ssize_t moved = process_vm_writev(getpid(), from, from_count, to, to_count, 0), length = 0;

	if (moved < 0 && is_denied())
		return move_by_file(to, to_count, from);
	for (unsigned i = 0; i < to_count; i++)
		length += (ssize_t)to[i].iov_len;
	return moved == length;
}

/* Touches each page, for kernels without MADV_POPULATE (before 5.14). */
static bool bytes_are_there(uintptr_t at, uintptr_t end, bool write)
{
	for (; at < end; at = (at | (sv_os_page_size() - 1)) + 1) {
		struct iovec there = { (void *)at, 1 };
		uint8_t byte;

		if (write ? !sv_os_touch(at) : !sv_memory_copy(&there, &byte, false))
			return false;
	}
	return true;
}

bool sv_memory_is_there(const struct iovec *iov, unsigned count, bool write)
{
	for (unsigned i = 0; i < count; i++) {
		uintptr_t at = (uintptr_t)iov[i].iov_base, end = at + iov[i].iov_len;
		int error = at == end ? 0 : sv_os_populate(at, end, write);

		if (error && (error != ENOSYS || !bytes_are_there(at, end, write)))
			return false;
	}
	return true;
}
