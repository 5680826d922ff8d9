/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* IP addresses as claims, as text in names and as GIDs, and their place in the host's configuration. */
#include <arpa/inet.h>
#include <errno.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "softverbs/link/ip.h"
#include "softverbs/link/name.h"
#include "util/cancel.h"

#define PROBE_PORT 9 /* for datagram sockets that never send */

socklen_t sv_ip_sockaddr_size(const struct sockaddr *addr)
{
	return addr->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6)
					   : sizeof(struct sockaddr_in);
}

void sv_ip_set_port(struct sockaddr *addr, uint16_t port)
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

int sv_ip_from_sockaddr(struct sv_ip *ip, uint16_t *port, const struct sockaddr *addr)
{
	const struct sockaddr_in6 *six = (const void *)addr;
	const struct sockaddr_in *four = (const void *)addr;

	memset(ip, 0, sizeof(*ip));
	if (addr->sa_family == AF_INET) {
		ip->any = four->sin_addr.s_addr == htonl(INADDR_ANY);
		map_ipv4(&ip->addr, four->sin_addr);
		ip->families = SV_IPV4;
		*port = ntohs(four->sin_port);
		return 0;
	}
	if (addr->sa_family != AF_INET6)
		return EAFNOSUPPORT;
	ip->addr = six->sin6_addr;
	ip->any = IN6_IS_ADDR_UNSPECIFIED(&six->sin6_addr);
	ip->families = IN6_IS_ADDR_V4MAPPED(&six->sin6_addr) ? SV_IPV4 : SV_IPV6;
	if (ip->any)
		ip->families = SV_IPV4 | SV_IPV6;
	if (IN6_IS_ADDR_LINKLOCAL(&six->sin6_addr))
		ip->scope = six->sin6_scope_id;
	*port = ntohs(six->sin6_port);
	return 0;
}

void sv_ip_sockaddr(const struct sv_ip *ip, uint16_t port, struct sockaddr_storage *addr)
{
	struct sockaddr_in6 *six = (void *)addr;
	struct sockaddr_in *four = (void *)addr;

	memset(addr, 0, sizeof(*addr));
	if (ip->families == SV_IPV4) {
		four->sin_family = AF_INET;
		memcpy(&four->sin_addr, ip->addr.s6_addr + 12, sizeof(four->sin_addr));
	} else {
		six->sin6_family = AF_INET6;
		six->sin6_addr = ip->addr;
		six->sin6_scope_id = ip->scope;
	}
	sv_ip_set_port((struct sockaddr *)addr, port);
}

void sv_ip_text(const struct sv_ip *ip, char text[static 64])
{
	static const char *const any[] = {
		[SV_IPV4] = "any4", [SV_IPV6] = "any6", [SV_IPV4 | SV_IPV6] = "any"
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

void sv_ip_show(const struct sv_ip *ip, char text[static 64])
{
	static const char mapped[] = "::ffff:";

	sv_ip_text(ip, text);
	if (ip->families == SV_IPV4 && !strncmp(text, mapped, strlen(mapped)))
		memmove(text, text + strlen(mapped), strlen(text + strlen(mapped)) + 1);
}

bool sv_ip_parse(struct sv_ip *ip, const char *text)
{
	char copy[64], *scope;

	memset(ip, 0, sizeof(*ip));
	if (!strncmp(text, "any", 3)) {
		ip->any = true;
		ip->families = text[3] == '4'	? SV_IPV4
			       : text[3] == '6' ? SV_IPV6
						: SV_IPV4 | SV_IPV6;
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
	ip->families = IN6_IS_ADDR_V4MAPPED(&ip->addr) ? SV_IPV4 : SV_IPV6;
	return true;
}

bool sv_ip_same(const struct sv_ip *a, const struct sv_ip *b)
{
	if (a->any || b->any)
		return a->any && b->any && a->families == b->families;
	return a->scope == b->scope && IN6_ARE_ADDR_EQUAL(&a->addr, &b->addr);
}

/* True if one request could match both. */
bool sv_ip_overlaps(const struct sv_ip *a, const struct sv_ip *b)
{
	return a->any || b->any ? a->families & b->families : sv_ip_same(a, b);
}

union ibv_gid sv_ip_gid(const struct sv_ip *ip)
{
	union ibv_gid gid;

	memcpy(&gid, &ip->addr, sizeof(gid));
	return gid;
}

bool sv_ip_is_multicast(const struct sockaddr *addr)
{
	const struct sockaddr_in6 *six = (const void *)addr;
	const struct sockaddr_in *four = (const void *)addr;

	return addr->sa_family == AF_INET6 ? IN6_IS_ADDR_MULTICAST(&six->sin6_addr)
					   : IN_MULTICAST(ntohl(four->sin_addr.s_addr));
}

/* Asks the kernel: a datagram socket can be bound to a local address, and a connect to it is no broadcast. */
int sv_ip_is_local(const struct sockaddr *addr)
{
	struct sockaddr_storage copy;
	socklen_t size = sv_ip_sockaddr_size(addr);
	int fd, cancel, error = 0;

	if (sv_ip_is_multicast(addr))
		return EADDRNOTAVAIL;
	cancel = cancel_off();
	fd = socket(addr->sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		error = errno == EAFNOSUPPORT ? EADDRNOTAVAIL : errno;
	if (!error) {
		memcpy(&copy, addr, size);
		sv_ip_set_port((struct sockaddr *)&copy, 0);
		if (bind(fd, (struct sockaddr *)&copy, size))
			error = EADDRNOTAVAIL;
		sv_ip_set_port((struct sockaddr *)&copy, PROBE_PORT);
		if (!error && connect(fd, (struct sockaddr *)&copy, size) && errno == EACCES)
			error = EADDRNOTAVAIL;
		close(fd);
	}
	cancel_restore(cancel);
	return error;
}

int sv_ip_is_reachable(const struct sockaddr *addr)
{
	int error = sv_ip_is_local(addr);

	return error == EADDRNOTAVAIL && sv_name_is_in_folder() && !sv_ip_is_multicast(addr)
		       ? 0
		       : error;
}

/* Stores the local address from which the kernel would send to the target. */
int sv_ip_route(const struct sockaddr *target, struct sockaddr_storage *source)
{
	socklen_t size = sv_ip_sockaddr_size(target), source_size = sizeof(*source);
	int fd = socket(target->sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0), error = 0,
	    cancel = cancel_off();
	struct sockaddr_storage copy;

	memcpy(&copy, target, size);
	sv_ip_set_port((struct sockaddr *)&copy, PROBE_PORT);
	memset(source, 0, sizeof(*source));
	if (fd < 0 || connect(fd, (struct sockaddr *)&copy, size) ||
	    getsockname(fd, (struct sockaddr *)source, &source_size))
		error = errno;
	if (fd >= 0)
		close(fd);
	cancel_restore(cancel);
	return error;
}
