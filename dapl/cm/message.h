/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* The message that the socket CM and the UD CM of OFED's dapl exchange, encoded by offsets and not as a
 * struct. Versions 6 to 9 are in use; this side sends 9. All numbers are in network order except the address
 * families. */
#ifndef CM_MESSAGE_H
#define CM_MESSAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CM_VERSION     9u
#define CM_VERSION_MIN 6u
#define CM_HEADER      148u
#define CM_HEADER_OLD  150u /* below version 8: with two unused bytes */
#define CM_DATA	       68u  /* private data that this side sends */
#define CM_DATA_OLD    118u /* private data that a peer below version 8 may send */
#define CM_MESSAGE_MAX (CM_HEADER_OLD + CM_DATA_OLD)
#define CM_ENDPOINT    28u /* bytes of an endpoint's address */
#define CM_SHORT       4u  /* an RTU of the socket CM: version and operation alone */

enum cm_op {
	CM_REQ = 1,
	CM_REP,
	CM_REJ_USER, /* the peer's program rejects */
	CM_REJ_CM,   /* the peer's connection manager rejects */
	CM_RTU,
	CM_DREQ,
	CM_DREP,
};

/* The address of a QP. On the wire `family` is in host order, at the offset that it has in a socket address. */
struct cm_endpoint {
	uint16_t family;
	uint16_t lid;
	uint32_t qpn;
	uint8_t gid[16];
	uint16_t port;
	uint8_t sl;
	uint8_t qp_type; /* an enum ibv_qp_type */
};

struct cm_message {
	uint16_t ver, op;
	uint32_t sport, dport; /* 24 bits */
	uint32_t sqpn, dqpn;   /* of the CMs' own QPs */
	uint16_t p_size;       /* bytes of private data */
	uint32_t s_id, d_id;
	uint8_t rd_in; /* RDMA reads that the sender accepts at a time */
	uint8_t rtns;  /* number of earlier transmissions of this message */
	uint8_t mtu;   /* an enum ibv_mtu */
	unsigned char saddr[CM_ENDPOINT], daddr[CM_ENDPOINT];
};

void cm_endpoint_write(const struct cm_endpoint *endpoint, unsigned char bytes[CM_ENDPOINT]);
void cm_endpoint_read(struct cm_endpoint *endpoint, const unsigned char bytes[CM_ENDPOINT]);

void cm_message_write(const struct cm_message *message, unsigned char bytes[CM_HEADER]);
void cm_message_read(struct cm_message *message, const unsigned char bytes[CM_HEADER]);

/* Encodes a message of a stream, with message->p_size bytes of data, at most CM_DATA, and a header of
 * `header` bytes. Returns the length in bytes. */
size_t cm_frame_write(const struct cm_message *message, const void *data, size_t header,
		      unsigned char bytes[CM_MESSAGE_MAX]);
/* Decodes the first `size` bytes of a stream. Returns the length of the message as far as it is known yet. If
 * that is at most `size`, the message is complete: `message` is filled in and `data` points to the private
 * data. -1 if it is no message of a supported version. */
int cm_frame_read(const unsigned char *bytes, size_t size, struct cm_message *message,
		  const unsigned char **data);
/* A peer sends nothing between its request and the answer, with one exception: version 2.1.10 uses the form
 * of CM_HEADER_OLD under its own version number if its first attempt to connect failed. Then two more bytes
 * arrive, and the private data begins after the longer header. */
#define CM_FRAME_EXTRA (CM_HEADER_OLD - CM_HEADER)

#endif
