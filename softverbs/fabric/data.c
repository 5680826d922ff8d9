/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Encodes and decodes the requests of QPs, and their answers. */
#include <string.h>
#include "softverbs/fabric/data.h"

#define KNOWN                                                                                  \
	(1u << IBV_WR_SEND | 1u << IBV_WR_SEND_WITH_IMM | 1u << IBV_WR_SEND_WITH_INV |         \
	 1u << IBV_WR_RDMA_WRITE | 1u << IBV_WR_RDMA_WRITE_WITH_IMM | 1u << IBV_WR_RDMA_READ | \
	 1u << IBV_WR_ATOMIC_CMP_AND_SWP | 1u << IBV_WR_ATOMIC_FETCH_AND_ADD)

static bool part_is_sound(uint64_t length, uint64_t offset, size_t part)
{
	return length <= SV_MAX_MSG && offset <= length && part <= length - offset &&
	       (part || !length);
}

void sv_far_request_write(uint8_t bytes[static FAR_REQUEST_SIZE], const struct far_request *request)
{
	uint8_t *at = wire_put(bytes, request->dest, 4);

	at = wire_put(at, request->source, 4);
	at = wire_put(at, request->connection, 4);
	at = wire_put(at, request->number, 4);
	at = wire_put(at, request->opcode, 1);
	at = wire_put(at, request->flags, 1);
	at = wire_put(at, request->rnr_retry, 1);
	at = wire_put(at, request->retry, 1);
	at = wire_put(at, request->timeout, 4);
	memcpy(at, &request->imm, 4);
	at = wire_put(at + 4, request->rkey, 4);
	at = wire_put(at, request->length, 4);
	at = wire_put(at, request->offset, 4);
	at = wire_put(at, request->addr, 8);
	at = wire_put(at, request->args[0], 8);
	at = wire_put(at, request->args[1], 8);
	at = wire_put(at, request->answer.connection, 4);
	wire_put(at, request->answer.number, 4);
}

/* A key is a number, while immediate data are bytes: they stay as the consumer wrote them. */
bool sv_far_request_read(const uint8_t *bytes, size_t size, struct far_request *request)
{
	const uint8_t *at = bytes;
	uint64_t timeout;
	bool sends;

	if (size < FAR_REQUEST_SIZE)
		return false;
	request->dest = (uint32_t)wire_get(&at, 4);
	request->source = (uint32_t)wire_get(&at, 4);
	request->connection = (uint32_t)wire_get(&at, 4);
	request->number = (uint32_t)wire_get(&at, 4);
	request->opcode = (uint8_t)wire_get(&at, 1);
	request->flags = (uint8_t)wire_get(&at, 1);
	request->rnr_retry = (uint8_t)wire_get(&at, 1);
	request->retry = (uint8_t)wire_get(&at, 1);
	timeout = wire_get(&at, 4);
	request->timeout = (uint8_t)timeout;
	memcpy(&request->imm, at, 4);
	at += 4;
	request->rkey = (uint32_t)wire_get(&at, 4);
	request->length = (uint32_t)wire_get(&at, 4);
	request->offset = (uint32_t)wire_get(&at, 4);
	request->addr = wire_get(&at, 8);
	request->args[0] = wire_get(&at, 8);
	request->args[1] = wire_get(&at, 8);
	request->answer.connection = (uint32_t)wire_get(&at, 4);
	request->answer.number = (uint32_t)wire_get(&at, 4);
	if (request->opcode >= 32 || !(KNOWN >> request->opcode & 1) ||
	    request->flags & ~(unsigned)FAR_FLAGS || request->rnr_retry > 7 || request->retry > 7 ||
	    timeout > 31)
		return false;
	sends = !far_brings_data(request->opcode);
	return sends ? part_is_sound(request->length, request->offset, size - FAR_REQUEST_SIZE)
		     : size == FAR_REQUEST_SIZE && !request->offset &&
			       request->length <= SV_MAX_MSG;
}

void sv_far_done_write(uint8_t bytes[static FAR_DONE_SIZE], const struct far_done *done)
{
	uint8_t *at = wire_put(bytes, done->dest, 4);

	at = wire_put(at, done->source, 4);
	at = wire_put(at, done->connection, 4);
	at = wire_put(at, done->number, 4);
	at = wire_put(at, done->status, 8);
	at = wire_put(at, done->length, 4);
	wire_put(at, done->offset, 4);
}

bool sv_far_done_read(const uint8_t *bytes, size_t size, struct far_done *done)
{
	const uint8_t *at = bytes;
	uint64_t status;

	if (size < FAR_DONE_SIZE)
		return false;
	done->dest = (uint32_t)wire_get(&at, 4);
	done->source = (uint32_t)wire_get(&at, 4);
	done->connection = (uint32_t)wire_get(&at, 4);
	done->number = (uint32_t)wire_get(&at, 4);
	status = wire_get(&at, 8);
	done->status = (uint8_t)status;
	done->length = (uint32_t)wire_get(&at, 4);
	done->offset = (uint32_t)wire_get(&at, 4);
	return (status <= IBV_WC_GENERAL_ERR || status == FAR_NOT_READY) &&
	       part_is_sound(done->length, done->offset, size - FAR_DONE_SIZE);
}
