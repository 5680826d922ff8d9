/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * A provider of DAT 2.0 under libdat2 that records the calls that libdat.so.1 makes: each argument
 * as a word, and the bytes that one of them points to. It returns what the test sets, in the
 * layouts of DAT 2.0 (dat/one/two.h, which test/headers/two_layout.c compares with <dat2/udat.h>).
 */
#ifndef ONE_FAKE_H
#define ONE_FAKE_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <dat/udat.h>
#include <dat/dat_registry.h>
#include "dat/one/two.h"
#include "test/unit/unit.h"

/* The ABI passes integers, pointers and unions of them in 64-bit words, a structure of 16 bytes in two. */
#define FAKE_WORDS 14
#define FAKE_SLOTS 81 /* words of the table; the first two are not functions */

/* A slot of the table by its name in both versions; those of DAT 1.2 are the first ones of 2.0. */
#define FAKE_SLOT(name) (offsetof(struct dat_provider, name##_func) / sizeof(void *))

struct fake {
	uintptr_t seen[FAKE_WORDS];
	unsigned calls;
	DAT_RETURN answer; /* of DAT 2.0 */

	/*
	 * The bytes at argument `in_arg` are copied to `in`, and `out` is copied to where argument
	 * `out_arg` points.
	 */
	unsigned in_arg, out_arg;
	size_t in_size, out_size;
	unsigned char in[4096];
	const void *out;
};

static struct fake fake;
static void *fake_table[FAKE_SLOTS];
static struct {
	void **table;
} fake_object = { fake_table };
static DAT_IA_HANDLE fake_ia; /* the program's value */

static DAT_RETURN fake_record(uintptr_t a, uintptr_t b, uintptr_t c, uintptr_t d, uintptr_t e,
			      uintptr_t f, uintptr_t g, uintptr_t h, uintptr_t i, uintptr_t j,
			      uintptr_t k, uintptr_t l, uintptr_t m, uintptr_t n)
{
	const uintptr_t words[FAKE_WORDS] = { a, b, c, d, e, f, g, h, i, j, k, l, m, n };

	memcpy(fake.seen, words, sizeof(words));
	fake.calls++;
	if (fake.in_size && words[fake.in_arg])
		memcpy(fake.in, (const void *)words[fake.in_arg], fake.in_size);
	if (fake.out_size && words[fake.out_arg])
		memcpy((void *)words[fake.out_arg], fake.out, fake.out_size);
	return fake.answer;
}

static DAT_RETURN fake_ia_open(const DAT_NAME_PTR name, DAT_COUNT qlen, DAT_EVD_HANDLE *async_evd,
			       DAT_IA_HANDLE *ia)
{
	(void)name;
	(void)qlen;
	(void)async_evd;
	*ia = &fake_object;
	return DAT_SUCCESS;
}

/* The queries of libdat2 at an open. */
static DAT_RETURN fake_ia_query(DAT_IA_HANDLE ia, DAT_EVD_HANDLE *async_evd, DAT_UINT64 mask,
				struct two_ia_attr *attr, DAT_UINT64 provider_mask,
				struct two_provider_attr *provider_attr)
{
	(void)ia;
	(void)async_evd;
	(void)mask;
	(void)provider_mask;
	(void)provider_attr;
	memset(attr, 0, sizeof(*attr));
	return DAT_SUCCESS;
}

static DAT_RETURN fake_success(void)
{
	return DAT_SUCCESS;
}

/* From this call on, the slot is recorded and returns `answer`. */
static inline void fake_aim(size_t slot, DAT_RETURN answer)
{
	memset(&fake, 0, sizeof(fake));
	fake.answer = answer;
	fake_table[slot] = (void *)fake_record;
}

/* The provider is registered for DAT 2.0, and opened for 1.2. */
static inline void fake_open(void)
{
	static const DAT_PROVIDER_INFO info = { .ia_name = "fake", .dapl_version_major = 2 };
	DAT_EVD_HANDLE evd = DAT_HANDLE_NULL;
	size_t i;

	for (i = 2; i < FAKE_SLOTS; i++)
		fake_table[i] = (void *)fake_success;
	fake_table[FAKE_SLOT(ia_open)] = (void *)fake_ia_open;
	fake_table[FAKE_SLOT(ia_query)] = (void *)fake_ia_query;
	CU_ASSERT_EQUAL_FATAL(dat_registry_add_provider((const DAT_PROVIDER *)fake_table, &info),
			      DAT_SUCCESS);
	CU_ASSERT_EQUAL_FATAL(dat_ia_open((DAT_NAME_PTR) "fake", 8, &evd, &fake_ia), DAT_SUCCESS);
}

static inline void fake_close(void)
{
	static const DAT_PROVIDER_INFO info = { .ia_name = "fake", .dapl_version_major = 2 };

	fake_table[FAKE_SLOT(ia_close)] = (void *)fake_success;
	CU_ASSERT_EQUAL(dat_ia_close(fake_ia, DAT_CLOSE_ABRUPT_FLAG), DAT_SUCCESS);
	CU_ASSERT_EQUAL(dat_registry_remove_provider((const DAT_PROVIDER *)fake_table, &info),
			DAT_SUCCESS);
}

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
DAT_RETURN dats_get_ia_handle(unsigned long handle, DAT_IA_HANDLE *other);

#define ERROR(type, subtype) ((DAT_RETURN)(DAT_CLASS_ERROR | (type) | (subtype)))

#endif
