/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Messages of an endpoint, read in the order in which they were sent. */
#include <stdlib.h>
#include <string.h>
#include "softverbs/fabric/frames.h"
#include "softverbs/fabric/peers.h"

#define EARLY_BYTES (64u << 20) /* that are kept of a peer */

struct fabric_early {
	TAILQ_ENTRY(fabric_early) entry;
	uint32_t number;
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

static int32_t distance(uint32_t number, uint32_t from)
{
	return (int32_t)(number - from);
}

static bool early_keep(struct fabric_order *order, uint32_t number, const uint8_t *bytes,
		       size_t size)
{
	struct fabric_early *early, *earlier;

	if (order->early_bytes + sizeof(*early) + size > EARLY_BYTES)
		return false;
	early = malloc(sizeof(*early) + size);
	if (!early)
		return false;
	early->number = number;
	early->size = size;
	memcpy(early->bytes, bytes, size);
	order->early_bytes += sizeof(*early) + size;
	TAILQ_FOREACH_REVERSE(earlier, &order->early, fabric_early_list, entry)
		if (distance(earlier->number, number) < 0)
			break;
	if (earlier)
		TAILQ_INSERT_AFTER(&order->early, earlier, early, entry);
	else
		TAILQ_INSERT_HEAD(&order->early, early, entry);
	return true;
}

/* The message whose turn it is, if it has come. */
static struct fabric_early *early_take(struct fabric_order *order)
{
	struct fabric_early *early = TAILQ_FIRST(&order->early);

	if (!early || early->number != order->next)
		return NULL;
	TAILQ_REMOVE(&order->early, early, entry);
	order->early_bytes -= sizeof(*early) + early->size;
	return early;
}

bool sv_fabric_order_read(struct fabric_peer *from, const uint8_t *bytes, size_t size)
{
	struct fabric_order *order = &from->order;
	const uint8_t *at = bytes + ORDER_NUMBER;
	struct fabric_early *early;
	uint32_t number;
	bool sound;

	if (size < WIRE_HEADER)
		return false;
	number = (uint32_t)wire_get(&at, 4);
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
