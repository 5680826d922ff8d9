/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* The two ends of a transaction test connect, exchange addresses and keep in step. */

#include <string.h>

#include "transaction.h"

enum { SYNC_SIZE = 64 };

/* The place of each message in the small memory of an EP; the offset is its cookie, too. */
enum {
	TABLE_OUT = 0,
	TABLE_IN = 2048,
	SYNC_OUT = 4096,
	SYNC_IN = 4096 + SYNC_SIZE,
	FINAL_OUT = 4096 + 2 * SYNC_SIZE,
	FINAL_IN = 4096 + 3 * SYNC_SIZE,
	SMALL_SIZE = 4096 + 4 * SYNC_SIZE,
};

static const char greeting[] = "DAPL and RDMA rule! Test 4321.";
enum { GREETING_SIZE = sizeof(greeting) - 1 };

static bool small_recv(struct trans_ep *ep, int place, uint32_t size)
{
	DAT_LMR_TRIPLET iov = region_part(&ep->small, (size_t)place, size);

	return link_recv(&ep->link, 1, &iov, (uint64_t)place);
}

static bool small_send(struct trans_ep *ep, int place, uint32_t size)
{
	DAT_LMR_TRIPLET iov = region_part(&ep->small, (size_t)place, size);

	return link_send(&ep->link, 1, &iov, (uint64_t)place);
}

/* Posts the receives before a peer can connect. */
bool trans_small_create(struct trans_thread *th, struct trans_ep *ep)
{
	return region_create(&ep->small, th->test->place->ia, th->pz, SMALL_SIZE) &&
	       small_recv(ep, TABLE_IN, TABLE_SIZE) && small_recv(ep, SYNC_IN, SYNC_SIZE);
}

static bool client_connect(struct trans_thread *th, struct trans_ep *ep, uint32_t port)
{
	struct target to = {
		.addr = th->test->place->peer,
		.qual = port,
		.qos = th->test->place->qos,
		.greeting = greeting,
		.greeting_size = GREETING_SIZE,
	};
	DAT_EVENT_NUMBER outcome;

	if (!link_connect(&ep->link, &to, &outcome))
		return false;
	if (!ep->link.connected)
		complain("Error: no connection on port %u: %s", (unsigned int)port,
			 event_name(outcome));
	return ep->link.connected;
}

static bool server_accept(struct trans_ep *ep)
{
	DAT_EVENT request;

	return event_await(ep->link.cr_evd, false, "connection request", &request) &&
	       link_accept(&ep->link, &request, greeting, GREETING_SIZE) &&
	       link_unlisten(&ep->link);
}

/* The table has only the memory that the peer is to read or write. */
static void table_fill(struct trans_thread *th, struct trans_ep *ep)
{
	const struct transaction *t = th->test->t;

	for (uint32_t i = 0; i < t->op_count; i++) {
		const struct region *r = &ep->buffers[i].region;

		if (t->ops[i].transfer != TRANSFER_SEND && !op_is_ours(th, &t->ops[i]))
			wire_put_buffer(ep->small.base + TABLE_OUT + i * TABLE_ENTRY, r->rkey,
					(uintptr_t)r->base);
	}
}

static void table_read(struct trans_thread *th, struct trans_ep *ep)
{
	const struct transaction *t = th->test->t;

	for (uint32_t i = 0; i < t->op_count; i++) {
		DAT_RMR_TRIPLET *peer = &ep->buffers[i].peer;

		wire_get_buffer(ep->small.base + TABLE_IN + i * TABLE_ENTRY,
				th->test->place->peer_little, peer);
		peer->segment_length = op_bytes(&t->ops[i]);
	}
}

static bool table_send(struct trans_ep *ep)
{
	return small_send(ep, TABLE_OUT, TABLE_SIZE) &&
	       link_sent(&ep->link, TABLE_SIZE, TABLE_OUT, "sending of the buffer table");
}

static bool table_receive(struct trans_ep *ep)
{
	return link_received(&ep->link, TABLE_SIZE, TABLE_IN, "buffer table");
}

bool trans_ep_meet(struct trans_thread *th, unsigned int index)
{
	const struct place *place = th->test->place;
	struct trans_ep *ep = &th->eps[index];
	uint32_t port = place->port + th->index * th->test->t->eps + index;

	detail("Test[%u]: connecting on port %u", th->index, (unsigned int)port);
	table_fill(th, ep);
	if (place->server) {
		if (!server_accept(ep) || !table_receive(ep) || !table_send(ep))
			return false;
	} else {
		if (!client_connect(th, ep, port) || !table_send(ep) || !table_receive(ep))
			return false;
	}
	table_read(th, ep);
	return true;
}

bool trans_sync_await(struct trans_thread *th, bool last)
{
	for (uint32_t e = 0; e < th->test->t->eps; e++)
		if (!link_received(&th->eps[e].link, SYNC_SIZE, last ? FINAL_IN : SYNC_IN,
				   "synchronizing message"))
			return false;
	return true;
}

bool trans_sync_send(struct trans_thread *th, bool last)
{
	int place = last ? FINAL_OUT : SYNC_OUT;

	for (uint32_t e = 0; e < th->test->t->eps; e++)
		if (!small_send(&th->eps[e], place, SYNC_SIZE))
			return false;
	for (uint32_t e = 0; e < th->test->t->eps; e++)
		if (!link_sent(&th->eps[e].link, SYNC_SIZE, (uint64_t)place,
			       "sending of a synchronizing message"))
			return false;
	return true;
}

bool trans_final_recv_post(struct trans_thread *th)
{
	for (uint32_t e = 0; e < th->test->t->eps; e++)
		if (!small_recv(&th->eps[e], FINAL_IN, SYNC_SIZE))
			return false;
	return true;
}
