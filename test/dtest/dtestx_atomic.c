/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Atomic operations on the peer's memory, while the peer does the same to ours. */

#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "dtestx.h"

/*
 * A peer of another make does not synchronize but pauses: it swaps one second after the immediate
 * data, and begins to add three seconds later.
 */
enum { OTHER_HAS_SWAPPED_MS = 2500 };

/* Index 0: operations of the client on the server's memory; 1: those of the server. */
static const struct {
	uint64_t start, compare, swap, end;
} swaps[] = {
	{ 0x12345, 0x12345, 0x98765, 0x98765 },
	{ 0x54321, 0x654321, 0x6789a, 0x54321 }, /* compares unequal on purpose */
};

static const struct {
	uint64_t start, add;
} adds[] = {
	{ 0x10, 0x10 },
	{ 0x100, 0x100 },
};

static int done_by_us(const struct x_test *t)
{
	return x_is_server(t) ? 1 : 0;
}

static int done_to_us(const struct x_test *t)
{
	return 1 - done_by_us(t);
}

static _Atomic uint64_t *target(const struct x_test *t)
{
	return (_Atomic uint64_t *)x_buffer(t, 0, BUF_WRITE_TO)->base;
}

/* Release: a peer that reads the value over the wire finds nothing older behind it. */
static void target_set(struct x_test *t, uint64_t value)
{
	atomic_store_explicit(target(t), value, memory_order_release);
}

/* Acquire: what the peer did before it changed the value is visible after this load. */
static bool target_await(struct x_test *t, uint64_t value)
{
	double seconds = adapter_limit(&t->a, PART_SECONDS);
	uint64_t deadline = clock_after(seconds), now;

	for (;;) {
		now = atomic_load_explicit(target(t), memory_order_acquire);
		if (now == value)
			return true;
		if (clock_passed(deadline))
			break;
		clock_pause_ms(1);
	}
	complain("Error: own memory has 0x%" PRIx64 " after %g seconds, expected 0x%" PRIx64, now,
		 seconds, value);
	return false;
}

static bool atomic_await(struct x_test *t, int type, uint64_t cookie, uint64_t *original)
{
	DAT_EVENT event;

	do {
		if (!x_transfer_await(t, "atomic operation", &event))
			return false;
	} while (x_word_came(t, &event));
	if (!x_completion_check(&event, type, sizeof(*original), cookie))
		return false;
	memcpy(original, t->atomic.base, sizeof(*original));
	return true;
}

static bool swap_once(struct x_test *t, uint64_t *original)
{
	DAT_LMR_TRIPLET iov = memory_part(&t->atomic, 0, sizeof(uint64_t));
	DAT_DTO_COOKIE cookie = { .as_64 = COOKIE_CAS };
	int which = done_by_us(t);
	DAT_RETURN ret;

	ret = dat_ib_post_cmp_and_swap(t->eps[0], swaps[which].compare, swaps[which].swap, &iov,
				       cookie, &t->peer, DAT_COMPLETION_DEFAULT_FLAG);
	return dat_ok(ret, "dat_ib_post_cmp_and_swap") &&
	       atomic_await(t, DAT_IB_CMP_AND_SWAP, COOKIE_CAS, original);
}

static bool add_once(struct x_test *t, uint64_t add, uint64_t *original)
{
	DAT_LMR_TRIPLET iov = memory_part(&t->atomic, 0, sizeof(uint64_t));
	DAT_DTO_COOKIE cookie = { .as_64 = COOKIE_ADD };
	DAT_RETURN ret;

	ret = dat_ib_post_fetch_and_add(t->eps[0], add, &iov, cookie, &t->peer,
					DAT_COMPLETION_DEFAULT_FLAG);
	return dat_ok(ret, "dat_ib_post_fetch_and_add") &&
	       atomic_await(t, DAT_IB_FETCH_AND_ADD, COOKIE_ADD, original);
}

static bool add_nothing(struct x_test *t, uint64_t *original)
{
	return add_once(t, 0, original);
}

/*
 * Repeats an operation that changes nothing until the peer has set its value. The first swap that
 * finds the value is the one that counts.
 */
static bool until_original(struct x_test *t, bool (*operation)(struct x_test *, uint64_t *),
			   uint64_t expected, uint64_t *original)
{
	uint64_t deadline = clock_after(adapter_limit(&t->a, PART_SECONDS));

	while (operation(t, original)) {
		if (*original == expected || clock_passed(deadline))
			return true;
		clock_pause_ms(1);
	}
	return false;
}

static bool original_check(const struct x_test *t, uint64_t original, uint64_t expected)
{
	note("%s got original data = 0x%" PRIx64 ", expected 0x%" PRIx64, x_role(t), original,
	     expected);
	if (original != expected)
		complain("Error: wrong original data");
	return original == expected;
}

/* The peer has done its swap, and the memory may be used for another test. */
static bool swaps_settle(struct x_test *t)
{
	uint64_t passed_ms = (clock_ns() - t->immed_ns) / 1000000;

	if (t->same_make)
		return x_barrier(t);
	if (x_is_server(t)) /* only the client's swap changes the value */
		return true;
	if (passed_ms < OTHER_HAS_SWAPPED_MS)
		clock_pause_ms(OTHER_HAS_SWAPPED_MS - (int)passed_ms);
	return true;
}

bool x_cmp_swap(struct x_test *t)
{
	int us = done_by_us(t), them = done_to_us(t);
	uint64_t original;

	target_set(t, swaps[them].start);
	printf("\n");
	note("Doing CMP and SWAP");
	if (!adapter_has(&t->a, DAT_IB_ATTR_CMP_AND_SWAP)) {
		note("Skipping CMP and SWAP as it is not supported by HW");
		return true;
	}
	if (!until_original(t, swap_once, swaps[us].start, &original) ||
	    !original_check(t, original, swaps[us].start) || !target_await(t, swaps[them].end) ||
	    !swaps_settle(t) || !target_await(t, swaps[them].end))
		return false;
	note("%s final result (on %s) = 0x%" PRIx64, x_is_server(t) ? "Client" : "Server",
	     x_role(t), swaps[them].end);
	printf("\n");
	note("CMP_SWAP test - PASSED");
	return true;
}

bool x_fetch_add(struct x_test *t)
{
	int us = done_by_us(t), them = done_to_us(t);
	uint64_t original, end = adds[them].start + 2 * adds[them].add;

	printf("\n");
	note("Doing FETCH and ADD");
	if (!adapter_has(&t->a, DAT_IB_ATTR_FETCH_AND_ADD)) {
		note("Skipping FETCH and ADD as it is not supported by HW");
		return true;
	}
	target_set(t, adds[them].start);
	if (!until_original(t, add_nothing, adds[us].start, &original))
		return false;
	for (uint64_t k = 0; k < 2; k++) {
		uint64_t expected = adds[us].start + k * adds[us].add;

		if (!add_once(t, adds[us].add, &original) || !original_check(t, original, expected))
			return false;
	}
	if (!target_await(t, end))
		return false;
	note("%s final result (on %s) = 0x%" PRIx64, x_is_server(t) ? "Client" : "Server",
	     x_role(t), end);
	printf("\n");
	note("FETCH_ADD test - PASSED");
	return true;
}
