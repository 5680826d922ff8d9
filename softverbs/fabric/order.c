/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Messages of an endpoint, read in the order in which they were sent. */
#include <stdlib.h>
#include <string.h>
#include "softverbs/fabric/frames.h"
#include "softverbs/fabric/peers.h"

#define EARLY_BYTES (64u << 20) /* that are kept of a peer */

struct fabric_early {
	TAILQ_ENTRY(fabric_early) entry;
	uint16_t number;
	size_t size;
	uint8_t bytes[];
};

void sv_fabric_order_open(struct fabric_order *order)
{
	TAILQ_INIT(&order->early);
}

void sv_fabric_order_close(struct fabric_order *order)
{
	struct fabric_early *early;

	while ((early = TAILQ_FIRST(&order->early))) {
		TAILQ_REMOVE(&order->early, early, entry);
		free(early);
	}
}

static int16_t distance(uint16_t number, uint16_t from)
{
	return (int16_t)(uint16_t)(number - from);
}

static bool early_keep(struct fabric_order *order, uint16_t number, const uint8_t *bytes,
		       size_t size)
{
	struct fabric_early *early, *later;

	if (order->early_bytes + size > EARLY_BYTES)
		return false;
	early = malloc(sizeof(*early) + size);
	if (!early)
		return false;
	early->number = number;
	early->size = size;
	memcpy(early->bytes, bytes, size);
	order->early_bytes += size;
	TAILQ_FOREACH(later, &order->early, entry)
		if (distance(later->number, number) > 0)
			break;
	if (later)
		TAILQ_INSERT_BEFORE(later, early, entry);
	else
		TAILQ_INSERT_TAIL(&order->early, early, entry);
	return true;
}

/* The message whose turn it is, if it has come. */
static struct fabric_early *early_take(struct fabric_order *order)
{
	struct fabric_early *early = TAILQ_FIRST(&order->early);

	if (!early || early->number != order->next)
		return NULL;
	TAILQ_REMOVE(&order->early, early, entry);
	order->early_bytes -= early->size;
	return early;
}

bool sv_fabric_order_read(struct fabric_peer *from, const uint8_t *bytes, size_t size)
{
	struct fabric_order *order = &from->order;
	const uint8_t *at = bytes + ORDER_NUMBER;
	struct fabric_early *early;
	uint16_t number;
	bool sound;

	if (size < WIRE_HEADER)
		return false;
	number = (uint16_t)wire_get(&at, 2);
	if (number != order->next)
		return distance(number, order->next) > 0 && early_keep(order, number, bytes, size);
	order->next++;
	sound = sv_fabric_message_read(from, bytes, size);
	while (sound && (early = early_take(order))) {
		order->next++;
		sound = sv_fabric_message_read(from, early->bytes, early->size);
		free(early);
	}
	return sound;
}
