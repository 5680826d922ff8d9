/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* IP addresses as claims, as text in names and as GIDs, and their place in the host's configuration. */
#ifndef SV_LINK_IP_H
#define SV_LINK_IP_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include "softverbs/base/shared.h"
#include "softverbs/base/api.h"

/* An IP address; IPv4 addresses are mapped. A wildcard has a family for each kind of address that it covers. */
struct sv_ip {
	struct in6_addr addr;
	uint32_t scope;
	uint8_t families; /* SV_IPV4, SV_IPV6 */
	bool any;
};
#define SV_IPV4 1
#define SV_IPV6 2

/* 0 or EAFNOSUPPORT */
SV_SHARED int sv_ip_from_sockaddr(struct sv_ip *ip, uint16_t *port, const struct sockaddr *addr);
SV_SHARED socklen_t sv_ip_sockaddr_size(const struct sockaddr *addr);
SV_SHARED void sv_ip_set_port(struct sockaddr *addr, uint16_t port);
/* The socket address of a port there; an IPv4 address gets its own family. */
void sv_ip_sockaddr(const struct sv_ip *ip, uint16_t port, struct sockaddr_storage *addr);
SV_SHARED void sv_ip_text(const struct sv_ip *ip, char text[static 64]);
/* The same for people: an IPv4 address has four numbers. */
SV_SHARED void sv_ip_show(const struct sv_ip *ip, char text[static 64]);
SV_SHARED bool sv_ip_parse(struct sv_ip *ip, const char *text);
SV_SHARED bool sv_ip_overlaps(const struct sv_ip *a, const struct sv_ip *b);
SV_SHARED bool sv_ip_same(const struct sv_ip *a, const struct sv_ip *b);
SV_SHARED union ibv_gid sv_ip_gid(const struct sv_ip *ip);
/* 0 if the address is one of this host, EADDRNOTAVAIL if not, or another errno if the kernel cannot be asked. */
SV_SHARED int sv_ip_is_local(const struct sockaddr *addr);
SV_SHARED bool sv_ip_is_multicast(const struct sockaddr *addr);
/* Like sv_ip_is_local, but with names in a folder it accepts addresses of other hosts too: their processes
 * may be there. */
SV_SHARED int sv_ip_is_reachable(const struct sockaddr *addr);
/* Stores in `source` the local address from which `target` is reached. 0 or errno. */
SV_SHARED int sv_ip_route(const struct sockaddr *target, struct sockaddr_storage *source);

#endif
