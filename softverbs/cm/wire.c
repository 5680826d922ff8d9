/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Messages of identifiers as they go to another host: numbers are big-endian. */
#include <arpa/inet.h>
#include <string.h>
#include "softverbs/cm/cm.h"
#include "softverbs/fabric/wire.h"

#define ADDRESS_SIZE 20 /* 4 or 6:16 | port:16 | address; IPv4 is mapped */

/* ---- addresses ---- */

static uint8_t *address_put(uint8_t *at, const struct sockaddr_in6 *addr)
{
	struct sv_ip ip;
	uint16_t port = 0;

	memset(at, 0, ADDRESS_SIZE);
	if (sv_ip_from_sockaddr(&ip, &port, (const struct sockaddr *)addr))
		return at + ADDRESS_SIZE;
	wire_put(at, addr->sin6_family == AF_INET ? 4 : 6, 2);
	wire_put(at + 2, port, 2);
	memcpy(at + 4, &ip.addr, 16);
	return at + ADDRESS_SIZE;
}

/* An address without a family stays one: only requests have addresses. */
static bool address_get(const uint8_t **at, struct sockaddr_in6 *addr)
{
	struct sockaddr_in *four = (void *)addr;
	uint32_t family = (uint32_t)wire_get(at, 2), port = (uint32_t)wire_get(at, 2);

	memset(addr, 0, sizeof(*addr));
	if (family == 4) {
		four->sin_family = AF_INET;
		four->sin_port = htons((uint16_t)port);
		memcpy(&four->sin_addr, *at + 12, 4);
	} else if (family == 6) {
		addr->sin6_family = AF_INET6;
		addr->sin6_port = htons((uint16_t)port);
		memcpy(&addr->sin6_addr, *at, 16);
	}
	*at += 16;
	return !family || family == 4 || family == 6;
}

/* ---- parameters ---- */

static uint8_t *params_put(uint8_t *at, const struct cm_params *params)
{
	at = wire_put(at, params->qpn, 4);
	at = wire_put(at, params->psn, 4);
	at = wire_put(at, params->qkey, 4);
	at = wire_put(at, params->responder_resources, 1);
	at = wire_put(at, params->initiator_depth, 1);
	at = wire_put(at, params->retry_count, 1);
	at = wire_put(at, params->rnr_retry_count, 1);
	at = wire_put(at, params->flow_control, 1);
	return wire_put(at, params->srq, 1);
}

static void params_get(const uint8_t **at, struct cm_params *params)
{
	params->qpn = (uint32_t)wire_get(at, 4);
	params->psn = (uint32_t)wire_get(at, 4);
	params->qkey = (uint32_t)wire_get(at, 4);
	params->responder_resources = (uint8_t)wire_get(at, 1);
	params->initiator_depth = (uint8_t)wire_get(at, 1);
	params->retry_count = (uint8_t)wire_get(at, 1);
	params->rnr_retry_count = (uint8_t)wire_get(at, 1);
	params->flow_control = (uint8_t)wire_get(at, 1);
	params->srq = (uint8_t)wire_get(at, 1);
}

/* ---- messages ---- */

void sv_cm_wire_write(uint8_t bytes[static CM_WIRE_SIZE], const struct cm_message *message)
{
	uint8_t *at = wire_put(bytes, message->kind, 4);

	at = wire_put(at, message->reason, 4);
	at = wire_put(at, message->from, 4);
	at = wire_put(at, message->to, 4);
	at = wire_put(at, message->space, 4);
	at = address_put(at, &message->source);
	at = address_put(at, &message->target);
	at = params_put(at, &message->params);
	memcpy(at, message->data, sizeof(message->data));
}

bool sv_cm_wire_read(const uint8_t *bytes, size_t size, struct cm_message *message)
{
	const uint8_t *at = bytes;

	if (size != CM_WIRE_SIZE)
		return false;
	memset(message, 0, sizeof(*message));
	message->kind = (uint32_t)wire_get(&at, 4);
	message->reason = (uint32_t)wire_get(&at, 4);
	message->from = (uint32_t)wire_get(&at, 4);
	message->to = (uint32_t)wire_get(&at, 4);
	message->space = (uint32_t)wire_get(&at, 4);
	if (!address_get(&at, &message->source) || !address_get(&at, &message->target))
		return false;
	params_get(&at, &message->params);
	memcpy(message->data, at, sizeof(message->data));
	return message->kind >= CM_MSG_REQ && message->kind <= CM_MSG_DREP &&
	       message->params.qpn <= 0xffffff && message->params.psn <= 0xffffff;
}
