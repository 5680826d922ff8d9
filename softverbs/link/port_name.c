/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* The names of rdma_cm's ports. */
#include <errno.h>
#include <stdio.h>
#include "softverbs/link/name.h"
#include "softverbs/link/port_name.h"

void sv_port_name(char name[static 96], uint32_t space, uint16_t number, const struct sv_ip *ip)
{
	char text[64];

	sv_ip_text(ip, text);
	snprintf(name, 96, "c/%x/%u/%s", space, number, text);
}

int sv_port_reach(uint32_t space, uint16_t number, const struct sv_ip *ip)
{
	struct sv_ip tries[3] = { *ip,
				  { .any = true, .families = ip->families },
				  { .any = true, .families = SV_IPV4 | SV_IPV6 } };
	struct ucred owner;
	char name[96];
	unsigned i;
	int fd = -1;

	for (i = 0; i < 3; i++) {
		sv_port_name(name, space, number, &tries[i]);
		fd = sv_name_connect(name, &owner);
		if (fd >= 0 || errno != ECONNREFUSED)
			break;
	}
	return fd;
}
