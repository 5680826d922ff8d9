/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* The names of rdma_cm's ports: how the process that listens on one is asked for its number. */
#ifndef SV_LINK_PORT_NAME_H
#define SV_LINK_PORT_NAME_H

#include "softverbs/link/ip.h"

struct sv_port_answer { /* of that process, over the socket of the name */
	uint32_t magic, slot;
	uint64_t nonce[2];
};
#define SV_PORT_MAGIC 0x73766c31u

SV_SHARED void sv_port_name(char name[static 96], uint32_t space, uint16_t number,
			    const struct sv_ip *ip);
/* Connects to the name of the address, or else of the wildcard that covers it. A non-blocking socket, or -1 with
 * errno as sv_name_connect. */
SV_SHARED int sv_port_reach(uint32_t space, uint16_t number, const struct sv_ip *ip);

#endif
