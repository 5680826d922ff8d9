/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Copies between this process and a peer's memory. The kernel makes the copies. */
#include <errno.h>
#include <unistd.h>
#include "softverbs/base/os.h"
#include "softverbs/object/device.h"
#include "softverbs/rc/copy.h"
#include "softverbs/rc/memory.h"
#include "util/log.h"
#include "util/platform.h"

#define PIECES	     (2 * SV_MAX_SGE + 2)
#define STRING_ALIAS 4096u /* bytes, see sv_os_moves_strings */
#define STRING_AHEAD 64u

/* Stores the part [skip, skip + length) of a list in `to`. Returns its count. */
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

/* ---- through a descriptor of the peer's memory ---- */

/*
 * Copies element by element of `there`, in order. Returns bytes copied; 0: the process is dead;
 * or -1 with errno.
 */
static ssize_t file_move(int file, const struct iovec *here, unsigned here_count,
			 const struct iovec *there, unsigned there_count, bool write)
{
	struct iovec part[PIECES];
	ssize_t done = 0, moved;

	for (unsigned i = 0; i < there_count; i++) {
		unsigned count = iov_part(here, here_count, (uint64_t)done, there[i].iov_len, part);

		moved = sv_os_move(file, part, count, (uintptr_t)there[i].iov_base, write);
		if (moved <= 0)
			return done ? done : moved;
		done += moved;
		if (moved != (ssize_t)there[i].iov_len)
			break;
	}
	return done;
}

/* ---- by either method ---- */

static enum copy_result copy_failed(const struct sv_peer *peer, ssize_t moved, int err,
				    const struct iovec *here, unsigned count, bool write)
{
	if (moved < 0 && err == ESRCH)
		return COPY_GONE;
	if (!moved) /* a descriptor of its memory has no page left */
		return COPY_GONE;
	if (moved < 0 && (err == EPERM || err == ENOSYS || err == EACCES)) {
		log_at(LOG_ERROR, "softverbs: copying to or from process %d is denied",
		       (int)peer->pid);
		return COPY_DENIED;
	}
	return sv_memory_is_there(here, count, write) ? COPY_THERE : COPY_HERE;
}

/* Whether the kernel may copy byte by byte, since the target is a little ahead of the source (sv_os_moves_strings). */
static bool is_bytewise(const void *from, const void *to)
{
	uintptr_t ahead = ((uintptr_t)to - (uintptr_t)from) % STRING_ALIAS;

	return ahead && ahead < STRING_AHEAD && sv_os_moves_strings();
}

/* The kernel copies from the beginning of a page of its own. */
bool sv_copy_file_is_bytewise(const void *to)
{
	return is_bytewise(NULL, to);
}

/* Whether a copy takes less time through a descriptor of the peer's memory: a short one in one part. */
static bool is_for_file(const struct iovec *here, unsigned here_count, const struct iovec *there,
			unsigned there_count, bool write)
{
	if (here_count != 1 || there_count != 1)
		return false;
	return write ? here->iov_len <= 8 && !sv_copy_file_is_bytewise(there->iov_base)
		     : here->iov_len <= 4096;
}

/* Copies once between all of `there` and as much of `here`. */
static ssize_t peer_move(struct sv_peer *peer, const struct iovec *here, unsigned here_count,
			 const struct iovec *there, unsigned there_count, bool write)
{
	int file = peer->copy == SV_COPY_MEMFD ||
				   is_for_file(here, here_count, there, there_count, write)
			   ? sv_peer_memory(peer)
			   : -1;

	if (file >= 0)
		return file_move(file, here, here_count, there, there_count, write);
	return write ? process_vm_writev(peer->pid, here, here_count, there, there_count, 0)
		     : process_vm_readv(peer->pid, here, here_count, there, there_count, 0);
}

static enum copy_result peer_copy(struct sv_peer *peer, const struct iovec *here,
				  unsigned here_count, const struct iovec *there,
				  unsigned there_count, size_t length, bool write)
{
	ssize_t moved = peer_move(peer, here, here_count, there, there_count, write);

	/*
	 * A page is not mapped, or the peer is exiting and has no pages left: the second try
	 * tells which.
	 */
	if (moved >= 0 && moved != (ssize_t)length)
		moved = peer_move(peer, here, here_count, there, there_count, write);
	if (moved == (ssize_t)length)
		return COPY_DONE;
	return copy_failed(peer, moved, errno, here, here_count, !write);
}

/* Within one process the kernel copies too: memory may be registered and no longer mapped. */
static enum copy_result self_copy(const struct iovec *to, unsigned to_count,
				  const struct iovec *from, unsigned from_count,
				  const struct iovec *here, unsigned here_count, bool write)
{
	if (sv_memory_move(to, to_count, from, from_count))
		return COPY_DONE;
	return sv_memory_is_there(here, here_count, !write) ? COPY_THERE : COPY_HERE;
}

static enum copy_result copy_out(struct sv_peer *peer, const struct iovec *from,
				 unsigned from_count, const struct iovec *there,
				 unsigned there_count, size_t length)
{
	if (peer->copy == SV_COPY_SELF)
		return self_copy(there, there_count, from, from_count, from, from_count, true);
	return peer_copy(peer, from, from_count, there, there_count, length, true);
}

enum copy_result sv_copy_out(struct sv_peer *peer, const struct iovec *here, unsigned here_count,
			     uint64_t skip, const struct iovec *there, unsigned there_count,
			     size_t length)
{
	struct iovec from[PIECES];
	unsigned count = iov_part(here, here_count, skip, length, from);

	return copy_out(peer, from, count, there, there_count, length);
}

/* ---- the bytes that a program polls ---- */

/* The part [skip, skip + length) of a list, divided before its last bytes. */
struct divided {
	struct iovec part[PIECES];
	unsigned body, count; /* parts before the last bytes, all parts */
	size_t last;
};

static void divide(struct divided *from, const struct iovec *here, unsigned here_count,
		   uint64_t skip, size_t length, size_t last)
{
	size_t body = length - last;

	from->last = last;
	from->body = iov_part(here, here_count, skip, body, from->part);
	from->count =
		from->body + iov_part(here, here_count, skip + body, last, from->part + from->body);
}

static bool last_is_one_part(const struct divided *from)
{
	return from->count == from->body + 1;
}

/*
 * Whether the kernel stores the last bytes at `to` at once when it copies the parts. Kernels of x86 copy less than eight bytes
 * one by one, unless the processor has fast short string moves. Those before 6.4 also copy so up to the next multiple of eight,
 * unless it has fast long ones, so that four bytes with the four before them would not be one store.
 */
static bool is_at_once(const struct divided *from, const void *to)
{
	return last_is_one_part(from) &&
	       (from->last == 1 ||
		(from->last == 8 && !is_bytewise(from->part[from->body].iov_base, to)));
}

/* The last bytes, where the kernel copies them at once to their target. */
struct apart {
	uint8_t room[STRING_ALIAS + 8], *bytes;
};

static bool apart_fill(struct apart *apart, const struct divided *from, const void *to)
{
	uintptr_t ahead = (uintptr_t)to - (uintptr_t)apart->room;
	struct iovec unit = { apart->room + (ahead + STRING_ALIAS / 2) % STRING_ALIAS, from->last };

	apart->bytes = unit.iov_base;
	return sv_memory_move(&unit, 1, from->part + from->body, from->count - from->body);
}

/*
 * By itself: the process stores it into its own memory; the kernel stores four bytes at once through a descriptor. Of two
 * bytes it would store the first one last, so these are two copies.
 */
static enum copy_result unit_out(struct sv_peer *peer, const struct divided *from,
				 const struct iovec *there)
{
	uint8_t *to = there->iov_base;
	const struct iovec each_there[2] = { { to, 1 }, { to + 1, 1 } };
	struct iovec each[2], unit;
	struct apart apart;

	if (peer->copy != SV_COPY_SELF && from->last == 4 && last_is_one_part(from) &&
	    !is_bytewise(from->part[from->body].iov_base, to))
		return copy_out(peer, from->part + from->body, 1, there, 1, 4);
	if (!apart_fill(&apart, from, to))
		return COPY_HERE;
	unit = (struct iovec){ apart.bytes, from->last };
	each[0] = (struct iovec){ apart.bytes, 1 };
	each[1] = (struct iovec){ apart.bytes + 1, 1 };
	if (peer->copy == SV_COPY_SELF)
		return sv_memory_store(there, apart.bytes) ? COPY_DONE : COPY_THERE;
	if (from->last == 2)
		return copy_out(peer, each, 2, each_there, 2, 2);
	return copy_out(peer, &unit, 1, there, 1, from->last);
}

/*
 * The kernel copies each part by itself, in order, whichever list divides the range. Where stores stay in order, the local
 * list does, which costs less. Elsewhere the kernel's work for another part of the peer's memory comes between the stores.
 */
enum copy_result sv_copy_out_polled(struct sv_peer *peer, const struct iovec *here,
				    unsigned here_count, uint64_t skip, struct iovec there)
{
	size_t length = there.iov_len, unit = memory_polled(&there), body = length - unit;
	struct iovec parts[2] = { { .iov_base = there.iov_base, .iov_len = body },
				  { .iov_base = (uint8_t *)there.iov_base + body,
				    .iov_len = unit } };
	enum copy_result result = COPY_DONE;
	struct divided from;

	divide(&from, here, here_count, skip, length, unit);
	if (is_at_once(&from, parts[1].iov_base))
		return body && !PLATFORM_STORES_IN_ORDER
			       ? copy_out(peer, from.part, from.count, parts, 2, length)
			       : copy_out(peer, from.part, from.count, &there, 1, length);
	if (body)
		result = copy_out(peer, from.part, from.body, parts, 1, body);
	return result == COPY_DONE ? unit_out(peer, &from, &parts[1]) : result;
}

/* As above, but where stores do not stay in order the polled bytes have a call of their own. */
bool sv_copy_file(int file, uint64_t at, const struct iovec *here, unsigned here_count,
		  uint64_t skip, size_t length, bool write)
{
	struct iovec there = { (void *)(uintptr_t)at, length };
	size_t last = write ? memory_polled(&there) : 0, body = length - last;
	struct divided from;
	struct apart apart;

	divide(&from, here, here_count, skip, length, last);
	if (write && !is_at_once(&from, (uint8_t *)there.iov_base + body)) {
		if (last != 8 || !apart_fill(&apart, &from, (uint8_t *)there.iov_base + body))
			return false;
		from.part[from.body] = (struct iovec){ apart.bytes, last };
		from.count = from.body + 1;
	}
	if (PLATFORM_STORES_IN_ORDER || !body || !last)
		return sv_os_move(file, from.part, from.count, at, write) == (ssize_t)length;
	return sv_os_move(file, from.part, from.body, at, write) == (ssize_t)body &&
	       sv_os_move(file, from.part + from.body, from.count - from.body, at + body, write) ==
		       (ssize_t)last;
}

enum copy_result sv_copy_in(struct sv_peer *peer, const struct iovec *here, unsigned here_count,
			    uint64_t skip, const struct iovec *there, unsigned there_count,
			    size_t length)
{
	struct iovec from[PIECES], to[PIECES];
	unsigned to_count = iov_part(here, here_count, skip, length, to);
	unsigned from_count = iov_part(there, there_count, 0, length, from);

	if (peer->copy == SV_COPY_SELF)
		return self_copy(to, to_count, from, from_count, to, to_count, false);
	return peer_copy(peer, to, to_count, from, from_count, length, false);
}
