/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* Translates the ia_params of dat.conf to the local address that identifies a device. */
#include <errno.h>
#include <ifaddrs.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "dapl/openib/address.h"

/* The from_* functions return 0, ENODEV for an unknown name, or another errno, which they have logged. */

/* The interface's IPv4 address, else its first IPv6 one. */
static int from_netdev(const char *name, struct sockaddr_storage *address)
{
	const struct sockaddr *found = NULL;
	struct ifaddrs *list, *entry;
	int error;

	if (getifaddrs(&list)) {
		error = errno;
		log_at(LOG_ERROR, "%s: getifaddrs: %s", name, strerror(error));
		return error;
	}
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
	return found ? 0 : ENODEV;
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

/* Returns 0 or a logged errno: the device has no such port, or the port has no address. */
static int from_port(struct ibv_context *verbs, const char *name, unsigned port,
		     struct sockaddr_storage *address)
{
	struct ibv_device_attr attr;
	int error = ibv_query_device(verbs, &attr);

	if (error) {
		log_at(LOG_ERROR, "%s: ibv_query_device: %s", name, strerror(error));
		return error;
	}
	if (port > attr.phys_port_cnt) {
		if (attr.phys_port_cnt == 1)
			log_at(LOG_ERROR, "%s has no port %u: its only port is 1", name, port);
		else
			log_at(LOG_ERROR, "%s has no port %u: its ports are 1 to %u", name, port,
			       attr.phys_port_cnt);
		return ENXIO;
	}
	if (!from_gid(verbs, port ? (uint8_t)port : 1, address)) {
		log_at(LOG_ERROR,
		       "%s: port %u has no IP address among its GIDs: name a network interface "
		       "of the device instead",
		       name, port ? port : 1);
		return EADDRNOTAVAIL;
	}
	return 0;
}

static int from_device(const char *name, unsigned port, struct sockaddr_storage *address)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *verbs;
	int i, error = ENODEV;

	if (!list) { /* unless a resource has run out, this kernel has no verbs */
		error = errno;
		if (!error_is_shortage(error))
			return ENODEV;
		log_at(LOG_ERROR, "%s: ibv_get_device_list: %m", name);
		return error;
	}
	for (i = 0; list[i] && strcmp(ibv_get_device_name(list[i]), name); i++)
		;
	if (list[i]) {
		verbs = ibv_open_device(list[i]);
		if (verbs) {
			error = from_port(verbs, name, port, address);
			ibv_close_device(verbs);
		} else {
			error = errno;
			log_at(LOG_ERROR, "%s: ibv_open_device: %s", name, strerror(error));
		}
	}
	ibv_free_device_list(list);
	return error;
}

/* An IPv4 address of the host, which programs expect; else its first one. */
static int from_host(const char *name, struct sockaddr_storage *address)
{
	struct addrinfo *list, *found;
	int error = getaddrinfo(name, NULL, NULL, &list);

	if (error == EAI_MEMORY || error == EAI_SYSTEM) {
		error = error == EAI_MEMORY ? ENOMEM : errno;
		log_at(LOG_ERROR, "%s: getaddrinfo: %s", name, strerror(error));
		return error;
	}
	if (error)
		return ENODEV;
	for (found = list; found && found->ai_family != AF_INET; found = found->ai_next)
		;
	if (!found)
		found = list;
	memcpy(address, found->ai_addr, found->ai_addrlen);
	freeaddrinfo(list);
	return 0;
}

int address_find(const char *params, struct sockaddr_storage *address)
{
	unsigned port = 0;
	char name[256];
	int error;

	memset(address, 0, sizeof(*address));
	if (sscanf(params, "%255s %u", name, &port) != 2) {
		log_at(LOG_ERROR,
		       "'%s': parameters are a network interface, an address or a verbs "
		       "device, a blank, and a port number",
		       params);
		return ENODEV;
	}
	error = from_netdev(name, address);
	if (error == ENODEV)
		error = from_device(name, port, address);
	if (error == ENODEV)
		error = from_host(name, address);
	if (error == ENODEV)
		log_at(LOG_ERROR,
		       "%s: no network interface with an address, no verbs device and "
		       "no host of this name",
		       name);
	return error;
}
