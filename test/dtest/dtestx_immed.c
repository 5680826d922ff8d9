/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Buffer descriptions, RDMA writes with immediate data both ways at once, and waiting in step. */

#include <endian.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "dtestx.h"

const DAT_IB_EXTENSION_EVENT_DATA *x_extension(const DAT_EVENT *event)
{
	return (const DAT_IB_EXTENSION_EVENT_DATA *)event->event_extension_data;
}

/* A type below 0 stands for a completion without extension. */
bool x_completion_check(const DAT_EVENT *event, int type, uint32_t length, uint64_t cookie)
{
	const DAT_DTO_COMPLETION_EVENT_DATA *dto = &event->event_data.dto_completion_event_data;
	const DAT_IB_EXTENSION_EVENT_DATA *ext = x_extension(event);
	int expected = type < 0 ? (int)DAT_DTO_COMPLETION_EVENT : (int)DAT_IB_DTO_EVENT;

	if ((int)event->event_number != expected) {
		complain("Error: unexpected event 0x%x %s", (unsigned int)event->event_number,
			 event_name(event->event_number));
		if (event->event_number == DAT_DTO_COMPLETION_EVENT)
			complain("Its status is %s, its cookie %" PRIx64,
				 dto_status_name(dto->status), (uint64_t)dto->user_cookie.as_64);
		return false;
	}
	if (dto->status != DAT_DTO_SUCCESS) {
		complain("Error: transfer ended with %s", dto_status_name(dto->status));
		return false;
	}
	if (type >= 0 && ((int)ext->type != type || ext->status != DAT_OP_SUCCESS)) {
		complain("Error: extension event of type %d, status %d, expected type %d",
			 (int)ext->type, (int)ext->status, type);
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

void x_describe(struct x_test *t, int connection)
{
	const struct memory *target = x_buffer(t, connection, BUF_WRITE_TO);
	struct description mine = {
		.address = htobe64((uint64_t)(uintptr_t)target->base),
		.length = htobe32(t->opt.length),
		.context = htobe32(target->rkey),
	};

	memcpy(x_buffer(t, connection, BUF_MESSAGE)->base, &mine, sizeof(mine));
	adapter_tell(&t->a, "Send RMR message: r_key_ctx=0x%x,va=%p,len=0x%x",
		     (unsigned int)target->rkey, (void *)target->base, t->opt.length);
}

static bool message_post(struct x_test *t, DAT_COMPLETION_FLAGS flags)
{
	DAT_LMR_TRIPLET iov =
		memory_part(x_buffer(t, 0, BUF_MESSAGE), 0, sizeof(struct description));
	DAT_DTO_COOKIE cookie = { .as_64 = COOKIE_SEND };

	return dat_ok(dat_ep_post_send(t->eps[0], 1, &iov, cookie, flags), "dat_ep_post_send");
}

static void status_show(struct x_test *t)
{
	DAT_BOOLEAN recv_idle, request_idle;
	DAT_EP_STATE state;

	if (dat_ok(dat_ep_get_status(t->eps[0], &state, &recv_idle, &request_idle),
		   "dat_ep_get_status"))
		note("EP[0] status: state %d, posted buffers: Req=%s, Rcv=%s", (int)state,
		     request_idle ? "none" : "some", recv_idle ? "none" : "some");
}

bool x_descriptions_exchange(struct x_test *t)
{
	const struct memory *buffer = x_buffer(t, 0, t->next_recv);
	struct description theirs;
	DAT_EVENT event;

	x_describe(t, 0);
	if (!message_post(t, DAT_COMPLETION_SUPPRESS_FLAG))
		return false;
	status_show(t);
	note("Waiting for remote to send RMR data");
	if (!x_transfer_await(t, "description of the peer's buffer", &event) ||
	    !x_completion_check(&event, -1, sizeof(theirs), (uint64_t)t->next_recv))
		return false;
	t->next_recv++;
	memcpy(&theirs, buffer->base, sizeof(theirs));
	t->peer.virtual_address = be64toh(theirs.address);
	t->peer.segment_length = be32toh(theirs.length);
	t->peer.rmr_context = be32toh(theirs.context);
	adapter_tell(&t->a, "Recv RMR message: r_key_ctx=0x%x,va=0x%llx,len=0x%x",
		     (unsigned int)t->peer.rmr_context, (unsigned long long)t->peer.virtual_address,
		     (unsigned int)t->peer.segment_length);
	if (t->peer.segment_length == t->opt.length)
		return true;
	complain("Error: the peer has %u bytes, not %u: same -b on both sides?",
		 (unsigned int)t->peer.segment_length, t->opt.length);
	return false;
}

static const char *text_of(bool server)
{
	return server ? "Server data" : "Client written data";
}

static unsigned int seed_of(bool server)
{
	return server ? 21 : 34;
}

/* Any peer writes the text; only a program of this make writes the bytes after it. */
static uint32_t text_size(const struct x_test *t, bool server)
{
	uint32_t size = (uint32_t)strlen(text_of(server)) + 1;

	return size < t->opt.length ? size : t->opt.length;
}

static void write_prepare(struct x_test *t)
{
	unsigned char *to = x_buffer(t, 0, BUF_WRITE_FROM)->base;
	uint32_t size = text_size(t, x_is_server(t));

	memcpy(to, text_of(x_is_server(t)), size);
	pattern_fill(to + size, t->opt.length - size, seed_of(x_is_server(t)));
}

static bool written_check(struct x_test *t)
{
	const unsigned char *got = x_buffer(t, 0, BUF_WRITE_TO)->base;
	bool by_server = !x_is_server(t);
	uint32_t size = text_size(t, by_server);
	enum pattern_verdict verdict;

	verdict = pattern_check(got + size, t->opt.length - size, seed_of(by_server));
	if (memcmp(got, text_of(by_server), size) || verdict == PATTERN_WRONG) {
		complain("Error: the written buffer has wrong contents");
		return false;
	}
	t->same_make = verdict == PATTERN_SAME;
	note("rdma buffer contains: %.*s", (int)size, (const char *)got);
	return true;
}

static bool immed_check(struct x_test *t, const DAT_EVENT *event)
{
	unsigned int expected = x_is_server(t) ? IMMED_CLIENT : IMMED_SERVER;
	unsigned int immed = x_extension(event)->val.immed.data;

	if (!x_completion_check(event, DAT_IB_RDMA_WRITE_IMMED_DATA, t->opt.length,
				(uint64_t)t->next_recv))
		return false;
	t->next_recv++;
	note("%s received immed_data=0x%x", x_role(t), immed);
	if (immed == expected)
		return true;
	complain("Error: immediate data 0x%x, expected 0x%x", immed, expected);
	return false;
}

/* The own write completes and the peer's arrives, in either order. */
static bool immed_await(struct x_test *t)
{
	bool written = false, arrived = false;
	DAT_EVENT event;

	while (!written || !arrived) {
		bool own;

		if (!x_transfer_await(t, "RDMA write with immediate data", &event))
			return false;
		own = event.event_data.dto_completion_event_data.user_cookie.as_64 == COOKIE_WRITE;
		if (own ? written : arrived) {
			complain("Error: an event came twice");
			return false;
		}
		if (own ? !x_completion_check(&event, DAT_IB_RDMA_WRITE_IMMED, t->opt.length,
					      COOKIE_WRITE)
			: !immed_check(t, &event))
			return false;
		written = written || own;
		arrived = arrived || !own;
	}
	return true;
}

bool x_immed(struct x_test *t)
{
	DAT_LMR_TRIPLET iov = memory_part(x_buffer(t, 0, BUF_WRITE_FROM), 0, t->opt.length);
	DAT_DTO_COOKIE cookie = { .as_64 = COOKIE_WRITE };
	DAT_RETURN ret;

	printf("\n");
	note("Doing RDMA WRITE IMMEDIATE DATA");
	write_prepare(t);
	ret = dat_ib_post_rdma_write_immed(t->eps[0], 1, &iov, cookie, &t->peer,
					   x_is_server(t) ? IMMED_SERVER : IMMED_CLIENT,
					   DAT_COMPLETION_DEFAULT_FLAG);
	if (!dat_ok(ret, "dat_ib_post_rdma_write_immed") || !immed_await(t) || !written_check(t))
		return false;
	t->immed_ns = clock_ns();
	printf("\n");
	note("RDMA_WRITE_WITH_IMMEDIATE_DATA test - PASSED");
	return true;
}

/*
 * The message of a peer that is ahead; it may come while this side's operation is still in
 * progress.
 */
bool x_word_came(struct x_test *t, const DAT_EVENT *event)
{
	if (t->word_came || event->event_number != DAT_DTO_COMPLETION_EVENT ||
	    event->event_data.dto_completion_event_data.user_cookie.as_64 !=
		    (uint64_t)t->next_recv ||
	    event->event_data.dto_completion_event_data.status != DAT_DTO_SUCCESS)
		return false;
	t->word_came = true;
	return true;
}

/*
 * For peers of this make: both sides have come to this point. The own message must have completed
 * as well, because the connection may end next.
 */
bool x_barrier(struct x_test *t)
{
	bool sent = false, arrived = t->word_came;
	DAT_EVENT event;

	t->word_came = false;
	if (!message_post(t, DAT_COMPLETION_DEFAULT_FLAG))
		return false;
	while (!sent || !arrived) {
		bool own;
		uint64_t cookie;

		if (!x_transfer_await(t, "message from the peer", &event))
			return false;
		own = event.event_data.dto_completion_event_data.user_cookie.as_64 == COOKIE_SEND;
		cookie = own ? COOKIE_SEND : (uint64_t)t->next_recv;
		if (!x_completion_check(&event, -1, sizeof(struct description), cookie))
			return false;
		sent = sent || own;
		arrived = arrived || !own;
	}
	t->next_recv++;
	return true;
}
