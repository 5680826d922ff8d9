/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* From the parameters in dat.conf to the local address that names a device. */
#include <errno.h>
#include <ifaddrs.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "dapl/openib/address.h"

/* The interface's IPv4 address, else its first IPv6 one. */
static bool from_netdev(const char *name, struct sockaddr_storage *address)
{
	const struct sockaddr *found = NULL;
	struct ifaddrs *list, *entry;

	if (getifaddrs(&list))
		return false;
	for (entry = list; entry; entry = entry->ifa_next) {
		if (!entry->ifa_addr || strcmp(entry->ifa_name, name))
			continue;
		if (entry->ifa_addr->sa_family == AF_INET) {
			found = entry->ifa_addr;
			break;
		}
		if (entry->ifa_addr->sa_family == AF_INET6 && !found)
			found = entry->ifa_addr;
	}
	if (found)
		memcpy(address, found, sockaddr_size(found));
	freeifaddrs(list);
	return found;
}

/* On Ethernet the GID table holds the port's IP addresses, IPv4 ones mapped into IPv6. */
static bool from_gid(struct ibv_context *verbs, uint8_t port, struct sockaddr_storage *address)
{
	static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)address;
	struct sockaddr_in *in = (struct sockaddr_in *)address;
	static const union ibv_gid none;
	struct ibv_port_attr attr;
	union ibv_gid gid;
	bool found = false;
	int i;

	if (ibv_query_port(verbs, port, &attr))
		return false;
	for (i = 0; i < attr.gid_tbl_len; i++) {
		if (ibv_query_gid(verbs, port, i, &gid) || !memcmp(&gid, &none, sizeof(gid)))
			continue;
		if (!memcmp(gid.raw, mapped, sizeof(mapped))) {
			memset(address, 0, sizeof(*address));
			in->sin_family = AF_INET;
			memcpy(&in->sin_addr, gid.raw + 12, 4);
			return true;
		}
		if (!found && !IN6_IS_ADDR_LINKLOCAL((struct in6_addr *)gid.raw)) {
			memset(address, 0, sizeof(*address));
			in6->sin6_family = AF_INET6;
			memcpy(&in6->sin6_addr, gid.raw, 16);
			found = true;
		}
	}
	return found;
}

static bool from_device(const char *name, unsigned port, struct sockaddr_storage *address)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	bool found = false;
	int i;

	for (i = 0; list && list[i] && !found; i++) {
		struct ibv_context *verbs;

		if (strcmp(ibv_get_device_name(list[i]), name))
			continue;
		verbs = ibv_open_device(list[i]);
		if (!verbs) {
			ib_error(errno, "ibv_open_device", name);
			break;
		}
		found = from_gid(verbs, port ? (uint8_t)port : 1, address);
		ibv_close_device(verbs);
	}
	if (list)
		ibv_free_device_list(list);
	return found;
}

static bool from_host(const char *name, struct sockaddr_storage *address)
{
	struct addrinfo *list;

	if (getaddrinfo(name, NULL, NULL, &list))
		return false;
	memcpy(address, list->ai_addr, list->ai_addrlen);
	freeaddrinfo(list);
	return true;
}

bool address_find(const char *params, struct sockaddr_storage *address)
{
	unsigned port = 0;
	char name[256];

	memset(address, 0, sizeof(*address));
	if (sscanf(params, "%255s %u", name, &port) != 2) {
		log_at(LOG_ERROR, "'%s': parameters are a network interface, an address or a verbs "
				  "device, a blank, and a port number", params);
		return false;
	}
	if (from_netdev(name, address) || from_device(name, port, address) ||
	    from_host(name, address))
		return true;
	log_at(LOG_ERROR, "%s: no network interface with an address, no verbs device and no host "
			  "of this name", name);
	return false;
}
