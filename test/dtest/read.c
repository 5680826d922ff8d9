/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* RDMA reads of the peer's memory; each is compared with the possible contents. */

#include <sched.h>
#include <string.h>

#include "dtest.h"

/* The contents of a sink before each read, which are neither text nor filler. */
enum { UNTOUCHED = 0xee };

enum verdict { READ_NEW, READ_OLD, READ_WRONG };

/* Indices into session.want */
enum { BEFORE, NEW_SAME_MAKE, NEW_OTHER_MAKE };

void read_prepare(struct session *s)
{
	const struct content c = { read_text(is_server(s)), read_seed(is_server(s)), -1 };

	content_make(s->recv_data.base, s->opt->length, &c, false);
}

/*
 * The peer's memory held what this side wrote to it, or its first contents. A program of this make
 * writes all of it again; another make only puts its text at the start.
 */
static void wanted_make(struct session *s)
{
	const struct content mine = { write_text(is_server(s)), write_seed(is_server(s)), -1 };
	const struct content theirs = { read_text(!is_server(s)), read_seed(!is_server(s)), -1 };
	uint32_t length = s->opt->length;
	size_t text = strlen(theirs.text) + 1;

	if (is_server(s) && s->opt->one_way)
		memset(s->want[BEFORE], 'a', length);
	else
		content_make(s->want[BEFORE], length, &mine, false);
	content_make(s->want[NEW_SAME_MAKE], length, &theirs, false);
	memcpy(s->want[NEW_OTHER_MAKE], s->want[BEFORE], length);
	memcpy(s->want[NEW_OTHER_MAKE], theirs.text, text < length ? text : length);
}

/* Another make of peer starts its memory with this text. */
static bool is_filler(uint32_t i, unsigned char byte)
{
	static const char filler[] = "blah, blah, blah\n";

	return i < sizeof(filler) && byte == (unsigned char)filler[i];
}

/* A read that raced with the peer's change of its memory may return some of both. */
static enum verdict compare(const unsigned char *got, const unsigned char *before,
			    const unsigned char *after, uint32_t length)
{
	if (!memcmp(got, after, length))
		return READ_NEW;
	for (uint32_t i = 0; i < length; i++)
		if (got[i] != before[i] && got[i] != after[i] && !is_filler(i, got[i]))
			return READ_WRONG;
	return READ_OLD;
}

static enum verdict judge(struct session *s)
{
	const unsigned char *got = s->send_data.base;
	uint32_t length = s->opt->length;
	enum verdict same = compare(got, s->want[BEFORE], s->want[NEW_SAME_MAKE], length);
	enum verdict other = compare(got, s->want[BEFORE], s->want[NEW_OTHER_MAKE], length);

	s->same_make = same == READ_NEW && other != READ_NEW;
	if (same == READ_NEW || other == READ_NEW)
		return READ_NEW;
	if (same == READ_OLD || other == READ_OLD)
		return READ_OLD;
	content_same(got, s->want[NEW_SAME_MAKE], length, "RDMA read");
	return READ_WRONG;
}

static bool read_once(struct session *s, double *us)
{
	uint32_t length = s->opt->length;
	DAT_LMR_TRIPLET iov = region_part(&s->send_data, 0, length);
	DAT_DTO_COOKIE cookie = { .as_64 = COOKIE_READ };
	unsigned long polls = s->dto_wait.polls;
	uint64_t start;
	DAT_RETURN ret;

	memset(s->send_data.base, UNTOUCHED, length);
	start = clock_ns();
	ret = dat_ep_post_rdma_read(s->ep, 1, &iov, cookie, &s->peer, DAT_COMPLETION_DEFAULT_FLAG);
	if (!dat_ok(ret, "dat_ep_post_rdma_read") ||
	    !request_await(s, &s->dto_wait, length, COOKIE_READ))
		return false;
	*us = clock_us_since(start);
	s->m.read_polls += s->dto_wait.polls - polls;
	return true;
}

/* The peer changes its memory next: contents that the usual reads must find old will be new. */
static bool read_all(struct session *s)
{
	uint64_t deadline = clock_after(session_limit(s, 0));
	enum verdict verdict = READ_OLD;
	double us;

	for (int i = 0; i < READ_COUNT || verdict == READ_OLD; i++) {
		if (!read_once(s, &us))
			return false;
		verdict = judge(s);
		if (verdict == READ_WRONG)
			return false;
		if (i < READ_COUNT) {
			s->m.read_us[i] = us;
			s->m.reads = i + 1;
		} else if (clock_passed(deadline)) {
			complain("Error: RDMA reads never show what the peer put there");
			return false;
		} else {
			sched_yield();
		}
	}
	return true;
}

/* The receives of the ping-pong are posted before the message that lets the peer begin. */
bool test_reads(struct session *s)
{
	say_heading("RDMA READ DATA with SEND MSG");
	wanted_make(s);
	if (!read_all(s) || !ping_post(s))
		return false;
	say("Sending RDMA read completion message");
	if (!message_send(s))
		return false;
	say("Waiting for inbound message....");
	if (!message_await(s, (double)s->opt->length * READ_COUNT))
		return false;
	say("inbound rdma_read; send message arrived!");
	content_show(s, "RCV RDMA read", s->send_data.base);
	return true;
}
