/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Bursts of messages: the client sends, the server answers; every message is checked. */

#include <endian.h>
#include <inttypes.h>
#include <string.h>

#include "dtestsrq.h"

static unsigned int seed_of(bool server, int ep, uint32_t number)
{
	return (server ? 7u : 3u) + (unsigned int)ep * 11u + number * 5u;
}

static void message_make(struct srq_test *t, int slot, int ep, uint32_t number)
{
	unsigned char *to = t->send.base + (size_t)slot * t->opt.length;
	bool server = srq_is_server(t);
	struct header header = {
		.kind = server ? HEADER_SERVER : HEADER_CLIENT,
		.ep = htobe32((uint32_t)ep),
		.number = htobe32(number),
	};
	uint32_t size = t->opt.length < HEADER_SIZE ? t->opt.length : HEADER_SIZE;

	memcpy(to, &header, size);
	pattern_fill(to + size, t->opt.length - size, seed_of(server, ep, number));
}

static DAT_RETURN message_post(struct srq_test *t, int slot, int ep)
{
	DAT_LMR_TRIPLET iov = memory_part(&t->send, (size_t)slot * t->opt.length, t->opt.length);
	DAT_DTO_COOKIE cookie = { .as_64 = (DAT_UINT64)slot };

	if (t->opt.ud)
		return dat_ib_post_send_ud(srq_ep(t, ep), 1, &iov, &t->ahs[ep], cookie,
					   DAT_COMPLETION_DEFAULT_FLAG);
	return dat_ep_post_send(srq_ep(t, ep), 1, &iov, cookie, DAT_COMPLETION_DEFAULT_FLAG);
}

static bool burst_send(struct srq_test *t, int round)
{
	for (int k = 0; k < t->opt.burst; k++) {
		uint32_t number = (uint32_t)round * (uint32_t)t->opt.burst + (uint32_t)k + 1;

		for (int ep = 0; ep < t->opt.connections; ep++) {
			int slot = ep * t->opt.burst + k;

			message_make(t, slot, ep, number);
			if (!dat_ok(message_post(t, slot, ep),
				    t->opt.ud ? "dat_ib_post_send_ud" : "dat_ep_post_send"))
				return false;
			t->sending[slot] = true;
			adapter_tell(&t->a, "%s: SEND, ep %d, msg num %u", srq_role(t), ep, number);
		}
	}
	return true;
}

/*
 * Takes a completion, whose cookie is the number of its buffer; datagrams complete as extension
 * events.
 */
static bool dto_check(const struct srq_test *t, const DAT_EVENT *event, uint32_t length, int *slot)
{
	const DAT_DTO_COMPLETION_EVENT_DATA *dto = &event->event_data.dto_completion_event_data;
	int expected = t->opt.ud ? (int)DAT_IB_DTO_EVENT : (int)DAT_DTO_COMPLETION_EVENT;

	if ((int)event->event_number != expected) {
		complain("Error: unexpected event 0x%x %s", (unsigned int)event->event_number,
			 event_name(event->event_number));
		return false;
	}
	if (dto->status != DAT_DTO_SUCCESS) {
		complain("Error: transfer ended with %s", dto_status_name(dto->status));
		return false;
	}
	if (dto->transfered_length != length ||
	    dto->user_cookie.as_64 >= (DAT_UINT64)srq_slots(t)) {
		complain("Error: completion with length %u, cookie %" PRIx64
			 ", expected %u and less than %x",
			 (unsigned int)dto->transfered_length, (uint64_t)dto->user_cookie.as_64,
			 length, (unsigned int)srq_slots(t));
		return false;
	}
	*slot = (int)dto->user_cookie.as_64;
	return true;
}

static bool requests_reap(struct srq_test *t)
{
	struct connections all = srq_connections(t);
	DAT_EVENT event;
	int slot;

	for (int n = 0; n < srq_slots(t); n++) {
		if (!transfer_await(&t->a, &t->wait, t->request_evd, &all, "completion", &event) ||
		    !dto_check(t, &event, t->opt.length, &slot))
			return false;
		if (!t->sending[slot]) {
			complain("Error: message %d completed twice", slot);
			return false;
		}
		t->sending[slot] = false;
	}
	return true;
}

/* A peer of another make defines only the header; one of this make defines all of every message. */
static bool content_check(struct srq_test *t, const unsigned char *data, int ep, uint32_t number)
{
	enum pattern_verdict verdict;

	verdict = pattern_check(data + HEADER_SIZE, t->opt.length - HEADER_SIZE,
				seed_of(!srq_is_server(t), ep, number));
	if (t->make == MAKE_UNKNOWN && verdict != PATTERN_WRONG)
		t->make = verdict == PATTERN_SAME ? MAKE_SAME : MAKE_OTHER;
	if (verdict == PATTERN_SAME || (verdict == PATTERN_OTHER && t->make == MAKE_OTHER))
		return true;
	complain("Error: message %u of connection %d has wrong contents", number, ep);
	return false;
}

static bool header_check(struct srq_test *t, const unsigned char *data, DAT_EP_HANDLE from)
{
	unsigned char kind = srq_is_server(t) ? HEADER_CLIENT : HEADER_SERVER;
	struct header header;
	uint32_t ep, number;

	if (data[0] != kind) {
		complain("Error: message begins with 0x%02x, expected 0x%02x", data[0], kind);
		return false;
	}
	if (t->opt.length < HEADER_SIZE)
		return true;
	memcpy(&header, data, HEADER_SIZE);
	ep = be32toh(header.ep);
	number = be32toh(header.number);
	if (ep >= (uint32_t)t->opt.connections || srq_ep(t, (int)ep) != from) {
		complain("Error: message of connection %u came to endpoint %p", ep, (void *)from);
		return false;
	}
	if (number != t->received[ep] + 1) {
		complain("Error: message %u of connection %u came after %u", number, ep,
			 t->received[ep]);
		return false;
	}
	t->received[ep] = number;
	adapter_tell(&t->a, "%s: incoming data: ep num %u, ep msg num %u", srq_role(t), ep, number);
	return content_check(t, data, (int)ep, number);
}

/* Each buffer is posted again at once, so the queue is full before the answers can come. */
static bool burst_receive(struct srq_test *t)
{
	struct connections all = srq_connections(t);
	uint32_t skip = t->opt.ud ? GRH_SIZE : 0;
	DAT_EVENT event;
	int slot;

	for (int n = 0; n < srq_slots(t); n++) {
		DAT_EP_HANDLE ep;

		if (!transfer_await(&t->a, &t->wait, t->recv_evd, &all, "message", &event) ||
		    !dto_check(t, &event, t->recv_size, &slot))
			return false;
		ep = event.event_data.dto_completion_event_data.ep_handle;
		if (!header_check(t, t->recv.base + (size_t)slot * t->recv_size + skip, ep) ||
		    !recv_post(t, ep, slot))
			return false;
	}
	return true;
}

bool srq_exchange(struct srq_test *t)
{
	for (int round = 0; round < t->opt.bursts; round++) {
		if (srq_is_server(t)) {
			if (!burst_receive(t) || !burst_send(t, round))
				return false;
		} else {
			if (!burst_send(t, round) || !burst_receive(t))
				return false;
		}
		if (!requests_reap(t))
			return false;
	}
	return true;
}
