/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Encodes and decodes what opens a link between hosts, and the headers of its frames. */
#include <string.h>
#include "softverbs/fabric/wire.h"
#include "softverbs/link/peer.h"

#define MAGIC 0x53564642u /* SVFB */

void sv_wire_prelude_write(uint8_t bytes[static WIRE_PRELUDE], const uint8_t nonce[WIRE_NONCE])
{
	uint8_t *at = wire_put(bytes, MAGIC, 4);

	at = wire_put(at, WIRE_VERSION, 4);
	memcpy(at, nonce, WIRE_NONCE);
}

bool sv_wire_prelude_read(const uint8_t bytes[static WIRE_PRELUDE], uint32_t *version,
			  uint8_t nonce[static WIRE_NONCE])
{
	const uint8_t *at = bytes;

	if (wire_get(&at, 4) != MAGIC)
		return false;
	*version = (uint32_t)wire_get(&at, 4);
	memcpy(nonce, at, WIRE_NONCE);
	return true;
}

void sv_wire_header_write(uint8_t bytes[static WIRE_HEADER], const struct wire_frame *frame)
{
	uint8_t *at = wire_put(bytes, frame->size, 3);

	at = wire_put(at, frame->type, 1);
	wire_put(at, 0, 4);
}

bool sv_wire_header_read(const uint8_t bytes[static WIRE_HEADER], struct wire_frame *frame)
{
	const uint8_t *at = bytes;

	frame->size = (uint32_t)wire_get(&at, 3);
	frame->type = (uint16_t)wire_get(&at, 1);
	return !wire_get(&at, 4) && frame->type && frame->type < WIRE_TYPES &&
	       frame->size <= WIRE_FRAME_MAX;
}

static uint8_t *end_write(uint8_t *at, const struct wire_end *end)
{
	memcpy(at, end->name.kind, SV_KIND_MAX);
	at = wire_put(at + SV_KIND_MAX, end->name.format, 4);
	at = wire_put(at, end->name.size, 4);
	memcpy(at, end->name.address, SV_ADDRESS_MAX);
	return wire_put(at + SV_ADDRESS_MAX, end->token, 8);
}

/* A kind goes into log lines: it is printable. */
static bool kind_is_sound(const char *kind)
{
	size_t length = strnlen(kind, SV_KIND_MAX);

	for (size_t i = 0; i < length; i++)
		if (kind[i] <= ' ' || kind[i] > '~')
			return false;
	return length && length < SV_KIND_MAX;
}

static bool end_read(const uint8_t *at, struct wire_end *end)
{
	memcpy(end->name.kind, at, SV_KIND_MAX);
	at += SV_KIND_MAX;
	end->name.format = (uint32_t)wire_get(&at, 4);
	end->name.size = (uint32_t)wire_get(&at, 4);
	memcpy(end->name.address, at, SV_ADDRESS_MAX);
	at += SV_ADDRESS_MAX;
	end->token = wire_get(&at, 8);
	return kind_is_sound(end->name.kind) && end->name.size <= SV_ADDRESS_MAX;
}

void sv_wire_target_write(uint8_t bytes[static WIRE_TARGET_SIZE], const struct wire_target *target)
{
	uint8_t *at = wire_put(bytes, target->kind, 2);

	at = wire_put(at, target->slot, 2);
	at = wire_put(at, target->space, 4);
	at = wire_put(at, target->port, 2);
	at = wire_put(at, target->from_slot, 2);
	memcpy(at, target->address, 16);
	at = wire_put(at + 16, target->from_nonce[0], 8);
	at = wire_put(at, target->from_nonce[1], 8);
	end_write(wire_put(at, 0, 4), &target->end);
}

bool sv_wire_target_read(const uint8_t *bytes, size_t size, struct wire_target *target)
{
	const uint8_t *at = bytes;
	uint64_t kind;

	if (size != WIRE_TARGET_SIZE)
		return false;
	kind = wire_get(&at, 2);
	target->kind = (uint8_t)kind;
	target->slot = (uint16_t)wire_get(&at, 2);
	target->space = (uint32_t)wire_get(&at, 4);
	target->port = (uint16_t)wire_get(&at, 2);
	target->from_slot = (uint16_t)wire_get(&at, 2);
	memcpy(target->address, at, 16);
	at += 16;
	target->from_nonce[0] = wire_get(&at, 8);
	target->from_nonce[1] = wire_get(&at, 8);
	return kind >= WIRE_TO_CHECK && kind <= WIRE_TO_PORT && target->slot < SV_PEERS &&
	       target->from_slot < SV_PEERS && target->space <= UINT16_MAX && !wire_get(&at, 4) &&
	       end_read(at, &target->end);
}

void sv_wire_answer_write(uint8_t bytes[static WIRE_ANSWER_SIZE], const struct wire_answer *answer)
{
	uint8_t *at = wire_put(bytes, answer->status, 2);

	at = wire_put(at, answer->slot, 2);
	at = wire_put(at, answer->nonce[0], 8);
	end_write(wire_put(at, answer->nonce[1], 8), &answer->end);
}

bool sv_wire_answer_read(const uint8_t *bytes, size_t size, struct wire_answer *answer)
{
	const uint8_t *at = bytes;
	uint64_t status;

	if (size != WIRE_ANSWER_SIZE)
		return false;
	status = wire_get(&at, 2);
	answer->status = (uint8_t)status;
	answer->slot = (uint16_t)wire_get(&at, 2);
	answer->nonce[0] = wire_get(&at, 8);
	answer->nonce[1] = wire_get(&at, 8);
	return status < WIRE_STATUSES && answer->slot < SV_PEERS && end_read(at, &answer->end);
}
