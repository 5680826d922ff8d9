/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * What goes over a link between hosts, a TCP connection. All numbers are big-endian.
 *
 *   A process that connects        A process that accepted
 *   prelude                  ->
 *                            <-    prelude
 *   proof                    ->
 *                            <-    verdict, proof
 *   frame: target            ->
 *                            <-    frame: answer, of the process that the target names
 *   frame: open              ->
 *   frames                  <->    frames
 *
 * Target and answer have an end each: the way by which that process takes requests and answers of QPs. All ends of
 * hosts that work together are of one kind. Between endpoints, the first message is a frame that opens, too: it comes
 * from the process with the lower nonce, once the other one knows it.
 *
 * A proof is the HMAC-SHA-256, under the shared secret, of a role and both nonces. Before it is checked, nothing
 * but these two fixed messages is read.
 */
#ifndef SV_FABRIC_WIRE_H
#define SV_FABRIC_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "softverbs/fabric/plugin.h"
#include "softverbs/link/ip.h"

#define WIRE_VERSION 7u

#define WIRE_NONCE   16u
#define WIRE_PROOF   32u
#define WIRE_PRELUDE 24u	      /* magic, version, nonce */
#define WIRE_VERDICT (1 + WIRE_PROOF) /* enum wire_verdict, proof */

enum wire_verdict {
	WIRE_WELCOME,
	WIRE_WRONG_KEY,
};

void sv_wire_prelude_write(uint8_t bytes[static WIRE_PRELUDE], const uint8_t nonce[WIRE_NONCE]);
/* False if it is no prelude. */
bool sv_wire_prelude_read(const uint8_t bytes[static WIRE_PRELUDE], uint32_t *version,
			  uint8_t nonce[static WIRE_NONCE]);

/* ---- frames ---- */

#define WIRE_HEADER \
	8u /* length of the payload:24 | enum wire_type:8 | zeros:32, or between endpoints number:32 */
#define WIRE_FRAME_MAX	(66u << 10)
#define WIRE_LEAVE_SIZE 4u

enum wire_type {
	WIRE_TARGET = 1,
	WIRE_ANSWER,
	WIRE_CM,      /* of rdma_cm: cm/wire.c */
	WIRE_REQUEST, /* of the data path: data.h */
	WIRE_DONE,
	WIRE_OPEN,     /* without payload */
	WIRE_DATAGRAM, /* ud.h */
	WIRE_LEAVE,    /* peers.c: the number after that of the last message */
	WIRE_LEFT,     /* without payload: all of them were handled */
	WIRE_TYPES
};

struct wire_frame {
	uint32_t size;
	uint16_t type;
};

/* Of a sound header. */
static inline enum wire_type wire_type_of(const uint8_t bytes[static WIRE_HEADER])
{
	return (enum wire_type)bytes[3];
}

static inline bool wire_is_data(enum wire_type type)
{
	return type == WIRE_REQUEST || type == WIRE_DONE || type == WIRE_DATAGRAM;
}

void sv_wire_header_write(uint8_t bytes[static WIRE_HEADER], const struct wire_frame *frame);
/* False if the header is malformed, or the payload longer than allowed. */
bool sv_wire_header_read(const uint8_t bytes[static WIRE_HEADER], struct wire_frame *frame);

/* Where a process takes the requests and answers of a peer. */
struct wire_end {
	struct sv_endpoint_name name; /* of kind WIRE_KIND_LINK: none, they come over the link */
	uint64_t token;		      /* with which that peer's messages begin there */
};
#define WIRE_TOKEN     8u
#define WIRE_END_SIZE  176u
#define WIRE_KIND_LINK "link"

/* Which process a connection is for, and which process sends it. */
enum wire_target_kind {
	WIRE_TO_CHECK = 1, /* none: the answer ends it */
	WIRE_TO_SLOT,
	WIRE_TO_PORT, /* the process that listens on a port of rdma_cm */
};

struct wire_target {
	uint8_t kind;
	uint16_t slot;
	uint32_t space;
	uint16_t port;
	uint8_t address[16]; /* of the port; IPv4 is mapped */
	uint16_t from_slot;
	uint64_t from_nonce[2];
	struct wire_end end; /* of the sender */
};
#define WIRE_TARGET_SIZE (48u + WIRE_END_SIZE)

enum wire_status {
	WIRE_LINKED,
	WIRE_ABSENT,  /* no process has that slot or port */
	WIRE_ALREADY, /* the two processes have a link */
	WIRE_BUSY,    /* for want of memory or descriptors */
	WIRE_UNLIKE,  /* the end of that process is of another kind */
	WIRE_STATUSES
};

struct wire_answer {
	uint8_t status;
	uint16_t slot;
	uint64_t nonce[2];
	struct wire_end end; /* of the process that answers */
};
#define WIRE_ANSWER_SIZE (20u + WIRE_END_SIZE)

void sv_wire_target_write(uint8_t bytes[static WIRE_TARGET_SIZE], const struct wire_target *target);
bool sv_wire_target_read(const uint8_t *bytes, size_t size, struct wire_target *target);
void sv_wire_answer_write(uint8_t bytes[static WIRE_ANSWER_SIZE], const struct wire_answer *answer);
bool sv_wire_answer_read(const uint8_t *bytes, size_t size, struct wire_answer *answer);

/* ---- numbers ---- */

static inline uint8_t *wire_put(uint8_t *at, uint64_t value, unsigned bytes)
{
	for (unsigned i = 0; i < bytes; i++)
		at[i] = (uint8_t)(value >> 8 * (bytes - 1 - i));
	return at + bytes;
}

static inline uint64_t wire_get(const uint8_t **at, unsigned bytes)
{
	uint64_t value = 0;

	for (unsigned i = 0; i < bytes; i++)
		value = value << 8 | (*at)[i];
	*at += bytes;
	return value;
}

#endif
