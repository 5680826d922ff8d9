/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * The order of an endpoint's messages. A provider may complete a long message after a short one that was sent behind it:
 * libfabric's tcp does so beyond 16 KiB. So each has a number, and one that comes too early is kept until its turn.
 */
#ifndef SV_FABRIC_ORDER_H
#define SV_FABRIC_ORDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>
#include "softverbs/fabric/wire.h"

#define ORDER_NUMBER (WIRE_HEADER - 4) /* where it is in the header */

struct fabric_peer;
struct fabric_early;

struct fabric_order {
	uint32_t sent; /* number of the next message to the peer; inside the fabric's lock */
	/* the thread that reads the endpoint */
	uint32_t next; /* number of the message whose turn it is */
	TAILQ_HEAD(fabric_early_list, fabric_early) early; /* by number */
	size_t early_bytes;				   /* of memory */
};

void sv_fabric_order_open(struct fabric_order *order);
void sv_fabric_order_close(struct fabric_order *order);
/* Writes the number of the next message into its header. */
static inline void sv_fabric_order_write(const struct fabric_order *order, uint8_t *header)
{
	wire_put(header + ORDER_NUMBER, order->sent, 4);
}
/*
 * Handles a message of the peer, a frame, and those that waited for it; or keeps it. One thread at a time. False: one is
 * malformed, or there is no memory for it.
 */
bool sv_fabric_order_read(struct fabric_peer *from, const uint8_t *bytes, size_t size);

#endif
