/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* The socket CM: chooses the address of the host that peers connect to. */
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <string.h>
#include "dapl/cm/cm.h"
#include "util/log.h"

/* How well an address fits; 0 if not at all. InfiniBand interfaces are the last choice, since peers may have
 * none. */
static int fitness(const struct ifaddrs *entry, const char *netdev)
{
	if (!entry->ifa_addr || entry->ifa_addr->sa_family != AF_INET)
		return 0;
	if (*netdev)
		return !strcmp(entry->ifa_name, netdev);
	if (!(entry->ifa_flags & IFF_UP) || entry->ifa_flags & IFF_LOOPBACK)
		return 0;
	return strncmp(entry->ifa_name, "ib", 2) ? 2 : 1;
}

static const struct ifaddrs *best_of(const struct ifaddrs *list, const char *netdev)
{
	const struct ifaddrs *entry, *best = NULL;
	int most = 0;

	for (entry = list; entry; entry = entry->ifa_next) {
		if (fitness(entry, netdev) > most) {
			most = fitness(entry, netdev);
			best = entry;
		}
	}
	return best;
}

int scm_address(const char *netdev, struct sockaddr_storage *address)
{
	const struct ifaddrs *best;
	struct ifaddrs *list;
	int error = 0;

	if (getifaddrs(&list)) {
		error = errno;
		log_at(LOG_ERROR, "socket CM: getifaddrs: %m");
		return error;
	}
	best = best_of(list, netdev);
	if (best) {
		memset(address, 0, sizeof(*address));
		memcpy(address, best->ifa_addr, sizeof(struct sockaddr_in));
		((struct sockaddr_in *)address)->sin_port = 0;
	} else {
		error = EADDRNOTAVAIL;
		if (*netdev)
			log_at(LOG_ERROR,
			       "scm_netdev: %s: there is no interface of this name with an IPv4 "
			       "address",
			       netdev);
		else
			log_at(LOG_ERROR,
			       "socket CM: no interface but the loopback one has an IPv4 address; "
			       "DAPL_SCM_NETDEV names another");
	}
	freeifaddrs(list);
	return error;
}
