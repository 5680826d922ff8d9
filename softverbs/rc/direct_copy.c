/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Copies to and from memory of a peer that is mapped here. */
#include "softverbs/base/mapped.h"
#include "softverbs/rc/direct.h"
#include "softverbs/rc/memory.h"

#define TOUCHED \
	4096u /* bytes; a list up to this long is touched like that of a send, without asking the kernel */

/* Whether the part [skip, skip + length) of a long list is mapped. */
static bool list_is_mapped(struct mapped *known, const struct iovec *here, unsigned count,
			   uint64_t skip, size_t length)
{
	if (length <= TOUCHED)
		return true;
	for (unsigned i = 0; i < count && length; i++) {
		uintptr_t begin = (uintptr_t)here[i].iov_base + skip;
		size_t part;

		if (skip >= here[i].iov_len) {
			skip -= here[i].iov_len;
			continue;
		}
		part = here[i].iov_len - skip < length ? here[i].iov_len - skip : length;
		if (!mapped_covers(known, begin, begin + part, begin + part))
			return false;
		length -= part;
		skip = 0;
	}
	return true;
}

/* Copies [skip, skip + length) of the list; `out`: from the list to `there`. */
static void list_copy(const struct iovec *here, unsigned count, uint64_t skip, uint8_t *there,
		      size_t length, bool out)
{
	for (unsigned i = 0; i < count && length; i++) {
		uint8_t *at = here[i].iov_base;
		size_t part;

		if (skip >= here[i].iov_len) {
			skip -= here[i].iov_len;
			continue;
		}
		part = here[i].iov_len - skip < length ? here[i].iov_len - skip : length;
		copy_small(out ? there : at + skip, out ? at + skip : there, part);
		there += part;
		length -= part;
		skip = 0;
	}
}

static void stores_out(const struct iovec *here, unsigned count, uint64_t skip, uint8_t *there,
		       size_t length)
{
	struct iovec range = { there, length };
	size_t last = memory_polled(&range), body = length - last;
	uint64_t value = 0;

	list_copy(here, count, skip + body, (uint8_t *)&value, last, true);
	list_copy(here, count, skip, there, body, true);
	memory_store_unit(there + body, value, last);
}

/* Aligned words are read at once: another thread or process may store them meanwhile. */
static void loads_in(const struct iovec *here, unsigned count, uint64_t skip, const void *there,
		     size_t length)
{
	uint64_t value;

	if (length == sizeof(value) && !((uintptr_t)there % sizeof(value))) {
		value = __atomic_load_n((const uint64_t *)there, __ATOMIC_ACQUIRE);
		there = &value;
	}
	list_copy(here, count, skip, (uint8_t *)(uintptr_t)there, length, false);
	fence_acquire(); /* later accesses of this thread come after these loads */
}

enum copy_result sv_direct_out(struct mapped *known, const struct iovec *here, unsigned count,
			       uint64_t skip, const struct direct_place *place, size_t length)
{
	if (!place->at)
		return sv_copy_file(place->file, place->offset, here, count, skip, length, true)
			       ? COPY_DONE
			       : COPY_THERE;
	if (!list_is_mapped(known, here, count, skip, length))
		return COPY_HERE;
	stores_out(here, count, skip, place->at, length);
	return COPY_DONE;
}

enum copy_result sv_direct_in(struct mapped *known, const struct iovec *here, unsigned count,
			      uint64_t skip, const struct direct_place *place, size_t length)
{
	if (!place->at)
		return sv_copy_file(place->file, place->offset, here, count, skip, length, false)
			       ? COPY_DONE
			       : COPY_THERE;
	if (!list_is_mapped(known, here, count, skip, length))
		return COPY_HERE;
	loads_in(here, count, skip, place->at, length);
	return COPY_DONE;
}
