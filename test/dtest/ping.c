/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Message ping-pong: the client sends, the server answers, each message at a place of its own. */

#include <stdlib.h>
#include <string.h>

#include "dtest.h"

enum {
	FIRST_CLIENT = 0x55,
	FIRST_SERVER = 0xaa,
	SIGNAL_EVERY = 50,
	VARIANT_BYTES = 32 << 20,
};

static int slot_of(int round)
{
	return round % PING_COUNT;
}

/* Messages differ from each other as long as that does not use up the machine's memory. */
static int variants(const struct session *s)
{
	uint32_t fit = VARIANT_BYTES / s->opt->length;

	return fit < 1 ? 1 : fit > PING_COUNT ? PING_COUNT : (int)fit;
}

static void ping_make(unsigned char *to, uint32_t length, bool server, int variant)
{
	const struct content c = { "", (server ? 0x13u : 0x85u) + (unsigned int)variant * 11u, -1 };

	content_make(to, length, &c, false);
	to[0] = server ? FIRST_SERVER : FIRST_CLIENT;
}

static bool slot_post(struct session *s, int slot)
{
	size_t offset = (size_t)slot * s->opt->length;
	DAT_LMR_TRIPLET iov = region_part(&s->recv_data, offset, s->opt->length);
	DAT_DTO_COOKIE cookie = { .as_64 = (DAT_UINT64)slot };

	return dat_ok(dat_ep_post_recv(s->ep, 1, &iov, cookie, DAT_COMPLETION_DEFAULT_FLAG),
		      "dat_ep_post_recv");
}

bool ping_post(struct session *s)
{
	for (int slot = 0; slot < PING_COUNT; slot++)
		if (!slot_post(s, slot))
			return false;
	return true;
}

/*
 * A hundred messages fit into the queue without a completion; longer runs take one from time to
 * time.
 */
static bool ping_signaled(const struct session *s, int round)
{
	return s->opt->rounds > PING_COUNT && round % SIGNAL_EVERY == SIGNAL_EVERY - 1;
}

static bool ping_send(struct session *s, int round)
{
	size_t offset = (size_t)(round % variants(s)) * s->opt->length;
	DAT_LMR_TRIPLET iov = region_part(&s->send_data, offset, s->opt->length);
	DAT_DTO_COOKIE cookie = { .as_64 = COOKIE_MESSAGE };
	DAT_COMPLETION_FLAGS flags = ping_signaled(s, round) ? DAT_COMPLETION_DEFAULT_FLAG
							     : DAT_COMPLETION_SUPPRESS_FLAG;

	return dat_ok(dat_ep_post_send(s->ep, 1, &iov, cookie, flags), "dat_ep_post_send");
}

static bool ping_receive(struct session *s, int round)
{
	int slot = slot_of(round), first = is_server(s) ? FIRST_CLIENT : FIRST_SERVER;
	const unsigned char *data = s->recv_data.base + (size_t)slot * s->opt->length;

	if (!recv_await(s, s->opt->length, (uint64_t)slot, s->opt->length))
		return false;
	if (data[0] != first) {
		complain("Error: message %d starts with 0x%02x, expected 0x%02x", round, data[0],
			 (unsigned int)first);
		return false;
	}
	return true;
}

/* This work is no part of the round trip, so it is done while the answer is in flight. */
static bool ping_tidy(struct session *s, int round)
{
	if (round + PING_COUNT < s->opt->rounds && !slot_post(s, slot_of(round)))
		return false;
	return !ping_signaled(s, round) ||
	       request_await(s, &s->dto_wait, s->opt->length, COOKIE_MESSAGE);
}

static bool ping_round(struct session *s, int round)
{
	if (is_server(s))
		return ping_receive(s, round) && ping_send(s, round) && ping_tidy(s, round);
	return ping_send(s, round) && ping_receive(s, round) && ping_tidy(s, round);
}

static void ping_expect(struct session *s, int round)
{
	ping_make(s->want[0], s->opt->length, !is_server(s), round % variants(s));
}

/*
 * Every place is compared with its last message. A peer of another make defines only the first
 * byte; one of this make is recognised by its reads, or by most of its messages.
 */
static bool pings_check(struct session *s)
{
	int rounds = s->opt->rounds, from = rounds > PING_COUNT ? rounds - PING_COUNT : 0;
	int right = 0, wrong = -1;

	for (int round = from; round < rounds; round++) {
		ping_expect(s, round);
		if (!memcmp(s->recv_data.base + (size_t)slot_of(round) * s->opt->length, s->want[0],
			    s->opt->length))
			right++;
		else
			wrong = round;
	}
	if (wrong < 0 || (!s->same_make && right * 2 <= rounds - from))
		return true;
	ping_expect(s, wrong);
	return content_same(s->recv_data.base + (size_t)slot_of(wrong) * s->opt->length, s->want[0],
			    s->opt->length, "message");
}

bool test_ping(struct session *s)
{
	int rounds = s->opt->rounds;
	uint64_t start, last;

	say_heading("PING DATA with SEND MSG");
	for (int i = 0; i < variants(s); i++)
		ping_make(s->send_data.base + (size_t)i * s->opt->length, s->opt->length,
			  is_server(s), i);
	s->m.rounds_ns = calloc((size_t)rounds, sizeof(*s->m.rounds_ns));
	if (!s->m.rounds_ns) {
		complain("Error: no memory for %d rounds", rounds);
		return false;
	}
	start = last = clock_ns();
	for (int round = 0; round < rounds; round++) {
		uint64_t now;

		if (!ping_round(s, round))
			return false;
		now = clock_ns();
		s->m.rounds_ns[round] = (uint32_t)(now - last);
		last = now;
	}
	s->m.ping_us = (double)(last - start) / 1000.0;
	s->m.pinged = true;
	return pings_check(s);
}
