/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Messages with buffer descriptions, and the checks of every completion. */

#include <endian.h>
#include <inttypes.h>
#include <string.h>

#include "dtest.h"

DAT_LMR_TRIPLET region_part(const struct region *r, size_t offset, uint32_t length)
{
	DAT_LMR_TRIPLET part;

	memset(&part, 0, sizeof(part));
	part.virtual_address = (DAT_VADDR)(uintptr_t)(r->base + offset);
	part.segment_length = length;
	part.lmr_context = r->lkey;
	return part;
}

bool messages_post(struct session *s)
{
	for (int i = 0; i < MESSAGE_COUNT; i++) {
		DAT_LMR_TRIPLET iov = region_part(&s->recv_msg, (size_t)i * sizeof(struct message),
						  sizeof(struct message));
		DAT_DTO_COOKIE cookie = { .as_64 = (DAT_UINT64)i };

		if (!dat_ok(dat_ep_post_recv(s->ep, 1, &iov, cookie, DAT_COMPLETION_DEFAULT_FLAG),
			    "dat_ep_post_recv"))
			return false;
	}
	s->next_msg = 0;
	return true;
}

/* An RDMA write with immediate data completes at its sender with the extension's event number. */
static bool dto_check(const DAT_EVENT *event, bool extension_too, uint32_t length, uint64_t cookie)
{
	const DAT_DTO_COMPLETION_EVENT_DATA *dto = &event->event_data.dto_completion_event_data;

	if (event->event_number != DAT_DTO_COMPLETION_EVENT &&
	    !(extension_too && event->event_number == (DAT_EVENT_NUMBER)DAT_IB_DTO_EVENT)) {
		complain("Error: unexpected event 0x%x %s", (unsigned int)event->event_number,
			 event_name(event->event_number));
		return false;
	}
	if (dto->status != DAT_DTO_SUCCESS) {
		complain("Error: transfer ended with %s", dto_status_name(dto->status));
		return false;
	}
	if (dto->transfered_length != length || dto->user_cookie.as_64 != cookie) {
		complain("Error: completion with length %u, cookie %" PRIx64
			 ", expected %u and %" PRIx64,
			 (unsigned int)dto->transfered_length, (uint64_t)dto->user_cookie.as_64,
			 length, cookie);
		return false;
	}
	return true;
}

bool recv_await(struct session *s, uint32_t length, uint64_t cookie, double bytes)
{
	DAT_EVENT event;

	return event_await(&s->dto_wait, s->recv_evd, "message", session_limit(s, bytes), &event) &&
	       dto_check(&event, false, length, cookie);
}

bool request_await(struct session *s, struct waiter *w, uint32_t length, uint64_t cookie)
{
	DAT_EVENT event;
	double bytes = (double)length * s->opt->rate;

	return event_await(w, s->request_evd, "completion", session_limit(s, bytes), &event) &&
	       dto_check(&event, true, length, cookie);
}

static bool message_post(struct session *s, DAT_COMPLETION_FLAGS flags)
{
	DAT_LMR_TRIPLET iov = region_part(&s->send_msg, 0, sizeof(struct message));
	DAT_DTO_COOKIE cookie = { .as_64 = COOKIE_MESSAGE };

	return dat_ok(dat_ep_post_send(s->ep, 1, &iov, cookie, flags), "dat_ep_post_send");
}

bool message_send(struct session *s)
{
	return message_post(s, DAT_COMPLETION_SUPPRESS_FLAG);
}

static const struct message *message_at(const struct session *s, int index)
{
	return (const struct message *)s->recv_msg.base + index;
}

/* Every message of a run has the description of the first one. */
bool message_await(struct session *s, double bytes)
{
	int index = s->next_msg++;

	if (!recv_await(s, sizeof(struct message), (uint64_t)index, bytes))
		return false;
	if (memcmp(message_at(s, index), &s->greeting, sizeof(struct message))) {
		complain("Error: message %d is not what the peer sent before", index);
		return false;
	}
	return true;
}

static bool greeting_read(struct session *s)
{
	s->greeting = *message_at(s, 0);
	s->peer.virtual_address = be64toh(s->greeting.address);
	s->peer.segment_length = be32toh(s->greeting.length);
	s->peer.rmr_context = be32toh(s->greeting.context);
	say("Received RMR from remote: r_iov: r_key_ctx=%x,va=%" PRIx64 ",len=0x%x",
	    (unsigned int)s->peer.rmr_context, (uint64_t)s->peer.virtual_address,
	    (unsigned int)s->peer.segment_length);
	if (s->peer.segment_length < s->opt->length) {
		complain("Error: the peer has %u bytes for our %u: same -b on both sides?",
			 (unsigned int)s->peer.segment_length, s->opt->length);
		return false;
	}
	return true;
}

bool greeting_exchange(struct session *s)
{
	struct message *mine = (struct message *)s->send_msg.base;

	mine->address = htobe64((uint64_t)(uintptr_t)s->recv_data.base);
	mine->length = htobe32(s->opt->length);
	mine->context = htobe32(s->recv_data.rkey);
	say("Send RMR msg to remote: r_key_ctx=0x%x,va=%p,len=0x%x",
	    (unsigned int)s->recv_data.rkey, (void *)s->recv_data.base, s->opt->length);
	if (!message_post(s, DAT_COMPLETION_DEFAULT_FLAG) ||
	    !request_await(s, &s->dto_wait, sizeof(struct message), COOKIE_MESSAGE) ||
	    !recv_await(s, sizeof(struct message), 0, 0))
		return false;
	s->next_msg = 1;
	say("remote RMR data arrived!");
	return greeting_read(s);
}
