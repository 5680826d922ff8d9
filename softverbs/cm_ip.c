/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * IP addresses as the connection manager uses them: as claims, as text in names, as GIDs; and what
 * the host says of them.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "softverbs/cancel.h"
#include "softverbs/cm.h"
#include "softverbs/name.h"

#define PROBE_PORT 9 /* of datagram sockets that never send */

socklen_t ip_sockaddr_size(const struct sockaddr *addr)
{
	return addr->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6)
					   : sizeof(struct sockaddr_in);
}

void ip_set_port(struct sockaddr *addr, uint16_t port)
{
	if (addr->sa_family == AF_INET6)
		((struct sockaddr_in6 *)(void *)addr)->sin6_port = htons(port);
	else
		((struct sockaddr_in *)(void *)addr)->sin_port = htons(port);
}

static void map_ipv4(struct in6_addr *to, struct in_addr from)
{
	memset(to, 0, sizeof(*to));
	to->s6_addr[10] = to->s6_addr[11] = 0xff;
	memcpy(to->s6_addr + 12, &from, sizeof(from));
}

int ip_from_sockaddr(struct cm_ip *ip, uint16_t *port, const struct sockaddr *addr)
{
	const struct sockaddr_in6 *six = (const void *)addr;
	const struct sockaddr_in *four = (const void *)addr;

	memset(ip, 0, sizeof(*ip));
	if (addr->sa_family == AF_INET) {
		ip->any = four->sin_addr.s_addr == htonl(INADDR_ANY);
		map_ipv4(&ip->addr, four->sin_addr);
		ip->families = CM_IPV4;
		*port = ntohs(four->sin_port);
		return 0;
	}
	if (addr->sa_family != AF_INET6)
		return EAFNOSUPPORT;
	ip->addr = six->sin6_addr;
	ip->any = IN6_IS_ADDR_UNSPECIFIED(&six->sin6_addr);
	ip->families = IN6_IS_ADDR_V4MAPPED(&six->sin6_addr) ? CM_IPV4 : CM_IPV6;
	if (ip->any)
		ip->families = CM_IPV4 | CM_IPV6;
	if (IN6_IS_ADDR_LINKLOCAL(&six->sin6_addr))
		ip->scope = six->sin6_scope_id;
	*port = ntohs(six->sin6_port);
	return 0;
}

void ip_text(const struct cm_ip *ip, char text[static 64])
{
	static const char *const any[] = {
		[CM_IPV4] = "any4", [CM_IPV6] = "any6", [CM_IPV4 | CM_IPV6] = "any"
	};
	size_t length;

	if (ip->any) {
		strcpy(text, any[ip->families]);
		return;
	}
	inet_ntop(AF_INET6, &ip->addr, text, INET6_ADDRSTRLEN);
	length = strlen(text);
	if (ip->scope)
		snprintf(text + length, 64 - length, "%%%u", ip->scope);
}

bool ip_parse(struct cm_ip *ip, const char *text)
{
	char copy[64], *scope;

	memset(ip, 0, sizeof(*ip));
	if (!strncmp(text, "any", 3)) {
		ip->any = true;
		ip->families = text[3] == '4'	? CM_IPV4
			       : text[3] == '6' ? CM_IPV6
						: CM_IPV4 | CM_IPV6;
		return true;
	}
	if (snprintf(copy, sizeof(copy), "%s", text) >= (int)sizeof(copy))
		return false;
	scope = strchr(copy, '%');
	if (scope) {
		*scope++ = '\0';
		ip->scope = (uint32_t)strtoul(scope, NULL, 10);
	}
	if (inet_pton(AF_INET6, copy, &ip->addr) != 1)
		return false;
	ip->families = IN6_IS_ADDR_V4MAPPED(&ip->addr) ? CM_IPV4 : CM_IPV6;
	return true;
}

bool ip_same(const struct cm_ip *a, const struct cm_ip *b)
{
	if (a->any || b->any)
		return a->any && b->any && a->families == b->families;
	return a->scope == b->scope && IN6_ARE_ADDR_EQUAL(&a->addr, &b->addr);
}

/* Both would be the target of one and the same request. */
bool ip_overlaps(const struct cm_ip *a, const struct cm_ip *b)
{
	return a->any || b->any ? a->families & b->families : ip_same(a, b);
}

union ibv_gid ip_gid(const struct cm_ip *ip)
{
	union ibv_gid gid;

	memcpy(&gid, &ip->addr, sizeof(gid));
	return gid;
}

static bool is_multicast(const struct sockaddr *addr)
{
	const struct sockaddr_in6 *six = (const void *)addr;
	const struct sockaddr_in *four = (const void *)addr;

	return addr->sa_family == AF_INET6 ? IN6_IS_ADDR_MULTICAST(&six->sin6_addr)
					   : IN_MULTICAST(ntohl(four->sin_addr.s_addr));
}

/*
 * The kernel knows best: a datagram socket can be bound to it, and connecting to it is no
 * broadcast.
 */
int ip_is_local(const struct sockaddr *addr)
{
	struct sockaddr_storage copy;
	socklen_t size = ip_sockaddr_size(addr);
	int fd, cancel, error = 0;

	if (is_multicast(addr))
		return EADDRNOTAVAIL;
	cancel = cancel_off();
	fd = socket(addr->sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		error = errno == EAFNOSUPPORT ? EADDRNOTAVAIL : errno;
	if (!error) {
		memcpy(&copy, addr, size);
		ip_set_port((struct sockaddr *)&copy, 0);
		if (bind(fd, (struct sockaddr *)&copy, size))
			error = EADDRNOTAVAIL;
		ip_set_port((struct sockaddr *)&copy, PROBE_PORT);
		if (!error && connect(fd, (struct sockaddr *)&copy, size) && errno == EACCES)
			error = EADDRNOTAVAIL;
		close(fd);
	}
	cancel_restore(cancel);
	return error;
}

int ip_is_reachable(const struct sockaddr *addr)
{
	int error = ip_is_local(addr);

	return error == EADDRNOTAVAIL && name_is_in_folder() && !is_multicast(addr) ? 0 : error;
}

/* The local address from which the host would send to the target. */
int ip_route(const struct sockaddr *target, struct sockaddr_storage *source)
{
	socklen_t size = ip_sockaddr_size(target), source_size = sizeof(*source);
	int fd = socket(target->sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0), error = 0,
	    cancel = cancel_off();
	struct sockaddr_storage copy;

	memcpy(&copy, target, size);
	ip_set_port((struct sockaddr *)&copy, PROBE_PORT);
	memset(source, 0, sizeof(*source));
	if (fd < 0 || connect(fd, (struct sockaddr *)&copy, size) ||
	    getsockname(fd, (struct sockaddr *)source, &source_size))
		error = errno;
	if (fd >= 0)
		close(fd);
	cancel_restore(cancel);
	return error;
}
