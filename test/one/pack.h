/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * For tests of structures that are converted: bytes that differ from each other, and guards around
 * the output.
 */
#ifndef ONE_PACK_H
#define ONE_PACK_H

#include "test/one/fake.h"

#define W(i)		(0x7000 + (i))
#define P(i)		((void *)(uintptr_t)W(i))
#define C(i)		((DAT_CONTEXT){ .as_64 = W(i) })
#define M(a, b, member) CU_ASSERT_EQUAL((a).member, (b).member)

/* Each 32-bit word has a value of its own. */
static inline void fill(void *bytes, size_t size)
{
	uint32_t value;
	size_t i;

	for (i = 0; i < size / sizeof(value); i++) {
		value = 0x11110000u + (uint32_t)i;
		memcpy((char *)bytes + i * sizeof(value), &value, sizeof(value));
	}
}

/* The output of a query, between bytes that the query may not change. */
#define GUARD 64
#define GUARDED(type)                        \
	struct {                             \
		unsigned char before[GUARD]; \
		type is;                     \
		unsigned char after[GUARD];  \
	}

static inline bool is_all(const void *bytes, size_t size, unsigned char value)
{
	const unsigned char *byte = bytes;
	size_t i;

	for (i = 0; i < size; i++)
		if (byte[i] != value)
			return false;
	return true;
}

#define GUARDS_HOLD(guarded)                                    \
	CU_ASSERT_TRUE(is_all((guarded).before, GUARD, 0xee) && \
		       is_all((guarded).after, GUARD, 0xee))

static inline void answer_with(unsigned arg, const void *bytes, size_t size)
{
	fake.out_arg = arg;
	fake.out = bytes;
	fake.out_size = size;
}

static inline void copy_in(unsigned arg, size_t size)
{
	fake.in_arg = arg;
	fake.in_size = size;
}

#endif
