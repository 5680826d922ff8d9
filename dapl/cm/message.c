/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Encodes and decodes the messages of the socket CM and the UD CM. */
#include <string.h>
#include "dapl/cm/message.h"

enum offset {
	AT_VER = 0,
	AT_OP = 2,
	AT_SPORT = 4,
	AT_DPORT = 6,
	AT_SQPN = 8,
	AT_DQPN = 12,
	AT_P_SIZE = 16,
	AT_S_ID = 20,
	AT_D_ID = 24,
	AT_RD_IN = 28,
	AT_SPORT_HIGH = 29,
	AT_DPORT_HIGH = 30,
	AT_RTNS = 31,
	AT_MTU = 32,
	AT_SADDR = 36,
	AT_DADDR = 64,
};

enum endpoint_offset {
	AT_FAMILY = 0,
	AT_LID = 2,
	AT_QPN = 4,
	AT_GID = 8,
	AT_PORT = 24,
	AT_SL = 26,
	AT_QP_TYPE = 27,
};

static void message_put16(unsigned char *bytes, uint32_t value)
{
	bytes[0] = (unsigned char)(value >> 8);
	bytes[1] = (unsigned char)value;
}

static void put32(unsigned char *bytes, uint32_t value)
{
	message_put16(bytes, value >> 16);
	message_put16(bytes + 2, value);
}

static uint16_t get16(const unsigned char *bytes)
{
	return (uint16_t)(bytes[0] << 8 | bytes[1]);
}

static uint32_t get32(const unsigned char *bytes)
{
	return (uint32_t)get16(bytes) << 16 | get16(bytes + 2);
}

void cm_endpoint_write(const struct cm_endpoint *endpoint, unsigned char bytes[CM_ENDPOINT])
{
	memset(bytes, 0, CM_ENDPOINT);
	memcpy(bytes + AT_FAMILY, &endpoint->family, sizeof(endpoint->family));
	message_put16(bytes + AT_LID, endpoint->lid);
	put32(bytes + AT_QPN, endpoint->qpn);
	memcpy(bytes + AT_GID, endpoint->gid, sizeof(endpoint->gid));
	message_put16(bytes + AT_PORT, endpoint->port);
	bytes[AT_SL] = endpoint->sl;
	bytes[AT_QP_TYPE] = endpoint->qp_type;
}

void cm_endpoint_read(struct cm_endpoint *endpoint, const unsigned char bytes[CM_ENDPOINT])
{
	memcpy(&endpoint->family, bytes + AT_FAMILY, sizeof(endpoint->family));
	endpoint->lid = get16(bytes + AT_LID);
	endpoint->qpn = get32(bytes + AT_QPN);
	memcpy(endpoint->gid, bytes + AT_GID, sizeof(endpoint->gid));
	endpoint->port = get16(bytes + AT_PORT);
	endpoint->sl = bytes[AT_SL];
	endpoint->qp_type = bytes[AT_QP_TYPE];
}

void cm_message_write(const struct cm_message *message, unsigned char bytes[CM_HEADER])
{
	memset(bytes, 0, CM_HEADER);
	message_put16(bytes + AT_VER, message->ver);
	message_put16(bytes + AT_OP, message->op);
	message_put16(bytes + AT_SPORT, message->sport);
	message_put16(bytes + AT_DPORT, message->dport);
	put32(bytes + AT_SQPN, message->sqpn);
	put32(bytes + AT_DQPN, message->dqpn);
	message_put16(bytes + AT_P_SIZE, message->p_size);
	put32(bytes + AT_S_ID, message->s_id);
	put32(bytes + AT_D_ID, message->d_id);
	bytes[AT_RD_IN] = message->rd_in;
	bytes[AT_SPORT_HIGH] = (unsigned char)(message->sport >> 16);
	bytes[AT_DPORT_HIGH] = (unsigned char)(message->dport >> 16);
	bytes[AT_RTNS] = message->rtns;
	bytes[AT_MTU] = message->mtu;
	memcpy(bytes + AT_SADDR, message->saddr, CM_ENDPOINT);
	memcpy(bytes + AT_DADDR, message->daddr, CM_ENDPOINT);
}

void cm_message_read(struct cm_message *message, const unsigned char bytes[CM_HEADER])
{
	message->ver = get16(bytes + AT_VER);
	message->op = get16(bytes + AT_OP);
	message->sport = (uint32_t)bytes[AT_SPORT_HIGH] << 16 | get16(bytes + AT_SPORT);
	message->dport = (uint32_t)bytes[AT_DPORT_HIGH] << 16 | get16(bytes + AT_DPORT);
	message->sqpn = get32(bytes + AT_SQPN);
	message->dqpn = get32(bytes + AT_DQPN);
	message->p_size = get16(bytes + AT_P_SIZE);
	message->s_id = get32(bytes + AT_S_ID);
	message->d_id = get32(bytes + AT_D_ID);
	message->rd_in = bytes[AT_RD_IN];
	message->rtns = bytes[AT_RTNS];
	message->mtu = bytes[AT_MTU];
	memcpy(message->saddr, bytes + AT_SADDR, CM_ENDPOINT);
	memcpy(message->daddr, bytes + AT_DADDR, CM_ENDPOINT);
}

size_t cm_frame_write(const struct cm_message *message, const void *data, size_t header,
		      unsigned char bytes[CM_MESSAGE_MAX])
{
	memset(bytes, 0, header);
	cm_message_write(message, bytes);
	if (message->p_size)
		memcpy(bytes + header, data, message->p_size);
	return header + message->p_size;
}

int cm_frame_read(const unsigned char *bytes, size_t size, struct cm_message *message,
		  const unsigned char **data)
{
	size_t header, most;

	if (size < CM_HEADER)
		return CM_HEADER;
	cm_message_read(message, bytes);
	header = message->ver < 8 ? CM_HEADER_OLD : CM_HEADER;
	most = message->ver < 8 ? CM_DATA_OLD : CM_DATA;
	if (message->ver < CM_VERSION_MIN || message->p_size > most)
		return -1;
	if (size >= header + message->p_size)
		*data = bytes + header;
	return (int)(header + message->p_size);
}
