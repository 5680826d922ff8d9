/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* RDMA writes in bursts, from one side or both, confirmed by messages or by immediate data. */

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "dtest.h"

enum { TEXT_SIZE = 80 };

static bool writes(const struct session *s)
{
	return !is_server(s) || !s->opt->one_way;
}

static bool is_written(const struct session *s)
{
	return is_server(s) || !s->opt->one_way;
}

static double burst_bytes(const struct session *s)
{
	return (double)s->opt->length * s->opt->burst;
}

static bool write_post(struct session *s, int index, bool immed)
{
	DAT_LMR_TRIPLET iov = region_part(&s->send_data, 0, s->opt->length);
	DAT_DTO_COOKIE cookie = { .as_64 = (DAT_UINT64)index };
	bool signaled = (index + 1) % s->opt->rate == 0;
	DAT_COMPLETION_FLAGS flags =
		signaled ? DAT_COMPLETION_DEFAULT_FLAG : DAT_COMPLETION_SUPPRESS_FLAG;
	DAT_RETURN ret;

	if (immed) {
		ret = dat_ib_post_rdma_write_immed(s->ep, 1, &iov, cookie, &s->peer, IMMEDIATE,
						   flags);
		if (!dat_ok(ret, "dat_ib_post_rdma_write_immed"))
			return false;
	} else {
		ret = dat_ep_post_rdma_write(s->ep, 1, &iov, cookie, &s->peer, flags);
		if (!dat_ok(ret, "dat_ep_post_rdma_write"))
			return false;
	}
	return !signaled || request_await(s, &s->dto_wait, s->opt->length, (uint64_t)index);
}

static void burst_measured(struct session *s, uint64_t start, unsigned long polls)
{
	s->m.write_us = clock_us_since(start);
	s->m.write_polls = s->dto_wait.polls - polls;
	s->m.wrote = writes(s);
}

static void burst_prepare(struct session *s)
{
	const struct content c = { write_text(is_server(s)), write_seed(is_server(s)), -1 };

	content_make(s->send_data.base, s->opt->length, &c, false);
}

static bool burst_post(struct session *s)
{
	for (int i = 0; i < s->opt->burst; i++)
		if (!write_post(s, i, false))
			return false;
	return true;
}

static bool written_check(struct session *s)
{
	const struct content c = { write_text(!is_server(s)), write_seed(!is_server(s)), -1 };

	if (!content_check(s, s->recv_data.base, &c, "RDMA write"))
		return false;
	content_show(s, "RDMA write", s->recv_data.base);
	return true;
}

/* The peer may read as soon as it has the message, so the contents are in place before. */
bool test_writes(struct session *s)
{
	bool reads = s->opt->kind == KIND_FULL && s->has_read;
	unsigned long polls = s->dto_wait.polls;
	uint64_t start;

	say_heading("RDMA WRITE DATA with SEND MSG");
	burst_prepare(s);
	start = clock_ns();
	if (writes(s) && !burst_post(s))
		return false;
	if (!is_server(s)) {
		say("Sending RDMA WRITE completion message");
		if (!message_send(s))
			return false;
	}
	if (!message_await(s, burst_bytes(s)))
		return false;
	burst_measured(s, start, polls);
	say("inbound rdma_write; send message arrived!");
	if (is_written(s) && !written_check(s))
		return false;
	if (reads)
		read_prepare(s);
	if (!is_server(s))
		return true;
	say("Sending RDMA WRITE completion message");
	return message_send(s);
}

static void immed_text(char text[TEXT_SIZE], bool server, int index)
{
	snprintf(text, TEXT_SIZE, "%srdma writes completed == %d", write_text(server), index + 1);
}

/* The first and last bytes of each write have its number; the rest does not change. */
static bool burst_post_immed(struct session *s)
{
	uint32_t length = s->opt->length;
	int burst = s->opt->burst;
	char text[TEXT_SIZE];

	for (int i = 0; i < burst; i++) {
		size_t size;

		immed_text(text, is_server(s), i);
		size = strlen(text) + 1;
		memcpy(s->send_data.base, text, size < length ? size : length);
		s->send_data.base[length - 1] = (unsigned char)i;
		if (!write_post(s, i, i == burst - 1))
			return false;
	}
	return true;
}

#ifdef TEST_ONE /* without extensions the event never comes, so the test is not begun */
static bool immed_await(struct session *s)
{
	(void)s;
	return false;
}
#else
static bool immed_await(struct session *s)
{
	uint64_t index = (uint64_t)s->next_msg++;
	const DAT_DTO_COMPLETION_EVENT_DATA *dto;
	const DAT_IB_EXTENSION_EVENT_DATA *ext;
	DAT_EVENT event;

	if (!event_await(&s->dto_wait, s->recv_evd, "immediate data",
			 session_limit(s, burst_bytes(s)), &event))
		return false;
	dto = &event.event_data.dto_completion_event_data;
	ext = (const DAT_IB_EXTENSION_EVENT_DATA *)event.event_extension_data;
	if (event.event_number != (DAT_EVENT_NUMBER)DAT_IB_DTO_EVENT ||
	    ext->type != DAT_IB_RDMA_WRITE_IMMED_DATA || ext->val.immed.data != IMMEDIATE) {
		complain("Error: event 0x%x %s type 0x%x immediate 0x%x, expected immediate 0x%x",
			 (unsigned int)event.event_number, event_name(event.event_number),
			 (unsigned int)ext->type, (unsigned int)ext->val.immed.data, IMMEDIATE);
		return false;
	}
	if (dto->status != DAT_DTO_SUCCESS || dto->user_cookie.as_64 != index ||
	    dto->transfered_length != s->opt->length) {
		complain("Error: immediate data came with %s, cookie %" PRIx64 ", length %u",
			 dto_status_name(dto->status), (uint64_t)dto->user_cookie.as_64,
			 (unsigned int)dto->transfered_length);
		return false;
	}
	return true;
}
#endif

static bool written_check_immed(struct session *s)
{
	int last = s->opt->burst - 1;
	char text[TEXT_SIZE];
	struct content c = { text, write_seed(!is_server(s)), last & 0xff };

	immed_text(text, !is_server(s), last);
	if (!content_check(s, s->recv_data.base, &c, "RDMA write"))
		return false;
	content_show(s, "RDMA write", s->recv_data.base);
	return true;
}

bool test_writes_immed(struct session *s)
{
	unsigned long polls = s->dto_wait.polls;
	uint64_t start;

	say_heading("RDMA WRITE IMM DATA with SEND MSG");
	burst_prepare(s);
	start = clock_ns();
	if (writes(s) && !burst_post_immed(s))
		return false;
	if (is_written(s) && (!immed_await(s) || !written_check_immed(s)))
		return false;
	if (!is_server(s) && !message_send(s))
		return false;
	if (!message_await(s, burst_bytes(s)))
		return false;
	burst_measured(s, start, polls);
	return !is_server(s) || message_send(s);
}
