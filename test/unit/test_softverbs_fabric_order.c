/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Messages that arrive in another order than they were sent in: each is handled in its turn. */
#include <stdlib.h>
#include <string.h>
#include "softverbs/fabric/frames.h"
#include "softverbs/fabric/peers.h"
#include "test/unit/unit.h"

/* More than half of what 16 bits can count. */
#define MANY	 40000u
#define TOO_MANY (2u << 20)

static uint32_t handled, first_wrong;

/* Instead of what handles messages: each has its place in the order as its payload. */
bool __wrap_sv_fabric_message_read(struct fabric_peer *from, const uint8_t *bytes, size_t size);
bool __wrap_sv_fabric_message_read(struct fabric_peer *from, const uint8_t *bytes, size_t size)
{
	const uint8_t *at = bytes + WIRE_HEADER;

	(void)from;
	CU_ASSERT_TRUE_FATAL(size >= WIRE_HEADER + 4);
	if (wire_get(&at, 4) != handled++ && !first_wrong)
		first_wrong = handled;
	return true;
}

static struct fabric_peer *peer_new(void)
{
	struct fabric_peer *peer = calloc(1, sizeof(*peer));

	CU_ASSERT_PTR_NOT_NULL_FATAL(peer);
	sv_fabric_order_open(&peer->order);
	handled = first_wrong = 0;
	return peer;
}

static void peer_free(struct fabric_peer *peer)
{
	sv_fabric_order_close(&peer->order);
	free(peer);
}

/* A message as its sender numbers it, which has sent that many before. */
static bool arrives(struct fabric_peer *peer, uint32_t place, size_t size)
{
	struct fabric_order sender = { .sent = place };
	struct wire_frame frame = { .size = (uint32_t)size, .type = WIRE_REQUEST };
	uint8_t *bytes = malloc(WIRE_HEADER + size);
	bool sound;

	CU_ASSERT_PTR_NOT_NULL_FATAL(bytes);
	memset(bytes, 0, WIRE_HEADER + size);
	sv_wire_header_write(bytes, &frame);
	sv_fabric_order_write(&sender, bytes);
	wire_put(bytes + WIRE_HEADER, place, 4);
	sound = sv_fabric_order_read(peer, bytes, WIRE_HEADER + size);
	free(bytes);
	return sound;
}

static void overtakes_many(void)
{
	struct fabric_peer *peer = peer_new();
	unsigned lost = 0;

	for (uint32_t i = 1; i < MANY; i++)
		lost += !arrives(peer, i, 4);
	CU_ASSERT_EQUAL(lost, 0);
	CU_ASSERT_EQUAL(handled, 0);
	CU_ASSERT_TRUE(arrives(peer, 0, 4));
	CU_ASSERT_EQUAL(handled, MANY);
	CU_ASSERT_EQUAL(first_wrong, 0);
	CU_ASSERT_TRUE(arrives(peer, MANY, 4));
	CU_ASSERT_EQUAL(handled, MANY + 1);
	peer_free(peer);
}

static void any_order(void)
{
	static const uint32_t places[] = { 3, 1, 5, 2, 0, 4, 6 };
	static const uint32_t done[] = { 0, 0, 0, 0, 4, 6, 7 };
	struct fabric_peer *peer = peer_new();

	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		CU_ASSERT_TRUE(arrives(peer, places[i], 4));
		CU_ASSERT_EQUAL(handled, done[i]);
	}
	CU_ASSERT_EQUAL(first_wrong, 0);
	CU_ASSERT_FALSE(arrives(peer, 6, 4)); /* its turn is over */
	CU_ASSERT_EQUAL(handled, 7);
	peer_free(peer);
}

/* What one peer can make this process keep is bounded, however small its messages are. */
static void bounded(void)
{
	struct fabric_peer *peer = peer_new();
	uint32_t kept = 0;

	while (kept < TOO_MANY && arrives(peer, kept + 1, 4))
		kept++;
	CU_ASSERT_TRUE(kept >= MANY);
	CU_ASSERT_TRUE(kept < TOO_MANY);
	CU_ASSERT_TRUE(arrives(peer, 0, 4));
	CU_ASSERT_EQUAL(handled, kept + 1);
	peer_free(peer);
}

static const struct unit_test tests[] = {
	{ "one message is overtaken by many", overtakes_many },
	{ "any order", any_order },
	{ "what is kept of a peer is bounded", bounded },
};

UNIT_MAIN("test_softverbs_fabric_order", tests)
