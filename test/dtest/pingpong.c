/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* RDMA write ping-pong: each side polls the last byte of its memory for the round's counter. */

#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "dtest.h"

/*
 * The sizes around each base: one less, the base, one more. Powers of two end with the first that
 * is not below the requested length; the data areas have room for it.
 */
struct sizes {
	uint32_t base, longest, length;
	int step, next; /* -1, 0 or 1 beside the base; 2: the base is done */
};

static void sizes_start(struct sizes *z, const struct options *opt)
{
	z->length = opt->length;
	z->longest = opt->length;
	if (opt->all_sizes && !opt->step)
		while (z->longest & (z->longest - 1))
			z->longest += z->longest & -z->longest;
	z->step = opt->step;
	z->base = !opt->all_sizes ? opt->length : opt->step ? (uint32_t)opt->step : 1;
	z->next = opt->all_sizes ? -1 : 0;
}

static bool size_counts(const struct sizes *z)
{
	return z->next == 0 || (z->next < 0 ? z->base > 4 : z->base > 1 && z->base < z->length);
}

static bool size_next(struct sizes *z, bool all, uint32_t *size)
{
	for (; z->base <= z->longest; z->base += z->step ? (uint32_t)z->step : z->base) {
		for (; z->next <= 1; z->next++) {
			if (!size_counts(z))
				continue;
			*size = (uint32_t)((int64_t)z->base + z->next);
			z->next = all ? z->next + 1 : 3;
			return true;
		}
		if (!all)
			return false;
		z->next = -1;
	}
	return false;
}

/*
 * A failed receive is the first sign of a connection that ends; the end itself comes on the other
 * EVD.
 */
static void tell_ending(struct session *s)
{
	uint64_t deadline = clock_after(1);

	while (!session_lost(s) && !clock_passed(deadline))
		sched_yield();
}

/* No message is due now, so an event here means a broken connection. */
static bool quiet(struct session *s)
{
	DAT_EVENT event;
	bool found;

	if (session_lost(s) || !event_look(s->recv_evd, &event, &found))
		return false;
	if (!found)
		return true;
	if (event.event_number == DAT_DTO_COMPLETION_EVENT &&
	    event.event_data.dto_completion_event_data.status != DAT_DTO_SUCCESS)
		tell_ending(s);
	else
		complain("Error: unexpected %s while polling memory",
			 event_name(event.event_number));
	return false;
}

static bool byte_await(struct session *s, const unsigned char *at, unsigned char value)
{
	const _Atomic unsigned char *byte = (const _Atomic unsigned char *)at;
	double seconds = session_limit(s, s->opt->length);
	uint64_t deadline = 0;

	for (unsigned int spins = 1;; spins++) {
		/* acquire: the bytes before the last one are read only after it */
		if (atomic_load_explicit(byte, memory_order_acquire) == value)
			return true;
		if (spins % 4096)
			continue;
		if (!quiet(s))
			return false;
		if (!deadline) {
			deadline = clock_after(seconds);
			watchdog_set(seconds);
		} else if (clock_passed(deadline)) {
			complain("Error: no RDMA write of %u within %g seconds", value, seconds);
			return false;
		}
		sched_yield();
	}
}

/* The completion of the second last signaled write is taken while this write is in flight. */
static bool pong_post(struct session *s, uint32_t size, int round)
{
	DAT_LMR_TRIPLET iov = region_part(&s->send_data, 0, size);
	DAT_DTO_COOKIE cookie = { .as_64 = (DAT_UINT64)round };
	int rate = s->opt->rate;
	bool signaled = round % rate == 0;
	DAT_RETURN ret;

	ret = dat_ep_post_rdma_write(s->ep, 1, &iov, cookie, &s->peer,
				     signaled ? DAT_COMPLETION_DEFAULT_FLAG
					      : DAT_COMPLETION_SUPPRESS_FLAG);
	if (!dat_ok(ret, "dat_ep_post_rdma_write"))
		return false;
	return !signaled || round == rate ||
	       request_await(s, &s->spin, size, (uint64_t)(round - rate));
}

static bool pong_reap_last(struct session *s, uint32_t size)
{
	int last = s->opt->burst - s->opt->burst % s->opt->rate;

	return request_await(s, &s->spin, size, (uint64_t)last);
}

/* Four fixed patterns and a random one in turn; the server can know only the first four. */
static bool pattern_known(int round)
{
	return (round - 1) % 5 < 4;
}

static void pattern_make(unsigned char *to, uint32_t size, int round)
{
	static const unsigned char fixed[] = { 0x00, 0xff, 0x55, 0xaa };
	static uint32_t random = 2463534242u;

	if (pattern_known(round)) {
		memset(to, fixed[(round - 1) % 5], size);
	} else {
		for (uint32_t i = 0; i < size; i++) {
			random ^= random << 13;
			random ^= random >> 17;
			random ^= random << 5;
			to[i] = (unsigned char)(random >> 11);
		}
	}
	to[size - 1] = (unsigned char)round;
}

/*
 * Both sides send the same bytes: the last arrival equals the last send in the bytes that were
 * filled.
 */
static bool mirror_check(const struct session *s, uint32_t size)
{
	return content_same(s->recv_data.base, s->send_data.base,
			    size < s->opt->length ? size : s->opt->length, "RDMA write");
}

static bool client_round(struct session *s, uint32_t size, int round)
{
	unsigned char *mine = s->send_data.base, *theirs = s->recv_data.base;
	bool last = round == s->opt->burst;

	if (s->opt->check)
		pattern_make(mine, size, round);
	mine[size - 1] = (unsigned char)round;
	if (!pong_post(s, size, round) || !byte_await(s, &theirs[size - 1], (unsigned char)round))
		return false;
	return s->opt->check ? content_same(theirs, mine, size, "RDMA write")
			     : !last || mirror_check(s, size);
}

/*
 * next: the size of the next test, 0 after the last. Its counter is cleared before the client may
 * write it.
 */
static bool server_round(struct session *s, uint32_t size, int round, uint32_t next)
{
	unsigned char *mine = s->send_data.base, *theirs = s->recv_data.base;
	bool last = round == s->opt->burst;

	if (!byte_await(s, &theirs[size - 1], (unsigned char)round))
		return false;
	if (s->opt->check) {
		if (pattern_known(round)) {
			pattern_make(s->want[0], size, round);
			if (!content_same(theirs, s->want[0], size, "RDMA write"))
				return false;
		}
		memcpy(mine, theirs, size);
	}
	mine[size - 1] = (unsigned char)round;
	if (last && !mirror_check(s, size))
		return false;
	if (last && next)
		theirs[next - 1] = 0;
	return pong_post(s, size, round);
}

static bool pong_size(struct session *s, uint32_t size, uint32_t next)
{
	int rounds = s->opt->burst;
	uint64_t start, last;

	if (!is_server(s))
		s->recv_data.base[size - 1] = 0;
	start = last = clock_ns();
	for (int round = 1; round <= rounds; round++) {
		uint64_t now;

		if (!(is_server(s) ? server_round(s, size, round, next)
				   : client_round(s, size, round)))
			return false;
		now = clock_ns();
		s->m.rounds_ns[round - 1] = (uint32_t)(now - last);
		last = now;
	}
	if (!pong_reap_last(s, size))
		return false;
	report_rounds(s, "RDMA write", size, rounds, (double)(last - start) / 1000.0);
	return true;
}

bool test_pingpong(struct session *s)
{
	bool all = s->opt->all_sizes, more;
	struct sizes sizes;
	uint32_t size, next;

	say_heading("RDMA WRITE PINGPONG with%s DATA CHECK", s->opt->check ? "" : "out");
	s->m.rounds_ns = calloc((size_t)s->opt->burst, sizeof(*s->m.rounds_ns));
	if (!s->m.rounds_ns) {
		complain("Error: no memory for %d rounds", s->opt->burst);
		return false;
	}
	sizes_start(&sizes, s->opt);
	more = size_next(&sizes, all, &size);
	while (more) {
		more = size_next(&sizes, all, &next);
		if (!pong_size(s, size, more ? next : 0))
			return false;
		size = next;
	}
	return true;
}
