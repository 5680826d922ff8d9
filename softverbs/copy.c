/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Moving bytes between this process and a peer's memory: plain copy, or the kernel's. */
#include <errno.h>
#include <unistd.h>
#include "softverbs/area.h"
#include "softverbs/copy.h"
#include "util/log.h"

#define PIECES (2 * SV_MAX_SGE + 2)
#define TAIL   8u /* a program that polls the last bytes of a write must find the rest */

/* The part [skip, skip + length) of a list. Returns its count. */
static unsigned iov_part(const struct iovec *from, unsigned count, uint64_t skip, size_t length,
			 struct iovec *to)
{
	unsigned n = 0;

	for (unsigned i = 0; i < count && length; i++) {
		size_t part;

		if (skip >= from[i].iov_len) {
			skip -= from[i].iov_len;
			continue;
		}
		part = from[i].iov_len - skip < length ? from[i].iov_len - skip : length;
		to[n].iov_base = (uint8_t *)from[i].iov_base + skip;
		to[n++].iov_len = part;
		length -= part;
		skip = 0;
	}
	return n;
}

/* Cuts the last bytes off as an element of their own. */
static unsigned iov_split_tail(struct iovec *iov, unsigned count)
{
	struct iovec *last = &iov[count - 1];

	if (!count || last->iov_len <= TAIL)
		return count;
	last->iov_len -= TAIL;
	last[1] = (struct iovec){ .iov_base = (uint8_t *)last->iov_base + last->iov_len,
				  .iov_len = TAIL };
	return count + 1;
}

static void copy_self(const struct iovec *to, unsigned to_count, const struct iovec *from)
{
	size_t to_at = 0, from_at = 0;

	for (unsigned i = 0; i < to_count;) {
		size_t to_left = to[i].iov_len - to_at, from_left = from->iov_len - from_at;
		size_t part = to_left < from_left ? to_left : from_left;

		memmove((uint8_t *)to[i].iov_base + to_at,
			(const uint8_t *)from->iov_base + from_at, part);
		to_at += part;
		from_at += part;
		if (from_at == from->iov_len) {
			from++;
			from_at = 0;
		}
		if (to_at == to[i].iov_len) {
			i++;
			to_at = 0;
			fence_release();	/* what is copied next is seen after this */
		}
	}
}

/* Whether each page of ours can be read, and written if need be; contents stay as they are. */
static bool pages_are_here(const struct iovec *iov, unsigned count, bool write)
{
	static const uintptr_t page = 4096;

	for (unsigned i = 0; i < count; i++) {
		uintptr_t at = (uintptr_t)iov[i].iov_base, end = at + iov[i].iov_len;

		for (; at < end; at = (at | (page - 1)) + 1) {
			uint8_t byte;
			struct iovec there = { (void *)at, 1 }, here = { &byte, 1 };

			if (process_vm_readv(getpid(), &here, 1, &there, 1, 0) != 1)
				return false;
			if (write && process_vm_readv(getpid(), &there, 1, &there, 1, 0) != 1)
				return false;
		}
	}
	return true;
}

static enum copy_result copy_failed(const struct sv_peer *peer, int err, const struct iovec *here,
				    unsigned count, bool write)
{
	if (err == ESRCH)
		return COPY_GONE;
	if (err == EPERM || err == ENOSYS || err == EACCES) {
		log_at(LOG_ERROR, "softverbs: copying to or from process %d is denied",
		       (int)peer->pid);
		return COPY_DENIED;
	}
	return pages_are_here(here, count, write) ? COPY_THERE : COPY_HERE;
}

enum copy_result copy_out(const struct sv_peer *peer, const struct iovec *here, unsigned here_count,
			  uint64_t skip, const struct iovec *there, unsigned there_count,
			  size_t length)
{
	struct iovec from[PIECES], to[PIECES];
	unsigned from_count = iov_part(here, here_count, skip, length, from);
	unsigned to_count = iov_split_tail(to, iov_part(there, there_count, 0, length, to));
	ssize_t moved;

	if (peer->copy == SV_COPY_SELF) {
		copy_self(to, to_count, from);
		return COPY_DONE;
	}
	moved = process_vm_writev(peer->pid, from, from_count, to, to_count, 0);
	if (moved >= 0 && moved != (ssize_t)length) /* a page is not there; or it just exited, and
						       has no page now */
		moved = process_vm_writev(peer->pid, from, from_count, to, to_count, 0);
	if (moved == (ssize_t)length)
		return COPY_DONE;
	return copy_failed(peer, moved < 0 ? errno : EFAULT, from, from_count, false);
}

enum copy_result copy_in(const struct sv_peer *peer, const struct iovec *here, unsigned here_count,
			 uint64_t skip, const struct iovec *there, unsigned there_count,
			 size_t length)
{
	struct iovec from[PIECES], to[PIECES];
	unsigned to_count = iov_part(here, here_count, skip, length, to);
	unsigned from_count = iov_part(there, there_count, 0, length, from);
	ssize_t moved;

	if (peer->copy == SV_COPY_SELF) {
		copy_self(to, to_count, from);
		return COPY_DONE;
	}
	moved = process_vm_readv(peer->pid, to, to_count, from, from_count, 0);
	if (moved >= 0 && moved != (ssize_t)length)
		moved = process_vm_readv(peer->pid, to, to_count, from, from_count, 0);
	if (moved == (ssize_t)length)
		return COPY_DONE;
	return copy_failed(peer, moved < 0 ? errno : EFAULT, to, to_count, true);
}
